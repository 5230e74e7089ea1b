// Two threads, one of which waits and the other wakes it: how long that takes, by several ways to
// wait.
//
// The wake comes at a random time while the waiter is parked, each way in turn within one run; both
// threads read the same clock. A round in which the waiter had not yet parked, or had returned by
// itself, is not counted.
#pragma once

#include "samples.hpp"
#include "thread_cost.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/sleep.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {

/// Times from just before a wake to the return of the waiter, in nanoseconds, by way of waiting.
struct wake_times {
  std::vector<double> futex;      ///< FUTEX_WAIT and FUTEX_WAKE, nothing else
  std::vector<double> waker;      ///< ours, parked
  std::vector<double> stop;       ///< a stop token, parked
  std::vector<double> condition;  ///< std::condition_variable
  std::vector<double> spinning;   ///< ours, in the final spin
};

/// Runs one thing in another thread, when told to.
class other_thread {
 public:
  template <class Body>
  explicit other_thread(Body body)
      : thread_([this, body] {
          for (int done = 0;;) {
            int asked = 0;
            while ((asked = asked_.load(std::memory_order_acquire)) == done) asked_.wait(done);
            if (asked < 0) return;
            body();
            ++done;
            finished_.store(done, std::memory_order_release);
          }
        }) {}
  ~other_thread() {
    asked_.store(-1, std::memory_order_release);
    asked_.notify_one();
    thread_.join();
  }
  other_thread(const other_thread&) = delete;
  other_thread& operator=(const other_thread&) = delete;

  void start() {
    asked_.fetch_add(1, std::memory_order_release);
    asked_.notify_one();
  }
  void join() {
    while (finished_.load(std::memory_order_acquire) != asked_.load(std::memory_order_relaxed)) {
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<int> asked_{0}, finished_{0};
  std::thread thread_;
};

/// One way to wait: `wait(deadline)` says whether it was woken; `wake()`, then `again()` before the
/// next.
template <class Wait, class Wake, class Again>
class wake_round {
 public:
  wake_round(Wait wait, Wake wake, Again again)
      : wait_(wait), wake_(wake), again_(again), waiter_([this] {
          begun_ = now();
          woken_ = wait_(begun_.load() + length_);
          back_ = now();
        }) {}

  /// Wakes so long after the waiter has begun; records how long it took.
  void run(std::vector<double>& into, nanoseconds after, nanoseconds length) {
    again_();
    begun_ = instant{};
    length_ = length;
    waiter_.start();
    while (begun_.load() == instant{}) {
    }
    const instant at = begun_.load() + after;
    while (now() < at) {
    }
    const instant from = now();
    wake_();
    waiter_.join();
    if (woken_ && back_ > from) into.push_back(static_cast<double>((back_ - from).count()));
  }

 private:
  Wait wait_;
  Wake wake_;
  Again again_;
  std::atomic<instant> begun_{instant{}};
  nanoseconds length_{0};
  bool woken_ = false;
  instant back_{};
  other_thread waiter_;
};

/// Measures all ways, each `rounds` times, in turn.
///
/// A waiter has been parked for 1 to 2 ms when it is woken. An idle processor may poll for work for
/// a while before it halts (Linux's haltpoll in guests, for 200 us), and is ten times faster as
/// long as it does: of times on both sides of that a median says nothing.
inline wake_times measure_wakes(int rounds) {
  using namespace std::chrono_literals;
  wake_times all;
  const nanoseconds for_long = 10s;

  std::atomic<std::uint32_t> word{0};
  wake_round futex(
      [&word](instant) {
        while (word == 0) ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
        return true;
      },
      [&word] {
        word = 1;
        ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
      },
      [&word] { word = 0; });

  punctual::waker parked;
  wake_round by_waker(
      [&parked](instant until) {
        return punctual::sleep_until(parked, until).why == punctual::outcome::woken;
      },
      [&parked] { parked.wake(); }, [&parked] { parked.reset(); });

  std::mutex mutex;
  std::condition_variable condition;
  bool flag = false;
  wake_round by_condition(
      [&](instant until) {
        std::unique_lock lock(mutex);
        return condition.wait_until(lock, until, [&flag] { return flag; });
      },
      [&] {
        {
          const std::lock_guard lock(mutex);
          flag = true;
        }
        condition.notify_one();
      },
      [&flag] { flag = false; });

#if defined(__cpp_lib_jthread)
  std::stop_source source;
  wake_round by_stop(
      [&source](instant until) {
        return punctual::sleep_until(source.get_token(), until).why == punctual::outcome::stopped;
      },
      [&source] { source.request_stop(); }, [&source] { source = std::stop_source{}; });
#endif

  // A wait of 25 us is all spin, or ends in one.
  punctual::waker spun;
  wake_round in_spin(
      [&spun](instant until) {
        const punctual::receipt did = punctual::sleep_until(spun, until);
        return did.why == punctual::outcome::woken && did.spun > nanoseconds::zero();
      },
      [&spun] { spun.wake(); }, [&spun] { spun.reset(); });

  std::mt19937 random(1);
  for (int i = 0; i < rounds; ++i) {
    const auto after = [&random] {
      return nanoseconds{1'000'000 + static_cast<int>(random() % 1'000'000)};
    };
    futex.run(all.futex, after(), for_long);
    by_waker.run(all.waker, after(), for_long);
    by_condition.run(all.condition, after(), for_long);
#if defined(__cpp_lib_jthread)
    by_stop.run(all.stop, after(), for_long);
#endif
    in_spin.run(all.spinning, 10us, 25us);
  }
  return all;
}

/// Waits that nobody ends, plain ones and interruptible ones in turn: lateness and CPU of each.
struct unwoken {
  samples plain, interruptible;
};

inline unwoken measure_unwoken(int rounds, nanoseconds length) {
  unwoken all;
  punctual::waker nobody;
  const auto one = [length](samples& into, auto wait) {
    const instant due = now() + length;
    const nanoseconds before = thread_cpu();
    wait(due);
    const instant back = now();
    sample s;
    s.late = (back - due).count();
    s.cpu = (thread_cpu() - before).count();
    s.took = (back - due + length).count();
    into.push_back(s);
  };
  for (int i = 0; i < rounds; ++i) {
    one(all.plain, [](instant due) { punctual::sleep_until(due); });
    one(all.interruptible, [&nobody](instant due) { punctual::sleep_until(nobody, due); });
  }
  return all;
}

}  // namespace bench
