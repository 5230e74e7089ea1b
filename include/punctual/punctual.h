// punctual for C: wait until an instant, never before it, and as little after it as the machine
// allows.
//
// The face of the library for C99 and everything that calls C. Nothing is defined here: link
// CMake's target `punctual::c` or pkg-config's `punctual-c`, or let one C++20 file of yours say
// `#include <punctual/c/punctual.ipp>`.
//
//   Times     int64_t nanoseconds, instants on the steady clock (`punctual_now_ns`), unless a name
//             says otherwise. Every value has a meaning: zero and less return at once, INT64_MAX is
//             for ever.
//   Answers   Waits answer a punctual_outcome, ≥ 0; everything else PUNCTUAL_OK or a length, ≥ 0. A
//             punctual_status below zero says that the call did nothing: NULL for a handle, a
//             structure without its size, an argument out of range.
//   Structs   begin with their size and may grow at their end. Set it, by the ..._INIT macro or by
//             hand, before you hand one over; what this version of the library does not know is set
//             to zero. Where a structure is an answer, NULL means that it is not wanted.
//   Promises  Those of the C++ face: no wait is early; none is a cancellation point; errno, signal
//             mask and timer slack are left as they were; a wait allocates nothing and locks
//             nothing, and may be made in a signal handler.
//   Threads   Functions without a handle are safe from any thread, and each thread learns for
//             itself. A sleeper and a pacer belong to one thread at a time; a waker to all.
#ifndef PUNCTUAL_PUNCTUAL_H
#define PUNCTUAL_PUNCTUAL_H

#include <punctual/version.hpp>  // three macros, good C

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/// Why a wait ended.
typedef enum punctual_outcome {
  PUNCTUAL_REACHED = 0,       ///< the deadline's own clock was read at or after the deadline
  PUNCTUAL_ALREADY_PAST = 1,  ///< it was so at the call: nothing was waited for
  PUNCTUAL_WOKEN = 2,         ///< a waker or the caller's own blocking call ended it
  PUNCTUAL_STOPPED = 3,       ///< the pacer was stopped
  PUNCTUAL_GAVE_UP = 4        ///< the clock stands still, or the call may not wait in any way left
} punctual_outcome;

/// What became of a call that is no wait.
typedef enum punctual_status {
  PUNCTUAL_OK = 0,
  PUNCTUAL_BAD_ARGUMENT = -1,  ///< nothing was done: NULL, no size, or out of range
  PUNCTUAL_NO_MEMORY = -2      ///< nothing was done
} punctual_status;

/// The name of an outcome or a status, for a log. Never NULL.
const char* punctual_name(int outcome_or_status);

/// The version of the library that runs, as major * 1000000 + minor * 1000 + patch.
int punctual_version(void);

// --- plain waits -----------------------------------------------------------------------------

