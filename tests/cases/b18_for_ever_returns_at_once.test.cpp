// Mistake that would live without it: "for ever" overflows when added to now, and the wait returns
// at once, throws, or turns into a hot loop.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <punctual/punctual.hpp>

#include <atomic>
#include <ctime>
#include <limits>
#include <thread>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b18: the largest durations are still waited for after 300 ms, with at most 20 ms of CPU",
          "[cases][b18][G5]") {
  const int code = support::in_child([] {
    std::atomic<int> returned{0};
    const auto start = [&returned](auto wait) {
      std::thread([&returned, wait] {
        wait();
        ++returned;
      }).detach();
    };
    start([] { sleep_for(nanoseconds{INT64_MAX}); });
    start([] { sleep_for(std::chrono::seconds{INT64_MAX}); });
    start([] { sleep_for(std::chrono::hours::max()); });
    start([] { sleep_for(std::chrono::duration<double>(1e300)); });
    start(
        [] { sleep_for(std::chrono::duration<double>(std::numeric_limits<double>::infinity())); });
    start([] { sleep_until(steady::time_point::max()); });
    start([] { sleep_until(std::chrono::system_clock::time_point::max()); });
    std::this_thread::sleep_for(300ms);
    timespec ran{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ran);
    if (returned != 0) return 1;
    return ran.tv_sec == 0 && ran.tv_nsec < 7 * 20'000'000 ? 0 : 2;
  });
  CHECK(code == 0);
}
