// FreeBSD in its three ages, and DragonFly, which went its own way.
//
// Side layer; see kernels.hpp for how models are used. FreeBSD's cheap clock is the time that was
// stored at the last windup, one every `tc_tick` ticks; two of its sleeps start from it. Programs
// read it as CLOCK_MONOTONIC_FAST.
#pragma once

#include <punctual/testing/kernels/tick.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <bit>

namespace punctual::testing::kernels {

/// FreeBSD's stored time: moved on every `every` ticks, 0 for what the kernel chooses (about 1 ms).
struct windup {
  tick ticks;
  std::int64_t every;

  static constexpr std::int64_t chosen(std::int64_t hz) noexcept {
    return hz > 1000 ? (hz + 500) / 1000 : 1;
  }
  constexpr instant shown(instant t) const noexcept {
    const std::int64_t k = ticks.index(t);
    const std::int64_t beyond = k % every;
    return ticks.at(k - (beyond < 0 ? beyond + every : beyond));
  }
};

/// FreeBSD up to 9, nanosleep and usleep: ceil(r / T) + 1 ticks, over and over until the *stored*
/// time has come to where it was at the start plus the request.
///
/// So a short sleep lasts to the next windup: 1 ms, even where a tick is 10 µs.
/// With ticks that are too short it may end a part of a tick early: it sees the stored time only.
/// Source: FreeBSD 9.3 kern_time.c (kern_nanosleep), kern_clock.c (tvtohz); the mailing-list
/// threads of 2009 and 2012 by Luigi Rizzo. Limits: the load that 100,000 interrupts a second put
/// on a machine is not modelled.
struct freebsd_9_nanosleep {
  std::int64_t hz = 1000;
  nanoseconds phase{0};
  parts_per_billion tick_error{};
  std::int64_t windup_every = 0;  ///< `tc_tick`; 0: the kernel's own choice
  std::int64_t extra_ticks = 1;   ///< 0: as if tvtohz had been mended

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return asked.now;
    const windup stored = clock();
    const nanoseconds nominal = bsd_tick(hz);
    const instant target = later(stored.shown(asked.now), between(asked.now, asked.until));
    nanoseconds left = between(asked.now, asked.until);
    instant t = asked.now;
    for (;;) {
      t = around.dispatched(stored.ticks.after(t, ticks_up(left, nominal) + extra_ticks));
      const instant seen = stored.shown(t);
      if (seen >= target || t == (instant::max)()) return t;
      left = between(seen, target);
    }
  }
  instant coarse(instant t) const { return clock().shown(t); }
  windup clock() const {
    return {tick(hz, phase, tick_error), windup_every > 0 ? windup_every : windup::chosen(hz)};
  }
};

/// FreeBSD up to 9, select and poll: max(r, T), ceil(r / T) + 1 ticks, once; no look at a clock.
///
/// Source: FreeBSD 9.3 sys_generic.c (kern_select, sys_poll). With short ticks it ends early.
struct freebsd_9_select {
  std::int64_t hz = 1000;
  nanoseconds phase{0};
  parts_per_billion tick_error{};
  std::int64_t windup_every = 0;
  std::int64_t extra_ticks = 1;

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return asked.now;
    const nanoseconds nominal = bsd_tick(hz);
    const nanoseconds left = (std::max)(between(asked.now, asked.until), nominal);
    return around.dispatched(
        tick(hz, phase, tick_error).after(asked.now, ticks_up(left, nominal) + extra_ticks));
  }
  instant coarse(instant t) const {
    return freebsd_9_nanosleep{hz, phase, tick_error, windup_every, extra_ticks}.coarse(t);
  }
};

/// FreeBSD 10 to 14: an exact timer, armed for the end of a window of r / 16.
///
/// Any timer interrupt of that processor inside the window ends the wait sooner. A request of 16
/// `tc_tick` or more starts from the stored time plus one `tc_tick`: up to 1 ms later at HZ=1000.
/// Source: FreeBSD 14 kern_time.c, kern_timeout.c, kern_tc.c (tc_precexp, sbt_timethreshold).
struct freebsd_14 {
  std::int64_t hz = 1000;
  nanoseconds phase{0};
  parts_per_billion tick_error{};
  int allowed_deviation = 5;  ///< kern.timecounter.alloweddeviation, percent; 0: no window

  /// The window is the request shifted right by this: 4 at 5 %.
  int shift() const {
    if (allowed_deviation <= 0) return 31;
    const int t = (99 + allowed_deviation) / allowed_deviation;
    return static_cast<int>(std::bit_width(static_cast<unsigned>(t + t / 2))) - 1;
  }

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return asked.now;
    const nanoseconds length = between(asked.now, asked.until);
    const nanoseconds tc_tick{1'000'000'000 * windup::chosen(hz) / (hz < 1 ? 1 : hz)};
    const bool from_stored = (length.count() >> shift()) >= tc_tick.count();
    const instant base = from_stored ? later(coarse(asked.now), tc_tick) : asked.now;
    const instant due = later(base, length);
    return around.dispatched(
        around.first_in(due, later(due, nanoseconds{length.count() >> shift()})));
  }
  instant coarse(instant t) const {
    return windup{tick(hz, phase, tick_error), windup::chosen(hz)}.shown(t);
  }
};

/// FreeBSD after 626ea75ed2e9 (review D50075), expected as 15: due is when it was asked for.
///
/// Source: the commit message; `kern.timecounter.nanosleep_precise=0` brings `freebsd_14` back,
/// which is also what select, poll and kevent still are.
struct freebsd_15 {
  std::int64_t hz = 1000;
  nanoseconds phase{0};

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return asked.now;
    return around.dispatched(asked.until);
  }
  instant coarse(instant t) const { return windup{tick(hz, phase), windup::chosen(hz)}.shown(t); }
};

/// DragonFly: whole ticks rounded *down*, then a one-shot timer for the rest, then a spin in the
/// kernel below 100 µs. Exact at any HZ.
///
/// Source: DragonFly kern_time.c (nanosleep1), of 2009; documented as the same scheme today.
/// Limits: the spin ends at the instant, not at the first look after it.
struct dragonfly {
  std::int64_t hz = 100;
  nanoseconds phase{0};
  parts_per_billion tick_error{};
  nanoseconds shortest = std::chrono::microseconds{10};  ///< kern.nanosleep_min_us
  nanoseconds hard = std::chrono::microseconds{100};     ///< kern.nanosleep_hard_us

  instant wake(const native_request& asked, surroundings& around) const {
    const tick ticks(hz, phase, tick_error);
    const nanoseconds nominal = bsd_tick(hz);
    instant t = asked.now;
    while (t < asked.until) {
      const nanoseconds left = between(t, asked.until);
      if (left >= nominal) {
        t = around.dispatched(ticks.after(t, left / nominal));
        continue;
      }
      const nanoseconds shot = (std::max)(left, shortest);
      if (shot < hard) return asked.until;
      t = around.dispatched(later(t, shot));
    }
    return t;
  }
  instant coarse(instant t) const { return tick(hz, phase, tick_error).shown(t); }
};

}  // namespace punctual::testing::kernels
