// Every public name once. If this compiles, the names are right; the static_asserts are part of the
// promises. Mistake that would live without it: an overload that is ambiguous, throws, copies, or
// was renamed.
#include <punctual/punctual.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

static_assert(std::is_trivially_copyable_v<punctual::receipt>);
static_assert(std::is_same_v<punctual::instant, std::chrono::steady_clock::time_point>);
static_assert(noexcept(punctual::sleep_until(std::declval<punctual::instant>())));
using ms = std::chrono::milliseconds;
static_assert(noexcept(punctual::sleep_for(std::declval<ms>())) && noexcept(
    punctual::block_for(std::declval<ms>())) && noexcept(punctual::spin_for(std::declval<ms>())));
static_assert(!std::is_copy_constructible_v<punctual::waker>);
static_assert(std::is_same_v<decltype(punctual::waker::signal_safe), const bool>);

struct throwing_clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = nanoseconds;
  using time_point = std::chrono::time_point<throwing_clock>;
  static constexpr bool is_steady = true;
  static time_point now() { throw 1; }
};
static_assert(!noexcept(punctual::sleep_until(throwing_clock::time_point{})));

// rate: exact, reduced at construction, integral only
static_assert(punctual::rate{120000, 2002} == punctual::rate{60000, 1001});
static_assert(punctual::rate{60000, 1001}.num == 60000 && punctual::rate{60000, 1001}.den == 1001);
static_assert(punctual::hz(60) == punctual::rate{60, 1} &&
              punctual::every(20ms) == punctual::rate{50, 1});
static_assert(punctual::every(std::chrono::duration<int, std::ratio<1001, 60000>>(1)) ==
              punctual::rate{60000, 1001});
template <class T>
concept takes_hz = requires(T t) {
  punctual::hz(t);
};
static_assert(takes_hz<int> && !takes_hz<double> && !takes_hz<float>);
static_assert(punctual::rates::game_boy == punctual::rate{4194304, 70224});

[[maybe_unused]] static void surface() {
  using namespace punctual;
  const instant t = steady::now() + 1ms;

  // sleep.hpp
  receipt r = sleep_until(t);
  r = sleep_for(1ms);
  r = block_until(t);
  r = block_for(1ms);
  r = spin_until(t);
  r = spin_for(10us);
  r = sleep_until(std::chrono::system_clock::now());
  r = sleep_for(std::chrono::duration<float>(0.001f));
  const outcome why = r.why;
  (void)(why == outcome::reached || why == outcome::already_past || why == outcome::woken ||
         why == outcome::stopped || why == outcome::gave_up);
  (void)(r.late + r.left + r.blocked + r.spun + r.overshoot);
  (void)(r.native_waits + r.interruptions + r.gaps);
  (void)r.error;

  // sleeper.hpp
  tuning how;
  how.punctuality = 0.99;
  how.cpu_budget = 0.1;
  how.max_margin = 2ms;
  how.use_counter = true;
  set_default_tuning(how);
  sleeper s{how};
  r = s.sleep_until(t);
  r = s.sleep_for(1ms);
  r = s.block_until(t);
  r = s.spin_until(t);
  r = s.sleep_until(t, [](instant handover) {
    (void)handover;
    return false;
  });  // true: an event came, the outcome is woken
  const nanoseconds margin = s.margin(1ms);
  const instant handover = s.handover(t);
  s.observe(handover, steady::now());
  (void)margin;
  s.calibrate(20ms);
  const std::string why_this_margin = to_text(s.report());
  s.reset();
  sleeper& mine = this_thread_sleeper();
  (void)mine;

  // calibration.hpp
  calibration c = calibrate();
  c = calibrate(10ms);
  c = current_calibration();
  const std::string text = to_text(c), json = to_json(c);

  // interrupt.hpp
  waker w;
  w.wake();
  const bool pending = w.pending();
  (void)pending;
  w.reset();
  r = sleep_until(w, t);
  r = sleep_for(w, 1ms);
  std::stop_source stop;
  r = sleep_until(stop.get_token(), t);
  r = sleep_for(stop.get_token(), 1ms);
  std::mutex m;
  std::condition_variable cv;
  std::unique_lock lock(m);
  const bool met = wait_until(cv, lock, t, [] { return true; });
  (void)met;
  const std::cv_status status = wait_until(cv, lock, t);
  (void)status;
  std::timed_mutex tm;
  const bool locked = try_lock_until(tm, t);
  if (locked) tm.unlock();
  std::counting_semaphore<> sem{0};
  const bool got = try_acquire_until(sem, t);
  (void)got;

  // pacer.hpp
  pacer p{rate{60000, 1001}};
  pacer q{hz(60), missed::burst, 3};
  beat b = p.next();
  b = p.next(w);
  b = p.next(stop.get_token());
  b = p.poll();
  (void)static_cast<bool>(b);  // false when woken, stopped or gave up
  (void)(b.index + b.skipped);
  (void)(b.late + b.busy);
  const instant due = b.due;
  r = b.slept;
  (void)due;
  p.set_rate(hz(144));
  p.nudge(50us);
  p.align(std::chrono::system_clock::now());
  p.pause();
  p.resume();
  p.restart();
  const rate now_rate = p.current_rate();
  (void)now_rate;
  (void)p.deadline();
  const statistics& lateness = p.lateness();
  const statistics& busy = p.busy();
  (void)busy;
  for (beat each : q.beats(stop.get_token())) {
    (void)each;
    break;
  }
  limiter lim{hz(100), 5};
  r = lim.acquire();
  (void)lim.try_acquire();
  (void)lim.wait_time();

  // statistics.hpp
  statistics h;
  h.record(3us);
  h.merge(lateness);
  (void)(h.count() == 0);
  (void)(h.min() + h.max() + h.mean() + h.quantile(0.99));
  const std::string picture = to_text(h), data = to_json(h);

  // host.hpp
  timer_slack_guard slack{1ns};
  realtime_guard realtime{};
  cpu_latency_guard latency{0us};
  (void)(slack.granted() && realtime.granted() && latency.granted());
}
