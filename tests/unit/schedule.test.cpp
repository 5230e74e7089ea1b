// The pacer's rules without a clock: what is delivered, what is dropped, where the grid stands.
// Mistake that would live without it: a beat lost without being counted, a burst without end, a
// grid that is anchored anew at every lateness, a change of rate that leaves a gap.
#include <punctual/schedule.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using punctual::beat;
using punctual::between;
using punctual::every;
using punctual::hz;
using punctual::instant;
using punctual::missed;
using punctual::nanoseconds;
using punctual::rate;
using punctual::schedule;
namespace rates = punctual::rates;

namespace {

/// A loop with a perfect sleeper: what the pacer does, without reading a clock.
struct loop {
  schedule plan;
  instant now{1s};
  bool waited = false;
  bool first = true;

  beat next() {
    if (first) plan.begin(now);
    if (!plan.has_deadline()) plan.anchor(now);
    first = false;
    waited = false;
    for (;;) {
      const bool ahead = now < plan.due();
      if (ahead) {
        plan.in_time();
        now = plan.due();
        waited = true;
      }
      if (plan.catch_up(now, ahead)) return plan.take(now);
    }
  }
};

/// The time line of missed's doc comment: work of one column, but ten for beat 1; then columns
/// until 32.
std::string drawn(missed policy) {
  loop l{schedule{every(4ms), policy, 3}};
  std::string line(32, '.');
  for (;;) {
    const beat b = l.next();
    const auto column = static_cast<std::size_t>((l.now - instant{1s}) / 1ms);
    if (column >= line.size()) return line;
    const nanoseconds work = b.index == 1 ? 10ms : 1ms;
    for (std::size_t i = 0; i < static_cast<std::size_t>(work / 1ms) && column + i < line.size();
         ++i) {
      line[column + i] = i == 0 ? static_cast<char>('0' + b.index) : '#';
    }
    l.now += work;
  }
}

}  // namespace

TEST_CASE("the time lines of the three policies are as they are drawn", "[pacer][schedule]") {
  CHECK(drawn(missed::skip) == "0...1#########3.4...5...6...7...");
  CHECK(drawn(missed::burst) == "0...1#########234...5...6...7...");
  CHECK(drawn(missed::rephase) == "0...1#########3...4...5...6...7.");
}

