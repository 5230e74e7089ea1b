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
#include <sys/stat.h>
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

  /// Keeps the standard error output of now: programs may close theirs before they end. Where no
  /// high number is to be had for it, a lower one, or at last none but the program's own.
  /// @param plain_turns  Whether one wait in sixteen is left to the system, to compare with.
  void begin(bool plain_turns) {
    plain_turns_ = plain_turns;
    on_ = fstat(STDERR_FILENO, &original_) == 0;
    if (!on_) return;
    for (const int lowest : {200, 100, 3}) {
      output_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, lowest);
      if (output_ >= 0) break;
    }
    began_ = read_clock(CLOCK_MONOTONIC);
  }
  bool on() const { return on_; }

  /// A child process counts for itself.
  void begin_again() {
    for (slot& each : slots_) {
      each.by_way = {};
      each.taken.clear();
    }
    dropped_ = past_ = turn_ = 0;
    first_ = first_cpu_ = 0;
    began_ = read_clock(CLOCK_MONOTONIC);
  }

  /// Before each wait: what a program does until its first sleep is its start.
  void begin_wait() {
    if (first_.load(std::memory_order_relaxed) != 0) return;
    std::int64_t none = 0;
    if (first_.compare_exchange_strong(none, read_clock(CLOCK_MONOTONIC).count()))
      first_cpu_ = read_clock(CLOCK_PROCESS_CPUTIME_ID).count();
  }

  /// Whether this wait is one of those left to the system.
  bool is_plain_turn() {
    return plain_turns_ && turn_.fetch_add(1, std::memory_order_relaxed) % 16 == 15;
  }

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
    const auto seconds = [](nanoseconds t) { return std::chrono::duration<double>(t).count(); };
    const nanoseconds now = read_clock(CLOCK_MONOTONIC), cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    char line[200];
    std::snprintf(line, sizeof line, "punctual: %s (%ld) ran %.2f s, %.2f s of CPU",
                  program_invocation_short_name, static_cast<long>(getpid()), seconds(now - began_),
                  seconds(cpu));
    std::string text = line;
    if (first_ != 0) {
      std::snprintf(line, sizeof line, "; since its first sleep %.2f s, %.2f s of CPU",
                    seconds(now - nanoseconds{first_}), seconds(cpu - nanoseconds{first_cpu_}));
      text += line;
    }
    text += '\n';
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
    for (const int each : {output_, STDERR_FILENO}) {
      if (is_original(each) && write(each, text.data(), text.size()) >= 0) break;
    }
  }

 private:
  // A program that closes what it did not open may have files of its own under both numbers by now.
  bool is_original(int descriptor) const {
    struct stat now {};
    return fstat(descriptor, &now) == 0 && now.st_dev == original_.st_dev &&
           now.st_ino == original_.st_ino;
  }

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
  std::atomic<std::int64_t> first_{0}, first_cpu_{0};  // ns, when the first wait began
  nanoseconds began_{0};
  bool plain_turns_ = true;
  bool on_ = false;
  int output_ = -1;
  struct stat original_ {};  ///< the standard error output that the program began with
};

}  // namespace preload
