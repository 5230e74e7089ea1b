/* What a simulator gets from its host's sleep, and what it gets from punctual: simh's start, its 60
 * Hz guest clock while the guest idles, and its throttle, with the host's own calls ("own"), with
 * punctual behind the same names ("ms"), and with the calls in nanoseconds ("ns").
 *
 *   simh_clock                      all of it, about four minutes
 *   simh_clock --short              about forty seconds; the figures are rougher
 *   simh_clock own ns --clock       only these ways; --start, --clock, --throttle: only these parts
 *   simh_clock --check              ends with 1 where "ns" is not as good as its README says
 */
#include "punctual_simh.h"
#include "simh_model.h"

#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* --- the simulated processor ----------------------------------------------------------------- */

static volatile uint32_t result_of_execution;

/* One instruction is a multiplication and an addition that need the one before. */
static void execute(void* context, int64_t instructions) {
  uint32_t state = result_of_execution;
  (void)context;
  while (instructions-- > 0) {
    state = state * 1664525u + 1013904223u;
#if defined(__GNUC__)
    __asm__ volatile("" : "+r"(state)); /* or a compiler finds out what the loop computes */
#endif
  }
  result_of_execution = state;
}

/* --- the host's own calls, as sim_timer.c makes them ------------------------------------------ */

static uint32_t own_msec(void* context) {
  struct timeval now;
  (void)context;
  gettimeofday(&now, NULL);
  return (uint32_t)now.tv_sec * 1000 + (uint32_t)now.tv_usec / 1000;
}

static uint32_t own_sleep(void* context, uint32_t length) {
  const uint32_t from = own_msec(context);
  struct timespec t;
  t.tv_sec = (time_t)(length / 1000);
  t.tv_nsec = (long)(length % 1000) * 1000000;
  nanosleep(&t, NULL);
  return own_msec(context) - from;
}

