// A limit on how often something may be done, with a bounded store of what was not used.
//
// Layer L4. The counterpart of the pacer, and its difference in one sentence: a limiter never waits
// when it is late and saves up to `most` permits meanwhile; a pacer keeps a grid and lets nothing
// be saved. Use a limiter for requests, log lines, retries; a pacer for frames, samples, control
// loops.
#pragma once

#include <punctual/grid.hpp>
#include <punctual/rate.hpp>
#include <punctual/receipt.hpp>
#include <punctual/sleeper.hpp>
#include <punctual/time.hpp>
#include <punctual/tuning.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace punctual {

/// Grants at most `most` permits at once, and in the long run as many as the rate says.
///
/// Guarantee  In any stretch of time of length t, at most `most` + t × rate permits, to the
///            nanosecond.
/// Cost       As the sleeper's waits; a permit that is there costs no system call. No allocation,
///       no lock.
/// Threads    Belongs to one thread.
template <platform P>
class basic_limiter {
 public:
  /// @param most  Permits that can be saved up, at least 1; all of them are there at the beginning.
  explicit basic_limiter(const rate& permits, std::uint32_t most = 1, const tuning& how = {},
                         P system = P()) noexcept
      : sleeper_(how, system), grid_(permits, instant{}), most_(std::max<std::uint32_t>(most, 1)) {}
  basic_limiter(const rate& permits, std::uint32_t most, P system) noexcept
      : basic_limiter(permits, most, {}, system) {}

  basic_limiter(const basic_limiter&) = delete;
  basic_limiter& operator=(const basic_limiter&) = delete;

  /// Takes a permit, and waits for it if there is none.
  /// @return  `already_past` if there was one. After `gave_up` none was taken.
  receipt acquire() noexcept {
    return acquire_by([this](instant there) noexcept { return sleeper_.sleep_until(there); });
  }

  /// The same until `how`, a waker or a stop token, ends the wait: after `woken` and `stopped` none
  /// was taken. Found as for `basic_pacer::next(how)`.
  template <class How>
  receipt acquire(How&& how) noexcept(noexcept(sleep_until(std::declval<basic_sleeper<P>&>(), how,
                                                           std::declval<instant>()))) {
    return acquire_by([this, &how](instant there) { return sleep_until(sleeper_, how, there); });
  }

  /// Takes a permit if there is one, and never waits.
  bool try_acquire() noexcept {
    if (!renew(now())) return false;
    ++taken_;
    return true;
  }

  /// The time until there is a permit; zero if there is one.
  nanoseconds wait_time() noexcept {
    const instant at = now();
    return renew(at) ? nanoseconds::zero() : between(at, there());
  }

  basic_sleeper<P>& sleeper() noexcept { return sleeper_; }

 private:
  instant now() const noexcept { return sleeper_.system().now(clock_kind::monotonic); }

  template <class Wait>
  receipt acquire_by(Wait wait) {
    renew(now());
    const receipt did = wait(there());
    if (did.why == outcome::reached || did.why == outcome::already_past) ++taken_;
    return did;
  }

  // At the anchor the store is full, and one permit comes with every deadline after it. Once more
  // have come than were taken, the store is full again: what is beyond it is lost, and a new grid
  // begins. @return whether there is a permit.
  bool renew(instant at) noexcept {
    if (!begun_ || grid_.at(taken_) < at) {
      grid_.put(0, at);
      taken_ = 0;
      begun_ = true;
    }
    return there() <= at;
  }

  // When the next permit comes. One of a full store has been there since the anchor at least.
  instant there() const noexcept {
    return taken_ < most_ ? grid_.anchor() : grid_.at(taken_ - most_ + 1);
  }

  basic_sleeper<P> sleeper_;
  grid grid_;
  std::uint64_t taken_ = 0;  // since the anchor
  std::uint32_t most_;
  bool begun_ = false;
};

/// The limiter of this machine.
using limiter = basic_limiter<native_platform>;

}  // namespace punctual
