// One thread's sleeper: block until the handover, spin the rest, confirm on the clock, learn.
//
// Layer L3. Everything else that waits goes through `basic_sleeper::wait`: the plain waits here,
// the interruptible ones, a caller's own blocking call. It knows the platform concept, the planner
// that says where the kernel's part should end, and the spinner; it knows no system.
//
// One wait:
//   1. Coarse clock, then precise clock: past? Nothing is done.
//   2. While the planner says so: one native wait to an absolute instant; learn its overshoot.
//   3. Spin to the deadline. The last reading of its own clock, at or after it, ends the wait.
#pragma once

#include <punctual/estimate/margin.hpp>
#include <punctual/platform/native.hpp>
#include <punctual/published.hpp>
#include <punctual/receipt.hpp>
#include <punctual/spin/spinner.hpp>
#include <punctual/time.hpp>
#include <punctual/time_left.hpp>
#include <punctual/tuning.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace punctual {

/// The kinds of native wait that are learned apart: each has a lateness of its own.
enum class wait_kind : std::uint8_t {
  plain,   ///< a sleep on the monotonic clock
  wall,    ///< a sleep on the wall clock
  parked,  ///< a wait that another thread can end
  callers  ///< the caller's own blocking call
};

/// The clock that the instants of a kind of wait are on.
constexpr clock_kind clock_of(wait_kind kind) noexcept {
  return kind == wait_kind::wall ? clock_kind::realtime : clock_kind::monotonic;
}

/// Whether the kernel itself can wait on this clock; any other is looked at again after each wait.
template <class Clock>
inline constexpr bool is_kernel_clock =
    std::is_same_v<Clock, steady> || std::is_same_v<Clock, std::chrono::system_clock>;

/// The kind of plain wait that a kernel's clock takes.
template <class Clock>
inline constexpr wait_kind kind_of_clock =
    std::is_same_v<Clock, std::chrono::system_clock> ? wait_kind::wall : wait_kind::plain;

/// What a process has learned and hands to its threads.
struct process_memory {
  planner_seed plain;
  double ticks_per_ns = 0;
  std::uint64_t clock_read_ticks = 0;
};

/// The process's memory: written by `calibrate()`, else by a thread that has learned enough.
inline constinit published<process_memory> process_learned;

/// The process's default tuning, see `set_default_tuning`.
inline constinit published<tuning> default_tuning;

/// Fills in the receipt of a deadline that is already past, and says whether it is.
///
/// @param now  Set to a precise reading when the deadline lies ahead.
/// Cost  A coarse read for a deadline more than two kernel ticks past, else a precise one as well.
template <platform P>
PUNCTUAL_ALWAYS_INLINE bool is_past(const P& system, clock_kind on, instant deadline, receipt& did,
                                    instant& now) noexcept {
  now = system.coarse_now(on);  // never ahead of the precise clock
  if (now < deadline) {
    now = system.now(on);
    if (now < deadline) return false;
  }
  did.why = outcome::already_past;
  // Not `between`: this difference is never negative, only too large; asking less is measurable.
  const auto late =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(now.time_since_epoch().count()) -
                                static_cast<std::uint64_t>(deadline.time_since_epoch().count()));
  did.late = late < 0 ? nanoseconds::max() : nanoseconds{late};
  return true;
}

struct calibration;

/// Why the margin for one length is what it is.
struct margin_report {
  nanoseconds length;
  margin_explanation margin;
};

/// What one sleeper has learned, for people: see `to_text`.
struct sleeper_report {
  const char* platform;
  const char* native_call;
  bool counter_used;
  const char* counter_reason;
  double counter_mhz;
  nanoseconds slack;  ///< the thread's own; negative where there is none
  tuning how;
  std::array<margin_report, 6> margins;
};

/// Waits until instants, and learns how late this kernel wakes this thread.
///
/// Belongs to one thread at a time: no member may run in two threads at once. A signal handler may
/// wait on the sleeper that it interrupts: that wait is as precise, and learns nothing.
/// State: at most 4 KiB, no pointers, nothing to destroy.
template <platform P>
class basic_sleeper {
 public:
  constexpr explicit basic_sleeper(const tuning& how = {},
                                   P system = P()) noexcept requires std::default_initializable<P>
      : basic_sleeper(how, system, 0) {}
  constexpr basic_sleeper(const tuning& how, P system) noexcept
      requires(!std::default_initializable<P>)
      : basic_sleeper(how, system, 0) {}

