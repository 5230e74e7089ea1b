// The host guards' side of a system of which nothing is known: everything is refused.
//
// Layer L0. Standard library only; compiled and tested everywhere.
#pragma once

#include <punctual/platform/host_seam.hpp>

#include <cerrno>

namespace punctual {

class portable_host {
 public:
  struct scheduling {};

  static nanoseconds slack() noexcept { return nanoseconds{-1}; }
  static int set_slack(nanoseconds) noexcept { return ENOSYS; }

  static int read_scheduling(scheduling&) noexcept { return ENOSYS; }
  static int write_scheduling(const scheduling&) noexcept { return ENOSYS; }
  static int realtime_priority(const scheduling&) noexcept { return 0; }
  static int make_realtime(const scheduling&, realtime_policy, int) noexcept { return ENOSYS; }

  static nanoseconds run_limit() noexcept { return nanoseconds::max(); }

  static int hold_cpu_latency(nanoseconds) noexcept { return -ENOSYS; }
  static void release_cpu_latency(int) noexcept {}
};

static_assert(host<portable_host>);

}  // namespace punctual
