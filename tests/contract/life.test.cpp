// Mistake that would live without it: a library that only works between main's first and last line,
// in the process that first used it, in the thread that first used it.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <punctual/punctual.hpp>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

bool waits_well() {
  const instant due = steady::now() + 2ms;
  return sleep_until(due).why == outcome::reached && steady::now() >= due;
}

/// Waits while the program starts and while it ends.
struct waits_at_both_ends {
  bool good = waits_well();
  ~waits_at_both_ends() {
    if (!waits_well()) std::_Exit(99);
  }
} at_both_ends;

struct waits_as_its_thread_ends {
  std::atomic<int>& count;
  ~waits_as_its_thread_ends() { count += waits_well() ? 1 : 100; }
};

int open_files() {
  int count = 0;
  if (DIR* files = ::opendir("/proc/self/fd")) {
    while (::readdir(files) != nullptr) ++count;
    ::closedir(files);
  }
  return count;
}

long resident_kib() {
  long pages = 0, resident = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(f);
  }
  return resident * 4;
}

}  // namespace

TEST_CASE("waits work in static constructors and destructors", "[contract][life]") {
  CHECK(at_both_ends.good);
  CHECK(support::in_child([] {
          static waits_at_both_ends late;
          const bool good = late.good;
          std::exit(good ? 0 : 1);
          return 2;
        }) == 0);
}

TEST_CASE("waits work in thread_local destructors", "[contract][life][threads]") {
  std::atomic<int> count{0};
  std::thread([&] {
    thread_local waits_as_its_thread_ends last{count};
    waits_well();
  }).join();
  CHECK(count == 1);
}

TEST_CASE("a child process waits on, from what the parent has learned", "[contract][life]") {
  for (int i = 0; i < 20; ++i) sleep_for(1ms);
  const nanoseconds margin = this_thread_sleeper().margin(1ms);
  CHECK(support::in_child([margin] {
          if (this_thread_sleeper().margin(1ms) != margin) return 1;
          for (int i = 0; i < 50; ++i) {
            if (!waits_well()) return 2;
          }
          std::atomic<int> good{0};
          std::thread([&] { good = waits_well() ? 1 : 0; }).join();
          return good == 1 ? 0 : 3;
        }) == 0);
  CHECK(waits_well());
}

TEST_CASE("sixteen threads may make their first wait together", "[contract][life][threads]") {
  std::atomic<bool> go{false};
  std::atomic<int> early{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      while (!go) std::this_thread::yield();
      for (int k = 0; k < 60; ++k) {
        const instant due = steady::now() + nanoseconds{(i + 1) * 40'000};
        sleep_until(due);
        if (steady::now() < due) ++early;
        if (k == 20 && i == 3) calibrate(3ms);
        if (k == 30 && i == 4) set_default_tuning(tuning{});
        if (k % 10 == 5) static_cast<void>(current_calibration());
      }
    });
  }
  go = true;
  for (auto& t : threads) t.join();
  CHECK(early == 0);
}

TEST_CASE("three thousand threads that wait once leave nothing behind",
          "[contract][life][unsanitized]") {
  std::thread(waits_well).join();
  const int files = open_files();
  for (int i = 0; i < 200; ++i) std::thread([] { sleep_for(50us); }).join();
  const long before = resident_kib();
  for (int i = 0; i < 3000; ++i) std::thread([] { sleep_for(50us); }).join();
  CHECK(open_files() == files);
  CHECK(resident_kib() - before < 2048);
}

TEST_CASE("what a sleeper learns under a tuning of its own is not what new ones start with",
          "[contract][life]") {
  // A margin of at most 0 learns that every overshoot is 0.
  const int wrong = support::in_child([] {
    tuning never_spins;
    never_spins.max_margin = 0ns;
    sleeper odd{never_spins};
    odd.calibrate(5ms);
    sleeper fresh;
    fresh.sleep_for(5ms);
    return fresh.margin(1ms) > 1us ? 0 : 1;
  });
  CHECK(wrong == 0);
  const int lost = support::in_child([] {
    sleeper usual;
    usual.calibrate(200ms);
    sleeper fresh;
    fresh.sleep_for(5ms);
    return fresh.report().margins[1].margin.samples > 0 ? 0 : 1;
  });
  CHECK(lost == 0);
}

TEST_CASE("a change of the default tuning reaches a thread at its next wait", "[contract][life]") {
  tuning how;
  how.punctuality = 0.9;
  set_default_tuning(how);
  CHECK(this_thread_sleeper().how().punctuality == 0.9);
  std::thread([] { CHECK(this_thread_sleeper().how().punctuality == 0.9); }).join();
  set_default_tuning(tuning{});
  CHECK(this_thread_sleeper().how().punctuality == tuning{}.punctuality);
}
