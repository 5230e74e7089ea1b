// Holds the models of Linux to the wake-ups of the real kernel: same request, same phase, same
// wake-up. Reads what the guest's `probe` printed under virtual time. Usage: validate FILE
//
// Mistake that would live without it: a model that is consistent, tested and not what the kernel
// does.

#include <punctual/testing/kernels/linux.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using punctual::instant;
using punctual::nanoseconds;
using namespace std::chrono_literals;
namespace kernels = punctual::testing::kernels;

constexpr std::int64_t hz = 250;
constexpr nanoseconds nominal = 4ms;

/// One wait of the real kernel's, on its steady clock.
struct observed {
  nanoseconds slack, request;
  instant tick;  ///< when the timer interrupt before it was seen
  instant base, woke;
};

struct probe {
  bool high_resolution = false;
  bool complete = false;
  std::vector<observed> waits;
};

/// The kernel's timer interrupts, in the models' words: the instant of one, and how far the real
/// period is from the nominal one.
struct lattice {
  nanoseconds phase;
  kernels::parts_per_billion error;
};

probe read_probe(const char* path) {
  probe result;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string what;
    in >> what;
    if (what == "probe") result.high_resolution = line.find("resolution 1 ") != std::string::npos;
    if (what == "end") result.complete = true;
    if (what != "wait") continue;
    std::int64_t slack = 0, request = 0, tick = 0, base = 0, woke = 0;
    in >> slack >> request >> tick >> base >> woke;
    result.waits.push_back({nanoseconds(slack), nanoseconds(request), instant(nanoseconds(tick)),
                            instant(nanoseconds(base)), instant(nanoseconds(woke))});
  }
  return result;
}

template <class Value>
Value median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Fits the ticks by medians: an interrupt with more to do than to wake us is seen too late.
lattice fit(const std::vector<observed>& waits) {
  const instant origin = waits.front().tick;
  const auto number = [&](const observed& w) { return (w.tick - origin + nominal / 2) / nominal; };
  const std::size_t half = waits.size() / 2;
  std::vector<std::int64_t> errors;
  for (std::size_t i = 0; i < half; ++i) {
    const observed &a = waits[i], &b = waits[i + half];
    const std::int64_t ticks = number(b) - number(a);
    errors.push_back((b.tick - a.tick - ticks * nominal).count() * hz / ticks);
  }
  const kernels::parts_per_billion error{median(errors)};
  std::vector<nanoseconds> phases;
  phases.reserve(waits.size());
  for (const observed& w : waits)
    phases.push_back(w.tick - kernels::tick(hz, origin.time_since_epoch(), error).at(number(w)));
  return {origin.time_since_epoch() + median(phases), error};
}

/// The wake-up that the model of this kernel says, without dispatch latency.
instant modelled(bool high_resolution, const lattice& ticks, const observed& wait) {
  const punctual::testing::native_request asked{wait.base, wait.base + wait.request,
                                                punctual::slack::as_is, false};
  punctual::testing::surroundings around;
  if (!high_resolution)
    return kernels::linux_ticks{hz, ticks.phase, ticks.error}.wake(asked, around);
  around.others = punctual::testing::interrupts::periodic(nominal, ticks.phase);
  return kernels::linux_highres{wait.slack}.wake(asked, around);
}

}  // namespace

int main(int count, char** words) {
  const probe seen = read_probe(count > 1 ? words[1] : "");
  if (!seen.complete || seen.waits.size() < 100) {
    std::puts("FAIL  validate: no complete probe to read");
    return 1;
  }
  const lattice ticks = fit(seen.waits);
  // From the interrupt to the woken thread: constant but for how deep the idle loop was (3.8 to
  // 5.5 us), and for what else a tick has to do (2.6 to 10.3 us; Linux 6.1 under virtual time). The
  // bounds are far below what they must tell apart: slacks of 1 ns and 50 us, ticks of 4 ms.
  const nanoseconds longest = seen.high_resolution ? 10us : 20us;
  std::vector<nanoseconds> dispatch;
  dispatch.reserve(seen.waits.size());
  int wrong = 0;
  for (const observed& wait : seen.waits) {
    dispatch.push_back(wait.woke - modelled(seen.high_resolution, ticks, wait));
    if (dispatch.back() >= -1us && dispatch.back() <= longest) continue;
    ++wrong;
    std::printf("slack %lld request %lld, %lld after a tick: %lld ns later than modelled\n",
                static_cast<long long>(wait.slack.count()),
                static_cast<long long>(wait.request.count()),
                static_cast<long long>((wait.base - wait.tick).count()),
                static_cast<long long>(dispatch.back().count()));
  }
  const auto [least, most] = std::minmax_element(dispatch.begin(), dispatch.end());
  std::printf(
      "%s  model of %s: %d of %d real waits end when it says; dispatch %lld, median %lld, %lld "
      "ns\n",
      wrong == 0 ? "ok  " : "FAIL", seen.high_resolution ? "high-resolution timers" : "4 ms ticks",
      static_cast<int>(seen.waits.size()) - wrong, static_cast<int>(seen.waits.size()),
      static_cast<long long>(least->count()), static_cast<long long>(median(dispatch).count()),
      static_cast<long long>(most->count()));
  return wrong == 0 ? 0 : 1;
}
