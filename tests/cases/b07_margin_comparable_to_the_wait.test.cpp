// Mistake that would live without it: a margin about as long as the wait, so that all of it is spun
// where half could be slept.
#include "support/catch.hpp"

#include <punctual/sleeper.hpp>
#include <punctual/testing/simulated_platform.hpp>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

TEST_CASE("b07: of a wait twice as long as the kernel is late, half is slept", "[cases][b07]") {
  const nanoseconds oversleep = GENERATE(nanoseconds{500us}, 2ms);
  const nanoseconds length = 2 * oversleep;
  simulation world;
  world.kernel = [oversleep](const native_request& r) { return later(r.until, oversleep); };
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  for (int i = 0; i < 100; ++i) sleeper.sleep_for(length);
  int half = 0;
  for (int i = 0; i < 500; ++i) half += sleeper.sleep_for(length).blocked >= length / 2;
  CHECK(half >= 490);  // a few are made to learn, and what those miss is spun
}
