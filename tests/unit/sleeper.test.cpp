// Mistake that would live without it: a wait that ends early after an interruption, an early wake
// or a refused call; that learns from a disturbance; or that hangs on a clock that does not move.
#include "support/catch.hpp"

#include <punctual/sleeper.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <string_view>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

using simulated_sleeper = basic_sleeper<simulated_platform>;

/// A machine whose kernel is late by a constant, and its sleeper, warmed up.
struct machine {
  simulation world;
  simulated_sleeper sleeper{tuning{}, simulated_platform{world}};

  explicit machine(nanoseconds overshoot = 60us) { late_by(overshoot); }
  void late_by(nanoseconds overshoot) {
    world.kernel = [overshoot](const native_request& r) { return later(r.until, overshoot); };
  }
  void warm_up(nanoseconds length = 1ms, int waits = 300) {
    for (int i = 0; i < waits; ++i) sleeper.sleep_for(length);
    world.count = {};
  }
};

bool long_run() { return std::getenv("PUNCTUAL_LONG") != nullptr; }

}  // namespace

TEST_CASE("no wait of any length is early, on any kernel noise", "[sleeper][G1]") {
  machine m;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0, std::log(20e6));
  m.world.kernel = [&](const native_request& r) {
    const auto draw = random() % 1000;
    if (draw < 20) return r.until - nanoseconds(static_cast<std::int64_t>(random() % 300'000));
    if (draw < 30) return r.until + 3ms;
    return r.until + 20us + nanoseconds(static_cast<std::int64_t>(random() % 60'000));
  };
  const int waits = long_run() ? 10'000'000 : 100'000;
  int early = 0;
  int misreported = 0;
  for (int i = 0; i < waits; ++i) {
    const nanoseconds length{static_cast<std::int64_t>(std::exp(exponent(random)))};
    const instant due = m.world.time() + length;
    const receipt did = m.sleeper.sleep_until(due);
    early += m.world.time() < due;
    misreported +=
        did.late < 0ns || (did.why != outcome::reached && did.why != outcome::already_past);
  }
  CHECK(early == 0);
  CHECK(misreported == 0);
}

TEST_CASE("a warmed-up wait ends within 100 ns and mostly sleeps", "[sleeper]") {
  machine m(60us);
  for (const auto length : {300us, 1000us, 16'667us}) {
    m.warm_up(length);
    int punctual_waits = 0;
    for (int i = 0; i < 100; ++i) {
      const instant due = m.world.time() + length;
      const receipt did = m.sleeper.sleep_until(due);
      punctual_waits += m.world.time() - due < 100ns;
      CHECK(did.why == outcome::reached);
      CHECK(did.native_waits >= 1);
      CHECK(did.spun < 20us);
    }
    CHECK(punctual_waits >= 98);  // the default punctuality
  }
}

TEST_CASE("a past deadline is answered by clock reads alone", "[sleeper][G2]") {
  machine m;
  m.world.count = {};
  receipt did = m.sleeper.sleep_until(m.world.time() - 1h);
  CHECK(did.why == outcome::already_past);
  CHECK(did.late >= 1h - 8ms);
  CHECK(did.late <= 1h);
  CHECK(m.world.count.coarse_reads == 1);
  CHECK(m.world.count.clock_reads == 0);

  did = m.sleeper.sleep_until(m.world.time() - 1ns);
  CHECK(did.why == outcome::already_past);
  CHECK(did.late >= 1ns);
  CHECK(m.world.count.clock_reads == 1);

  for (const auto family : {0, 1, 2}) {
    const instant past = m.world.time() - 20ms;
    did = family == 0   ? m.sleeper.sleep_until(past)
          : family == 1 ? m.sleeper.block_until(past)
                        : m.sleeper.spin_until(past);
    CHECK(did.why == outcome::already_past);
  }
  CHECK(m.world.count.native_waits == 0);
  CHECK(m.world.count.pauses == 0);
}

TEST_CASE("an interrupted wait is re-armed towards the same instant and teaches nothing",
          "[sleeper][G3]") {
  // Late by a sixteenth: what remains has another margin than the whole, so a new plan would
  // differ.
  machine m;
  std::vector<instant> asked;
  m.world.kernel = [&](const native_request& r) {
    asked.push_back(r.until);
    return later(r.until, (r.until - r.now) / 16);
  };
  for (const auto length : {100us, 300us, 600us, 1000us}) m.warm_up(length);
  const nanoseconds margin = m.sleeper.margin(1ms);
  asked.clear();
  const instant due = m.world.time() + 1ms;
  for (const auto at : {100us, 250us, 600us}) {
    m.world.after(at, [&] { m.world.signal(); });
  }
  const receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(did.interruptions == 3);
  REQUIRE(asked.size() >= 4);
  for (int i = 0; i < 4; ++i) CHECK(asked[static_cast<std::size_t>(i)] == asked.front());
  CHECK(m.world.time() >= due);
  CHECK(m.world.time() - due < 5us);

  // Interrupted so often that no native wait completes: the margin stays what it was.
  for (int i = 0; i < 200; ++i) {
    for (int k = 1; k < 20; ++k) m.world.after(k * 50us, [&] { m.world.signal(); });
    m.sleeper.sleep_for(1ms);
  }
  CHECK(m.sleeper.margin(1ms) <= margin + 1us);
  CHECK(m.sleeper.margin(1ms) >= margin - 5us);
}

TEST_CASE("a native wait that ends early is continued", "[sleeper][G1]") {
  machine m;
  m.warm_up();
  m.world.next_native({native_end::woke, 0}, 3us);
  m.world.next_native({native_end::woke, 0}, 500us);
  const instant due = m.world.time() + 5ms;
  const receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() >= due);
  CHECK(did.native_waits >= 3);
}

TEST_CASE("a refused native wait is waited out by spinning in slices, and says so",
          "[sleeper][G1][G6]") {
  machine m;
  m.warm_up();
  m.world.refuse_native(EPERM);
  m.world.count = {};
  const instant due = m.world.time() + 100ms;
  const receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(did.error == EPERM);
  CHECK(m.world.time() >= due);
  CHECK(m.world.time() - due < 1us);
  CHECK(did.native_waits <= 11);  // the failing call is tried once a slice of 10 ms

  const receipt blocked = m.sleeper.block_until(m.world.time() + 1ms);
  CHECK(blocked.why == outcome::gave_up);
  CHECK(blocked.error == EPERM);
  CHECK(blocked.left > 0ns);

  m.world.refuse_native(0);
  CHECK(m.sleeper.sleep_for(1ms).error == 0);
}

TEST_CASE("a refusal that passes is spun out for one slice, not for the rest of the wait",
          "[sleeper][G6]") {
  machine m;
  m.warm_up();
  m.world.refuse_native(EPERM);
  m.world.after(25ms, [&] { m.world.refuse_native(0); });
  const instant due = m.world.time() + 1s;
  const receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(did.error == EPERM);
  CHECK(m.world.time() >= due);
  CHECK(m.world.time() - due < 1us);
  CHECK(did.spun < 40ms);
  CHECK(did.native_waits < 10);
}

TEST_CASE("native waits that return at once without waiting count as refused", "[sleeper][G6]") {
  machine m;
  m.warm_up(4ms);
  const nanoseconds margin = m.sleeper.margin(4ms);
  m.world.kernel = [&](const native_request&) { return m.world.time() + 300ns; };
  const instant due = m.world.time() + 30ms;
  receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() >= due);
  CHECK(m.world.time() - due < 1us);
  CHECK(did.native_waits < 30);

  did = m.sleeper.block_until(m.world.time() + 30ms);
  CHECK(did.why == outcome::gave_up);
  CHECK(did.native_waits < 30);
  CHECK(did.left > 29ms);

  for (int i = 0; i < 20; ++i) m.sleeper.sleep_for(4ms);
  CHECK(m.sleeper.margin(4ms) == margin);  // nothing was learned of it
  m.late_by(60us);
  did = m.sleeper.sleep_for(4ms);
  CHECK(did.spun < 100us);
}

TEST_CASE("native waits that do not wait are not made again and again in the last millisecond",
          "[sleeper][G6]") {
  machine m;
  m.warm_up(4ms);
  const nanoseconds margin = m.sleeper.margin(4ms);
  m.world.kernel = [&](const native_request&) { return m.world.time() + 300ns; };
  // The second slice ends late, with 0.7 ms to go.
  m.world.after(19ms, [&m] { m.world.stall(10'300us); });
  const instant due = m.world.time() + 30ms;
  const receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - due < 1us);
  CHECK(did.native_waits < 30);
  for (int i = 0; i < 20; ++i) m.sleeper.sleep_for(4ms);
  CHECK(m.sleeper.margin(4ms) == margin);

  // Nor where a backend can tell a refusal only while there is much to go.
  m.world.refuse_native(1);
  m.world.after(19ms, [&m] {
    m.world.refuse_native(0);
    m.world.stall(10'300us);
  });
  const receipt refused = m.sleeper.sleep_until(m.world.time() + 30ms);
  CHECK(refused.why == outcome::reached);
  CHECK(refused.native_waits < 10);
}

TEST_CASE("a storm of signals is not taken for native waits that do not wait", "[sleeper][G3]") {
  machine m;
  m.warm_up();
  std::function<void()> again = [&] {
    m.world.signal();
    m.world.after(5us, again);
  };
  m.world.after(5us, again);
  const instant due = m.world.time() + 5ms;
  const receipt did = m.sleeper.block_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() >= due);
  CHECK(did.interruptions > 100);
}

TEST_CASE("blocking alone works on a clock with steps of 10 ms, and asks a few times a step",
          "[sleeper][G6]") {
  machine m(0us);
  m.world.precise = [](instant t) { return t - t.time_since_epoch() % 10'000'000ns; };
  for (int i = 0; i < 20; ++i) {
    m.world.work(1234us);
    const receipt did = m.sleeper.block_for(25ms);
    CHECK(did.why == outcome::reached);
    CHECK(did.native_waits < 20);
  }
  CHECK(m.world.count.spun() < 1ms);  // of 700 ms
}

TEST_CASE("a second lost in the spin does not use up the budget for processor time",
          "[sleeper][G6][G11]") {
  machine m;
  int waits = 0;
  m.world.kernel = [&](const native_request& r) {
    return later(r.until, ++waits % 2 == 0 ? 30us : 90us);
  };
  m.warm_up(4ms);
  m.world.on_step = [&](const char* name) {
    if (std::string_view(name) != "pause" || m.world.count.stalled != 0ns) return;
    m.world.stall(2s);
  };
  std::uint32_t gaps = 0;
  for (int i = 0; i < 4; ++i) gaps += m.sleeper.sleep_for(4ms).gaps;
  CHECK(gaps == 1);
  int late = 0;
  for (int i = 0; i < 600; ++i) {
    const instant due = m.world.time() + 4ms;
    m.sleeper.sleep_until(due);
    late += m.world.time() - due > 1us;
  }
  CHECK(late == 0);
}

TEST_CASE("where a clock read takes 38 us, one of them ends just after the deadline", "[sleeper]") {
  machine m;
  int waits = 0;
  m.world.kernel = [&](const native_request& r) {
    return later(r.until, ++waits % 2 == 0 ? 30us : 400us);
  };
  m.world.cost.clock_read = 38us;
  m.warm_up(4ms);
  int in_time = 0;
  for (int i = 0; i < 100; ++i) {
    const instant due = m.world.time() + 4ms;
    m.sleeper.sleep_until(due);
    in_time += m.world.time() - due < 1us;
  }
  CHECK(in_time >= 45);  // the waits that are woken long before it
}

TEST_CASE("a clock that stands still makes every family give up", "[sleeper][G6]") {
  for (const int family : {0, 1, 2}) {
    machine m;
    m.warm_up();
    m.world.monotonic_stands_still = true;
    m.world.counter_runs_at(0);
    const instant due = m.world.time() + 10ms;
    const receipt did = family == 0   ? m.sleeper.sleep_until(due)
                        : family == 1 ? m.sleeper.block_until(due)
                                      : m.sleeper.spin_until(due);
    INFO("family " << family);
    CHECK(did.why == outcome::gave_up);
    CHECK(did.left > 0ns);
    if (family != 2) CHECK(did.native_waits <= 110);
  }
}

TEST_CASE("on a clock with steps of 4 ms the kernel holds the thread, not the spin",
          "[sleeper][G6]") {
  machine m;
  m.world.precise = [](instant t) { return t - t.time_since_epoch() % 4'000'000ns; };
  m.world.kernel = [](const native_request& r) {
    const auto into = r.until.time_since_epoch() % 4'000'000ns;
    return into == 0ns ? r.until : r.until + (4ms - into);
  };
  for (int i = 0; i < 50; ++i) m.sleeper.sleep_for(16'667us);
  m.world.count = {};
  const instant began = m.world.time();
  for (int i = 0; i < 100; ++i) {
    const instant due = m.world.time() + 16'667us;
    const receipt did = m.sleeper.sleep_until(due);
    CHECK(did.why == outcome::reached);
    CHECK(m.world.time() >= due);
  }
  const auto share = static_cast<double>(m.world.count.spun().count()) /
                     static_cast<double>((m.world.time() - began).count());
  CHECK(share < 0.05);
}

TEST_CASE("a spin on a clock that turns out to have long steps is handed to the kernel",
          "[sleeper][G6]") {
  machine m(5ms);  // so late that a wait of 1 ms is all spin
  m.warm_up(1ms, 100);
  m.warm_up(16'667us, 100);
  const auto last_step = [](instant t) { return t - t.time_since_epoch() % 100'000'000ns; };
  m.world.precise = last_step;
  m.world.kernel = [=](const native_request& r) { return last_step(r.until - 1ns) + 100ms; };
  for (int i = 0; i < 5; ++i) {
    m.world.count = {};
    const instant due = last_step(m.world.time()) + 101ms;
    CHECK(m.sleeper.sleep_until(due).why == outcome::reached);
    CHECK(m.world.time() >= due);
    CHECK(m.world.count.spun() < 2ms);
  }
}

TEST_CASE("zero, negative and NaN lengths return at once and the far end waits", "[sleeper][G5]") {
  machine m;
  using seconds_d = std::chrono::duration<double>;
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const instant before = m.world.time();
  for (const double s : {0.0, -0.0, -1.0, -1e300, -inf, nan, -nan}) {
    CHECK(m.sleeper.sleep_for(seconds_d(s)).why == outcome::already_past);
    CHECK(m.sleeper.block_for(seconds_d(s)).why == outcome::already_past);
    CHECK(m.sleeper.spin_for(seconds_d(s)).why == outcome::already_past);
  }
  CHECK(m.sleeper.sleep_for(nanoseconds::min()).why == outcome::already_past);
  CHECK(m.sleeper.sleep_for(std::chrono::hours::min()).why == outcome::already_past);
  CHECK(m.sleeper.sleep_until(instant::min()).why == outcome::already_past);
  CHECK(m.world.time() == before + m.world.count.ran);

  // For ever: the kernel is asked for something centuries away; a year later nothing has ended.
  const auto waits_for_ever = [&](auto wait) {
    bool still_waiting = false;
    m.world.count = {};
    m.world.after(8760h, [&] {
      still_waiting = true;
      m.world.refuse_native(ENOSYS);
      m.world.signal();
      m.world.monotonic_stands_still = true;  // ends the test: nothing else may
    });
    const receipt did = wait();
    CHECK(still_waiting);
    CHECK(did.why == outcome::gave_up);
    m.world.refuse_native(0);
    m.world.monotonic_stands_still = false;
  };
  waits_for_ever([&] { return m.sleeper.block_for(nanoseconds::max()); });
  waits_for_ever([&] { return m.sleeper.block_for(std::chrono::hours::max()); });
  waits_for_ever([&] { return m.sleeper.block_for(seconds_d(inf)); });
  waits_for_ever([&] { return m.sleeper.block_for(seconds_d(1e300)); });
  waits_for_ever([&] { return m.sleeper.block_until(instant::max()); });
  waits_for_ever([&] { return m.sleeper.sleep_until(instant::max()); });
}

TEST_CASE("tuning out of range is taken as the nearest in range", "[sleeper][G5]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double p : {-1.0, 0.0, 2.0, nan, 1e300}) {
    for (const double b : {-1.0, 0.0, 2.0, nan}) {
      for (const auto most : {nanoseconds::min(), 0ns, nanoseconds::max()}) {
        simulation world;
        world.kernel = [](const native_request& r) { return r.until + 60us; };
        tuning how;
        how.punctuality = p;
        how.cpu_budget = b;
        how.max_margin = most;
        simulated_sleeper s{how, simulated_platform{world}};
        for (int i = 0; i < 100; ++i) {
          const instant due = world.time() + 500us;
          const receipt did = s.sleep_until(due);
          REQUIRE(did.why == outcome::reached);
          REQUIRE(world.time() >= due);
          REQUIRE(world.time() - due < 2ms);
        }
        CHECK(s.margin(1ms) >= 0ns);
        CHECK(s.margin(1ms) <= 1s);
      }
    }
  }
}

TEST_CASE("a wait spins at most its margin plus the worth of a native wait", "[sleeper][G6]") {
  machine m;
  std::mt19937 random(3);
  m.world.kernel = [&](const native_request& r) {
    return r.until + nanoseconds(random() % 90'000);
  };
  m.warm_up();
  for (int i = 0; i < 2000; ++i) {
    const nanoseconds margin = m.sleeper.margin(1ms);
    const receipt did = m.sleeper.sleep_for(1ms);
    CHECK(did.spun <= margin + 60us);
  }
}

TEST_CASE("one stall, however long, moves the margin by one bounded sample", "[sleeper][G6][G11]") {
  machine m(60us);
  m.warm_up(16'667us);
  const nanoseconds before = m.sleeper.margin(16'667us);
  m.world.after(1ms, [&] { m.world.stall(500ms); });
  m.sleeper.sleep_for(16'667us);
  CHECK(m.sleeper.margin(16'667us) - before < 100us);
  m.world.count = {};
  const receipt did = m.sleeper.sleep_for(16'667us);
  CHECK(did.native_waits >= 1);
  CHECK(did.spun < 500us);
}

TEST_CASE("a wall-clock step forward ends the wait, a step back prolongs it, neither is learned",
          "[sleeper][G11]") {
  machine m(60us);
  for (int i = 0; i < 200; ++i) {
    m.sleeper.sleep_until(
        std::chrono::sys_time<nanoseconds>(m.world.wall_time().time_since_epoch()) + 2ms);
  }
  const auto wall = [&] {
    return std::chrono::sys_time<nanoseconds>(m.world.wall_time().time_since_epoch());
  };
  const instant start = m.world.time();
  m.world.after(1ms, [&] { m.world.step_wall_clock(10s); });
  auto due = wall() + 1s;
  receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - start < 2ms);
  CHECK(wall() >= due);

  const instant again = m.world.time();
  m.world.after(1ms, [&] { m.world.step_wall_clock(-3600s); });
  due = wall() + 1s;
  did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - again >= 3601s);
  CHECK(m.world.time() - again < 3601s + 1ms);
  CHECK(wall() >= due);

  // In the final spin, too.
  const instant third = m.world.time();
  due = wall() + 2ms;
  m.world.after(2ms - 3us, [&] { m.world.step_wall_clock(-5s); });
  m.sleeper.sleep_until(due);
  CHECK(m.world.time() - third >= 5s + 2ms);
  CHECK(m.world.time() - third < 5s + 3ms);

  // A hundred steps later the wall clock's margin is what it was: steps were not learned as
  // lateness, neither large ones nor those of a clock that is set to right a little at a time.
  for (const nanoseconds step : {nanoseconds{50ms}, nanoseconds{700us}}) {
    for (int i = 0; i < 100; ++i) {
      const nanoseconds reach = 2ms + i * 10us;
      m.world.after(reach - 50us, [&] { m.world.step_wall_clock(step); });
      m.sleeper.sleep_until(wall() + reach);
    }
    due = wall() + 2ms;
    did = m.sleeper.sleep_until(due);
    INFO("steps of " << step.count() << " ns");
    CHECK(wall() - due < 1us);
    CHECK(did.spun < 100us);
    CHECK(did.native_waits <= 2);  // no groping towards the deadline in stages
  }
}

TEST_CASE("the receipt of a wait on the wall clock adds up across its steps", "[sleeper][G11]") {
  const auto wall = [](machine& m) {
    return std::chrono::sys_time<nanoseconds>(m.world.wall_time().time_since_epoch());
  };
  for (const nanoseconds step : {nanoseconds{10s}, nanoseconds{-20ms}}) {
    for (const auto when : {1000us, 1998us}) {  // asleep, in the spin
      for (const int family : {0, 1, 2}) {
        machine m(60us);
        for (int i = 0; i < 100; ++i) m.sleeper.sleep_until(wall(m) + 2ms);
        m.world.after(when, [&] { m.world.step_wall_clock(step); });
        const instant from = m.world.time();
        const auto due = wall(m) + 2ms;
        const receipt did = family == 0   ? m.sleeper.sleep_until(due)
                            : family == 1 ? m.sleeper.block_until(due)
                                          : m.sleeper.spin_until(due);
        const nanoseconds elapsed = m.world.time() - from;
        INFO("a step of " << step.count() << " ns after " << when.count() << " us, family "
                          << family);
        CHECK(did.why == outcome::reached);
        CHECK(wall(m) >= due);
        CHECK(did.blocked + did.spun <= elapsed);
        CHECK(did.blocked + did.spun >= elapsed - 5us);
      }
    }
  }
}

TEST_CASE("a suspend in which the clock stops leaves the rest of the wait to be waited",
          "[sleeper][G11]") {
  machine m(60us);
  m.warm_up();
  const instant due = m.world.time() + 60s;
  m.world.after(30s, [&] { m.world.suspend_clock_stops(110min); });
  receipt did = m.sleeper.sleep_until(due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() >= due);
  CHECK(m.world.time() - due < 1us);

  // The clock runs on: it is late at once, and the next wait is as precise as ever.
  const instant second = m.world.time() + 60s;
  m.world.after(30s, [&] { m.world.suspend_clock_runs_on(110min); });
  did = m.sleeper.sleep_until(second);
  CHECK(did.late >= 109min);
  CHECK(did.late < 110min);
  m.world.count = {};
  const instant third = m.world.time() + 1ms;
  m.sleeper.sleep_until(third);
  CHECK(m.world.time() - third < 1us);
  CHECK(m.world.count.spun() < 200us);
}

TEST_CASE("a wait inside a signal handler is precise and learns nothing", "[sleeper][G4]") {
  machine m(60us);
  m.warm_up();
  const nanoseconds margin = m.sleeper.margin(1ms);
  receipt inner;
  instant inner_due{};
  m.world.after(300us, [&] {
    inner_due = m.world.time() + 200us;
    inner = m.sleeper.sleep_until(inner_due);
    CHECK(m.world.time() >= inner_due);
    CHECK(m.world.time() - inner_due < 1us);
    m.world.signal();
  });
  const instant due = m.world.time() + 1ms;
  const receipt did = m.sleeper.sleep_until(due);
  CHECK(inner.why == outcome::reached);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - due < 1us);
  CHECK(m.sleeper.margin(1ms) == margin);

  // Half of a hundred handlers' waits are far later: the interrupted sleeper does not believe them.
  for (int i = 0; i < 100; ++i) {
    m.world.after(100us, [&] {
      if (i % 2 == 0) m.late_by(400us);
      m.sleeper.sleep_for(200us);
      m.late_by(60us);
      m.world.signal();
    });
    m.sleeper.sleep_for(1ms);
  }
  CHECK(m.sleeper.margin(200us) <= margin + 1us);
}

TEST_CASE("in a signal handler nothing changes the sleeper whose wait was interrupted",
          "[sleeper][G4]") {
  machine m(60us);
  m.warm_up(10ms);
  const nanoseconds margin = m.sleeper.margin(10ms);
  tuning other;
  other.punctuality = 0.5;
  other.max_margin = 0us;
  bool changed = true;
  m.world.after(3ms, [&] {
    changed = m.sleeper.retune(other);
    m.sleeper.reset();
    const instant handover = m.sleeper.handover(m.world.time() + 5ms);
    m.sleeper.observe(handover, m.world.time() + 4ms);
    m.world.signal();
  });
  const instant due = m.world.time() + 10ms;
  const receipt did = m.sleeper.sleep_until(due);
  CHECK_FALSE(changed);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - due < 1us);
  CHECK(m.sleeper.margin(10ms) == margin);
  CHECK(m.sleeper.how().punctuality == tuning{}.punctuality);
  CHECK(m.sleeper.retune(other));
  CHECK(m.sleeper.how().punctuality == 0.5);
}

TEST_CASE("a callers's blocking call ends the wait as woken when an event came", "[sleeper]") {
  machine m(60us);
  const auto block = [&](instant until) {
    simulated_platform(m.world).block_until(clock_kind::monotonic, until, slack::as_is);
    return false;
  };
  for (int i = 0; i < 100; ++i) m.sleeper.sleep_until(m.world.time() + 5ms, block);
  const instant due = m.world.time() + 5ms;
  receipt did = m.sleeper.sleep_until(due, block);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - due < 1us);
  CHECK(did.spun < 30us);

  did = m.sleeper.sleep_until(m.world.time() + 5ms, [](instant) { return true; });
  CHECK(did.why == outcome::woken);
  CHECK(did.left > 4ms);
}

TEST_CASE("handover and observe teach an event loop's own margin", "[sleeper]") {
  machine m(0us);
  for (int i = 0; i < 200; ++i) {
    const instant due = m.world.time() + 10ms;
    const instant handover = m.sleeper.handover(due);
    REQUIRE(handover <= due);
    m.world.work(between(m.world.time(), handover) + 400us);
    m.sleeper.observe(handover, m.world.time());
    m.sleeper.spin_until(due);
  }
  const instant due = m.world.time() + 10ms;
  const nanoseconds margin = between(m.sleeper.handover(due), due);
  CHECK(margin > 395us);
  CHECK(margin < 450us);
}

TEST_CASE("the receipt adds up", "[sleeper]") {
  machine m(60us);
  m.warm_up();
  const instant from = m.world.time();
  const receipt did = m.sleeper.sleep_for(1ms);
  const nanoseconds elapsed = m.world.time() - from;
  CHECK(did.blocked + did.spun <= elapsed);
  CHECK(did.blocked + did.spun >= elapsed - 2us);
  CHECK(did.overshoot == 60us + m.world.cost.native_call / 2 + 35ns);
  CHECK(did.late >= 0ns);
  CHECK(did.left == 0ns);
}
