// How late the kernel wakes sleepers: a quantile of the overshoot for each class of wait length.
//
// Layer L2. Knows no clock and no system: it is told pairs (length asked for, overshoot) and
// answers with the overshoot that a given share of the waits of a length stays below. No sample is
// stored: each class follows its quantile by small steps, which are scaled by how far apart samples
// lie up there, and jumps when a run of misses or of hits says that the kernel has changed. One
// sample, however large, moves a quantile by one bounded step.
#pragma once

#include <punctual/platform/seam.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace punctual {

/// The smaller, the larger, and the nearest within bounds. <algorithm> alone compiles longer than
/// <chrono>.
template <class T>
constexpr T smaller(T a, T b) noexcept {
  return b < a ? b : a;
}
template <class T>
constexpr T larger(T a, T b) noexcept {
  return a < b ? b : a;
}
template <class T>
constexpr T within(T value, T least, T most) noexcept {
  return value < least ? least : (most < value ? most : value);
}

/// The share to stay below, and what follows from it for all trackers.
///
/// Change is told from chance by two cumulative sums of log-likelihood ratios, in units of 1/1024:
/// "seven in ten miss" sees a step, "five times as many miss as should" sees a tail that has grown.
struct quantile_rule {
  /// @param punctuality  0.5 … 0.9999; what lies outside is taken as the nearest end, NaN as 0.98.
  constexpr explicit quantile_rule(double punctuality = 0.98) noexcept
      : share(static_cast<float>(punctuality >= 0.5 ? smaller(punctuality, 0.9999)
                                                    : (punctuality < 0.5 ? 0.5 : 0.98))) {
    const double miss = 1.0 - static_cast<double>(share);
    const double few = smaller(0.5, 5.0 * miss);
    step_miss = units(0.7 / miss);
    step_hit = units(static_cast<double>(share) / 0.3);
    tail_miss = units(larger(few, miss) / miss);
    tail_hit = units(static_cast<double>(share) / (1.0 - few));
    patience = static_cast<std::uint8_t>(within(2.0 / miss, 8.0, 200.0));
  }

  float share;
  std::uint16_t step_miss, step_hit, tail_miss, tail_hit;
  /// Hits in a row after which the largest of them tells more than the quantile: e^-2 of chance.
  std::uint8_t patience;

