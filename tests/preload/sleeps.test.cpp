// Mistake that would live without it: a replaced sleep that differs from the system's in anything
// but its lateness. The program is run twice, on the C library's calls and on ours: what it says
// must hold for both.
#include "support.hpp"

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"

#include <climits>
#include <csetjmp>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include <sys/wait.h>

using namespace preload_tests;

TEST_CASE("every sleep lasts as long as asked, answers 0 and leaves errno alone",
          "[preload][G1][G8]") {
  for (const sleeping_call& call : sleeping_calls()) {
    for (const nanoseconds length : {nanoseconds{1ns}, nanoseconds{1us}, nanoseconds{60us},
                                     nanoseconds{1ms}, nanoseconds{3ms}}) {
      if (length < call.grain) continue;
      INFO(call.name << ", " << length.count());
      const sigset_t mask = mask_of_thread();
      const long slack = slack_of_thread();
      errno = 4711;
      const nanoseconds from = now();
      const int error = call.sleep(length);
      const nanoseconds took = now() - from;
      const int kept = errno;
      CHECK(error == 0);
      CHECK(took >= length);
      CHECK(kept == 4711);
      CHECK(same(mask, mask_of_thread()));
      CHECK(slack == slack_of_thread());
    }
  }
}

namespace {
std::atomic<long> slack_in_handler{0};
void note_slack(int) { slack_in_handler = slack_of_thread(); }
}  // namespace

TEST_CASE("a slack that is more than an int holds is tightened, and handed back whole",
          "[preload]") {
  if (!replaced()) return support::skip("with such a slack the system's own sleeps take seconds");
  const handler alarms(SIGALRM, note_slack);
  const long before = slack_of_thread();
  for (const long slack :
       {2'147'483'648L, 3'000'000'000L, 4'294'967'295L, 4'294'967'301L, 5'000'000'000L}) {
    set_slack_of_thread(slack);
    for (const sleeping_call& call : sleeping_calls()) {
      INFO(call.name << ", slack " << slack);
      CHECK(call.sleep(1ms) == 0);
      CHECK(slack_of_thread() == slack);
      alarm_after(5ms);
      CHECK(call.sleep(5s) == EINTR);
      CHECK(slack_in_handler == 1);
      CHECK(slack_of_thread() == slack);
    }
  }
  set_slack_of_thread(before);
}

TEST_CASE("a length of zero returns at once", "[preload]") {
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    const nanoseconds from = now();
    for (int i = 0; i < 10; ++i) CHECK(call.sleep(0ns) == 0);
    CHECK(now() - from < 1s);
  }
  CHECK(sleep(0) == 0);
}

TEST_CASE("a signal handler ends a sleep with EINTR, with and without SA_RESTART", "[preload]") {
  for (const int flags : {0, SA_RESTART}) {
    const handler alarms(SIGALRM, note_signal, flags);
    for (const sleeping_call& call : sleeping_calls()) {
      INFO(call.name);
      const sigset_t mask = mask_of_thread();
      const long slack = slack_of_thread();
      const int before = handled;
      alarm_after(15ms);
      const nanoseconds from = now();
      CHECK(call.sleep(5s) == EINTR);
      const nanoseconds took = now() - from;
      CHECK(handled == before + 1);
      CHECK(took >= 15ms);
      CHECK(took < 4s);
      CHECK(same(mask, mask_of_thread()));
      CHECK(slack == slack_of_thread());
    }
  }
}

