// Mistake that would live without it: the debt of a long stall is paid back by running flat out,
// frame after frame without a wait.
#include "support/catch.hpp"

#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <cmath>
#include <cstdint>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

TEST_CASE("b09: after a stall at most three frames come at once, and the rest is counted",
          "[cases][b09]") {
  const nanoseconds period = 16'666'667ns;
  for (const auto policy : {missed::skip, missed::burst, missed::rephase}) {
    for (const nanoseconds stall :
         {nanoseconds{364ms}, period, period * 5 / 2, period * 10, period * 10'000}) {
      simulation world;
      world.kernel = [](const native_request& r) { return later(r.until, 60us); };
      basic_pacer<simulated_platform> p{hz(60), policy, 3, {}, simulated_platform{world}};
      const grid right{hz(60), p.next().due};
      for (int i = 0; i < 300; ++i) {
        world.work(10ms);
        p.next();
      }
      world.work(10ms);
      world.stall(stall);
      int at_once = 0;
      int since_wait = 0;
      std::uint64_t skipped = 0;
      instant last{};
      for (int i = 0; i < 100; ++i) {
        const beat b = p.next();
        CAPTURE(static_cast<int>(policy), stall, i);
        REQUIRE(b);
        skipped += b.skipped;
        if (b.slept.why == outcome::already_past) {
          ++at_once;
          since_wait = 0;
        } else if (++since_wait > 1) {
          const nanoseconds off = world.time() - last - period;
          CHECK((off < 0ns ? -off : off) <= period / 100);
        }
        // No deadline further back than the frames that may come at once.
        CHECK(b.late < 3 * period);
        if (policy != missed::rephase) CHECK(b.due == right.at(b.index));
        last = world.time();
        world.work(10ms);
      }
      CAPTURE(static_cast<int>(policy), stall);
      CHECK(at_once <= 3);
      // What burst delivered at once was not missed.
      const auto delivered_late = static_cast<std::uint64_t>(policy == missed::burst ? at_once : 1);
      const auto missed_slots = static_cast<std::uint64_t>(stall / period);
      CHECK(skipped + delivered_late + 1 >= missed_slots);
      CHECK(skipped <= missed_slots + 1);
    }
  }
}
