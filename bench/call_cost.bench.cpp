// smoke: --benchmark_min_time=0.001
// What a call costs that does not wait: a deadline that is past,
// beside the clock reads it is made of.
//
// `ratios` is the result: everything in turn within one run, in units of one clock_gettime, medians
// of five repetitions. A repetition in which two identical series of clock reads differ by more
// than 3 % is discarded and counted.
#include "support/samples.hpp"
#include "support/thread_cost.hpp"

#include <punctual/sleep.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace {

using punctual::clock_kind;
using punctual::instant;
using punctual::native_platform;
using std::chrono::seconds;

void clock_read() { benchmark::DoNotOptimize(bench::now()); }
void coarse_read() { benchmark::DoNotOptimize(native_platform::coarse_now(clock_kind::monotonic)); }
void counter_read() { benchmark::DoNotOptimize(native_platform::counter()); }

// More than two ticks past, and less than one: the second costs a precise read as well.
void past_far(instant long_ago) { benchmark::DoNotOptimize(punctual::sleep_until(long_ago)); }
void past_near(instant just_now) { benchmark::DoNotOptimize(punctual::sleep_until(just_now)); }

void sleep_past(instant long_ago) {
  const timespec at{static_cast<time_t>(long_ago.time_since_epoch() / seconds{1}), 0};
  benchmark::DoNotOptimize(::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr));
}
void std_past(instant long_ago) { std::this_thread::sleep_until(long_ago); }

// A deadline that has only just passed stays so for some microseconds: renewed every few calls.
constexpr int calls_until_stale = 100;

void bm_clock_read(benchmark::State& state) {
  for (auto _ : state) clock_read();
}
void bm_coarse_read(benchmark::State& state) {
  for (auto _ : state) coarse_read();
}
void bm_counter_read(benchmark::State& state) {
  for (auto _ : state) counter_read();
}
void bm_past_far(benchmark::State& state) {
  const instant long_ago = bench::now() - seconds{1};
  for (auto _ : state) past_far(long_ago);
}
void bm_past_near(benchmark::State& state) {
  while (state.KeepRunningBatch(calls_until_stale)) {
    const instant just_now = bench::now();
    for (int i = 0; i < calls_until_stale; ++i) past_near(just_now);
  }
}
void bm_clock_nanosleep_past(benchmark::State& state) {
  const instant long_ago = bench::now() - seconds{1};
  for (auto _ : state) sleep_past(long_ago);
}
void bm_std_sleep_until_past(benchmark::State& state) {
  const instant long_ago = bench::now() - seconds{1};
  for (auto _ : state) std_past(long_ago);
}

// Nanoseconds a call, over a short series.
template <class Call>
double cost_of(Call call) {
  const instant from = bench::now();
  for (int i = 0; i < calls_until_stale; ++i) call();
  return static_cast<double>((bench::now() - from).count()) / calls_until_stale;
}

void bm_ratios(benchmark::State& state) {
  constexpr int kept_repetitions = 5;
  constexpr int series = 2000;
  constexpr std::size_t kinds = 5;
  const instant long_ago = bench::now() - seconds{1};
  std::array<std::vector<double>, kinds> medians;
  int discarded = 0;
  for (auto _ : state) {
    for (int made = 0; made < 2 * kept_repetitions && medians[0].size() < kept_repetitions;
         ++made) {
      std::array<std::vector<double>, kinds> costs;
      for (int i = 0; i < series; ++i) {
        costs[0].push_back(cost_of(clock_read));
        costs[1].push_back(cost_of([&] { past_far(long_ago); }));
        const instant just_now = bench::now();
        costs[2].push_back(cost_of([&] { past_near(just_now); }));
        costs[3].push_back(cost_of(coarse_read));
        costs[4].push_back(cost_of(clock_read));
      }
      const double one = bench::median(costs[0]);
      const double again = bench::median(costs[4]);
      if (std::max(one, again) > 1.03 * std::min(one, again)) {
        ++discarded;
        continue;
      }
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        medians[kind].push_back(bench::median(costs[kind]) / one);
      }
    }
  }
  state.counters["past_far"] = bench::median(medians[1]);
  state.counters["past_near"] = bench::median(medians[2]);
  state.counters["coarse_read"] = bench::median(medians[3]);
  state.counters["clock_again"] = bench::median(medians[4]);
  state.counters["kept"] = static_cast<double>(medians[0].size());
  state.counters["discarded"] = discarded;
}

BENCHMARK(bm_clock_read)->Name("clock_read");
BENCHMARK(bm_coarse_read)->Name("coarse_read");
BENCHMARK(bm_counter_read)->Name("counter_read");
BENCHMARK(bm_past_far)->Name("past_far");
BENCHMARK(bm_past_near)->Name("past_near");
BENCHMARK(bm_clock_nanosleep_past)->Name("clock_nanosleep_past");
BENCHMARK(bm_std_sleep_until_past)->Name("std_sleep_until_past");
BENCHMARK(bm_ratios)->Name("ratios")->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
