// A value that any thread may read and write without a lock.
//
// Layer L1. Four slots of atomic words, each a sequence lock, and the number of the newest: a
// writer fills a slot that is not the newest, then makes it so. Readers never wait (a torn read is
// tried a few times and then given up). A writer that disappears half-way, as every other thread
// does in the child of a fork, costs one slot and hides nothing. For values that are written seldom
// and may be missed: the process's calibration, the default tuning.
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
  std::uint32_t version() const noexcept { return newest_.load(std::memory_order_acquire); }

  /// Copies the value out. @return false if there is none yet, or if writers kept interfering.
  bool read(T& value) const noexcept {
    for (int tries = 0; tries < 4; ++tries) {
      const std::uint32_t newest = version();
      if (newest == 0) return false;
      const slot& from = slots_[newest % slots];
      const std::uint32_t before = from.sequence.load(std::memory_order_acquire);
      words copy{};
      // Acquire on each word, so that the second look at the sequence cannot move up.
      for (std::size_t i = 0; i < count; ++i) {
        copy[i] = from.content[i].load(std::memory_order_acquire);
      }
      if ((before & 1U) != 0 || from.sequence.load(std::memory_order_relaxed) != before) continue;
      std::memcpy(static_cast<void*>(&value), copy.data(), sizeof(T));
      return true;
    }
    return false;
  }

  /// Replaces the value; of two writers at once the later one wins.
  /// @return false if every slot is being written at this moment.
  bool write(const T& value) noexcept {
    words copy{};
    std::memcpy(copy.data(), static_cast<const void*>(&value), sizeof(T));
    for (std::uint32_t i = 0; i < slots; ++i) {
      slot& to = slots_[i];
      if (is_newest(i) || to.taken.exchange(1, std::memory_order_acquire) != 0) continue;
      if (is_newest(i)) {  // since the look before
        to.taken.store(0, std::memory_order_release);
        continue;
      }
      const std::uint32_t before = to.sequence.load(std::memory_order_relaxed);
      to.sequence.store(before + 1, std::memory_order_relaxed);
      for (std::size_t k = 0; k < count; ++k) {
        to.content[k].store(copy[k], std::memory_order_release);
      }
      to.sequence.store(before + 2, std::memory_order_release);
      std::uint32_t newest = newest_.load(std::memory_order_relaxed);
      while (!newest_.compare_exchange_weak(newest, after(newest, i), std::memory_order_release,
                                            std::memory_order_relaxed)) {
      }
      to.taken.store(0, std::memory_order_release);
      return true;
    }
    return false;
  }

 private:
  // 32-bit words: lock-free also where 64-bit ones are calls to a library (armel, mips, riscv32).
  static constexpr std::size_t count =
      (sizeof(T) + sizeof(std::uint32_t) - 1) / sizeof(std::uint32_t);
  static constexpr std::uint32_t slots = 4;
  using words = std::array<std::uint32_t, count>;

  struct slot {
    std::atomic<std::uint32_t> taken{0};
    std::atomic<std::uint32_t> sequence{0};  // odd while its content changes
    std::array<std::atomic<std::uint32_t>, count> content{};
  };

  // The number of writes, times the slots, plus the slot; never 0.
  static constexpr std::uint32_t after(std::uint32_t newest, std::uint32_t at) noexcept {
    const std::uint32_t writes = (newest / slots + 1) * slots;
    return (writes != 0 ? writes : slots) + at;
  }
  bool is_newest(std::uint32_t at) const noexcept {
    const std::uint32_t newest = newest_.load(std::memory_order_acquire);
    return newest != 0 && newest % slots == at;
  }

  std::atomic<std::uint32_t> newest_{0};
  std::array<slot, slots> slots_{};
};

}  // namespace punctual
