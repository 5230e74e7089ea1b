// Mistake that would live without it: a handler that leaves a wait by siglongjmp leaves the
// sleeper marked as in use, so that it never learns again and cannot be calibrated.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <punctual/punctual.hpp>

#include <csetjmp>
#include <csignal>

#include <sys/time.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

sigjmp_buf out;

void jump(int) { siglongjmp(out, 1); }

// One wait, from a frame that is always as deep.
[[gnu::noinline]] receipt wait_once(sleeper& s, nanoseconds length) { return s.sleep_for(length); }

}  // namespace

TEST_CASE("a sleeper whose wait was left by siglongjmp learns again in the next one",
          "[contract][G4]") {
  const int code = support::in_child([] {
    struct sigaction handler {};
    handler.sa_handler = jump;
    handler.sa_flags = SA_NODEFER;
    ::sigaction(SIGALRM, &handler, nullptr);
    sleeper s;
    if (sigsetjmp(out, 1) == 0) {
      const itimerval soon{{0, 0}, {0, 5000}};
      ::setitimer(ITIMER_REAL, &soon, nullptr);
      wait_once(s, 10s);
      return 1;  // it must not come back
    }
    const nanoseconds before = s.report().margins[1].margin.quantile;
    for (int k = 0; k < 20; ++k) {
      if (wait_once(s, 1ms).why != outcome::reached) return 2;
    }
    if (s.report().margins[1].margin.quantile == before) return 3;  // not learned
    if (s.calibrate(5ms).took <= 0ns) return 4;
    return 0;
  });
  CHECK(code == 0);
}
