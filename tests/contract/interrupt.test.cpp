// Mistake that would live without it: a wake-up that falls between the last look at the flag and
// the park is lost; a wait that a wake and the deadline end together says what did not happen; a
// wake that touches a waker which the woken thread has destroyed; a past or pending wait that
// enters the kernel after all.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/platform/portable.hpp>
#include <punctual/sleep.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

int rounds(int usual, int many) { return std::getenv("PUNCTUAL_LONG") != nullptr ? many : usual; }

/// Another thread that does one thing at a given instant, again and again.
class companion {
 public:
  template <class Action>
  explicit companion(Action action)
      : thread_([this, action] {
          for (int done = 0;;) {
            while (asked_.load(std::memory_order_acquire) == done) {
              if (over_.load(std::memory_order_acquire)) return;
              std::this_thread::yield();
            }
            ++done;
            while (steady::now() < at_) {
            }
            action();
            finished_.store(done, std::memory_order_release);
          }
        }) {}
  ~companion() {
    over_.store(true, std::memory_order_release);
    thread_.join();
  }
  companion(const companion&) = delete;
  companion& operator=(const companion&) = delete;

  void acts_at(instant at) {
    at_ = at;
    asked_.fetch_add(1, std::memory_order_release);
  }
  void wait_until_done() {
    while (finished_.load(std::memory_order_acquire) != asked_.load(std::memory_order_relaxed)) {
      std::this_thread::yield();
    }
  }

