// Mistake that would live without it: a wait that is right on simulated kernels and no better than
// a plain sleep on a real one. The distribution is printed; asserted is only what holds on a busy
// two-core guest: never early, a median that is far below the kernel's in the same run (a plain
// sleep is 50 us or more late, so a tenth of it leaves an order of magnitude), less than half of a
// core for 1 ms waits, and costs as ratios.
#include "support/catch.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

nanoseconds clock_of_kernel(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}

struct way {
  const char* name;
  std::vector<nanoseconds> late{};
  nanoseconds cpu{0};

  template <class Wait>
  void once(nanoseconds length, Wait wait) {
    const nanoseconds ran = clock_of_kernel(CLOCK_THREAD_CPUTIME_ID);
    const nanoseconds due = clock_of_kernel(CLOCK_MONOTONIC) + length;
    wait(instant{due});
    late.push_back(clock_of_kernel(CLOCK_MONOTONIC) - due);
    cpu += clock_of_kernel(CLOCK_THREAD_CPUTIME_ID) - ran;
  }
  nanoseconds quantile(double q) {
    std::sort(late.begin(), late.end());
    return late[std::min(late.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(late.size())))];
  }
  double cpu_us() const {
    return static_cast<double>(cpu.count()) / 1e3 / static_cast<double>(late.size());
  }
  void print(nanoseconds length) {
    const auto us = [this](double q) { return static_cast<double>(quantile(q).count()) / 1e3; };
    std::printf(
        "%8.3f ms %-9s late us: min %.2f p50 %.2f p90 %.2f p95 %.2f p99 %.2f max %.1f; CPU %.1f "
        "us\n",
        static_cast<double>(length.count()) / 1e6, name, us(0), us(0.5), us(0.9), us(0.95),
        us(0.99), us(1), cpu_us());
  }
};

template <class Call>
double cost_of(Call call) {
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    const nanoseconds from = clock_of_kernel(CLOCK_MONOTONIC);
    for (int i = 0; i < 2000; ++i) call();
    best = std::min(best,
                    static_cast<double>((clock_of_kernel(CLOCK_MONOTONIC) - from).count()) / 2000);
  }
  return best;
}

}  // namespace

TEST_CASE("a wait is far more punctual than a plain sleep of the same run, for little CPU",
          "[timing][sleeper][G1]") {
  calibrate();
  for (const auto length : {100us, 1000us, 4000us, 16'667us}) {
    way ours{"punctual"}, plain{"kernel"}, spin{"spin"};
    const int waits = length > 4ms ? 120 : 300;
    for (int i = 0; i < waits; ++i) {
      ours.once(length, [](instant due) { sleep_until(due); });
      plain.once(length, [](instant due) { block_until(due); });
      if (i % 3 == 0) spin.once(length, [](instant due) { spin_until(due); });
    }
    ours.print(length);
    plain.print(length);
    spin.print(length);
    CHECK(ours.quantile(0) >= 0ns);
    CHECK(plain.quantile(0) >= 0ns);
    CHECK(spin.quantile(0) >= 0ns);
    CHECK(ours.quantile(0.5) * 10 < plain.quantile(0.5));
    if (length >= 1ms) {
      CHECK(ours.cpu_us() < 0.5 * static_cast<double>(length.count()));
    }
  }
}

TEST_CASE("a past deadline costs about a clock read, one long past less", "[timing][sleeper][G2]") {
  if (support::sanitized) return support::skip("a sanitizer changes what calls cost");
  timespec t{};
  const double read = cost_of([&] { ::clock_gettime(CLOCK_MONOTONIC, &t); });
  const instant far = steady::now() - 1h;
  const double past = cost_of([&] { static_cast<void>(sleep_until(far)); });
  const double near = cost_of([&] { static_cast<void>(sleep_until(steady::now())); }) - read;
  std::printf("clock read %.1f ns, long past %.1f ns (%.2f), just past %.1f ns (%.2f)\n", read,
              past, past / read, near, near / read);
  // The bench has the figures; here an unoptimised or a disturbed build must pass, a system call
  // must not.
  CHECK(past < read);
  CHECK(near < 3 * read);
}

TEST_CASE("calibration takes 20 ms, and the margins after it are near those of a thousand waits",
          "[timing][calibration]") {
  double worst = 0;
  nanoseconds shortest = 1h;
  for (const auto length : {1000us, 4000us}) {
    // Best of 3: the machine is shared.
    double best = 1e9;
    for (int window = 0; window < 3; ++window) {
      sleeper s;
      s.reset();
      const instant from = steady::now();
      const calibration c = s.calibrate();
      const nanoseconds took = steady::now() - from;
      if (c.tick < 4ms) shortest = std::min(shortest, took);
      const double early = static_cast<double>(s.margin(length).count());
      for (int i = 0; i < 300; ++i) s.sleep_for(length);
      const double learned = static_cast<double>(s.margin(length).count());
      std::printf(
          "%6lld us: margin %.1f us after %.1f ms of calibration, %.1f us after 300 waits\n",
          static_cast<long long>(length.count()), early / 1e3,
          static_cast<double>(took.count()) / 1e6, learned / 1e3);
      best = std::min(best, std::max(early / learned, learned / early));
    }
    worst = std::max(worst, best);
  }
  CHECK((shortest == 1h || shortest < 25ms));
  CHECK(worst < 4);  // exactly 1.5 on simulated kernels; here a disturbance of either is let pass
}
