// Every kernel that wakes sleepers badly, as an exact model, for your loop's tests and for ours.
//
// How does your frame loop behave on NetBSD at 100 Hz, or on Windows at 15.6 ms? Run it there, in
// milliseconds and in the same way each time:
//
//   namespace sim = punctual::testing;
//   sim::simulation world;
//   sim::install(world, sim::kernels::netbsd{.hz = 100});
//   punctual::basic_sleeper<sim::simulated_platform> sleeper({}, sim::simulated_platform(world));
//   ... wait with `sleeper`, work with world.work(3ms), judge by world.time() ...
//
// A model is a small struct: parameters, `wake(request, surroundings)`, and its clocks where they
// are not ideal. What surrounds the kernel is put around the model:
//
//   const auto late = sim::latency::log_normal(8us, 60us);
//   const auto others = sim::interrupts::poisson(2ms);
//   sim::install(world, with_interrupts(others, with_latency(late, sim::kernels::macos{})));
//
// `kernels::all()` lists ready-made machines by name, with latencies that such machines have, for a
// loop over all of them. Side layer: nothing here is part of a wait.
#pragma once

#include <punctual/testing/kernels/freebsd.hpp>
#include <punctual/testing/kernels/linux.hpp>
#include <punctual/testing/kernels/machine.hpp>
#include <punctual/testing/kernels/netbsd.hpp>
#include <punctual/testing/kernels/tick.hpp>
#include <punctual/testing/kernels/windows.hpp>
#include <punctual/testing/simulated_platform.hpp>
#include <punctual/testing/surroundings.hpp>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace punctual::testing::kernels {

/// A ready-made machine.
struct ready_made {
  std::string_view name;
  bool wakes_early;  ///< whether this kernel may end a wait before the asked instant
  std::function<void(simulation& world, std::uint64_t seed)> install;
};

/// An idle desktop's dispatch latency around a model: median 8 µs, one in a hundred above 60 µs.
template <kernel_like Model>
machine<Model> idle(std::uint64_t seed, Model model) {
  using std::chrono::microseconds;
  return with_latency(latency::log_normal(microseconds{8}, microseconds{60}, seed), model);
}

/// The same when busy: once in 50 wake-ups a tail from 100 µs to 20 ms, and other interrupts.
template <kernel_like Model>
machine<Model> busy(std::uint64_t seed, Model model) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  return with_interrupts(
      interrupts::poisson(milliseconds{2}, seed),
      with_latency(latency::heavy_tail(latency::log_normal(microseconds{8}, microseconds{60}, seed),
                                       50, microseconds{100}, milliseconds{20}, seed + 1),
                   model));
}

