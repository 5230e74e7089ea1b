// Mistake that would live without it: an error of the kernel taken for another (a refusal retried
// for ever as an interruption, an interruption taken for a wake-up), or a thread handed back with
// its timer slack or errno changed. Every answer of the kernel is forged here, by a policy of raw
// calls.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/platform/linux.hpp>
#include <punctual/platform/portable.hpp>
#include <punctual/sleeper.hpp>

#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

/// Raw calls that answer as scripted and write down what they were asked.
struct forged_calls {
  using time = linux_calls::time;
  static constexpr int sleeps_not_at_all = 1;
  static inline int sleep_answer = 0;
  static inline int futex_answer = -ETIMEDOUT;
  static inline int poll_answer = 0;
  static inline long slack = 50'000;
  static inline long slack_during_wait = -1;
  static inline long tsc_answer = 0;
  static inline int tsc_permission = PR_TSC_ENABLE;
  static inline std::int64_t now = 0;
  static inline std::vector<std::string> asked;
  static inline std::vector<std::int64_t> until;

  static void start(int sleeps, int futexes, int polls) {
    sleep_answer = sleeps;
    futex_answer = futexes;
    poll_answer = polls;
    slack = 50'000;
    slack_during_wait = -1;
    now = 1'000'000'000'000;
    asked.clear();
    until.clear();
  }
  static instant clock_gettime(clockid_t) noexcept {
    return instant{nanoseconds{now < INT64_MAX - 20 ? now += 20 : now}};
  }
  static int clock_nanosleep(clockid_t clock, const time& t) noexcept {
    note(clock == CLOCK_MONOTONIC ? "sleep" : "sleep wall", t);
    if (sleep_answer == 0) reach(t);
    return sleep_answer == sleeps_not_at_all ? 0 : sleep_answer;
  }
  static int futex_wait(const park_word&, std::uint32_t, clockid_t clock, const time& t) noexcept {
    note(clock == CLOCK_MONOTONIC ? "futex" : "futex wall", t);
    if (futex_answer == -ETIMEDOUT) reach(t);
    return futex_answer;
  }
  static int futex_wake(const park_word&, int) noexcept {
    asked.push_back("wake");
    return 0;
  }
  static int ppoll(const time& left) noexcept {
    note("poll", left);
    if (poll_answer == 0) now += left.seconds * 1'000'000'000 + left.nanoseconds;
    return poll_answer;
  }
  static long prctl(int option, unsigned long argument) noexcept {
    if (option == PR_GET_TIMERSLACK) return slack;
    if (option == PR_GET_TSC) {
      if (tsc_answer == 0) *reinterpret_cast<int*>(argument) = tsc_permission;
      return tsc_answer;
    }
    if (option == PR_SET_TIMERSLACK) {
      asked.push_back("slack " + std::to_string(argument));
      slack = static_cast<long>(argument);
    }
    return 0;
  }

