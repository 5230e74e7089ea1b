// Chance that repeats: the same seed gives the same run with every compiler and standard library.
//
// Side layer. Integers only: the distributions of <random> differ from one library to the next, and
// floating point differs with the compiler's options. Good enough to shape a kernel's lateness; not
// made for statistics, nor for secrets.
#pragma once

#include <punctual/time.hpp>

#include <bit>
#include <cstdint>
#include <limits>

namespace punctual::testing {

/// A number in units of 2^-20.
using fixed = std::int64_t;
inline constexpr fixed fixed_one = fixed{1} << 20;
inline constexpr std::uint64_t ln2_fixed = 726'817;

/// The logarithm to base 2, exact to 2^-18. @param x  1 or more; 0 counts as 1.
constexpr fixed fixed_log2(std::uint64_t x) noexcept {
  if (x == 0) return 0;
  const int whole = static_cast<int>(std::bit_width(x)) - 1;
  std::uint64_t mantissa = (x << (63 - whole)) >> 32;  // 1 … 2 in units of 2^-31
  fixed result = whole;
  for (int bit = 0; bit < 20; ++bit) {
    mantissa = (mantissa * mantissa) >> 31;
    const bool one = (mantissa >> 32) != 0;
    if (one) mantissa >>= 1;
    result = result * 2 + (one ? 1 : 0);
  }
  return result;
}

/// `value` times 2 to the `power`, to 20 ppm; saturates at the largest `nanoseconds`.
constexpr nanoseconds times_exp2(nanoseconds value, fixed power) noexcept {
  if (value.count() <= 0) return nanoseconds::zero();
  const fixed whole = power >> 20;  // towards minus infinity
  const auto f = static_cast<std::uint64_t>(power - whole * fixed_one);
  // 2^f as a polynomial: (f ln 2)^k / k!, in units of 2^-30.
  constexpr std::uint64_t terms[] = {165'394,     1'431'680,   10'327'387,   59'597'083,
                                     257'941'248, 744'261'118, 1'073'741'824};
  std::uint64_t factor = 0;
  for (const std::uint64_t term : terms) factor = ((factor * f) >> 20) + term;
  const std::uint64_t scaled = multiply_divide(static_cast<std::uint64_t>(value.count()), factor,
                                               std::uint64_t{1} << 30, rounding::down);
  constexpr auto most = static_cast<std::uint64_t>((nanoseconds::max)().count());
  if (whole < 0) return nanoseconds{whole < -63 ? 0 : static_cast<std::int64_t>(scaled >> -whole)};
  if (whole > 62 || scaled > (most >> whole)) return (nanoseconds::max)();
  return nanoseconds{static_cast<std::int64_t>(scaled << whole)};
}

/// A seeded source of numbers: SplitMix64.
class generator {
 public:
  explicit constexpr generator(std::uint64_t seed = 1) noexcept : state_(seed) {}

  constexpr std::uint64_t operator()() noexcept {
    state_ += 0x9e37'79b9'7f4a'7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9u;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebu;
    return z ^ (z >> 31);
  }

  /// A number in 0 … n − 1, each as likely; 0 for n = 0.
  constexpr std::uint64_t below(std::uint64_t n) noexcept {
    return multiply_divide((*this)() >> 1, n, std::uint64_t{1} << 63, rounding::down);
  }

  /// A length from `least` up to and including `most`.
  constexpr nanoseconds between(nanoseconds least, nanoseconds most) noexcept {
    if (most <= least) return least;
    const auto span = static_cast<std::uint64_t>((most - least).count()) + 1;
    return least + nanoseconds{static_cast<std::int64_t>(below(span))};
  }

  /// True once in `n` times on average; never for n = 0.
  constexpr bool one_in(std::uint64_t n) noexcept {
    return n != 0 && (*this)() <= (std::numeric_limits<std::uint64_t>::max)() / n;
  }

  /// How many halvings it takes to come down to a random share: −log2 of a number in (0, 1].
  constexpr fixed halvings() noexcept { return 53 * fixed_one - fixed_log2(((*this)() >> 11) + 1); }

  /// The time to the next of many independent events that come once every `mean`.
  constexpr nanoseconds exponential(nanoseconds mean) noexcept {
    const std::uint64_t share = (static_cast<std::uint64_t>(halvings()) * ln2_fixed) >> 20;
    return nanoseconds{static_cast<std::int64_t>(
        multiply_divide(static_cast<std::uint64_t>(mean.count()), share,
                        static_cast<std::uint64_t>(fixed_one), rounding::down))};
  }

  /// A number from the normal distribution with mean 0 and deviation 1: Marsaglia's polar method.
  constexpr fixed normal() noexcept {
    std::int64_t a = 0;
    std::uint64_t square = 0, sum = 0;
    do {
      const std::uint64_t bits = (*this)();
      a = static_cast<std::int32_t>(bits >> 32);
      const std::int64_t b = static_cast<std::int32_t>(bits & 0xffff'ffffu);
      square = static_cast<std::uint64_t>(a * a);
      sum = square + static_cast<std::uint64_t>(b * b);
    } while (sum >= (std::uint64_t{1} << 62) || sum == 0);
    // z = a sqrt(−2 ln s / s), with s = sum / 2^62.
    const auto log = static_cast<std::uint64_t>(62 * fixed_one - fixed_log2(sum));
    const std::uint64_t twice = (2 * log * ln2_fixed) >> 20;
    const std::uint64_t z = square_root(multiply_divide(square, twice << 20, sum, rounding::down));
    return a < 0 ? -static_cast<fixed>(z) : static_cast<fixed>(z);
  }

 private:
  static constexpr std::uint64_t square_root(std::uint64_t x) noexcept {
    std::uint64_t root = 0;
    for (std::uint64_t bit = std::uint64_t{1} << 62; bit != 0; bit >>= 2) {
      if (x >= root + bit) {
        x -= root + bit;
        root = (root >> 1) + bit;
      } else {
        root >>= 1;
      }
    }
    return root;
  }

  std::uint64_t state_;
};

}  // namespace punctual::testing
