// What a sleeper makes of what it has learned: how it comes back from every disturbance, that it
// never stops looking, that it spins less where others want the processor.
// Mistake that would live without it: a state in which a sleeper spins for ever, or makes a dozen
// native waits of one; a class of lengths that some bad waits have shut and nothing opens again.
#include <punctual/estimate/margin.hpp>
#include <punctual/sleeper.hpp>
#include <punctual/testing/kernels.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include "support/catch.hpp"
#include "support/virtual_waits.hpp"

#include <functional>
#include <type_traits>

using namespace std::chrono_literals;
using punctual::instant;
using punctual::later;
using punctual::margin_reason;
using punctual::nanoseconds;
using punctual::receipt;
using punctual::spin_budget;
using punctual::tuning;
using punctual::wait_planner;
namespace sim = punctual::testing;
namespace kernels = punctual::testing::kernels;

static_assert(std::is_trivially_copyable_v<wait_planner>);
static_assert(std::is_trivially_destructible_v<wait_planner>);
static_assert(sizeof(wait_planner) <= 980);  // a thread has four, within 4 KiB

namespace {

/// A sleeper on a kernel that can be disturbed.
struct machine {
  sim::simulation world;
  punctual::basic_sleeper<sim::simulated_platform> sleeper;
  sim::simulation::kernel_model usual;
  std::function<nanoseconds(const sim::native_request&)> extra;  // late by this on top, if set

  template <class Kernel>
  explicit machine(Kernel kernel, const tuning& how = {})
      : sleeper(how, sim::simulated_platform{world}) {
    sim::install(world, sim::with_latency(sim::latency::log_normal(8us, 25us, 3), kernel));
    usual = world.kernel;
    world.kernel = [this](const sim::native_request& asked) {
      return later(usual(asked), extra ? extra(asked) : 0ns);
    };
  }

  /// CPU time of one wait on average, the clock's and the kernel's included.
  nanoseconds cost(nanoseconds length, int waits) {
    const nanoseconds before = world.count.ran;
    for (int i = 0; i < waits; ++i) sleeper.sleep_for(length);
    return (world.count.ran - before) / waits;
  }
};

/// Disturbs a warm sleeper; whether the next wait is not pure spin, and what waits cost 200 later.
void comes_back(machine& m, nanoseconds length, const std::function<void()>& disturb) {
  m.sleeper.reset();
  m.cost(length, 1000);
  const nanoseconds before = m.cost(length, 1000);
  disturb();
  m.extra = nullptr;
  const receipt next = m.sleeper.sleep_for(length);
  m.cost(length, 199);
  const nanoseconds after = m.cost(length, 400);
  CAPTURE(length, before, after);
  CHECK(next.native_waits > 0);
  CHECK(next.spun < length);
  CHECK(after * 5 <= before * 6);
}

/// Overshoots of a machine that is not disturbed, but for one wait in `one_in`.
sim::latency with_stalls(std::uint64_t one_in, std::uint64_t seed) {
  return sim::latency::heavy_tail(sim::latency::log_normal(8us, 25us, seed), one_in, 100us, 20ms,
                                  seed);
}

}  // namespace

