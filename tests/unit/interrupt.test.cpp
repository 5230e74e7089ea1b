// Mistake that would live without it: a wake-up that is noticed late, or taken for the deadline, or
// the other way round; a spurious return that ends a wait or is learned; an interruptible wait that
// is later, or costs more, than a plain one.
#include "support/catch.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

/// A machine whose kernel is late by a constant, with a sleeper that knows it, and a waker.
struct machine {
  simulation world;
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  basic_waker<simulated_platform> waker{simulated_platform{world}};

  explicit machine(nanoseconds overshoot = 60us, nanoseconds length = 1ms) {
    world.kernel = [overshoot](const native_request& r) { return later(r.until, overshoot); };
    for (int i = 0; i < 300; ++i) sleep_for(sleeper, waker, length);
    world.count = {};
  }
};

}  // namespace

TEST_CASE("a wake at any step of a wait ends it, also at its last look at the clock",
          "[interrupt][G9]") {
  for (const auto length : {30us, 1000us}) {
    machine m(60us, length);
    const auto learned = m.sleeper;
    m.world.kernel = [](const native_request& r) { return r.until + 50us; };  // some 10 us are spun
    std::uint64_t steps = 0;
    m.world.on_step = [&steps](const char*) { ++steps; };
    CHECK(sleep_for(m.sleeper, m.waker, length).why == outcome::reached);
    REQUIRE(steps > 200);
    for (std::uint64_t at = 1; at <= steps; ++at) {
      m.sleeper = learned;
      m.waker.reset();
      const instant due = m.world.time() + length + 25ns;  // sleep_for reads the clock once
      std::uint64_t step = 0;
      instant woke{};
      m.world.on_step = [&](const char*) {
        if (++step != at) return;
        woke = m.world.time();
        m.waker.wake();
      };
      const receipt did = sleep_for(m.sleeper, m.waker, length);
      INFO("length " << length.count() << " us, step " << at << " of " << steps);
      CHECK(did.why == outcome::woken);
      CHECK(m.world.time() - woke <= 2100ns);  // two native calls' worth, when it was about to park
      CHECK(did.late == 0ns);
      if (woke + 2100ns < due) CHECK(did.left > 0ns);
      CHECK(did.left <= length);
      CHECK(m.waker.pending());
    }
  }
}

TEST_CASE("a parked wait ends as soon as it is woken, and says what remained", "[interrupt][G9]") {
  machine m;
  for (auto at = 5us; at < 900us; at += 7us) {
    instant due = m.world.time() + 1ms;
    const instant from = m.world.time();
    m.world.after(at, [&m] { m.waker.wake(); });
    const receipt did = sleep_until(m.sleeper, m.waker, due);
    CHECK(did.why == outcome::woken);
    CHECK(m.world.time() - (from + at) < 700ns);
    CHECK(did.left <= due - (from + at));
    CHECK(did.left > due - (from + at) - 1us);
    CHECK(did.native_waits == 1);
    CHECK(m.world.count.unparks == 1);
    m.waker.reset();
    // It taught nothing: the next one is as punctual as before.
    due = m.world.time() + 1ms;
    sleep_until(m.sleeper, m.waker, due);
    CHECK(m.world.time() - due < 100ns);
    m.world.count = {};
  }
}

TEST_CASE("a wake while the waiter spins makes no system call and is seen within 100 ns",
          "[interrupt]") {
  machine m;
  m.world.kernel = [](const native_request& r) { return r.until + 10us; };
  for (auto before = 1us; before < 40us; before += 1us) {
    const instant due = m.world.time() + 1ms;
    m.world.at(due - before, [&m] { m.waker.wake(); });
    m.world.count = {};
    const receipt did = sleep_until(m.sleeper, m.waker, due);
    CHECK(did.spun > 0ns);
    CHECK(did.why == outcome::woken);
    CHECK(m.world.time() - (due - before) < 100ns);
    CHECK(m.world.count.unparks == 0);
    m.waker.reset();
  }
}

