// How late is a sleep? Request by request: the system's nanosleep beside punctual::sleep_for.
//
// After the program of NetBSD's PR 47431, which showed that 1 ns and 10 ms both took 20 ms there.
// Rows are 0 and k * 10^j ns; the two sleeps take turns, and each row shows medians: what was
// experienced, the excess over the request, and the CPU time that the wait cost.
//
//   nanoslap                  82 rows, about 25 s
//   nanoslap --short          the rows of 1, 2 and 5, about 10 s
//   nanoslap 0.001 0.016667   rows of these lengths, in seconds
//   nanoslap --csv ...        the same for a program to read, in nanoseconds
// demo: --short
// smoke: --csv 0 0.000001 0.001
#include <punctual/sleep.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using std::chrono::nanoseconds;

nanoseconds clock_now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}

/// What one way to sleep did with one request: medians.
struct experience {
  nanoseconds elapsed{0};
  nanoseconds cpu{0};
};

class series {
 public:
  template <class Sleep>
  void add(Sleep sleep) {
    const nanoseconds ran = clock_now(CLOCK_THREAD_CPUTIME_ID);
    const nanoseconds from = clock_now(CLOCK_MONOTONIC);
    sleep();
    elapsed_.push_back(clock_now(CLOCK_MONOTONIC) - from);
    cpu_.push_back(clock_now(CLOCK_THREAD_CPUTIME_ID) - ran);
  }
  experience median() { return {median_of(elapsed_), median_of(cpu_)}; }

 private:
  static nanoseconds median_of(std::vector<nanoseconds>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }
  std::vector<nanoseconds> elapsed_, cpu_;
};

void system_sleep(nanoseconds length) {
  timespec left{static_cast<time_t>(length.count() / 1'000'000'000),
                length.count() % 1'000'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

/// How often a row is repeated: short requests until their median means something.
int repetitions(nanoseconds length) {
  if (length < std::chrono::milliseconds{10}) return 25;
  return length < std::chrono::milliseconds{100} ? 11 : 3;
}

std::string seconds(nanoseconds t) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%09lld", static_cast<long long>(t.count() / 1'000'000'000),
                static_cast<long long>(t.count() % 1'000'000'000));
  return text;
}

/// The original's last column: a factor beyond twice the request, else the excess in per cent.
std::string error(nanoseconds requested, nanoseconds experienced) {
  if (requested.count() == 0) return "---";
  const double ratio =
      static_cast<double>(experienced.count()) / static_cast<double>(requested.count());
  char text[32];
  if (ratio > 2) {
    std::snprintf(text, sizeof text, "%.0f x", ratio);
  } else {
    std::snprintf(text, sizeof text, "%.3f %%", (ratio - 1) * 100);
  }
  return text;
}

/// Seconds in decimal notation, 0 to 100; false for anything else.
bool parse(const char* word, nanoseconds& length) {
  if (std::strspn(word, "0123456789.eE+-") != std::strlen(word)) return false;
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(word, &end);
  if (end == word || *end != '\0' || errno != 0 || !(value >= 0) || value > 100) return false;
  length = punctual::to_nanoseconds(std::chrono::duration<double>(value));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool csv = false;
  bool shortened = false;
  std::vector<nanoseconds> requests;
  for (int i = 1; i < argc; ++i) {
    nanoseconds length{0};
    if (std::strcmp(argv[i], "--csv") == 0) {
      csv = true;
    } else if (std::strcmp(argv[i], "--short") == 0) {
      shortened = true;
    } else if (parse(argv[i], length)) {
      requests.push_back(length);
    } else {
      std::fprintf(stderr,
                   "nanoslap: '%s' is neither --csv, --short nor a length of 0 to 100 seconds\n",
                   argv[i]);
      return 2;
    }
  }
  if (requests.empty()) {
    requests.push_back(nanoseconds{0});
    for (long long step = 1; step <= 100'000'000; step *= 10) {
      for (int k = 1; k <= 9; ++k) {
        if (!shortened || k == 1 || k == 2 || k == 5) requests.push_back(nanoseconds{k * step});
      }
    }
  }

  if (csv) {
    std::printf(
        "requested_ns,nanosleep_ns,nanosleep_excess_ns,nanosleep_cpu_ns,punctual_ns,"
        "punctual_excess_ns,punctual_cpu_ns\n");
  } else {
    std::printf("%13s | %13s %13s %9s %9s | %13s %13s %9s %9s\n", "", "nanosleep", "", "", "",
                "punctual", "", "", "");
    std::printf("%13s | %13s %13s %9s %9s | %13s %13s %9s %9s\n", "Requested", "Experienced",
                "Excess", "Error", "CPU us", "Experienced", "Excess", "Error", "CPU us");
  }
  const bool progress = !csv && isatty(STDOUT_FILENO) != 0;
  for (std::size_t row = 0; row < requests.size(); ++row) {
    const nanoseconds requested = requests[row];
    series theirs, ours;
    const int rounds = repetitions(requested);
    for (int i = 0; i < rounds; ++i) {
      if (progress) {
        std::printf("%13s | row %zu of %zu, %d of %d\r", seconds(requested).c_str(), row + 1,
                    requests.size(), i + 1, rounds);
        std::fflush(stdout);
      }
      theirs.add([=] { system_sleep(requested); });
      ours.add([=] { punctual::sleep_for(requested); });
    }
    const experience t = theirs.median();
    const experience o = ours.median();
    if (csv) {
      std::printf("%lld,%lld,%lld,%lld,%lld,%lld,%lld\n", static_cast<long long>(requested.count()),
                  static_cast<long long>(t.elapsed.count()),
                  static_cast<long long>((t.elapsed - requested).count()),
                  static_cast<long long>(t.cpu.count()), static_cast<long long>(o.elapsed.count()),
                  static_cast<long long>((o.elapsed - requested).count()),
                  static_cast<long long>(o.cpu.count()));
    } else {
      std::printf("%13s | %13s %13s %9s %9.1f | %13s %13s %9s %9.1f\n", seconds(requested).c_str(),
                  seconds(t.elapsed).c_str(), seconds(t.elapsed - requested).c_str(),
                  error(requested, t.elapsed).c_str(), static_cast<double>(t.cpu.count()) / 1e3,
                  seconds(o.elapsed).c_str(), seconds(o.elapsed - requested).c_str(),
                  error(requested, o.elapsed).c_str(), static_cast<double>(o.cpu.count()) / 1e3);
    }
    std::fflush(stdout);
  }
  if (!csv) {
    std::printf(
        "\nTimes in seconds, medians of 3 to 25 waits taken in turn; CPU a wait in "
        "microseconds.\n");
    if (shortened) std::printf("All 82 rows: %s (about 25 s). For a program: --csv.\n", argv[0]);
  }
  return 0;
}
