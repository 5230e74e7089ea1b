// Mistake that would live without it: a unit of the C face that rounds towards early: microseconds
// to milliseconds, a start that was floored, a remainder that was cut. The replaced calls are held
// to the same in tests/preload.
#include "support/catch.hpp"

#include <punctual/punctual.h>

#include <cstdint>
#include <ctime>

namespace {
std::int64_t now_of(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
}  // namespace

TEST_CASE("b25: elapsed is never below what C asked for, in any unit", "[cases][b25][c_face][G1]") {
  const std::int64_t lengths[] = {1,       999,       1'000,     10'500,   49'999,
                                  999'999, 1'000'000, 1'000'001, 7'300'000};
  int early = 0;
  for (int i = 0; i < 3000; ++i) {
    // The long ones less often.
    const std::int64_t length = lengths[i % 50 == 0 ? 5 + (i / 50) % 4 : i % 5];
    std::int64_t from = now_of(CLOCK_MONOTONIC);
    punctual_sleep_for_ns(length, nullptr);
    early += now_of(CLOCK_MONOTONIC) - from < length;

    from = now_of(CLOCK_MONOTONIC);
    punctual_sleep_for_us(length / 1000, nullptr);
    early += now_of(CLOCK_MONOTONIC) - from < length / 1000 * 1000;

    const std::int64_t due = now_of(CLOCK_MONOTONIC) + length;
    punctual_sleep_until_ns(due, nullptr);
    early += now_of(CLOCK_MONOTONIC) < due;

    const std::int64_t wall = now_of(CLOCK_REALTIME) + length;
    punctual_sleep_until_wall_ns(wall, nullptr);
    early += now_of(CLOCK_REALTIME) < wall;

    if (i % 50 == 0) {
      from = now_of(CLOCK_MONOTONIC);
      punctual_sleep_for_ms(1 + i % 3, nullptr);
      early += now_of(CLOCK_MONOTONIC) - from < (1 + i % 3) * 1'000'000;
      from = now_of(CLOCK_MONOTONIC);
      punctual_block_for_ns(length, nullptr);
      early += now_of(CLOCK_MONOTONIC) - from < length;
    }
  }
  CHECK(early == 0);
}
