// What can this machine do? How late its kernel wakes sleepers, how late punctual is and for how
// much CPU, what more privileges would gain, and plain advice drawn from what was found.
//
//   meter                     about 15 s
//   meter --seconds 60        steadier tails
//   meter --json, --csv       for programs; times in nanoseconds (JSON) or microseconds (CSV)
//
// Columns as cyclictest has them, in microseconds: I is the interval, C the number of waits, then
// Min, Avg and Max of (now − deadline); each deadline is the one before plus the interval.
// smoke: --seconds 1
#include <punctual/host.hpp>
#include <punctual/punctual.hpp>
#include <punctual/statistics.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using punctual::instant;
using punctual::nanoseconds;
using punctual::statistics;
using punctual::steady;

double in_us(nanoseconds t) { return static_cast<double>(t.count()) / 1e3; }

std::string printed(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

// --- measuring -----------------------------------------------------------------------------------

/// A series of waits: one line of a table.
struct series {
  std::string name;
  nanoseconds interval{0};
  statistics late{};
  nanoseconds cpu{0};
  nanoseconds took{0};
  int error = 0;  ///< a privilege was refused, and nothing was measured

  double cpu_us() const { return in_us(cpu) / static_cast<double>(late.count()); }
  double core_percent() const { return 100 * in_us(cpu) / in_us(took); }
};

/// Waits `count` times, an interval apart: next += interval, so that a late wait delays no other.
template <class Wait>
void run(series& into, int count, Wait wait_until) {
  const nanoseconds ran = punctual::native_platform::running_time();
  const instant began = steady::now();
  instant next = began;
  for (int i = 0; i < count; ++i) {
    next += into.interval;
    wait_until(next);
    const instant now = steady::now();
    into.late.record(now - next);
    if (now - next > into.interval) next = now;  // after a stall: on from here
  }
  into.cpu += punctual::native_platform::running_time() - ran;
  into.took += steady::now() - began;
}

void kernel_wait(instant until) { punctual::block_until(until); }
void precise_wait(instant until) { punctual::sleep_until(until); }

int waits_within(nanoseconds time, nanoseconds interval) {
  return std::max(3, static_cast<int>(time / interval));
}

/// Says on a terminal what is going on, and wipes it away.
class progress {
 public:
  explicit progress(bool shown) : shown_(shown && isatty(STDERR_FILENO) != 0) {}
  void say(const std::string& what) const {
    if (shown_) std::fprintf(stderr, "\r\033[K%s ", what.c_str());
  }
  void done() const { say(""); }

 private:
  bool shown_;
};

/// What was measured, in the order of the report.
struct findings {
  punctual::calibration calibration{};
  std::vector<series> kernel, precise, privileges;
};

std::vector<series> measure_kernel(nanoseconds time, const progress& told) {
  std::vector<series> all;
  constexpr std::array<nanoseconds, 5> lengths{100us, 1ms, 4ms, 16'667us, 50ms};
  for (const nanoseconds length : lengths) {
    told.say("the kernel at " + punctual::to_text(length));
    series one{"kernel", length};
    run(one, waits_within(time / lengths.size(), length), kernel_wait);
    all.push_back(one);
  }
  return all;
}

std::vector<series> measure_rates(nanoseconds time, const progress& told) {
  std::vector<series> all;
  constexpr std::array<int, 7> rates{1000, 500, 250, 144, 60, 50, 30};
  for (const int hertz : rates) {
    told.say("punctual at " + std::to_string(hertz) + " Hz");
    series one{std::to_string(hertz) + " Hz", nanoseconds{1'000'000'000 / hertz}};
    run(one, waits_within(time / static_cast<int>(rates.size()), one.interval), precise_wait);
    all.push_back(one);
  }
  return all;
}

/// The plain kernel sleep of 1 ms with one privilege at a time, in
/// turn, so that all see the same machine.
std::vector<series> measure_privileges(nanoseconds time, const progress& told) {
  std::vector<series> all{
      {"as it is", 1ms}, {"slack 1 ns", 1ms}, {"SCHED_FIFO 10", 1ms}, {"idle latency 0", 1ms}};
  constexpr int in_a_row = 20;
  const int rounds = waits_within(time / static_cast<int>(all.size()), in_a_row * 1ms);
  for (int round = 0; round < rounds; ++round) {
    told.say("privileges, round " + std::to_string(round + 1) + " of " + std::to_string(rounds));
    run(all[0], in_a_row, kernel_wait);
    {
      const punctual::timer_slack_guard slack{1ns};
      all[1].error = slack.error();
      if (slack.granted()) run(all[1], in_a_row, kernel_wait);
    }
    {
      const punctual::realtime_guard realtime;
      all[2].error = realtime.error();
      if (realtime.granted()) run(all[2], in_a_row, kernel_wait);
    }
    {
      const punctual::cpu_latency_guard latency{0ns};
      all[3].error = latency.error();
      if (latency.granted()) run(all[3], in_a_row, kernel_wait);
    }
  }
  return all;
}

// --- what the system says of itself
// ----------------------------------------------------------------

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_guest() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) == 0) return line.find(" hypervisor") != std::string::npos;
  }
  return false;
}

