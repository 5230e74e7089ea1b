// Chance, latencies and interrupts: of the shape that they name, and the same on every machine.
//
// Mistake that would live without it: a simulated run that differs with the standard library, or a
// heavy tail that is none.

#include <punctual/testing/surroundings.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace punctual;
using namespace punctual::testing;
using namespace std::chrono_literals;

constexpr std::size_t draws = 100'000;

/// Sorted draws.
std::vector<nanoseconds> sample(latency from) {
  std::vector<nanoseconds> result(draws);
  for (nanoseconds& each : result) each = from();
  std::sort(result.begin(), result.end());
  return result;
}

bool near(double value, double expected, double part) {
  return std::abs(value - expected) <= part * std::abs(expected);
}
bool near(nanoseconds value, nanoseconds expected, double part) {
  return near(static_cast<double>(value.count()), static_cast<double>(expected.count()), part);
}

}  // namespace

TEST_CASE("a seed gives the same numbers with every compiler and library", "[simulation]") {
  generator chance(0);  // the reference values of SplitMix64
  CHECK(chance() == 0xE220A8397B1DCDAFu);
  CHECK(chance() == 0x6E789E6AA1B965F4u);
  CHECK(chance() == 0x06C45D188009454Fu);

  generator mixed(42);
  CHECK(mixed.below(1000) == 741);
  CHECK(mixed.between(1ms, 2ms) == 1'159'910ns);
  CHECK(mixed.normal() == 1'503'008);
  CHECK(mixed.exponential(1ms) == 1'066'557ns);
  CHECK(latency::log_normal(8us, 60us, 3)() == 23'330ns);
}

TEST_CASE("numbers of a generator are spread evenly, normally, exponentially", "[simulation]") {
  generator chance(1);
  std::vector<int> counts(7);
  double sum = 0, squares = 0, waits = 0;
  int rare = 0, beyond_two = 0;
  for (std::size_t i = 0; i < draws; ++i) {
    ++counts.at(static_cast<std::size_t>(chance.below(7)));
    const double z = static_cast<double>(chance.normal()) / static_cast<double>(fixed_one);
    sum += z;
    squares += z * z;
    beyond_two += std::abs(z) > 2 ? 1 : 0;
    waits += static_cast<double>(chance.exponential(1ms).count());
    rare += chance.one_in(100) ? 1 : 0;
  }
  for (const int count : counts) CHECK(near(count, draws / 7.0, 0.03));
  CHECK(std::abs(sum / draws) < 0.01);
  CHECK(near(squares / draws, 1, 0.02));
  CHECK(near(beyond_two, 0.0455 * draws, 0.05));
  CHECK(near(waits / draws, 1e6, 0.02));
  CHECK(near(rare, draws / 100.0, 0.1));

  CHECK(chance.below(0) == 0);
  CHECK(chance.below(1) == 0);
  CHECK_FALSE(chance.one_in(0));
  CHECK(chance.one_in(1));
  CHECK(chance.between(5ms, 5ms) == 5ms);
  CHECK(chance.between(5ms, 1ms) == 5ms);
  bool least = false, most = false;
  for (int i = 0; i < 1000; ++i) {
    const nanoseconds each = chance.between(3ns, 5ns);
    if (each < 3ns || each > 5ns) FAIL(each.count());
    least = least || each == 3ns;
    most = most || each == 5ns;
  }
  CHECK((least && most));
}

TEST_CASE("logarithm and power in whole numbers agree with those in floating point",
          "[simulation]") {
  generator chance(2);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t x = (chance() >> chance.below(64)) | 1;
    const double log = static_cast<double>(fixed_log2(x)) / static_cast<double>(fixed_one);
    if (std::abs(log - std::log2(static_cast<double>(x))) > 4e-6) FAIL(x);
    const auto power = static_cast<fixed>(chance.below(20 * fixed_one)) - 5 * fixed_one;
    const double exact =
        1e9 * std::exp2(static_cast<double>(power) / static_cast<double>(fixed_one));
    if (!near(static_cast<double>(times_exp2(1s, power).count()), exact, 2e-5)) FAIL(power);
  }
  CHECK(times_exp2(3ns, 4 * fixed_one) == 48ns);
  CHECK(times_exp2(48ns, -4 * fixed_one) == 3ns);
  CHECK(times_exp2(1s, 40 * fixed_one) == (nanoseconds::max)());
  CHECK(times_exp2(1s, -70 * fixed_one) == 0ns);
  CHECK(times_exp2(0s, 40 * fixed_one) == 0ns);
  CHECK(times_exp2(-1s, fixed_one) == 0ns);
}

