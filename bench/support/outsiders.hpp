// Sleepers that are programs of their own: Python's time.sleep, cyclictest. They run between the
// repetitions, on the same machine in the same minutes, and say themselves how late they were.
#pragma once

#include "samples.hpp"

#include <punctual/platform/seam.hpp>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace bench {

/// A program that waits `count` times for a length and prints what came of it.
struct outsider {
  std::string name;
  std::string command;  ///< with $length_ns, $length_us and $count
  std::function<void(const char* line, samples& all)> read;
  punctual::nanoseconds shortest{0};
};

inline std::string filled_in(std::string command, const std::string& word, std::int64_t value) {
  for (std::size_t at = 0; (at = command.find(word, at)) != std::string::npos;) {
    command.replace(at, word.size(), std::to_string(value));
  }
  return command;
}

/// Runs it. Empty if the program is not there, refuses, or prints nothing of use.
inline samples run(const outsider& program, punctual::nanoseconds length, int count) {
  samples all;
  if (length < program.shortest) return all;
  std::string command = filled_in(program.command, "$length_ns", length.count());
  command = filled_in(command, "$length_us", length.count() / 1000);
  command = filled_in(command, "$count", count) + " 2>/dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return all;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) program.read(line.data(), all);
  if (::pclose(pipe) != 0) all.clear();
  return all;
}

inline std::vector<outsider> outsiders() {
  const char* const python =
      "python3 -c 'import time\n"
      "for i in range($count):\n"
      "  c = time.thread_time_ns(); d = time.monotonic_ns() + $length_ns\n"
      "  time.sleep((d - time.monotonic_ns()) / 1e9)\n"
      "  e = time.monotonic_ns(); print(e - d, time.thread_time_ns() - c)'";
  const auto read_python = [](const char* line, samples& all) {
    sample one;
    if (std::sscanf(line, "%" SCNd64 " %" SCNd64, &one.late, &one.cpu) == 2) all.push_back(one);
  };
  // A line of the histogram: microseconds, and how many of them.
  // What lies beyond is in its own line.
  const auto read_cyclictest = [](const char* line, samples& all) {
    std::int64_t late = 0;
    std::int64_t times = 0;
    if (line[0] == '#' || std::sscanf(line, "%" SCNd64 " %" SCNd64, &late, &times) != 2) return;
    for (; times > 0; --times) {
      sample one;
      one.late = late * 1000;
      one.cpu = -1;
      all.push_back(one);
    }
  };
  return {
      {"python", python, read_python, {}},
      {"cyclictest", "cyclictest -q -t1 -i $length_us -l $count -h 100000", read_cyclictest, {}}};
}

}  // namespace bench
