// Mistake that would live without it: ticks × 10⁹ ÷ frequency in 64 bits, which wraps after 18 s of
// uptime.
#include "support/catch.hpp"

#include <punctual/sleeper.hpp>
#include <punctual/testing/simulated_platform.hpp>
#include <punctual/time.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace std::chrono_literals;
using namespace punctual;

namespace {
__extension__ using wide = unsigned __int128;

std::uint64_t exactly(std::uint64_t a, std::uint64_t b, std::uint64_t c, bool up) {
  const wide product = static_cast<wide>(a) * b;
  const wide quotient = product / c + (up && product % c != 0 ? 1 : 0);
  constexpr wide most = std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(quotient > most ? most : quotient);
}
}  // namespace

TEST_CASE("b16: ticks to nanoseconds and back is exact, monotone and saturates",
          "[cases][b16][G5]") {
  const std::vector<std::uint64_t> frequencies{
      32'768,     1'000'000,     3'579'545,     10'000'000,    19'200'000,
      24'000'000, 1'000'000'000, 2'096'004'000, 3'700'000'000, 5'000'000'000};
  std::vector<std::uint64_t> ticks{0,
                                   1,
                                   (1ULL << 32) - 1,
                                   1ULL << 32,
                                   (1ULL << 32) + 1,
                                   (1ULL << 53) - 1,
                                   1ULL << 53,
                                   (1ULL << 53) + 1,
                                   17'999'999'999ULL,
                                   18'000'000'000ULL,
                                   18'000'000'001ULL,
                                   1ULL << 60,
                                   (1ULL << 63) - 1};
  std::mt19937_64 random(16);
  for (int i = 0; i < 100'000; ++i) ticks.push_back(random() >> (random() % 64));
  std::sort(ticks.begin(), ticks.end());
  constexpr std::uint64_t second = 1'000'000'000;
  int wrong = 0;
  for (const std::uint64_t f : frequencies) {
    std::uint64_t before = 0;
    for (const std::uint64_t t : ticks) {
      const std::uint64_t ns = multiply_divide(t, second, f, rounding::up);
      wrong += ns != exactly(t, second, f, true);
      wrong += ns != multiply_divide_split(t, second, f, rounding::up);
      wrong += multiply_divide(t, second, f, rounding::down) != exactly(t, second, f, false);
      wrong += ns < before;
      before = ns;
      // Back: never smaller, unless the far end was passed.
      if (ns != std::numeric_limits<std::uint64_t>::max()) {
        wrong += multiply_divide(ns, f, second, rounding::up) < t;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("b16: waits are right after 104 days and after 146 years of uptime", "[cases][b16]") {
  for (const auto uptime :
       {nanoseconds(0), nanoseconds(9'000'000'000'000'000), nanoseconds(1LL << 62)}) {
    testing::simulation world{instant{uptime}};
    world.counter_jumps(INT64_MAX);  // a counter that has been running for as long
    basic_sleeper<testing::simulated_platform> s{tuning{}, testing::simulated_platform{world}};
    for (int i = 0; i < 50; ++i) {
      const instant due = world.time() + 16'667us;
      s.sleep_until(due);
      CHECK(world.time() >= due);
      CHECK(world.time() - due < 1us);
    }
  }
}
