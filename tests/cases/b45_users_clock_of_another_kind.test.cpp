// Mistake that would live without it: a user's clock is believed to fit into int64 nanoseconds
// since its epoch (one since 1601 does not, and a loop of 1 ms slices burns the CPU), its far end
// overflows and is "at once", a deadline of NaN never ends, and one that moves in steps is looked
// at every millisecond, or given up.
#include "support/catch.hpp"

#include <punctual/punctual.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

/// A clock of any duration that shows what a test says.
template <class Duration>
struct shown_clock {
  using duration = Duration;
  using rep = typename duration::rep;
  using period = typename duration::period;
  using time_point = std::chrono::time_point<shown_clock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static inline std::function<duration()> shows;
  static inline int looks = 0;
  static time_point now() noexcept {
    ++looks;
    return time_point{shows()};
  }
};

using file_time = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;
constexpr file_time in_2026{134'100'000'000'000'000};
constexpr double nan_seconds = std::numeric_limits<double>::quiet_NaN();
using since_1601 = shown_clock<file_time>;
using plain_clock = shown_clock<nanoseconds>;
using real_clock = shown_clock<std::chrono::duration<double>>;

struct scene {
  simulation world;
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  instant began{};
  scene() {
    world.kernel = [](const native_request& r) { return later(r.until, 60us); };
    for (int i = 0; i < 100; ++i) sleeper.sleep_for(1ms);
    begin();
  }
  void begin() {
    world.count = {};
    since_1601::looks = plain_clock::looks = real_clock::looks = 0;
    began = world.time();
  }
  nanoseconds since() const { return world.time().time_since_epoch(); }
  nanoseconds took() const { return world.time() - began; }
  double cpu() const {
    return static_cast<double>(world.count.ran.count()) / static_cast<double>(took().count());
  }
};

TEST_CASE("b45: a clock since 1601 is waited for in few looks, spinning and blocking",
          "[cases][b45][G5][G6]") {
  for (const bool spins : {true, false}) {
    scene s;
    since_1601::shows = [&s, from = s.since()] {
      return in_2026 + std::chrono::floor<file_time>(s.since() - from);
    };
    const auto due = since_1601::now() + 10s;
    const receipt did = spins ? s.sleeper.sleep_until(due) : s.sleeper.block_until(due);
    CHECK(did.why == outcome::reached);
    CHECK(since_1601::now() >= due);
    CHECK(did.late <= (spins ? 20us : 100us));
    CHECK(did.native_waits <= 40);
    CHECK(since_1601::looks <= 40);
    CHECK(s.cpu() < 0.001);
    CHECK(s.sleeper.sleep_until(due - 1h).why == outcome::already_past);
    CHECK(s.sleeper.sleep_until(due - 1h).late >= 1h);
  }
}

TEST_CASE("b45: the far end of a coarser type is for ever on a user's clock", "[cases][b45][G5]") {
  // `for ever` is still waited for after a minute, when the clock is set there.
  const auto still_waits = [](auto deadline) {
    scene s;
    nanoseconds offset{0};
    plain_clock::shows = [&] { return saturating_add(s.since(), offset); };
    basic_waker<simulated_platform> waker{simulated_platform{s.world}};
    s.world.after(60s, [&] { waker.wake(); });
    const receipt did = sleep_until(s.sleeper, waker, deadline);
    CHECK(did.why == outcome::woken);
    CHECK(did.left > 100h);
    CHECK(s.took() >= 60s);
    CHECK(s.cpu() < 0.001);
  };
  still_waits(std::chrono::time_point<plain_clock, std::chrono::seconds>::max());
  still_waits(std::chrono::time_point<plain_clock, std::chrono::hours>::max());
  still_waits(plain_clock::time_point::max());
  still_waits(std::chrono::time_point<plain_clock, std::chrono::duration<double>>(
      std::chrono::duration<double>(std::numeric_limits<double>::infinity())));

  scene s;
  plain_clock::shows = [&] { return s.since(); };
  using far_past = std::chrono::time_point<plain_clock, std::chrono::hours>;
  CHECK(s.sleeper.sleep_until(far_past::min()).why == outcome::already_past);
  CHECK(s.sleeper.block_until(far_past::min()).late == nanoseconds::max());
}

TEST_CASE("b45: a deadline of NaN on a user's clock is past, a clock of NaN is given up",
          "[cases][b45][G5]") {
  scene s;
  real_clock::shows = [&] { return std::chrono::duration<double>(s.since()); };
  using due = std::chrono::time_point<real_clock, std::chrono::duration<double>>;
  CHECK(s.sleeper.sleep_until(due(std::chrono::duration<double>(nan_seconds))).why ==
        outcome::already_past);
  real_clock::shows = [] { return std::chrono::duration<double>(nan_seconds); };
  CHECK(s.sleeper.sleep_until(due(5s)).why == outcome::gave_up);
}

TEST_CASE("b45: a clock of coarse steps is waited for, cheaply and not far beyond its step",
          "[cases][b45][G6]") {
  for (const nanoseconds step :
       {nanoseconds{10ms}, nanoseconds{100ms}, nanoseconds{1s}, nanoseconds{5s}}) {
    for (const bool spins : {true, false}) {
      scene s;
      CAPTURE(step, spins);
      s.world.work(step / 3);
      s.begin();
      plain_clock::shows = [&] { return s.since() - s.since() % step; };
      const auto due = plain_clock::now() + 3 * step + step / 2;  // shown with the fourth step
      const receipt did = spins ? s.sleeper.sleep_until(due) : s.sleeper.block_until(due);
      CHECK(did.why == outcome::reached);
      CHECK(plain_clock::now() >= due);
      const nanoseconds beyond = s.since() % step;
      CHECK(beyond <= 1100us + shorter(step / 16, 20ms));
      if (step >= 1s) CHECK(s.cpu() < 0.005);
      CHECK(plain_clock::looks <= 4 * (150 + step / 20ms));
    }
  }
}

TEST_CASE("b45: a wait on the kernel's own clock of 10 ms steps does not give up",
          "[cases][b45][G1]") {
  // The clock shows the last step, the kernel knows better: its waits end before the clock shows.
  for (const bool spins : {true, false}) {
    scene s;
    s.world.precise = [](instant t) { return t - t.time_since_epoch() % 10ms; };
    s.world.coarse = s.world.precise;
    const instant due = s.world.time() + 55ms;
    const receipt did = spins ? s.sleeper.sleep_until(due) : s.sleeper.block_until(due);
    CHECK(did.why == outcome::reached);
    CHECK(s.world.time() >= due);
    CHECK(s.world.time() <= due + 30ms);
    CHECK(s.world.count.native_waits <= 100);
  }
}

TEST_CASE("b45: a clock that is stopped for a while and runs on is met within 20 ms of its time",
          "[cases][b45]") {
  scene s;
  const instant stops = s.world.time() + 100ms;
  const instant goes_on = stops + 2s;
  plain_clock::shows = [&] {
    const instant now = s.world.time();
    const nanoseconds stood = now < stops ? 0ns : (now < goes_on ? now - stops : 2s);
    return s.since() - stood;
  };
  const auto due = plain_clock::now() + 150ms;
  const receipt did = s.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(plain_clock::now() - due <= 20ms);
}

}  // namespace
