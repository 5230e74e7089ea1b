/* punctual in simh: the functions of sim_timer.c that tell the time and sleep.
 *
 * The first group has the names and signatures that sim_timer.c has, for both of its builds; the
 * second is what its asynchronous build, its idle loop and its throttle can ask for beyond.
 * README.md says which lines of sim_timer.c they replace. Any thread may call them. */
#ifndef PUNCTUAL_SIMH_H
#define PUNCTUAL_SIMH_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* --- as in sim_timer.c ---------------------------------------------------------------------- */

/* Milliseconds of a clock that is never set; wraps after 49.7 days, as callers expect. */
unsigned int sim_os_msec(void);

/* Sleeps, and answers how many milliseconds it took. What is lost in rounding to whole ones is
 * carried to the next answer of the same thread: their sum is the time slept. */
unsigned int sim_os_ms_sleep(unsigned int msec);

/* Once, at the start: answers the shortest sleep in milliseconds, 1. Takes 4 ms where the kernel
 * is good, at most 50 ms where its sleeps end on ticks of 4 ms, and 250 ms on longer ones. */
unsigned int sim_os_ms_sleep_init(void);

/* Without SIM_ASYNCH_IO: nobody can cut it short. */
unsigned int sim_idle_ms_sleep(unsigned int msec);

/* --- with SIM_ASYNCH_IO ---------------------------------------------------------------------- */

/* The body of sim_idle_ms_sleep: sleeps until the time is up, `wake` is signalled, or `pending`
 * says that there is something to do. `waiting` is true meanwhile (sim_idle_wait).
 * Answers the milliseconds, as above; `woken` is set to whether it was cut short. */
unsigned int punctual_simh_idle(pthread_mutex_t* lock, pthread_cond_t* wake, volatile int* waiting,
                                int (*pending)(void), unsigned int msec, int* woken);

/* pthread_cond_timedwait, but on time: for _timer_thread, without taking half a sleep off its due
 * time. The last microseconds are spun with the mutex held, at most half a millisecond. */
int punctual_simh_timedwait(pthread_cond_t* wake, pthread_mutex_t* lock,
                            const struct timespec* due);

/* --- in nanoseconds -------------------------------------------------------------------------- */

int64_t punctual_simh_now_ns(void);

/* Sleeps, and answers how long it took: for sim_idle, which knows when its next event is. */
int64_t punctual_simh_sleep_ns(int64_t length);

/* The shortest sleep that the kernel itself can do, and the step in which its sleeps grow (0 if
 * they have none): what the host is like, where sim_os_ms_sleep_init says what simh may do. */
int64_t punctual_simh_kernel_floor_ns(void);
int64_t punctual_simh_kernel_step_ns(void);

/* For sim_throt_svc: sleeps until `instructions` more would have taken their time at `rate` a
 * second, counted from the call before. A delay of up to 100 ms is caught up with. Answers the
 * milliseconds. */
unsigned int punctual_simh_throttle(double instructions, double rate);

#if defined(__cplusplus)
}
#endif

#endif