TEST_CASE("a wake with nobody parked makes no system call, one with somebody parked makes one",
          "[interrupt]") {
  machine m;
  m.waker.wake();
  m.waker.wake();
  CHECK(m.world.count.unparks == 0);
  CHECK(sleep_for(m.sleeper, m.waker, 1ms).why == outcome::woken);
  m.waker.reset();
  CHECK(sleep_for(m.sleeper, m.waker, 1ms).why == outcome::reached);
  m.waker.wake();
  CHECK(m.world.count.unparks == 0);
  m.waker.reset();
  m.world.after(100us, [&m] { m.waker.wake(); });
  CHECK(sleep_for(m.sleeper, m.waker, 1ms).why == outcome::woken);
  CHECK(m.world.count.unparks == 1);
}

TEST_CASE("pending wins over past, stays until it is reset, and makes no system call",
          "[interrupt][G2][G9]") {
  machine m;
  m.waker.wake();
  for (const nanoseconds ahead : {nanoseconds(-1h), nanoseconds(-1ns), 0ns, nanoseconds(1ms)}) {
    const instant due = m.world.time() + ahead;
    for (const receipt& did :
         {sleep_until(m.sleeper, m.waker, due), block_until(m.sleeper, m.waker, due)}) {
      CHECK(did.why == outcome::woken);
      CHECK(did.late == 0ns);
      CHECK(did.left == (ahead > 0ns ? did.left : 0ns));
      CHECK(did.left <= longer(ahead, 0ns));
    }
  }
  CHECK(sleep_for(m.sleeper, m.waker, -1ms).why == outcome::woken);
  CHECK(m.world.count.native_waits == 0);
  CHECK(m.waker.pending());
  m.waker.reset();
  m.world.count = {};
  const receipt did = sleep_until(m.sleeper, m.waker, m.world.time() - 1h);
  CHECK(did.why == outcome::already_past);
  CHECK(did.late >= 1h - 8ms);
  CHECK(m.world.count.native_waits + m.world.count.clock_reads == 0);
  CHECK(m.world.count.coarse_reads == 1);
}

TEST_CASE("unwoken, a wait is as punctual as a plain one and costs the same", "[interrupt][G6]") {
  const auto run = [](bool interruptible) {
    machine m;
    int wait = 0;
    m.world.kernel = [&wait](const native_request& r) {
      return r.until + (++wait * 37 % 41) * 1us;
    };
    for (int i = 0; i < 300; ++i) m.sleeper.sleep_for(1ms);
    for (int i = 0; i < 300; ++i) sleep_for(m.sleeper, m.waker, 1ms);
    m.world.count = {};
    nanoseconds late{0};
    for (int i = 0; i < 1000; ++i) {
      const instant due = m.world.time() + 1ms;
      const receipt did =
          interruptible ? sleep_until(m.sleeper, m.waker, due) : m.sleeper.sleep_until(due);
      CHECK(did.why == outcome::reached);
      late += m.world.time() - due;
    }
    return std::pair(late / 1000, m.world.count.ran);
  };
  const auto [plain_late, plain_ran] = run(false);
  const auto [late, ran] = run(true);
  INFO("late " << late.count() << " and " << plain_late.count() << " ns, ran " << ran.count()
               << " and " << plain_ran.count() << " ns");
  CHECK(late <= plain_late + 10ns);
  CHECK(ran.count() <= plain_ran.count() * 103 / 100);
}

