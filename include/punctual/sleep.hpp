// What most people call: wait until an instant, or for a length, on any chrono clock.
//
// Layer L4. Three families with the cost in the name: `sleep_*` blocks and then spins, `block_*`
// only blocks, `spin_*` only spins. They use the calling thread's own sleeper, so each thread
// learns for itself; the first wait of a thread starts from what the process knows.
#pragma once

#include <punctual/sleeper.hpp>

#include <chrono>

namespace punctual {

/// Blocks the calling thread until just before `deadline`, then spins: as little after it as this
/// machine allows, for the CPU time of its margin.
///
/// @param deadline  A time point of any chrono clock. One already past returns at once, without a
///                  system call; one more than two kernel ticks past costs less than a clock read.
/// @return  What the wait did. `late` is in nanoseconds and never negative.
///
/// Guarantee  The deadline's own clock was read at or after it on return, unless `gave_up`: on
///            every platform, after every failure.
/// Errors     None are thrown. If the kernel's timer fails, the rest is waited by other means and
///            `error` holds the code. `gave_up` if the clock stands still: the steady or the system
///            clock over 100 native waits in a row, a clock of your own over 2000 looks in a row.
///            These are 1 ms apart at first and 20 ms after a while, so that it may stand still
///            for 39 s; a step is noticed within 1 ms and a 16th of the time since the last one, at
///            most within 20 ms.
/// Signals    A handler may run half-way; the wait resumes towards the same instant. A handler may
///            wait itself.
/// Cost       At most the margin of one core. No allocation, no lock.
/// Threads    Safe from any thread.
///
/// Source: clock_nanosleep(2) for TIMER_ABSTIME; prctl(2), PR_SET_TIMERSLACK, for Linux's 50 us.
template <class Clock, class Duration>
receipt sleep_until(const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
    noexcept(Clock::now())) {
  if constexpr (is_kernel_clock<Clock>) {
    // The past is answered before the thread's state is even looked for.
    constexpr wait_kind kind = kind_of_clock<Clock>;
    receipt did;
    instant now;
    const instant at = to_instant(deadline);
    if (is_past(native_platform{}, clock_of(kind), at, did, now)) return did;
    return sleep_ahead<kind>(at);
  } else {
    return this_thread_sleeper().sleep_until(deadline);
  }
}

/// The same for a length from now on. Zero, negative and NaN return at once; infinity is for ever.
template <class Rep, class Period>
receipt sleep_for(const std::chrono::duration<Rep, Period>& length) noexcept {
  return this_thread_sleeper().sleep_for(length);
}

/// Blocks in the kernel only: the CPU of a plain sleep, and as late as the kernel is. Never spins,
/// never early.
/// Errors  `gave_up` with `error` if the system refuses every way to block; without, if the clock
///         stands still for as long as `sleep_until` says.
template <class Clock, class Duration>
receipt block_until(const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
    noexcept(Clock::now())) {
  return this_thread_sleeper().block_until(deadline);
}

/// The same for a length from now on.
template <class Rep, class Period>
receipt block_for(const std::chrono::duration<Rep, Period>& length) noexcept {
  return this_thread_sleeper().block_for(length);
}

/// Never blocks: spins all the way. Cost: one core until the deadline.
/// Errors  `gave_up` after 1000 spins in a row, 25 ms or more in all, through which the clock stood
///         still; a clock of your own as `sleep_until` says.
template <class Clock, class Duration>
receipt spin_until(const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
    noexcept(Clock::now())) {
  return this_thread_sleeper().spin_until(deadline);
}

/// The same for a length from now on.
template <class Rep, class Period>
receipt spin_for(const std::chrono::duration<Rep, Period>& length) noexcept {
  return this_thread_sleeper().spin_for(length);
}

}  // namespace punctual
