// Mistake that would live without it: a stand-in for simh that does not suffer from a bad kernel as
// simh does, or a plug-in's way of sleeping that helps on this kernel only. Simulated machines: the
// figures are exact.
#include "simh_model.h"

#include "support/catch.hpp"

#include <punctual/calibration.hpp>
#include <punctual/sleeper.hpp>
#include <punctual/testing/kernels.hpp>

#include <cmath>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;
using punctual::nanoseconds;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

/// A host on a simulated machine: its own sleep, or punctual's.
class simulated_host {
 public:
  enum way { own, in_ms, in_ns };

  simulated_host(const std::string& kernel, way how) : how_(how) {
    punctual::testing::kernels::named(kernel).install(world, 1);
    host = {this, msec, ms_sleep, execute, now_ns, nullptr, nullptr, nullptr, cpu_ns};
    if (how != own) host.floor_ms = floor_ms;
    if (how == in_ns) host.sleep_ns = sleep_ns;
    if (how == in_ns) host.throttle = throttle;
  }
  simulated_host(const simulated_host&) = delete;
  simulated_host& operator=(const simulated_host&) = delete;

  simulation world;
  simh_host host{};

 private:
  static constexpr nanoseconds a_thousand_instructions = 5us;

  static simulated_host& at(void* context) { return *static_cast<simulated_host*>(context); }
  nanoseconds now() {
    return sleeper_.system().now(punctual::clock_kind::monotonic).time_since_epoch();
  }

  static std::uint32_t msec(void* context) {
    return static_cast<std::uint32_t>(at(context).now() / 1ms);
  }
  static std::uint32_t ms_sleep(void* context, std::uint32_t length) {
    simulated_host& self = at(context);
    const nanoseconds from = self.now();
    const punctual::instant until{from + std::chrono::milliseconds{length}};
    if (self.how_ == own) {
      self.sleeper_.system().block_until(punctual::clock_kind::monotonic, until,
                                         punctual::slack::as_is);
      return static_cast<std::uint32_t>(self.now() / 1ms - from / 1ms);
    }
    self.sleeper_.sleep_until(until);
    return self.whole(self.now() - from);
  }
  static void execute(void* context, std::int64_t instructions) {
    at(context).world.work(instructions * a_thousand_instructions / 1000);
  }
  static std::int64_t now_ns(void* context) {
    return at(context).world.time().time_since_epoch().count();
  }
  static std::int64_t cpu_ns(void* context) { return at(context).world.count.ran.count(); }
  static std::uint32_t floor_ms(void* context) {
    at(context).sleeper_.calibrate(20ms);
    return 1;
  }
  static std::int64_t sleep_ns(void* context, std::int64_t length) {
    simulated_host& self = at(context);
    const nanoseconds from = self.now();
    self.sleeper_.sleep_until(punctual::instant{from + nanoseconds{length}});
    return (self.now() - from).count();
  }
  static std::uint32_t throttle(void* context, double instructions, double rate) {
    simulated_host& self = at(context);
    const nanoseconds from = self.now();
    self.due_ += nanoseconds{static_cast<std::int64_t>(instructions / rate * 1e9)};
    if (self.due_ < from - 100ms) self.due_ = from;
    self.sleeper_.sleep_until(punctual::instant{self.due_});
    return self.whole(self.now() - from);
  }
  std::uint32_t whole(nanoseconds slept) {
    const nanoseconds all = slept + carried_;
    const auto ms = static_cast<std::uint32_t>((all + 500us) / 1ms);
    carried_ = all - std::chrono::milliseconds{ms};
    return ms;
  }

  way how_;
  punctual::basic_sleeper<simulated_platform> sleeper_{{}, simulated_platform{world}};
  nanoseconds carried_{0}, due_{0};
};

constexpr const char* netbsd = "netbsd, 100 Hz";

}  // namespace

TEST_CASE("the stand-in suffers from NetBSD's 20 ms as simh does", "[simh][kernels]") {
  simulated_host bad(netbsd, simulated_host::own), good("linux", simulated_host::own);
  const simh_start start = simh_probe(&bad.host);
  CHECK(start.sleep_min_ms >= 19);
  CHECK(start.sleep_min_ms <= 20);
  CHECK(start.tick_hz <= 52);
  const simh_start good_start = simh_probe(&good.host);
  CHECK(good_start.sleep_min_ms == 1);
  CHECK(start.took_s > good_start.took_s + 5);
  const simh_clock_run clock = simh_run_clock(&bad.host, &start, 60, 20000, 10, 30);
  const simh_clock_run good_clock = simh_run_clock(&good.host, &good_start, 60, 20000, 10, 30);
  const simh_throttle_run throttle = simh_run_throttle(&bad.host, &start, 1e6, 1, 30);
  std::printf("own sleep      start      clock    off by   idle    throttle\n");
  std::printf("netbsd    %8.3f s %8.3f Hz %6.1f ms %5.1f %% %8.0f /s\n", start.took_s, clock.hz,
              clock.skew_ms, clock.idle * 100, throttle.rate);
  std::printf("linux     %8.3f s %8.3f Hz %6.1f ms %5.1f %%\n", good_start.took_s, good_clock.hz,
              good_clock.skew_ms, good_clock.idle * 100);
  CHECK(clock.skew_ms > 10);
  CHECK(std::abs(throttle.rate / 1e6 - 1) > 0.01);
}

TEST_CASE("with punctual the guest's clock and the throttle are right on every kernel",
          "[simh][kernels]") {
  for (const char* kernel :
       {netbsd, "linux", "linux without high-res, 250 Hz", "user-mode linux", "freebsd 14"}) {
    for (const auto way : {simulated_host::in_ms, simulated_host::in_ns}) {
      INFO(kernel << ", " << way);
      simulated_host h(kernel, way);
      const simh_start start = simh_probe(&h.host);
      CHECK(start.sleep_min_ms == 1);
      CHECK(start.tick_hz == 1000);
      CHECK(start.took_s <= 0.25);
      // In whole milliseconds its ticks are up to 100 ms off: over 20 s that alone is 0.2 %.
      const simh_clock_run clock =
          simh_run_clock(&h.host, &start, 60, 20000, 10, way == simulated_host::in_ms ? 60 : 20);
      std::printf("%-31s %s: start %.3f s, clock %.4f Hz, ticks up to %.2f ms off, CPU %.1f %%\n",
                  kernel, way == simulated_host::in_ms ? "ms" : "ns", start.took_s, clock.hz,
                  clock.skew_ms, clock.cpu * 100);
      // A clock read of 38 us is a twentieth of a sleep in whole milliseconds there.
      CHECK(clock.hz == Catch::Approx(60).epsilon(way == simulated_host::in_ms ? 0.002 : 0.001));
      // What a sleep was too long, where the budget forbids to spin for more, is made up for.
      if (way == simulated_host::in_ns) CHECK(clock.skew_ms < 1000.0 / 60 / 2);
      CHECK(clock.cpu < punctual::tuning{}.cpu_budget + 0.05);
      if (way == simulated_host::in_ms) continue;  // its rate is as good as the mean of its sleeps
      for (const double rate : {1e5, 1e7}) {
        const simh_throttle_run t = simh_run_throttle(&h.host, &start, rate, 0.5, 2);
        CHECK(t.rate == Catch::Approx(rate).epsilon(0.01));
      }
    }
  }
}
