// The pinball loss: what a margin costs that is meant to cover a share of the overshoots.
//
// A margin that is too short by x costs share · x, one too long by x costs (1 − share) · x; over
// many waits the quantile at `share` is the fixed margin that costs least. Regret is the loss over
// that of the best fixed margin in hindsight; on a trace that shifts, of the best one for each
// part.
#pragma once

#include "traces.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace replay {

/// Waits before judging begins.
inline constexpr std::size_t warm_up = 200;

inline double pinball(double share, double margin, double overshoot) {
  return overshoot > margin ? share * (overshoot - margin) : (1 - share) * (margin - overshoot);
}

/// The sum of the losses of the best fixed margin for these overshoots.
inline double best_fixed(std::vector<double> overshoot, double share) {
  if (overshoot.empty()) return 0;
  std::sort(overshoot.begin(), overshoot.end());
  const auto n = static_cast<double>(overshoot.size());
  const auto at = static_cast<std::size_t>(std::max(0.0, std::ceil(share * n) - 1));
  const double margin = std::max(0.0, overshoot[std::min(at, overshoot.size() - 1)]);
  double sum = 0;
  for (const double each : overshoot) sum += pinball(share, margin, each);
  return sum;
}

/// ns a wait, after the warm-up.
inline double best_loss(const trace& t, double share) {
  std::vector<std::size_t> ends = t.shifts;
  ends.push_back(t.overshoot.size());
  double sum = 0;
  std::size_t from = warm_up;
  for (const std::size_t end : ends) {
    if (end <= from) continue;
    sum += best_fixed({t.overshoot.begin() + static_cast<std::ptrdiff_t>(from),
                       t.overshoot.begin() + static_cast<std::ptrdiff_t>(end)},
                      share);
    from = end;
  }
  return sum / static_cast<double>(t.overshoot.size() - warm_up);
}

/// What an estimator did on a trace.
struct outcome {
  double loss = 0;      // ns a wait
  double spin = 0;      // ns a wait
  double late_p99 = 0;  // ns
};

template <class Estimator>
outcome run(const trace& t, double share, Estimator estimator) {
  outcome sum;
  std::vector<double> late;
  for (std::size_t i = 0; i < t.overshoot.size(); ++i) {
    estimator.begin();
    const auto margin = static_cast<double>(estimator.margin(t.length).count());
    const double overshoot = t.overshoot[i];
    if (i >= warm_up) {
      sum.loss += pinball(share, margin, overshoot);
      sum.spin += std::max(0.0, margin - overshoot);
      late.push_back(std::max(0.0, overshoot - margin));
    }
    estimator.observe(t.length, nanoseconds{static_cast<std::int64_t>(overshoot)});
  }
  const auto n = static_cast<double>(late.size());
  sum.loss /= n;
  sum.spin /= n;
  std::sort(late.begin(), late.end());
  sum.late_p99 = late[static_cast<std::size_t>(0.99 * n)];
  return sum;
}

/// Native waits until the margin is within 1.2 of its most before a disturbance; 2000: not in 2000.
template <class Estimator>
int recovery(Estimator estimator, const std::vector<double>& disturbance) {
  const nanoseconds length = std::chrono::milliseconds{4};
  sim::latency usual =
      sim::latency::log_normal(std::chrono::microseconds{50}, std::chrono::microseconds{110}, 5);
  const auto feed = [&](nanoseconds overshoot) {
    estimator.begin();
    estimator.observe(length, overshoot);
  };
  nanoseconds before{0};
  for (int i = 0; i < 1000; ++i) {
    feed(usual());
    if (i >= 800) before = std::max(before, estimator.margin(length));
  }
  for (const double each : disturbance) feed(nanoseconds{static_cast<std::int64_t>(each)});
  int waits = 0;
  // For good: the margin must also be back 20 waits on, so that a last-frame rule gains nothing.
  int good = 0;
  while (waits < 2000 && good < 20) {
    good = estimator.margin(length) * 5 <= before * 6 ? good + 1 : 0;
    feed(usual());
    ++waits;
  }
  return good < 20 ? 2000 : waits - 20;
}

}  // namespace replay
