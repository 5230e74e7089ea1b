// The simulated machine: time moves by what is scripted alone, and each fault does what it says.
//
// Mistake that would live without it: a fault that never happens, so that every proof of surviving
// it proves nothing.

#include <punctual/testing/simulated_platform.hpp>

#include "support/catch.hpp"

#include <string>
#include <vector>

namespace {

using namespace punctual;
using namespace std::chrono_literals;
using testing::simulated_platform;
using testing::simulation;

constexpr auto steadily = clock_kind::monotonic;
constexpr auto wall = clock_kind::realtime;

/// What blocking to `until` took, without the cost of the call.
struct blocked {
  nanoseconds took;
  native_wait answer;
};

blocked block(simulation& world, clock_kind on, instant until) {
  const nanoseconds slept = world.count.slept;
  const native_wait answer = simulated_platform(world).block_until(on, until, slack::tight);
  return {world.count.slept - slept, answer};
}

}  // namespace

TEST_CASE("simulated time moves by the cost of each step and by nothing else", "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  const instant start = world.time();
  const auto moved = [&] { return world.time() - start; };

  machine.now(steadily);
  CHECK(moved() == 25ns);
  machine.coarse_now(steadily);
  CHECK(moved() == 31ns);
  machine.counter();
  CHECK(moved() == 41ns);
  machine.relax();
  CHECK(moved() == 61ns);
  machine.block_until(steadily, start + 10us, slack::as_is);
  CHECK(moved() == 10us + 500ns);
  world.work(2ms);
  CHECK(moved() == 2ms + 10us + 500ns);
  machine.facts();
  machine.counter_facts();
  CHECK(moved() == 2ms + 10us + 500ns);

  CHECK(world.count.clock_reads == 1);
  CHECK(world.count.coarse_reads == 1);
  CHECK(world.count.counter_reads == 1);
  CHECK(world.count.pauses == 1);
  CHECK(world.count.native_waits == 1);
  CHECK(world.count.spun() == 61ns);
  CHECK(world.count.worked == 2ms);
  CHECK(world.count.native == 1us);
  CHECK(world.count.slept == 10us - 61ns - 500ns);
  CHECK(machine.running_time() == 2ms + 1us + 61ns);
}

TEST_CASE("a clock shows the time at the end of its read, the coarse one never ahead",
          "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  const instant steady_seen = machine.now(steadily);
  CHECK(steady_seen == world.time());
  const instant wall_seen = machine.now(wall);
  CHECK(wall_seen == world.wall_time());
  for (int i = 0; i < 1000; ++i) {
    world.work(777us);
    const instant coarse = machine.coarse_now(steadily);
    CHECK((coarse <= world.time() && world.time() - coarse < 4ms));
  }
}

TEST_CASE("a native wait ends when the kernel says, and not before it has begun", "[simulation]") {
  simulation world;
  const instant start = world.time();
  testing::native_request seen{};
  world.kernel = [&](const testing::native_request& asked) {
    seen = asked;
    return asked.until + 50us;
  };
  const simulated_platform machine(world);
  machine.block_until(steadily, start + 1ms, slack::tight);
  CHECK(world.time() == start + 1ms + 50us + 500ns);
  CHECK(seen.now == start + 500ns);
  CHECK(seen.until == start + 1ms);
  CHECK(seen.how == slack::tight);
  CHECK_FALSE(seen.parked);

  machine.block_until(wall, world.wall_time() + 1ms, slack::as_is);
  CHECK(seen.until == start + 2ms + 50us + 500ns);
  CHECK(seen.how == slack::as_is);

  world.kernel = [](const testing::native_request& asked) { return asked.now - 1h; };
  CHECK(block(world, steadily, world.time() + 1ms).took == 0ns);
}

TEST_CASE("a signal ends a native wait as interrupted, when it comes", "[simulation]") {
  simulation world;
  world.after(300us, [&] { world.signal(); });
  const blocked cut = block(world, steadily, world.time() + 1ms);
  CHECK(cut.answer.how == native_end::interrupted);
  CHECK(cut.answer.error == 0);
  CHECK(cut.took == 300us - 500ns);

  world.signal();  // between two waits: its handler has run by the next one
  const blocked whole = block(world, steadily, world.time() + 1ms);
  CHECK(whole.answer.how == native_end::woke);
  CHECK(whole.took == 1ms - 500ns);
}

TEST_CASE("scripted answers replace the kernel's, first in, first out", "[simulation]") {
  simulation world;
  world.next_native({native_end::woke, 0}, 100us);  // early
  world.next_native({native_end::interrupted, 0}, 20us);
  world.next_native({native_end::refused, 38});
  world.next_native({native_end::woke, 38}, 5ms);  // late, and something failed on the way
  const instant until = world.time() + 1ms;

  const blocked early = block(world, steadily, until);
  CHECK((early.took == 100us && early.answer.how == native_end::woke && world.time() < until));
  const blocked cut = block(world, steadily, until);
  CHECK((cut.took == 20us && cut.answer.how == native_end::interrupted));
  const blocked refused = block(world, steadily, until);
  CHECK((refused.took == 0ns && refused.answer.how == native_end::refused));
  CHECK(refused.answer.error == 38);
  const blocked late = block(world, steadily, until);
  CHECK((late.took == 5ms && late.answer.how == native_end::woke && late.answer.error == 38));
  CHECK(block(world, steadily, world.time() + 1ms).took == 1ms - 500ns);
}

