// Counts of one period as counts of another: any rep, any period, rounded up and saturated.
//
// Layer L1. The arithmetic under time.hpp, which is what others include. Exact where the answer
// fits 64 bits, whatever the count is: 128 bits wide, a long double beyond 2^53, of a fixed-point
// class. A floating count that is a whole number of nanoseconds but for its own rounding stays that
// number (0.001 s is exactly one million); no count comes out below itself.
#pragma once

#include <punctual/platform/config.hpp>

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

namespace conversion {

// Told apart by bits: under -ffast-math a compiler may assume that there is no NaN, no infinity.
constexpr std::uint64_t bits_of(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value) & 0x7fff'ffff'ffff'ffffu;
}
constexpr bool is_nan(double value) noexcept { return bits_of(value) > 0x7ff0'0000'0000'0000u; }
constexpr bool is_infinite(double value) noexcept {
  return bits_of(value) == 0x7ff0'0000'0000'0000u;
}
constexpr bool is_negative(double value) noexcept {
  return (std::bit_cast<std::uint64_t>(value) >> 63) != 0;
}

inline constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

// std::gcd would bring <numeric> into every program that waits.
constexpr std::intmax_t common_divisor(std::intmax_t a, std::intmax_t b) noexcept {
  while (b != 0) {
    const std::intmax_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// From over To as a ratio: `num * scale / den`, and whether `num * scale` fits 64 bits.
template <class From, class To>
struct steps {
  static constexpr std::uint64_t num{From::num / common_divisor(From::num, To::num)};
  static constexpr std::uint64_t scale{To::den / common_divisor(From::den, To::den)};
  static constexpr std::uint64_t den_part{From::den / common_divisor(From::den, To::den)};
  static constexpr std::uint64_t den_scale{To::num / common_divisor(From::num, To::num)};
  static constexpr std::uint64_t most{std::uint64_t{greatest}};
  static constexpr bool fits = num <= most / scale && den_part <= most / den_scale;
  static constexpr std::uint64_t up = fits ? num * scale : 1;
  static constexpr std::uint64_t den = fits ? den_part * den_scale : den_part;
};

/// `magnitude` Froms in Tos, exact for every From where To is the nanosecond.
template <class From, class To>
constexpr std::uint64_t scaled(std::uint64_t magnitude, rounding how) noexcept {
  using by = steps<From, To>;
  if constexpr (by::fits) {
    return multiply_divide(magnitude, by::up, by::den, how);
  } else {  // a tera-second, or a period that is no round part of anything
    static_assert(by::den_scale == 1);
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t whole = multiply_divide(magnitude, by::num, by::den, rounding::down);
    if (whole >= most / by::scale) return most;
    // The remainder is below the divisor, so it is right modulo 2^64.
    const std::uint64_t rest = magnitude * by::num - whole * by::den;
    return whole * by::scale + multiply_divide(rest, by::scale, by::den, how);
  }
}

constexpr std::int64_t with_sign(std::uint64_t magnitude, bool negative) noexcept {
  constexpr auto most = static_cast<std::uint64_t>(greatest);
  if (negative) return magnitude > most ? least : -static_cast<std::int64_t>(magnitude);
  return magnitude > most ? greatest : static_cast<std::int64_t>(magnitude);
}

constexpr std::int64_t sum(std::int64_t a, std::int64_t b) noexcept {
  if (b > 0 && a > greatest - b) return greatest;
  if (b < 0 && a < least - b) return least;
  return a + b;
}

template <class From, class To, class Rep>
constexpr std::int64_t from_integral(Rep count) noexcept {
  const bool negative = std::is_signed_v<Rep> && count < Rep{0};
  const auto bits = static_cast<std::uint64_t>(count);
  const std::uint64_t magnitude = negative ? std::uint64_t{0} - bits : bits;
  // Up means towards later: away from zero for positive counts, towards it for negative ones.
  return with_sign(scaled<From, To>(magnitude, negative ? rounding::down : rounding::up), negative);
}

// A count whose steps are about a To or coarser: what it is exactly, rounded up. `count` is finite
// and below 2^63 Tos; it has at most 64 digits.
template <class From, class To, class Real>
constexpr std::int64_t from_coarse(Real count) noexcept {
  using by = steps<From, To>;
  const bool negative = count < 0;
  // Halved until a To is no more than one of these units, so that the whole part fits 64 bits.
  constexpr int halvings =
      by::up >= by::den ? 0 : static_cast<int>(std::bit_width((by::den - 1) / by::up));
  constexpr std::uint64_t up = by::up << halvings;
  constexpr std::uint64_t parts = std::uint64_t{1} << 63;
  const Real size = (negative ? -count : count) / static_cast<Real>(std::uint64_t{1} << halvings);
  const auto whole = static_cast<std::uint64_t>(size);
  const Real rest = size - static_cast<Real>(whole);
  const auto fraction = static_cast<std::uint64_t>(rest * static_cast<Real>(parts));
  const std::uint64_t tos = multiply_divide(whole, up, by::den, rounding::down);
  const std::uint64_t left =
      whole * up - tos * by::den + multiply_divide(fraction, up, parts, rounding::down);
  const bool more = ((fraction * up) & (parts - 1)) != 0 || left % by::den != 0;
  return with_sign(tos + left / by::den + (more && !negative ? 1 : 0), negative);
}

/// Whether `whole` Tos are less than `count` Froms when converted back.
template <class From, class To, class Real>
constexpr bool is_below(std::int64_t whole, Real count) noexcept {
  if constexpr (steps<From, To>::fits) {
    using there = std::chrono::duration<std::int64_t, To>;
    return std::chrono::duration<Real, From>(there(whole)).count() < count;
  } else {
    using by = steps<From, To>;
    return static_cast<Real>(whole) * static_cast<Real>(by::den_part) *
               static_cast<Real>(by::den_scale) <
           count * static_cast<Real>(by::num) * static_cast<Real>(by::scale);
  }
}

/// The next number after `whole` that a Real of so many digits can hold.
constexpr std::int64_t next_step(std::int64_t whole, int digits) noexcept {
  const auto magnitude = static_cast<std::uint64_t>(whole < 0 ? -(whole + 1) : whole);
  const int spare = static_cast<int>(std::bit_width(magnitude)) - digits;
  const std::int64_t below = (std::int64_t{1} << (spare > 0 ? spare : 0)) - 1;
  return whole > greatest - below - 1 ? greatest : (whole | below) + 1;
}

template <class From, class To, class Real>
constexpr std::int64_t from_floating(Real count) noexcept {
  using by = steps<From, To>;
  // A long double that no double can hold is infinite here, and in nanoseconds as well.
  const auto kind = static_cast<double>(count);
  if (is_nan(kind)) return 0;
  if (is_infinite(kind)) return is_negative(kind) ? least : greatest;
  constexpr Real factor = static_cast<Real>(by::num) * static_cast<Real>(by::scale) /
                          (static_cast<Real>(by::den_part) * static_cast<Real>(by::den_scale));
  constexpr Real end = static_cast<Real>(std::uint64_t{1} << 63);
  if (count >= end / factor) return greatest;
  if (count <= -end / factor) return least;
  const Real length = count * factor;
  if (length >= end) return greatest;
  if (length <= -end) return least;
  auto whole = static_cast<std::int64_t>(length);  // towards zero

  // Beyond this many Tos the steps of a Real are more than a sixteenth of one.
  constexpr int digits = std::numeric_limits<Real>::digits;
  constexpr std::int64_t coarse = digits > 66 ? greatest : std::int64_t{1} << (digits - 4);
  if (whole >= coarse || whole <= -coarse) {
    if constexpr (by::fits && by::up <= (std::uint64_t{1} << 58) &&
                  by::den <= (std::uint64_t{1} << 60) && digits <= 64) {
      whole = from_coarse<From, To>(count);
    } else {  // what the roundings of the factor and of the length may have taken away
      constexpr std::int64_t spare = digits < 61 ? std::int64_t{1} << (65 - digits) : 16;
      whole = sum(whole, spare);
    }
  }
  while (whole != greatest && is_below<From, To>(whole, count)) whole = next_step(whole, digits);
  return whole;
}

/// Saturates a wide integer.
template <class Rep>
constexpr std::int64_t narrowed(const Rep& count) noexcept {
  if (count < static_cast<Rep>(0)) {
    return count < static_cast<Rep>(least) ? least : static_cast<std::int64_t>(count);
  }
  return static_cast<Rep>(greatest) < count ? greatest : static_cast<std::int64_t>(count);
}

/// An integer of more than 64 bits: divided before it is made narrow.
template <class From, class To, class Rep>
constexpr std::int64_t from_wide(const Rep& count) noexcept {
  using by = steps<From, To>;
  if constexpr (by::fits) {
    const Rep whole = count / static_cast<Rep>(by::den);
    const Rep rest = count - whole * static_cast<Rep>(by::den);
    return sum(from_integral<std::ratio<std::intmax_t{by::up}>, std::ratio<1>>(narrowed(whole)),
               from_integral<From, To>(narrowed(rest)));
  } else {  // more than a To each
    return from_integral<From, To>(narrowed(count));
  }
}

/// A number of a class: its whole part, and the rest of it as a double or bit by bit.
template <class From, class To, class Rep>
constexpr std::int64_t from_class(const Rep& count) noexcept {
  if constexpr (!requires { static_cast<std::int64_t>(count); }) {
    return from_floating<From, To>(static_cast<double>(count));
  } else {
    auto whole = static_cast<std::int64_t>(count);
    if constexpr (requires { count < static_cast<Rep>(0); }) {
      if (whole < 0 && !(count < static_cast<Rep>(0))) return greatest;  // unsigned, and above
      // A wide integer of one's own: told by 1 / 2. Without a division it is saturated as it is.
      if constexpr (sizeof(Rep) > sizeof(whole)) {
        if constexpr (requires(Rep a, Rep b) { static_cast<std::int64_t>(a - b * (a / b)); }) {
          const Rep half = static_cast<Rep>(1) / static_cast<Rep>(2);
          if (!(static_cast<Rep>(0) < half)) return from_wide<From, To>(count);
        }
        if (static_cast<std::int64_t>(static_cast<Rep>(greatest)) == greatest) {
          whole = narrowed(count);
          if (whole == greatest || whole == least) return whole;
        }
      }
    }
    const std::int64_t length = from_integral<From, To>(whole);
    if constexpr (requires(Rep a) { a - static_cast<Rep>(whole); }) {
      const Rep rest = count - static_cast<Rep>(whole);
      if constexpr (requires { static_cast<double>(rest); }) {
        return sum(length, from_floating<From, To>(static_cast<double>(rest)));
      } else if constexpr (requires(Rep a) { a + a < static_cast<Rep>(0); }) {
        const Rep zero = static_cast<Rep>(0);
        const Rep one = static_cast<Rep>(1);
        const bool negative = rest < zero;
        Rep left = negative ? zero - rest : rest;
        std::uint64_t bits = 0;
        constexpr int places = 62;
        for (int i = 0; i < places; ++i) {
          left = left + left;
          const bool bit = !(left < one);
          bits = bits << 1 | (bit ? 1u : 0u);
          if (bit) left = left - one;
        }
        const rounding how = negative ? rounding::down : rounding::up;
        if (zero < left && !negative) ++bits;
        const std::uint64_t part =
            multiply_divide(bits, steps<From, To>::up, std::uint64_t{1} << places, how);
        return sum(length,
                   with_sign(multiply_divide(part, 1, steps<From, To>::den, how), negative));
      }
    }
    return length;
  }
}

template <class Rep>
constexpr bool is_wide_integer() noexcept {
  if constexpr (sizeof(Rep) <= sizeof(std::int64_t)) return false;
#if PUNCTUAL_HAS_INT128  // whose numeric_limits a strict compiler does not fill in
  if constexpr (std::is_same_v<Rep, signed_128> || std::is_same_v<Rep, unsigned_128>) return true;
#endif
  return std::numeric_limits<Rep>::is_integer;
}

/// `count` Froms in Tos: rounded up, saturated, NaN as zero.
template <class From, class To, class Rep>
constexpr std::int64_t converted(const Rep& count) noexcept {
  if constexpr (std::is_same_v<Rep, long double>) {
    return from_floating<From, To>(count);
  } else if constexpr (std::is_floating_point_v<Rep>) {
    return from_floating<From, To>(static_cast<double>(count));
  } else if constexpr (is_wide_integer<Rep>()) {
    return from_wide<From, To>(count);
  } else if constexpr (std::is_integral_v<Rep>) {
    return from_integral<From, To>(count);
  } else if constexpr (!std::chrono::treat_as_floating_point_v<Rep>) {
    return from_class<From, To>(count);
  } else if constexpr (requires { static_cast<long double>(count); }) {
    return from_floating<From, To>(static_cast<long double>(count));
  } else {
    return from_floating<From, To>(static_cast<double>(count));
  }
}

}  // namespace conversion
}  // namespace punctual
