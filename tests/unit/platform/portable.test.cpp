// Mistake that would live without it: the standard's sleep answers nothing, so one that the system
// refuses looks like a wake-up: a block for 30 ms asks a hundred thousand times and burns the core.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/platform/portable.hpp>
#include <punctual/sleeper.hpp>

#include <cerrno>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

using portable_sleeper = basic_sleeper<portable_platform>;

// The C library's sleeps make this call.
bool refuse_sleeps(int error) {
#if defined(SYS_clock_nanosleep_time64)
  return support::refuse_calls({SYS_clock_nanosleep, SYS_clock_nanosleep_time64}, error);
#else
  return support::refuse_calls({SYS_clock_nanosleep}, error);
#endif
}

TEST_CASE("a sleep that the system refuses is refused by the portable backend, with its reason",
          "[portable][sys][unsanitized]") {
  for (const int error : {EPERM, ENOSYS, EINVAL}) {
    const int code = support::in_child([error] {
      if (!refuse_sleeps(error)) return 77;
      for (const clock_kind on : {clock_kind::monotonic, clock_kind::realtime}) {
        errno = 42;
        const native_wait answer =
            portable_platform::block_until(on, portable_platform::now(on) + 30ms, slack::as_is);
        if (answer.how != native_end::refused || answer.error != error) return 1;
        if (errno != 42) return 2;
        // Too little to go to be sure: the sleeper looks at the clock itself.
        if (portable_platform::block_until(on, portable_platform::now(on) + 100us, slack::as_is)
                .how != native_end::woke) {
          return 3;
        }
      }
      return 0;
    });
    if (code == 77) return support::skip("filters may not be installed here");
    CHECK(code == 0);
  }
}

TEST_CASE("where the portable backend may not sleep, a block gives up and a sleep is not early",
          "[portable][sys][unsanitized][G1]") {
  const int code = support::in_child([] {
    if (!refuse_sleeps(EPERM)) return 77;
    portable_sleeper s;
    const receipt blocked = s.block_for(30ms);
    if (blocked.why != outcome::gave_up || blocked.error != EPERM) return 1;
    if (blocked.native_waits > 20 || blocked.left < 20ms) return 2;
    for (int i = 0; i < 5; ++i) {
      const instant due = steady::now() + 30ms;
      const receipt slept = s.sleep_until(due);
      if (slept.why != outcome::reached || steady::now() < due) return 3;
      if (slept.error != EPERM) return 4;
      if (slept.native_waits > 20) return 5;
    }
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("a sleep that is served is no refusal, however short it is and whatever errno was",
          "[portable]") {
  for (const nanoseconds length : {nanoseconds{-1s}, nanoseconds{0ns}, nanoseconds{1us},
                                   nanoseconds{900us}, nanoseconds{1100us}, nanoseconds{5ms}}) {
    for (const clock_kind on : {clock_kind::monotonic, clock_kind::realtime}) {
      errno = EPERM;
      const native_wait answer =
          portable_platform::block_until(on, portable_platform::now(on) + length, slack::as_is);
      CHECK(answer.how == native_end::woke);
      CHECK(answer.error == 0);
      CHECK(errno == EPERM);
    }
  }
}

}  // namespace
