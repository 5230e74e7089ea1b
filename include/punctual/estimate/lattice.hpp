// Whether native waits end on ticks: period, phase, extra ticks.
//
// Layer L2. Knows no clock and no system: it is told of native waits (asked when, until when, woken
// when) and, once their ends fall on a lattice, answers which tick a request will end on. Two
// families of kernels do that: those that wake at the first tick at or after an instant, and those
// that count ticks from the last one, with or without one added. A lattice is believed when wakes
// repeat with a period while the requests do not, and dropped when it predicts wrongly.
#pragma once

#include <punctual/estimate/overshoot.hpp>
#include <punctual/platform/seam.hpp>
#include <punctual/time.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace punctual {

/// How a kernel finds the tick that ends a wait; of two that agree with what was seen, the later
/// one here is believed, since it ends no wait late.
enum class tick_rule : std::uint8_t {
  counted_whole_ms,  ///< ceil(length in whole ms / period) ticks from the last one
  at_or_after,       ///< the first tick at or after the asked instant
  counted,           ///< ceil(length / period) ticks from the last one; may end early
  at_or_after_plus,  ///< the tick after that
  counted_plus       ///< one tick more
};

/// The instants at which native waits can end, once that is known.
class lattice_estimator {
 public:
  constexpr bool holds() const noexcept { return trusted_; }
  /// Whether one is followed that predicts well and has not yet done so often enough to be
  /// believed.
  constexpr bool on_probation() const noexcept { return following_ && !trusted_ && steady_ >= 4; }
  /// ns; 0 while nothing holds.
  constexpr nanoseconds period() const noexcept {
    return nanoseconds{trusted_ ? rounded(period_) : 0};
  }
  constexpr tick_rule rule() const noexcept { return rule_; }
  /// Wake-ups in a row that did not contradict, saturating.
  constexpr int steady() const noexcept { return steady_; }
  constexpr int extra_ticks() const noexcept {
    return (rule_ == tick_rule::at_or_after_plus || rule_ == tick_rule::counted_plus) ? 1 : 0;
  }

  /// Takes one complete, undisturbed native wait in.
  constexpr void learn(const quantile_rule& quantile, instant asked, instant until,
                       instant woke) noexcept {
    remember(asked, until, woke);
    if (following_) {
      follow(quantile, ring_[newest()]);
      if (!following_) search(quantile);  // what refuted it may fit another one
    } else if (count_ >= enough && count_ % 2 == 0) {
      search(quantile);
    }
  }

  /// Whether the phase is still known at `now`: after long silence it is not, and is learned anew.
  constexpr bool certain(instant now) const noexcept {
    return variance_at(now) < period_ * period_ / 256;
  }

  /// A tick, by its number from the one the estimate stands on.
  struct target {
    std::int64_t number;
    instant wake;  ///< when the thread will run, at the latest but for a share 1 - punctuality
  };

  /// The last tick whose wake-up comes before `deadline`.
  constexpr target last_before(instant deadline) const noexcept {
    return at(floor_of(since(deadline) - latest() - 2 * root(variance_at(deadline))));
  }

  /// The first tick that a native wait begun at `now` can end on.
  constexpr target first_after(instant now) const noexcept {
    const double guarded = since(now) + guard();
    const std::int64_t least =
        rule_ == tick_rule::counted_whole_ms ? whole_ms(1e6) : 1 + extra_ticks();
    return at(floor_of(guarded) + least);
  }

  /// The tick after `t`.
  constexpr target after(target t) const noexcept { return at(t.number + 1); }

  /// What to ask the kernel for at `now` so that the wait ends on `t`, not before
  /// `first_after(now)`.
  ///
  /// Aimed well inside what leads to that tick, so that an error of the phase does not matter, and
  /// not always at the same part of it: a period that is too long by a whole factor shows at once.
  constexpr instant request(instant now, target t) const noexcept {
    const auto salt = static_cast<std::uint64_t>(t.wake.time_since_epoch().count()) / 1021;
    const double part = static_cast<double>(2 + salt % 5) / 8;  // 1/4 … 3/4
    if (rule_ == tick_rule::at_or_after || rule_ == tick_rule::at_or_after_plus) {
      const double tick = static_cast<double>(t.number - extra_ticks()) * period_;
      const double from = since(now);
      const double inside = tick - part * period_;
      const double aim = inside > from ? inside : from + (tick - from) / 4;
      return later(now, whole(larger(aim - from, 1.0)));
    }
    const std::int64_t here = floor_of(since(now) + guard());
    std::int64_t ticks = t.number - here - extra_ticks();
    if (rule_ == tick_rule::counted_whole_ms) {
      const auto most =
          static_cast<std::int64_t>((static_cast<double>(ticks) + close_enough) * period_ / 1e6);
      return later(now, whole((static_cast<double>(larger<std::int64_t>(most, 1)) - part) * 1e6));
    }
    // The kernel counts with its own idea of a tick, up to 1 % off: long waits come in two parts.
    if (ticks > 48) ticks -= ticks / 48;
    return later(now, whole((static_cast<double>(ticks) - part) * period_));
  }

