// Runs a small program of a few threads in every order of their steps.
//
// The threads are real and run the real code, but one at a time: each asks before every step that
// others can see (a touch of a shared word, a look at the clock, a park, an unpark), and the
// explorer says whose turn it is. It goes through all orders, depth first, and leaves out what
// begins in a state that it has seen: two runs are in the same state if every thread has seen the
// same, step by step, and the shared word and the time are the same, and they began and ended in
// the same order. Time is one more step: before it, all clocks show `before`, after it `after`, and
// parked threads whose deadline has come wake up.
#pragma once

#include <punctual/platform/seam.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <unordered_set>
#include <vector>

namespace support {

using punctual::instant;

/// One run: the threads' turns. What the code under test calls.
class turns {
 public:
  static constexpr instant before{std::chrono::seconds{1000}};
  static constexpr instant after{std::chrono::seconds{2000}};

  /// What a step lets its thread see of the others.
  enum sight : std::uint8_t { nothing, clock, shared_word };

  /// One step of the calling thread is about to be made.
  void step(sight sees = shared_word) {
    thread& me = *threads_[self];
    me.where = at_step;
    me.sees = sees;
    hand_back(me);
    begin(me);
  }

  instant now() {
    step(clock);
    if (stuck) return (instant::max)();
    return time_has_passed ? after : before;
  }

  /// A futex: compares and blocks in one step.
  punctual::native_wait park(const punctual::park_word& word, std::uint32_t expected,
                             instant until) {
    step();
    ++parks;
    if (word.load() == expected && !stuck && !(time_has_passed && until <= after)) {
      thread& me = *threads_[self];
      me.where = parked;
      me.word = &word;
      me.until = until;
      me.sees = clock;
      hand_back(me);
      me.word = nullptr;
      begin(me);
    }
    return {punctual::native_end::woke, 0};
  }

  void unpark(const punctual::park_word& word) {
    step(nothing);
    ++unparks;
    for (auto& each : threads_) {
      if (each->where == parked && each->word == &word) each->where = at_step;
    }
  }

  /// The numbers of a thread's first and last steps, counted over all threads from 1.
  std::uint64_t first_step(std::size_t of) const { return threads_[of]->first; }
  std::uint64_t last_step(std::size_t of) const { return threads_[of]->last; }

  bool time_has_passed = false;
  bool stuck = false;  ///< nobody could go on although not everybody had ended
  int parks = 0, unparks = 0;

  static inline thread_local std::size_t self = 0;

 private:
  friend class explorer;
  enum place : std::uint8_t { at_step, parked, ended };
  struct thread {
    std::binary_semaphore turn{0};
    place where = at_step;
    sight sees = nothing;
    const punctual::park_word* word = nullptr;
    instant until{};
    std::uint64_t first = 0, last = 0;
    std::uint64_t seen = 14695981039346656037u;  // what it saw, step by step, as a hash
    std::thread runs;
  };

  void hand_back(thread& me) {
    back_.release();
    me.turn.acquire();
  }
  void begin(thread& me) {
    ++count_;
    if (me.first == 0) {
      me.first = count_;
      milestones_ = milestones_ * 16 + 2 * self + 1;
    }
    me.last = count_;
  }

  std::vector<std::unique_ptr<thread>> threads_;
  std::binary_semaphore back_{0};
  std::uint64_t count_ = 0;
  std::uint64_t milestones_ = 0;  // in which order the threads began and ended
};

/// A program to be run in every order. A thread returns its verdict: all that matters of it from
/// then on.
struct program {
  std::vector<std::function<unsigned()>> threads;
  std::function<std::uint32_t()> word;  ///< the shared word's value now; must not fail in any state
  std::function<void()> check;          ///< called after each run
  bool time_passes = false;
  std::size_t alike = 0;  ///< so many threads run the same, and the check asks for no order
};

class explorer {
 public:
  std::uint64_t runs = 0, stuck = 0;

  /// @param make  `program make(turns&)`: called anew for each run.
  void explore(const std::function<program(turns&)>& make) {
    do run_once(make);
    while (next_order());
  }

 private:
  struct choice {
    std::size_t taken, of;
  };

