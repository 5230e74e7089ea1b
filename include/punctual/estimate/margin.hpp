// From what was learned to the next native wait: until when, or none.
//
// Layer L2. Knows no system: it is told instants and answers with instants. `spin_budget` says how
// much CPU a thread may still burn, `wait_planner` where the kernel's part of a wait should end.
#pragma once

#include <punctual/estimate/lattice.hpp>
#include <punctual/estimate/overshoot.hpp>
#include <punctual/time.hpp>
#include <punctual/tuning.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace punctual {

/// Why a margin is what it is.
enum class margin_reason : std::uint8_t {
  seeded,         ///< nothing was learned for this length yet
  learned,        ///< the quantile of the overshoot
  lattice,        ///< the last tick before the deadline
  too_short,      ///< the kernel cannot serve a wait this short: all of it is spun
  capped,         ///< `tuning::max_margin` is below what was learned
  budget,         ///< the CPU budget is used up: later, never early
  oversubscribed  ///< we were descheduled while spinning: spin less
};

/// The next step of a wait.
struct native_plan {
  bool block;          ///< make a native wait now; else spin the rest
  instant until;       ///< what to ask the kernel for
  nanoseconds margin;  ///< deadline − the instant at which the native part should be over, ≥ 0
};

/// What a planner may hand to another: trivially copyable.
struct planner_seed {
  overshoot_estimator overshoot;
  lattice_estimator lattice;
  nanoseconds native_cost{std::chrono::microseconds{5}};
};

/// A margin and what it rests on, for reports.
struct margin_explanation {
  nanoseconds margin;     ///< what a wait of that length would start with, ns, ≥ 0
  nanoseconds quantile;   ///< of the overshoot of its length class
  std::uint32_t samples;  ///< native waits seen in that class, saturating
  margin_reason why;
  nanoseconds tick;  ///< the lattice's period, 0 where native waits do not end on ticks
  int extra_ticks;   ///< ticks that the kernel adds to a request
};

/// The spin that a thread may still burn: a token bucket over `tuning::budget_window`.
///
/// One a thread, shared by its planners. Always on the monotonic clock. Being descheduled while
/// spinning says that somebody else wants the processor: each time halves what one wait may spin,
/// and it doubles again every quarter of a second, where that soon happens again every second.
class spin_budget {
 public:
  constexpr explicit spin_budget(const tuning& how = {}) noexcept
      : share_(how.cpu_budget >= 0.0 ? smaller(how.cpu_budget, 1.0)
                                     : (how.cpu_budget < 0.0 ? 0.0 : tuning{}.cpu_budget)),
        left_(full()) {}

  /// Spin that may be planned at `now`, ns, ≥ 0.
  constexpr nanoseconds available(instant now) const noexcept {
    const nanoseconds tokens = share_ >= 1.0 ? nanoseconds::max() : refilled(now);
    return larger(nanoseconds::zero(), smaller(tokens, calm_at(now)));
  }

  /// Whether it is the other threads, not the budget, that bound what may be spun.
  constexpr bool oversubscribed(instant now) const noexcept {
    return calm_at(now) < (share_ >= 1.0 ? nanoseconds::max() : refilled(now));
  }

  /// Charges what one wait spun.
  ///
  /// @param spun  ns, gaps included. @param gaps  How often it was descheduled meanwhile.
  /// @param away  Of `spun`: how long, ns. A stopped process has used no processor.
  constexpr void spent(instant now, nanoseconds spun, std::uint32_t gaps,
                       nanoseconds away = nanoseconds::zero()) noexcept {
    spun = larger(spun, nanoseconds::zero());
    calm_ = calm_at(now);
    left_ = larger(saturating_subtract(refilled(now), spun - away), -full());
    if (!started_ || now > last_) last_ = now;
    started_ = true;
    const nanoseconds undisturbed = spun_since_gap_;
    spun_since_gap_ = saturating_add(undisturbed, spun - away);
    if (gaps == 0) return;
    spun_since_gap_ = nanoseconds::zero();
    // Where an eighth of it is lost, or less, spinning less would cost more than the gap: a host
    // or an interrupt takes the processor now and then. Threads that compete take slices of ms.
    if (gaps == 1 && undisturbed >= longer(chance_after, 8 * away)) return;
    // The first one counts with its own length. More of them soon after each other mean that what
    // was really spun was too long: it is tried again ever later.
    const bool again = gapped_ && between(gap_, now) < 4 * calming_;
    gapped_ = true;
    calming_ = again ? smaller(2 * calming_, slowest_calming) : first_calming;
    calm_ = smaller(calm_, again ? spun - away : spun) / (std::int64_t{1} << smaller(gaps, 10U));
    gap_ = now;
  }