  constexpr void reset() noexcept { *this = lattice_estimator{}; }

 private:
  // The nearest whole number to one that is not negative.
  static constexpr std::int64_t rounded(double value) noexcept {
    return (static_cast<std::int64_t>(2 * value) + 1) / 2;
  }

  struct seen {
    instant woke;
    float asked;  // woke - asked, ns
    float until;  // woke - until, ns
  };
  static constexpr std::size_t kept = 10;
  static constexpr std::uint8_t enough = 8;
  static constexpr std::size_t rules = 5;
  static constexpr double shortest_period = 190e3, longest_period = 21e6;  // ns
  static constexpr std::uint8_t doubtful = 24;

  static constexpr nanoseconds whole(double ns) noexcept {
    return nanoseconds{static_cast<std::int64_t>(ns)};
  }
  constexpr double variance_at(instant t) const noexcept {
    const double n = since(t) / period_;
    return phase_variance_ + n * (2 * covariance_ + n * period_variance_);
  }
  static constexpr double root(double x) noexcept {
    if (!(x > 0)) return 0;
    double y = 1;
    while (y * y < x) y *= 2;
    for (int i = 0; i < 5; ++i) y = (y + x / y) / 2;
    return y;
  }
  // ns since tick 0.
  constexpr double since(instant t) const noexcept {
    return static_cast<double>(between(base_, t).count()) - fraction_;
  }
  constexpr std::int64_t floor_of(double ns) const noexcept {
    const double n = within(ns / period_, -1e15, 1e15);
    const auto k = static_cast<std::int64_t>(n);
    return static_cast<double>(k) > n ? k - 1 : k;
  }
  constexpr std::int64_t nearest(double ns) const noexcept { return floor_of(ns + period_ / 2); }
  constexpr target at(std::int64_t number) const noexcept {
    return {number,
            later(base_, whole(static_cast<double>(number) * period_ + fraction_ + latest()))};
  }
  // How much later than the mean wake-up of a tick, ns; the tracker's values are shifted to be ≥ 0.
  constexpr double shift() const noexcept { return period_ / 8; }
  constexpr double latest() const noexcept {
    return static_cast<double>(latency_.value()) - shift();
  }
  // The tick itself comes before the mean wake-up: within this, it is not known which one is the
  // last.
  constexpr double guard() const noexcept {
    return smaller(period_ / 8, 20e3 + 2.0 * static_cast<double>(jitter_));
  }

  constexpr std::size_t newest() const noexcept { return (next_ + kept - 1) % kept; }

  constexpr void remember(instant asked, instant until, instant woke) noexcept {
    ring_[next_] = {woke, static_cast<float>(between(asked, woke).count()),
                    static_cast<float>(between(until, woke).count())};
    next_ = static_cast<std::uint8_t>((next_ + 1) % kept);
    if (count_ < 0xff) ++count_;
    if (count_ == 0xff) count_ = enough;  // stays even and odd in turn
  }
  constexpr const seen& oldest_but(std::size_t i) const noexcept {
    const std::size_t n = smaller<std::size_t>(count_, kept);
    return ring_[(next_ + kept - n + i) % kept];
  }

  // --- finding a lattice ------------------------------------------------------------------------

  // Robust range: what remains without the lowest and the highest two of ten.
  template <std::size_t N>
  static constexpr double spread(std::array<double, N> v, std::size_t n) noexcept {
    for (std::size_t i = 1; i < n; ++i) {
      for (std::size_t j = i; j > 0 && v[j] < v[j - 1]; --j) std::swap(v[j], v[j - 1]);
    }
    return v[n - 2] - v[1];
  }

