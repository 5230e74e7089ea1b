// punctual behind simh's own names: see punctual_simh.h. One C++20 file in a C program; link with
// the C++ driver.
#include "punctual_simh.h"

#include <punctual/calibration.hpp>
#include <punctual/sleep.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace {

using punctual::clock_kind;
using punctual::instant;
using punctual::nanoseconds;
using punctual::steady;
using std::chrono::milliseconds;

instant now() { return punctual::native_platform::now(clock_kind::monotonic); }

/// Whole milliseconds of a time slept, nearest; what that loses or adds comes back the next time.
unsigned whole_milliseconds(nanoseconds slept) {
  static thread_local nanoseconds carried{0};
  const nanoseconds all = std::max(slept + carried, nanoseconds{0});
  const auto whole = static_cast<unsigned>((all + milliseconds{1} / 2) / milliseconds{1});
  carried = all - milliseconds{whole};
  return whole;
}

timespec to_timespec(instant t) {
  const nanoseconds since = t.time_since_epoch();
  return {static_cast<time_t>(since.count() / 1'000'000'000),
          static_cast<long>(since.count() % 1'000'000'000)};
}

/// Waits on a condition variable until an instant of the clock; the mutex is held before and after.
int wait_on(clock_kind on, pthread_cond_t* wake, pthread_mutex_t* lock, instant until) {
  const timespec due = to_timespec(until);
  if (on == clock_kind::realtime) return pthread_cond_timedwait(wake, lock, &due);
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 30)
  return pthread_cond_clockwait(wake, lock, CLOCK_MONOTONIC, &due);
#endif
#endif
  // simh's condition variables are on the wall clock: a step of it makes one wait longer or
  // shorter.
  const instant wall = punctual::native_platform::now(clock_kind::realtime) + (until - now());
  const timespec wall_due = to_timespec(wall);
  return pthread_cond_timedwait(wake, lock, &wall_due);
}

/// A calibration of this process, made by whoever needs it first. Ticks of 4 ms or more extend it
/// to 12.5 times as much: in 50 ms those of 4 ms are learned, only longer ones get another 200 ms.
punctual::calibration calibrated_host() {
  const punctual::calibration known = punctual::calibrate(milliseconds{4});
  const bool long_ticks = known.shortest_native_wait > milliseconds{5};
  return long_ticks ? punctual::calibrate(milliseconds{16}) : known;
}
const punctual::calibration& known_host() {
  static const punctual::calibration known = calibrated_host();
  return known;
}

}  // namespace

unsigned int sim_os_msec() {
  return static_cast<unsigned>(now().time_since_epoch() / milliseconds{1});
}

unsigned int sim_os_ms_sleep(unsigned int msec) {
  return whole_milliseconds(
      nanoseconds{punctual_simh_sleep_ns(nanoseconds{milliseconds{msec}}.count())});
}

unsigned int sim_os_ms_sleep_init() {
  known_host();
  return 1;
}

#if !defined(SIM_ASYNCH_IO)  // with it, sim_timer.c has its own, around punctual_simh_idle
unsigned int sim_idle_ms_sleep(unsigned int msec) { return sim_os_ms_sleep(msec); }
#endif

unsigned int punctual_simh_idle(pthread_mutex_t* lock, pthread_cond_t* wake, volatile int* waiting,
                                int (*pending)(void), unsigned int msec, int* woken) {
  const instant begun = now();
  bool signalled = false;
  const auto ended = [&]() noexcept { return signalled || pending() != 0; };
  const auto native = [&](instant until, punctual::slack) {
    // Who adds work looks at `waiting` afterwards; who signals with the lock held is always heard.
    pthread_mutex_lock(lock);
    *waiting = 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // `waiting` is seen before `pending` asks
    int answer = 0;
    if (pending() == 0) answer = wait_on(clock_kind::monotonic, wake, lock, until);
    *waiting = 0;
    pthread_mutex_unlock(lock);
    signalled = answer == 0;
    return punctual::native_wait{punctual::native_end::woke, 0};
  };
  const punctual::receipt did =
      punctual::this_thread_sleeper().wait(punctual::wait_kind::callers, clock_kind::monotonic,
                                           begun + milliseconds{msec}, native, ended);
  *woken = did.why == punctual::outcome::woken ? 1 : 0;
  return whole_milliseconds(now() - begun);
}

int punctual_simh_timedwait(pthread_cond_t* wake, pthread_mutex_t* lock, const timespec* due) {
  static thread_local punctual::sleeper mine{[] {
    punctual::tuning how;
    how.max_margin = std::chrono::microseconds{500};
    return how;
  }()};
  const instant deadline{std::chrono::seconds{due->tv_sec} + nanoseconds{due->tv_nsec}};
  int error = 0;
  const auto ended = [&]() noexcept { return error != 0; };
  const auto native = [&](instant until, punctual::slack) {
    const int answer = wait_on(clock_kind::realtime, wake, lock, until);
    // Signalled, or woken for no reason: the caller looks at what there is to do.
    if (answer != ETIMEDOUT) error = answer == 0 ? -1 : answer;
    return punctual::native_wait{punctual::native_end::woke, 0};
  };
  mine.wait(punctual::wait_kind::wall, clock_kind::realtime, deadline, native, ended);
  if (error == 0) return ETIMEDOUT;
  return error == -1 ? 0 : error;
}

int64_t punctual_simh_now_ns() { return now().time_since_epoch().count(); }

int64_t punctual_simh_sleep_ns(int64_t length) {
  const instant begun = now();
  const instant deadline = punctual::later(begun, nanoseconds{std::max(length, std::int64_t{0})});
  const punctual::receipt did = punctual::sleep_until(deadline);
  return (did.why == punctual::outcome::reached ? deadline + did.late - begun : now() - begun)
      .count();
}

int64_t punctual_simh_kernel_floor_ns() { return known_host().shortest_native_wait.count(); }
int64_t punctual_simh_kernel_step_ns() { return known_host().tick.count(); }

unsigned int punctual_simh_throttle(double instructions, double rate) {
  constexpr nanoseconds most_behind = milliseconds{100};
  static thread_local instant due{};
  const instant begun = now();
  const double length = instructions / rate * 1e9;
  if (!(length >= 0) || length > 1e18) return 0;
  due += nanoseconds{std::llround(length)};
  if (due < begun - most_behind || due > begun + most_behind + nanoseconds{std::llround(length)}) {
    due = begun;  // the first call, or the simulator stood still
  }
  punctual::sleep_until(due);
  return whole_milliseconds(now() - begun);
}