TEST_CASE("waits on both clocks know the ticks of both, also after steps of the wall clock",
          "[interrupt][G1][G11]") {
  using wall = std::chrono::system_clock;
  static constexpr nanoseconds tick = 4ms;
  for (const bool parked : {false, true}) {
    simulation world;
    basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
    basic_waker<simulated_platform> waker{simulated_platform{world}};
    world.cost.counter_read = 100ns;  // so that the test's spins are short
    world.cost.pause = 400ns;
    world.kernel = [](const native_request& r) {
      return instant{(r.until.time_since_epoch() + tick - 1ns) / tick * tick} + 30us;
    };
    const auto waits = [&](const auto& due) {
      parked ? sleep_until(sleeper, waker, due) : sleeper.sleep_until(due);
    };
    int late = 0;
    for (int i = 0; i < 900; ++i) {
      if (i >= 500 && i % 20 == 0) world.step_wall_clock(1300us);
      const instant due = world.time() + 40ms;
      if (i % 4 == 0) {
        waits(due);
      } else {
        waits(wall::time_point{
            std::chrono::ceil<wall::duration>((world.wall_time() + 40ms).time_since_epoch())});
      }
      late += i >= 500 && world.time() - due > 2us;
      world.work(300us);
    }
    INFO((parked ? "parked" : "plain"));
    CHECK(late == 0);
  }
}

TEST_CASE("what parked waits teach is apart from what plain waits teach", "[interrupt]") {
  machine m;
  for (int i = 0; i < 300; ++i) m.sleeper.sleep_for(1ms);
  m.world.kernel = [](const native_request& r) { return r.until + (r.parked ? 400us : 60us); };
  for (int i = 0; i < 300; ++i) sleep_for(m.sleeper, m.waker, 1ms);
  CHECK(m.sleeper.margin(1ms) < 80us);
  for (int i = 0; i < 20; ++i) {
    const instant due = m.world.time() + 1ms;
    sleep_until(m.sleeper, m.waker, due);
    CHECK(m.world.time() - due < 100ns);
  }
}

TEST_CASE("a parked wait that ends for no reason goes on and teaches nothing", "[interrupt][G9]") {
  machine m(60us, 5ms);
  for (int i = 0; i < 300; ++i) {
    for (int k = 0; k < i % 4; ++k) m.world.next_native({native_end::woke, 0}, 300us);
    const instant due = m.world.time() + 5ms;
    const receipt did = sleep_until(m.sleeper, m.waker, due);
    CHECK(did.why == outcome::reached);
    CHECK(m.world.time() >= due);
    CHECK(m.world.time() - due < 100ns);
    CHECK(did.interruptions == static_cast<std::uint32_t>(i % 4));
  }
}

TEST_CASE("signals neither end an interruptible wait nor move its deadline", "[interrupt][G3]") {
  machine m;
  std::vector<instant> asked;
  m.world.kernel = [&](const native_request& r) {
    asked.push_back(r.until);
    return r.until + 60us;
  };
  const instant due = m.world.time() + 1ms;
  for (const auto at : {100us, 250us, 600us}) m.world.after(at, [&] { m.world.signal(); });
  const receipt did = sleep_until(m.sleeper, m.waker, due);
  CHECK(did.why == outcome::reached);
  CHECK(did.interruptions == 3);
  CHECK(m.world.time() - due < 1us);
  REQUIRE(asked.size() == 4);
  for (const instant each : asked) CHECK(each == asked.front());
}

TEST_CASE("a deadline on the wall clock follows its steps in an interruptible wait, too",
          "[interrupt][G11]") {
  using wall = std::chrono::system_clock;
  machine m;
  const auto in = [&m](nanoseconds length) {
    return wall::time_point{
        std::chrono::ceil<wall::duration>((m.world.wall_time() + length).time_since_epoch())};
  };
  for (int i = 0; i < 300; ++i) sleep_until(m.sleeper, m.waker, in(1ms));
  instant from = m.world.time();
  receipt did = sleep_until(m.sleeper, m.waker, in(1ms));
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - from - 1ms < 1us);

  m.world.after(10ms, [&m] { m.world.step_wall_clock(1h); });
  from = m.world.time();
  CHECK(sleep_until(m.sleeper, m.waker, in(100ms)).why == outcome::reached);
  CHECK(m.world.time() - from < 11ms);

  m.world.after(10ms, [&m] { m.world.step_wall_clock(-1s); });
  from = m.world.time();
  CHECK(sleep_until(m.sleeper, m.waker, in(100ms)).why == outcome::reached);
  CHECK(m.world.time() - from >= 1100ms);

  from = m.world.time();
  m.world.after(10ms, [&m] { m.world.step_wall_clock(-1s); });
  m.world.after(20ms, [&m] { m.waker.wake(); });
  CHECK(sleep_until(m.sleeper, m.waker, in(100ms)).why == outcome::woken);
  CHECK(m.world.time() - from < 21ms);
}