/// Time that a host took from this guest's processors, in its
/// ticks, and all time. Zero where unknown.
std::array<double, 2> stolen_and_all() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  std::array<double, 8> times{};
  file >> cpu;
  for (double& each : times) file >> each;
  double all = 0;
  for (const double each : times) all += each;
  return {times[7], all};
}

/// The share of one core that this process's control group
/// allows, in per cent; none without a quota.
std::optional<double> quota_percent() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    double quota = -1;
    double period = 0;
    if (controllers.empty()) {
      std::ifstream("/sys/fs/cgroup" + path + "/cpu.max") >> quota >> period;  // "max" is no number
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      std::ifstream("/sys/fs/cgroup/cpu" + path + "/cpu.cfs_quota_us") >> quota;
      std::ifstream("/sys/fs/cgroup/cpu" + path + "/cpu.cfs_period_us") >> period;
    }
    if (quota > 0 && period > 0) return 100 * quota / period;
  }
  return std::nullopt;
}

// --- advice
// ------------------------------------------------------------------------------------------

std::string refusal(int error) { return std::generic_category().message(error); }

/// Sentences that follow from the figures. Each names the figure that it follows from.
std::vector<std::string> advice(const findings& found, double stolen_percent) {
  std::vector<std::string> all;
  const auto us = [](nanoseconds t) { return printed("%.0f us", in_us(t)); };
  const series& plain = found.privileges[0];
  const auto p50 = [](const series& s) { return s.late.quantile(0.5); };
  const auto p99 = [](const series& s) { return s.late.quantile(0.99); };

  const series& slack = found.privileges[1];
  if (slack.error == 0 && p50(plain) - p50(slack) > 10us) {
    all.push_back(
        "Slack: plain sleeps end " + us(p50(plain)) + " late, " + us(p50(slack)) +
        " with 1 ns of slack. punctual tightens it around its own waits; for other sleeps "
        "of a thread there is timer_slack_guard.");
  } else {
    all.push_back("Slack: nothing to gain here.");
  }

  const series& fifo = found.privileges[2];
  if (fifo.error != 0) {
    all.push_back(
        "Scheduling: SCHED_FIFO is refused (" + refusal(fifo.error) +
        "). Beside busy threads it would matter; an rtprio line in limits.conf or "
        "CAP_SYS_NICE allows it, a cpu group without a real-time share forbids it even to root.");
  } else if (p99(fifo) + 20us < p99(plain) * 2 / 3 && p50(slack) > p50(fifo) + 5us) {
    all.push_back("Scheduling: realtime_guard cuts the kernel's p99 from " + us(p99(plain)) +
                  " to " + us(p99(fifo)) + ". Leave a core to the rest of the system.");
  } else {
    all.push_back(
        "Scheduling: SCHED_FIFO is allowed and gains little more than the slack it goes without "
        "while the machine is idle. Beside busy threads it decides.");
  }

  const series& latency = found.privileges[3];
  if (latency.error != 0) {
    all.push_back("Idle states: /dev/cpu_dma_latency is refused (" + refusal(latency.error) + ").");
  } else if (p50(plain) - p50(latency) > 5us) {
    all.push_back("Idle states: processors that do not sleep deeply wake a sleeper " +
                  us(p50(plain) - p50(latency)) + " sooner: cpu_latency_guard, for its power.");
  } else {
    all.push_back(std::string("Idle states: cpu_latency_guard gains nothing here") +
                  (is_guest() ? "; a guest's processors are put to sleep by its host." : "."));
  }

  if (is_guest()) {
    all.push_back(
        "Virtual machine: the host wakes this guest before the guest wakes a thread, and can stop "
        "it at any time; it took " +
        printed("%.1f %%", stolen_percent) +
        " of the time meanwhile. No sleeper can give that back.");
  }
  if (const auto quota = quota_percent()) {
    all.push_back(
        "Quota: this process may use " + printed("%.0f %%", *quota) +
        " of one core; what is spun comes out of it. Keep tuning::cpu_budget below it, or the "
        "whole process stands still until the period ends.");
  }
  if (found.calibration.tick > 0ns) {
    all.push_back("Tick: this kernel ends sleeps on ticks of " +
                  punctual::to_text(found.calibration.tick) +
                  "; what is shorter is spun. tuning::max_margin bounds that.");
  }
  for (const series& one : found.precise) {
    if (one.interval != nanoseconds{1'000'000'000 / 60}) continue;
    if (p99(one) > 1ms) {
      all.push_back(
          "Company: at 60 Hz one wait in a hundred ends " + us(p99(one)) +
          " late or more: something else ran, or the host did. Measure again on an idle machine.");
    } else {
      all.push_back("At 60 Hz half of the waits end within " + punctual::to_text(p50(one)) +
                    ", 99 of 100 within " + punctual::to_text(p99(one)) + ", for " +
                    printed("%.2f %%", one.core_percent()) + " of one core.");
    }
  }
  return all;
}

// --- reports
// -----------------------------------------------------------------------------------------

void print(const char* title, const std::vector<series>& all) {
  std::printf("\n%s\n%-16s %8s %7s %8s %8s %8s %8s %9s %8s %7s\n", title, "", "I", "C", "Min",
              "Avg", "p50", "p99", "Max", "CPU", "core %");
  for (const series& one : all) {
    if (one.error != 0) {
      std::printf("%-16s refused: %s\n", one.name.c_str(), refusal(one.error).c_str());
      continue;
    }
    std::printf("%-16s %8.0f %7llu %8.2f %8.2f %8.2f %8.1f %9.1f %8.1f %7.2f\n", one.name.c_str(),
                in_us(one.interval), static_cast<unsigned long long>(one.late.count()),
                in_us(one.late.min()), in_us(one.late.mean()), in_us(one.late.quantile(0.5)),
                in_us(one.late.quantile(0.99)), in_us(one.late.max()), one.cpu_us(),
                one.core_percent());
  }
}

void report(const findings& found, const std::vector<std::string>& advised) {
  std::printf("Calibration\n%s", punctual::to_text(found.calibration).c_str());
  print("The kernel alone: lateness of plain sleeps, in us", found.kernel);
  print("punctual at the usual rates: lateness in us, CPU in us a wait and in per cent of one core",
        found.precise);
  for (const series& one : found.precise) {
    if (one.name == "60 Hz") {
      std::printf("\nLateness at 60 Hz\n%s", punctual::to_text(one.late).c_str());
    }
  }
  print("What privileges would gain: plain sleeps of 1 ms", found.privileges);
  std::printf("\nAdvice\n");
  for (const std::string& line : advised) std::printf("* %s\n", line.c_str());
}

void report_csv(const findings& found) {
  std::printf(
      "part,name,interval_us,count,min_us,avg_us,p50_us,p99_us,max_us,cpu_us,core_percent,error\n");
  const auto part = [](const char* name, const std::vector<series>& all) {
    for (const series& one : all) {
      std::printf("%s,%s,%.3f,%llu", name, one.name.c_str(), in_us(one.interval),
                  static_cast<unsigned long long>(one.late.count()));
      if (one.late.count() == 0) {
        std::printf(",,,,,,,,%d\n", one.error);
        continue;
      }
      std::printf(",%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f,%d\n", in_us(one.late.min()),
                  in_us(one.late.mean()), in_us(one.late.quantile(0.5)),
                  in_us(one.late.quantile(0.99)), in_us(one.late.max()), one.cpu_us(),
                  one.core_percent(), one.error);
    }
  };
  part("kernel", found.kernel);
  part("punctual", found.precise);
  part("privilege", found.privileges);
}

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

std::string json(const std::vector<series>& all) {
  std::string text = "[";
  for (const series& one : all) {
    text += (text.size() > 1 ? ",\n " : "") + ("{\"name\":" + quoted(one.name)) +
            ",\"interval_ns\":" + std::to_string(one.interval.count()) +
            ",\"error\":" + std::to_string(one.error);
    if (one.late.count() != 0) {
      text += ",\"cpu_ns\":" + printed("%.0f", one.cpu_us() * 1e3) +
              ",\"core_percent\":" + printed("%.4f", one.core_percent()) +
              ",\"lateness\":" + punctual::to_json(one.late);
    }
    text += "}";
  }
  return text + "]";
}

void report_json(const findings& found, const std::vector<std::string>& advised) {
  std::string lines;
  for (const std::string& line : advised) lines += (lines.empty() ? "" : ",\n ") + quoted(line);
  std::printf(
      "{\"kernel_release\":%s,\n\"guest\":%s,\n\"calibration\":%s,\n\"kernel\":%s,\n\"punctual\":%"
      "s,\n"
      "\"privileges\":%s,\n\"advice\":[%s]}\n",
      quoted(first_line("/proc/sys/kernel/osrelease")).c_str(), is_guest() ? "true" : "false",
      punctual::to_json(found.calibration).c_str(), json(found.kernel).c_str(),
      json(found.precise).c_str(), json(found.privileges).c_str(), lines.c_str());
}

int wrong(const std::string& why) {
  std::fprintf(stderr, "meter: %s\n", why.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  enum class format { text, json, csv } wanted = format::text;
  double seconds = 15;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const format asked = word == "--json"  ? format::json
                         : word == "--csv" ? format::csv
                                           : format::text;
    if (asked != format::text) {
      if (wanted != format::text && wanted != asked) return wrong("--json or --csv, not both");
      wanted = asked;
    } else if (word == "--seconds") {
      const char* const value = ++i < argc ? argv[i] : "";
      char* end = nullptr;
      seconds = std::strtod(value, &end);
      if (end == value || *end != '\0' || !(seconds >= 0.1 && seconds <= 86'400)) {
        return wrong("--seconds takes 0.1 to 86400, not '" + std::string(value) + "'");
      }
    } else {
      return wrong("'" + word + "' is neither --json, --csv nor --seconds");
    }
  }
  const nanoseconds time = punctual::to_nanoseconds(std::chrono::duration<double>(seconds));
  const progress told(wanted == format::text);
  const auto before = stolen_and_all();
  findings found;
  told.say("calibrating");
  found.calibration = punctual::calibrate();
  found.kernel = measure_kernel(time / 4, told);
  found.precise = measure_rates(time / 2, told);
  found.privileges = measure_privileges(time / 4, told);
  told.done();
  const auto after = stolen_and_all();
  const double passed = after[1] - before[1];
  const double stolen = passed > 0 ? 100 * (after[0] - before[0]) / passed : 0;

  const std::vector<std::string> advised = advice(found, stolen);
  if (wanted == format::text) report(found, advised);
  if (wanted == format::csv) report_csv(found);
  if (wanted == format::json) report_json(found, advised);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  std::fputs("meter: standard output did not take everything\n", stderr);
  return 1;
}
