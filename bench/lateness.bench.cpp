// smoke: --benchmark_filter=lateness/100/
// How late and for how much CPU, by length, beside a pure spin (twice: the A/A control) and a plain
// kernel sleep, in turn in one run. Medians of five repetitions; those whose control disagrees are
// discarded and counted. `compare` does the same for everybody else.
#include "support/interleaved.hpp"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <memory>
#include <string>

namespace {

void lateness(benchmark::State& state) {
  const auto us = state.range(0);
  bench::plan plan;
  plan.length = std::chrono::microseconds{us};
  plan.rounds = us <= 200 ? 500 : us <= 2000 ? 400 : us <= 8000 ? 250 : 120;
  plan.warm_up = 100;

  bench::comparison result;
  for (auto _ : state) {
    bench::contenders all;
    all.push_back(std::make_unique<bench::ours>());
    all.push_back(std::make_unique<bench::peer<peers::spin>>("spin", peers::spin{}));
    all.push_back(std::make_unique<bench::peer<peers::spin>>("spin-again", peers::spin{}));
    all.push_back(std::make_unique<bench::peer<peers::kernel>>("kernel", peers::kernel{}));
    bench::interleaved run(plan);
    result = run.run(all);
  }
  if (result.kept[0].empty()) {
    state.SkipWithError("the A/A control never agreed: something else runs on this machine");
    return;
  }
  const auto of = [&result](const std::string& name) {
    return bench::median_of(result.by_repetition(result.index(name)));
  };
  const bench::figures mine = of("punctual");
  const bench::figures spin = of("spin");
  const bench::figures kernel = of("kernel");
  state.counters["p50_ns"] = mine.p50;
  state.counters["p90_ns"] = mine.p90;
  state.counters["p99_ns"] = mine.p99;
  state.counters["p50_minus_spin_ns"] = mine.p50 - spin.p50;
  state.counters["late_10us_%"] = 100 * mine.later_10us;
  state.counters["late_minus_spin_points"] = 100 * (mine.later_10us - spin.later_10us);
  state.counters["cpu_us"] = mine.cpu / 1e3;
  state.counters["cpu_per_kernel_sleep"] = mine.cpu / kernel.cpu;
  state.counters["cpu_per_length"] = mine.cpu / static_cast<double>(plan.length.count());
  state.counters["kernel_p50_ns"] = kernel.p50;
  state.counters["kernel_cpu_us"] = kernel.cpu / 1e3;
  state.counters["early"] = static_cast<double>(result.early[0]);
  state.counters["kept"] = static_cast<double>(result.kept[0].size());
  state.counters["discarded"] = static_cast<double>(result.discarded);
}

BENCHMARK(lateness)->Arg(100)->Arg(1000)->Arg(4000)->Arg(16'667)->Iterations(1)->Unit(
    benchmark::kMillisecond);

}  // namespace
