// Mistake that would live without it: a guard that claims what the system refused, that hands back
// the policy but not the nice value or the slack (the kernel resets it), or that lets a thread spin
// into the limit at which the kernel ends it.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"

#include <punctual/host.hpp>
#include <punctual/platform/portable_host.hpp>
#include <punctual/sleep.hpp>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

int slack_now() { return ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); }
void set_slack(unsigned long ns) { ::prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0); }
int nice_now() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

struct scheduled {
  int policy, priority;
  bool operator==(const scheduled&) const = default;
};
scheduled scheduled_now() {
  sched_param how{};
  ::sched_getparam(0, &how);
  return {::sched_getscheduler(0), how.sched_priority};
}

// Everything of a thread's scheduling that its guard must hand back.
bool same(const linux_host::scheduling& a, const linux_host::scheduling& b) {
  return a.policy == b.policy && a.flags == b.flags && a.nice == b.nice &&
         a.priority == b.priority && a.runtime == b.runtime && a.deadline == b.deadline &&
         a.period == b.period && a.least_utilisation == b.least_utilisation &&
         a.most_utilisation == b.most_utilisation;
}
linux_host::scheduling all_of_it() {
  linux_host::scheduling how{};
  linux_host::read_scheduling(how);
  return how;
}

int open_files() {
  DIR* folder = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

// The bound that all holders of /dev/cpu_dma_latency together have asked for, in us.
int latency_bound() {
  std::int32_t value = -1;
  const int file = ::open("/dev/cpu_dma_latency", O_RDONLY | O_CLOEXEC);
  if (file < 0 || ::read(file, &value, sizeof value) != static_cast<ssize_t>(sizeof value))
    value = -1;
  if (file >= 0) ::close(file);
  return value;
}

bool may_be_realtime() {
  bool may = false;
  std::thread([&may] { may = realtime_guard{}.granted(); }).join();
  return may;
}

template <class Body>
void in_thread(Body body) {
  std::thread(body).join();
}

bool become_nobody() {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(65534, 65534, 65534) == 0 &&
         ::setresuid(65534, 65534, 65534) == 0;
}

void put(const std::string& path, const std::string& value) { std::ofstream(path) << value; }

// A host that writes down what is asked of it, and may refuse.
struct noted_host {
  struct scheduling {
    int priority = 0;
  };
  static inline std::vector<std::string> calls{};
  static inline nanoseconds slack_is{50'000};
  static inline int refusal = 0;
  static inline bool ignores_slack = false;

  static nanoseconds slack() noexcept { return slack_is; }
  static int set_slack(nanoseconds slack) noexcept {
    calls.push_back("slack " + std::to_string(slack.count()));
    if (refusal == 0 && !ignores_slack) slack_is = slack;
    return refusal;
  }
  static int read_scheduling(scheduling&) noexcept { return 0; }
  static int write_scheduling(const scheduling&) noexcept {
    calls.push_back("scheduling back");
    slack_is = 50us;  // as Linux does
    return 0;
  }
  static int realtime_priority(const scheduling& how) noexcept { return how.priority; }
  static int make_realtime(const scheduling&, realtime_policy, int priority) noexcept {
    calls.push_back("realtime " + std::to_string(priority));
    if (refusal == 0) slack_is = 0ns;
    return refusal;
  }
  static nanoseconds run_limit() noexcept { return nanoseconds::max(); }
  static int hold_cpu_latency(nanoseconds) noexcept { return refusal != 0 ? -refusal : 7; }
  static void release_cpu_latency(int handle) noexcept {
    calls.push_back("release " + std::to_string(handle));
  }
  static void begin(nanoseconds slack, int refuse) {
    calls.clear();
    slack_is = slack;
    refusal = refuse;
    ignores_slack = false;
  }
};
static_assert(host<noted_host>);
using calls = std::vector<std::string>;

}  // namespace

TEST_CASE("a slack guard holds the slack at what was asked and hands back what was there",
          "[host][G8]") {
  in_thread([] {
    for (const unsigned long before : {50'000UL, 5'000'000UL, 123'457UL}) {
      set_slack(before);
      {
        const timer_slack_guard guard{1ns};
        CHECK(guard.granted());
        CHECK(guard.error() == 0);
        CHECK(slack_now() == 1);
        {
          const timer_slack_guard wider{10us};  // satisfied already
          CHECK(wider.granted());
          CHECK(slack_now() == 1);
        }
        CHECK(slack_now() == 1);
        sleep_for(200us);
        CHECK(slack_now() == 1);
      }
      CHECK(slack_now() == static_cast<int>(before));
    }
    {
      const timer_slack_guard nothing{0ns};  // zero would mean the kernel's default
      CHECK(nothing.granted());
      CHECK(slack_now() == 1);
    }
    CHECK(slack_now() == 123'457);
  });
}

TEST_CASE("a realtime guard hands back policy, nice value, flags and slack", "[host][G8]") {
  if (!may_be_realtime()) {
    CHECK_FALSE(may_be_realtime());
    return support::skip("real-time policies are not allowed here");
  }
  in_thread([] {
    set_slack(777'000);
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 5);
    const auto before = all_of_it();
    {
      const realtime_guard guard;
      CHECK(guard.granted());
      CHECK(guard.error() == 0);
      CHECK(scheduled_now() == scheduled{SCHED_FIFO, 10});
      sleep_for(500us);
      CHECK(scheduled_now() == scheduled{SCHED_FIFO, 10});
      {
        const realtime_guard higher{realtime_policy::round_robin, 30};
        CHECK(higher.granted());
        CHECK(scheduled_now() == scheduled{SCHED_RR, 30});
        const realtime_guard lower;  // the thread has more already
        CHECK(lower.granted());
        CHECK(scheduled_now() == scheduled{SCHED_RR, 30});
      }
      CHECK(scheduled_now() == scheduled{SCHED_FIFO, 10});
    }
    CHECK(same(all_of_it(), before));
    CHECK(nice_now() == 5);
    CHECK(slack_now() == 777'000);
  });
  in_thread([] {  // another policy than the usual one comes back as well
    sched_param how{};
    ::sched_setscheduler(0, SCHED_BATCH, &how);
    const auto before = all_of_it();
    { const realtime_guard guard; }
    CHECK(same(all_of_it(), before));
    CHECK(scheduled_now().policy == SCHED_BATCH);
  });
}

TEST_CASE("a realtime thread's slack counts as granted and stays what it is", "[host][G8]") {
  if (!may_be_realtime()) {
    CHECK_FALSE(may_be_realtime());
    return support::skip("real-time policies are not allowed here");
  }
  in_thread([] {
    set_slack(50'000);
    {
      const realtime_guard realtime;
      const int here = slack_now();  // 0 since Linux 6.13, ignored before
      const timer_slack_guard slack{1us};
      CHECK(slack.granted() == (here <= 1000 || slack_now() <= 1000));
    }
    CHECK(slack_now() == 50'000);
  });
}

TEST_CASE("another user is refused priority and latency, gets slack, and stays unchanged",
          "[host][G8]") {
  if (::geteuid() != 0) {
    CHECK(::geteuid() != 0);
    return support::skip("only root can become another user");
  }
  const int code = support::in_child([] {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_RTPRIO, &none);
    if (!become_nobody()) return 77;
    const auto before = all_of_it();
    const int files = open_files();
    errno = 1234;
    const realtime_guard realtime;
    if (realtime.granted() || realtime.error() != EPERM) return 1;
    const cpu_latency_guard latency{0us};
    if (latency.granted() || (latency.error() != EACCES && latency.error() != ENOENT)) return 2;
    const timer_slack_guard slack{1ns};
    if (!slack.granted() || slack_now() != 1) return 3;
    if (errno != 1234) return 4;
    if (!same(all_of_it(), before) || open_files() != files) return 5;
    return sleep_for(1ms).why == outcome::reached ? 0 : 6;
  });
  CHECK(code == 0);
}

TEST_CASE("root is refused priority inside a cpu group without a real-time share", "[host]") {
  const std::string group = "/sys/fs/cgroup/cpu/punctual-test-" + std::to_string(::getpid());
  if (::access("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", W_OK) != 0 ||
      ::mkdir(group.c_str(), 0755) != 0) {
    CHECK(::access(group.c_str(), F_OK) != 0);
    return support::skip("there is no version 1 cpu controller that shares out real time");
  }
  const int code = support::in_child([&group] {
    put(group + "/cgroup.procs", std::to_string(::getpid()));
    const auto before = all_of_it();
    int answer = 0;
    {
      const realtime_guard guard;
      if (guard.granted() || guard.error() != EPERM) answer = 1;
    }
    if (!same(all_of_it(), before)) answer = 2;
    put("/sys/fs/cgroup/cpu/cgroup.procs", std::to_string(::getpid()));
    return answer;
  });
  ::rmdir(group.c_str());
  CHECK(code == 0);
}

TEST_CASE("no priority where the system would end the thread for its longest spin", "[host]") {
  if (!may_be_realtime()) {
    CHECK_FALSE(may_be_realtime());
    return support::skip("real-time policies are not allowed here");
  }
  const int code = support::in_child([] {
    const auto limited = [](rlim_t us) {
      const rlimit limit{us, RLIM_INFINITY};
      ::setrlimit(RLIMIT_RTTIME, &limit);
    };
    const auto before = all_of_it();
    limited(10'000);  // below the default's 25 ms margin
    {
      const realtime_guard guard;
      if (guard.granted() || guard.error() != EAGAIN || !same(all_of_it(), before)) return 1;
      const realtime_guard short_spins{realtime_policy::fifo, 10, 5ms};
      if (!short_spins.granted()) return 2;
    }
    limited(200'000);  // what RealtimeKit sets
    {
      const realtime_guard guard;
      if (!guard.granted()) return 3;
      for (int i = 0; i < 40; ++i) sleep_for(10ms);
    }
    const realtime_guard long_spins{realtime_policy::fifo, 10, 200ms};
    return long_spins.granted() ? 4 : 0;
  });
  CHECK(code == 0);
}

TEST_CASE("a latency guard holds one file and one bound, and lets go of both", "[host]") {
  const int files = open_files();
  const int before = latency_bound();
  {
    const cpu_latency_guard guard{0us};
    if (!guard.granted()) {
      CHECK((guard.error() == EACCES || guard.error() == ENOENT || guard.error() == EROFS));
      return support::skip("/dev/cpu_dma_latency is not for this user");
    }
    CHECK(guard.error() == 0);
    CHECK(open_files() == files + 1);
    CHECK(latency_bound() == 0);
    const cpu_latency_guard wider{1999ns};  // the stricter one holds
    CHECK(latency_bound() == 0);
  }
  {
    const cpu_latency_guard rounded_down{1999ns};
    CHECK(latency_bound() == 1);
  }
  CHECK(open_files() == files);
  CHECK(latency_bound() == before);
}

TEST_CASE("a priority that is none is refused, also by those that have a better one", "[host]") {
  for (const int none : {0, -1, 100, 1000, std::numeric_limits<int>::min()}) {
    CAPTURE(none);
    noted_host::begin(70us, 0);
    const basic_realtime_guard<noted_host> guard{realtime_policy::fifo, none};
    CHECK_FALSE(guard.granted());
    CHECK(guard.error() == EINVAL);
    CHECK(noted_host::calls.empty());
  }
}

TEST_CASE("guards give back in the order that keeps the slack, and only what they took", "[host]") {
  noted_host::begin(70us, 0);
  { const basic_realtime_guard<noted_host> guard{realtime_policy::fifo, 20}; }
  CHECK(noted_host::calls == calls{"realtime 20", "scheduling back", "slack 70000"});
  CHECK(noted_host::slack_is == 70us);

  noted_host::begin(70us, EPERM);
  {
    const basic_realtime_guard<noted_host> realtime;
    const basic_timer_slack_guard<noted_host> slack{1ns};
    const basic_cpu_latency_guard<noted_host> latency{0us};
    CHECK_FALSE(realtime.granted());
    CHECK_FALSE(slack.granted());
    CHECK_FALSE(latency.granted());
    CHECK((realtime.error() == EPERM && slack.error() == EPERM && latency.error() == EPERM));
  }
  CHECK(noted_host::calls == calls{"realtime 10", "slack 1"});

  noted_host::begin(70us, 0);
  { const basic_cpu_latency_guard<noted_host> guard{0us}; }
  CHECK(noted_host::calls == calls{"release 7"});

  noted_host::begin(70us, 0);
  noted_host::ignores_slack = true;  // a filter that answers 0 and does nothing
  CHECK_FALSE(basic_timer_slack_guard<noted_host>{1ns}.granted());
}

TEST_CASE("on a system of which nothing is known every guard says that it was not granted",
          "[host]") {
  const basic_timer_slack_guard<portable_host> slack{1ns};
  const basic_realtime_guard<portable_host> realtime;
  const basic_cpu_latency_guard<portable_host> latency{0us};
  CHECK_FALSE(slack.granted());
  CHECK_FALSE(realtime.granted());
  CHECK_FALSE(latency.granted());
  CHECK((slack.error() == ENOSYS && realtime.error() == ENOSYS && latency.error() == ENOSYS));
}
