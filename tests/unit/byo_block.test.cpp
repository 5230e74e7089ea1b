// Mistake that would live without it: a caller's blocking call that knows only milliseconds ends
// each wait in a busy loop of calls with 0 ms, or in a spin of a millisecond; one that does not
// block at all runs hot; one that an event or a signal ended is learned as lateness.
#include "support/catch.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

/// A machine whose kernel is late by a constant, with calls that block as a program's own do.
struct machine {
  simulation world;
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  park_word events{0};  ///< what the blocking calls wait for
  int calls = 0;
  nanoseconds overshoot;

  explicit machine(nanoseconds late = 60us) : overshoot(late) {
    world.kernel = [this](const native_request& r) { return later(r.until, overshoot); };
  }

  /// ppoll, epoll_pwait2: blocks for nanoseconds. True if an event came.
  bool blocks_until(instant until) {
    ++calls;
    if (events != 0) return true;
    world.block(clock_kind::monotonic, until, slack::as_is, &events, 0);
    return events != 0;
  }
  /// poll, select of old, an event queue: whole milliseconds, rounded down.
  bool blocks_for_milliseconds(instant until) {
    const auto left = std::chrono::floor<std::chrono::milliseconds>(until - world.time());
    if (left > 0ms) return blocks_until(world.time() + left);
    ++calls;
    world.work(300ns);  // a call with 0 ms looks and returns
    return events != 0;
  }
  void event_after(nanoseconds length) {
    world.after(length, [this] {
      events = 1;
      world.unpark(events);
    });
  }
  auto exact() {
    return [this](instant until) { return blocks_until(until); };
  }
  auto coarse() {
    return [this](instant until) { return blocks_for_milliseconds(until); };
  }
  void settle() {
    world.count = {};
    calls = 0;
  }
};

}  // namespace

