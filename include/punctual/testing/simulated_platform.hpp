// A machine made of virtual time, for the library's tests and for yours.
//
// A `simulation` is a world with one thread in it: integer nanoseconds that move only by clock
// reads, counter reads, pauses, native waits and scripted stalls, so that a run of hours takes
// milliseconds and repeats exactly. `simulated_platform` is the handle that `basic_sleeper`,
// `basic_pacer` and the rest take as their platform. How the kernel wakes sleepers is a function,
// `kernel`; `kernels.hpp` has a model of every kernel that does it badly.
//
// Side layer: knows L0 only. Allocates and may throw, as tests may.
#pragma once

#include <punctual/platform/seam.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace punctual::testing {

/// What the kernel is told of one native wait. Times are the world's own, on the steady clock.
struct native_request {
  instant now;    ///< when the call entered the kernel
  instant until;  ///< when it asked to be woken, also for a wait on the wall clock
  slack how;      ///< whether the kernel was asked to drop its slack
  bool parked;    ///< a wait that can be unparked (a futex), not a plain sleep
};

/// One simulated machine and its only thread. Not thread-safe; deterministic.
class simulation {
 public:
  /// When the thread runs again after a native wait; an answer before `now` counts as `now`.
  using kernel_model = std::function<instant(const native_request&)>;
  /// What a clock shows at a true time.
  using clock_view = std::function<instant(instant)>;

  /// What each step costs the thread, in CPU time.
  struct costs {
    nanoseconds clock_read{25};
    nanoseconds coarse_read{6};
    nanoseconds counter_read{10};
    nanoseconds pause{20};
    nanoseconds native_call{1000};  ///< half on the way in, half on the way out
  };

  /// How often each step was taken, and where the time went.
  struct tally {
    std::uint64_t clock_reads = 0, coarse_reads = 0, counter_reads = 0, pauses = 0;
    std::uint64_t native_waits = 0, unparks = 0;
    nanoseconds ran{0};      ///< CPU time of the thread, everything included
    nanoseconds native{0};   ///< of it, inside native calls
    nanoseconds slept{0};    ///< time blocked in native waits
    nanoseconds stalled{0};  ///< time lost to scripted stalls while the thread could have run
    /// CPU time burnt in reads and pauses.
    nanoseconds spun() const { return ran - native; }
  };

  costs cost;
  tally count;

  /// Default: wakes sleepers exactly when they asked.
  kernel_model kernel = [](const native_request& r) { return r.until; };
  /// Defaults: the precise clock shows true time, the coarse one the last multiple of 4 ms.
  clock_view precise = [](instant t) { return t; };
  clock_view coarse = [](instant t) { return t - t.time_since_epoch() % nanoseconds{4'000'000}; };

  /// Called before each step of the thread, with its name: a place to let others act.
  std::function<void(const char*)> on_step;

  counter_support counter_is{true, "simulated counter"};
  bool monotonic_stands_still = false;  ///< both precise clocks freeze; only the world moves

  explicit simulation(instant start = instant{std::chrono::seconds{1000}}) : time_(start) {}
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;

  /// True time: costs nothing, changes nothing. Tests judge by this, never by the clock under test.
  instant time() const { return time_; }
  instant wall_time() const { return time_ + wall_offset_; }

  // --- what tests script ---------------------------------------------------------------------

  /// Runs `action` when true time reaches `when` (at once if it has).
  void at(instant when, std::function<void()> action) { events_.emplace(when, std::move(action)); }
  void after(nanoseconds from_now, std::function<void()> action) {
    at(time_ + from_now, std::move(action));
  }

  /// The thread does its own work for this long.
  void work(nanoseconds length) { run(length); }

  /// Nothing of this thread runs for this long: preemption, SIGSTOP, a debugger, a host's pause.
  void stall(nanoseconds length) {
    time_ += length;
    if (blocked_) return;
    shift_ += length;
    count.stalled += length;
  }

  /// The machine sleeps. Clocks stop: the steady clock does not notice, the wall clock and the counter do.
  void suspend_clock_stops(nanoseconds length) {
    wall_offset_ += length;
    counter_ += ticks(length);
  }
  /// The machine sleeps and the steady clock runs on through it.
  void suspend_clock_runs_on(nanoseconds length) { stall(length); }

  /// Steps the wall clock; waits on it notice at once.
  void step_wall_clock(nanoseconds by) {
    wall_offset_ += by;
    stepped_ = true;
  }

  /// A signal handler runs: a native wait that is under way ends as interrupted.
  void signal() { signalled_ = true; }

  /// The next native wait answers this instead of asking the kernel; first in, first out.
  void next_native(native_wait answer, nanoseconds taking = nanoseconds::zero()) {
    scripted_.push_back({answer, taking});
  }
  /// Every native wait from now on is refused with this error; 0 allows them again.
  void refuse_native(int error) { refusal_ = error; }

  /// Counter faults.
  void counter_jumps(std::int64_t by) { counter_ += static_cast<std::uint64_t>(by); }
  void counter_runs_at(double ticks_per_ns) {
    settle_counter();
    rate_ = ticks_per_ns;
  }
  double counter_rate() const { return rate_; }

  // --- what the platform calls ---------------------------------------------------------------

  instant read_clock(clock_kind on) {
    step("clock");
    ++count.clock_reads;
    run(cost.clock_read);
    return shown(on, precise);
  }

  instant read_coarse(clock_kind on) {
    step("coarse clock");
    ++count.coarse_reads;
    run(cost.coarse_read);
    return shown(on, coarse);
  }

  std::uint64_t read_counter() {
    step("counter");
    ++count.counter_reads;
    run(cost.counter_read);
    settle_counter();
    return counter_;
  }

  void pause() {
    step("pause");
    ++count.pauses;
    run(cost.pause);
  }

