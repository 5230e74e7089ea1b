// One precise wait that a signal handler or a cancellation may end, as the C library's may.
//
// punctual's own waits go on after a signal and are no cancellation points; a program's sleep must
// return with EINTR and what remained, and be a place where its thread can be cancelled. So this
// wait holds all signals back but lets them in where it looks:
//   - while the kernel holds the thread, in ppoll(2), which lets signals in and says if one came;
//   - while the thread spins, by asking every few microseconds which signals are pending.
// No handler runs without the wait noticing. What it cannot have: ppoll does not follow steps of
// the wall clock, so an absolute wait on that one uses clock_nanosleep(2), and a handler that runs
// after the kernel has woken the thread, and before it spins, is not noticed; the wait then ends at
// its deadline, as it would in the C library if the signal had come that much later.
//
// Everything here may be unwound by a cancellation inside the ppoll: nothing is noexcept that calls
// it, and what has to be handed back is handed back by destructors.
#pragma once

#include "cancellable.hpp"
#include "originals.hpp"

#include <punctual/sleeper.hpp>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <sys/prctl.h>
#include <sys/syscall.h>

namespace preload {

using punctual::clock_kind;
using punctual::instant;
using punctual::nanoseconds;

/// A set of signals as the kernel has it: signal n is bit n − 1.
class signals {
 public:
  constexpr signals() = default;
  explicit signals(const sigset_t& set) { std::memcpy(&bits_, &set, sizeof bits_); }
  constexpr explicit signals(std::initializer_list<int> listed) {
    for (const int each : listed) bits_ |= bit(each);
  }

  const std::uint64_t& bits() const { return bits_; }
  constexpr bool has(int signal) const { return (bits_ & bit(signal)) != 0; }
  constexpr bool none() const { return bits_ == 0; }
  friend constexpr signals operator~(signals a) { return signals(~a.bits_); }
  friend constexpr signals operator|(signals a, signals b) { return signals(a.bits_ | b.bits_); }
  friend constexpr signals operator&(signals a, signals b) { return signals(a.bits_ & b.bits_); }
  friend constexpr bool operator==(signals, signals) = default;

  /// Makes this the calling thread's mask, and answers what it was. errno is left alone.
  signals exchange_with_mask() const { return change_mask(SIG_SETMASK); }
  /// Adds this to the calling thread's mask, and answers what that was. errno is left alone.
  signals add_to_mask() const { return change_mask(SIG_BLOCK); }
  static signals pending() {
    signals now;
    raw(SYS_rt_sigpending, &now.bits_, sizeof now.bits_);
    return now;
  }

 private:
  constexpr explicit signals(std::uint64_t bits) : bits_(bits) {}
  static constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }
  signals change_mask(int how) const {
    signals before;
    raw(SYS_rt_sigprocmask, how, &bits_, &before.bits_, sizeof bits_);
    return before;
  }
  template <class... Arguments>
  static void raw(long number, Arguments... arguments) {
    const int kept = errno;
    syscall(number, arguments...);
    errno = kept;
  }

  std::uint64_t bits_ = 0;
};

/// What a thread brings to its waits. Constant-initialised; nothing to destroy.
struct thread_state {
  punctual::sleeper own{};
  const void* outermost = nullptr;  ///< the frame of the wait that is under way
  long slack = 0;                   ///< what to hand back after the native wait that is under way
  bool tuned = false;
  bool refused = false;  ///< a filter did not allow what this thread wanted to wait with
};
inline constinit thread_local thread_state mine;

/// What punctual-run asked for.
inline constinit punctual::tuning wanted;

/// How a wait ended, and what remained if a signal handler ended it.
struct waited {
  bool interrupted;
  nanoseconds left;
};

class interruptible_wait {
 public:
  /// @param during  The mask to wait with, as for pselect; nullptr for the thread's own.
  explicit interruptible_wait(const sigset_t* during)
      : held_(during == nullptr ? held_back : held_back | signals(*during)),
        before_(held_.add_to_mask()),
        open_(during == nullptr ? before_ : signals(*during)),
        given_(during != nullptr),
        outer_(mine.outermost) {
    held_ = held_ | before_;
    const void* const frame = __builtin_frame_address(0);
    // Stacks grow down: a wait that is under way, and not above us, was left by a longjmp.
    if (outer_ != nullptr && outer_ <= frame) {
      mine.own.reset();
      if (mine.slack != 0) set_slack(mine.slack);
      mine.slack = 0;
      outer_ = nullptr;
    }
    if (outer_ == nullptr) mine.outermost = frame;
    if (!mine.tuned) mine.own.retune(wanted);
    mine.tuned = true;
  }
  ~interruptible_wait() {
    if (outer_ == nullptr) mine.outermost = nullptr;
    if (interrupted_ && open_ != before_) open_.exchange_with_mask();  // the handler runs here
    before_.exchange_with_mask();                                      // or here
  }
  interruptible_wait(const interruptible_wait&) = delete;
  interruptible_wait& operator=(const interruptible_wait&) = delete;