TEST_CASE("what remained after an interruption is told, and only then", "[preload]") {
  const handler alarms(SIGALRM);
  const auto calls = {
      +[](const timespec* t, timespec* left) { return error_of(nanosleep(t, left)); },
      +[](const timespec* t, timespec* left) {
        return clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
      },
      +[](const timespec* t, timespec* left) {
        return clock_nanosleep(CLOCK_REALTIME, 0, t, left);
      }};
  for (const auto call : calls) {
    const timespec length = to_timespec(2s);
    timespec left{-7, -7};
    alarm_after(10ms);
    const nanoseconds from = now();
    CHECK(call(&length, &left) == EINTR);
    const nanoseconds back = now() - from;
    const nanoseconds until_handler = nanoseconds{handled_at.load()} - from;
    // Measured after the signal, before its handler; the sleep began some time after the timer.
    CHECK(to_nanoseconds(left) <= 2s - 10ms / 2);
    CHECK(to_nanoseconds(left) >= 2s - back);
    CHECK(to_nanoseconds(left) >= 2s - until_handler);
    CHECK(left.tv_nsec >= 0);

    timespec both = to_timespec(2s);  // the same object for both, as in a loop that goes on
    alarm_after(10ms);
    CHECK(call(&both, &both) == EINTR);
    CHECK(to_nanoseconds(both) < 2s);
    CHECK(to_nanoseconds(both) > 1s);

    left = {-7, -7};
    const timespec brief = to_timespec(100us);
    CHECK(call(&brief, &left) == 0);
    CHECK((left.tv_sec == -7 && left.tv_nsec == -7));
    const timespec wrong{0, 1'000'000'000};
    CHECK(call(&wrong, &left) == EINVAL);
    CHECK((left.tv_sec == -7 && left.tv_nsec == -7));

    alarm_after(10ms);
    CHECK(call(&length, nullptr) == EINTR);
  }
}

namespace {
void be_long(int signal) {
  note_signal(signal);
  while (now() < nanoseconds{handled_at.load()} + 30ms) {
  }
}
}  // namespace

TEST_CASE("a sleep that goes on with what remained ends in time, however many signals come",
          "[preload][b34][G3]") {
  for (const int flags : {0, SA_RESTART}) {
    const handler alarms(SIGALRM, note_signal, flags);
    itimerval every{};
    every.it_value = every.it_interval = to_timeval(1ms);
    setitimer(ITIMER_REAL, &every, nullptr);
    const nanoseconds from = now();
    timespec left = to_timespec(100ms);
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {
    }
    const nanoseconds took = now() - from;
    const timespec due = to_timespec(now() + 100ms);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {
    }
    const nanoseconds late = now() - to_nanoseconds(due);
    no_alarm();
    CHECK(handled > 20);
    CHECK(took >= 100ms);
    CHECK(took < 200ms);
    CHECK(late >= 0ns);
    CHECK(late < 100ms);
  }
}

TEST_CASE("the time that a handler takes is no part of what remained", "[preload]") {
  const handler alarms(SIGALRM, be_long);
  timespec left = to_timespec(300ms);
  alarm_after(20ms);
  const nanoseconds from = now();
  CHECK(nanosleep(&left, &left) == -1);
  CHECK(to_nanoseconds(left) >= 300ms - (nanoseconds{handled_at.load()} - from));
  timeval t = to_timeval(300ms);
  alarm_after(20ms);
  const nanoseconds again = now();
  CHECK(select(0, nullptr, nullptr, nullptr, &t) == -1);
  CHECK(std::chrono::microseconds{t.tv_usec} >=
        300ms - (nanoseconds{handled_at.load()} - again) - 1us);
}

TEST_CASE("an absolute sleep never writes what remained", "[preload]") {
  const handler alarms(SIGALRM);
  for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
    timespec left{-7, -7};
    const timespec far = to_timespec(now(clock) + 5s);
    alarm_after(10ms);
    errno = 4711;
    const int answer = clock_nanosleep(clock, TIMER_ABSTIME, &far, &left);
    const int kept = errno;
    CHECK(answer == EINTR);
    CHECK(kept == 4711);
    const timespec near = to_timespec(now(clock) + 200us);
    CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &near, &left) == 0);
    CHECK((left.tv_sec == -7 && left.tv_nsec == -7));
    // and its deadline may be given for both
    timespec both = far;
    alarm_after(5ms);
    CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &both, &both) == EINTR);
    CHECK((both.tv_sec == far.tv_sec && both.tv_nsec == far.tv_nsec));
  }
}

TEST_CASE("an absolute deadline that is past is no sleep", "[preload][G2]") {
  for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
    const timespec longest_past{0, 0};
    const timespec just_past = to_timespec(now(clock) - 1ns);
    errno = 4711;
    const nanoseconds from = now();
    for (int i = 0; i < 100; ++i) {
      CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &longest_past, nullptr) == 0);
      CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &just_past, nullptr) == 0);
    }
    const int kept = errno;
    CHECK(now() - from < 1s);
    CHECK(kept == 4711);
  }
}

TEST_CASE(
    "no handler runs before the deadline without ending the sleep, in its last moments either",
    "[preload][G3]") {
  const handler alarms(SIGALRM);
  std::mt19937 random{7};
  std::uniform_int_distribution<int> before_end(-50, 400);
  constexpr nanoseconds length = 3ms;
  for (int i = 0; i < 30; ++i) usleep(3000);
  for (const sleeping_call& call : sleeping_calls()) {
    if (!call.sees_every_signal) continue;
    INFO(call.name);
    int interrupted = 0;
    int unseen = 0;
    int premature = 0;
    for (int i = 0; i < 60; ++i) {
      handled = 0;
      const nanoseconds from = now();
      alarm_after(length - std::chrono::microseconds{before_end(random)});
      const nanoseconds begun = now();
      const int error = call.sleep(length);
      const nanoseconds back = now();
      no_alarm();
      const nanoseconds at{handled_at.load()};
      if (error == EINTR) {
        ++interrupted;
        premature += handled != 1;
      } else {
        CHECK(error == 0);
        unseen += handled == 1 && at > begun && at < from + length;
        premature += back - begun < length;
      }
    }
    CHECK(unseen == 0);
    CHECK(premature == 0);
    CHECK(interrupted > 0);
  }
}

