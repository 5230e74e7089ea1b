// What ends waits from another thread or a signal handler: one atomic word.
//
// Layer L3, beside the sleeper that it wakes. A waker knows the platform's `park_until` and
// `unpark` and nothing of deadlines: `watch` is one thread's view of it, from which interrupt.hpp
// makes waits.
#pragma once

#include <punctual/platform/native.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace punctual {

/// Ends waits: those under way, and those to come until `reset()`.
///
/// May be constant-initialised, and has nothing to destroy. For the threads of one process; at most
/// 65535 of them may be parked on it.
///
/// Guarantee  No wake-up is lost: a `wake()` that comes after a wait has begun ends that wait, also
///            if `reset()` follows at once. What happened before `wake()` is seen by whoever it has
///            woken.
/// Threads    Any number may wait, wake and reset at the same time.
/// Lifetime   It must outlive every wait on it and the beginning of every `wake()`. A thread that
///            was woken by the last `wake()` may destroy it at once: that call touches it in one
///            atomic step, and from then on only uses the address. Whoever waits there next may
///            return early in the kernel, and waits on.
///
/// Source: futex(2), FUTEX_WAIT_BITSET and FUTEX_WAKE.
template <platform P>
class basic_waker {
 public:
  /// Whether `wake()` may be called from a signal handler.
  static constexpr bool signal_safe = P::signal_safe_unpark;

  constexpr explicit basic_waker(P system = P()) noexcept requires std::default_initializable<P>
      : system_(system) {}
  constexpr explicit basic_waker(P system) noexcept requires(!std::default_initializable<P>)
      : system_(system) {}
  basic_waker(const basic_waker&) = delete;
  basic_waker& operator=(const basic_waker&) = delete;

  /// Ends all waits on this waker.
  ///
  /// Cost     An atomic step; a system call only if a thread is parked, none while it spins.
  /// Signals  Async-signal-safe if `signal_safe`. errno is left alone.
  void wake() noexcept {
    const P system = system_;
    const park_word& word = word_;
    step();
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    do {
      step();
    } while (!word_.compare_exchange_strong(seen, (seen + one_wake) | woken,
                                            std::memory_order_release, std::memory_order_relaxed));
    // Nothing of the waker may be read from here on: a thread that was woken may have destroyed it.
    if ((seen & parked) != 0) system.unpark(word);
  }

  /// Makes waits to come wait again. Reset first, then look at what the wake-up was for.
  void reset() noexcept {
    step();
    word_.fetch_and(~woken, std::memory_order_acq_rel);
  }

  /// Whether there was a `wake()` since the last `reset()`.
  bool pending() const noexcept { return (look() & woken) != 0; }

  /// One wait on the waker, from its beginning on. For the waits below and for your own.
  class watch {
   public:
    explicit watch(basic_waker& of) noexcept : waker_(of), begun_(of.look()) {}

    /// Whether the waker was pending at the beginning, or is now, or was woken in between.
    bool ended() const noexcept { return differs(waker_.look()); }

    /// Parks the calling thread until the instant or until `ended()`: one native wait.
    native_wait park(clock_kind on, instant until, slack how) noexcept {
      park_word& word = waker_.word_;
      waker_.step();
      // Published and looked at in one step: whoever wakes after it sees that there is one to
      // unpark.
      std::uint32_t seen = word.fetch_add(one_parked, std::memory_order_acquire) + one_parked;
      native_wait answer{native_end::woke, 0};
      while (!differs(seen)) {
        answer = waker_.system_.park_until(word, seen, on, until, how);
        const std::uint32_t now = waker_.look();
        if (answer.how != native_end::woke || differs(now)) break;
        if (waker_.system_.now(on) >= until) break;
        // The word differed because another thread came or went; else nobody knows why it ended.
        if (now == seen) {
          answer.how = native_end::spurious;
          break;
        }
        seen = now;
      }
      waker_.step();
      word.fetch_sub(one_parked, std::memory_order_relaxed);
      return answer;
    }

   private:
    bool differs(std::uint32_t seen) const noexcept {
      return ((seen | begun_) & woken) != 0 || ((seen ^ begun_) & wakes) != 0;
    }

    basic_waker& waker_;
    std::uint32_t begun_;
  };

 private:
  // The word: whether it is woken; how many threads are parked, or about to be; how many wakes
  // there were. The count of wakes is what makes a wake visible that is reset before the woken
  // thread has run. It wraps after 32768 wakes, which would all have to be reset while that thread
  // is on its way.
  static constexpr std::uint32_t woken = 1;
  static constexpr std::uint32_t one_parked = 2;
  static constexpr std::uint32_t one_wake = 1u << 17;
  static constexpr std::uint32_t parked = one_wake - one_parked;
  static constexpr std::uint32_t wakes = ~(one_wake - 1);

  std::uint32_t look() const noexcept {
    step();
    return word_.load(std::memory_order_acquire);
  }

  // A platform may watch each step on the word: so do the tests that go through every order of
  // steps.
  void step() const noexcept {
    if constexpr (requires(const P& system) { system.word_step(); }) system_.word_step();
  }

  park_word word_{0};
  [[no_unique_address]] P system_;
};

/// The waker of this machine.
using waker = basic_waker<native_platform>;

static_assert(std::is_trivially_destructible_v<waker>);

}  // namespace punctual
