// How the field sleeps until a deadline: one small class a strategy, behind one interface.
//
//   template <machine M> void prepare(M&)               once, before the first wait
//   template <machine M> void sleep_until(M&, instant)  one wait
//   static constexpr bool small_slack                   its thread runs at 1 ns of slack
//
// Written anew from descriptions of the projects named in each comment, with their defaults. They
// take a deadline where some of the projects take a length; the length is then measured from the
// call, which is what those projects' callers do. tests/unit/peers.test.cpp pins each of them.
#pragma once

#include "estimators.hpp"
#include "machine.hpp"

#include <algorithm>
#include <cstdint>

namespace peers {

/// What most strategies need not say.
struct plain_strategy {
  static constexpr bool small_slack = false;
  template <machine M>
  void prepare(M&) {}
};

/// `std::this_thread::sleep_until` on the steady clock (libstdc++, libc++).
struct standard : plain_strategy {
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    m.std_sleep_until(deadline);
  }
};

/// One absolute `clock_nanosleep`, gone on with after signals (POSIX).
struct kernel : plain_strategy {
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    m.sleep_until(deadline);
  }
};

/// The same at 1 ns of timer slack (RPCS3, horus).
struct kernel_small_slack : kernel {
  static constexpr bool small_slack = true;
};

/// One timer descriptor a thread, set once a wait and read (RPCS3).
struct timer_descriptor : plain_strategy {
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    m.timer_until(deadline);
  }
};

/// The clock, again and again: the limit on lateness.
struct spin : plain_strategy {
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    while (m.now() < deadline) {
    }
  }
};

/// One relative sleep of what is left but a constant, then the
/// clock with yields or pauses between reads.
///
/// spin_sleep 1.3 (125 us, yield, its defaults on Linux); Dolphin, PPSSPP, DuckStation, OBS, PCSX2
/// (constants of 0.5 to 2 ms, pause).
template <bool Yield>
class fixed_margin : public plain_strategy {
 public:
  explicit fixed_margin(nanoseconds margin) : margin_(margin) {}

  template <machine M>
  void sleep_until(M& m, instant deadline) {
    const nanoseconds left = deadline - m.now();
    if (left > margin_) m.sleep_for(left - margin_);
    while (m.now() < deadline) {
      if constexpr (Yield) {
        m.yield();
      } else {
        m.pause();
      }
    }
  }

 private:
  nanoseconds margin_;
};

/// A sleep of 95 % of the wait, the clock for the rest (raylib).
class percent : public plain_strategy {
 public:
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    const nanoseconds left = deadline - m.now();
    if (left > nanoseconds::zero()) m.sleep_for(left - margin_.margin(left));
    while (m.now() < deadline) {
    }
  }

 private:
  percent_margin margin_;
};

/// Sleeps down to a threshold that grows with the wait, then the clock (DXVK's frame limiter).
class dxvk : public plain_strategy {
 public:
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    instant now = m.now();
    const nanoseconds threshold = margin_.margin(deadline - now);
    while (deadline - now > threshold) {
      m.sleep_for(deadline - now - threshold);
      now = m.now();
    }
    while (m.now() < deadline) {
    }
  }

 private:
  dxvk_margin margin_;
};

/// Sleeps of 1 ms while more than their mean and one sigma is left, then the clock.
///
/// The 2020 article on accurate sleeping; UTL, Odin, DOSBox Staging, a Godot proposal.
class mean_sigma : public plain_strategy {
 public:
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    instant now = m.now();
    while (deadline - now > margin_.margin(deadline - now)) {
      m.sleep_for(margin_.step);
      const instant woke = m.now();
      margin_.observe(margin_.step, woke - now - margin_.step);
      now = woke;
    }
    while (m.now() < deadline) {
    }
  }

 private:
  mean_sigma_margin margin_;
};

/// Sleeps of 1 ms while more is left than the longest of this
/// call took, a shorter one, then pauses.
///
/// SDL 3.2 and 3.4, SDL_DelayPrecise.
struct in_call_max : plain_strategy {
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    constexpr nanoseconds step = milliseconds{1};
    instant now = m.now();
    nanoseconds longest = step;
    while (deadline - now > longest) {
      m.sleep_for(step);
      const instant woke = m.now();
      longest = std::max(longest, woke - now);
      now = woke;
    }
    if (deadline - now > longest - step) {
      m.sleep_for(deadline - now - (longest - step));
      now = m.now();
    }
    while (deadline - now > step) {
      m.sleep_for(step);
      now = m.now();
    }
    for (; now < deadline; now = m.now()) m.pause();
  }
};

