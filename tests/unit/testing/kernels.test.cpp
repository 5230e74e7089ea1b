// What holds of each kernel model for any request at any phase, and of the list of machines.
//
// Mistake that would live without it: a model that is right for the reported numbers and wrong one
// nanosecond beside a tick.

#include <punctual/testing/kernels.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace punctual;
using namespace punctual::testing;
using namespace std::chrono_literals;

constexpr int rounds = 20'000;

native_request request(instant now, nanoseconds length) {
  return {now, later(now, length), slack::as_is, false};
}

/// From 1 ns to half a minute, as many in each octave.
nanoseconds any_length(generator& chance) {
  return times_exp2(1ns, static_cast<fixed>(chance.below(35 * fixed_one)));
}

/// Within an hour, at any phase of any tick.
instant any_instant(generator& chance) { return instant{1000s + chance.between(0s, 1h)}; }

/// Calls `check(model)` with one of each model, ticks without error, as their own types.
template <class Check>
void each_model(Check check) {
  check("netbsd", kernels::netbsd{.hz = 100, .phase = 1'234'567ns});
  check("netbsd, 1024 Hz", kernels::netbsd{.hz = 1024});
  check("netbsd_6", kernels::netbsd_6{.hz = 100, .phase = 1'234'567ns});
  check("openbsd", kernels::openbsd{});
  check("freebsd_9_nanosleep", kernels::freebsd_9_nanosleep{.hz = 1000});
  check("freebsd_9_select", kernels::freebsd_9_select{.hz = 3000});
  check("freebsd_14", kernels::freebsd_14{});
  check("freebsd_15", kernels::freebsd_15{});
  check("dragonfly", kernels::dragonfly{});
  check("illumos", kernels::illumos{});
  check("linux_highres", kernels::linux_highres{});
  check("linux_select", kernels::linux_select{});
  check("linux_ticks", kernels::linux_ticks{.hz = 300});
  check("linux_jiffies", kernels::linux_jiffies{.hz = 100});
  check("guest", kernels::guest{});
  check("windows", kernels::windows{});
  check("windows timer", kernels::windows{.period = 499'500ns, .unit = 100ns});
  check("windows_high_resolution", kernels::windows_high_resolution{});
  check("cygwin", kernels::cygwin{});
  check("macos", kernels::macos::tier(1));
  check("ideal", kernels::ideal{});
}

/// Holds `(n - 1) T < E <= n T` on random requests, `n` by the kernel's own formula.
template <class Model, class Count>
void obeys_wheel(const Model& model, const kernels::tick& ticks, Count count) {
  generator chance(11);
  for (int i = 0; i < rounds; ++i) {
    const nanoseconds length = i % 4 == 0 ? chance.below(50) * 1ms : any_length(chance);
    // One in four calls comes exactly on a tick, one in four just before or after it.
    instant now = any_instant(chance);
    if (i % 4 == 1) now = ticks.shown(now);
    if (i % 4 == 2) now = ticks.shown(now) + nanoseconds(static_cast<int>(chance.below(3)) - 1);
    surroundings around;
    const instant woke = model.wake(request(now, length), around);
    const std::int64_t n = count(length);
    // In ticks, so that it is exact whatever the period: more than n − 1 of them, and at most n.
    const std::int64_t boundary = ticks.index(woke);
    const bool at_once = n == 0 && woke == now;
    if (!at_once && (ticks.at(boundary) != woke || boundary - ticks.index(now) != n)) {
      FAIL("length " << length.count() << " at " << now.time_since_epoch().count() << ": "
                     << boundary - ticks.index(now) << " ticks, not " << n);
    }
  }
  SUCCEED();
}

}  // namespace

TEST_CASE("a tick is exact at any rate, phase and error", "[kernels]") {
  generator chance(3);
  for (int i = 0; i < rounds; ++i) {
    const auto hz = static_cast<std::int64_t>(1 + chance.below(100'000));
    const nanoseconds phase = chance.between(-1s, 1s);
    const kernels::parts_per_billion error{static_cast<std::int64_t>(chance.below(40'000'000)) -
                                           20'000'000};
    const kernels::tick ticks(hz, phase, error);
    const instant t = i % 2 == 0 ? any_instant(chance) : instant{chance.between(-1h, 1h)};
    const std::int64_t k = ticks.index(t);
    if (!(ticks.at(k) <= t && t < ticks.at(k + 1))) FAIL("index at " << hz);
    if (ticks.shown(t) != ticks.at(k)) FAIL("shown");
    if (ticks.index(ticks.at(k)) != k) FAIL("a tick begins at its own instant");
    const instant next = ticks.not_before(t);
    if (!(next >= t && (next == t || next == ticks.at(k + 1)))) FAIL("not before");
    if (ticks.after(t, 3) != ticks.at(k + 3)) FAIL("after");
    // floor(k · 10^9 (1 + e) / hz), by remainders: k = q · hz + r.
    const std::int64_t real = 1'000'000'000 + error.count;
    const std::int64_t q = k / hz, r = k % hz;
    std::int64_t length = q * real + r * real / hz;
    if (r * real % hz < 0) --length;
    if ((ticks.at(k).time_since_epoch() - phase).count() != length) FAIL("at " << k);
  }
  SUCCEED();
}

TEST_CASE("a tick has a value at the far ends of time", "[kernels]") {
  for (const kernels::tick& ticks :
       {kernels::tick(100), kernels::tick(1'000'000'000), kernels::tick(1, 1ns, {-900'000'000})}) {
    CHECK(ticks.after((instant::max)(), (std::numeric_limits<std::int64_t>::max)()) ==
          (instant::max)());
    CHECK(ticks.shown((instant::max)()) <= (instant::max)());
    CHECK(ticks.shown((instant::min)()) >= (instant::min)());
    CHECK(ticks.not_before((instant::max)()) == (instant::max)());
  }
  CHECK(kernels::ticks_up(0ns, 1ms) == 0);
  CHECK(kernels::ticks_up(1ns, 1ms) == 1);
  CHECK(kernels::ticks_up(1ms, 1ms) == 1);
  CHECK(kernels::ticks_up(1ms + 1ns, 1ms) == 2);
  CHECK(kernels::ticks_up((nanoseconds::max)(), 1ns) == (nanoseconds::max)().count());
}

TEST_CASE("wheel kernels end a wait on the n-th tick after the call", "[kernels]") {
  const nanoseconds phase = 1'234'567ns;
  const kernels::parts_per_billion long_ticks{6'200'000};
  const auto ceiling = [](nanoseconds length, nanoseconds one) {
    return static_cast<std::int64_t>((length.count() + one.count() - 1) / one.count());
  };
  SECTION("netbsd_6: n = ceil(max(r, T) / T) + 1, and 1 for zero") {
    for (const std::int64_t hz : {100, 1000, 1024}) {
      const nanoseconds one = 1us * (1'000'000 / hz);
      obeys_wheel(kernels::netbsd_6{hz, phase, long_ticks}, kernels::tick(hz, phase, long_ticks),
                  [&](nanoseconds r) { return r == 0ns ? 1 : ceiling(std::max(r, one), one) + 1; });
    }
  }
  SECTION("netbsd: the same, but zero does not wait") {
    obeys_wheel(kernels::netbsd{100, phase}, kernels::tick(100, phase), [&](nanoseconds r) {
      return r == 0ns ? 0 : ceiling(std::max<nanoseconds>(r, 10ms), 10ms) + 1;
    });
  }
  SECTION("openbsd: n = floor((r + T - 1) / (T + 1)) + 1") {
    obeys_wheel(kernels::openbsd{100, phase}, kernels::tick(100, phase), [&](nanoseconds r) {
      return (std::max(r, 1ns).count() + 10'000'000 - 1) / (10'000'000 + 1) + 1;
    });
  }
  SECTION("freebsd_9_select: n = ceil(max(r, T) / T) + 1, T a whole number of us") {
    for (const std::int64_t hz : {100, 1000, 3000, 100'000}) {
      const nanoseconds one = 1us * (1'000'000 / hz);
      obeys_wheel(kernels::freebsd_9_select{hz, phase}, kernels::tick(hz, phase),
                  [&](nanoseconds r) { return r == 0ns ? 0 : ceiling(std::max(r, one), one) + 1; });
    }
  }
  SECTION("linux_jiffies: n = ceil(r / T) + 1, T exact") {
    for (const std::int64_t hz : {100, 250, 300, 1000}) {
      obeys_wheel(kernels::linux_jiffies{hz, phase}, kernels::tick(hz, phase), [&](nanoseconds r) {
        return (r.count() * hz + 999'999'999) / 1'000'000'000 + 1;
      });
    }
  }
  SECTION("windows: n = ceil(r / T) from the last tick") {
    obeys_wheel(kernels::windows{976'563ns, phase, 100ns}, kernels::tick(976'563ns, phase),
                [&](nanoseconds r) { return ceiling(ceiling(r, 100ns) * 100ns, 976'563ns); });
  }
}

TEST_CASE("kernels with a grid end a wait on its first instant that is not early", "[kernels]") {
  generator chance(5);
  const nanoseconds phase = 333'333ns;
  for (int i = 0; i < rounds; ++i) {
    const instant now = any_instant(chance);
    const native_request asked = request(now, any_length(chance));
    surroundings around;
    for (const std::int64_t hz : {100, 250, 300, 1000}) {
      const kernels::tick ticks(hz, phase);
      const instant woke = kernels::linux_ticks{hz, phase}.wake(asked, around);
      if (ticks.at(ticks.index(asked.until - 1ns) + 1) != woke) FAIL("linux at " << hz);
    }
    const instant woke = kernels::windows_high_resolution{500us, phase}.wake(asked, around);
    if ((woke.time_since_epoch() - phase) % 500us != 0ns || woke < asked.until ||
        woke - asked.until >= 500us) {
      FAIL("high-resolution timer");
    }
  }
  SUCCEED();
}

TEST_CASE("a longer request never ends sooner", "[kernels]") {
  each_model([](const char* name, const auto& model) {
    CAPTURE(name);
    generator chance(7);
    for (int i = 0; i < rounds / 4; ++i) {
      const instant now = any_instant(chance);
      const nanoseconds length = any_length(chance);
      const nanoseconds longer = length + (i % 2 == 0 ? any_length(chance) : 1ns);
      surroundings around{{}, i % 4 < 2 ? interrupts::periodic(700us) : interrupts()};
      const instant first = model.wake(request(now, length), around);
      if (model.wake(request(now, longer), around) < first) FAIL(length.count());
      if (first < now) FAIL("before it was asked");
    }
    SUCCEED();
  });
}

TEST_CASE("no kernel wakes before the asked instant but those that are known for it", "[kernels]") {
  each_model([](const std::string& name, const auto& model) {
    CAPTURE(name);
    generator chance(13);
    const bool windows = name.starts_with("windows") && name != "windows_high_resolution";
    const nanoseconds most_early = name == "cygwin" ? 10ms : windows ? 15'625us : 0us;
    nanoseconds earliest{0};
    surroundings around{latency::log_normal(2us, 50us), interrupts::poisson(1ms)};
    for (int i = 0; i < rounds; ++i) {
      const native_request asked = request(any_instant(chance), any_length(chance));
      const nanoseconds early = asked.until - model.wake(asked, around);
      earliest = std::max(earliest, early);
      // OpenBSD divides by T + 1: a nanosecond for each tick but one.
      const nanoseconds allowed =
          name == "openbsd" ? (asked.until - asked.now) / 10ms * 1ns + 1ns : most_early;
      if (early > allowed) FAIL(early.count() << " ns early");
    }
    if (most_early > 0ns) CHECK(earliest > 300us);
  });
}

TEST_CASE("a caller back to back sees whole ticks, one at random phase any part of the last",
          "[kernels]") {
  const nanoseconds period = 10ms;
  const auto look = [&](const auto& model, nanoseconds length, std::int64_t n) {
    surroundings around;
    instant t{1000s};
    for (int i = 0; i < 100; ++i) {
      const instant woke = model.wake(request(t, length), around);
      if (woke - t != n * period) FAIL((woke - t).count());
      t = woke;
    }
    generator chance(17);
    nanoseconds least = 1h, most = 0ns, sum = 0ns;
    for (int i = 0; i < rounds; ++i) {
      const instant now = any_instant(chance);
      const nanoseconds took = model.wake(request(now, length), around) - now;
      least = std::min(least, took);
      most = std::max(most, took);
      sum += took;
    }
    CHECK(least > (n - 1) * period);
    CHECK(least < (n - 1) * period + period / 100);
    CHECK(most <= n * period);
    CHECK(most > n * period - period / 100);
    const nanoseconds middle = n * period - period / 2;
    CHECK(sum / rounds > middle - period / 50);
    CHECK(sum / rounds < middle + period / 50);
  };
  look(kernels::netbsd{}, 1ms, 2);
  look(kernels::netbsd_6{}, 20ms, 3);
  look(kernels::openbsd{}, 25ms, 4);
  look(kernels::freebsd_9_nanosleep{.hz = 100}, 1ms, 2);
  look(kernels::linux_jiffies{}, 30ms, 4);
  look(kernels::windows{.period = 10ms}, 1ms, 1);
  look(kernels::windows{.period = 10ms}, 11ms, 2);

  // Without an extra tick, what varies with the phase is the lateness, not the elapsed time.
  const kernels::linux_ticks plain{.hz = 100};
  surroundings around;
  CHECK(plain.wake(request(instant{1000s}, 1ms), around) == instant{1000s + 10ms});
  generator chance(19);
  nanoseconds most_late{0};
  for (int i = 0; i < rounds; ++i) {
    const native_request asked = request(any_instant(chance), 1ms);
    const nanoseconds late = plain.wake(asked, around) - asked.until;
    most_late = std::max(most_late, late);
    if (late < 0ns || late >= period) FAIL(late.count());
  }
  CHECK(most_late > period - period / 100);
}

TEST_CASE("ticks that are too short make NetBSD 6 wake early, and NetBSD 7 look again",
          "[kernels]") {
  const kernels::parts_per_billion short_ticks{-20'000'000};
  surroundings around;
  const instant now{1000s};
  const native_request asked = request(now, 1s);
  CHECK(kernels::netbsd_6{.tick_error = short_ticks}.wake(asked, around) < asked.until);
  const instant woke = kernels::netbsd{.tick_error = short_ticks}.wake(asked, around);
  CHECK(woke >= asked.until);
  CHECK(woke - asked.until < 30ms);
}

TEST_CASE("a past deadline returns at once where the kernel looks, else it costs a tick",
          "[kernels]") {
  each_model([](const std::string& name, const auto& model) {
    CAPTURE(name);
    generator chance(23);
    surroundings around{latency::constant(5us), {}};
    const bool waits_for_a_tick =
        name == "netbsd_6" || name == "openbsd" || name == "linux_ticks" || name == "linux_jiffies";
    for (int i = 0; i < 100; ++i) {
      const instant now = any_instant(chance);
      const nanoseconds took = model.wake(request(now, -any_length(chance)), around) - now;
      if (waits_for_a_tick) {
        if (took <= 5us || took > 10'005us) FAIL(took.count());
      } else if (took > (name == "guest" ? 46us : name == "linux_highres" ? 55us : 5us)) {
        FAIL(took.count());
      }
    }
    SUCCEED();
  });
}

TEST_CASE("an interrupt inside the window ends a lazy kernel's wait sooner", "[kernels]") {
  const instant now{1000s};
  const auto woken_by = [&](const auto& model, nanoseconds length, interrupts others) {
    surroundings around{{}, std::move(others)};
    return model.wake(request(now, length), around) - now;
  };
  const interrupts at_10200us = interrupts::periodic(1h, 1000s % 1h + 10'200us);
  CHECK(woken_by(kernels::freebsd_14{}, 10ms, at_10200us) == 10'200us);
  CHECK(woken_by(kernels::macos{}, 10ms, at_10200us) == 10'200us);
  CHECK(woken_by(kernels::linux_highres{.timer_slack = 1ms}, 10ms, at_10200us) == 10'200us);
  CHECK(woken_by(kernels::linux_select{.timer_slack = 1ms}, 10ms, at_10200us) == 10'200us);
  // Before the window or after it, it does not count.
  CHECK(woken_by(kernels::macos{}, 10'201us, at_10200us) == 11'201us);
  CHECK(woken_by(kernels::macos{}, 9ms, at_10200us) == 10ms);
  CHECK(woken_by(kernels::freebsd_15{}, 10ms, at_10200us) == 10ms);
  // A tight request leaves Linux no window to speak of.
  surroundings around{{}, at_10200us};
  const native_request tight{now, now + 10ms, slack::tight, false};
  CHECK(kernels::linux_highres{}.wake(tight, around) == tight.until + 1ns);
  CHECK(kernels::linux_highres{.timer_slack = 0ns}.wake(tight, around) == tight.until);
  CHECK(kernels::linux_select{}.wake(tight, around) == tight.until + 10us);
  // A deadline that has just passed is still waited for to the end of its slack.
  surroundings idle;
  CHECK(kernels::linux_highres{}.wake(request(now, -20us), idle) == now + 30us);
  CHECK(kernels::linux_highres{}.wake(request(now, -60us), idle) == now);
}

TEST_CASE("waiting for ever comes to an end of time in every model", "[kernels]") {
  each_model([](const char* name, const auto& model) {
    CAPTURE(name);
    surroundings around{latency::constant(5us), {}};
    const instant woke =
        model.wake({instant{1000s}, (instant::max)(), slack::as_is, false}, around);
    CHECK(woke > instant{1000s} + 24h * 365 * 250);
    model.wake({instant{1000s}, (instant::min)(), slack::as_is, false}, around);
  });
}

TEST_CASE("every ready-made machine repeats its run from its seed", "[kernels]") {
  const auto run = [](const kernels::ready_made& each, std::uint64_t seed) {
    simulation world;
    each.install(world, seed);
    const simulated_platform machine(world);
    generator chance(29);
    for (int i = 0; i < 300; ++i) {
      const instant until = world.time() + chance.between(0ms, 20ms);
      machine.block_until(clock_kind::monotonic, until, slack::as_is);
      machine.now(clock_kind::monotonic);
      world.work(chance.between(0ms, 3ms));
    }
    return world.time();
  };
  for (const kernels::ready_made& each : kernels::all()) {
    CAPTURE(each.name);
    CHECK(run(each, 1) == run(each, 1));
    if (each.name != "ideal") CHECK(run(each, 1) != run(each, 2));
  }
}

TEST_CASE("every ready-made machine has the clocks of its kernel, and says if it wakes early",
          "[kernels]") {
  std::set<std::string> names;
  for (const kernels::ready_made& each : kernels::all()) {
    CAPTURE(each.name);
    CHECK(names.insert(std::string(each.name)).second);
    CHECK(&kernels::named(each.name) == &each);
    simulation world;
    each.install(world, 5);
    const simulated_platform machine(world);
    generator chance(31);
    bool early = false;
    instant last{};
    for (int i = 0; i < 3000; ++i) {
      const instant until = later(world.time(), chance.between(1us, 30ms));
      machine.block_until(clock_kind::monotonic, until, slack::as_is);
      early = early || world.time() - world.cost.native_call / 2 < until;
      const instant coarse = machine.coarse_now(clock_kind::monotonic);
      const instant precise = machine.now(clock_kind::monotonic);
      if (coarse > precise || precise > world.time() || precise < last) FAIL("clocks");
      last = precise;
      world.work(chance.between(0ms, 1ms));
    }
    CHECK((each.wakes_early || !early));
    // These two are early by less than a microsecond, and hardly ever.
    if (each.name != "openbsd" && each.name != "windows, 0.5 ms") CHECK(early == each.wakes_early);
  }
  CHECK_THROWS_AS(kernels::named("plan 9"), std::out_of_range);
}

TEST_CASE("clocks are as coarse as the kernel makes them", "[kernels]") {
  const instant t{1000s + 7'654'321ns};
  CHECK(kernels::freebsd_9_nanosleep{.hz = 1000}.coarse(t) == instant{1000s + 7ms});
  CHECK(kernels::freebsd_9_nanosleep{.hz = 100}.coarse(t) == instant{1000s});
  CHECK(kernels::freebsd_9_select{.hz = 100'000}.coarse(t) == instant{1000s + 7ms});
  CHECK(kernels::freebsd_9_nanosleep{.hz = 2500}.coarse(t) == instant{1000s + 6'800us});
  CHECK(kernels::freebsd_14{}.coarse(t) == instant{1000s + 7ms});
  CHECK(kernels::linux_highres{}.coarse(t) == instant{1000s + 4ms});
  CHECK(kernels::linux_ticks{}.precise(t) == t);
  CHECK(kernels::linux_ticks{.clock_steps = true}.precise(t) == instant{1000s + 4ms});
  CHECK(kernels::windows{}.precise(t) == instant{1000s + 7'654'300ns});
  CHECK(kernels::cygwin{}.precise(t) == instant{1000s + 7ms});
  CHECK(t - kernels::macos{}.precise(t) < 42ns);

  // No coarse clock for programs: the precise one, at its price.
  simulation world;
  install(world, kernels::netbsd{});
  CHECK(world.coarse(t) == t);
  CHECK(world.cost.coarse_read == world.cost.clock_read);
}

TEST_CASE("latency and interrupts are put around a model in any order", "[kernels]") {
  const auto sleep = [](const auto& what) {
    simulation world;
    install(world, what);
    const instant start = world.time();
    simulated_platform(world).block_until(clock_kind::monotonic, start + 10ms, slack::as_is);
    return world.time() - start - 500ns;
  };
  const interrupts others = interrupts::periodic(300us);
  const latency late = latency::constant(7us);
  const kernels::macos model;
  CHECK(sleep(model) == 11ms);
  CHECK(sleep(with_latency(late, model)) == 11ms + 7us);
  CHECK(sleep(with_interrupts(others, model)) == 10'100us);
  CHECK(sleep(with_interrupts(others, with_latency(late, model))) == 10'107us);
  CHECK(sleep(with_latency(late, with_interrupts(others, model))) == 10'107us);
}
