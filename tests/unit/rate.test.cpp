// Rates: exact, reduced, integral only, and the named ones are what their sources say.
// Mistake that would live without it: 60000/1001 and 120000/2002 that differ, a period that is cut
// to whole microseconds, a floating rate that is let in, a console's rate with a digit wrong.
#include <punctual/rate.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

using namespace std::chrono_literals;
using punctual::every;
using punctual::hz;
using punctual::rate;
namespace rates = punctual::rates;

static_assert(std::is_trivially_copyable_v<rate> && sizeof(rate) == 16);
static_assert(rate{120000, 2002} == rate{60000, 1001});
static_assert(rate{60000, 1001}.num == 60000 && rate{60000, 1001}.den == 1001);
static_assert(hz(60) == rate{60, 1} && hz(60u) == hz(60LL));
static_assert(every(20ms) == hz(50) && every(1s) == hz(1) && every(3h) == rate{1, 10'800});
static_assert(every(16'683'333ns) == rate{1'000'000'000, 16'683'333});
static_assert(every(std::chrono::duration<int, std::ratio<1001, 60000>>(1)) == rate{60000, 1001});
static_assert(every(std::chrono::duration<std::int64_t, std::pico>(1'000'000'001'000)) ==
              rate{1'000'000'000, 1'000'000'001});
static_assert(rates::audio_block(256, 48'000) == rate{375, 2});
static_assert(rates::unlimited.is_unlimited() && !hz(60).is_unlimited());

// Floating rates are refused, and so are things that count nothing.
template <class T>
concept takes_hz = requires(T t) {
  hz(t);
};
template <class T, class S>
concept takes_audio = requires(T frames, S samples) {
  rates::audio_block(frames, samples);
};
static_assert(takes_audio<int, std::uint32_t> && takes_audio<std::size_t, long>);
static_assert(!takes_audio<int, double> && !takes_audio<float, int> && !takes_audio<bool, int>);
template <class T>
concept takes_every = requires(T t) {
  every(t);
};
static_assert(takes_hz<int> && takes_hz<unsigned long> && takes_hz<short>);
static_assert(!takes_hz<double> && !takes_hz<float> && !takes_hz<bool> && !takes_hz<char>);
static_assert(takes_every<std::chrono::milliseconds> && takes_every<std::chrono::days>);
static_assert(!takes_every<std::chrono::duration<double>> && !takes_every<double>);
static_assert(std::is_constructible_v<rate, int, std::uint64_t>);
static_assert(!std::is_constructible_v<rate, double, int> &&
              !std::is_constructible_v<rate, int, float>);
static_assert(!std::is_default_constructible_v<rate> && !std::is_convertible_v<int, rate>);

// What is a rate: more than zero, a period from 1 ns to 292 years.
static_assert(rate::valid(1, 1) && rate::valid(1'000'000'000, 1) && rate::valid(1, 9'223'372'036));
static_assert(!rate::valid(0, 1) && !rate::valid(1, 0) && !rate::valid(-60, 1) &&
              !rate::valid(60, -1));
static_assert(!rate::valid(1'000'000'001, 1) && !rate::valid(1, 9'223'372'037));
static_assert(!rate::valid(std::numeric_limits<std::uint64_t>::max(), 1));
static_assert(rate::valid(std::numeric_limits<std::int64_t>::max(),
                          std::numeric_limits<std::int64_t>::max()));

TEST_CASE("a named rate is what its source says", "[rate]") {
  struct named {
    rate is;
    double hertz;
    double digits;
  };
  // Figures as published, each to its own last digit.
  const named all[] = {
      {rates::ntsc_field, 59.94006, 1e-5},
      {rates::ntsc_frame, 29.97003, 1e-5},
      {rates::pal_field, 50, 0},
      {rates::pal_frame, 25, 0},
      {rates::film, 24, 0},
      {rates::film_ntsc, 23.976024, 1e-6},
      {rates::game_boy, 59.7275, 1e-4},
      {rates::nes_ntsc, 60.0988, 1e-4},
      {rates::nes_pal, 50.0070, 1e-4},
      {rates::snes_ntsc, 60.0988, 1e-4},
      {rates::snes_pal, 50.0070, 1e-4},
      {rates::mega_drive_ntsc, 59.92275, 1e-5},
      {rates::mega_drive_pal, 49.7015, 1e-4},
      {rates::zx_spectrum, 50.0801, 1e-4},
      {rates::display_60, 60, 0},
      {rates::display_75, 75, 0},
      {rates::display_90, 90, 0},
      {rates::display_100, 100, 0},
      {rates::display_120, 120, 0},
      {rates::display_144, 144, 0},
      {rates::display_165, 165, 0},
      {rates::display_240, 240, 0},
      {rates::audio_block(512, 44'100), 86.1328, 1e-4},
  };
  for (const named& each : all) {
    CAPTURE(each.is.num, each.is.den);
    CHECK(std::abs(each.is.hertz() - each.hertz) <= each.digits / 2 * 1.000001);
  }
  CHECK(rates::game_boy == rate{4194304, 70224});
  CHECK(rates::zx_spectrum == rate{1'000'000, 19'968});
}

TEST_CASE("a period is rounded down to whole nanoseconds", "[rate]") {
  CHECK(hz(60).period() == 16'666'666ns);
  CHECK(rates::ntsc_field.period() == 16'683'333ns);
  CHECK(hz(1'000'000'000).period() == 1ns);
  CHECK(rate(1, 9'223'372'036).period() == 9'223'372'036s);
  CHECK(rates::unlimited.period() == 0ns);
  CHECK(std::isinf(rates::unlimited.hertz()));
}

TEST_CASE("a rate is written with its exact value first", "[rate]") {
  CHECK(to_text(hz(60)) == "60 Hz");
  CHECK(to_text(rates::ntsc_field) == "60000/1001 Hz (59.9400)");
  CHECK(to_text(rate{1, 3}) == "1/3 Hz (0.3333)");
  CHECK(to_text(rate{2001, 1000}) == "2001/1000 Hz (2.0010)");
  CHECK(to_text(rates::unlimited) == "unlimited");
}
