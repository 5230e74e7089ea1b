// The sleeper on every simulated kernel: never early, no hang, within its CPU budget.
//
// Mistake that would live without it: a promise that holds on the kernel of whoever wrote the
// sleeper, and on no other.
//
// Waits on each machine: 10^5, with PUNCTUAL_LONG=1 10^6. Prints how late and at what share of a
// core, beside a rule that many programs use (one relative sleep until 125 us before the deadline,
// then a spin) and beside spinning all the way.

#include <punctual/sleeper.hpp>
#include <punctual/testing/kernels.hpp>

#include "support/catch.hpp"
#include "support/skip.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace punctual;
using namespace punctual::testing;
using namespace std::chrono_literals;

/// What a loop of waits came to, judged by true time.
struct verdict {
  int early = 0;
  int unfinished = 0;  ///< neither reached nor past
  std::vector<nanoseconds> late;
  nanoseconds waited{0}, ran{0}, spun{0}, elapsed{0};

  nanoseconds late_at(double quantile) {
    const auto n = static_cast<double>(late.size() - 1) * quantile;
    const auto at = late.begin() + static_cast<std::ptrdiff_t>(n);
    std::nth_element(late.begin(), at, late.end());
    return *at;
  }
  double share() const {
    return static_cast<double>(ran.count()) / static_cast<double>(waited.count());
  }
};

/// Waits `waits` times with some work between: fifteen in sixteen from 1 us to 1 ms, the others up
/// to 50 ms, each log-uniform; one in eight on the wall clock.
///
/// @param make  Given the platform, makes what is called with each clock and deadline, and answers
///              whether the wait came to its end.
template <class Make>
verdict loop(const kernels::ready_made& on, int waits, Make make) {
  simulation world;
  on.install(world, 20);
  world.cost.pause = 67ns;  // 140 cycles: x86 since Skylake
  auto wait = make(simulated_platform(world));
  generator chance(21);
  verdict sum;
  sum.late.reserve(static_cast<std::size_t>(waits));
  const instant start = world.time();
  for (int i = 0; i < waits; ++i) {
    world.work(chance.between(0us, 500us));
    const fixed octaves =
        i % 16 != 0 ? static_cast<fixed>(chance.below(10 * fixed_one))
                    : static_cast<fixed>(chance.below(57 * fixed_one / 10)) + 10 * fixed_one;
    const nanoseconds length = times_exp2(1us, octaves);
    const clock_kind clock = i % 8 == 3 ? clock_kind::realtime : clock_kind::monotonic;
    const instant began = world.time();
    const instant due = later(began, length);
    const instant deadline = clock == clock_kind::realtime ? later(world.wall_time(), length) : due;
    if (!wait(clock, deadline)) ++sum.unfinished;
    if (world.time() < due) ++sum.early;
    sum.late.push_back(world.time() - due);
    sum.waited += world.time() - began;
  }
  sum.ran = world.count.ran - world.count.worked;
  sum.spun = world.count.spun();
  sum.elapsed = world.time() - start;
  return sum;
}

/// The sleeper, by the way `until` of waiting.
template <class Until>
auto by(Until until) {
  return [until](simulated_platform machine) {
    return [until, sleeper = basic_sleeper<simulated_platform>({}, machine)](
               clock_kind clock, instant deadline) mutable {
      using wall = std::chrono::system_clock;
      const auto since = deadline.time_since_epoch();
      const receipt did =
          clock == clock_kind::monotonic
              ? until(sleeper, deadline)
              : until(sleeper, wall::time_point(std::chrono::ceil<wall::duration>(since)));
      return did.why == outcome::reached || did.why == outcome::already_past;
    };
  };
}

/// One relative native sleep of what is left less 125 us, then a spin on the clock.
auto fixed_margin(simulated_platform machine) {
  return [machine](clock_kind clock, instant deadline) {
    const nanoseconds sleep = between(machine.now(clock), deadline) - 125us;
    if (sleep > 0us) machine.block_until(clock, later(machine.now(clock), sleep), slack::as_is);
    while (machine.now(clock) < deadline) machine.relax();
    return true;
  };
}

void print_heading() {
  static bool printed = false;
  if (std::exchange(printed, true)) return;
  std::printf("%-40s %27s   %27s   %s\n", "", "punctual", "sleep to 125 us before", "spin");
  std::printf("%-40s %9s %9s %7s   %9s %9s %7s   %7s\n", "late by, in us; share of a core", "p50",
              "p99", "share", "p50", "p99", "share", "share");
}

void print(std::string_view name, verdict& own, verdict& rule, const verdict& spun) {
  const auto us = [](nanoseconds t) { return static_cast<double>(t.count()) / 1e3; };
  print_heading();
  std::printf("%-40.*s %9.2f %9.2f %7.4f   %9.2f %9.2f %7.4f   %7.4f\n",
              static_cast<int>(name.size()), name.data(), us(own.late_at(0.5)),
              us(own.late_at(0.99)), own.share(), us(rule.late_at(0.5)), us(rule.late_at(0.99)),
              rule.share(), spun.share());
  std::fflush(stdout);
}

