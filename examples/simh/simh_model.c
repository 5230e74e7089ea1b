/* See simh_model.h. Each function says which of sim_timer.c it stands for. */
#include "simh_model.h"

#include <stddef.h>

static double seconds(const simh_host* host) { return (double)host->now_ns(host->context) / 1e9; }
static double cpu(const simh_host* host) {
  return host->cpu_ns == NULL ? 0 : (double)host->cpu_ns(host->context) / 1e9;
}
static uint32_t msec(const simh_host* host) { return host->msec(host->context); }
static uint32_t sleep_ms(const simh_host* host, uint32_t length) {
  return host->ms_sleep(host->context, length);
}
static void execute(const simh_host* host, int64_t instructions) {
  if (instructions > 0) host->execute(host->context, instructions);
}

/* --- the start ------------------------------------------------------------------------------- */

/* The truncated mean of a hundred sleeps, begun on a tick. */
static uint32_t mean_of_sleeps(const simh_host* host, uint32_t length) {
  uint32_t total = 0;
  int i;
  sleep_ms(host, 2);
  for (i = 0; i < 100; ++i) total += sleep_ms(host, length);
  return total / 100;
}

/* The smallest step that the clock makes in a tenth of a second. */
static uint32_t step_of_clock(const simh_host* host) {
  const uint32_t from = msec(host);
  uint32_t last = from, now = from, least = 1000;
  while (now - from < 100) {
    execute(host, 50);
    now = msec(host);
    if (now > last && now - last < least) least = now - last;
    last = now;
  }
  return least;
}

/* _compute_minimum_sleep and the part of sim_timer_init that follows it. */
simh_start simh_probe(const simh_host* host) {
  const double from = seconds(host);
  simh_start start = {0, 0, 1, 0, 0};
  if (host->floor_ms != NULL) {
    start.sleep_min_ms = host->floor_ms(host->context);
    start.sleep_increment_ms = start.sleep_min_ms;
  } else {
    start.sleep_min_ms = mean_of_sleeps(host, 1);
    start.sleep_increment_ms = mean_of_sleeps(host, start.sleep_min_ms + 1) - start.sleep_min_ms;
    start.clock_resolution_ms = step_of_clock(host);
  }
  if (start.sleep_min_ms != 0) {
    const uint32_t resolution = start.clock_resolution_ms;
    const uint32_t steps = start.sleep_min_ms < resolution ? 1 : start.sleep_min_ms / resolution;
    start.tick_hz = 1000 / (resolution * steps);
  }
  start.took_s = seconds(host) - from;
  return start;
}

/* --- the guest's clock ----------------------------------------------------------------------- */

typedef struct timer {
  int32_t hz;
  int32_t tick;     /* instructions from one tick to the next (currd) */
  int32_t base;     /* the same, before it is corrected for what the guest is ahead or behind */
  uint32_t next_ms; /* how long the next guest second is to take */
  uint32_t guest_ms, host_ms;
  int32_t ticks_of_second;
  uint32_t idled_ms;   /* in this guest second */
  double instructions; /* executed, or counted as such for time that was slept */
  double instructions_before;
  double per_ms; /* instructions in a millisecond without idling; 0: not known yet */
} timer;

/* sim_rtcn_calb: once a guest second, how many instructions make a tick. */
static void calibrate(timer* t, uint32_t now) {
  const uint32_t took = now - t->host_ms;
  int32_t ahead;
  t->host_ms = now;
  t->guest_ms += 1000;
  if (t->idled_ms == 0 && took != 0) {
    t->per_ms = (t->instructions - t->instructions_before) / took;
  }
  t->instructions_before = t->instructions;
  t->idled_ms = 0;
  if (took > 30000) { /* the simulator stood still */
    t->guest_ms = now;
    t->next_ms = 1000;
    t->base = t->tick;
    return;
  }
  t->base = took == 0 ? t->base * t->hz : (int32_t)((double)t->base * t->next_ms / took);
  ahead = (int32_t)(t->guest_ms - t->host_ms);
  if (ahead > 500) ahead = 500;
  if (ahead < -500) ahead = -500;
  t->next_ms = (uint32_t)(1000 + ahead);
  if (t->base < 1) t->base = 1;
  t->tick = (int32_t)((double)t->base * t->next_ms / 1000);
  if (t->tick < 1) t->tick = 1;
}

/* sim_idle: sleeps instead of executing the instructions up to the next event. Answers how many
 * instructions that was; 0 where the time is too short to sleep. What a sleep in whole milliseconds
 * is too long is lost to the guest; of one in nanoseconds it is known, and the next event comes as
 * much earlier (sim_interval may become negative). */