TEST_CASE("each latency has the shape that it names", "[simulation]") {
  SECTION("none and constant") {
    CHECK(latency()() == 0ns);
    CHECK(latency::constant(7us)() == 7us);
  }
  SECTION("log-normal: by its median and 99th percentile") {
    const std::vector<nanoseconds> each = sample(latency::log_normal(8us, 60us));
    CHECK(near(each[draws / 2], 8us, 0.03));
    CHECK(near(each[draws * 99 / 100], 60us, 0.06));
    CHECK(near(each[draws / 100], 8000ns * 8 / 60, 0.06));
  }
  SECTION("heavy tail: as often as asked, by its index, and cut off") {
    const std::vector<nanoseconds> each =
        sample(latency::heavy_tail(latency::constant(5us), 10, 100us, 10ms));
    const auto above = [&](nanoseconds t) {
      return static_cast<double>(each.end() - std::upper_bound(each.begin(), each.end(), t));
    };
    CHECK(near(above(5us), draws / 10.0, 0.05));
    CHECK(above(5us) == above(99us));
    CHECK(near(above(1ms), draws / 10.0 / 31.6, 0.15));  // ten times further: 10^1.5 rarer
    CHECK(above(5ms) > 0);
    CHECK(each.back() == 10ms);
  }
  SECTION("bimodal") {
    const std::vector<nanoseconds> each =
        sample(latency::bimodal(latency::constant(5us), latency::constant(90us), 4));
    CHECK(each.front() == 5us);
    CHECK(each.back() == 90us);
    const auto high = each.end() - std::lower_bound(each.begin(), each.end(), nanoseconds(90us));
    CHECK(near(static_cast<double>(high), draws / 4.0, 0.03));
  }
  SECTION("a trace, over and over") {
    latency trace = latency::trace({1us, 2us, 3us});
    for (int i = 0; i < 9; ++i) CHECK(trace() == nanoseconds(1us) * (i % 3 + 1));
    CHECK(latency::trace({})() == 0ns);
  }
  SECTION("your own, with a seeded generator") {
    latency own([](generator& chance) { return chance.between(1us, 2us); }, 9);
    latency same = own;
    const nanoseconds first = own();
    CHECK((first >= 1us && first <= 2us));
    CHECK(same() == first);
  }
}

TEST_CASE("periodic interrupts are found exactly, on either side of the epoch", "[simulation]") {
  const interrupts each = interrupts::periodic(4ms, 1ms);
  CHECK(each.first(instant{0ms}, instant{10ms}) == instant{1ms});
  CHECK(each.first(instant{1ms}, instant{10ms}) == instant{1ms});
  CHECK(each.first(instant{1ms + 1ns}, instant{10ms}) == instant{5ms});
  CHECK(each.first(instant{1ms + 1ns}, instant{5ms}) == instant{5ms});
  CHECK_FALSE(each.first(instant{1ms + 1ns}, instant{5ms - 1ns}));
  CHECK(each.first(instant{-4ms}, instant{10ms}) == instant{-3ms});
  CHECK(each.first(instant{-1ms}, instant{10ms}) == instant{1ms});
  CHECK_FALSE(interrupts().first(instant{0ms}, instant{1h}));
}

TEST_CASE("Poisson interrupts come independently, and are the same whoever asks", "[simulation]") {
  const interrupts each = interrupts::poisson(1ms, 4);
  std::vector<instant> all;
  for (instant t{-1s}; all.empty() || all.back() < instant{99s}; t = all.back() + 1ns) {
    all.push_back(*each.first(t, t + 1h));
  }
  CHECK(near(static_cast<double>(all.size()), 100'000, 0.01));
  double long_gaps = 0;
  for (std::size_t i = 1; i < all.size(); ++i) long_gaps += all[i] - all[i - 1] > 2ms ? 1 : 0;
  CHECK(near(long_gaps, std::exp(-2.0) * static_cast<double>(all.size()), 0.03));

  generator chance(5);
  for (int i = 0; i < 2000; ++i) {
    const instant from = instant{chance.between(0s, 90s)};
    const instant to = from + chance.between(0ms, 5ms);
    const auto expected = std::lower_bound(all.begin(), all.end(), from);
    const std::optional<instant> found = each.first(from, to);
    if (found.has_value() != (*expected <= to)) FAIL("found or not");
    if (found && *found != *expected) FAIL("another one");
  }
  CHECK(interrupts::poisson(1ms, 5).first(all[0], all[0] + 1s) != all[0]);
  CHECK_FALSE(interrupts::poisson(1h, 5).first((instant::max)() - 1ns, (instant::max)()));
}
