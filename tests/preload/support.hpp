// What the programs of this folder share: clocks, signals at a given time, and the calls that sleep
// under one signature, so that each rule is stated once for all of them.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

// What poll and ppoll become where a program is compiled to have its arrays checked.
extern "C" int __poll_chk(pollfd*, nfds_t, int, std::size_t);
extern "C" int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t);

namespace preload_tests {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// Whether the library is loaded before the system's: the tests are run with it and without.
inline bool replaced() { return std::getenv("LD_PRELOAD") != nullptr; }

inline nanoseconds now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}
inline timespec to_timespec(nanoseconds t) {
  return {static_cast<time_t>(t.count() / 1'000'000'000),
          static_cast<long>(t.count() % 1'000'000'000)};
}
inline nanoseconds to_nanoseconds(const timespec& t) {
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}
inline timeval to_timeval(nanoseconds t) {
  return {static_cast<time_t>(t.count() / 1'000'000'000),
          static_cast<suseconds_t>(t.count() / 1000 % 1'000'000)};
}

/// One call that sleeps for a length.
struct sleeping_call {
  const char* name;
  int (*sleep)(nanoseconds length);  ///< 0, or the error that it gave
  nanoseconds grain;                 ///< the unit of its argument
  bool sees_every_signal = true;     ///< false: see `wall_absolute`
};

inline int error_of(int answer) { return answer == 0 ? 0 : errno; }

// While an absolute wait on the wall clock hands over from the kernel to the spin, a handler may
// run unnoticed; the wait then ends at its deadline.
inline const std::vector<sleeping_call>& sleeping_calls() {
  static const std::vector<sleeping_call> all{
      {"nanosleep",
       [](nanoseconds l) {
         const timespec t = to_timespec(l);
         return error_of(nanosleep(&t, nullptr));
       },
       1ns},
      {"clock_nanosleep, monotonic",
       [](nanoseconds l) {
         const timespec t = to_timespec(l);
         return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
       },
       1ns},
      {"clock_nanosleep, realtime",
       [](nanoseconds l) {
         const timespec t = to_timespec(l);
         return clock_nanosleep(CLOCK_REALTIME, 0, &t, nullptr);
       },
       1ns},
      {"clock_nanosleep, monotonic, absolute",
       [](nanoseconds l) {
         const timespec t = to_timespec(now() + l);
         return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
       },
       1ns},
      {"clock_nanosleep, realtime, absolute",
       [](nanoseconds l) {
         const timespec t = to_timespec(now(CLOCK_REALTIME) + l);
         return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, nullptr);
       },
       1ns, false},
      {"usleep",
       [](nanoseconds l) { return error_of(usleep(static_cast<useconds_t>(l.count() / 1000))); },
       1us},
      {"select",
       [](nanoseconds l) {
         timeval t = to_timeval(l);
         return error_of(select(0, nullptr, nullptr, nullptr, &t));
       },
       1us},
      {"select, a count and no sets",
       [](nanoseconds l) {
         timeval t = to_timeval(l);
         return error_of(select(5, nullptr, nullptr, nullptr, &t));
       },
       1us},
      {"pselect",
       [](nanoseconds l) {
         const timespec t = to_timespec(l);
         return error_of(pselect(0, nullptr, nullptr, nullptr, &t, nullptr));
       },
       1ns},
      {"poll",
       [](nanoseconds l) {
         return error_of(poll(nullptr, 0, static_cast<int>(l.count() / 1'000'000)));
       },
       1ms},
      {"ppoll",
       [](nanoseconds l) {
         const timespec t = to_timespec(l);
         return error_of(ppoll(nullptr, 0, &t, nullptr));
       },
       1ns},
      {"poll, checked",
       [](nanoseconds l) {
         return error_of(__poll_chk(nullptr, 0, static_cast<int>(l.count() / 1'000'000), 0));
       },
       1ms},
      {"ppoll, checked",
       [](nanoseconds l) {
         const timespec t = to_timespec(l);
         return error_of(__ppoll_chk(nullptr, 0, &t, nullptr, 0));
       },
       1ns},
  };
  return all;
}

inline std::atomic<int> handled{0};
inline std::atomic<std::int64_t> handled_at{0};
inline void note_signal(int) {
  handled_at = now().count();
  ++handled;
}

/// A handler for as long as the object lives.
class handler {
 public:
  explicit handler(int signal, void (*function)(int) = note_signal, int flags = 0)
      : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = function;
    action.sa_flags = flags;
    sigaction(signal, &action, &before_);
    handled = 0;
    handled_at = 0;
  }
  ~handler() { sigaction(signal_, &before_, nullptr); }
  handler(const handler&) = delete;
  handler& operator=(const handler&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

/// One SIGALRM after this long.
inline void alarm_after(nanoseconds length) {
  itimerval timer{};
  timer.it_value = to_timeval(length);
  setitimer(ITIMER_REAL, &timer, nullptr);
}
inline void no_alarm() { alarm_after(0ns); }

inline sigset_t mask_of_thread() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}
inline bool same(const sigset_t& a, const sigset_t& b) {
  for (int s = 1; s < 65; ++s) {
    if (sigismember(&a, s) != sigismember(&b, s)) return false;
  }
  return true;
}
// Not by prctl(), which answers an int: a slack may be larger.
inline long slack_of_thread() { return syscall(SYS_prctl, PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL); }
inline void set_slack_of_thread(long slack) {
  syscall(SYS_prctl, PR_SET_TIMERSLACK, slack, 0UL, 0UL, 0UL);
}

}  // namespace preload_tests
