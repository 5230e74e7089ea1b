// Mistake that would live without it: a late beat, a poll or an order to a pacer that enters the
// kernel, or a beat that changes errno.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/pacer.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("late beats, polls and orders make no system call",
          "[contract][pacer][G2][unsanitized]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  const int code = support::in_child([] {
    pacer p{hz(1'000'000), missed::burst, 1'000'000};
    limiter l{hz(1'000'000'000), 1'000'000};
    p.next();
    const instant until = steady::now() + 20ms;
    while (steady::now() < until) {
    }
    if (!support::die_of_calls_except({SYS_exit_group, SYS_exit})) return 77;
    for (int i = 0; i < 1'000; ++i) {
      if (p.next().slept.why != outcome::already_past) return 1;
      if (!p.poll()) return 2;
      if (!l.try_acquire() || l.acquire().why != outcome::already_past) return 3;
      p.nudge(1ns);
      p.set_rate(i % 2 == 0 ? rate{1'000'001, 1} : rate{999'999, 1});
    }
    p.stop();
    if (p.next()) return 4;
    p.set_unlimited();
    p.restart();
    for (int i = 0; i < 1'000; ++i) {
      if (!p.next()) return 5;
    }
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("a beat leaves errno alone", "[contract][pacer][G8]") {
  pacer p{hz(1'000)};
  for (int i = 0; i < 20; ++i) {
    errno = EDOM;
    REQUIRE(p.next());
    REQUIRE(errno == EDOM);
  }
}

TEST_CASE("a rate of zero that is made at run time ends the program", "[contract][rate]") {
  for (const int beats : {0, -60, 1'000'000'000}) {
    const int code = support::in_child([beats] {
      std::freopen("/dev/null", "w", stderr);  // the sentence would be taken for a failure
      return hz(beats).period() == 1ns ? 0 : 1;
    });
    CHECK(code == (beats > 0 ? 0 : -SIGABRT));
  }
}
