// Mistake that would live without it: a waiter that looks at the flag before it has published that
// it is about to park, a waker that looks for waiters before it has set the flag: a wake-up between
// the two is lost, once in a million times.
#include "support/catch.hpp"
#include "support/interleavings.hpp"

#include <punctual/interrupt.hpp>

#include <cstdio>
#include <memory>
#include <string>

using namespace punctual;
using support::explorer;
using support::interleaved_platform;
using support::program;
using support::turns;

namespace {

using stepped_waker = basic_waker<interleaved_platform>;
using stepped_sleeper = basic_sleeper<interleaved_platform>;

/// What all programs share: a waker that a woken thread may destroy, and what each wait said.
struct scene {
  explicit scene(turns& of) : t(of), waker(new stepped_waker(interleaved_platform(of))) {}

  /// A thread that waits.
  std::function<unsigned()> waits(std::size_t slot, instant deadline, bool destroys = false) {
    return [this, slot, deadline, destroys] {
      stepped_sleeper s{tuning{}, interleaved_platform{t}};
      said[slot] = block_until(s, *waker, deadline);
      if (destroys) waker.reset();
      return static_cast<unsigned>(said[slot].why);
    };
  }
  /// The same without the sleeper's looks at the clock: the protocol alone.
  std::function<unsigned()> parks(std::size_t slot) {
    return [this, slot] {
      stepped_waker::watch watch(*waker);
      while (!watch.ended()) watch.park(clock_kind::monotonic, instant::max(), slack::tight);
      said[slot].why = outcome::woken;
      return 0u;
    };
  }
  std::function<unsigned()> wakes() {
    return [this] {
      waker->wake();
      return 0u;
    };
  }
  // The word is the waker's first member: what the threads see of each other.
  std::function<std::uint32_t()> word() {
    return [this]() -> std::uint32_t { return waker ? word_of(*waker) : 0; };
  }
  static std::uint32_t word_of(const stepped_waker& w) {
    return reinterpret_cast<const park_word*>(&w)->load(std::memory_order_relaxed);
  }

  turns& t;
  std::unique_ptr<stepped_waker> waker;
  receipt said[2] = {{outcome::gave_up}, {outcome::gave_up}};
};

constexpr instant for_ever = instant::max();

/// What went wrong in any of the runs; Catch's macros are slow and count for one thread only.
struct findings {
  std::string first;
  void expect(bool holds, const char* what) {
    if (!holds && first.empty()) first = what;
  }
};

void report(const char* what, const explorer& e) {
  std::printf("%s: %llu orders\n", what, static_cast<unsigned long long>(e.runs));
}

}  // namespace

TEST_CASE("no order of the steps of a wait and a wake loses the wake",
          "[interrupt][any_processor][G9]") {
  explorer e;
  findings f;
  e.explore([&](turns& t) {
    auto s = std::make_shared<scene>(t);
    return program{{s->waits(0, for_ever), s->wakes()}, s->word(), [&f, s, &t] {
                     f.expect(s->said[0].why == outcome::woken, "a wait was not woken");
                     f.expect(scene::word_of(*s->waker) % (1u << 17) == 1,
                              "a thread still counts as parked");
                     const bool before = t.last_step(1) < t.first_step(0);
                     const bool later = t.last_step(0) < t.first_step(1);
                     f.expect(!before || t.parks == 0, "a wait on a pending waker parked");
                     f.expect(!(before || later) || t.unparks == 0, "an unpark with nobody parked");
                   }};
  });
  report("wait and wake", e);
  CHECK(e.stuck == 0);
  CHECK(f.first == "");
  CHECK(e.runs > 20);
}

TEST_CASE("a wake and a deadline at the same time give the verdict that is true",
          "[interrupt][any_processor][G9][G1]") {
  explorer e;
  findings f;
  int woken = 0, reached = 0, past = 0;
  e.explore([&](turns& t) {
    auto s = std::make_shared<scene>(t);
    return program{{s->waits(0, turns::after), s->wakes()},
                   s->word(),
                   [&, s] {
                     const outcome why = s->said[0].why;
                     const bool wake_was_first = t.last_step(1) < t.last_step(0);
                     f.expect(!wake_was_first || why == outcome::woken,
                              "the wake was there before the last look");
                     if (why == outcome::woken) {
                       ++woken;
                       f.expect(t.first_step(1) < t.last_step(0), "woken by nobody");
                     } else {
                       f.expect(t.time_has_passed, "reached before its time");
                       f.expect(why == outcome::reached || why == outcome::already_past,
                                "no verdict");
                     }
                     reached += why == outcome::reached;
                     past += why == outcome::already_past;
                   },
                   true};
  });
  report("wait, wake and deadline", e);
  CHECK(e.stuck == 0);
  CHECK(f.first == "");
  CHECK(woken > 0);
  CHECK(reached > 0);
  CHECK(past > 0);
}

