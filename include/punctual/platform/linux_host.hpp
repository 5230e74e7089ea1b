// Linux's side of the host guards: timer slack, scheduling, the processors' wake-up latency.
//
// Layer L0. Raw calls, errno untouched. Scheduling is read and written whole (sched_getattr), so
// that nice value, time slice and flags come back with the policy. The kernel ties the slack to the
// policy: a real-time thread has none, and a thread that stops being
// one gets its default, not what it had.
//
// Source: prctl(2) PR_SET_TIMERSLACK; sched_setattr(2); getrlimit(2) RLIMIT_RTTIME; the kernel's
// PM QoS document on /dev/cpu_dma_latency.
#pragma once

#include <punctual/platform/config.hpp>
#include <punctual/platform/host_seam.hpp>

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace punctual {

class linux_host {
 public:
  /// The kernel's own struct sched_attr, as of its version 1.
  struct scheduling {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
    std::uint32_t least_utilisation, most_utilisation;
  };

  static nanoseconds slack() noexcept {
    const long answer = raw(SYS_prctl, PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
    return nanoseconds{answer};
  }
  static int set_slack(nanoseconds slack) noexcept {
    const std::int64_t least = slack.count() < 1 ? 1 : slack.count();  // 0 would mean the default
    return error_of(
        raw(SYS_prctl, PR_SET_TIMERSLACK, static_cast<unsigned long>(least), 0UL, 0UL, 0UL));
  }

  static int read_scheduling(scheduling& how) noexcept {
    how = {};
    return error_of(raw(SYS_sched_getattr, 0, &how, static_cast<unsigned>(sizeof how), 0U));
  }
  static int write_scheduling(const scheduling& how) noexcept {
    scheduling copy = how;  // the kernel may write to it
    return error_of(raw(SYS_sched_setattr, 0, &copy, 0U));
  }
  static int realtime_priority(const scheduling& how) noexcept {
    constexpr std::uint32_t by_deadline = 6;  // SCHED_DEADLINE, which <sched.h> may not know
    if (how.policy == by_deadline) return 100;
    return how.policy == SCHED_FIFO || how.policy == SCHED_RR ? static_cast<int>(how.priority) : 0;
  }
  static int make_realtime(const scheduling& was, realtime_policy policy, int priority) noexcept {
    scheduling how{};
    how.size = was.size;
    how.policy = policy == realtime_policy::fifo ? SCHED_FIFO : SCHED_RR;
    how.flags = was.flags;
    how.priority = static_cast<std::uint32_t>(priority);
    return write_scheduling(how);
  }

  static nanoseconds run_limit() noexcept {
    rlimit limit{};
    const int kept = errno;
    const bool known = ::getrlimit(RLIMIT_RTTIME, &limit) == 0;
    errno = kept;
    constexpr auto most = static_cast<rlim_t>(nanoseconds::max().count() / 1000);
    if (!known || limit.rlim_cur >= most) return nanoseconds::max();
    return std::chrono::microseconds{static_cast<std::int64_t>(limit.rlim_cur)};
  }

  static int hold_cpu_latency(nanoseconds latency) noexcept {
    const std::int64_t us = latency.count() < 0 ? 0 : latency.count() / 1000;
    const std::int32_t value = us > 0x7fffffff ? 0x7fffffff : static_cast<std::int32_t>(us);
    const long file = raw(SYS_openat, AT_FDCWD, "/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC, 0);
    if (file < 0) return static_cast<int>(file);
    const long written = raw(SYS_write, file, &value, sizeof value);
    if (written == static_cast<long>(sizeof value)) return static_cast<int>(file);
    release_cpu_latency(static_cast<int>(file));
    return written < 0 ? static_cast<int>(written) : -EIO;
  }
  static void release_cpu_latency(int handle) noexcept { raw(SYS_close, handle); }

 private:
  template <class... Arguments>
  static long raw(long number, Arguments... arguments) noexcept {
    const int kept = errno;
    const long answer = ::syscall(number, arguments...);
    const long result = answer == -1 ? -static_cast<long>(errno) : answer;
    errno = kept;
    return result;
  }
  static int error_of(long answer) noexcept { return answer < 0 ? static_cast<int>(-answer) : 0; }
};

static_assert(host<linux_host>);

}  // namespace punctual
