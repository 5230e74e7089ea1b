// The deadlines of a rate, against exact arithmetic: by index, by time, and across a million
// changes. Mistake that would live without it: a period that is rounded and then added up, a
// product that overflows after a day, a fraction of a nanosecond that is lost at each change of
// rate.
#include <punctual/grid.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <random>

// The reference needs 128 bits; where there are none, the split form is used, which is held to it
// here on processors that have both.
#if PUNCTUAL_HAS_INT128

using namespace std::chrono_literals;
using punctual::grid;
using punctual::hz;
using punctual::instant;
using punctual::nanoseconds;
using punctual::rate;
namespace rates = punctual::rates;

__extension__ using wide = unsigned __int128;

namespace {

constexpr instant zero{};

/// anchor + floor(n · den · 10⁹ / num) ns, the promise itself. The period's whole part is split
/// off, since the product of all four may have more than 128 bits.
instant exactly(const rate& r, instant anchor, std::uint64_t n) {
  const auto num = static_cast<std::uint64_t>(r.num);
  const wide second = static_cast<wide>(static_cast<std::uint64_t>(r.den)) * 1'000'000'000u;
  const wide since = n * (second / num) + n * (second % num) / num;
  const auto most = static_cast<wide>(std::numeric_limits<std::int64_t>::max());
  return punctual::later(anchor,
                         nanoseconds{static_cast<std::int64_t>(since > most ? most : since)});
}

constexpr rate named[] = {rates::ntsc_field,
                          rates::ntsc_frame,
                          rates::pal_field,
                          rates::pal_frame,
                          rates::film,
                          rates::film_ntsc,
                          rates::game_boy,
                          rates::nes_ntsc,
                          rates::nes_pal,
                          rates::snes_ntsc,
                          rates::snes_pal,
                          rates::mega_drive_ntsc,
                          rates::display_75,
                          rates::mega_drive_pal,
                          rates::zx_spectrum,
                          rates::display_60,
                          rates::display_90,
                          rates::display_100,
                          rates::display_120,
                          rates::display_144,
                          rates::display_165,
                          rates::display_240,
                          rates::audio_block(256, 48'000),
                          rates::audio_block(512, 44'100),
                          hz(7),
                          rate{1, 3},
                          hz(999'983),
                          hz(1000)};

/// Any rate whose period is between 1 ns and 292 years.
rate any_rate(std::mt19937_64& random) {
  for (;;) {
    const std::uint64_t num = random() >> (random() % 62 + 1);
    const std::uint64_t den = random() >> (random() % 62 + 1);
    if (rate::valid(num, den)) return rate{num, den};
  }
}

}  // namespace

// A constant expression gives the deadlines of a film, with an anchor of one's own.
static_assert(grid{rates::film_ntsc, zero}.at(24'000) == zero + 1001s);
static_assert(grid{hz(3), instant{1ns}}.at(1) == instant{333'333'334ns});
static_assert(grid{hz(60), zero}.latest(instant{1s}) == 60);

TEST_CASE("the n-th deadline of every named rate is exact", "[pacer][grid][G10]") {
  for (const rate& r : named) {
    const grid g{r, instant{12'345'678'901ns}};
    for (const std::uint64_t n :
         {0ull, 1ull, 2ull, 1'000ull, 100'000ull, 1'000'000'000ull, 1'000'000'000'000ull, ~0ull}) {
      CAPTURE(to_text(r), n);
      CHECK(g.at(n) == exactly(r, g.anchor(), n));
    }
  }
}

TEST_CASE("a year at 60000/1001 Hz is without a nanosecond of drift", "[pacer][grid][G10]") {
  const grid g{rates::ntsc_field, zero};
  // Exactly 60000 beats fall into 1001 s, and 31525 times 1001 s into a year.
  const std::uint64_t turns = 31'525;
  CHECK(g.at(turns * 60'000) == zero + 1001s * turns);
  CHECK(g.at(turns * 60'000 + 1) == zero + 1001s * turns + 16'683'333ns);
  CHECK(g.at(turns * 60'000 + 2) == zero + 1001s * turns + 33'366'666ns);
  CHECK(g.at(turns * 60'000 + 3) == zero + 1001s * turns + 50'050'000ns);
}

TEST_CASE("the n-th deadline is exact for any rate and any index", "[pacer][grid][G10]") {
  std::mt19937_64 random(11);
  int wrong = 0;
  int reached_the_end = 0;
  for (int i = 0; i < 200'000; ++i) {
    const rate r = any_rate(random);
    const instant anchor{nanoseconds{static_cast<std::int64_t>(random() >> (random() % 62 + 1))}};
    const std::uint64_t n = random() >> (random() % 63);
    const instant due = grid{r, anchor}.at(n);
    wrong += due != exactly(r, anchor, n);
    reached_the_end += due == instant::max();
  }
  CHECK(wrong == 0);
  CHECK(reached_the_end > 1000);  // saturation has been tried as well
  CHECK(reached_the_end < 199'000);
}

TEST_CASE("the latest deadline before an instant is the inverse of the n-th",
          "[pacer][grid][G10]") {
  std::mt19937_64 random(12);
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    grid g{any_rate(random), zero};
    if (i % 2 == 0) g.move_anchor(random() % 1000);  // so that the anchor has a fraction
    const std::uint64_t n = random() >> (random() % 63 + 1);
    const instant due = g.at(n);
    if (due == instant::max() || n == 0) continue;
    wrong += g.latest(due) != n;
    wrong += g.latest(due - 1ns) != n - 1;
    wrong += g.latest(due + 1ns) != (g.at(n + 1) == due + 1ns ? n + 1 : n);
  }
  CHECK(wrong == 0);
  CHECK(grid{hz(60), instant{1h}}.latest(zero) == 0);
  CHECK(grid{rates::unlimited, zero}.latest(instant{1h}) == 0);
}

TEST_CASE("a moved anchor loses nothing", "[pacer][grid][G10]") {
  grid thirds{hz(3), zero};
  thirds.move_anchor(1);
  CHECK(thirds.at(0) == instant{333'333'333ns});
  CHECK(thirds.at(1) == instant{666'666'666ns});
  CHECK(thirds.at(2) == instant{1s});  // three thirds are a whole, not one nanosecond short
  for (int i = 0; i < 3'000'000; ++i) thirds.move_anchor(1);
  CHECK(thirds.at(2) == instant{1'000'001s});

  std::mt19937_64 random(13);
  int wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    const grid still{any_rate(random),
                     instant{nanoseconds{static_cast<std::int64_t>(random() >> 20)}}};
    const std::uint64_t first = random() % 100'000;
    const std::uint64_t second = random() % 100'000;
    grid moved = still;
    moved.move_anchor(first);
    wrong += moved.at(0) != still.at(first);
    wrong += moved.at(second) != still.at(first + second);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a million changes of rate end where exact arithmetic says", "[pacer][grid][G10]") {
  // 0.1 Hz to 333 kHz. What is exact: whole nanoseconds, and for each denominator its own sum of
  // parts.
  std::mt19937_64 random(14);
  grid g{hz(1), zero};
  std::int64_t whole = 0;
  std::map<std::uint64_t, std::uint64_t> parts;
  int wrong = 0;
  for (int i = 1; i <= 1'000'000; ++i) {
    const auto den = static_cast<std::int64_t>(random() % 10 + 1);
    const auto num = static_cast<std::int64_t>(random() % (i % 2 == 0 ? 333'000 : 1'000) + 1);
    const rate r{num, den};
    const std::uint64_t beats = random() % 3 + 1;
    g.set_rate(r);
    g.move_anchor(beats);
    const std::uint64_t length = beats * static_cast<std::uint64_t>(r.den) * 1'000'000'000u;
    const auto q = static_cast<std::uint64_t>(r.num);
    whole += static_cast<std::int64_t>(length / q);
    std::uint64_t& sum = parts[q];
    sum += length % q;
    if (sum >= q) {
      sum -= q;
      ++whole;
    }
    if (i % 20'000 != 0) continue;
    // The sum of all parts, from below and from above, in units of 2^-100 ns.
    wide below = 0;
    wide above = 0;
    for (const auto& [denominator, part] : parts) {
      const wide up = static_cast<wide>(part) << 100;
      below += up / denominator;
      above += (up + denominator - 1) / denominator;
    }
    REQUIRE(below >> 100 == above >> 100);  // both agree on the whole nanosecond
    const instant right{nanoseconds{whole + static_cast<std::int64_t>(below >> 100)}};
    wrong += g.at(0) != right;
  }
  CHECK(wrong == 0);
  CHECK(g.at(0) > instant{10h});
}

TEST_CASE("a grid that is put on an instant passes through it exactly", "[pacer][grid]") {
  std::mt19937_64 random(15);
  int wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    grid g{any_rate(random), zero};
    const std::uint64_t n = random() % 1'000'000;
    const instant target{nanoseconds{static_cast<std::int64_t>(random() >> 3)}};
    g.put(n, target);
    // A period of years, a million times, starts before the beginning of time: then it is cut
    // there.
    if (g.anchor().time_since_epoch() < nanoseconds::min() / 2) continue;
    wrong += g.at(n) != target;
  }
  CHECK(wrong == 0);
}

TEST_CASE("deadlines are the same wherever the clock starts", "[pacer][grid][G10]") {
  for (const rate& r : named) {
    const grid early{r, zero};
    for (const nanoseconds start : {nanoseconds{104 * 24h}, nanoseconds{std::int64_t{1} << 62}}) {
      const grid late{r, instant{start}};
      int wrong = 0;
      for (std::uint64_t n = 0; n < 5'000; ++n) wrong += late.at(n) - early.at(n) != start;
      CAPTURE(to_text(r));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the form without 128-bit integers gives the same quotients", "[pacer][grid][G10]") {
  std::mt19937_64 random(16);
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t a = random() >> (random() % 64);
    const std::uint64_t b = random() >> (random() % 64);
    const std::uint64_t c = random() >> (random() % 64);
    for (const auto how : {punctual::rounding::down, punctual::rounding::up}) {
      wrong +=
          punctual::multiply_divide(a, b, c, how) != punctual::multiply_divide_split(a, b, c, how);
    }
  }
  CHECK(wrong == 0);
}

#endif