  /// Blocks until just before the deadline, then spins: as little after it as this machine allows.
  ///
  /// @param deadline  A time point of any chrono clock. A `system_clock` one follows steps of the
  ///                  wall clock at once; any other clock is looked at again after each wait.
  /// @return  What the wait did; `late` ≥ 0.
  ///
  /// Guarantee  The deadline's own clock was read at or after the deadline, unless `gave_up`.
  /// Errors     A refused native wait is waited out by spinning, and `error` holds its code.
  ///            `gave_up` after 100 native waits, or 2000 looks at any other clock than the steady
  ///            and the system clock, between which the clock did not move at all: about 39 s.
  /// Signals    A handler may run half-way; the wait resumes towards the same instant.
  /// Cost       At most the margin of one core. A past deadline makes no system call.
  template <class Clock, class Duration>
  receipt sleep_until(const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
      noexcept(Clock::now())) {
    return on_its_clock(
        deadline,
        [this](clock_kind on, instant at) noexcept {
          return wait(kind_on(on), on, at, native_call(on), never);
        },
        never);
  }

  /// Blocks in the kernel only, and never spins: as cheap as a plain sleep, and as late.
  /// Errors  `gave_up` if the system refuses every way to block.
  template <class Clock, class Duration>
  receipt block_until(const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
      noexcept(Clock::now())) {
    return on_its_clock(
        deadline,
        [this](clock_kind on, instant at) noexcept {
          return block(on, at, native_call(on), never);
        },
        never);
  }

  /// Never blocks: spins all the way. Cost: one core until the deadline.
  template <class Clock, class Duration>
  receipt spin_until(const std::chrono::time_point<Clock, Duration>& deadline) noexcept(
      noexcept(Clock::now())) {
    return on_its_clock(
        deadline, [this](clock_kind on, instant at) noexcept { return spin_only(on, at); }, never);
  }

  /// The same for a length from now on. Zero, negative and NaN lengths return at once; the far end
  /// is for ever.
  template <class Rep, class Period>
  receipt sleep_for(const std::chrono::duration<Rep, Period>& length) noexcept {
    return forward_by(length, [this](instant at) { return sleep_until(at); });
  }
  template <class Rep, class Period>
  receipt block_for(const std::chrono::duration<Rep, Period>& length) noexcept {
    return forward_by(length, [this](instant at) { return block_until(at); });
  }
  template <class Rep, class Period>
  receipt spin_for(const std::chrono::duration<Rep, Period>& length) noexcept {
    return forward_by(length, [this](instant at) { return spin_until(at); });
  }

  /// Waits with the caller's own blocking call as the coarse part: poll, select, an event queue.
  ///
  /// @param block  `bool block(instant handover)`: blocks at most until the handover in whatever
  ///               the caller has, and returns true if an event came; the outcome is then `woken`.
  ///               It may be called several times in one wait. One that only knows milliseconds
  ///               rounds down: what is left of the last millisecond is a plain native wait,
  ///               without looking for events.
  /// Guarantee  As `sleep_until`. Exceptions of `block` pass through.
  /// Cost       As `sleep_until`; a `block` that does not block is called once a millisecond.
  template <class Block>
  requires std::is_invocable_r_v<bool, Block&, instant> receipt sleep_until(instant deadline,
                                                                            Block block)
  noexcept(noexcept(block(deadline))) {
    constexpr clock_kind on = clock_kind::monotonic;
    bool event = false;
    return wait(
        wait_kind::callers, on, deadline,
        [&](instant at, slack how) noexcept(noexcept(block(at))) {
          const instant asked = system_.now(on);
          event = block(at);
          if (event) return native_wait{native_end::woke, 0};
          const instant back = system_.now(on);
          const nanoseconds left = between(back, at);
          const nanoseconds took = between(asked, back);
          if (left <= nanoseconds::zero()) return native_wait{native_end::woke, 0};
          // Sooner than whole milliseconds: it was interrupted, and can look for events again.
          const bool whole = took >= between(asked, at) / blockers_grain * blockers_grain;
          if (left < blockers_grain && (whole || took < at_once)) {
            return system_.block_until(on, at, how);
          }
          if (took >= at_once) return native_wait{native_end::interrupted, 0};
          const native_wait pause = system_.block_until(on, later(back, blockers_grain), how);
          return native_wait{pause.how == native_end::refused ? pause.how : native_end::interrupted,
                             pause.error};
        },
        [&event]() noexcept { return event; });
  }

