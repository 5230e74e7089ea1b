// The timed waits of threads: condition variables, mutexes, read-write locks, semaphores. They stay
// the system's own; only a deadline that is past is answered without entering the kernel, which the
// C library does for none of them.
//
// A wait is answered here only where its answer is certain: what is to be had is taken by the try_
// function of its kind, and where something else than "timed out" may be due, the system is asked.
#include "originals.hpp"

#include <punctual/sleeper.hpp>

#include <cerrno>

#include <gnu/libc-version.h>

namespace {

using namespace preload;
using punctual::clock_kind;
using punctual::instant;
using punctual::nanoseconds;
using punctual::native_platform;

bool is_valid(const timespec* t) {
  return t != nullptr && t->tv_nsec >= 0 && t->tv_nsec < 1'000'000'000;
}

/// The two that these waits know. Any other the system refuses, before it takes anything.
bool is_known(clockid_t clock) { return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME; }

/// Whether a valid deadline is past. One that is far ahead costs a coarse clock read, 5 ns.
bool is_past(clockid_t clock, const timespec* deadline) {
  if (!is_known(clock) || !is_valid(deadline)) return false;
  constexpr nanoseconds most_that_coarse_lags = std::chrono::milliseconds{20};
  const clock_kind on = clock == CLOCK_MONOTONIC ? clock_kind::monotonic : clock_kind::realtime;
  const instant at{
      punctual::saturating_add(punctual::to_nanoseconds(std::chrono::seconds{deadline->tv_sec}),
                               nanoseconds{deadline->tv_nsec})};
  const instant coarse = native_platform::coarse_now(on);
  if (coarse >= at) return true;
  if (punctual::between(coarse, at) > most_that_coarse_lags) return false;
  return native_platform::now(on) >= at;
}

/// The clock of a condition variable; -1 where it is not known. glibc keeps it in bit 1 of __wrefs,
/// since 2.25.
clockid_t clock_of(const pthread_cond_t* condition) {
  static const bool known = [] {
    int major = 0, minor = 0;
    return std::sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
           (major > 2 || minor >= 25);
  }();
  if (!known) return -1;
  return (condition->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/// Others get their chance at the mutex, as in a wait.
int past_condition(pthread_mutex_t* mutex) {
  pthread_testcancel();
  if (const int error = pthread_mutex_unlock(mutex); error != 0) return error;
  const int error = pthread_mutex_lock(mutex);
  return error != 0 ? error : ETIMEDOUT;
}

/// Whether a mutex that is taken can only mean waiting: not one that tells its owner of a deadlock,
/// nor a robust one, nor one with priorities. The kind is part of the ABI: initialisers state it.
bool only_waits(const pthread_mutex_t* mutex) {
  const int kind = mutex->__data.__kind & 127;
  return kind == PTHREAD_MUTEX_TIMED_NP || kind == PTHREAD_MUTEX_RECURSIVE_NP ||
         kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}

template <class Plain>
int past_mutex(pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline, Plain plain) {
  if (!is_known(clock) || !only_waits(mutex)) return plain();
  const int error = pthread_mutex_trylock(mutex);
  if (error != EBUSY) return error;
  return is_past(clock, deadline) ? ETIMEDOUT : plain();
}

template <class Plain>
int past_rwlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* deadline,
                int (*take)(pthread_rwlock_t*), Plain plain) {
  if (!is_past(clock, deadline)) return plain();
  const int error = take(lock);
  if (error != EBUSY) return error;
  // Held by a writer: perhaps the caller, who is to be told of the deadlock.
  return lock->__data.__cur_writer == 0 ? ETIMEDOUT : plain();
}

template <class Plain>
int past_semaphore(sem_t* semaphore, clockid_t clock, const timespec* deadline, Plain plain) {
  if (!is_known(clock) || !is_valid(deadline)) return plain();
  pthread_testcancel();
  const int kept = errno;
  if (sem_trywait(semaphore) == 0) return 0;
  if (errno == EAGAIN && !is_past(clock, deadline)) {
    errno = kept;
    return plain();
  }
  if (errno == EAGAIN) errno = ETIMEDOUT;
  return -1;
}

}  // namespace

extern "C" {

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* deadline) {
  if (is_past(clock_of(condition), deadline)) return past_condition(mutex);
  return system::pthread_cond_timedwait(condition, mutex, deadline);
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* deadline) {
  if (is_past(clock, deadline)) return past_condition(mutex);
  return system::pthread_cond_clockwait(condition, mutex, clock, deadline);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept {
  return past_mutex(mutex, CLOCK_REALTIME, deadline,
                    [=] { return system::pthread_mutex_timedlock(mutex, deadline); });
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* deadline) noexcept {
  return past_mutex(mutex, clock, deadline,
                    [=] { return system::pthread_mutex_clocklock(mutex, clock, deadline); });
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* deadline) noexcept {
  return past_rwlock(lock, CLOCK_REALTIME, deadline, pthread_rwlock_tryrdlock,
                     [=] { return system::pthread_rwlock_timedrdlock(lock, deadline); });
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* deadline) noexcept {
  return past_rwlock(lock, CLOCK_REALTIME, deadline, pthread_rwlock_trywrlock,
                     [=] { return system::pthread_rwlock_timedwrlock(lock, deadline); });
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                               const timespec* deadline) noexcept {
  return past_rwlock(lock, clock, deadline, pthread_rwlock_tryrdlock,
                     [=] { return system::pthread_rwlock_clockrdlock(lock, clock, deadline); });
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                               const timespec* deadline) noexcept {
  return past_rwlock(lock, clock, deadline, pthread_rwlock_trywrlock,
                     [=] { return system::pthread_rwlock_clockwrlock(lock, clock, deadline); });
}

int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  return past_semaphore(semaphore, CLOCK_REALTIME, deadline,
                        [=] { return system::sem_timedwait(semaphore, deadline); });
}
int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  return past_semaphore(semaphore, clock, deadline,
                        [=] { return system::sem_clockwait(semaphore, clock, deadline); });
}

}  // extern "C"
