// The overshoot's quantile by length class: right where nothing changes, soon right where it does.
// Mistake that would live without it: a mean for a quantile, no forgetting, a stall that is
// learned, a margin read off the wrong class.
#include <punctual/estimate/overshoot.hpp>
#include <punctual/testing/random.hpp>
#include <punctual/testing/surroundings.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using punctual::nanoseconds;
using punctual::overshoot_estimator;
using punctual::quantile_rule;
using punctual::quantile_tracker;
namespace sim = punctual::testing;

static_assert(std::is_trivially_copyable_v<overshoot_estimator>);
static_assert(std::is_trivially_destructible_v<overshoot_estimator>);
static_assert(sizeof(quantile_tracker) <= 32);
constinit overshoot_estimator lives_without_a_constructor_at_run_time{0.98};

namespace {

double pinball(double share, nanoseconds margin, nanoseconds overshoot) {
  const auto off = static_cast<double>((overshoot - margin).count());
  return off > 0 ? share * off : (share - 1) * off;
}

/// The mean loss over that of the best fixed margin in hindsight, after 200 waits.
struct regret {
  double ratio, beyond;  // beyond: ns a wait
};
regret judged(double share, int waits, const std::function<nanoseconds()>& draw) {
  overshoot_estimator learned(share);
  std::vector<nanoseconds> seen;
  double loss = 0;
  for (int i = 0; i < waits + 200; ++i) {
    const nanoseconds overshoot = draw();
    if (i >= 200) {
      loss += pinball(share, learned.quantile(4ms), overshoot);
      seen.push_back(overshoot);
    }
    learned.learn(4ms, overshoot);
  }
  std::sort(seen.begin(), seen.end());
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(seen.size())) - 1);
  double best = 0;
  for (const nanoseconds each : seen) best += pinball(share, seen[at], each);
  return {loss / best, (loss - best) / waits};
}

}  // namespace

TEST_CASE("the margin costs hardly more than the best fixed one in hindsight", "[overshoot]") {
  const double share = GENERATE(0.9, 0.95, 0.99);
  sim::generator chance(3);
  struct {
    const char* name;
    std::function<nanoseconds()> draw;
  } const kernels[] = {
      {"constant", [] { return 54us; }},
      {"constant but for a clock's grain", [&] { return 54us + chance.between(0ns, 100ns); }},
      {"a short tail", [&] { return 30us + chance.exponential(15us); }},
      {"uniform over a tick", [&] { return chance.between(0ns, 4ms); }},
      {"one in ten from a second mode",
       [&] { return (chance.one_in(10) ? 150us : 30us) + chance.exponential(5us); }},
      {"one in 25 anywhere in a millisecond",
       [&] { return 40us + (chance.one_in(25) ? chance.between(0ns, 1ms) : 0ns); }},
      {"three values in turn", [&, i = 0]() mutable { return i++ % 3 * 3333us + 20us; }},
  };
  for (const auto& kernel : kernels) {
    CAPTURE(kernel.name, share);
    const regret r = judged(share, 20'000, kernel.draw);
    const double allowed = share < 0.98 ? 1.05 : 1.08;
    CHECK((r.ratio <= allowed || r.beyond <= 250));
  }
}

TEST_CASE("the share that misses is the one that may", "[overshoot]") {
  const double share = GENERATE(0.9, 0.98, 0.99);
  sim::generator chance(4);
  overshoot_estimator learned(share);
  int missed = 0;
  constexpr int waits = 50'000;
  for (int i = 0; i < waits + 200; ++i) {
    const nanoseconds overshoot = 30us + chance.exponential(15us);
    if (i >= 200 && overshoot > learned.quantile(1ms)) ++missed;
    learned.learn(1ms, overshoot);
  }
  CAPTURE(share);
  CHECK(missed > (1 - share) * waits * 0.7);
  CHECK(missed < (1 - share) * waits * 1.4);
}

TEST_CASE("one stall moves the margin by one bounded sample, however long", "[overshoot][G6]") {
  sim::generator chance(5);
  overshoot_estimator learned, stalled;
  for (int i = 0; i < 1000; ++i) {
    const nanoseconds overshoot = 30us + chance.exponential(15us);
    learned.learn(4ms, overshoot, 25ms);
  }
  const nanoseconds before = learned.quantile(4ms);
  nanoseconds least = nanoseconds::max(), most{0};
  for (const nanoseconds stall :
       {nanoseconds{26ms}, nanoseconds{500ms}, nanoseconds{1h}, nanoseconds::max()}) {
    stalled = learned;
    stalled.learn(4ms, stall, 25ms);
    least = std::min(least, stalled.quantile(4ms));
    most = std::max(most, stalled.quantile(4ms));
  }
  CHECK(least == most);  // its length does not matter
  CHECK(most - before < 20us);
}

TEST_CASE("twenty stalls in a row are forgotten within 200 waits", "[overshoot][G6]") {
  sim::generator chance(6);
  overshoot_estimator learned;
  const auto usual = [&] { return 30us + chance.exponential(15us); };
  for (int i = 0; i < 1000; ++i) learned.learn(4ms, usual(), 25ms);
  const nanoseconds before = learned.quantile(4ms);
  for (int i = 0; i < 20; ++i) learned.learn(4ms, 500ms, 25ms);
  CHECK(learned.quantile(4ms) < 1ms);
  for (int i = 0; i < 200; ++i) learned.learn(4ms, usual(), 25ms);
  CHECK(learned.quantile(4ms) * 5 <= before * 6);
}

TEST_CASE("a kernel that gets slower costs few late waits, one that gets faster few dear ones",
          "[overshoot][G6]") {
  const double share = GENERATE(0.9, 0.98, 0.99);
  sim::generator chance(7);
  overshoot_estimator learned(share);
  const auto usual = [&] { return 50us + chance.exponential(10us); };
  for (int i = 0; i < 5000; ++i) learned.learn(16ms, usual(), 25ms);
  int late = 0;
  for (int i = 0; i < 1000; ++i) {
    const nanoseconds overshoot = 3ms + chance.exponential(10us);
    if (overshoot - learned.quantile(16ms) > 1ms) ++late;
    learned.learn(16ms, overshoot, 25ms);
  }
  CAPTURE(share);
  CHECK(late <= 5);
  int waits = 0;
  for (; learned.quantile(16ms) > 150us && waits < 1000; ++waits)
    learned.learn(16ms, usual(), 25ms);
  CHECK(waits <= (share < 0.985 ? 200 : 300));
}

TEST_CASE("a rare second mode is not forgotten between two of its visits", "[overshoot]") {
  sim::generator chance(8);
  overshoot_estimator learned(0.98);
  int short_margins = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (i >= 2000 && learned.quantile(4ms) < 250us) ++short_margins;
    learned.learn(4ms, (chance.one_in(12) ? 300us : 30us) + chance.exponential(5us));
  }
  CHECK(short_margins < 200);
}

