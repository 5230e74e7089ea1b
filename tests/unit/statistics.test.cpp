// The histogram: exact ends and mean, quantiles within 3 %, whatever is recorded.
// Mistake that would live without it: a counter off by one at the edge of an octave, a sum or a
// counter that wraps after a month, a quantile that answers a length which nobody recorded.
#include <punctual/statistics.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using punctual::nanoseconds;
using punctual::statistics;

static_assert(std::is_trivially_copyable_v<statistics>);
static_assert(noexcept(std::declval<statistics&>().record(nanoseconds{})));
static_assert(noexcept(std::declval<statistics&>().merge(std::declval<const statistics&>())));
static_assert(sizeof(statistics) <= 1740);

namespace {

/// The recorded length of the rank that covers the share `q`, from the samples themselves.
nanoseconds exact_quantile(std::vector<nanoseconds> all, double q) {
  std::sort(all.begin(), all.end());
  const double rank = std::ceil(q * static_cast<double>(all.size()));
  return all[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double relative_error(nanoseconds is, nanoseconds right) {
  const auto off = static_cast<double>((is - right).count());
  return right == 0ns ? off : off / static_cast<double>(right.count());
}

}  // namespace

TEST_CASE("an empty histogram answers zero to everything", "[statistics]") {
  const statistics none;
  CHECK(none.count() == 0);
  CHECK(none.min() == 0ns);
  CHECK(none.max() == 0ns);
  CHECK(none.mean() == 0ns);
  CHECK(none.quantile(0.5) == 0ns);
  CHECK(to_text(none) == "0 recorded\n");
}

TEST_CASE("count, minimum, maximum and mean are exact", "[statistics]") {
  statistics some;
  std::mt19937_64 random(1);
  std::int64_t sum = 0;
  std::int64_t least = INT64_MAX;
  std::int64_t most = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto length = static_cast<std::int64_t>(random() >> (random() % 40 + 20));
    some.record(nanoseconds{length});
    sum += length;
    least = std::min(least, length);
    most = std::max(most, length);
  }
  CHECK(some.count() == 100'000);
  CHECK(some.min() == nanoseconds{least});
  CHECK(some.max() == nanoseconds{most});
  CHECK(some.sum() == nanoseconds{sum});
  CHECK(some.mean() == nanoseconds{sum / 100'000});
}

TEST_CASE("every length below 68 s lies inside its bucket, within 3 % of its middle",
          "[statistics]") {
  // All lengths up to 100 us, then both sides of every edge.
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i <= 100'000; ++i) lengths.push_back(i);
  for (int twelfth = 6 * 12; twelfth < 36 * 12; ++twelfth) {
    const auto edge = static_cast<std::int64_t>(std::exp2(twelfth / 12.0));
    const std::int64_t around = std::max<std::int64_t>(3, edge >> 26);
    for (std::int64_t off = -around; off <= around; ++off) lengths.push_back(edge + off);
  }
  lengths.push_back((std::int64_t{1} << 36) - 1);
  double worst = 0;
  std::size_t outside = 0;
  for (const std::int64_t length : lengths) {
    statistics one;
    // Two far ends, so that the answer is the bucket's own and not a clamped one.
    one.record(0ns);
    one.record(nanoseconds{length});
    one.record(nanoseconds::max());
    one.for_each_bucket([&](const statistics::bucket& each) {
      if (each.count == 1 && each.from > 0ns && each.to < nanoseconds::max()) {
        outside += each.from.count() > length || length >= each.to.count();
      }
    });
    worst = std::max(worst, std::abs(relative_error(one.quantile(0.5), nanoseconds{length})));
  }
  CHECK(outside == 0);
  CHECK(worst <= 0.03);
  CHECK(worst > 0.02);  // the bound is not far from what happens: fewer parts would break it
}

TEST_CASE("buckets follow one another without gap or overlap", "[statistics]") {
  statistics all;
  for (std::int64_t i = 0; i < 200'000; ++i) all.record(nanoseconds{i});
  nanoseconds next{0};
  std::uint64_t total = 0;
  bool gapless = true;
  bool right = true;
  all.for_each_bucket([&](const statistics::bucket& each) {
    gapless = gapless && each.from == next;
    next = each.to;
    total += each.count;
    const auto width = static_cast<std::uint64_t>((each.to - each.from).count());
    right = right && (each.count == width || each.to > 200us);
  });
  CHECK(gapless);
  CHECK(right);
  CHECK(total == 200'000);
}

TEST_CASE("quantiles of three shapes are within 3 % of the recorded length of that rank",
          "[statistics]") {
  std::mt19937_64 random(7);
  const int shape = GENERATE(0, 1, 2);
  statistics some;
  std::vector<nanoseconds> samples;
  std::uniform_real_distribution<double> even(0, 1e7);
  std::lognormal_distribution<double> heavy(10, 2);
  for (int i = 0; i < 20'000; ++i) {
    double length = 0;
    if (shape == 0) length = even(random);
    if (shape == 1) length = heavy(random);
    if (shape == 2) length = random() % 100 < 97 ? 45 : 2e6;  // a spin, and what the kernel adds
    samples.push_back(nanoseconds{static_cast<std::int64_t>(length)});
    some.record(samples.back());
  }
  for (const double q : {0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.97, 0.99, 0.999, 1.0}) {
    CAPTURE(shape, q);
    CHECK(std::abs(relative_error(some.quantile(q), exact_quantile(samples, q))) <= 0.03);
  }
  CHECK(some.quantile(0) == some.min());
  CHECK(some.quantile(1) == some.max());
}

TEST_CASE("a quantile takes the smallest rank that covers its share", "[statistics]") {
  statistics four;
  for (const auto length : {1ns, 2ns, 3ns, 4ns}) four.record(length);
  CHECK(four.quantile(0.25) == 1ns);
  CHECK(four.quantile(0.2500001) == 2ns);
  CHECK(four.quantile(0.5) == 2ns);
  CHECK(four.quantile(0.75) == 3ns);
  CHECK(four.quantile(0.99) == 4ns);
  CHECK(four.quantile(1e-300) == 1ns);
}

TEST_CASE("the answer is never outside what was recorded", "[statistics]") {
  statistics one;
  one.record(1'000'003ns);
  for (const double q : {0.0, 0.5, 1.0}) CHECK(one.quantile(q) == 1'000'003ns);
}

TEST_CASE("values beyond every range are defined", "[statistics][G5]") {
  statistics odd;
  odd.record(nanoseconds::min());
  CHECK(odd.min() == nanoseconds::min());
  CHECK(odd.mean() == nanoseconds::min());
  CHECK(odd.quantile(0.5) == nanoseconds::min());
  odd.record(-5ns);  // the sum stays at its end
  CHECK(odd.sum() == nanoseconds::min());
  odd.reset();
  odd.record(nanoseconds::max());
  odd.record(nanoseconds::max());
  CHECK(odd.sum() == nanoseconds::max());
  CHECK(odd.quantile(0.5) == nanoseconds::max());
  odd.reset();
  odd.record(-7ns);
  odd.record(-4ns);
  CHECK(odd.min() == -7ns);
  CHECK(odd.max() == -4ns);
  CHECK(odd.mean() == -5ns);  // towards zero
  CHECK(odd.quantile(0.5) == -4ns);
  odd.record(69s);  // shares the last counter
  odd.record(5h);
  CHECK(odd.max() == 5h);
  CHECK(odd.quantile(0.7) == 5h);
  CHECK(odd.quantile(-1) == -7ns);
  CHECK(odd.quantile(2) == 5h);
  CHECK(odd.quantile(std::numeric_limits<double>::quiet_NaN()) == -7ns);
  CHECK(odd.quantile(std::numeric_limits<double>::infinity()) == 5h);
}

TEST_CASE("merging is the same as recording everything in one", "[statistics]") {
  std::mt19937_64 random(3);
  statistics left, right, both;
  for (int i = 0; i < 5'000; ++i) {
    const nanoseconds length{static_cast<std::int64_t>(random() >> 34)};
    (i % 3 == 0 ? left : right).record(length);
    both.record(length);
  }
  left.merge(right);
  CHECK(to_json(left) == to_json(both));
  left.merge(statistics{});
  CHECK(to_json(left) == to_json(both));
  statistics none;
  none.merge(both);
  CHECK(to_json(none) == to_json(both));
}

TEST_CASE("a full counter halves all of them and keeps the shares", "[statistics]") {
  statistics many;
  many.record(10ns);
  many.record(10ns);
  many.record(10ns);
  many.record(1ms);
  std::uint64_t count = 4;
  for (int i = 0; i < 33; ++i) {  // 2^33 times: twice what a counter holds
    const statistics again = many;
    many.merge(again);
    count *= 2;
  }
  CHECK(many.count() == count);
  CHECK(many.quantile(0.74) == 10ns);
  CHECK(std::abs(relative_error(many.quantile(0.76), 1ms)) <= 0.03);
  many.record(10ns);
  CHECK(many.count() == count + 1);
  CHECK(many.quantile(0.74) == 10ns);
  CHECK(std::abs(relative_error(many.quantile(0.76), 1ms)) <= 0.03);
}

TEST_CASE("a length is written with three digits and its unit", "[statistics]") {
  using punctual::to_text;
  CHECK(to_text(0ns) == "0 ns");
  CHECK(to_text(41ns) == "41 ns");
  CHECK(to_text(999ns) == "999 ns");
  CHECK(to_text(1000ns) == "1.00 us");
  CHECK(to_text(1259ns) == "1.25 us");
  CHECK(to_text(16'683'333ns) == "16.6 ms");
  CHECK(to_text(999'999'999ns) == "999 ms");
  CHECK(to_text(1h) == "3600 s");
  CHECK(to_text(-5'200ns) == "-5.20 us");
  CHECK(to_text(nanoseconds::min()) == "-9223372036 s");
}

TEST_CASE("the picture has a row for each step and counts everything once", "[statistics]") {
  statistics some;
  for (int i = 0; i < 90; ++i) some.record(45ns);
  for (int i = 0; i < 9; ++i) some.record(150ns);
  some.record(1'300us);
  CHECK(to_text(some) ==
        "100 recorded: min 45 ns, mean 13.0 us, p50 45 ns, p90 45 ns, p99 148 ns, p99.9 1.28 ms, "
        "max 1.30 ms\n"
        "   20 ns         90   90.0 % ########################################\n"
        "   50 ns          0   90.0 %\n"
        "  100 ns          9   99.0 % ####\n"
        "     ...\n"
        " 1.00 ms          1  100.0 % #\n");
}

TEST_CASE("the JSON form is whole nanoseconds and only what was counted", "[statistics]") {
  statistics some;
  CHECK(to_json(some) == R"({"unit":"ns","count":0,"min":0,"mean":0,"max":0,)"
                         R"("quantiles":{"0.5":0,"0.9":0,"0.99":0,"0.999":0},"buckets":[]})");
  some.record(3ns);
  some.record(3ns);
  some.record(100ns);
  CHECK(to_json(some) == R"({"unit":"ns","count":3,"min":3,"mean":35,"max":100,)"
                         R"("quantiles":{"0.5":3,"0.9":98,"0.99":98,"0.999":98},)"
                         R"("buckets":[[3,4,2],[96,102,1]]})");
}