 private:
  // ln(ratio) · 1024 for ratios of 1 … 10^4: ln 2 for each halving, then the series of ln(1 + x).
  static constexpr std::uint16_t units(double ratio) noexcept {
    double log = 0;
    while (ratio > 1.25) {
      ratio /= 1.25;
      log += 0.22314355131420976;
    }
    const double x = ratio - 1.0;
    log += x * (1.0 - x * (1.0 / 2 - x * (1.0 / 3 - x * (1.0 / 4 - x / 5))));
    return static_cast<std::uint16_t>(within(log * 1024.0 + 0.5, 0.0, 16'000.0));
  }
};

/// Follows one quantile of a stream of values ≥ 0, in 32 bytes.
///
/// Each sample moves the value by a step: up by `share`, down by 1 - `share`. The step is what a
/// sample quantile over some 600 waits would have for an error, from the density of samples around
/// the value: half of `near_` on each side of it holds 0.7 of the share that should miss.
class quantile_tracker {
 public:
  /// Samples until the steps begin; before, the quantile is read off the two largest.
  static constexpr std::uint16_t settling = 16;

  constexpr float value() const noexcept { return value_; }
  constexpr std::uint16_t samples() const noexcept { return count_; }
  constexpr bool settled() const noexcept { return count_ >= settling; }
  /// Whether the latest sample has shown that the stream has risen.
  constexpr bool rose() const noexcept { return rose_ != 0 && count_ == settling; }

  /// Moves the value and what it is compared with, for a stream whose values all moved by as much.
  constexpr void move(float by) noexcept {
    for (float* each : {&value_, &peak_, &lowest_, &before_}) {
      if (*each > 0.0F) *each = larger(0.0F, *each + by);
    }
  }

  /// Takes one sample in.
  ///
  /// @param most      What lies above is a stall: it counts as one miss of that size and is no
  ///                  evidence of a change, since no margin would cover it.
  /// @param patience  Hits in a row that make a falling quantile believable.
  constexpr void learn(const quantile_rule& rule, float sample, float most,
                       std::uint8_t patience) noexcept {
    const bool stall = sample > most;
    sample = within(sample, 0.0F, most);
    if (!settled()) {
      settle(sample, stall);
      return;
    }
    if (count_ < 0xffff) ++count_;
    if (sample > value_) {
      miss(rule, sample, stall);
    } else {
      hit(rule, sample, patience);
    }
  }

 private:
  // Of 600 waits: regret 1 to 2 % on smooth tails at 0.9 … 0.99. 250 had 3 to 7, 800 followed
  // worse.
  static constexpr float memory = 600.0F, gain = 5.0F, far_gain = 2.4F;
  static constexpr float band = 0.7F, band_rate = 0.4F;
  static constexpr float finest = 50.0F;  // ns: below a clock read nothing is worth following
  // Cumulative sums, see quantile_rule: e^9.2 and e^7 against chance; e^1.5 is a first suspicion.
  static constexpr std::uint16_t step_alarm = 9'400, tail_alarm = 7'200, suspicion = 1'500;

  // The largest of 16 is no quantile yet, and a stall among them must not be one either: where it
  // is the first, it counts once there is a second.
  constexpr void settle(float sample, bool stall) noexcept {
    float& largest = peak_;
    float& second = lowest_;
    float& third = before_;
    if (count_ == 0 && largest > 0.0F) {
      count_ = 1;
    } else if (count_ == 0 && stall && sample > 0.0F) {
      largest = sample;
      return;
    }
    ++count_;
    if (count_ == 1 || sample > largest) {
      third = second;
      second = count_ == 1 ? sample : largest;
      largest = sample;
    } else if (sample > second || count_ == 2) {
      third = second;
      second = sample;
    } else if (sample > third || count_ == 3) {
      third = sample;
    }
    // What an exponential tail would have for the largest of so many, or twice the second of two.
    const float tail = count_ < 3 ? second : 2.0F * (second - third);
    value_ = smaller(largest, second + tail + 10.0F * finest);
    spread_out(smaller(largest - second, 2.0F * tail));
    if (settled()) {
      quiet();
      third = 0.0F;
    }
  }

  constexpr float step(const quantile_rule& rule) const noexcept {
    // Between two modes there is no density to go by: then by how far the misses are.
    const float scale = tail_ > suspicion ? larger(gain * near_, far_gain * far_) : gain * near_;
    const float seen = smaller(memory, 1.5F * static_cast<float>(count_));
    return scale / (seen * (1.0F - rule.share));
  }
  constexpr void note_distance(const quantile_rule& rule, float away) noexcept {
    const float part = band * (1.0F - rule.share);
    const bool inside = away < near_;
    near_ *= inside ? 1.0F - band_rate * (1.0F - part) : 1.0F + band_rate * part;
    near_ = within(near_, finest / 2.0F, 1e9F);
  }

  constexpr void miss(const quantile_rule& rule, float sample, bool stall) noexcept {
    const float above = sample - value_;
    const float one_step = step(rule) * rule.share;
    note_distance(rule, above);
    // The median of the misses' distances, faster where they are far.
    far_ *= above > 4.0F * far_ ? 1.8F : (above > far_ ? 1.35F : 1.0F / 1.35F);
    far_ = within(far_, finest, 1e9F);
    if (run_ != 0) peak_ = 0.0F;
    run_ = 0;
    asked_ = 0;
    if (!stall && jumps_up(rule, sample, above)) return;
    value_ += smaller(above + finest, one_step);
    if (tail_ >= tail_alarm) {
      tail_ = 0;
      count_ = settling;  // larger steps from here
    }
  }

  constexpr bool jumps_up(const quantile_rule& rule, float sample, float above) noexcept {
    lowest_ = step_ == 0 ? sample : smaller(lowest_, sample);
    peak_ = larger(peak_, sample);
    step_ = static_cast<std::uint16_t>(step_ + rule.step_miss);
    tail_ = static_cast<std::uint16_t>(tail_ + rule.tail_miss);
    if (step_ >= step_alarm * (2U + hasty_) / 2U) {
      // To the least of them; if that was not enough, ahead of where they are going.
      const bool again = count_ < settling + 16;
      const float ahead = smaller(3.0F * peak_ - 2.0F * lowest_, 1.5F * lowest_);
      if (before_ > lowest_ && wary_ < 2) wary_ = (wary_ + 1U) & 3U;
      jump(again ? ahead : lowest_, (lowest_ - value_) / 8.0F);
      before_ = 0.0F;
      rose_ = 1;
      return true;
    }
    if (sample < 2.0F * before_ && above > (before_ - value_) / 2.0F) {
      // Soon after a fall, and back where it fell from: the fall was chance, and the next one must
      // be asked for twice as long.
      jump(before_, far_);
      before_ = 0.0F;
      if (wary_ < 2) wary_ = (wary_ + 1U) & 3U;
      return true;
    }
    return false;
  }

  constexpr void hit(const quantile_rule& rule, float sample, std::uint8_t patience) noexcept {
    step_ = step_ > rule.step_hit ? static_cast<std::uint16_t>(step_ - rule.step_hit) : 0;
    tail_ = tail_ > rule.tail_hit ? static_cast<std::uint16_t>(tail_ - rule.tail_hit) : 0;
    const float below = value_ - sample;
    value_ -= smaller(below, step(rule) * (1.0F - rule.share));
    note_distance(rule, below);
    peak_ = run_ == 0 ? sample : larger(peak_, sample);
    if (++run_ >= (patience + 1) / 2) {
      end_run();
    } else {
      forget_jumps(rule);
    }
  }

  // Two such runs, and so many hits in a row that their largest tells more than the value does.
  constexpr void end_run() noexcept {
    const bool low = value_ - peak_ > 8.0F * near_ || peak_ < value_ / 2.0F;
    float& largest = lowest_;  // of the runs that ask for a fall; no miss is under suspicion now
    // A run that is far below those before it begins anew: they were still of what came before.
    const bool first = asked_ == 0 || peak_ < largest / 2.0F;
    largest = first ? peak_ : smaller(largest, peak_);
    const unsigned asked = low ? (first ? 1U : asked_ + 1U) : 0U;
    asked_ = asked & 7U;
    if (asked >= 2U + wary_) {
      before_ = value_;
      if (rose_ != 0 && hasty_ < 3) hasty_ = (hasty_ + 1U) & 3U;
      rose_ = 0;
      jump(largest, smaller(far_, (value_ - largest) / 8.0F));
      asked_ = 0;
    }
    run_ = 0;
    peak_ = 0.0F;
  }

  // A jump that has stood for a while was right, and the next one may come as easily again.
  constexpr void forget_jumps(const quantile_rule& rule) noexcept {
    if (before_ > 0.0F && count_ > settling + rule.patience) {
      before_ = 0.0F;
      if (wary_ > 0) wary_ = (wary_ - 1U) & 3U;
    }
    if (rose_ != 0 && count_ > settling + 4 * rule.patience) {
      rose_ = 0;
      if (hasty_ > 0) hasty_ = (hasty_ - 1U) & 3U;
    }
  }

  constexpr void jump(float to, float distance) noexcept {
    value_ = to;
    spread_out(distance);
    count_ = settling;
    quiet();
  }
  constexpr void spread_out(float distance) noexcept {
    far_ = larger(finest, distance);
    near_ = far_ / 2.0F;
  }
  constexpr void quiet() noexcept {
    step_ = tail_ = 0;
    run_ = 0;
    peak_ = 0.0F;
  }

  float value_ = 0.0F;       // ns
  float near_ = 0.0F;        // ns, see above
  float far_ = 0.0F;         // ns, median distance of a miss above the value
  float peak_ = 0.0F;        // largest of this run; while settling the largest of all
  float lowest_ = 0.0F;      // of the misses under suspicion; while settling the second largest
  float before_ = 0.0F;      // the value before the latest fall, for a while
  std::uint16_t count_ = 0;  // saturating; set back by a jump
  std::uint16_t step_ = 0, tail_ = 0;
  std::uint8_t run_ = 0;         // hits in a row
  unsigned char wary_ : 2 = 0;   // falls that did not stand, lately
  unsigned char hasty_ : 2 = 0;  // rises that did not
  unsigned char asked_ : 3 = 0;  // runs in a row that asked for a fall
  unsigned char rose_ : 1 = 0;   // whether the latest jump was a rise, for a while
};

/// Learns a quantile of the overshoot by length class, with forgetting, in fixed memory.
class overshoot_estimator {
 public:
  /// One for each power of two: below 32 us, below 64 us, … 2.1 s and more.
  static constexpr std::size_t classes = 18;

  constexpr explicit overshoot_estimator(double punctuality = 0.98) noexcept : rule_(punctuality) {}

  static constexpr std::size_t class_of(nanoseconds length) noexcept {
    if (length < shortest * 2) return 0;
    const auto width =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length.count())));
    return smaller(width - shortest_width, classes - 1);
  }
  /// The shortest length of a class, and the shortest of the next one.
  static constexpr nanoseconds from(std::size_t c) noexcept {
    return c == 0 ? nanoseconds::zero() : shortest * (std::int64_t{1} << c);
  }
  static constexpr nanoseconds to(std::size_t c) noexcept {
    return c + 1 >= classes ? nanoseconds::max() : from(c + 1);
  }

  /// Takes one native wait in.
  ///
  /// @param length     What the kernel was asked for, ns, > 0.
  /// @param overshoot  By how much it was later, ns; negative (woken early) counts as 0.
  /// @param most       Overshoots beyond this are stalls: one bounded sample each.
  /// @param scarce     Whether waits of this class are only made now and then, to learn.
  constexpr void learn(nanoseconds length, nanoseconds overshoot, nanoseconds most,
                       bool scarce = false) noexcept {
    constexpr std::uint8_t few = 4;
    const std::size_t c = class_of(length);
    // A class stands for the length that it is told of most, and takes its value along to there.
    const std::uint8_t place = place_towards(c, length);
    class_[c].move(at_length(c, length_at(c, place)) - class_[c].value());
    place_[c] = place;
    const float lean = at_length(c, in_ns(length)) - class_[c].value();
    class_[c].learn(rule_, in_ns(overshoot) - lean, in_ns(most),
                    scarce ? smaller(few, rule_.patience) : rule_.patience);
    stale_ &= ~(1U << c);
    if (class_[c].rose()) {
      stale_ = ~(1U << c);
      risen_ = static_cast<std::uint8_t>(c);
    }
  }
  constexpr void learn(nanoseconds length, nanoseconds overshoot) noexcept {
    learn(length, overshoot, std::chrono::seconds{1});
  }

  /// The overshoot that a share `punctuality` of the waits of this length stays below, ns, ≥ 0.
  constexpr nanoseconds quantile(nanoseconds length) const noexcept {
    return whole(at(class_of(length), in_ns(length)));
  }

  /// The same from this length's own waits, also where one of another has since shown a rise.
  constexpr nanoseconds last_known(nanoseconds length) const noexcept {
    return whole(as_known(class_of(length), in_ns(length)));
  }

  /// The longest wait of class `c` that ends within `left`, by its quantile; 0 if there is none.
  constexpr nanoseconds longest_in(std::size_t c, nanoseconds left) const noexcept {
    const float end = in_ns(left), most = c + 1 < classes ? smaller(in_ns(to(c)), end) : end;
    // When a wait of that length is over: along one line up to the class's own place, along another
    // one from there.
    const auto over = [&](float length) { return length + at(c, length); };
    float length = most, least = in_ns(from(c));
    float latest = over(most);
    if (latest > end) {
      float soonest = over(least);
      const float place = place_of(c);
      if (place > least && place < most) {
        const float there = over(place);
        (there > end ? length : least) = place;
        (there > end ? latest : soonest) = there;
      }
      if (soonest > end) return nanoseconds::zero();
      length = least + (length - least) * (end - soonest) / (latest - soonest);
      length = smaller(length, larger(0.0F, end - at(c, length)));
    }
    if (length < in_ns(from(c))) return nanoseconds::zero();
    // A float may have been rounded up, and `to(c)` is of the next class.
    return smaller(smaller(whole(length), left), to(c) - nanoseconds{1});
  }

  /// Starts from what another one has learned; the share to stay below remains this one's.
  constexpr void take(const overshoot_estimator& from) noexcept {
    class_ = from.class_;
    place_ = from.place_;
    stale_ = from.stale_;
    risen_ = from.risen_;
  }

  constexpr std::uint32_t samples(nanoseconds length) const noexcept {
    return class_[class_of(length)].samples();
  }
  constexpr const quantile_tracker& tracker_of(std::size_t c) const noexcept { return class_[c]; }
  constexpr const quantile_rule& rule() const noexcept { return rule_; }
  constexpr double punctuality() const noexcept { return static_cast<double>(rule_.share); }

 private:
  static constexpr std::size_t shortest_width = 15;
  static constexpr nanoseconds shortest{std::int64_t{1} << (shortest_width - 1)};
  /// Before anything was learned: above Linux's slack of 50 us and its dispatch on a virtual
  /// machine.
  static constexpr float unknown = 150'000.0F;

  static constexpr float in_ns(nanoseconds t) noexcept { return static_cast<float>(t.count()); }
  static constexpr nanoseconds whole(float ns) noexcept {
    return nanoseconds{static_cast<std::int64_t>(ns)};
  }

  // --- lengths between and beside those that were seen -------------------------------------------

  static constexpr float span_of(std::size_t c) noexcept {
    return in_ns(shortest) * static_cast<float>(std::uint32_t{1} << (c == 0 ? 1 : c));
  }
  static constexpr float length_at(std::size_t c, std::uint8_t place) noexcept {
    return in_ns(from(c)) + span_of(c) * (static_cast<float>(place) + 0.5F) / 256.0F;
  }
  constexpr float place_of(std::size_t c) const noexcept { return length_at(c, place_[c]); }
  // An eighth of the way, at least one step.
  constexpr std::uint8_t place_towards(std::size_t c, nanoseconds length) const noexcept {
    const float share = (in_ns(length) - in_ns(from(c))) / span_of(c);
    const int here = place_[c], there = static_cast<int>(within(share, 0.0F, 0.999F) * 256.0F);
    int step = class_[c].samples() == 0 ? there - here : (there - here) / 8;
    if (step == 0 && there != here) step = there > here ? 1 : -1;
    return static_cast<std::uint8_t>(here + step);
  }

  // Where one class has just seen the kernel get slower, what the others know is of before, until
  // they have a sample of their own.
  constexpr float at(std::size_t c, float length) const noexcept {
    const float known = as_known(c, length);
    return (stale_ >> c & 1U) == 0 ? known : larger(known, class_[risen_].value());
  }
  constexpr float as_known(std::size_t c, float length) const noexcept {
    const quantile_tracker& own = class_[c];
    if (own.settled()) return at_length(c, length);
    const float others = from_others(c, length);
    if (own.samples() == 0) return others;
    // The fewer samples, the more of what the neighbours say counts, as far as it is higher.
    const float few = static_cast<float>(quantile_tracker::settling - own.samples()) /
                      static_cast<float>(quantile_tracker::settling);
    const float here = at_length(c, length);
    return here + few * larger(0.0F, smaller(others, 4.0F * own.value()) - here);
  }

  // A class's own quantile, carried on to another length of the class as its neighbours suggest.
  constexpr float at_length(std::size_t c, float length) const noexcept {
    const bool longer_one = length > place_of(c);
    std::size_t other = next_known(c, longer_one, few_samples);
    if (other == classes) other = next_known(c, !longer_one, few_samples);
    return other == classes ? class_[c].value() : on_line(c, other, length);
  }

  // What the nearest classes with samples say of one without: the line through two of them, between
  // them or carried on, so that overshoots which grow with the length are neither read off the
  // wrong class nor learned from nothing.
  constexpr float from_others(std::size_t c, float length) const noexcept {
    const std::size_t below = next_known(c, false), above = next_known(c, true);
    if (below == classes && above == classes) return unknown;
    if (below == classes) {
      const std::size_t second = next_known(above, true);
      if (second == classes) return class_[above].value();
      return larger(on_line(above, second, length), class_[above].value() / 4.0F);
    }
    if (above == classes) {
      const std::size_t second = next_known(below, false);
      if (second == classes) return class_[below].value();
      return larger(on_line(below, second, length), class_[below].value());
    }
    return on_line(below, above, length);
  }
  // The next class with samples, `classes` where there is none.
  constexpr std::size_t next_known(std::size_t c, bool up,
                                   std::uint32_t samples = 1) const noexcept {
    while (up ? c + 1 < classes : c > 0) {
      c = up ? c + 1 : c - 1;
      if (class_[c].samples() >= samples) return c;
    }
    return classes;
  }
  // From what was seen at `a`, along the line to `b`: never steeper than in proportion to the
  // length, and falling no faster than a kernel does that ends no wait before a certain time.
  constexpr float on_line(std::size_t a, std::size_t b, float length) const noexcept {
    const float rise = class_[b].value() - class_[a].value();
    const float slope =
        within(rise / (place_of(b) - place_of(a)), falling,
               smaller(class_[a].value() / place_of(a), class_[b].value() / place_of(b)));
    return within(class_[a].value() + slope * (length - place_of(a)), 0.0F, longest_margin);
  }

  static constexpr float longest_margin = 1e9F;  // ns
  static constexpr std::uint32_t few_samples = 4;
  static constexpr float falling =
      -0.95F;  // not quite -1: a line of ends that do not depend on the request

  quantile_rule rule_;
  std::array<quantile_tracker, classes> class_{};
  std::array<std::uint8_t, classes> place_{};  // the usual length within the class, in 256ths
  std::uint8_t risen_ = 0;                     // the class that was the latest to rise
  std::uint32_t stale_ = 0;                    // classes without a sample since, by bit
};

}  // namespace punctual
