// A rate as a series of deadlines: the loop of a game, an emulator, a robot, an audio thread.
//
// Layer L4. `pacer.next()` waits for the next beat of an exact schedule (schedule.hpp), says how
// late it came and what was dropped, and keeps the figures that a bug report needs. It knows the
// sleeper that it owns and no interruptible wait: `next(how)` hands whatever it is given to a
// function that interrupt.hpp, or you, declare beside the type and that is found when the call is
// compiled:
//
//     // Looks at `how` first, also where the deadline is past.
//     receipt sleep_until(basic_sleeper<P>&, How&, instant deadline);
//     // Optional: for the background, without a spin.
//     receipt block_until(basic_sleeper<P>&, How&, instant deadline);
//
// Beside the pacer there is the limiter (limiter.hpp): a limiter never waits when it is late and
// saves up what was not used; a pacer keeps a grid. Pace frames and samples; limit requests and log
// lines.
#pragma once

#include <punctual/beat.hpp>
#include <punctual/limiter.hpp>
#include <punctual/phase.hpp>
#include <punctual/published.hpp>
#include <punctual/rate.hpp>
#include <punctual/receipt.hpp>
#include <punctual/schedule.hpp>
#include <punctual/shared_sum.hpp>
#include <punctual/sleeper.hpp>
#include <punctual/statistics.hpp>
#include <punctual/time.hpp>
#include <punctual/tuning.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace punctual {

/// Delivers beats at a rate, on a grid that does not drift.
///
/// The pacer owns its sleeper, so that what is learned is the lateness of this loop's waits. The
/// first `next` sets the anchor and returns at once with beat 0; beat n is due n periods later, to
/// the nanosecond.
///
/// Guarantee  No beat before its deadline. Every dropped deadline is counted in some beat's
///            `skipped`.
/// Cost       As the sleeper's waits; a late beat makes no system call. No allocation, no lock.
///            At most 8 KiB.
/// Threads    Belongs to one thread. Only `set_rate`, `set_background`, `set_unlimited`, `nudge`
///            and `stop` may be called from others, and from signal handlers: they leave an order
///            that the owner finds when it next calls. They neither lock nor wake: a wait that is
///            under way ends when it would have.
template <platform P>
class basic_pacer {
 public:
  /// @param max_burst  `burst` only: late beats in a row, at least 1. Three are 50 ms at 60 Hz,
  ///                   about what a player takes for one hitch.
  explicit basic_pacer(const rate& beats, missed policy = missed::skip, std::uint32_t max_burst = 3,
                       const tuning& how = {}, P system = P()) noexcept
      : sleeper_(how, system), schedule_(beats, policy, max_burst), pace_{beats, true} {}
  basic_pacer(const rate& beats, P system) noexcept
      : basic_pacer(beats, missed::skip, 3, {}, system) {}

  basic_pacer(const basic_pacer&) = delete;
  basic_pacer& operator=(const basic_pacer&) = delete;

  /// Waits for the next beat.
  ///
  /// @return  False only after `stop`, or where the sleeper gave up; such a beat is not used up.
  beat next() noexcept {
    return next_by(call::plain, [this](instant due, instant) noexcept {
      return pace_.spins ? sleeper_.sleep_until(due) : sleeper_.block_until(due);
    });
  }

  /// Waits for the next beat or until `how`, a waker or a stop token, ends the wait.
  ///
  /// @return  False if it was woken or stopped: that beat is not used up, the next call waits for
  ///          it. Pending and past: woken or stopped wins.
  template <class How>
  beat next(How&& how) noexcept(noexcept(sleep_until(std::declval<basic_sleeper<P>&>(), how,
                                                     std::declval<instant>()))) {
    return next_by(call::interruptible, [this, &how](instant due, instant) {
      if constexpr (requires { block_until(sleeper_, how, due); }) {
        if (!pace_.spins) return block_until(sleeper_, how, due);
      }
      return sleep_until(sleeper_, how, due);
    });
  }

