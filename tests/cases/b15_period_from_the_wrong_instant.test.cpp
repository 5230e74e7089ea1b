// Mistake that would live without it: the period is measured from the last wake-up, so that work
// outside of the wait, and every lateness of the kernel, makes the loop slower.
#include "support/catch.hpp"

#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <cmath>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

TEST_CASE("b15: 250 Hz stays 250 Hz, with a spin and without", "[cases][b15][G10]") {
  for (const bool cheap : {true, false}) {
    simulation world;
    world.kernel = [](const native_request& r) { return later(r.until, 300us); };
    world.cost.clock_read = 100ns;
    world.cost.counter_read = 100ns;
    basic_pacer<simulated_platform> p{hz(250), simulated_platform{world}};
    if (cheap) p.set_background(hz(250));
    p.next();
    for (int i = 0; i < 500; ++i) p.next();  // until the kernel is known
    instant first{};
    nanoseconds early_error{0};
    nanoseconds late_error{0};
    for (int i = 0; i <= 10'000; ++i) {
      world.work(700us);
      const beat b = p.next();
      REQUIRE(b.skipped == 0);
      const nanoseconds error = world.time() - b.due;
      if (i == 0) first = world.time();
      if (i < 100) early_error = std::max(early_error, error);
      if (i > 9'900) late_error = std::max(late_error, error);
    }
    const double mean = static_cast<double>((world.time() - first).count()) / 10'000;
    CAPTURE(cheap, mean);
    CHECK(std::abs(mean / 4e6 - 1) <= 1e-6);
    CHECK(late_error <= early_error + 1us);  // a frame's error does not grow with its number
    if (cheap) CHECK(late_error >= 300us);
  }
}