using names = std::vector<std::string_view>;

const names& bsd() {
  static const names list{"netbsd, 100 Hz", "netbsd, 1000 Hz", "netbsd, 100 Hz, short ticks",
                          "netbsd 6, 100 Hz", "openbsd"};
  return list;
}
const names& freebsd() {
  static const names list{"freebsd 9 nanosleep, 100 Hz",
                          "freebsd 9 nanosleep, 1000 Hz",
                          "freebsd 9 nanosleep, 5000 Hz, long ticks",
                          "freebsd 9 select, 1000 Hz",
                          "freebsd 14",
                          "freebsd 14, busy",
                          "freebsd 15"};
  return list;
}
const names& others() {
  static const names list{"dragonfly", "illumos", "ideal"};
  return list;
}
const names& linux_exact() {
  static const names list{"linux",        "linux, busy",     "linux, real-time thread",
                          "linux select", "virtual machine", "virtual machine, busy host"};
  return list;
}
const names& linux_ticks() {
  static const names list{"linux without high-res, 100 Hz",
                          "linux without high-res, 250 Hz",
                          "linux without high-res, 300 Hz",
                          "linux without high-res, 1000 Hz",
                          "linux, clocksource=jiffies",
                          "user-mode linux",
                          "linux 2.4"};
  return list;
}
const names& windows() {
  static const names list{"windows, 15.625 ms",
                          "windows, 1 ms",
                          "windows, 0.9765625 ms",
                          "windows, 0.5 ms",
                          "windows timer, 15.625 ms",
                          "windows timer, 0.5 ms",
                          "windows high-resolution timer",
                          "cygwin"};
  return list;
}
const names& macos() {
  static const names list{"macos", "macos, busy", "macos, tier 1, user away", "macos, background",
                          "macos, real-time thread"};
  return list;
}

/// 10^5, in a long run 10^6. Sanitizers and emulated processors, which look for other faults than
/// an early wait and take five and twenty times as long, get by with fewer.
int number_of_waits() {
  const int waits = std::getenv("PUNCTUAL_LONG") != nullptr ? 1'000'000 : 100'000;
  if (std::getenv("PUNCTUAL_PROCESSOR") != nullptr) return waits / 100;
  return support::sanitized ? waits / 10 : waits;
}

void holds_on(const names& machines) {
  const int waits = number_of_waits();
  for (const std::string_view name : machines) {
    CAPTURE(name);
    const kernels::ready_made& machine = kernels::named(name);
    verdict own =
        loop(machine, waits, by([](auto& s, auto deadline) { return s.sleep_until(deadline); }));
    verdict rule = loop(machine, 4000, fixed_margin);
    const verdict spun =
        loop(machine, 400, by([](auto& s, auto deadline) { return s.spin_until(deadline); }));
    print(name, own, rule, spun);

    CHECK(own.early == 0);
    CHECK(own.unfinished == 0);
    // No hang: twice the longest that a kernel here keeps a thread, macOS's background 100 ms.
    CHECK(*std::max_element(own.late.begin(), own.late.end()) < 250ms);
    // Half of the time, and what half a second has saved up.
    CHECK(own.spun <= own.elapsed / 2 + tuning::budget_window / 2);
    CHECK(spun.early == 0);
    CHECK(own.share() < spun.share());
  }
}

}  // namespace

TEST_CASE("the sleeper is never early on NetBSD and OpenBSD", "[kernels][G1][G6]") {
  holds_on(bsd());
}

TEST_CASE("the sleeper is never early on FreeBSD", "[kernels][G1][G6]") { holds_on(freebsd()); }

TEST_CASE("the sleeper is never early on DragonFly, illumos and without any fault",
          "[kernels][G1][G6]") {
  holds_on(others());
}

TEST_CASE("the sleeper is never early on Linux with high-resolution timers", "[kernels][G1][G6]") {
  holds_on(linux_exact());
}

TEST_CASE("the sleeper is never early on Linux with ticks", "[kernels][G1][G6]") {
  holds_on(linux_ticks());
}

TEST_CASE("the sleeper is never early on Windows", "[kernels][G1][G6]") { holds_on(windows()); }

TEST_CASE("the sleeper is never early on macOS", "[kernels][G1][G6]") { holds_on(macos()); }

TEST_CASE("no ready-made machine is left out", "[kernels]") {
  std::multiset<std::string_view> listed, all;
  for (const names* each :
       {&bsd(), &freebsd(), &others(), &linux_exact(), &linux_ticks(), &windows(), &macos()}) {
    listed.insert(each->begin(), each->end());
  }
  for (const kernels::ready_made& each : kernels::all()) all.insert(each.name);
  CHECK(listed == all);
}