/// What one wait did and where its time went.
typedef struct punctual_receipt {
  size_t size;
  int64_t late_ns;         ///< return − deadline, ≥ 0; a lower bound for PUNCTUAL_ALREADY_PAST
  int64_t left_ns;         ///< time that remained if woken, stopped or given up, else 0
  int64_t blocked_ns;      ///< time in native waits, ≥ 0
  int64_t spun_ns;         ///< time in the spin, ≥ 0
  int64_t overshoot_ns;    ///< of the last native wait: wake-up − what it asked for
  int32_t why;             ///< a punctual_outcome, what the wait also answered
  int32_t error;           ///< the platform's code if a native wait was refused, else 0
  uint32_t native_waits;   ///< blocking calls made
  uint32_t interruptions;  ///< of these, ended early: by a signal handler, or for no reason
  uint32_t gaps;           ///< times the thread was descheduled while it spun
} punctual_receipt;
#define PUNCTUAL_RECEIPT_INIT \
  { sizeof(punctual_receipt), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/// The steady clock, on which deadlines are, and the wall clock in nanoseconds since 1970.
int64_t punctual_now_ns(void);
int64_t punctual_wall_now_ns(void);

/// Blocks until just before the deadline, then spins: as little after it as this machine allows.
///
/// @param receipt  NULL, or a structure whose size is set.
/// @return  A punctual_outcome, or PUNCTUAL_BAD_ARGUMENT for a receipt without its size: then
///          nothing was waited for.
/// Cost     At most the learned margin of one core. A past deadline makes no system call.
int punctual_sleep_until_ns(int64_t deadline_ns, punctual_receipt* receipt);
/// The same for a length from now on. Microseconds and milliseconds saturate instead of
/// overflowing.
int punctual_sleep_for_ns(int64_t length_ns, punctual_receipt* receipt);
int punctual_sleep_for_us(int64_t length_us, punctual_receipt* receipt);
int punctual_sleep_for_ms(int64_t length_ms, punctual_receipt* receipt);
/// Never spins: as cheap as the kernel's own sleep, and as late.
int punctual_block_until_ns(int64_t deadline_ns, punctual_receipt* receipt);
int punctual_block_for_ns(int64_t length_ns, punctual_receipt* receipt);
/// Never blocks: one core all the way. For a few microseconds.
int punctual_spin_until_ns(int64_t deadline_ns, punctual_receipt* receipt);
int punctual_spin_for_ns(int64_t length_ns, punctual_receipt* receipt);
/// On the wall clock: steps of it end the wait at once, or prolong it.
int punctual_sleep_until_wall_ns(int64_t deadline_wall_ns, punctual_receipt* receipt);
int punctual_block_until_wall_ns(int64_t deadline_wall_ns, punctual_receipt* receipt);

/// A blocking call of the caller's: poll, select, an event queue. Blocks at most until the
/// handover, and answers other than 0 if an event came; one that only knows milliseconds rounds
/// down.
typedef int (*punctual_blocking_call)(void* context, int64_t handover_ns);

/// Waits with such a call as the coarse part; PUNCTUAL_WOKEN if an event came.
int punctual_sleep_until_by_ns(int64_t deadline_ns, punctual_blocking_call block, void* context,
                               punctual_receipt* receipt);

/// The margin that a plain wait of this length would start with in this thread, ns ≥ 0.
int64_t punctual_margin_ns(int64_t length_ns);

// --- tuning, and sleepers with a tuning of their own -----------------------------------------

/// How punctual, for how much CPU. Out of range counts as the nearest value in range.
typedef struct punctual_tuning {
  size_t size;
  double punctuality;     ///< share of waits that the kernel may not spoil, 0.5 … 0.9999
  double cpu_budget;      ///< share of the time that may be spun, 0 … 1
  int64_t max_margin_ns;  ///< the longest spin that one wait may plan
  int32_t use_counter;    ///< 0: spin on the clock alone
  int32_t tighten_slack;  ///< 0: leave the thread's timer slack alone
} punctual_tuning;

/// Fills in the defaults, and the size.
int punctual_default_tuning(punctual_tuning* how);
/// Sets the tuning of the functions without a handle, in every thread from its next wait on. NULL
/// for the defaults.
int punctual_set_default_tuning(const punctual_tuning* how);

typedef struct punctual_sleeper punctual_sleeper;

/// @param how  NULL for the defaults.
int punctual_sleeper_create(const punctual_tuning* how, punctual_sleeper** made);
void punctual_sleeper_destroy(punctual_sleeper* sleeper);
int punctual_sleeper_sleep_until_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                    punctual_receipt* receipt);
int punctual_sleeper_sleep_for_ns(punctual_sleeper* sleeper, int64_t length_ns,
                                  punctual_receipt* receipt);
int punctual_sleeper_block_until_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                    punctual_receipt* receipt);
int punctual_sleeper_spin_until_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                   punctual_receipt* receipt);
int punctual_sleeper_calibrate_ns(punctual_sleeper* sleeper, int64_t budget_ns);
int punctual_sleeper_reset(punctual_sleeper* sleeper);
int64_t punctual_sleeper_margin_ns(const punctual_sleeper* sleeper, int64_t length_ns);
/// For event loops that want the pieces: where a blocking call of their own should end, and
/// afterwards when it did return, not ended by an event.
int punctual_sleeper_handover_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                 int64_t* handover_ns);
int punctual_sleeper_observe_ns(punctual_sleeper* sleeper, int64_t handover_ns, int64_t woke_ns);
/// Explains the margins; see `punctual_calibration_text` for the buffer and the answer.
int64_t punctual_sleeper_text(const punctual_sleeper* sleeper, char* buffer, size_t size);

// --- waits that another thread can end -------------------------------------------------------

typedef struct punctual_waker punctual_waker;

int punctual_waker_create(punctual_waker** made);
/// Not before every wait on it has returned.
void punctual_waker_destroy(punctual_waker* waker);
/// Ends all waits on it, and those to come until the reset. No wake-up is lost.
/// Signals  May be called from a handler where `punctual_waker_signal_safe` says so.
int punctual_waker_wake(punctual_waker* waker);
int punctual_waker_reset(punctual_waker* waker);
/// 1 if it was woken since the last reset, else 0.
int punctual_waker_pending(const punctual_waker* waker);
int punctual_waker_signal_safe(void);

