// Waits in virtual time without a sleeper: a planner, a kernel model and a spin that is one step.
//
// The simulated platform takes a spin in steps of some 50 ns, which is exact and slow. For
// thousands of hours of waits the spin is a jump here: it ends when the machine's clock first shows
// the deadline. Everything else is the model's own. Also the planner to compare with, which knows
// all.
#pragma once

#include <punctual/estimate/margin.hpp>
#include <punctual/testing/kernels.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace virtual_waits {

using punctual::between;
using punctual::instant;
using punctual::later;
using punctual::nanoseconds;

/// A kernel and the true time, for one thread.
class machine {
 public:
  /// Takes over what `install` has put into a simulation.
  explicit machine(const punctual::testing::simulation& world)
      : kernel_(world.kernel), precise_(world.precise), cost_(world.cost), time_(world.time()) {}

  instant time() const { return time_; }
  void pass(nanoseconds length) { time_ += length; }

  /// A reading of the clock that waits are on.
  instant now() {
    time_ += cost_.clock_read;
    return precise_(time_);
  }
  instant shown() const { return precise_(time_); }

  void block(instant until) {
    time_ += cost_.native_call / 2;
    time_ = std::max(time_, kernel_({time_, until, punctual::slack::tight, false}));
    time_ += cost_.native_call - cost_.native_call / 2;
  }

  /// Spins until the clock shows `deadline`, or for `at_most` where it stands still.
  nanoseconds spin(instant deadline, nanoseconds at_most = nanoseconds::max()) {
    const instant began = time_;
    if (time_ < deadline && precise_(deadline) == deadline &&
        precise_(deadline - nanoseconds{1}) < deadline) {
      time_ = deadline;
      return time_ - began;
    }
    instant low = time_, high = std::max(time_, deadline);
    while (precise_(high) < deadline) high += std::max<nanoseconds>(high - low, nanoseconds{100});
    while (low < high) {  // the first true time at which it is shown
      const instant middle = low + (high - low) / 2;
      if (precise_(middle) >= deadline) {
        high = middle;
      } else {
        low = middle + nanoseconds{1};
      }
    }
    if (high - began > at_most && precise_(began + at_most) == precise_(began))
      high = began + at_most;
    time_ = std::max(time_, high);
    return time_ - began;
  }

  nanoseconds native_cost() const { return cost_.native_call; }

 private:
  punctual::testing::simulation::kernel_model kernel_;
  punctual::testing::simulation::clock_view precise_;
  punctual::testing::simulation::costs cost_;
  instant time_;
};

/// What one wait did; times are true ones.
struct waited {
  nanoseconds late{0}, spun{0}, took{0};
  int native = 0;
  bool past = false;
};

/// Waits as the sleeper does: plan, block, learn; spin; charge the budget.
class thread {
 public:
  thread(machine& on, const punctual::tuning& how) : on_(on), planner(how), budget(how) {}

  waited wait_until(instant deadline) {
    waited did;
    const instant began = on_.time();
    instant now = on_.now();
    if (now >= deadline) {
      did.past = true;
      did.late = now - deadline;
      return did;
    }
    bool spin_is_no_use = false;
    while (now < deadline) {
      auto plan = planner.plan(now, deadline, budget.available(now));
      if (spin_is_no_use) plan = {true, deadline, nanoseconds::zero()};
      if (plan.block) {
        on_.block(plan.until);
        const instant woke = on_.now();
        ++did.native;
        if (woke > now) {
          planner.woke(now, plan.until, woke);
          planner.native_cost(on_.native_cost());
          spin_is_no_use = false;
        }
        now = woke;
      } else {
        did.spun += on_.spin(deadline, std::chrono::microseconds{256});
        spin_is_no_use = on_.shown() < deadline;
        now = on_.shown();
      }
    }
    budget.spent(now, did.spun, 0);
    did.late = now - deadline;
    did.took = on_.time() - began;
    return did;
  }

 private:
  machine& on_;

 public:
  punctual::wait_planner planner;
  punctual::spin_budget budget;
};

/// Waits as one would who knows the kernel, the phase of its ticks and how its latency is
/// distributed.
///
/// Takes, again and again, the longest native wait that ends before the deadline if the latency is
/// the quantile; spins where there is none. Requests are 1 us or longer: no program can hit a
/// shorter one, since the call itself takes longer.
class informed_thread {
 public:
  using wake_function = std::function<instant(instant now, instant until)>;
  static constexpr nanoseconds shortest = std::chrono::microseconds{1};

