// Mistake that would live without it: target − now goes below zero and becomes centuries;
// nanoseconds that land on exactly 10⁹ miss the carry, and the kernel answers EINVAL.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"

#include <punctual/punctual.hpp>

#include <algorithm>
#include <ctime>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b20a: a thousand deadlines long gone take less than 50 ms in all", "[cases][b20][G2]") {
  nanoseconds best = 1h;
  for (int round = 0; round < 3; ++round) {
    const instant from = steady::now();
    for (int i = 0; i < 1000; ++i) {
      for (const auto ago : {0ns, 1ns, 1'000'000ns, 3'600'000'000'000ns}) {
        CHECK(sleep_until(steady::now() - ago).why == outcome::already_past);
        CHECK(sleep_for(-ago).why == outcome::already_past);
      }
      CHECK(sleep_until(instant{nanoseconds{INT64_MIN}}).why == outcome::already_past);
      CHECK(sleep_for(nanoseconds{INT64_MIN}).why == outcome::already_past);
    }
    best = std::min<nanoseconds>(best, steady::now() - from);
  }
  CHECK(best < 50ms);
}

TEST_CASE("b20b: nanosecond parts of 0, 1 and 999 999 999 are waited for without EINVAL",
          "[cases][b20][G1]") {
  for (int second = 1; second <= 3; ++second) {
    const auto boundary = std::chrono::ceil<std::chrono::seconds>(steady::now());
    for (const auto part : {-1ns, 0ns, 1ns}) {
      const instant due = boundary + part;
      timespec before{}, after{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      const receipt did = sleep_until(due);
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      CHECK(steady::now() >= due);
      CHECK(did.error == 0);
      CHECK(did.why != outcome::gave_up);
      // A refused sleep would be spun: up to a second.
      CHECK((after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec <
            200'000'000);
    }
  }
}
