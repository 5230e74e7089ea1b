// Mistake that would live without it: "for ever" in an interruptible wait overflows: it returns at
// once, turns into a hot loop, or does not notice the stop.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <punctual/interrupt.hpp>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include <time.h>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b18: interruptible waits for ever last until they are stopped, and cost nothing",
          "[cases][b18][G5][G9]") {
  const int code = support::in_child([] {
    std::atomic<int> returned{0}, stopped{0};
    waker w;
    std::vector<std::thread> threads;
    const auto start = [&](auto wait) {
      threads.emplace_back([&, wait] {
        const receipt did = wait();
        stopped += did.why == outcome::woken || did.why == outcome::stopped;
        ++returned;
      });
    };
    using seconds = std::chrono::duration<double>;
    start([&w] { return sleep_for(w, nanoseconds{INT64_MAX}); });
    start([&w] { return sleep_for(w, std::chrono::seconds{INT64_MAX}); });
    start([&w] { return sleep_for(w, std::chrono::hours::max()); });
    start([&w] { return sleep_for(w, seconds(1e300)); });
    start([&w] { return sleep_for(w, seconds(std::numeric_limits<double>::infinity())); });
    start([&w] { return sleep_until(w, (steady::time_point::max)()); });
    start([&w] { return block_until(w, (std::chrono::system_clock::time_point::max)()); });
    int all = 7;
#if defined(__cpp_lib_jthread)
    std::stop_source source;
    const std::stop_token token = source.get_token();
    start([&token] { return sleep_for(token, nanoseconds{INT64_MAX}); });
    start([&token] { return sleep_for(token, seconds(std::numeric_limits<double>::infinity())); });
    start([&token] { return sleep_until(token, (steady::time_point::max)()); });
    all = 10;
#endif
    std::this_thread::sleep_for(140ms);
    if (returned != 0) return 1;
    std::this_thread::sleep_for(10ms);
    const instant stop = steady::now();
    w.wake();
#if defined(__cpp_lib_jthread)
    source.request_stop();
#endif
    for (std::thread& each : threads) each.join();
    if (steady::now() - stop > 200ms) return 2;
    if (stopped != all) return 3;
    timespec ran{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ran);
    return ran.tv_sec == 0 && ran.tv_nsec < all * 20'000'000L ? 0 : 4;
  });
  CHECK(code == 0);
}
