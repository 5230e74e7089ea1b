// smoke: --rounds 20
// How long a wake takes, beside a bare futex; and what it costs to be interruptible at all.
//
// First the time from just before the wake to the waiter's return, the ways to wait in turn; then
// waits that nobody ends, plain and interruptible in turn.
#include "support/options.hpp"
#include "support/wakes.hpp"

#include <cstdio>
#include <vector>

namespace {

void print(const char* name, std::vector<double> times, double reference) {
  if (times.empty()) {
    std::printf("  %-28s no round counted\n", name);
    return;
  }
  const double p50 = bench::quantile(times, 0.5);
  std::printf("  %-28s %9.2f %9.2f %9.2f %9.2f %8zu\n", name, p50 / 1e3,
              bench::quantile(times, 0.9) / 1e3, bench::quantile(times, 0.99) / 1e3,
              reference > 0 ? p50 / reference : 0.0, times.size());
}

void print(const char* name, const bench::samples& all) {
  const bench::figures f = bench::figures_of(all);
  std::printf("  %-28s %9.2f %9.2f %9.2f %9.2f %8zu\n", name, f.p50 / 1e3, f.p90 / 1e3, f.p99 / 1e3,
              f.cpu / 1e3, f.waits);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options given(argc, argv, "how long a wake takes",
                             {{"rounds", "N", "of each, 2000"}});
  const int rounds = static_cast<int>(given.number("rounds", 2000, 1, 1e6));

  bench::measure_wakes(rounds / 10 + 1);  // warms up
  const bench::wake_times wakes = bench::measure_wakes(rounds);
  std::vector<double> futex = wakes.futex;
  const double reference = bench::quantile(futex, 0.5);
  std::printf("from wake to return, us\n  %-28s %9s %9s %9s %9s %8s\n", "", "p50", "p90", "p99",
              "x futex", "rounds");
  print("bare futex", wakes.futex, reference);
  print("waker, parked", wakes.waker, reference);
  print("stop token, parked", wakes.stop, reference);
  print("std::condition_variable", wakes.condition, reference);
  print("waker, in the final spin", wakes.spinning, reference);

  const punctual::nanoseconds length = std::chrono::milliseconds{1};
  bench::measure_unwoken(300, length);
  const bench::unwoken waits = bench::measure_unwoken(rounds, length);
  std::printf("waits of 1 ms that nobody ends: lateness, us\n  %-28s %9s %9s %9s %9s %8s\n", "",
              "p50", "p90", "p99", "CPU, us", "waits");
  print("plain", waits.plain);
  print("interruptible", waits.interruptible);
}