  /// Delivers the next beat if it is due, and never waits; `missed` decides as in `next`.
  ///
  /// For loops that have their own way to wait: `steps()` says how many time steps are due, summed
  /// over all calls it is the number of periods that went by. Under `burst`, call it until it
  /// answers false. Where nothing is due, the answer is false, and `slept.left` the time until
  /// there is: for ever while the pacer is paused. `busy` is then all the time between calls.
  beat poll() noexcept {
    if (paused_ && !stopped()) {
      receipt paused;
      paused.why = outcome::gave_up;
      paused.left = nanoseconds::max();
      return none(paused, returned_);
    }
    return next_by(call::polled, [](instant due, instant now) noexcept {
      receipt none;
      none.why = outcome::gave_up;
      none.left = between(now, due);
      return none;
    });
  }

  /// Every beat until `stop`, or until `how` ends a wait: `for (beat b : p.beats(token)) …`.
  ///
  /// A waker must outlive the loop; a token is kept by the range.
  auto beats() noexcept {
    return beat_range{[this] { return next(); }};
  }
  template <class How>
  auto beats(How&& how) noexcept {
    struct held {
      How how;  // a reference where the caller keeps the object
    };
    return beat_range{[this, h = held{std::forward<How>(how)}]() mutable { return next(h.how); }};
  }

  /// Changes the rate. The slot that has begun keeps its length; the new period holds from the next
  /// deadline on, so no interval is other than the old period or the new one. After a slow rate
  /// that may take a whole slow period; `restart`, by the owner, is at once.
  /// Threads  Any. Of two at once one wins.
  void set_rate(const rate& beats) noexcept { orders_.pace.write({beats, true}); }

  /// The same, and from the next wait on only the kernel waits, without spinning: for windows in
  /// the background.
  /// Threads  Any.
  void set_background(const rate& slow) noexcept { orders_.pace.write({slow, false}); }

  /// Never waits again, until `set_rate`: every call of `next` is a beat, due when it is made.
  /// Threads  Any.
  void set_unlimited() noexcept { set_rate(rates::unlimited); }

  /// Moves the grid by this much, later if positive, in small steps: towards a display, a sound
  /// card, a master.
  ///
  /// From the next deadline on every beat moves it by at most 1/64 of a period (or 1 ns), so that
  /// half a period takes 32 beats and no interval is off by more than 1.6 %. Nudges add up.
  /// Threads  Any.
  void nudge(nanoseconds by) noexcept { orders_.nudge.add(by); }

  /// Ends the loop: `next` answers false with `stopped`, at the latest when the wait under way is
  /// over, until `restart`. To end that wait as well, call `next` with a waker or a stop token.
  /// Threads  Any.
  void stop() noexcept { orders_.stop.store(true, std::memory_order_release); }

  /// Puts the grid on a time point of any chrono clock, which may be long past: with
  /// `align(std::chrono::system_clock::time_point{})` a 1 Hz pacer beats on whole seconds of the
  /// wall clock.
  ///
  /// The next deadline moves by half a period at most. Before the first beat, the first `next`
  /// waits for the grid instead of setting the anchor. The clock is read now: if it is stepped
  /// later, align again; so after `set_rate`, which keeps the phase that it finds. What is left of
  /// a nudge is forgotten. Without a limit there is no grid, and nothing happens.
  /// Threads  The owner's, as all below.
  template <class Clock, class Duration>
  void align(const std::chrono::time_point<Clock, Duration>& on) noexcept(noexcept(Clock::now())) {
    obey();
    resume();
    schedule_.align(on_steady(on), now());
  }

  /// Stops the grid: the time until `resume` does not count, neither as late nor as busy.
  void pause() noexcept {
    if (!paused_) paused_at_ = now();
    paused_ = true;
  }
  /// Goes on where `pause` stopped, in the same phase. `next` on a paused pacer does this itself.
  void resume() noexcept {
    if (paused_) resume_at(now());
  }

  /// Begins anew: the next `next` sets the anchor and is beat 0. Undoes `stop`, `pause`, `align`;
  /// keeps the rate and the statistics.
  void restart() noexcept {
    obey();
    orders_.stop.store(false, std::memory_order_relaxed);
    schedule_.restart();
    busy_so_far_ = nanoseconds::zero();
    delivered_ = paused_ = false;
  }

  /// The rate that was last set.
  rate current_rate() const noexcept {
    pacing last = pace_;
    if (orders_.pace.version() != seen_) orders_.pace.read(last);
    return last.beats;
  }

