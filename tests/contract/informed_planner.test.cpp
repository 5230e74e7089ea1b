// Our planner beside one that knows the kernel, on every model of one: it spins hardly more, is no
// later than the latency, and never early.
// Mistake that would live without it: a margin that locks into spinning on some kernel, a tick that
// is not found, an extra tick that is not seen, a loop in step with the ticks that is late for
// ever.
//
// The whole of it, with 64 phases and the peers' rules beside, is bench/replay_loops.
#include "../../bench/replay/loops.hpp"

#include "support/catch.hpp"

using namespace std::chrono_literals;
using punctual::instant;
using punctual::nanoseconds;
namespace sim = punctual::testing;

namespace {

constexpr int phases = 16, warm_up = 1400, waits = 520;  // four samples of those made to learn

bool exempt(const replay::model& m, const replay::rate& r, nanoseconds work) {
  return !m.exempt.empty() && (m.only_at == 0 || (m.only_at == r.num && work > 0ns));
}

void beside_the_informed(nanoseconds work) {
  punctual::tuning how;
  how.cpu_budget = 1;
  const std::vector<nanoseconds> drawn = replay::latencies();
  const nanoseconds latency = replay::quantile(drawn, how.punctuality);
  const nanoseconds spread = replay::quantile(drawn, 0.99) - drawn.front();
  int held = 0;
  for (const replay::model& m : replay::all_models()) {
    for (const replay::rate& r : replay::rates) {
      if (work.count() * r.num >= 1'000'000'000 * r.den) continue;
      const auto mine = replay::ours(m, r, work, phases, how, warm_up, waits);
      const nanoseconds begun{warm_up * (1'000'000'000 * r.den / r.num)};
      const auto known = replay::informed(m, r, work, phases, latency, begun, waits);
      CAPTURE(m.name, r.name, mine.spin_share, known.spin_share, mine.late_p99);
      CHECK(mine.early == 0);
      if (exempt(m, r, work)) continue;  // the model says why
      CHECK(mine.spin_share <= known.spin_share + 0.03);
      CHECK(mine.late_p99 <= spread + 1us);
      ++held;
    }
  }
  CHECK(held >= (work > 0ns ? 190 : 220));
}

}  // namespace

TEST_CASE("a loop spins hardly more than one would who knew the kernel, and is as punctual",
          "[margin][kernels][any_processor][G1][G6]") {
  beside_the_informed(0ns);
}

TEST_CASE("the same with 2 ms of work in each period", "[margin][kernels][any_processor][G1][G6]") {
  beside_the_informed(2ms);
}

TEST_CASE("the informed planner's request is the latest that ends in time", "[margin][kernels]") {
  // By brute force: every request on a grid, against the kernel's own answer.
  const nanoseconds latency = replay::quantile(replay::latencies(), 0.98);
  sim::generator chance(5);
  int planned = 0;
  for (const replay::model& m : replay::all_models()) {
    virtual_waits::machine on = replay::at_phase(m, 0, 1);
    const virtual_waits::informed_thread informed(on, m.latest, latency);
    for (int i = 0; i < 20; ++i) {
      const instant now = on.time() + chance.between(0ns, 50ms);
      const instant deadline = now + chance.between(1ms, 40ms);
      const instant entered = now + on.native_cost() / 2;
      const instant chosen = informed.request(now, deadline);
      instant best = deadline;  // none
      for (instant until = entered + virtual_waits::informed_thread::shortest; until < deadline;
           until += 7us) {
        if (m.latest(entered, until) + latency <= deadline) best = until;
      }
      CAPTURE(m.name, i);
      if (best == deadline) continue;
      ++planned;
      REQUIRE(chosen < deadline);
      CHECK(m.latest(entered, chosen) + latency <= deadline);
      // Later in its request, and so in its wake-up, than all of the grid.
      CHECK(m.latest(entered, chosen) >= m.latest(entered, best));
      CHECK(chosen + 7us > best);
    }
  }
  CHECK(planned > 300);
}