  /// @param wake  The kernel's, with no latency and nothing left to chance: its latest.
  /// @param latency  What a share `punctuality` of the latencies stays below.
  informed_thread(machine& on, wake_function wake, nanoseconds latency)
      : on_(on), wake_(std::move(wake)), latency_(latency) {}

  /// The latest request whose wake-up comes before the deadline; the deadline itself if there is
  /// none.
  ///
  /// A later request never ends a wait sooner, so bisection finds it.
  instant request(instant now, instant deadline) const {
    // As the kernel will see it, half a call later.
    const instant entered = now + on_.native_cost() / 2;
    const auto in_time = [&](instant until) {
      return wake_(entered, until) + latency_ <= deadline;
    };
    instant low = entered + shortest, high = deadline;
    if (low >= deadline || !in_time(low) || wake_(entered, low) == instant::max()) return deadline;
    while (high - low > nanoseconds{1}) {
      const instant middle = low + (high - low) / 2;
      (in_time(middle) ? low : high) = middle;
    }
    return low;
  }

  waited wait_until(instant deadline) {
    waited did;
    const instant began = on_.time();
    instant now = on_.now();
    if (now >= deadline) {
      did.past = true;
      did.late = now - deadline;
      return did;
    }
    while (now < deadline) {
      const instant until = request(on_.time(), deadline);
      if (until == deadline || wake_(on_.time(), until) - on_.time() <= on_.native_cost()) break;
      on_.block(until);
      ++did.native;
      now = on_.now();
    }
    if (now < deadline) {
      did.spun = on_.spin(deadline);
      now = on_.shown();
    }
    did.late = now - deadline;
    did.took = on_.time() - began;
    return did;
  }

 private:
  machine& on_;
  wake_function wake_;
  nanoseconds latency_;
};

/// What a loop of waits did. Lateness is that of waits which began before their deadline.
struct run {
  double spin_share = 0, native_a_wait = 0, past_share = 0;
  nanoseconds late_p50{0}, late_p90{0}, late_p99{0}, late_most{0};
  std::int64_t early = 0, waits = 0;
  nanoseconds spun{0}, waited{0};
  std::vector<nanoseconds> late;

  void add(const virtual_waits::waited& did) {
    ++waits;
    spun += did.spun;
    waited += did.took;
    native_a_wait += did.native;
    if (did.late < nanoseconds::zero()) ++early;
    if (did.past) {
      past_share += 1;
    } else {
      late.push_back(did.late);
    }
  }
  void finish() {
    std::sort(late.begin(), late.end());
    const auto at = [&](double share) {
      return late.empty()
                 ? nanoseconds::zero()
                 : late[std::min(late.size() - 1, static_cast<std::size_t>(
                                                      share * static_cast<double>(late.size())))];
    };
    late_p50 = at(0.5);
    late_p90 = at(0.9);
    late_p99 = at(0.99);
    late_most = at(1.0);
    const auto n = static_cast<double>(std::max<std::int64_t>(1, waits));
    native_a_wait /= n;
    past_share /= n;
    spin_share = waited.count() > 0
                     ? static_cast<double>(spun.count()) / static_cast<double>(waited.count())
                     : 0.0;
  }
};

/// A loop at `num / den` Hz with `work` before each wait; deadlines missed by a period are skipped.
template <class Thread>
void loop(machine& on, Thread& thread, std::int64_t num, std::int64_t den, nanoseconds work,
          int warm_up, int waits, run& sum) {
  const instant anchor = on.time();
  std::int64_t beat = 0;
  const auto due = [&](std::int64_t n) {
    return later(anchor, nanoseconds{static_cast<std::int64_t>(punctual::multiply_divide(
                             static_cast<std::uint64_t>(n * den), 1'000'000'000,
                             static_cast<std::uint64_t>(num), punctual::rounding::down))});
  };
  for (int i = 0; i < warm_up + waits; ++i) {
    on.pass(work);
    ++beat;
    while (due(beat + 1) <= on.time()) ++beat;
    const waited did = thread.wait_until(due(beat));
    if (i >= warm_up) sum.add(did);
  }
}

}  // namespace virtual_waits
