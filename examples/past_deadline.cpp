// What a deadline costs that is already past: the standard library and the C library enter the
// kernel for it, which on a virtual machine takes some 16 us; punctual reads a clock.
//
// A loop that is late waits for such deadlines all the time. The first program of this kind was
// Mike Crowe's, for glibc: two condition variables, each waited for with a time that is past, and
// the mean duration.
//
//   past_deadline                      2000 calls of each
//   past_deadline 100000               so many
// smoke: 100
#include <punctual/interrupt.hpp>
#include <punctual/sleep.hpp>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <mutex>
#include <semaphore>
#include <thread>

#include <pthread.h>
#include <semaphore.h>

using namespace std::chrono_literals;
using punctual::steady;
using wall = std::chrono::system_clock;

namespace {

int calls = 2000;

/// Mean duration in nanoseconds. The deadline is one second past, and renewed for each round.
template <class Call>
double mean(Call call) {
  for (int i = 0; i < calls / 10; ++i) call();
  const auto from = steady::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double, std::nano>(steady::now() - from).count() / calls;
}

void row(const char* what, double standard, double ours) {
  if (ours > 0) {
    std::printf("%-46s %10.0f %10.0f %8.0f x\n", what, standard, ours, standard / ours);
  } else {
    std::printf("%-46s %10.0f %10s\n", what, standard, "-");
  }
}

timespec past(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  --t.tv_sec;
  return t;
}

/// pthread_cond_timedwait on one clock, as Mike Crowe's program has it.
double pthread_condition(clockid_t clock) {
  pthread_condattr_t attributes;
  pthread_cond_t condition;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  ::pthread_condattr_init(&attributes);
  ::pthread_condattr_setclock(&attributes, clock);
  ::pthread_cond_init(&condition, &attributes);
  ::pthread_mutex_lock(&mutex);
  const timespec at = past(clock);
  const double ns = mean([&] { ::pthread_cond_timedwait(&condition, &mutex, &at); });
  ::pthread_mutex_unlock(&mutex);
  ::pthread_cond_destroy(&condition);
  ::pthread_condattr_destroy(&attributes);
  return ns;
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) calls = std::atoi(words[1]);
  if (calls < 10) {
    std::fprintf(stderr, "usage: past_deadline [CALLS]\n");
    return 2;
  }
  const auto long_ago = steady::now() - 1s;
  const auto long_ago_wall = wall::now() - 1s;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable condition;
  std::timed_mutex taken;
  taken.lock();
  std::counting_semaphore<> empty{0};
  std::promise<void> promise;
  const std::future<void> future = promise.get_future();
  const auto no = [] { return false; };
  const timespec at = past(CLOCK_MONOTONIC);

  std::printf("%-46s %10s %10s\n", "mean duration in ns, deadline 1 s past", "standard",
              "punctual");
  row("a clock read", mean([] { static_cast<void>(steady::now()); }),
      mean([] { punctual::native_platform::now(punctual::clock_kind::monotonic); }));
  row("sleep until, steady clock", mean([&] { std::this_thread::sleep_until(long_ago); }),
      mean([&] { punctual::sleep_until(long_ago); }));
  row("clock_nanosleep, absolute",
      mean([&] { ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr); }), 0);
  row("nanosleep(0)", mean([] {
        const timespec none{};
        ::nanosleep(&none, nullptr);
      }),
      0);
  row("pthread_cond_timedwait, realtime (the default)", pthread_condition(CLOCK_REALTIME), 0);
  row("pthread_cond_timedwait, monotonic", pthread_condition(CLOCK_MONOTONIC), 0);
  row("condition variable, predicate, steady clock",
      mean([&] { condition.wait_until(lock, long_ago, no); }),
      mean([&] { punctual::wait_until(condition, lock, long_ago, no); }));
  row("condition variable, predicate, system clock",
      mean([&] { condition.wait_until(lock, long_ago_wall, no); }),
      mean([&] { punctual::wait_until(condition, lock, long_ago_wall, no); }));
  row("condition variable, no predicate", mean([&] { condition.wait_until(lock, long_ago); }),
      mean([&] { punctual::wait_until(condition, lock, long_ago); }));
  row(
      "timed mutex, taken by another thread",
      [&] {
        double ns = 0;
        std::thread([&] {
          ns = mean([&] { static_cast<void>(taken.try_lock_until(long_ago)); });
        }).join();
        return ns;
      }(),
      [&] {
        double ns = 0;
        std::thread([&] { ns = mean([&] { punctual::try_lock_until(taken, long_ago); }); }).join();
        return ns;
      }());
  row("semaphore (libstdc++ yields first)",
      mean([&] { static_cast<void>(empty.try_acquire_until(long_ago)); }),
      mean([&] { punctual::try_acquire_until(empty, long_ago); }));
  sem_t posix{};
  ::sem_init(&posix, 0, 0);
  const timespec at_wall = past(CLOCK_REALTIME);
  row("sem_timedwait", mean([&] { ::sem_timedwait(&posix, &at_wall); }), 0);
  row("future", mean([&] { static_cast<void>(future.wait_until(long_ago)); }), 0);
  taken.unlock();
}
