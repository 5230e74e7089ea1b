// What was reported from the real kernels, row by row, and what each model says to it.
//
// Mistake that would live without it: a model that is consistent in itself and is not the kernel
// that its users complained about.
//
// Most reports come from a program that calls again as soon as it is woken. It is back in the
// kernel about 1 us after the tick, so it sees 19.999 ms where the kernel counts 20: hence
// `returns`.

#include <punctual/testing/kernels.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <vector>

namespace {

using namespace punctual;
using namespace punctual::testing;
using namespace std::chrono_literals;

/// A program that asks for the same length over and over.
struct caller {
  nanoseconds latency = 0ns;
  nanoseconds returns = 1us;  ///< from its wake-up to its next call
};

struct seen {
  nanoseconds least, most;
};

template <class Model>
seen elapsed(const Model& model, nanoseconds length, caller who = {}, int calls = 200) {
  surroundings around{latency::constant(who.latency), {}};
  instant t{1000s};
  seen result{(nanoseconds::max)(), (nanoseconds::min)()};
  for (int i = 0; i < calls; ++i) {
    const instant now = t + who.returns;
    t = model.wake({now, now + length, slack::as_is, false}, around);
    if (i < 2) continue;  // the first call finds the tick at any phase
    result.least = std::min(result.least, t - now);
    result.most = std::max(result.most, t - now);
  }
  return result;
}

/// The one value that each call took.
template <class Model>
nanoseconds always(const Model& model, nanoseconds length, caller who = {}) {
  const seen each = elapsed(model, length, who);
  CHECK(each.least == each.most);
  return each.most;
}

/// The same request once from each of many phases of the tick.
template <class Model>
std::vector<nanoseconds> at_phases(const Model& model, nanoseconds length, nanoseconds period,
                                   int phases = 1000) {
  surroundings around;
  std::vector<nanoseconds> result;
  for (int i = 0; i < phases; ++i) {
    const instant now = instant{1000s} + period * i / phases;
    result.push_back(model.wake({now, now + length, slack::as_is, false}, around) - now);
  }
  return result;
}

}  // namespace

