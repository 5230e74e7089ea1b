// Mistake that would live without it: a suspend in the middle of a wait loses its rest, is learned
// as a sleep error, or skews the counter's rate.
#include "support/catch.hpp"

#include <punctual/punctual.hpp>
#include <punctual/testing/simulated_platform.hpp>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {
struct scene {
  simulation world;
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  scene() {
    world.kernel = [](const native_request& r) { return later(r.until, 60us); };
    for (int i = 0; i < 300; ++i) sleeper.sleep_for(16'667us);
  }
  void suspend(bool clock_stops) {
    clock_stops ? world.suspend_clock_stops(110min) : world.suspend_clock_runs_on(110min);
  }
};
}  // namespace

TEST_CASE("b47: a suspend in mid wait, under both policies", "[cases][b47][G11]") {
  for (const bool clock_stops : {true, false}) {
    for (const auto at : {nanoseconds(30s), nanoseconds(60s - 20us)}) {  // blocked, spinning
      scene s;
      const nanoseconds margin = s.sleeper.margin(16'667us);
      const double rate = s.sleeper.rate().ticks_per_ns();
      const instant due = s.world.time() + 60s;
      s.world.after(at, [&] { s.suspend(clock_stops); });
      const receipt did = s.sleeper.sleep_until(due);
      CHECK(did.why == outcome::reached);
      CHECK(s.world.time() >= due);
      if (clock_stops) {
        CHECK(s.world.time() - due < 1us);  // the rest was waited after the resume
      } else {
        CHECK(s.world.time() - due < 110min);  // at once after the resume
        CHECK(s.world.time() - due > 109min);
      }
      for (int i = 0; i < 20; ++i) {
        const instant next = s.world.time() + 16'667us;
        const receipt after = s.sleeper.sleep_until(next);
        CHECK(s.world.time() - next < 1us);
        CHECK(after.spun < 200us);
      }
      CHECK(s.sleeper.margin(16'667us) < margin + 100us);
      CHECK(s.sleeper.rate().ticks_per_ns() == Catch::Approx(rate).epsilon(20e-6));
    }
  }
}

TEST_CASE("b47: a suspend between the looks of a calibration", "[cases][b47][G11]") {
  for (const bool clock_stops : {true, false}) {
    for (const auto at : {500us, 3000us, 9000us}) {
      simulation world;
      world.kernel = [](const native_request& r) { return later(r.until, 60us); };
      basic_sleeper<simulated_platform> s{tuning{}, simulated_platform{world}};
      world.after(at, [&] {
        clock_stops ? world.suspend_clock_stops(110min) : world.suspend_clock_runs_on(110min);
      });
      s.calibrate(20ms);
      for (int i = 0; i < 50; ++i) s.sleep_for(4ms);
      CHECK(s.rate().ticks_per_ns() == Catch::Approx(2.096004).epsilon(200e-6));
      CHECK(s.margin(4ms) < 1ms);
    }
  }
}