TEST_CASE("parking that returns at once without waiting counts as refused", "[interrupt][G6]") {
  machine m;
  const nanoseconds margin = m.sleeper.margin(1ms);
  // As a filter does that answers 0 to a futex call.
  m.world.kernel = [&](const native_request&) { return m.world.time() + 300ns; };
  const instant due = m.world.time() + 300ms;
  receipt did = sleep_until(m.sleeper, m.waker, due);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() >= due);
  CHECK(m.world.time() - due < 1us);
  CHECK(did.native_waits < 1000);
  did = block_until(m.sleeper, m.waker, m.world.time() + 300ms);
  CHECK(did.why == outcome::gave_up);
  CHECK(did.native_waits < 30);
  CHECK(did.left > 299ms);
  // A wake-up still ends it, and nothing was learned.
  m.world.after(100ms, [&m] { m.waker.wake(); });
  const instant from = m.world.time();
  CHECK(sleep_until(m.sleeper, m.waker, m.world.time() + 300ms).why == outcome::woken);
  CHECK(m.world.time() - from < 101ms);
  m.waker.reset();
  CHECK(m.sleeper.margin(1ms) == margin);
  // Spurious returns now and then are none.
  m.world.kernel = [](const native_request& r) { return later(r.now, 200us); };
  did = block_until(m.sleeper, m.waker, m.world.time() + 30ms);
  CHECK(did.why == outcome::reached);
  CHECK(did.interruptions > 100);
}

namespace {
/// A clock at twice the steady one's pace, on a simulated machine.
struct fast {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = nanoseconds;
  using time_point = std::chrono::time_point<fast>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static inline simulation* world = nullptr;
  static time_point now() noexcept { return time_point{world->time().time_since_epoch() * 2}; }
};

/// A clock that acts when it is read at or after an instant, and one that can be stopped.
struct scripted : fast {
  using time_point = std::chrono::time_point<scripted>;
  static inline std::function<void()> acts;
  static inline instant from{};
  static inline bool stopped = false;
  static time_point now() noexcept {
    static instant shown{};
    if (!stopped) shown = world->time();
    if (shown >= from && acts) acts();
    return time_point{shown.time_since_epoch()};
  }
  static void reset(simulation& in) {
    world = &in;
    acts = nullptr;
    from = instant::max();
    stopped = false;
  }
};
}  // namespace

TEST_CASE("a wake after the last look at a user's own clock ends the wait, too",
          "[interrupt][G9]") {
  machine m;
  scripted::reset(m.world);
  scripted::acts = [&m] { m.waker.wake(); };
  for (const bool spins : {true, false}) {
    m.waker.reset();
    scripted::from = m.world.time() + 5ms;
    const scripted::time_point due{scripted::from.time_since_epoch()};
    const receipt did =
        spins ? sleep_until(m.sleeper, m.waker, due) : block_until(m.sleeper, m.waker, due);
    CHECK(m.waker.pending());
    CHECK(did.why == outcome::woken);
    CHECK(did.late == 0ns);
    CHECK(did.left == 0ns);
  }
#if defined(__cpp_lib_jthread)
  std::stop_source source;
  scripted::acts = [&source] { source.request_stop(); };
  scripted::from = m.world.time() + 5ms;
  const scripted::time_point due{scripted::from.time_since_epoch()};
  CHECK(sleep_until(m.sleeper, source.get_token(), due).why == outcome::stopped);
#endif
  scripted::acts = nullptr;
}

