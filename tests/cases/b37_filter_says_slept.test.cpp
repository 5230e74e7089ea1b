// Mistake that would live without it: a filter or a tracer answers "slept" to every sleeping call
// without having slept, and the wait is a hot loop of system calls, or ends early.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b37: where every sleeping call answers that it slept, none is early and none is hot",
          "[cases][b37][G1][G6][unsanitized]") {
  const int code = support::in_child([] {
    sleep_for(1ms);
    waker bell;
    if (!support::refuse_calls({SYS_clock_nanosleep, SYS_futex, SYS_ppoll}, 0)) return 77;
    for (int i = 0; i < 5; ++i) {
      const instant due = steady::now() + 30ms;
      const receipt plain = sleep_until(due);
      if (steady::now() < due || plain.why != outcome::reached) return 1;
      if (plain.native_waits > 150) return 2;
      const instant then = steady::now() + 30ms;
      const receipt parked = sleep_until(bell, then);
      if (steady::now() < then || parked.why != outcome::reached) return 3;
      if (parked.native_waits > 150) return 4;
    }
    const receipt blocked = block_for(30ms);
    if (blocked.why != outcome::gave_up || blocked.native_waits > 30) return 5;
    const receipt waiting = block_for(bell, 30ms);
    if (waiting.why != outcome::gave_up || waiting.native_waits > 30) return 6;
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}
