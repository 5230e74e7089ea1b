// Measuring this machine on purpose, and saying what was found.
//
// Layer L3. `calibrate()` is for the loading screen: it makes the first waits as good as later
// ones. Without it nothing is missing for long: the first waits learn inside their own time. The
// result is plain data; `to_text` and `to_json` explain it, for a log or a bug report.
#pragma once

#include <punctual/sleeper.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace punctual {

/// A measured cost, which may be below one nanosecond.
using fine_nanoseconds = std::chrono::duration<double, std::nano>;

/// What this machine can do, as one thread has measured it. Trivially copyable; the texts in it are
/// constants.
struct calibration {
  const char* platform = "";
  const char* native_call = "";
  bool counter_used = false;
  const char* counter_reason = "";  ///< what the counter is, or why it is not used
  double counter_mhz = 0;           ///< against the clock, over native waits; 0 while unknown
  fine_nanoseconds clock_read{0}, coarse_read{0}, counter_read{0};
  fine_nanoseconds past_deadline{0};    ///< a whole wait whose deadline is long past
  nanoseconds native_wait_cpu{0};       ///< CPU time of one native wait
  nanoseconds shortest_native_wait{0};  ///< elapsed, asked for 1 ns
  nanoseconds slack{-1};                ///< of the calling thread; negative where there is none
  nanoseconds tick{0};  ///< native waits end on ticks of this period; 0: they do not
  int extra_ticks = 0;
  std::array<margin_report, 4> overshoot{};  ///< at 0.1, 1, 4 and 16.667 ms
  std::uint32_t native_waits = 0;            ///< made while measuring
  nanoseconds took{0};  ///< 0: never calibrated; the rest is from ordinary waits
};

/// The process's last calibration.
inline constinit published<calibration> process_calibration;

