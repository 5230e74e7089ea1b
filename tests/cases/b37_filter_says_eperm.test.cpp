// Mistake that would live without it: an old container filter answers EPERM to a sleeping call, and
// code that knows only ENOSYS returns without having slept, or asks again every microsecond.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>

#include <cerrno>
#include <ctime>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b37: twenty waits of 20 ms under a filter are punctual and leave half of the core",
          "[cases][b37][G1]") {
  for (const int error : {EPERM, ENOSYS, EINVAL}) {
    const int code = support::in_child([error] {
      if (!support::refuse_calls({SYS_clock_nanosleep}, error)) return 77;
      timespec before{}, after{};
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
      const instant from = steady::now();
      for (int i = 0; i < 20; ++i) {
        const instant due = steady::now() + 20ms;
        const receipt did = sleep_until(due);
        if (steady::now() < due) return 1;
        // A busy machine makes it wait in stages, but each of them waits.
        if (did.blocked < did.native_waits * 50us) return 2;
        if (did.error != error) return 3;
      }
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
      const nanoseconds cpu = std::chrono::seconds{after.tv_sec - before.tv_sec} +
                              nanoseconds{after.tv_nsec - before.tv_nsec};
      return cpu < (steady::now() - from) / 2 ? 0 : 4;
    });
    if (code == 77) return support::skip("filters may not be installed here");
    INFO("error " << error);
    CHECK(code == 0);
  }
}
