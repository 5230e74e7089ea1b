// Mistake that would live without it: a timed wait whose past deadline is answered otherwise than
// the system answers it: what is to be had is not taken, a deadlock not told, a mutex not held.
#include "support.hpp"

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <thread>

#include <semaphore.h>
#include <sys/syscall.h>

using namespace preload_tests;

namespace {

timespec past(clockid_t clock = CLOCK_REALTIME) { return to_timespec(now(clock) - 1ms); }
timespec ahead(clockid_t clock = CLOCK_REALTIME, nanoseconds by = 3s) {
  return to_timespec(now(clock) + by);
}
constexpr timespec wrong{5, 1'000'000'000};

class mutex {
 public:
  explicit mutex(int type = PTHREAD_MUTEX_NORMAL, bool robust = false) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, type);
    if (robust) pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&it, &how);
  }
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  pthread_mutex_t it;
};

class condition {
 public:
  explicit condition(clockid_t clock) {
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, clock);
    pthread_cond_init(&it, &how);
  }
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;
  pthread_cond_t it;
};

template <class Body>
void in_thread(Body body) {
  std::thread(body).join();
}

}  // namespace

TEST_CASE("a condition whose deadline is past times out, with the mutex held", "[preload][past]") {
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
    condition c(clock);
    mutex m(PTHREAD_MUTEX_ERRORCHECK);
    const timespec t = past(clock);
    const timespec longest_past{0, 0};
    CHECK(pthread_cond_timedwait(&c.it, &m.it, &t) == EPERM);  // not held
    pthread_mutex_lock(&m.it);
    errno = 4711;
    CHECK(pthread_cond_timedwait(&c.it, &m.it, &t) == ETIMEDOUT);
    CHECK(pthread_cond_timedwait(&c.it, &m.it, &longest_past) == ETIMEDOUT);
    CHECK(pthread_cond_clockwait(&c.it, &m.it, clock, &t) == ETIMEDOUT);
    CHECK(pthread_cond_timedwait(&c.it, &m.it, &wrong) == EINVAL);
    CHECK(errno == 4711);
    CHECK(pthread_mutex_lock(&m.it) == EDEADLK);  // held by us, once
    CHECK(pthread_mutex_unlock(&m.it) == 0);
    CHECK(pthread_mutex_unlock(&m.it) == EPERM);
  }
}

TEST_CASE("a condition whose deadline is ahead is waited for, on its own clock",
          "[preload][past]") {
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
    condition c(clock);
    mutex m;
    pthread_mutex_lock(&m.it);
    const timespec soon = ahead(clock, 5ms);
    CHECK(pthread_cond_timedwait(&c.it, &m.it, &soon) == ETIMEDOUT);
    CHECK(now(clock) >= to_nanoseconds(soon));
    std::thread other([&] {
      pthread_mutex_lock(&m.it);
      pthread_cond_signal(&c.it);
      pthread_mutex_unlock(&m.it);
    });
    const timespec late = ahead(clock, 10s);
    CHECK(pthread_cond_timedwait(&c.it, &m.it, &late) == 0);
    pthread_mutex_unlock(&m.it);
    other.join();
  }
}

TEST_CASE("others get the mutex of a condition that is polled with past deadlines",
          "[preload][past]") {
  condition c(CLOCK_REALTIME);
  mutex m;
  std::atomic<bool> done{false};
  pthread_mutex_lock(&m.it);
  std::thread other([&] {
    pthread_mutex_lock(&m.it);
    done = true;
    pthread_mutex_unlock(&m.it);
  });
  const nanoseconds from = now();
  const timespec t = past();
  while (!done && now() - from < 20s) pthread_cond_timedwait(&c.it, &m.it, &t);
  CHECK(done);
  pthread_mutex_unlock(&m.it);
  other.join();
}

