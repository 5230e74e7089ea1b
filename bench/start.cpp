// smoke: --starts 2 --waits 3
// The first waits of a process: from its start to the first precise wait, wait by wait, cold.
//
// Starts itself anew for every sample; a child notes when its main began, waits a number of times
// and prints how late each wait was and what it cost. Beside this library, with and without
// `calibrate()` first, a plain kernel sleep. Nothing is learned
// before: this is what a user's first frame sees.
#include "support/contender.hpp"
#include "support/facts.hpp"
#include "support/json.hpp"
#include "support/options.hpp"
#include "support/samples.hpp"

#include <punctual/calibration.hpp>
#include <punctual/sleep.hpp>

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using bench::instant;
using bench::nanoseconds;

constexpr std::array<const char*, 3> ways{"punctual", "punctual-calibrated", "kernel"};

/// What a child prints, one number a line: its main, its
/// calibration, its first return, then the waits.
int child(const std::string& way, nanoseconds length, int waits) {
  const instant began = bench::now();
  nanoseconds calibration{0};
  if (way == "punctual-calibrated") calibration = punctual::calibrate().took;
  std::vector<std::int64_t> late, cpu;
  instant first;
  for (int i = 0; i < waits; ++i) {
    const nanoseconds used = bench::thread_cpu();
    const instant deadline = bench::now() + length;
    if (way == "kernel") {
      peers::native_machine::sleep_until(deadline);
    } else {
      punctual::sleep_until(deadline);
    }
    const instant ended = bench::now();
    cpu.push_back((bench::thread_cpu() - used).count());
    late.push_back((ended - deadline).count());
    if (i == 0) first = ended;
  }
  std::printf("%" PRId64 " %" PRId64 " %" PRId64 "\n",
              static_cast<std::int64_t>(began.time_since_epoch().count()),
              static_cast<std::int64_t>(calibration.count()),
              static_cast<std::int64_t>(first.time_since_epoch().count()));
  for (int i = 0; i < waits; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::printf("%" PRId64 " %" PRId64 "\n", late[at], cpu[at]);
  }
  return 0;
}

struct started {
  std::vector<double> to_main, calibration, to_return;  // ns, one a start
  std::vector<std::vector<double>> late, cpu;           // [wait][start]
  std::size_t early = 0;
};

// Without a shell in between, which would take longer to start than what is measured.
std::FILE* spawn(const std::string& program, std::vector<std::string> words, pid_t& child) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return nullptr;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  ::posix_spawn_file_actions_addclose(&actions, ends[1]);
  words.insert(words.begin(), program);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error == 0) return ::fdopen(ends[0], "r");
  ::close(ends[0]);
  return nullptr;
}

bool start(const std::string& program, const std::string& way, nanoseconds length, int waits,
           started& all) {
  const std::string ms = std::to_string(static_cast<double>(length.count()) / 1e6);
  pid_t pid = 0;
  const instant began = bench::now();
  std::FILE* pipe =
      spawn(program, {"--child", way, "--length", ms, "--waits", std::to_string(waits)}, pid);
  if (pipe == nullptr) return false;
  std::int64_t main_at = 0;
  std::int64_t calibration = 0;
  std::int64_t first = 0;
  bool whole =
      std::fscanf(pipe, "%" SCNd64 " %" SCNd64 " %" SCNd64, &main_at, &calibration, &first) == 3;
  all.late.resize(static_cast<std::size_t>(waits));
  all.cpu.resize(static_cast<std::size_t>(waits));
  for (int i = 0; whole && i < waits; ++i) {
    std::int64_t late = 0;
    std::int64_t cpu = 0;
    whole = std::fscanf(pipe, "%" SCNd64 " %" SCNd64, &late, &cpu) == 2;
    all.late[static_cast<std::size_t>(i)].push_back(static_cast<double>(late));
    all.cpu[static_cast<std::size_t>(i)].push_back(static_cast<double>(cpu));
    all.early += late < 0 ? 1u : 0u;
  }
  const std::int64_t from = began.time_since_epoch().count();
  all.to_main.push_back(static_cast<double>(main_at - from));
  all.calibration.push_back(static_cast<double>(calibration));
  all.to_return.push_back(static_cast<double>(first - from - length.count()));
  std::fclose(pipe);
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && status == 0 && whole;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options given(argc, argv, "the first waits of a process",
                             {{"length", "MS", "of each wait, default 16.667"},
                              {"starts", "N", "of each kind, default 30"},
                              {"waits", "N", "of each process, default 20"},
                              {"json", "FILE", "write the results; - is standard output"},
                              {"child", "WAY", "used by the program itself"}});
  const nanoseconds length{std::llround(given.number("length", 16.667, 0.001, 1000) * 1e6)};
  const int waits = static_cast<int>(given.number("waits", 20, 1, 10'000));
  if (given.has("child")) return child(given.text("child"), length, waits);
  const int starts = static_cast<int>(given.number("starts", 30, 1, 10'000));

  std::array<char, 4096> path{};
  if (::readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) given.wrong("no /proc here");
  std::array<started, ways.size()> all;
  for (int i = 0; i < starts; ++i) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      if (!start(path.data(), ways[way], length, waits, all[way])) given.wrong("a child failed");
    }
  }

  bench::json out;
  out.open();
  bench::put_facts(out);
  out.put("length_ns", static_cast<std::int64_t>(length.count())).put("starts", starts);
  out.open_list("ways");
  std::printf("medians of %d starts; us\n%-20s %6s %10s %12s %14s", starts, "", "early", "to main",
              "calibration", "to return*");
  for (const int i : {1, 2, 5, 10, 20}) {
    if (i <= waits) std::printf("  late %2d  CPU %2d", i, i);
  }
  std::printf("\n");
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const started& one = all[way];
    std::printf("%-20s %6zu %10.0f %12.0f %14.0f", ways[way], one.early,
                bench::median(one.to_main) / 1e3, bench::median(one.calibration) / 1e3,
                bench::median(one.to_return) / 1e3);
    out.open_item();
    out.put("name", ways[way]).put("early", static_cast<std::uint64_t>(one.early));
    out.put("to_main_ns", bench::median(one.to_main));
    out.put("calibration_ns", bench::median(one.calibration));
    out.put("to_first_return_less_length_ns", bench::median(one.to_return));
    out.open_list("waits");
    for (int i = 0; i < waits; ++i) {
      std::vector<double> late = one.late[static_cast<std::size_t>(i)];
      const double cpu = bench::median(one.cpu[static_cast<std::size_t>(i)]);
      const double p50 = bench::quantile(late, 0.5);
      const double p90 = bench::quantile(late, 0.9);
      out.open_item().put("late_p50_ns", p50).put("late_p90_ns", p90).put("cpu_ns", cpu).close();
      for (const int shown : {1, 2, 5, 10, 20}) {
        if (i + 1 == shown) std::printf(" %8.2f %7.1f", p50 / 1e3, cpu / 1e3);
      }
    }
    out.close_list().close();
    std::printf("\n");
  }
  std::printf("* from the start of the process to the return of its first wait, less its length\n");
  out.close_list().close();
  return !given.has("json") || bench::write_file(given.text("json"), out.str() + "\n") ? 0 : 1;
}
