// Waits that another thread can end, as punctual as those that nobody can.
//
// Layer L4. A waker, a stop token or a condition variable ends a wait at once: the coarse part is
// parked in the kernel, and never polls; the spin looks at the waker between two reads of the
// counter. Their native waits are learned apart from plain ones. Here, too, is the past deadline
// without a system call for the standard's timed waits, which enter the kernel for it.
//
// This header alone brings <stop_token> and <condition_variable>. It knows no pacer:
// `pacer.next(how)` finds the overloads that take a `basic_sleeper` first.
#pragma once

#include <punctual/sleeper.hpp>
#include <punctual/time_left.hpp>
#include <punctual/waker.hpp>

#include <chrono>
#include <condition_variable>
#include <type_traits>
#include <version>

#if defined(__cpp_lib_jthread)
#include <stop_token>
#endif

namespace punctual {

namespace interruption {

template <platform P, class Clock, class Duration>
receipt wait(
    basic_sleeper<P>& mine, bool spins, basic_waker<P>& by,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  typename basic_waker<P>::watch watch(by);
  const auto ended = [&watch]() noexcept { return watch.ended(); };
  return mine.on_its_clock(
      deadline,
      [&](clock_kind on, instant at) noexcept {
        const auto native = [&watch, on](instant until, slack how) noexcept {
          return watch.park(on, until, how);
        };
        return spins ? mine.wait(wait_kind::parked, on, at, native, ended)
                     : mine.block(on, at, native, ended);
      },
      ended);
}

#if defined(__cpp_lib_jthread)
// The token says whether to stop; its callback only ends the native wait, by a waker on this stack.
template <platform P, class Clock, class Duration>
receipt wait(
    basic_sleeper<P>& mine, bool spins, const std::stop_token& stop,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  const auto stopped = [&stop]() noexcept { return stop.stop_requested(); };
  receipt did = mine.on_its_clock(
      deadline,
      [&](clock_kind on, instant at) noexcept {
        receipt past;
        instant now;
        if (is_past(mine.system(), on, at, past, now) && !stopped()) return past;
        basic_waker<P> on_stack(mine.system());
        typename basic_waker<P>::watch watch(on_stack);
        const std::stop_callback wakes(stop, [&on_stack]() noexcept { on_stack.wake(); });
        const auto native = [&watch, on](instant until, slack how) noexcept {
          return watch.park(on, until, how);
        };
        return spins ? mine.wait(wait_kind::parked, on, at, native, stopped)
                     : mine.block(on, at, native, stopped);
      },
      stopped);
  if (did.why == outcome::woken) did.why = outcome::stopped;
  return did;
}
#endif

}  // namespace interruption

/// Waits like `sleep_until(deadline)`, or until the waker is woken.
///
/// @param deadline  A time point of any chrono clock.
/// @return  `woken` if the waker was pending before the wait, during it, or after its last look at
///          the clock: pending and past is `woken`. `left` is the time that remained. The waker
///          stays pending.
///
/// Guarantee  As `sleep_until`: no `reached` before the deadline. A wake-up is never lost, see
///            `basic_waker`.
/// Cost       As `sleep_until`. No system call for a deadline that is past or a waker that is
///            pending.
/// Source: futex(2) for absolute timeouts.
template <platform P, class Clock, class Duration>
receipt sleep_until(
    basic_sleeper<P>& mine, basic_waker<P>& by,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  return interruption::wait(mine, true, by, deadline);
}
template <platform P, class Rep, class Period>
receipt sleep_for(basic_sleeper<P>& mine, basic_waker<P>& by,
                  const std::chrono::duration<Rep, Period>& length) noexcept {
  return interruption::wait(mine, true, by, mine.from_now(length));
}
template <class Clock, class Duration>
receipt sleep_until(waker& by, const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
    noexcept(Clock::now())) {
  return sleep_until(this_thread_sleeper(), by, deadline);
}
template <class Rep, class Period>
receipt sleep_for(waker& by, const std::chrono::duration<Rep, Period>& length) noexcept {
  return sleep_for(this_thread_sleeper(), by, length);
}

/// The same without the spin: as cheap as the kernel's own wait, and as late.
template <platform P, class Clock, class Duration>
receipt block_until(
    basic_sleeper<P>& mine, basic_waker<P>& by,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  return interruption::wait(mine, false, by, deadline);
}
template <class Clock, class Duration>
receipt block_until(waker& by, const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
    noexcept(Clock::now())) {
  return block_until(this_thread_sleeper(), by, deadline);
}
template <class Rep, class Period>
receipt block_for(waker& by, const std::chrono::duration<Rep, Period>& length) noexcept {
  return block_until(by, this_thread_sleeper().from_now(length));
}

#if defined(__cpp_lib_jthread)
/// Waits like `sleep_until(deadline)`, or until a stop is requested; then the outcome is `stopped`.
///
/// Guarantee  As with a waker: no request is missed, requested and past is `stopped`.
/// Signals    `request_stop()` is not async-signal-safe, it takes a lock: a handler that ends waits
///            uses a waker.
/// Cost       As with a waker, and the registration of a callback where there is something to wait
///            for.
template <platform P, class Clock, class Duration>
receipt sleep_until(
    basic_sleeper<P>& mine, const std::stop_token& stop,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  return interruption::wait(mine, true, stop, deadline);
}
template <platform P, class Rep, class Period>
receipt sleep_for(basic_sleeper<P>& mine, const std::stop_token& stop,
                  const std::chrono::duration<Rep, Period>& length) noexcept {
  return interruption::wait(mine, true, stop, mine.from_now(length));
}
template <class Clock, class Duration>
receipt sleep_until(
    const std::stop_token& stop,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  return sleep_until(this_thread_sleeper(), stop, deadline);
}
template <class Rep, class Period>
receipt sleep_for(const std::stop_token& stop,
                  const std::chrono::duration<Rep, Period>& length) noexcept {
  return sleep_for(this_thread_sleeper(), stop, length);
}

/// The same without the spin.
template <platform P, class Clock, class Duration>
receipt block_until(
    basic_sleeper<P>& mine, const std::stop_token& stop,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  return interruption::wait(mine, false, stop, deadline);
}
template <class Clock, class Duration>
receipt block_until(
    const std::stop_token& stop,
    const std::chrono::time_point<Clock, Duration>& deadline) noexcept(noexcept(Clock::now())) {
  return block_until(this_thread_sleeper(), stop, deadline);
}
template <class Rep, class Period>
receipt block_for(const std::stop_token& stop,
                  const std::chrono::duration<Rep, Period>& length) noexcept {
  return block_until(stop, this_thread_sleeper().from_now(length));
}
#endif

/// A caller's own blocking call: see `basic_sleeper::sleep_until(deadline, block)`.
template <class Block>
concept blocking_call = std::is_invocable_r_v<bool, Block&, instant>;

/// Waits with the caller's own blocking call, for `pacer.next(block)`. One whose deadline is past
/// is not called.
template <platform P, blocking_call Block>
receipt sleep_until(basic_sleeper<P>& mine, Block& block,
                    instant deadline) noexcept(noexcept(block(deadline))) {
  return mine.sleep_until(deadline,
                          [&block](instant at) noexcept(noexcept(block(at))) { return block(at); });
}

namespace interruption {

// Some libraries overflow on the largest time points, where time_t has 32 bits: one day at a time.
inline constexpr nanoseconds longest_standard_wait = std::chrono::hours{24};

template <class Clock, class Duration>
bool is_over(const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
    noexcept(Clock::now())) {
  if constexpr (is_kernel_clock<Clock>) {
    receipt ignored;
    instant now;
    return is_past(native_platform{}, clock_of(kind_of_clock<Clock>), to_instant(deadline), ignored,
                   now);
  } else {
    return time_left(deadline, Clock::now()) <= nanoseconds::zero();
  }
}

// Calls `wait` with a time point of the standard library's own, at or before the deadline.
template <platform P, class Wait>
auto on_standard_clock(const P& system, clock_kind on, instant until, Wait wait) {
  const instant far = later(system.now(on), longest_standard_wait);
  const instant at = until < far ? until : far;
  if (on == clock_kind::monotonic) return wait(at);
  using wall = std::chrono::system_clock;
  return wait(wall::time_point{std::chrono::ceil<wall::duration>(at.time_since_epoch())});
}
template <class Clock, class Duration, class Wait>
auto on_standard_clock(const std::chrono::time_point<Clock, Duration>& deadline, Wait wait,
                       nanoseconds at_least = nanoseconds::zero()) {
  if constexpr (is_kernel_clock<Clock>) {
    return on_standard_clock(native_platform{}, clock_of(kind_of_clock<Clock>),
                             to_instant(deadline), wait);
  } else {
    // The standard library subtracts such time points as they are, which may overflow.
    const nanoseconds left = time_left(deadline, Clock::now());
    const instant now = native_platform{}.now(clock_kind::monotonic);
    return wait(later(now, longer(at_least, shorter(left, longest_standard_wait))));
  }
}

// Tries, and waits by the standard's wait, until the deadline.
template <class Clock, class Duration, class Try, class Wait>
bool try_until(const std::chrono::time_point<Clock, Duration>& deadline, Try try_now, Wait wait) {
  // A user's clock that stands still just before the deadline is asked less and less often.
  constexpr nanoseconds longest_still_wait = std::chrono::milliseconds{20};
  nanoseconds at_least = nanoseconds::zero();
  while (!try_now()) {
    if (is_over(deadline)) return false;
    if constexpr (is_kernel_clock<Clock>) {
      if (on_standard_clock(deadline, wait)) return true;
    } else {
      const auto seen = Clock::now();
      if (on_standard_clock(deadline, wait, at_least)) return true;
      at_least = Clock::now() != seen
                     ? nanoseconds::zero()
                     : shorter(2 * at_least + std::chrono::microseconds{50}, longest_still_wait);
    }
  }
  return true;
}

// A predicate under a lock that is not held while the thread spins.
template <class Lock, class Predicate>
class guarded_predicate {
 public:
  guarded_predicate(Lock& lock, Predicate& predicate) : lock_(lock), predicate_(predicate) {}
  // Also when the predicate throws: the caller finds the lock held.
  ~guarded_predicate() { hold(); }
  guarded_predicate(const guarded_predicate&) = delete;
  guarded_predicate& operator=(const guarded_predicate&) = delete;