template <platform P>
calibration basic_sleeper<P>::described() const noexcept {
  const counter_support counter = system_.counter_facts();
  const platform_facts facts = system_.facts();
  calibration c;
  c.platform = facts.name;
  c.native_call = facts.native_call;
  c.counter_used = how_.use_counter && counter.usable;
  c.counter_reason = how_.use_counter ? counter.reason : "tuning::use_counter is false";
  c.counter_mhz = rate_.ticks_per_ns() * 1e3;
  c.slack = facts.slack;
  constexpr std::array<int, 4> microseconds{100, 1000, 4000, 16'667};
  for (std::size_t i = 0; i < microseconds.size(); ++i) {
    const nanoseconds length = std::chrono::microseconds{microseconds[i]};
    c.overshoot[i] = {length, planner(wait_kind::plain).explain(length)};
  }
  c.tick = c.overshoot[0].margin.tick;
  c.extra_ticks = c.overshoot[0].margin.extra_ticks;
  c.native_wait_cpu = planner(wait_kind::plain).native_cost();
  return c;
}

/// Whether native waits in a row end on ticks of 4 ms or more: three that are late by 2 ms or more,
/// and all ends whole multiples of one such period apart. Waits that are only disturbed do not.
class long_tick {
 public:
  void note(instant woke, nanoseconds overshoot) noexcept {
    constexpr nanoseconds shortest = std::chrono::microseconds{3500};
    const nanoseconds apart = between(last_, woke);
    last_ = woke;
    bool fits = true;
    if (seen()) {
      // With an extra tick the shortest waits take two, and longer ones also end half-way.
      fits = is_whole(apart, period_ / 2);
    } else if (late_ > 0) {
      const nanoseconds other = longer(period_, apart);
      period_ = period_ == nanoseconds::zero() ? apart : shorter(period_, apart);
      fits = period_ >= shortest && is_whole(other, period_);
    }
    if (!fits) {
      refuted_ = true;
      late_ = 0;
      period_ = nanoseconds::zero();
    }
    if (overshoot >= std::chrono::milliseconds{2} && late_ < enough) ++late_;
  }
  /// Worth another look. Once refuted it is not again, or disturbances would go on for ever.
  bool suspected() const noexcept { return late_ > 0 && late_ < enough && !refuted_; }
  bool seen() const noexcept { return late_ == enough; }
  /// How long a native wait may take there, ns, ≥ 0.
  nanoseconds period() const noexcept { return period_; }

 private:
  static constexpr int enough = 3;
  // Whether a stretch is a multiple of a part, within a sixteenth of the period.
  bool is_whole(nanoseconds stretch, nanoseconds part) const noexcept {
    const nanoseconds off = stretch % part;
    return shorter(off, part - off) <= period_ / 16;
  }
  instant last_{};
  nanoseconds period_{0};
  int late_ = 0;
  bool refuted_ = false;
};

template <platform P>
calibration basic_sleeper<P>::calibrate(nanoseconds budget) noexcept {
  constexpr nanoseconds longest_calibration = std::chrono::seconds{10};
  constexpr nanoseconds extended_calibration = std::chrono::milliseconds{250};
  const in_use guard(in_use_);
  if (!guard.first() || budget <= nanoseconds::zero()) return described();
  prepare();
  calibration found;
  budget = shorter(budget, longest_calibration);
  const nanoseconds extended = longer(budget, shorter(budget / 2 * 25, extended_calibration));

  const instant began = system_.now(clock_kind::monotonic);
  // What one call takes: the best of some rounds, as many as an eighth of the budget lets through.
  const auto cost_of = [&](auto call) {
    const int times = budget < std::chrono::milliseconds{1} ? 16 : 64;
    fine_nanoseconds best{1e9};
    instant from = system_.now(clock_kind::monotonic);
    const instant last = later(from, budget / 32);
    for (int round = 0; round < 3 && (round == 0 || from < last); ++round) {
      for (int i = 0; i < times; ++i) call();
      const instant until = system_.now(clock_kind::monotonic);
      const fine_nanoseconds each{between(from, until)};
      if (each / times < best) best = each / times;
      from = until;
    }
    return best;
  };
  found.clock_read = cost_of([&] { static_cast<void>(system_.now(clock_kind::monotonic)); });
  found.coarse_read =
      cost_of([&] { static_cast<void>(system_.coarse_now(clock_kind::monotonic)); });
  if (counter_) found.counter_read = cost_of([&] { static_cast<void>(system_.counter()); });
  found.past_deadline = cost_of([&] {
    receipt did;
    instant now;
    is_past(system_, clock_kind::monotonic, instant::min(), did, now);
  });

  const slack slackness = how_.tighten_slack ? slack::tight : slack::as_is;
  wait_planner& plans = planner(wait_kind::plain);
  long_tick tick;
  // One native wait of this length, learned from like any other. False: the system refuses them.
  const auto sample = [&](nanoseconds length) {
    const nanoseconds ran = system_.running_time();
    const clock_sample before = look(system_, clock_kind::monotonic, counter_);
    const instant until = later(before.at, length);
    const native_wait answer = system_.block_until(clock_kind::monotonic, until, slackness);
    const clock_sample after = look(system_, clock_kind::monotonic, counter_);
    ++found.native_waits;
    if (answer.how != native_end::woke) return answer.how == native_end::interrupted;
    rate_.refine(before, after);
    plans.native_cost(system_.running_time() - ran);
    if (after.at <= before.at) return false;
    tick.note(after.at, between(until, after.at));
    if (length == nanoseconds{1}) {
      // Past by the time that the kernel looks at it: some do not wait then, which teaches nothing.
      found.shortest_native_wait = between(before.at, after.at);
    } else if (is_lateness(between(until, after.at))) {
      plans.woke(before.at, until, after.at);
    }
    return true;
  };
  bool allowed = sample(nanoseconds{1});
  // Lengths in an order that learns most from the least time. On ticks each wait begins at one, so
  // lengths in all parts of the period tell it from a half of it with an extra tick.
  constexpr std::array<int, 16> microseconds{1000, 100,  100, 700,  350, 4000, 100, 1300,
                                             600,  1700, 100, 3300, 800, 250,  100, 1000};
  for (std::size_t i = 0, passed_over = 0; allowed && i < 10'000; ++i) {
    const nanoseconds length =
        tick.seen() ? tick.period() * static_cast<int>(1 + 2 * (i * 5 % 8)) / 16
                    : std::chrono::microseconds{microseconds[i % microseconds.size()]};
    const nanoseconds spent = between(began, system_.now(clock_kind::monotonic));
    // A wait must fit with its overshoot, as far as that is known; a tick that was seen once or
    // twice gets its next look all the same.
    const nanoseconds limit = tick.seen() || tick.suspected() ? extended : budget;
    const nanoseconds takes = longer(length + plans.margin(length), tick.period());
    if (spent + takes <= limit) {
      passed_over = 0;
      allowed = sample(length);
    } else if (++passed_over == microseconds.size() || spent >= limit) {
      break;
    }
  }
  calibration all = described();
  all.clock_read = found.clock_read;
  all.coarse_read = found.coarse_read;
  all.counter_read = found.counter_read;
  all.past_deadline = found.past_deadline;
  all.shortest_native_wait = found.shortest_native_wait;
  all.native_waits = found.native_waits;
  all.took = between(began, system_.now(clock_kind::monotonic));
  if constexpr (std::is_empty_v<P>) publish();
  return all;
}

/// Measures how late this machine's kernel wakes sleepers, and what reading its clocks costs.
///
/// The calling thread's sleeper and every thread that starts to wait afterwards profit. Optional:
/// the first waits learn the same inside their own time.
///
/// @param budget  The time that it may take, up to 10 s, 20 ms by default; it is kept to within one
///                native wait. Zero or less measures nothing. Where native waits turn out to end on
///                ticks of 4 ms or more it is extended to 12.5 times as much, at most 250 ms.
/// @return  What was found.
/// Cost  The budget, nearly all of it asleep. Threads  Safe from any thread; each measures for
/// itself.
inline calibration calibrate(nanoseconds budget = std::chrono::milliseconds{20}) noexcept {
  const calibration found = this_thread_sleeper().calibrate(budget);
  // Nothing was measured in a signal handler that interrupted one of this thread's waits.
  if (found.took > nanoseconds::zero()) process_calibration.write(found);
  return found;
}

/// The process's last calibration, or what the calling thread has learned so far if there was none.
inline calibration current_calibration() noexcept {
  calibration last;
  return process_calibration.read(last) ? last : this_thread_sleeper().described();
}

namespace report_text {

// By hand, since printf writes a comma where the program's locale says so, and then it is no JSON.
inline std::string decimal(double value, int places) {
  constexpr double most = 9e18;
  if (conversion::is_nan(value)) return "0";
  std::uint64_t scale = 1;
  for (int i = 0; i < places; ++i) scale *= 10;
  const bool negative = value < 0;
  const double size = (negative ? -value : value) * static_cast<double>(scale) + 0.5;
  const std::uint64_t digits = static_cast<std::uint64_t>(size < most ? size : most);
  std::string text = (negative && digits != 0 ? "-" : "") + std::to_string(digits / scale);
  if (places > 0) text += '.' + std::to_string(scale + digits % scale).substr(1);
  return text;
}
/// As many of four decimals as are needed: 0.98, 1.
inline std::string shortened(double value) {
  std::string text = decimal(value, 4);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}
inline double in_us(nanoseconds t) { return static_cast<double>(t.count()) / 1e3; }
inline std::string us(nanoseconds t) { return decimal(in_us(t), 1) + " us"; }
inline std::string ms(nanoseconds t, int places) { return decimal(in_us(t) / 1e3, places) + " ms"; }
inline std::string ns(fine_nanoseconds t) { return decimal(t.count(), 1) + " ns"; }

inline const char* reason(margin_reason why) {
  switch (why) {
    case margin_reason::seeded:
      return "a first guess, nothing learned at this length yet";
    case margin_reason::learned:
      return "learned quantile";
    case margin_reason::lattice:
      return "last tick before the deadline";
    case margin_reason::too_short:
      return "shorter than the kernel can serve: spun";
    case margin_reason::capped:
      return "capped by max_margin";
    case margin_reason::budget:
      return "CPU budget used up";
    case margin_reason::oversubscribed:
      return "descheduled while spinning: spins less";
  }
  return "";
}

inline void add_margins(std::string& text, const margin_report* first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const margin_report& m = first[i];
    const std::string length = ms(m.length, 3);
    text += std::string(length.size() < 14 ? 14 - length.size() : 0, ' ') + length + ": margin " +
            us(m.margin.margin) + " (" + reason(m.margin.why) + "; quantile " +
            us(m.margin.quantile) + ", " + std::to_string(m.margin.samples) + " samples";
    if (m.margin.tick > nanoseconds::zero()) {
      text += ", tick " + us(m.margin.tick) + " + " + std::to_string(m.margin.extra_ticks);
    }
    text += ")\n";
  }
}

}  // namespace report_text