TEST_CASE("a beat late by less than a period comes at once and drops nothing",
          "[pacer][schedule]") {
  const auto policy = GENERATE(missed::skip, missed::burst, missed::rephase);
  loop l{schedule{hz(100), policy, 3}};
  l.next();
  l.now += 19'999'999ns;
  const beat b = l.next();
  CHECK_FALSE(l.waited);
  CHECK(b.index == 1);
  CHECK(b.skipped == 0);
  CHECK(b.late == 9'999'999ns);
  l.now += 1ns;
  CHECK(l.next().due == instant{1'020ms});  // the grid has stayed
}

TEST_CASE("every deadline is delivered or counted, whatever the loop does",
          "[pacer][schedule][G10]") {
  std::mt19937_64 random(21);
  for (int round = 0; round < 300; ++round) {
    const auto policy = static_cast<missed>(round % 3);
    const rate r =
        round % 2 == 0 ? rates::ntsc_field : rate{static_cast<int>(random() % 1000 + 1), 7};
    const auto cap = static_cast<std::uint32_t>(random() % 4 + 1);
    loop l{schedule{r, policy, cap}};
    const punctual::grid right{r, l.now};
    beat before = l.next();
    std::uint64_t dropped = 0;
    std::uint32_t late_in_a_row = 0;
    int wrong = 0;
    for (int i = 0; i < 200; ++i) {
      const auto period = r.period().count();
      nanoseconds work{static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(period))};
      if (random() % 10 == 0) work *= static_cast<int>(random() % 40);
      l.now += work;
      const beat b = l.next();
      wrong += b.index != before.index + 1 + b.skipped;
      wrong += b.late != between(b.due, l.now) || b.late < 0ns;
      wrong += b.due <= before.due;
      // Nothing late by more than the cap, whatever was due.
      const std::int64_t most = policy == missed::burst ? cap : 1;
      wrong += b.late > r.period() * most + nanoseconds{most};
      if (policy != missed::rephase) wrong += b.due != right.at(b.index);
      late_in_a_row = l.waited ? 0 : late_in_a_row + 1;
      if (policy == missed::burst) wrong += late_in_a_row > cap;
      dropped += b.skipped;
      before = b;
    }
    CAPTURE(round);
    REQUIRE(wrong == 0);
    REQUIRE(l.plan.dropped() == dropped);
  }
}

TEST_CASE("steady work longer than a period gives what the work allows, then the rate returns",
          "[pacer][schedule]") {
  const auto policy = GENERATE(missed::skip, missed::burst);
  loop l{schedule{hz(60), policy, 3}};
  const punctual::grid right{hz(60), l.now};
  l.next();
  const instant began = l.now;
  int in_a_row = 0;
  int longest_row = 0;
  for (int i = 0; i < 600; ++i) {
    l.now += 18ms;
    l.next();
    in_a_row = l.waited ? 0 : in_a_row + 1;
    longest_row = std::max(longest_row, in_a_row);
  }
  if (policy == missed::skip) CHECK(l.now - began == 600 * 18ms);  // no wait at all
  if (policy == missed::burst) CHECK(longest_row == 3);
  int at_once = 0;
  std::vector<instant> returns;
  for (int i = 0; i < 100; ++i) {
    l.now += 2ms;
    const beat b = l.next();
    at_once += !l.waited;
    if (l.waited) returns.push_back(l.now);
    CHECK(b.due == right.at(b.index));
  }
  CHECK(at_once <= (policy == missed::skip ? 2 : 3));
  for (std::size_t i = 1; i < returns.size(); ++i) {
    const nanoseconds interval = returns[i] - returns[i - 1];
    CHECK((interval == 16'666'666ns || interval == 16'666'667ns));
  }
}

TEST_CASE("alternating work of 10 and 20 ms averages 60 Hz", "[pacer][schedule]") {
  const auto policy = GENERATE(missed::skip, missed::burst);
  loop l{schedule{hz(60), policy, 3}};
  l.next();
  const instant began = l.now;
  for (int i = 0; i < 3600; ++i) {
    l.now += i % 2 == 0 ? 10ms : 20ms;
    l.next();
  }
  CHECK(l.plan.dropped() == 0);
  const double hertz = 3600 / std::chrono::duration<double>(l.now - began).count();
  CHECK(std::abs(hertz - 60) <= 0.06);
}

TEST_CASE("a burst of 1 delivers the newest of a backlog and then waits", "[pacer][schedule]") {
  const auto cap = GENERATE(0u, 1u);  // 0 counts as 1
  loop l{schedule{hz(100), missed::burst, cap}};
  l.next();
  l.now += 75ms;
  const beat b = l.next();
  CHECK(b.index == 7);
  CHECK(b.skipped == 6);
  CHECK(b.late == 5ms);
  l.now += 8ms;  // 3 ms too late for beat 8, but the row is full
  const beat after = l.next();
  CHECK(after.index == 9);
  CHECK(after.skipped == 1);
  CHECK(l.waited);
}

TEST_CASE("a new grid starts where rephase dropped something", "[pacer][schedule]") {
  loop l{schedule{hz(100), missed::rephase, 3}};
  l.next();
  l.now += 34ms;
  const beat b = l.next();
  CHECK(b.index == 3);
  CHECK(b.skipped == 2);
  CHECK(b.due == instant{1'030ms});
  CHECK(b.late == 4ms);
  CHECK(l.next().due == instant{1'044ms});
  CHECK(l.next().due == instant{1'054ms});
}

TEST_CASE("a change of rate keeps the slot that has begun and holds from the next deadline",
          "[pacer][schedule][G10]") {
  std::mt19937_64 random(22);
  loop l{schedule{hz(60), missed::skip, 3}};
  beat before = l.next();
  rate now_rate = hz(60);
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    rate next_rate = now_rate;
    const bool change = random() % 3 == 0;
    if (change) {
      next_rate =
          rate{static_cast<int>(random() % 333'000 + 1), static_cast<int>(random() % 10 + 1)};
      l.plan.set_rate(next_rate);
    }
    const beat b = l.next();
    const nanoseconds off = b.due - before.due - now_rate.period();
    wrong += off < 0ns || off > 1ns || b.skipped != 0 || b.index != before.index + 1;
    before = b;
    now_rate = next_rate;
  }
  CHECK(wrong == 0);
}

TEST_CASE("of several changes within a slot the last one counts", "[pacer][schedule]") {
  loop l{schedule{hz(10), missed::skip, 3}};
  l.next();
  l.plan.set_rate(hz(1));
  l.plan.set_rate(rates::unlimited);
  l.plan.set_rate(hz(1000));
  CHECK(l.next().due == instant{1'100ms});
  CHECK(l.next().due == instant{1'101ms});
}

TEST_CASE("without a limit every beat is due when it is asked for", "[pacer][schedule]") {
  const auto policy = GENERATE(missed::skip, missed::burst, missed::rephase);
  loop l{schedule{rates::unlimited, policy, 3}};
  for (std::uint64_t i = 0; i < 50; ++i) {
    const beat b = l.next();
    CHECK(b.index == i);
    CHECK(b.due == l.now);
    CHECK(b.late == 0ns);
    CHECK(b.skipped == 0);
    CHECK_FALSE(l.waited);
    l.now += 3ms;
  }
  l.plan.set_rate(hz(10));
  const beat b = l.next();
  CHECK(b.index == 50);
  CHECK(b.due == l.now);
  CHECK(b.due == instant{1s + 49 * 3ms + 100ms});  // one period after the last beat
}

TEST_CASE("a nudge moves the grid in steps of a 64th of a period and then stays",
          "[pacer][schedule]") {
  const nanoseconds by = GENERATE(5'000'000ns, -5'000'000ns, 1ns, -1ns, 8'333'333ns);
  loop l{schedule{hz(60), missed::skip, 3}};
  const punctual::grid right{hz(60), l.now};
  beat before = l.next();
  l.plan.nudge(by);
  CHECK(l.next().due == right.at(1));  // the slot that has begun keeps its length
  before = beat{};
  before.due = right.at(1);
  nanoseconds widest{0};
  int beats_until_there = 0;
  for (int i = 0; i < 100; ++i) {
    const beat b = l.next();
    const nanoseconds off = b.due - before.due - 16'666'666ns;
    widest = std::max(widest, off < 0ns ? -off : off);
    if (b.due != right.at(b.index) + by) beats_until_there = i + 1;
    before = b;
  }
  CHECK(before.due == right.at(before.index) + by);
  CHECK(widest <= 16'666'666ns / 64 + 1ns);
  CHECK(beats_until_there <= 32);
}

TEST_CASE("nudges add up, and cancel", "[pacer][schedule]") {
  loop l{schedule{hz(100), missed::skip, 3}};
  l.next();
  l.plan.nudge(100us);
  l.plan.nudge(nanoseconds::max());
  l.plan.nudge(nanoseconds::min());
  l.plan.nudge(1ns);  // max, min and 1 are 0
  beat b;
  for (int i = 0; i < 10; ++i) b = l.next();
  CHECK(b.due == instant{1s + 10 * 10ms});
}

TEST_CASE(
    "aligning puts the grid on the time point and moves the next deadline by half a period at most",
    "[pacer][schedule]") {
  std::mt19937_64 random(23);
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    const rate r{static_cast<int>(random() % 1000 + 1), static_cast<int>(random() % 10 + 1)};
    loop l{schedule{r, missed::skip, 3}};
    l.now = instant{nanoseconds{static_cast<std::int64_t>(random() >> 3)}};
    for (std::uint64_t j = random() % 5 + 1; j > 0; --j) l.next();
    const instant was = l.plan.due();
    const std::uint64_t index = l.plan.index();
    const instant target = l.now + nanoseconds{static_cast<std::int64_t>(random() >> 24)} - 600s;
    l.plan.align(target, l.now);
    const nanoseconds moved = l.plan.due() - was;
    wrong += (moved < 0ns ? -moved : moved) > r.period() / 2 + 1ns;
    wrong += l.plan.index() != index;
    // Some deadline, before or after, is the target: so the distance is a whole number of periods.
    const std::uint64_t apart = static_cast<std::uint64_t>(
        (target > was ? between(l.plan.due(), target) : between(target, l.plan.due())).count());
    const auto num = static_cast<std::uint64_t>(r.num);
    const std::uint64_t period = static_cast<std::uint64_t>(r.den) * 1'000'000'000u;
    const std::uint64_t rest =
        punctual::multiply_divide(apart, num, 1, punctual::rounding::down) % period;
    wrong += rest > num && period - rest > num;  // by the rounding of one nanosecond
  }
  CHECK(wrong == 0);
}

TEST_CASE("a pacer that was aligned before it began starts with the first deadline ahead",
          "[pacer][schedule]") {
  loop l{schedule{hz(10), missed::skip, 3}};
  l.now = instant{1'234ms};
  l.plan.align(instant{0ms}, l.now);
  l.now = instant{5'678ms};  // loading took its time
  const beat b = l.next();
  CHECK(b.due == instant{5'700ms});
  CHECK(b.index == 0);
  CHECK(b.skipped == 0);
  CHECK(l.next().due == instant{5'800ms});
  l.plan.restart();
  l.now = instant{6'001ms};
  CHECK(l.next().due == instant{6'001ms});
  CHECK(l.plan.index() == 1);
}

TEST_CASE("which deadline is the first is settled once, however late the loop then comes for it",
          "[pacer][schedule]") {
  schedule plan{hz(10), missed::skip, 3};
  plan.align(instant{0ms}, instant{1'234ms});
  plan.begin(instant{5'678ms});
  CHECK(plan.due() == instant{5'700ms});
  plan.begin(instant{5'701ms});  // as a loop that polls does
  CHECK(plan.due() == instant{5'700ms});
  CHECK(plan.catch_up(instant{5'925ms}, false));
  const beat b = plan.take(instant{5'925ms});
  CHECK(b.due == instant{5'900ms});
  CHECK(b.skipped == 2);
  CHECK(b.index == 2);
}

TEST_CASE("a grid that is aligned to the ends of time goes on for ever", "[pacer][schedule]") {
  for (const instant target : {instant::min(), instant{-1h}, instant{}, instant::max()}) {
    for (const instant start :
         {instant{-1h}, instant{}, instant{1h}, instant{nanoseconds::max() / 2}}) {
      for (const rate r : {hz(60), hz(1'000'000'000), rate{1, 3'155'760'000}}) {
        loop l{schedule{r, missed::skip, 3}};
        l.now = start;
        beat before = l.next();
        l.plan.align(target, l.now);
        int wrong = 0;
        for (int i = 0; i < 100; ++i) {
          if (l.plan.due() == instant::max()) break;
          const beat b = l.next();
          wrong += b.skipped != 0 || b.index != before.index + 1;
          const nanoseconds off = b.due - before.due - r.period();
          if (i > 0) wrong += off < 0ns || off > 1ns;
          if (i == 0) wrong += off > r.period() / 2 + 2ns || off < -r.period() / 2 - 2ns;
          before = b;
        }
        CAPTURE(target, start, to_text(r));
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("aligning forgets what is left of a nudge", "[pacer][schedule]") {
  loop l{schedule{hz(10), missed::skip, 3}};
  l.next();
  l.plan.nudge(20ms);
  l.next();
  l.next();
  l.plan.align(instant{7ms}, l.now);
  for (int i = 0; i < 50; ++i) CHECK(l.next().due.time_since_epoch() % 100ms == 7ms);
}

TEST_CASE("a shift moves all deadlines", "[pacer][schedule]") {
  loop l{schedule{hz(10), missed::skip, 3}};
  l.next();
  l.plan.shift(1h);
  CHECK(l.next().due == instant{1'100ms + 1h});
}