/// Tenths of the wait, then 1 ms sleeps, then sleeps of no length,
/// and the last millisecond with pauses.
///
/// SDL's development line of 2025, SDL_DelayPrecise in five steps.
struct staged : plain_strategy {
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    constexpr nanoseconds step = milliseconds{1};
    instant now = m.now();
    if (deadline - now > 2 * step) {
      nanoseconds longest = step;
      const nanoseconds late = descend(m, now, deadline);
      if (late < longest) longest += late;
      while (deadline - now > longest) {
        m.sleep_for(step);
        const instant woke = m.now();
        if (woke >= deadline) return;
        longest = std::max(longest, woke - now);
        now = woke;
      }
      while (deadline - now > 2 * step) {
        m.sleep_for(step);
        now = m.now();
        if (now >= deadline) return;
      }
    }
    for (; deadline - now > step; now = m.now()) m.sleep_for(nanoseconds::zero());
    for (; now < deadline; now = m.now()) m.pause();
  }

 private:
  // Long sleeps of a tenth of what is left, down to about 10 ms before the deadline.
  template <machine M>
  static nanoseconds descend(M& m, instant& now, instant deadline) {
    constexpr nanoseconds step = milliseconds{1};
    constexpr nanoseconds rest = 10 * step;
    nanoseconds target = (deadline - now) / 10;
    nanoseconds late = nanoseconds::zero();
    if (target < rest) return late;
    nanoseconds length = target - step;
    while (length >= rest && deadline - now > target + rest) {
      m.sleep_for(length);
      const instant woke = m.now();
      late = std::max(late, woke - now - length);
      now = woke;
      if (late >= target) late = nanoseconds::zero();
      if (deadline - now < target + rest) {
        target = (deadline - now) / 10;
        while (target > step && deadline - now < target + rest) target /= 10;
        if (target <= step) break;
        if (late >= target) late = nanoseconds::zero();
      }
      length = target - late;
    }
    return late;
  }
};

/// Sleeps of what is left but the average oversleep, repeated, each time then the clock (MAME).
class mean_ema : public plain_strategy {
 public:
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    instant now = m.now();
    while (now < deadline) {
      const nanoseconds length = deadline - now - margin_.margin(deadline - now);
      if (length > nanoseconds::zero()) m.sleep_for(length);
      const instant woke = m.now();
      if (length > nanoseconds::zero()) margin_.observe(length, woke - now - length);
      now = woke;
    }
  }

 private:
  mean_ema_margin margin_;
};

/// To 7 ms before, in steps of 1 ms while one more fits with the worst
/// overhead, then the counter (Airbus sen).
class max_decay : public plain_strategy {
 public:
  static constexpr bool small_slack = true;

  // The counter's rate is measured once and trusted, over 20 ms here.
  template <machine M>
  void prepare(M& m) {
    const instant began = m.now();
    const std::uint64_t first = m.counter();
    m.sleep_for(milliseconds{20});
    const instant ended = m.now();
    rate_ = static_cast<double>(m.counter() - first) / static_cast<double>((ended - began).count());
  }

  /// Ages the seed of 1 ms by 3000 waits, so that a short
  /// measurement sees what a long-lived thread has.
  void settle() {
    for (int i = 0; i < 3000; ++i) margin_.begin();
  }

  template <machine M>
  void sleep_until(M& m, instant deadline) {
    constexpr nanoseconds coarse = milliseconds{7};
    instant now = m.now();
    if (deadline - now > coarse) {
      m.sleep_for(deadline - now - coarse);
      now = m.now();
    }
    margin_.begin();
    while (deadline - now > margin_.margin(deadline - now)) {
      m.sleep_for(margin_.step);
      const instant woke = m.now();
      margin_.observe(margin_.step, woke - now - margin_.step);
      now = woke;
    }
    const std::uint64_t start = m.counter();
    const auto ticks =
        static_cast<std::int64_t>(static_cast<double>((deadline - now).count()) * rate_);
    while (static_cast<std::int64_t>(m.counter() - start) < ticks) {
    }
  }

 private:
  max_decay_margin margin_;
  double rate_ = 1;  // counts a nanosecond
};

/// One sleep to the peak of past lateness before the deadline, the
/// clock for the rest (gamescope's rule).
///
/// gamescope itself starts to draw where this one spins.
class peak_hold : public plain_strategy {
 public:
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    const instant now = m.now();
    const nanoseconds length = deadline - now - margin_.margin(deadline - now);
    if (length > nanoseconds::zero()) {
      m.sleep_for(length);
      margin_.observe(length, m.now() - now - length);
    }
    while (m.now() < deadline) m.pause();
  }

 private:
  peak_hold_margin margin_;
};

/// One sleep, shorter by what the last one was too long; no spin,
/// so half of them end early (MangoHud).
class last_frame : public plain_strategy {
 public:
  template <machine M>
  void sleep_until(M& m, instant deadline) {
    const instant now = m.now();
    const nanoseconds length = deadline - now - margin_.margin(deadline - now);
    if (length <= nanoseconds::zero()) return;
    m.sleep_for(length);
    margin_.observe(length, m.now() - now - length);
  }

 private:
  last_frame_margin margin_;
};

/// Calls `f(name, strategy)` with a fresh one of each, by the name
/// that the tables and the pictures use.
template <class F>
void for_each_strategy(F f) {
  f("std", standard{});
  f("kernel", kernel{});
  f("kernel-slack1", kernel_small_slack{});
  f("timerfd", timer_descriptor{});
  f("spin", spin{});
  f("fixed-125us", fixed_margin<true>{microseconds{125}});
  f("fixed-125us-pause", fixed_margin<false>{microseconds{125}});
  f("fixed-1ms", fixed_margin<false>{milliseconds{1}});
  f("percent", percent{});
  f("dxvk", dxvk{});
  f("mean-sigma", mean_sigma{});
  f("in-call-max", in_call_max{});
  f("staged", staged{});
  f("mean-ema", mean_ema{});
  f("max-decay", max_decay{});
  f("peak-hold", peak_hold{});
  f("last-frame", last_frame{});
}

}  // namespace peers
