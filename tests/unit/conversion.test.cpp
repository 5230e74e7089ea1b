// Counts that are no int64_t and no double: 128 bits wide, long double, of a class.
//
// Mistake that would live without it: a count is squeezed into int64_t or double before its period
// is applied, so that picoseconds since 1970 are long past, a long double ends 128 ns early, and
// 1.5 s of a fixed-point class are one second.

#include <punctual/time.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>

namespace {

using namespace punctual;
using namespace std::chrono_literals;
namespace chrono = std::chrono;

constexpr nanoseconds longest = nanoseconds::max();
constexpr nanoseconds shortest = nanoseconds::min();

template <class Period = std::ratio<1>, class Rep>
constexpr nanoseconds length(const Rep& count) {
  return to_nanoseconds(chrono::duration<Rep, Period>(count));
}

/// A number in `One`-ths, kept in an integer of the given type; converts as its flags say.
template <class Raw, std::int64_t One, bool ToDouble>
struct fixed_point {
  Raw raw{0};

  constexpr fixed_point() = default;
  constexpr fixed_point(std::int64_t whole)  // NOLINT(google-explicit-constructor): as chrono wants
      : raw(static_cast<Raw>(whole) * static_cast<Raw>(One)) {}
  static constexpr fixed_point of(Raw raw) {
    fixed_point made;
    made.raw = raw;
    return made;
  }
  constexpr explicit operator std::int64_t() const {
    return static_cast<std::int64_t>(raw / static_cast<Raw>(One));
  }
  constexpr explicit operator double() const requires(ToDouble) {
    return static_cast<double>(raw) / static_cast<double>(One);
  }
  friend constexpr fixed_point operator+(fixed_point a, fixed_point b) { return of(a.raw + b.raw); }
  friend constexpr fixed_point operator-(fixed_point a, fixed_point b) { return of(a.raw - b.raw); }
  friend constexpr bool operator<(fixed_point a, fixed_point b) { return a.raw < b.raw; }
};
using thousandths = fixed_point<std::int64_t, 1000, true>;
using sixteenths = fixed_point<std::int64_t, 16, false>;
using unsigned_whole = fixed_point<std::uint64_t, 1, false>;

TEST_CASE("a class with a fraction keeps it", "[time][G5]") {
  CHECK(length(thousandths::of(1500)) == 1500ms);
  CHECK(length(thousandths::of(-1500)) == -1500ms);
  CHECK(length(thousandths::of(1)) == 1ms);
  CHECK(length<std::nano>(thousandths::of(1500)) == 2ns);
  CHECK(length<std::nano>(thousandths::of(-1500)) == -1ns);
  CHECK(length<chrono::hours::period>(thousandths::of(500)) == 30min);
  CHECK(length(thousandths::of(std::numeric_limits<std::int64_t>::max())) == longest);
  // Without a conversion to double the fraction is found bit by bit.
  CHECK(length(sixteenths::of(24)) == 1500ms);
  CHECK(length(sixteenths::of(-24)) == -1500ms);
  CHECK(length(sixteenths::of(1)) == 62'500us);
  CHECK(length<std::nano>(sixteenths::of(17)) == 2ns);
  CHECK(length<std::nano>(sixteenths::of(-17)) == -1ns);
  CHECK(length<std::ratio<1, 3>>(sixteenths::of(8)) == 166'666'667ns);
  constexpr nanoseconds quarter = length(thousandths::of(250));
  CHECK(quarter == 250ms);
}

TEST_CASE("an unsigned class above the range of int64_t is for ever, not long past", "[time][G5]") {
  CHECK(length(unsigned_whole::of(std::numeric_limits<std::uint64_t>::max())) == longest);
  CHECK(length(unsigned_whole::of(5)) == 5s);
}

#if PUNCTUAL_HAS_INT128
/// A wide integer of a class that nobody has told std::numeric_limits about.
struct wide_whole {
  signed_128 raw{0};
  constexpr wide_whole(std::int64_t value) : raw(value) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit operator std::int64_t() const { return static_cast<std::int64_t>(raw); }
  friend constexpr wide_whole operator-(wide_whole a, wide_whole b) { return of(a.raw - b.raw); }
  friend constexpr wide_whole operator*(wide_whole a, wide_whole b) { return of(a.raw * b.raw); }
  friend constexpr wide_whole operator/(wide_whole a, wide_whole b) { return of(a.raw / b.raw); }
  friend constexpr bool operator<(wide_whole a, wide_whole b) { return a.raw < b.raw; }
  static constexpr wide_whole of(signed_128 raw) {
    wide_whole made(0);
    made.raw = raw;
    return made;
  }
};

TEST_CASE("128-bit counts are divided by their period before they are made narrow", "[time][G5]") {
  constexpr signed_128 since_1970 = signed_128{1'700'000'000} * 1'000'000'000'000;  // in ps
  CHECK(length<std::pico>(since_1970) == 1'700'000'000s);
  CHECK(length<std::pico>(since_1970 + 1) == 1'700'000'000s + 1ns);
  CHECK(length<std::pico>(-since_1970 - 1) == -1'700'000'000s);
  CHECK(length<std::pico>(static_cast<unsigned_128>(since_1970) + 1) == 1'700'000'000s + 1ns);
  CHECK(length<std::atto>(since_1970 * 1'000'000 + 1) == 1'700'000'000s + 1ns);
  CHECK(length<std::pico>(wide_whole::of(since_1970 + 1)) == 1'700'000'000s + 1ns);
  CHECK(length<std::pico>(wide_whole::of(-since_1970 - 1)) == -1'700'000'000s);

  constexpr unsigned_128 all_ones = ~unsigned_128{0};
  constexpr auto most = static_cast<signed_128>(all_ones >> 1);
  CHECK(length(all_ones) == longest);
  CHECK(length<std::nano>(all_ones) == longest);
  CHECK(length<std::atto>(all_ones) == longest);
  CHECK(length(unsigned_128{5}) == 5s);
  CHECK(length<std::nano>(unsigned_128{1} << 63) == longest);
  CHECK(length<std::pico>(most) == longest);
  CHECK(length<std::pico>(-most - 1) == shortest);
  CHECK(length<std::exa>(most) == longest);
  CHECK(length<std::pico>(wide_whole::of(most)) == longest);

  std::mt19937_64 chance(128);
  for (int i = 0; i < 100'000; ++i) {
    const unsigned shift = chance() % 64;
    const signed_128 any =
        (static_cast<signed_128>(static_cast<std::int64_t>(chance())) << 33 >> shift) +
        static_cast<signed_128>(chance() % 1000);
    const nanoseconds whole = length<std::pico>(any);
    const signed_128 floor = any / 1000 - (any % 1000 < 0 ? 1 : 0);
    const signed_128 right = floor + (any % 1000 == 0 ? 0 : 1);
    const signed_128 held = right > longest.count()    ? signed_128{longest.count()}
                            : right < shortest.count() ? signed_128{shortest.count()}
                                                       : right;
    if (whole.count() != held) FAIL(static_cast<std::int64_t>(right));
  }
}

/// What a floating count is in units of 2^-60 of a nanosecond's fraction: floor and rest.
struct exact_length {
  signed_128 whole;
  bool more;
};
/// `count` seconds, milliseconds … exactly: `up / den` nanoseconds each.
template <class Real>
exact_length exactly(Real count, std::int64_t up, std::int64_t den) {
  int exponent = 0;
  const Real mantissa = std::frexp(count, &exponent);
  const auto digits = static_cast<std::int64_t>(std::ldexp(mantissa, 63));  // 63 bits: enough here
  const signed_128 product = static_cast<signed_128>(digits) * up;
  const int shift = 63 - exponent;
  if (shift <= 0) return {(product << -shift) / den, (product << -shift) % den != 0};
  const signed_128 divisor = static_cast<signed_128>(den) << shift;
  signed_128 whole = product / divisor;
  if (product % divisor < 0) --whole;
  return {whole, product % divisor != 0};
}

template <class Real, class Period>
void never_below(std::uint64_t seed, std::int64_t up, std::int64_t den, double least_log,
                 double most_log) {
  std::mt19937_64 chance(seed);
  std::uniform_real_distribution<double> exponent(least_log, most_log);
  for (int i = 0; i < 50'000; ++i) {
    // All the digits of a Real, so that many are not what a double can hold; but 63 at most.
    const auto bits = static_cast<std::int64_t>(chance() >> 1 | 1);
    const Real count = (i % 4 == 0 ? Real{-1} : Real{1}) * static_cast<Real>(bits) *
                       static_cast<Real>(std::ldexp(1.0, -63)) *
                       static_cast<Real>(std::pow(2.0, std::floor(exponent(chance))));
    const nanoseconds whole = length<Period>(count);
    const exact_length right = exactly(count, up, den);
    const signed_128 ceiling = right.whole + (right.more ? 1 : 0);
    if (ceiling >= longest.count() || ceiling <= shortest.count()) continue;
    // Up to where a Real has steps of a 16th of a nanosecond, its own rounding may be taken back.
    const bool fine = std::abs(whole.count()) < (std::int64_t{1} << 49) ||
                      (std::numeric_limits<Real>::digits >= 64 &&
                       std::abs(whole.count()) < (std::int64_t{1} << 60));
    if (whole.count() < ceiling - (fine ? 1 : 0)) FAIL("below: " << static_cast<double>(count));
    const int digits = std::numeric_limits<Real>::digits;
    const std::int64_t step = digits >= 63 ? 1 : std::int64_t{1} << (63 - digits);
    if (whole.count() > ceiling + step) FAIL("far above: " << static_cast<double>(count));
  }
  SUCCEED();
}

TEST_CASE("a floating deadline of any size is never rounded down by a nanosecond",
          "[time][G1][G5]") {
  never_below<double, std::ratio<1>>(1, 1'000'000'000, 1, -32, 33);
  never_below<double, std::milli>(2, 1'000'000, 1, -22, 43);
  never_below<double, std::ratio<1, 60>>(3, 50'000'000, 3, -27, 38);
  never_below<double, std::ratio<3600>>(4, 3'600'000'000'000, 1, -41, 20);
  never_below<long double, std::ratio<1>>(5, 1'000'000'000, 1, -32, 33);
  never_below<long double, std::nano>(6, 1, 1, -2, 62);
  never_below<long double, std::ratio<1, 60>>(7, 50'000'000, 3, -27, 38);
  never_below<double, std::pico>(8, 1, 1000, 0, 62);
}
#endif

TEST_CASE("a wall-clock instant in seconds as double or long double is not before itself",
          "[time][G1][G5]") {
  // 2023-11-14 22:13:20.1 and so on: a double has steps of 238 ns there.
  for (int i = 0; i < 10'000; ++i) {
    const double rough = 1'700'000'000.0 + i * 0.0137;
    const nanoseconds whole = length(rough);
    const auto seconds = static_cast<std::int64_t>(rough);
    const double rest = rough - static_cast<double>(seconds);  // exact
    const nanoseconds right =
        chrono::seconds(seconds) + nanoseconds(static_cast<std::int64_t>(std::ceil(rest * 1e9)));
    if (whole < right || whole > right + 256ns) FAIL(i);
  }
  if (std::numeric_limits<long double>::digits >= 64) {
    for (int i = 0; i < 10'000; ++i) {
      const std::int64_t nano = 1'700'000'000'000'000'000 + std::int64_t{i} * 1'000'003;
      const nanoseconds whole = length<std::nano>(static_cast<long double>(nano));
      if (whole.count() != nano) FAIL(i);
      const nanoseconds more = length<std::nano>(static_cast<long double>(nano) + 0.25L);
      if (more.count() != nano + 1) FAIL(i << " and a quarter");
    }
  }
  SUCCEED();
}

}  // namespace
