// Time as a value: every chrono duration and time point becomes nanoseconds here, and only here.
//
// Layer L1. One rule for all: round up to the next nanosecond, saturate at both ends, never
// overflow, and give every value a meaning (NaN is zero, the far ends are "for ever" and "long
// past"). Rounding up is what keeps a wait from ending early; saturating is what keeps "for ever"
// from becoming "at once".
#pragma once

#include <punctual/platform/config.hpp>
#include <punctual/platform/seam.hpp>

#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace punctual {

/// How a quotient that is not whole is rounded.
enum class rounding : std::uint8_t { down, up };

/// Computes `a * b / c` without 128-bit integers: schoolbook product, then the quotient bit by bit.
constexpr std::uint64_t multiply_divide_split(std::uint64_t a, std::uint64_t b, std::uint64_t c,
                                              rounding how) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  if (a == 0 || b == 0) return 0;
  if (c == 0) return most;
  constexpr std::uint64_t low_half = 0xffffffffu;
  const std::uint64_t ll = (a & low_half) * (b & low_half);
  const std::uint64_t lh = (a & low_half) * (b >> 32);
  const std::uint64_t hl = (a >> 32) * (b & low_half);
  const std::uint64_t hh = (a >> 32) * (b >> 32);
  const std::uint64_t middle = (ll >> 32) + (lh & low_half) + (hl & low_half);
  const std::uint64_t high = hh + (lh >> 32) + (hl >> 32) + (middle >> 32);
  const std::uint64_t low = (ll & low_half) | (middle << 32);
  if (high >= c) return most;
  std::uint64_t remainder = high;
  std::uint64_t quotient = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const bool carry = (remainder >> 63) != 0;
    remainder = (remainder << 1) | ((low >> bit) & 1u);
    quotient <<= 1;
    if (carry || remainder >= c) {
      remainder -= c;
      quotient |= 1u;
    }
  }
  if (how == rounding::up && remainder != 0 && quotient != most) ++quotient;
  return quotient;
}

/// Computes `a * b / c` with a 128-bit product, saturating at the largest 64-bit value.
///
/// @param c  Divisor; 0 counts as the smallest one, so the result saturates.
/// Cost: one division; without 128-bit integers the split form, 64 steps.
constexpr std::uint64_t multiply_divide(std::uint64_t a, std::uint64_t b, std::uint64_t c,
                                        rounding how) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  if (a == 0 || b == 0) return 0;
  if (c == 0) return most;
#if PUNCTUAL_HAS_INT128
  const unsigned_128 product = static_cast<unsigned_128>(a) * b;
  const unsigned_128 quotient = product / c;
  if (quotient >= most) return most;
  return static_cast<std::uint64_t>(quotient) + (how == rounding::up && product % c != 0 ? 1 : 0);
#else
  return multiply_divide_split(a, b, c, how);
#endif
}

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

