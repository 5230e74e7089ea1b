// NetBSD and OpenBSD: sleeps are counted in ticks, and one tick is added to be safe.
//
// Side layer; see kernels.hpp for how models are used. Both count with the nominal tick and wait
// for real ones. Neither has an absolute sleep that differs from a relative one, so the length is
// what counts: what is left when the call enters the kernel. Neither has a coarse clock for
// programs.
//
// Not modelled: counts of ticks that would not fit an int (248 days at HZ=100).
#pragma once

#include <punctual/testing/kernels/tick.hpp>
#include <punctual/testing/simulated_platform.hpp>

namespace punctual::testing::kernels {

/// NetBSD 7 and later: ceil(r / T) + 1 ticks, and again while the clock says that time remains.
///
/// Every wait up to 10 ms takes two ticks, 20 ms at HZ=100: the shortest sleep of this kernel.
/// Source: NetBSD kern_time.c 1.214 and subr_time_arith.c 1.2 (ts2timo); PR 47431.
struct netbsd {
  std::int64_t hz = 100;
  nanoseconds phase{0};
  parts_per_billion tick_error{};

  instant wake(const native_request& asked, surroundings& around) const {
    const tick ticks(hz, phase, tick_error);
    const nanoseconds nominal = bsd_tick(hz);
    instant t = asked.now;
    while (t < asked.until) {
      const nanoseconds left = (std::max)(between(t, asked.until), nominal);
      t = around.dispatched(ticks.after(t, ticks_up(left, nominal) + 1));
    }
    return t;
  }
};

/// NetBSD up to 6, the kernel of PR 47431: the same count, once; a length of zero waits for a tick.
///
/// With ticks that are shorter than they should be it ends early, and nobody looks.
/// Source: NetBSD subr_time.c 1.15 (itimespecfix, tstohz, tvtohz); PR 47431.
struct netbsd_6 {
  std::int64_t hz = 100;
  nanoseconds phase{0};
  parts_per_billion tick_error{};

  instant wake(const native_request& asked, surroundings& around) const {
    const tick ticks(hz, phase, tick_error);
    const nanoseconds nominal = bsd_tick(hz);
    const nanoseconds left = left_of(asked.now, asked.until);
    const std::int64_t n =
        left == nanoseconds::zero() ? 1 : ticks_up((std::max)(left, nominal), nominal) + 1;
    return around.dispatched(ticks.after(asked.now, n));
  }
};

/// OpenBSD 6.6 and later: floor((ns + T − 1) / (T + 1)) + 1 ticks, once.
///
/// The division by T + 1 lets a wait of n ticks end up to n − 1 ns early. A length of zero counts
/// as 1 ns, which gives one tick. No absolute sleep.
/// Source: OpenBSD kern_synch.c, tsleep_nsec.
struct openbsd {
  std::int64_t hz = 100;
  nanoseconds phase{0};
  parts_per_billion tick_error{};

  instant wake(const native_request& asked, surroundings& around) const {
    const tick ticks(hz, phase, tick_error);
    const auto one = static_cast<std::uint64_t>(bsd_tick(hz).count());
    const nanoseconds left = (std::max)(left_of(asked.now, asked.until), nanoseconds{1});
    const std::uint64_t n = (static_cast<std::uint64_t>(left.count()) + one - 1) / (one + 1) + 1;
    return around.dispatched(ticks.after(asked.now, static_cast<std::int64_t>(n)));
  }
};

}  // namespace punctual::testing::kernels
