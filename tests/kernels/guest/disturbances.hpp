// What only a machine of one's own can do to its clocks: suspend to RAM, step the wall clock, slew
// the steady one. Before and after each the thread has learned; a disturbance may cost the wait
// that it hits, and nothing that comes later.
#pragma once

#include "support.hpp"

#include <sys/timex.h>
#include <sys/wait.h>
#include <punctual/punctual.hpp>

namespace guest {

using punctual::instant;
using punctual::outcome;
using punctual::receipt;
using steady = std::chrono::steady_clock;
using wall = std::chrono::system_clock;

struct habits {
  nanoseconds margin, late, cpu;
};

/// Waits 100 times a millisecond on `Clock`. @return  the margin now, the median lateness and the
/// CPU time a wait.
template <class Clock>
habits watch() {
  constexpr int count = 100;
  std::vector<nanoseconds> late;
  late.reserve(count);
  const nanoseconds before = read(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < count; ++i) late.push_back(punctual::sleep_until(Clock::now() + 1ms).late);
  const nanoseconds cpu = (read(CLOCK_THREAD_CPUTIME_ID) - before) / count;
  return {punctual::this_thread_sleeper().margin(1ms), quantile(late, 0.5), cpu};
}

template <class Clock>
habits learn() {
  punctual::calibrate();
  for (int i = 0; i < 4; ++i) watch<Clock>();
  return watch<Clock>();
}

/// Whether the host's own noise is in the figures: then what was learned is shown, but not judged.
inline bool noisy = false;

[[gnu::format(printf, 2, 3)]] inline void learned(bool holds, const char* sentence, ...) {
  char text[256];
  std::va_list figures;
  va_start(figures, sentence);
  std::vsnprintf(text, sizeof text, sentence, figures);
  va_end(figures);
  if (noisy) {
    std::printf("note  %s\n", text);
  } else {
    check(holds, "%s", text);
  }
}

/// Checks what is left of a disturbance. @param settle  Hundreds of waits before the margin counts.
template <class Clock>
void unharmed(const char* by, const habits& before, int settle = 0) {
  for (int i = 0; i < settle; ++i) watch<Clock>();
  const nanoseconds margin = punctual::this_thread_sleeper().margin(1ms);
  learned(margin * 2 >= before.margin && margin <= before.margin * 2,
          "%d waits after %s the margin is %.1f us, before %.1f", settle * 100, by,
          microseconds(margin), microseconds(before.margin));
  for (int i = settle; i < 2; ++i) watch<Clock>();
  const habits after = watch<Clock>();
  learned(after.cpu <= before.cpu * 2,
          "200 waits after %s a wait costs %.1f us of CPU, before %.1f; late %.1f us, before %.1f",
          by, microseconds(after.cpu), microseconds(before.cpu), microseconds(after.late),
          microseconds(before.late));
}

/// Does something to the machine from a process of its own, `delay` after the call, while the
/// caller waits.
template <class Act>
class meanwhile {
 public:
  meanwhile(nanoseconds delay, Act act) : child_(fork()) {
    if (child_ != 0) return;
    plain_sleep_for(delay);
    _exit(act() ? 0 : 1);
  }
  ~meanwhile() {
    int status = 0;
    waitpid(child_, &status, 0);
    if (status != 0) check(false, "the disturbance itself could not be made (status %d)", status);
  }
  meanwhile(const meanwhile&) = delete;
  meanwhile& operator=(const meanwhile&) = delete;

