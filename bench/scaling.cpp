// smoke: --threads 1,20 --beats 3 --period 5 --repetitions 1
// Many threads that wait at once: what each wait costs and how late it is, as their number grows.
//
// Every thread waits for the same deadlines, or for deadlines spread evenly over the period. Beside
// this library a plain kernel sleep, twice (the A/A control), each in its own turn of a repetition.
// A repetition in which the two sleeps differ by more than a tenth in p90, and by more than chance,
// is discarded and counted.
#include "support/facts.hpp"
#include "support/interleaved.hpp"
#include "support/json.hpp"
#include "support/options.hpp"

#include <punctual/sleep.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using bench::instant;
using bench::nanoseconds;

constexpr std::array<const char*, 3> ways{"punctual", "kernel", "kernel-again"};

struct setup {
  nanoseconds period{100'000'000};
  int beats = 20;
  int warm_up = 10;
};

void wait(std::size_t way, instant deadline) {
  if (way == 0) {
    punctual::sleep_until(deadline);
  } else {
    peers::native_machine::sleep_until(deadline);
  }
}

/// All measured waits of all threads; a wait's CPU is its thread's mean.
bench::samples run(std::size_t way, int threads, bool staggered, const setup& how) {
  std::vector<bench::samples> each(static_cast<std::size_t>(threads));
  // Far enough ahead that all of them have started.
  const instant base =
      bench::now() + std::chrono::milliseconds{100} + threads * std::chrono::microseconds{200};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      bench::samples& mine = each[static_cast<std::size_t>(i)];
      mine.resize(static_cast<std::size_t>(how.beats));
      const nanoseconds offset = staggered ? how.period * i / threads : nanoseconds::zero();
      nanoseconds cpu{0};
      for (int beat = 0; beat < how.warm_up + how.beats; ++beat) {
        if (beat == how.warm_up) cpu = bench::thread_cpu();
        const instant deadline = base + beat * how.period + offset;
        wait(way, deadline);
        const nanoseconds late = bench::now() - deadline;
        if (beat >= how.warm_up)
          mine[static_cast<std::size_t>(beat - how.warm_up)].late = late.count();
      }
      cpu = bench::thread_cpu() - cpu;
      for (bench::sample& one : mine) one.cpu = cpu.count() / how.beats;
    });
  }
  for (std::thread& thread : all) thread.join();
  bench::samples together;
  for (const bench::samples& mine : each) together.insert(together.end(), mine.begin(), mine.end());
  return together;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options given(argc, argv, "waits of many threads at once",
                             {{"threads", "N,…", "default 1,10,100,1000"},
                              {"period", "MS", "between two deadlines of a thread, default 100"},
                              {"beats", "N", "measured deadlines of each thread, default 20"},
                              {"repetitions", "N", "to keep, default 5"},
                              {"json", "FILE", "write the results; - is standard output"}});
  setup how;
  how.period = nanoseconds{std::llround(given.number("period", 100, 1, 10'000) * 1e6)};
  how.beats = static_cast<int>(given.number("beats", how.beats, 1, 100'000));
  const int repetitions = static_cast<int>(given.number("repetitions", 5, 1, 100));
  const std::vector<double> counts = given.numbers("threads", {1, 10, 100, 1000}, 1, 10'000);
  const bool progress = ::isatty(STDERR_FILENO) != 0;

  bench::json out;
  out.open();
  bench::put_facts(out);
  out.put("period_ns", static_cast<std::int64_t>(how.period.count()));
  out.put("beats", how.beats).put("repetitions", repetitions);
  out.open_list("runs");
  std::printf("%8s %-10s %-13s %6s %9s %9s %9s %9s %10s\n", "threads", "deadlines", "", "early",
              "p50 us", "p90 us", "p99 us", "max us", "CPU us");
  for (const double count : counts) {
    const int threads = static_cast<int>(count);
    for (const bool staggered : {false, true}) {
      const char* const deadlines = staggered ? "staggered" : "common";
      std::array<std::vector<bench::figures>, ways.size()> kept;
      std::array<std::size_t, ways.size()> early{};
      int discarded = 0;
      for (int made = 0; made < 2 * repetitions && static_cast<int>(kept[0].size()) < repetitions;
           ++made) {
        std::array<bench::samples, ways.size()> turn;
        for (std::size_t k = 0; k < ways.size(); ++k) {
          if (progress) {
            std::fprintf(stderr, "\r\033[K%d threads, %s, repetition %d", threads, deadlines,
                         made + 1);
          }
          const std::size_t way = (k + static_cast<std::size_t>(made)) % ways.size();
          turn[way] = run(way, threads, staggered, how);
          early[way] += bench::figures_of(turn[way]).early;
        }
        if (!bench::control_rule::for_load().judge(turn[1], turn[2]).agrees) {
          ++discarded;
          continue;
        }
        for (std::size_t way = 0; way < ways.size(); ++way) {
          kept[way].push_back(bench::figures_of(turn[way]));
        }
      }
      if (progress) std::fprintf(stderr, "\r\033[K");
      if (kept[0].empty()) {
        std::printf("%8d %-10s no repetition was kept: something else runs on this machine\n",
                    threads, deadlines);
      }
      for (std::size_t way = 0; way < ways.size(); ++way) {
        const bench::figures f = bench::median_of(kept[way]);
        if (!kept[way].empty()) {
          std::printf("%8d %-10s %-13s %6zu %9.1f %9.1f %9.1f %9.1f %10.1f\n", threads, deadlines,
                      ways[way], early[way], f.p50 / 1e3, f.p90 / 1e3, f.p99 / 1e3, f.max / 1e3,
                      f.cpu / 1e3);
        }
        out.open_item();
        out.put("threads", threads).put("deadlines", deadlines).put("name", ways[way]);
        out.put("kept", static_cast<std::uint64_t>(kept[way].size())).put("discarded", discarded);
        out.put("early", static_cast<std::uint64_t>(early[way]));
        out.put("p50_ns", f.p50).put("p90_ns", f.p90).put("p99_ns", f.p99).put("max_ns", f.max);
        out.put("cpu_ns", f.cpu);
        out.close();
      }
      std::fflush(stdout);
    }
  }
  out.close_list().close();
  return !given.has("json") || bench::write_file(given.text("json"), out.str() + "\n") ? 0 : 1;
}
