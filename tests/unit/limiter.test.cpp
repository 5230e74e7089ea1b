// The limiter: at most its store and its rate, however it is asked, and never a wait for what is
// there. Mistake that would live without it: a store that fills beyond its bound, a permit given a
// nanosecond too early after a long idle time, a wait that was woken and took its permit.
#include <punctual/limiter.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using punctual::basic_sleeper;
using punctual::hz;
using punctual::instant;
using punctual::nanoseconds;
using punctual::outcome;
using punctual::rate;
using punctual::receipt;
namespace sim = punctual::testing;

using sim_limiter = punctual::basic_limiter<sim::simulated_platform>;

namespace {

struct bell {
  bool rung = false;
};

receipt sleep_until(basic_sleeper<sim::simulated_platform>& mine, bell& by, instant deadline) {
  if (by.rung) return {.why = outcome::woken};
  return mine.sleep_until(deadline);
}

}  // namespace

static_assert(!std::is_copy_constructible_v<punctual::limiter>);
static_assert(noexcept(std::declval<punctual::limiter&>().acquire()));

TEST_CASE("the whole store is there at the beginning, then one permit a period", "[limiter]") {
  sim::simulation world;
  sim_limiter l{hz(100), 5, sim::simulated_platform{world}};
  const instant began = world.time();
  for (int i = 0; i < 5; ++i) CHECK(l.acquire().why == outcome::already_past);
  CHECK(world.count.native_waits == 0);
  CHECK(world.time() - began < 1us);
  for (int i = 1; i <= 20; ++i) {
    CHECK(l.acquire().why == outcome::reached);
    CHECK(world.time() - began >= i * 10ms);
    CHECK(world.time() - began <= i * 10ms + 1us);
  }
}

TEST_CASE("what is not used is saved up to the bound and no further", "[limiter]") {
  sim::simulation world;
  sim_limiter l{hz(100), 3, sim::simulated_platform{world}};
  while (l.try_acquire()) {
  }
  world.work(24ms);
  CHECK(l.try_acquire());
  CHECK(l.try_acquire());
  CHECK_FALSE(l.try_acquire());
  const nanoseconds left = l.wait_time();
  CHECK(left > 5ms);
  CHECK(left < 6ms);
  CHECK(world.count.native_waits == 0);
  world.work(10h);
  int at_once = 0;
  while (l.try_acquire()) ++at_once;
  CHECK(at_once == 3);
  CHECK(l.wait_time() > 9'990us);  // a full store has no fraction of a permit beside it
  CHECK(l.wait_time() <= 10ms);
}

TEST_CASE("a store worth more than 292 years is as bounded as any other", "[limiter]") {
  sim::simulation world;
  sim_limiter years{punctual::every(24h * 365), 4'000, sim::simulated_platform{world}};
  int at_once = 0;
  while (at_once <= 4'000 && years.try_acquire()) ++at_once;
  CHECK(at_once == 4'000);
  CHECK(years.wait_time() > 24h * 364);
  CHECK(years.wait_time() <= 24h * 365);
  world.work(24h * 365 * 10);
  at_once = 0;
  while (at_once <= 4'000 && years.try_acquire()) ++at_once;
  CHECK(at_once == 10);

  // The largest store, as one says "no limit but in the long run".
  sim_limiter minutes{rate{1, 60}, 0xffff'ffffu, sim::simulated_platform{world}};
  int waited = 0;
  for (int i = 0; i < 1'000; ++i) waited += minutes.acquire().why != outcome::already_past;
  CHECK(waited == 0);
  CHECK(minutes.wait_time() == 0ns);
}

TEST_CASE("no stretch of time has more permits than the store and the rate allow", "[limiter]") {
  std::mt19937_64 random(31);
  for (int round = 0; round < 100; ++round) {
    sim::simulation world;
    const rate r{static_cast<int>(random() % 1000 + 1), static_cast<int>(random() % 3 + 1)};
    const auto most = static_cast<std::uint32_t>(random() % 6 + 1);
    sim_limiter l{r, most, sim::simulated_platform{world}};
    std::vector<instant> taken;
    for (int i = 0; i < 200; ++i) {
      world.work(nanoseconds{static_cast<std::int64_t>(
          random() % static_cast<std::uint64_t>(r.period().count()) * (random() % 5))});
      // Its own reading decides: at most two readings before the one that the world shows
      // afterwards.
      if (random() % 4 != 0 ? l.try_acquire() : l.acquire().why != outcome::gave_up) {
        taken.push_back(world.time());
      }
    }
    int wrong = 0;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      for (std::size_t n = 1; i + n < taken.size(); ++n) {
        // n + 1 permits lie within this stretch: the store, and a period for each beyond it.
        const nanoseconds stretch = taken[i + n] - taken[i] + 1us;
        if (n + 1 > most) {
          const auto periods = static_cast<double>(n + 1 - most);
          wrong += static_cast<double>(stretch.count()) < periods * 1e9 / r.hertz() - 1;
        }
      }
    }
    CAPTURE(round, to_text(r), most);
    REQUIRE(wrong == 0);
    REQUIRE(taken.size() > 20);
  }
}

TEST_CASE("in the long run there are as many permits as the rate says", "[limiter]") {
  sim::simulation world;
  sim_limiter l{rate{60'000, 1'001}, 1, sim::simulated_platform{world}};
  const instant began = world.time();
  for (int i = 0; i <= 60'000; ++i) l.acquire();
  CHECK(world.time() - began >= 1001s);
  CHECK(world.time() - began <= 1001s + 2us);
}

TEST_CASE("a limiter that is late does not wait, and keeps no grid", "[limiter]") {
  sim::simulation world;
  sim_limiter l{hz(100), 1, sim::simulated_platform{world}};
  l.acquire();
  world.work(13ms);
  CHECK(l.acquire().why == outcome::already_past);
  CHECK(l.wait_time() >
        9'990us);  // a whole period from there: not 7 ms, as a pacer's grid would have it
}

TEST_CASE("a wait that was woken took no permit", "[limiter][G9]") {
  sim::simulation world;
  sim_limiter l{hz(100), 1, sim::simulated_platform{world}};
  bell by;
  CHECK(l.acquire(by).why == outcome::already_past);
  by.rung = true;
  CHECK(l.acquire(by).why == outcome::woken);
  CHECK(l.acquire(by).why == outcome::woken);
  by.rung = false;
  CHECK(l.acquire(by).why == outcome::reached);
  CHECK(l.wait_time() > 9'900us);
}

TEST_CASE("a store of 0 counts as 1", "[limiter]") {
  sim::simulation world;
  sim_limiter l{hz(10), 0, sim::simulated_platform{world}};
  CHECK(l.try_acquire());
  CHECK_FALSE(l.try_acquire());
}
