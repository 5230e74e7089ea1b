// The definitions behind punctual/punctual.h: the C++ face, called from C.
//
// Side layer. Include it in exactly one C++20 file of a program or library, or link `punctual::c`,
// which is that file. Every function is one check of its arguments and one call; all behaviour is
// the C++ face's. No exception leaves it but those of a caller's own blocking call.
//
// PUNCTUAL_C_PLATFORM, defined before the include, puts another platform under it, one that can be
// default-constructed: C programs, too, can be run in the virtual time of punctual/testing.
#include <punctual/punctual.h>
#include <punctual/punctual.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#if !defined(PUNCTUAL_C_PLATFORM)
#define PUNCTUAL_C_PLATFORM ::punctual::native_platform
#endif

namespace punctual::c_face {
namespace {

/// What the functions without a handle stand on, where the platform is not this machine's.
template <platform P>
struct surroundings {
  static basic_sleeper<P>& mine() noexcept {
    static thread_local basic_sleeper<P> own;
    return own;
  }
  static receipt sleep_until(instant deadline) noexcept { return mine().sleep_until(deadline); }
  static void retune(const tuning& how) noexcept { mine().retune(how); }
  static calibration calibrate(nanoseconds budget) noexcept { return mine().calibrate(budget); }
  static calibration current() noexcept { return mine().described(); }
};

/// The same for this machine: what C learns, C++ in the same program knows.
template <>
struct surroundings<native_platform> {
  static sleeper& mine() noexcept { return this_thread_sleeper(); }
  static receipt sleep_until(instant deadline) noexcept { return punctual::sleep_until(deadline); }
  static void retune(const tuning& how) noexcept { set_default_tuning(how); }
  static calibration calibrate(nanoseconds budget) noexcept { return punctual::calibrate(budget); }
  static calibration current() noexcept { return current_calibration(); }
};

using used_platform = PUNCTUAL_C_PLATFORM;
using here = surroundings<used_platform>;

instant at(std::int64_t ns) noexcept { return instant{nanoseconds{ns}}; }
std::chrono::sys_time<nanoseconds> at_wall(std::int64_t ns) noexcept {
  return std::chrono::sys_time<nanoseconds>{nanoseconds{ns}};
}
std::int64_t ns(instant t) noexcept { return t.time_since_epoch().count(); }

// The end of the last field of a structure's first version: who hands over less has not set its
// size.
template <class T>
inline constexpr std::size_t first_version = 0;
template <>
inline constexpr std::size_t first_version<punctual_receipt> = offsetof(punctual_receipt, gaps) +
                                                               sizeof(punctual_receipt::gaps);
template <>
inline constexpr std::size_t first_version<punctual_tuning> =
    offsetof(punctual_tuning, tighten_slack) + sizeof(punctual_tuning::tighten_slack);
template <>
inline constexpr std::size_t first_version<punctual_beat> = offsetof(punctual_beat, why) +
                                                            sizeof(punctual_beat::why);
template <>
inline constexpr std::size_t first_version<punctual_calibration> =
    offsetof(punctual_calibration, native_waits) + sizeof(punctual_calibration::native_waits);

/// Whether an answer can be written there, or is not wanted.
template <class T>
bool fits(const T* to) noexcept {
  return to == nullptr || to->size >= first_version<T>;
}

/// Writes an answer as far as its receiver knows of it, and zeros beyond what is known here.
template <class T>
void give(const T& from, T* to) noexcept {
  if (to == nullptr) return;
  constexpr std::size_t begin = sizeof(std::size_t);
  const std::size_t known = std::min(to->size, sizeof(T));
  auto* const bytes = reinterpret_cast<unsigned char*>(to);
  std::memcpy(bytes + begin, reinterpret_cast<const unsigned char*>(&from) + begin, known - begin);
  std::memset(bytes + known, 0, to->size - known);
}

template <class T>
T blank() noexcept {
  T none{};
  none.size = sizeof(T);
  return none;
}

void give(const receipt& did, punctual_receipt* to) noexcept {
  if (to == nullptr) return;
  auto r = blank<punctual_receipt>();
  r.why = static_cast<std::int32_t>(did.why);
  r.error = did.error;
  r.late_ns = did.late.count();
  r.left_ns = did.left.count();
  r.blocked_ns = did.blocked.count();
  r.spun_ns = did.spun.count();
  r.overshoot_ns = did.overshoot.count();
  r.native_waits = did.native_waits;
  r.interruptions = did.interruptions;
  r.gaps = did.gaps;
  give(r, to);
}

/// One wait: nothing is waited for where its answer cannot be written.
template <class Wait>
int waited(punctual_receipt* to, Wait wait) {
  if (!fits(to)) return PUNCTUAL_BAD_ARGUMENT;
  const receipt did = wait();
  give(did, to);
  return static_cast<int>(did.why);
}

template <class Next>
int beaten(punctual_beat* to, punctual_receipt* slept, Next next) {
  if (!fits(to) || !fits(slept)) return PUNCTUAL_BAD_ARGUMENT;
  const beat got = next();
  auto b = blank<punctual_beat>();
  b.index = got.index;
  b.skipped = got.skipped;
  b.steps = got.steps();
  b.due_ns = ns(got.due);
  b.late_ns = got.late.count();
  b.busy_ns = got.busy.count();
  b.delivered = static_cast<bool>(got) ? 1 : 0;
  b.why = static_cast<std::int32_t>(got.slept.why);
  give(b, to);
  give(got.slept, slept);
  return b.why;
}

void give(const tuning& how, punctual_tuning* to) noexcept {
  auto t = blank<punctual_tuning>();
  t.punctuality = how.punctuality;
  t.cpu_budget = how.cpu_budget;
  t.max_margin_ns = how.max_margin.count();
  t.use_counter = how.use_counter ? 1 : 0;
  t.tighten_slack = how.tighten_slack ? 1 : 0;
  give(t, to);
}

tuning taken(const punctual_tuning* from) noexcept {
  tuning how;
  if (from == nullptr) return how;
  how.punctuality = from->punctuality;
  how.cpu_budget = from->cpu_budget;
  how.max_margin = nanoseconds{from->max_margin_ns};
  how.use_counter = from->use_counter != 0;
  how.tighten_slack = from->tighten_slack != 0;
  return how;
}

void give(const calibration& found, punctual_calibration* to) noexcept {
  auto c = blank<punctual_calibration>();
  c.platform = found.platform;
  c.native_call = found.native_call;
  c.counter_reason = found.counter_reason;
  c.counter_mhz = found.counter_mhz;
  c.clock_read_ns = found.clock_read.count();
  c.coarse_read_ns = found.coarse_read.count();
  c.counter_read_ns = found.counter_read.count();
  c.past_deadline_ns = found.past_deadline.count();
  c.native_wait_cpu_ns = found.native_wait_cpu.count();
  c.shortest_native_wait_ns = found.shortest_native_wait.count();
  c.slack_ns = found.slack.count();
  c.tick_ns = found.tick.count();
  c.took_ns = found.took.count();
  c.extra_ticks = found.extra_ticks;
  c.counter_used = found.counter_used ? 1 : 0;
  c.native_waits = found.native_waits;
  give(c, to);
}

/// A text, as snprintf would answer and write it. The making of it may run out of memory.
template <class Make>
std::int64_t written(char* buffer, std::size_t size, Make make) noexcept {
  if (buffer == nullptr && size != 0) return PUNCTUAL_BAD_ARGUMENT;
#if PUNCTUAL_HAS_EXCEPTIONS
  try {
#endif
    const std::string text = make();
    if (size != 0) {
      const std::size_t length = std::min(text.size(), size - 1);
      std::memcpy(buffer, text.data(), length);
      buffer[length] = '\0';
    }
    return static_cast<std::int64_t>(text.size());
#if PUNCTUAL_HAS_EXCEPTIONS
  } catch (...) {
    return PUNCTUAL_NO_MEMORY;
  }
#endif
}

template <class Handle, class... Arguments>
int made(Handle** to, Arguments&&... arguments) noexcept {
  *to = new (std::nothrow) Handle{std::forward<Arguments>(arguments)...};
  return *to == nullptr ? PUNCTUAL_NO_MEMORY : PUNCTUAL_OK;
}

/// The call on a handle that answers nothing.
template <class Handle, class Call>
int called(Handle* handle, Call call) noexcept {
  if (handle == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  call(handle->own);
  return PUNCTUAL_OK;
}

}  // namespace
}  // namespace punctual::c_face

// C's names for the C++ objects. A constructor each, since none of them can be copied.
struct punctual_sleeper {
  explicit punctual_sleeper(const punctual::tuning& how) noexcept : own(how) {}
  punctual::basic_sleeper<punctual::c_face::used_platform> own;
};
struct punctual_waker {
  punctual::basic_waker<punctual::c_face::used_platform> own{};
};
struct punctual_pacer {
  punctual_pacer(const punctual::rate& beats, punctual::missed policy, std::uint32_t max_burst,
                 const punctual::tuning& how) noexcept
      : own(beats, policy, max_burst, how) {}
  punctual::basic_pacer<punctual::c_face::used_platform> own;
};
struct punctual_statistics {
  punctual::statistics own{};
};

extern "C" {

const char* punctual_name(int outcome_or_status) {
  switch (outcome_or_status) {
    case PUNCTUAL_REACHED:
      return "reached";
    case PUNCTUAL_ALREADY_PAST:
      return "already past";
    case PUNCTUAL_WOKEN:
      return "woken";
    case PUNCTUAL_STOPPED:
      return "stopped";
    case PUNCTUAL_GAVE_UP:
      return "gave up";
    case PUNCTUAL_BAD_ARGUMENT:
      return "bad argument";
    case PUNCTUAL_NO_MEMORY:
      return "no memory";
    default:
      return "unknown";
  }
}

int punctual_version(void) {
  return PUNCTUAL_VERSION_MAJOR * 1000000 + PUNCTUAL_VERSION_MINOR * 1000 + PUNCTUAL_VERSION_PATCH;
}

// --- plain waits -----------------------------------------------------------------------------

int64_t punctual_now_ns(void) {
  using namespace punctual;
  return c_face::ns(c_face::here::mine().system().now(clock_kind::monotonic));
}
int64_t punctual_wall_now_ns(void) {
  using namespace punctual;
  return c_face::ns(c_face::here::mine().system().now(clock_kind::realtime));
}

int punctual_sleep_until_ns(int64_t deadline_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt,
                        [=] { return c_face::here::sleep_until(c_face::at(deadline_ns)); });
}
int punctual_sleep_for_ns(int64_t length_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt,
                        [=] { return c_face::here::mine().sleep_for(nanoseconds{length_ns}); });
}
int punctual_sleep_for_us(int64_t length_us, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt, [=] {
    return c_face::here::mine().sleep_for(std::chrono::microseconds{length_us});
  });
}
int punctual_sleep_for_ms(int64_t length_ms, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt, [=] {
    return c_face::here::mine().sleep_for(std::chrono::milliseconds{length_ms});
  });
}
int punctual_block_until_ns(int64_t deadline_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt,
                        [=] { return c_face::here::mine().block_until(c_face::at(deadline_ns)); });
}
int punctual_block_for_ns(int64_t length_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt,
                        [=] { return c_face::here::mine().block_for(nanoseconds{length_ns}); });
}
int punctual_spin_until_ns(int64_t deadline_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt,
                        [=] { return c_face::here::mine().spin_until(c_face::at(deadline_ns)); });
}
int punctual_spin_for_ns(int64_t length_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(receipt,
                        [=] { return c_face::here::mine().spin_for(nanoseconds{length_ns}); });
}
int punctual_sleep_until_wall_ns(int64_t deadline_wall_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(
      receipt, [=] { return c_face::here::mine().sleep_until(c_face::at_wall(deadline_wall_ns)); });
}
int punctual_block_until_wall_ns(int64_t deadline_wall_ns, punctual_receipt* receipt) {
  using namespace punctual;
  return c_face::waited(
      receipt, [=] { return c_face::here::mine().block_until(c_face::at_wall(deadline_wall_ns)); });
}

