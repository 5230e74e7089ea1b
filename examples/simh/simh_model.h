/* What simh does with the time that its host gives it, and nothing else of simh: the probing at the
 * start, the calibration of instructions against the clock, the idle loop under a 60 Hz guest
 * clock, and the throttle. Written anew from the description of sim_timer.c, to be measured with
 * one host or another: a real one, with its own sleep or with punctual's, or a simulated one.
 *
 * Not here: catch-up ticks, asynchronous clocks, more than one timer. */
#ifndef SIMH_MODEL_H
#define SIMH_MODEL_H

#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* A host, as simh sees it. `context` is handed to each function. The last four may be NULL: then
 * there is only what sim_timer.c itself asks of a host, and no figure for the CPU. */
typedef struct simh_host {
  void* context;
  uint32_t (*msec)(void* context);                      /* sim_os_msec */
  uint32_t (*ms_sleep)(void* context, uint32_t msec);   /* sim_idle_ms_sleep */
  void (*execute)(void* context, int64_t instructions); /* the simulated processor */
  int64_t (*now_ns)(void* context);                     /* true time, to measure by */
  uint32_t (*floor_ms)(void* context);                  /* instead of probing */
  int64_t (*sleep_ns)(void* context, int64_t length);   /* idling to the nanosecond */
  uint32_t (*throttle)(void* context, double instructions, double rate);
  int64_t (*cpu_ns)(void* context); /* CPU time of this process, to measure by */
} simh_host;

/* What the start finds out: _compute_minimum_sleep and sim_timer_init. */
typedef struct simh_start {
  uint32_t sleep_min_ms, sleep_increment_ms, clock_resolution_ms;
  uint32_t tick_hz; /* the fastest guest clock that the host can follow; 0: cannot idle at all */
  double took_s;
} simh_start;
simh_start simh_probe(const simh_host* host);

/* A guest with a clock of `hz`, that works for `busy` instructions at each tick and then idles. */
typedef struct simh_clock_run {
  uint64_t ticks;
  double hz;      /* ticks a second, from the first to the last one measured */
  double skew_ms; /* the most that a tick was away from where it belongs */
  double idle;    /* share of the time that was slept */
  double late_us; /* mean of how much longer than asked the sleeps took */
  double cpu;     /* share of one processor, while measured */
} simh_clock_run;
simh_clock_run simh_run_clock(const simh_host* host, const simh_start* start, int32_t hz,
                              int64_t busy, double warm_up_s, double measured_s);

/* A guest that never idles, held at `rate` instructions a second. */
typedef struct simh_throttle_run {
  double rate;       /* instructions a second, measured */
  double full_speed; /* without the throttle */
  uint32_t sleep_ms; /* of each sleep */
  double cpu;        /* share of one processor, while measured */
} simh_throttle_run;
simh_throttle_run simh_run_throttle(const simh_host* host, const simh_start* start, double rate,
                                    double calibrating_s, double measured_s);

#if defined(__cplusplus)
}
#endif

#endif