 private:
  static constexpr nanoseconds chance_after = std::chrono::milliseconds{4};
  static constexpr nanoseconds first_calming = std::chrono::milliseconds{250};
  static constexpr nanoseconds slowest_calming = std::chrono::seconds{1};
  static constexpr nanoseconds calm = std::chrono::seconds{2};  // longer than any margin

  constexpr nanoseconds full() const noexcept { return share_of(tuning::budget_window); }
  constexpr nanoseconds share_of(nanoseconds t) const noexcept {
    return nanoseconds{static_cast<std::int64_t>(share_ * static_cast<double>(t.count()))};
  }
  constexpr nanoseconds since_last(instant now) const noexcept {
    if (!started_) return nanoseconds::zero();
    return within(between(last_, now), nanoseconds::zero(), 4 * tuning::budget_window);
  }
  constexpr nanoseconds refilled(instant now) const noexcept {
    return smaller(full(), left_ + share_of(since_last(now)));
  }
  // How long what may be spun takes to double: long after gaps that came soon after each other.
  constexpr nanoseconds calming_at(instant now) const noexcept {
    return longer(first_calming, calming_ - longer(between(gap_, now) / 4, nanoseconds::zero()));
  }
  constexpr nanoseconds calm_at(instant now) const noexcept {
    if (calm_ >= calm) return nanoseconds::max();
    // 2^x, straight between the powers; from 1 us on, so that it comes back from nothing, too.
    const nanoseconds since = since_last(now);
    const nanoseconds calming = calming_at(now);
    nanoseconds grown = longer(calm_, std::chrono::microseconds{1});
    for (std::int64_t i = since / calming; i > 0 && grown < calm; --i) grown *= 2;
    grown += nanoseconds{static_cast<std::int64_t>(static_cast<double>(grown.count()) *
                                                   static_cast<double>((since % calming).count()) /
                                                   static_cast<double>(calming.count()))};
    return grown >= calm ? nanoseconds::max() : grown;
  }

  double share_;
  nanoseconds left_;
  nanoseconds calm_ = nanoseconds::max();
  nanoseconds calming_ = first_calming;
  nanoseconds spun_since_gap_{0};
  instant gap_{};
  instant last_{};
  bool started_ = false;
  bool gapped_ = false;
};

/// From what was learned of one kind of native wait to the next one.
class wait_planner {
 public:
  constexpr explicit wait_planner(const tuning& how = {}) noexcept
      : overshoot_(how.punctuality),
        max_margin_(
            within<nanoseconds>(how.max_margin, nanoseconds::zero(), std::chrono::seconds{1})) {}

  /// The next step towards `deadline`; asked again after each wake (staged descent).
  ///
  /// @param may_spin  What the budget allows, ns, ≥ 0.
  constexpr native_plan plan(instant now, instant deadline, nanoseconds may_spin) noexcept {
    const nanoseconds left = between(now, deadline);
    sampling_ = aimed_ = contest_ = false;
    planned_before_ = instant::max();
    if (left <= nanoseconds::zero()) return {false, deadline, nanoseconds::zero()};
    const bool rest = now == woke_;  // of a wait that has had a native wait already
    if (!rest) longest_ = longer(left, longest_ - longest_ / 16);
    // A sample that ended late has cut this wait short: another one would do the same to the next.
    const bool cut_short = cut_short_;
    if (!rest) cut_short_ = false;
    const nanoseconds may = smaller(may_spin, max_margin_);
    const class_plan learned = by_length(left, may);
    if (lattice_.holds() && lattice_.certain(now)) {
      return on_lattice(now, deadline, may, rest, learned);
    }
    lost_ = 0;
    const std::size_t natural = overshoot_estimator::class_of(most_of(left));
    if (learned.length > nanoseconds::zero()) {
      if (learned.c < natural && !rest && due_for_sample(natural, left, cut_short)) {
        return sample(now, left, natural, above(learned.c, natural, left));
      }
      return by_length(now, deadline, learned);
    }
    // No native wait is sure to end in time.
    if (left <= may) {
      if (!rest && in_us(left) >= served_ && !cut_short) {
        served_ = nothing;  // such waits were served until now: look again soon
        interval_[natural] = skipped_[natural] = 0;
      }
      if (!rest && due_for_sample(natural, left, cut_short)) {
        return sample(now, left, natural, trial(left));
      }
      return {false, deadline, left};
    }
    const nanoseconds margin = smaller(may, overshoot_.quantile(left));
    return {true, later(deadline, -margin), margin};
  }