TEST_CASE("a thread can be cancelled where a condition's deadline is past, holding the mutex",
          "[preload][past]") {
  static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  static std::atomic<bool> unlocked;
  unlocked = false;
  pthread_t thread{};
  REQUIRE(pthread_create(
              &thread, nullptr,
              [](void*) -> void* {
                pthread_mutex_lock(&m);
                pthread_cleanup_push([](void*) { unlocked = pthread_mutex_unlock(&m) == 0; },
                                     nullptr);
                const timespec t = past();
                for (;;) {
                  pthread_cond_timedwait(&c, &m, &t);
                  usleep(100);
                }
                pthread_cleanup_pop(0);
                return nullptr;
              },
              nullptr) == 0);
  usleep(3000);
  pthread_cancel(thread);
  void* answer = nullptr;
  pthread_join(thread, &answer);
  CHECK(answer == PTHREAD_CANCELED);
  CHECK(unlocked);
}

TEST_CASE("a mutex that is free is locked, whatever the deadline", "[preload][past]") {
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                         PTHREAD_MUTEX_ADAPTIVE_NP}) {
    mutex m(type);
    const timespec t = past();
    const timespec monotonic = past(CLOCK_MONOTONIC);
    CHECK(pthread_mutex_timedlock(&m.it, &t) == 0);
    CHECK(pthread_mutex_unlock(&m.it) == 0);
    CHECK(pthread_mutex_clocklock(&m.it, CLOCK_MONOTONIC, &monotonic) == 0);
    CHECK(pthread_mutex_unlock(&m.it) == 0);
  }
}

TEST_CASE("a mutex that is taken times out, or tells its owner of the deadlock",
          "[preload][past]") {
  struct owner {
    int type, of_owner;
  };
  for (const owner& each :
       {owner{PTHREAD_MUTEX_NORMAL, ETIMEDOUT}, owner{PTHREAD_MUTEX_RECURSIVE, 0},
        owner{PTHREAD_MUTEX_ERRORCHECK, EDEADLK}, owner{PTHREAD_MUTEX_ADAPTIVE_NP, ETIMEDOUT}}) {
    INFO(each.type);
    mutex m(each.type);
    pthread_mutex_lock(&m.it);
    const timespec t = past();
    const timespec on_monotonic = past(CLOCK_MONOTONIC);
    CHECK(pthread_mutex_timedlock(&m.it, &t) == each.of_owner);
    in_thread([&] {
      CHECK(pthread_mutex_timedlock(&m.it, &t) == ETIMEDOUT);
      CHECK(pthread_mutex_clocklock(&m.it, CLOCK_MONOTONIC, &on_monotonic) == ETIMEDOUT);
      CHECK(pthread_mutex_timedlock(&m.it, &wrong) == EINVAL);
      const timespec soon = ahead(CLOCK_REALTIME, 3ms);
      CHECK(pthread_mutex_timedlock(&m.it, &soon) == ETIMEDOUT);
      CHECK(now(CLOCK_REALTIME) >= to_nanoseconds(soon));
    });
    if (each.of_owner == 0) pthread_mutex_unlock(&m.it);
    pthread_mutex_unlock(&m.it);
  }
  mutex robust(PTHREAD_MUTEX_NORMAL, true);
  in_thread([&] { pthread_mutex_lock(&robust.it); });  // and dies
  const timespec t = past();
  CHECK(pthread_mutex_timedlock(&robust.it, &t) == EOWNERDEAD);
  pthread_mutex_consistent(&robust.it);
  pthread_mutex_unlock(&robust.it);
}

TEST_CASE("a read-write lock is taken if it is free, and tells of a deadlock", "[preload][past]") {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  const timespec t = past();
  const timespec m = past(CLOCK_MONOTONIC);
  CHECK(pthread_rwlock_timedrdlock(&lock, &t) == 0);
  CHECK(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &m) == 0);
  CHECK(pthread_rwlock_timedwrlock(&lock, &t) == ETIMEDOUT);
  CHECK(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &m) == ETIMEDOUT);
  CHECK(pthread_rwlock_timedwrlock(&lock, &wrong) == EINVAL);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
  CHECK(pthread_rwlock_timedwrlock(&lock, &t) == 0);
  CHECK(pthread_rwlock_timedwrlock(&lock, &t) == EDEADLK);
  CHECK(pthread_rwlock_timedrdlock(&lock, &t) == EDEADLK);
  CHECK(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &m) == EDEADLK);
  in_thread([&] {
    CHECK(pthread_rwlock_timedrdlock(&lock, &t) == ETIMEDOUT);
    CHECK(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &m) == ETIMEDOUT);
    const timespec soon = ahead(CLOCK_REALTIME, 3ms);
    CHECK(pthread_rwlock_timedwrlock(&lock, &soon) == ETIMEDOUT);
    CHECK(now(CLOCK_REALTIME) >= to_nanoseconds(soon));
  });
  CHECK(pthread_rwlock_unlock(&lock) == 0);
}

