// The distance between a deadline and what its clock shows, for clocks of every kind.
//
// Mistake that would live without it: two time points that saturate as nanoseconds (a clock since
// 1601) look equal, the far end of a coarser type overflows when it is compared, or a rounding
// makes a deadline look reached that the clock has not shown.

#include <punctual/time_left.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace {

using namespace punctual;
using namespace std::chrono_literals;
namespace chrono = std::chrono;

struct some_clock {};
template <class Duration>
using at = chrono::time_point<some_clock, Duration>;
template <class Rep, class Period = std::ratio<1>>
constexpr at<chrono::duration<Rep, Period>> show(Rep count) {
  return at<chrono::duration<Rep, Period>>(chrono::duration<Rep, Period>(count));
}

using file_time = chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;  // since 1601
constexpr file_time in_2026{134'100'000'000'000'000};
constexpr nanoseconds longest = nanoseconds::max();
constexpr nanoseconds shortest = nanoseconds::min();

TEST_CASE("a clock since 1601 is a few milliseconds before its deadline", "[time][G5]") {
  CHECK(time_left(at<file_time>(in_2026 + 5ms), at<file_time>(in_2026)) == 5ms);
  CHECK(time_left(at<file_time>(in_2026 + file_time(1)), at<file_time>(in_2026)) == 100ns);
  CHECK(time_left(at<file_time>(in_2026), at<file_time>(in_2026)) == 0ns);
  CHECK(time_left(at<file_time>(in_2026), at<file_time>(in_2026 + 5ms)) == -5ms);
  CHECK(time_left(at<file_time>::max(), at<file_time>(in_2026)) == longest);
  CHECK(time_left(at<file_time>::min(), at<file_time>(in_2026)) == shortest);
  // A deadline in whole seconds, in frames, in doubles.
  const auto seconds = chrono::ceil<chrono::seconds>(in_2026) + 1s;
  CHECK(time_left(at<chrono::seconds>(seconds), at<file_time>(in_2026)) == seconds - in_2026);
  using frames = chrono::duration<std::int64_t, std::ratio<1, 60>>;
  const auto frame = chrono::ceil<frames>(in_2026) + frames(1);
  CHECK(time_left(at<frames>(frame), at<file_time>(in_2026)) == to_nanoseconds(frame - in_2026));
  using real = chrono::duration<double>;
  const auto rough = real(static_cast<double>(seconds.count()) + 0.5);
  CHECK(time_left(at<real>(rough), at<file_time>(in_2026)) == seconds - in_2026 + 500ms);
}

TEST_CASE("the far ends of every type are for ever and long past", "[time][G5]") {
  const auto now = show<std::int64_t, std::nano>(1'000'000'000'000);
  CHECK(time_left(at<chrono::seconds>::max(), now) == longest);
  CHECK(time_left(at<chrono::hours>::max(), now) == longest);
  CHECK(time_left(at<chrono::hours>::min(), now) == shortest);
  CHECK(time_left(at<chrono::seconds>::min(), now) == shortest);
  CHECK(time_left(show<std::uint8_t>(200), show<std::int16_t>(-100)) == 300s);
  CHECK(time_left(at<nanoseconds>::min(), now) == shortest);
  CHECK(time_left(at<nanoseconds>::max(), now) == longest - 1'000'000'000'000ns);
  CHECK(time_left(at<nanoseconds>::max(), at<nanoseconds>::min()) == longest);
  CHECK(time_left(show<std::uint64_t>(std::numeric_limits<std::uint64_t>::max()), now) == longest);
  CHECK(time_left(now, at<chrono::hours>::max()) == shortest);
  CHECK(time_left(at<chrono::hours>::max(), at<chrono::days>::max()) < 0ns);
  CHECK(time_left(show(std::numeric_limits<double>::infinity()), now) == longest);
  CHECK(time_left(show(-std::numeric_limits<double>::infinity()), now) == shortest);
  CHECK(time_left(show(std::numeric_limits<double>::infinity()), show(1.5)) == longest);
  CHECK(time_left(show(1e300), now) == longest);
}

TEST_CASE("a deadline of NaN is past, a clock of NaN never reaches its deadline", "[time][G5]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(time_left(show(nan), show<std::int64_t>(5)) <= 0ns);
  CHECK(time_left(show(nan), show(5.0)) <= 0ns);
  CHECK(time_left(show(nan), show(nan)) <= 0ns);
  CHECK(time_left(show<std::int64_t>(5), show(nan)) > 0ns);
  CHECK(time_left(show(5.0), show(nan)) > 0ns);
}

TEST_CASE("the sign is exact below a nanosecond and beyond what a double can hold",
          "[time][G1][G5]") {
  using pico = chrono::duration<std::int64_t, std::pico>;
  CHECK(time_left(at<pico>(pico(1999)), at<pico>(pico(1500))) == 1ns);
  CHECK(time_left(at<pico>(pico(1500)), at<pico>(pico(1500))) == 0ns);
  CHECK(time_left(at<pico>(pico(1500)), at<pico>(pico(1501))) <= 0ns);
  // As doubles, the two are equal; the clock has not shown the deadline.
  constexpr std::int64_t big = 134'100'000'000'000'000;  // where a double has steps of 16
  constexpr double rough = static_cast<double>(big) + 16;
  REQUIRE(static_cast<double>(big + 14) == rough);
  CHECK(time_left(show<double, file_time::period>(rough),
                  show<std::int64_t, file_time::period>(big + 14)) == 200ns);
  CHECK(time_left(show<std::int64_t, std::nano>(9'007'199'254'740'993),
                  show<double, std::nano>(9'007'199'254'740'992.0)) == 1ns);
#if PUNCTUAL_HAS_INT128
  using wide = chrono::duration<signed_128, std::pico>;
  constexpr signed_128 now = signed_128{1'700'000'000} * 1'000'000'000'000;
  CHECK(time_left(at<wide>(wide(now + 5'000'001)), at<wide>(wide(now))) == 5001ns);
  CHECK(time_left(at<wide>(wide(now)), at<wide>(wide(now))) == 0ns);
  CHECK(time_left(at<chrono::seconds>(1'700'000'001s), at<wide>(wide(now + 1))) == 1s);
  CHECK(time_left(at<chrono::hours>::max(), at<wide>(wide(now))) == longest);
  CHECK(time_left(show(1'700'000'000.5), at<wide>(wide(now))) == 500ms);
  using odd = chrono::duration<unsigned_128, std::pico>;
  CHECK(time_left(at<odd>(odd(5'000)), at<odd>(odd(7'000))) == -2ns);
#endif
}

TEST_CASE("whatever the periods are, the deadline is reached when chrono says so", "[time][G1]") {
  std::mt19937_64 chance(11);
  const auto agree = [&](auto due, auto seen) {
    const nanoseconds left = time_left(due, seen);
    if ((left <= 0ns) != (seen >= due)) FAIL(due.time_since_epoch().count());
    if (left != to_nanoseconds(due - seen)) FAIL("other than the difference");
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto a = static_cast<std::int64_t>(chance() >> (24 + chance() % 40));
    const auto near = a + static_cast<std::int64_t>(chance() % 7) - 3;
    agree(show<std::int64_t, std::milli>(a), show<std::int64_t, std::milli>(near));
    agree(show<std::int64_t, std::milli>(a), show<std::int64_t, std::micro>(near * 1000 + 1));
    agree(show<std::int64_t, std::ratio<1, 60>>(near), show<std::int64_t, std::ratio<1, 50>>(a));
  }
  SUCCEED();
}

}  // namespace
