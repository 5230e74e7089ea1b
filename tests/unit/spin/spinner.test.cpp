// Mistake that would live without it: a spin that believes the counter. It would end early on one
// that runs fast, never on one that stops or goes back, and milliseconds late on one that runs
// slow.
#include "support/catch.hpp"

#include <punctual/spin/spinner.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

using namespace std::chrono_literals;
using punctual::between;
using punctual::clock_kind;
using punctual::counter_rate;
using punctual::instant;
using punctual::nanoseconds;
using punctual::spin_end;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

constexpr auto never = [] { return false; };

counter_rate rate_of(double ticks_per_ns, std::uint64_t clock_read_ticks = 50) {
  counter_rate rate;
  rate.seed(ticks_per_ns, clock_read_ticks);
  return rate;
}

punctual::spin_result spin_for(simulation& world, nanoseconds length, const counter_rate& rate,
                               bool counter = true) {
  const simulated_platform system(world);
  const instant now = system.now(clock_kind::monotonic);
  return punctual::spin(system, clock_kind::monotonic, now + length, now, counter, rate, never);
}

}  // namespace

TEST_CASE("a spin on the counter ends within one clock read of the deadline", "[spinner]") {
  for (const auto length : {1ns, 30ns, 250ns, 1999ns, 2000ns, 2100ns, 40'000ns, 3'000'000ns}) {
    simulation world;
    const instant due = world.time() + world.cost.clock_read + length;
    const auto did = spin_for(world, length, rate_of(world.counter_rate()));
    INFO("length " << length.count());
    CHECK(did.how == spin_end::reached);
    CHECK(did.now >= due);
    // A read that begins just before the deadline, and at most the counter read before it.
    CHECK(world.time() - due <= world.cost.clock_read + world.cost.counter_read);
    CHECK(did.gaps == 0);
  }
}

TEST_CASE("a clock whose read takes 38 us is read once, at the deadline", "[spinner]") {
  simulation world;
  world.cost.clock_read = 38us;
  const auto rate = rate_of(world.counter_rate(), static_cast<std::uint64_t>(38'000 * 2.096004));
  const simulated_platform system(world);
  const instant now = system.now(clock_kind::monotonic);
  const instant due = now + 400us;
  world.count = {};
  const auto did = punctual::spin(system, clock_kind::monotonic, due, now, true, rate, never);
  CHECK(did.how == spin_end::reached);
  CHECK(did.now >= due);
  CHECK(did.now - due <= 1us);
}

TEST_CASE("the number of counter reads between two clock reads is bounded", "[spinner][G7]") {
  simulation world;
  std::uint64_t since_clock = 0;
  std::uint64_t most = 0;
  world.on_step = [&](const char* name) {
    if (std::string(name) == "clock") {
      since_clock = 0;
    } else if (std::string(name) == "counter") {
      most = ++since_clock > most ? since_clock : most;
    }
  };
  world.counter_runs_at(0.02);  // so slowly that only the bound ends a lap
  auto did = spin_for(world, 1ms, rate_of(2.096004));
  CHECK(did.how == spin_end::reached);
  CHECK(most <= 320);
  CHECK(most > 100);

  most = 0;
  world.counter_runs_at(0);  // it stands still: no use to ask it for a whole lap
  did = spin_for(world, 1ms, rate_of(2.096004));
  CHECK(did.how == spin_end::reached);
  CHECK(most <= 65);
}

TEST_CASE("a slow counter's ticks, each read many times, are not taken for standing still",
          "[spinner]") {
  simulation world;
  world.counter_runs_at(0.001);  // 1 MHz
  std::uint64_t clock_reads = 0;
  world.on_step = [&](const char* name) { clock_reads += std::string(name) == "clock"; };
  const auto did = spin_for(world, 1ms, rate_of(0.001));
  CHECK(did.how == spin_end::reached);
  CHECK(clock_reads < 1000);
}

TEST_CASE("where a clock read takes microseconds, a lying counter costs at most 50 us or two reads",
          "[spinner][G7]") {
  for (const auto read : {3us, 10us, 20us, 38us}) {
    for (const double runs_at : {0.0, 0.002, 0.02, 1.886, 2.306}) {
      for (const auto before_the_end : {99us, 30us, 21us, 11us, 3us}) {
        simulation world;
        world.cost.clock_read = read;
        const simulated_platform system(world);
        const auto width =
            static_cast<std::uint64_t>(static_cast<double>(nanoseconds{read}.count()) * 2.096004);
        const auto rate = rate_of(2.096004, width);
        const instant now = system.now(clock_kind::monotonic);
        const instant due = now + 300us;
        world.at(due - before_the_end, [&] { world.counter_runs_at(runs_at); });
        const auto did = punctual::spin(system, clock_kind::monotonic, due, now, true, rate, never);
        INFO("a read of " << read.count() << " us, rate " << runs_at << " from "
                          << before_the_end.count() << " us before the end");
        CHECK(did.how == spin_end::reached);
        CHECK(world.time() >= due);
        CHECK(world.time() - due <= std::max<nanoseconds>(50us, 2 * read));
      }
    }
  }
}

TEST_CASE("a spin towards the far end pauses like any other", "[spinner][G5]") {
  simulation world;
  const simulated_platform system(world);
  const instant now = system.now(clock_kind::monotonic);
  bool flag = false;
  world.after(1ms, [&] { flag = true; });
  const auto did = punctual::spin(system, clock_kind::monotonic, instant::max(), now, true,
                                  rate_of(2.096004), [&] { return flag; });
  CHECK(did.how == spin_end::ended);
  CHECK(world.count.pauses > 10'000);
}

TEST_CASE("a lying counter never ends a spin early and costs at most 50 us", "[spinner][G7]") {
  struct lie {
    const char* name;
    void (*tell)(simulation&);
  };
  const lie lies[] = {
      {"stands still", [](simulation& w) { w.counter_runs_at(0); }},
      {"runs 1000 times too slow", [](simulation& w) { w.counter_runs_at(0.002); }},
      {"runs 10 % too slow", [](simulation& w) { w.counter_runs_at(1.886); }},
      {"runs 10 % too fast", [](simulation& w) { w.counter_runs_at(2.306); }},
      {"runs 1000 times too fast", [](simulation& w) { w.counter_runs_at(2096.0); }},
      {"goes back a little", [](simulation& w) { w.counter_jumps(-400'000); }},
      {"goes back by 1.6 s", [](simulation& w) { w.counter_jumps(-3'353'606'400); }},
      {"jumps ahead by 1.6 s", [](simulation& w) { w.counter_jumps(3'353'606'400); }},
      {"jumps to the far end", [](simulation& w) { w.counter_jumps(INT64_MAX); }},
  };
  for (const lie& each : lies) {
    for (const auto from : {0us, 10us, 49us, 99us}) {
      simulation world;
      const simulated_platform system(world);
      const auto rate = rate_of(2.096004);
      const instant now = system.now(clock_kind::monotonic);
      const instant due = now + 100us;
      world.after(from, [&] { each.tell(world); });
      const auto did = punctual::spin(system, clock_kind::monotonic, due, now, true, rate, never);
      INFO(each.name << ", from " << from.count() << " us on");
      CHECK(did.how == spin_end::reached);
      CHECK(world.time() >= due);
      CHECK(world.time() - due <= 50us);
    }
  }
}

TEST_CASE("a counter that differs between cores by seconds costs nothing but laps",
          "[spinner][G7]") {
  simulation world;
  const simulated_platform system(world);
  const instant now = system.now(clock_kind::monotonic);
  const instant due = now + 500us;
  bool there = false;
  for (int i = 1; i < 100; ++i) {
    world.at(now + i * 5us, [&world, &there] {
      world.counter_jumps(there ? -3'353'606'400 : 3'353'606'400);
      there = !there;
    });
  }
  const auto did =
      punctual::spin(system, clock_kind::monotonic, due, now, true, rate_of(2.096004), never);
  CHECK(did.how == spin_end::reached);
  CHECK(world.time() >= due);
  CHECK(world.time() - due <= 5us);
}

TEST_CASE("without a counter the spin reads the clock", "[spinner]") {
  simulation world;
  const instant due = world.time() + world.cost.clock_read + 20us;
  const auto did = spin_for(world, 20us, rate_of(2.096004), false);
  CHECK(did.how == spin_end::reached);
  CHECK(world.count.counter_reads == 0);
  CHECK(world.time() >= due);
  CHECK(world.time() - due <= world.cost.clock_read + world.cost.pause);
}

TEST_CASE("a counter of unknown rate is not used", "[spinner]") {
  simulation world;
  const auto did = spin_for(world, 20us, counter_rate{});
  CHECK(did.how == spin_end::reached);
  CHECK(world.count.counter_reads == 0);
}

TEST_CASE("the spin pauses far from the deadline and not in the last 200 ns", "[spinner]") {
  simulation world;
  const instant due = world.time() + world.cost.clock_read + 10us;
  instant last_pause{};
  world.on_step = [&](const char* name) {
    if (std::string(name) == "pause") last_pause = world.time();
  };
  spin_for(world, 10us, rate_of(world.counter_rate()));
  CHECK(world.count.pauses > 100);
  CHECK(last_pause < due - 200ns + world.cost.pause + world.cost.counter_read);
}

TEST_CASE("being descheduled in a spin is counted as a gap", "[spinner]") {
  simulation world;
  world.after(30us, [&] { world.stall(5ms); });
  world.after(8ms, [&] { world.stall(300us); });
  world.after(9ms, [&] { world.stall(20us); });  // an interrupt, not the scheduler
  const auto did = spin_for(world, 12ms, rate_of(world.counter_rate()));
  CHECK(did.gaps == 2);
  CHECK(did.spun >= 12ms);
  CHECK(did.away >= 5ms - 200us + 300us - 200us);
  CHECK(did.away < 5ms);
}

TEST_CASE("a clock with steps of 4 ms ends the spin as stalled, not burnt through", "[spinner]") {
  for (const bool counter : {true, false}) {
    simulation world;
    world.precise = [](instant t) { return t - t.time_since_epoch() % 4'000'000ns; };
    const auto did = spin_for(world, 3ms, rate_of(world.counter_rate()), counter);
    CHECK(did.how == spin_end::stalled);
    CHECK(world.count.spun() < 500us);
  }
}

TEST_CASE("a wall clock that is set back ends the spin", "[spinner][G11]") {
  simulation world;
  const simulated_platform system(world);
  const instant now = system.now(clock_kind::realtime);
  world.after(20us, [&] { world.step_wall_clock(-3600s); });
  const auto did = punctual::spin(system, clock_kind::realtime, now + 100us, now, true,
                                  rate_of(world.counter_rate()), never);
  CHECK(did.how == spin_end::set_back);
  CHECK(world.count.spun() < 50us);
}

TEST_CASE("the caller's condition ends the spin within a counter read", "[spinner]") {
  simulation world;
  const simulated_platform system(world);
  const instant now = system.now(clock_kind::monotonic);
  bool flag = false;
  const instant raised = now + 31us;
  world.at(raised, [&] { flag = true; });
  const auto did = punctual::spin(system, clock_kind::monotonic, now + 100us, now, true,
                                  rate_of(world.counter_rate()), [&] { return flag; });
  CHECK(did.how == spin_end::ended);
  CHECK(world.time() - raised <= 100ns);
}

TEST_CASE("the rate is measured over native waits to 10 ppm", "[spinner][rate]") {
  simulation world;
  const simulated_platform system(world);
  counter_rate rate;
  for (int i = 0; i < 50; ++i) {
    const auto before = punctual::look(system, clock_kind::monotonic, true);
    system.block_until(clock_kind::monotonic, before.at + 1ms, punctual::slack::tight);
    rate.refine(before, punctual::look(system, clock_kind::monotonic, true));
  }
  CHECK(rate.ticks_per_ns() == Catch::Approx(2.096004).epsilon(10e-6));
}

TEST_CASE("a suspend in which the counter runs on does not skew the rate", "[spinner][rate][G11]") {
  simulation world;
  const simulated_platform system(world);
  counter_rate rate = rate_of(2.096004);
  for (int i = 0; i < 20; ++i) {
    const auto before = punctual::look(system, clock_kind::monotonic, true);
    if (i == 5) world.after(1ms, [&] { world.suspend_clock_stops(20ms); });
    if (i == 10) world.after(1ms, [&] { world.suspend_clock_stops(6600s); });
    system.block_until(clock_kind::monotonic, before.at + 16ms, punctual::slack::tight);
    rate.refine(before, punctual::look(system, clock_kind::monotonic, true));
    CHECK(rate.ticks_per_ns() == Catch::Approx(2.096004).epsilon(50e-6));
  }
}

TEST_CASE("a counter that changes its rate for good is followed within four waits",
          "[spinner][rate][G7]") {
  simulation world;
  const simulated_platform system(world);
  counter_rate rate = rate_of(2.096004);
  world.counter_runs_at(2.4);
  for (int i = 0; i < 4; ++i) {
    const auto before = punctual::look(system, clock_kind::monotonic, true);
    system.block_until(clock_kind::monotonic, before.at + 4ms, punctual::slack::tight);
    rate.refine(before, punctual::look(system, clock_kind::monotonic, true));
  }
  CHECK(rate.ticks_per_ns() == Catch::Approx(2.4).epsilon(50e-6));
}

TEST_CASE("looks that were interrupted, or too close together, do not change the rate",
          "[spinner][rate]") {
  counter_rate rate = rate_of(2.0, 50);
  const instant from{1s};
  rate.refine({from, 1'000'000, 50}, {from + 1ms, 3'001'000, 5000});  // a wide look
  rate.refine({from, 1'000'000, 50}, {from + 10us, 1'020'900, 50});   // a short baseline
  rate.refine({from, 1'000'000, 50}, {from + 1ms, 900'000, 50});      // went back
  CHECK(rate.ticks_per_ns() == 2.0);
}