  constexpr void search(const quantile_rule& quantile) noexcept {
    const std::size_t n = smaller<std::size_t>(count_, kept);
    std::array<double, kept> over{};
    double shortest_gap = 100e6;
    for (std::size_t i = 0; i < n; ++i) {
      over[i] = static_cast<double>(oldest_but(i).until);
      if (i == 0) continue;
      const auto gap =
          static_cast<double>(between(oldest_but(i - 1).woke, oldest_but(i).woke).count());
      if (gap > shortest_period * 0.9) shortest_gap = smaller(shortest_gap, gap);
    }
    const double overshoots = spread(over, n);
    if (overshoots < shortest_period / 2) return;
    const int most = static_cast<int>(smaller(shortest_gap / shortest_period, 128.0));
    float best = 1e9F;
    std::array<float, 129> residual{};
    for (int parts = 1; parts <= most; ++parts) {
      fit found = fitted(shortest_gap / parts, n);
      // Told apart from a loop's own period: the requests must vary by a part of it.
      if (found.period > 4 * overshoots) found.spread = 1e9F;
      residual[static_cast<std::size_t>(parts)] = found.spread;
      if (found.spread < static_cast<float>(overshoots / 4)) best = smaller(best, found.spread);
    }
    // Several fit: multiples of the true one, parts of it, and strangers if the waits are regular.
    // Of those that fit as well as the best, the shortest that tells each wake from its request:
    // one that is too long would lead to pointless spins, and would never be refuted by what it
    // asks for.
    if (best >= 1e9F) return;
    for (int parts = most; parts >= 1; --parts) {
      if (residual[static_cast<std::size_t>(parts)] > 1.5F * best + 1000.0F) continue;
      adopt(quantile, fitted(shortest_gap / parts, n), n);
      if (following_) return;
    }
  }

  // A line through the wakes by their tick numbers, and how well it fits.
  struct fit {
    double period = 0, mean_number = 0, mean_at = 0;  // at: ns after `from`
    double numbers_squared = 0;                       // sum of squares about the mean
    double deviation = 0;                             // mean absolute residual
    std::size_t in = 0;
    instant from{};
    float spread =
        1e9F;  // robust range of the residuals; the initial value says that it does not fit
  };

  // Lays the wakes on multiples of a period, refining it as the distance grows; two may lie
  // elsewhere.
  constexpr fit fitted(double period, std::size_t n) const noexcept {
    for (std::size_t first = 0; first < 2; ++first) {
      fit f{period, 0, 0, 0, 0, 0, oldest_but(first).woke, 1e9F};
      double longest = 0;
      std::array<double, kept> k{}, x{};
      for (std::size_t i = first; i < n && f.in + 2 >= i; ++i) {
        const auto away = static_cast<double>(between(f.from, oldest_but(i).woke).count());
        const auto number = static_cast<double>(rounded(away / f.period));
        const double off = away - number * f.period;
        if (off > f.period / 8 || off < -f.period / 8) continue;
        if (number > longest) {
          longest = number;
          f.period = away / number;
        }
        k[f.in] = number;
        x[f.in] = away;
        ++f.in;
      }
      if (f.in + 2 + first < n || f.in < enough - 2) continue;
      const auto count = static_cast<double>(f.in);
      for (std::size_t i = 0; i < f.in; ++i) {
        f.mean_number += k[i] / count;
        f.mean_at += x[i] / count;
      }
      double product = 0;
      for (std::size_t i = 0; i < f.in; ++i) {
        f.numbers_squared += (k[i] - f.mean_number) * (k[i] - f.mean_number);
        product += (k[i] - f.mean_number) * (x[i] - f.mean_at);
      }
      if (f.numbers_squared <= 0) continue;
      f.period = product / f.numbers_squared;
      if (f.period < shortest_period || f.period > longest_period) continue;
      std::array<double, kept> residual{};
      for (std::size_t i = 0; i < f.in; ++i) {
        residual[i] = x[i] - f.mean_at - f.period * (k[i] - f.mean_number);
        f.deviation += (residual[i] < 0 ? -residual[i] : residual[i]) / count;
      }
      const double range = spread(residual, f.in);
      if (range < f.period / 8) {
        f.spread = static_cast<float>(range);
        return f;
      }
    }
    return {};
  }

