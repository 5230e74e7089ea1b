// Mistake that would live without it: a changed rate waits for something else to happen, the
// background mode takes more CPU than the foreground, "unlimited" still waits or a limit falls
// through to unlimited.
#include "support/catch.hpp"

#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>

#include <time.h>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

// What the loop is told to do, one segment after the other.
template <class Pacer>
void order(Pacer& p, int segment) {
  if (segment == 1) p.set_rate(hz(30));
  if (segment == 2) p.set_rate(hz(1000));
  if (segment == 3) p.set_background(hz(5));
  if (segment == 4) p.set_unlimited();
  if (segment == 5) p.set_rate(hz(60));
}
constexpr int segments = 6;
constexpr std::int64_t hertz[segments] = {144, 30, 1000, 5, 0, 60};

/// The beats of each segment: 2 s at its rate, which holds from the next slot, so an old period
/// later at most.
void check(const std::uint64_t (&beats)[segments]) {
  for (const int i : {0, 1, 2, 3, 5}) {
    const std::int64_t before = i == 0 ? 0 : hertz[i - 1];
    const std::int64_t waited_for = before == 0 ? 0 : hertz[i] / before;
    CAPTURE(i, beats[i]);
    CHECK(static_cast<std::int64_t>(beats[i]) >= 2 * hertz[i] - waited_for - 2);
    CHECK(static_cast<std::int64_t>(beats[i]) <= 2 * hertz[i] + 2);
  }
}

}  // namespace

TEST_CASE("b51: each change holds from the next slot, without burst or gap", "[cases][b51]") {
  simulation world;
  world.kernel = [](const native_request& r) { return later(r.until, 60us); };
  basic_pacer<simulated_platform> p{hz(144), simulated_platform{world}};
  int now_in = 0;
  std::uint64_t waits_when_unlimited = 0;
  for (int i = 1; i < segments; ++i) {
    world.after(i * 2s + 17ms, [&, i] {  // in mid wait
      order(p, i);
      now_in = i;
    });
  }
  const instant began = p.next().due;
  std::uint64_t beats[segments] = {};
  instant last = began;
  int last_in = 0;
  while (world.time() < began + segments * 2s + 17ms) {
    // A little work, so that the beats without a limit come to an end as well.
    world.work(100us);
    const auto waits = world.count.native_waits;
    const beat b = p.next();
    REQUIRE(b);
    REQUIRE(b.skipped == 0);
    ++beats[now_in];
    const nanoseconds interval = b.due - last;
    // Never longer than the longer of the two periods, never shorter than the shorter. Without a
    // limit it is the loop's own time, counted from a wait that the kernel ended 60 us late.
    const auto period = [](int i) {
      return hertz[i] == 0 ? nanoseconds{100us} : nanoseconds{1s} / hertz[i];
    };
    CHECK(interval <= std::max(period(last_in), period(now_in)) + 100us);
    CHECK(interval >= std::min(period(last_in), period(now_in)) - 1us);
    if (b.due > began + 8s + 250ms && now_in == 4)
      waits_when_unlimited += world.count.native_waits - waits;
    last = b.due;
    last_in = now_in;
  }
  check(beats);
  CHECK(waits_when_unlimited == 0);
  CHECK(beats[4] >= 15'000);  // 1.8 s of 100 us and a little
}

TEST_CASE("b51: the same with real threads, in the middle of waits", "[cases][b51]") {
  pacer p{hz(144)};
  std::atomic<int> segment{0};
  const instant began = p.next().due;
  std::thread other([&] {
    for (int i = 1; i < segments; ++i) {
      std::this_thread::sleep_until(began + i * 2s);
      order(p, i);
      segment.store(i);
    }
    std::this_thread::sleep_until(began + segments * 2s);
    p.stop();
  });
  std::uint64_t beats[segments] = {};
  std::uint64_t native_waits = 0;
  instant unlimited_since = instant::max();
  for (const beat& b : p.beats()) {
    const int i = segment.load();
    // A machine that is busy drops some: they are counted, and belong to the segment.
    beats[i] += b.skipped + 1;
    if (i == 4 && unlimited_since == instant::max()) unlimited_since = b.due;
    if (i == 4 && b.due > unlimited_since + 250ms) native_waits += b.slept.native_waits;
  }
  other.join();
  check(beats);
  CHECK(native_waits == 0);
  CHECK(beats[4] > 10'000);
}

TEST_CASE("b51: the background costs at most twice a plain sleep", "[cases][b51]") {
  // Interleaved, in CPU time for each wait of 50 ms; the best of 5 windows of each.
  pacer p{hz(20)};
  p.set_background(hz(20));
  p.next();
  p.next();
  double ours = 1e18;
  double base = 1e18;
  for (int round = 0; round < 5; ++round) {
    nanoseconds ran = native_platform::running_time();
    for (int i = 0; i < 8; ++i) p.next();
    ours = std::min(ours, static_cast<double>((native_platform::running_time() - ran).count()) / 8);
    ran = native_platform::running_time();
    instant due = steady::now();
    for (int i = 0; i < 8; ++i) {
      due += 50ms;
      const auto since = due.time_since_epoch().count();
      const timespec t{static_cast<time_t>(since / 1'000'000'000), since % 1'000'000'000};
      while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
      }
    }
    base = std::min(base, static_cast<double>((native_platform::running_time() - ran).count()) / 8);
    p.restart();
    p.next();
  }
  INFO("CPU for each wait: ours " << ours << " ns, a plain one " << base << " ns");
  CHECK(ours <= 2 * base);
}
