// Which deadlines a rate makes: the n-th of them, and the latest before an instant, both exact.
//
// Layer L1. Pure arithmetic on whole numbers, in constant expressions too. The n-th deadline is
// computed from n, never added up, so nothing accumulates; where a grid goes over into another, the
// fraction of a nanosecond goes with it. Knows no clock and no caller.
#pragma once

#include <punctual/rate.hpp>
#include <punctual/time.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace punctual {

/// The deadlines of one rate: `at(n)` is anchor + floor(n · den · 10⁹ / num) ns.
///
/// The anchor is an instant and a fraction of a nanosecond, in units of 2⁻⁶³ ns. Moving it rounds
/// the fraction up, never down: a sum of thirds that should be whole is then never one short. A
/// million moves are off by 10⁻¹³ ns at most, which no deadline shows unless it lies that close
/// below a whole nanosecond.
class grid {
 public:
  constexpr grid() noexcept = default;
  constexpr grid(const rate& beats, instant anchor) noexcept : anchor_(anchor) { set_rate(beats); }

  /// The n-th deadline. One beyond the end of time is at the end of time. Cost: a division, two
  /// where the anchor has a fraction.
  constexpr instant at(std::uint64_t n) const noexcept {
    const offset o = split(n);
    return plus(anchor_, o.whole + carries(o.part));
  }

  /// The index of the latest deadline that is not after `now`; 0 if all are.
  constexpr std::uint64_t latest(instant now) const noexcept {
    if (now <= anchor_ || whole_ == 0) return 0;
    // Counted with the period rounded down: never too few. Each step then takes off what is surely
    // too much; after a year at 60 Hz that is one or two steps.
    const std::uint64_t elapsed = distance(anchor_, now);
    std::uint64_t n = elapsed / whole_;
    for (instant due = at(n); due > now && n > 0; due = at(n)) {
      n -= std::max<std::uint64_t>(1, distance(now, due) / (whole_ + 1));
    }
    return n;
  }

  /// Makes the n-th deadline the anchor, with its fraction: `at(n + m)` becomes `at(m)`.
  constexpr void move_anchor(std::uint64_t n) noexcept {
    const offset o = split(n);
    const bool carried = carries(o.part);
    anchor_ = plus(anchor_, o.whole + carried);
    fraction_ += multiply_divide(o.part, one, num_, rounding::up);
    if (carried) {
      fraction_ = fraction_ > one ? fraction_ - one : 0;
    } else {
      fraction_ = std::min(fraction_, one - 1);
    }
  }

  /// Sets the rate of the deadlines after the anchor, which stays where it is.
  constexpr void set_rate(const rate& beats) noexcept {
    num_ = static_cast<std::uint64_t>(beats.num);
    const auto den = static_cast<std::uint64_t>(beats.den);
    whole_ = multiply_divide(den, second, num_, rounding::down);
    part_ = den * second - whole_ * num_;  // below num_, so right although the products may wrap
  }

  /// Moves all deadlines by a whole number of nanoseconds.
  constexpr void shift(nanoseconds by) noexcept { anchor_ = later(anchor_, by); }

  /// Puts the n-th deadline exactly on `target`, and the anchor where that takes it.
  constexpr void put(std::uint64_t n, instant target) noexcept {
    const offset o = split(n);
    const std::uint64_t up = multiply_divide(o.part, one, num_, rounding::down);
    fraction_ = up == 0 ? 0 : one - up;
    const std::uint64_t back = std::min(o.whole + (up == 0 ? 0 : 1), farthest);
    anchor_ = later(target, -nanoseconds{static_cast<std::int64_t>(back)});
  }

  constexpr instant anchor() const noexcept { return anchor_; }

  /// The period, rounded down; zero when unlimited.
  constexpr nanoseconds period() const noexcept {
    return nanoseconds{static_cast<std::int64_t>(whole_)};
  }

 private:
  struct offset {
    std::uint64_t whole;  // nanoseconds, at most `farthest`
    std::uint64_t part;   // and this many num-ths of one
  };

  constexpr offset split(std::uint64_t n) const noexcept {
    const std::uint64_t extra = multiply_divide(n, part_, num_, rounding::down);
    const std::uint64_t part = n * part_ - extra * num_;  // below num_, see set_rate
    if (whole_ != 0 && n > farthest / whole_) return {farthest, part};
    return {std::min(n * whole_ + std::min(extra, farthest), farthest), part};
  }

  // Whether the anchor's fraction and this one make a whole nanosecond: fraction ≥ 1 − part / num.
  constexpr bool carries(std::uint64_t part) const noexcept {
    return fraction_ != 0 && multiply_divide(fraction_, num_, one, rounding::down) >= num_ - part;
  }

  static constexpr instant plus(instant from, std::uint64_t by) noexcept {
    return later(from, nanoseconds{static_cast<std::int64_t>(std::min(by, farthest))});
  }

  static constexpr std::uint64_t distance(instant from, instant to) noexcept {
    return static_cast<std::uint64_t>(to.time_since_epoch().count()) -
           static_cast<std::uint64_t>(from.time_since_epoch().count());
  }

  static constexpr std::uint64_t second = 1'000'000'000;
  static constexpr std::uint64_t one = std::uint64_t{1} << 63;
  static constexpr std::uint64_t farthest = std::numeric_limits<std::int64_t>::max();

  instant anchor_{};
  std::uint64_t fraction_ = 0;  // of a nanosecond, in units of 2⁻⁶³
  std::uint64_t num_ = 1;
  std::uint64_t whole_ = 0;  // the period: whole_ + part_ / num_ ns
  std::uint64_t part_ = 0;
};

}  // namespace punctual