/// As the plain waits, or until the waker is woken: PUNCTUAL_WOKEN, also where the deadline is
/// past.
int punctual_sleep_until_or_woken_ns(punctual_waker* waker, int64_t deadline_ns,
                                     punctual_receipt* receipt);
int punctual_sleep_for_or_woken_ns(punctual_waker* waker, int64_t length_ns,
                                   punctual_receipt* receipt);
int punctual_block_until_or_woken_ns(punctual_waker* waker, int64_t deadline_ns,
                                     punctual_receipt* receipt);
int punctual_block_for_or_woken_ns(punctual_waker* waker, int64_t length_ns,
                                   punctual_receipt* receipt);

// --- pacers ----------------------------------------------------------------------------------

/// What becomes of deadlines that were missed.
typedef enum punctual_missed {
  PUNCTUAL_SKIP = 0,    ///< whole periods are dropped and counted, the grid stays: robots, games
  PUNCTUAL_BURST = 1,   ///< late beats come at once, at most max_burst in a row: audio, protocols
  PUNCTUAL_REPHASE = 2  ///< whole periods are dropped and counted, and a new grid starts
} punctual_missed;

/// One beat of a pacer, or why there was none.
typedef struct punctual_beat {
  size_t size;
  uint64_t index;     ///< of this deadline since the pacer began; dropped ones count
  uint64_t skipped;   ///< deadlines dropped since the beat before this one
  uint64_t steps;     ///< periods since the beat before: skipped + 1; 0 where no beat was delivered
  int64_t due_ns;     ///< the deadline
  int64_t late_ns;    ///< return − due, ≥ 0, from a precise reading
  int64_t busy_ns;    ///< the caller's own time since the beat before this one
  int32_t delivered;  ///< 1, or 0 if the wait was woken or stopped, gave up, or nothing was due
  int32_t why;        ///< the outcome of the wait, what the call also answered
} punctual_beat;
#define PUNCTUAL_BEAT_INIT \
  { sizeof(punctual_beat), 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct punctual_pacer punctual_pacer;

/// @param num, den   Beats in seconds, exactly: 60000, 1001. The period is from 1 ns to 292 years.
/// @param policy     A punctual_missed.
/// @param max_burst  Late beats in a row under PUNCTUAL_BURST; 0 for the default, three.
/// @param how        NULL for the defaults.
int punctual_pacer_create(int64_t num, int64_t den, int policy, uint32_t max_burst,
                          const punctual_tuning* how, punctual_pacer** made);
void punctual_pacer_destroy(punctual_pacer* pacer);

/// Waits for the next beat. The first call sets the anchor and returns at once, with beat 0.
///
/// @return  PUNCTUAL_REACHED or PUNCTUAL_ALREADY_PAST with a beat; else there was none, and it is
///          not used up.
int punctual_pacer_next(punctual_pacer* pacer, punctual_beat* beat, punctual_receipt* receipt);
int punctual_pacer_next_or_woken(punctual_pacer* pacer, punctual_waker* waker, punctual_beat* beat,
                                 punctual_receipt* receipt);
/// Delivers the next beat if it is due, and never waits. Where none is due the answer is
/// PUNCTUAL_GAVE_UP, and `left_ns` of the receipt is the time until one is.
int punctual_pacer_poll(punctual_pacer* pacer, punctual_beat* beat, punctual_receipt* receipt);

/// Orders for the pacer, from any thread and from signal handlers; they hold from the next deadline
/// on.
int punctual_pacer_set_rate(punctual_pacer* pacer, int64_t num, int64_t den);
/// The same, and from then on only the kernel waits: for windows in the background.
int punctual_pacer_set_background(punctual_pacer* pacer, int64_t num, int64_t den);
int punctual_pacer_set_unlimited(punctual_pacer* pacer);
/// Moves the grid, later if positive, by at most 1/64 of a period a beat.
int punctual_pacer_nudge_ns(punctual_pacer* pacer, int64_t by_ns);
int punctual_pacer_stop(punctual_pacer* pacer);

/// The rest belongs to the owner's thread.
int punctual_pacer_restart(punctual_pacer* pacer);
int punctual_pacer_pause(punctual_pacer* pacer);
int punctual_pacer_resume(punctual_pacer* pacer);
/// Puts the grid on an instant of the steady or the wall clock; the next deadline moves by half a
/// period at most.
int punctual_pacer_align_ns(punctual_pacer* pacer, int64_t on_ns);
int punctual_pacer_align_wall_ns(punctual_pacer* pacer, int64_t on_wall_ns);
int punctual_pacer_calibrate_ns(punctual_pacer* pacer, int64_t budget_ns);
/// When the next beat is due; INT64_MIN if it will be delivered at once.
int punctual_pacer_deadline_ns(punctual_pacer* pacer, int64_t* deadline_ns);
/// The rate that was last set; 1, 0 if there is no limit.
int punctual_pacer_rate(const punctual_pacer* pacer, int64_t* num, int64_t* den);
/// Beats a second over the last one to two seconds, and deadlines dropped so far.
int punctual_pacer_achieved(const punctual_pacer* pacer, double* hertz, uint64_t* dropped);
/// What a bug report about a loop needs; see `punctual_calibration_text` for the buffer and the
/// answer.
int64_t punctual_pacer_text(const punctual_pacer* pacer, char* buffer, size_t size);

// --- statistics ------------------------------------------------------------------------------

/// A histogram of lengths in fixed memory: count, ends and mean are exact, quantiles within 3 %.
typedef struct punctual_statistics punctual_statistics;

int punctual_statistics_create(punctual_statistics** made);
void punctual_statistics_destroy(punctual_statistics* all);
int punctual_statistics_record_ns(punctual_statistics* all, int64_t length_ns);
/// Adds all that another has counted, or how late a pacer's beats came, or how busy its caller was.
int punctual_statistics_merge(punctual_statistics* all, const punctual_statistics* other);
int punctual_statistics_merge_lateness(punctual_statistics* all, const punctual_pacer* pacer);
int punctual_statistics_merge_busy(punctual_statistics* all, const punctual_pacer* pacer);
int punctual_statistics_reset(punctual_statistics* all);
/// How many were recorded; 0 for NULL.
uint64_t punctual_statistics_count(const punctual_statistics* all);
/// The mean, and the length that the share q of all does not exceed: 0 is the shortest, 1 the
/// longest.
int punctual_statistics_mean_ns(const punctual_statistics* all, int64_t* mean_ns);
int punctual_statistics_quantile_ns(const punctual_statistics* all, double q, int64_t* length_ns);
/// A picture for a terminal, and the same for a program; see `punctual_calibration_text`.
int64_t punctual_statistics_text(const punctual_statistics* all, char* buffer, size_t size);
int64_t punctual_statistics_json(const punctual_statistics* all, char* buffer, size_t size);

// --- calibration -----------------------------------------------------------------------------

/// What this machine can do, as one thread has measured it. The texts are constants.
typedef struct punctual_calibration {
  size_t size;
  const char* platform;
  const char* native_call;
  const char* counter_reason;  ///< what the counter is, or why it is not used
  double counter_mhz;
  double clock_read_ns;
  double coarse_read_ns;
  double counter_read_ns;
  double past_deadline_ns;          ///< a whole wait whose deadline is long past
  int64_t native_wait_cpu_ns;       ///< CPU time of one native wait
  int64_t shortest_native_wait_ns;  ///< elapsed, asked for 1 ns
  int64_t slack_ns;                 ///< of the calling thread; negative where there is none
  int64_t tick_ns;                  ///< native waits end on ticks of this period; 0: they do not
  int64_t took_ns;                  ///< 0: never calibrated; the rest is from ordinary waits
  int32_t extra_ticks;
  int32_t counter_used;
  uint32_t native_waits;  ///< made while measuring
} punctual_calibration;

/// The time that a calibration needs where sleeps are not bound to ticks.
#define PUNCTUAL_CALIBRATION_BUDGET_NS INT64_C(20000000)

/// Measures how late this kernel wakes sleepers. Optional: the first waits learn the same.
/// @param budget_ns  Extended once, to 12.5 times as much, where ticks of 4 ms or more are seen.
int punctual_calibrate_ns(int64_t budget_ns, punctual_calibration* found);
/// The process's last calibration, or what this thread has learned so far.
int punctual_current_calibration(punctual_calibration* last);

/// Explains it in lines for people, and as a JSON object.
///
/// @param buffer  NULL, or where `size` bytes are: as much as fits, and a zero.
/// @return  The length of all of it, without the zero, as snprintf; or a punctual_status.
int64_t punctual_calibration_text(char* buffer, size_t size);
int64_t punctual_calibration_json(char* buffer, size_t size);

#if defined(__cplusplus)
}
#endif

#endif
