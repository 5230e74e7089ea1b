// A value that any thread may read and write without a lock.
//
// Layer L1. A sequence lock over atomic words: readers never wait (a torn read is tried a few times
// and then given up), a writer that meets another gives up. For values that are written seldom and
// may be missed: the process's calibration, the default tuning.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace punctual {

/// Holds one trivially copyable value, or none yet. Constant-initialised, never destroyed.
template <class T>
class published {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  constexpr published() noexcept = default;
  published(const published&) = delete;
  published& operator=(const published&) = delete;

  /// Changes with every write; 0 while nothing was ever written.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_acquire) & ~1u; }

  /// Copies the value out. @return false if there is none yet, or if writers kept interfering.
  bool read(T& value) const noexcept {
    for (int tries = 0; tries < 4; ++tries) {
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      if (before == 0) return false;
      if ((before & 1u) != 0) continue;
      words copy{};
      // Acquire on each word, so that the second look at the version cannot move up.
      for (std::size_t i = 0; i < count; ++i) copy[i] = words_[i].load(std::memory_order_acquire);
      if (version_.load(std::memory_order_relaxed) != before) continue;
      std::memcpy(static_cast<void*>(&value), copy.data(), sizeof(T));
      return true;
    }
    return false;
  }

  /// Replaces the value. @return false if another thread is writing at this moment.
  bool write(const T& value) noexcept {
    std::uint32_t before = version_.load(std::memory_order_relaxed);
    if ((before & 1u) != 0) return false;
    if (!version_.compare_exchange_strong(before, before + 1, std::memory_order_acquire)) {
      return false;
    }
    words copy{};
    std::memcpy(copy.data(), static_cast<const void*>(&value), sizeof(T));
    for (std::size_t i = 0; i < count; ++i) words_[i].store(copy[i], std::memory_order_release);
    version_.store(before + 2, std::memory_order_release);
    return true;
  }

 private:
  static constexpr std::size_t count =
      (sizeof(T) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  using words = std::array<std::uint64_t, count>;

  std::atomic<std::uint32_t> version_{0};
  std::array<std::atomic<std::uint64_t>, count> words_{};
};

}  // namespace punctual
