// Mistake that would live without it: an interruptible wait of a length is measured on the settable
// clock, as pthread_cond_timedwait is by default, and lasts an hour when somebody sets the clock
// back by one.
#include "support/catch.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/testing/simulated_platform.hpp>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b22: interruptible waits on the steady clock do not notice a step of the wall clock",
          "[cases][b22][G11]") {
  for (const auto step : {nanoseconds(-3600s), nanoseconds(3600s), nanoseconds(87'660h)}) {
    testing::simulation world;
    world.kernel = [](const testing::native_request& r) { return later(r.until, 60us); };
    const testing::simulated_platform system{world};
    basic_sleeper<testing::simulated_platform> s{tuning{}, system};
    basic_waker<testing::simulated_platform> w{system};
    for (int i = 0; i < 100; ++i) sleep_for(s, w, 10ms);

    instant from = world.time();
    world.after(100ms, [&] { world.step_wall_clock(step); });
    CHECK(sleep_for(s, w, 300ms).why == outcome::reached);
    CHECK(world.time() - from >= 300ms);
    CHECK(world.time() - from < 301ms);

    from = world.time();
    world.after(100ms, [&] { world.step_wall_clock(step); });
    world.after(200ms, [&w] { w.wake(); });
    const receipt did = sleep_for(s, w, 300ms);
    CHECK(did.why == outcome::woken);
    CHECK(world.time() - from < 201ms);
    CHECK(did.left > 99ms);
    CHECK(did.left <= 100ms);
  }
}
