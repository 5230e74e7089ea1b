// The busy wait that covers the margin: from a clock reading to the deadline.
//
// Layer L2. Knows the platform concept and no system. Spins on the processor's counter between two
// looks at the clock: a counter read is cheaper than a clock read (by far where the clock is a
// system call), so the last look at the clock can be timed to fall on the deadline. The counter is
// trusted for one lap of 2 us; what it says never ends a wait, only the clock does.
#pragma once

#include <punctual/platform/seam.hpp>
#include <punctual/time.hpp>

#include <cstdint>

namespace punctual {

/// One look at both: the counter, read just before the clock, and what the clock said.
struct clock_sample {
  instant at;
  std::uint64_t count;
  std::uint64_t width;  ///< counter ticks that the clock read took; 0: no counter, or it went back
};

/// The counter's rate, measured against the clock and refined at every native wait.
///
/// Never read from the system or from CPUID: those name the core's frequency, or nothing at all.
/// An error of 0.1 % costs 2 ns a lap, so the rate needs no long calibration; what would be
/// harmful, a rate that is wrong by much, is bounded by the spinner's count of reads.
class counter_rate {
 public:
  /// Ticks per nanosecond; 0 while unknown.
  constexpr double ticks_per_ns() const noexcept { return rate_; }

  /// The shortest clock read seen, in ticks; 0 while unknown.
  constexpr std::uint64_t clock_read_ticks() const noexcept { return tightest_; }

  /// Takes in two looks that bracket a native wait.
  ///
  /// A pair that disagrees with the rate by more than 500 ppm (a suspend, a stop, another core, a
  /// read that was interrupted) only votes against it: a majority of such pairs replaces the rate,
  /// as do four in a row that agree with each other.
  constexpr void refine(const clock_sample& before, const clock_sample& after) noexcept {
    note_width(before.width);
    note_width(after.width);
    const nanoseconds length = between(before.at, after.at);
    if (length < shortest_baseline || after.count <= before.count) return;
    if (before.width == 0 || after.width == 0) return;
    if (before.width > 4 * tightest_ + 64 || after.width > 4 * tightest_ + 64) {
      tightest_ += tightest_ / 8 + 1;  // if it is always so, the clock has become slower
      return;
    }
    const double seen =
        static_cast<double>(after.count - before.count) / static_cast<double>(length.count());
    if (seen > fastest_counter) return;
    if (rate_ > 0 && agrees(seen, rate_)) {
      // Longer baselines weigh more: their bracket error is a smaller part of them.
      const double weight = length >= std::chrono::milliseconds{1} ? 0.25 : 0.0625;
      rate_ += (seen - rate_) * weight;
      strangers_ = 0;
      if (votes_ < most_votes) ++votes_;
      return;
    }
    strangers_ = agrees(seen, stranger_) ? strangers_ + 1 : 1;
    stranger_ = seen;
    if (strangers_ == 4 || votes_ == 0) {
      rate_ = seen;
      strangers_ = 0;
      votes_ = 1;
    } else {
      --votes_;
    }
  }

  /// Starts from a rate that another thread has measured.
  constexpr void seed(double ticks_per_ns, std::uint64_t clock_read_ticks) noexcept {
    if (rate_ == 0 && ticks_per_ns > 0) {
      rate_ = ticks_per_ns;
      votes_ = 1;
    }
    note_width(clock_read_ticks);
  }

 private:
  // Both brackets together are about 60 ns wide: 300 ppm of this.
  static constexpr nanoseconds shortest_baseline = std::chrono::microseconds{200};

  static constexpr bool agrees(double a, double b) noexcept {
    return a - b < b * 5e-4 && b - a < b * 5e-4;
  }
  constexpr void note_width(std::uint64_t width) noexcept {
    if (width != 0 && (tightest_ == 0 || width < tightest_)) tightest_ = width;
  }

  double rate_ = 0;
  double stranger_ = 0;
  static constexpr int most_votes = 8;
  // No counter runs at 20 GHz (s390's, the fastest known, at 4.1): a difference across cores.
  static constexpr double fastest_counter = 20;

