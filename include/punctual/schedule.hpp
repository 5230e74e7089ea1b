// Which beat is next, when it is due, and what is dropped: the pacer's rules without a clock.
//
// Layer L1. Whole numbers in, whole numbers out: instants are told, never read, and nothing waits.
// A schedule is a grid, the place on it, and what `missed` does with a backlog; the pacer adds the
// waiting.
#pragma once

#include <punctual/beat.hpp>
#include <punctual/grid.hpp>
#include <punctual/rate.hpp>
#include <punctual/time.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace punctual {

/// The beats of one loop, in order: `due()`, then `catch_up(now)`, then `take(now)`.
class schedule {
 public:
  constexpr schedule(const rate& beats, missed policy, std::uint32_t max_burst) noexcept
      : rate_(beats),
        grid_(beats, instant{}),
        policy_(policy),
        max_burst_(std::max<std::uint32_t>(max_burst, 1)) {}

  /// The index of the next beat, and its deadline.
  constexpr std::uint64_t index() const noexcept { return base_ + next_; }
  constexpr instant due() const noexcept { return due_; }

  /// Whether the next beat has a deadline: it has none before the first one, and without a limit.
  constexpr bool has_deadline() const noexcept { return begun_ && !rate_.is_unlimited(); }

  /// Lets the next beat be due now, and a new grid begin with it.
  constexpr void anchor(instant now) noexcept {
    base_ += std::exchange(next_, 0);
    grid_ = grid{rate_, now};
    due_ = now;
  }

  /// At the first call after an alignment that came before any beat: the first deadline that is not
  /// past is the first one.
  constexpr void begin(instant now) noexcept {
    if (!std::exchange(unplaced_, false) || !has_deadline()) return;
    std::uint64_t n = grid_.latest(now);
    if (grid_.at(n) < now) ++n;
    place(n, 0);
  }

  /// Says that the next deadline was still ahead when the caller came: a row of late beats ends.
  constexpr void in_time() noexcept { late_in_a_row_ = 0; }

  /// Decides what of a backlog is dropped.
  ///
  /// @param waited  Whether the next deadline was waited for; false if it was past already.
  /// @return  False if all that was due is dropped, and the next deadline is one to wait for.
  constexpr bool catch_up(instant now, bool waited) noexcept {
    if (!has_deadline()) return true;
    const std::uint64_t behind =
        between(due_, now) < grid_.period() ? 0 : grid_.latest(now) - next_;  // whole periods
    if (policy_ != missed::burst) {
      drop(behind);
      return true;
    }
    if (behind == 0 && (waited || due_ == now)) return true;
    const std::uint64_t allowed = max_burst_ - late_in_a_row_;
    if (behind >= allowed) drop(behind + 1 - allowed);
    if (allowed == 0) return false;
    ++late_in_a_row_;
    return true;
  }

  /// Takes the next beat, which comes now, and goes on to the one after it.
  constexpr beat take(instant now) noexcept {
    beat b;
    b.index = index();
    b.skipped = std::exchange(pending_skips_, 0);
    b.due = due_;
    b.late = between(b.due, now);
    if (policy_ == missed::rephase && b.skipped != 0) anchor(now);
    ++next_;
    if (slew_ != nanoseconds::zero()) slew();
    due_ = grid_.at(next_);
    begun_ = true;
    return b;
  }

  /// Sets the rate from the next deadline on. Without a limit so far there is none: then from the
  /// last beat on.
  constexpr void set_rate(const rate& beats) noexcept {
    if (has_deadline()) {
      grid_.move_anchor(next_);
      base_ += std::exchange(next_, 0);
    }
    rate_ = beats;
    grid_.set_rate(beats);
    due_ = grid_.at(next_);
  }

  /// Moves the grid by this much, at most 1/64 of a period (or 1 ns) with each beat.
  constexpr void nudge(nanoseconds by) noexcept { slew_ = saturating_add(slew_, by); }

  /// Moves all deadlines at once.
  constexpr void shift(nanoseconds by) noexcept {
    grid_.shift(by);
    due_ = grid_.at(next_);
  }

  /// Puts the grid on `target`, so that the next deadline moves by half a period at most. What is
  /// left of a nudge is forgotten.
  constexpr void align(instant target, instant now) noexcept {
    if (rate_.is_unlimited()) return;
    const instant wanted = begun_ ? due_ : now;
    const std::uint64_t index_then = index();
    grid aligned{rate_, target};
    // A grid reaches 292 years beyond its anchor, which therefore comes near, in hops of 146; from
    // ahead by as many periods as take it before what is wanted.
    constexpr nanoseconds hop = nanoseconds::max() / 2;
    for (int i = 0; i < 4; ++i) {
      const instant there = aligned.anchor();
      if (there > wanted) {
        const instant back = std::max(wanted, later(there, -hop));
        aligned.put(grid{rate_, back}.latest(there) + 1, there);
      } else {
        aligned.move_anchor(aligned.latest(std::min(wanted, later(there, hop))));
      }
    }
    grid_ = aligned;
    const bool nearer = between(wanted, aligned.at(1)) < between(aligned.at(0), wanted);
    place(nearer ? 1 : 0, index_then);
    slew_ = nanoseconds::zero();
    unplaced_ = unplaced_ || !begun_;
    begun_ = true;
  }

  /// Forgets the grid and the place on it; keeps the rate and what was counted.
  constexpr void restart() noexcept {
    base_ = next_ = pending_skips_ = 0;
    late_in_a_row_ = 0;
    slew_ = nanoseconds::zero();
    begun_ = unplaced_ = false;
  }

  /// Deadlines dropped so far, and the most of them in a row.
  constexpr std::uint64_t dropped() const noexcept { return dropped_; }
  constexpr std::uint64_t longest_drop() const noexcept { return longest_drop_; }
  constexpr void forget_drops() noexcept { dropped_ = longest_drop_ = 0; }
  constexpr missed policy() const noexcept { return policy_; }

 private:
  constexpr void place(std::uint64_t n, std::uint64_t index_there) noexcept {
    next_ = n;
    base_ = index_there - n;  // may wrap, and wraps back
    due_ = grid_.at(n);
  }

  constexpr void drop(std::uint64_t count) noexcept {
    if (count == 0) return;
    next_ += count;
    pending_skips_ += count;
    dropped_ += count;
    longest_drop_ = std::max(longest_drop_, pending_skips_);
    due_ = grid_.at(next_);
  }

  constexpr void slew() noexcept {
    const nanoseconds most = std::max(grid_.period() / 64, nanoseconds{1});
    const nanoseconds step = std::clamp(slew_, -most, most);
    grid_.shift(step);
    slew_ -= step;
  }

  rate rate_;
  grid grid_;
  std::uint64_t base_ = 0;  // the index of the grid's anchor
  std::uint64_t next_ = 0;  // the next beat, counted from there
  instant due_{};           // and its deadline: always grid_.at(next_)
  std::uint64_t pending_skips_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t longest_drop_ = 0;
  nanoseconds slew_{0};
  missed policy_;
  std::uint32_t max_burst_;
  std::uint32_t late_in_a_row_ = 0;
  bool begun_ = false;     // the grid has an anchor
  bool unplaced_ = false;  // but which deadline is the first is not settled yet
};

}  // namespace punctual