TEST_CASE("refused native waits do not wait, until they are allowed again", "[simulation]") {
  simulation world;
  world.refuse_native(1);
  for (int i = 0; i < 3; ++i) {
    const blocked refused = block(world, steadily, world.time() + 1s);
    CHECK(refused.answer.how == native_end::refused);
    CHECK(refused.answer.error == 1);
    CHECK(refused.took == 0ns);
  }
  world.refuse_native(0);
  CHECK(block(world, steadily, world.time() + 1s).took == 1s - 500ns);
}

TEST_CASE("a parked wait ends by its own word only, and at once if the word has changed",
          "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  park_word mine{0};
  park_word other{0};
  world.after(100us, [&] { machine.unpark(other); });
  world.after(300us, [&] {
    mine = 1;
    machine.unpark(mine);
  });
  const instant start = world.time();
  CHECK(machine.park_until(mine, 0, steadily, start + 1ms, slack::tight).how == native_end::woke);
  CHECK(world.time() == start + 300us + 500ns);
  CHECK(world.count.unparks == 2);

  const nanoseconds slept = world.count.slept;
  machine.park_until(mine, 0, steadily, world.time() + 1ms, slack::tight);
  CHECK(world.count.slept == slept);

  const instant again = world.time();
  machine.unpark(mine);  // nobody is parked: it is not remembered
  machine.park_until(mine, 1, steadily, again + 1ms, slack::tight);
  CHECK(world.time() == again + 1ms + 500ns);
}

TEST_CASE("a stall takes time from the thread that could have run, and no CPU time",
          "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  const instant start = world.time();
  world.after(40us, [&] { world.stall(10ms); });
  for (int i = 0; i < 4; ++i) world.work(25us);
  CHECK(world.time() == start + 10ms + 100us);
  CHECK(world.count.stalled == 10ms);
  CHECK(world.count.ran == 100us);

  // In the middle of a clock read: the reading is taken after the stall.
  world.after(10ns, [&] { world.stall(1ms); });
  const instant before = world.time();
  CHECK(machine.now(steadily) == before + 1ms + 25ns);

  // While blocked there is nothing to take, but the wait may be over by more than it asked.
  world.count.stalled = 0ns;
  const instant until = world.time() + 1ms;
  world.at(until - 100us, [&] { world.stall(5ms); });
  block(world, steadily, until);
  CHECK(world.time() == until - 100us + 5ms + 500ns);
  CHECK(world.count.stalled == 0ns);
}

TEST_CASE("a step of the wall clock moves waits on the wall clock and no others", "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  const auto step_in_1ms = [&](nanoseconds by) {
    world.after(1ms, [&world, by] { world.step_wall_clock(by); });
  };
  const auto waits = [&](clock_kind on) {
    const instant start = world.time();
    block(world, on, later(on == wall ? world.wall_time() : start, 10ms));
    return world.time() - start - 500ns;
  };
  step_in_1ms(4ms);
  CHECK(waits(wall) == 6ms);
  step_in_1ms(1h);
  CHECK(waits(wall) == 1ms);
  step_in_1ms(-1h);
  CHECK(waits(wall) == 10ms + 1h);
  step_in_1ms(1h);
  CHECK(waits(steadily) == 10ms);

  const nanoseconds apart = between(world.time(), world.wall_time());
  world.step_wall_clock(-5s);
  CHECK(between(world.time(), world.wall_time()) == apart - 5s);
  const instant seen = machine.now(steadily);
  CHECK(between(seen, machine.now(wall)) == apart - 5s + 25ns);
}

TEST_CASE("in a suspend the steady clock stands still while wall clock and counter run",
          "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  world.counter_runs_at(2.0);
  const instant start = world.time();
  const std::uint64_t count = machine.counter();
  world.suspend_clock_stops(1h);
  CHECK(world.time() == start + 10ns);
  CHECK(between(start, world.wall_time()) > 1h);
  const auto ticks = static_cast<std::uint64_t>(2 * nanoseconds(1h).count());
  CHECK(machine.counter() - count == ticks + 20);

  SECTION("a wait on the steady clock takes no notice") {
    world.after(1ms, [&] { world.suspend_clock_stops(1h); });
    CHECK(block(world, steadily, world.time() + 5ms).took == 5ms - 500ns);
  }
  SECTION("a wait on the wall clock that is over ends when the machine is back") {
    world.after(1ms, [&] { world.suspend_clock_stops(1h); });
    CHECK(block(world, wall, world.wall_time() + 5ms).took == 1ms - 500ns);
  }
  SECTION("where the steady clock runs on, it is a long stall") {
    const instant before = world.time();
    world.after(1ms, [&] { world.suspend_clock_runs_on(1h); });
    block(world, steadily, before + 5ms);
    CHECK(world.time() == before + 1ms + 1h + 500ns);
  }
}