/// Explains a calibration in lines for people. May allocate and throw bad_alloc.
inline std::string to_text(const calibration& c) {
  using namespace report_text;
  std::string text =
      std::string("platform ") + c.platform + ", native wait " + c.native_call + "\n";
  text += "clock: std::chrono::steady_clock\n";
  text += "counter: " + std::string(c.counter_used ? "used, " : "not used, ") + c.counter_reason;
  if (c.counter_mhz > 0) {
    text += ", " + decimal(c.counter_mhz, 3) + " MHz measured against the clock over native waits";
  }
  text += "\n";
  if (c.took > nanoseconds::zero()) {
    text += "costs: clock read " + ns(c.clock_read) + ", coarse read " + ns(c.coarse_read);
    if (c.counter_used) text += ", counter read " + ns(c.counter_read);
    text += ", past deadline " + ns(c.past_deadline) + "\n";
    text += "native wait: " + us(c.native_wait_cpu) + " of CPU, shortest " +
            us(c.shortest_native_wait) + "\n";
  }
  text += c.slack < nanoseconds::zero() ? std::string("timer slack: none on this platform\n")
                                        : "timer slack of this thread: " + us(c.slack) + "\n";
  text += c.tick > nanoseconds::zero()
              ? "tick: native waits end every " + us(c.tick) + ", " +
                    std::to_string(c.extra_ticks) + " extra\n"
              : std::string("tick: none seen, native waits end at any time\n");
  text += "overshoot and margin by length:\n";
  add_margins(text, c.overshoot.data(), c.overshoot.size());
  text += c.took > nanoseconds::zero()
              ? "measured in " + ms(c.took, 1) + " with " + std::to_string(c.native_waits) +
                    " native waits\n"
              : std::string("never calibrated: learned from ordinary waits\n");
  return text;
}

