// A machine made of virtual time, for the library's tests and for yours.
//
// A `simulation` is a world with one thread in it: integer nanoseconds that move only by clock
// reads, counter reads, pauses, native waits and scripted stalls, so that a run of hours takes
// milliseconds and repeats exactly. `simulated_platform` is the handle that `basic_sleeper`,
// `basic_pacer` and the rest take as their platform. How the kernel wakes sleepers is a function,
// `kernel`; `kernels.hpp` has a model of every kernel that does it badly.
//
// Side layer: knows L0 and values of time. Allocates and may throw, as tests may.
#pragma once

#include <punctual/platform/seam.hpp>
#include <punctual/time.hpp>

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
    nanoseconds worked{0};   ///< of it, the thread's own work
    nanoseconds slept{0};    ///< time blocked in native waits
    nanoseconds stalled{0};  ///< time lost to scripted stalls while the thread could have run
    /// CPU time burnt in reads and pauses.
    nanoseconds spun() const { return ran - native - worked; }
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
  instant wall_time() const { return later(time_, wall_offset_); }

  // --- what tests script ---------------------------------------------------------------------

  /// Runs `action` when true time reaches `when` (at once if it has).
  void at(instant when, std::function<void()> action) {
    events_.emplace(when, std::move(action));
    find_quiet();
  }
  void after(nanoseconds from_now, std::function<void()> action) {
    at(time_ + from_now, std::move(action));
  }

  /// The thread does its own work for this long.
  void work(nanoseconds length) {
    count.worked += length;
    run(length);
  }

  /// Nothing of this thread runs for this long: preemption, SIGSTOP, a debugger, a host's pause.
  void stall(nanoseconds length) {
    time_ = later(time_, length);
    if (waiting_ == nullptr) count.stalled += length;
  }

  /// The machine sleeps. The steady clock does not notice, the wall clock and the counter do.
  void suspend_clock_stops(nanoseconds length) {
    counter_jumps(static_cast<std::int64_t>(static_cast<double>(length.count()) * rate_));
    step_wall_clock(length);
  }
  /// The machine sleeps and the steady clock runs on through it.
  void suspend_clock_runs_on(nanoseconds length) { stall(length); }

  /// Steps the wall clock; waits on it notice at once.
  void step_wall_clock(nanoseconds by) {
    wall_offset_ = saturating_add(wall_offset_, by);
    for (wait* each = waiting_; each != nullptr; each = each->outer) each->stepped = true;
  }

  /// A signal handler runs: a native wait that is under way ends as interrupted.
  void signal() {
    if (waiting_ != nullptr) waiting_->signalled = true;
  }

  /// The next native wait answers this instead of asking the kernel; first in, first out.
  void next_native(native_wait answer, nanoseconds taking = nanoseconds::zero()) {
    scripted_.push_back({answer, taking});
  }
  /// Every native wait from now on is refused with this error; 0 allows them again.
  void refuse_native(int error) { refusal_ = error; }

  /// Counter faults: a step either way; another rate, 0 to stop, negative to run backwards.
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
    if (time_ - settled_ > std::chrono::seconds{1}) settle_counter();
    const double ticks = static_cast<double>((time_ - settled_).count()) * rate_ + fraction_;
    return counter_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(ticks));
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
    native_wait answer{native_end::woke, 0};
    std::function<instant()> asked = [&] {
      const bool wall = on == clock_kind::realtime;
      const instant steadily = wall ? later(until, -wall_offset_) : until;
      return kernel({time_, steadily, how, word != nullptr});
    };
    if (!scripted_.empty()) {
      answer = scripted_.front().first;
      asked = [end = later(time_, scripted_.front().second)] { return end; };
      scripted_.pop_front();
    } else if (word != nullptr && word->load() != expected) {
      return leave_kernel(answer);
    }
    const instant entered = time_;
    wait own{word, waiting_};
    waiting_ = &own;
    instant wake = asked();
    while (!events_.empty() && events_.begin()->first <= wake) {
      fire_next();
      if (own.signalled) {
        answer = {native_end::interrupted, 0};
        wake = time_;
      } else if (own.unparked) {
        wake = time_;
      } else if (own.stepped && on == clock_kind::realtime) {
        wake = asked();
      }
      own.stepped = false;
      if (wake <= time_) break;
    }
    waiting_ = own.outer;
    if (time_ < wake) time_ = wake;
    count.slept += time_ - entered;
    return leave_kernel(answer);
  }

  void unpark(const park_word& word) {
    step("unpark");
    ++count.unparks;
    for (wait* each = waiting_; each != nullptr; each = each->outer) {
      if (each->word == &word) each->unparked = true;
    }
  }

 private:
  // A native wait under way; a handler that runs inside one may wait, too.
  struct wait {
    const park_word* word;
    wait* outer;
    bool signalled = false, unparked = false, stepped = false;
  };

  void step(const char* name) {
    if (on_step) on_step(name);
  }

  instant shown(clock_kind on, const clock_view& view) {
    if (!monotonic_stands_still) seen_ = time_;
    const instant t = view(seen_);
    return on == clock_kind::monotonic ? t : later(t, wall_offset_);
  }

  // Moves true time by CPU work. Most of a simulation's own time goes by here, in short steps.
  void run(nanoseconds length) {
    count.ran += length;
    if (time_ < quiet_until_ && length <= short_step) {
      time_ += length;
    } else {
      run_through_events(length);
    }
  }

  // What passes while events on the way act pushes the end out.
  void run_through_events(nanoseconds length) {
    instant end = later(time_, length);
    while (!events_.empty() && events_.begin()->first <= end) end = later(end, fire_next());
    if (time_ < end) time_ = end;
  }

  nanoseconds fire_next() {
    const auto first = events_.begin();
    if (time_ < first->first) time_ = first->first;
    const instant began = time_;
    const auto action = std::move(first->second);
    events_.erase(first);
    find_quiet();
    action();
    return time_ - began;
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

  // Before this instant a short step meets no event and no end of time.
  void find_quiet() {
    quiet_until_ = later(events_.empty() ? (instant::max)() : events_.begin()->first, -short_step);
  }

  // The fraction of a tick is kept, so that many short stretches add up to the rate.
  void settle_counter() {
    constexpr double most = 9.2e18;
    double due = static_cast<double>((time_ - settled_).count()) * rate_ + fraction_;
    due = due > most ? most : (due < -most ? -most : due);
    const auto whole = static_cast<std::int64_t>(due);
    counter_ += static_cast<std::uint64_t>(whole);
    fraction_ = due - static_cast<double>(whole);
    settled_ = time_;
  }

  static constexpr nanoseconds short_step = std::chrono::milliseconds{1};

  instant time_;
  instant seen_ = time_;
  nanoseconds wall_offset_{1'700'000'000'000'000'000};
  std::uint64_t counter_ = 1'000'000'000'000;
  double rate_ = 2.096004;
  double fraction_ = 0;
  instant settled_ = time_;
  instant quiet_until_ = later((instant::max)(), -short_step);
  std::multimap<instant, std::function<void()>> events_;
  std::deque<std::pair<native_wait, nanoseconds>> scripted_;
  int refusal_ = 0;
  wait* waiting_ = nullptr;
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
