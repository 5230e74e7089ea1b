// A processor of which nothing is assumed: no counter, no pause.
//
// Layer L0. The spinner then reads the clock itself. Counters of other architectures are not read:
// some trap (32-bit ARM under emulation), and an unread counter cannot lie.
#pragma once

#include <punctual/platform/seam.hpp>

#include <atomic>
#include <cstdint>

namespace punctual::processor {

/// Says that there is no counter to read.
inline counter_support counter_facts() noexcept {
  return {false, "no counter is read on this architecture"};
}

/// Returns 0: there is no counter.
inline std::uint64_t counter() noexcept { return 0; }

/// Keeps the compiler from merging the reads of a spin.
inline void relax() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace punctual::processor
