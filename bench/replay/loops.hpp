// Loops at a rate on every kernel model: our planner beside one who knows the kernel, and the
// peers.
#pragma once

#include "../peers/strategies.hpp"
#include "support/virtual_waits.hpp"

#include <punctual/testing/kernels.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace replay {

using punctual::between;
using punctual::instant;
using punctual::nanoseconds;
using std::chrono::microseconds;
using std::chrono::milliseconds;
namespace sim = punctual::testing;
namespace kernels = punctual::testing::kernels;

/// A kernel model with a latency around it, and the same with nothing left to chance.
struct model {
  std::string name;
  std::function<void(sim::simulation&, sim::latency)> install;
  virtual_waits::informed_thread::wake_function latest;
  std::string exempt{};      // why the check does not hold it to the planner; empty: it does
  std::int64_t only_at = 0;  // Hz, the rate that is exempt, with work; 0: all of them
};

template <class Kernel>
model of(std::string name, Kernel kernel, sim::interrupts others = {}, std::string exempt = {},
         std::int64_t only_at = 0) {
  return {std::move(name),
          [=](sim::simulation& world, sim::latency dispatch) {
            sim::install(world, sim::with_interrupts(
                                    others, sim::with_latency(std::move(dispatch), kernel)));
          },
          [kernel](instant now, instant until) {
            sim::surroundings none;
            return kernel.wake({now, until, punctual::slack::tight, false}, none);
          },
          std::move(exempt), only_at};
}