TEST_CASE("NetBSD at 100 Hz, as reported in PR 47431", "[kernels]") {
  const kernels::netbsd_6 old{.hz = 100};
  const kernels::netbsd now{.hz = 100};
  // A length of zero: "several ms"; up to a tick, depending on its phase.
  const std::vector<nanoseconds> zero = at_phases(old, 0ns, 10ms);
  CHECK(*std::min_element(zero.begin(), zero.end()) == 10us);
  CHECK(*std::max_element(zero.begin(), zero.end()) == 10ms);
  CHECK(at_phases(now, 0ns, 10ms) == std::vector<nanoseconds>(1000, 0ns));

  for (const nanoseconds length : {nanoseconds(1ns), nanoseconds(1us), nanoseconds(1ms),
                                   nanoseconds(9999us), nanoseconds(10ms)}) {
    CHECK(always(old, length) == 19'999us);
    CHECK(always(now, length) == 19'999us);
  }
  for (const nanoseconds length : {20ms, 50ms, 100ms, 1000ms}) {
    CHECK(always(old, length) == length + 9'999us);
    CHECK(always(now, length) == length + 9'999us);
  }
}

TEST_CASE("NetBSD at 100 and 1000 Hz, as seen by Rhialto's program and by simh", "[kernels]") {
  CHECK(always(kernels::netbsd_6{}, 1ms) == 19'999us);
  CHECK(always(kernels::netbsd_6{}, 20ms) == 29'999us);
  CHECK(always(kernels::netbsd_6{}, 40ms) == 49'999us);
  const kernels::netbsd fast{.hz = 1000};
  CHECK(always(fast, 1ms) == 1'999us);
  CHECK(always(fast, 5ms) == 5'999us);
  CHECK(always(fast, 20ms) == 20'999us);
}

TEST_CASE("OpenBSD adds a tick to all but the shortest wait", "[kernels]") {
  CHECK(always(kernels::openbsd{}, 1ns) == 9'999us);
  CHECK(always(kernels::openbsd{}, 2ns) == 19'999us);
  CHECK(always(kernels::openbsd{}, 10ms) == 19'999us);
  CHECK(always(kernels::openbsd{}, 20ms) == 29'999us);
}

TEST_CASE("FreeBSD 9 at 1000 and 10,000 Hz, as reported in 2008 and 2012", "[kernels]") {
  CHECK(always(kernels::freebsd_9_select{.hz = 1000}, 1us) == 1999us);
  CHECK(always(kernels::freebsd_9_nanosleep{.hz = 1000}, 1us) == 1999us);
  CHECK(always(kernels::freebsd_9_select{.hz = 1000}, 0us) == 0us);  // poll with 1 us: 0 ms

  const caller late{.latency = 1us, .returns = 0us};
  CHECK(always(kernels::freebsd_9_select{.hz = 10'000}, 1us, late) == 1us + 199us);
  CHECK(always(kernels::freebsd_9_nanosleep{.hz = 10'000}, 1us, late) == 1us + 999us);
}

TEST_CASE("FreeBSD 9 at 100,000 Hz, as reported in 2012", "[kernels]") {
  const kernels::freebsd_9_select select{.hz = 100'000};
  const kernels::freebsd_9_nanosleep sleep{.hz = 100'000};
  const caller late{.latency = 10us};
  CHECK(always(select, 1us, late) == 29us);
  CHECK(always(select, 1000us, late) == 1000us + 19us);

  // A sleep lasts to the next windup, 1 ms after the last: in steps of 30 us where waking takes 10.
  CHECK(always(sleep, 1us) == 999us);
  const seen short_sleep = elapsed(sleep, 1us, late);
  CHECK(short_sleep.least == 989us);
  CHECK(short_sleep.most == 1019us);

  // 1000 us took 619 to 693 us too long, 500 ms took 26 to 885: with windups a hair below 1 ms one
  // more is needed, and the excess is what was left of it. The reports do not say at which phase.
  const kernels::freebsd_9_nanosleep hair{.hz = 100'000, .tick_error = {-10'000}};
  for (const nanoseconds length : {1ms, 500ms}) {
    const std::vector<nanoseconds> each = at_phases(hair, length, 1ms);
    const nanoseconds least = *std::min_element(each.begin(), each.end()) - length;
    const nanoseconds most = *std::max_element(each.begin(), each.end()) - length;
    CHECK(least >= -5us);  // 50,001 ticks that are too short by 10 ppm, less the part of the first
    CHECK(least < 26us);
    CHECK(most > 885us);
    CHECK(most <= 1020us);
  }
}

TEST_CASE("FreeBSD with ticks that are too long drifts by their error and one tick", "[kernels]") {
  const kernels::freebsd_9_nanosleep at_5000{.hz = 5000, .tick_error = {6'200'000}};
  const auto near = [](nanoseconds reported, nanoseconds within, seen each) {
    return each.least >= reported - within && each.most <= reported + within;
  };
  CHECK(near(1'006'400us, 5us, elapsed(at_5000, 1s)));
  CHECK(near(10'062'200us, 5us, elapsed(at_5000, 10s)));
  const kernels::freebsd_9_nanosleep at_10000{.hz = 10'000, .tick_error = {9'640'000}};
  CHECK(near(1'009'740us, 10us, elapsed(at_10000, 1s)));
}

TEST_CASE("FreeBSD at up to 2500 Hz is late by a constant, whatever the length", "[kernels]") {
  for (const std::int64_t hz : {1000, 2000, 2500}) {
    CAPTURE(hz);
    const nanoseconds one_tick{1'000'000'000 / hz};
    for (const nanoseconds length : {2ms, 10ms, 100ms, 1000ms, 10'000ms}) {
      const kernels::freebsd_9_select select{.hz = hz};
      CHECK(always(select, length) - length == one_tick - 1us);
      for (const nanoseconds each : at_phases(select, length, one_tick)) {
        if (each < length || each > length + 2 * one_tick) FAIL_CHECK(each.count());
      }
      // nanosleep also waits for a windup: two ticks and at most one of these.
      const seen sleep = elapsed(kernels::freebsd_9_nanosleep{.hz = hz}, length);
      CHECK(sleep.least > length);
      CHECK(sleep.most <= length + 2 * one_tick + one_tick * kernels::windup::chosen(hz));
    }
  }
}

TEST_CASE("FreeBSD at 40,000 Hz with the arithmetic mended is late by the dispatch alone",
          "[kernels]") {
  const kernels::freebsd_9_nanosleep mended{.hz = 40'000, .windup_every = 1, .extra_ticks = 0};
  for (const nanoseconds latency : {80us, 85us, 90us}) {
    surroundings around{latency::constant(latency), {}};
    for (const nanoseconds length : {10ms, 1000ms, 10'000ms}) {
      const instant now{1000s};
      CHECK(mended.wake({now, now + length, slack::as_is, false}, around) ==
            now + length + latency);
    }
  }
}

TEST_CASE("FreeBSD 10 to 14 on an idle processor is late by a sixteenth", "[kernels]") {
  const kernels::freebsd_14 idle;
  CHECK(always(idle, 1ms) == 1'062'500ns);
  CHECK(always(idle, 10ms) == 10'625us);
  for (const nanoseconds each : at_phases(idle, 100ms, 1ms)) {
    if (each < 106'250us || each > 107'250us) FAIL_CHECK(each.count());
  }
  CHECK(kernels::freebsd_14{.allowed_deviation = 1}.shift() == 7);
  CHECK(kernels::freebsd_14{.allowed_deviation = 2}.shift() == 6);
  CHECK(kernels::freebsd_14{.allowed_deviation = 5}.shift() == 4);
  CHECK(kernels::freebsd_14{.allowed_deviation = 10}.shift() == 3);
  CHECK(kernels::freebsd_14{.allowed_deviation = 100}.shift() == 0);
  CHECK(always(kernels::freebsd_14{.allowed_deviation = 0}, 10ms) == 10ms);
  CHECK(always(kernels::freebsd_15{}, 100ms) == 100ms);
}

TEST_CASE("DragonFly and illumos: exact at 100 Hz, and exact above 10 ms", "[kernels]") {
  for (const nanoseconds length : {nanoseconds(1us), nanoseconds(50us), nanoseconds(7ms),
                                   nanoseconds(10ms), nanoseconds(123'456us)}) {
    CHECK(elapsed(kernels::dragonfly{}, length).most == length);
    // Below `hard` it spins in the kernel and is not even late by the dispatch.
    const nanoseconds dispatch = length < 100us ? 0us : 5us;
    CHECK(elapsed(kernels::dragonfly{}, length, {.latency = 5us}).most <= length + dispatch);
    CHECK(always(kernels::illumos{}, length) == std::max<nanoseconds>(length, 10ms));
  }
}

TEST_CASE("Linux with high-resolution timers, as reported in 2009 and 2012", "[kernels]") {
  for (const nanoseconds latency : {30us, 40us}) {
    for (const nanoseconds length :
         {nanoseconds(1us), nanoseconds(1ms), nanoseconds(100ms), nanoseconds(10s)}) {
      const nanoseconds late =
          always(kernels::linux_highres{}, length, {.latency = latency}) - length;
      CHECK((late >= 80us && late <= 90us));
    }
  }
  CHECK(always(kernels::linux_select{}, 1s) == 1s + 1ms);  // loses a millisecond a second
  CHECK(always(kernels::linux_select{.niced = true}, 1s) == 1s + 5ms);
  CHECK(always(kernels::linux_select{}, 1h) == 1h + 100ms);
  CHECK(always(kernels::linux_select{}, 1us, {.latency = 49us}) == 1us + 99us);
  CHECK(always(kernels::linux_select{}, 0us) == 0us);
}

TEST_CASE("Linux without high-resolution timers ends a wait on the next tick", "[kernels]") {
  // Seen in a real guest at 250 Hz: every 1 ms sleep ends at 4 ms, every 10 ms sleep at 12.
  const kernels::linux_ticks ticks{.hz = 250};
  CHECK(always(ticks, 1ms) == 4ms - 1us);
  CHECK(always(ticks, 10ms) == 12ms - 1us);
  CHECK(always(kernels::linux_ticks{.hz = 100}, 1ms) == 10ms - 1us);
  // Linux 2.4 adds a tick, but for short waits of real-time threads.
  CHECK(always(kernels::linux_jiffies{.hz = 100}, 1ms) == 20ms - 1us);
  CHECK(always(kernels::linux_jiffies{.hz = 100, .busy_below = 2ms}, 2ms) == 2ms);
  CHECK(always(kernels::linux_jiffies{.hz = 100, .busy_below = 2ms}, 3ms) == 20ms - 1us);
}

TEST_CASE("macOS before coalescing, and after it by latency tier", "[kernels]") {
  CHECK(always(kernels::macos::real_time(), 1us, {.latency = 5us}) == 6us);  // 10.6: 6 us in all

  const kernels::macos usual;
  CHECK(always(usual, 4ms) == 4'500us);
  CHECK(always(usual, 40ms) == 41ms);
  // A quarter of the request up to 5 ms, and double when the user is away.
  kernels::macos application = kernels::macos::tier(1);
  CHECK(always(application, 4ms) == 5ms);
  CHECK(always(application, 40ms) == 45ms);
  application.idle_level = 128;
  CHECK(always(application, 40ms) == 50ms);
  CHECK(always(kernels::macos::background(), 2ms) == 2ms + 64ms);
  CHECK(always(kernels::macos::background(), 20ms) == 120ms);
  CHECK(always(kernels::macos::tier(5), 1s) == 11s);
}

TEST_CASE("a virtual machine is late by 41 us after 0.1 ms and by 170 us after 16 ms",
          "[kernels]") {
  const kernels::guest guest;
  CHECK(always(guest, 100us) == 141us);
  CHECK(always(guest, 16ms) == 16'170us);
  CHECK(always(guest, 1us) == 42us);
  CHECK(always(guest, 1s) == 1s + 170us);
  CHECK(guest.overshoot(1ms) > 80us);
  CHECK(guest.overshoot(1ms) < 120us);
}

TEST_CASE("Windows counts from the last tick, as in go 17696 and Windows-Dev-Performance 115",
          "[kernels]") {
  const auto sleep = [](nanoseconds period, nanoseconds length) {
    return elapsed(kernels::windows{.period = period}, length, {.returns = 0us});
  };
  CHECK(sleep(976'563ns, 1ms).most == 2 * 976'563ns);  // 1.953 ms
  CHECK(sleep(499'500ns, 1ms).most == 3 * 499'500ns);  // 1.498 ms
  CHECK(sleep(507'000ns, 1ms).most == 2 * 507'000ns);  // 1.014 ms: a longer tick is better
  CHECK(sleep(15'625us, 1ms).most == 15'625us);
  CHECK(sleep(15'625us, 0ms).most == 0ms);
  // Documented: below one tick it may sleep for less, between k and k + 1 ticks for as much.
  const std::vector<nanoseconds> phases = at_phases(kernels::windows{}, 1ms, 15'625us);
  CHECK(*std::min_element(phases.begin(), phases.end()) < 1ms);
  CHECK(*std::max_element(phases.begin(), phases.end()) == 15'625us);
  // The high-resolution timer, whatever the tick: a bit over 0.5 ms, never early.
  for (const nanoseconds each : at_phases(kernels::windows_high_resolution{}, 1us, 500us)) {
    if (each < 1us || each >= 501us) FAIL_CHECK(each.count());
  }
}

TEST_CASE("Cygwin: a sleep of 1 ms takes 10 ms or more by its own clock", "[kernels]") {
  for (const nanoseconds period : {nanoseconds(10ms), nanoseconds(15'625us)}) {
    simulation world;
    install(world, kernels::cygwin{.period = period});
    const simulated_platform machine(world);
    machine.block_until(clock_kind::monotonic, world.time() + 1ms, slack::as_is);
    for (int i = 0; i < 100; ++i) {
      const instant start = machine.now(clock_kind::monotonic);
      machine.block_until(clock_kind::monotonic, world.time() + 1ms, slack::as_is);
      const nanoseconds seen = machine.now(clock_kind::monotonic) - start;
      CHECK((seen >= 10ms && seen <= 16ms && seen % 1ms == 0ms));
    }
  }
}

TEST_CASE("a past deadline costs a call and a dispatch in the kernel, and one clock read outside",
          "[kernels]") {
  // glibc 2.31's condition variables, as reported in 2020: 6346 ns where 398 ns had been enough.
  simulation world;
  install(world, with_latency(latency::constant(5'946ns), kernels::linux_highres{}));
  world.cost.native_call = 400ns;
  world.cost.clock_read = 398ns;
  const simulated_platform machine(world);
  for (const clock_kind on : {clock_kind::monotonic, clock_kind::realtime}) {
    const instant start = world.time();
    machine.block_until(on, start - 1s, slack::as_is);
    CHECK(world.time() - start == 6'346ns);
    machine.now(on);
    CHECK(world.time() - start == 6'346ns + 398ns);
  }
}