  waited until(clock_kind on, instant deadline) {
    const bool wall = on == clock_kind::realtime;
    on_ = on;
    // A mask that was given may let in what is pending already: the system looks, however short the
    // wait is, and once more when it is over.
    if (given_ && look()) return {true, punctual::between(interrupted_at_, deadline)};
    mine.own.wait(
        wall ? punctual::wait_kind::wall : punctual::wait_kind::callers, on, deadline,
        [this, on](instant at, punctual::slack how) { return native(on, at, how); },
        [this]() noexcept { return interrupted_ || (++looks_ % looks_between == 0 && look()); });
    if (!interrupted_ && !(given_ && look())) return {false, nanoseconds::zero()};
    const nanoseconds left = punctual::between(interrupted_at_, deadline);
    return {given_ || left > nanoseconds::zero(), left};
  }

 private:
  // Hands back the slack that was there just before, also when the thread is cancelled.
  class tightened_slack {
   public:
    explicit tightened_slack(punctual::slack how) {
      if (how == punctual::slack::as_is || mine.slack != 0) return;
      // The C library's prctl answers an int; a slack may be larger.
      const long before = punctual::linux_calls::prctl(PR_GET_TIMERSLACK, 0);
      if (before <= 1000) return;
      mine.slack = before_ = before;
      set_slack(1);
    }
    ~tightened_slack() {
      if (before_ == 0) return;
      set_slack(before_);
      mine.slack = 0;
    }
    tightened_slack(const tightened_slack&) = delete;
    tightened_slack& operator=(const tightened_slack&) = delete;

   private:
    long before_ = 0;
  };

  static void set_slack(long length) noexcept {
    punctual::linux_calls::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(length));
  }

  punctual::native_wait native(clock_kind on, instant at, punctual::slack how) {
    const tightened_slack guard(how);
    if (on == clock_kind::monotonic) {
      const nanoseconds left = at - punctual::native_platform::now(on);
      if (left <= nanoseconds::zero()) return {punctual::native_end::woke, 0};
      std::int64_t length[] = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
      const long answer = wait_open(length, open_.bits());
      if (answer == 0) return {punctual::native_end::woke, 0};
      if (answer == -EINTR) {
        const nanoseconds remained = std::chrono::seconds{length[0]} + nanoseconds{length[1]};
        return interrupted(at - remained);
      }
      mine.refused = true;
    }
    return with_open_mask(on, at);
  }

  punctual::native_wait with_open_mask(clock_kind on, instant at) {
    const nanoseconds since = at.time_since_epoch();
    const timespec until{static_cast<time_t>(since.count() / 1'000'000'000),
                         static_cast<long>(since.count() % 1'000'000'000)};
    const clockid_t clock = on == clock_kind::monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    // A refused call says nothing of a handler that ran around it: try first, with none let in.
    constexpr timespec past{};
    int error = mine.refused ? system::clock_nanosleep(clock, TIMER_ABSTIME, &past, nullptr) : 0;
    if (error != 0) return {punctual::native_end::refused, error};
    open_.exchange_with_mask();
    error = system::clock_nanosleep(clock, TIMER_ABSTIME, &until, nullptr);
    held_.exchange_with_mask();
    if (error == EINTR) return interrupted(punctual::native_platform::now(on));
    mine.refused = error != 0;
    return {error == 0 ? punctual::native_end::woke : punctual::native_end::refused, error};
  }

  punctual::native_wait interrupted(instant when) {
    interrupted_ = true;
    interrupted_at_ = when;
    return {punctual::native_end::interrupted, 0};
  }

  // Where the kernel does not hold the thread: whether a signal is pending that a handler is for.
  // One that is ignored, or that ends, stops or continues the process, is let in at once: it ends
  // no sleep.
  bool look() noexcept {
    const signals due = signals::pending() & ~open_ & held_;
    if (due.none()) return false;
    for (int each = 1; each <= 64; ++each) {
      if (due.has(each) && has_handler(each)) {
        interrupted(punctual::native_platform::now(on_));
        return true;
      }
    }
    (held_ & ~due).exchange_with_mask();
    held_.exchange_with_mask();
    return false;
  }

  static bool has_handler(int signal) noexcept {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) return false;
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
  }

  // All but those that the processor raises, those that a filter emulates a call by, and the two
  // that the C library sends to itself. `held_` has those, too, that the program itself blocks.
  static constexpr signals held_back =
      ~signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, 32, 33};
  // Two to four microseconds between two system calls of 0.1 to 0.2.
  static constexpr unsigned looks_between = 128;

  signals held_;
  signals before_;
  signals open_;
  bool given_;  ///< the mask, by the call
  const void* outer_;
  unsigned looks_ = 0;
  clock_kind on_ = clock_kind::monotonic;
  bool interrupted_ = false;
  instant interrupted_at_{};  ///< before any handler ran
};

}  // namespace preload
