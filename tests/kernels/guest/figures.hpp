// How late and how dear, side by side in one run: the library, one plain absolute sleep of the
// kernel's, and a pure spin. Prints; judges nothing, for a guest's lateness is its host's mood
// (except under virtual time). "cpu" is the kernel's own count; User-mode Linux counts by its ticks
// and misses what runs between them. "spun" is what the receipts say.
#pragma once

#include "support.hpp"

#include <punctual/punctual.hpp>

namespace guest {

template <class Wait>
void figures_of(const char* what, nanoseconds length, int count, Wait wait) {
  std::vector<nanoseconds> late;
  nanoseconds spun{};
  const nanoseconds cpu_before = read(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < count; ++i) {
    const nanoseconds deadline = read(CLOCK_MONOTONIC) + length;
    spun += wait(deadline);
    late.push_back(read(CLOCK_MONOTONIC) - deadline);
  }
  const nanoseconds cpu = (read(CLOCK_THREAD_CPUTIME_ID) - cpu_before) / count;
  std::printf("%8.3f  %-9s %5d %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n", microseconds(length) / 1e3,
              what, count, microseconds(quantile(late, 0.5)), microseconds(quantile(late, 0.9)),
              microseconds(quantile(late, 0.99)), microseconds(quantile(late, 1)),
              microseconds(cpu), microseconds(spun / count));
}

inline void figures(int times) {
  punctual::calibrate();
  std::printf("\n%s", to_text(punctual::current_calibration()).c_str());
  std::puts(
      "\nlength ms  by        waits  late us p50       p90       p99       max  cpu a wait      "
      "spun");
  struct row {
    nanoseconds length;
    int count;
  };
  for (const row& each : {row{1ms, 150}, row{4ms, 80}, row{16'667us, 30}}) {
    const nanoseconds length = each.length;
    const int count = each.count * times;
    figures_of("plain", length, count, [](nanoseconds at) {
      plain_sleep_until(at);
      return 0ns;
    });
    figures_of("punctual", length, count,
               [](nanoseconds at) { return punctual::sleep_until(punctual::instant(at)).spun; });
    figures_of("spin", length, count, [length](nanoseconds at) {
      while (read(CLOCK_MONOTONIC) < at) {
      }
      return length;
    });
  }
  std::putchar('\n');
}

}  // namespace guest