TEST_CASE("a signal ends a sleep that is too short for the kernel, too", "[preload][G3]") {
  // Replaced calls spin most of them; the system sleeps 50 us longer than asked.
  constexpr nanoseconds length = 80us;
  const handler alarms(SIGALRM);
  for (const sleeping_call& call : sleeping_calls()) {
    if (call.grain > length || !call.sees_every_signal) continue;
    INFO(call.name);
    int interrupted = 0;
    for (int i = 0; i < 200; ++i) {
      handled = 0;
      alarm_after(20us);
      const nanoseconds from = now();
      const int error = call.sleep(length);
      const nanoseconds took = now() - from;
      no_alarm();
      if (error == EINTR) {
        ++interrupted;
        CHECK(handled == 1);
      } else {
        CHECK(error == 0);
        CHECK(took >= length);
      }
    }
    CHECK(interrupted > 20);
  }
}

TEST_CASE("what remains is right also when the signal comes at the very end", "[preload][G3]") {
  const handler alarms(SIGALRM);
  std::mt19937 random{11};
  std::uniform_int_distribution<int> before_end(0, 300);
  constexpr nanoseconds length = 3ms;
  int interrupted = 0;
  for (int i = 0; i < 30; ++i) usleep(3000);
  for (int i = 0; i < 200; ++i) {
    const timespec asked = to_timespec(length);
    timespec left{-7, -7};
    handled = 0;
    alarm_after(length - std::chrono::microseconds{before_end(random)});
    const nanoseconds begun = now();
    const int answer = nanosleep(&asked, &left);
    const nanoseconds back = now();
    no_alarm();
    if (answer == 0) {
      CHECK(back - begun >= length);
      CHECK(left.tv_sec == -7);
      continue;
    }
    ++interrupted;
    CHECK(errno == EINTR);
    CHECK(to_nanoseconds(left) > 0ns);
    CHECK(to_nanoseconds(left) <= length);
    CHECK(to_nanoseconds(left) + (back - begun) >= length);
  }
  CHECK(interrupted > 0);
}

TEST_CASE("signals that no handler is for end no sleep", "[preload]") {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGALRM, &ignore, &before);
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    for (const nanoseconds at : {nanoseconds{2ms}, nanoseconds{9900us}, nanoseconds{9990us}}) {
      alarm_after(at);
      const nanoseconds from = now();
      CHECK(call.sleep(10ms) == 0);
      CHECK(now() - from >= 10ms);
    }
  }
  for (const sleeping_call& call : sleeping_calls()) {
    if (call.grain > 80us) continue;
    INFO(call.name);
    int wrong = 0;
    for (int i = 0; i < 100; ++i) {
      alarm_after(20us);
      const nanoseconds from = now();
      wrong += call.sleep(80us) != 0 || now() - from < 80us;
    }
    no_alarm();
    CHECK(wrong == 0);
  }
  sigaction(SIGALRM, &before, nullptr);
  // SIGCHLD, ignored by default: a child ends in the middle of a sleep and at its end.
  for (const auto delay : {3000u, 9900u}) {
    const pid_t child = support::start_child([=] { return usleep(delay); });
    const nanoseconds from = now();
    CHECK(usleep(10'000) == 0);
    CHECK(now() - from >= 10ms);
    waitpid(child, nullptr, 0);
  }
}

TEST_CASE("a process that is stopped and continued sleeps on", "[preload]") {
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    const pid_t child = support::start_child([&] {
      const nanoseconds from = now();
      const int error = call.sleep(60ms);
      return error != 0 ? error : (now() - from >= 60ms ? 0 : 255);
    });
    usleep(20'000);
    kill(child, SIGSTOP);
    usleep(20'000);
    kill(child, SIGCONT);
    // Linux lets select and poll go on here as well, unlike in older days.
    CHECK(support::wait_for(child) == 0);
  }
}

TEST_CASE("a process can be ended at any moment of a sleep", "[preload]") {
  for (const useconds_t length : {200u, 100'000u}) {
    const pid_t child = support::start_child([=] {
      for (;;) usleep(length);
      return 0;
    });
    usleep(20'000);
    kill(child, SIGTERM);
    CHECK(support::wait_for(child) == -SIGTERM);
  }
}

TEST_CASE("a blocked signal ends no sleep and stays pending", "[preload]") {
  const handler alarms(SIGALRM);
  sigset_t blocked, before, pending;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGALRM);
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    const int count = handled;
    alarm_after(2ms);
    const nanoseconds from = now();
    CHECK(call.sleep(6ms) == 0);
    CHECK(now() - from >= 6ms);
    CHECK(handled == count);
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGALRM) == 1);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    CHECK(handled == count + 1);
  }
}

