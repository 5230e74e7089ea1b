// How long N microseconds take: with select, with poll, with usleep, and with punctual.
//
// After a program of Luigi Rizzo's from February 2012, which showed that one microsecond took 2 ms
// on FreeBSD 9, 99 us on Linux and 6 us on a Mac: the kernel rounds to its ticks, or adds its
// slack. poll knows only milliseconds: what is less is no wait at all.
//
//   select_poll_usleep                 1 us to 10 ms, by all four
//   select_poll_usleep 500             500 us
//   select_poll_usleep 500 select      by one of select, poll, usleep, punctual
// smoke: 100
#include <punctual/sleep.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <poll.h>
#include <sys/select.h>
#include <unistd.h>

using punctual::steady;
using std::chrono::microseconds;

namespace {

struct way {
  const char* name;
  void (*wait)(microseconds);
};

constexpr way ways[] = {
    {"select",
     [](microseconds n) {
       timeval t{static_cast<time_t>(n.count() / 1'000'000),
                 static_cast<suseconds_t>(n.count() % 1'000'000)};
       ::select(0, nullptr, nullptr, nullptr, &t);
     }},
    {"poll", [](microseconds n) { ::poll(nullptr, 0, static_cast<int>(n.count() / 1000)); }},
    {"usleep", [](microseconds n) { ::usleep(static_cast<useconds_t>(n.count())); }},
    {"punctual", [](microseconds n) { punctual::sleep_for(n); }},
};

void measure(microseconds n, const char* only) {
  for (const way& each : ways) {
    if (only != nullptr && std::strcmp(only, each.name) != 0) continue;
    const auto calls = std::clamp<long>(static_cast<long>(400'000 / (n.count() + 100)), 5, 1000);
    std::vector<double> took;
    for (long i = 0; i < calls; ++i) {
      const auto from = steady::now();
      each.wait(n);
      took.push_back(std::chrono::duration<double, std::micro>(steady::now() - from).count());
    }
    std::sort(took.begin(), took.end());
    const auto last = took.size() - 1;
    std::printf("%8lld us  %-9s %12.2f %12.2f %12.2f\n", static_cast<long long>(n.count()),
                each.name, took[0], took[last / 2], took[last * 99 / 100]);
  }
}

}  // namespace

int main(int count, char** words) {
  const long n = count > 1 ? std::atol(words[1]) : 0;
  const char* only = count > 2 ? words[2] : nullptr;
  const bool known = only == nullptr ||
                     std::any_of(std::begin(ways), std::end(ways),
                                 [only](const way& w) { return std::strcmp(w.name, only) == 0; });
  if ((count > 1 && (n < 1 || n > 10'000'000)) || !known) {
    std::fprintf(stderr,
                 "usage: select_poll_usleep [MICROSECONDS [select|poll|usleep|punctual]]\n");
    return 2;
  }
  std::printf("%11s  %-9s %12s %12s %12s\n", "asked for", "by", "least, us", "median, us",
              "99 %, us");
  if (count > 1) {
    measure(microseconds{n}, only);
    return 0;
  }
  for (const long each : {1L, 10L, 100L, 1000L, 10'000L}) measure(microseconds{each}, nullptr);
}
