// Every way to wait that we know, side by side: how late, and for how much CPU.
//
// All contenders wait in turn in one process (support/interleaved.hpp); programs of their own
// (Python, cyclictest) run between the repetitions. `--headline` measures what the README says,
// `--quick` shows that the program works and measures nothing.
//
//   compare --json compare.json                      idle, everybody, about 6 minutes on 2 cores
//   compare --headline                               the README's figures, about 2 minutes
//   compare --load busy | --load quota | --policy fifo
#include "support/interleaved.hpp"
#include "support/options.hpp"
#include "support/outsiders.hpp"
#include "support/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using bench::comparison;
using bench::contenders;
using bench::nanoseconds;
using bench::row;

const std::vector<std::string> headline{"punctual",  "std",         "kernel",       "kernel-slack1",
                                        "spin",      "spin-again",  "kernel-again", "fixed-125us",
                                        "fixed-1ms", "in-call-max", "mean-ema",     "max-decay"};

struct setup {
  std::vector<double> lengths_ms{0.1, 1, 4, 16.667, 100};
  std::vector<std::string> only;
  std::string load = "idle";
  std::string policy = "other";
  double quota = 20;
  double scale = 1;
  int repetitions = 5;
  int warm_up = 300;
  int fixed_rounds = 0;
  bool programs = true;
};

// Rounds of a repetition: enough for a p99 of the pooled waits, and the whole within some minutes.
int rounds_for(nanoseconds length, const setup& how) {
  if (how.fixed_rounds > 0) return how.fixed_rounds;
  const double ms = static_cast<double>(length.count()) / 1e6;
  const double rounds = ms <= 0.2 ? 400 : ms <= 2 ? 250 : ms <= 8 ? 120 : ms <= 40 ? 60 : 5;
  return std::max(2, static_cast<int>(rounds * how.scale));
}

bool wanted(const setup& how, const std::string& name) {
  return how.only.empty() || std::find(how.only.begin(), how.only.end(), name) != how.only.end();
}

contenders chosen(const setup& how) {
  contenders all = bench::everyone();
  bench::add_libraries(all);
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const auto& each) { return !wanted(how, each->name()); }),
            all.end());
  return all;
}

/// One of our own waits of this length, the one with the median
/// overshoot, for the picture of a wait.
class typical_wait {
 public:
  void see(const bench::ours& mine) { all_.push_back(mine.last()); }

  void put(bench::json& out) {
    std::vector<punctual::receipt> blocked;
    for (const punctual::receipt& each : all_) {
      if (each.native_waits == 1 && each.gaps == 0) blocked.push_back(each);
    }
    if (blocked.empty()) return;
    std::sort(blocked.begin(), blocked.end(),
              [](const auto& a, const auto& b) { return a.overshoot < b.overshoot; });
    const punctual::receipt& one = blocked[blocked.size() / 2];
    out.open("one_wait");
    out.put("blocked_ns", static_cast<std::int64_t>(one.blocked.count()));
    out.put("overshoot_ns", static_cast<std::int64_t>(one.overshoot.count()));
    out.put("spun_ns", static_cast<std::int64_t>(one.spun.count()));
    out.put("late_ns", static_cast<std::int64_t>(one.late.count()));
    out.close();
  }

 private:
  std::vector<punctual::receipt> all_;
};

class comparing {
 public:
  comparing(const setup& how, const bench::busy_threads* load) : how_(how), load_(load) {
    out_.open();
    bench::put_facts(out_);
    out_.put("load", how.load);
    if (how.load == "quota") out_.put("quota_percent", how.quota);
    out_.put("repetitions", how.repetitions);
    out_.open_list("lengths");
    where_ = '"' + bench::cpu_info("model name") + "\"," +
             bench::first_line("/proc/sys/kernel/osrelease") + ',' +
             bench::first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource") +
             ',' + std::to_string(::prctl(PR_GET_TIMERSLACK)) + ',' + bench::policy_name() + ',' +
             how.load + ',' + bench::this_month();
  }

  void measure(double ms) {
    const nanoseconds length{std::llround(ms * 1e6)};
    const int rounds = rounds_for(length, how_);
    typical_wait typical;

    bench::plan plan;
    plan.length = length;
    plan.rounds = rounds;
    plan.repetitions = how_.repetitions;
    plan.warm_up = how_.warm_up;
    plan.load = load_;
    plan.after_ours = [&](const bench::ours& mine) { typical.see(mine); };
    if (::isatty(STDERR_FILENO) != 0) {
      plan.progress = [&](const std::string& what) {
        std::fprintf(stderr, "\r\033[K%s ms: %s", bench::in_ms(length).c_str(), what.c_str());
      };
    }
    if (how_.load != "idle") {
      plan.blocks = true;
      plan.rest = std::chrono::milliseconds{how_.load == "quota" ? 200 : 100};
      plan.rule = bench::control_rule::for_load();
    }
    contenders all = chosen(how_);
    bench::interleaved run(plan);
    const comparison result = run.run(all);
    std::vector<row> rows = rows_of(result);
    if (how_.programs) add_programs(length, rounds, rows);
    if (plan.progress) std::fprintf(stderr, "\r\033[K");

    bench::put_rows(out_, result, rows);
    typical.put(out_);
    out_.close();
    csv_ += bench::csv_rows(length, rows, where_);
    bench::print_rows(result, rows);
  }

  std::string json() { return out_.close_list().close().str() + "\n"; }
  std::string csv() const { return bench::csv_head() + csv_; }

