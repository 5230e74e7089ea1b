// What `punctual-run --stats` prints when a program ends: how many calls there were, how late they
// returned, and what they cost.
//
// Any thread and any signal handler may count at any time: a count goes into the first of a few
// slots that nobody is writing to, and is dropped, and counted as such, where all are taken.
#pragma once

#include <punctual/statistics.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace preload {

using punctual::nanoseconds;

/// Whose wait it was.
enum class way : std::uint8_t { ours, plain };

inline nanoseconds read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}

class tally {
 public:
  struct one_wait {
    way made;
    bool interrupted;
    nanoseconds asked, late, cpu;
  };

  /// Keeps the standard error output of now: programs may close theirs before they end.
  void begin() {
    output_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
    began_ = read_clock(CLOCK_MONOTONIC);
  }
  bool on() const { return output_ >= 0; }

  /// A child process counts for itself.
  void begin_again() {
    for (slot& each : slots_) {
      each.by_way = {};
      each.taken.clear();
    }
    dropped_ = past_ = turn_ = 0;
    began_ = read_clock(CLOCK_MONOTONIC);
  }

  /// Whether this wait is one of those left to the system, to compare with: one in sixteen.
  bool is_plain_turn() { return turn_.fetch_add(1, std::memory_order_relaxed) % 16 == 15; }

  void add(const one_wait& w) {
    for (slot& each : slots_) {
      if (each.taken.test_and_set(std::memory_order_acquire)) continue;
      counted& c = each.by_way[static_cast<std::size_t>(w.made)];
      ++c.calls;
      c.asked = punctual::saturating_add(c.asked, w.asked);
      c.cpu += w.cpu;
      if (w.interrupted) {
        ++c.interrupted;
      } else {
        c.late.record(w.late);
      }
      each.taken.clear(std::memory_order_release);
      return;
    }
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }

  /// A wait whose deadline was past, answered without the system.
  void add_past() { past_.fetch_add(1, std::memory_order_relaxed); }

  /// Prints all of it. Allocates: for the end of the program only.
  void print() {
    using punctual::to_text;
    if (!on()) return;
    std::array<counted, 2> all{};
    for (const slot& each : slots_) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].calls += each.by_way[i].calls;
        all[i].interrupted += each.by_way[i].interrupted;
        all[i].asked = punctual::saturating_add(all[i].asked, each.by_way[i].asked);
        all[i].cpu += each.by_way[i].cpu;
        all[i].late.merge(each.by_way[i].late);
      }
    }
    if (all[0].calls + all[1].calls + past_ == 0) return;
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto cpu = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    char line[200];
    std::snprintf(line, sizeof line, "punctual: %s (%ld) ran %.2f s, %.2f s of CPU\n",
                  program_invocation_short_name, static_cast<long>(getpid()),
                  std::chrono::duration<double>(read_clock(CLOCK_MONOTONIC) - began_).count(),
                  cpu(used.ru_utime) + cpu(used.ru_stime));
    std::string text = line;
    constexpr std::array<const char*, 2> names{"punctual's waits", "the system's"};
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].calls == 0) continue;
      std::snprintf(line, sizeof line,
                    "%s: %llu calls for %s in all, %llu interrupted, %s of CPU a call; late:\n",
                    names[i], static_cast<unsigned long long>(all[i].calls),
                    to_text(all[i].asked).c_str(),
                    static_cast<unsigned long long>(all[i].interrupted),
                    to_text(all[i].cpu / static_cast<std::int64_t>(all[i].calls)).c_str());
      text += line + to_text(all[i].late);
    }
    if (past_ != 0) text += "past deadlines: " + std::to_string(past_) + " calls\n";
    if (dropped_ != 0) text += "not counted: " + std::to_string(dropped_) + " calls\n";
    static_cast<void>(!write(output_, text.data(), text.size()));
  }

 private:
  struct counted {
    std::uint64_t calls = 0, interrupted = 0;
    nanoseconds asked{0}, cpu{0};
    punctual::statistics late;
  };
  struct slot {
    std::atomic_flag taken;
    std::array<counted, 2> by_way;
  };

  std::array<slot, 8> slots_{};
  std::atomic<std::uint64_t> dropped_{0}, past_{0}, turn_{0};
  nanoseconds began_{0};
  int output_ = -1;
};

}  // namespace preload