 private:
  static void note(const char* call, const time& t) {
    asked.emplace_back(call);
    until.push_back(t.seconds * 1'000'000'000 + t.nanoseconds);
    slack_during_wait = slack;
    CHECK(t.nanoseconds >= 0);
    CHECK(t.nanoseconds < 1'000'000'000);
  }
  static void reach(const time& t) {
    const std::int64_t at = t.seconds * 1'000'000'000 + t.nanoseconds;
    now = at > now ? at : now;
  }
};

using forged = linux_platform<forged_calls>;
static_assert(platform<forged>);
static_assert(platform<linux_platform<>>);
static_assert(platform<portable_platform>);

using names = std::vector<std::string>;
const instant soon{nanoseconds{1'000'005'000'000}};

}  // namespace

TEST_CASE("a native wait is one absolute sleep on the clock that was named", "[linux]") {
  forged_calls::start(0, -ETIMEDOUT, 0);
  native_wait did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
  CHECK(did.how == native_end::woke);
  CHECK(did.error == 0);
  CHECK(forged_calls::asked == names{"sleep"});
  CHECK(forged_calls::until[0] == soon.time_since_epoch().count());

  forged_calls::start(0, -ETIMEDOUT, 0);
  did = forged::block_until(clock_kind::realtime, soon, slack::as_is);
  CHECK(forged_calls::asked == names{"sleep wall"});
}

TEST_CASE("the answer of clock_nanosleep is the error: an interruption is told from a refusal",
          "[linux][G3]") {
  forged_calls::start(-EINTR, -ETIMEDOUT, 0);
  const native_wait did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
  CHECK(did.how == native_end::interrupted);
  CHECK(forged_calls::asked == names{"sleep"});
}

TEST_CASE("a refused sleep falls to a futex, then to poll, then is refused", "[linux][G1]") {
  for (const int refusal : {EPERM, ENOSYS, EINVAL, EACCES}) {
    forged_calls::start(-refusal, -ETIMEDOUT, 0);
    native_wait did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
    CHECK(did.how == native_end::woke);
    CHECK(did.error == refusal);
    CHECK(forged_calls::asked == names{"sleep", "futex"});
    CHECK(forged_calls::until[1] == soon.time_since_epoch().count());

    forged_calls::start(-refusal, -EINTR, 0);
    did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
    CHECK(did.how == native_end::interrupted);

    forged_calls::start(-refusal, -EPERM, 0);
    did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
    CHECK(did.how == native_end::woke);
    CHECK(did.error == refusal);
    CHECK(forged_calls::asked == names{"sleep", "futex", "poll"});
    CHECK(forged_calls::now >= soon.time_since_epoch().count());

    forged_calls::start(-refusal, -EPERM, -EINTR);
    did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
    CHECK(did.how == native_end::interrupted);

    forged_calls::start(-refusal, -EPERM, -EPERM);
    did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
    CHECK(did.how == native_end::refused);
    CHECK(did.error == refusal);
  }
}

TEST_CASE("a sleep that says it slept and did not is waited out by the next call", "[linux][G6]") {
  forged_calls::start(forged_calls::sleeps_not_at_all, -ETIMEDOUT, 0);
  const native_wait did = forged::block_until(clock_kind::monotonic, soon, slack::as_is);
  CHECK(did.how == native_end::woke);
  CHECK(did.error == ETIME);
  CHECK(forged_calls::asked == names{"sleep", "futex"});
  CHECK(forged_calls::now >= soon.time_since_epoch().count());
}

TEST_CASE("where only poll is left, a long wait on the wall clock looks at it every second",
          "[linux][G11]") {
  forged_calls::start(-EPERM, -EPERM, 0);
  const native_wait did = forged::block_until(clock_kind::realtime, soon + 10s, slack::as_is);
  CHECK(did.how == native_end::interrupted);
  CHECK(did.error == EPERM);
  CHECK(nanoseconds{forged_calls::until[2]} == 1s);

  forged_calls::start(-EPERM, -EPERM, 0);
  CHECK(forged::block_until(clock_kind::monotonic, soon + 10s, slack::as_is).how ==
        native_end::woke);
}

TEST_CASE("the counter is read only where the kernel says that it does not fault", "[linux][G7]") {
#if PUNCTUAL_CPU_X86
  forged_calls::start(0, -ETIMEDOUT, 0);
  CHECK(forged::counter_facts().usable == linux_platform<>::counter_facts().usable);
  forged_calls::tsc_permission = PR_TSC_SIGSEGV;
  CHECK_FALSE(forged::counter_facts().usable);
  forged_calls::tsc_permission = PR_TSC_ENABLE;
  forged_calls::tsc_answer = -EPERM;  // a filter
  CHECK_FALSE(forged::counter_facts().usable);
  forged_calls::tsc_answer = 0;
#else
  CHECK(forged::counter_facts().usable == processor::counter_facts().usable);
#endif
}

TEST_CASE("whole waits on a kernel that refuses are never early and say so", "[linux][G1]") {
  struct chain {
    int sleeps, futexes, polls;
  };
  for (const auto& c :
       {chain{-EPERM, -ETIMEDOUT, 0}, chain{-ENOSYS, -EPERM, 0}, chain{-EINVAL, -ENOSYS, -EPERM}}) {
    forged_calls::start(c.sleeps, c.futexes, c.polls);
    basic_sleeper<forged> s;
    for (int i = 0; i < 20; ++i) {
      const instant due{nanoseconds{forged_calls::now + 1'000'000}};
      const receipt did = s.sleep_until(due);
      CHECK(did.why == outcome::reached);
      CHECK(instant{nanoseconds{forged_calls::now}} >= due);
      CHECK(did.error == -c.sleeps);
      CHECK(did.native_waits <= 3);
    }
  }
}

TEST_CASE("the thread's slack is 1 ns during the wait and afterwards what it was just before",
          "[linux][G8]") {
  forged_calls::start(0, -ETIMEDOUT, 0);
  forged::block_until(clock_kind::monotonic, soon, slack::tight);
  CHECK(forged_calls::slack_during_wait == 1);
  CHECK(forged_calls::slack == 50'000);

  forged_calls::slack = 5'000'000;  // changed by the caller between two waits
  forged::block_until(clock_kind::monotonic, soon, slack::tight);
  CHECK(forged_calls::slack_during_wait == 1);
  CHECK(forged_calls::slack == 5'000'000);

  const park_word word{0};
  forged::park_until(word, 0, clock_kind::monotonic, soon, slack::tight);
  CHECK(forged_calls::slack_during_wait == 1);
  CHECK(forged_calls::slack == 5'000'000);
}

TEST_CASE("a slack of more than an int is handed back whole", "[linux][G8]") {
  if (sizeof(long) == sizeof(int)) return support::skip("a slack is an int here");
  for (const std::int64_t wide : {std::int64_t{1} << 31, std::int64_t{5'000'000'000}}) {
    forged_calls::start(0, -ETIMEDOUT, 0);
    forged_calls::slack = static_cast<long>(wide);
    forged::block_until(clock_kind::monotonic, soon, slack::tight);
    CHECK(forged_calls::slack_during_wait == 1);
    CHECK(forged_calls::slack == wide);

    std::thread([&] {  // and by the kernel itself
      ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(wide), 0, 0, 0);
      if (::syscall(SYS_prctl, PR_GET_TIMERSLACK) != wide) return;  // qemu-user cuts it to an int
      const nanoseconds before = linux_platform<>::facts().slack;
      linux_platform<>::block_until(clock_kind::monotonic, steady::now() + 100us, slack::tight);
      CHECK(before == nanoseconds{wide});
      CHECK(linux_platform<>::facts().slack == before);
    })
        .join();
  }
}

TEST_CASE("slack is left alone where it is small already, and where the caller wants it kept",
          "[linux][G8]") {
  for (const int small : {0, 1, 1000}) {
    forged_calls::start(0, -ETIMEDOUT, 0);
    forged_calls::slack = small;
    forged::block_until(clock_kind::monotonic, soon, slack::tight);
    CHECK(forged_calls::asked == names{"sleep"});
  }
  forged_calls::start(0, -ETIMEDOUT, 0);
  forged::block_until(clock_kind::monotonic, soon, slack::as_is);
  CHECK(forged_calls::asked == names{"sleep"});

  forged_calls::start(0, -ETIMEDOUT, 0);
  tuning how;
  how.tighten_slack = false;
  basic_sleeper<forged> s{how};
  s.sleep_until(instant{nanoseconds{forged_calls::now + 5'000'000}});
  CHECK(forged_calls::asked[0] == "sleep");
  forged_calls::start(0, -ETIMEDOUT, 0);
  basic_sleeper<forged>{}.block_until(soon);
  CHECK(forged_calls::asked == names{"sleep"});
}

TEST_CASE("a parked wait tells time-out, change, interruption and refusal apart", "[linux][G9]") {
  const park_word word{0};
  const auto park = [&](int answer) {
    forged_calls::start(0, answer, 0);
    return forged::park_until(word, 0, clock_kind::monotonic, soon, slack::as_is);
  };
  CHECK(park(-ETIMEDOUT).how == native_end::woke);
  CHECK(park(0).how == native_end::woke);
  CHECK(park(-EAGAIN).how == native_end::woke);
  CHECK(park(-EINTR).how == native_end::interrupted);
  CHECK(park(-EPERM).how == native_end::refused);
  CHECK(park(-EPERM).error == EPERM);
}

TEST_CASE("instants before the epoch and at the far end make a timespec that the kernel takes",
          "[linux][G5]") {
  for (const auto since : {nanoseconds::min(), -1ns, 0ns, 1ns, 999'999'999ns, 1'000'000'000ns,
                           1'000'000'001ns, nanoseconds::max()}) {
    forged_calls::start(0, -ETIMEDOUT, 0);
    forged::block_until(clock_kind::monotonic, instant{since}, slack::as_is);
    REQUIRE(forged_calls::until.size() == 1);
    CHECK(forged_calls::until[0] == (since < 0ns ? 0 : since.count()));
  }
}

TEST_CASE("real calls leave errno as it was, also when they fail", "[linux][G8]") {
  errno = 4711;
  linux_platform<>::block_until(clock_kind::monotonic, instant{}, slack::tight);
  CHECK(errno == 4711);
  const linux_calls::time wrong{0, 2'000'000'000};
  CHECK(linux_calls::clock_nanosleep(CLOCK_MONOTONIC, wrong) == -EINVAL);
  CHECK(linux_calls::clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, {0, 1}) < 0);
  const park_word word{0};
  CHECK(linux_calls::futex_wait(word, 1, CLOCK_MONOTONIC, {0, 1}) == -EAGAIN);
  CHECK(errno == 4711);
}

TEST_CASE("errno stays where a filter refuses the clock of the thread's own time",
          "[linux][portable][G8]") {
  const int code = support::in_child([] {
    if (!support::refuse_calls({SYS_clock_gettime}, EPERM)) return 77;
#if defined(SYS_clock_gettime64)
    if (!support::refuse_calls({SYS_clock_gettime64}, EPERM)) return 77;
#endif
    errno = 4711;
    timespec t{};
    if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 || errno != EPERM) return 3;
    errno = 4711;
    static_cast<void>(linux_platform<>::running_time());
    if (errno != 4711) return 1;
    static_cast<void>(portable_platform::running_time());
    return errno == 4711 ? 0 : 2;
  });
  if (code == 77) return support::skip("no filters here");
  CHECK(code == 0);
}

#if defined(SYS_futex_time64) && defined(SYS_futex)
TEST_CASE("a process of 32 bits waits also where the calls with 64-bit seconds are refused",
          "[linux][G1]") {
  for (const int refusal : {ENOSYS, EPERM, EINVAL}) {
    const int code = support::in_child([&] {
      if (!support::refuse_calls({SYS_clock_nanosleep_time64, SYS_futex_time64, SYS_ppoll_time64},
                                 refusal)) {
        return 77;
      }
      sleeper s;
      const receipt did = s.block_for(20ms);
      if (did.why != outcome::reached || did.native_waits != 1 || did.error != 0) return 1;
      const park_word word{0};
      const instant due = steady::now() + 5ms;
      const native_wait parked =
          linux_platform<>::park_until(word, 0, clock_kind::monotonic, due, slack::as_is);
      return parked.how == native_end::woke && steady::now() >= due ? 0 : 2;
    });
    if (code == 77) return support::skip("no filters here");
    CHECK(code == 0);
  }
}
#endif

TEST_CASE("each backend's coarse clock is never ahead of its precise one",
          "[linux][portable][G2]") {
  const auto never_ahead = [](auto system) {
    int ahead = 0;
    for (int i = 0; i < 100'000; ++i) {
      for (const auto on : {clock_kind::monotonic, clock_kind::realtime}) {
        const instant coarse = system.coarse_now(on);
        ahead += coarse > system.now(on);
      }
    }
    return ahead;
  };
  CHECK(never_ahead(linux_platform<>{}) == 0);
  CHECK(never_ahead(portable_platform{}) == 0);
}

TEST_CASE("the portable backend blocks, parks and is unparked", "[portable][threads]") {
  const portable_platform p;
  for (const auto on : {clock_kind::monotonic, clock_kind::realtime}) {
    const instant due = p.now(on) + 2ms;
    CHECK(p.block_until(on, due, slack::tight).how == native_end::woke);
    CHECK(p.now(on) >= due);
    park_word word{0};
    const instant later_due = p.now(on) + 2ms;
    while (p.now(on) < later_due) p.park_until(word, 0, on, later_due, slack::tight);
    CHECK(p.now(on) >= later_due);
    word = 1;
    CHECK(p.park_until(word, 0, on, p.now(on) + 1h, slack::tight).how == native_end::woke);
  }
  basic_sleeper<portable_platform> s;
  for (int i = 0; i < 20; ++i) {
    const instant due = steady::now() + 700us;
    CHECK(s.sleep_until(due).why == outcome::reached);
    CHECK(steady::now() >= due);
  }
  CHECK(s.sleep_for(-1s).why == outcome::already_past);
}