static int64_t idle(const simh_host* host, const simh_start* start, timer* t, int64_t ahead,
                    simh_clock_run* run, double* slept, uint64_t* sleeps) {
  double began, took, asked, worth;
  if (t->per_ms <= 0) return 0;
  if (host->sleep_ns != NULL) {
    const double length = (double)ahead / t->per_ms * 1e6;
    if (length < 1000) return 0;
    began = seconds(host);
    asked = length / 1e9;
    worth = (double)host->sleep_ns(host->context, (int64_t)length) / 1e6 * t->per_ms;
  } else {
    const uint32_t length = (uint32_t)((double)ahead / t->per_ms);
    const double half = t->per_ms * start->sleep_min_ms / 2;
    if (length == 0 || 2 * length < start->sleep_min_ms) return 0;
    began = seconds(host);
    asked = length / 1e3;
    worth = sleep_ms(host, length) * t->per_ms;
    if (worth > half) worth -= half;
  }
  took = seconds(host) - began;
  t->idled_ms += (uint32_t)(took * 1e3 + 0.5);
  *slept += took;
  ++*sleeps;
  run->late_us += (took - asked) * 1e6;
  return worth < (double)ahead || host->sleep_ns != NULL ? (int64_t)worth : ahead;
}

/* sim_timer_precalibrate_execution_rate: instructions a millisecond, roughly. */
static double speed(const simh_host* host) {
  const double from = seconds(host);
  double done = 0, now;
  do {
    execute(host, 10000);
    done += 10000;
    now = seconds(host);
  } while (now - from < 0.1);
  return done / (now - from) / 1e3;
}

simh_clock_run simh_run_clock(const simh_host* host, const simh_start* start, int32_t hz,
                              int64_t busy, double warm_up_s, double measured_s) {
  simh_clock_run run = {0, 0, 0, 0, 0, 0};
  timer t = {0};
  double slept = 0, from, first = 0, last, used = 0, skew;
  int64_t ahead = 0; /* instructions to the next tick */
  uint64_t sleeps = 0;
  t.hz = hz;
  t.tick = t.base = (int32_t)(speed(host) * 1000 / hz);
  t.next_ms = 1000;
  t.guest_ms = t.host_ms = msec(host);
  from = last = seconds(host);
  for (;;) {
    /* One tick: work, then wait for the next one. */
    const int settled = last - from > 2;
    const int64_t now = busy < t.tick ? busy : t.tick;
    execute(host, now);
    ahead += t.tick - now;
    while (ahead > 0) {
      int64_t passed = 0;
      if (settled) passed = idle(host, start, &t, ahead, &run, &slept, &sleeps);
      if (passed == 0) { /* the remainder is executed, as the guest's own idle loop */
        passed = ahead < 200 ? ahead : 200;
        execute(host, passed);
      }
      ahead -= passed;
    }
    t.instructions += t.tick;
    if (++t.ticks_of_second == hz) {
      t.ticks_of_second = 0;
      calibrate(&t, msec(host));
    }
    last = seconds(host);
    if (last - from < warm_up_s) {
      slept = run.late_us = 0;
      sleeps = 0;
      first = last;
      used = cpu(host);
      continue;
    }
    ++run.ticks;
    skew = (last - first - (double)run.ticks / hz) * 1e3;
    if (skew < 0) skew = -skew;
    if (skew > run.skew_ms) run.skew_ms = skew;
    if (last - first >= measured_s) break;
  }
  run.hz = (double)run.ticks / (last - first);
  run.idle = slept / (last - first);
  run.cpu = (cpu(host) - used) / (last - first);
  if (sleeps != 0) run.late_us /= (double)sleeps;
  return run;
}

/* --- the throttle ---------------------------------------------------------------------------- */

/* sim_throt_svc. At full speed a, a rate of d is reached by sleeping s milliseconds after every
 * a d s / (1000 (a - d)) instructions, if a sleep takes as long as it says. */
simh_throttle_run simh_run_throttle(const simh_host* host, const simh_start* start, double rate,
                                    double calibrating_s, double measured_s) {
  simh_throttle_run run = {0, 0, 0, 0};
  double from, first, used, checked, done = 0, done_before = 0;
  int64_t wait;
  uint32_t length = start->sleep_min_ms == 0 ? 1 : start->sleep_min_ms;

  from = seconds(host);
  while (seconds(host) - from < calibrating_s) {
    execute(host, 10000);
    done += 10000;
  }
  run.full_speed = done / (seconds(host) - from);
  if (run.full_speed <= rate) return run;
  for (;;) {
    wait = (int64_t)(run.full_speed * rate * length / (1000 * (run.full_speed - rate)));
    if (wait >= 50) break;
    length += start->sleep_increment_ms == 0 ? 1 : start->sleep_increment_ms;
  }
  run.sleep_ms = length;

  sleep_ms(host, 1); /* to a tick */
  first = checked = seconds(host);
  used = cpu(host);
  done = 0;
  for (;;) {
    double now;
    execute(host, wait);
    done += (double)wait;
    if (host->throttle != NULL) {
      host->throttle(host->context, (double)wait, rate);
    } else {
      sleep_ms(host, length);
    }
    now = seconds(host);
    if (now - first >= measured_s) {
      run.rate = done / (now - first);
      run.cpu = (cpu(host) - used) / (now - first);
      return run;
    }
    if (now - checked >= 10) { /* corrected only where it is far off */
      const double reached = (done - done_before) / (now - checked);
      if (reached < rate * 0.95 || reached > rate * 1.05) {
        wait = (int64_t)((double)wait * rate / reached);
        if (wait < 1) wait = 1;
      }
      checked = now;
      done_before = done;
    }
  }
}
