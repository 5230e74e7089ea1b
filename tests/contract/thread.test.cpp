// Mistake that would live without it: a wait that leaves the thread changed (timer slack, signal
// mask, scheduling), acts on a cancellation inside a noexcept frame (which ends the process),
// allocates or takes a lock on the wait path.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>

#include <atomic>
#include <cstdlib>
#include <thread>

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

int slack_now() { return ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); }
void set_slack(unsigned long ns) { ::prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0); }

}  // namespace

TEST_CASE("the timer slack is what it was, also when the caller changes it between waits",
          "[contract][G8]") {
  for (const unsigned long slack : {50'000UL, 5'000'000UL, 1UL, 250'000UL}) {
    set_slack(slack);
    for (const auto length : {20us, 300us, 2000us}) {
      sleep_for(length);
      block_for(length);
      sleep_until(std::chrono::system_clock::now() + length);
      CHECK(slack_now() == static_cast<int>(slack));
    }
  }
  set_slack(50'000);
  std::thread([] { CHECK(slack_now() == 50'000); }).join();
}

TEST_CASE("a slack of 5 ms does not make waits 5 ms late", "[contract][G8]") {
  std::thread([] {
    set_slack(5'000'000);
    int late = 0;
    int plainly_late = 0;
    for (int i = 0; i < 60; ++i) {
      const instant due = steady::now() + 2ms;
      sleep_until(due);
      late += steady::now() - due > 1ms;
      const instant plain = steady::now() + 2ms;
      block_until(plain);
      plainly_late += steady::now() - plain > 1ms;
    }
    CHECK(late <= plainly_late / 3 + 1);
    CHECK(slack_now() == 5'000'000);
  }).join();
}

TEST_CASE("signal mask, scheduling and affinity are what they were", "[contract][G8]") {
  sigset_t mask_before{}, mask_after{};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
  int policy_before = 0, policy_after = 0;
  sched_param param_before{}, param_after{};
  ::pthread_getschedparam(::pthread_self(), &policy_before, &param_before);
  cpu_set_t cores_before, cores_after;
  ::sched_getaffinity(0, sizeof cores_before, &cores_before);

  for (const auto length : {10us, 500us, 3000us}) {
    sleep_for(length);
    block_for(length);
    spin_for(length);
  }

  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
  ::pthread_getschedparam(::pthread_self(), &policy_after, &param_after);
  ::sched_getaffinity(0, sizeof cores_after, &cores_after);
  for (int signal = 1; signal < 32; ++signal) {
    CHECK(::sigismember(&mask_before, signal) == ::sigismember(&mask_after, signal));
  }
  CHECK(policy_before == policy_after);
  CHECK(param_before.sched_priority == param_after.sched_priority);
  CHECK(CPU_EQUAL(&cores_before, &cores_after));
}

TEST_CASE("waits are not cancellation points, and the cancellation state is what it was",
          "[contract][G8][threads]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  struct shared {
    std::atomic<bool> waiting{false};
    std::atomic<int> state{-1}, type{-1};
    std::atomic<bool> ended{false};
  } seen;
  pthread_t waiter{};
  const auto body = [](void* data) -> void* {
    auto& s = *static_cast<shared*>(data);
    s.waiting = true;
    const instant due = steady::now() + 50ms;
    sleep_until(due);
    block_for(5ms);
    sleep_until(std::chrono::system_clock::now() + 5ms);
    s.ended = steady::now() >= due + 10ms;
    int state = 0, type = 0;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    s.state = state;
    s.type = type;
    ::pthread_setcancelstate(state, nullptr);
    ::pthread_testcancel();
    return nullptr;
  };
  REQUIRE(::pthread_create(&waiter, nullptr, body, &seen) == 0);
  while (!seen.waiting) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);
  REQUIRE(::pthread_cancel(waiter) == 0);
  void* result = nullptr;
  ::pthread_join(waiter, &result);
  CHECK(seen.ended);
  CHECK(seen.state == PTHREAD_CANCEL_ENABLE);
  CHECK(seen.type == PTHREAD_CANCEL_DEFERRED);
  CHECK(result == PTHREAD_CANCELED);  // pending all the time, acted on by the caller's own point
}

TEST_CASE("after a thread's first wait, no wait allocates memory", "[contract][G4]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  sleep_for(100us);
  const auto in_use = [] {
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const auto before = in_use();
  for (int i = 0; i < 50; ++i) {
    sleep_for(100us);
    block_for(20us);
    spin_for(5us);
    sleep_until(std::chrono::system_clock::now() + 50us);
    sleep_until(steady::now() - 1h);
  }
  CHECK(in_use() == before);
}

TEST_CASE("waits make only the calls that waiting needs: no lock, no memory, no thread",
          "[contract][G4]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  const int code = support::in_child([] {
    sleep_for(1ms);
    if (!support::die_of_calls_except(
            {SYS_exit_group, SYS_exit, SYS_clock_nanosleep, SYS_prctl, SYS_clock_gettime})) {
      return 77;
    }
    for (int i = 0; i < 200; ++i) {
      sleep_for(100us);
      block_for(20us);
      spin_for(5us);
      sleep_until(std::chrono::system_clock::now() + 50us);
    }
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("a thread's state is at most 4 KiB and needs neither constructor nor destructor",
          "[contract][G4]") {
  STATIC_REQUIRE(sizeof(thread_sleeper) <= 4096);
  STATIC_REQUIRE(std::is_trivially_destructible_v<thread_sleeper>);
  static constinit thread_sleeper constant;
  CHECK(constant.own.margin(1ms) >= 0ns);
}