  /// Takes the lock, if need be, and asks; keeps the lock.
  bool ask() {
    hold();
    if (!met_) met_ = static_cast<bool>(predicate_());
    return met_;
  }

  /// What a spin polls: asks at some looks only, and gives the lock back unless the answer is yes.
  bool look() {
    if (met_ || (!held_ && ++looks_ % looks_between == 0 && ask())) return true;
    if (held_) lock_.unlock();
    held_ = false;
    return false;
  }

  bool met() const noexcept { return met_; }

 private:
  void hold() {
    if (held_) return;
    lock_.lock();
    held_ = true;
  }

  // A look takes 20 to 100 ns, by processor: the lock is taken every 0.6 to 3 us.
  static constexpr unsigned looks_between = 32;

  Lock& lock_;
  Predicate& predicate_;
  unsigned looks_ = 0;
  bool held_ = true;
  bool met_ = false;
};

}  // namespace interruption

/// Waits on a condition variable until the predicate holds or the deadline has passed.
///
/// Blocks on the condition variable up to the handover and spins from there; in the spin the lock
/// is released, and taken every few microseconds to ask the predicate, so that a notification is
/// seen then, too.
///
/// @param cv        `std::condition_variable`, `std::condition_variable_any`, or its like.
/// @param lock      Held by the caller; held again on return.
/// @param deadline  A time point of any chrono clock.
/// @param predicate Asked with the lock held. What it throws passes through.
/// @return  What the predicate said last: false only with the deadline past, or where the system's
///          own clock has stopped.
///
/// Cost  A predicate that holds, or a deadline that is past, makes no system call; else as
///       `sleep_until`. The timer slack is the thread's own: it is learned as part of the lateness.
template <platform P, class Cv, class Lock, class Clock, class Duration, class Predicate>
bool wait_until(basic_sleeper<P>& mine, Cv& cv, Lock& lock,
                const std::chrono::time_point<Clock, Duration>& deadline, Predicate predicate) {
  interruption::guarded_predicate asked(lock, predicate);
  if (asked.ask()) return true;
  const auto one_wait = [&](clock_kind on, instant at) {
    receipt past;
    instant now;
    if (is_past(mine.system(), on, at, past, now)) return past;
    const auto native = [&, on](instant until, slack) {
      if (asked.ask()) return native_wait{native_end::woke, 0};
      const std::cv_status ended = interruption::on_standard_clock(
          mine.system(), on, until, [&](const auto& t) { return cv.wait_until(lock, t); });
      const bool complete = ended == std::cv_status::timeout && mine.system().now(on) >= until;
      return native_wait{asked.ask() || complete ? native_end::woke : native_end::interrupted, 0};
    };
    return mine.wait(wait_kind::callers, on, at, native, [&asked] { return asked.look(); });
  };
  receipt did;
  do {
    did = mine.on_its_clock(deadline, one_wait, [&asked]() noexcept { return asked.met(); });
    if (asked.ask()) return true;
    // A user may stop a clock of his own for as long as he likes.
  } while (!is_kernel_clock<Clock> && did.why == outcome::gave_up &&
           did.blocked > nanoseconds::zero());
  return false;
}
template <class Cv, class Lock, class Clock, class Duration, class Predicate>
bool wait_until(Cv& cv, Lock& lock, const std::chrono::time_point<Clock, Duration>& deadline,
                Predicate predicate) {
  return wait_until(this_thread_sleeper(), cv, lock, deadline, predicate);
}

/// Waits on a condition variable until it is notified, or the deadline has passed, or for no
/// reason.
///
/// The standard's wait, without a spin: a notification in a spin would be lost. A deadline that is
/// past is answered without a system call, and without giving the lock up.
template <class Cv, class Lock, class Clock, class Duration>
std::cv_status wait_until(Cv& cv, Lock& lock,
                          const std::chrono::time_point<Clock, Duration>& deadline) {
  if (interruption::is_over(deadline)) return std::cv_status::timeout;
  const std::cv_status ended = interruption::on_standard_clock(
      deadline, [&](const auto& t) { return cv.wait_until(lock, t); });
  return ended == std::cv_status::timeout && interruption::is_over(deadline)
             ? std::cv_status::timeout
             : std::cv_status::no_timeout;
}

/// Locks a timed mutex, or gives up at the deadline: the standard's wait, without a futex call for
/// a mutex that is free or a deadline that is past.
template <class Mutex, class Clock, class Duration>
bool try_lock_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& deadline) {
  return interruption::try_until(
      deadline, [&] { return mutex.try_lock(); },
      [&](const auto& t) { return mutex.try_lock_until(t); });
}

/// Takes from a semaphore, or gives up at the deadline: the standard's wait, without a futex call
/// where one is to be had or the deadline is past. (libstdc++'s `try_acquire` yields where there is
/// none.)
template <class Semaphore, class Clock, class Duration>
bool try_acquire_until(Semaphore& semaphore,
                       const std::chrono::time_point<Clock, Duration>& deadline) {
  return interruption::try_until(
      deadline, [&] { return semaphore.try_acquire(); },
      [&](const auto& t) { return semaphore.try_acquire_until(t); });
}

}  // namespace punctual