namespace {

using masked_call = int (*)(nanoseconds, const sigset_t*);
constexpr masked_call masked_calls[] = {
    [](nanoseconds l, const sigset_t* m) {
      const timespec t = to_timespec(l);
      return error_of(pselect(0, nullptr, nullptr, nullptr, &t, m));
    },
    [](nanoseconds l, const sigset_t* m) {
      const timespec t = to_timespec(l);
      return error_of(ppoll(nullptr, 0, &t, m));
    }};

// Also those that a wait has reasons not to hold back by itself.
const int blockable[] = {SIGALRM, SIGUSR1, SIGRTMIN, SIGABRT, SIGSEGV, SIGTRAP, SIGSYS};

/// Blocks and raises a signal: it is pending until a call lets it in, or the object ends.
class blocked_signal {
 public:
  explicit blocked_signal(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    pthread_kill(pthread_self(), signal);
  }
  ~blocked_signal() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  blocked_signal(const blocked_signal&) = delete;
  blocked_signal& operator=(const blocked_signal&) = delete;

 private:
  sigset_t before_;
};

bool is_pending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

}  // namespace

TEST_CASE("a blocked signal stays pending through a sleep, whichever it is", "[preload]") {
  for (const int signal : blockable) {
    const handler of_signal(signal);
    for (const sleeping_call& call : sleeping_calls()) {
      INFO(call.name << ", signal " << signal);
      handled = 0;
      {
        const blocked_signal pending(signal);
        const sigset_t mask = mask_of_thread();
        for (const nanoseconds length : {nanoseconds{1ns}, nanoseconds{60us}, nanoseconds{1ms}}) {
          if (length < call.grain) continue;
          CHECK(call.sleep(length) == 0);
          CHECK(handled == 0);
          CHECK(is_pending(signal));
          CHECK(same(mask, mask_of_thread()));
        }
      }
      CHECK(handled == 1);
    }
  }
}

TEST_CASE("a mask that lets a pending signal in ends pselect and ppoll, however short they are",
          "[preload]") {
  sigset_t none;
  sigemptyset(&none);
  for (const int signal : blockable) {
    for (const masked_call call : masked_calls) {
      for (const nanoseconds length : {nanoseconds{1ns}, nanoseconds{500ns}, nanoseconds{2us},
                                       nanoseconds{20us}, nanoseconds{1ms}, nanoseconds{5s}}) {
        INFO("signal " << signal << ", " << length.count());
        const handler of_signal(signal);
        const blocked_signal pending(signal);
        const sigset_t mask = mask_of_thread();
        const nanoseconds from = now();
        CHECK(call(length, &none) == EINTR);
        CHECK(now() - from < 4s);
        CHECK(handled == 1);
        CHECK(!is_pending(signal));
        CHECK(same(mask, mask_of_thread()));
      }
    }
  }
}

TEST_CASE("a signal that the mask of pselect and ppoll blocks is handled after the wait",
          "[preload]") {
  // Several times: what the thread spins at the end is short, and the kernel may leave none of it.
  for (int i = 0; i < 3; ++i) {
    for (const int signal : blockable) {
      for (const masked_call call : masked_calls) {
        INFO("signal " << signal);
        const handler of_signal(signal);
        sigset_t blocked;
        sigemptyset(&blocked);
        sigaddset(&blocked, signal);
        const pthread_t sleeper = pthread_self();
        std::thread sender([=] {
          usleep(5000);
          pthread_kill(sleeper, signal);
        });
        const nanoseconds from = now();
        CHECK(call(10ms, &blocked) == 0);
        sender.join();
        CHECK(handled == 1);
        CHECK(nanoseconds{handled_at.load()} >= from + 10ms);
      }
    }
  }
}

TEST_CASE("a mask that lets in a signal without a handler ends neither pselect nor ppoll",
          "[preload]") {
  sigset_t none;
  sigemptyset(&none);
  const handler ignored(SIGALRM, SIG_IGN);
  for (const int signal : {SIGALRM, SIGCHLD}) {
    for (const masked_call call : masked_calls) {
      for (const nanoseconds length : {nanoseconds{1ns}, nanoseconds{20us}, nanoseconds{3ms}}) {
        INFO("signal " << signal << ", " << length.count());
        const blocked_signal pending(signal);
        const nanoseconds from = now();
        CHECK(call(length, &none) == 0);
        CHECK(now() - from >= length);
        CHECK(!is_pending(signal));
      }
    }
  }
}

