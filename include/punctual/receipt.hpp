// What one wait did.
//
// Layer L1. A value: trivially copyable, no pointers, cheap to ignore.
#pragma once

#include <punctual/platform/seam.hpp>

#include <cstdint>

namespace punctual {

/// Why a wait ended.
enum class outcome : std::uint8_t {
  reached,       ///< the deadline's own clock was read at or after the deadline
  already_past,  ///< it was so at the call: nothing was waited for
  woken,         ///< a waker or the caller's own blocking call ended it
  stopped,       ///< a stop was requested
  gave_up        ///< the clock stands still, or the call may not wait in any way that is left
};

/// What one wait did and where its time went.
struct receipt {
  outcome why = outcome::reached;
  nanoseconds late{
      0};  ///< return − deadline, ≥ 0; for `already_past` a lower bound, within two ticks
  nanoseconds left{0};     ///< time that remained if woken, stopped or gave_up, else 0
  nanoseconds blocked{0};  ///< time in native waits, ≥ 0
  nanoseconds spun{0};     ///< time in the spin, ≥ 0, gaps included
  nanoseconds overshoot{
      0};  ///< of the last native wait: wake-up − what it asked for; negative if early
  std::uint32_t native_waits = 0;  ///< blocking calls made
  std::uint32_t interruptions =
      0;                   ///< of these, ended early: by a signal handler, or for no reason
  std::uint32_t gaps = 0;  ///< times the thread was descheduled while it spun
  int error = 0;           ///< the platform's code if a native wait was refused, else 0
};

}  // namespace punctual