TEST_CASE("on a user's own clock a wait is woken, too, and says what remained there",
          "[interrupt][G9]") {
  machine m;
  fast::world = &m.world;
  auto due = fast::now() + 2s;
  m.world.after(300ms, [&m] { m.waker.wake(); });
  receipt did = sleep_until(m.sleeper, m.waker, due);
  CHECK(did.why == outcome::woken);
  CHECK(due - fast::now() <= 1400ms);
  CHECK(due - fast::now() > 1399ms);
  CHECK(did.left <= 1400ms);
  CHECK(did.left > 1399ms);

  CHECK(sleep_until(m.sleeper, m.waker, fast::now() - 1s).why == outcome::woken);
  m.waker.reset();
  CHECK(sleep_until(m.sleeper, m.waker, fast::now() - 1s).why == outcome::already_past);
  due = fast::now() + 2s;
  did = sleep_until(m.sleeper, m.waker, due);
  CHECK(did.why == outcome::reached);
  CHECK(fast::now() >= due);
  CHECK(fast::now() - due < 1ms);
}

TEST_CASE("every length means something to an interruptible wait", "[interrupt][G5]") {
  machine m;
  using seconds = std::chrono::duration<double>;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double none : {0.0, -1.0, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
    const receipt did = sleep_for(m.sleeper, m.waker, seconds(none));
    CHECK(did.why == outcome::already_past);
    CHECK(did.late < 1us);
  }
  CHECK(sleep_until(m.sleeper, m.waker, instant::min()).why == outcome::already_past);
  CHECK(m.world.count.native_waits == 0);
  for (int i = 0; i < 4; ++i) {
    m.world.after(24h, [&m] { m.waker.wake(); });
    const receipt did = i == 0   ? sleep_for(m.sleeper, m.waker, seconds(infinity))
                        : i == 1 ? sleep_for(m.sleeper, m.waker, nanoseconds::max())
                        : i == 2 ? sleep_until(m.sleeper, m.waker, instant::max())
                                 : sleep_for(m.sleeper, m.waker, std::chrono::hours::max());
    CHECK(did.why == outcome::woken);
    m.waker.reset();
  }
}

TEST_CASE("a wait that may not block at all is still woken, and says why it did not",
          "[interrupt][G6]") {
  machine m;
  m.world.refuse_native(EPERM);
  const instant from = m.world.time();
  m.world.after(30ms, [&m] { m.waker.wake(); });
  const receipt did = sleep_until(m.sleeper, m.waker, from + 100ms);
  CHECK(did.why == outcome::woken);
  CHECK(did.error == EPERM);
  CHECK(m.world.time() - from < 31ms);
  CHECK(did.native_waits <= 4);
  m.waker.reset();
  const receipt gone = block_until(m.sleeper, m.waker, m.world.time() + 100ms);
  CHECK(gone.why == outcome::gave_up);
  CHECK(gone.error == EPERM);
  CHECK(gone.left > 99ms);
}

TEST_CASE("a clock that stands still does not keep an interruptible wait for ever",
          "[interrupt][G6]") {
  machine m;
  m.world.kernel = [](const native_request& r) { return r.now; };
  m.world.monotonic_stands_still = true;
  for (const receipt& did : {sleep_for(m.sleeper, m.waker, 1ms),
                             block_until(m.sleeper, m.waker, m.world.time() + 1ms)}) {
    CHECK(did.why == outcome::gave_up);
    CHECK(did.native_waits < 1000);
  }
  m.waker.wake();
  CHECK(sleep_for(m.sleeper, m.waker, 1ms).why == outcome::woken);
}