TEST_CASE("a semaphore is taken from if it has something, whatever the deadline",
          "[preload][past]") {
  sem_t s;
  sem_init(&s, 0, 2);
  const timespec t = past();
  const timespec m = past(CLOCK_MONOTONIC);
  errno = 4711;
  CHECK(sem_timedwait(&s, &t) == 0);
  CHECK(sem_clockwait(&s, CLOCK_MONOTONIC, &m) == 0);
  CHECK(errno == 4711);
  CHECK(sem_timedwait(&s, &t) == -1);
  CHECK(errno == ETIMEDOUT);
  CHECK(sem_clockwait(&s, CLOCK_MONOTONIC, &m) == -1);
  CHECK(errno == ETIMEDOUT);
  CHECK(sem_timedwait(&s, &wrong) == -1);
  CHECK(errno == EINVAL);
  const timespec soon = ahead(CLOCK_REALTIME, 3ms);
  CHECK(sem_timedwait(&s, &soon) == -1);
  CHECK(errno == ETIMEDOUT);
  CHECK(now(CLOCK_REALTIME) >= to_nanoseconds(soon));
  const handler alarms(SIGALRM);
  alarm_after(5ms);
  const timespec late = ahead();
  CHECK(sem_timedwait(&s, &late) == -1);
  CHECK(errno == EINTR);
  sem_destroy(&s);
}

TEST_CASE("a clock that no timed wait knows is refused, and nothing is taken", "[preload][past]") {
  for (const clockid_t clock : {clockid_t{CLOCK_BOOTTIME}, clockid_t{CLOCK_MONOTONIC_RAW},
                                clockid_t{CLOCK_MONOTONIC_COARSE}, clockid_t{CLOCK_TAI},
                                clockid_t{CLOCK_PROCESS_CPUTIME_ID}, clockid_t{9999}}) {
    const timespec deadlines[] = {{0, 0}, past(), ahead(), wrong};
    for (const timespec& t : deadlines) {
      INFO("clock " << clock << ", deadline " << t.tv_sec);
      sem_t s;
      sem_init(&s, 0, 1);
      errno = 0;
      CHECK(sem_clockwait(&s, clock, &t) == -1);
      CHECK(errno == EINVAL);
      int value = 0;
      sem_getvalue(&s, &value);
      CHECK(value == 1);
      sem_destroy(&s);

      for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                             PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP}) {
        mutex m(type);
        CHECK(pthread_mutex_clocklock(&m.it, clock, &t) == EINVAL);
        in_thread([&] {
          CHECK(pthread_mutex_trylock(&m.it) == 0);
          pthread_mutex_unlock(&m.it);
        });
      }

      pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
      CHECK(pthread_rwlock_clockrdlock(&lock, clock, &t) == EINVAL);
      CHECK(pthread_rwlock_clockwrlock(&lock, clock, &t) == EINVAL);
      CHECK(pthread_rwlock_trywrlock(&lock) == 0);
      pthread_rwlock_unlock(&lock);

      condition c(CLOCK_REALTIME);
      mutex held(PTHREAD_MUTEX_ERRORCHECK);
      pthread_mutex_lock(&held.it);
      CHECK(pthread_cond_clockwait(&c.it, &held.it, clock, &t) == EINVAL);
      CHECK(pthread_mutex_unlock(&held.it) == 0);
    }
  }
}