TEST_CASE("pselect and ppoll wait with the mask that they are given", "[preload]") {
  const handler alarms(SIGALRM);
  sigset_t blocked, before, none;
  sigemptyset(&none);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGALRM);
  for (const masked_call call : masked_calls) {
    // Blocked outside, pending, let in by the call: it returns at once, and the mask is as before.
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    const sigset_t outside = mask_of_thread();
    for (const nanoseconds length : {nanoseconds{5s}, nanoseconds{50us}}) {
      handled = 0;
      raise(SIGALRM);
      const nanoseconds from = now();
      const int error = call(length, &none);
      CHECK(error == EINTR);
      CHECK(now() - from < 4s);
      CHECK(handled == 1);
      CHECK(same(outside, mask_of_thread()));
    }
    // Let in by the call, and coming later.
    alarm_after(5ms);
    CHECK(call(5s, &none) == EINTR);
    CHECK(handled == 2);
    CHECK(same(outside, mask_of_thread()));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);

    // Let in outside, blocked by the call: handled when it has returned.
    handled = 0;
    alarm_after(2ms);
    const nanoseconds from = now();
    CHECK(call(6ms, &blocked) == 0);
    CHECK(now() - from >= 6ms);
    CHECK(handled == 1);
    CHECK(same(before, mask_of_thread()));
  }
}

TEST_CASE("select writes what remained into its timeout", "[preload]") {
  timeval t = to_timeval(2ms);
  CHECK(select(0, nullptr, nullptr, nullptr, &t) == 0);
  CHECK((t.tv_sec == 0 && t.tv_usec == 0));
  const handler alarms(SIGALRM);
  t = to_timeval(3s);
  alarm_after(20ms);
  CHECK(select(0, nullptr, nullptr, nullptr, &t) == -1);
  CHECK(errno == EINTR);
  const nanoseconds left = std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
  CHECK(left <= 3s - 20ms);
  CHECK(left > 1s);
  // More than a second of microseconds is taken as it is meant.
  t = {0, 3'000'000};
  alarm_after(20ms);
  CHECK(select(0, nullptr, nullptr, nullptr, &t) == -1);
  CHECK((t.tv_sec == 2 && t.tv_usec < 1'000'000));
  // pselect does not write.
  timespec constant = to_timespec(1ms);
  CHECK(pselect(0, nullptr, nullptr, nullptr, &constant, nullptr) == 0);
  CHECK(to_nanoseconds(constant) == 1ms);
}

TEST_CASE("sleep answers the whole seconds that remained", "[preload]") {
  errno = 4711;
  const nanoseconds from = now();
  CHECK(sleep(1) == 0);
  CHECK(now() - from >= 1s);
  CHECK(errno == 4711);
  const handler alarms(SIGALRM);
  alarm_after(20ms);
  CHECK(sleep(3) == 2);
  alarm_after(20ms);
  CHECK(sleep(1) == 0);
  alarm_after(20ms);
  CHECK(sleep(std::numeric_limits<unsigned>::max()) == std::numeric_limits<unsigned>::max() - 1);
}

// `sleeping_calls` has no `sleep`, which knows whole seconds only: its rules one by one.
TEST_CASE("sleep, too, is ended by handlers only, handed back, and cancelled", "[preload][G8]") {
  const sigset_t mask = mask_of_thread();
  for (const int flags : {0, SA_RESTART}) {
    const handler alarms(SIGALRM, note_signal, flags);
    alarm_after(20ms);
    errno = 4711;
    const nanoseconds from = now();
    CHECK(sleep(5) == 4);
    CHECK(now() - from < 4s);
    CHECK(handled == 1);
  }
  {
    const handler alarms(SIGALRM, SIG_IGN);
    alarm_after(20ms);
    const nanoseconds from = now();
    CHECK(sleep(1) == 0);
    CHECK(now() - from >= 1s);
  }
  CHECK(same(mask, mask_of_thread()));
  for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    for (const bool before : {true, false}) {
      pthread_t thread{};
      std::pair<int, std::atomic<bool>> wanted{type, before};
      REQUIRE(pthread_create(
                  &thread, nullptr,
                  [](void* given) -> void* {
                    auto& [kind, wait] = *static_cast<std::pair<int, std::atomic<bool>>*>(given);
                    pthread_setcanceltype(kind, nullptr);
                    // Until the cancellation is pending; this is no cancellation point.
                    if (kind == PTHREAD_CANCEL_DEFERRED) {
                      while (wait) {
                      }
                    }
                    sleep(100);
                    return nullptr;
                  },
                  &wanted) == 0);
      if (!before) usleep(20'000);
      pthread_cancel(thread);
      wanted.second = false;
      void* answer = nullptr;
      pthread_join(thread, &answer);
      CHECK(answer == PTHREAD_CANCELED);
    }
  }
}

