// The one place where chrono types become nanoseconds: every value, every rep, rounding, both ends.
//
// Mistake that would live without it: a conversion that rounds down (a wait that ends early), that
// wraps ("for ever" returns at once), or that multiplies before it divides in 64 bits.

#include <punctual/time.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace punctual;
using namespace std::chrono_literals;
namespace chrono = std::chrono;

using ratio_frame = std::ratio<1001, 60000>;
using picoseconds = chrono::duration<std::int64_t, std::pico>;

constexpr nanoseconds longest = nanoseconds::max();
constexpr nanoseconds shortest = nanoseconds::min();
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

#if PUNCTUAL_HAS_INT128
__extension__ using wide = unsigned __int128;
__extension__ using signed_wide = __int128;

void holds(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const wide product = static_cast<wide>(a) * b;
  for (const rounding how : {rounding::down, rounding::up}) {
    const wide quotient = product / c + (how == rounding::up && product % c != 0 ? 1 : 0);
    const std::uint64_t right = quotient > most ? most : static_cast<std::uint64_t>(quotient);
    if (multiply_divide(a, b, c, how) != right) FAIL(a << " * " << b << " / " << c);
    if (multiply_divide_split(a, b, c, how) != right) FAIL("split: " << a << ' ' << b << ' ' << c);
  }
}
#else  // a 32-bit machine: the remainder tells, which is right modulo 2^64
void holds(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t quotient = multiply_divide(a, b, c, rounding::down);
  const std::uint64_t remainder = a * b - quotient * c;
  const double rough = static_cast<double>(a) * static_cast<double>(b) / static_cast<double>(c);
  if (quotient == most ? rough < 1.8e19 : remainder >= c) FAIL(a << " * " << b << " / " << c);
  const bool more = quotient != most && remainder != 0;
  if (multiply_divide(a, b, c, rounding::up) != quotient + (more ? 1 : 0)) FAIL("rounding up");
}
#endif

template <class Rep, class Period = std::ratio<1>>
constexpr nanoseconds converted(Rep count) {
  return to_nanoseconds(chrono::duration<Rep, Period>(count));
}

