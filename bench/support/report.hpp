// The results of a comparison, for people (a table), for
// programs (JSON) and for spreadsheets (CSV).
#pragma once

#include "facts.hpp"
#include "interleaved.hpp"
#include "json.hpp"

#include <punctual/statistics.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace bench {

inline std::string in_ms(nanoseconds length) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(length.count()) / 1e6);
  return text;
}

inline void put(json& out, std::string_view name, const figures& f) {
  out.open(name);
  out.put("waits", static_cast<std::uint64_t>(f.waits));
  out.put("min_ns", f.min).put("p50_ns", f.p50).put("p90_ns", f.p90).put("p95_ns", f.p95);
  out.put("p99_ns", f.p99).put("p999_ns", f.p999).put("max_ns", f.max);
  out.put("later_1us", f.later_1us).put("later_10us", f.later_10us);
  out.put("later_100us", f.later_100us);
  out.put("cpu_ns", f.cpu).put("voluntary", f.voluntary).put("involuntary", f.involuntary);
  if (f.work > 0) out.put("busy_work_per_ms", f.work);
  out.close();
}

inline void put(json& out, std::string_view name, const interval& i) {
  out.open_list(name).item(i.low).item(i.high).close_list();
}

inline void put_histogram(json& out, const samples& all) {
  punctual::statistics counted;
  for (const sample& each : all) counted.record(nanoseconds{each.late});
  out.open_list("histogram");
  counted.for_each_bucket([&out](const punctual::statistics::bucket& each) {
    out.open_list_item().item(each.from.count()).item(static_cast<std::int64_t>(each.count));
    out.close_list();
  });
  out.close_list();
}

/// One contender's result of one length.
struct row {
  std::string name;
  samples pooled;
  std::vector<figures> repetitions;
  std::size_t early = 0;
  bool paired = true;  ///< false: a program of its own, or the reference itself
  difference from_reference{};
};

/// Adds one object of a length to the list that is open.
inline void put_rows(json& out, const comparison& c, const std::vector<row>& rows) {
  out.open_item();
  out.put("length_ns", static_cast<std::int64_t>(c.length.count()));
  out.put("repetitions_made", static_cast<std::uint64_t>(c.made));
  out.put("repetitions_discarded", static_cast<std::uint64_t>(c.discarded));
  out.open_list("controls");
  for (const control& each : c.controls) {
    out.open_item();
    out.put("p50_apart_ns", each.p50_apart).put("p90_ratio", each.p90_ratio);
    out.put("later_10us_apart", each.share_apart).put("cpu_ratio", each.cpu_ratio);
    out.put("agrees", each.agrees);
    out.close();
  }
  out.close_list();
  out.open_list("contenders");
  for (const row& each : rows) {
    out.open_item();
    out.put("name", each.name).put("early", static_cast<std::uint64_t>(each.early));
    put(out, "median", median_of(each.repetitions));
    put(out, "pooled", figures_of(each.pooled));
    if (each.paired) {
      out.open("minus_punctual_95");
      put(out, "p50_ns", each.from_reference.p50);
      put(out, "later_10us", each.from_reference.later_10us);
      put(out, "cpu_ns", each.from_reference.cpu);
      out.close();
    }
    put_histogram(out, each.pooled);
    out.close();
  }
  out.close_list();
}

inline std::string csv_head() {
  return "length_ms,contender,waits,early,min_ns,p50_ns,p90_ns,p95_ns,p99_ns,p999_ns,max_ns,"
         "later_1us,later_10us,later_100us,cpu_ns,voluntary,involuntary,busy_work_per_ms,"
         "cpu,kernel,clock_source,slack_ns,policy,load,month\n";
}

inline std::string csv_rows(nanoseconds length, const std::vector<row>& rows,
                            const std::string& where) {
  std::string text;
  for (const row& each : rows) {
    const figures f = median_of(each.repetitions);
    char line[512];
    std::snprintf(line, sizeof line,
                  "%s,%s,%zu,%zu,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.5f,%.5f,%.5f,%.0f,%.3f,%.3f,"
                  "%.1f,",
                  in_ms(length).c_str(), each.name.c_str(), f.waits, each.early, f.min, f.p50,
                  f.p90, f.p95, f.p99, f.p999, f.max, f.later_1us, f.later_10us, f.later_100us,
                  f.cpu, f.voluntary, f.involuntary, f.work);
    text += line + where + "\n";
  }
  return text;
}

/// A table: lateness and CPU side by side, since neither is a result without the other.
inline void print_rows(const comparison& c, const std::vector<row>& rows) {
  std::printf("\n%s ms: %zu repetitions, %zu discarded by the A/A control\n",
              in_ms(c.length).c_str(), c.made, c.discarded);
  if (c.made == c.discarded) {
    std::printf("no repetition was kept: something else runs on this machine\n");
    return;
  }
  std::printf("%-18s %7s %5s %9s %9s %9s %10s %7s %10s %6s\n", "", "waits", "early", "p50 us",
              "p90 us", "p99 us", "max us", ">10us %", "CPU us", "switch");
  for (const row& each : rows) {
    const figures f = median_of(each.repetitions);
    char cpu[16] = "-";
    if (f.cpu >= 0) std::snprintf(cpu, sizeof cpu, "%.1f", f.cpu / 1e3);
    std::printf("%-18s %7zu %5zu %9.2f %9.2f %9.1f %10.1f %7.1f %10s %6.2f\n", each.name.c_str(),
                f.waits, each.early, f.p50 / 1e3, f.p90 / 1e3, f.p99 / 1e3, f.max / 1e3,
                f.later_10us * 100, cpu, f.voluntary + f.involuntary);
  }
  std::fflush(stdout);
}

}  // namespace bench
