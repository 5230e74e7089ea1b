// From what was learned to the next native wait: until when, or none.
//
// Layer L2. Knows no system: it is told instants and answers with instants. `spin_budget` says how
// much CPU a thread may still burn, `wait_planner` where the kernel's part of a wait should end.
#pragma once

#include <punctual/estimate/lattice.hpp>
#include <punctual/estimate/overshoot.hpp>
#include <punctual/time.hpp>
#include <punctual/tuning.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace punctual {

/// Why a margin is what it is.
enum class margin_reason : std::uint8_t {
  seeded,          ///< nothing was learned for this length yet
  learned,         ///< the quantile of the overshoot
  lattice,         ///< the last tick before the deadline
  too_short,       ///< the kernel cannot serve a wait this short: all of it is spun
  capped,          ///< `tuning::max_margin` is below what was learned
  budget,          ///< the CPU budget is used up: later, never early
  oversubscribed,  ///< we were descheduled while spinning: spin less
  sampling         ///< a native wait made to learn, though spinning would do
};

/// The next step of a wait.
struct native_plan {
  bool block;          ///< make a native wait now; else spin the rest
  instant until;       ///< what to ask the kernel for
  nanoseconds margin;  ///< deadline − the instant at which the native part should be over, ≥ 0
  margin_reason why;
};

/// What a planner may hand to another: trivially copyable.
struct planner_seed {
  overshoot_estimator overshoot;
  lattice_estimator lattice;
  nanoseconds native_cost{std::chrono::microseconds{5}};
};

/// A margin and what it rests on, for reports.
struct margin_explanation {
  nanoseconds margin;          ///< what a wait of that length would start with, ns, ≥ 0
  nanoseconds quantile;        ///< of the overshoot of its length class
  std::uint32_t samples;       ///< native waits seen in that class, saturating
  margin_reason why;
  nanoseconds tick;  ///< the lattice's period, 0 where native waits do not end on ticks
  int extra_ticks;   ///< ticks that the kernel adds to a request
};

/// The spin that a thread may still burn: a token bucket over `tuning::budget_window`.
///
/// One a thread, shared by its planners. Always on the monotonic clock.
class spin_budget {
 public:
  constexpr explicit spin_budget(const tuning& how = {}) noexcept
      : share_(how.cpu_budget >= 0.0 ? (how.cpu_budget <= 1.0 ? how.cpu_budget : 1.0)
                                     : (how.cpu_budget < 0.0 ? 0.0 : 0.5)),
        left_(full()) {}

  /// Spin that may be planned now, in ns, ≥ 0.
  constexpr nanoseconds available(instant now) noexcept {
    if (share_ >= 1.0) return nanoseconds::max();
    refill(now);
    return left_ > nanoseconds::zero() ? left_ : nanoseconds::zero();
  }

  /// Charges what one wait spun; `gaps`: how often it was descheduled while it spun.
  constexpr void spent(instant now, nanoseconds spun, std::uint32_t gaps) noexcept {
    static_cast<void>(gaps);
    refill(now);
    left_ = saturating_subtract(left_, std::max(spun, nanoseconds::zero()));
    left_ = std::max(left_, -full());
  }

 private:
  constexpr nanoseconds full() const noexcept {
    return nanoseconds{
        static_cast<std::int64_t>(share_ * static_cast<double>(tuning::budget_window.count()))};
  }
  constexpr void refill(instant now) noexcept {
    if (!started_) {
      started_ = true;
      last_ = now;
      return;
    }
    nanoseconds since = between(last_, now);
    if (since <= nanoseconds::zero()) return;
    last_ = now;
    since = std::min(since, 4 * tuning::budget_window);
    left_ = std::min(full(), left_ + nanoseconds{static_cast<std::int64_t>(
                                         share_ * static_cast<double>(since.count()))});
  }

  double share_;
  nanoseconds left_;
  instant last_{};
  bool started_ = false;
};

