// Mistake that would live without it: first use from several threads races on what is set lazily;
// objects of a thread outlive it. (Run under the thread sanitizer as well.)
#include "support/catch.hpp"

#include <punctual/punctual.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b53: sixteen threads make their first call together, then mix all calls",
          "[cases][b53][threads]") {
  std::atomic<bool> go{false};
  std::atomic<int> early{0};
  std::atomic<std::size_t> described{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      while (!go) std::this_thread::yield();
      const instant end = steady::now() + 400ms;
      for (int k = i; steady::now() < end; ++k) {
        const instant due = steady::now() + nanoseconds{(k % 13) * 37'000};
        switch (k % 5) {
          case 0:
            sleep_until(due);
            break;
          case 1:
            block_until(due);
            break;
          case 2:
            spin_until(due);
            break;
          case 3:
            sleep_until(std::chrono::system_clock::now() + (due - steady::now()));
            continue;
          default:
            if (k % 50 == 4) calibrate(2ms);
            if (k % 70 == 4) set_default_tuning(tuning{});
            described += to_text(current_calibration()).size();
            continue;
        }
        if (steady::now() < due) ++early;
      }
    });
  }
  go = true;
  for (auto& t : threads) t.join();
  CHECK(early == 0);
  CHECK(described > 0);
}