 private:
  static std::vector<row> rows_of(const comparison& result) {
    const std::size_t reference = result.index("punctual");
    std::vector<row> rows;
    for (std::size_t i = 0; i < result.names.size(); ++i) {
      row one{
          result.names[i], result.pooled(i), result.by_repetition(i), result.early[i], false, {}};
      if (reference < result.names.size() && i != reference) {
        one.paired = true;
        one.from_reference = bench::compared(result.pooled(reference), one.pooled);
      }
      rows.push_back(std::move(one));
    }
    return rows;
  }

  // As many repetitions as everyone else, one after the other:
  // their start-up must not disturb the rest.
  void add_programs(nanoseconds length, int rounds, std::vector<row>& rows) const {
    for (const bench::outsider& each : bench::outsiders()) {
      if (!wanted(how_, each.name)) continue;
      row one{each.name, {}, {}, 0, false, {}};
      for (int i = 0; i < how_.repetitions; ++i) {
        const bench::samples some = bench::run(each, length, rounds);
        if (some.empty()) break;
        one.pooled.insert(one.pooled.end(), some.begin(), some.end());
        one.repetitions.push_back(bench::figures_of(some));
        one.early += one.repetitions.back().early;
      }
      if (!one.repetitions.empty()) rows.push_back(std::move(one));
    }
  }

  setup how_;
  const bench::busy_threads* load_;
  bench::json out_;
  std::string csv_, where_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::options given(
      argc, argv, "lateness and CPU of many ways to wait, in turn on the same lengths",
      {{"lengths", "MS,…", "default 0.1,1,4,16.667,100"},
       {"only", "NAME,…", "only these contenders, see --list"},
       {"headline", "", "the contenders and lengths that the README's figures need"},
       {"load", "WHAT", "idle (default), busy: a thread on each core, quota: a CPU quota"},
       {"quota", "PERCENT", "of one core, default 20"},
       {"policy", "WHAT", "other (default), fifo: SCHED_FIFO where it is allowed"},
       {"repetitions", "N", "to keep, default 5; as many again may be discarded"},
       {"scale", "X", "that many times the usual rounds, default 1"},
       {"quick", "", "a few rounds, to see that it works; the figures mean nothing"},
       {"json", "FILE", "write the results; - is standard output"},
       {"csv", "FILE", "the same as a table"},
       {"list", "", "name the contenders and end"}});
  setup how;
  if (given.has("quick")) {
    how.lengths_ms = {0.1, 1, 4};
    how.fixed_rounds = 5;
    how.warm_up = 5;
    how.repetitions = 2;
    how.programs = false;
  }
  if (given.has("headline")) {
    how.lengths_ms = {1, 4, 16.667};
    how.only = headline;
  }
  how.lengths_ms = given.numbers("lengths", how.lengths_ms, 0.001, 10'000);
  if (given.has("only")) how.only = given.words("only");
  how.load = given.text("load", how.load);
  how.policy = given.text("policy", how.policy);
  how.quota = given.number("quota", how.quota, 2, 100);
  how.scale = given.number("scale", how.scale, 0.01, 1000);
  how.repetitions = static_cast<int>(given.number("repetitions", how.repetitions, 1, 100));
  if (how.load != "idle" && how.load != "busy" && how.load != "quota") {
    given.wrong("--load takes idle, busy or quota, not '" + how.load + "'");
  }
  if (how.policy != "other" && how.policy != "fifo") {
    given.wrong("--policy takes other or fifo, not '" + how.policy + "'");
  }

  // Every name must mean somebody: a contender, or a program that may or may not be installed.
  std::vector<std::string> names;
  contenders everybody = bench::everyone();
  bench::add_libraries(everybody);
  for (const auto& each : everybody) names.push_back(each->name());
  for (const bench::outsider& each : bench::outsiders()) names.push_back(each.name);
  if (given.has("list")) {
    for (const std::string& name : names) std::printf("%s\n", name.c_str());
    return 0;
  }
  for (const std::string& name : how.only) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      given.wrong("there is no contender '" + name + "', see --list");
    }
  }
  // Under load the plain sleep is the control; an idle machine's
  // is the spin. The other is left out.
  const bool loaded = how.load != "idle";
  if (how.only.empty()) how.only = names;
  how.only.erase(
      std::remove(how.only.begin(), how.only.end(), loaded ? "spin-again" : "kernel-again"),
      how.only.end());

  std::optional<bench::busy_threads> busy;
  std::optional<bench::cpu_quota> quota;
  if (how.load == "busy") busy.emplace(std::thread::hardware_concurrency());
  if (how.load == "quota") {
    quota.emplace(how.quota);
    if (!quota->granted()) {
      std::fprintf(stderr, "no quota here: %s\n", quota->problem().c_str());
      return 1;
    }
  }
  if (how.policy == "fifo") {
    if (const int error = bench::become_realtime(SCHED_FIFO); error != 0) {
      std::fprintf(stderr, "no SCHED_FIFO here: %s\n", std::strerror(error));
      return 1;
    }
  }

  comparing all(how, busy ? &*busy : nullptr);
  for (const double ms : how.lengths_ms) all.measure(ms);
  bool written = true;
  if (given.has("json")) written = bench::write_file(given.text("json"), all.json()) && written;
  if (given.has("csv")) written = bench::write_file(given.text("csv"), all.csv()) && written;
  return written ? 0 : 1;
}
