// What the peers' strategies ask of a system, and how any `punctual::platform` answers it.
//
// The strategies beside this file are written once against these few calls, so that each runs both
// on the simulated machine (where it is pinned to what is known of the project it stands for) and
// on the real one (native_machine.hpp, where it makes the calls that the project makes).
#pragma once

#include <punctual/platform/seam.hpp>

#include <concepts>
#include <cstdint>

namespace peers {

using punctual::instant;
using punctual::nanoseconds;

/// The calls of a strategy. Sleeps go on after a signal; all times are on the steady clock.
///
/// `sleep_for`        one relative sleep, as nanosleep and std::this_thread::sleep_for do it
/// `sleep_until`      one absolute sleep
/// `std_sleep_until`  the standard library's
/// `timer_until`      a one-shot timer that is waited for by a blocking read
/// `pause`, `yield`   what stands inside a spin
/// `small_slack`      1 ns of timer slack for this thread from now on, or what it had before
template <class M>
concept machine = requires(M& m, instant until, nanoseconds length, bool on) {
  { m.now() } -> std::same_as<instant>;
  { m.counter() } -> std::same_as<std::uint64_t>;
  m.sleep_for(length);
  m.sleep_until(until);
  m.std_sleep_until(until);
  m.timer_until(until);
  m.pause();
  m.yield();
  m.small_slack(on);
};

/// A machine made of a platform: every sleep is a native wait. For simulated time.
template <punctual::platform P>
class platform_machine {
 public:
  explicit platform_machine(P platform) : platform_(platform) {}

  instant now() const { return platform_.now(punctual::clock_kind::monotonic); }
  std::uint64_t counter() const { return platform_.counter(); }
  void sleep_for(nanoseconds length) { sleep_until(now() + length); }
  void sleep_until(instant until) {
    while (platform_.block_until(punctual::clock_kind::monotonic, until, how_).how ==
           punctual::native_end::interrupted) {
    }
  }
  void std_sleep_until(instant until) {
    const nanoseconds left = until - now();
    if (left > nanoseconds::zero()) sleep_for(left);
  }
  void timer_until(instant until) { sleep_until(until); }
  void pause() const { platform_.relax(); }
  void yield() const { platform_.relax(); }
  void small_slack(bool on) { how_ = on ? punctual::slack::tight : punctual::slack::as_is; }

 private:
  P platform_;
  punctual::slack how_ = punctual::slack::as_is;
};

}  // namespace peers
