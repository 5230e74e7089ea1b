// The Linux backend: absolute native waits on the monotonic and the wall clock.
//
// Layer L0. Calls go to the kernel by syscall(2), not through libc's wrappers: those are
// cancellation points, and a cancelled noexcept frame ends the process. Every call saves errno.
// Raw calls are a policy, so that tests forge interruptions, early wakes and refusals.
//
// A native wait tries clock_nanosleep, then a futex that nobody wakes, then ppoll: filters that
// refuse one usually allow another. libc's nanosleep and usleep make the first of these calls, so
// they are no fallback. A call that says it slept and did not counts as refused. The chain has no
// memory: a refused call costs about 0.1 us a wait.
//
// Source: clock_nanosleep(2), futex(2), ppoll(2), prctl(2) PR_SET_TIMERSLACK and PR_GET_TSC.
#pragma once

#include <punctual/platform/config.hpp>
#include <punctual/platform/cpu/native.hpp>
#include <punctual/platform/seam.hpp>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <limits>

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace punctual {

/// The raw calls: each answers what the kernel answered, errors as negative codes, errno untouched.
struct linux_calls {
  /// The kernel's own timespec: 64-bit on every architecture that the *_time64 calls serve.
  struct time {
    std::int64_t seconds;
    std::int64_t nanoseconds;
  };

  static instant clock_gettime(clockid_t clock) noexcept {
    timespec t{};
    ::clock_gettime(clock, &t);
    return instant{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
  }

  static int clock_nanosleep(clockid_t clock, const time& until) noexcept {
    return timed(sleep_numbers, until, [&](long number, void* t) noexcept {
      return raw(number, clock, TIMER_ABSTIME, t, nullptr);
    });
  }

  static int futex_wait(const park_word& word, std::uint32_t expected, clockid_t clock,
                        const time& until) noexcept {
    const int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG |
                          (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
    return timed(futex_numbers, until, [&](long number, void* t) noexcept {
      return raw(number, &word, operation, expected, t, nullptr, FUTEX_BITSET_MATCH_ANY);
    });
  }

  static int futex_wake(const park_word& word, int count) noexcept {
    const long number = futex_numbers.older != none ? futex_numbers.older : futex_numbers.wide;
    return raw(number, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0);
  }

  static int ppoll(const time& left) noexcept {
    return timed(poll_numbers, left, [](long number, void* t) noexcept {
      return raw(number, nullptr, 0UL, t, nullptr, 0UL);
    });
  }

  /// Answers a whole `long`: a slack may be larger than an int.
  static long prctl(int option, unsigned long argument) noexcept {
    return raw<long>(SYS_prctl, option, argument, 0UL, 0UL, 0UL);
  }

 private:
  // A call's number with 64-bit seconds, and where a process of 32 bits has another, that one.
  struct numbers {
    long wide;
    long older;
  };
  static constexpr long none = -1;
#if defined(SYS_futex_time64) && defined(SYS_futex)
  static constexpr numbers sleep_numbers{SYS_clock_nanosleep_time64, SYS_clock_nanosleep};
  static constexpr numbers futex_numbers{SYS_futex_time64, SYS_futex};
  static constexpr numbers poll_numbers{SYS_ppoll_time64, SYS_ppoll};
#elif defined(SYS_futex_time64)
  static constexpr numbers sleep_numbers{SYS_clock_nanosleep_time64, none};
  static constexpr numbers futex_numbers{SYS_futex_time64, none};
  static constexpr numbers poll_numbers{SYS_ppoll_time64, none};
#else
  static constexpr numbers sleep_numbers{SYS_clock_nanosleep, none};
  static constexpr numbers futex_numbers{SYS_futex, none};
  static constexpr numbers poll_numbers{SYS_ppoll, none};
#endif

  struct older_time {
    long seconds;
    long nanoseconds;
  };

  // Kernels before 5.1 do not know the wide calls, and filters of their time refuse them.
  template <class Call>
  static int timed(numbers call, const time& t, Call make) noexcept {
    time copy = t;  // some calls write the rest back
    const int answer = make(call.wide, &copy);
    const bool refused =
        answer < 0 && answer != -EINTR && answer != -ETIMEDOUT && answer != -EAGAIN;
    if (!refused || call.older == none) return answer;
    constexpr std::int64_t most = std::numeric_limits<long>::max();
    older_time older{static_cast<long>(t.seconds < most ? t.seconds : most),
                     static_cast<long>(t.nanoseconds)};
    return make(call.older, &older);
  }

  template <class Answer = int, class... Arguments>
  static Answer raw(long number, Arguments... arguments) noexcept {
    const int kept = errno;
    const long answer = ::syscall(number, arguments...);
    const auto result = static_cast<Answer>(answer == -1 ? -errno : answer);
    errno = kept;
    return result;
  }
};

/// Linux, through the raw calls of `Calls`.
template <class Calls = linux_calls>
class linux_platform {
 public:
  static constexpr bool signal_safe_unpark = true;

  /// Reads the precise clock. Cost: 16 to 29 ns, no system call (guest, Linux 6.18, 2026).
  static instant now(clock_kind on) noexcept {
    return Calls::clock_gettime(on == clock_kind::monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME);
  }

  /// Reads the clock of the last tick: at most two ticks behind, never ahead. Cost: 4 to 6 ns.
  static instant coarse_now(clock_kind on) noexcept {
    return Calls::clock_gettime(on == clock_kind::monotonic ? CLOCK_MONOTONIC_COARSE
                                                            : CLOCK_REALTIME_COARSE);
  }

  /// Blocks until the instant: one system call where it is allowed, else the next of the chain.
  static native_wait block_until(clock_kind on, instant until, slack how) noexcept {
    const tightened_slack guard{how};
    const clockid_t clock = on == clock_kind::monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    int first = Calls::clock_nanosleep(clock, to_time(until.time_since_epoch()));
    if (first == 0) {
      // A kernel never wakes early; a tracer or a filter that says "slept" at once would make a hot
      // loop.
      const instant seen = now(on);
      if (seen >= until || until - seen < std::chrono::milliseconds{1}) {
        return {native_end::woke, 0};
      }
      first = -ETIME;
    }
    if (first == -EINTR) return {native_end::interrupted, 0};

    const park_word nobody{0};
    const native_wait second = park(nobody, 0, clock, until);
    if (second.how != native_end::refused) return {second.how, -first};

    const instant seen = now(on);
    if (seen >= until) return {native_end::woke, -first};
    // Relative, so a step of the wall clock would go unnoticed in a long one.
    const nanoseconds rest = until - seen;
    const bool all = on == clock_kind::monotonic || rest <= unstepped;
    const int third = Calls::ppoll(to_time(all ? rest : unstepped));
    if (third == -EINTR || (third == 0 && !all)) return {native_end::interrupted, -first};
    return {third == 0 ? native_end::woke : native_end::refused, -first};
  }

  /// Blocks until the instant or until the word differs from `expected` and is unparked.
  static native_wait park_until(const park_word& word, std::uint32_t expected, clock_kind on,
                                instant until, slack how) noexcept {
    const tightened_slack guard{how};
    return park(word, expected, on == clock_kind::monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME,
                until);
  }

  /// Ends every native wait that is parked on the word. Async-signal-safe, keeps errno.
  static void unpark(const park_word& word) noexcept { Calls::futex_wake(word, 0x7fffffff); }

  /// Says whether the counter may be read in this thread: the kernel can make it fault.
  static counter_support counter_facts() noexcept {
#if PUNCTUAL_CPU_X86
    // The kernel writes an int where the argument points to.
    int permission = 0;
    if (Calls::prctl(PR_GET_TSC, reinterpret_cast<unsigned long>(&permission)) < 0) {
      return {false, "the kernel does not say whether counter reads fault here"};
    }
    if (permission != PR_TSC_ENABLE) return {false, "the kernel makes counter reads fault here"};
#endif
    return processor::counter_facts();
  }

  static std::uint64_t counter() noexcept { return processor::counter(); }
  static void relax() noexcept { processor::relax(); }

  /// CPU time of the calling thread. Cost: a system call, about 0.2 us.
  static nanoseconds running_time() noexcept {
    const int kept = errno;  // a filter may refuse this one
    const nanoseconds used = Calls::clock_gettime(CLOCK_THREAD_CPUTIME_ID).time_since_epoch();
    errno = kept;
    return used;
  }

  static platform_facts facts() noexcept {
    return {"linux", "clock_nanosleep(TIMER_ABSTIME)",
            std::chrono::nanoseconds{Calls::prctl(PR_GET_TIMERSLACK, 0)}};
  }

 private:
  // Sets the calling thread's slack to 1 ns and hands back what was there just before. Reading and
  // setting cost 0.1 us each (Linux 6.18 guest, Xeon, December 2026); the default slack is 50 us.
  // A slack that is small already, and that of a realtime thread (0), is left alone.
  class tightened_slack {
   public:
    explicit tightened_slack(slack how) noexcept {
      if (how == slack::as_is) return;
      const long before = Calls::prctl(PR_GET_TIMERSLACK, 0);
      if (before > worth_tightening && Calls::prctl(PR_SET_TIMERSLACK, 1) == 0) before_ = before;
    }
    ~tightened_slack() {
      if (before_ != 0) Calls::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_));
    }
    tightened_slack(const tightened_slack&) = delete;
    tightened_slack& operator=(const tightened_slack&) = delete;

   private:
    static constexpr long worth_tightening = 1000;  // ns
    long before_ = 0;
  };

  static constexpr nanoseconds unstepped = std::chrono::seconds{1};

  static typename Calls::time to_time(std::chrono::nanoseconds since) noexcept {
    constexpr std::int64_t second = 1'000'000'000;
    if (since.count() <= 0) return {0, 0};
    return {since.count() / second, since.count() % second};
  }

  static native_wait park(const park_word& word, std::uint32_t expected, clockid_t clock,
                          instant until) noexcept {
    const int answer = Calls::futex_wait(word, expected, clock, to_time(until.time_since_epoch()));
    if (answer == 0 || answer == -ETIMEDOUT || answer == -EAGAIN) return {native_end::woke, 0};
    if (answer == -EINTR) return {native_end::interrupted, 0};
    return {native_end::refused, -answer};
  }
};

}  // namespace punctual
