// Mistake that would live without it: the time at a simulator's prompt is counted as time in its
// loop, and idle sleep, or a sleep that was too long, is not credited: calibration explodes after
// the next RUN, or guest time runs slow.
#include "support/c_world.hpp"
#include "support/catch.hpp"

#include <punctual/c/punctual.ipp>

using namespace std::chrono_literals;

namespace {

/// A simulator in C: some instructions at each tick of its 100 Hz clock, and idle until the next.
class simulator {
 public:
  static constexpr std::int64_t instructions_of_tick = 20'000;
  static constexpr double per_second = 5e6;

  explicit simulator(punctual_missed policy) : face_(world) {
    // Each wake-up is a little late, and every 400th by 15 ms.
    world.kernel = [this](const punctual::testing::native_request& asked) {
      return asked.until + (++sleeps_ % 400 == 0 ? 15ms : 60us);
    };
    REQUIRE(punctual_pacer_create(100, 1, policy, 3, nullptr, &pacer) == PUNCTUAL_OK);
  }
  ~simulator() { punctual_pacer_destroy(pacer); }
  simulator(const simulator&) = delete;
  simulator& operator=(const simulator&) = delete;

  struct stretch {
    std::uint64_t ticks = 0, skipped = 0;
    std::int64_t instructions = 0, busy_ns = 0;
    /// What simh calls instructions per tick: at this speed, without the idling.
    double instructions_per_tick() const {
      return static_cast<double>(instructions) / static_cast<double>(busy_ns) * 1e7;
    }
  };

  stretch run(punctual::nanoseconds length) {
    stretch s;
    const punctual::instant end = world.time() + length;
    while (world.time() < end) {
      punctual_beat beat = PUNCTUAL_BEAT_INIT;
      if (punctual_pacer_next(pacer, &beat, nullptr) < 0) break;
      s.ticks += static_cast<std::uint64_t>(beat.delivered);
      s.skipped += beat.skipped;
      if (beat.index != 0) {
        s.busy_ns += beat.busy_ns;
        s.instructions += executed_;
      }
      executed_ = instructions_of_tick;
      world.work(punctual::nanoseconds{
          static_cast<std::int64_t>(static_cast<double>(executed_) / per_second * 1e9)});
    }
    return s;
  }

  punctual::testing::simulation world;
  punctual_pacer* pacer = nullptr;

 private:
  support::simulated_c_face face_;
  std::int64_t executed_ = 0;
  std::uint64_t sleeps_ = 0;
};

}  // namespace

TEST_CASE("b49: a stop at the prompt changes neither the measured speed nor the clock",
          "[cases][b49][c_face]") {
  simulator simh(PUNCTUAL_SKIP);
  double hertz = 0;
  for (int i = 0; i < 3; ++i) {
    const auto before = simh.run(60s);
    REQUIRE(punctual_pacer_achieved(simh.pacer, &hertz, nullptr) == PUNCTUAL_OK);
    const double hertz_before = hertz;

    REQUIRE(punctual_pacer_pause(simh.pacer) == PUNCTUAL_OK);
    simh.world.stall(45s);
    REQUIRE(punctual_pacer_resume(simh.pacer) == PUNCTUAL_OK);

    const auto after = simh.run(10s);
    CHECK(after.instructions_per_tick() ==
          Catch::Approx(before.instructions_per_tick()).epsilon(0.02));
    CHECK(before.instructions_per_tick() ==
          Catch::Approx(simulator::per_second / 100).epsilon(0.02));
    REQUIRE(punctual_pacer_achieved(simh.pacer, &hertz, nullptr) == PUNCTUAL_OK);
    CHECK(hertz == Catch::Approx(hertz_before).epsilon(0.02));
    CHECK(after.skipped <= 10);  // the 45 s are not 4500 missed ticks
    CHECK(after.ticks + after.skipped >= 999);
    CHECK(after.ticks + after.skipped <= 1001);
  }
}

TEST_CASE("b49: an hour has its 360000 ticks where missed ones are caught up with",
          "[cases][b49][c_face]") {
  simulator simh(PUNCTUAL_BURST);
  const auto hour = simh.run(3600s);
  CHECK(hour.skipped == 0);
  CHECK(hour.ticks >= 360'000 - 3);
  CHECK(hour.ticks <= 360'000 + 3);
}

TEST_CASE("b49: where missed ticks are dropped, the shortfall is told", "[cases][b49][c_face]") {
  simulator simh(PUNCTUAL_SKIP);
  const auto hour = simh.run(3600s);
  CHECK(hour.skipped > 0);
  CHECK(hour.ticks + hour.skipped >= 360'000 - 1);
  CHECK(hour.ticks + hour.skipped <= 360'000 + 1);
  std::uint64_t dropped = 0;
  REQUIRE(punctual_pacer_achieved(simh.pacer, nullptr, &dropped) == PUNCTUAL_OK);
  CHECK(dropped == hour.skipped);
}
