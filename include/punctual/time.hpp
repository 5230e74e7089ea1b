// Time as a value: every chrono duration and time point becomes nanoseconds here, and only here.
//
// Layer L1. One rule for all: round up to the next nanosecond, saturate at both ends, never
// overflow, and give every value a meaning (NaN is zero, the far ends are "for ever" and "long
// past"). Rounding up is what keeps a wait from ending early; saturating is what keeps "for ever"
// from becoming "at once".
#pragma once

#include <punctual/conversion.hpp>
#include <punctual/platform/seam.hpp>

#include <chrono>
#include <type_traits>

namespace punctual {

/// Adds, staying at the far end instead of overflowing.
constexpr nanoseconds saturating_add(nanoseconds a, nanoseconds b) noexcept {
  if (b.count() > 0 && a.count() > nanoseconds::max().count() - b.count())
    return nanoseconds::max();
  if (b.count() < 0 && a.count() < nanoseconds::min().count() - b.count())
    return nanoseconds::min();
  return a + b;
}

/// Subtracts, staying at the far end instead of overflowing.
constexpr nanoseconds saturating_subtract(nanoseconds a, nanoseconds b) noexcept {
  if (b.count() < 0 && a.count() > nanoseconds::max().count() + b.count())
    return nanoseconds::max();
  if (b.count() > 0 && a.count() < nanoseconds::min().count() + b.count())
    return nanoseconds::min();
  return a - b;
}

/// The shorter of two lengths. Here because <algorithm> alone compiles longer than <chrono>.
constexpr nanoseconds shorter(nanoseconds a, nanoseconds b) noexcept { return b < a ? b : a; }

/// The longer of two lengths.
constexpr nanoseconds longer(nanoseconds a, nanoseconds b) noexcept { return a < b ? b : a; }

/// The instant `length` after (or before) `from`; the far ends stay the far ends.
constexpr instant later(instant from, nanoseconds length) noexcept {
  return instant{saturating_add(from.time_since_epoch(), length)};
}

/// The time from `from` to `to`, saturating; negative when `to` comes first.
constexpr nanoseconds between(instant from, instant to) noexcept {
  return saturating_subtract(to.time_since_epoch(), from.time_since_epoch());
}

/// Converts any duration to nanoseconds: rounded up, saturated, NaN as zero.
///
/// A floating count becomes the smallest whole number of nanoseconds that is not below it when
/// converted back: `0.001 s` is exactly one million, not one more. Where its own steps are coarser
/// than that (a double beyond 104 days) it is what the count is exactly, rounded up. A class as a
/// count is taken with its fraction, as far as it converts to `std::int64_t` and back, to `double`
/// or, if it is marked as floating, to `long double`.
template <class Rep, class Period>
constexpr nanoseconds to_nanoseconds(const std::chrono::duration<Rep, Period>& length) noexcept {
  return nanoseconds{
      conversion::converted<typename Period::type, nanoseconds::period>(length.count())};
}

/// Converts a time point of the steady or the system clock to an instant on that clock.
template <class Clock, class Duration>
constexpr instant to_instant(const std::chrono::time_point<Clock, Duration>& at) noexcept {
  return instant{to_nanoseconds(at.time_since_epoch())};
}

}  // namespace punctual
