// Where a time point lies on the beats of a rate, however far it is from now.
//
// Layer L1. A grid goes through the epoch of a clock that counts since 1601 or since the year 1:
// further away than nanoseconds in 64 bits can say, though only what is left beyond whole periods
// matters. So whole seconds are taken off in the clock's own counts, and what these are in periods
// is taken from the exact rate.
#pragma once

#include <punctual/conversion.hpp>
#include <punctual/rate.hpp>
#include <punctual/time.hpp>
#include <punctual/time_left.hpp>

#include <chrono>
#include <cstdint>
#include <ratio>
#include <type_traits>

namespace punctual {

/// What is left of so many seconds beyond whole periods, rounded down; less than a period.
constexpr nanoseconds beyond_periods(std::uint64_t seconds, const rate& beats) noexcept {
  const auto num = static_cast<std::uint64_t>(beats.num);
  const auto den = static_cast<std::uint64_t>(beats.den);
  const std::uint64_t periods = multiply_divide(seconds, num, den, rounding::down);
  const std::uint64_t rest = seconds * num - periods * den;  // below den, though products may wrap
  const std::uint64_t length = multiply_divide(rest, 1'000'000'000, num, rounding::down);
  return shorter(nanoseconds{conversion::with_sign(length, false)}, beats.period());
}

/// The time from what a clock showed to a time point on it; beyond 292 years less whole periods.
///
/// Those are taken off where both are counted in integers of at most 64 bits; else the answer
/// saturates, as that of `time_left`.
template <class Clock, class Due, class Seen>
constexpr nanoseconds time_left_in_phase(
    const rate& beats, const std::chrono::time_point<Clock, Due>& on,
    const std::chrono::time_point<Clock, Seen>& seen) noexcept {
  const nanoseconds left = time_left(on, seen);
  if (left != nanoseconds::max() && left != nanoseconds::min()) return left;
  using due_rep = typename Due::rep;
  using seen_rep = typename Seen::rep;
  if constexpr (std::is_integral_v<due_rep> && sizeof(due_rep) <= sizeof(std::int64_t) &&
                std::is_integral_v<seen_rep> && sizeof(seen_rep) <= sizeof(std::int64_t)) {
    using namespace conversion;
    using second = std::ratio<1>;
    using due_period = typename Due::period::type;
    using seen_period = typename Seen::period::type;
    const auto due = on.time_since_epoch().count();
    // Roughly: what is left of it is counted exactly.
    const std::int64_t now = converted<seen_period, second>(seen.time_since_epoch().count());
    const std::int64_t far =
        sum(converted<due_period, second>(due), now == least ? greatest : -now);
    using nearer = typename std::common_type_t<std::chrono::duration<std::int64_t, due_period>,
                                               std::chrono::seconds>;
    using fine = typename nearer::period;
    const auto whole = multiplied<std::int64_t, std::ratio_divide<due_period, fine>::num>(due);
    const auto taken = multiplied<std::int64_t, std::ratio_divide<second, fine>::num>(far);
    if (whole.beyond != 0 || taken.beyond != 0 || taken.value == least) return left;
    const nearer rest{sum(whole.value, -taken.value)};
    const nanoseconds near = time_left(std::chrono::time_point<Clock, nearer>{rest}, seen);
    return far < 0
               ? saturating_subtract(near, beyond_periods(static_cast<std::uint64_t>(-far), beats))
               : saturating_add(near, beyond_periods(static_cast<std::uint64_t>(far), beats));
  } else {
    return left;
  }
}

}  // namespace punctual
