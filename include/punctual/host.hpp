// Asking the system for more, on purpose, and handing it back: guards for slack, priority, idle
// states.
//
// Layer L4. None of the waits needs this: they are as punctual as the system lets an ordinary
// thread be. A guard asks for one privilege of the calling thread (or, for the processors' latency,
// of the machine) and gives it back when it ends; `granted()` says whether the system agreed. A
// refusal is an answer, not a failure: go on without. Which of them is worth it here is what
// examples/meter measures.
//
// All of them belong to the thread that made them and end in the reverse order, as objects in a
// scope do: each hands back what it found, so that the one that ends last decides. Ended in another
// order, they leave the thread with what one of them had asked for.
#pragma once

#include <punctual/platform/native_host.hpp>
#include <punctual/tuning.hpp>

#include <cerrno>

namespace punctual {

/// Holds the calling thread's timer slack at this or less.
///
/// The sleeper tightens the slack by itself around each native wait (`tuning::tighten_slack`). This
/// is for the thread's other sleeps, and saves two system calls a wait. Threads made meanwhile
/// inherit it.
///
/// Guarantee  The slack is what it was before, when the guard ends.
/// Cost       A thread with little slack is woken by itself, not together with others: the reason
///            why Linux has 50 us of it.
/// Source: prctl(2), PR_SET_TIMERSLACK.
template <host H>
class basic_timer_slack_guard {
 public:
  /// @param slack  ns, ≥ 0; zero and less are taken as 1.
  explicit basic_timer_slack_guard(nanoseconds slack) noexcept : before_(H::slack()) {
    const nanoseconds wanted = slack < nanoseconds{1} ? nanoseconds{1} : slack;
    if (before_ < nanoseconds::zero()) {
      error_ = ENOSYS;
    } else if (before_ > wanted) {
      error_ = H::set_slack(wanted);
      changed_ = error_ == 0;
      // A filter may answer that it is done and do nothing.
      if (changed_ && H::slack() > wanted) error_ = EPERM;
    }
  }
  ~basic_timer_slack_guard() {
    if (changed_) H::set_slack(before_);
  }
  basic_timer_slack_guard(const basic_timer_slack_guard&) = delete;
  basic_timer_slack_guard& operator=(const basic_timer_slack_guard&) = delete;

  /// Whether the slack is no larger than asked for. A real-time thread has none, which is granted.
  bool granted() const noexcept { return error_ == 0; }
  /// The system's code if it was not granted, else 0.
  int error() const noexcept { return error_; }

 private:
  nanoseconds before_;
  int error_ = 0;
  bool changed_ = false;
};

/// Schedules the calling thread before all ordinary ones.
///
/// A thread that has at least this priority already, or deadlines (SCHED_DEADLINE), keeps what it
/// has. Linux grants it to root outside of cpu groups without a real-time share, and up to
/// RLIMIT_RTPRIO.
///
/// Guarantee  Policy, priority, nice value and timer slack are what they were, when the guard ends.
/// Errors     `error()` is EAGAIN where the system would end the thread for spinning: RLIMIT_RTTIME
///            is not longer than `longest_spin`; EINVAL for a priority that is none. Then nothing
///            was changed.
/// Cost       Nothing for a thread that sleeps. One that spins or computes keeps everything else
///            from its core; leave a core to the rest of the system.
/// Source: sched(7); getrlimit(2), RLIMIT_RTTIME; prctl(2): a real-time thread's slack is 0.
template <host H>
class basic_realtime_guard {
 public:
  /// @param priority      1 to 99. 10: before every ordinary thread, behind the kernel's interrupt
  ///                      threads at 50, whose work the wake-up itself depends on.
  /// @param longest_spin  The longest that this thread runs without blocking: at least the largest
  ///                      margin of its tuning, and any `spin_for` of the caller's own.
  explicit basic_realtime_guard(realtime_policy policy = realtime_policy::fifo, int priority = 10,
                                nanoseconds longest_spin = tuning{}.max_margin) noexcept
      : slack_before_(H::slack()) {
    if (priority < 1 || priority > 99) {
      error_ = EINVAL;
      return;
    }
    if (H::run_limit() <= longest_spin) {
      error_ = EAGAIN;
      return;
    }
    error_ = H::read_scheduling(before_);
    if (error_ != 0 || H::realtime_priority(before_) >= priority) return;
    error_ = H::make_realtime(before_, policy, priority);
    changed_ = error_ == 0;
  }
  ~basic_realtime_guard() {
    if (!changed_) return;
    H::write_scheduling(before_);
    if (slack_before_ > nanoseconds::zero()) H::set_slack(slack_before_);
  }
  basic_realtime_guard(const basic_realtime_guard&) = delete;
  basic_realtime_guard& operator=(const basic_realtime_guard&) = delete;

  /// Whether the thread now has at least the priority asked for.
  bool granted() const noexcept { return error_ == 0; }
  /// The system's code if it was not granted, else 0.
  int error() const noexcept { return error_; }

 private:
  typename H::scheduling before_{};
  nanoseconds slack_before_;
  int error_ = 0;
  bool changed_ = false;
};

/// Asks all processors to wake up within this time, so that they avoid deeper idle states.
///
/// Guarantee  The request is withdrawn when the guard ends, also when the process does.
/// Cost       Power, on the whole machine: with zero, idle processors spin. A guest's processors
///            are its host's, which does not hear of it.
/// Source: the kernel's PM QoS document, /dev/cpu_dma_latency.
template <host H>
class basic_cpu_latency_guard {
 public:
  /// @param latency  ns, ≥ 0, rounded down to whole microseconds.
  explicit basic_cpu_latency_guard(nanoseconds latency) noexcept
      : handle_(H::hold_cpu_latency(latency)) {}
  ~basic_cpu_latency_guard() {
    if (granted()) H::release_cpu_latency(handle_);
  }
  basic_cpu_latency_guard(const basic_cpu_latency_guard&) = delete;
  basic_cpu_latency_guard& operator=(const basic_cpu_latency_guard&) = delete;

  /// Whether the system took the request.
  bool granted() const noexcept { return handle_ >= 0; }
  /// The system's code if it did not, else 0.
  int error() const noexcept { return handle_ < 0 ? -handle_ : 0; }

 private:
  int handle_;
};

using timer_slack_guard = basic_timer_slack_guard<native_host>;
using realtime_guard = basic_realtime_guard<native_host>;
using cpu_latency_guard = basic_cpu_latency_guard<native_host>;

}  // namespace punctual