  std::uint64_t tightest_ = 0;
  int strangers_ = 0;
  int votes_ = 0;
};

/// Takes one look at counter and clock. Cost: a clock read and two counter reads.
template <platform P>
clock_sample look(const P& system, clock_kind on, bool counter_usable) noexcept {
  if (!counter_usable) return {system.now(on), 0, 0};
  const std::uint64_t before = system.counter();
  const instant at = system.now(on);
  const std::uint64_t after = system.counter();
  return {at, before, after > before ? after - before : 0};
}

/// How a spin ended.
enum class spin_end : std::uint8_t {
  reached,   ///< the clock was read at or after the deadline
  stalled,   ///< the clock stood still for too long: it has steps that a spin cannot use, or it is
             ///< dead
  set_back,  ///< the clock was stepped back: there is more to wait than a spin is for
  ended      ///< the caller's condition became true
};

/// What one spin did.
struct spin_result {
  instant now;         ///< the last clock reading
  nanoseconds spun;    ///< from the first reading to the last, ≥ 0
  std::uint32_t gaps;  ///< stretches of `gap_length` or more between two readings
  nanoseconds away;    ///< of `spun`: what these were longer than `gap_length`, ≥ 0
  spin_end how;
};

/// A stretch between two clock readings of a spin that counts as having been descheduled.
///
/// A lap takes 2 us and at most 25; an interrupt a few. The scheduler's slices are 700 us and more.
inline constexpr nanoseconds gap_length = std::chrono::microseconds{200};

/// Spins on the clock `on` until `deadline` or until `ended()`.
///
/// @param now       A reading of that clock, just taken.
/// @param counter   Whether the counter may be read in this thread.
/// @param rate      The counter's rate; unknown means spinning on the clock alone.
/// @param ended     Polled between reads; must not block.
/// Guarantee  `reached` only with `result.now >= deadline`, whatever the counter does: going back,
///            standing still, jumping or changing its rate costs at most one lap's reads: 25 us; 50
///            or two clock reads where those cost microseconds.
/// Cost       One core until the deadline. A pause between reads, none in the last 200 ns.
template <platform P, class Ended>
spin_result spin(const P& system, clock_kind on, instant deadline, instant now, bool counter,
                 const counter_rate& rate, Ended ended) noexcept(noexcept(ended())) {
  constexpr nanoseconds lap_length = std::chrono::microseconds{2};
  constexpr nanoseconds last_stretch{200};
  // A clock that has not moved for this many looks: 256 us with a counter, some 25 us without.
  constexpr int stalled_laps = 128;
  constexpr int stalled_looks = 1000;
  constexpr nanoseconds step_back = std::chrono::milliseconds{1};

  spin_result result{now, nanoseconds::zero(), 0, nanoseconds::zero(), spin_end::reached};
  const instant began = now;
  const bool counting = counter && rate.ticks_per_ns() > 0;
  const double ticks_per_ns = rate.ticks_per_ns();
  const nanoseconds clock_read{
      counting
          ? static_cast<std::int64_t>(static_cast<double>(rate.clock_read_ticks()) / ticks_per_ns)
          : 0};
  const nanoseconds gap = gap_length + 4 * clock_read;
  const auto ticks_in = [ticks_per_ns](nanoseconds part) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(part.count()) * ticks_per_ns);
  };
  // Reads in a row that may say the same: what one tick of the counter takes, and some.
  const std::int64_t most_same =
      64 + (counting ? static_cast<std::int64_t>(1 / (8 * ticks_per_ns)) : 0);
  int still = 0;

  // The counter as read just before the latest clock reading; unknown before the first.
  std::uint64_t anchor = 0;
  bool anchored = false;

  while (result.now < deadline) {
    if (ended()) {
      result.how = spin_end::ended;
      break;
    }
    const nanoseconds left = between(result.now, deadline);
    std::uint64_t begun = 0;
    if (counting && anchored) {
      // Near the end one lap runs to the deadline: a clock read must not straddle it.
      const nanoseconds lap = left <= lap_length + 2 * clock_read ? left : lap_length;
      const std::uint64_t ticks = ticks_in(lap);
      // A lap that a slow clock made long has none: its reads must stay cheap to stay few.
      const std::uint64_t pauses_until =
          lap <= lap_length ? ticks_in(shorter(lap, longer(left - last_stretch, {}))) : 0;
      // Every read takes 8 ns or more, so a counter that is right never comes to these bounds.
      std::int64_t reads = 64 + lap.count() / 8;
      std::int64_t same = most_same;
      // Differences are unsigned: a counter that went back ends the lap at once.
      std::uint64_t last = anchor;
      while ((begun = system.counter()) - anchor < ticks && --reads > 0) {
        if (begun != last) {
          same = most_same;
        } else if (--same == 0) {
          break;  // it stands still
        }
        last = begun;
        if (ended()) break;
        if (begun - anchor < pauses_until) system.relax();
      }
    } else {
      if (left > last_stretch) system.relax();
      if (counting) begun = system.counter();
    }
    const instant seen = system.now(on);
    anchor = begun;
    anchored = true;
    if (seen > result.now) {
      if (seen - result.now >= gap) {
        ++result.gaps;
        result.away += seen - result.now - gap_length;
      }
      still = 0;
    } else if (result.now - seen > step_back) {
      result.how = spin_end::set_back;
    } else if (++still >= (counting ? stalled_laps : stalled_looks)) {
      result.how = spin_end::stalled;
    }
    result.now = seen;
    if (result.how != spin_end::reached) break;
  }
  result.spun = result.now > began ? between(began, result.now) : nanoseconds::zero();
  return result;
}

}  // namespace punctual
