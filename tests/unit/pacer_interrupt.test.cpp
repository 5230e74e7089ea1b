// The pacer with the wakers and stop tokens of interrupt.hpp, found through their types.
// Mistake that would live without it: `next(waker)` that compiles in the documentation only, a
// range that does not end when its token says so, a background that spins as soon as it can be
// interrupted.
#include <punctual/interrupt.hpp>
#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;
using punctual::beat;
using punctual::hz;
using punctual::instant;
using punctual::nanoseconds;
using punctual::outcome;
namespace sim = punctual::testing;

using sim_pacer = punctual::basic_pacer<sim::simulated_platform>;
using sim_waker = punctual::basic_waker<sim::simulated_platform>;

static_assert(noexcept(std::declval<punctual::pacer&>().next(std::declval<punctual::waker&>())));
static_assert(noexcept(std::declval<punctual::pacer&>().next(std::declval<std::stop_token>())));

TEST_CASE("a waker ends the wait for a beat, which stays the next one", "[pacer][interrupt][G9]") {
  sim::simulation world;
  world.kernel = [](const sim::native_request& r) { return r.until + 60us; };
  sim_waker w{sim::simulated_platform{world}};
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  REQUIRE(p.next(w));
  const instant due = p.deadline();
  world.after(30ms, [&] { w.wake(); });
  const beat none = p.next(w);
  CHECK_FALSE(none);
  CHECK(none.slept.why == outcome::woken);
  CHECK(none.slept.left > 69ms);
  CHECK(none.slept.left <= 70ms);
  CHECK_FALSE(p.next(w));  // still pending
  w.reset();
  const beat b = p.next(w);
  CHECK(b.index == 1);
  CHECK(b.due == due);
  CHECK(b.slept.why == outcome::reached);
  CHECK(b.late < 1us);
}

TEST_CASE("in the background an interruptible wait does not spin either", "[pacer][interrupt]") {
  sim::simulation world;
  world.kernel = [](const sim::native_request& r) { return r.until + 60us; };
  sim_waker w{sim::simulated_platform{world}};
  sim_pacer p{hz(10), sim::simulated_platform{world}};
  p.set_background(hz(10));
  p.next(w);
  for (int i = 0; i < 20; ++i) {
    const beat b = p.next(w);
    CHECK(b.slept.spun == 0ns);
    CHECK(b.late >= 60us);
  }
  world.after(30ms, [&] { w.wake(); });
  CHECK_FALSE(p.next(w));
}

TEST_CASE("a limiter's wait can be ended, and takes no permit then", "[limiter][interrupt][G9]") {
  sim::simulation world;
  sim_waker w{sim::simulated_platform{world}};
  punctual::basic_limiter<sim::simulated_platform> l{hz(10), 1, sim::simulated_platform{world}};
  CHECK(l.acquire(w).why == outcome::already_past);
  world.after(30ms, [&] { w.wake(); });
  CHECK(l.acquire(w).why == outcome::woken);
  CHECK(l.wait_time() > 60ms);
  w.reset();
  CHECK(l.acquire(w).why == outcome::reached);
}

TEST_CASE("a stop token ends the range of beats at once", "[pacer][interrupt][threads]") {
  punctual::pacer p{hz(20)};
  std::stop_source stop;
  std::thread other([&] {
    std::this_thread::sleep_for(70ms);
    stop.request_stop();
  });
  std::uint64_t beats = 0;
  for (const beat& b : p.beats(stop.get_token())) beats += b.index == beats + b.skipped ? 1 : 0;
  other.join();
  CHECK(beats >= 1);
  const beat none = p.next(stop.get_token());
  CHECK_FALSE(none);
  CHECK(none.slept.why == outcome::stopped);
}

TEST_CASE("a waker from another thread ends a long wait for a beat",
          "[pacer][interrupt][threads]") {
  punctual::pacer p{punctual::rate{1, 60}};
  punctual::waker w;
  p.next(w);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    p.set_rate(hz(1000));
    w.wake();
  });
  CHECK(p.next(w).slept.why == outcome::woken);
  other.join();
  p.restart();  // at once, where the slot that had begun would last a minute
  w.reset();
  CHECK(p.next(w).index == 0);
  CHECK(p.next(w).index >= 1);
}