  /// The margin that a plain wait of this length would start with, ns, ≥ 0.
  nanoseconds margin(nanoseconds length) const noexcept {
    return planner(wait_kind::plain).margin(length);
  }

  /// Where the caller's own blocking call should end, for event loops that want the pieces.
  instant handover(instant deadline) noexcept {
    const in_use guard(in_use_);
    const instant now = system_.now(clock_kind::monotonic);
    if (guard.first()) {
      prepare();
      asked_ = now;
    }
    return later(deadline, -planner(wait_kind::callers).margin(between(now, deadline)));
  }

  /// Learns from such a call: `woke` is when it returned, not ended by an event.
  void observe(instant handover, instant woke) noexcept {
    const in_use guard(in_use_);
    if (guard.first() && is_lateness(between(handover, woke))) {
      planner(wait_kind::callers).woke(asked_, handover, woke);
    }
  }

  /// Measures on purpose, for at most `budget`: include punctual/calibration.hpp to call it.
  calibration calibrate(nanoseconds budget = std::chrono::milliseconds{20}) noexcept;

  /// What this sleeper knows without measuring anything, in the same form.
  calibration described() const noexcept;

  /// The margins and why; see `to_text`. Cost: some system calls.
  sleeper_report report() const noexcept {
    const counter_support counter = system_.counter_facts();
    const platform_facts facts = system_.facts();
    sleeper_report r{facts.name,
                     facts.native_call,
                     counter.usable && how_.use_counter,
                     how_.use_counter ? counter.reason : "tuning::use_counter is false",
                     rate_.ticks_per_ns() * 1e3,
                     facts.slack,
                     how_,
                     {}};
    const instant now = system_.now(clock_kind::monotonic);
    constexpr std::array<std::int64_t, 6> microseconds{100, 1000, 4000, 10'000, 16'667, 100'000};
    for (std::size_t i = 0; i < microseconds.size(); ++i) {
      const nanoseconds length = std::chrono::microseconds{microseconds[i]};
      r.margins[i] = {length,
                      planner(wait_kind::plain)
                          .explain(length, budget_.available(now), budget_.oversubscribed(now))};
    }
    return r;
  }

  /// Forgets everything that was learned; the next wait starts from the process's calibration.
  void reset() noexcept { retune(how_); }

  /// Replaces the tuning and forgets what was learned under the old one.
  /// @return false, and nothing is changed, in a signal handler that interrupted one of its waits.
  bool retune(const tuning& how) noexcept {
    const in_use guard(in_use_);
    if (!guard.first()) return false;
    basic_sleeper fresh(how, system_, 0);
    fresh.in_use_ = in_use_;  // a handler that comes half-way finds it in use all the time
    *this = fresh;
    return true;
  }

  /// The one wait that all others are made of. For layers above; most callers want `sleep_until`.
  ///
  /// @param kind    Whose lateness is learned.
  /// @param on      The clock that the deadline is on.
  /// @param native  `native_wait native(instant until, slack)`: one native wait of this kind. It
  ///                answers `interrupted` where it came back early for no reason that matters here.
  /// @param ended   Polled before, after and, in the spin, between reads; true ends the wait as
  ///                `woken`, also one whose deadline is past.
  template <class Native, class Ended>
  receipt wait(wait_kind kind, clock_kind on, instant deadline, Native native,
               Ended ended) noexcept(noexcept(native(deadline, slack::tight))) {
    receipt did;
    instant now;
    if (ended()) return woken(deadline, system_.now(on));
    if (is_past(system_, on, deadline, did, now)) return ended() ? woken(deadline, now) : did;
    return wait_ahead(kind, on, deadline, native, ended);
  }

  /// The same without a spin: as late as the kernel is.
  template <class Native, class Ended>
  receipt block(clock_kind on, instant deadline, Native native,
                Ended ended) noexcept(noexcept(native(deadline, slack::as_is))) {
    receipt did;
    instant now;
    if (ended()) return woken(deadline, system_.now(on));
    if (is_past(system_, on, deadline, did, now)) return ended() ? woken(deadline, now) : did;
    const bool wall = on == clock_kind::realtime;
    instant steadily = wall ? system_.now(clock_kind::monotonic) : now;
    pauses pause;
    while (now < deadline && !ended()) {
      const instant until = pause.from(deadline);
      const native_wait answer = native(until, slack::as_is);
      const instant after = system_.now(on);
      const nanoseconds took = passed(wall, steadily, after);
      pause.note(answer, after == now ? nanoseconds::zero() : took, between(after, until));
      ++did.native_waits;
      did.blocked += took;
      did.overshoot = between(until, after);
      if (answer.error != 0) did.error = answer.error;
      if (is_interruption(answer)) ++did.interruptions;
      now = after;
      if (answer.how == native_end::refused || pause.never_waits() || pause.frozen()) {
        did.why = outcome::gave_up;
        break;
      }
    }
    finish(did, deadline, now, ended());
    return did;
  }

  /// Waits on the deadline's own clock, whichever it is. For layers above.
  ///
  /// @param wait_until  `receipt wait_until(clock_kind, instant)`: waits, on a clock that the
  ///                    kernel knows, for all of it or for a slice.
  /// @param ended       As in `wait`.
  template <class Clock, class Duration, class Wait, class Ended>
  receipt on_its_clock(
      const std::chrono::time_point<Clock, Duration>& deadline, Wait wait_until,
      Ended ended) noexcept(noexcept(Clock::now()) && noexcept(wait_until(clock_kind::monotonic,
                                                                          instant{}))) {
    if constexpr (is_kernel_clock<Clock>) {
      return wait_until(clock_of(kind_of_clock<Clock>), to_instant(deadline));
    } else {
      return in_slices(deadline, wait_until, ended);
    }
  }

  /// The instant after a length from now; now for zero, negative and NaN lengths.
  template <class Rep, class Period>
  instant from_now(const std::chrono::duration<Rep, Period>& length) const noexcept {
    return later(system_.now(clock_kind::monotonic),
                 longer(to_nanoseconds(length), nanoseconds::zero()));
  }

  /// A plain wait whose deadline was just found to lie ahead. For layers above.
  receipt sleep_ahead(wait_kind kind, instant deadline) noexcept {
    auto native = native_call(clock_of(kind));
    auto ended = never;
    return wait_ahead(kind, clock_of(kind), deadline, native, ended);
  }

  /// What this sleeper can tell other threads; see `process_learned`.
  process_memory memory() const noexcept {
    return {planner(wait_kind::plain).seed(), rate_.ticks_per_ns(), rate_.clock_read_ticks()};
  }

  const P& system() const noexcept { return system_; }
  const tuning& how() const noexcept { return how_; }
  const counter_rate& rate() const noexcept { return rate_; }

 private:
  constexpr basic_sleeper(const tuning& how, P system, int) noexcept
      : system_(system),
        how_(how.in_range()),
        planners_{wait_planner{how_}, wait_planner{how_}, wait_planner{how_}, wait_planner{how_}},
        budget_(how_) {}

  static constexpr auto never = []() noexcept { return false; };

  static constexpr wait_kind kind_on(clock_kind on) noexcept {
    return on == clock_kind::realtime ? wait_kind::wall : wait_kind::plain;
  }

  auto native_call(clock_kind on) const noexcept {
    return [this, on](instant at, slack how) noexcept { return system_.block_until(on, at, how); };
  }

  wait_planner& planner(wait_kind kind) noexcept {
    return planners_[static_cast<std::size_t>(kind)];
  }
  const wait_planner& planner(wait_kind kind) const noexcept {
    return planners_[static_cast<std::size_t>(kind)];
  }

  /// Marks the sleeper as in use; a wait inside a signal handler finds it so.
  ///
  /// A handler's frame is deeper than that of the wait that it interrupted. A mark whose frame is
  /// not shallower than ours was left behind: a handler jumped out of that wait (siglongjmp).
  class in_use {
   public:
    PUNCTUAL_ALWAYS_INLINE explicit in_use(std::uintptr_t& outermost) noexcept
        : outermost_(outermost),
          // Odd, so that 0 means nobody also where the compiler tells no frames.
          here_(reinterpret_cast<std::uintptr_t>(PUNCTUAL_FRAME) | 1U) {
      first_ = outermost_ == 0 || (here_ >= outermost_ && here_ != 1U);
      if (first_) outermost_ = here_;
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~in_use() {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (first_) outermost_ = 0;
    }
    in_use(const in_use&) = delete;
    in_use& operator=(const in_use&) = delete;
    bool first() const noexcept { return first_; }

   private:
    std::uintptr_t& outermost_;
    std::uintptr_t here_;
    bool first_ = false;
  };

  // How a wait whose native waits do not wait goes on.
  class pauses {
   public:
    // Notes a native wait that took this long and ended with this much to go.
    void note(const native_wait& answer, nanoseconds took, nanoseconds left) noexcept {
      // What was refused or has not waited so often is not believed in the last millisecond either.
      idle_ = (answer.how == native_end::woke || answer.how == native_end::spurious) &&
              took > nanoseconds::zero() && took < at_once &&
              left >= (never_waits() ? nanoseconds{1} : blockers_grain);
      in_a_row_ = answer.how == native_end::refused ? most_at_once
                  : idle_                           ? in_a_row_ + (in_a_row_ < most_at_once)
                                                    : 0;
      stood_still_ = took > nanoseconds::zero() ? 0 : stood_still_ + 1;
    }
    void stood_still() noexcept { ++stood_still_; }

    // It was back at once, long before its instant: that teaches nothing.
    bool idle() const noexcept { return idle_; }
    // So often that the call is as good as refused.
    bool never_waits() const noexcept { return in_a_row_ >= most_at_once; }
    // The clock has not moved for so many native waits that it never will.
    bool frozen() const noexcept { return stood_still_ >= most_still; }
    // What to ask for. A clock of coarse steps may show a time before the deadline when the
    // kernel's own is past it: each call then ends at once, so ask for later and later until the
    // clock makes its next step.
    instant from(instant until) const noexcept {
      return stood_still_ == 0
                 ? until
                 : later(until, nanoseconds{std::int64_t{1000}
                                            << (stood_still_ < 14 ? stood_still_ : 14)});
    }

   private:
    static constexpr int most_at_once = 16;
    int stood_still_ = 0;
    int in_a_row_ = 0;
    bool idle_ = false;
  };

  // Once a sleeper, at its first wait: what the process knows, and whether the counter may be read.
  void prepare() noexcept {
    if (prepared_) return;
    prepared_ = true;
    counter_ = how_.use_counter && system_.counter_facts().usable;
    if constexpr (std::is_empty_v<P>) {  // a simulated machine shares nothing with another
      process_memory known;
      if (process_learned.read(known)) take(known);
    }
  }

  void take(const process_memory& known) noexcept {
    for (wait_planner& each : planners_) each.seed(known.plain);
    rate_.seed(known.ticks_per_ns, known.clock_read_ticks);
  }

  // Threads that start later begin where this one is, if it has learned under the tuning that they
  // will have: a smaller `max_margin` cuts off what is learned, another slack moves it.
  void publish() const noexcept {
    tuning theirs;
    default_tuning.read(theirs);
    if (how_.punctuality == theirs.punctuality && how_.max_margin == theirs.max_margin &&
        how_.tighten_slack == theirs.tighten_slack) {
      process_learned.write(memory());
    }
  }

  // Once, calibrated or not.
  void share() noexcept {
    if constexpr (std::is_empty_v<P>) {
      if (++native_waits_ == enough_to_share && process_learned.version() == 0) publish();
    } else {
      ++native_waits_;
    }
  }

  template <class Native, class Ended>
  PUNCTUAL_NOINLINE receipt
  wait_ahead(wait_kind kind, clock_kind on, instant deadline, Native& native,
             Ended& ended) noexcept(noexcept(native(deadline, slack::tight))) {
    const in_use guard(in_use_);
    const bool learning = guard.first();
    if (learning) prepare();
    const bool wall = on == clock_kind::realtime;
    const slack slackness = how_.tighten_slack ? slack::tight : slack::as_is;
    wait_planner& plans = planner(kind);

    receipt did;
    clock_sample before = look(system_, on, counter_);
    instant steadily = wall ? system_.now(clock_kind::monotonic) : before.at;
    pauses pause;
    instant refused_until = instant::min();
    bool spinning_is_no_use = false;
    bool rearmed = false;
    native_plan plan{};

    while (before.at < deadline && did.why == outcome::reached) {
      if (ended()) {
        did.why = outcome::woken;
        break;
      }
      // After an interruption the same instant is asked for again, not what remains.
      // The planners think on the steady clock, where a kernel's ticks stay.
      if (!rearmed || before.at >= plan.until) {
        const nanoseconds ahead = between(before.at, steadily);
        const instant due = later(deadline, ahead);
        plan = learning ? plans.plan(steadily, due, budget_.available(steadily))
                        : unlearned_plan(plans, steadily, due);
        plan.until = later(plan.until, -ahead);
        if (spinning_is_no_use) plan = {true, deadline, nanoseconds::zero()};
        plan.until = pause.from(plan.until);
      }
      rearmed = false;
      if (plan.block && before.at >= refused_until) {
        const bool costed = learning && native_waits_ % cost_sampled_every < 2;
        const nanoseconds ran = costed ? system_.running_time() : nanoseconds::zero();
        const native_wait answer = native(plan.until, slackness);
        const clock_sample after = look(system_, on, counter_);
        if (costed) plans.native_cost(system_.running_time() - ran);
        const nanoseconds took = passed(wall, steadily, after.at);
        const bool moved = after.at > before.at;
        pause.note(answer, moved ? took : nanoseconds::zero(), between(after.at, plan.until));
        ++did.native_waits;
        did.blocked += took;
        did.overshoot = between(plan.until, after.at);
        if (answer.error != 0) did.error = answer.error;
        if (!wall) rate_.refine(before, after);
        if (moved) spinning_is_no_use = false;
        if (answer.how == native_end::refused || pause.never_waits()) {
          refused_until = later(before.at, refused_slice);
        } else if (is_interruption(answer)) {
          ++did.interruptions;
          rearmed = true;
        } else if (!ended()) {
          const bool stepped = wall && was_stepped(between(before.at, after.at), took);
          if (learning && moved && !stepped && !pause.idle() && is_lateness(did.overshoot)) {
            const nanoseconds ahead = between(after.at, steadily);
            plans.woke(later(before.at, ahead), later(plan.until, ahead), steadily);
            share();
          }
        }
        if (pause.frozen()) did.why = outcome::gave_up;
        before = after;
      } else {
        // Where nothing may block, a slice at a time: then the kernel is asked again.
        const instant end = plan.block && refused_until < deadline ? refused_until : deadline;
        // The last of it is a spin of its own: what comes after a spin has then just run, and need
        // not be fetched from memory between the deadline and the return. Not where a clock read
        // takes microseconds: one more of them is dearer.
        const bool apart =
            static_cast<double>(rate_.clock_read_ticks()) < 1e3 * rate_.ticks_per_ns();
        bool again = true;
        while (again) {
          const nanoseconds left = between(before.at, end);
          again = apart && left > 2 * last_of_a_spin;
          const spin_result spun = spin(system_, on, again ? later(end, -last_of_a_spin) : end,
                                        before.at, counter_, rate_, ended);
          const bool moved = spun.now > before.at;
          const nanoseconds lap = passed(wall, steadily, spun.now);
          did.spun += lap;
          did.gaps += spun.gaps;
          if (learning) budget_.spent(steadily, lap, spun.gaps, shorter(spun.away, lap));
          before = {spun.now, 0, 0};
          if (spun.how != spin_end::reached) again = false;
          if (spun.how == spin_end::ended) did.why = outcome::woken;
          if (spun.how == spin_end::stalled) {
            spinning_is_no_use = true;
            if (!moved && plan.block) pause.stood_still();
            if (pause.frozen()) did.why = outcome::gave_up;
          }
        }
        if (before.at < deadline && did.why == outcome::reached) {
          before = look(system_, on, counter_);
          if (!wall) steadily = before.at;
        }
      }
    }
    finish(did, deadline, before.at, did.why == outcome::woken || ended());
    return did;
  }

  // The running time of a wait's parts is the steady clock's, whichever clock the deadline is on.
  nanoseconds passed(bool wall, instant& steadily, instant now) const noexcept {
    if (wall) now = system_.now(clock_kind::monotonic);
    const nanoseconds took = between(steadily, now);
    steadily = now;
    return longer(took, nanoseconds::zero());
  }

  static constexpr bool is_interruption(const native_wait& answer) noexcept {
    return answer.how == native_end::interrupted || answer.how == native_end::spurious;
  }

  static native_plan unlearned_plan(const wait_planner& plans, instant now,
                                    instant deadline) noexcept {
    const nanoseconds left = between(now, deadline);
    const nanoseconds margin = plans.margin(left);
    return {left > margin + std::chrono::microseconds{5}, later(deadline, -margin), margin};
  }

  // A wall clock that moved otherwise than the steady one was stepped: that wait teaches nothing.
  static bool was_stepped(nanoseconds wall, nanoseconds steady_length) noexcept {
    const nanoseconds apart = wall > steady_length ? wall - steady_length : steady_length - wall;
    // Slewing moves the two apart by at most 10 %; two readings are taken a few us apart.
    return apart > std::chrono::microseconds{200} + steady_length / 8;
  }

  receipt spin_only(clock_kind on, instant deadline) noexcept {
    receipt did;
    instant now;
    if (is_past(system_, on, deadline, did, now)) return did;
    const in_use guard(in_use_);
    if (guard.first()) prepare();
    const bool wall = on == clock_kind::realtime;
    instant steadily = wall ? system_.now(clock_kind::monotonic) : now;
    int stood_still = 0;
    while (now < deadline && stood_still < most_stalled_spins) {
      const spin_result spun = spin(system_, on, deadline, now, counter_, rate_, never);
      did.spun += passed(wall, steadily, spun.now);
      did.gaps += spun.gaps;
      stood_still = spun.now == now ? stood_still + 1 : 0;
      now = spun.now;
    }
    if (now < deadline) did.why = outcome::gave_up;
    finish(did, deadline, now, false);
    return did;
  }

  // Woken and past: woken wins, also where it came after the last look at the clock.
  static void finish(receipt& did, instant deadline, instant now, bool ended) noexcept {
    if (ended) {
      did.why = outcome::woken;
    } else if (now >= deadline) {
      did.why = outcome::reached;
      did.late = between(deadline, now);
    }
    if (now < deadline) did.left = between(now, deadline);
  }

  static receipt woken(instant deadline, instant now) noexcept {
    receipt did;
    finish(did, deadline, now, true);
    return did;
  }

  template <class Rep, class Period, class Wait>
  receipt forward_by(const std::chrono::duration<Rep, Period>& length, Wait wait_until) noexcept {
    const nanoseconds whole = to_nanoseconds(length);
    if (whole <= nanoseconds::zero()) {
      receipt did;
      did.why = outcome::already_past;
      return did;
    }
    return wait_until(later(system_.now(clock_kind::monotonic), whole));
  }

  // A user's clock may run at any pace, in steps, or not at all. Slices start at 1 ms and grow to
  // 1 s while the clock moves: its pace is known early and a step is noticed within a second. While
  // it stands still they grow by a 16th of the time that it has stood still, to 20 ms: a clock of
  // 1 s steps costs a hundred looks a step, and its step is noticed within 20 ms.
  template <class Clock, class Duration, class Wait, class Ended>
  receipt in_slices(
      const std::chrono::time_point<Clock, Duration>& deadline, Wait wait_until,
      Ended ended) noexcept(noexcept(Clock::now()) && noexcept(wait_until(clock_kind::monotonic,
                                                                          instant{}))) {
    constexpr nanoseconds first_slice = std::chrono::milliseconds{1};
    constexpr nanoseconds longest_slice = std::chrono::seconds{1};
    constexpr nanoseconds longest_still_slice = std::chrono::milliseconds{20};
    receipt did;
    auto seen = Clock::now();
    nanoseconds left = time_left(deadline, seen);
    if (ended()) {
      did.why = outcome::woken;
    } else if (left <= nanoseconds::zero()) {
      did.why = outcome::already_past;
      did.late = saturating_subtract(nanoseconds::zero(), left);
      return did;
    }
    instant began = system_.now(clock_kind::monotonic);
    instant moved_at = began;
    nanoseconds slice = first_slice;
    double pace = 1;  // nanoseconds of the user's clock per nanosecond of the steady one
    int still = 0;
    while (left > nanoseconds::zero() && did.why == outcome::reached) {
      const double steady_left = static_cast<double>(left.count()) / pace;
      const nanoseconds next = steady_left < static_cast<double>(slice.count())
                                   ? nanoseconds{static_cast<std::int64_t>(steady_left) + 1}
                                   : slice;
      const receipt part = wait_until(clock_kind::monotonic, later(began, next));
      did.blocked += part.blocked;
      did.spun += part.spun;
      did.overshoot = part.overshoot;
      did.native_waits += part.native_waits;
      did.interruptions += part.interruptions;
      did.gaps += part.gaps;
      if (part.error != 0) did.error = part.error;
      const auto now = Clock::now();
      began = system_.now(clock_kind::monotonic);
      const nanoseconds moved = time_left(now, seen);
      const nanoseconds took = between(moved_at, began);
      if (moved == nanoseconds::zero()) {
        slice = shorter(first_slice + took / 16, longest_still_slice);
        if (++still >= most_looks) did.why = outcome::gave_up;
      } else {
        double ratio = pace;
        if (moved > nanoseconds::zero() && took > nanoseconds::zero()) {
          ratio = static_cast<double>(moved.count()) / static_cast<double>(took.count());
          ratio = ratio < 1e-6 ? 1e-6 : (ratio > 1e6 ? 1e6 : ratio);
        }
        // Steps that come as before will come so again; after a standstill of its own begin anew.
        const bool as_before = ratio > pace * 0.75 && ratio < pace * 1.25;
        slice = still == 0 ? slice * 4 : (as_before ? longest_slice : first_slice);
        slice = shorter(slice, longest_slice);
        pace = ratio;
        still = 0;
        moved_at = began;
      }
      seen = now;
      left = time_left(deadline, seen);
      if (part.why == outcome::gave_up || part.why == outcome::woken) did.why = part.why;
    }
    if (ended()) did.why = outcome::woken;  // also after the last look at the clock
    if (left > nanoseconds::zero()) {
      did.left = left;
    } else {
      if (did.why != outcome::woken) did.why = outcome::reached;
      if (did.why == outcome::reached) did.late = saturating_subtract(nanoseconds::zero(), left);
    }
    return did;
  }

  /// Native waits in a row that end without the clock having moved at all, before a wait gives up.
  static constexpr int most_still = 100;
  /// Spins in a row that end because the clock stands still, before `spin_until` gives up: ≥ 25 ms.
  static constexpr int most_stalled_spins = 1000;
  /// Looks in a row at a user's clock that stands still, before a wait gives up: 39 s, if the
  /// slices between them take what they are meant to.
  static constexpr int most_looks = 2000;
  /// What a caller's blocking call may leave over because it only knows milliseconds.
  static constexpr nanoseconds blockers_grain = std::chrono::milliseconds{1};
  /// A caller's blocking call that is back sooner than this, with more than that to go, does not
  /// block.
  static constexpr nanoseconds at_once = std::chrono::microseconds{50};
  /// What of a spin is a spin of its own, so that the way out of it was just taken.
  static constexpr nanoseconds last_of_a_spin = std::chrono::microseconds{4};
  /// How long a refused native wait is spun out before the system is asked again.
  static constexpr nanoseconds refused_slice = std::chrono::milliseconds{10};
  /// Earlier than 20 ms is not a kernel's habit (Windows: up to a tick of 15.6 ms) but a fault;
  /// later than a second not its lateness but a suspend or a stop: neither is learned.
  static constexpr bool is_lateness(nanoseconds overshoot) noexcept {
    return overshoot > std::chrono::milliseconds{-20} && overshoot <= std::chrono::seconds{1};
  }
  static constexpr std::uint32_t cost_sampled_every = 64;
  static constexpr std::uint32_t enough_to_share = 64;

  [[no_unique_address]] P system_;
  tuning how_;
  std::array<wait_planner, 4> planners_;
  spin_budget budget_;
  counter_rate rate_{};
  instant asked_{};
  std::uint32_t native_waits_ = 0;
  bool counter_ = false;
  bool prepared_ = false;
  std::uintptr_t in_use_ = 0;
};

/// The sleeper of this machine.
using sleeper = basic_sleeper<native_platform>;

static_assert(std::is_trivially_destructible_v<sleeper>);

/// A thread's sleeper that follows the process's default tuning.
struct thread_sleeper {
  sleeper own{};
  std::uint32_t tuning_version = 0;
};

/// Constant-initialised and trivially destroyed: usable from static constructors and destructors,
/// and while a thread ends. In a library loaded with dlopen the C library allocates it at the
/// thread's first wait.
inline constinit thread_local thread_sleeper this_threads_sleeper;

/// The sleeper that the free functions use in this thread. Never hand it to another thread.
inline sleeper& this_thread_sleeper() noexcept {
  thread_sleeper& here = this_threads_sleeper;
  if (const std::uint32_t version = default_tuning.version(); version != here.tuning_version) {
    tuning how;
    if (default_tuning.read(how) && here.own.retune(how)) here.tuning_version = version;
  }
  return here.own;
}

/// The rest of a free function's wait whose deadline lies ahead: apart, so that the answer to one
/// that is past keeps few registers. A template, so that only who waits has it compiled.
template <wait_kind kind>
PUNCTUAL_NOINLINE receipt sleep_ahead(instant deadline) noexcept {
  return this_thread_sleeper().sleep_ahead(kind, deadline);
}

/// Sets the tuning of the free functions, in every thread from its next wait on.
///
/// What those threads have learned is forgotten; sleepers that were made with their own tuning do
/// not notice. Threads  Safe from any thread; of two at once one wins.
inline void set_default_tuning(const tuning& how) noexcept { default_tuning.write(how); }

static_assert(sizeof(thread_sleeper) <= 4096);

}  // namespace punctual