  /// Learns one complete, undisturbed native wait.
  ///
  /// @param asked  The clock just before it. @param until  What the kernel was asked for.
  /// @param woke   The clock just after it.
  constexpr void woke(instant asked, instant until, instant woke) noexcept {
    woke_ = woke;
    silent_ = 0;
    if (natives_ < few_natives) ++natives_;
    const nanoseconds length = between(asked, until);
    if (length <= nanoseconds::zero()) return;
    const nanoseconds overshoot = between(until, woke);
    const std::size_t c = overshoot_estimator::class_of(length);
    lattice_.learn(overshoot_.rule(), asked, until, woke);
    if (aimed_) return;  // at a part of a tick: tells nothing of other waits of this length
    overshoot_.learn(length, overshoot, max_margin_, sampling_ || interval_[c] != 0);
    const bool in_time = woke <= planned_before_;
    cut_short_ = !in_time;
    if (contest_) lost_ = in_time ? std::uint8_t{0} : static_cast<std::uint8_t>(lost_ + 1);
    if (sampling_) {
      if (in_time && (closed_ >> c & 1U) != 0) {
        closed_ &= ~(1U << c);
        late_in_a_row_ = most_late_in_a_row - 1;  // one late wait closes it again
      }
      if (in_time) {
        again_ = true;  // it has cost nothing: look again at once
      } else {
        const int by = overshoot_.tracker_of(sampled_).settled() ? 2 : 1;
        interval_[sampled_] =
            static_cast<std::uint8_t>(smaller<int>(rarest, interval_[sampled_] + by));
        shorter_ = static_cast<std::uint8_t>((shorter_ + 1) % halvings);
      }
    } else {
      interval_[c] = 0;
      skipped_[c] = in_time ? just_made : std::uint8_t{0};
      // Whatever the margin, they end too late: a kernel's floor. Not again until a sample is in
      // time. A stall is not the kernel's.
      if (in_time) late_in_a_row_ = 0;
      if (!in_time && overshoot <= max_margin_) ++late_in_a_row_;
      if (late_in_a_row_ >= most_late_in_a_row) {
        late_in_a_row_ = 0;
        closed_ |= 1U << c;
      }
    }
    sampling_ = false;
  }

  /// Learns the CPU time of one native wait.
  constexpr void native_cost(nanoseconds running_time) noexcept {
    if (running_time <= nanoseconds::zero()) return;
    running_time = shorter(running_time, std::chrono::microseconds{100});
    native_cost_ += (running_time - native_cost_) / 8;
  }

  /// The CPU time that one native wait is believed to cost, ns, ≥ 0.
  constexpr nanoseconds native_cost() const noexcept { return native_cost_; }

  /// The margin for a wait of this length, ns, ≥ 0.
  constexpr nanoseconds margin(nanoseconds length) const noexcept {
    return smaller(overshoot_.quantile(length), max_margin_);
  }

  /// The margin for a wait of this length and why it is so.
  ///
  /// @param may_spin  What the budget allows now, ns, ≥ 0; by default all of `max_margin`.
  /// @param oversubscribed  Whether it is other threads that bound that.
  constexpr margin_explanation explain(nanoseconds length,
                                       nanoseconds may_spin = nanoseconds::max(),
                                       bool oversubscribed = false) const noexcept {
    const nanoseconds quantile = overshoot_.quantile(length);
    const nanoseconds may = smaller(may_spin, max_margin_);
    margin_explanation found{
        smaller(quantile, may),     quantile,
        overshoot_.samples(length), reason_of(overshoot_estimator::class_of(length)),
        lattice_.period(),          lattice_.extra_ticks()};
    if (quantile >= may - may / 256) {  // what is later than the cap is learned as the cap
      found.why = may_spin >= max_margin_ ? margin_reason::capped
                  : oversubscribed        ? margin_reason::oversubscribed
                                          : margin_reason::budget;
    }
    const bool none = length <= may && by_length(length, may).length == nanoseconds::zero();
    if (none && found.why == margin_reason::learned) {
      found.why = margin_reason::too_short;
      found.margin = length;
    }
    return found;
  }

