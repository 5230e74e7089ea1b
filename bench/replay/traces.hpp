// The traces that replay feeds to estimators: recorded ones, and overshoots of the kernel models.
//
// A trace is one length of wait and how late each of many waits of it was. Recorded ones lie in
// bench/traces; the others are made here, always the same.
#pragma once

#include <punctual/testing/kernels.hpp>
#include <punctual/testing/random.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace replay {

using punctual::instant;
using punctual::nanoseconds;
namespace sim = punctual::testing;

struct trace {
  std::string name;
  nanoseconds length;
  std::vector<double> overshoot;      // ns
  std::vector<std::size_t> shifts{};  // where the kernel changes; empty for a stationary trace
};

/// All lengths of one recorded file, as one trace each.
inline std::vector<trace> recorded(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::map<std::int64_t, trace> by_length;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::int64_t length = 0;
    double overshoot = 0;
    if (!(words >> length >> overshoot)) throw std::runtime_error(path.string() + ": " + line);
    trace& into = by_length[length];
    into.length = nanoseconds{length};
    into.name = path.stem().string() + " " + std::to_string(length / 1000) + " us";
    into.overshoot.push_back(overshoot);
  }
  std::vector<trace> all;
  for (auto& [length, each] : by_length) all.push_back(std::move(each));
  return all;
}

/// `waits` native waits of one length on a machine, with work of 0 to 20 ms between two of them.
inline void append(trace& into, const std::function<void(sim::simulation&)>& install, int waits,
                   std::uint64_t seed, punctual::slack how = punctual::slack::tight) {
  sim::simulation world;
  install(world);
  sim::generator chance(seed);
  instant now = world.time();
  for (int i = 0; i < waits; ++i) {
    now += chance.between(nanoseconds{0}, std::chrono::milliseconds{20});
    const instant until = world.precise(now) + into.length;
    now = std::max(now, world.kernel({now + world.cost.native_call / 2, until, how, false}));
    into.overshoot.push_back(static_cast<double>((world.precise(now) - until).count()));
  }
}

/// Every ready-made machine at three lengths.
inline std::vector<trace> of_machines(int waits) {
  std::vector<trace> all;
  for (const sim::kernels::ready_made& machine : sim::kernels::all()) {
    for (const std::int64_t us : {1000, 4000, 16'667}) {
      trace each{std::string(machine.name) + " " + std::to_string(us) + " us",
                 std::chrono::microseconds{us},
                 {}};
      append(
          each, [&](sim::simulation& world) { machine.install(world, 7); }, waits, 11);
      all.push_back(std::move(each));
    }
  }
  return all;
}

/// Kernels that change: each part of `waits`, there and back and there and back again.
inline std::vector<trace> shifting(int waits) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  const auto machine = [](const char* name) {
    return [name](sim::simulation& world) { sim::kernels::named(name).install(world, 7); };
  };
  const auto late = [](nanoseconds by, nanoseconds median, nanoseconds p99) {
    return [=](sim::simulation& world) {
      sim::latency jitter = sim::latency::log_normal(median, p99, 7);
      world.kernel = [=](const sim::native_request& r) mutable {
        return std::max(r.now, r.until) + by + jitter();
      };
    };
  };
  struct part {
    std::function<void(sim::simulation&)> on;
    punctual::slack how = punctual::slack::tight;
  };
  const std::vector<std::pair<std::string, std::vector<part>>> changes{
      {"slack given up and back", {{machine("linux"), punctual::slack::as_is}, {machine("linux")}}},
      {"load comes and goes",
       {{machine("linux")}, {late({}, microseconds{60}, microseconds{400})}}},
      {"host gets busy",
       {{machine("virtual machine")},
        {late(microseconds{40}, microseconds{150}, microseconds{600})}}},
      {"step up and down",
       {{late(microseconds{50}, microseconds{10}, microseconds{60})},
        {late(microseconds{150}, microseconds{20}, microseconds{120})}}},
      {"four times as wide",
       {{late(microseconds{20}, microseconds{10}, microseconds{40})},
        {late(microseconds{20}, microseconds{40}, microseconds{160})}}},
  };
  std::vector<trace> all;
  for (const auto& [name, parts] : changes) {
    trace each{name, milliseconds{4}, {}};
    for (std::uint64_t round = 0; round < 2; ++round) {
      for (const part& p : parts) {
        each.shifts.push_back(each.overshoot.size());
        append(each, p.on, waits, 3 + round, p.how);
      }
    }
    all.push_back(std::move(each));
  }
  return all;
}

}  // namespace replay
