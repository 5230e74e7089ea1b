// Mistake that would live without it: a loop that was suspended makes up for two hours of frames,
// or counts them wrongly, or learns the suspend.
#include "support/catch.hpp"

#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <cstdint>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

TEST_CASE("b47: a suspend in mid pacer, under both policies of the clock", "[cases][b47][G11]") {
  const nanoseconds asleep = 110min;
  for (const auto policy : {missed::skip, missed::burst, missed::rephase}) {
    for (const bool clock_stops : {true, false}) {
      // In the native wait, in the spin before a deadline, in the loop's own work.
      for (const nanoseconds at :
           {nanoseconds{3ms}, nanoseconds{16'666'667ns - 3ms - 20us}, nanoseconds{-1ms}}) {
        simulation world;
        world.kernel = [](const native_request& r) { return later(r.until, 60us); };
        basic_pacer<simulated_platform> p{hz(60), policy, 3, {}, simulated_platform{world}};
        for (int i = 0; i < 400; ++i) {
          p.next();
          world.work(3ms);
        }
        const nanoseconds margin = p.sleeper().margin(13ms);
        const std::uint64_t index = p.next().index;
        const instant due = p.deadline();
        const auto suspend = [&] {
          clock_stops ? world.suspend_clock_stops(asleep) : world.suspend_clock_runs_on(asleep);
        };
        world.work(at < 0ns ? 2ms : 3ms);
        if (at < 0ns) suspend();
        if (at > 0ns) world.after(at, suspend);

        int at_once = 0;
        std::uint64_t skipped = 0;
        beat b = p.next();
        const instant resumed = world.time();
        if (clock_stops) {
          CHECK(b.due == due);
          CHECK(b.late < 200us);
        }
        for (int i = 0; i < 60; ++i) {
          at_once += b.slept.why == outcome::already_past;
          skipped += b.skipped;
          world.work(3ms);
          b = p.next();
        }
        CAPTURE(static_cast<int>(policy), clock_stops, at, at_once, skipped);
        CHECK(at_once <= 3);
        const auto lost = static_cast<std::uint64_t>(asleep.count() * 60 / 1'000'000'000);
        const std::uint64_t late = policy == missed::burst ? 3 : 1;
        if (clock_stops) CHECK(skipped == 0);
        if (!clock_stops) CHECK(skipped + late + 1 >= lost);
        if (!clock_stops) CHECK(skipped <= lost + 1);
        CHECK(b.index == index + 61 + skipped);
        // From here on every frame has its period: the hour and a half is not a debt.
        CHECK(world.time() - resumed >= 57 * 16'666'666ns);
        CHECK(p.sleeper().margin(13ms) <= margin + 20us);
        CHECK(p.sleeper().rate().ticks_per_ns() < world.counter_rate() * 1.0002);
        CHECK(p.sleeper().rate().ticks_per_ns() > world.counter_rate() / 1.0002);
      }
    }
  }
}
