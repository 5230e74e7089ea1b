// Mistake that would live without it: where threads run one at a time (valgrind, one core), a wait
// that spins without an end never lets the thread run that would end it.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"

#include <punctual/interrupt.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include <sched.h>
#include <unistd.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

/// One thread stops another's wait; then both take turns. @return 0, or what went wrong.
int both_go_on(nanoseconds turn = 1ms) {
  waker w;
  std::thread stopper([&w] {
    waker nobody;
    sleep_for(nobody, 50ms);
    w.wake();
  });
  const receipt did = sleep_for(w, 5s);
  stopper.join();
  if (did.why != outcome::woken) return 1;

  constexpr int all = 200;
  std::atomic<int> turns{0};
  std::array<int, 2> of{};
  const auto takes_turns = [&turns, turn](int& mine) {
    waker nobody;
    do {
      sleep_for(nobody, turn);
      ++mine;
    } while (++turns < all);
  };
  std::thread other([&] { takes_turns(of[1]); });
  takes_turns(of[0]);
  other.join();
  return of[0] >= all * 35 / 100 && of[1] >= all * 35 / 100 ? 0 : 2;
}

}  // namespace

// Run by the case below, under valgrind.
TEST_CASE("b39: both threads of a pair go on", "[.][b39_pair]") { CHECK(both_go_on() == 0); }

TEST_CASE("b39: on one core a wait lets the thread run that ends it", "[cases][b39][G6]") {
  const nanoseconds turn = GENERATE(nanoseconds{1ms}, 170us);
  CAPTURE(turn);
  const instant from = steady::now();
  const int code = support::in_child([turn] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0) return 77;
    return both_go_on(turn);
  });
  if (code == 77) return support::skip("threads may not be pinned here");
  CHECK(code == 0);
  CHECK(steady::now() - from < 2s);
}

TEST_CASE("b39: under valgrind, which runs one thread at a time, a wait ends, too",
          "[cases][b39]") {
  if (support::sanitized) return support::skip("a sanitizer and valgrind do not go together");
  if (std::system("valgrind --version >/dev/null 2>&1") != 0)
    return support::skip("no valgrind here");
  std::array<char, 4096> self{};
  REQUIRE(::readlink("/proc/self/exe", self.data(), self.size() - 1) > 0);
  const instant from = steady::now();
  const int code = support::in_child([&self] {
    ::execlp("timeout", "timeout", "40", "valgrind", "-q", "--error-exitcode=9", self.data(),
             "[b39_pair]", static_cast<char*>(nullptr));
    return 127;
  });
  CHECK(code == 0);
  CHECK(steady::now() - from < 30s);
}
