// Mistake that would live without it: "for ever" that overflows and returns at once, or that burns
// a core while it waits; a tiny value that is cut to zero.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <punctual/punctual.hpp>

#include <atomic>
#include <ctime>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("the far end of every type still waits after 300 ms, with no CPU", "[contract][G5]") {
  // In a child: these threads never end.
  const int code = support::in_child([] {
    using seconds_d = std::chrono::duration<double>;
    const double inf = std::numeric_limits<double>::infinity();
    const std::vector<std::function<void()>> waits{
        [] { sleep_for(nanoseconds::max()); },
        [] { sleep_for(std::chrono::seconds::max()); },
        [] { sleep_for(std::chrono::hours::max()); },
        [] { sleep_for(seconds_d(1e300)); },
        [inf] { sleep_for(seconds_d(inf)); },
        [] { sleep_until(instant::max()); },
        [] { sleep_until(std::chrono::system_clock::time_point::max()); },
        [] { sleep_until(std::chrono::sys_seconds::max()); },
        [] { block_for(nanoseconds::max()); },
        [] { block_for(std::chrono::years::max()); },
        [] { sleep_for(std::chrono::duration<std::uint64_t, std::milli>::max()); },
        [] { sleep_for(std::chrono::duration<long double, std::ratio<86400>>(1e30L)); },
    };
    std::atomic<int> returned{0};
    for (const auto& wait : waits) {
      std::thread([&returned, wait] {
        wait();
        ++returned;
      }).detach();
    }
    std::this_thread::sleep_for(300ms);
    timespec ran{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ran);
    const long ms = static_cast<long>(ran.tv_sec) * 1000 + ran.tv_nsec / 1'000'000;
    if (returned != 0) return 1;
    return ms < 100 ? 0 : 2;
  });
  CHECK(code == 0);
}

TEST_CASE("lengths below a nanosecond are waited for, not cut to nothing", "[contract][G5]") {
  const auto waits = [](auto length) {
    CHECK(to_nanoseconds(length) == 1ns);
    const instant from = steady::now();
    sleep_for(length);
    CHECK(steady::now() - from >= 1ns);
  };
  waits(std::chrono::duration<double, std::pico>(1));
  waits(std::chrono::duration<int, std::pico>(1));
  waits(std::chrono::duration<float>(1e-30F));
  waits(1ns);
}

TEST_CASE("unusual counts and periods are waited for in full", "[contract][G5]") {
  const auto takes_at_least = [](auto length, nanoseconds expected) {
    const instant from = steady::now();
    sleep_for(length);
    CHECK(steady::now() - from >= expected);
  };
  takes_at_least(std::chrono::duration<int, std::ratio<1, 60>>(1), 16'666'667ns);
  takes_at_least(std::chrono::duration<long long, std::ratio<1001, 60000>>(1), 16'683'334ns);
  takes_at_least(std::chrono::duration<unsigned char, std::milli>(7), 7ms);
  takes_at_least(std::chrono::duration<float>(0.003F), 3ms);
  takes_at_least(std::chrono::duration<long double, std::milli>(2.5L), 2'500us);
  takes_at_least(std::chrono::duration<std::int8_t, std::deci>(0), 0ns);
}
