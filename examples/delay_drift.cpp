// The error of a delay against its length, from 1 us to 10 s: is it constant, does it grow?
//
// After what Luigi Rizzo measured on FreeBSD in 2009: on a kernel whose tick is 0.6 % too long the
// error grows with the delay; on Linux select adds a thousandth of it on purpose. usleep, select
// and punctual in turn. An error of the machine's clock itself does not show: both ends are read
// from it.
//
//   delay_drift                        1 us to 1 s
//   delay_drift 10                     up to 10 s
// smoke: 0.01
#include <punctual/sleep.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/select.h>
#include <unistd.h>

using punctual::nanoseconds;
using punctual::steady;

namespace {

/// What a wait took longer than it was asked for, in us: the median of some.
template <class Wait>
double error(nanoseconds length, Wait wait) {
  const auto calls = std::clamp<long long>(200'000'000 / (length.count() + 1), 1, 101);
  std::vector<double> all;
  for (long long i = 0; i < calls; ++i) {
    const auto from = steady::now();
    wait();
    all.push_back(std::chrono::duration<double, std::micro>(steady::now() - from - length).count());
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void by_select(nanoseconds length) {
  const auto us = length.count() / 1000;
  timeval t{static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
  ::select(0, nullptr, nullptr, nullptr, &t);
}

void by_usleep(nanoseconds length) { ::usleep(static_cast<useconds_t>(length.count() / 1000)); }

}  // namespace

int main(int count, char** words) {
  const double longest = count > 1 ? std::atof(words[1]) : 1;
  if (!(longest >= 1e-6 && longest <= 100)) {
    std::fprintf(stderr, "usage: delay_drift [LONGEST_IN_SECONDS]\n");
    return 2;
  }
  std::printf("%12s %23s %23s %23s\n", "", "usleep", "select", "punctual");
  std::printf("%12s %12s %10s %12s %10s %12s %10s\n", "delay, us", "error, us", "ppm", "error, us",
              "ppm", "error, us", "ppm");
  for (long long us = 1, step = 0; static_cast<double>(us) <= longest * 1e6 * 1.0001; ++step) {
    const nanoseconds length = std::chrono::microseconds{us};
    const double errors[] = {
        error(length, [length] { by_usleep(length); }),
        error(length, [length] { by_select(length); }),
        error(length, [length] { punctual::sleep_for(length); }),
    };
    std::printf("%12lld", us);
    for (const double each : errors) {
      std::printf(" %12.2f %10.0f", each, each / static_cast<double>(us) * 1e6);
    }
    std::printf("\n");
    us = step % 3 == 1 ? us / 2 * 5 : us * 2;  // 1, 2, 5, 10 ...
  }
}
