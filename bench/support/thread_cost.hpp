// What a thread has used so far: CPU time, context switches. Linux.
#pragma once

#include <punctual/platform/seam.hpp>

#include <cstdint>
#include <ctime>

#include <sys/resource.h>

namespace bench {

using punctual::instant;
using punctual::nanoseconds;

inline nanoseconds read_clock(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}

inline instant now() { return instant{read_clock(CLOCK_MONOTONIC)}; }
inline nanoseconds thread_cpu() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
inline nanoseconds process_cpu() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

struct switches {
  std::int64_t voluntary;
  std::int64_t involuntary;
};

inline switches thread_switches() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return {used.ru_nvcsw, used.ru_nivcsw};
}

/// The CPU time that two reads of `thread_cpu` around nothing differ by: the least of many.
inline nanoseconds cost_of_measuring() {
  nanoseconds least = std::chrono::seconds{1};
  for (int i = 0; i < 1000; ++i) {
    const nanoseconds before = thread_cpu();
    const nanoseconds apart = thread_cpu() - before;
    if (apart < least) least = apart;
  }
  return least;
}

}  // namespace bench
