// What is said of a calibration: every figure, in words and in JSON, in any locale.
//
// Mistake that would live without it: a figure that the text leaves out or mixes up, a counter that
// is not used without a reason, JSON that has decimal commas where the program speaks German, or
// half the kernel's tick with an extra one, which agrees with every wait that is short.
#include <punctual/calibration.hpp>
#include <punctual/pacer.hpp>
#include <punctual/statistics.hpp>
#include <punctual/testing/kernels.hpp>

#include "support/catch.hpp"
#include "support/comma_locale.hpp"
#include "support/json.hpp"
#include "support/skip.hpp"

#include <limits>
#include <string>

namespace {

using namespace punctual;
using namespace std::chrono_literals;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;
using support::json_reader;
using support::json_value;

/// Every field has a value that occurs once.
calibration example() {
  calibration c;
  c.platform = "here";
  c.native_call = "nap";
  c.counter_used = true;
  c.counter_reason = "it counts";
  c.counter_mhz = 2096.004125;
  c.clock_read = fine_nanoseconds(21.5);
  c.coarse_read = fine_nanoseconds(4.25);
  c.counter_read = fine_nanoseconds(9.125);
  c.past_deadline = fine_nanoseconds(6.375);
  c.native_wait_cpu = 3210ns;
  c.shortest_native_wait = 52'345ns;
  c.slack = 50us;
  c.tick = 4ms;
  c.extra_ticks = 1;
  c.native_waits = 17;
  c.took = 19'876'543ns;
  constexpr int lengths[] = {100, 1000, 4000, 16'667};
  for (int i = 0; i < 4; ++i) {
    c.overshoot[static_cast<std::size_t>(i)] = {
        std::chrono::microseconds(lengths[i]),
        {nanoseconds(61'100 + i), nanoseconds(41'200 + i), static_cast<std::uint32_t>(31 + i),
         margin_reason::learned, 4ms, 1}};
  }
  return c;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the text of a calibration says everything that was found", "[calibration]") {
  const std::string text = to_text(example());
  CAPTURE(text);
  for (const char* part :
       {"platform here, native wait nap\n", "clock: std::chrono::steady_clock\n",
        "counter: used, it counts, 2096.004 MHz measured against the clock over native waits\n",
        "costs: clock read 21.5 ns, coarse read 4.3 ns, counter read 9.1 ns, past deadline 6.4 "
        "ns\n",
        "native wait: 3.2 us of CPU, shortest 52.3 us\n", "timer slack of this thread: 50.0 us\n",
        "tick: native waits end every 4000.0 us, 1 extra\n",
        "     0.100 ms: margin 61.1 us (learned quantile; quantile 41.2 us, 31 samples, "
        "tick 4000.0 us + 1)\n",
        "     1.000 ms: margin", "     4.000 ms: margin", "    16.667 ms: margin",
        "measured in 19.9 ms with 17 native waits\n"}) {
    INFO(part);
    CHECK(has(text, part));
  }
}

TEST_CASE("the text of a calibration says what there is not", "[calibration]") {
  calibration c = example();
  c.counter_used = false;
  c.counter_reason = "it stops";
  c.counter_mhz = 0;
  c.slack = -1ns;
  c.tick = 0ns;
  c.took = 0ns;
  const std::string text = to_text(c);
  CAPTURE(text);
  CHECK(has(text, "counter: not used, it stops\n"));
  CHECK(has(text, "timer slack: none on this platform\n"));
  CHECK(has(text, "tick: none seen, native waits end at any time\n"));
  CHECK(has(text, "never calibrated: learned from ordinary waits\n"));
  CHECK_FALSE(has(text, "counter read"));
  CHECK_FALSE(has(text, "MHz"));
}

void every_field_is_in(const std::string& text) {
  CAPTURE(text);
  const auto read = json_reader::read(text);
  REQUIRE(read);
  const json_value& all = *read;
  CHECK(all.of("platform") == "here");
  CHECK(all.of("native_call") == "nap");
  CHECK(all.of("clock") == "std::chrono::steady_clock");
  CHECK(all.of("counter_used") == "true");
  CHECK(all.of("counter_reason") == "it counts");
  CHECK(all.of("counter_mhz") == "2096.004125");
  CHECK(all.of("counter_measured") == "against the clock over native waits");
  CHECK(all.of("clock_read_ns") == "21.500");
  CHECK(all.of("coarse_read_ns") == "4.250");
  CHECK(all.of("counter_read_ns") == "9.125");
  CHECK(all.of("past_deadline_ns") == "6.375");
  CHECK(all.of("native_wait_cpu_ns") == "3210");
  CHECK(all.of("shortest_native_wait_ns") == "52345");
  CHECK(all.of("slack_ns") == "50000");
  CHECK(all.of("tick_ns") == "4000000");
  CHECK(all.of("extra_ticks") == "1");
  CHECK(all.of("native_waits") == "17");
  CHECK(all.of("took_ns") == "19876543");
  REQUIRE(all.find("overshoot") != nullptr);
  const std::vector<json_value>& lengths = all.find("overshoot")->items;
  REQUIRE(lengths.size() == 4);
  CHECK(lengths[3].of("length_ns") == "16667000");
  CHECK(lengths[3].of("margin_ns") == "61103");
  CHECK(lengths[3].of("quantile_ns") == "41203");
  CHECK(lengths[3].of("samples") == "34");
  CHECK(lengths[3].of("why") == "learned quantile");
}

TEST_CASE("the JSON of a calibration has every field", "[calibration]") {
  every_field_is_in(to_json(example()));
  calibration nothing;
  nothing.counter_mhz = std::numeric_limits<double>::quiet_NaN();
  nothing.clock_read = fine_nanoseconds(-0.0004);
  nothing.coarse_read = fine_nanoseconds(std::numeric_limits<double>::infinity());
  CHECK(json_reader::read(to_json(nothing)));
}

TEST_CASE("numbers have a decimal point in every locale", "[calibration][statistics]") {
  const support::comma_locale german;
  if (!german.imposed()) {
    return support::skip("this C library takes no locale from a file of ours");
  }
  every_field_is_in(to_json(example()));
  CHECK(has(to_text(example()), "counter: used, it counts, 2096.004 MHz"));
  CHECK(has(to_text(example()), "clock read 21.5 ns"));

  statistics late;
  for (int i = 1; i < 5000; ++i) late.record(i * 1us);
  CHECK(json_reader::read(to_json(late)));
  CHECK(to_text(1250ns) == "1.25 us");
  CHECK_FALSE(has(to_text(late).substr(0, to_text(late).find('\n')), "0,"));

  simulation world;
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  sleeper.sleep_for(1ms);
  CHECK(has(to_text(sleeper.report()), "punctuality 0.98, cpu_budget 0.5, max_margin 25000.0 us"));
  basic_pacer<simulated_platform> pacer{rate{60000, 1001}, simulated_platform{world}};
  for (int i = 0; i < 100; ++i) pacer.next();
  CHECK(has(to_text(pacer), "59.94"));
}

TEST_CASE("a sleeper's report says its tuning and a margin by length, with the reason",
          "[calibration]") {
  simulation world;
  world.kernel = [](const native_request& r) { return later(r.until, 60us); };
  tuning how;
  how.punctuality = 0.9975;
  how.cpu_budget = 1;
  how.tighten_slack = false;
  how.use_counter = false;
  basic_sleeper<simulated_platform> sleeper{how, simulated_platform{world}};
  for (int i = 0; i < 300; ++i) sleeper.sleep_for(1ms);
  const std::string text = to_text(sleeper.report());
  CAPTURE(text);
  for (const char* part :
       {"platform simulated, native wait simulated native wait\n",
        "counter: not used, tuning::use_counter is false\n",
        "tuning: punctuality 0.9975, cpu_budget 1, max_margin 25000.0 us, slack as it is\n",
        "\nmargin by length:\n", "     0.100 ms: margin ", "   100.000 ms: margin ",
        "(learned quantile; quantile "}) {
    INFO(part);
    CHECK(has(text, part));
  }
  CHECK(has(text, "     1.000 ms: margin 6"));  // 60 us and what the two reads around it cost
}

TEST_CASE("a calibration finds the kernel's tick and how many are added",
          "[calibration][lattice]") {
  const struct {
    const char* kernel;
    nanoseconds tick;
    int extra;
    int found;  // in so many of 64 calibrations at least
  } all[] = {{"linux without high-res, 100 Hz", 10ms, 0, 64},
             {"linux without high-res, 250 Hz", 4ms, 0, 64},
             {"linux without high-res, 1000 Hz", 1ms, 0, 50},
             {"linux, clocksource=jiffies", 4ms, 0, 64},
             {"user-mode linux", 10ms, 0, 64},
             {"linux 2.4", 10ms, 1, 50},
             {"netbsd, 100 Hz", 10ms, 1, 50},
             {"netbsd, 100 Hz, short ticks", 9'800us, 1, 50},
             {"netbsd 6, 100 Hz", 10ms, 1, 50},
             {"openbsd", 10ms, 1, 50},
             {"freebsd 9 nanosleep, 100 Hz", 10ms, 1, 50},
             {"windows, 15.625 ms", 15'625us, 0, 60},
             {"windows, 1 ms", 1ms, 0, 50},
             {"windows high-resolution timer", 500us, 0, 50}};
  for (const auto& each : all) {
    CAPTURE(each.kernel);
    int found = 0, wrong = 0;
    for (std::uint64_t seed = 1; seed <= 64; ++seed) {
      simulation world;
      testing::kernels::named(each.kernel).install(world, seed);
      world.work(seed * 157us);  // another phase each time
      basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
      const calibration c = sleeper.calibrate(20ms);
      const nanoseconds off = c.tick - each.tick;
      if (c.tick == 0ns) continue;
      ++(off > -10us && off < 10us && c.extra_ticks == each.extra ? found : wrong);
    }
    CHECK(found >= each.found);
    CHECK(wrong <= 64 - each.found);
    if (each.tick >= 4ms) CHECK(wrong == 0);
  }
}

}  // namespace
