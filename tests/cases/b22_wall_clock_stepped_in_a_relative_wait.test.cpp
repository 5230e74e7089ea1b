// Mistake that would live without it: a relative or steady wait that is measured on the settable
// clock, and lasts an hour when somebody sets the clock back by one.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>
#include <punctual/testing/simulated_platform.hpp>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b22: steady and relative waits do not notice a step of the wall clock",
          "[cases][b22][G11]") {
  for (const auto step : {nanoseconds(-3600s), nanoseconds(3600s), nanoseconds(87'660h)}) {
    testing::simulation world;
    world.kernel = [](const testing::native_request& r) { return later(r.until, 60us); };
    basic_sleeper<testing::simulated_platform> s{tuning{}, testing::simulated_platform{world}};
    for (int i = 0; i < 100; ++i) s.sleep_for(10ms);
    const instant from = world.time();
    world.after(100ms, [&] { world.step_wall_clock(step); });
    CHECK(s.sleep_for(300ms).why == outcome::reached);
    CHECK(world.time() - from >= 300ms);
    CHECK(world.time() - from < 301ms);
  }
}

namespace {
/// Which clocks the waits of a child ask the kernel for: dies if it is the wall clock.
bool dies_of_wall_clock_sleeps() {
  // clock_nanosleep's first argument is the clock: CLOCK_REALTIME is 0.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               static_cast<std::uint32_t>(offsetof(seccomp_data, args[0]))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog loaded{6, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded) == 0;
}
}  // namespace

TEST_CASE("b22: no steady or relative wait sleeps on CLOCK_REALTIME, a wall-clock one does",
          "[cases][b22]") {
  const int steadily = support::in_child([] {
    if (!dies_of_wall_clock_sleeps()) return 77;
    for (int i = 0; i < 20; ++i) {
      sleep_for(1ms);
      block_for(1ms);
      sleep_until(steady::now() + 1ms);
    }
    return 0;
  });
  if (steadily == 77) return support::skip("filters may not be installed here");
  CHECK(steadily == 0);
  CHECK(support::in_child([] {
          if (!dies_of_wall_clock_sleeps()) return 77;
          sleep_until(std::chrono::system_clock::now() + 5ms);
          return 0;
        }) == -SIGSYS);
}
