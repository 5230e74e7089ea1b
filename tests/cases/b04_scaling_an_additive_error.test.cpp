// Mistake that would live without it: the margin is a share of the wait, though lateness does not
// depend on its length; long waits then wake far too soon and short ones too late.
#include "support/catch.hpp"

#include <punctual/sleeper.hpp>
#include <punctual/testing/simulated_platform.hpp>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

TEST_CASE("b04: what was learned at one length serves every other one", "[cases][b04]") {
  // 250 us is a machine that the report does not name; its short waits cannot be served.
  const nanoseconds oversleep = GENERATE(nanoseconds{90us}, 250us);
  const nanoseconds trained = GENERATE(nanoseconds{1ms}, 100ms);
  simulation world;
  world.kernel = [oversleep](const native_request& r) { return later(r.until, oversleep); };
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  for (int i = 0; i < 300; ++i) sleeper.sleep_for(trained);
  for (const nanoseconds length : {nanoseconds{200us}, nanoseconds{5ms}, nanoseconds{20ms},
                                   nanoseconds{100ms}, nanoseconds{1s}}) {
    CAPTURE(oversleep, trained, length);
    if (length < oversleep) continue;
    for (int i = 0; i < 20; ++i) {
      const receipt did = sleeper.sleep_for(length);
      if (i >= 1) CHECK(did.spun <= oversleep + 160us);
      if (i >= 1) CHECK(did.native_waits <= 3);
      if (i >= 2) CHECK(did.late <= 200us);
    }
  }
}
