// A sum of lengths that any thread and any signal handler may add to, and its owner takes.
//
// Layer L1. Two words of 32 bits, since wider atomics take a lock, and a library, on some 32-bit
// processors. Each is changed in one step: whoever takes the sum between the two steps of an `add`
// gets a part now and the rest the next time. Nothing is lost, nothing counts twice.
#pragma once

#include <punctual/platform/seam.hpp>

#include <atomic>
#include <cstdint>
#include <limits>

namespace punctual {

/// Adds up lengths without a lock. Constant-initialised, nothing to destroy.
class shared_sum {
 public:
  /// Adds. The sum stays within 73 years.
  /// Threads  Any. Signals  Async-signal-safe.
  void add(nanoseconds length) noexcept {
    const std::int64_t carried = add_low(static_cast<std::int32_t>(length.count() % unit));
    add_high(length.count() / unit + carried);
  }

  /// Whether there may be something to take.
  bool any() const noexcept {
    return low_.load(std::memory_order_relaxed) != 0 || high_.load(std::memory_order_relaxed) != 0;
  }

  /// Takes what was added since the last time, so that nothing is left.
  nanoseconds take() noexcept {
    const std::int64_t low = low_.exchange(0, std::memory_order_relaxed);
    const std::int64_t high = high_.exchange(0, std::memory_order_relaxed);
    return nanoseconds{high * unit + low};
  }

 private:
  static constexpr std::int64_t unit = std::int64_t{1} << 30;

  // Answers what is to be carried into the high word.
  std::int64_t add_low(std::int32_t more) noexcept {
    std::int32_t before = low_.load(std::memory_order_relaxed);
    std::int64_t sum = 0;
    do {
      sum = std::int64_t{before} + more;
    } while (!low_.compare_exchange_weak(before, static_cast<std::int32_t>(sum % unit),
                                         std::memory_order_relaxed));
    return sum / unit;
  }

  void add_high(std::int64_t more) noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (more == 0) return;
    std::int32_t before = high_.load(std::memory_order_relaxed);
    std::int64_t sum = 0;
    do {
      sum = before + more;  // of 2^33 at most
      sum = sum > most ? most : (sum < -most ? -most : sum);
    } while (!high_.compare_exchange_weak(before, static_cast<std::int32_t>(sum),
                                          std::memory_order_relaxed));
  }

  std::atomic<std::int32_t> low_{0};   // below one unit, of either sign
  std::atomic<std::int32_t> high_{0};  // units
};

}  // namespace punctual