/// The same as one JSON object; times in nanoseconds.
inline std::string to_json(const calibration& c) {
  using namespace report_text;
  const auto number = [](double value) { return decimal(value, 3); };
  std::string text =
      std::string("{\"platform\":\"") + c.platform + "\",\"native_call\":\"" + c.native_call +
      "\",\"clock\":\"std::chrono::steady_clock\",\"counter_used\":" +
      (c.counter_used ? "true" : "false") + ",\"counter_reason\":\"" + c.counter_reason +
      "\",\"counter_mhz\":" + decimal(c.counter_mhz, 6) +
      ",\"counter_measured\":\"against the clock over native waits\"" +
      ",\"clock_read_ns\":" + number(c.clock_read.count()) +
      ",\"coarse_read_ns\":" + number(c.coarse_read.count()) +
      ",\"counter_read_ns\":" + number(c.counter_read.count()) +
      ",\"past_deadline_ns\":" + number(c.past_deadline.count()) +
      ",\"native_wait_cpu_ns\":" + std::to_string(c.native_wait_cpu.count()) +
      ",\"shortest_native_wait_ns\":" + std::to_string(c.shortest_native_wait.count()) +
      ",\"slack_ns\":" + std::to_string(c.slack.count()) +
      ",\"tick_ns\":" + std::to_string(c.tick.count()) +
      ",\"extra_ticks\":" + std::to_string(c.extra_ticks) +
      ",\"native_waits\":" + std::to_string(c.native_waits) +
      ",\"took_ns\":" + std::to_string(c.took.count()) + ",\"overshoot\":[";
  for (std::size_t i = 0; i < c.overshoot.size(); ++i) {
    const margin_report& m = c.overshoot[i];
    text += std::string(i == 0 ? "" : ",") + "{\"length_ns\":" + std::to_string(m.length.count()) +
            ",\"margin_ns\":" + std::to_string(m.margin.margin.count()) +
            ",\"quantile_ns\":" + std::to_string(m.margin.quantile.count()) +
            ",\"samples\":" + std::to_string(m.margin.samples) + ",\"why\":\"" +
            reason(m.margin.why) + "\"}";
  }
  return text + "]}";
}

/// Explains a sleeper's margins in lines for people, to be sent with a bug report.
inline std::string to_text(const sleeper_report& r) {
  using namespace report_text;
  std::string text =
      std::string("platform ") + r.platform + ", native wait " + r.native_call + "\n";
  text += "counter: " + std::string(r.counter_used ? "used, " : "not used, ") + r.counter_reason;
  if (r.counter_mhz > 0) text += ", " + decimal(r.counter_mhz, 3) + " MHz";
  text += "\ntuning: punctuality " + shortened(r.how.punctuality) + ", cpu_budget " +
          shortened(r.how.cpu_budget) + ", max_margin " + us(r.how.max_margin) +
          (r.how.tighten_slack ? ", slack tightened" : ", slack as it is");
  if (r.slack >= nanoseconds::zero()) text += " (this thread's: " + us(r.slack) + ")";
  text += "\nmargin by length:\n";
  add_margins(text, r.margins.data(), r.margins.size());
  return text;
}

}  // namespace punctual