TEST_CASE("a wake that is reset at once still ends the wait that had begun",
          "[interrupt][any_processor][G9]") {
  explorer e;
  findings f;
  e.explore([&](turns& t) {
    auto s = std::make_shared<scene>(t);
    const auto wakes_and_resets = [s] {
      s->waker->wake();
      s->waker->reset();
      return 0u;
    };
    return program{
        {s->waits(0, turns::after), wakes_and_resets},
        s->word(),
        [&, s] {
          const outcome why = s->said[0].why;
          const bool began_first = t.first_step(0) < t.first_step(1);
          const bool was_there = t.last_step(1) < t.last_step(0);
          f.expect(!(began_first && was_there) || why == outcome::woken, "a wake-up was lost");
          f.expect(why == outcome::woken || t.time_has_passed, "reached before its time");
        },
        true};
  });
  report("wait, wake and reset", e);
  CHECK(e.stuck == 0);
  CHECK(f.first == "");
}

TEST_CASE("one wake ends two waits in every order of their steps",
          "[interrupt][any_processor][G9]") {
  explorer e;
  findings f;
  e.explore([&](turns& t) {
    auto s = std::make_shared<scene>(t);
    return program{{s->parks(0), s->parks(1), s->wakes()},
                   s->word(),
                   [&f, s] {
                     f.expect(s->said[0].why == outcome::woken, "the first was not woken");
                     f.expect(s->said[1].why == outcome::woken, "the second was not woken");
                     f.expect(scene::word_of(*s->waker) % (1u << 17) == 1,
                              "a thread still counts as parked");
                   },
                   false,
                   2};
  });
  report("two waits and a wake", e);
  CHECK(e.stuck == 0);
  CHECK(f.first == "");
}

TEST_CASE("two wakes at once end a wait in every order of their steps",
          "[interrupt][any_processor][G9]") {
  explorer e;
  findings f;
  e.explore([&](turns& t) {
    auto s = std::make_shared<scene>(t);
    return program{
        {s->wakes(), s->wakes(), s->parks(0)},
        s->word(),
        [&f, s] { f.expect(s->said[0].why == outcome::woken, "the wait was not woken"); },
        false,
        2};
  });
  report("a wait and two wakes", e);
  CHECK(e.stuck == 0);
  CHECK(f.first == "");
}

TEST_CASE("a woken thread may destroy the waker while the wake is on its way",
          "[interrupt][any_processor][G9]") {
  // Under the address sanitizer: a touch of the waker after its atomic step is a use after free.
  explorer e;
  findings f;
  e.explore([&](turns& t) {
    auto s = std::make_shared<scene>(t);
    return program{{s->waits(0, for_ever, true), s->wakes()}, s->word(), [&f, s] {
                     f.expect(s->said[0].why == outcome::woken, "the wait was not woken");
                   }};
  });
  report("wait, destroy and wake", e);
  CHECK(e.stuck == 0);
  CHECK(f.first == "");
}

TEST_CASE("the explorer finds the one order in which a naive flag loses a wake",
          "[interrupt][any_processor]") {
  // Looks at the flag, then parks without saying so before: a wake in between finds nobody to
  // unpark.
  explorer e;
  e.explore([](turns& t) {
    struct naive {
      park_word flag{0};
      bool waiting = false;
    };
    auto s = std::make_shared<naive>();
    const auto waits = [s, &t] {
      t.step();
      if (s->flag.load() != 0) return 0u;
      t.step();
      s->waiting = true;
      t.park(s->flag, s->flag.load(), for_ever);
      return 0u;
    };
    const auto wakes = [s, &t] {
      t.step();
      const bool someone = s->waiting;
      t.step();
      s->flag = 1;
      if (someone) t.unpark(s->flag);
      return 0u;
    };
    return program{{waits, wakes}, [s] { return s->flag.load() + 2u * s->waiting; }, [] {}};
  });
  CHECK(e.stuck > 0);
  CHECK(e.stuck < e.runs);
}
