// What a pacer hands to its loop, and what it does with deadlines that were missed.
//
// Layer L1. Values: trivially copyable, no clock, no wait.
#pragma once

#include <punctual/receipt.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace punctual {

/// What becomes of deadlines that were missed.
///
/// A column is a quarter of a period, a digit a beat, `#` more of its work and `.` a wait. The work
/// of beat 1 takes two and a half periods; under each policy a beat that is late by less than one
/// comes at once.
///
///     deadlines   0   1   2   3   4   5   6   7
///     skip        0...1#########3.4...5...6...7...  beat 3: skipped = 1; the grid stays
///     burst       0...1#########234...5...6...7...  2 and 3 come at once, on the old grid
///     rephase     0...1#########3...4...5...6...7.  beat 3: skipped = 1; a new grid starts there
enum class missed : std::uint8_t {
  /// Whole periods of a backlog are dropped and counted. For whatever must not be burst at: robots,
  /// games.
  skip,
  /// Every beat is delivered, late ones at once, at most `max_burst` in a row; what lies beyond is
  /// dropped and counted, also where it was built from many small overruns. For audio and
  /// protocols.
  burst,
  /// A backlog of a whole period or more is dropped and counted, and the grid starts anew from that
  /// beat.
  rephase
};

/// One beat of a pacer, or why there was none.
struct beat {
  std::uint64_t index = 0;    ///< of this deadline since the pacer began; dropped ones count
  std::uint64_t skipped = 0;  ///< deadlines dropped since the beat before this one
  instant due{};              ///< the deadline
  nanoseconds late{0};        ///< return − due, ≥ 0, from a precise reading
  nanoseconds busy{0};        ///< the caller's own time since the beat before this one, ≥ 0
  receipt slept{};            ///< the wait; `already_past` where there was none to make

  /// Whether the beat was delivered: false if the wait was woken or stopped, or gave up.
  constexpr explicit operator bool() const noexcept {
    return slept.why == outcome::reached || slept.why == outcome::already_past;
  }

  /// How many periods have gone by since the beat before: the steps that a fixed-time-step loop has
  /// to take.
  constexpr std::uint64_t steps() const noexcept { return *this ? skipped + 1 : 0; }
};

/// The beats of a loop as an input range: begins with the first call of `next` and ends at a false
/// beat.
template <class Next>
class beat_range {
 public:
  class iterator {
   public:
    using value_type = beat;
    using difference_type = std::ptrdiff_t;

    explicit iterator(Next& next) : next_(&next), current_(next()) {}
    const beat& operator*() const noexcept { return current_; }
    iterator& operator++() {
      current_ = (*next_)();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return !current_; }

   private:
    Next* next_;
    beat current_;
  };

  explicit beat_range(Next next) : next_(std::move(next)) {}
  iterator begin() { return iterator{next_}; }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Next next_;
};

}  // namespace punctual
