// A child process for tests that change their process: filters, namespaces, stops, deaths.
//
// The child runs a function and exits with what it returns; it must not use Catch's macros, which
// count in the wrong process. A child that hangs is killed and reported as such.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace support {

constexpr int hung = -1000;

/// Waits for a child; its exit status, minus the signal that killed it, or `hung`.
inline int wait_for(pid_t child, std::chrono::seconds limit = std::chrono::seconds{60}) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  for (;;) {
    const pid_t seen = ::waitpid(child, &status, WNOHANG);
    if (seen == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return hung;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

/// Starts a child that runs `body` and exits with the int it returns.
template <class Body>
pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int fatal : {SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT})
      ::signal(fatal, SIG_DFL);
    const int code = body();
    std::fflush(nullptr);
    ::_exit(code);
  }
  return child;
}

template <class Body>
int in_child(Body body, std::chrono::seconds limit = std::chrono::seconds{60}) {
  return wait_for(start_child(body), limit);
}

}  // namespace support