TEST_CASE("wrong arguments are refused at once, with the system's own words", "[preload][G5]") {
  const nanoseconds from = now();
  for (const timespec wrong : {timespec{0, -1}, timespec{0, 1'000'000'000}, timespec{-1, 0},
                               timespec{0, std::numeric_limits<long>::max()},
                               timespec{std::numeric_limits<time_t>::min(), 0}}) {
    errno = 0;
    CHECK(nanosleep(&wrong, nullptr) == -1);
    CHECK(errno == EINVAL);
    CHECK(pselect(0, nullptr, nullptr, nullptr, &wrong, nullptr) == -1);
    CHECK(errno == EINVAL);
    errno = 0;
    CHECK(ppoll(nullptr, 0, &wrong, nullptr) == -1);
    CHECK(errno == EINVAL);
    errno = 4711;
    for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
      for (const int flags : {0, TIMER_ABSTIME}) {
        CHECK(clock_nanosleep(clock, flags, &wrong, nullptr) == EINVAL);
      }
    }
    CHECK(errno == 4711);
  }
  for (timeval wrong : {timeval{-1, 0}, timeval{0, -1}}) {
    errno = 0;
    CHECK(select(0, nullptr, nullptr, nullptr, &wrong) == -1);
    CHECK(errno == EINVAL);
  }
  timeval brief{0, 10};
  errno = 0;
  CHECK(select(-1, nullptr, nullptr, nullptr, &brief) == -1);
  CHECK(errno == EINVAL);
  const timespec right = to_timespec(1ms);
  errno = 4711;
  CHECK(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &right, nullptr) == EINVAL);
  CHECK(clock_nanosleep(9999, 0, &right, nullptr) == EINVAL);
  CHECK(clock_nanosleep(CLOCK_BOOTTIME, 0, &right, nullptr) == 0);
  CHECK(errno == 4711);
  const timespec* volatile nothing = nullptr;
  CHECK(nanosleep(nothing, nullptr) == -1);
  CHECK(errno == EFAULT);
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, nothing, nullptr) == EFAULT);
  CHECK(now() - from < 1s);
}

TEST_CASE("the longest sleeps are still asleep after a while, and say how much remains",
          "[preload][G5]") {
  const handler alarms(SIGALRM);
  const timespec longest{std::numeric_limits<time_t>::max(), 999'999'999};
  const timespec century{100LL * 365 * 86400, 5};
  for (const timespec& length : {longest, century}) {
    timespec left{0, 0};
    alarm_after(60ms);
    nanoseconds from = now();
    CHECK(nanosleep(&length, &left) == -1);
    CHECK(now() - from >= 60ms);
    CHECK(left.tv_sec > 99LL * 365 * 86400);
    for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
      alarm_after(60ms);
      from = now();
      CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &length, nullptr) == EINTR);
      CHECK(now() - from >= 60ms);
    }
    alarm_after(60ms);
    from = now();
    CHECK(ppoll(nullptr, 0, &length, nullptr) == -1);
    CHECK(now() - from >= 60ms);
    alarm_after(60ms);
    timeval t{length.tv_sec, 999'999};
    from = now();
    CHECK(select(0, nullptr, nullptr, nullptr, &t) == -1);
    CHECK(now() - from >= 60ms);
  }
  alarm_after(60ms);
  nanoseconds from = now();
  CHECK(poll(nullptr, 0, INT_MAX) == -1);
  CHECK(now() - from >= 60ms);
  alarm_after(60ms);
  from = now();
  CHECK(poll(nullptr, 0, -1) == -1);  // without limit
  CHECK(now() - from >= 60ms);
  alarm_after(60ms);
  from = now();
  CHECK(select(0, nullptr, nullptr, nullptr, nullptr) == -1);
  CHECK(now() - from >= 60ms);
}

