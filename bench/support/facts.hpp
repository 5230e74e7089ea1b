// What machine a figure was taken on: without it, a figure is a rumour. Linux.
#pragma once

#include "json.hpp"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

namespace bench {

inline std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value of a `name : value` line of /proc/cpuinfo; empty if there is none.
inline std::string cpu_info(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

inline std::string policy_name() {
  sched_param how{};
  ::sched_getparam(0, &how);
  const std::string priority = std::to_string(how.sched_priority);
  switch (::sched_getscheduler(0)) {
    case SCHED_OTHER:
      return "SCHED_OTHER";
    case SCHED_FIFO:
      return "SCHED_FIFO " + priority;
    case SCHED_RR:
      return "SCHED_RR " + priority;
    case SCHED_BATCH:
      return "SCHED_BATCH";
    case SCHED_IDLE:
      return "SCHED_IDLE";
    default:
      return "unknown";
  }
}

inline std::string this_month() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  ::gmtime_r(&now, &date);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m", &date);
  return text;
}

/// Adds `"machine": {…}` to the object that is open.
inline void put_facts(json& out) {
  utsname system{};
  ::uname(&system);
  const std::string clocks = "/sys/devices/system/clocksource/clocksource0/";
  const bool guest = cpu_info("flags").find(" hypervisor") != std::string::npos;
  out.open("machine");
  out.put("cpu", cpu_info("model name"));
  out.put("cores", static_cast<int>(std::thread::hardware_concurrency()));
  out.put("virtual", guest);
  out.put("kernel", std::string(system.sysname) + " " + system.release);
  out.put("architecture", system.machine);
  out.put("clock_source", first_line(clocks + "current_clocksource"));
  out.put("slack_ns", static_cast<std::int64_t>(::prctl(PR_GET_TIMERSLACK)));
  out.put("policy", policy_name());
  out.put("compiler", __VERSION__);
  out.put("month", this_month());
  out.close();
}

}  // namespace bench
