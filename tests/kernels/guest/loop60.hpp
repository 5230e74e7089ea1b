// What a 60 Hz loop without work learns, second by second: how late its frames are, how often it
// enters the kernel and how much of the time it spins. On a kernel of 4 or 10 ms ticks it must not
// become one long spin.
#pragma once

#include "support.hpp"

#include <punctual/punctual.hpp>

namespace guest {

inline void loop60(int seconds) {
  std::printf("margin at 16.667 ms before: %.1f us\n",
              microseconds(punctual::this_thread_sleeper().margin(16'666'667ns)));
  std::puts(
      "second  native waits a frame  late us p50       p99       max   spun %   cpu %   margin us");
  const punctual::instant anchor = punctual::steady::now();
  for (int second = 0; second < seconds; ++second) {
    std::vector<nanoseconds> late;
    nanoseconds spun{};
    std::uint32_t natives = 0;
    const nanoseconds cpu = read(CLOCK_THREAD_CPUTIME_ID), begin = read(CLOCK_MONOTONIC);
    for (int frame = 1; frame <= 60; ++frame) {
      const auto frames = std::int64_t{60} * second + frame;
      const punctual::receipt did =
          punctual::sleep_until(anchor + nanoseconds(frames * 1'000'000'000 / 60));
      late.push_back(did.late);
      spun += did.spun;
      natives += did.native_waits;
    }
    const auto percent = [took = read(CLOCK_MONOTONIC) - begin](nanoseconds part) {
      return 100.0 * static_cast<double>(part.count()) / static_cast<double>(took.count());
    };
    std::printf("%6d  %20.2f  %11.1f %9.1f %9.1f %8.1f %7.1f %11.1f\n", second, natives / 60.0,
                microseconds(quantile(late, 0.5)), microseconds(quantile(late, 0.99)),
                microseconds(quantile(late, 1)), percent(spun),
                percent(read(CLOCK_THREAD_CPUTIME_ID) - cpu),
                microseconds(punctual::this_thread_sleeper().margin(16'666'667ns)));
  }
}

}  // namespace guest
