// The calls that the peers make on Linux: through libc, as they do.
#pragma once

#include "machine.hpp"

#include <punctual/platform/native.hpp>

#include <cerrno>
#include <ctime>
#include <thread>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace peers {

/// This machine, for the thread that made the object.
class native_machine {
 public:
  native_machine()
      : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)),
        slack_before_(static_cast<unsigned long>(::prctl(PR_GET_TIMERSLACK))) {}
  ~native_machine() {
    if (timer_ >= 0) ::close(timer_);
  }
  native_machine(const native_machine&) = delete;
  native_machine& operator=(const native_machine&) = delete;

  static instant now() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return instant{std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec}};
  }
  static std::uint64_t counter() { return punctual::native_platform::counter(); }

  static void sleep_for(nanoseconds length) {
    if (length < nanoseconds::zero()) return;
    timespec left = to_timespec(length);
    while (::nanosleep(&left, &left) == -1 && errno == EINTR) {
    }
  }
  static void sleep_until(instant until) {
    const timespec at = to_timespec(until.time_since_epoch());
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
  }
  static void std_sleep_until(instant until) { std::this_thread::sleep_until(until); }

  void timer_until(instant until) const {
    itimerspec when{};
    when.it_value = to_timespec(until.time_since_epoch());
    if (::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr) != 0) return;
    std::uint64_t expirations = 0;
    while (::read(timer_, &expirations, sizeof expirations) == -1 && errno == EINTR) {
    }
  }

  static void pause() { punctual::native_platform::relax(); }
  static void yield() { ::sched_yield(); }
  void small_slack(bool on) const { ::prctl(PR_SET_TIMERSLACK, on ? 1UL : slack_before_); }

 private:
  static timespec to_timespec(nanoseconds since) {
    constexpr std::int64_t second = 1'000'000'000;
    return {static_cast<time_t>(since.count() / second), static_cast<long>(since.count() % second)};
  }

  int timer_;
  unsigned long slack_before_;
};

static_assert(machine<native_machine>);

}  // namespace peers
