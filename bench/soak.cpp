// smoke: --seconds 2 --every 0.5
// An hour of one pacer: does anything creep? Lateness, CPU, memory, margin, and the grid itself.
//
// Every interval becomes a line; the deadlines are held to exact arithmetic of our own. At the end
// each series is asked for a trend (Mann and Kendall's test, Theil and Sen's slope): a significant
// one that adds up to more than a tenth of the series' median is a finding, and the exit code is 1.
#include "support/facts.hpp"
#include "support/json.hpp"
#include "support/options.hpp"
#include "support/samples.hpp"
#include "support/thread_cost.hpp"

#include <punctual/pacer.hpp>
#include <punctual/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <malloc.h>
#include <unistd.h>

namespace {

using bench::instant;
using bench::nanoseconds;

struct interval {
  double p50, p90, p99, max;  // ns of lateness
  double later_10us;          // share
  double cpu;                 // ns a beat
  double resident, heap;      // bytes
  double margin;              // ns, for one period
  double beats, dropped;
};

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Where deadline n lies after deadline 0: floor(n · den · 10⁹ / num), in wide integers.
std::int64_t exact(std::uint64_t n, const punctual::rate& rate) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::int64_t>(static_cast<wide>(n) * static_cast<wide>(rate.den) *
                                   1'000'000'000u / static_cast<wide>(rate.num));
}

struct trend {
  double z;  // of Mann and Kendall's S; beyond 1.96 either way one in twenty series is by chance
  double change;  // over the whole run, by Theil and Sen's slope, relative to the median
  bool found;
};

trend trend_of(const std::vector<double>& values) {
  const std::size_t n = values.size();
  if (n < 8) return {0, 0, false};
  double s = 0;
  std::vector<double> slopes;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const double apart = values[j] - values[i];
      s += apart > 0 ? 1 : apart < 0 ? -1 : 0;
      slopes.push_back(apart / static_cast<double>(j - i));
    }
  }
  const auto count = static_cast<double>(n);
  const double deviation = std::sqrt(count * (count - 1) * (2 * count + 5) / 18);
  const double z = s > 0 ? (s - 1) / deviation : s < 0 ? (s + 1) / deviation : 0;
  const double middle = bench::median(values);
  const double change = middle == 0 ? 0 : bench::median(slopes) * (count - 1) / middle;
  return {z, change, std::abs(z) > 1.96 && std::abs(change) > 0.1};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options given(argc, argv, "a pacer for an hour, and what creeps",
                             {{"seconds", "S", "default 3600"},
                              {"every", "S", "length of an interval, default 60"},
                              {"rate", "HZ", "beats a second, default 60000/1001"},
                              {"json", "FILE", "write the results; - is standard output"}});
  const double seconds = given.number("seconds", 3600, 0.1, 1e7);
  const double every = given.number("every", 60, 0.05, 1e6);
  const auto hz = static_cast<std::int64_t>(given.number("rate", 0, 1, 100'000));
  const punctual::rate rate = given.has("rate") ? punctual::hz(hz) : punctual::rate{60'000, 1001};
  const double period = 1e9 * static_cast<double>(rate.den) / static_cast<double>(rate.num);

  punctual::pacer pacer{rate};
  const instant anchor = pacer.next().due;
  const instant begun = bench::now();
  std::vector<interval> intervals;
  intervals.reserve(100'000);
  std::vector<std::int64_t> first_minute;
  first_minute.reserve(100'000);
  std::int64_t drift = 0;
  std::uint64_t early = 0;
  std::uint64_t deadlines = 0;  // of the grid, dropped ones included
  std::uint64_t dropped_before = 0;

  std::printf("%8s %8s %8s %8s %9s %9s %7s %8s %9s %9s %9s\n", "s", "beats", "dropped", "p50 us",
              "p90 us", "p99 us", ">10us %", "CPU us", "margin us", "RSS KiB", "heap B");
  while (bench::now() - begun < std::chrono::duration<double>(seconds)) {
    const nanoseconds cpu = bench::thread_cpu();
    const instant from = bench::now();
    punctual::statistics lateness;  // read from outside: not what the pacer says of itself
    std::uint64_t later = 0;
    while (bench::now() - from < std::chrono::duration<double>(every)) {
      const punctual::beat beat = pacer.next();
      const nanoseconds late = bench::now() - beat.due;
      deadlines += 1 + beat.skipped;
      lateness.record(late);
      early += late < nanoseconds::zero() ? 1u : 0u;
      later += late > std::chrono::microseconds{10} ? 1u : 0u;
      const std::int64_t off = (beat.due - anchor).count() - exact(deadlines, rate);
      if (std::abs(off) > std::abs(drift)) drift = off;
      if (beat.due - anchor < std::chrono::minutes{1}) first_minute.push_back(late.count());
    }
    const auto count = static_cast<double>(lateness.count());
    const auto ns = [&](double q) { return static_cast<double>(lateness.quantile(q).count()); };
    const std::uint64_t dropped = pacer.dropped();
    interval one{
        ns(0.5),
        ns(0.9),
        ns(0.99),
        ns(1),
        static_cast<double>(later) / count,
        static_cast<double>((bench::thread_cpu() - cpu).count()) / count,
        resident_bytes(),
        static_cast<double>(::mallinfo2().uordblks),
        static_cast<double>(pacer.sleeper().margin(nanoseconds{std::llround(period)}).count()),
        count,
        static_cast<double>(dropped - dropped_before)};
    dropped_before = dropped;
    intervals.push_back(one);
    std::printf("%8.1f %8.0f %8.0f %8.2f %9.2f %9.1f %7.2f %8.1f %9.1f %9.0f %9.0f\n",
                std::chrono::duration<double>(bench::now() - begun).count(), one.beats, one.dropped,
                one.p50 / 1e3, one.p90 / 1e3, one.p99 / 1e3, one.later_10us * 100, one.cpu / 1e3,
                one.margin / 1e3, one.resident / 1024, one.heap);
    std::fflush(stdout);
  }

  bench::json out;
  out.open();
  bench::put_facts(out);
  out.put("num", static_cast<std::int64_t>(rate.num))
      .put("den", static_cast<std::int64_t>(rate.den));
  out.put("interval_s", every).put("deadlines", deadlines).put("early", early);
  out.put("drift_ns", drift);
  bool creeps = drift != 0 || early != 0;
  out.open("series");
  const auto series = [&](const char* name, double interval::*member, bool judged) {
    std::vector<double> values;
    for (const interval& one : intervals) values.push_back(one.*member);
    // The first interval is when the pacer learns.
    const trend found = trend_of({values.begin() + (values.empty() ? 0 : 1), values.end()});
    out.open(name);
    out.put("z", found.z).put("change", found.change).put("trend", judged && found.found);
    out.open_list("values");
    for (const double value : values) out.item(value);
    out.close_list().close();
    if (judged && found.found) {
      creeps = true;
      std::printf("trend: %s changes by %.0f %% over the run (z %.1f)\n", name, found.change * 100,
                  found.z);
    }
  };
  series("p50_ns", &interval::p50, true);
  series("p90_ns", &interval::p90, true);
  series("p99_ns", &interval::p99, true);
  series("max_ns", &interval::max, false);
  series("later_10us", &interval::later_10us, true);
  series("cpu_ns", &interval::cpu, true);
  series("resident_bytes", &interval::resident, true);
  series("heap_bytes", &interval::heap, true);
  series("margin_ns", &interval::margin, true);
  series("dropped", &interval::dropped, false);
  out.close();
  out.open_list("first_minute_late_ns");
  for (const std::int64_t late : first_minute) out.item(late);
  out.close_list().close();
  std::printf("%ju deadlines, drift %jd ns, %ju early, %s\n",
              static_cast<std::uintmax_t>(deadlines), static_cast<std::intmax_t>(drift),
              static_cast<std::uintmax_t>(early),
              intervals.size() < 9 ? "too short to see a trend"
              : creeps             ? "something creeps"
                                   : "no trend");
  const bool written =
      !given.has("json") || bench::write_file(given.text("json"), out.str() + "\n");
  return written && !creeps ? 0 : 1;
}
