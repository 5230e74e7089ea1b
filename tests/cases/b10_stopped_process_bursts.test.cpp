// Mistake that would live without it: a process that was stopped and continued makes up for all the
// beats at once, or takes the gap for a habit of the kernel and spins from then on.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <punctual/pacer.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include <sys/mman.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

struct entry {
  instant returned;
  nanoseconds ran;  // CPU time of the loop so far
  std::uint64_t skipped;
};

struct record {
  std::uint64_t count;
  entry entries[2'000];
};

struct window {
  instant from;
  instant to;
  std::vector<entry> in(const record& all) const {
    std::vector<entry> some;
    for (std::uint64_t i = 0; i < all.count; ++i) {
      const entry& e = all.entries[i];
      if (e.returned >= from && e.returned < to) some.push_back(e);
    }
    return some;
  }
  double duty(const record& all) const {
    const std::vector<entry> some = in(all);
    if (some.size() < 2) return 1;
    const auto ran = static_cast<double>((some.back().ran - some.front().ran).count());
    return ran / static_cast<double>((some.back().returned - some.front().returned).count());
  }
};

}  // namespace

TEST_CASE("b10: a loop that was stopped for a second three times does not burst",
          "[cases][b10][G11]") {
  void* const shared =
      ::mmap(nullptr, sizeof(record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  record& all = *::new (shared) record{};
  const int cap = 3;
  const instant began = steady::now();
  const pid_t child = support::start_child([&all] {
    pacer p{hz(50), missed::burst, cap};  // the policy that could
    const instant end = steady::now() + 10s;
    while (steady::now() < end && all.count < 2'000) {
      const beat b = p.next();
      all.entries[all.count] = {steady::now(), native_platform::running_time(), b.skipped};
      ++all.count;
    }
    return 0;
  });
  instant stopped[3];
  instant continued[3];
  std::this_thread::sleep_for(1s);
  for (int i = 0; i < 3; ++i) {
    stopped[i] = steady::now();
    ::kill(child, SIGSTOP);
    std::this_thread::sleep_for(1s);
    continued[i] = steady::now();
    ::kill(child, SIGCONT);
    std::this_thread::sleep_for(2s);
  }
  REQUIRE(support::wait_for(child) == 0);

  nanoseconds gap{0};
  double least_growth = 1e9;
  const double before = window{began + 200ms, stopped[0]}.duty(all);
  for (int i = 0; i < 3; ++i) {
    gap += continued[i] - stopped[i];
    const std::vector<entry> after = window{continued[i], continued[i] + 200ms}.in(all);
    CHECK(after.size() <= 10 + cap + 1);
    CHECK(after.size() >= 1);
    int short_intervals = 0;
    for (std::size_t j = 1; j < after.size(); ++j) {
      short_intervals += after[j].returned - after[j - 1].returned < 5ms;
    }
    CHECK(short_intervals <= cap);
    least_growth =
        std::min(least_growth, window{continued[i], continued[i] + 1900ms}.duty(all) / before);
  }
  std::uint64_t skipped = 0;
  for (std::uint64_t i = 0; i < all.count; ++i) skipped += all.entries[i].skipped;
  // What burst delivers at once is late, not missed.
  const std::int64_t delivered = 3 * (cap - 1);
  const std::int64_t off = static_cast<std::int64_t>(skipped) + delivered - gap / 20ms;
  CAPTURE(skipped, gap, before);
  CHECK(off <= 3);
  CHECK(off >= -3);
  CHECK(least_growth <= 2);  // the best of the three windows: the gap is not learnt
  ::munmap(shared, sizeof(record));
}
