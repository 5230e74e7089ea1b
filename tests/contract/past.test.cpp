// Mistake that would live without it: a past deadline that enters the kernel, as every timed wait
// of the C library does (about 500 times a clock read), that yields, or that changes errno.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>

#include <cerrno>
#include <limits>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("past deadlines make no system call at all", "[contract][G2]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  const int code = support::in_child([] {
    sleep_for(1ms);  // the thread's first wait may
    static_cast<void>(std::chrono::system_clock::now());
    if (!support::die_of_calls_except({SYS_exit_group, SYS_exit})) return 77;
    for (int i = 0; i < 1000; ++i) {
      for (const auto ago : {0ns, 1ns, 1'000'000ns, 3'600'000'000'000ns}) {
        if (sleep_until(steady::now() - ago).why != outcome::already_past) return 1;
        if (block_until(steady::now() - ago).why != outcome::already_past) return 2;
        if (spin_until(steady::now() - ago).why != outcome::already_past) return 3;
        if (sleep_until(std::chrono::system_clock::now() - ago).why != outcome::already_past)
          return 4;
        if (sleep_for(-ago).why != outcome::already_past) return 5;
      }
      if (sleep_until(instant::min()).why != outcome::already_past) return 6;
      if (sleep_for(nanoseconds::min()).why != outcome::already_past) return 7;
      if (sleep_for(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())).why !=
          outcome::already_past) {
        return 8;
      }
    }
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("a process that enters the kernel under that filter dies", "[contract]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  const int code = support::in_child([] {
    if (!support::die_of_calls_except({SYS_exit_group, SYS_exit})) return 77;
    for (int i = 0; i < 20; ++i) sleep_for(5ms);
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == -SIGSYS);
}

TEST_CASE("a past deadline reports a lower bound of its lateness, within two ticks",
          "[contract][G2]") {
  for (const auto ago : {1us, 3'000us, 20'000us, 3'600'000'000us}) {
    for (int i = 0; i < 100; ++i) {
      const instant due = steady::now() - ago;
      const receipt did = sleep_until(due);
      const nanoseconds late = steady::now() - due;
      CHECK(did.why == outcome::already_past);
      CHECK(did.late <= late);
      CHECK(did.late >= 0ns);
      CHECK(did.left == 0ns);
      CHECK(did.native_waits == 0);
    }
  }
  const receipt did = sleep_until(steady::now() - 1h);
  CHECK(did.late >= 1h - 20ms);  // two ticks at HZ=100
}

TEST_CASE("errno is left alone by every kind of wait", "[contract][G2][G8]") {
  for (const auto length : {-1'000'000ns, 0ns, 1ns, 20'000ns, 1'000'000ns}) {
    errno = 4711;
    sleep_for(length);
    block_for(length);
    spin_for(length);
    sleep_until(std::chrono::system_clock::now() + length);
    CHECK(errno == 4711);
  }
}
