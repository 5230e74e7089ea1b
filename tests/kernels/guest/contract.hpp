// The promises that a real kernel can break: never early, past deadlines, the ends of the number
// line, signals, the thread handed back. Every clock that judges here is read past the library.
#pragma once

#include "support.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <limits>
#include <punctual/punctual.hpp>

namespace guest {

using punctual::instant;
using punctual::outcome;
using punctual::receipt;
using steady = std::chrono::steady_clock;
using wall = std::chrono::system_clock;

/// A clock that the library cannot know: three quarters of the speed of the time since boot.
struct slow_clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = nanoseconds;
  using time_point = std::chrono::time_point<slow_clock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept { return time_point(read(CLOCK_BOOTTIME) * 3 / 4); }
};

// A guest that ignored its command line would pass for another one: it must be what its name says.
inline void is_the_kernel_named(const std::string& name) {
  const std::string source = clock_source();
  const auto ends_with = [&](const char* what) {
    return name.size() >= std::char_traits<char>::length(what) && name.ends_with(what);
  };
  const nanoseconds step = name == "uml"                            ? 10ms
                           : ends_with("tick") || name == "jiffies" ? 4ms
                                                                    : 1ns;
  check(resolution() == step, "%s: timers end on steps of %lld ns", name.c_str(),
        static_cast<long long>(resolution().count()));
  const bool right = name == "jiffies" || name == "hpet"
                         ? source == name
                         : name == "uml" || source.starts_with("tsc");
  check(right, "%s: the clock is read from '%s'", name.c_str(), source.c_str());
}

struct tally {
  int early = 0, untrue = 0, odd = 0;

  template <class Time>
  void add(Time deadline, Time after, const receipt& did) {
    early += after < deadline;
    untrue += did.late < 0ns || did.late > after - deadline;
    odd += did.error != 0 || (did.why != outcome::reached && did.why != outcome::already_past);
  }

  void report(const char* what, int count) const {
    check(early == 0 && untrue == 0 && odd == 0,
          "never early: %d waits by %s: early %d, lateness untrue %d, other ends %d", count, what,
          early, untrue, odd);
  }
};

template <class Clock, class Wait>
void never_early(const char* what, int count, Wait wait) {
  numbers random;
  tally seen;
  for (int i = 0; i < count; ++i) {
    const auto deadline = Clock::now() + random.length(1ns, 20ms);
    const receipt did = wait(deadline);
    seen.add(deadline, decltype(deadline)(Clock::now()), did);
  }
  seen.report(what, count);
}

inline void never_early(int times) {
  never_early<steady>("sleep_until", 400 * times,
                      [](instant at) { return punctual::sleep_until(at); });
  never_early<steady>("block_until", 200 * times,
                      [](instant at) { return punctual::block_until(at); });
  never_early<steady>("spin_until", 200 * times,
                      [](instant at) { return punctual::spin_until(at); });
  never_early<wall>("sleep_until on the wall clock", 200 * times,
                    [](auto at) { return punctual::sleep_until(at); });
  never_early<slow_clock>("sleep_until on a clock of one's own", 100 * times,
                          [](auto at) { return punctual::sleep_until(at); });
}

inline bool costs_nothing(const receipt& did) {
  return did.why == outcome::already_past && did.native_waits == 0 && did.blocked == 0ns &&
         did.left == 0ns && did.error == 0;
}

template <class Clock>
bool past_costs_nothing() {
  bool all = costs_nothing(punctual::sleep_until(Clock::time_point::min()));
  for (int i = 0; i < 50; ++i) {
    all &= costs_nothing(punctual::sleep_until(Clock::now() - std::chrono::hours(1)));
    all &= costs_nothing(punctual::sleep_until(Clock::now() - 1ms));
    all &= costs_nothing(punctual::sleep_until(Clock::now() - std::chrono::microseconds(1)));
    all &= costs_nothing(punctual::sleep_until(Clock::now()));
    all &= costs_nothing(punctual::block_until(Clock::now()));
    all &= costs_nothing(punctual::spin_until(Clock::now()));
  }
  return all;
}

