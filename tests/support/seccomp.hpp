// System-call filters for tests: refuse some calls, or die of any call that is not expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace support {

/// Installs a filter in the calling thread for good; use it in a child only.
///
/// @param listed     System calls by number.
/// @param for_listed, otherwise  SECCOMP_RET_… values.
/// @return  false where filters may not be installed.
inline bool filter_calls(std::initializer_list<int> listed, std::uint32_t for_listed,
                         std::uint32_t otherwise) {
  std::vector<sock_filter> program;
  program.push_back(
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))));
  for (const int number : listed) {
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, for_listed));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, otherwise));
  sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded) == 0;
}

/// Answers the listed calls with an error.
inline bool refuse_calls(std::initializer_list<int> calls, int error) {
  return filter_calls(calls, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error),
                      SECCOMP_RET_ALLOW);
}

/// Kills the process at any call that is not listed.
inline bool die_of_calls_except(std::initializer_list<int> calls) {
  return filter_calls(calls, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
}

/// Kills the process at the listed calls.
inline bool die_of_calls(std::initializer_list<int> calls) {
  return filter_calls(calls, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
}

}  // namespace support
