// Mistake that would live without it: an interruptible wait whose native call is refused returns
// without having waited, asks again every microsecond, or can no longer be woken.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/interrupt.hpp>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <thread>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE(
    "b37: interruptible waits of 20 ms under a filter are punctual and leave half of the core",
    "[cases][b37][G1]") {
  for (const int error : {EPERM, ENOSYS, EINVAL}) {
    const int code = support::in_child([error] {
      if (!support::refuse_calls({SYS_clock_nanosleep}, error)) return 77;
      waker w;
      timespec before{}, after{};
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
      const instant from = steady::now();
      for (int i = 0; i < 20; ++i) {
        const instant due = steady::now() + 20ms;
        const receipt did = sleep_until(w, due);
        if (steady::now() < due || did.why != outcome::reached) return 1;
        // A busy machine makes it wait in stages, but each of them waits.
        if (did.blocked < did.native_waits * 50us) return 2;
      }
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
      const nanoseconds cpu = std::chrono::seconds{after.tv_sec - before.tv_sec} +
                              nanoseconds{after.tv_nsec - before.tv_nsec};
      return cpu < (steady::now() - from) / 2 ? 0 : 3;
    });
    if (code == 77) return support::skip("filters may not be installed here");
    INFO("error " << error);
    CHECK(code == 0);
  }
}

TEST_CASE(
    "b37: where no call may wait at all, an interruptible wait is still never early and can be "
    "woken",
    "[cases][b37][G1][G9]") {
  const int code = support::in_child([] {
    waker w;
    std::atomic<bool> go{false};
    std::thread other([&] {  // spins: its own sleeping calls are refused, too
      while (!go) {
      }
      const instant at = steady::now() + 10ms;
      while (steady::now() < at) {
      }
      w.wake();
    });
    if (!support::refuse_calls({SYS_clock_nanosleep, SYS_futex, SYS_ppoll}, EPERM)) {
      go = true;
      other.join();
      return 77;
    }
    const instant due = steady::now() + 20ms;
    receipt did = sleep_until(w, due);
    if (steady::now() < due || did.why != outcome::reached || did.error != EPERM) return 1;
    if (did.native_waits > 4) return 2;
    go = true;
    did = sleep_for(w, 2s);
    if (did.why != outcome::woken || did.left < 1s) return 3;
    other.detach();  // joining needs a futex
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}
