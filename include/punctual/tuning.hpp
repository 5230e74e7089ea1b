// What a caller may choose: how punctual, for how much CPU.
//
// Layer L1. Plain values; every default names its reason and its figure.
#pragma once

#include <punctual/platform/seam.hpp>
#include <punctual/time.hpp>

namespace punctual {

/// Choices of one sleeper. Values out of range are taken as the nearest one in range; NaN as the
/// default.
struct tuning {
  /// Share of waits whose native part must end before the deadline, 0.5 … 0.9999.
  ///
  /// 0.98: with 1 ms waits two in a hundred end late by what the kernel adds, the rest within the
  /// spinner's 50 ns. Higher costs more spin on machines with a heavy tail of wake-ups.
  double punctuality = 0.98;

  /// Share of the wall-clock time that the thread may spin, 0 … 1, over `budget_window`.
  ///
  /// 0.5: leaves room for every kernel whose lateness is below half of the wait. Past the budget a
  /// wait is later, never early. 1 means no limit, 0 never spins.
  double cpu_budget = 0.5;

  /// The longest spin that one wait may plan, 0 … 1 s.
  ///
  /// 25 ms covers a kernel that wakes sleepers on 10 ms ticks and adds one (NetBSD at HZ=100).
  nanoseconds max_margin = std::chrono::milliseconds{25};

  /// Spin on the processor's counter where there is one; false: on the clock alone.
  bool use_counter = true;

  /// Ask the kernel for its smallest timer slack during native waits; false: leave it as it is.
  bool tighten_slack = true;

  /// The time over which `cpu_budget` holds: at most `cpu_budget * budget_window` of spin can be
  /// saved up.
  static constexpr nanoseconds budget_window = std::chrono::seconds{1};

  /// The same with every value in its range.
  constexpr tuning in_range() const noexcept {
    tuning t = *this;
    t.punctuality = clamped(punctuality, 0.5, 0.9999, tuning{}.punctuality);
    t.cpu_budget = clamped(cpu_budget, 0.0, 1.0, tuning{}.cpu_budget);
    t.max_margin = longer(nanoseconds::zero(), shorter(max_margin, std::chrono::seconds{1}));
    return t;
  }

 private:
  static constexpr double clamped(double value, double least, double most,
                                  double otherwise) noexcept {
    if (conversion::is_nan(value)) return otherwise;
    return value < least ? least : (value > most ? most : value);
  }
};

}  // namespace punctual