namespace conversion {

// Told apart by bits: under -ffast-math a compiler may assume that there is no NaN, no infinity.
constexpr bool is_nan(double value) noexcept {
  return (std::bit_cast<std::uint64_t>(value) & 0x7fff'ffff'ffff'ffffu) > 0x7ff0'0000'0000'0000u;
}
constexpr bool is_infinite(double value) noexcept {
  return (std::bit_cast<std::uint64_t>(value) & 0x7fff'ffff'ffff'ffffu) == 0x7ff0'0000'0000'0000u;
}
constexpr bool is_negative(double value) noexcept {
  return (std::bit_cast<std::uint64_t>(value) >> 63) != 0;
}

/// Nanoseconds in one Period: `num` * `factor` / `den`, and whether `num` * `factor` fits 64 bits.
template <class Period>
struct per_period {
  using reduced = std::ratio<1'000'000'000, Period::den>;
  static constexpr std::uint64_t num{Period::num};
  static constexpr std::uint64_t factor{reduced::num};
  static constexpr std::uint64_t den{reduced::den};
  static constexpr bool fits = num <= nanoseconds::max().count() / factor;
};

/// `magnitude` Periods in nanoseconds, exact for every Period.
template <class Period>
constexpr std::uint64_t to_nano(std::uint64_t magnitude, rounding how) noexcept {
  using period = per_period<Period>;
  if constexpr (period::fits) {
    return multiply_divide(magnitude, period::num * period::factor, period::den, how);
  } else {  // a tera-second, or a period that is no round part of anything
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t whole =
        multiply_divide(magnitude, period::num, period::den, rounding::down);
    if (whole >= most / period::factor) return most;
    // The remainder is below the divisor, so it is right modulo 2^64.
    const std::uint64_t rest = magnitude * period::num - whole * period::den;
    return whole * period::factor + multiply_divide(rest, period::factor, period::den, how);
  }
}

template <class Period>
constexpr nanoseconds from_floating(double count) noexcept {
  if (is_nan(count)) return nanoseconds::zero();
  if (is_infinite(count)) return is_negative(count) ? nanoseconds::min() : nanoseconds::max();
  constexpr double scale =
      static_cast<double>(Period::num) / static_cast<double>(Period::den) * 1e9;
  constexpr double end = 9223372036854775808.0;  // 2^63
  if (count >= end / scale) return nanoseconds::max();
  if (count <= -end / scale) return nanoseconds::min();
  const double length = count * scale;
  if (length >= end) return nanoseconds::max();
  if (length <= -end) return nanoseconds::min();
  // Compared in units of Period, so that a count which nanoseconds can hold is not rounded up.
  const auto in_periods = [](nanoseconds t) {
    if constexpr (per_period<Period>::fits) {
      return std::chrono::duration<double, Period>(t).count();
    } else {
      return static_cast<double>(t.count()) / scale;
    }
  };
  nanoseconds whole{static_cast<std::int64_t>(length)};
  // Beyond 2^53 ns (104 days) a double has steps of more than a nanosecond.
  const auto magnitude =
      static_cast<std::uint64_t>(whole.count() < 0 ? -whole.count() : whole.count());
  const int spare = static_cast<int>(std::bit_width(magnitude)) - 53;
  const nanoseconds step{std::int64_t{1} << (spare > 0 ? spare : 0)};
  while (in_periods(whole) < count && whole != nanoseconds::max()) {
    whole = saturating_add(whole, step);
  }
  return whole;
}

template <class Period, class Rep>
constexpr nanoseconds from_integral(Rep count) noexcept {
  const bool negative = std::is_signed_v<Rep> && count < Rep{0};
  const auto bits = static_cast<std::uint64_t>(count);
  const std::uint64_t magnitude = negative ? std::uint64_t{0} - bits : bits;
  // Up means towards later: away from zero for positive counts, towards it for negative ones.
  const std::uint64_t whole = to_nano<Period>(magnitude, negative ? rounding::down : rounding::up);
  constexpr auto most = static_cast<std::uint64_t>(nanoseconds::max().count());
  if (negative) {
    return whole > most ? nanoseconds::min() : nanoseconds{-static_cast<std::int64_t>(whole)};
  }
  return whole > most ? nanoseconds::max() : nanoseconds{static_cast<std::int64_t>(whole)};
}

/// A count wider than 64 bits, or of a class, saturated to 64.
template <class Rep>
constexpr std::int64_t narrowed(const Rep& count) noexcept {
  if constexpr (sizeof(Rep) > sizeof(std::int64_t)) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    if (count > static_cast<Rep>(most)) return most;
    if (count < static_cast<Rep>(least)) return least;
  }
  return static_cast<std::int64_t>(count);
}

}  // namespace conversion

/// Converts any duration to nanoseconds: rounded up, saturated, NaN as zero.
///
/// A floating count becomes the smallest whole number of nanoseconds that is not below it when
/// converted back: `0.001 s` is exactly one million, not one more. A count in `long double` is
/// taken as a double; a class as a count is taken as the `double` or `int64_t` it converts to.
template <class Rep, class Period>
constexpr nanoseconds to_nanoseconds(const std::chrono::duration<Rep, Period>& length) noexcept {
  if constexpr (std::is_floating_point_v<Rep>) {
    return conversion::from_floating<Period>(static_cast<double>(length.count()));
  } else if constexpr (std::is_integral_v<Rep> && sizeof(Rep) <= sizeof(std::int64_t)) {
    return conversion::from_integral<Period>(length.count());
  } else if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    return conversion::from_floating<Period>(static_cast<double>(length.count()));
  } else {
    return conversion::from_integral<Period>(conversion::narrowed(length.count()));
  }
}

/// Converts a time point of the steady or the system clock to an instant on that clock.
template <class Clock, class Duration>
constexpr instant to_instant(const std::chrono::time_point<Clock, Duration>& at) noexcept {
  return instant{to_nanoseconds(at.time_since_epoch())};
}

}  // namespace punctual
