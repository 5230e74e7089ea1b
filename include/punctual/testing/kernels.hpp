// Every kernel that wakes sleepers badly, as an exact model, for your loop's tests and for ours.
//
// How does your frame loop behave on NetBSD at 100 Hz, or on Windows at 15.6 ms? Run it there, in
// milliseconds and in the same way each time:
//
//   namespace sim = punctual::testing;
//   sim::simulation world;
//   sim::install(world, sim::kernels::netbsd{.hz = 100});
//   punctual::basic_sleeper sleeper({}, sim::simulated_platform(world));
//   ... wait with `sleeper`, work with world.work(3ms), judge by world.time() ...
//
// A model is a small struct: parameters, `wake(request, surroundings)`, and its clocks where they are
// not ideal. What surrounds the kernel is put around the model:
//
//   sim::install(world, sim::with_interrupts(sim::interrupts::poisson(2ms),
//                       sim::with_latency(sim::latency::log_normal(8us, 60us), sim::kernels::macos{})));
//
// `kernels::all()` lists ready-made machines by name, with latencies that such machines have, for a
// loop over all of them. Side layer: nothing here is part of a wait.
#pragma once

#include <punctual/testing/kernels/freebsd.hpp>
#include <punctual/testing/kernels/linux.hpp>
#include <punctual/testing/kernels/netbsd.hpp>
#include <punctual/testing/kernels/tick.hpp>
#include <punctual/testing/kernels/windows.hpp>
#include <punctual/testing/simulated_platform.hpp>
#include <punctual/testing/surroundings.hpp>

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace punctual::testing {

/// What every model has: when the thread of this request runs again, as a function of the request
/// and what surrounds the kernel. Optional: `precise(t)` and `coarse(t)`, what its clocks show.
template <class M>
concept kernel_like = std::copyable<M> &&
    requires(const M m, native_request asked, surroundings s) {
  { m.wake(asked, s) } -> std::same_as<instant>;
};

/// A model and its surroundings: what `install` puts into a simulation.
template <kernel_like Model>
struct machine {
  Model model;
  surroundings around{};

  instant operator()(const native_request& asked) { return model.wake(asked, around); }
};

namespace kernels {

/// No kernel's fault at all: wakes at the instant, plus whatever latency is put around it.
struct ideal {
  instant wake(const native_request& asked, surroundings& around) const {
    return around.dispatched((std::max)(asked.now, asked.until));
  }
};

}  // namespace kernels

/// The machine with this dispatch latency.
template <kernel_like Model>
machine<Model> with_latency(latency dispatch, machine<Model> on) {
  on.around.dispatch = std::move(dispatch);
  return on;
}
template <kernel_like Model>
machine<Model> with_latency(latency dispatch, Model model) {
  return with_latency(std::move(dispatch), machine<Model>{std::move(model)});
}

/// The machine with these other interrupts.
template <kernel_like Model>
machine<Model> with_interrupts(interrupts others, machine<Model> on) {
  on.around.others = std::move(others);
  return on;
}
template <kernel_like Model>
machine<Model> with_interrupts(interrupts others, Model model) {
  return with_interrupts(std::move(others), machine<Model>{std::move(model)});
}

/// Makes the simulated machine run this kernel: its wake-ups, its clocks, and what they cost.
///
/// A kernel that offers programs no coarse clock shows the precise one in its place, at its price.
template <kernel_like Model>
void install(simulation& world, machine<Model> on) {
  const Model& model = on.model;
  world.precise = [](instant t) { return t; };
  if constexpr (requires { model.precise(instant{}); }) {
    world.precise = [model](instant t) { return model.precise(t); };
  }
  world.cost = {};
  if constexpr (requires { model.coarse(instant{}); }) {
    world.coarse = [model](instant t) { return model.coarse(t); };
  } else {
    world.coarse = world.precise;
    world.cost.coarse_read = world.cost.clock_read;
  }
  world.kernel = std::move(on);
}
template <kernel_like Model>
void install(simulation& world, Model model) {
  install(world, machine<Model>{std::move(model)});
}

namespace kernels {

/// A ready-made machine.
struct ready_made {
  std::string_view name;
  bool wakes_early;  ///< whether this kernel may end a wait before the asked instant
  void (*install)(simulation& world, std::uint64_t seed);
};

/// Puts an idle desktop's dispatch latency around a model: median 8 µs, one in a hundred above 60 µs.
template <kernel_like Model>
machine<Model> idle(std::uint64_t seed, Model model) {
  using std::chrono::microseconds;
  return with_latency(latency::log_normal(microseconds{8}, microseconds{60}, seed), model);
}

/// The same on a busy machine: once in 50 wake-ups a tail from 100 µs to 20 ms, and other interrupts.
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
  using chance = std::uint64_t;
  // A phase, so that no machine's ticks fall on whole seconds.
  static constexpr nanoseconds phase = 1'234'567ns;
  static const std::vector<ready_made> machines{
      {"ideal", false, [](simulation& w, chance) { install(w, ideal{}); }},
      {"netbsd, 100 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, netbsd{100, phase}));
       }},
      {"netbsd, 1000 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, netbsd{1000, phase}));
       }},
      {"netbsd, 100 Hz, short ticks", false,
       [](simulation& w, chance s) {
         install(w, idle(s, netbsd{100, phase, {-20'000'000}}));
       }},
      {"netbsd 6, 100 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, netbsd_6{100, phase}));
       }},
      {"openbsd", true,
       [](simulation& w, chance s) {
         install(w, idle(s, openbsd{100, phase}));
       }},
      {"freebsd 9 nanosleep, 100 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, freebsd_9_nanosleep{100, phase}));
       }},
      {"freebsd 9 nanosleep, 1000 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, freebsd_9_nanosleep{1000, phase}));
       }},
      {"freebsd 9 nanosleep, 5000 Hz, long ticks", false,
       [](simulation& w, chance s) {
         install(w, idle(s, freebsd_9_nanosleep{5000, phase, {6'200'000}}));
       }},
      {"freebsd 9 select, 1000 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, freebsd_9_select{1000, phase}));
       }},
      {"freebsd 14", false,
       [](simulation& w, chance s) {
         install(w, idle(s, freebsd_14{1000, phase}));
       }},
      {"freebsd 14, busy", false,
       [](simulation& w, chance s) {
         install(w, busy(s, freebsd_14{1000, phase}));
       }},
      {"freebsd 15", false,
       [](simulation& w, chance s) {
         install(w, idle(s, freebsd_15{1000, phase}));
       }},
      {"dragonfly", false,
       [](simulation& w, chance s) {
         install(w, idle(s, dragonfly{100, phase}));
       }},
      {"illumos", false, [](simulation& w, chance s) { install(w, idle(s, illumos{})); }},
      {"linux", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_highres{50us, 250, phase}));
       }},
      {"linux, busy", false,
       [](simulation& w, chance s) {
         install(w, busy(s, linux_highres{50us, 250, phase}));
       }},
      {"linux, real-time thread", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_highres{0us, 250, phase}));
       }},
      {"linux select", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_select{50us, false, 250, phase}));
       }},
      {"linux without high-res, 100 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_ticks{100, phase}));
       }},
      {"linux without high-res, 250 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_ticks{250, phase}));
       }},
      {"linux without high-res, 300 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_ticks{300, phase}));
       }},
      {"linux without high-res, 1000 Hz", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_ticks{1000, phase}));
       }},
      {"linux, clocksource=jiffies", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_ticks{250, phase, {}, true}));
       }},
      {"user-mode linux", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_ticks{100, phase}));
         w.cost.clock_read = 38us;  // a system call, by ptrace
         w.cost.coarse_read = 38us;
       }},
      {"linux 2.4", false,
       [](simulation& w, chance s) {
         install(w, idle(s, linux_jiffies{100, phase}));
       }},
      {"virtual machine", false,
       [](simulation& w, chance s) { install(w, idle(s, guest{.phase = phase})); }},
      {"virtual machine, busy host", false,
       [](simulation& w, chance s) { install(w, busy(s, guest{.phase = phase})); }},
      {"windows, 15.625 ms", true,
       [](simulation& w, chance s) {
         install(w, idle(s, windows{15'625us, phase}));
       }},
      {"windows, 1 ms", true,
       [](simulation& w, chance s) {
         install(w, idle(s, windows{1ms, phase}));
       }},
      {"windows, 0.9765625 ms", true,
       [](simulation& w, chance s) {
         install(w, idle(s, windows{976'563ns, phase}));
       }},
      {"windows, 0.5 ms", true,
       [](simulation& w, chance s) {
         install(w, idle(s, windows{499'500ns, phase}));
       }},
      {"windows timer, 15.625 ms", true,
       [](simulation& w, chance s) {
         install(w, idle(s, windows{15'625us, phase, 100ns}));
       }},
      {"windows timer, 0.5 ms", true,
       [](simulation& w, chance s) {
         install(w, idle(s, windows{499'500ns, phase, 100ns}));
       }},
      {"windows high-resolution timer", false,
       [](simulation& w, chance s) {
         install(w, idle(s, windows_high_resolution{500us, phase}));
       }},
      {"cygwin", true,
       [](simulation& w, chance s) {
         install(w, idle(s, cygwin{10ms, phase}));
       }},
      {"macos", false, [](simulation& w, chance s) { install(w, idle(s, macos{})); }},
      {"macos, busy", false, [](simulation& w, chance s) { install(w, busy(s, macos{})); }},
      {"macos, tier 1, user away", false,
       [](simulation& w, chance s) {
         macos model = macos::tier(1);
         model.idle_level = 128;
         install(w, idle(s, model));
       }},
      {"macos, background", false,
       [](simulation& w, chance s) { install(w, idle(s, macos::background())); }},
      {"macos, real-time thread", false,
       [](simulation& w, chance s) { install(w, idle(s, macos::real_time())); }},
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

}  // namespace kernels

}  // namespace punctual::testing