  constexpr const lattice_estimator& lattice() const noexcept { return lattice_; }
  constexpr const overshoot_estimator& overshoot() const noexcept { return overshoot_; }

  constexpr planner_seed seed() const noexcept { return {overshoot_, lattice_, native_cost_}; }
  constexpr void seed(const planner_seed& from) noexcept {
    overshoot_.take(from.overshoot);
    lattice_ = from.lattice;
    native_cost_ = from.native_cost;
  }
  constexpr void reset() noexcept { *this = wait_planner{*this, 0}; }

 private:
  constexpr wait_planner(const wait_planner& like, int) noexcept
      : overshoot_(like.overshoot_.punctuality()), max_margin_(like.max_margin_) {}

  constexpr margin_reason reason_of(std::size_t c) const noexcept {
    if (lattice_.holds()) return margin_reason::lattice;
    return overshoot_.tracker_of(c).samples() > 0 ? margin_reason::learned : margin_reason::seeded;
  }

  // The longest wait that ends in time by what was learned of its length, and its class.
  struct class_plan {
    nanoseconds length{0};  // 0: there is none
    std::size_t c = 0;
  };
  constexpr class_plan by_length(nanoseconds left, nanoseconds may) const noexcept {
    for (std::size_t c = overshoot_estimator::class_of(left) + 1; c-- > 0;) {
      const nanoseconds length = overshoot_.longest_in(c, left);
      if (length > native_cost_ && (closed_ >> c & 1U) == 0 && overshoot_.quantile(length) <= may) {
        return {length, c};
      }
    }
    return {};
  }
  constexpr native_plan by_length(instant now, instant deadline, class_plan plan) noexcept {
    const nanoseconds left = between(now, deadline);
    const nanoseconds asked = varied(plan.length, left - plan.length);
    planned_before_ = deadline;
    // Where the native part is but a small part, chance decides between one and none.
    if (asked > left / 4) served_ = smaller<std::uint16_t>(served_, in_us(left));
    return {true, later(now, asked), left - asked};
  }

  constexpr native_plan on_lattice(instant now, instant deadline, nanoseconds may, bool rest,
                                   class_plan learned) noexcept {
    using target = lattice_estimator::target;
    const nanoseconds left = between(now, deadline);
    const target first = lattice_.first_after(now);
    target tick = lattice_.last_before(deadline);
    const bool too_short = tick.number < first.number || between(now, tick.wake) <= native_cost_;
    // What was learned of the length before there was a lattice may promise more than ticks can
    // give. If that is true, there are no ticks; if not, a few late waits teach it so.
    const nanoseconds margin = too_short ? left : between(tick.wake, deadline);
    if (learned.length > nanoseconds::zero() && lost_ < most_lost &&
        overshoot_.tracker_of(learned.c).samples() >= few_samples &&
        left - learned.length + lattice_.period() / 8 < margin) {
      planned_before_ = deadline;
      contest_ = true;
      return {true, later(now, learned.length), left - learned.length};
    }
    aimed_ = true;
    if (!too_short) {
      if (margin <= may) return {true, lattice_.request(now, tick), margin};
      tick = lattice_.after(tick);
      return {true, lattice_.request(now, tick), late_or_zero(tick.wake, deadline)};
    }
    if (left > may) {
      return {true, lattice_.request(now, first), late_or_zero(first.wake, deadline)};
    }
    if (rest || ++silent_ < silence()) return {false, deadline, left};
    return {true, lattice_.request(now, first), nanoseconds::zero()};
  }
  static constexpr nanoseconds late_or_zero(instant wake, instant deadline) noexcept {
    return longer(nanoseconds::zero(), between(wake, deadline));
  }