static int64_t now_ns(void* context) {
  struct timespec t;
  (void)context;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t cpu_ns(void* context) {
  struct timespec t;
  (void)context;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- punctual's ------------------------------------------------------------------------------ */

static uint32_t punctual_msec(void* context) { return (void)context, sim_os_msec(); }
static uint32_t punctual_sleep(void* context, uint32_t length) {
  return (void)context, sim_idle_ms_sleep(length);
}
static uint32_t punctual_floor(void* context) { return (void)context, sim_os_ms_sleep_init(); }
static int64_t punctual_sleep_ns(void* context, int64_t length) {
  return (void)context, punctual_simh_sleep_ns(length);
}
static uint32_t punctual_throttle(void* context, double instructions, double rate) {
  return (void)context, punctual_simh_throttle(instructions, rate);
}

static const struct {
  const char* name;
  simh_host host;
} ways[] = {
    {"own", {NULL, own_msec, own_sleep, execute, now_ns, NULL, NULL, NULL, cpu_ns}},
    {"ms",
     {NULL, punctual_msec, punctual_sleep, execute, now_ns, punctual_floor, NULL, NULL, cpu_ns}},
    {"ns",
     {NULL, punctual_msec, punctual_sleep, execute, now_ns, punctual_floor, punctual_sleep_ns,
      punctual_throttle, cpu_ns}},
};
enum { way_count = sizeof ways / sizeof ways[0] };

/* --- the table ------------------------------------------------------------------------------- */

/* What --check expects. A short run has 120 guest ticks in it: one stall of a busy machine that
 * the simulator has not yet caught up with is worth some percent. */
typedef struct bounds {
  double clock_percent, throttle_percent, start_ms, start_with_long_ticks_ms;
} bounds;
static const bounds of_long_run = {0.1, 1, 50, 250}, of_short_run = {5, 5, 100, 500};

static int missed = 0;
static void check(double value, double most, const char* what) {
  if (value >= -most && value <= most) return;
  printf("MISSED: %s: %.4f, and at most %.4f is promised\n", what, value, most);
  ++missed;
}

/* Whether the kernel's own sleeps end on ticks of more than 5 ms: it says so itself. */
static int has_long_ticks(void) {
  struct timespec step;
  return clock_getres(CLOCK_MONOTONIC, &step) == 0 && (step.tv_sec > 0 || step.tv_nsec > 5000000);
}

static int is_judged(const simh_host* host) { return host->sleep_ns != NULL; } /* "ns" */

static simh_start show_start(const char* way, const simh_host* host, const bounds* judge) {
  const int64_t used = cpu_ns(NULL);
  const simh_start start = simh_probe(host);
  const double cpu = (double)(cpu_ns(NULL) - used) / 1e9 / start.took_s;
  static int shown = 0; /* "ns" starts as "ms" does, and what that found is still there */
  if (host->floor_ms != NULL && shown++ != 0) return start;
  printf(
      "%-3s  start     %9.1f ms  shortest sleep %u ms, step %u ms, clock %u ms, guest clocks up "
      "to %u Hz; CPU %.1f %%\n",
      way, start.took_s * 1e3, start.sleep_min_ms, start.sleep_increment_ms,
      start.clock_resolution_ms, start.tick_hz, cpu * 100);
  if (host->floor_ms != NULL) {
    const double floor_ms = (double)punctual_simh_kernel_floor_ns() / 1e6;
    const double step_ms = (double)punctual_simh_kernel_step_ns() / 1e6;
    printf("%-3s  kernel    %9.3f ms  is its shortest sleep, in steps of %.3f ms\n", way, floor_ms,
           step_ms);
    if (judge != NULL) {
      check(start.took_s * 1e3,
            has_long_ticks() ? judge->start_with_long_ticks_ms : judge->start_ms,
            "ms of the start");
    }
  }
  return start;
}

static void show_clock(const char* way, const simh_host* host, const simh_start* start,
                       double warm_up_s, double measured_s, const bounds* judge) {
  const simh_clock_run run = simh_run_clock(host, start, 60, 20000, warm_up_s, measured_s);
  const double off = (run.hz / 60 - 1) * 100;
  printf(
      "%-3s  clock     %9.4f Hz  %+8.4f %%  ticks up to %.1f ms off, idle %.1f %%, sleeps %.1f us "
      "too long; CPU %.1f %%\n",
      way, run.hz, off, run.skew_ms, run.idle * 100, run.late_us, run.cpu * 100);
  if (judge != NULL && is_judged(host))
    check(off, judge->clock_percent, "percent of the guest's clock");
}

static void show_throttle(const char* way, const simh_host* host, const simh_start* start,
                          double rate, double calibrating_s, double measured_s,
                          const bounds* judge) {
  const simh_throttle_run run = simh_run_throttle(host, start, rate, calibrating_s, measured_s);
  const double off = (run.rate / rate - 1) * 100;
  if (run.sleep_ms == 0) {
    printf("%-3s  throttle  %9.0f /s  is out of reach: %.0f a second at full speed\n", way, rate,
           run.full_speed);
    return;
  }
  printf("%-3s  throttle  %9.0f /s  %+8.4f %%  of %.0f, sleeps of %u ms; CPU %.1f %%\n", way,
         run.rate, off, rate, run.sleep_ms, run.cpu * 100);
  if (judge != NULL && is_judged(host))
    check(off, judge->throttle_percent, "percent of the throttle");
}

static int usage(const char* word) {
  fprintf(stderr,
          "simh_clock: '%s' is none of own, ms, ns, --start, --clock, --throttle, --short, "
          "--check\n",
          word);
  return 2;
}

int main(int argc, char** argv) {
  enum { start_part = 1, clock_part = 2, throttle_part = 4 };
  int chosen[way_count] = {0}, parts = 0, shortened = 0, checked = 0, any_way = 0, i, w;
  const bounds* judge = NULL;
  double measured_s;
  for (i = 1; i < argc; ++i) {
    int known = 0;
    for (w = 0; w < way_count; ++w) {
      if (strcmp(argv[i], ways[w].name) == 0) known = chosen[w] = any_way = 1;
    }
    if (known) continue;
    if (strcmp(argv[i], "--start") == 0) {
      parts |= start_part;
    } else if (strcmp(argv[i], "--clock") == 0) {
      parts |= clock_part;
    } else if (strcmp(argv[i], "--throttle") == 0) {
      parts |= throttle_part;
    } else if (strcmp(argv[i], "--short") == 0) {
      shortened = 1;
    } else if (strcmp(argv[i], "--check") == 0) {
      checked = 1;
    } else {
      return usage(argv[i]);
    }
  }
  if (parts == 0) parts = start_part | clock_part | throttle_part;
  if (checked) judge = shortened ? &of_short_run : &of_long_run;
  measured_s = shortened ? 2 : 20;
  setvbuf(stdout, NULL, _IOLBF, 0);

  for (w = 0; w < way_count; ++w) {
    static const double rates[] = {1e5, 1e6, 1e7};
    const char* const way = ways[w].name;
    const simh_host* const host = &ways[w].host;
    simh_start start;
    if (any_way && !chosen[w]) continue;
    start = (parts & start_part) != 0 ? show_start(way, host, judge) : simh_probe(host);
    if ((parts & clock_part) != 0) {
      show_clock(way, host, &start, 5, measured_s, judge);
    }
    for (i = 0; i < 3 && (parts & throttle_part) != 0; ++i) {
      show_throttle(way, host, &start, rates[i], shortened ? 0.3 : 3, measured_s, judge);
    }
  }
  return missed != 0;
}