  // A period alone is not enough: one rule must tell the tick of each wake from its request.
  constexpr void adopt(const quantile_rule& quantile, const fit& f, std::size_t n) noexcept {
    period_ = f.period;
    base_ = f.from;
    fraction_ = f.mean_at - f.period * f.mean_number;
    jitter_ = static_cast<float>(larger(200.0, f.deviation));
    const double noise = 2 * static_cast<double>(jitter_) * static_cast<double>(jitter_);
    period_variance_ = noise / f.numbers_squared;
    covariance_ = -f.mean_number * period_variance_;
    phase_variance_ = noise / static_cast<double>(f.in) - f.mean_number * covariance_;
    latency_ = quantile_tracker{};
    score_ = {};
    std::array<std::uint8_t, rules> right{}, wrong{};
    std::uint8_t elsewhere = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const seen& s = oldest_but(i);
      std::int64_t number = 0;
      if (!on_tick(s, number)) {
        ++elsewhere;
        continue;
      }
      for (std::size_t r = 0; r < rules; ++r) {
        std::int64_t expected = 0;
        if (!predicted(static_cast<tick_rule>(r), s, expected)) continue;
        ++(expected == number ? right[r] : wrong[r]);
      }
    }
    std::size_t best = 0;
    for (std::size_t r = 0; r < rules; ++r) {
      score_[r] = static_cast<std::int8_t>(larger(0, right[r] - 3 * wrong[r]));
      if (score_[r] >= score_[best]) best = r;
    }
    if (right[best] < 4 + 2 * (wrong[best] + elsewhere)) return;
    rule_ = static_cast<tick_rule>(best);
    following_ = true;
    trusted_ = needed_ == 0;
    doubt_ = 0;
    confirmed_ = 0;
    steady_ = 3;
    for (std::size_t i = 0; i < n; ++i) follow(quantile, oldest_but(i), false);
  }

  // --- following it -----------------------------------------------------------------------------

  constexpr bool on_tick(const seen& s, std::int64_t& number) const noexcept {
    const double at = since(s.woke);
    number = nearest(at);
    const double off = at - static_cast<double>(number) * period_;
    return off < period_ / 8 && off > -period_ / 8;
  }

  // The tick that a rule says; false where the request comes too close to a tick to tell.
  constexpr bool predicted(tick_rule rule, const seen& s, std::int64_t& tick) const noexcept {
    const double close = guard();
    const double at = since(s.woke);
    const int extra =
        rule == tick_rule::at_or_after_plus || rule == tick_rule::counted_plus ? 1 : 0;
    if (rule == tick_rule::at_or_after || rule == tick_rule::at_or_after_plus) {
      const double until = at - static_cast<double>(s.until) + close / 2;
      tick = floor_of(until) + 1 + extra;
      return !near_tick(until, close);
    }
    const double asked = at - static_cast<double>(s.asked) + close / 2;
    const double length = static_cast<double>(s.asked - s.until);
    if (rule == tick_rule::counted_whole_ms) {
      tick = floor_of(asked) + whole_ms(length);
      return !near_tick(asked, close);
    }
    tick = floor_of(asked) + floor_of(length) + 1 + extra;
    return !near_tick(asked, close) && !near_tick(length, length / 512 + 1e3);
  }
  // The ticks that a length takes once it is rounded up to milliseconds; a hair above a tick is on
  // it.
  constexpr std::int64_t whole_ms(double length) const noexcept {
    const auto ms = static_cast<std::int64_t>((length - 1.0) / 1e6) + 1;
    const double ticks = static_cast<double>(ms) * 1e6 / period_ - close_enough;
    const auto whole_ticks = static_cast<std::int64_t>(ticks);
    return whole_ticks + (static_cast<double>(whole_ticks) < ticks ? 1 : 0);
  }
  static constexpr double close_enough = 0.0015;  // of a tick

  constexpr bool near_tick(double ns, double close) const noexcept {
    const double off = ns - static_cast<double>(nearest(ns)) * period_;
    return off < close && off > -close;
  }

  // Weighs one prediction, may change to another rule; false: the lattice was given up.
  constexpr bool judged(const seen& s, std::int64_t number, bool hit) noexcept {
    std::int64_t expected = 0;
    const bool known = predicted(rule_, s, expected);
    if (known && hit && number == expected) {
      if (doubt_ > 0) --doubt_;
      if (confirmed_ < 0xff) ++confirmed_;
      if (confirmed_ >= needed_) trusted_ = true;
    } else if (known) {
      // A late wake-up may be a busy machine's; an early one refutes.
      const bool late = since(s.woke) > static_cast<double>(expected) * period_;
      doubt_ = static_cast<std::uint8_t>(doubt_ + (late ? 6 : 8));
      confirmed_ = steady_ = 0;
    }
    if (hit && steady_ < 0xff) ++steady_;
    for (std::size_t r = 0; r < rules; ++r) {
      if (!predicted(static_cast<tick_rule>(r), s, expected)) continue;
      score_[r] =
          static_cast<std::int8_t>(within(score_[r] + (hit && number == expected ? 1 : -4), 0, 24));
    }
    for (std::size_t r = 0; r < rules; ++r) {
      if (score_[r] > score_[static_cast<std::size_t>(rule_)]) rule_ = static_cast<tick_rule>(r);
    }
    if (doubt_ < doubtful) return true;
    give_up();
    return false;
  }
  // The next one must first predict so many wake-ups, twice as many each time.
  constexpr void give_up() noexcept {
    following_ = trusted_ = false;
    needed_ = needed_ == 0 ? 4 : static_cast<std::uint8_t>(smaller(needed_ * 2, 128));
  }

  constexpr void follow(const quantile_rule& quantile, const seen& s, bool judge = true) noexcept {
    if (judge && !certain(s.woke)) {
      // Too long ago: the phase is taken anew. If that happens all the time, the period is no good.
      base_ = s.woke;
      fraction_ = 0;
      phase_variance_ = 4 * static_cast<double>(jitter_) * static_cast<double>(jitter_);
      covariance_ = 0;
      doubt_ = static_cast<std::uint8_t>(doubt_ + 4);
      if (doubt_ >= doubtful) give_up();
      return;
    }
    std::int64_t number = 0;
    const bool hit = on_tick(s, number);
    if (judge && !judged(s, number, hit)) return;
    if (!hit) return;
    double off = since(s.woke) - static_cast<double>(number) * period_;
    latency_.learn(quantile, static_cast<float>(off + shift()), static_cast<float>(period_),
                   quantile.patience);
    if (judge) correct(number, off);
  }

  // A Kalman filter with fading memory over (phase, period); late wake-ups pull no further than
  // usual ones.
  constexpr void correct(std::int64_t number, double off) noexcept {
    constexpr double fading = 1.005;
    const auto usual = static_cast<double>(jitter_);
    const double size = off < 0 ? -off : off;
    jitter_ += static_cast<float>((smaller(size, 4 * usual) - usual) / 32);
    jitter_ = larger(jitter_, 100.0F);
    off = within(off, -3 * usual, 3 * usual);
    const auto n = static_cast<double>(number);
    // To the tick of this wake.
    phase_variance_ += n * (2 * covariance_ + n * period_variance_);
    covariance_ += n * period_variance_;
    phase_variance_ *= fading;
    covariance_ *= fading;
    period_variance_ *= fading;
    const double noise = 2 * usual * usual;
    const double total = phase_variance_ + noise;
    const double phase_gain = phase_variance_ / total;
    const double period_gain = covariance_ / total;
    const double moved = n * period_ + fraction_ + phase_gain * off;
    const nanoseconds steps = whole(moved);
    base_ = later(base_, steps);
    fraction_ = moved - static_cast<double>(steps.count());
    period_ += period_gain * off;
    period_variance_ -= period_gain * covariance_;
    covariance_ *= 1 - phase_gain;
    phase_variance_ *= 1 - phase_gain;
    if (!(period_ > shortest_period / 2 && period_ < longest_period * 2))
      following_ = trusted_ = false;
  }

  instant base_{};       // tick 0, but for the fraction
  double fraction_ = 0;  // ns
  double period_ = 0;    // ns
  double phase_variance_ = 0, covariance_ = 0, period_variance_ = 0;
  quantile_tracker latency_{};
  std::array<seen, kept> ring_{};
  float jitter_ = 0;  // ns, mean distance of a wake-up from where it is expected
  std::array<std::int8_t, rules> score_{};
  std::uint8_t next_ = 0, count_ = 0, doubt_ = 0, confirmed_ = 0, steady_ = 0, needed_ = 0;
  tick_rule rule_ = tick_rule::at_or_after;
  bool following_ = false;  // a lattice is there, and may be on probation
  bool trusted_ = false;
};

}  // namespace punctual