TEST_CASE("a length never seen starts from its neighbours", "[overshoot]") {
  SECTION("from nothing: a guess above Linux's slack") {
    CHECK(overshoot_estimator{}.quantile(5ms) == 150us);
  }
  SECTION("where lateness is constant, from the constant") {
    for (const nanoseconds trained : {nanoseconds{1ms}, nanoseconds{100ms}}) {
      overshoot_estimator learned;
      for (int i = 0; i < 300; ++i) learned.learn(trained, 90us);
      for (const nanoseconds length :
           {nanoseconds{200us}, nanoseconds{5ms}, nanoseconds{20ms}, nanoseconds{1s}}) {
        CAPTURE(trained, length);
        CHECK(learned.quantile(length) >= 80us);
        CHECK(learned.quantile(length) <= 100us);
      }
    }
  }
  SECTION("where it grows with the length, along the line") {
    overshoot_estimator learned;
    for (int i = 0; i < 300; ++i) {
      learned.learn(1ms, 125us);
      learned.learn(4ms, 500us);
    }
    CHECK(learned.quantile(2200us) > 275us - 20us);
    CHECK(learned.quantile(2200us) < 275us + 20us);
    CHECK(learned.quantile(16ms) > 1500us);
    CHECK(learned.quantile(16ms) < 2500us);
    CHECK(learned.quantile(200us) < 60us);
  }
  SECTION("inside one class, too") {
    overshoot_estimator learned;
    for (int i = 0; i < 300; ++i) {
      learned.learn(5ms, 625us);
      learned.learn(12ms, 1500us);
    }
    CHECK(learned.quantile(8ms) > 1ms - 60us);
    CHECK(learned.quantile(8ms) < 1ms + 60us);
  }
}

TEST_CASE("one bad length does not raise the margins of others that are known", "[overshoot]") {
  overshoot_estimator learned;
  for (int i = 0; i < 300; ++i) {
    learned.learn(1ms, 60us);
    learned.learn(16ms, 9ms);
    learned.learn(100us, 40us);
  }
  CHECK(learned.quantile(1ms) < 100us);
  CHECK(learned.quantile(100us) < 100us);
  CHECK(learned.quantile(16ms) > 8ms);
}

TEST_CASE("the longest wait that fits is as long as it may be", "[overshoot]") {
  overshoot_estimator learned;
  for (int i = 0; i < 300; ++i) {
    learned.learn(1ms, 125us);
    learned.learn(4ms, 500us);
  }
  for (const nanoseconds left :
       {nanoseconds{700us}, nanoseconds{1ms}, nanoseconds{3ms}, nanoseconds{4500us}}) {
    nanoseconds longest{0};
    for (std::size_t c = 0; c < overshoot_estimator::classes; ++c) {
      const nanoseconds length = learned.longest_in(c, left);
      if (length == 0ns) continue;
      CAPTURE(left, c);
      CHECK(overshoot_estimator::class_of(length) == c);
      CHECK(length + learned.quantile(length) <= left + 1us);
      longest = std::max(longest, length);
    }
    CHECK(longest > left * 8 / 9 - left / 20);
  }
}

TEST_CASE("every sample and every punctuality has a meaning", "[overshoot][G5]") {
  const double odd[] = {std::numeric_limits<double>::quiet_NaN(), -1, 0, 0.5, 1, 2,
                        std::numeric_limits<double>::infinity()};
  for (const double punctuality : odd) {
    overshoot_estimator learned(punctuality);
    CHECK(learned.punctuality() >= 0.5);
    CHECK(learned.punctuality() < 1);
    for (int i = 0; i < 100; ++i) {
      for (const nanoseconds overshoot : {nanoseconds{0}, nanoseconds{-15ms}, nanoseconds::min(),
                                          nanoseconds::max(), nanoseconds{1}}) {
        for (const nanoseconds length :
             {nanoseconds{1}, nanoseconds::max(), nanoseconds{0}, nanoseconds::min()}) {
          learned.learn(length, overshoot, 25ms);
          const nanoseconds margin = learned.quantile(length);
          CHECK((margin >= 0ns && margin <= 1s));
        }
      }
    }
  }
  CHECK(overshoot_estimator(std::numeric_limits<double>::quiet_NaN()).punctuality() ==
        Catch::Approx(0.98));
}

TEST_CASE("a wake-up before the asked instant counts as one in time", "[overshoot]") {
  overshoot_estimator learned;
  for (int i = 0; i < 100; ++i) learned.learn(10ms, -5ms);
  CHECK(learned.quantile(10ms) < 1us);
}