TEST_CASE("after a disturbance the next wait sleeps, and 200 later waits cost what they did",
          "[margin][G6][G11]") {
  const bool virtual_machine = GENERATE(false, true);
  machine linux_one(kernels::linux_highres{}), guest(kernels::guest{});
  machine& m = virtual_machine ? guest : linux_one;
  const nanoseconds length = GENERATE(nanoseconds{400us}, 4ms, 16'667us);
  CAPTURE(virtual_machine);
  const auto waits = [&](int count) {
    for (int i = 0; i < count; ++i) m.sleeper.sleep_for(length);
  };
  SECTION("one stall of 500 ms") {
    comes_back(m, length, [&] {
      m.extra = [](const auto&) { return 500ms; };
      waits(1);
    });
  }
  SECTION("twenty such stalls in a row") {
    comes_back(m, length, [&] {
      m.extra = [](const auto&) { return 500ms; };
      waits(20);
    });
  }
  SECTION("one while it spins") {
    comes_back(m, length, [&] {
      m.world.after(length - 5us, [&] { m.world.stall(500ms); });
      waits(1);
    });
  }
  SECTION("slack that is not dropped for a while") {
    comes_back(m, length, [&] {
      m.extra = [](const auto&) { return 50us; };
      waits(500);
    });
  }
}

TEST_CASE("load that comes and goes, and a step of the overshoot, are soon over", "[margin][G6]") {
  machine m(kernels::guest{});
  const nanoseconds length = GENERATE(nanoseconds{4ms}, 16'667us);
  const auto again_in = [&](int waits, std::function<nanoseconds(const sim::native_request&)> more,
                            double times) {
    m.cost(length, 1000);
    const nanoseconds before = m.cost(length, 1000);
    m.extra = std::move(more);
    m.cost(length, 500);
    m.extra = nullptr;
    m.cost(length, waits);
    const nanoseconds after = m.cost(length, 400);
    CAPTURE(length, before, after);
    CHECK(static_cast<double>(after.count()) <= times * static_cast<double>(before.count()));
  };
  SECTION("load") {
    // 200 waits bring it to 1.6 times the former cost at most, from a hundred times: the maxima of
    // so many are all that a fall can go by, and the rest of the way takes small steps.
    sim::latency queue = sim::latency::log_normal(100us, 2ms, 9);
    const auto loaded = [queue](const auto&) mutable { return queue(); };
    again_in(200, loaded, 1.6);
    again_in(1500, loaded, 1.2);
  }
  SECTION("a step up and down") {
    again_in(
        200, [](const auto&) { return 1ms; }, 1.2);
  }
}

TEST_CASE("a step up costs few late waits", "[margin][G6]") {
  machine m(kernels::ideal{});
  m.cost(16'667us, 1000);
  m.extra = [](const auto&) { return 3ms; };
  int late = 0;
  for (int i = 0; i < 500; ++i) late += m.sleeper.sleep_for(16'667us).late > 1ms;
  CHECK(late <= 5);
}

TEST_CASE("native waits go on where none ends in time, one in 130 waits", "[margin][G6]") {
  bool late_by_10_ms = true;
  sim::simulation world;
  world.kernel = [&](const sim::native_request& asked) {
    return later(asked.until, late_by_10_ms ? 10ms : 0ms);
  };
  virtual_waits::machine on(world);
  tuning how;
  how.cpu_budget = 1;
  virtual_waits::thread thread(on, how);
  const auto a_wait = [&] { return thread.wait_until(on.shown() + 1ms); };
  for (int i = 0; i < 2000; ++i) a_wait();
  int longest = 0, in_a_row = 0, native = 0;
  for (int i = 0; i < 2600; ++i) {
    const bool slept = a_wait().native > 0;
    native += slept;
    in_a_row = slept ? 0 : in_a_row + 1;
    longest = std::max(longest, in_a_row);
  }
  CHECK(longest <= 130);
  CHECK(native >= 20);
  CHECK(native <= 26);  // and hardly more: each of them is late
  SECTION("so that a kernel that gets better is noticed") {
    late_by_10_ms = false;
    for (int i = 0; i < 200; ++i) a_wait();
    nanoseconds spun{0};
    for (int i = 0; i < 200; ++i) spun += a_wait().spun;
    CHECK(spun < 200 * 100us);
  }
}

TEST_CASE("a stall as the first that is seen of a length spoils nothing", "[margin][G6]") {
  const nanoseconds length = GENERATE(nanoseconds{2ms}, 4ms, 16'667us);
  const nanoseconds trained = GENERATE(nanoseconds{0}, 100us, 1ms);
  const nanoseconds stall = GENERATE(nanoseconds{20ms}, 500ms);
  machine m(kernels::guest{});
  if (trained > 0ns) m.cost(trained, 500);
  m.extra = [&](const auto&) { return stall; };
  m.sleeper.sleep_for(length);
  m.extra = nullptr;
  std::uint32_t native = 0;
  int spun_through = 0;
  for (int i = 0; i < 40; ++i) {
    const receipt did = m.sleeper.sleep_for(length);
    native += did.native_waits;
    spun_through += did.native_waits == 0;
    // What no margin would cover says nothing of the next wait.
    if (i == 0 && stall > tuning{}.max_margin) CHECK(did.native_waits > 0);
  }
  CAPTURE(length, trained, stall, native);
  CHECK(spun_through <= 4);
  CHECK(native <= 40 * 3);
}

TEST_CASE("hardly a fresh sleeper spins its short waits through because of a few bad ones",
          "[margin][G6]") {
  int spinners = 0;
  double through = 0;
  constexpr int sleepers = 100, waits = 1500;
  for (std::uint64_t seed = 1; seed <= sleepers; ++seed) {
    sim::simulation world;
    sim::install(world, sim::with_latency(with_stalls(200, seed), kernels::guest{}));
    virtual_waits::machine on(world);
    virtual_waits::thread thread(on, tuning{});
    int spun_through = 0;
    for (int i = 0; i < waits; ++i) {
      spun_through += thread.wait_until(on.shown() + 100us).native == 0;
      if (i % 2 != 0) on.spin(on.shown() + 100us);
    }
    spinners += spun_through > 200;
    through += spun_through;
  }
  CHECK(spinners <= 1);
  CHECK(through / sleepers < waits / 100);
}

TEST_CASE("a class shut by late waits is opened again", "[margin][G6]") {
  // Short waits are spun through while their class looks too late, and one in 128 looks again.
  machine m(kernels::guest{});
  const nanoseconds length = GENERATE(nanoseconds{100us}, 200us, 1ms);
  m.cost(length, 600);
  const nanoseconds before = m.cost(length, 1000);
  m.extra = [](const auto&) { return 5ms; };
  m.cost(length, GENERATE(6, 12, 40));
  m.extra = nullptr;
  m.cost(length, 400);
  int spun_through = 0;
  for (int i = 0; i < 200; ++i) spun_through += m.sleeper.sleep_for(length).native_waits == 0;
  CAPTURE(length, before, spun_through);
  CHECK(spun_through <= 4);
  m.cost(length, 600);
  const nanoseconds after = m.cost(length, 400);
  CAPTURE(after);
  CHECK(after <= 2 * before);
}

TEST_CASE("a class closed by waits that were all a little late is opened again", "[margin][G6]") {
  machine m(kernels::ideal{});
  m.cost(1ms, 600);
  const nanoseconds before = m.cost(1ms, 400);
  instant due{};
  m.extra = [&](const sim::native_request& asked) { return due - asked.until + 10us; };
  for (int i = 0; i < 40; ++i) {
    due = m.world.time() + 1ms;
    m.sleeper.sleep_until(due);
  }
  m.extra = nullptr;
  m.cost(1ms, 200);
  const nanoseconds after = m.cost(1ms, 400);
  CAPTURE(before, after);
  CHECK(after * 5 <= before * 6);
}

TEST_CASE("a wait planned for one class is not one of the next", "[margin]") {
  // From 65.5 us on this kernel is late by more than 100 us leave: what can be served ends just
  // where the next class begins.
  machine m(kernels::ideal{});
  m.extra = [](const sim::native_request& asked) {
    return asked.until - asked.now > 65us ? 45us : 10us;
  };
  m.cost(100us, 600);
  int late = 0;
  for (int i = 0; i < 1300; ++i) late += m.sleeper.sleep_for(100us).late > 2us;
  CHECK(late < 1300 * 4 / 100);  // two in a hundred, and the samples
}

TEST_CASE("being descheduled while spinning makes a thread spin less", "[margin][G6]") {
  spin_budget budget{tuning{}};
  const instant start{1000s};
  SECTION("at once, by half for each time") {
    budget.spent(start, 2ms, 1);
    CHECK(budget.available(start) == 1ms);
    CHECK(budget.oversubscribed(start));
    budget.spent(start + 1ms, 1ms, 2);
    CHECK(budget.available(start + 1ms) == 250us);
  }
  SECTION("and as much as before some seconds later") {
    for (int i = 0; i < 100; ++i) budget.spent(start + i * 10ms, 3ms, 1);
    const instant then = start + 1s;
    CHECK(budget.available(then) < 100us);
    CHECK(budget.available(then + 250ms) > budget.available(then));
    CHECK(budget.available(then + 4s) >= tuning{}.max_margin);
  }
  SECTION("not after one in so much spin that little was lost: a host takes processors, too") {
    for (int i = 0; i < 600; ++i) {
      const bool gap = i % 60 == 59;
      budget.spent(start + i * 16ms, gap ? 3'400us : 3ms, gap, gap ? 400us : 0us);
      CHECK(!budget.oversubscribed(start + i * 16ms));
    }
    budget.spent(start + 600 * 16ms, 7ms, 1, 4ms);
    CHECK(budget.oversubscribed(start + 600 * 16ms));
    budget.spent(start + 601 * 16ms, 7ms, 1, 4ms);
    CHECK(budget.available(start + 601 * 16ms) < 3ms);
  }
  SECTION("also where the budget has no end") {
    tuning how;
    how.cpu_budget = 1;
    spin_budget endless{how};
    for (int i = 0; i < 20; ++i) endless.spent(start, 3ms, 1);
    CHECK(endless.available(start) < 10us);
  }
}

TEST_CASE("where others take the processor during its spins, a sleeper's spins get short",
          "[margin][G6]") {
  machine m(kernels::ideal{});
  m.extra = [](const auto&) { return 1ms; };
  const nanoseconds alone = (m.cost(4ms, 500), m.cost(4ms, 100));
  // Every spin of more than 300 us loses the processor for 4 ms.
  nanoseconds spun{0};
  std::uint32_t gaps = 0;
  m.world.on_step = [&, began = instant{}, last = instant{}](const char*) mutable {
    const instant now = m.world.time();
    if (now - last > 20us) began = now;
    last = now;
    if (now - began > 300us) {
      began = now;
      m.world.stall(4ms);
    }
  };
  for (int i = 0; i < 200; ++i) {
    const receipt did = m.sleeper.sleep_for(4ms);
    if (i < 100) continue;
    spun += did.spun;
    gaps += did.gaps;
  }
  CAPTURE(alone, spun, gaps);
  CHECK(gaps < 30);  // of a hundred waits
}

TEST_CASE("the margin is bounded by max_margin, also where the kernel is later", "[margin]") {
  tuning how;
  how.max_margin = GENERATE(nanoseconds{0}, 50us, 1ms);
  machine m(kernels::ideal{}, how);
  m.extra = [](const auto&) { return 3ms; };
  nanoseconds most{0};
  for (int i = 0; i < 500; ++i) most = std::max(most, m.sleeper.sleep_for(16'667us).spun);
  CHECK(m.sleeper.margin(16'667us) <= how.max_margin);
  CHECK(most <= how.max_margin + 1us);
}

TEST_CASE("past the budget a wait is later, and never early", "[margin][G6]") {
  tuning how;
  how.cpu_budget = GENERATE(0.0, 0.05, 0.5);
  sim::simulation world;
  sim::install(world, kernels::netbsd{100});
  virtual_waits::machine on(world);
  virtual_waits::thread thread(on, how);
  const instant start = on.time();
  nanoseconds spun{0};
  int early = 0, late = 0;
  for (int i = 1; i <= 400; ++i) {
    const auto did = thread.wait_until(start + i * 25ms);
    spun += did.spun;
    early += did.late < 0ns;
    late += did.late > 1ms;
  }
  const auto allowed = [&](nanoseconds t) {
    return nanoseconds{static_cast<std::int64_t>(how.cpu_budget * static_cast<double>(t.count()))};
  };
  CAPTURE(how.cpu_budget);
  CHECK(early == 0);
  CHECK(spun <= allowed(on.time() - start) + allowed(tuning::budget_window) + 1ms);
  if (how.cpu_budget < 0.1) CHECK(late > 100);
}

TEST_CASE("what is explained is what is planned with", "[margin]") {
  machine m(kernels::ideal{});
  m.extra = [](const auto&) { return 300us; };
  CHECK(m.sleeper.report().margins[2].margin.why == margin_reason::seeded);
  m.cost(4ms, 300);
  const auto report = m.sleeper.report();
  REQUIRE(report.margins[2].length == 4ms);
  CHECK(report.margins[2].margin.why == margin_reason::learned);
  CHECK(report.margins[2].margin.samples >= 300);
  CHECK(report.margins[2].margin.quantile == m.sleeper.margin(4ms));
  CHECK(report.margins[2].margin.quantile > 300us);
  CHECK(report.margins[2].margin.quantile < 400us);
}

TEST_CASE("a report says what bounds a margin: the cap, the budget, other threads, a short wait",
          "[margin]") {
  wait_planner planner{tuning{}};
  const nanoseconds cap = tuning{}.max_margin;
  instant now{1000s};
  CHECK(planner.explain(4ms, cap, false).why == margin_reason::seeded);
  for (int i = 0; i < 300; ++i) {
    for (const auto length : {100us, 4000us, 400'000us}) {
      now += 1s + i * 136'533ns;  // not in step with any tick
      planner.plan(now, now + 2 * length, cap);
      planner.woke(now, now + length, now + length + (length > 10ms ? 30'000us : 300us));
    }
  }
  const auto whole = planner.explain(4ms, cap, false);
  CHECK(whole.why == margin_reason::learned);
  CHECK(whole.margin == whole.quantile);
  const auto spent = planner.explain(4ms, 100us, false);
  CHECK(spent.why == margin_reason::budget);
  CHECK(spent.margin == 100us);
  CHECK(planner.explain(4ms, 100us, true).why == margin_reason::oversubscribed);
  CHECK(planner.explain(400ms, cap, false).why == margin_reason::capped);
  CHECK(planner.explain(400ms, cap, false).margin <= cap);
  CHECK(planner.explain(400ms, cap, false).margin > cap - 100us);
  const auto brief = planner.explain(100us, cap, false);
  CHECK(brief.why == margin_reason::too_short);
  CHECK(brief.margin == 100us);
}