TEST_CASE("replaced calls answer a past deadline without a system call", "[preload][past][G2]") {
  if (!replaced()) return support::skip("the system's own calls make one");
  const int code = support::in_child([] {
    condition real(CLOCK_REALTIME), monotonic(CLOCK_MONOTONIC);
    mutex m, taken;
    sem_t s;
    sem_init(&s, 0, 0);
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    pthread_rwlock_rdlock(&lock);
    pthread_mutex_lock(&m.it);
    pthread_mutex_lock(&taken.it);
    const timespec r = past(), mono = past(CLOCK_MONOTONIC), long_ago{0, 0};
    if (!support::die_of_calls_except({SYS_exit_group})) return 77;
    int wrong_answers = 0;
    for (const timespec* t : {&r, &long_ago}) {
      wrong_answers += pthread_cond_timedwait(&real.it, &m.it, t) != ETIMEDOUT;
      wrong_answers += pthread_cond_clockwait(&real.it, &m.it, CLOCK_REALTIME, t) != ETIMEDOUT;
      wrong_answers += pthread_mutex_timedlock(&taken.it, t) != ETIMEDOUT;
      wrong_answers += pthread_rwlock_timedwrlock(&lock, t) != ETIMEDOUT;
      wrong_answers += sem_timedwait(&s, t) != -1;
      wrong_answers += clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, t, nullptr) != 0;
    }
    for (const timespec* t : {&mono, &long_ago}) {
      wrong_answers += pthread_cond_timedwait(&monotonic.it, &m.it, t) != ETIMEDOUT;
      wrong_answers += pthread_mutex_clocklock(&taken.it, CLOCK_MONOTONIC, t) != ETIMEDOUT;
      wrong_answers += pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, t) != ETIMEDOUT;
      wrong_answers += sem_clockwait(&s, CLOCK_MONOTONIC, t) != -1;
      wrong_answers += clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, t, nullptr) != 0;
    }
    return wrong_answers == 0 ? 0 : 1;
  });
  if (code == 77) return support::skip("no system-call filter may be installed here");
  CHECK(code == 0);
}

TEST_CASE("replaced calls still sleep where a filter refuses what they wait with", "[preload]") {
  if (!replaced()) return support::skip("about the replaced calls");
  for (const bool both : {false, true}) {
    const int code = support::in_child([=] {
      const bool filtered = both ? support::refuse_calls({SYS_ppoll, SYS_clock_nanosleep}, EPERM)
                                 : support::refuse_calls({SYS_ppoll}, ENOSYS);
      if (!filtered) return 77;
      for (const sleeping_call& call : sleeping_calls()) {
        for (int i = 0; i < 3; ++i) {
          const nanoseconds from = now();
          if (call.sleep(5ms) != 0 || now() - from < 5ms) return 1;
        }
      }
      const handler alarms(SIGALRM);
      alarm_after(10ms);
      const nanoseconds from = now();
      if (usleep(900'000) != -1 || errno != EINTR || now() - from > 800ms) return 2;
      // Let in by the call's mask: noticed before a wait that could not tell of it.
      sigset_t none, blocked, before;
      sigemptyset(&none);
      sigemptyset(&blocked);
      sigaddset(&blocked, SIGALRM);
      pthread_sigmask(SIG_BLOCK, &blocked, &before);
      raise(SIGALRM);
      const timespec longer = to_timespec(900ms);
      const nanoseconds begun = now();
      if (pselect(0, nullptr, nullptr, nullptr, &longer, &none) != -1 || errno != EINTR) return 5;
      if (now() - begun > 800ms) return 6;
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      signal(SIGALRM, SIG_IGN);
      alarm_after(5ms);
      if (usleep(20'000) != 0) return 4;
      // Where nothing blocks all of it is spun: a cancellation waits for the end of that.
      for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
        pthread_t thread{};
        pthread_create(
            &thread, nullptr,
            [](void* wanted) -> void* {
              pthread_setcanceltype(*static_cast<const int*>(wanted), nullptr);
              for (;;) usleep(20'000);
            },
            const_cast<int*>(&type));
        usleep(50'000);
        pthread_cancel(thread);
        void* answer = nullptr;
        pthread_join(thread, &answer);
        if (answer != PTHREAD_CANCELED) return 3;
      }
      return 0;
    });
    if (code == 77) return support::skip("no system-call filter may be installed here");
    CHECK(code == 0);
  }
}
