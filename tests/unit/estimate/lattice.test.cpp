// Whether native waits end on ticks: found where they do, not where they do not, dropped when they
// stop.
// Mistake that would live without it: the extra tick of the BSDs ignored, a phase that is lost as
// the tick drifts, a lattice seen in a loop's own period.
#include <punctual/estimate/lattice.hpp>
#include <punctual/testing/kernels.hpp>
#include <punctual/testing/random.hpp>

#include "support/catch.hpp"

#include <functional>
#include <string>
#include <type_traits>

using namespace std::chrono_literals;
using punctual::instant;
using punctual::lattice_estimator;
using punctual::nanoseconds;
using punctual::quantile_rule;
namespace sim = punctual::testing;
namespace kernels = punctual::testing::kernels;

static_assert(std::is_trivially_copyable_v<lattice_estimator>);
static_assert(sizeof(lattice_estimator) <= 272);

namespace {

/// A thread on a kernel: native waits that are told to a lattice estimator.
struct sleeper {
  sim::simulation world;
  lattice_estimator lattice;
  quantile_rule rule{0.98};
  instant now{1000s};

  template <class Kernel>
  explicit sleeper(Kernel kernel, std::uint64_t seed = 1) {
    on(kernel, seed);
  }
  template <class Kernel>
  void on(Kernel kernel, std::uint64_t seed = 1) {
    sim::install(world, kernels::idle(seed, kernel));
  }
  nanoseconds wait_until(instant until) {
    const instant asked = now;
    now = std::max(now, world.kernel({now + 500ns, until, punctual::slack::tight, false}));
    lattice.learn(rule, asked, until, now);
    return now - until;
  }
  void waits(int count, std::uint64_t seed = 3) {
    sim::generator chance(seed);
    for (int i = 0; i < count; ++i) {
      now += chance.between(0ns, 7ms);
      wait_until(now + chance.between(1ms, 30ms));
    }
  }
};

}  // namespace

TEST_CASE("the ticks of a kernel are learned: period, extra ticks", "[lattice]") {
  struct {
    const char* name;
    std::function<void(sleeper&)> install;
    nanoseconds period;
    int extra;
  } const cases[] = {
      {"netbsd, 100 Hz", [](sleeper& s) { s.on(kernels::netbsd{100}); }, 10ms, 1},
      {"netbsd, 1000 Hz", [](sleeper& s) { s.on(kernels::netbsd{1000}); }, 1ms, 1},
      {"openbsd", [](sleeper& s) { s.on(kernels::openbsd{100}); }, 10ms, 1},
      {"freebsd 9", [](sleeper& s) { s.on(kernels::freebsd_9_nanosleep{1000}); }, 1ms, 1},
      {"linux, jiffies", [](sleeper& s) { s.on(kernels::linux_jiffies{100}); }, 10ms, 1},
      {"linux without high-res, 250 Hz", [](sleeper& s) { s.on(kernels::linux_ticks{250}); }, 4ms,
       0},
      {"linux without high-res, 300 Hz", [](sleeper& s) { s.on(kernels::linux_ticks{300}); },
       3333333ns, 0},
      {"linux without high-res, 1000 Hz", [](sleeper& s) { s.on(kernels::linux_ticks{1000}); }, 1ms,
       0},
      {"windows, 15.625 ms", [](sleeper& s) { s.on(kernels::windows{}); }, 15625us, 0},
      {"windows timer, 0.5 ms",
       [](sleeper& s) {
         s.on(kernels::windows{500us, {}, 100ns});
       },
       500us, 0},
  };
  for (const auto& each : cases) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(each.name, seed);
      sleeper s{kernels::ideal{}};
      each.install(s);
      s.waits(60, seed);
      REQUIRE(s.lattice.holds());
      CHECK(s.lattice.period() > each.period - 1us);
      CHECK(s.lattice.period() < each.period + 1us);
      CHECK(s.lattice.extra_ticks() == each.extra);
    }
  }
}