TEST_CASE("sleeps of more than a second are not cut short", "[preload][b55]") {
  nanoseconds from = now();
  CHECK(usleep(1'000'001) == 0);
  CHECK(now() - from >= 1'000'001us);
  const handler alarms(SIGALRM);
  // What would be left of these in 32 bits, or of their microseconds below a second, is over soon.
  for (const std::uint64_t length : {std::uint64_t{4'294'967'296}, std::uint64_t{4'294'968'296}}) {
    alarm_after(60ms);
    from = now();
    const timespec whole{static_cast<time_t>(length), 0};
    CHECK(nanosleep(&whole, nullptr) == -1);
    CHECK(now() - from >= 60ms);
  }
  alarm_after(60ms);
  from = now();
  CHECK(usleep(4'294'000'000u) == -1);
  CHECK(now() - from >= 60ms);
}

TEST_CASE("waits on descriptors are what they were", "[preload]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pollfd one{ends[0], POLLIN, 0};
  CHECK(poll(&one, 1, 0) == 0);
  CHECK(poll(&one, 1, 5) == 0);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  timeval t = to_timeval(2ms);
  CHECK(select(ends[0] + 1, &set, nullptr, nullptr, &t) == 0);
  CHECK(!FD_ISSET(ends[0], &set));
  std::thread writer([&] {
    usleep(3000);
    CHECK(write(ends[1], "x", 1) == 1);
  });
  CHECK(poll(&one, 1, 5000) == 1);
  writer.join();
  const timespec brief = to_timespec(1ms);
  one.revents = 0;
  CHECK(ppoll(&one, 1, &brief, nullptr) == 1);
  CHECK(one.revents == POLLIN);
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  CHECK(pselect(ends[0] + 1, &set, nullptr, nullptr, &brief, nullptr) == 1);
  close(ends[0]);
  close(ends[1]);
}

namespace {

struct cancelled_thread {
  const sleeping_call* call;
  int state = PTHREAD_CANCEL_ENABLE;
  int type = PTHREAD_CANCEL_DEFERRED;
  nanoseconds length = 5s;
  std::atomic<bool> ready{false}, go{true}, sent{true};
  std::atomic<int> cleaned{0}, destroyed{0}, returned{0};
  sigset_t mask_in_cleanup{};
  long slack_in_cleanup = 0;
};

void* sleep_until_cancelled(void* argument) {
  auto& t = *static_cast<cancelled_thread*>(argument);
  struct object {
    std::atomic<int>& count;
    ~object() { ++count; }
  } counted{t.destroyed};
  pthread_setcancelstate(t.state, nullptr);
  pthread_setcanceltype(t.type, nullptr);
  pthread_cleanup_push(
      [](void* a) {
        auto& c = *static_cast<cancelled_thread*>(a);
        c.mask_in_cleanup = mask_of_thread();
        c.slack_in_cleanup = slack_of_thread();
        ++c.cleaned;
      },
      argument);
  t.ready = true;
  while (!t.go) {
  }
  t.call->sleep(t.length);
  ++t.returned;
  while (!t.sent) {
  }
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  pthread_testcancel();
  pthread_cleanup_pop(0);
  return nullptr;
}

}  // namespace

TEST_CASE("a thread can be cancelled in every sleep", "[preload]") {
  for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    for (const sleeping_call& call : sleeping_calls()) {
      INFO(call.name << ", type " << type);
      cancelled_thread t{&call};
      t.type = type;
      pthread_t thread{};
      REQUIRE(pthread_create(&thread, nullptr, sleep_until_cancelled, &t) == 0);
      while (!t.ready) usleep(100);
      usleep(3000);
      const nanoseconds from = now();
      pthread_cancel(thread);
      void* answer = nullptr;
      pthread_join(thread, &answer);
      CHECK(now() - from < 4s);
      CHECK(answer == PTHREAD_CANCELED);
      CHECK(t.returned == 0);
      CHECK(t.cleaned == 1);
      CHECK(t.destroyed == 1);
      CHECK(t.slack_in_cleanup == slack_of_thread());
      CHECK(sigismember(&t.mask_in_cleanup, SIGALRM) == 0);
      CHECK(sigismember(&t.mask_in_cleanup, SIGTERM) == 0);
    }
  }
}

TEST_CASE("a cancellation that is pending is acted upon before the sleep", "[preload]") {
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    cancelled_thread t{&call};
    t.go = false;
    pthread_t thread{};
    REQUIRE(pthread_create(&thread, nullptr, sleep_until_cancelled, &t) == 0);
    while (!t.ready) usleep(100);
    pthread_cancel(thread);
    const nanoseconds from = now();
    t.go = true;
    void* answer = nullptr;
    pthread_join(thread, &answer);
    CHECK(now() - from < 4s);
    CHECK(answer == PTHREAD_CANCELED);
    CHECK(t.returned == 0);
  }
}

TEST_CASE("where cancellation is disabled a sleep is slept out", "[preload]") {
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    cancelled_thread t{&call};
    t.state = PTHREAD_CANCEL_DISABLE;
    t.length = 20ms;
    t.sent = false;
    pthread_t thread{};
    REQUIRE(pthread_create(&thread, nullptr, sleep_until_cancelled, &t) == 0);
    while (!t.ready) usleep(100);
    pthread_cancel(thread);
    t.sent = true;
    void* answer = nullptr;
    pthread_join(thread, &answer);
    CHECK(t.returned == 1);
    CHECK(answer == PTHREAD_CANCELED);
  }
}

