// Mistake that would live without it: a spin that uses up the quota of its control group, so that
// all of it freezes until the next period; and the freeze is learned as the kernel's lateness.
#include "../../bench/support/load.hpp"

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"

#include <punctual/pacer.hpp>
#include <punctual/testing/random.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <optional>

#include <sys/prctl.h>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::generator;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

/// A machine whose thread may run for `quota` in each period of 100 ms, else is frozen to its end.
struct machine {
  simulation world;
  nanoseconds quota{0};  // 0: none
  nanoseconds ran_before{0};
  instant period_end{};
  int periods = 0, throttled = 0;

  explicit machine(nanoseconds latest) {
    world.kernel = [latest, chance = generator(7)](const native_request& r) mutable {
      return later(r.until, chance.between(0ns, latest));
    };
    world.on_step = [this](const char*) { step(); };
  }
  void step() {
    if (quota == 0ns) return;
    if (world.time() >= period_end) {
      ++periods;
      period_end = world.time() + 100ms;
      ran_before = world.count.ran;
    } else if (world.count.ran - ran_before >= quota) {
      ++throttled;
      world.stall(period_end - world.time());
    }
  }
};

struct looped {
  int frames;
  double duty;
};
looped run(machine& m, basic_pacer<simulated_platform>& p, nanoseconds length) {
  const nanoseconds ran = m.world.count.ran;
  const instant start = m.world.time();
  int frames = 0;
  while (m.world.time() - start < length) {
    p.next();
    ++frames;
  }
  return {frames, static_cast<double>((m.world.count.ran - ran).count()) /
                      static_cast<double>((m.world.time() - start).count())};
}

}  // namespace

TEST_CASE("b41: a pacer stays inside its group's quota, and is itself again when that is gone",
          "[cases][b41]") {
  // Late by up to 6 ms it would spin for 3 ms of each 20, more than the quota allows.
  const nanoseconds oversleep = GENERATE(nanoseconds{100us}, 6ms);
  machine m(oversleep), free(oversleep);
  basic_pacer<simulated_platform> p{hz(50), missed::skip, 3, {}, simulated_platform{m.world}};
  basic_pacer<simulated_platform> other{
      hz(50), missed::skip, 3, {}, simulated_platform{free.world}};
  m.quota = 10ms;
  const looped held = run(m, p, 5s);
  CAPTURE(oversleep, m.throttled, m.periods, held.frames);
  CHECK(m.throttled * 5 <= m.periods);
  CHECK(held.frames >= 247);
  CHECK(held.frames <= 253);
  m.quota = 0ns;
  run(m, p, 2s);
  run(free, other, 7s);
  const looped after = run(m, p, 3s), never = run(free, other, 3s);
  CHECK(after.duty <= 2 * never.duty);
  CHECK((oversleep < 1ms || never.duty > 0.1));  // else the quota would not matter
}

TEST_CASE("b41: in a real group of 10 ms in each 100 a pacer is hardly ever throttled",
          "[cases][b41]") {
  // A slack of 5 ms that is left alone asks for a quarter of the core. That it is itself again
  // without the group is shown above: here what it wants depends on who else is awake.
  const unsigned long slack = GENERATE(50'000UL, 5'000'000UL);
  CAPTURE(slack);
  constexpr int no_group = 77;
  int code = 1;  // the better of two: the machine is shared
  for (int i = 0; i < 2 && code != 0 && code != no_group; ++i)
    code = support::in_child([slack] {
      ::prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
      tuning how;
      how.tighten_slack = false;
      pacer p{hz(50), missed::skip, 3, how};
      std::optional<bench::cpu_quota> group(10);
      if (!group->granted()) return no_group;
      const instant from = steady::now();
      std::int64_t slots = 0;
      while (steady::now() - from < 5s) slots += 1 + static_cast<std::int64_t>(p.next().skipped);
      const long periods = group->counted("nr_periods");
      const long throttled = group->counted("nr_throttled");
      if (periods < 1) return no_group;
      std::printf("%ld of %ld periods throttled, %lld slots\n", throttled, periods,
                  static_cast<long long>(slots));
      if (throttled * 5 > periods) return 1;
      return slots >= 245 && slots <= 255 ? 0 : 2;
    });
  if (code == no_group) return support::skip("no cpu group may be made here");
  CHECK(code == 0);
}