/// From what was learned of one kind of native wait to the next one.
class wait_planner {
 public:
  constexpr explicit wait_planner(const tuning& how = {}) noexcept
      : overshoot_(how.punctuality), max_margin_(how.max_margin) {}

  /// The next step towards `deadline`; asked again after each wake.
  ///
  /// @param may_spin  What the budget allows, ns, ≥ 0.
  constexpr native_plan plan(instant now, instant deadline, nanoseconds may_spin) noexcept {
    const nanoseconds left = between(now, deadline);
    nanoseconds margin = overshoot_.quantile(left);
    margin_reason why =
        overshoot_.samples(left) > 0 ? margin_reason::learned : margin_reason::seeded;
    if (margin > max_margin_) {
      margin = max_margin_;
      why = margin_reason::capped;
    }
    if (margin > may_spin) {
      margin = may_spin;
      why = margin_reason::budget;
    }
    if (left > margin + native_cost_) {
      return {true, later(deadline, -margin), margin, why};
    }
    if (left <= may_spin) {
      if (left > sampling_least && ++unsampled_ >= sampling_every) {
        unsampled_ = 0;
        return {true, later(deadline, -std::min(margin, left / 2)), margin,
                margin_reason::sampling};
      }
      return {false, deadline, margin, margin_reason::too_short};
    }
    return {true, deadline, nanoseconds::zero(), margin_reason::budget};
  }

  /// Learns one complete, undisturbed native wait.
  ///
  /// @param asked  The clock just before it; @param until what the kernel was asked for; @param woke
  /// the clock just after it.
  constexpr void woke(instant asked, instant until, instant woke) noexcept {
    unsampled_ = 0;
    overshoot_.learn(between(asked, until), between(until, woke));
  }

  /// Learns the CPU time of one native wait.
  constexpr void native_cost(nanoseconds running_time) noexcept {
    if (running_time <= nanoseconds::zero()) return;
    running_time = std::min<nanoseconds>(running_time, std::chrono::microseconds{100});
    native_cost_ += (running_time - native_cost_) / 8;
  }

  /// The CPU time that one native wait is believed to cost, ns, ≥ 0.
  constexpr nanoseconds native_cost() const noexcept { return native_cost_; }

  /// The margin for a wait of this length, ns, ≥ 0.
  constexpr nanoseconds margin(nanoseconds length) const noexcept {
    return std::min(overshoot_.quantile(length), max_margin_);
  }

  /// The margin for a wait of this length and why it is so.
  constexpr margin_explanation explain(nanoseconds length) const noexcept {
    const nanoseconds quantile = overshoot_.quantile(length);
    const std::uint32_t samples = overshoot_.samples(length);
    return {margin(length), quantile, samples,
            quantile > max_margin_ ? margin_reason::capped
                                   : (samples > 0 ? margin_reason::learned : margin_reason::seeded),
            nanoseconds::zero(), 0};
  }

  constexpr planner_seed seed() const noexcept { return {overshoot_, lattice_, native_cost_}; }
  constexpr void seed(const planner_seed& from) noexcept {
    overshoot_ = from.overshoot;
    lattice_ = from.lattice;
    native_cost_ = from.native_cost;
  }
  constexpr void reset() noexcept { *this = wait_planner{*this, 0}; }

 private:
  constexpr wait_planner(const wait_planner& like, int) noexcept
      : overshoot_(like.overshoot_.punctuality()), max_margin_(like.max_margin_) {}

  static constexpr nanoseconds sampling_least = std::chrono::microseconds{5};
  static constexpr std::uint32_t sampling_every = 32;

  overshoot_estimator overshoot_;
  lattice_estimator lattice_{};
  nanoseconds max_margin_;
  nanoseconds native_cost_{std::chrono::microseconds{5}};
  std::uint32_t unsampled_ = 0;
};

}  // namespace punctual
