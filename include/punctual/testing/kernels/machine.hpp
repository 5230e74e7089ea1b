// A kernel model with what surrounds it, and the way into a simulation.
//
// Side layer; see kernels.hpp for the models and for how all this is used.
#pragma once

#include <punctual/testing/simulated_platform.hpp>
#include <punctual/testing/surroundings.hpp>
#include <punctual/time.hpp>

#include <concepts>
#include <utility>

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
    return around.dispatched(asked.until > asked.now ? asked.until : asked.now);
  }
};

}  // namespace kernels

/// The machine with this dispatch latency.
template <kernel_like Model>
machine<Model> with_latency(const latency& dispatch, machine<Model> on) {
  on.around.dispatch = dispatch;
  return on;
}
template <kernel_like Model>
machine<Model> with_latency(const latency& dispatch, Model model) {
  return with_latency(dispatch, machine<Model>{std::move(model)});
}

/// The machine with these other interrupts.
template <kernel_like Model>
machine<Model> with_interrupts(const interrupts& others, machine<Model> on) {
  on.around.others = others;
  return on;
}
template <kernel_like Model>
machine<Model> with_interrupts(const interrupts& others, Model model) {
  return with_interrupts(others, machine<Model>{std::move(model)});
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

}  // namespace punctual::testing
