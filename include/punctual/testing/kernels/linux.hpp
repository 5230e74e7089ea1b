// Linux with and without high-resolution timers, illumos, and a guest whose host is in the way.
//
// Side layer; see kernels.hpp for how models are used. Absolute requests stay absolute. The coarse
// clock is the time of the last tick (CLOCK_MONOTONIC_COARSE); illumos has none.
#pragma once

#include <punctual/testing/kernels/tick.hpp>
#include <punctual/testing/simulated_platform.hpp>

namespace punctual::testing::kernels {

/// Linux with high-resolution timers: sleeps, futexes and condition variables.
///
/// The interrupt is programmed for the end of the slack; any other timer interrupt inside it takes
/// the sleeper along. A tight request has a slack of 1 ns. A deadline past by less than the slack
/// is still waited for to the end of it; one past by more costs a dispatch.
/// Source: kernel/time/hrtimer.c; prctl(2), PR_SET_TIMERSLACK; validated against Linux 6.1 in
/// tests/kernels.
struct linux_highres {
  nanoseconds timer_slack = std::chrono::microseconds{50};  ///< 0 for a real-time thread
  std::int64_t hz = 250;                                    ///< of the coarse clock
  nanoseconds phase{0};

  instant wake(const native_request& asked, surroundings& around) const {
    const instant hard = later(asked.until, slack_of(asked));
    if (hard <= asked.now) return around.dispatched(asked.now);
    return around.dispatched(around.first_in((std::max)(asked.now, asked.until), hard));
  }
  nanoseconds slack_of(const native_request& asked) const {
    return asked.how == slack::tight ? (std::min)(timer_slack, nanoseconds{1}) : timer_slack;
  }
  instant coarse(instant t) const { return tick(hz, phase).shown(t); }
};

/// Linux select, poll and epoll: a slack of 0.1 % of the request (0.5 % if niced), 100 ms at most.
///
/// Source: fs/select.c (select_estimate_accuracy). `poll(0)` returns at once.
struct linux_select {
  nanoseconds timer_slack = std::chrono::microseconds{50};
  bool niced = false;
  std::int64_t hz = 250;
  nanoseconds phase{0};

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return asked.now;
    const nanoseconds share = between(asked.now, asked.until) / (niced ? 200 : 1000);
    const nanoseconds own = linux_highres{timer_slack}.slack_of(asked);
    const nanoseconds widest = std::chrono::milliseconds{100};
    return around.dispatched(around.first_in(
        asked.until, later(asked.until, (std::max)(own, (std::min)(share, widest)))));
  }
  instant coarse(instant t) const { return tick(hz, phase).shown(t); }
};

/// Linux without high-resolution timers (`highres=off`, or no hardware for them): the first tick at
/// or after the instant, with nothing added; a past one waits for the next tick, too.
///
/// Source: kernel/time/hrtimer.c, validated against Linux 6.1 in tests/kernels.
struct linux_ticks {
  std::int64_t hz = 250;
  nanoseconds phase{0};
  parts_per_billion tick_error{};
  bool clock_steps = false;  ///< clocksource=jiffies: the precise clock, too, moves by whole ticks

  instant wake(const native_request& asked, surroundings& around) const {
    const tick ticks(hz, phase, tick_error);
    if (asked.until <= asked.now) return around.dispatched(ticks.after(asked.now, 1));
    return around.dispatched(ticks.not_before(asked.until));
  }
  instant coarse(instant t) const { return tick(hz, phase, tick_error).shown(t); }
  instant precise(instant t) const { return clock_steps ? coarse(t) : t; }
};

/// Linux up to 2.6.15, and msleep inside any kernel: ceil(r / T) + 1 ticks, once.
///
/// Source: schedule_timeout, from general knowledge rather than from that source. With
/// `busy_below` 2 ms it is Linux 2.4 for a real-time thread, which waited that long in the kernel.
struct linux_jiffies {
  std::int64_t hz = 100;
  nanoseconds phase{0};
  parts_per_billion tick_error{};
  nanoseconds busy_below{0};

  instant wake(const native_request& asked, surroundings& around) const {
    const nanoseconds left = left_of(asked.now, asked.until);
    if (left <= busy_below && left > nanoseconds::zero()) return asked.until;
    const std::uint64_t n =
        multiply_divide(static_cast<std::uint64_t>(left.count()), static_cast<std::uint64_t>(hz),
                        1'000'000'000, rounding::up);
    return around.dispatched(
        tick(hz, phase, tick_error).after(asked.now, static_cast<std::int64_t>(n) + 1));
  }
  instant coarse(instant t) const { return tick(hz, phase, tick_error).shown(t); }
};

/// A virtual machine whose lateness grows with the length of the wait: the longer the processor was
/// idle, the longer the host takes to bring it back.
///
/// Between the two measured points the overshoot grows with the logarithm of the length; outside it
/// stays. Source: this project's machine (Linux 6.18 guest, kvm-clock), 41 µs at 0.1 ms and 170 µs
/// at 16 ms. Limits: a shape, not a law; the jitter around it is for a `latency` to add.
struct guest {
  nanoseconds short_wait = std::chrono::microseconds{100};
  nanoseconds short_overshoot = std::chrono::microseconds{41};
  nanoseconds long_wait = std::chrono::milliseconds{16};
  nanoseconds long_overshoot = std::chrono::microseconds{170};
  std::int64_t hz = 250;
  nanoseconds phase{0};

  nanoseconds overshoot(nanoseconds length) const {
    const auto log2_of = [](nanoseconds t) {
      return fixed_log2(static_cast<std::uint64_t>(t.count()));
    };
    if (length <= short_wait) return short_overshoot;
    if (length >= long_wait) return long_overshoot;
    return short_overshoot + (long_overshoot - short_overshoot) *
                                 (log2_of(length) - log2_of(short_wait)) /
                                 (log2_of(long_wait) - log2_of(short_wait));
  }

  instant wake(const native_request& asked, surroundings& around) const {
    const nanoseconds length = left_of(asked.now, asked.until);
    return around.dispatched(later((std::max)(asked.now, asked.until), overshoot(length)));
  }
  instant coarse(instant t) const { return tick(hz, phase).shown(t); }
};

/// illumos: due after max(r, one tick), with no rounding above that floor.
///
/// Source: illumos cv_waituntil_sig; the floor keeps programs from flooding the system with timers.
/// `floor` is 1 ms with hires_tick=1.
struct illumos {
  nanoseconds floor = std::chrono::milliseconds{10};

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return asked.now;
    return around.dispatched((std::max)(asked.until, later(asked.now, floor)));
  }
};

}  // namespace punctual::testing::kernels