int punctual_sleep_until_by_ns(int64_t deadline_ns, punctual_blocking_call block, void* context,
                               punctual_receipt* receipt) {
  using namespace punctual;
  if (block == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] {
    return c_face::here::mine().sleep_until(c_face::at(deadline_ns), [=](instant handover) {
      return block(context, c_face::ns(handover)) != 0;
    });
  });
}

int64_t punctual_margin_ns(int64_t length_ns) {
  using namespace punctual;
  return c_face::here::mine().margin(nanoseconds{length_ns}).count();
}

// --- tuning, and sleepers with a tuning of their own -----------------------------------------

int punctual_default_tuning(punctual_tuning* how) {
  if (how == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  how->size = sizeof(punctual_tuning);
  punctual::c_face::give(punctual::tuning{}, how);
  return PUNCTUAL_OK;
}
int punctual_set_default_tuning(const punctual_tuning* how) {
  using namespace punctual;
  if (!c_face::fits(how)) return PUNCTUAL_BAD_ARGUMENT;
  c_face::here::retune(c_face::taken(how));
  return PUNCTUAL_OK;
}

int punctual_sleeper_create(const punctual_tuning* how, punctual_sleeper** made) {
  using namespace punctual;
  if (made == nullptr || !c_face::fits(how)) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::made(made, c_face::taken(how));
}
void punctual_sleeper_destroy(punctual_sleeper* sleeper) { delete sleeper; }

int punctual_sleeper_sleep_until_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                    punctual_receipt* receipt) {
  using namespace punctual;
  if (sleeper == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] { return sleeper->own.sleep_until(c_face::at(deadline_ns)); });
}
int punctual_sleeper_sleep_for_ns(punctual_sleeper* sleeper, int64_t length_ns,
                                  punctual_receipt* receipt) {
  using namespace punctual;
  if (sleeper == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] { return sleeper->own.sleep_for(nanoseconds{length_ns}); });
}
int punctual_sleeper_block_until_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                    punctual_receipt* receipt) {
  using namespace punctual;
  if (sleeper == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] { return sleeper->own.block_until(c_face::at(deadline_ns)); });
}
int punctual_sleeper_spin_until_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                   punctual_receipt* receipt) {
  using namespace punctual;
  if (sleeper == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] { return sleeper->own.spin_until(c_face::at(deadline_ns)); });
}
int punctual_sleeper_calibrate_ns(punctual_sleeper* sleeper, int64_t budget_ns) {
  return punctual::c_face::called(
      sleeper, [=](auto& own) { own.calibrate(punctual::nanoseconds{budget_ns}); });
}
int punctual_sleeper_reset(punctual_sleeper* sleeper) {
  return punctual::c_face::called(sleeper, [](auto& own) { own.reset(); });
}
int64_t punctual_sleeper_margin_ns(const punctual_sleeper* sleeper, int64_t length_ns) {
  if (sleeper == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return sleeper->own.margin(punctual::nanoseconds{length_ns}).count();
}
int punctual_sleeper_handover_ns(punctual_sleeper* sleeper, int64_t deadline_ns,
                                 int64_t* handover_ns) {
  using namespace punctual;
  if (handover_ns == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::called(sleeper, [=](auto& own) {
    *handover_ns = c_face::ns(own.handover(c_face::at(deadline_ns)));
  });
}
int punctual_sleeper_observe_ns(punctual_sleeper* sleeper, int64_t handover_ns, int64_t woke_ns) {
  using namespace punctual;
  return c_face::called(
      sleeper, [=](auto& own) { own.observe(c_face::at(handover_ns), c_face::at(woke_ns)); });
}
int64_t punctual_sleeper_text(const punctual_sleeper* sleeper, char* buffer, size_t size) {
  using namespace punctual;
  if (sleeper == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::written(buffer, size, [=] { return to_text(sleeper->own.report()); });
}

// --- waits that another thread can end -------------------------------------------------------

int punctual_waker_create(punctual_waker** made) {
  return made == nullptr ? PUNCTUAL_BAD_ARGUMENT : punctual::c_face::made(made);
}
void punctual_waker_destroy(punctual_waker* waker) { delete waker; }
int punctual_waker_wake(punctual_waker* waker) {
  return punctual::c_face::called(waker, [](auto& own) { own.wake(); });
}
int punctual_waker_reset(punctual_waker* waker) {
  return punctual::c_face::called(waker, [](auto& own) { own.reset(); });
}
int punctual_waker_pending(const punctual_waker* waker) {
  if (waker == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return waker->own.pending() ? 1 : 0;
}
int punctual_waker_signal_safe(void) { return decltype(punctual_waker::own)::signal_safe ? 1 : 0; }

int punctual_sleep_until_or_woken_ns(punctual_waker* waker, int64_t deadline_ns,
                                     punctual_receipt* receipt) {
  using namespace punctual;
  if (waker == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] {
    return sleep_until(c_face::here::mine(), waker->own, c_face::at(deadline_ns));
  });
}
int punctual_sleep_for_or_woken_ns(punctual_waker* waker, int64_t length_ns,
                                   punctual_receipt* receipt) {
  using namespace punctual;
  if (waker == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(
      receipt, [=] { return sleep_for(c_face::here::mine(), waker->own, nanoseconds{length_ns}); });
}
int punctual_block_until_or_woken_ns(punctual_waker* waker, int64_t deadline_ns,
                                     punctual_receipt* receipt) {
  using namespace punctual;
  if (waker == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] {
    return block_until(c_face::here::mine(), waker->own, c_face::at(deadline_ns));
  });
}
int punctual_block_for_or_woken_ns(punctual_waker* waker, int64_t length_ns,
                                   punctual_receipt* receipt) {
  using namespace punctual;
  if (waker == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::waited(receipt, [=] {
    return block_until(c_face::here::mine(), waker->own,
                       c_face::here::mine().from_now(nanoseconds{length_ns}));
  });
}

// --- pacers ----------------------------------------------------------------------------------

int punctual_pacer_create(int64_t num, int64_t den, int policy, uint32_t max_burst,
                          const punctual_tuning* how, punctual_pacer** made) {
  using namespace punctual;
  if (made == nullptr || !c_face::fits(how) || !rate::valid(num, den) || policy < PUNCTUAL_SKIP ||
      policy > PUNCTUAL_REPHASE) {
    return PUNCTUAL_BAD_ARGUMENT;
  }
  constexpr std::uint32_t default_burst = 3;
  return c_face::made(made, rate{num, den}, static_cast<missed>(policy),
                      max_burst == 0 ? default_burst : max_burst, c_face::taken(how));
}
void punctual_pacer_destroy(punctual_pacer* pacer) { delete pacer; }

int punctual_pacer_next(punctual_pacer* pacer, punctual_beat* beat, punctual_receipt* receipt) {
  if (pacer == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::beaten(beat, receipt, [=] { return pacer->own.next(); });
}
int punctual_pacer_next_or_woken(punctual_pacer* pacer, punctual_waker* waker, punctual_beat* beat,
                                 punctual_receipt* receipt) {
  if (pacer == nullptr || waker == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::beaten(beat, receipt, [=] { return pacer->own.next(waker->own); });
}
int punctual_pacer_poll(punctual_pacer* pacer, punctual_beat* beat, punctual_receipt* receipt) {
  if (pacer == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::beaten(beat, receipt, [=] { return pacer->own.poll(); });
}

int punctual_pacer_set_rate(punctual_pacer* pacer, int64_t num, int64_t den) {
  using namespace punctual;
  if (!rate::valid(num, den)) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::called(pacer, [=](auto& own) { own.set_rate(rate{num, den}); });
}
int punctual_pacer_set_background(punctual_pacer* pacer, int64_t num, int64_t den) {
  using namespace punctual;
  if (!rate::valid(num, den)) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::called(pacer, [=](auto& own) { own.set_background(rate{num, den}); });
}
int punctual_pacer_set_unlimited(punctual_pacer* pacer) {
  return punctual::c_face::called(pacer, [](auto& own) { own.set_unlimited(); });
}
int punctual_pacer_nudge_ns(punctual_pacer* pacer, int64_t by_ns) {
  return punctual::c_face::called(pacer,
                                  [=](auto& own) { own.nudge(punctual::nanoseconds{by_ns}); });
}
int punctual_pacer_stop(punctual_pacer* pacer) {
  return punctual::c_face::called(pacer, [](auto& own) { own.stop(); });
}
int punctual_pacer_restart(punctual_pacer* pacer) {
  return punctual::c_face::called(pacer, [](auto& own) { own.restart(); });
}
int punctual_pacer_pause(punctual_pacer* pacer) {
  return punctual::c_face::called(pacer, [](auto& own) { own.pause(); });
}
int punctual_pacer_resume(punctual_pacer* pacer) {
  return punctual::c_face::called(pacer, [](auto& own) { own.resume(); });
}
int punctual_pacer_align_ns(punctual_pacer* pacer, int64_t on_ns) {
  return punctual::c_face::called(pacer,
                                  [=](auto& own) { own.align(punctual::c_face::at(on_ns)); });
}
int punctual_pacer_align_wall_ns(punctual_pacer* pacer, int64_t on_wall_ns) {
  return punctual::c_face::called(
      pacer, [=](auto& own) { own.align(punctual::c_face::at_wall(on_wall_ns)); });
}
int punctual_pacer_calibrate_ns(punctual_pacer* pacer, int64_t budget_ns) {
  return punctual::c_face::called(
      pacer, [=](auto& own) { own.sleeper().calibrate(punctual::nanoseconds{budget_ns}); });
}
int punctual_pacer_deadline_ns(punctual_pacer* pacer, int64_t* deadline_ns) {
  using namespace punctual;
  if (deadline_ns == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::called(pacer, [=](auto& own) { *deadline_ns = c_face::ns(own.deadline()); });
}
int punctual_pacer_rate(const punctual_pacer* pacer, int64_t* num, int64_t* den) {
  if (num == nullptr || den == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::called(pacer, [=](const auto& own) {
    const punctual::rate last = own.current_rate();
    *num = last.num;
    *den = last.den;
  });
}
int punctual_pacer_achieved(const punctual_pacer* pacer, double* hertz, uint64_t* dropped) {
  return punctual::c_face::called(pacer, [=](const auto& own) {
    if (hertz != nullptr) *hertz = own.achieved_hertz();
    if (dropped != nullptr) *dropped = own.dropped();
  });
}
int64_t punctual_pacer_text(const punctual_pacer* pacer, char* buffer, size_t size) {
  using namespace punctual;
  if (pacer == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::written(buffer, size, [=] { return to_text(pacer->own); });
}

// --- statistics ------------------------------------------------------------------------------

int punctual_statistics_create(punctual_statistics** made) {
  return made == nullptr ? PUNCTUAL_BAD_ARGUMENT : punctual::c_face::made(made);
}
void punctual_statistics_destroy(punctual_statistics* all) { delete all; }
int punctual_statistics_record_ns(punctual_statistics* all, int64_t length_ns) {
  return punctual::c_face::called(all,
                                  [=](auto& own) { own.record(punctual::nanoseconds{length_ns}); });
}
int punctual_statistics_merge(punctual_statistics* all, const punctual_statistics* other) {
  if (other == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::called(all, [=](auto& own) { own.merge(other->own); });
}
int punctual_statistics_merge_lateness(punctual_statistics* all, const punctual_pacer* pacer) {
  if (pacer == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::called(all, [=](auto& own) { own.merge(pacer->own.lateness()); });
}
int punctual_statistics_merge_busy(punctual_statistics* all, const punctual_pacer* pacer) {
  if (pacer == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::called(all, [=](auto& own) { own.merge(pacer->own.busy()); });
}
int punctual_statistics_reset(punctual_statistics* all) {
  return punctual::c_face::called(all, [](auto& own) { own.reset(); });
}
uint64_t punctual_statistics_count(const punctual_statistics* all) {
  return all == nullptr ? 0 : all->own.count();
}
int punctual_statistics_mean_ns(const punctual_statistics* all, int64_t* mean_ns) {
  if (mean_ns == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::called(all, [=](const auto& own) { *mean_ns = own.mean().count(); });
}
int punctual_statistics_quantile_ns(const punctual_statistics* all, double q, int64_t* length_ns) {
  if (length_ns == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return punctual::c_face::called(all,
                                  [=](const auto& own) { *length_ns = own.quantile(q).count(); });
}
int64_t punctual_statistics_text(const punctual_statistics* all, char* buffer, size_t size) {
  using namespace punctual;
  if (all == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::written(buffer, size, [=] { return to_text(all->own); });
}
int64_t punctual_statistics_json(const punctual_statistics* all, char* buffer, size_t size) {
  using namespace punctual;
  if (all == nullptr) return PUNCTUAL_BAD_ARGUMENT;
  return c_face::written(buffer, size, [=] { return to_json(all->own); });
}

// --- calibration -----------------------------------------------------------------------------

int punctual_calibrate_ns(int64_t budget_ns, punctual_calibration* found) {
  using namespace punctual;
  if (!c_face::fits(found)) return PUNCTUAL_BAD_ARGUMENT;
  const calibration all = c_face::here::calibrate(nanoseconds{budget_ns});
  c_face::give(all, found);
  return PUNCTUAL_OK;
}
int punctual_current_calibration(punctual_calibration* last) {
  using namespace punctual;
  if (last == nullptr || !c_face::fits(last)) return PUNCTUAL_BAD_ARGUMENT;
  c_face::give(c_face::here::current(), last);
  return PUNCTUAL_OK;
}
int64_t punctual_calibration_text(char* buffer, size_t size) {
  using namespace punctual;
  return c_face::written(buffer, size, [] { return to_text(c_face::here::current()); });
}
int64_t punctual_calibration_json(char* buffer, size_t size) {
  using namespace punctual;
  return c_face::written(buffer, size, [] { return to_json(c_face::here::current()); });
}

}  // extern "C"
