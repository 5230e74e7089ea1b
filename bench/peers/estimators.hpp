// How each peer turns the oversleeps it has seen into a margin.
//
// One tiny interface, so that recorded traces can be fed to all of them:
//   nanoseconds margin(nanoseconds length) const   how long before the deadline of a wait of that
//                                                  length it stops trusting the kernel, ≥ 0
//   void observe(nanoseconds length, nanoseconds overshoot)   one native wait, as asked and as late
//   void begin()                                   a new wait begins; most ignore it
// Written anew from descriptions of the projects named; seeds and constants are theirs.
#pragma once

#include <punctual/platform/seam.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>

namespace peers {

using punctual::nanoseconds;
using std::chrono::microseconds;
using std::chrono::milliseconds;

template <class E>
concept estimator = requires(E e, const E c, nanoseconds length, nanoseconds overshoot) {
  { c.margin(length) } -> std::same_as<nanoseconds>;
  e.observe(length, overshoot);
  e.begin();
};

/// A constant. spin_sleep 125 us on Linux; Dolphin 1 ms; PPSSPP 1.02;
/// DuckStation 0.5; PCSX2 and OBS 1 to 2.
class constant_margin {
 public:
  constexpr explicit constant_margin(nanoseconds margin) : margin_(margin) {}
  nanoseconds margin(nanoseconds) const { return margin_; }
  void observe(nanoseconds, nanoseconds) {}
  void begin() {}

 private:
  nanoseconds margin_;
};

/// A twentieth of the wait (raylib).
class percent_margin {
 public:
  nanoseconds margin(nanoseconds length) const { return length / 20; }
  void observe(nanoseconds, nanoseconds) {}
  void begin() {}
};

/// Four times the granularity, assumed to be 0.5 ms outside
/// Windows, and a sixth of the wait (DXVK).
class dxvk_margin {
 public:
  nanoseconds margin(nanoseconds length) const { return 4 * microseconds{500} + length / 6; }
  void observe(nanoseconds, nanoseconds) {}
  void begin() {}
};

/// Mean and one standard deviation of all 1 ms sleeps, seeded with one of 5 ms (Welford's sums).
///
/// The 2020 article on accurate sleeping, and after it UTL, Odin, DOSBox Staging, a Godot proposal.
class mean_sigma_margin {
 public:
  static constexpr nanoseconds step = milliseconds{1};

  nanoseconds margin(nanoseconds) const {
    return nanoseconds{static_cast<std::int64_t>(estimate_)};
  }
  void observe(nanoseconds length, nanoseconds overshoot) {
    const auto took = static_cast<double>((length + overshoot).count());
    ++count_;
    const double delta = took - mean_;
    mean_ += delta / count_;
    squares_ += delta * (took - mean_);
    estimate_ = mean_ + std::sqrt(squares_ / (count_ - 1));
  }
  void begin() {}

 private:
  double estimate_ = 5e6, mean_ = 5e6, squares_ = 0, count_ = 1;  // ns
};

/// The average of all oversleeps, each with weight 1/100; sleeps
/// that were not late do not count (MAME).
class mean_ema_margin {
 public:
  nanoseconds margin(nanoseconds) const { return nanoseconds{thousandths_ / 1000}; }
  void observe(nanoseconds, nanoseconds overshoot) {
    if (overshoot <= nanoseconds::zero()) return;
    thousandths_ = (thousandths_ * 99 + 1000 * overshoot.count()) / 100;
  }
  void begin() {}

 private:
  std::int64_t thousandths_ = 0;  // of a nanosecond, as there
};

/// The largest overhead of a 1 ms step, eased down by a thousandth
/// each wait, and the step (Airbus sen).
class max_decay_margin {
 public:
  static constexpr nanoseconds step = milliseconds{1};

  nanoseconds margin(nanoseconds) const {
    return step + nanoseconds{static_cast<std::int64_t>(overhead_)};
  }
  void observe(nanoseconds, nanoseconds overshoot) {
    overhead_ = std::max(overhead_, static_cast<double>(overshoot.count()));
  }
  void begin() { overhead_ *= 0.999; }

 private:
  double overhead_ = 1e6;  // ns
};

/// Up at once to the largest lateness, down by a fiftieth of the
/// way each frame (gamescope's draw time).
class peak_hold_margin {
 public:
  nanoseconds margin(nanoseconds) const { return peak_; }
  void observe(nanoseconds, nanoseconds overshoot) {
    const nanoseconds seen = std::max(overshoot, nanoseconds::zero());
    peak_ = seen > peak_ ? seen : (peak_ * 98 + seen * 2) / 100;
  }
  void begin() {}

 private:
  nanoseconds peak_{0};
};

/// The last frame's oversleep; more than half of a frame is taken as
/// none (MangoHud; bevy_framepace alike).
class last_frame_margin {
 public:
  nanoseconds margin(nanoseconds) const { return last_; }
  void observe(nanoseconds length, nanoseconds overshoot) {
    last_ = overshoot > (length + last_) / 2 ? nanoseconds::zero() : overshoot;
  }
  void begin() {}

 private:
  nanoseconds last_{0};
};

/// Calls `f(name, estimator)` with a fresh one of each kind that
/// has a rule from the past or the length.
///
/// SDL's longest-sleep-of-this-call is not among them: it forgets everything between two waits.
template <class F>
void for_each_estimator(F f) {
  f("fixed-125us", constant_margin{microseconds{125}});
  f("fixed-1ms", constant_margin{milliseconds{1}});
  f("percent", percent_margin{});
  f("dxvk", dxvk_margin{});
  f("mean-sigma", mean_sigma_margin{});
  f("mean-ema", mean_ema_margin{});
  f("max-decay", max_decay_margin{});
  f("peak-hold", peak_hold_margin{});
  f("last-frame", last_frame_margin{});
}

}  // namespace peers