inline std::vector<model> all_models() {
  using namespace kernels;
  const sim::interrupts busy = sim::interrupts::poisson(milliseconds{2});
  return {
      of("netbsd, 100 Hz", netbsd{100}),
      of("netbsd, 1000 Hz", netbsd{1000}),
      of("netbsd, 100 Hz, short ticks", netbsd{100, {}, {-20'000'000}}),
      of("netbsd 6, 100 Hz", netbsd_6{100}),
      of("openbsd", openbsd{100}),
      of("freebsd 9 nanosleep, 100 Hz", freebsd_9_nanosleep{100}),
      of("freebsd 9 nanosleep, 1000 Hz", freebsd_9_nanosleep{1000}),
      of("freebsd 9 nanosleep, 5000 Hz, long ticks", freebsd_9_nanosleep{5000, {}, {6'200'000}}, {},
         "ends on ticks of 201 us, but which one is decided by another clock of 1.006 ms"),
      of("freebsd 9 select, 1000 Hz", freebsd_9_select{1000}),
      of("freebsd 14", freebsd_14{1000}, {},
         "requests of 16 ms or more end 1 to 2 ms later: waits of 18 ms lie on that step, and the "
         "share that may miss falls down it",
         50),
      of("freebsd 14, busy", freebsd_14{1000}, busy, "the same step", 50),
      of("freebsd 15", freebsd_15{1000}),
      of("dragonfly", dragonfly{100}),
      of("illumos", illumos{}),
      of("linux", linux_highres{}),
      of("linux, real-time thread", linux_highres{nanoseconds{0}}),
      of("linux select", linux_select{}),
      of("linux without high-res, 100 Hz", linux_ticks{100}),
      of("linux without high-res, 250 Hz", linux_ticks{250}),
      of("linux without high-res, 300 Hz", linux_ticks{300}),
      of("linux without high-res, 1000 Hz", linux_ticks{1000}),
      of("linux 2.4", linux_jiffies{100}),
      of("virtual machine", guest{}),
      of("windows, 15.625 ms", windows{}),
      of("windows, 1 ms", windows{milliseconds{1}}),
      of("windows, 0.9765625 ms", windows{nanoseconds{976'563}}),
      of("windows, 0.5 ms", windows{nanoseconds{499'500}}),
      of("windows timer, 15.625 ms", windows{microseconds{15'625}, {}, nanoseconds{100}}),
      of("windows timer, 0.5 ms", windows{nanoseconds{499'500}, {}, nanoseconds{100}}),
      of("windows high-resolution timer", windows_high_resolution{}),
      of("macos", macos{}),
      of("macos, busy", macos{}, busy),
      of("macos, background", macos::background(), {},
         "late by 32 times the request: what is left is found by trying, one wait in 128"),
      of("macos, real-time thread", macos::real_time()),
  };
}

struct rate {
  std::int64_t num, den;
  const char* name;
};
inline constexpr rate rates[] = {{30, 1, "30"},    {50, 1, "50"},   {60'000, 1001, "59.94"},
                                 {60, 1, "60"},    {100, 1, "100"}, {144, 1, "144"},
                                 {1000, 1, "1000"}};

/// An idle desktop's latency, median 8 us and one in a hundred above 60: 10,007 draws of it.
inline const std::vector<nanoseconds>& drawn_latencies() {
  static const std::vector<nanoseconds> drawn = [] {
    sim::latency draw = sim::latency::log_normal(microseconds{8}, microseconds{60}, 99);
    std::vector<nanoseconds> all(10'007);
    for (nanoseconds& each : all) each = draw();
    return all;
  }();
  return drawn;
}
/// The same, over and over, begun elsewhere for each phase: a draw costs more than a whole wait.
inline sim::latency idle_latency(std::uint64_t seed) {
  return sim::latency([next = static_cast<std::size_t>(seed * 1009)](sim::generator&) mutable {
    return drawn_latencies()[next++ % drawn_latencies().size()];
  });
}
/// In order of length.
inline std::vector<nanoseconds> latencies() {
  std::vector<nanoseconds> all = drawn_latencies();
  std::sort(all.begin(), all.end());
  return all;
}
inline nanoseconds quantile(const std::vector<nanoseconds>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

/// One machine at one of the starting phases: where on its ticks the loop begins.
inline virtual_waits::machine at_phase(const model& m, int phase, int phases) {
  sim::simulation world(instant{std::chrono::seconds{1000}} + milliseconds{20} * phase / phases);
  m.install(world, idle_latency(static_cast<std::uint64_t>(phase) + 1));
  return virtual_waits::machine(world);
}

inline virtual_waits::run ours(const model& m, const rate& r, nanoseconds work, int phases,
                               const punctual::tuning& how, int warm_up, int waits) {
  virtual_waits::run sum;
  for (int phase = 0; phase < phases; ++phase) {
    virtual_waits::machine on = at_phase(m, phase, phases);
    virtual_waits::thread thread(on, how);
    virtual_waits::loop(on, thread, r.num, r.den, work, warm_up, waits, sum);
  }
  sum.finish();
  return sum;
}

/// Begun `later_by` later, so that both are judged over the same stretch of ticks.
inline virtual_waits::run informed(const model& m, const rate& r, nanoseconds work, int phases,
                                   nanoseconds latency, nanoseconds later_by, int waits) {
  virtual_waits::run sum;
  for (int phase = 0; phase < phases; ++phase) {
    virtual_waits::machine on = at_phase(m, phase, phases);
    on.pass(later_by);
    virtual_waits::informed_thread thread(on, m.latest, latency);
    virtual_waits::loop(on, thread, r.num, r.den, work, 0, waits, sum);
  }
  sum.finish();
  return sum;
}

/// A peer's strategy as a thread: its spin is made of clock readings of 2 us here, for speed.
template <class Strategy>
class peer_thread {
 public:
  peer_thread(virtual_waits::machine& on, Strategy how) : on_(on), how_(std::move(how)) {
    how_.prepare(*this);
  }

  virtual_waits::waited wait_until(instant deadline) {
    virtual_waits::waited did;
    const instant began = on_.time();
    if (on_.shown() >= deadline) {
      did.past = true;
      did.late = on_.shown() - deadline;
      return did;
    }
    slept_ = nanoseconds::zero();
    native_ = 0;
    how_.sleep_until(*this, deadline);
    did.late = on_.shown() - deadline;
    did.took = on_.time() - began;
    did.spun = did.took - slept_;
    did.native = native_;
    return did;
  }

  instant now() {
    on_.pass(step);
    return on_.shown();
  }
  std::uint64_t counter() {
    on_.pass(step);
    return static_cast<std::uint64_t>(on_.time().time_since_epoch().count());
  }
  void sleep_for(nanoseconds length) { sleep_until(on_.shown() + length); }
  void sleep_until(instant until) {
    const instant began = on_.time();
    on_.block(until);
    slept_ += on_.time() - began;
    ++native_;
  }
  void std_sleep_until(instant until) { sleep_until(until); }
  void timer_until(instant until) { sleep_until(until); }
  void pause() const {}
  void yield() const {}
  void small_slack(bool) const {}

 private:
  static constexpr nanoseconds step = microseconds{2};

  virtual_waits::machine& on_;
  Strategy how_;
  nanoseconds slept_{0};
  int native_ = 0;
};

template <class Strategy>
virtual_waits::run peer(const Strategy& how, const model& m, const rate& r, nanoseconds work,
                        int phases, int warm_up, int waits) {
  virtual_waits::run sum;
  for (int phase = 0; phase < phases; ++phase) {
    virtual_waits::machine on = at_phase(m, phase, phases);
    peer_thread<Strategy> thread(on, how);
    virtual_waits::loop(on, thread, r.num, r.den, work, warm_up, waits, sum);
  }
  sum.finish();
  return sum;
}

}  // namespace replay