TEST_CASE("a thread that makes short sleeps can be cancelled at any moment", "[preload]") {
  static const sleeping_call* current;
  for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    for (const sleeping_call& call : sleeping_calls()) {
      if (call.grain > 80us) continue;
      for (int i = 0; i < 5; ++i) {
        INFO(call.name << ", type " << type);
        current = &call;
        pthread_t thread{};
        REQUIRE(pthread_create(
                    &thread, nullptr,
                    [](void* wanted) -> void* {
                      pthread_setcanceltype(*static_cast<const int*>(wanted), nullptr);
                      for (;;) current->sleep(80us);
                    },
                    const_cast<int*>(&type)) == 0);
        usleep(static_cast<useconds_t>(1000 + 37 * i));
        pthread_cancel(thread);
        void* answer = nullptr;
        pthread_join(thread, &answer);
        CHECK(answer == PTHREAD_CANCELED);
      }
    }
  }
}

TEST_CASE("a cancellation at the end of a sleep cancels, or finds it over", "[preload]") {
  std::mt19937 random{3};
  std::uniform_int_distribution<unsigned> at(1500, 2300);
  for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    for (const sleeping_call& call : sleeping_calls()) {
      for (int i = 0; i < 8; ++i) {
        INFO(call.name << ", type " << type);
        cancelled_thread t{&call};
        t.length = 2ms;
        t.type = type;
        pthread_t thread{};
        REQUIRE(pthread_create(&thread, nullptr, sleep_until_cancelled, &t) == 0);
        while (!t.ready) {
        }
        usleep(at(random));
        pthread_cancel(thread);
        void* answer = &t;
        pthread_join(thread, &answer);
        CHECK((answer == PTHREAD_CANCELED || answer == nullptr));
        CHECK(t.destroyed == 1);
        CHECK((answer == nullptr) == (t.cleaned == 0));
      }
    }
  }
}

namespace {
std::atomic<int> slept_in_handler{0};
void sleep_in_handler(int) {
  for (const sleeping_call& call : sleeping_calls()) {
    const nanoseconds from = now();
    if (call.sleep(1ms) == 0 && now() - from >= 1ms) ++slept_in_handler;
  }
}
}  // namespace

TEST_CASE("every sleep may be made in a signal handler that has interrupted one", "[preload]") {
  const int calls = static_cast<int>(sleeping_calls().size());
  const handler alarms(SIGALRM, sleep_in_handler);
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    slept_in_handler = 0;
    alarm_after(3ms);
    CHECK(call.sleep(5s) == EINTR);
    CHECK(slept_in_handler == calls);
    const nanoseconds from = now();
    CHECK(call.sleep(2ms) == 0);
    CHECK(now() - from >= 2ms);
  }
}

namespace {
sigjmp_buf jumped;
void jump_out(int) { siglongjmp(jumped, 1); }

/// Whether a sleep is left by the handler's jump. A function of its own: it has no variable that
/// the jump could spoil.
[[gnu::noinline]] bool is_left_by_a_jump(const sleeping_call& call) {
  if (sigsetjmp(jumped, 1) != 0) return true;
  alarm_after(2ms);
  call.sleep(5s);
  return false;
}
}  // namespace

TEST_CASE("a handler may jump out of a sleep, and later sleeps are as before", "[preload]") {
  const handler alarms(SIGALRM, jump_out);
  for (const sleeping_call& call : sleeping_calls()) {
    INFO(call.name);
    const sigset_t mask = mask_of_thread();
    const long slack = slack_of_thread();
    for (int i = 0; i < 3; ++i) {
      CHECK(is_left_by_a_jump(call));
      CHECK(same(mask, mask_of_thread()));
      const nanoseconds from = now();
      CHECK(call.sleep(3ms) == 0);
      CHECK(now() - from >= 3ms);
      CHECK(slack_of_thread() == slack);
    }
  }
}

TEST_CASE("threads that have never slept, and children of a fork, sleep at once", "[preload]") {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (const sleeping_call& call : sleeping_calls()) {
    threads.emplace_back([&] {
      const nanoseconds from = now();
      if (call.sleep(2ms) == 0 && now() - from >= 2ms) ++right;
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(right == static_cast<int>(sleeping_calls().size()));

  std::atomic<bool> stop{false};
  std::thread sleeper([&] {
    while (!stop) usleep(500);
  });
  for (int i = 0; i < 5; ++i) {
    CHECK(support::in_child([] {
            for (const sleeping_call& call : sleeping_calls()) {
              const nanoseconds from = now();
              if (call.sleep(1ms) != 0 || now() - from < 1ms) return 1;
            }
            return 0;
          }) == 0);
  }
  stop = true;
  sleeper.join();
}
