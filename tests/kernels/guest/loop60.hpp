// What a 60 Hz loop without work learns, second by second: how late its frames are, how often it
// enters the kernel, how much of the time it spins, how often it was descheduled there, and what
// bounds its margin. On a kernel of 4 or 10 ms ticks it must not become one long spin.
#pragma once

#include "probe.hpp"
#include "support.hpp"

#include <punctual/punctual.hpp>

namespace guest {

/// What a 60 Hz loop must spin where native waits end on these ticks, at best: from the last tick
/// before each frame that leaves the latency to it.
inline double least_share(nanoseconds a_tick, nanoseconds period, nanoseconds latency,
                          nanoseconds anchor, int frames) {
  nanoseconds spun{};
  for (int frame = 1; frame <= frames; ++frame) {
    const nanoseconds due = anchor + nanoseconds(std::int64_t{frame} * 1'000'000'000 / 60);
    // Ticks before `a_tick`, too: the remainder is taken of something that is not negative.
    spun += latency + (due - latency - a_tick + 1'000'000 * period) % period;
  }
  return static_cast<double>(spun.count()) / (frames / 60.0 * 1e9);
}

/// @param judged  The first seconds learn; what comes after them is held to the kernel's ticks.
inline void loop60(int seconds, bool judged = false) {
  constexpr int learning = 3;
  const nanoseconds a_tick = next_tick();
  const nanoseconds period = resolution();
  std::vector<nanoseconds> spun_in;  // each second, of those that are judged
  int known = 0;
  if (judged) {
    // The best of three: one wait that a busy host makes late is enough for none to be believed.
    punctual::calibration found;
    for (int i = 0; i < 3 && found.tick == 0ns; ++i) found = punctual::calibrate();
    const nanoseconds off = found.tick - period;
    check(off > -period / 100 && off < period / 100 && found.extra_ticks == 0,
          "calibrated within %.1f ms, ticks of %.3f ms + %d", microseconds(found.took) / 1e3,
          microseconds(found.tick) / 1e3, found.extra_ticks);
  }
  std::printf("margin at 16.667 ms before: %.1f us\n",
              microseconds(punctual::this_thread_sleeper().margin(16'666'667ns)));
  std::puts(
      "second  native waits a frame  late us p50       p99       max   spun %   cpu %  gaps"
      "   margin us    tick us");
  const punctual::instant anchor = punctual::steady::now();
  for (int second = 0; second < seconds; ++second) {
    std::vector<nanoseconds> late;
    nanoseconds spun{};
    std::uint32_t natives = 0, gaps = 0;
    const nanoseconds cpu = read(CLOCK_THREAD_CPUTIME_ID), begin = read(CLOCK_MONOTONIC);
    for (int frame = 1; frame <= 60; ++frame) {
      const auto frames = std::int64_t{60} * second + frame;
      const punctual::receipt did =
          punctual::sleep_until(anchor + nanoseconds(frames * 1'000'000'000 / 60));
      late.push_back(did.late);
      spun += did.spun;
      natives += did.native_waits;
      gaps += did.gaps;
    }
    const auto percent = [took = read(CLOCK_MONOTONIC) - begin](nanoseconds part) {
      return 100.0 * static_cast<double>(part.count()) / static_cast<double>(took.count());
    };
    const auto why = punctual::this_thread_sleeper().report().margins[4].margin;
    if (second >= learning) {
      spun_in.push_back(spun);
      const nanoseconds off = why.tick - period;
      known += off >= -1us && off <= 1us && why.extra_ticks == 0;
    }
    std::printf("%6d  %20.2f  %11.1f %9.1f %9.1f %8.1f %7.1f %5u %11.1f %10.3f+%d %s\n", second,
                natives / 60.0, microseconds(quantile(late, 0.5)),
                microseconds(quantile(late, 0.99)), microseconds(quantile(late, 1)), percent(spun),
                percent(read(CLOCK_THREAD_CPUTIME_ID) - cpu), gaps, microseconds(why.margin),
                microseconds(why.tick), why.extra_ticks, punctual::report_text::reason(why.why));
  }
  if (!judged) return;
  check(2 * known > seconds - learning,
        "in %d of %d seconds it knew the ticks of %lld ns within 1 us, and that none is added",
        known, seconds - learning, static_cast<long long>(period.count()));
  const double least =
      least_share(a_tick, period, 30us, anchor.time_since_epoch() + nanoseconds{1s} * learning,
                  60 * (seconds - learning));
  // Of half the seconds: a host that takes the processor away costs whole frames.
  const double share = static_cast<double>(quantile(spun_in, 0.5).count()) / 1e9;
  check(share <= least + 0.03,
        "it spins %.1f %% of the time, who knows the ticks beforehand %.1f %%", 100 * share,
        100 * least);
}

}  // namespace guest