TEST_CASE("a request ends on the tick it was aimed at", "[lattice]") {
  const std::string name = GENERATE("netbsd", "linux", "windows");
  sleeper s{kernels::ideal{}};
  if (name == "netbsd") s.on(kernels::netbsd{100});
  if (name == "linux") s.on(kernels::linux_ticks{250});
  if (name == "windows") s.on(kernels::windows{});
  s.waits(60);
  REQUIRE(s.lattice.holds());
  sim::generator chance(5);
  int missed = 0, early = 0;
  for (int i = 0; i < 1000; ++i) {
    s.now += chance.between(0ns, 20ms);
    const auto first = s.lattice.first_after(s.now);
    lattice_estimator::target aim = first;
    for (std::uint64_t ahead = chance.below(8); ahead > 0; --ahead) aim = s.lattice.after(aim);
    const instant wake = aim.wake;  // at the latest, but for two in a hundred
    const nanoseconds period = s.lattice.period();
    s.wait_until(s.lattice.request(s.now, aim));
    if (s.now > wake) ++missed;
    if (s.now < wake - period / 2) ++early;
  }
  CAPTURE(name);
  CHECK(missed < 50);
  CHECK(early < 30);  // where it was too close to call which tick was the last
}

TEST_CASE("a tick that drifts against the clock is followed", "[lattice]") {
  const std::int64_t ppb = GENERATE(-100'000, 30'000, 100'000, 6'200'000);
  sleeper s{kernels::linux_ticks{250, {}, {ppb}}};
  s.waits(60);
  REQUIRE(s.lattice.holds());
  s.waits(3000);
  CHECK(s.lattice.holds());
  const nanoseconds real{4'000'000 + 4 * ppb / 1000};
  CHECK(s.lattice.period() > real - 200ns);
  CHECK(s.lattice.period() < real + 200ns);
}

TEST_CASE("no lattice is seen where there is none", "[lattice]") {
  const double hz = GENERATE(30.0, 50.0, 60.0, 100.0, 144.0, 1000.0);
  struct {
    const char* name;
    std::function<void(sleeper&)> install;
  } const cases[] = {
      {"linux", [](sleeper& s) { s.on(kernels::linux_highres{}); }},
      {"freebsd 15", [](sleeper& s) { s.on(kernels::freebsd_15{}); }},
      {"dragonfly", [](sleeper& s) { s.on(kernels::dragonfly{}); }},
      {"macos", [](sleeper& s) { s.on(kernels::macos{}); }},
      {"virtual machine", [](sleeper& s) { s.on(kernels::guest{}); }},
      {"virtual machine, busy host",
       [](sleeper& s) { sim::install(s.world, kernels::busy(3, kernels::guest{})); }},
  };
  for (const auto& each : cases) {
    CAPTURE(each.name, hz);
    sleeper s{kernels::ideal{}};
    each.install(s);
    const nanoseconds period{static_cast<std::int64_t>(1e9 / hz)};
    sim::generator chance(9);
    int held = 0;
    instant deadline = s.now;
    for (int i = 0; i < 2000; ++i) {
      deadline += period;
      while (deadline <= s.now) deadline += period;
      s.wait_until(std::max(s.now + 1us, deadline - chance.between(50us, 300us)));
      s.now = std::max(s.now, deadline);
      held += s.lattice.holds() ? 1 : 0;
    }
    CHECK(held == 0);
  }
}

TEST_CASE("a lattice that is no more is given up soon", "[lattice]") {
  sleeper s{kernels::netbsd{100}};
  s.waits(60);
  REQUIRE(s.lattice.holds());
  s.on(kernels::linux_highres{});
  s.waits(20);
  CHECK_FALSE(s.lattice.holds());
  SECTION("and another one is found after it") {
    s.on(kernels::linux_ticks{250});
    s.waits(200);
    CHECK(s.lattice.holds());
    CHECK(s.lattice.period() > 3999us);
    CHECK(s.lattice.period() < 4001us);
    CHECK(s.lattice.extra_ticks() == 0);
  }
}

TEST_CASE("a stall now and then does not cost the lattice", "[lattice]") {
  sleeper s{kernels::netbsd{100}};
  s.waits(60);
  for (int i = 0; i < 100; ++i) {
    s.waits(10);
    const instant asked = s.now;
    s.now += 517ms;
    s.lattice.learn(s.rule, asked, asked + 12ms, s.now);
    CHECK(s.lattice.holds());
  }
}

TEST_CASE("after a long silence the phase is not trusted", "[lattice]") {
  sleeper s{kernels::linux_ticks{250}};
  s.waits(60);
  REQUIRE(s.lattice.holds());
  CHECK(s.lattice.certain(s.now + 1s));
  CHECK_FALSE(s.lattice.certain(s.now + 24h));
}