 private:
  instant at_{};
  std::atomic<int> asked_{0}, finished_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Spins until the instant, so that a wait begins there.
void begin_at(instant at) {
  while (steady::now() < at) {
  }
}

template <platform P>
int lost_near_the_entry(int rounds_to_go) {
  basic_waker<P> w;
  basic_sleeper<P> mine;
  companion other([&w] { w.wake(); });
  std::mt19937 random(11);
  int lost = 0;
  for (int i = 0; i < rounds_to_go; ++i) {
    const instant entry = steady::now() + 60us;
    other.acts_at(entry + nanoseconds{static_cast<int>(random() % 40'001) - 20'000});
    begin_at(entry);
    lost += sleep_until(mine, w, entry + 2s).why != outcome::woken;
    other.wait_until_done();
    lost += !w.pending();
    w.reset();
  }
  return lost;
}

}  // namespace

TEST_CASE("no wake within 20 us of the entry of a wait is lost",
          "[interrupt][contract][G9][threads]") {
  CHECK(lost_near_the_entry<native_platform>(rounds(5000, 20'000)) == 0);
}

TEST_CASE("no wake within 20 us of the entry of a wait is lost with the standard library alone",
          "[interrupt][contract][G9][threads]") {
  STATIC_REQUIRE(waker::signal_safe == native_platform::signal_safe_unpark);
  STATIC_REQUIRE_FALSE(basic_waker<portable_platform>::signal_safe);
  CHECK(lost_near_the_entry<portable_platform>(rounds(1000, 20'000)) == 0);
}

TEST_CASE("a wake that coincides with the deadline gives one verdict, true to what happened",
          "[interrupt][contract][G9][threads]") {
  waker w;
  instant done{};
  companion other([&] {
    w.wake();
    done = steady::now();
  });
  std::mt19937 random(12);
  int woken = 0, reached = 0, early = 0, untrue = 0;
  const int all = rounds(500, 2000);
  for (int i = 0; i < all; ++i) {
    // Every tenth wake is surely before the deadline, another tenth surely after it.
    const instant due = steady::now() + (i % 10 == 0 ? 20ms : 250us);
    const int apart = static_cast<int>(random() % 60'001) - 30'000;
    other.acts_at(due + (i % 10 == 0 ? -10ms : i % 10 == 1 ? 2ms : nanoseconds{apart}));
    const receipt did = sleep_until(w, due);
    const instant back = steady::now();
    const bool pending = w.pending();
    other.wait_until_done();
    woken += did.why == outcome::woken;
    const bool over = did.why == outcome::reached || did.why == outcome::already_past;
    reached += over;
    early += over && (back < due || did.left != 0ns);
    untrue += did.why == outcome::woken && (!pending || did.late != 0ns);
    untrue += done < due && did.why != outcome::woken;
    w.reset();
  }
  CHECK(early == 0);
  CHECK(untrue == 0);
  CHECK(woken + reached == all);
  CHECK(woken > 0);
  CHECK(reached > 0);
}

TEST_CASE("one wake ends the waits of eight threads, also if it is reset at once",
          "[interrupt][contract][G9][threads]") {
  for (int round = 0; round < rounds(20, 500); ++round) {
    waker w;
    std::atomic<int> woken{0}, ended{0};
    std::vector<std::thread> waiters;
    for (int i = 0; i < 8; ++i) {
      waiters.emplace_back([&, i] {
        const receipt did = i % 2 == 0 ? sleep_for(w, 30s) : block_for(w, 30s);
        woken += did.why == outcome::woken;
        ++ended;
      });
    }
    const bool resets = round % 2 == 1;
    do {
      std::this_thread::sleep_for(2ms);
      w.wake();
      if (resets) w.reset();
    } while (resets && ended != 8);  // one that had not begun yet waits for the next
    for (std::thread& each : waiters) each.join();
    CHECK(woken == 8);
    CHECK(w.pending() == !resets);
  }
}

TEST_CASE("what was written before a wake is seen by whoever it has woken",
          "[interrupt][contract][G9][threads]") {
  waker w;
  int written = 0;  // not atomic: the waker orders it
  companion other([&] {
    ++written;
    w.wake();
    w.wake();  // pending already: orders no less
  });
  int seen_wrong = 0;
  for (int i = 1; i <= rounds(500, 5000); ++i) {
    other.acts_at(steady::now() + (i % 3) * 40us);
    seen_wrong += sleep_for(w, 2s).why != outcome::woken;
    seen_wrong += written != i;
    other.wait_until_done();
    w.reset();
  }
  CHECK(seen_wrong == 0);
}

TEST_CASE("a woken thread may destroy the waker at once", "[interrupt][contract][G9][threads]") {
  std::atomic<waker*> where{nullptr};
  companion other([&where] { where.load(std::memory_order_acquire)->wake(); });
  int lost = 0;
  for (int i = 0; i < rounds(1000, 10'000); ++i) {
    auto w = std::make_unique<waker>();
    where.store(w.get(), std::memory_order_release);
    const instant entry = steady::now() + 30us;
    other.acts_at(entry + (i % 40 - 20) * 1us);
    begin_at(entry);
    lost += sleep_for(*w, 2s).why != outcome::woken;
    w.reset();  // frees it, while the wake may be on its way to the kernel
    other.wait_until_done();
  }
  CHECK(lost == 0);
}

#if defined(__cpp_lib_jthread)
TEST_CASE("no stop within 20 us of the entry of a wait is lost",
          "[interrupt][contract][G9][threads]") {
  std::stop_source source;
  companion other([&source] { source.request_stop(); });
  std::mt19937 random(13);
  int lost = 0;
  for (int i = 0; i < rounds(2000, 20'000); ++i) {
    const instant entry = steady::now() + 60us;
    other.acts_at(entry + nanoseconds{static_cast<int>(random() % 40'001) - 20'000});
    const std::stop_token token = source.get_token();
    begin_at(entry);
    lost += sleep_until(token, entry + 2s).why != outcome::stopped;
    other.wait_until_done();
    source = std::stop_source{};
  }
  CHECK(lost == 0);
}

TEST_CASE("one stop ends the waits of eight threads", "[interrupt][contract][G9][threads]") {
  for (int round = 0; round < rounds(20, 500); ++round) {
    std::stop_source source;
    std::atomic<int> stopped{0};
    std::vector<std::thread> waiters;
    for (int i = 0; i < 8; ++i) {
      waiters.emplace_back([&, i, token = source.get_token()] {
        const receipt did = i % 2 == 0 ? sleep_for(token, 30s) : block_for(token, 30s);
        stopped += did.why == outcome::stopped;
      });
    }
    if (round % 2 == 0) std::this_thread::sleep_for(2ms);
    source.request_stop();
    for (std::thread& each : waiters) each.join();
    CHECK(stopped == 8);
  }
}
#endif

namespace {
constinit waker signalled;
std::atomic<int> errno_changed{0};
void wake_in_handler(int) {
  const int kept = errno;
  errno = 4711;
  signalled.wake();
  if (errno != 4711) ++errno_changed;
  errno = kept;
}
}  // namespace

TEST_CASE("a signal handler wakes the very thread that it interrupts, and keeps errno",
          "[interrupt][contract][G9]") {
  REQUIRE(waker::signal_safe);
  struct sigaction action {
  }, before{};
  action.sa_handler = wake_in_handler;
  ::sigaction(SIGUSR1, &action, &before);
  const pthread_t me = ::pthread_self();
  errno_changed = 0;
  int lost = 0;
  {
    companion other([me] { ::pthread_kill(me, SIGUSR1); });
    for (int i = 0; i < rounds(1000, 10'000); ++i) {
      const instant entry = steady::now() + 40us;
      other.acts_at(entry + (i % 60 - 20) * 1us);
      begin_at(entry);
      lost += sleep_for(signalled, 2s).why != outcome::woken;
      other.wait_until_done();
      signalled.reset();
    }
  }
  ::sigaction(SIGUSR1, &before, nullptr);
  CHECK(lost == 0);
  CHECK(errno_changed == 0);
}

TEST_CASE("signals at 2 kHz neither end nor move interruptible waits",
          "[interrupt][contract][G3]") {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR2, &action, &before);
  std::atomic<bool> over{false};
  std::thread signals([&over, me = ::pthread_self()] {
    while (!over) {
      ::pthread_kill(me, SIGUSR2);
      std::this_thread::sleep_for(500us);
    }
  });
  waker w;
  int wrong = 0;
  std::uint32_t interruptions = 0;
  for (int i = 0; i < 5; ++i) {
    const instant due = steady::now() + 100ms;
    const receipt did = sleep_until(w, due);
    wrong += did.why != outcome::reached || steady::now() < due;
    interruptions += did.interruptions;
  }
  over = true;
  signals.join();
  ::sigaction(SIGUSR2, &before, nullptr);
  CHECK(wrong == 0);
  CHECK(interruptions > 100);
}

TEST_CASE("pending, stopped, met, available and past make no system call at all",
          "[interrupt][contract][G2]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  const int code = support::in_child([] {
    sleep_for(1ms);  // the thread's first wait may
    static_cast<void>(std::chrono::system_clock::now());
    waker woken, quiet;
    std::mutex mutex;
    std::condition_variable condition;
    std::condition_variable_any any;
    std::unique_lock lock(mutex);
    std::timed_mutex taken, available;
    taken.lock();
    std::counting_semaphore<> some{100'000};
    if (!support::die_of_calls_except({SYS_exit_group, SYS_exit})) return 77;
    woken.wake();  // nobody is parked
    for (int i = 0; i < 1000; ++i) {
      const instant ahead = steady::now() + 1h;
      if (sleep_until(woken, ahead).why != outcome::woken) return 1;
      if (block_until(woken, ahead).why != outcome::woken) return 2;
      if (wait_until(condition, lock, ahead, [] { return true; }) != true) return 3;
      if (!try_lock_until(available, ahead)) return 4;
      available.unlock();
      if (!try_acquire_until(some, ahead)) return 5;
      for (const auto ago : {0ns, 1ns, 1'000'000ns, 3'600'000'000'000ns}) {
        const auto past = steady::now() - ago;
        const auto wall = std::chrono::system_clock::now() - ago;
        if (sleep_until(quiet, past).why != outcome::already_past) return 6;
        if (sleep_until(quiet, wall).why != outcome::already_past) return 7;
        if (sleep_until(woken, past).why != outcome::woken) return 8;
        if (wait_until(condition, lock, past, [] { return false; })) return 9;
        if (wait_until(any, lock, wall, [] { return false; })) return 10;
        if (wait_until(condition, lock, past) != std::cv_status::timeout) return 11;
        if (wait_until(any, lock, wall) != std::cv_status::timeout) return 12;
        if (try_lock_until(taken, past) || try_lock_until(taken, wall)) return 13;
      }
      quiet.wake();
      quiet.reset();
    }
#if defined(__cpp_lib_jthread)
    std::stop_source source;
    const std::stop_token token = source.get_token();
    for (int i = 0; i < 1000; ++i) {
      if (sleep_until(token, steady::now() - 1ms).why != outcome::already_past) return 15;
    }
    source.request_stop();
    for (int i = 0; i < 1000; ++i) {
      if (sleep_until(token, steady::now() + 1h).why != outcome::stopped) return 16;
      if (block_until(token, steady::now() - 1h).why != outcome::stopped) return 17;
    }
#endif
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("a past deadline for an empty semaphore makes no futex call",
          "[interrupt][contract][G2]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  const int code = support::in_child([] {
    std::counting_semaphore<> none{0};
    // The standard library's own try_acquire yields a few times.
    if (!support::die_of_calls_except({SYS_exit_group, SYS_exit, SYS_sched_yield})) return 77;
    for (int i = 0; i < 1000; ++i) {
      if (try_acquire_until(none, steady::now() - 1ms)) return 1;
      if (try_acquire_until(none, std::chrono::system_clock::now())) return 2;
    }
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("an interruptible wait parks in a futex and makes no other call but for the slack",
          "[interrupt][contract][G4]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  const int code = support::in_child([] {
    waker w;
    sleep_for(w, 1ms);
    if (!support::die_of_calls_except(
            {SYS_exit_group, SYS_exit, SYS_futex, SYS_prctl, SYS_clock_gettime})) {
      return 77;
    }
    for (int i = 0; i < 200; ++i) {
      sleep_for(w, 200us);
      block_for(w, 20us);
      sleep_until(w, std::chrono::system_clock::now() + 50us);
    }
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("interruptible waits allocate nothing and hand the thread back as it was",
          "[interrupt][contract][G4][G8]") {
  waker w;
#if defined(__cpp_lib_jthread)
  std::stop_source source;
  const std::stop_token token = source.get_token();
#endif
  sleep_for(w, 100us);
  const auto in_use = [] {
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  ::prctl(PR_SET_TIMERSLACK, 70'000UL, 0, 0, 0);
  const auto before = in_use();
  errno = 4711;
  for (int i = 0; i < 50; ++i) {
    sleep_for(w, 100us);
    block_for(w, 20us);
    sleep_until(w, std::chrono::system_clock::now() + 100us);
#if defined(__cpp_lib_jthread)
    sleep_for(token, 100us);
#endif
  }
  CHECK(errno == 4711);
  CHECK(in_use() == before);
  CHECK(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 70'000);
  ::prctl(PR_SET_TIMERSLACK, 0UL, 0, 0, 0);
}

TEST_CASE("a child of fork waits with wakers and stop tokens that its parent waits with",
          "[interrupt][contract][G9]") {
  if (support::sanitized) return support::skip("a sanitizer's threads do not outlive a fork");
  waker w;
  std::thread parked([&w] { sleep_for(w, 30s); });
  std::this_thread::sleep_for(5ms);  // it is parked, and the child's copy says so
  const int code = support::in_child([&w] {
    if (sleep_for(w, 2ms).why != outcome::reached) return 1;
    std::thread other([&w] {
      std::this_thread::sleep_for(5ms);
      w.wake();
    });
    const outcome why = sleep_for(w, 10s).why;
    other.join();
    if (why != outcome::woken) return 2;
#if defined(__cpp_lib_jthread)
    std::stop_source source;
    std::thread stops([&source] {
      std::this_thread::sleep_for(5ms);
      source.request_stop();
    });
    const outcome ended = sleep_for(source.get_token(), 10s).why;
    stops.join();
    if (ended != outcome::stopped) return 3;
#endif
    return 0;
  });
  CHECK(code == 0);
  CHECK_FALSE(w.pending());  // the child's wake was its own
  w.wake();
  parked.join();
}

TEST_CASE("a thread that is cancelled while it waits for a condition unwinds, and frees the lock",
          "[interrupt][contract][G8]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  struct shared {
    std::mutex mutex;
    std::condition_variable condition;
    std::atomic<bool> waiting{false};
  } seen;
  const auto body = [](void* data) -> void* {
    auto& s = *static_cast<shared*>(data);
    std::unique_lock lock(s.mutex);
    wait_until(s.condition, lock, steady::now() + 30s, [&s] {
      s.waiting = true;
      return false;
    });
    return nullptr;
  };
  pthread_t waiter{};
  REQUIRE(::pthread_create(&waiter, nullptr, body, &seen) == 0);
  while (!seen.waiting) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);
  REQUIRE(::pthread_cancel(waiter) == 0);
  void* result = nullptr;
  ::pthread_join(waiter, &result);
  CHECK(result == PTHREAD_CANCELED);
  const bool is_free = seen.mutex.try_lock();
  CHECK(is_free);
  if (is_free) seen.mutex.unlock();
}

TEST_CASE("a cancelled thread is not ended inside an interruptible wait",
          "[interrupt][contract][G8]") {
  struct shared {
    std::atomic<bool> waiting{false}, ended{false};
    waker w;
  } seen;
  pthread_t waiter{};
  const auto body = [](void* data) -> void* {
    auto& s = *static_cast<shared*>(data);
    s.waiting = true;
    s.ended = sleep_for(s.w, 30s).why == outcome::woken;
    ::pthread_testcancel();
    return nullptr;
  };
  REQUIRE(::pthread_create(&waiter, nullptr, body, &seen) == 0);
  while (!seen.waiting) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);
  REQUIRE(::pthread_cancel(waiter) == 0);
  std::this_thread::sleep_for(5ms);
  seen.w.wake();
  void* result = nullptr;
  ::pthread_join(waiter, &result);
  CHECK(seen.ended);
  CHECK(result == PTHREAD_CANCELED);
}

namespace {

template <class Condition, class Mutex, class Clock>
void meets_a_condition_around_the_deadline(int rounds_to_go) {
  Condition condition;
  Mutex mutex;
  bool flag = false;
  instant set{};
  companion other([&] {
    {
      const std::lock_guard lock(mutex);
      flag = true;
      set = steady::now();
    }
    condition.notify_one();
  });
  std::mt19937 random(14);
  int early = 0, untrue = 0, met = 0, unmet = 0;
  for (int i = 0; i < rounds_to_go; ++i) {
    const nanoseconds length = i % 10 == 0 ? 20ms : 400us;
    const instant due = steady::now() + length;
    const auto deadline = Clock::now() + length;
    const int apart = static_cast<int>(random() % 200'001) - 150'000;
    other.acts_at(due + (i % 10 == 0 ? -length : i % 10 == 1 ? 2ms : nanoseconds{apart}));
    std::unique_lock<Mutex> lock(mutex);
    const bool said = wait_until(condition, lock, deadline, [&flag] { return flag; });
    const bool over = Clock::now() >= deadline;
    untrue += said != flag || !lock.owns_lock();
    early += !said && !over;
    (said ? met : unmet) += 1;
    lock.unlock();
    other.wait_until_done();
    untrue += set < due - 50us && !said;
    flag = false;
  }
  CHECK(early == 0);
  CHECK(untrue == 0);
  CHECK(met > 0);
  CHECK(unmet > 0);
}

}  // namespace

TEST_CASE("a condition met around the deadline, in the native wait or in the spin, is never missed",
          "[interrupt][contract][G9][threads]") {
  using wall = std::chrono::system_clock;
  const int n = rounds(300, 5000);
  meets_a_condition_around_the_deadline<std::condition_variable, std::mutex, steady>(n);
  meets_a_condition_around_the_deadline<std::condition_variable, std::mutex, wall>(n);
  meets_a_condition_around_the_deadline<std::condition_variable_any, std::shared_mutex, steady>(n);
}

TEST_CASE("a wait without a predicate ends by a notification or at the deadline, not before it",
          "[interrupt][contract][G1][threads]") {
  std::condition_variable condition;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  for (int i = 0; i < 20; ++i) {
    const instant due = steady::now() + 1ms;
    const std::cv_status how = wait_until(condition, lock, due);
    CHECK((how == std::cv_status::no_timeout || steady::now() >= due));
  }
  std::thread notifier([&] {
    const std::lock_guard inside(mutex);  // only once the wait has given it up
    condition.notify_one();
  });
  const std::cv_status how = wait_until(condition, lock, steady::now() + 30s);
  CHECK(how == std::cv_status::no_timeout);
  lock.unlock();
  notifier.join();
}

TEST_CASE("timed mutexes and semaphores are waited for until the deadline, on any clock",
          "[interrupt][contract][G1]") {
  // libtsan does not know pthread_mutex_clocklock, by which a timed mutex is locked.
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  std::timed_mutex mutex;
  std::counting_semaphore<> semaphore{0};
  mutex.lock();
  std::thread other([&] {
    int wrong = 0;
    for (int i = 0; i < 10; ++i) {
      instant due = steady::now() + 1ms;
      wrong += try_lock_until(mutex, due) || steady::now() < due;
      auto wall = std::chrono::system_clock::now() + 1ms;
      wrong += try_lock_until(mutex, wall) || std::chrono::system_clock::now() < wall;
      due = steady::now() + 1ms;
      wrong += try_acquire_until(semaphore, due) || steady::now() < due;
      wall = std::chrono::system_clock::now() + 1ms;
      wrong += try_acquire_until(semaphore, wall) || std::chrono::system_clock::now() < wall;
    }
    CHECK(wrong == 0);
  });
  other.join();
  std::atomic<int> got{0};
  std::thread patient([&] {
    got += try_lock_until(mutex, (steady::time_point::max)());
    mutex.unlock();
    got += try_acquire_until(semaphore, (steady::time_point::max)());
    got += try_acquire_until(semaphore, steady::now() + 30s);
  });
  std::this_thread::sleep_for(5ms);
  mutex.unlock();
  std::this_thread::sleep_for(5ms);
  semaphore.release();
  std::this_thread::sleep_for(5ms);
  semaphore.release();
  patient.join();
  CHECK(got == 3);
}

/// A clock of the user's own, as fast as the steady one, with a far end that overflows when it is
/// converted.
struct own_clock {
  using duration = nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<own_clock>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  static time_point now() noexcept { return time_point{steady::now().time_since_epoch()}; }
};

TEST_CASE("timed mutexes, semaphores and conditions know the far end of a user's clock",
          "[interrupt][contract][G5]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  constexpr auto far = std::chrono::time_point<own_clock, std::chrono::hours>::max();
  std::timed_mutex mutex;
  std::counting_semaphore<> semaphore{0};
  std::mutex plain;
  std::condition_variable condition;
  bool flag = false;
  mutex.lock();
  int got = 0;
  nanoseconds ran{0};
  std::thread patient([&] {
    const auto cpu = [] {
      timespec t{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return nanoseconds{std::chrono::seconds{t.tv_sec}} + nanoseconds{t.tv_nsec};
    };
    const nanoseconds before = cpu();
    got += try_lock_until(mutex, far);
    mutex.unlock();
    got += try_acquire_until(semaphore, far);
    std::unique_lock lock(plain);
    got += wait_until(condition, lock, far, [&flag] { return flag; });
    got += wait_until(condition, lock, far - std::chrono::hours{1}) == std::cv_status::no_timeout;
    got += !try_acquire_until(semaphore, own_clock::now() + 1ms);
    ran = cpu() - before;
  });
  std::this_thread::sleep_for(30ms);
  mutex.unlock();
  std::this_thread::sleep_for(30ms);
  semaphore.release();
  std::this_thread::sleep_for(30ms);
  for (int i = 0; i < 2; ++i) {
    {
      const std::lock_guard inside(plain);
      flag = true;
    }
    condition.notify_one();
    std::this_thread::sleep_for(30ms);
  }
  patient.join();
  CHECK(got == 5);
  CHECK(ran < 30ms);  // of 150 ms: it was asleep
}

namespace {
/// A clock of the user's own that counts how often it is asked, and stands still until an instant.
struct halted_clock : own_clock {
  using time_point = std::chrono::time_point<halted_clock>;
  static inline std::atomic<int> asked{0};
  static inline instant until{};
  static time_point now() noexcept {
    ++asked;
    const instant seen = steady::now();
    return time_point{seen < until ? -1ns : 1s};
  }
};
}  // namespace

TEST_CASE("a user's clock that stands still just before a deadline is not asked in a hot loop",
          "[interrupt][contract][G6]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  std::timed_mutex mutex;
  std::counting_semaphore<> semaphore{0};
  mutex.lock();
  std::array<int, 2> asked{};
  int got = 0;
  std::thread patient([&] {
    const halted_clock::time_point due{};  // 1 ns ahead, until the clock moves on
    for (int& each : asked) {
      halted_clock::until = steady::now() + 200ms;
      halted_clock::asked = 0;
      got += &each == asked.data() ? try_lock_until(mutex, due) : try_acquire_until(semaphore, due);
      each = halted_clock::asked;
    }
  });
  patient.join();
  CHECK(got == 0);
  for (const int each : asked) {
    CHECK(each > 10);
    CHECK(each < 200);
  }
}

TEST_CASE("the far end waits for ever for a condition, too", "[interrupt][contract][G5][threads]") {
  std::condition_variable condition;
  std::mutex mutex;
  bool flag = false;
  int met = 0;
  for (int i = 0; i < 4; ++i) {
    std::thread other([&] {
      std::this_thread::sleep_for(20ms);
      const std::lock_guard inside(mutex);
      flag = true;
      condition.notify_one();
    });
    std::unique_lock lock(mutex);
    const auto is_set = [&flag] { return flag; };
    using hours = std::chrono::duration<double, std::ratio<3600>>;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    met += i == 0 ? wait_until(condition, lock, (steady::time_point::max)(), is_set)
           : i == 1
               ? wait_until(condition, lock, (std::chrono::system_clock::time_point::max)(), is_set)
           : i == 2 ? wait_until(condition, lock,
                                 std::chrono::time_point<steady, hours>(hours(infinity)), is_set)
                    : wait_until(condition, lock, (steady::time_point::max)()) ==
                          std::cv_status::no_timeout;
    lock.unlock();
    other.join();
    flag = false;
  }
  CHECK(met == 4);
}