TEST_CASE("with a call that blocks for nanoseconds a wait is as punctual as a plain one",
          "[byo_block]") {
  machine m;
  for (int i = 0; i < 300; ++i) m.sleeper.sleep_until(m.world.time() + 16'667us, m.exact());
  m.settle();
  for (int i = 0; i < 100; ++i) {
    const instant due = m.world.time() + 16'667us;
    const receipt did = m.sleeper.sleep_until(due, m.exact());
    CHECK(did.why == outcome::reached);
    CHECK(m.world.time() >= due);
    CHECK(m.world.time() - due < 100ns);
    CHECK(did.native_waits == 1);
  }
  CHECK(m.calls == 100);
}

TEST_CASE("a call that knows only milliseconds costs one more native wait, and no spin",
          "[byo_block][G6]") {
  machine m;
  for (const auto length : {16'667us, 10'000us, 4321us, 1500us, 700us}) {
    for (int i = 0; i < 300; ++i) m.sleeper.sleep_until(m.world.time() + length, m.coarse());
    m.settle();
    nanoseconds spun{0};
    for (int i = 0; i < 100; ++i) {
      const instant due = m.world.time() + length;
      const receipt did = m.sleeper.sleep_until(due, m.coarse());
      CHECK(did.why == outcome::reached);
      CHECK(m.world.time() >= due);
      CHECK(m.world.time() - due < 1us);
      spun += did.spun;
    }
    INFO(length.count() << " us");
    CHECK(m.calls <= 110);                     // not one call after the other with 0 ms
    CHECK(m.world.count.native_waits <= 220);  // its own, and the plain one for what it left
    CHECK(spun / 100 < 30us);
    CHECK(m.world.count.ran < 100 * 40us);
  }
}

TEST_CASE("an event ends the wait as woken, at once, and teaches nothing", "[byo_block][G9]") {
  machine m;
  for (int i = 0; i < 300; ++i) m.sleeper.sleep_until(m.world.time() + 16'667us, m.exact());
  for (const bool whole : {false, true}) {
    for (int i = 0; i < 100; ++i) {
      m.event_after(i * 100us);
      const instant from = m.world.time();
      const receipt did = whole ? m.sleeper.sleep_until(from + 16'667us, m.coarse())
                                : m.sleeper.sleep_until(from + 16'667us, m.exact());
      CHECK(did.why == outcome::woken);
      CHECK(m.world.time() - from - i * 100us < 2us);
      CHECK(did.left > 16'667us - i * 100us - 3us);
      m.events = 0;
    }
  }
  const instant due = m.world.time() + 16'667us;
  CHECK(m.sleeper.sleep_until(due, m.exact()).why == outcome::reached);
  CHECK(m.world.time() - due < 100ns);
}

TEST_CASE("an event that is there when the wait begins ends it, if the deadline is ahead",
          "[byo_block]") {
  machine m;
  m.events = 1;
  receipt did = m.sleeper.sleep_until(m.world.time() + 5ms, m.exact());
  CHECK(did.why == outcome::woken);
  CHECK(did.left > 4900us);
  m.settle();
  did = m.sleeper.sleep_until(m.world.time() - 1h, m.exact());
  CHECK(did.why == outcome::already_past);
  CHECK(m.calls == 0);
  CHECK(m.world.count.native_waits == 0);
}

TEST_CASE("a call that returns early is made again, with the same handover", "[byo_block][G3]") {
  machine m;
  for (int i = 0; i < 300; ++i) m.sleeper.sleep_until(m.world.time() + 16'667us, m.exact());
  m.settle();
  std::vector<instant> asked;
  const instant due = m.world.time() + 16'667us;
  const receipt did = m.sleeper.sleep_until(due, [&](instant until) {
    asked.push_back(until);  // a signal every 3 ms, as select and poll end with EINTR
    return m.blocks_until(until < m.world.time() + 3ms ? until : m.world.time() + 2940us);
  });
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - due < 100ns);
  REQUIRE(asked.size() == 6);
  for (const instant each : asked) CHECK(each == asked.front());
  // And nothing was learned from it.
  for (int i = 0; i < 20; ++i) {
    const instant next = m.world.time() + 16'667us;
    m.sleeper.sleep_until(next, m.exact());
    CHECK(m.world.time() - next < 100ns);
  }
}

TEST_CASE("a call that a signal ends in the last millisecond looks for events again",
          "[byo_block][G3]") {
  machine m;
  for (int i = 0; i < 300; ++i) m.sleeper.sleep_until(m.world.time() + 16'667us, m.exact());
  m.settle();
  const instant from = m.world.time();
  m.world.at(from + 15'900us, [&m] { m.world.signal(); });
  m.event_after(16ms);
  const receipt did = m.sleeper.sleep_until(from + 16'667us, m.exact());
  CHECK(did.why == outcome::woken);
  CHECK(m.world.time() - from - 16ms < 2us);
  CHECK(m.calls == 2);
}

TEST_CASE("a call that does not block is made once a millisecond, not in a hot loop",
          "[byo_block][G6]") {
  machine m;
  m.settle();
  for (int i = 0; i < 10; ++i) {
    const instant due = m.world.time() + 16'667us;
    const receipt did = m.sleeper.sleep_until(due, [&m](instant) {
      ++m.calls;
      m.world.work(1us);
      return false;
    });
    CHECK(did.why == outcome::reached);
    CHECK(m.world.time() >= due);
  }
  CHECK(m.calls <= 10 * 18);
  CHECK(m.world.count.ran < 10 * 400us);
}

TEST_CASE("a call that comes back late is learned", "[byo_block]") {
  machine m;
  // Rounds up to whole milliseconds, as a careless caller does: up to a millisecond late.
  const auto rounds_up = [&m](instant until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - m.world.time());
    return m.blocks_until(m.world.time() + left);
  };
  for (int i = 0; i < 300; ++i) m.sleeper.sleep_until(m.world.time() + 16'667us, rounds_up);
  int late = 0;
  for (int i = 0; i < 100; ++i) {
    const instant due = m.world.time() + 16'667us;
    m.sleeper.sleep_until(due, rounds_up);
    late += m.world.time() - due > 1us;
  }
  CHECK(late <= 5);
}

TEST_CASE("what the call throws passes through, and the sleeper is as good as before",
          "[byo_block]") {
  machine m;
  for (int i = 0; i < 300; ++i) m.sleeper.sleep_until(m.world.time() + 1ms, m.exact());
  const auto throws = [](instant) -> bool { throw std::runtime_error("event queue"); };
  const instant past{};
  CHECK_FALSE(noexcept(m.sleeper.sleep_until(past, throws)));
  CHECK_THROWS_AS(m.sleeper.sleep_until(m.world.time() + 1ms, throws), std::runtime_error);
  for (int i = 0; i < 20; ++i) {
    const instant due = m.world.time() + 1ms;
    CHECK(m.sleeper.sleep_until(due, m.exact()).why == outcome::reached);
    CHECK(m.world.time() - due < 100ns);
  }
  const auto silent = [](instant) noexcept { return true; };
  CHECK(noexcept(m.sleeper.sleep_until(past, silent)));
}

TEST_CASE("the free function for pacers hands the caller's call on", "[byo_block]") {
  machine m;
  auto block = m.exact();
  m.event_after(1ms);
  CHECK(sleep_until(m.sleeper, block, m.world.time() + 5ms).why == outcome::woken);
  CHECK(m.calls == 1);
  m.events = 0;
  CHECK(sleep_until(m.sleeper, block, m.world.time() + 5ms).why == outcome::reached);
}

TEST_CASE("an event loop of the caller's own keeps beats by handover and observe", "[byo_block]") {
  machine m;
  instant due = m.world.time();
  int late = 0;
  for (int i = 0; i < 400; ++i) {
    due += 16'667us;
    const instant handover = m.sleeper.handover(due);
    const instant asked = m.world.time();
    m.blocks_until(handover);
    if (m.world.time() > asked) m.sleeper.observe(handover, m.world.time());
    m.sleeper.sleep_until(due);
    late += i >= 300 && m.world.time() - due > 1us;
  }
  CHECK(late == 0);
}

TEST_CASE("what a suspend or a stop made late is not learned from an event loop either",
          "[byo_block][G11]") {
  machine m;
  const auto margin = [&m] {
    const instant due = m.world.time() + 16'667us;
    return due - m.sleeper.handover(due);
  };
  const auto turn = [&m](nanoseconds stopped) {
    const instant handover = m.sleeper.handover(m.world.time() + 16'667us);
    m.blocks_until(handover);
    m.world.stall(stopped);
    m.sleeper.observe(handover, m.world.time());
  };
  for (int i = 0; i < 300; ++i) turn(0s);
  const nanoseconds before = margin();
  CHECK(before > 55us);
  CHECK(before < 80us);
  for (int i = 0; i < 100; ++i) turn(10s);
  CHECK(margin() - before < 1us);
}

TEST_CASE("waits of all lengths, as events leave them, are as punctual as waits of one",
          "[byo_block][G1]") {
  machine m;
  std::mt19937 random(3);
  m.world.kernel = [&random](const native_request& r) {
    return r.until + 50us + nanoseconds{random() % 20'000};
  };
  int late = 0;
  constexpr int waits = 10'000;
  for (int i = 0; i < waits; ++i) {
    const instant due = m.world.time() + nanoseconds{random() % 200'000};
    m.sleeper.sleep_until(due);
    late += i >= 1000 && m.world.time() - due > 1us;
    m.world.work(10us);
  }
  CHECK(late <= waits * 2 / 100);  // the default punctuality
}

TEST_CASE("a loop that serves messages keeps its beats as one without does", "[byo_block][G9]") {
  for (const int messages_a_second : {0, 1000, 5000}) {
    machine m;
    std::mt19937 random(3);
    m.world.kernel = [&random](const native_request& r) {
      return r.until + 50us + nanoseconds{random() % 20'000};
    };
    basic_pacer<simulated_platform> beats{hz(60), simulated_platform{m.world}};
    const std::function<void()> send = [&] {
      m.events = 1;
      m.world.unpark(m.events);
      const nanoseconds mean = nanoseconds{1s} / messages_a_second;
      m.world.after(mean / 2 + nanoseconds{random()} % mean, send);
    };
    if (messages_a_second != 0) send();
    auto block = m.exact();
    int delivered = 0, late = 0, woken = 0;
    while (delivered < 1500) {
      const beat b = beats.next(block);
      delivered += b ? 1 : 0;
      woken += b ? 0 : 1;
      late += b && delivered > 300 && b.late > 50us;
      if (m.events != 0) m.world.work(5us);
      m.events = 0;
    }
    INFO(messages_a_second << " messages a second, " << late << " of 1200 beats late");
    CHECK(woken >= messages_a_second * 20);
    CHECK(late <= 12);
  }
}
