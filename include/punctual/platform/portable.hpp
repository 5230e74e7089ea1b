// The portable backend: the standard library and nothing else.
//
// Layer L0. Compiled and tested on every system, chosen where there is no better one. Its native
// wait is std::this_thread::sleep_until, which some libraries end early (MinGW: by whole
// milliseconds) and which may be a cancellation point; a parked wait is a mutex and a condition
// variable, so `unpark` is not signal-safe here. There is no coarse clock and no slack to tighten.
#pragma once

#include <punctual/platform/config.hpp>
#include <punctual/platform/cpu/native.hpp>
#include <punctual/platform/seam.hpp>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <thread>

namespace punctual {

/// Any system with a C++ standard library.
class portable_platform {
 public:
  static constexpr bool signal_safe_unpark = false;

  static instant now(clock_kind on) noexcept {
    if (on == clock_kind::monotonic) {
      return instant{std::chrono::duration_cast<nanoseconds>(steady::now().time_since_epoch())};
    }
    return instant{std::chrono::duration_cast<nanoseconds>(
        std::chrono::system_clock::now().time_since_epoch())};
  }

  static instant coarse_now(clock_kind on) noexcept { return now(on); }

  /// Blocks until the instant. The standard's sleeps have no answer: one that is back at once, long
  /// before its time, was refused by the system, and `error` says what it left in errno.
  static native_wait block_until(clock_kind on, instant until, slack) noexcept {
    // Bounded, since not every library survives the largest time points.
    const instant at = soonest(on, until);
    const instant from = now(clock_kind::monotonic);
    int said = 0;
    const native_wait answer = guarded([&] {
      errno = 0;
      if (on == clock_kind::monotonic) {
        std::this_thread::sleep_until(std::chrono::time_point_cast<steady::duration>(at));
      } else {
        // A length: on this clock some libraries loop around a sleep, also around a refused one.
        std::this_thread::sleep_for(at - now(on));
      }
      said = errno;
    });
    if (now(clock_kind::monotonic) - from >= at_once || at - now(on) < worth_mentioning) {
      return answer;
    }
    return {native_end::refused, said != 0 ? said : EAGAIN};
  }

  static native_wait park_until(const park_word& word, std::uint32_t expected, clock_kind on,
                                instant until, slack) noexcept {
    return guarded([&] {
      meeting_point& here = meeting();
      std::unique_lock lock(here.mutex);
      if (word.load(std::memory_order_acquire) != expected) return;
      const instant at = soonest(on, until);
      if (on == clock_kind::monotonic) {
        here.changed.wait_until(lock, std::chrono::time_point_cast<steady::duration>(at));
      } else {
        here.changed.wait_until(lock, to_system(at));
      }
    });
  }

  static void unpark(const park_word&) noexcept {
    guarded([] {
      meeting_point& here = meeting();
      // Taken and given back: a waiter is either before its look at the word or inside the wait.
      { const std::lock_guard lock(here.mutex); }
      here.changed.notify_all();
    });
  }

  static counter_support counter_facts() noexcept { return processor::counter_facts(); }
  static std::uint64_t counter() noexcept { return processor::counter(); }
  static void relax() noexcept { processor::relax(); }

  /// CPU time of the whole process: the standard library knows no thread's.
  static nanoseconds running_time() noexcept {
    const int kept = errno;
    const auto used = static_cast<std::int64_t>(std::clock());
    errno = kept;
    return nanoseconds{used * (1'000'000'000 / CLOCKS_PER_SEC)};
  }

  static platform_facts facts() noexcept {
    return {"portable", "std::this_thread::sleep_until", nanoseconds{-1}};
  }

 private:
  struct meeting_point {
    std::mutex mutex;
    std::condition_variable changed;
  };

  static constexpr nanoseconds at_once = std::chrono::microseconds{50};
  static constexpr nanoseconds worth_mentioning = std::chrono::milliseconds{1};

  // One for the process: it is woken seldom, and every waiter looks at its own word again. Never
  // destroyed, so that waits in static destructors still work.
  static meeting_point& meeting() {
    static meeting_point& here = *new meeting_point;
    return here;
  }

  static instant soonest(clock_kind on, instant until) noexcept {
    const instant far = now(on) + std::chrono::hours{24};
    return until < far ? until : far;
  }

  static std::chrono::system_clock::time_point to_system(instant at) noexcept {
    return std::chrono::system_clock::time_point{
        std::chrono::ceil<std::chrono::system_clock::duration>(at.time_since_epoch())};
  }

  template <class Call>
  static native_wait guarded(Call call) noexcept {
    const int kept = errno;
    native_wait answer{native_end::woke, 0};
#if PUNCTUAL_HAS_EXCEPTIONS
    try {
      call();
    } catch (...) {
      answer = {native_end::refused, EAGAIN};
    }
#else
    call();
#endif
    errno = kept;
    return answer;
  }
};

}  // namespace punctual
