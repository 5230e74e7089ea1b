// Windows and macOS: kernels that wake sleepers together to save power.
//
// Side layer; see kernels.hpp for how models are used. Both clocks move in visible steps: Windows'
// performance counter by 100 ns, that of macOS on ARM by a 24 MHz counter.
#pragma once

#include <punctual/testing/kernels/tick.hpp>
#include <punctual/testing/simulated_platform.hpp>

namespace punctual::testing::kernels {

/// The performance counter, at its usual 10 MHz.
inline constexpr tick performance_counter{std::int64_t{10'000'000}};

/// Windows: Sleep, waits with a timeout, plain waitable timers. The due time is counted from the
/// *last tick*: ceil(r / T) ticks, so a wait may end up to a tick *before* the asked instant.
///
/// Source: Microsoft's pages on Sleep and timeBeginPeriod; golang issue 17696 and
/// Windows-Dev-Performance issue 115 for the numbers. Limits: now and then a real machine takes one
/// tick more; Windows 11 ignores timeBeginPeriod for hidden windows: that is 15.625 ms again.
struct windows {
  nanoseconds period = std::chrono::microseconds{15'625};  ///< 64 Hz; 1 ms, 0.9765625 ms, 0.5 ms
  nanoseconds phase{0};
  nanoseconds unit =
      std::chrono::milliseconds{1};  ///< of a request: 1 ms for Sleep, 100 ns for timers

  instant wake(const native_request& asked, surroundings& around) const {
    const nanoseconds left = ticks_up(left_of(asked.now, asked.until), unit) * unit;
    if (left <= nanoseconds::zero()) return asked.now;
    return around.dispatched(tick(period, phase).after(asked.now, ticks_up(left, period)));
  }
  instant coarse(instant t) const { return precise(tick(period, phase).shown(t)); }
  instant precise(instant t) const { return performance_counter.shown(t); }
};

/// Windows 10 1803 and later, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION: the first instant of a grid of
/// its own that is not before the asked one, whatever timeBeginPeriod says.
///
/// Source: rust issue 43376 (a bit over 500 µs, never early), spin-sleep issue 22 for the numbers.
struct windows_high_resolution {
  nanoseconds grid = std::chrono::microseconds{500};
  nanoseconds phase{0};
  nanoseconds period = std::chrono::microseconds{15'625};  ///< of the coarse clock

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return around.dispatched(asked.now);
    return around.dispatched(tick(grid, phase).not_before(asked.until));
  }
  instant coarse(instant t) const { return precise(tick(period).shown(t)); }
  instant precise(instant t) const { return performance_counter.shown(t); }
};

/// Cygwin: `windows`, seen through a clock that shows whole milliseconds.
///
/// Source: simh issues on Cygwin, where a sleep of 1 ms takes 10 to 15.6.
struct cygwin {
  nanoseconds period = std::chrono::milliseconds{10};
  nanoseconds phase{0};

  instant wake(const native_request& asked, surroundings& around) const {
    return windows{period, phase}.wake(asked, around);
  }
  instant coarse(instant t) const { return precise(tick(period, phase).shown(t)); }
  instant precise(instant t) const { return tick(std::chrono::milliseconds{1}).shown(t); }
};

/// macOS 10.9 and later: a slop of r >> shift, at most `cap`, up to twice that on an idle machine.
///
/// An idle machine fires at the end of the slop, a busy one at any interrupt inside it. sleep,
/// select, condition variables and mach_wait_until are all like this; NOTE_CRITICAL is not.
/// Source: XNU's timer_call.c and its table of latency tiers. A caller's leeway can only raise it.
struct macos {
  int shift = 3;  ///< negative: to the left
  nanoseconds cap = std::chrono::milliseconds{1};
  int idle_level = 0;                    ///< timer_user_idle_level, 0 … 128
  std::int64_t counter_hz = 24'000'000;  ///< mach_absolute_time; 1'000'000'000 on Intel

  static macos real_time() { return {0, nanoseconds::zero()}; }  ///< and NOTE_CRITICAL
  static macos background() { return {-5, std::chrono::milliseconds{100}}; }
  /// Applications by their latency tier, 0 … 5.
  static macos tier(int number) {
    using std::chrono::milliseconds;
    constexpr int shifts[] = {3, 2, 1, -2, -15, -15};
    constexpr milliseconds caps[] = {milliseconds{1},  milliseconds{5},      milliseconds{20},
                                     milliseconds{75}, milliseconds{10'000}, milliseconds{10'000}};
    const int i = number < 0 ? 0 : number > 5 ? 5 : number;
    return {shifts[i], caps[i]};
  }

  nanoseconds slop(nanoseconds length) const {
    const std::int64_t most = cap.count();
    std::int64_t slop = length.count();
    if (shift >= 0) slop >>= shift;
    if (shift < 0) slop = slop > (most >> -shift) ? most : slop << -shift;
    slop = (std::min)(slop, most);
    return nanoseconds{slop + ((slop * idle_level) >> 7)};
  }

  instant wake(const native_request& asked, surroundings& around) const {
    if (asked.until <= asked.now) return asked.now;
    const nanoseconds length = between(asked.now, asked.until);
    return around.dispatched(around.first_in(asked.until, later(asked.until, slop(length))));
  }
  instant precise(instant t) const { return tick(counter_hz).shown(t); }
};

}  // namespace punctual::testing::kernels