TEST_CASE("the counter runs at its rate exactly, over short reads and long waits", "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  world.counter_runs_at(0.3);
  const instant start = world.time();
  const std::uint64_t first = machine.counter();
  std::uint64_t last = first;
  for (int i = 0; i < 1'000'000; ++i) {
    const std::uint64_t next = machine.counter();
    if (next < last) FAIL("went back");
    last = next;
  }
  CHECK(last - first == 3'000'000);
  block(world, steadily, start + 2h);
  const auto due = static_cast<std::uint64_t>(0.3 * static_cast<double>((2h).count()) * 3600e9);
  CHECK(machine.counter() - first - due <= 200);
}

TEST_CASE("each counter fault is the one that its name says", "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  world.counter_runs_at(2.0);
  const std::uint64_t first = machine.counter();

  SECTION("a jump, either way") {
    world.counter_jumps(1'000'000);
    CHECK(machine.counter() == first + 1'000'020);
    world.counter_jumps(-2'000'000);
    CHECK(machine.counter() == first - 1'000'000 + 40);
  }
  SECTION("standing still") {
    world.counter_runs_at(0);
    world.work(1s);
    CHECK(machine.counter() == first);
    CHECK(world.counter_rate() == 0);
  }
  SECTION("another rate, and no jump at the change") {
    world.counter_runs_at(0.5);
    CHECK(machine.counter() == first + 5);
    world.work(90ns);
    CHECK(machine.counter() == first + 55);
  }
  SECTION("running backwards") {
    world.counter_runs_at(-1);
    CHECK(machine.counter() == first - 10);
    world.work(3s);
    CHECK(machine.counter() == first - 3'000'000'020);
  }
  SECTION("not there at all") {
    world.counter_is = {false, "trapped"};
    CHECK_FALSE(machine.counter_facts().usable);
    CHECK(machine.counter_facts().reason == std::string("trapped"));
  }
}

TEST_CASE("clocks that stand still show the same instant while the world goes on", "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  const instant shown = machine.now(steadily);
  world.monotonic_stands_still = true;
  const instant start = world.time();
  block(world, steadily, start + 1s);
  CHECK(machine.now(steadily) == shown);
  CHECK(machine.coarse_now(steadily) <= shown);
  CHECK(world.time() >= start + 1s);
  world.monotonic_stands_still = false;
  const instant moving = machine.now(steadily);
  CHECK(moving == world.time());
}

TEST_CASE("events happen in the order of their instants, and late ones at the next step",
          "[simulation]") {
  simulation world;
  std::vector<int> seen;
  const instant start = world.time();
  world.at(start + 3us, [&] { seen.push_back(3); });
  world.at(start + 1us, [&] {
    seen.push_back(1);
    CHECK(world.time() == start + 1us);
    world.after(1us, [&] { seen.push_back(2); });
  });
  world.at(start - 1s, [&] { seen.push_back(0); });
  CHECK(seen.empty());
  world.work(2500ns);
  CHECK(seen == std::vector<int>{0, 1, 2});
  world.work(1s);
  CHECK(seen == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a handler that works and waits inside a wait leaves that wait as it was",
          "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  park_word word{0};
  const instant start = world.time();
  native_end inner{};
  world.at(start + 100us, [&] {
    world.work(50us);
    world.after(20us, [&] {
      word = 1;
      machine.unpark(word);  // another thread, while the handler sleeps
    });
    inner = machine.block_until(steadily, start + 300us, slack::tight).how;
  });
  const native_end outer = machine.park_until(word, 0, steadily, start + 1ms, slack::tight).how;
  CHECK(inner == native_end::woke);
  CHECK(outer == native_end::woke);
  CHECK(world.time() == start + 300us + 500ns + 500ns);

  // In the thread's own work: what the handler took is added to it.
  const instant again = world.time();
  world.after(100us, [&] { world.work(50us); });
  world.work(1ms);
  CHECK(world.time() == again + 1ms + 50us);
}

TEST_CASE("the far end of time is a place where everything still has a value", "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  CHECK(machine.block_until(steadily, instant::max(), slack::tight).how == native_end::woke);
  CHECK(world.time() == instant::max());
  CHECK(machine.now(steadily) == instant::max());
  CHECK(machine.now(wall) == instant::max());
  machine.counter();
  machine.relax();
  world.stall(1h);
  CHECK(world.time() == instant::max());
  CHECK(block(world, wall, instant::min()).took == 0ns);
}

TEST_CASE("every step of the thread can be watched by its name", "[simulation]") {
  simulation world;
  const simulated_platform machine(world);
  std::vector<std::string> steps;
  world.on_step = [&](const char* name) { steps.emplace_back(name); };
  park_word word{0};
  machine.now(steadily);
  machine.coarse_now(wall);
  machine.counter();
  machine.relax();
  machine.block_until(steadily, world.time(), slack::tight);
  machine.park_until(word, 0, steadily, world.time(), slack::tight);
  machine.unpark(word);
  CHECK(steps == std::vector<std::string>{"clock", "coarse clock", "counter", "pause", "block",
                                          "park", "unpark"});
}