TEST_CASE("an interruptible block never spins", "[interrupt]") {
  machine m;
  m.world.count = {};
  const instant due = m.world.time() + 5ms;
  receipt did = block_until(m.sleeper, m.waker, due);
  CHECK(did.why == outcome::reached);
  CHECK(did.late >= 60us);
  CHECK(did.spun == 0ns);
  CHECK(m.world.count.pauses == 0);
  m.world.after(1ms, [&m] { m.waker.wake(); });
  did = block_until(m.sleeper, m.waker, m.world.time() + 5ms);
  CHECK(did.why == outcome::woken);
  CHECK(did.left > 3900us);
}

TEST_CASE("a wait inside a handler that interrupts a wait on the same waker", "[interrupt][G4]") {
  machine m;
  receipt inner;
  m.world.after(300us, [&] {
    inner = sleep_for(m.sleeper, m.waker, 100us);
    m.world.signal();
  });
  const instant due = m.world.time() + 1ms;
  const receipt did = sleep_until(m.sleeper, m.waker, due);
  CHECK(inner.why == outcome::reached);
  CHECK(did.why == outcome::reached);
  CHECK(m.world.time() - due < 1us);
  m.waker.wake();
  CHECK(m.world.count.unparks == 0);  // nobody counts as parked any more
}

#if defined(__cpp_lib_jthread)
TEST_CASE("a stop at any time ends the wait as stopped, and one before it makes no system call",
          "[interrupt][G9]") {
  machine m;
  for (const auto at : {1us, 300us, 936us, 960us, 999us}) {
    std::stop_source source;
    const instant from = m.world.time();
    m.world.after(at, [&source] { source.request_stop(); });
    receipt did = sleep_until(m.sleeper, source.get_token(), from + 1ms);
    CHECK(did.why == outcome::stopped);
    CHECK(m.world.time() - from - at < 2100ns);
    CHECK(did.left > 0ns);
    m.world.count = {};
    did = sleep_until(m.sleeper, source.get_token(), m.world.time() + 1ms);
    CHECK(did.why == outcome::stopped);
    did = sleep_until(m.sleeper, source.get_token(), m.world.time() - 1h);
    CHECK(did.why == outcome::stopped);
    CHECK(did.left == 0ns);
    CHECK(block_until(m.sleeper, source.get_token(), m.world.time() + 1ms).why == outcome::stopped);
    CHECK(m.world.count.native_waits + m.world.count.unparks == 0);
  }
}

TEST_CASE("without a stop the deadline is reached, and the past is past", "[interrupt][G1][G2]") {
  machine m;
  std::stop_source source;
  for (const std::stop_token& token : {source.get_token(), std::stop_token{}}) {
    const instant due = m.world.time() + 1ms;
    const receipt did = sleep_until(m.sleeper, token, due);
    CHECK(did.why == outcome::reached);
    CHECK(did.native_waits == 1);  // it does not poll
    CHECK(m.world.time() >= due);
    CHECK(m.world.time() - due < 100ns);
    m.world.count = {};
    CHECK(sleep_until(m.sleeper, token, m.world.time() - 1h).why == outcome::already_past);
    CHECK(sleep_for(m.sleeper, token, -1ms).why == outcome::already_past);
    CHECK(m.world.count.native_waits == 0);
  }
}
#endif

namespace {

/// A condition variable of the simulated machine. Its lock only counts.
struct counting_lock {
  bool held = true;
  int taken = 0;
  void lock() {
    CHECK_FALSE(held);
    held = true;
    ++taken;
  }
  void unlock() {
    CHECK(held);
    held = false;
  }
};

struct simulated_condition {
  simulation& world;
  park_word word{0};

  template <class Clock, class Duration>
  std::cv_status wait_until(counting_lock& lock,
                            const std::chrono::time_point<Clock, Duration>& at) {
    constexpr clock_kind on =
        std::is_same_v<Clock, steady> ? clock_kind::monotonic : clock_kind::realtime;
    lock.unlock();
    const std::uint32_t seen = word;
    world.block(on, to_instant(at), slack::as_is, &word, seen);
    lock.lock();
    return word != seen ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  void notify_all() {
    ++word;
    world.unpark(word);
  }
};

struct condition_machine : machine {
  simulated_condition condition{world};
  counting_lock lock;
  bool flag = false;
  int asked = 0;

