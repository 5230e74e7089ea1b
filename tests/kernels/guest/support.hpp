// What every part of the guest program stands on: raw clocks read past the library, checks that are
// counted and printed, numbers that look random and are the same in every run, and quantiles. Knows
// nothing of the library.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace guest {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

inline nanoseconds read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

inline timespec to_timespec(nanoseconds time) {
  return {static_cast<time_t>(time.count() / 1'000'000'000),
          static_cast<long>(time.count() % 1'000'000'000)};
}

/// The comparison that every figure stands beside: one plain absolute sleep of the kernel's,
/// retried when a signal cuts it.
inline void plain_sleep_until(nanoseconds deadline, clockid_t clock = CLOCK_MONOTONIC) {
  const timespec until = to_timespec(deadline);
  while (clock_nanosleep(clock, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

inline void plain_sleep_for(nanoseconds length) {
  plain_sleep_until(read(CLOCK_MONOTONIC) + length);
}

inline int failures = 0;

/// Prints whether a promise held, with the figures that say so, and counts it if it did not.
[[gnu::format(printf, 2, 3)]] inline void check(bool holds, const char* sentence, ...) {
  std::printf("%s  ", holds ? "ok  " : "FAIL");
  std::va_list figures;
  va_start(figures, sentence);
  std::vprintf(sentence, figures);
  va_end(figures);
  std::putchar('\n');
  if (!holds) ++failures;
}

/// The same numbers in every run: under virtual time two runs must not differ by a byte.
class numbers {
 public:
  double uniform() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }

  /// A length that is as likely to lie between 1 and 10 ns as between 1 and 10 ms.
  nanoseconds length(nanoseconds shortest, nanoseconds longest) {
    const double low = std::log(static_cast<double>(shortest.count()));
    const double high = std::log(static_cast<double>(longest.count()));
    return nanoseconds(std::llround(std::exp(low + uniform() * (high - low))));
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
};

inline double microseconds(nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }

/// The smallest of the values that at least the share `q` of them do not exceed.
inline nanoseconds quantile(std::vector<nanoseconds> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

inline std::string text_of(const char* path) {
  std::string text(4096, '\0');
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? 0 : ::read(file, text.data(), text.size());
  if (file >= 0) close(file);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

inline bool write_to(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) close(file);
  return written;
}

inline nanoseconds resolution() {
  timespec step{};
  clock_getres(CLOCK_MONOTONIC, &step);
  return nanoseconds(step.tv_nsec);
}

inline std::string clock_source() {
  return text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

}  // namespace guest
