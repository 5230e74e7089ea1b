// Measures several ways to wait in one process, on the same lengths, in turn.
//
// A repetition is a number of rounds; in a round every contender waits once, in an order that is
// shuffled anew, so that none always follows the same neighbour. Where the contenders' CPU use
// would spill over into each other's waits (a quota, a busy core) each has its turn as a block
// instead, after a rest. Two identical contenders are the A/A control of every repetition: where
// they disagree, the machine was doing something else, and the repetition is counted but not used.
#pragma once

#include "contender.hpp"
#include "load.hpp"
#include "samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace bench {

/// How the two halves of the A/A control differed in one repetition.
struct control {
  double p50_apart = 0;    ///< ns
  double p90_ratio = 1;    ///< larger / smaller
  double share_apart = 0;  ///< of the waits later than 10 us, 0 … 1
  double cpu_ratio = 1;    ///< larger / smaller
  bool agrees = true;
};

/// Which contenders are the control, and how far they may be apart.
///
/// A repetition is short, so two honest halves differ by chance as well: they disagree where they
/// are apart by more than the limit and by more than two standard errors.
struct control_rule {
  std::string first = "spin", second = "spin-again";
  // Half of the smallest differences that are claimed of an idle machine: 100 ns, 5 points.
  double most_p50_apart = 50;
  double most_share_apart = 0.025;
  double most_p90_ratio = 1e9;
  double most_cpu_ratio = 1.05;

  control judge(const samples& a, const samples& b) const {
    const figures one = figures_of(a);
    const figures two = figures_of(b);
    const auto ratio = [](double x, double y) {
      return std::max(x, y) / std::max(std::min(x, y), 1.0);
    };
    control c{std::abs(one.p50 - two.p50), ratio(one.p90, two.p90),
              std::abs(one.later_10us - two.later_10us), ratio(one.cpu, two.cpu), true};
    const auto n = static_cast<double>(std::max<std::size_t>(std::min(a.size(), b.size()), 1));
    const double share = (one.later_10us + two.later_10us) / 2;
    const bool shares_agree = c.share_apart <= most_share_apart ||
                              c.share_apart <= 2 * std::sqrt(2 * share * (1 - share) / n);
    c.agrees = c.p50_apart <= most_p50_apart && shares_agree && c.cpu_ratio <= most_cpu_ratio &&
               (c.p90_ratio <= most_p90_ratio || (inside(one.p90, b, n) && inside(two.p90, a, n)));
    return c;
  }

  /// Under load every percentile moves; what is claimed there are
  /// factors of 1.1 on a plain sleep's p90.
  static control_rule for_load() { return {"kernel", "kernel-again", 1e18, 1, 1.1, 1e9}; }

 private:
  // Whether a p90 lies where that of such samples may lie by
  // chance: two standard errors of its rank.
  static bool inside(double p90, const samples& all, double n) {
    const double off = 2 * std::sqrt(0.9 * 0.1 / n);
    std::vector<double> late;
    for (const sample& each : all) late.push_back(static_cast<double>(each.late));
    return quantile(late, 0.9 - off) <= p90 && p90 <= quantile(late, std::min(0.9 + off, 1.0));
  }
};

/// All waits of one length.
struct comparison {
  nanoseconds length{0};
  std::vector<std::string> names;
  std::vector<std::vector<samples>> kept;  ///< [contender][repetition]
  std::vector<control> controls;           ///< of every repetition made
  std::vector<std::size_t> early;          ///< [contender], in all repetitions made and the warm-up
  std::size_t made = 0;
  std::size_t discarded = 0;

  samples pooled(std::size_t contender) const {
    samples all;
    for (const samples& each : kept[contender]) all.insert(all.end(), each.begin(), each.end());
    return all;
  }
  std::vector<figures> by_repetition(std::size_t contender) const {
    std::vector<figures> all;
    for (const samples& each : kept[contender]) all.push_back(figures_of(each));
    return all;
  }
  std::size_t index(const std::string& name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    return static_cast<std::size_t>(found - names.begin());
  }
  bool has(const std::string& name) const { return index(name) < names.size(); }
};

