// Mistake that would live without it: the plug-in's functions lose time in rounding, sleep on when
// another thread has queued work, return early, or take long at the start.
#include "punctual_simh.h"

#include "support/catch.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

nanoseconds now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}

// What sim_timer.c has: a lock, a condition, a flag, and a queue.
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
volatile int waiting = 0;
std::atomic<int> queued{0};
int pending() { return queued.load(); }

/// As AIO_ACTIVATE: queue, then signal if somebody waits.
void activate() {
  ++queued;
  if (waiting != 0) {
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
  }
}

}  // namespace

TEST_CASE("the start takes at most 250 ms and leaves a shortest sleep of 1 ms", "[simh]") {
  const nanoseconds from = now();
  CHECK(sim_os_ms_sleep_init() == 1);
  CHECK(now() - from <= 250ms + 100ms);  // the machine may be busy
  const nanoseconds again = now();
  CHECK(sim_os_ms_sleep_init() == 1);
  CHECK(now() - again < 50ms);
  CHECK(punctual_simh_kernel_floor_ns() > 0);
  CHECK(punctual_simh_kernel_step_ns() >= 0);
}

TEST_CASE("the milliseconds that sleeps answer add up to the time that they took", "[simh][G1]") {
  for (const auto sleep : {sim_os_ms_sleep, sim_idle_ms_sleep}) {
    const nanoseconds from = now();
    unsigned total = 0;
    for (int i = 0; i < 40; ++i) {
      const nanoseconds begun = now();
      total += sleep(1);
      CHECK(now() - begun >= 1ms);
    }
    const nanoseconds took = now() - from;
    CHECK(std::chrono::milliseconds{total} <= took + 1ms);
    CHECK(std::chrono::milliseconds{total} >= 39ms);
    // What passed between the sleeps is not theirs.
    CHECK(std::chrono::milliseconds{total} >= took * 3 / 4 - 1ms);
  }
}

TEST_CASE("the millisecond clock is steady and wraps as callers expect", "[simh]") {
  const auto expected = static_cast<unsigned>(now() / 1ms);
  const unsigned seen = sim_os_msec();
  CHECK(seen - expected < 1000);
  CHECK(punctual_simh_now_ns() >= now().count() - 1'000'000'000);
}

TEST_CASE("a sleep in nanoseconds answers how long it took", "[simh][G1][G5]") {
  for (const std::int64_t length : {1'000, 250'000, 3'000'000}) {
    const nanoseconds from = now();
    const std::int64_t said = punctual_simh_sleep_ns(length);
    const nanoseconds took = now() - from;
    CHECK(said >= length);
    CHECK(said <= took.count());
  }
  for (const std::int64_t none : {std::int64_t{0}, std::int64_t{-5}, INT64_MIN}) {
    const nanoseconds from = now();
    CHECK(punctual_simh_sleep_ns(none) >= 0);
    CHECK(now() - from < 1s);
  }
}

TEST_CASE("an idle simulator wakes for queued work, and sleeps out where there is none",
          "[simh][G9]") {
  queued = 0;
  int woken = -1;
  nanoseconds from = now();
  CHECK(punctual_simh_idle(&lock, &wake, &waiting, pending, 5, &woken) >= 4);
  CHECK(now() - from >= 5ms);
  CHECK(woken == 0);
  CHECK(waiting == 0);

  for (int i = 0; i < 50; ++i) {  // at any moment of the sleep, also while it spins
    queued = 0;
    std::atomic<bool> begun{false};
    std::thread other([&] {
      while (!begun) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds{i * 45});
      activate();
    });
    begun = true;
    from = now();
    punctual_simh_idle(&lock, &wake, &waiting, pending, 2, &woken);
    const nanoseconds took = now() - from;
    CHECK((woken == 1 || took >= 2ms));
    other.join();
  }

  queued = 0;
  std::thread other([] {
    std::this_thread::sleep_for(10ms);
    activate();
  });
  from = now();
  punctual_simh_idle(&lock, &wake, &waiting, pending, 20'000, &woken);
  CHECK(now() - from < 10s);
  CHECK(woken == 1);
  other.join();

  from = now();  // work that is there already
  punctual_simh_idle(&lock, &wake, &waiting, pending, 5000, &woken);
  CHECK(now() - from < 2s);
  CHECK(woken == 1);
}

TEST_CASE("a timed wait ends at its due time, or when it is signalled, with the mutex held",
          "[simh][G1]") {
  const auto due_in = [](nanoseconds length) {
    const nanoseconds t = now(CLOCK_REALTIME) + length;
    return timespec{static_cast<time_t>(t.count() / 1'000'000'000),
                    static_cast<long>(t.count() % 1'000'000'000)};
  };
  pthread_mutex_t own;
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&own, &kind);
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&own);
  for (int i = 0; i < 20; ++i) {
    const timespec due = due_in(2ms);
    CHECK(punctual_simh_timedwait(&condition, &own, &due) == ETIMEDOUT);
    CHECK(now(CLOCK_REALTIME) >= std::chrono::seconds{due.tv_sec} + nanoseconds{due.tv_nsec});
  }
  const timespec past{1, 0};
  CHECK(punctual_simh_timedwait(&condition, &own, &past) == ETIMEDOUT);
  std::thread other([&] {
    pthread_mutex_lock(&own);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&own);
  });
  const timespec late = due_in(20s);
  CHECK(punctual_simh_timedwait(&condition, &own, &late) == 0);
  CHECK(pthread_mutex_unlock(&own) == 0);  // held by us
  other.join();
}

TEST_CASE("the throttle keeps its rate, and forgives a stop", "[simh]") {
  punctual_simh_throttle(1000, 1e6);
  nanoseconds from = now();
  for (int i = 0; i < 50; ++i) punctual_simh_throttle(1000, 1e6);  // 1 ms each
  nanoseconds took = now() - from;
  CHECK(took >= 48ms);
  CHECK(took < 150ms);
  std::this_thread::sleep_for(20ms);  // late, and made up for
  from = now();
  for (int i = 0; i < 40; ++i) punctual_simh_throttle(1000, 1e6);
  CHECK(now() - from <= 40ms + 100ms);
  std::this_thread::sleep_for(300ms);  // stopped, and not made up for
  from = now();
  for (int i = 0; i < 20; ++i) punctual_simh_throttle(1000, 1e6);
  CHECK(now() - from >= 18ms);
  CHECK(punctual_simh_throttle(1, 0) == 0);  // no rate at all
}
