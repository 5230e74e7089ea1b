// Mistake that would live without it: a comparison whose arithmetic flatters somebody (a quantile
// that is off by one, an interval that finds noise, a control that always agrees).
#include "support/catch.hpp"

#include "../../bench/support/interleaved.hpp"

#include <cstdint>
#include <random>
#include <vector>

using bench::sample;
using bench::samples;

namespace {

sample late(std::int64_t ns, std::int64_t cpu = 1000) { return {ns, cpu, ns + 1'000'000, 1, 0, 0}; }

// Lateness around 50 ns, with a share of milliseconds, as a pure spin on a busy guest has it.
samples spins(std::uint64_t seed, std::size_t count, double disturbed, std::int64_t more = 0) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> chance(0, 1);
  samples all;
  for (std::size_t i = 0; i < count; ++i) {
    const bool hit = chance(random) < disturbed;
    all.push_back(late((hit ? 3'000'000 : 40) + static_cast<std::int64_t>(random() % 20) + more));
  }
  return all;
}

}  // namespace

TEST_CASE("a quantile is the smallest value that the share does not exceed", "[bench]") {
  std::vector<double> ten{10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  CHECK(bench::quantile(ten, 0.5) == 5);
  CHECK(bench::quantile(ten, 0.9) == 9);
  CHECK(bench::quantile(ten, 0.91) == 10);
  CHECK(bench::quantile(ten, 0.999) == 10);
  CHECK(bench::quantile(ten, 0) == 1);
  CHECK(bench::quantile(ten, 1) == 10);
  CHECK(bench::median({3, 1, 2}) == 2);
  CHECK(bench::median({4, 1, 2, 3}) == 2.5);
}

TEST_CASE("figures count what is later, what is early, and the mean CPU", "[bench]") {
  const samples all{late(-5, 100), late(900, 200), late(1'500, 300), late(20'000, 400),
                    late(200'000, 500)};
  const bench::figures f = bench::figures_of(all);
  CHECK(f.waits == 5);
  CHECK(f.early == 1);
  CHECK(f.later_1us == Catch::Approx(0.6));
  CHECK(f.later_10us == Catch::Approx(0.4));
  CHECK(f.later_100us == Catch::Approx(0.2));
  CHECK(f.cpu == Catch::Approx(300));
  CHECK((f.min == -5 && f.p50 == 1'500 && f.max == 200'000));
  samples unknown = all;
  unknown[2].cpu = -1;  // one that could not be read makes the mean unknown, not smaller
  CHECK(bench::figures_of(unknown).cpu < 0);
}

TEST_CASE("the median of repetitions is taken figure by figure", "[bench]") {
  bench::figures a;
  bench::figures b;
  bench::figures c;
  a.p50 = 1;
  b.p50 = 100;
  c.p50 = 3;
  a.cpu = 30;
  b.cpu = 10;
  c.cpu = 20;
  a.early = b.early = 1;
  const bench::figures all = bench::median_of({a, b, c});
  CHECK((all.p50 == 3 && all.cpu == 20 && all.early == 2));
}

TEST_CASE("paired intervals hold zero for equals and exclude it for a real difference", "[bench]") {
  int excluded = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto equal = bench::compared(spins(seed, 300, 0.05), spins(seed + 100, 300, 0.05), 300);
    excluded += equal.later_10us.low > 0 || equal.later_10us.high < 0;
  }
  CHECK(excluded <= 4);  // one in twenty by chance
  const auto slower = bench::compared(spins(1, 300, 0.05), spins(2, 300, 0.05, 100), 300);
  CHECK(slower.p50.low > 90);
  CHECK(slower.p50.high < 110);
  const auto worse = bench::compared(spins(1, 600, 0.05), spins(2, 600, 0.3), 300);
  CHECK(worse.later_10us.low > 0.1);
}

TEST_CASE("the control agrees for equals, short repetitions too, and sees each kind of fault",
          "[bench]") {
  const bench::control_rule rule;
  int agreed = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    agreed += rule.judge(spins(seed, 60, 0.07), spins(seed + 1000, 60, 0.07)).agrees;
  }
  CHECK(agreed >= 85);  // two standard errors: one in twenty is discarded by chance
  CHECK_FALSE(rule.judge(spins(1, 60, 0.02), spins(2, 60, 0.4)).agrees);
  CHECK_FALSE(rule.judge(spins(1, 60, 0.02), spins(2, 60, 0.02, 60)).agrees);
  samples hungry = spins(2, 60, 0.02);
  for (sample& each : hungry) each.cpu = 1100;
  CHECK_FALSE(rule.judge(spins(1, 60, 0.02), hungry).agrees);

  const bench::control_rule load = bench::control_rule::for_load();
  CHECK(load.judge(spins(1, 100, 0.02, 60'000), spins(2, 100, 0.02, 60'000)).agrees);
  CHECK_FALSE(load.judge(spins(1, 100, 0.02, 60'000), spins(2, 100, 0.02, 80'000)).agrees);
}
