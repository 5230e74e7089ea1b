// Measured waits, and what is computed from them: exact quantiles, shares, intervals.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace bench {

/// One measured wait. Times in nanoseconds.
struct sample {
  std::int64_t late = 0;  ///< end − deadline; negative: the wait returned early
  std::int64_t cpu = 0;   ///< CPU time that the waiting thread used; negative: not known
  std::int64_t took = 0;
  std::int64_t voluntary = 0, involuntary = 0;  ///< context switches
  std::uint64_t work = 0;                       ///< what the busy threads did meanwhile
};

using samples = std::vector<sample>;

/// The value that the share `q` of all does not exceed, exactly. Reorders the values.
inline double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const double rank = q * static_cast<double>(values.size());
  auto at = static_cast<std::size_t>(rank);
  if (static_cast<double>(at) == rank && at > 0) --at;
  at = std::min(at, values.size() - 1);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// What is reported of a set of waits. Times in nanoseconds, shares 0 … 1.
struct figures {
  std::size_t waits = 0;
  std::size_t early = 0;
  double min = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, max = 0;
  double later_1us = 0, later_10us = 0, later_100us = 0;
  double cpu = 0;                         ///< mean a wait; negative: not known
  double voluntary = 0, involuntary = 0;  ///< context switches a wait
  double work = 0;                        ///< of the busy threads, units a millisecond
};

inline figures figures_of(const samples& all) {
  figures f;
  f.waits = all.size();
  if (all.empty()) return f;
  const auto count = static_cast<double>(all.size());
  std::vector<double> late;
  late.reserve(all.size());
  double took = 0;
  double work = 0;
  bool cpu_known = true;
  for (const sample& each : all) {
    late.push_back(static_cast<double>(each.late));
    f.early += each.late < 0 ? 1 : 0;
    f.later_1us += each.late > 1'000 ? 1 / count : 0;
    f.later_10us += each.late > 10'000 ? 1 / count : 0;
    f.later_100us += each.late > 100'000 ? 1 / count : 0;
    cpu_known = cpu_known && each.cpu >= 0;
    f.cpu += static_cast<double>(each.cpu) / count;
    f.voluntary += static_cast<double>(each.voluntary) / count;
    f.involuntary += static_cast<double>(each.involuntary) / count;
    took += static_cast<double>(each.took);
    work += static_cast<double>(each.work);
  }
  if (!cpu_known) f.cpu = -1;
  if (took > 0) f.work = work / (took / 1e6);
  f.min = *std::min_element(late.begin(), late.end());
  f.max = *std::max_element(late.begin(), late.end());
  f.p50 = quantile(late, 0.5);
  f.p90 = quantile(late, 0.9);
  f.p95 = quantile(late, 0.95);
  f.p99 = quantile(late, 0.99);
  f.p999 = quantile(late, 0.999);
  return f;
}

/// The medians, figure by figure, of several repetitions; counts are summed.
inline figures median_of(const std::vector<figures>& each) {
  figures all;
  const auto take = [&](double figures::*member) {
    std::vector<double> values;
    for (const figures& one : each) values.push_back(one.*member);
    all.*member = median(values);
  };
  for (const figures& one : each) {
    all.waits += one.waits;
    all.early += one.early;
  }
  for (double figures::*member :
       {&figures::min, &figures::p50, &figures::p90, &figures::p95, &figures::p99, &figures::p999,
        &figures::max, &figures::later_1us, &figures::later_10us, &figures::later_100us,
        &figures::cpu, &figures::voluntary, &figures::involuntary, &figures::work}) {
    take(member);
  }
  return all;
}

/// An interval that holds 95 % of the resampled differences.
struct interval {
  double low = 0, high = 0;
};

/// How another differs from the reference, sample by sample of the same rounds.
struct difference {
  interval p50;         ///< ns, other − reference
  interval later_10us;  ///< share, other − reference
  interval cpu;         ///< ns a wait, other − reference
};

/// Paired bootstrap: rounds are drawn with replacement, in
/// blocks of ten since noise comes in bursts.
inline difference compared(const samples& reference, const samples& other, int draws = 1000) {
  constexpr std::size_t block = 10;
  const std::size_t rounds = std::min(reference.size(), other.size());
  difference all;
  if (rounds < 2 * block) return all;
  std::mt19937_64 random(rounds);
  std::vector<double> p50, share, cpu, a, b;
  for (int draw = 0; draw < draws; ++draw) {
    a.clear();
    b.clear();
    double apart = 0;
    double used = 0;
    while (a.size() < rounds) {
      const auto from = static_cast<std::size_t>(random() % (rounds - block + 1));
      for (std::size_t i = from; i < from + block && a.size() < rounds; ++i) {
        a.push_back(static_cast<double>(reference[i].late));
        b.push_back(static_cast<double>(other[i].late));
        apart += (other[i].late > 10'000 ? 1 : 0) - (reference[i].late > 10'000 ? 1 : 0);
        used += static_cast<double>(other[i].cpu - reference[i].cpu);
      }
    }
    const auto n = static_cast<double>(a.size());
    p50.push_back(quantile(b, 0.5) - quantile(a, 0.5));
    share.push_back(apart / n);
    cpu.push_back(used / n);
  }
  const auto ends = [](std::vector<double>& values) {
    return interval{quantile(values, 0.025), quantile(values, 0.975)};
  };
  all = {ends(p50), ends(share), ends(cpu)};
  return all;
}

}  // namespace bench
