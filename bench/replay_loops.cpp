// Loops at seven rates on every kernel model: our planner beside one that knows the kernel.
//
//   replay_loops [--check] [--phases N] [--everything]
//
// The informed planner knows the model, the phase of its ticks and how its latency is distributed,
// not each draw. Without --check the peers' rules run beside both, at 60 Hz. Virtual time only.
// With --check it fails where our spin is more than 3 points above the informed one's or our p99
// lateness 1 us beyond the latency's spread, where a wait is early, and where the default budget
// does not hold.
// smoke: --check
#include "replay/loops.hpp"

#include "support/options.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace replay;

int broken = 0;
void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++broken;
  std::printf("NOT AS PROMISED: %s\n", what.c_str());
}

void loops(int phases, bool peers_too, bool everything) {
  constexpr int warm_up = 1400, waits = 520;  // four samples of those that are made to learn
  const std::vector<nanoseconds> drawn = latencies();
  punctual::tuning how;
  how.cpu_budget = 1;
  const nanoseconds latency = quantile(drawn, how.punctuality);
  const nanoseconds spread = quantile(drawn, 0.99) - drawn.front();
  std::printf("\n# %d phases; latency: median %.0f us, %g quantile %.1f us, spread %.1f us\n",
              phases, static_cast<double>(quantile(drawn, 0.5).count()) / 1e3, how.punctuality,
              static_cast<double>(latency.count()) / 1e3,
              static_cast<double>(spread.count()) / 1e3);
  std::printf("%-42s %6s %5s %8s %8s %10s %10s %8s\n", "# kernel", "Hz", "work", "spin %",
              "informed", "p99 us", "informed", "native");
  std::map<std::string, double> peers_spin;
  double our_spin = 0, informed_spin = 0;
  int held = 0;
  for (const model& m : all_models()) {
    for (const rate& r : rates) {
      for (const nanoseconds work : {nanoseconds{0}, nanoseconds{milliseconds{2}}}) {
        if (work.count() * r.num >= 1'000'000'000 * r.den) continue;
        const virtual_waits::run mine = ours(m, r, work, phases, how, warm_up, waits);
        const nanoseconds begun{warm_up * (1'000'000'000 * r.den / r.num)};
        const virtual_waits::run known = informed(m, r, work, phases, latency, begun, waits);
        const bool exempt = !m.exempt.empty() &&
                            (m.only_at == 0 || (m.only_at == r.num && work > nanoseconds::zero()));
        const bool good =
            mine.spin_share <= known.spin_share + 0.03 && mine.late_p99 <= spread + microseconds{1};
        const std::string at = m.name + ", " + r.name + " Hz, work " + std::to_string(work.count());
        std::printf("%-42s %6s %5.0f %8.1f %8.1f %10.1f %10.1f %8.2f%s\n", m.name.c_str(), r.name,
                    static_cast<double>(work.count()) / 1e6, 100 * mine.spin_share,
                    100 * known.spin_share, static_cast<double>(mine.late_p99.count()) / 1e3,
                    static_cast<double>(known.late_p99.count()) / 1e3, mine.native_a_wait,
                    good ? "" : (exempt ? "  exempt" : "  <"));
        expect(mine.early == 0, "early on " + at);
        if (!exempt) expect(good, "beside the informed planner: " + at);
        our_spin += mine.spin_share;
        informed_spin += known.spin_share;
        ++held;
        if (!peers_too || r.num != 60 || work.count() != 0) continue;
        peers::for_each_strategy([&](const char* name, auto strategy) {
          const std::string who = name;
          if (who == "std" || who == "kernel" || who == "kernel-slack1" || who == "timerfd") return;
          const virtual_waits::run theirs = peer(strategy, m, r, work, 4, 300, 100);
          peers_spin[who] += theirs.spin_share;
          if (everything) {
            std::printf("    %-20s spin %5.1f %%  p99 %10.1f us  early %lld\n", name,
                        100 * theirs.spin_share, static_cast<double>(theirs.late_p99.count()) / 1e3,
                        static_cast<long long>(theirs.early));
          }
        });
      }
    }
    if (!m.exempt.empty()) std::printf("  exempt: %s\n", m.exempt.c_str());
  }
  std::printf("\n# mean spin share over %d loops: punctual %.1f %%, informed %.1f %%\n", held,
              100 * our_spin / held, 100 * informed_spin / held);
  if (peers_too) std::printf("# and at 60 Hz without work, over all kernels:");
  for (const auto& [name, sum] : peers_spin) {
    std::printf(" %s %.0f %%", name.c_str(), 100 * sum / static_cast<double>(all_models().size()));
  }
  std::printf("\n");

  // The budget: past it later, never early. What was saved up in one window may be spent at once.
  const punctual::tuning usual;
  const double saved = std::chrono::duration<double>(punctual::tuning::budget_window).count();
  for (const model& m : all_models()) {
    for (const rate& r : rates) {
      const virtual_waits::run mine = ours(m, r, nanoseconds{0}, 2, usual, 0, 10'000);
      const std::string at = m.name + ", " + r.name + " Hz";
      const double took = std::chrono::duration<double>(mine.waited).count() / 2;  // of one phase
      expect(mine.spin_share <= usual.cpu_budget * (1 + saved / took), "the budget on " + at);
      expect(mine.early == 0, "early at the default budget on " + at);
    }
  }
}

void every_machine_is_modelled() {
  // Their clocks move in steps, so that a spin cannot see a deadline between two of them.
  std::set<std::string> names{"ideal", "linux, clocksource=jiffies", "cygwin",
                              // A clock that costs 38 us to read, and twins of models above.
                              "user-mode linux", "linux, busy", "virtual machine, busy host",
                              "macos, tier 1, user away"};
  for (const model& m : all_models()) names.insert(m.name);
  for (const sim::kernels::ready_made& each : sim::kernels::all()) {
    expect(names.count(std::string(each.name)) == 1, "no model for " + std::string(each.name));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options given(argc, argv, "our planner beside one that knows the kernel",
                             {{"check", "", "fail where ours is not as good as promised"},
                              {"phases", "N", "starting phases, 64; 16 with --check"},
                              {"everything", "", "a line for each peer, too"}});
  every_machine_is_modelled();
  const bool fewer = given.has("check") && std::getenv("PUNCTUAL_LONG") == nullptr;
  loops(static_cast<int>(given.number("phases", fewer ? 16 : 64, 1, 1000)), !given.has("check"),
        given.has("everything"));
  if (broken != 0) std::printf("\n%d not as promised\n", broken);
  return given.has("check") && broken != 0 ? 1 : 0;
}