 private:
  pid_t child_;
};

/// Suspends to RAM for three seconds of the machine's own real-time clock.
inline bool suspend_to_ram() {
  const char* alarm = "/sys/class/rtc/rtc0/wakealarm";
  return write_to(alarm, "0") && write_to(alarm, "+3") && write_to("/sys/power/state", "mem");
}

/// Checks a wait across a suspension. @param slept  what the machine must have missed of the steady
/// clock.
template <class Wait>
void wait_across_suspend(const char* what, Wait wait) {
  const nanoseconds boot = read(CLOCK_BOOTTIME), mono = read(CLOCK_MONOTONIC);
  receipt did;
  instant deadline, after;
  {
    const meanwhile asleep(200ms, suspend_to_ram);
    deadline = steady::now() + 1s;
    did = wait(deadline);
    after = steady::now();
  }
  const nanoseconds missed = (read(CLOCK_BOOTTIME) - boot) - (read(CLOCK_MONOTONIC) - mono);
  check(missed > 1s, "the machine slept: boot time went %.2f s further than the steady clock",
        microseconds(missed) / 1e6);
  check(after >= deadline && did.error == 0 && did.late < 50ms,
        "%s across a suspension is right on its clock: %.1f us late", what, microseconds(did.late));
}

inline void wall_deadline_in_suspend() {
  const nanoseconds boot = read(CLOCK_BOOTTIME), mono = read(CLOCK_MONOTONIC);
  receipt did;
  bool early;
  {
    const meanwhile asleep(200ms, suspend_to_ram);
    const auto deadline = wall::now() + 500ms;
    did = punctual::sleep_until(deadline);
    early = wall::now() < deadline;
  }
  const nanoseconds missed = (read(CLOCK_BOOTTIME) - boot) - (read(CLOCK_MONOTONIC) - mono);
  check(!early && did.late > 100ms && did.late < missed,
        "a wall-clock deadline inside a suspension of %.2f s is met on resume: %.2f s late",
        microseconds(missed) / 1e6, microseconds(did.late) / 1e6);
}

inline void suspend() {
  const habits before = learn<steady>();
  wait_across_suspend("sleep_until", [](instant at) { return punctual::sleep_until(at); });
  unharmed<steady>("a suspension in a long wait", before);

  wait_across_suspend("spin_until", [](instant at) { return punctual::spin_until(at); });
  unharmed<steady>("a suspension in a spin", before);

  int early = 0, waits = 0;
  wait_across_suspend("a chain of 2 ms waits", [&](instant at) {
    receipt did;
    while (steady::now() < at) {
      const instant next = std::min(at, steady::now() + 2ms);
      did = punctual::sleep_until(next);
      early += steady::now() < next;
      ++waits;
    }
    return did;
  });
  check(early == 0, "never early: %d waits of 2 ms across a suspension: early %d", waits, early);
  unharmed<steady>("a suspension in short waits", before);

  const habits wall_before = learn<wall>();
  wall_deadline_in_suspend();
  unharmed<wall>("a wall-clock deadline missed in a suspension", wall_before);
}

inline bool step_wall_clock(nanoseconds by) {
  const timespec time = to_timespec(read(CLOCK_REALTIME) + by);
  return clock_settime(CLOCK_REALTIME, &time) == 0;
}

template <class Clock>
void wait_across_step(nanoseconds length, nanoseconds step, nanoseconds expected) {
  const nanoseconds begin = read(CLOCK_MONOTONIC);
  const meanwhile stepped(100ms, [step] { return step_wall_clock(step); });
  const auto deadline = Clock::now() + length;
  const receipt did = punctual::sleep_until(deadline);
  const bool early = Clock::now() < deadline;
  const nanoseconds took = read(CLOCK_MONOTONIC) - begin;
  check(!early && did.why == outcome::reached && took >= expected && took < expected + 100ms,
        "a wait of %.1f s on the %s clock, the wall clock stepped by %+.1f s after 0.1 s, takes "
        "%.3f s",
        microseconds(length) / 1e6, Clock::is_steady ? "steady" : "wall", microseconds(step) / 1e6,
        microseconds(took) / 1e6);
}

inline void step() {
  const habits before = learn<steady>();
  wait_across_step<steady>(500ms, 5s, 500ms);
  wait_across_step<steady>(500ms, -5s, 500ms);
  unharmed<steady>("a step of the wall clock", before);
  const habits wall_before = learn<wall>();
  wait_across_step<wall>(2s, 5s, 100ms);
  wait_across_step<wall>(500ms, -1s, 1500ms);
  unharmed<wall>("a step of the wall clock in a wait on it", wall_before);
}

/// Makes the steady clock run at `tick` microseconds for each 10000 of the counter. @return
/// whether the kernel did so.
inline bool run_at(long tick) {
  timex how{};
  how.modes = ADJ_TICK;
  how.tick = tick;
  return adjtimex(&how) >= 0;
}

// While the clock runs fast, the kernel itself wakes a tenth of the wait too late: its timer
// hardware still counts at the old rate. The margin rightly follows, and has to come back.
inline void slew() {
  const habits before = learn<steady>();
  for (const long tick : {11'000L, 9'000L, 10'000L}) {
    check(run_at(tick), "the steady clock now runs at %.2f of the counter",
          static_cast<double>(tick) / 1e4);
    numbers random;
    int early = 0;
    std::vector<nanoseconds> late;
    for (int i = 0; i < 200; ++i) {
      const instant deadline = steady::now() + random.length(10us, 20ms);
      late.push_back(punctual::sleep_until(deadline).late);
      early += steady::now() < deadline;
    }
    const nanoseconds median = quantile(late, 0.5);
    check(early == 0 && median < before.late + 50us,
          "never early: 200 waits on it: early %d, half of them within %.1f us", early,
          microseconds(median));
  }
  unharmed<steady>("a slew of the steady clock", before, 2);
}

}  // namespace guest
