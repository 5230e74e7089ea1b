// The instants at which a clock tick comes, and where on them a timeout ends.
//
// Side layer. `tick` is exact for any rate, phase and error, with no drift between the n-th tick
// and n times the first: kernels differ in how they count ticks, never in what a tick is.
#pragma once

#include <punctual/testing/surroundings.hpp>
#include <punctual/time.hpp>

#include <algorithm>
#include <cstdint>

namespace punctual::testing::kernels {

/// A real tick is 1 + ppb / 10^9 nominal ones long: what a miscalibrated timer does to a kernel.
struct parts_per_billion {
  std::int64_t count = 0;
};

/// The instants of a periodic interrupt: tick `k` is at `phase` + floor(k · period).
class tick {
 public:
  /// @param hz     Ticks a second; below 1 counts as 1.
  /// @param phase  The instant of tick 0, from the clock's epoch.
  constexpr explicit tick(std::int64_t hz, nanoseconds phase = {},
                          parts_per_billion error = {}) noexcept
      : tick(billion, hz, phase, error) {}
  /// @param period  Nominal; below 1 ns counts as 1 ns.
  constexpr explicit tick(nanoseconds period, nanoseconds phase = {},
                          parts_per_billion error = {}) noexcept
      : tick(period.count(), 1, phase, error) {}

  /// The last tick at or before `t`.
  constexpr std::int64_t index(instant t) const noexcept {
    const nanoseconds since = saturating_subtract(t.time_since_epoch(), phase_);
    // floor(k · n / d) <= since, where n / d is the period in ns, says k < (since + 1) · d / n.
    if (since.count() >= 0) {
      return signed_count(
                 multiply_divide(count(since) + 1, denominator_, numerator_, rounding::up)) -
             1;
    }
    const std::uint64_t before = std::uint64_t{0} - count(since) - 1;
    return -1 - signed_count(multiply_divide(before, denominator_, numerator_, rounding::down));
  }

  /// The instant of tick `k`; saturates.
  constexpr instant at(std::int64_t k) const noexcept {
    const bool before = k < 0;
    const auto distance =
        before ? std::uint64_t{0} - static_cast<std::uint64_t>(k) : static_cast<std::uint64_t>(k);
    const nanoseconds length{signed_count(multiply_divide(distance, numerator_, denominator_,
                                                          before ? rounding::up : rounding::down))};
    return later(instant{phase_}, before ? -length : length);
  }

  /// The wheel rule: a timeout of `n` ticks ends at the n-th tick after `t`.
  /// With p the time since the last tick it takes nT − p, so (n − 1)T < E <= nT.
  constexpr instant after(instant t, std::int64_t n) const noexcept {
    return at(saturating_add(nanoseconds{index(t)}, nanoseconds{n}).count());
  }

  /// The first tick that is not before `t`.
  constexpr instant not_before(instant t) const noexcept {
    const std::int64_t k = index(t);
    const instant last = at(k);
    return last == t ? t : at(k + (k < (nanoseconds::max)().count() ? 1 : 0));
  }

  /// The last tick at or before `t`: what a clock shows that the tick moves on.
  constexpr instant shown(instant t) const noexcept { return at(index(t)); }

 private:
  static constexpr std::int64_t billion = 1'000'000'000;

  constexpr tick(std::int64_t numerator, std::int64_t denominator, nanoseconds phase,
                 parts_per_billion error) noexcept
      : phase_(phase) {
    const std::int64_t real = error.count > -billion ? billion + error.count : 1;
    numerator_ = static_cast<std::uint64_t>(numerator < 1 ? 1 : numerator);
    denominator_ = static_cast<std::uint64_t>(denominator < 1 ? 1 : denominator);
    if (real == billion) return;
    numerator_ *= static_cast<std::uint64_t>(real);
    denominator_ *= static_cast<std::uint64_t>(billion);
  }

  static constexpr std::uint64_t count(nanoseconds t) noexcept {
    return static_cast<std::uint64_t>(t.count());
  }
  static constexpr std::int64_t signed_count(std::uint64_t n) noexcept {
    constexpr auto most = static_cast<std::uint64_t>((nanoseconds::max)().count());
    return static_cast<std::int64_t>(n < most ? n : most);
  }

  nanoseconds phase_;
  std::uint64_t numerator_ = 1;  // the period in ns is numerator / denominator
  std::uint64_t denominator_ = 1;
};

/// How many whole `tick`s cover `length`: rounded up, 0 for nothing.
constexpr std::int64_t ticks_up(nanoseconds length, nanoseconds one_tick) noexcept {
  if (length <= nanoseconds::zero()) return 0;
  return (length.count() - 1) / one_tick.count() + 1;
}

/// BSD's `tick`: a whole number of microseconds, whatever the real tick is (hz = 3000: 333 µs).
constexpr nanoseconds bsd_tick(std::int64_t hz) noexcept {
  const std::int64_t us = 1'000'000 / (hz < 1 ? 1 : hz);
  return nanoseconds{(us < 1 ? 1 : us) * 1000};
}

/// What is left of a request, never below zero.
constexpr nanoseconds left_of(instant now, instant until) noexcept {
  return until > now ? between(now, until) : nanoseconds::zero();
}

}  // namespace punctual::testing::kernels