/// What to measure.
struct plan {
  nanoseconds length{0};
  int rounds = 100;     ///< a repetition
  int repetitions = 5;  ///< to keep; at most twice as many are made
  int warm_up = 300;    ///< waits of each contender before the first repetition, of at most 1 ms
  bool blocks = false;  ///< each contender's waits of a repetition in a row
  nanoseconds rest{0};  ///< before each block
  const busy_threads* load = nullptr;
  control_rule rule{};
  std::function<void(const ours&)> after_ours;       ///< sees each receipt of a repetition
  std::function<void(const std::string&)> progress;  ///< is told what happens
};

class interleaved {
 public:
  explicit interleaved(plan what) : plan_(std::move(what)), measuring_(cost_of_measuring()) {}

  comparison run(contenders& all) {
    comparison result;
    result.length = plan_.length;
    for (const auto& each : all) result.names.push_back(each->name());
    result.kept.resize(all.size());
    result.early.resize(all.size());
    const bool controlled = result.has(plan_.rule.first) && result.has(plan_.rule.second);

    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i]->prepare();
      const nanoseconds length = std::min(plan_.length, nanoseconds{std::chrono::milliseconds{1}});
      for (int n = 0; n < plan_.warm_up; ++n) result.early[i] += wait(*all[i], length).late < 0;
    }
    int kept = 0;
    for (int made = 0; kept < plan_.repetitions && made < 2 * plan_.repetitions; ++made) {
      if (plan_.progress) {
        plan_.progress("repetition " + std::to_string(made + 1) + ", " +
                       std::to_string(result.discarded) + " discarded");
      }
      std::vector<samples> repetition = measure(all);
      ++result.made;
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (const sample& each : repetition[i]) result.early[i] += each.late < 0;
      }
      if (controlled) {
        const control c = plan_.rule.judge(repetition[result.index(plan_.rule.first)],
                                           repetition[result.index(plan_.rule.second)]);
        result.controls.push_back(c);
        if (!c.agrees) {
          ++result.discarded;
          continue;
        }
      }
      ++kept;
      for (std::size_t i = 0; i < all.size(); ++i) {
        result.kept[i].push_back(std::move(repetition[i]));
      }
    }
    return result;
  }

  /// One wait, measured.
  sample wait(contender& c, nanoseconds length) {
    c.enter();
    const switches before = thread_switches();
    const std::uint64_t work = plan_.load != nullptr ? plan_.load->done() : 0;
    const nanoseconds cpu = thread_cpu();
    const instant began = now();
    const instant deadline = began + length;
    c.wait_until(deadline);
    const instant ended = now();
    const nanoseconds used = thread_cpu() - cpu - measuring_;
    const std::uint64_t done = plan_.load != nullptr ? plan_.load->done() : 0;
    const switches after = thread_switches();
    c.leave();
    return {(ended - deadline).count(),
            std::max(used, nanoseconds::zero()).count(),
            (ended - began).count(),
            after.voluntary - before.voluntary,
            after.involuntary - before.involuntary,
            done - work};
  }

 private:
  std::vector<samples> measure(contenders& all) {
    std::vector<samples> repetition(all.size());
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto take = [&](std::size_t i) {
      repetition[i].push_back(wait(*all[i], plan_.length));
      if (const auto* mine = dynamic_cast<const ours*>(all[i].get()); mine && plan_.after_ours) {
        plan_.after_ours(*mine);
      }
    };
    if (plan_.blocks) {
      std::shuffle(order.begin(), order.end(), random_);
      for (const std::size_t i : order) {
        peers::native_machine::sleep_for(plan_.rest);
        for (int round = 0; round < plan_.rounds; ++round) take(i);
      }
    } else {
      for (int round = 0; round < plan_.rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random_);
        for (const std::size_t i : order) take(i);
      }
    }
    return repetition;
  }

  plan plan_;
  nanoseconds measuring_;
  std::mt19937_64 random_{20261201};
};

}  // namespace bench