/// All ready-made machines.
inline const std::vector<ready_made>& all() {
  using namespace std::chrono_literals;
  constexpr auto on_idle = [](auto model) {
    return [model](simulation& world, std::uint64_t seed) { install(world, idle(seed, model)); };
  };
  constexpr auto on_busy = [](auto model) {
    return [model](simulation& world, std::uint64_t seed) { install(world, busy(seed, model)); };
  };
  // System calls by ptrace: a clock read is one.
  constexpr auto on_user_mode = [](auto model) {
    return [model](simulation& world, std::uint64_t seed) {
      install(world, idle(seed, model));
      world.cost.clock_read = world.cost.coarse_read = 38us;
    };
  };
  constexpr auto away = [](macos model) {
    model.idle_level = 128;
    return model;
  };
  constexpr nanoseconds phase = 1'234'567ns;  // so that no tick falls on a whole second
  constexpr parts_per_billion short_by_2_percent{-20'000'000}, long_by_0_62_percent{6'200'000};
  static const std::vector<ready_made> machines{
      {"ideal", false, [](simulation& world, std::uint64_t) { install(world, ideal{}); }},
      {"netbsd, 100 Hz", false, on_idle(netbsd{100, phase})},
      {"netbsd, 1000 Hz", false, on_idle(netbsd{1000, phase})},
      {"netbsd, 100 Hz, short ticks", false, on_idle(netbsd{100, phase, short_by_2_percent})},
      {"netbsd 6, 100 Hz", false, on_idle(netbsd_6{100, phase})},
      {"openbsd", true, on_idle(openbsd{100, phase})},
      {"freebsd 9 nanosleep, 100 Hz", false, on_idle(freebsd_9_nanosleep{100, phase})},
      {"freebsd 9 nanosleep, 1000 Hz", false, on_idle(freebsd_9_nanosleep{1000, phase})},
      {"freebsd 9 nanosleep, 5000 Hz, long ticks", false,
       on_idle(freebsd_9_nanosleep{5000, phase, long_by_0_62_percent})},
      {"freebsd 9 select, 1000 Hz", false, on_idle(freebsd_9_select{1000, phase})},
      {"freebsd 14", false, on_idle(freebsd_14{1000, phase})},
      {"freebsd 14, busy", false, on_busy(freebsd_14{1000, phase})},
      {"freebsd 15", false, on_idle(freebsd_15{1000, phase})},
      {"dragonfly", false, on_idle(dragonfly{100, phase})},
      {"illumos", false, on_idle(illumos{})},
      {"linux", false, on_idle(linux_highres{50us, 250, phase})},
      {"linux, busy", false, on_busy(linux_highres{50us, 250, phase})},
      {"linux, real-time thread", false, on_idle(linux_highres{0us, 250, phase})},
      {"linux select", false, on_idle(linux_select{50us, false, 250, phase})},
      {"linux without high-res, 100 Hz", false, on_idle(linux_ticks{100, phase})},
      {"linux without high-res, 250 Hz", false, on_idle(linux_ticks{250, phase})},
      {"linux without high-res, 300 Hz", false, on_idle(linux_ticks{300, phase})},
      {"linux without high-res, 1000 Hz", false, on_idle(linux_ticks{1000, phase})},
      {"linux, clocksource=jiffies", false, on_idle(linux_ticks{250, phase, {}, true})},
      {"user-mode linux", false, on_user_mode(linux_ticks{100, phase})},
      {"linux 2.4", false, on_idle(linux_jiffies{100, phase})},
      {"virtual machine", false, on_idle(guest{.phase = phase})},
      {"virtual machine, busy host", false, on_busy(guest{.phase = phase})},
      {"windows, 15.625 ms", true, on_idle(windows{15'625us, phase})},
      {"windows, 1 ms", true, on_idle(windows{1ms, phase})},
      {"windows, 0.9765625 ms", true, on_idle(windows{976'563ns, phase})},
      {"windows, 0.5 ms", true, on_idle(windows{499'500ns, phase})},
      {"windows timer, 15.625 ms", true, on_idle(windows{15'625us, phase, 100ns})},
      {"windows timer, 0.5 ms", true, on_idle(windows{499'500ns, phase, 100ns})},
      {"windows high-resolution timer", false, on_idle(windows_high_resolution{500us, phase})},
      {"cygwin", true, on_idle(cygwin{10ms, phase})},
      {"macos", false, on_idle(macos{})},
      {"macos, busy", false, on_busy(macos{})},
      {"macos, tier 1, user away", false, on_idle(away(macos::tier(1)))},
      {"macos, background", false, on_idle(macos::background())},
      {"macos, real-time thread", false, on_idle(macos::real_time())},
  };
  return machines;
}

/// The ready-made machine of that name. Throws std::out_of_range with the names that there are.
inline const ready_made& named(std::string_view name) {
  std::string names;
  for (const ready_made& each : all()) {
    if (each.name == name) return each;
    names += "\n  ";
    names += each.name;
  }
  throw std::out_of_range("no machine is called '" + std::string(name) + "'; there are:" + names);
}

}  // namespace punctual::testing::kernels