/// Kills this process at the first system call that is neither a read of the two clocks, precise or
/// coarse (a real call where a kernel offers no other way), nor the exit.
/// @return  false where the kernel has no such filter.
inline bool allow_clock_reads_only() {
  std::array<sock_filter, 10> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 7, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_MONOTONIC, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_MONOTONIC_COARSE, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME_COARSE, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

inline void past_deadlines() {
  errno = 1234;
  const bool all = past_costs_nothing<steady>() && past_costs_nothing<wall>();
  check(all && errno == 1234,
        "a past deadline, far or near, is already_past at once and errno stays");

  constexpr int no_filter = 3;
  const pid_t child = fork();
  if (child == 0) {
    if (!allow_clock_reads_only()) _exit(no_filter);
    _exit(past_costs_nothing<steady>() && past_costs_nothing<wall>() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_filter) {
    std::puts("note  past deadlines' system calls: this kernel has no filter to count them with");
  } else {
    check(status == 0,
          "a past deadline makes no system call but to read a clock that needs one (status %d)",
          status);
  }

  constexpr int count = 2000;
  // The steady clock may stand still, the thread's own may not count: the larger is true.
  const auto cost = [](auto wait) {
    const nanoseconds begin = read(CLOCK_MONOTONIC), ran = read(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < count; ++i) wait();
    const nanoseconds took =
        std::max(read(CLOCK_MONOTONIC) - begin, read(CLOCK_THREAD_CPUTIME_ID) - ran);
    return static_cast<double>(took.count()) / count;
  };
  std::printf("cost  ns a call: clock read %.0f, a deadline 1 s past %.0f\n",
              cost([] { (void)steady::now(); }),
              cost([at = steady::now() - 1s] { punctual::sleep_until(at); }));
}

inline volatile std::sig_atomic_t signals = 0;
inline void count_signal(int) { signals = signals + 1; }

/// Delivers SIGALRM every `period` to a handler while it lives. Without SA_RESTART, though a sleep
/// is never restarted anyway.
class alarms {
 public:
  explicit alarms(nanoseconds period, void (*handler)(int) = count_signal) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, nullptr);
    set(period);
  }
  ~alarms() { set(0ns); }
  alarms(const alarms&) = delete;
  alarms& operator=(const alarms&) = delete;

 private:
  static void set(nanoseconds period) {
    const timeval time{0, static_cast<suseconds_t>(period.count() / 1000)};
    const itimerval every{time, time};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
};

/// Waits for what never comes, in a process of its own, with signals that try to end it: it must
/// still wait, and not spin.
template <class Wait>
void for_ever(const char* what, Wait wait) {
  const pid_t child = fork();
  if (child == 0) {
    const alarms every(20ms);
    wait();
    _exit(1);
  }
  const nanoseconds begin = read(CLOCK_MONOTONIC);
  plain_sleep_for(100ms);
  int status = 0;
  const bool waits = waitpid(child, &status, WNOHANG) == 0;
  const nanoseconds lasted = read(CLOCK_MONOTONIC) - begin;
  kill(child, SIGKILL);
  rusage used{};
  if (waits) wait4(child, &status, 0, &used);
  const auto of = [](timeval time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  const nanoseconds cpu = of(used.ru_utime) + of(used.ru_stime);
  check(waits && cpu < lasted / 2, "for ever: %s waits through signals and blocks", what);
}

inline void extremes() {
  using real = std::chrono::duration<double>;
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinite = std::numeric_limits<double>::infinity();
  bool past = true;
  for (const double length : {nan, -nan, -infinite, -1.0, -0.0, 0.0, -1e300})
    past &= costs_nothing(punctual::sleep_for(real(length))) &&
            costs_nothing(punctual::block_for(real(length)));
  past &= costs_nothing(punctual::sleep_for(nanoseconds::min())) &&
          costs_nothing(punctual::sleep_for(std::chrono::hours::min()));
  check(past, "NaN, -inf, negative and zero lengths wait nothing and make no native wait");
  for_ever("instant::max()", [] { punctual::sleep_until(instant::max()); });
  for_ever("the wall clock's max()", [] { punctual::sleep_until(wall::time_point::max()); });
  for_ever("block_until(instant::max())", [] { punctual::block_until(instant::max()); });
  for_ever("+inf seconds", [infinite] { punctual::sleep_for(real(infinite)); });
  for_ever("hours::max()", [] { punctual::sleep_for(std::chrono::hours::max()); });
}

template <class Wait>
void interrupted(const char* what, int count, Wait wait) {
  const alarms kilohertz(1ms);
  numbers random;
  tally seen;
  std::uint32_t cut = 0;
  signals = 0;
  errno = 2468;
  for (int i = 0; i < count; ++i) {
    const instant deadline = steady::now() + random.length(100us, 20ms);
    const receipt did = wait(deadline);
    seen.add(deadline, steady::now(), did);
    cut += did.interruptions;
  }
  const bool same_errno = errno == 2468;
  seen.report(what, count);
  check(signals > 0 && cut > 0 && same_errno,
        "signals: %d handlers ran, %u native waits were cut and armed again, errno stays",
        static_cast<int>(signals), cut);
}

inline volatile std::sig_atomic_t early_in_handler = 0;
inline void wait_in_handler(int) {
  const instant deadline = steady::now() + 30us;
  punctual::sleep_until(deadline);
  if (steady::now() < deadline) early_in_handler = early_in_handler + 1;
  signals = signals + 1;
}

inline void signals_do_not_move_a_deadline(int times) {
  interrupted("sleep_until under SIGALRM at 1 kHz", 60 * times,
              [](instant at) { return punctual::sleep_until(at); });
  interrupted("block_until under SIGALRM at 1 kHz", 60 * times,
              [](instant at) { return punctual::block_until(at); });

  const alarms slow(40ms, wait_in_handler);
  tally seen;
  signals = 0;
  const int count = 30 * times;
  for (int i = 0; i < count; ++i) {
    const instant deadline = steady::now() + 15ms;
    const receipt did = punctual::sleep_until(deadline);
    seen.add(deadline, steady::now(), did);
  }
  seen.report("sleep_until while a handler waits too", count);
  check(signals > 0 && early_in_handler == 0, "never early: %d waits inside a handler: early %d",
        static_cast<int>(signals), static_cast<int>(early_in_handler));
}

inline void thread_is_handed_back() {
  prctl(PR_SET_TIMERSLACK, 77'777);
  sigset_t before{}, after{};
  sigprocmask(SIG_SETMASK, nullptr, &before);
  errno = 4321;
  for (int i = 0; i < 5; ++i) {
    punctual::sleep_for(15ms);
    punctual::block_for(15ms);
  }
  const bool same_errno = errno == 4321;
  sigprocmask(SIG_SETMASK, nullptr, &after);
  bool same_mask = true;
  for (int signal = 1; signal < 64; ++signal)
    same_mask &= sigismember(&before, signal) == sigismember(&after, signal);
  const int slack = prctl(PR_GET_TIMERSLACK);
  check(same_errno && same_mask && slack == 77'777,
        "the thread is handed back: errno, signal mask, slack of %d ns", slack);
  prctl(PR_SET_TIMERSLACK, 50'000);
}

inline void contract(const std::string& name, int times) {
  is_the_kernel_named(name);
  past_deadlines();
  never_early(times);
  extremes();
  signals_do_not_move_a_deadline(times);
  thread_is_handed_back();
}

}  // namespace guest