  void run_once(const std::function<program(turns&)>& make) {
    turns t;
    program p = make(t);
    for (std::size_t i = 0; i < p.threads.size(); ++i) {
      t.threads_.push_back(std::make_unique<turns::thread>());
    }
    for (std::size_t i = 0; i < p.threads.size(); ++i) {
      turns::thread& each = *t.threads_[i];
      each.runs = std::thread([&t, &each, body = p.threads[i], i] {
        turns::self = i;
        each.turn.acquire();
        each.seen = body();
        each.where = turns::ended;
        t.milestones_ = t.milestones_ * 16 + 2 * i + 2;
        t.back_.release();
      });
      give_turn(t, each);  // up to its first step
    }
    std::size_t depth = 0;
    bool known = false;
    for (;;) {
      const std::vector<std::size_t> able = who_can_go_on(t, p);
      if (able.empty()) break;
      std::size_t pick = 0;
      if (!known && able.size() > 1) {
        if (depth == path_.size()) {
          known = !states_.insert(state_of(t, p)).second;
          if (!known) path_.push_back({0, able.size()});
        }
        if (!known) pick = path_[depth++].taken;
      }
      go_on(t, p, able[pick]);
    }
    free_the_stuck(t, p);
    for (auto& each : t.threads_) each->runs.join();
    ++runs;
    stuck += t.stuck;
    p.check();
  }

  bool next_order() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().of) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  // Threads by number; one past the last is time itself.
  static std::vector<std::size_t> who_can_go_on(const turns& t, const program& p) {
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < t.threads_.size(); ++i) {
      if (t.threads_[i]->where == turns::at_step) able.push_back(i);
    }
    const bool some_wait = !able.empty() || anyone_parked(t);
    if (p.time_passes && !t.time_has_passed && some_wait) able.push_back(t.threads_.size());
    return able;
  }

  static bool anyone_parked(const turns& t) {
    for (const auto& each : t.threads_) {
      if (each->where == turns::parked) return true;
    }
    return false;
  }

  static void go_on(turns& t, const program& p, std::size_t who) {
    if (who == t.threads_.size()) {
      t.time_has_passed = true;
      for (auto& each : t.threads_) {
        if (each->where == turns::parked && each->until <= turns::after)
          each->where = turns::at_step;
      }
      return;
    }
    turns::thread& each = *t.threads_[who];
    mix(each.seen, each.sees == turns::shared_word ? p.word()
                   : each.sees == turns::clock     ? t.time_has_passed
                                                   : 0u);
    give_turn(t, each);
  }

  static void give_turn(turns& t, turns::thread& to) {
    to.turn.release();
    t.back_.acquire();
  }

  static void free_the_stuck(turns& t, const program& p) {
    while (anyone_parked(t)) {
      t.stuck = true;  // from now on every park returns at once and all deadlines are past
      for (std::size_t i = 0; i < t.threads_.size(); ++i) {
        if (t.threads_[i]->where == turns::parked) t.threads_[i]->where = turns::at_step;
        while (t.threads_[i]->where == turns::at_step) go_on(t, p, i);
      }
    }
  }

  static std::uint64_t state_of(const turns& t, const program& p) {
    std::uint64_t all = p.word() * 2u + (t.time_has_passed ? 1u : 0u);
    if (p.alike == 0) mix(all, t.milestones_);
    std::vector<std::uint64_t> each_one;
    for (const auto& each : t.threads_) {
      each_one.push_back(each->seen);
      mix(each_one.back(), each->where);
    }
    std::sort(each_one.begin(), each_one.begin() + static_cast<std::ptrdiff_t>(p.alike));
    for (const std::uint64_t each : each_one) mix(all, each);
    return all;
  }

  static void mix(std::uint64_t& into, std::uint64_t value) {
    into = (into ^ (value + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    into ^= into >> 32;
  }

  std::vector<choice> path_;
  std::unordered_set<std::uint64_t> states_;
};

/// The platform of such threads.
class interleaved_platform {
 public:
  static constexpr bool signal_safe_unpark = true;
  explicit interleaved_platform(turns& of) noexcept : turns_(&of) {}

  instant now(punctual::clock_kind) const noexcept { return turns_->now(); }
  instant coarse_now(punctual::clock_kind) const noexcept { return turns_->now(); }
  punctual::native_wait block_until(punctual::clock_kind, instant, punctual::slack) const noexcept {
    return {punctual::native_end::refused, 1};
  }
  punctual::native_wait park_until(const punctual::park_word& word, std::uint32_t expected,
                                   punctual::clock_kind, instant until,
                                   punctual::slack) const noexcept {
    return turns_->park(word, expected, until);
  }
  void unpark(const punctual::park_word& word) const noexcept { turns_->unpark(word); }
  punctual::counter_support counter_facts() const noexcept { return {false, "none"}; }
  std::uint64_t counter() const noexcept { return 0; }
  void relax() const noexcept {}
  punctual::nanoseconds running_time() const noexcept { return punctual::nanoseconds{0}; }
  punctual::platform_facts facts() const noexcept {
    return {"interleaved", "park", punctual::nanoseconds{-1}};
  }
  void word_step() const noexcept { turns_->step(); }

 private:
  turns* turns_;
};

static_assert(punctual::platform<interleaved_platform>);

}  // namespace support
