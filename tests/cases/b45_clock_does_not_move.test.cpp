// Mistake that would live without it: a user's clock that the host steps by hand, that is coarse,
// or that runs at a pace of its own, and a loop "sleep a bit, look again" that never ends or looks
// thousands of times.
#include "support/catch.hpp"

#include <punctual/punctual.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <functional>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

/// A clock that shows what a test says.
struct odd_clock {
  using duration = nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<odd_clock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static inline std::function<nanoseconds()> shows;
  static inline int looks = 0;
  static time_point now() noexcept {
    ++looks;
    return time_point{shows()};
  }
};

struct scene {
  simulation world;
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  scene() {
    world.kernel = [](const native_request& r) { return later(r.until, 60us); };
    for (int i = 0; i < 100; ++i) sleeper.sleep_for(1ms);
    world.count = {};
    odd_clock::looks = 0;
  }
  nanoseconds since() const { return world.time().time_since_epoch(); }
  std::uint64_t steps() const {
    return world.count.clock_reads + world.count.coarse_reads + world.count.native_waits +
           static_cast<std::uint64_t>(odd_clock::looks);
  }
};

}  // namespace

TEST_CASE("b45a: a clock that never moves makes the wait give up, within 2000 looks",
          "[cases][b45]") {
  scene s;
  odd_clock::shows = [] { return nanoseconds(1s); };
  // The host's sleep returns at once as well: nothing moves but our own steps.
  s.world.kernel = [](const native_request& r) { return r.now; };
  const receipt did = s.sleeper.block_until(odd_clock::now() + 5s);
  CHECK(did.why == outcome::gave_up);
  CHECK(did.left == 5s);
  CHECK(odd_clock::looks <= 2010);

  scene honest;
  odd_clock::shows = [] { return nanoseconds(1s); };
  const receipt slept = honest.sleeper.sleep_until(odd_clock::now() + 5s);
  CHECK(slept.why == outcome::gave_up);
  CHECK(odd_clock::looks <= 2010);
  CHECK(honest.steps() <= 20'000);
}

TEST_CASE("b45a: a dead steady clock makes waits on it give up within 10 000 steps",
          "[cases][b45]") {
  scene s;
  s.world.monotonic_stands_still = true;
  s.world.kernel = [](const native_request& r) { return r.now; };
  CHECK(s.sleeper.sleep_until(s.world.time() + 5s).why == outcome::gave_up);
  CHECK(s.steps() <= 10'000);
  CHECK(s.sleeper.block_until(s.world.time() + 5s).why == outcome::gave_up);
  CHECK(s.steps() <= 10'000);
}

TEST_CASE("b45b: a clock that moves at every 1000th look is waited for", "[cases][b45]") {
  scene s;
  odd_clock::shows = [] { return nanoseconds(odd_clock::looks / 1000 * 400ms); };
  const auto due = odd_clock::time_point{1s};
  const receipt did = s.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(odd_clock::time_point{odd_clock::shows()} >= due);
}

TEST_CASE("b45c: a clock of 10 ms steps takes at most 1000 steps of ours", "[cases][b45]") {
  scene s;
  odd_clock::shows = [&] { return s.since() - s.since() % 10'000'000ns; };
  const auto due = odd_clock::now() + 50ms;
  const receipt did = s.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(odd_clock::now() >= due);
  CHECK(s.steps() <= 1000);
}

TEST_CASE("b45d: clocks at 100 times and a hundredth of the pace are never early, and not far late",
          "[cases][b45]") {
  for (const double pace : {100.0, 0.01, 1.0, 0.5, 3.7}) {
    scene s;
    const nanoseconds start = s.since();
    odd_clock::shows = [&] {
      return nanoseconds(
          static_cast<std::int64_t>(static_cast<double>((s.since() - start).count()) * pace));
    };
    const auto due = odd_clock::now() + 500ms;
    const receipt did = s.sleeper.sleep_until(due);
    CHECK(did.why == outcome::reached);
    const nanoseconds err = odd_clock::now() - due;
    INFO("pace " << pace << ", error " << err.count() << " ns");
    CHECK(err >= 0ns);
    CHECK(static_cast<double>(err.count()) / pace < 20'000.0);  // 20 us of steady time
    CHECK(s.steps() <= 2000);
  }
}

TEST_CASE("b45: a user's clock that is stepped ends its wait within a second",
          "[cases][b45][G11]") {
  scene s;
  nanoseconds offset{0};
  odd_clock::shows = [&] { return s.since() + offset; };
  const auto due = odd_clock::now() + 3600s;
  s.world.after(10s, [&] { offset = 2h; });
  const instant from = s.world.time();
  CHECK(s.sleeper.sleep_until(due).why == outcome::reached);
  CHECK(s.world.time() - from <= 11s + 1ms);
}
