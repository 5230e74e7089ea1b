// The pacer on simulated machines: hours at every rate, every kernel, every way to end a wait.
// Mistake that would live without it: a lost or an early beat, a late beat that costs a system
// call, an order from another thread that gets lost, a wait that was woken and used up its beat.
#include <punctual/pacer.hpp>
#include <punctual/testing/kernels.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include "support/catch.hpp"
#include "support/comma_locale.hpp"
#include "support/skip.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using punctual::basic_sleeper;
using punctual::beat;
using punctual::between;
using punctual::hz;
using punctual::instant;
using punctual::missed;
using punctual::nanoseconds;
using punctual::outcome;
using punctual::rate;
using punctual::receipt;
using punctual::tuning;
namespace rates = punctual::rates;
namespace sim = punctual::testing;

using sim_pacer = punctual::basic_pacer<sim::simulated_platform>;

namespace {

// Interrupts a wait as the wakers of interrupt.hpp do, found by the pacer through its type.
struct bell {
  bool rung = false;
  outcome says = outcome::woken;
  int blocked = 0;
};

receipt sleep_until(basic_sleeper<sim::simulated_platform>& mine, bell& by, instant deadline) {
  if (!by.rung && mine.system().now(punctual::clock_kind::monotonic) < deadline) {
    return mine.sleep_until(deadline, [&](instant handover) {
      mine.system().block_until(punctual::clock_kind::monotonic, handover, punctual::slack::tight);
      return by.rung;
    });
  }
  receipt did = mine.sleep_until(deadline);
  if (by.rung) did.why = by.says;
  return did;
}

struct thrower {};
receipt sleep_until(basic_sleeper<sim::simulated_platform>&, thrower&, instant) { throw 1; }

receipt block_until(basic_sleeper<sim::simulated_platform>& mine, bell& by, instant deadline) {
  ++by.blocked;
  receipt did = mine.block_until(deadline);
  if (by.rung) did.why = by.says;
  return did;
}

/// Like a real kernel, with a spin that costs a test little: 60 us late.
void late_by_60us(sim::simulation& world) {
  world.kernel = [](const sim::native_request& r) { return r.until + 60us; };
  world.cost.clock_read = 200ns;
  world.cost.counter_read = 200ns;
}

/// Wakes to the nanosecond, with steps so long that a wait takes few of them: for hours.
void exact(sim::simulation& world) {
  world.cost.clock_read = 100ns;
  world.cost.counter_read = 100ns;
  world.cost.pause = 1us;
}

struct named_rate {
  const char* name;
  rate is;
};
const named_rate all_rates[] = {{"ntsc_field", rates::ntsc_field},
                                {"ntsc_frame", rates::ntsc_frame},
                                {"pal_field", rates::pal_field},
                                {"pal_frame", rates::pal_frame},
                                {"film", rates::film},
                                {"film_ntsc", rates::film_ntsc},
                                {"game_boy", rates::game_boy},
                                {"nes_ntsc", rates::nes_ntsc},
                                {"nes_pal", rates::nes_pal},
                                {"snes_ntsc", rates::snes_ntsc},
                                {"snes_pal", rates::snes_pal},
                                {"mega_drive_ntsc", rates::mega_drive_ntsc},
                                {"mega_drive_pal", rates::mega_drive_pal},
                                {"zx_spectrum", rates::zx_spectrum},
                                {"display_60", rates::display_60},
                                {"display_75", rates::display_75},
                                {"display_90", rates::display_90},
                                {"display_100", rates::display_100},
                                {"display_120", rates::display_120},
                                {"display_144", rates::display_144},
                                {"display_165", rates::display_165},
                                {"display_240", rates::display_240},
                                {"audio_block(512, 44100)", rates::audio_block(512, 44'100)},
                                {"audio_block(256, 48000)", rates::audio_block(256, 48'000)}};

}  // namespace

static_assert(std::is_trivially_copyable_v<beat>);
static_assert(!std::is_copy_constructible_v<punctual::pacer>);
static_assert(std::is_constructible_v<punctual::pacer, rate>);
static_assert(!std::is_convertible_v<rate, punctual::pacer>);
static_assert(!std::is_convertible_v<beat, bool> && std::is_constructible_v<bool, beat>);
static_assert(noexcept(std::declval<punctual::pacer&>().next()));
static_assert(noexcept(std::declval<punctual::pacer&>().poll()));
static_assert(noexcept(std::declval<punctual::pacer&>().set_rate(hz(60))));
static_assert(sizeof(punctual::pacer) <= 8192);

TEST_CASE("the first beat comes at once, and those after it at their deadlines", "[pacer][G1]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(50), sim::simulated_platform{world}};
  const instant called = world.time();
  const beat first = p.next();
  CHECK(first);
  CHECK(first.index == 0);
  CHECK(first.late == 0ns);
  CHECK(first.busy == 0ns);
  CHECK(world.count.native_waits == 0);
  CHECK(first.due - called == world.cost.clock_read);  // when it looked
  world.work(3ms);
  for (std::uint64_t n = 1; n < 200; ++n) {
    const beat b = p.next();
    REQUIRE(b);
    REQUIRE(b.index == n);
    REQUIRE(b.due == first.due + n * 20ms);
    REQUIRE(world.time() >= b.due);
    REQUIRE(b.slept.why == outcome::reached);
    // The last reading, and what little the sleeper does after it.
    REQUIRE(b.late <= world.time() - b.due);
    REQUIRE(b.late >= world.time() - b.due - 2 * world.cost.clock_read);
    world.work(3ms);
    CHECK(b.busy >= 3ms);  // and what little the sleeper did after its last reading
    CHECK(b.busy <= 3ms + 4 * world.cost.clock_read);
  }
}

TEST_CASE("an hour at each named rate has as many beats as the rate says",
          "[pacer][G10][unsanitized]") {
  for (const named_rate& each : all_rates) {
    sim::simulation world;
    exact(world);
    sim_pacer p{each.is, sim::simulated_platform{world}};
    const instant anchor = p.next().due;
    const instant end = anchor + 3600s;
    std::uint64_t count = 1;
    std::uint64_t n = 1;
    int wrong = 0;
    for (; p.deadline() <= end || n <= 100'000; ++n) {  // the slow rates a little longer
      count += p.deadline() <= end ? 1u : 0u;
      const beat b = p.next();
      // The promise itself, not by the grid; n · den fits 64 bits at all these rates.
      const auto since = punctual::multiply_divide(
          n * static_cast<std::uint64_t>(each.is.den), 1'000'000'000,
          static_cast<std::uint64_t>(each.is.num), punctual::rounding::down);
      wrong += b.due != anchor + nanoseconds{static_cast<std::int64_t>(since)};
      wrong += b.index != n || world.time() < b.due;
      wrong += b.late > 1us || b.skipped != 0;
    }
    CAPTURE(each.name);
    CHECK(wrong == 0);
    CHECK(count == punctual::multiply_divide(3600, static_cast<std::uint64_t>(each.is.num),
                                             static_cast<std::uint64_t>(each.is.den),
                                             punctual::rounding::down) +
                       1);
    CHECK(p.lateness().count() == n - 1);
    CHECK(p.lateness().max() <= 1us);
    CHECK(p.achieved_hertz() == Catch::Approx(each.is.hertz()).epsilon(1e-4));
  }
}

TEST_CASE("intervals do not depend on where the clock starts", "[pacer][G10]") {
  const auto run = [](nanoseconds start) {
    sim::simulation world{instant{start}};
    late_by_60us(world);
    // What the coarse clock shows depends on the start; its tick is not what this is about.
    world.coarse = [](instant t) { return t; };
    sim_pacer p{rates::game_boy, sim::simulated_platform{world}};
    std::vector<nanoseconds> seen;
    for (int i = 0; i < 3'000; ++i) {
      const beat b = p.next();
      seen.push_back(b.due - instant{start});
      seen.push_back(b.late);
      seen.push_back(b.slept.spun);
      world.work(i % 7 * 5ms);
    }
    return seen;
  };
  const std::vector<nanoseconds> zero = run(0ns);
  CHECK(run(104 * 24h) == zero);
  CHECK(run(nanoseconds{std::int64_t{1} << 62}) == zero);
}

TEST_CASE("a late beat costs one clock reading and no system call", "[pacer][G2]") {
  sim::simulation world;
  late_by_60us(world);
  const auto policy = GENERATE(missed::skip, missed::rephase, missed::burst);
  sim_pacer p{hz(1000), policy, 3, {}, sim::simulated_platform{world}};
  p.next();
  world.work(1'500us);
  const auto before = world.count;
  const beat b = p.next();
  CHECK(b.slept.why == outcome::already_past);
  CHECK(b.slept.late == b.late);
  CHECK(b.late == 500us + world.cost.clock_read);
  CHECK(world.count.clock_reads == before.clock_reads + 1);
  CHECK(world.count.coarse_reads == before.coarse_reads);
  CHECK(world.count.native_waits == before.native_waits);
  CHECK(world.count.pauses == before.pauses);
}

TEST_CASE("every kernel gives every rate without an early or a lost beat", "[pacer][G1][G10]") {
  for (const sim::kernels::ready_made& kernel : sim::kernels::all()) {
    for (const rate r : {hz(50), rates::ntsc_field, hz(60)}) {
      sim::simulation world;
      kernel.install(world, 5);
      world.cost.clock_read = 500ns;
      world.cost.counter_read = 500ns;
      world.cost.pause = 1us;
      sim_pacer p{r, sim::simulated_platform{world}};
      const beat first = p.next();
      const punctual::grid right{r, first.due};
      int wrong = 0;
      std::uint64_t skipped = 0;
      std::uint64_t last = 0;
      for (int i = 0; i < 300; ++i) {
        world.work(2ms);
        const beat b = p.next();
        // Early is judged by the clock that this kernel shows, not by what the pacer says.
        wrong += world.precise(world.time()) < b.due;
        wrong += !b || b.due != right.at(b.index) || b.late < 0ns;
        wrong += b.index != last + 1 + b.skipped;
        last = b.index;
        skipped += b.skipped;
      }
      CAPTURE(kernel.name, to_text(r));
      CHECK(wrong == 0);
      // There every wait of 3 ms or more takes 100 ms longer: no loop at 50 Hz can be kept, only
      // counted.
      if (kernel.name != "macos, background") CHECK(skipped == 0);
    }
  }
}

TEST_CASE("a wait that is woken or stopped does not use up its beat", "[pacer][G9]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  bell by;
  by.says = GENERATE(outcome::woken, outcome::stopped);
  REQUIRE(p.next(by));
  const instant due = p.deadline();
  world.work(5ms);
  by.rung = true;
  for (int i = 0; i < 3; ++i) {
    const beat none = p.next(by);
    CHECK_FALSE(none);
    CHECK(none.slept.why == by.says);
    CHECK(none.steps() == 0);
    CHECK(none.index == 1);
    CHECK(none.due == due);
    world.work(1ms);
  }
  by.rung = false;
  const beat b = p.next(by);
  CHECK(b);
  CHECK(b.index == 1);
  CHECK(b.due == due);
  CHECK(b.skipped == 0);
  CHECK(b.busy >= 8ms);  // the caller's time, not that in the waits
  CHECK(b.busy <= 8ms + 10us);
  CHECK(p.lateness().count() == 1);

  SECTION("also where its deadline is past: pending wins") {
    world.work(250ms);
    by.rung = true;
    CHECK_FALSE(p.next(by));
    by.rung = false;
    const beat late = p.next(by);
    CHECK(late.index == 3);
    CHECK(late.skipped == 1);
  }
}

TEST_CASE("before the first beat a pending wake-up wins as well", "[pacer][G9]") {
  sim::simulation world;
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  bell by;
  by.rung = true;
  CHECK_FALSE(p.next(by));
  by.rung = false;
  world.work(1s);
  const beat b = p.next(by);
  CHECK(b.index == 0);
  CHECK(b.late == 0ns);
  CHECK(b.skipped == 0);
}

TEST_CASE("polling never waits and delivers what is due", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  const auto policy = GENERATE(missed::skip, missed::burst);
  sim_pacer p{hz(100), policy, 3, {}, sim::simulated_platform{world}};
  REQUIRE(p.poll());
  const beat none = p.poll();
  CHECK_FALSE(none);
  CHECK(none.slept.why == outcome::gave_up);
  CHECK(none.slept.left == p.deadline() - world.time());
  world.work(35ms);
  std::uint64_t steps = 0;
  int polls = 0;
  while (const beat b = p.poll()) {
    steps += b.steps();
    ++polls;
  }
  CHECK(steps == 3);
  CHECK(polls == (policy == missed::burst ? 3 : 1));

  // A loop with its own rhythm, a little slower than the beats: all periods are counted.
  const instant began = world.time();
  const std::uint64_t already = steps;
  for (int i = 0; i < 1000; ++i) {
    world.work(13ms);
    while (const beat b = p.poll()) steps += b.steps();
  }
  const auto periods = static_cast<std::uint64_t>((world.time() - began) / 10ms);
  CHECK(steps - already + 1 >= periods);
  CHECK(steps - already <= periods + 1);
  CHECK(world.count.native_waits == 0);
  CHECK(world.count.pauses == 0);
}

TEST_CASE("a pacer that was aligned and is polled begins with the next deadline", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  p.align(std::chrono::system_clock::time_point{});
  CHECK_FALSE(p.poll());
  const instant due = p.deadline();
  std::uint64_t steps = 0;
  beat first;
  while (world.time() < due + 1s) {
    world.work(1ms + 13us);
    const beat b = p.poll();
    if (b && steps == 0) first = b;
    steps += b.steps();
  }
  CHECK(first.due == due);
  CHECK(first.index == 0);
  CHECK(steps >= 10);
  CHECK(steps <= 11);
}

TEST_CASE("polling a paused pacer answers for ever, polling a stopped one that it is", "[pacer]") {
  sim::simulation world;
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  p.next();
  p.pause();
  world.work(1s);
  const beat none = p.poll();
  CHECK_FALSE(none);
  CHECK(none.slept.why == outcome::gave_up);
  CHECK(none.slept.left == nanoseconds::max());
  p.stop();
  CHECK(p.poll().slept.why == outcome::stopped);
}

TEST_CASE("polling with steps that take longer than a period comes to an end", "[pacer]") {
  sim::simulation world;
  sim_pacer p{hz(100), missed::burst, 3, {}, sim::simulated_platform{world}};
  p.poll();
  world.work(100ms);
  int steps = 0;
  while (p.poll()) {
    world.work(12ms);
    ++steps;
    REQUIRE(steps <= 3);
  }
  CHECK(steps == 3);
}

TEST_CASE("an order that arrives during a wait holds from the next deadline on", "[pacer][G10]") {
  // At every point of a wait of 10 ms, and to rates far apart.
  for (const rate to : {hz(7), hz(144), hz(1000), rate{1, 3}}) {
    for (nanoseconds at = 0ns; at < 10ms; at += 97us) {
      sim::simulation world;
      late_by_60us(world);
      sim_pacer p{hz(100), sim::simulated_platform{world}};
      p.next();
      const instant due = p.deadline();
      world.after(at, [&] { p.set_rate(to); });
      const beat b = p.next();
      const beat after = p.next();
      REQUIRE(b.due == due);
      REQUIRE(after.due - due >= to.period());
      REQUIRE(after.due - due <= to.period() + 1ns);
      REQUIRE(after.skipped == 0);
      REQUIRE(p.current_rate() == to);
    }
  }
}

TEST_CASE("a million changes of rate on the way end where exact arithmetic says", "[pacer][G10]") {
  // The schedule's own test draws any rates; here they come as orders, and have one common
  // denominator.
  sim::simulation world;
  world.cost.clock_read = 1us;
  world.cost.counter_read = 1us;
  sim_pacer p{hz(1000), missed::burst, 3, {}, sim::simulated_platform{world}};
  const std::int64_t numbers[] = {1,     3,     7,      11,
                                  1'000, 9'000, 77'000, 333'000};  // divide 99 × 7 × 37 × 1000
  const std::int64_t common = std::int64_t{99} * 7 * 37 * 1000;
  const beat first = p.next();
  std::int64_t due = 0, part = 0;  // since the first beat: ns, and units of 1/common ns below one
  rate now_rate = hz(1000);
  int wrong = 0;
  std::uint32_t random = 1;
  for (int i = 0; i < 1'000'000; ++i) {
    random = random * 1664525u + 1013904223u;
    // Mostly fast ones: an hour of true time at 0.1 Hz is no better than a second.
    const std::size_t which = i % 1000 == 0 ? (random >> 16) % 8 : 4 + (random >> 16) % 4;
    const rate to{numbers[which], i % 1000 == 0 ? 10 : 1};
    p.set_rate(to);
    part += now_rate.den * 1'000'000'000 * (common / now_rate.num);
    due += part / common;
    part %= common;
    const beat b = p.next();
    wrong += b.due != first.due + nanoseconds{due};
    wrong += b.skipped != 0;
    now_rate = to;
  }
  CHECK(wrong == 0);
}

TEST_CASE("stop ends the wait's beat, and the loop until restart", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  p.next();
  world.after(30ms, [&] { p.stop(); });
  const beat none = p.next();
  CHECK_FALSE(none);
  CHECK(none.slept.why == outcome::stopped);
  CHECK(none.index == 1);
  const auto waits = world.count.native_waits;
  CHECK_FALSE(p.next());
  CHECK_FALSE(p.poll());
  CHECK(world.count.native_waits == waits);
  p.restart();
  const beat b = p.next();
  CHECK(b);
  CHECK(b.index == 0);
  CHECK(b.late == 0ns);
  CHECK(p.next().index == 1);
}

TEST_CASE("the range of beats ends at a stop, with or without a way to interrupt", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(100), sim::simulated_platform{world}};
  std::uint64_t seen = 0;
  for (const beat& b : p.beats()) {
    CHECK(b.index == seen);
    if (++seen == 5) p.stop();
  }
  CHECK(seen == 5);
  p.restart();
  bell by;
  seen = 0;
  for (const beat& b : p.beats(by)) {
    CHECK(b.index == seen);
    if (++seen == 7) by.rung = true;
  }
  CHECK(seen == 7);
  seen = 0;
  for (const beat& b : p.beats(bell{true})) {  // one of its own, kept by the range
    static_cast<void>(b);
    ++seen;
  }
  CHECK(seen == 0);
}

TEST_CASE("a pause does not count, neither as late nor as busy", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(50), sim::simulated_platform{world}};
  for (int i = 0; i < 100; ++i) {
    p.next();
    world.work(4ms);
  }
  const double before = p.achieved_hertz();
  const instant due = p.deadline();
  const instant paused = world.time();
  p.pause();
  p.pause();  // again changes nothing
  world.work(45s);
  CHECK_FALSE(p.poll());
  const bool itself = GENERATE(false, true);  // next() resumes, too
  if (!itself) p.resume();
  const nanoseconds away = world.time() - paused;
  const beat b = p.next();
  CHECK(b);
  CHECK(b.index == 100);
  CHECK(b.skipped == 0);
  CHECK(b.due - due >= away - 1us);
  CHECK(b.due - due <= away + 1us);
  CHECK(b.busy >= 4ms);
  CHECK(b.busy <= 4ms + 2us);
  CHECK(p.achieved_hertz() == Catch::Approx(before).epsilon(0.001));
}

TEST_CASE("without a limit the pacer never sleeps and has no lateness", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{rates::unlimited, sim::simulated_platform{world}};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const beat b = p.next();
    REQUIRE(b.index == i);
    REQUIRE(b.late == 0ns);
    world.work(1ms);
  }
  CHECK(world.count.native_waits == 0);
  CHECK(world.count.pauses == 0);
  CHECK(p.lateness().count() == 0);
  CHECK(p.busy().count() == 999);
  CHECK(p.deadline() == instant::min());
  p.align(instant{});  // nothing to align, nothing happens
  CHECK(p.next().index == 1000);
}

TEST_CASE("in the background only the kernel waits", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(60), sim::simulated_platform{world}};
  for (int i = 0; i < 60; ++i) p.next();
  p.set_background(hz(5));
  p.next();  // the slot that had begun
  const auto before = world.count;
  for (int i = 0; i < 50; ++i) {
    const beat b = p.next();
    CHECK(b.slept.spun == 0ns);
    CHECK(b.late >= 60us);
  }
  CHECK(world.count.pauses == before.pauses);
  CHECK(world.count.native_waits == before.native_waits + 50);
  // A few clock readings for each, beside the native call.
  CHECK((world.count.spun() - before.spun()) / 50 <= 2us);
  CHECK(p.current_rate() == hz(5));

  bell by;
  p.next(by);
  CHECK(by.blocked == 1);
  p.set_rate(hz(60));
  p.next(by);
  CHECK(by.blocked == 1);
  nanoseconds latest{0};
  for (int i = 0; i < 20; ++i) latest = std::max(latest, p.next().late);
  CHECK(latest <= 1us);  // precise again
}

TEST_CASE("aligned to a wall clock, beats fall on its seconds", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  const bool begun = GENERATE(false, true);
  if (begun) {
    p.next();
    world.work(33ms);
  }
  p.align(std::chrono::system_clock::time_point{});
  for (int i = 0; i < 20; ++i) {
    p.next();
    // Within what two readings of two clocks are apart.
    const nanoseconds into = world.wall_time().time_since_epoch() % nanoseconds{100ms};
    CHECK(into <= 2us);
  }
  p.align(instant{42ns});
  p.next();
  CHECK(p.deadline().time_since_epoch() % nanoseconds{100ms} == 42ns);
}

/// Counts 100 ns since 1601: as nanoseconds it does not fit 64 bits.
struct since_1601 {
  using duration = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<since_1601>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static inline const sim::simulation* world = nullptr;
  static time_point now() noexcept {
    return time_point{duration{134'100'000'000'000'000} +
                      std::chrono::floor<duration>(world->time().time_since_epoch())};
  }
};

TEST_CASE("aligned to an epoch centuries away, beats fall on its seconds", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  world.work(33ms);
  since_1601::world = &world;
  sim_pacer p{rate{5, 3}, sim::simulated_platform{world}};  // 0.6 s: five in three seconds
  const bool begun = GENERATE(false, true);
  if (begun) p.next();
  SECTION("of a clock of one's own") {
    p.align(since_1601::time_point{});
    for (int i = 0; i < 20; ++i) {
      p.next();
      const auto since = since_1601::now().time_since_epoch() % 600ms;
      CHECK(since <= 4us);
    }
  }
  SECTION("of the wall clock") {
    using namespace std::chrono;
    const year y{GENERATE(1, 1601, 2500, 9999, -32767)};
    p.align(sys_days{y / 1 / 1});
    for (int i = 0; i < 20; ++i) {
      p.next();
      const nanoseconds wall = world.wall_time().time_since_epoch();
      const auto day = sys_days{y / 1 / 1}.time_since_epoch();
      const nanoseconds into = (wall - duration_cast<seconds>(day) % 3s) % 600ms;
      CHECK(into <= 2us);
    }
  }
  SECTION("of the steady clock") {
    using far = std::chrono::duration<std::int64_t>;
    const std::int64_t seconds = GENERATE(-100'000'000'000, 100'000'000'000);
    p.align(std::chrono::time_point<std::chrono::steady_clock, far>{far{seconds}});
    p.next();
    const nanoseconds into = p.deadline().time_since_epoch() - (seconds % 3) * 1s;
    CHECK((into % 600ms + 1us) % 600ms <= 2us);
  }
}

TEST_CASE("aligned to a clock since 1601, beats fall where it says", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  since_1601::world = &world;
  const instant on = world.time() + 1042ms;
  p.align(since_1601::now() + 1042ms);
  for (int i = 0; i < 20; ++i) {
    p.next();
    // Within what two readings are apart, and the clock's own 100 ns.
    const nanoseconds into = (world.time() - on + 1s + 1us) % nanoseconds{100ms};
    CHECK(into <= 3us);
  }
}

TEST_CASE("a nudge from elsewhere steers the grid", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(60), sim::simulated_platform{world}};
  const beat first = p.next();
  const punctual::grid right{hz(60), first.due};
  world.after(5ms, [&] { p.nudge(2ms); });
  world.after(6ms, [&] { p.nudge(1ms); });
  beat b;
  for (int i = 0; i < 40; ++i) b = p.next();
  CHECK(b.due == right.at(40) + 3ms);
}

TEST_CASE("a process that was stopped gets no burst, a right count, and learns nothing",
          "[pacer][G11]") {
  const auto policy = GENERATE(missed::skip, missed::burst, missed::rephase);
  const bool while_working = GENERATE(false, true);
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(50), policy, 3, {}, sim::simulated_platform{world}};
  for (int i = 0; i < 500; ++i) {
    p.next();
    world.work(2ms);
  }
  const nanoseconds margin = p.sleeper().margin(18ms);
  const std::uint64_t index = p.next().index;
  const instant before = world.time();
  if (while_working) {
    world.stall(1'000ms + 7ms);
  } else {
    world.after(5ms, [&] { world.stall(1'000ms + 7ms); });
  }
  int at_once = 0;
  std::uint64_t skipped = 0;
  std::uint64_t beats = 0;
  while (world.time() < before + 2s) {
    const beat b = p.next();
    at_once += b.slept.why == outcome::already_past;
    skipped += b.skipped;
    beats = b.index - index;
    world.work(2ms);
  }
  CHECK(at_once <= (policy == missed::burst ? 3 : 1));
  CHECK(skipped >= 47);
  CHECK(skipped <= 50);
  CHECK(beats >= 99);
  CHECK(beats <= 101);
  CHECK(p.longest_drop() == skipped);
  CHECK(p.sleeper().margin(18ms) <= margin + 20us);
}

TEST_CASE("the figures of a loop are those of its beats", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(50), sim::simulated_platform{world}};
  nanoseconds most{0};
  nanoseconds sum{0};
  CHECK(p.achieved_hertz() == 0);
  p.next();
  CHECK(p.achieved_hertz() == 0);
  for (int i = 0; i < 150; ++i) {
    world.work(i == 70 ? 130ms : 5ms);
    const beat b = p.next();
    most = std::max(most, b.late);
    sum += b.late;
  }
  CHECK(p.lateness().count() == 150);
  CHECK(p.lateness().max() == most);
  CHECK(p.lateness().sum() == sum);
  CHECK(p.busy().count() == 150);
  CHECK(p.busy().max() >= 130ms);
  CHECK(p.dropped() == 5);
  CHECK(p.longest_drop() == 5);
  CHECK(p.achieved_hertz() == Catch::Approx(50).epsilon(0.001));
  const std::string text = to_text(p);
  CHECK(text.find("pacer 50 Hz, skip: achieved 50.0") == 0);
  CHECK(text.find("; dropped 5, at most 5 in a row; margin ") != std::string::npos);
  CHECK(text.find("\nlate: 150 recorded: ") != std::string::npos);
  CHECK(text.find("\nbusy: 150 recorded: ") != std::string::npos);
  p.reset_statistics();
  CHECK(p.lateness().count() + p.busy().count() + p.dropped() + p.longest_drop() == 0);
}

TEST_CASE("the rate achieved follows the loop within two seconds", "[pacer]") {
  sim::simulation world;
  exact(world);
  sim_pacer p{hz(60), sim::simulated_platform{world}};
  for (int i = 0; i < 300; ++i) p.next();
  CHECK(p.achieved_hertz() == Catch::Approx(60).epsilon(0.001));
  for (int i = 0; i < 100; ++i) {
    p.next();
    world.work(24ms);  // 41.67 Hz at best
  }
  CHECK(p.achieved_hertz() == Catch::Approx(1000.0 / 24).epsilon(0.01));
  p.set_rate(rate{1, 3});
  for (int i = 0; i < 4; ++i) p.next();
  CHECK(p.achieved_hertz() == Catch::Approx(1.0 / 3).epsilon(0.001));
}

TEST_CASE("the rate achieved is that of the beats, however often the loop looks between them",
          "[pacer]") {
  sim::simulation world;
  const bool polled = GENERATE(false, true);
  sim_pacer p{rate{1, 10}, sim::simulated_platform{world}};
  bell by;
  by.rung = true;
  const instant end = world.time() + 119s;
  while (world.time() < end) {
    world.work(10ms);
    if (polled) {
      p.poll();
    } else {
      p.next(by);
      by.rung = p.deadline() > world.time() + 20ms;
    }
  }
  CHECK(p.lateness().count() == 11);
  CHECK(p.achieved_hertz() == Catch::Approx(0.1).epsilon(0.002));
}

TEST_CASE("a way to wait that throws leaves the beat and the figures as they were", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  p.next();
  thrower by;
  for (int i = 0; i < 3; ++i) {
    world.work(5ms);
    CHECK_THROWS_AS(p.next(by), int);
  }
  const beat b = p.next();
  CHECK(b.index == 1);
  CHECK(b.skipped == 0);
  CHECK(b.busy >= 15ms);
  CHECK(b.busy <= 15ms + 10us);
}

TEST_CASE("a loop that breaks off its range goes on with the next beat", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{hz(100), sim::simulated_platform{world}};
  static_assert(std::ranges::input_range<decltype(p.beats())>);
  std::uint64_t expected = 0;
  for (int i = 0; i < 3; ++i) {
    for (const beat& b : p.beats()) {
      CHECK(b.index == expected++);
      if (expected % 4 == 0) break;
    }
  }
  CHECK(expected == 12);
  CHECK(p.dropped() == 0);
}

TEST_CASE("calls in any order lose no beat, deliver none early and never wait when polled",
          "[pacer][G1][G10]") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto any_rate = [&random] {
      const rate some[] = {hz(60),
                           hz(1'000'000'000),
                           rate{1, 86'400},
                           rate{INT64_MAX, INT64_MAX - 1},
                           rate{INT64_MAX, 9'223'372'037},
                           rates::game_boy,
                           rates::unlimited};
      return some[random() % 7];
    };
    const auto any_length = [&random] {
      return nanoseconds{static_cast<std::int64_t>(random()) >> (random() % 63)};
    };
    sim::simulation world{instant{random() % 2 == 0 ? 0ns : nanoseconds{std::int64_t{1} << 60}}};
    late_by_60us(world);
    world.cost.pause = 1us;
    const auto policy = static_cast<missed>(random() % 3);
    const auto cap = static_cast<std::uint32_t>(random() % 4 == 0 ? 0xffff'ffffu : random() % 5);
    sim_pacer p{any_rate(), policy, cap, {}, sim::simulated_platform{world}};
    bool first = true;
    bool stopped = false;
    std::uint64_t last = 0;
    std::uint64_t skipped = 0;
    int wrong = 0;
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t call = random() % 16;
      if (call < 6) {
        const bool polled = call < 2;
        const auto waits = world.count.native_waits;
        const beat b = polled ? p.poll() : p.next();
        if (polled) wrong += world.count.native_waits != waits;
        wrong += stopped == static_cast<bool>(b) && (stopped || !polled);
        wrong += stopped != (b.slept.why == outcome::stopped);
        if (polled && !b && !stopped) wrong += b.slept.left <= 0ns;
        if (!b) continue;
        wrong += world.time() < b.due || b.late < 0ns || b.busy < 0ns;
        wrong += b.index != (first ? 0 : last + 1) + b.skipped;
        skipped += b.skipped;
        wrong += skipped != p.dropped();
        last = b.index;
        first = false;
      }
      if (call == 6) world.work(nanoseconds{static_cast<std::int64_t>(random() % 1'000'000'000)});
      if (call == 7) world.stall(nanoseconds{static_cast<std::int64_t>(random() >> 14)});
      if (call == 8) random() % 4 == 0 ? p.set_background(any_rate()) : p.set_rate(any_rate());
      if (call == 9) p.nudge(any_length());
      if (call == 10) p.pause();
      if (call == 11) p.resume();
      if (call == 12) p.stop();
      if (call == 12) stopped = true;
      if (call >= 13 && call < 15) {
        const instant on = random() % 4 == 0   ? instant::min()
                           : random() % 3 == 0 ? instant::max()
                                               : instant{any_length()};
        p.align(on);
      }
      if (call == 15 || (stopped && random() % 4 == 0)) {
        p.restart();
        skipped = p.dropped();
        first = true;
        stopped = false;
      }
    }
    CAPTURE(seed, static_cast<int>(policy), cap);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("what is written for people is the same where decimals have a comma", "[pacer]") {
  sim::simulation world;
  late_by_60us(world);
  sim_pacer p{rates::ntsc_field, sim::simulated_platform{world}};
  for (int i = 0; i < 200; ++i) p.next();
  const std::string plain = to_text(p);
  CHECK(plain.find("60000/1001 Hz (59.9400)") != std::string::npos);
  CHECK(plain.find("achieved 59.94") != std::string::npos);
  const support::comma_locale comma;
  if (!comma.imposed()) return support::skip("no locale with a decimal comma here");
  CHECK(to_text(p) == plain);
}

TEST_CASE("a sleeper that gives up ends the loop and keeps the beat", "[pacer]") {
  sim::simulation world;
  sim_pacer p{hz(60), sim::simulated_platform{world}};
  p.next();
  world.monotonic_stands_still = true;
  const beat none = p.next();
  CHECK_FALSE(none);
  CHECK(none.slept.why == outcome::gave_up);
  CHECK(none.index == 1);
  world.monotonic_stands_still = false;
  CHECK(p.next().index >= 1);
}

TEST_CASE("orders from other threads meet the loop without a lock", "[pacer][threads]") {
  punctual::pacer p{hz(5'000)};
  bool mixed = false;
  std::atomic<bool> done{false};
  std::thread one([&] {
    while (!done.load()) {
      p.set_rate(rate{5'000, 1});
      p.nudge(10us);
    }
  });
  std::thread two([&] {
    while (!done.load()) {
      p.set_background(rate{4'001, 2});
      p.nudge(-10us);
    }
  });
  std::uint64_t beats = 0;
  std::uint64_t last = 0;
  bool in_order = true;
  instant due{};
  const instant end = punctual::steady::now() + 200ms;
  for (const beat& b : p.beats()) {
    in_order = in_order && (beats == 0 || (b.index == last + 1 + b.skipped && b.due > due));
    last = b.index;
    due = b.due;
    ++beats;
    const rate seen = p.current_rate();
    mixed = mixed || !(seen == rate{5'000, 1} || seen == rate{4'001, 2});
    if (b.due > end) p.stop();
  }
  done.store(true);
  one.join();
  two.join();
  CHECK_FALSE(mixed);
  CHECK(in_order);
  CHECK(beats > 10);
}

TEST_CASE("a stop from another thread ends the loop", "[pacer][threads]") {
  punctual::pacer p{hz(1000)};
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    p.stop();
  });
  std::uint64_t beats = 0;
  for (const beat& b : p.beats()) beats += b.index == beats + b.skipped ? 1 : 0;
  other.join();
  CHECK(beats > 0);
}