/// A number class that chrono accepts as a count: here one that is no floating point number.
class whole {
 public:
  constexpr whole(std::int64_t value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit operator std::int64_t() const { return value_; }

 private:
  std::int64_t value_;
};

/// And one that is.
class real {
 public:
  constexpr real(double value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit operator double() const { return value_; }

 private:
  double value_;
};

}  // namespace

template <>
struct std::chrono::treat_as_floating_point<real> : std::true_type {};

namespace {

TEST_CASE("ticks and nanoseconds convert as 128-bit arithmetic says, at every frequency",
          "[time]") {
  // CASES B16: ticks times 10^9 wraps 64 bits after 18 s.
  std::mt19937_64 chance(16);
  constexpr std::uint64_t second = 1'000'000'000;
  for (const std::uint64_t frequency :
       {32'768ull, 1'000'000ull, 3'579'545ull, 10'000'000ull, 19'200'000ull, 24'000'000ull,
        1'000'000'000ull, 2'096'004'000ull, 3'700'000'000ull, 5'000'000'000ull}) {
    CAPTURE(frequency);
    std::vector<std::uint64_t> ticks{0, 1, 1ull << 60, (1ull << 63) - 1, most};
    for (const std::uint64_t edge : {1ull << 32, 1ull << 53, 18'000'000'000ull}) {
      ticks.insert(ticks.end(), {edge - 1, edge, edge + 1});
    }
    for (int i = 0; i < 100'000; ++i) ticks.push_back(chance() >> (chance() % 64));
    std::sort(ticks.begin(), ticks.end());
    std::uint64_t last = 0;
    for (const std::uint64_t count : ticks) {
      holds(count, second, frequency);
      holds(count, frequency, second);
      const std::uint64_t length = multiply_divide(count, second, frequency, rounding::up);
      if (length < last) FAIL("decreased at " << count);
      last = length;
      // To ticks and back: up both ways, so a wait never comes back shorter.
      const std::uint64_t there = multiply_divide(count, frequency, second, rounding::up);
      const std::uint64_t back = multiply_divide(there, second, frequency, rounding::up);
      if (there != most && back < count) FAIL("shorter: " << count);
    }
  }
  SUCCEED();
}

TEST_CASE("multiply and divide agree with 128-bit arithmetic on any three numbers", "[time]") {
  std::mt19937_64 chance(17);
  for (int i = 0; i < 100'000; ++i) {
    const auto any = [&] { return chance() >> (chance() % 64); };
    holds(any(), any(), any() | 1);
  }
  for (const std::uint64_t c :
       {1ull, 2ull, 3ull, 1ull << 63, static_cast<unsigned long long>(most)}) {
    holds(most, most, c);
    holds(most, c, most);
    holds(c, 1, most);
    holds(0, most, c);
  }
  for (const auto form : {multiply_divide, multiply_divide_split}) {
    CHECK(form(7, 9, 0, rounding::down) == most);  // no division by zero: as large as can be
    CHECK(form(0, 9, 0, rounding::up) == 0);
    CHECK(form(9, 0, 0, rounding::up) == 0);
    CHECK(form(10, 10, 3, rounding::down) == 33);
    CHECK(form(10, 10, 3, rounding::up) == 34);
    CHECK(form(10, 9, 3, rounding::up) == 30);
    CHECK(form(most, most, most, rounding::up) == most);
    CHECK(form(most, 2, 1, rounding::down) == most);
  }
  CHECK(multiply_divide(1ull << 63, 6, 3, rounding::down) == most);
  CHECK(multiply_divide_split(1ull << 62, 6, 3, rounding::down) == 1ull << 63);
  static_assert(multiply_divide(6, 7, 2, rounding::down) == 21);  // at compile time, too
  static_assert(multiply_divide_split(6, 7, 2, rounding::down) == 21);
}

TEST_CASE("sums and differences stay at the far ends", "[time][G5]") {
  CHECK(saturating_add(1ns, 2ns) == 3ns);
  CHECK(saturating_add(longest, 1ns) == longest);
  CHECK(saturating_add(longest - 1ns, 1ns) == longest);
  CHECK(saturating_add(longest, longest) == longest);
  CHECK(saturating_add(shortest, -1ns) == shortest);
  CHECK(saturating_add(shortest, shortest) == shortest);
  CHECK(saturating_add(longest, shortest) == -1ns);
  CHECK(saturating_add(-5ns, 3ns) == -2ns);

  CHECK(saturating_subtract(5ns, 3ns) == 2ns);
  CHECK(saturating_subtract(longest, -1ns) == longest);
  CHECK(saturating_subtract(shortest, 1ns) == shortest);
  CHECK(saturating_subtract(0ns, shortest) == longest);
  CHECK(saturating_subtract(-1ns, shortest) == longest);
  CHECK(saturating_subtract(shortest, longest) == shortest);
  CHECK(saturating_subtract(longest, longest) == 0ns);
  CHECK(saturating_subtract(shortest, shortest) == 0ns);

  CHECK(later(instant{5ns}, 3ns) == instant{8ns});
  CHECK(later(instant{5ns}, longest) == instant::max());
  CHECK(later(instant{-5ns}, shortest) == instant::min());
  CHECK(between(instant{5ns}, instant{8ns}) == 3ns);
  CHECK(between(instant{8ns}, instant{5ns}) == -3ns);
  CHECK(between(instant::min(), instant::max()) == longest);
  CHECK(between(instant::max(), instant::min()) == shortest);
}

TEST_CASE("whole counts of any type and period become nanoseconds, rounded up", "[time][G5]") {
  CHECK(to_nanoseconds(0ns) == 0ns);
  CHECK(to_nanoseconds(1s) == nanoseconds(1'000'000'000));
  CHECK(to_nanoseconds(-1s) == nanoseconds(-1'000'000'000));
  CHECK(converted<std::int8_t>(-128) == -128s);
  CHECK(converted<std::uint8_t>(255) == 255s);
  CHECK(converted<std::int16_t, std::milli>(-32'768) == -32'768ms);
  CHECK(converted<std::uint32_t, std::micro>(4'294'967'295u) == 4'294'967'295us);
  CHECK(converted<bool>(true) == 1s);
  CHECK(to_nanoseconds(chrono::days(365)) == 365 * 24h);

  // A part of a nanosecond is one more, towards later: for negative lengths that is towards zero.
  CHECK(to_nanoseconds(picoseconds(1)) == 1ns);
  CHECK(to_nanoseconds(picoseconds(1000)) == 1ns);
  CHECK(to_nanoseconds(picoseconds(1001)) == 2ns);
  CHECK(to_nanoseconds(picoseconds(-1)) == 0ns);
  CHECK(to_nanoseconds(picoseconds(-999)) == 0ns);
  CHECK(to_nanoseconds(picoseconds(-1000)) == -1ns);
  CHECK(to_nanoseconds(picoseconds(-1001)) == -1ns);
  CHECK(converted<int, ratio_frame>(1) == 16'683'334ns);
  CHECK(converted<int, ratio_frame>(60'000) == 1001s);
  CHECK(converted<int, ratio_frame>(-1) == -16'683'333ns);
  CHECK(converted<int, std::ratio<1, 3>>(1) == 333'333'334ns);
  CHECK(converted<int, std::ratio<1, 3>>(2) == 666'666'667ns);
  static_assert(converted<int>(2) == 2s);

  CHECK(converted<whole>(3) == 3s);
  CHECK(converted<whole, std::pico>(1) == 1ns);
}

TEST_CASE("whole counts beyond the range of nanoseconds saturate", "[time][G5]") {
  CHECK(to_nanoseconds(longest) == longest);
  CHECK(to_nanoseconds(shortest) == shortest);
  CHECK(to_nanoseconds(chrono::hours::max()) == longest);
  CHECK(to_nanoseconds(chrono::hours::min()) == shortest);
  CHECK(converted<std::int64_t>(std::numeric_limits<std::int64_t>::max()) == longest);
  CHECK(converted<std::int64_t>(std::numeric_limits<std::int64_t>::min()) == shortest);
  CHECK(converted<std::uint64_t>(most) == longest);
  CHECK(converted<std::uint64_t, std::nano>(most) == longest);
  CHECK(converted<std::int64_t>(9'223'372'036) == 9'223'372'036s);
  CHECK(converted<std::int64_t>(9'223'372'037) == longest);
  CHECK(converted<std::int64_t>(-9'223'372'037) == shortest);
  CHECK(to_nanoseconds(chrono::duration<std::int64_t, std::exa>(1)) == longest);
  CHECK(to_nanoseconds(chrono::duration<std::int64_t, std::exa>(-1)) == shortest);
  CHECK(to_nanoseconds(chrono::duration<std::int64_t, std::tera>(1)) == longest);
  using odd = std::ratio<1'000'000'000'000'000'000, 999'999'999'999'999'989>;
  CHECK(converted<int, odd>(1) == 1'000'000'001ns);
  CHECK(converted<int, odd>(-1) == -1'000'000'000ns);
  CHECK(converted<std::int64_t, odd>(9'223'372'036) == 9'223'372'036'000'000'102ns);
  CHECK(converted<std::int64_t, odd>(9'223'372'037) == longest);
  CHECK(converted<double, odd>(2) == 2s);
  CHECK(to_nanoseconds(picoseconds::max()) == nanoseconds(9'223'372'036'854'776));
  CHECK(to_nanoseconds(picoseconds::min()) == nanoseconds(-9'223'372'036'854'775));
#if PUNCTUAL_HAS_INT128
  CHECK(converted<signed_wide>(signed_wide{1} << 100) == longest);
  CHECK(converted<signed_wide>(-(signed_wide{1} << 100)) == shortest);
  CHECK(converted<signed_wide>(5) == 5s);
#endif
}

TEST_CASE("counts of a random length and period are never rounded below themselves", "[time][G5]") {
  std::mt19937_64 chance(5);
  for (int i = 0; i < 100'000; ++i) {
    const auto count = static_cast<std::int64_t>(chance()) >> (chance() % 64);
    const auto third = converted<std::int64_t, std::ratio<1, 3>>(count);
    constexpr std::int64_t last = longest.count() / 1'000'000'000 * 3;
    if (count > last + 3 || count < -last - 3) {
      if (third != (count > 0 ? longest : shortest)) FAIL(count);
    } else if (count <= last && count >= -last) {
      // Whole seconds and the rest, so that nothing overflows here.
      const nanoseconds seconds = chrono::seconds(count / 3);
      const std::int64_t rest = 1'000'000'000 * (count % 3);
      const std::int64_t thirds = (third - seconds).count() * 3 - rest;
      if (thirds < 0 || thirds >= 3) FAIL(count);
    }
  }
  SUCCEED();
}

TEST_CASE("floating counts become the smallest number of nanoseconds that is not below them",
          "[time][G5]") {
  CHECK(converted(0.001) == 1'000'000ns);
  CHECK(converted(0.1) == 100'000'000ns);
  CHECK(converted(1e-9) == 1ns);
  CHECK(converted(1.1e-9) == 2ns);
  CHECK(converted(1e-300) == 1ns);
  CHECK(converted(std::numeric_limits<double>::denorm_min()) == 1ns);
  CHECK(converted(-1e-300) == 0ns);
  CHECK(converted(-1.5e-9) == -1ns);
  CHECK(converted(-0.0) == 0ns);
  CHECK(converted(1.0f / 3) == nanoseconds(333'333'344));  // what that float is, rounded up
  CHECK(converted(2.5L) == 2'500ms);
  CHECK(converted<double, std::milli>(16.667) == 16'667us);
  CHECK(converted<double, ratio_frame>(1) == 16'683'334ns);
  CHECK(converted<real>(0.25) == 250ms);
  static_assert(converted(0.5) == 500ms);

  std::mt19937_64 chance(6);
  std::uniform_real_distribution<double> exponent(-12, 9);
  for (int i = 0; i < 100'000; ++i) {
    const double seconds = (i % 2 == 0 ? 1 : -1) * std::pow(10, exponent(chance));
    const nanoseconds length = converted(seconds);
    if (chrono::duration<double>(length).count() < seconds) FAIL("below: " << seconds);
    // Not more than it must be: a nanosecond, or one step of the double where that is more.
    const double step = std::abs(std::nextafter(seconds, 2 * seconds) - seconds);
    if (chrono::duration<double>(length).count() > seconds + 1e-9 + step)
      FAIL("above: " << seconds);
  }
}

TEST_CASE("floating counts that are no lengths have a meaning, too", "[time][G5]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double nan :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN(),
        std::numeric_limits<double>::signaling_NaN(), std::nan("123")}) {
    CHECK(converted(nan) == 0ns);
  }
  CHECK(converted(std::numeric_limits<float>::quiet_NaN()) == 0ns);
  CHECK(converted(std::numeric_limits<long double>::quiet_NaN()) == 0ns);
  CHECK(converted(infinity) == longest);
  CHECK(converted(-infinity) == shortest);
  CHECK(converted(std::numeric_limits<float>::infinity()) == longest);
  CHECK(converted(std::numeric_limits<double>::max()) == longest);
  CHECK(converted(std::numeric_limits<double>::lowest()) == shortest);
  CHECK(converted(std::numeric_limits<long double>::max()) == longest);
  CHECK(converted(9.3e9) == longest);
  CHECK(converted(-9.3e9) == shortest);
  CHECK(converted<double, std::nano>(9223372036854775808.0) == longest);
  CHECK(converted<double, std::nano>(9223372036854774784.0) == nanoseconds(9223372036854774784));
  CHECK(converted<double, std::nano>(-9223372036854775808.0) == shortest);
  CHECK(converted<double, std::exa>(1e-18) == 1s);
  CHECK(converted<double, std::exa>(1e300) == longest);
}

TEST_CASE("time points of both clocks become instants", "[time][G5]") {
  CHECK(to_instant(steady::time_point(5s)) == instant{5s});
  CHECK(to_instant(chrono::system_clock::time_point(-5s)) == instant{-5s});
  CHECK(to_instant(chrono::time_point<steady, chrono::hours>::max()) == instant::max());
  CHECK(to_instant(chrono::time_point<steady, chrono::hours>::min()) == instant::min());
  CHECK(to_instant(chrono::sys_days(chrono::year(1970) / 1 / 2)) == instant{24h});
  CHECK(to_instant(chrono::time_point<steady, chrono::duration<double>>(
            chrono::duration<double>(1e-12))) == instant{1ns});
}

}  // namespace
