// Mistake that would live without it: floor(start) + length against floor(now), which ends up to a
// unit early a few per cent of the time.
#include "support/catch.hpp"

#include <punctual/punctual.hpp>

#include <ctime>

using namespace std::chrono_literals;
using namespace punctual;

namespace {
nanoseconds now_of(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}
}  // namespace

TEST_CASE("b25: elapsed is never below what was asked, in any sample", "[cases][b25][G1]") {
  int early = 0;
  for (int i = 0; i < 5000; ++i) {
    const nanoseconds lengths[] = {1ns,       999ns, 1us,         10'500ns, 49'999ns,
                                   999'999ns, 1ms,   1'000'001ns, 7'300us};
    // The long ones less often: 5000 waits in about 4 s.
    const nanoseconds length = lengths[i % 50 == 0 ? 5 + (i / 50) % 4 : i % 5];
    const nanoseconds from = now_of(CLOCK_MONOTONIC);
    sleep_for(length);
    early += now_of(CLOCK_MONOTONIC) - from < length;

    const nanoseconds wall = now_of(CLOCK_REALTIME) + length;
    sleep_until(std::chrono::sys_time<nanoseconds>{wall});
    early += now_of(CLOCK_REALTIME) < wall;

    const nanoseconds due = now_of(CLOCK_MONOTONIC) + length;
    sleep_until(instant{due});
    early += now_of(CLOCK_MONOTONIC) < due;
  }
  CHECK(early == 0);
}