  /// When the next beat is due; `instant::min()` if it will be delivered at once.
  instant deadline() noexcept {
    obey();
    return schedule_.has_deadline() ? schedule_.due() : instant::min();
  }

  /// How late the beats came. Beat 0 has no deadline and does not count, nor do beats without a
  /// limit.
  const statistics& lateness() const noexcept { return lateness_; }
  /// How long the caller was busy between them.
  const statistics& busy() const noexcept { return busy_; }
  /// Deadlines dropped so far, and the most of them in a row.
  std::uint64_t dropped() const noexcept { return schedule_.dropped(); }
  std::uint64_t longest_drop() const noexcept { return schedule_.longest_drop(); }
  /// Beats a second, delivered in the last one to two seconds (of a slower rate: between the last
  /// two or three beats); 0 before the second beat.
  double achieved_hertz() const noexcept {
    const nanoseconds length = between(earlier_.from, last_beat_);
    if (length <= nanoseconds::zero()) return 0;
    return static_cast<double>(earlier_.beats + current_.beats) * 1e9 /
           static_cast<double>(length.count());
  }
  void reset_statistics() noexcept {
    lateness_.reset();
    busy_.reset();
    schedule_.forget_drops();
  }

  missed policy() const noexcept { return schedule_.policy(); }

  /// The sleeper that waits for this pacer: to calibrate it, or to ask for its report.
  basic_sleeper<P>& sleeper() noexcept { return sleeper_; }
  const basic_sleeper<P>& sleeper() const noexcept { return sleeper_; }

 private:
  struct pacing {
    rate beats;
    bool spins;
  };
  struct mailbox {
    published<pacing> pace;
    shared_sum nudge;
    std::atomic<bool> stop{false};
  };
  struct window {
    instant from{};
    std::uint64_t beats = 0;
  };
  enum class call : std::uint8_t { plain, interruptible, polled };

  instant now() const noexcept { return sleeper_.system().now(clock_kind::monotonic); }

  // The one body of `next` and `poll`. `wait(due, now)` waits for a deadline ahead; an
  // interruptible one is also asked about a deadline in the past, since it may be pending.
  template <class Wait>
  beat next_by(call kind, Wait wait) {
    obey();
    instant at = now();
    if (paused_) resume_at(at);
    if (delivered_) busy_so_far_ += between(std::exchange(returned_, at), at);
    if (stopped()) return none(outcome::stopped, at);
    if (!delivered_) schedule_.begin(at);
    const bool has_deadline = schedule_.has_deadline();
    if (!has_deadline) schedule_.anchor(at);

    receipt slept;
    slept.why = outcome::already_past;
    for (bool settled = false; !settled;) {
      const instant due = schedule_.due();
      const bool ahead = at < due;
      if (ahead) schedule_.in_time();
      if (ahead || kind == call::interruptible) {
        slept = wait(due, at);
        if (!ended_well(slept)) return none(slept, kind == call::polled ? at : now());
        at = slept.why == outcome::reached ? later(due, slept.late) : now();
        obey();  // what was ordered meanwhile holds from this deadline on
        if (stopped()) return none(outcome::stopped, at);
      }
      if (!has_deadline) at = due;
      settled = schedule_.catch_up(at, ahead);
    }
    return deliver(slept, at, has_deadline);
  }

  beat deliver(const receipt& slept, instant at, bool had_deadline) noexcept {
    beat b = schedule_.take(at);
    b.busy = std::exchange(busy_so_far_, nanoseconds::zero());
    b.slept = slept;
    if (slept.why == outcome::already_past) b.slept.late = b.late;
    if (had_deadline) lateness_.record(b.late);
    if (delivered_) busy_.record(b.busy);
    count(at);
    returned_ = at;
    delivered_ = true;
    return b;
  }

  beat none(const receipt& slept, instant at) noexcept {
    beat b;
    b.index = schedule_.index();
    b.due = schedule_.due();
    b.busy = busy_so_far_;
    b.slept = slept;
    returned_ = at;
    return b;
  }
  beat none(outcome why, instant at) noexcept {
    receipt r;
    r.why = why;
    return none(r, at);
  }

