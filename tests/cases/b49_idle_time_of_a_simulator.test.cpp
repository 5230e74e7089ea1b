// Mistake that would live without it: an instruction-set simulator idles in a wait that does not
// say how long it was, counts that time as if instructions had run, and its guest's clock runs
// away.
#include "support/catch.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <cstdint>
#include <cstdlib>
#include <random>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

/// A guest of 1 MIPS with a clock of 100 Hz: runs what there is to run, then idles until the next
/// tick or a key. Its only clock is what the library's waits and the host's steady clock say.
struct guest {
  testing::simulation world;
  testing::simulated_platform system{world};
  basic_sleeper<testing::simulated_platform> sleeper{tuning{}, system};
  basic_waker<testing::simulated_platform> key{system};
  std::mt19937_64 random{5};
  std::uint64_t waits = 0;
  nanoseconds most_wrong{0};  ///< what a receipt said of a wait, against true time

  guest() {
    world.kernel = [this](const testing::native_request& r) {
      return r.until + (++waits % 200 == 0 ? 15ms : 60us);
    };
  }

  struct session {
    std::uint64_t ticks = 0, instructions = 0, keys = 0;
    nanoseconds idle{0}, wall{0};
    double mips() const {
      return static_cast<double>(instructions) * 1e3 / static_cast<double>((wall - idle).count());
    }
  };

  session runs(nanoseconds length) {
    session s;
    const instant began = world.time();
    instant tick = began + 10ms;
    while (world.time() - began < length) {
      execute(s, 500 + random() % 4000);
      if (random() % 10 == 0) {
        world.after(nanoseconds{static_cast<std::int64_t>(random() % 8'000'000)},
                    [this] { key.wake(); });
      }
      for (;;) {
        const instant before = world.time();
        const receipt did = sleep_until(sleeper, key, tick);
        const nanoseconds idled = did.blocked + did.spun;
        most_wrong = longer(most_wrong, world.time() - before - idled);
        most_wrong = longer(most_wrong, idled - (world.time() - before));
        s.idle += idled;
        if (did.why != outcome::woken) break;
        key.reset();
        ++s.keys;
        execute(s, 200);
      }
      ++s.ticks;
      tick += 10ms;  // of the grid, not of now: what a late tick cost is caught up with
    }
    s.wall = world.time() - began;
    return s;
  }

  void execute(session& s, std::uint64_t count) {
    world.work(std::chrono::microseconds{count});
    s.instructions += count;
  }
};

}  // namespace

TEST_CASE(
    "b49: instructions a second are the same before and after stops, since idle time is known",
    "[cases][b49][simh]") {
  guest g;
  for (int i = 0; i < 3; ++i) {
    const double before = g.runs(std::getenv("PUNCTUAL_LONG") != nullptr ? 60s : 10s).mips();
    g.world.work(45s);  // at the prompt
    const double after = g.runs(10s).mips();
    CHECK(before == Catch::Approx(1.0).epsilon(0.02));
    CHECK(after == Catch::Approx(before).epsilon(0.02));
  }
  CHECK(g.most_wrong < 3us);
}

TEST_CASE("b49: no tick of a guest's clock is lost to keys, late wake-ups or idling",
          "[cases][b49][simh]") {
  guest g;
  const nanoseconds length = std::getenv("PUNCTUAL_LONG") != nullptr ? 3600s : 300s;
  const guest::session s = g.runs(length);
  CHECK(s.ticks >= static_cast<std::uint64_t>(length / 10ms) - 2);
  CHECK(s.ticks <= static_cast<std::uint64_t>(length / 10ms) + 2);
  CHECK(s.keys > s.ticks / 20);
  CHECK(g.most_wrong < 3us);
}
