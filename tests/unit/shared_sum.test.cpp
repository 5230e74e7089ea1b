// Mistake that would live without it: a nudge that is lost or counts twice when its owner takes the
// sum half-way, a sum that wraps, or an atomic of 64 bits, which is a lock on some processors.
#include <punctual/shared_sum.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using punctual::nanoseconds;
using punctual::shared_sum;

TEST_CASE("a shared sum is what was added, and nothing once it was taken", "[shared_sum]") {
  shared_sum sum;
  CHECK_FALSE(sum.any());
  CHECK(sum.take() == 0ns);
  std::mt19937_64 chance(30);
  for (int round = 0; round < 10'000; ++round) {
    nanoseconds right{0};
    for (int i = 0; i < 5; ++i) {
      const auto any = static_cast<std::int64_t>(chance()) >> (8 + chance() % 56);
      sum.add(nanoseconds(any));
      right += nanoseconds(any);
    }
    if (right != 0ns && !sum.any()) FAIL("nothing to take");
    if (sum.take() != right) FAIL(right.count());
    if (sum.any()) FAIL("something is left");
  }
  sum.add(5ns);
  sum.add(-5ns);
  CHECK(sum.take() == 0ns);
}

TEST_CASE("a shared sum stays at its end instead of wrapping", "[shared_sum][G5]") {
  shared_sum sum;
  for (int i = 0; i < 3; ++i) sum.add(nanoseconds::max());
  CHECK(sum.take() > 24h * 365 * 70);
  for (int i = 0; i < 3; ++i) sum.add(nanoseconds::min());
  CHECK(sum.take() < -24h * 365 * 70);
  CHECK_FALSE(sum.any());
}

TEST_CASE("what threads add while the owner takes is neither lost nor counted twice",
          "[shared_sum][threads]") {
  shared_sum sum;
  std::atomic<int> at_work{2};
  std::vector<std::thread> others;
  for (const nanoseconds each : {1'234'567'891ns, -987'654'321ns}) {
    others.emplace_back([&sum, &at_work, each] {
      for (int i = 0; i < 20'000; ++i) sum.add(each);
      --at_work;
    });
  }
  nanoseconds taken{0};
  while (at_work != 0) taken += sum.take();
  for (std::thread& each : others) each.join();
  taken += sum.take();
  CHECK(taken == 20'000 * (1'234'567'891ns - 987'654'321ns));
}

}  // namespace