  native_wait block(clock_kind on, instant until, slack how, const park_word* word,
                    std::uint32_t expected) {
    step(word != nullptr ? "park" : "block");
    ++count.native_waits;
    enter_kernel();
    if (refusal_ != 0) return leave_kernel({native_end::refused, refusal_});
    signalled_ = false;
    unparked_ = nullptr;
    const bool answered = !scripted_.empty();
    native_wait answer{native_end::woke, 0};
    nanoseconds taking{0};
    if (answered) {
      answer = scripted_.front().first;
      taking = scripted_.front().second;
      scripted_.pop_front();
    }
    if (!answered && word != nullptr && word->load() != expected) return leave_kernel(answer);
    const instant entered = time_;
    const auto asked = [&] {
      if (answered) return entered + taking;
      const bool wall = on == clock_kind::realtime;
      const instant steadily = wall ? minus(until, wall_offset_) : until;
      const instant wake = kernel({time_, steadily, how, word != nullptr});
      return wake < time_ ? time_ : wake;
    };
    instant wake = asked();
    blocked_ = true;
    while (!events_.empty() && events_.begin()->first <= wake) {
      fire_next();
      if (signalled_) {
        answer = {native_end::interrupted, 0};
        wake = time_;
      } else if (word != nullptr && unparked_ == word) {
        wake = time_;
      } else if (stepped_ && on == clock_kind::realtime && !answered) {
        wake = asked();
      }
      stepped_ = false;
      if (wake <= time_) break;
    }
    blocked_ = false;
    if (time_ < wake) time_ = wake;
    count.slept += time_ - entered;
    return leave_kernel(answer);
  }

  void unpark(const park_word& word) {
    step("unpark");
    ++count.unparks;
    unparked_ = &word;
  }

 private:
  static instant minus(instant t, nanoseconds offset) {
    constexpr auto least = nanoseconds::min();
    constexpr auto most = nanoseconds::max();
    const auto since = t.time_since_epoch();
    if (offset.count() > 0 && since.count() < least.count() + offset.count()) return instant{least};
    if (offset.count() < 0 && since.count() > most.count() + offset.count()) return instant{most};
    return instant{since - offset};
  }

  void step(const char* name) {
    if (on_step) on_step(name);
  }

  instant shown(clock_kind on, const clock_view& view) {
    if (!monotonic_stands_still) seen_ = time_;
    const instant t = view(seen_);
    return on == clock_kind::monotonic ? t : t + wall_offset_;
  }

  // Moves true time by CPU work; events on the way may add stalls, which push the end out.
  void run(nanoseconds length) {
    count.ran += length;
    instant end = time_ + length;
    while (!events_.empty() && events_.begin()->first <= end) {
      shift_ = nanoseconds::zero();
      fire_next();
      end += shift_;
    }
    if (time_ < end) time_ = end;
  }

  void fire_next() {
    auto first = events_.begin();
    if (time_ < first->first) time_ = first->first;
    auto action = std::move(first->second);
    events_.erase(first);
    action();
  }

  void enter_kernel() {
    count.native += cost.native_call / 2;
    run(cost.native_call / 2);
  }
  native_wait leave_kernel(native_wait answer) {
    count.native += cost.native_call - cost.native_call / 2;
    run(cost.native_call - cost.native_call / 2);
    return answer;
  }

  std::uint64_t ticks(nanoseconds length) const {
    return static_cast<std::uint64_t>(static_cast<double>(length.count()) * rate_);
  }
  void settle_counter() {
    // The fraction of a tick is kept, so that many short reads add up to the rate.
    const double due = static_cast<double>((time_ - settled_).count()) * rate_ + fraction_;
    const auto whole = static_cast<std::uint64_t>(due);
    counter_ += whole;
    fraction_ = due - static_cast<double>(whole);
    settled_ = time_;
  }

  instant time_;
  instant seen_ = time_;
  nanoseconds wall_offset_{1'700'000'000'000'000'000};
  nanoseconds shift_{0};
  std::uint64_t counter_ = 1'000'000'000'000;
  double rate_ = 2.096004;
  double fraction_ = 0;
  instant settled_ = time_;
  std::multimap<instant, std::function<void()>> events_;
  std::deque<std::pair<native_wait, nanoseconds>> scripted_;
  const park_word* unparked_ = nullptr;
  int refusal_ = 0;
  bool blocked_ = false;
  bool signalled_ = false;
  bool stepped_ = false;
};

/// The platform of a simulated machine: a pointer to its world, which must outlive it.
class simulated_platform {
 public:
  static constexpr bool signal_safe_unpark = true;

  explicit simulated_platform(simulation& world) noexcept : world_(&world) {}

  instant now(clock_kind on) const noexcept { return world_->read_clock(on); }
  instant coarse_now(clock_kind on) const noexcept { return world_->read_coarse(on); }
  native_wait block_until(clock_kind on, instant until, slack how) const noexcept {
    return world_->block(on, until, how, nullptr, 0);
  }
  native_wait park_until(const park_word& word, std::uint32_t expected, clock_kind on,
                         instant until, slack how) const noexcept {
    return world_->block(on, until, how, &word, expected);
  }
  void unpark(const park_word& word) const noexcept { world_->unpark(word); }
  counter_support counter_facts() const noexcept { return world_->counter_is; }
  std::uint64_t counter() const noexcept { return world_->read_counter(); }
  void relax() const noexcept { world_->pause(); }
  nanoseconds running_time() const noexcept { return world_->count.ran; }
  platform_facts facts() const noexcept {
    return {"simulated", "simulated native wait", nanoseconds{-1}};
  }

 private:
  simulation* world_;
};

static_assert(platform<simulated_platform>);

}  // namespace punctual::testing