  static constexpr bool ended_well(const receipt& r) noexcept {
    return r.why == outcome::reached || r.why == outcome::already_past;
  }
  bool stopped() const noexcept { return orders_.stop.load(std::memory_order_acquire); }

  // Carries out what was ordered since the last call, also by other threads.
  void obey() noexcept {
    if (const std::uint32_t version = orders_.pace.version(); version != seen_) {
      pacing fresh = pace_;
      if (orders_.pace.read(fresh)) {
        seen_ = version;
        pace_ = fresh;
        schedule_.set_rate(fresh.beats);
      }
    }
    if (orders_.nudge.any()) schedule_.nudge(orders_.nudge.take());
  }

  void resume_at(instant at) noexcept {
    const nanoseconds away = between(paused_at_, at);
    schedule_.shift(away);
    returned_ = later(returned_, away);
    last_beat_ = later(last_beat_, away);
    earlier_.from = later(earlier_.from, away);
    current_.from = later(current_.from, away);
    paused_ = false;
  }

  void count(instant at) noexcept {
    constexpr nanoseconds length = std::chrono::seconds{1};
    last_beat_ = at;
    if (!delivered_) {
      earlier_ = current_ = {at, 0};
      return;
    }
    ++current_.beats;
    if (between(current_.from, at) >= length) {
      earlier_ = current_;
      current_ = {at, 0};
    }
  }

  // Where the beats through a time point of any clock lie on ours: at that instant itself, if it is
  // within 292 years. By the tightest of three pairs of readings.
  template <class Clock, class Duration>
  instant on_steady(const std::chrono::time_point<Clock, Duration>& on) const {
    if constexpr (std::is_same_v<Clock, steady>) {
      const instant seen = now();
      return later(seen, time_left_in_phase(pace_.beats, on, seen));
    } else {
      nanoseconds tightest = nanoseconds::max();
      instant found{};
      for (int i = 0; i < 3; ++i) {
        const instant before = now();
        nanoseconds ahead;
        if constexpr (std::is_same_v<Clock, std::chrono::system_clock>) {
          const instant wall = sleeper_.system().now(clock_kind::realtime);
          ahead = time_left_in_phase(
              pace_.beats, on,
              std::chrono::time_point<Clock, nanoseconds>{wall.time_since_epoch()});
        } else {
          ahead = time_left_in_phase(pace_.beats, on, Clock::now());
        }
        const nanoseconds apart = between(before, now());
        if (apart >= tightest) continue;
        tightest = apart;
        found = later(later(before, apart / 2), ahead);
      }
      return found;
    }
  }

  basic_sleeper<P> sleeper_;
  schedule schedule_;
  mailbox orders_;
  pacing pace_;
  std::uint32_t seen_ = 0;
  bool delivered_ = false;  // there was a beat
  bool paused_ = false;
  instant paused_at_{};
  instant returned_{};
  instant last_beat_{};
  nanoseconds busy_so_far_{0};
  window earlier_{};
  window current_{};
  statistics lateness_;
  statistics busy_;
};

/// The pacer of this machine.
using pacer = basic_pacer<native_platform>;

static_assert(sizeof(pacer) <= 8192);

/// Writes what a bug report about a loop needs: the rate wanted and achieved, what was dropped, how
/// late the beats came and how long the loop was busy.
template <platform P>
std::string to_text(const basic_pacer<P>& p) {
  const auto policy = p.policy() == missed::skip    ? "skip"
                      : p.policy() == missed::burst ? "burst"
                                                    : "rephase";
  const auto milli = (static_cast<std::uint64_t>(p.achieved_hertz() * 2000) + 1) / 2;
  return "pacer " + to_text(p.current_rate()) + ", " + policy + ": achieved " +
         std::to_string(milli / 1000) + '.' + std::to_string(1000 + milli % 1000).substr(1) +
         " Hz; dropped " + std::to_string(p.dropped()) + ", at most " +
         std::to_string(p.longest_drop()) + " in a row; margin " +
         to_text(p.sleeper().margin(p.current_rate().period())) +
         "\nlate: " + to_text(p.lateness()) + "busy: " + to_text(p.busy());
}

}  // namespace punctual