  bool wait(instant deadline) {
    const bool met = wait_until(sleeper, condition, lock, deadline, [this] {
      CHECK(lock.held);
      ++asked;
      return flag;
    });
    CHECK(lock.held);
    return met;
  }
  void warm_up() {
    for (int i = 0; i < 300; ++i) wait(world.time() + 1ms);
    world.count = {};
    asked = lock.taken = 0;
  }
};

}  // namespace

TEST_CASE("a condition that holds, or a deadline that is past, is answered without a system call",
          "[interrupt][G2]") {
  condition_machine m;
  m.warm_up();
  CHECK_FALSE(m.wait(m.world.time() - 1h));
  CHECK_FALSE(m.wait(m.world.time() - 1ns));
  m.flag = true;
  CHECK(m.wait(m.world.time() - 1h));
  CHECK(m.wait(m.world.time() + 1h));
  CHECK(m.world.count.native_waits == 0);
  CHECK(m.lock.taken == 0);  // and the lock was never given up
}

TEST_CASE("an unmet condition ends at the deadline, as punctual as a plain wait",
          "[interrupt][G1]") {
  condition_machine m;
  m.warm_up();
  for (int i = 0; i < 50; ++i) {
    const instant due = m.world.time() + 1ms;
    CHECK_FALSE(m.wait(due));
    CHECK(m.world.time() >= due);
    CHECK(m.world.time() - due < 150ns);
  }
}

TEST_CASE("a condition that is met at any time ends the wait at once, also in the spin",
          "[interrupt][G9]") {
  condition_machine m;
  m.warm_up();
  m.world.kernel = [](const native_request& r) { return r.until + 20us; };
  for (auto at = 3us; at < 1000us; at += 3us) {
    const instant from = m.world.time();
    m.world.after(at, [&m] {
      m.flag = true;
      m.condition.notify_all();
    });
    CHECK(m.wait(from + 1ms));
    CHECK(m.world.time() - from - at < 3us);
    m.flag = false;
  }
}

TEST_CASE("a notification without the condition neither ends the wait nor teaches anything",
          "[interrupt][G9]") {
  condition_machine m;
  m.warm_up();
  for (int i = 0; i < 100; ++i) {
    const instant from = m.world.time();
    for (auto at = 50us; at < 900us; at += 150us)
      m.world.after(at, [&m] { m.condition.notify_all(); });
    CHECK_FALSE(m.wait(from + 1ms));
    CHECK(m.world.time() - from - 1ms >= 0ns);
    CHECK(m.world.time() - from - 1ms < 150ns);
  }
}

TEST_CASE("the lock is free while the condition is spun for, and taken at intervals",
          "[interrupt]") {
  condition_machine m;
  m.warm_up();
  m.world.kernel = [](const native_request& r) { return r.until + 20us; };
  const instant due = m.world.time() + 1ms;
  int free_looks = 0, looks = 0;
  m.world.on_step = [&](const char*) {
    if (m.world.time() < due - 10us) return;
    ++looks;
    free_looks += !m.lock.held;
  };
  m.wait(due);
  CHECK(looks > 100);
  CHECK(free_looks > looks * 9 / 10);
  CHECK(m.asked >= 5);
  CHECK(m.asked < 100);
}

namespace {
/// A clock that can be read so many times.
struct moody : fast {
  using time_point = std::chrono::time_point<moody>;
  static inline int reads_left = 0;
  static time_point now() {
    if (--reads_left == 0) throw std::runtime_error("clock");
    return time_point{fast::now().time_since_epoch()};
  }
};
}  // namespace

TEST_CASE("what a condition, or its clock, throws comes out with the lock held", "[interrupt]") {
  condition_machine m;
  m.warm_up();
  m.world.kernel = [](const native_request& r) { return r.until + 20us; };
  for (int at = 1; at < 12; ++at) {  // in each of the places where it is asked, the spin included
    int asked = 0;
    CHECK_THROWS_AS(wait_until(m.sleeper, m.condition, m.lock, m.world.time() + 1ms,
                               [&]() -> bool {
                                 if (++asked == at) throw std::runtime_error("asked");
                                 return false;
                               }),
                    std::runtime_error);
    CHECK(m.lock.held);
  }
  fast::world = &m.world;
  for (int at = 1; at < 5; ++at) {
    moody::reads_left = at;
    CHECK_THROWS_AS(
        wait_until(m.sleeper, m.condition, m.lock,
                   moody::time_point{fast::now().time_since_epoch() + 1s}, [] { return false; }),
        std::runtime_error);
    CHECK(m.lock.held);
  }
  CHECK_FALSE(m.wait(m.world.time() + 1ms));
}

TEST_CASE("a user may stop a clock of his own for as long as he likes: a condition is waited for",
          "[interrupt][G1]") {
  condition_machine m;
  m.warm_up();
  scripted::reset(m.world);
  const auto due = scripted::now() + 1s;
  const auto is_set = [&m] { return m.flag; };
  scripted::stopped = true;
  m.world.after(100s, [&m] {
    m.flag = true;
    m.condition.notify_all();
  });
  instant from = m.world.time();
  CHECK(wait_until(m.sleeper, m.condition, m.lock, due, is_set));
  CHECK(m.world.time() - from >= 100s);
  CHECK(m.world.time() - from < 100s + 1ms);
  CHECK(m.world.count.native_waits < 100 * 60);  // asked every 20 ms, no more
  m.flag = false;
  m.world.after(100s, [] { scripted::stopped = false; });
  from = m.world.time();
  CHECK_FALSE(wait_until(m.sleeper, m.condition, m.lock, due, is_set));
  CHECK(m.world.time() - from >= 100s);
  CHECK(m.world.time() - from < 102s);
  // Where the system's own clock stands still there is nothing left to wait by.
  m.world.kernel = [](const native_request& r) { return r.now; };
  m.world.monotonic_stands_still = true;
  m.world.count = {};
  CHECK_FALSE(wait_until(m.sleeper, m.condition, m.lock, m.world.time() + 1s, is_set));
  scripted::stopped = true;
  CHECK_FALSE(wait_until(m.sleeper, m.condition, m.lock, scripted::now() + 1s, is_set));
  CHECK(m.world.count.native_waits < 1000);
  CHECK(m.lock.held);
}

TEST_CASE("a condition is waited for on the wall clock and on a user's clock, too", "[interrupt]") {
  condition_machine m;
  using wall = std::chrono::system_clock;
  const auto deadline = wall::time_point{
      std::chrono::ceil<wall::duration>((m.world.wall_time() + 50ms).time_since_epoch())};
  m.world.after(10ms, [&m] { m.world.step_wall_clock(1h); });
  instant from = m.world.time();
  CHECK_FALSE(wait_until(m.sleeper, m.condition, m.lock, deadline, [] { return false; }));
  CHECK(m.world.time() - from < 11ms);

  fast::world = &m.world;
  from = m.world.time();
  CHECK_FALSE(wait_until(m.sleeper, m.condition, m.lock, fast::now() + 1s, [] { return false; }));
  CHECK(m.world.time() - from >= 500ms);
  CHECK(m.world.time() - from < 501ms);
  m.world.after(100ms, [&m] {
    m.flag = true;
    m.condition.notify_all();
  });
  from = m.world.time();
  CHECK(wait_until(m.sleeper, m.condition, m.lock, fast::now() + 1s, [&m] { return m.flag; }));
  CHECK(m.world.time() - from < 101ms);
  CHECK_FALSE(wait_until(m.sleeper, m.condition, m.lock, fast::now() - 1s, [] { return false; }));
}
