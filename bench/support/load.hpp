// What else the machine does while it is measured: nothing, a busy thread on every core, a CPU
// quota, another scheduling policy. Linux; whatever is not allowed says why and is skipped by its
// caller.
#pragma once

#include "thread_cost.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bench {

/// One thread on each core that computes without pause and counts what it has done.
class busy_threads {
 public:
  explicit busy_threads(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      counters_.push_back(std::make_unique<counter>());
      threads_.emplace_back([this, mine = counters_.back().get(), i] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
        std::uint64_t state = i + 1;
        while (!stop_.load(std::memory_order_relaxed)) {
          for (int step = 0; step < 200; ++step) state = state * 6364136223846793005u + 1442695u;
          mine->done.store(mine->done.load(std::memory_order_relaxed) + 1 + (state == 0 ? 1 : 0),
                           std::memory_order_relaxed);
        }
      });
    }
  }
  ~busy_threads() {
    stop_ = true;
    for (std::thread& each : threads_) each.join();
  }
  busy_threads(const busy_threads&) = delete;
  busy_threads& operator=(const busy_threads&) = delete;

  /// Units of work that all of them have done so far; 0.1 to 0.2 us each.
  std::uint64_t done() const {
    std::uint64_t sum = 0;
    for (const auto& each : counters_) sum += each->done.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) counter {
    std::atomic<std::uint64_t> done{0};
  };
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<counter>> counters_;
  std::vector<std::thread> threads_;
};

/// Puts this process into a control group that may use `percent` of one core in each 100 ms.
///
/// Version 1 or 2 of the cpu controller, whichever the machine has. The process goes back to where
/// it was, and the group is removed, when this object ends.
class cpu_quota {
 public:
  explicit cpu_quota(double percent) {
    const std::string quota = std::to_string(static_cast<long>(percent * 1000));
    const std::string name = "/punctual-bench-" + std::to_string(::getpid());
    if (::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0) {
      home_ = "/sys/fs/cgroup";
      group_ = home_ + name;
      put(home_ + "/cgroup.subtree_control", "+cpu");
      make();
      put(group_ + "/cpu.max", quota + " 100000");
    } else {
      home_ = "/sys/fs/cgroup/cpu";
      group_ = home_ + name;
      make();
      put(group_ + "/cpu.cfs_period_us", "100000");
      put(group_ + "/cpu.cfs_quota_us", quota);
    }
    put(group_ + "/cgroup.procs", std::to_string(::getpid()));
  }
  ~cpu_quota() {
    put(home_ + "/cgroup.procs", std::to_string(::getpid()));
    ::rmdir(group_.c_str());
  }
  cpu_quota(const cpu_quota&) = delete;
  cpu_quota& operator=(const cpu_quota&) = delete;

  bool granted() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }

  /// What the kernel counts: `nr_periods`, in which the group ran, and of them `nr_throttled`.
  long counted(const std::string& what) const {
    std::ifstream file(group_ + "/cpu.stat");
    std::string name;
    for (long value = 0; file >> name >> value;) {
      if (name == what) return value;
    }
    return -1;
  }

 private:
  void make() {
    if (::mkdir(group_.c_str(), 0755) != 0) fail(group_);
  }
  void put(const std::string& path, const std::string& value) {
    std::ofstream file(path);
    file << value << std::flush;
    if (!file) fail(path);
  }
  void fail(const std::string& path) {
    if (problem_.empty()) problem_ = path + ": " + std::strerror(errno);
  }

  std::string home_, group_, problem_;
};

/// Gives the calling thread a real-time policy at priority 50. @return 0, or the error.
inline int become_realtime(int policy) {
  sched_param how{};
  how.sched_priority = 50;
  return ::sched_setscheduler(0, policy, &how) == 0 ? 0 : errno;
}

}  // namespace bench
