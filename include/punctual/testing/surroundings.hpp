// What a simulated kernel stands in: how late a woken thread runs, and what else interrupts.
//
// Side layer, below the kernel models. A model says when the timer interrupt comes; these say how
// late the thread then is (`latency`), and which other interrupts a lazy kernel may use instead of
// its own (`interrupts`). Both repeat exactly from their seed.
#pragma once

#include <punctual/testing/random.hpp>
#include <punctual/time.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace punctual::testing {

/// The time from the interrupt that ends a wait until the thread runs, drawn anew each time.
class latency {
 public:
  using draw = std::function<nanoseconds(generator&)>;

  /// None: the thread runs at the interrupt.
  latency() = default;

  /// Your own: called with a seeded generator, answers 0 or more.
  explicit latency(draw from, std::uint64_t seed = 1) : draw_(std::move(from)), chance_(seed) {}

  static latency constant(nanoseconds length) {
    return latency([length](generator&) { return length; });
  }

  /// Most draws near the median, and one in a hundred above `p99`: a machine that is not busy.
  /// @param p99  The 99th percentile; at least the median.
  static latency log_normal(nanoseconds median, nanoseconds p99, std::uint64_t seed = 1) {
    const auto log2_of = [](nanoseconds t) {
      return fixed_log2(static_cast<std::uint64_t>(t.count()));
    };
    // The normal distribution's 99th percentile lies 2.326348 deviations above its median.
    const fixed deviation = (log2_of(p99) - log2_of(median)) * 1'000'000 / 2'326'348;
    return latency(
        [median, deviation](generator& chance) {
          return times_exp2(median, chance.normal() * deviation / fixed_one);
        },
        seed);
  }

  /// `usual`, and once in `one_in` draws a Pareto tail (index 3/2) from `from`, cut off at `most`:
  /// a busy host. One tail draw in 32 is ten times `from`, one in a thousand a hundred times.
  static latency heavy_tail(latency usual, std::uint64_t one_in, nanoseconds from, nanoseconds most,
                            std::uint64_t seed = 1) {
    return latency(
        [usual, one_in, from, most](generator& chance) mutable {
          if (!chance.one_in(one_in)) return usual();
          const nanoseconds late = times_exp2(from, chance.halvings() * 2 / 3);
          return late < most ? late : most;
        },
        seed);
  }

  /// `usual`, and once in `one_in` draws `other`: a core that sometimes sleeps deeply.
  static latency bimodal(latency usual, latency other, std::uint64_t one_in,
                         std::uint64_t seed = 1) {
    return latency(
        [usual, other, one_in](generator& chance) mutable {
          return chance.one_in(one_in) ? other() : usual();
        },
        seed);
  }

  /// What was measured somewhere, over and over in the same order.
  static latency trace(std::vector<nanoseconds> seen) {
    return latency([seen = std::move(seen), next = std::size_t{0}](generator&) mutable {
      if (seen.empty()) return nanoseconds::zero();
      if (next == seen.size()) next = 0;
      return seen[next++];
    });
  }

  /// Draws one.
  nanoseconds operator()() { return draw_ ? draw_(chance_) : nanoseconds::zero(); }

 private:
  draw draw_;
  generator chance_;
};

/// The other interrupts of the thread's processor, as a pure function of time.
class interrupts {
 public:
  /// The first one in `from` … `to`, both included, if there is one.
  using finder = std::function<std::optional<instant>(instant from, instant to)>;

  /// None: an idle machine.
  interrupts() = default;
  explicit interrupts(finder first) : first_(std::move(first)) {}

  /// One every `period`, at `phase` after a whole number of periods: a clock tick, a network card.
  static interrupts periodic(nanoseconds period, nanoseconds phase = nanoseconds::zero()) {
    return interrupts([period, phase](instant from, instant to) -> std::optional<instant> {
      const nanoseconds past = (from.time_since_epoch() - phase) % period;
      const instant next = past.count() == 0  ? from
                           : past.count() > 0 ? later(from, period - past)
                                              : later(from, -past);
      if (next > to) return std::nullopt;
      return next;
    });
  }

  /// Independent ones, one every `mean` on average: a busy machine.
  static interrupts poisson(nanoseconds mean, std::uint64_t seed = 1) {
    // Each stretch of four means has a generator of its own, so that any instant can be looked up;
    // a Poisson process that is started anew at fixed instants is still one.
    return interrupts([mean, seed](instant from, instant to) -> std::optional<instant> {
      const nanoseconds stretch = 4 * mean;
      std::int64_t number = from.time_since_epoch() / stretch;
      if (from.time_since_epoch() % stretch < nanoseconds::zero()) --number;
      for (;; ++number) {
        const nanoseconds begin = number * stretch;
        if (instant{begin} > to) return std::nullopt;
        generator chance(generator(seed + static_cast<std::uint64_t>(number) * 0x9e37'79b9u)());
        nanoseconds at = chance.exponential(mean);
        for (; at < stretch; at += chance.exponential(mean)) {
          const instant when = later(instant{begin}, at);
          if (when > to) return std::nullopt;
          if (when >= from) return when;
        }
        if (begin > (nanoseconds::max)() - 2 * stretch) return std::nullopt;
      }
    });
  }

  std::optional<instant> first(instant from, instant to) const {
    return first_ ? first_(from, to) : std::nullopt;
  }

 private:
  finder first_;
};

/// What a kernel model may ask for besides the request: its only state.
struct surroundings {
  latency dispatch{};
  interrupts others{};

  /// The thread runs some latency after the interrupt.
  instant dispatched(instant interrupt) { return later(interrupt, dispatch()); }

  /// The interrupt that ends a wait which any interrupt from `soft` on may end, and `hard` at last.
  instant first_in(instant soft, instant hard) const {
    const std::optional<instant> other = others.first(soft, hard);
    return other ? *other : hard;
  }
};

}  // namespace punctual::testing
