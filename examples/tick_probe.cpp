// On what does a sleep end here: at any time, or on ticks? After simh's probe of its host and the
// NetBSD mailing lists' "precision of N ms sleep": 100 sleeps back to back, and as many begun at
// any moment. On ticks the first see the whole step (they begin just after one), the second a step
// that depends on when they began; only the difference tells that there is a tick.
//
//   tick_probe              sleeps of 1 ms
//   tick_probe 0.1 5 20     of these lengths, in milliseconds
//   tick_probe --csv ...    the same for a program to read, in nanoseconds
//
// Run it plain, under punctual-run, and read the rows of the library's own call beside it.
// smoke: --csv 0.5
#include <punctual/calibration.hpp>
#include <punctual/sleep.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

using std::chrono::nanoseconds;

constexpr int times = 100;

nanoseconds now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}

void system_sleep(nanoseconds length) {
  timespec left{static_cast<time_t>(length.count() / 1'000'000'000),
                static_cast<long>(length.count() % 1'000'000'000)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

void library_sleep(nanoseconds length) { punctual::sleep_for(length); }

/// A moment that nothing else has chosen: up to 20 ms of spinning, a different one each time.
void any_moment() {
  static std::uint64_t state = 0x9e3779b97f4a7c15;
  state = state * 6364136223846793005u + 1442695040888963407u;
  const nanoseconds until =
      now() + nanoseconds{static_cast<std::int64_t>((state >> 33) % 20'000'000)};
  while (now() < until) {
  }
}

struct row {
  nanoseconds mean, least, median, p99, most;
};

/// @param moment  Called before each sleep; nothing for sleeps back to back.
row probe(void (*sleep)(nanoseconds), nanoseconds length, void (*moment)()) {
  std::vector<nanoseconds> took;
  nanoseconds total{0};
  sleep(length);  // to a tick, if there are any
  for (int i = 0; i < times; ++i) {
    if (moment != nullptr) moment();
    const nanoseconds from = now();
    sleep(length);
    took.push_back(now() - from);
    total += took.back();
  }
  std::sort(took.begin(), took.end());
  return {total / times, took.front(), took[times / 2], took[times - 2], took.back()};
}

}  // namespace

int main(int argc, char** argv) {
  bool csv = false;
  std::vector<nanoseconds> lengths;
  for (int i = 1; i < argc; ++i) {
    char* end = nullptr;
    const double value = std::strtod(argv[i], &end);
    if (std::strcmp(argv[i], "--csv") == 0) {
      csv = true;
    } else if (end != argv[i] && *end == '\0' && value > 0 && value <= 1000) {
      lengths.push_back(punctual::to_nanoseconds(std::chrono::duration<double, std::milli>(value)));
    } else {
      std::fprintf(stderr, "tick_probe: '%s' is neither --csv nor a length of up to 1000 ms\n",
                   argv[i]);
      return 2;
    }
  }
  if (lengths.empty()) lengths.push_back(std::chrono::milliseconds{1});

  struct way {
    const char* name;
    void (*sleep)(nanoseconds);
  };
  struct begin {
    const char* name;
    void (*moment)();
  };
  if (csv) {
    std::puts("call,begun,length_ns,mean_ns,min_ns,median_ns,p99_ns,max_ns");
  } else {
    std::printf("%-9s %-12s %10s %10s %10s %10s %10s %10s   us\n", "call", "begun", "length",
                "mean", "min", "median", "p99", "max");
  }
  for (const nanoseconds length : lengths) {
    for (const way& w : {way{"nanosleep", system_sleep}, way{"punctual", library_sleep}}) {
      for (const begin& b : {begin{"back to back", nullptr}, begin{"at any time", any_moment}}) {
        const row r = probe(w.sleep, length, b.moment);
        if (csv) {
          std::printf(
              "%s,%s,%lld,%lld,%lld,%lld,%lld,%lld\n", w.name, b.name,
              static_cast<long long>(length.count()), static_cast<long long>(r.mean.count()),
              static_cast<long long>(r.least.count()), static_cast<long long>(r.median.count()),
              static_cast<long long>(r.p99.count()), static_cast<long long>(r.most.count()));
        } else {
          const auto us = [](nanoseconds t) { return static_cast<double>(t.count()) / 1e3; };
          std::printf("%-9s %-12s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", w.name, b.name,
                      us(length), us(r.mean), us(r.least), us(r.median), us(r.p99), us(r.most));
        }
        std::fflush(stdout);
      }
    }
    if (!csv) {
      const row r = probe(system_sleep, length, nullptr);
      const auto ms = static_cast<double>(length.count()) / 1e6;
      std::printf("precision of %g ms sleep: %lld us (should be %g)\n", ms,
                  static_cast<long long>((r.mean.count() + 999) / 1000), ms * 1000);
    }
  }
  if (!csv) {
    const punctual::calibration found = punctual::calibrate();
    const double tick = static_cast<double>(found.tick.count()) / 1e6;
    if (tick > 0) {
      std::printf("The library finds a tick of %.3f ms, and %d more in a sleep.\n", tick,
                  found.extra_ticks);
    } else {
      std::puts("The library finds no tick: sleeps end at any time.");
    }
  }
  return 0;
}