  // Native waits of a class that is not made any more: the 1st, 2nd, 4th, … 128th that could be,
  // and the next one after each that ended in time, which cost nothing; none of those that a late
  // one before has cut short. Where a class is new and waits would take three times what is left,
  // the 4th for a start, soon the 128th; but what one sample says alone is looked at again.
  constexpr bool due_for_sample(std::size_t c, nanoseconds left, bool cut_short) noexcept {
    if (cut_short) return false;
    if (again_ && c == sampled_) {
      again_ = false;
      return true;
    }
    // Longer waits still make such native ones, and tell all there is to learn.
    if (skipped_[c] >= just_made) {
      ++skipped_[c];
      return false;
    }
    std::uint8_t interval = interval_[c];
    const quantile_tracker& known = overshoot_.tracker_of(c);
    if (known.samples() != 1 && !known.settled() &&
        overshoot_.last_known(most_of(left)) / 2 > left) {
      if (left < longest_ - longest_ / 4) return false;
      interval = natives_ < few_natives ? soon : rarest;
    }
    if (lattice_.on_probation()) interval = smaller(interval, doubtful);
    if (++skipped_[c] < (1U << interval)) return false;
    skipped_[c] = 0;
    return true;
  }
  // Where no native wait is sure to end in time: most of it, half as long after each that was late,
  // down to a 64th. A kernel whose lateness grows with the length may serve the short ones, and
  // each class that chance has spoilt has its turn.
  constexpr nanoseconds trial(nanoseconds left) const noexcept {
    return longer(most_of(left) / (std::int64_t{1} << shorter_), nanoseconds{1});
  }
  // Where one is: of the classes above it, the next after each that was late.
  constexpr nanoseconds above(std::size_t used, std::size_t natural,
                              nanoseconds left) const noexcept {
    const std::size_t c = natural - shorter_ % (natural - used);
    if (c == natural) return most_of(left);
    return overshoot_estimator::from(c) + overshoot_estimator::from(c) / 4;
  }
  static constexpr nanoseconds most_of(nanoseconds left) noexcept { return left - left / 8; }
  constexpr native_plan sample(instant now, nanoseconds left, std::size_t c,
                               nanoseconds length) noexcept {
    sampling_ = true;
    sampled_ = static_cast<std::uint8_t>(c);
    planned_before_ = later(now, left);
    return {true, later(now, length), left - length};
  }

  // Ten waits in 256 with longer margins where margins are long: on a loop that is in step with a
  // kernel's ticks, nothing else would tell that those are there.
  constexpr nanoseconds varied(nanoseconds length, nanoseconds margin) noexcept {
    if (margin < worth_varying || ++varied_ >= 10) return length;
    const nanoseconds by = margin / 8 * (varied_ * 3 % 8);
    return by < length / 2 ? length - by : length;
  }

  static constexpr nanoseconds worth_varying = std::chrono::microseconds{200};
  static constexpr std::uint8_t rarest = 7, soon = 2, doubtful = 4;  // 2^7 = 128
  static constexpr std::uint8_t few_natives = 24, most_late_in_a_row = 6, most_lost = 3,
                                halvings = 7;
  static constexpr std::uint16_t few_samples = 4;
  static constexpr std::uint8_t just_made = 240;  // in `skipped_`: sixteen more before they count
  static constexpr std::uint16_t most_us = 65'534, nothing = 65'535;
  static constexpr std::uint16_t in_us(nanoseconds left) noexcept {
    return static_cast<std::uint16_t>(smaller<std::int64_t>(most_us, left.count() / 1000));
  }
  // Waits too short for the lattice between two native ones: 2, 4, … 512, as nothing contradicts.
  constexpr std::uint32_t silence() const noexcept { return 2U << smaller(8, lattice_.steady()); }

  overshoot_estimator overshoot_;
  lattice_estimator lattice_{};
  nanoseconds max_margin_;
  nanoseconds native_cost_{std::chrono::microseconds{5}};
  instant woke_ = instant::min();
  nanoseconds longest_{0};  // of the latest waits, fading
  instant planned_before_ = instant::max();
  std::uint32_t closed_ = 0;        // classes, by bit
  std::uint16_t served_ = nothing;  // us: the shortest wait of late that had a native one
  std::uint16_t silent_ = 0;        // waits in a row that were too short for the lattice
  std::array<std::uint8_t, overshoot_estimator::classes> skipped_{}, interval_{};
  std::uint8_t sampled_ = 0, shorter_ = 0, natives_ = 0, late_in_a_row_ = 0, varied_ = 0, lost_ = 0;
  bool cut_short_ = false, again_ = false;
  bool sampling_ = false, aimed_ = false, contest_ = false;
};

}  // namespace punctual
