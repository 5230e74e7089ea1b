// Raw wake-ups of one kernel, for the models to be held to: which request, entered how long after
// which tick, ended when. No library and no judgement; one line a wait, `wait SLACK REQUEST TICK
// BASE WOKE`, all in nanoseconds of the steady clock.
#pragma once

#include "support.hpp"

#include <sys/prctl.h>

namespace guest {

/// Spins until a timer interrupt has been served. @return  when that was seen: a few microseconds
/// after the interrupt.
inline nanoseconds next_tick() {
  const nanoseconds before = read(CLOCK_MONOTONIC_COARSE);
  while (read(CLOCK_MONOTONIC_COARSE) == before) {
  }
  return read(CLOCK_MONOTONIC);
}

inline void probe_wait(nanoseconds slack, nanoseconds request, nanoseconds phase) {
  const nanoseconds tick = next_tick();
  while (read(CLOCK_MONOTONIC) < tick + phase) {
  }
  const nanoseconds base = read(CLOCK_MONOTONIC);
  plain_sleep_until(base + request);
  const nanoseconds woke = read(CLOCK_MONOTONIC);
  std::printf("wait %lld %lld %lld %lld %lld\n", static_cast<long long>(slack.count()),
              static_cast<long long>(request.count()), static_cast<long long>(tick.count()),
              static_cast<long long>(base.count()), static_cast<long long>(woke.count()));
}

/// Sweeps the phase in sixteenths of a tick, 60 us off them, so that no deadline lies on a tick;
/// with 3.915 and 3.930 ms the first lie 25 and 10 us before one: a slack of 50 us reaches over it.
inline void probe(const std::string& name) {
  std::printf("probe %s resolution %lld source %s\n", name.c_str(),
              static_cast<long long>(resolution().count()), clock_source().c_str());
  plain_sleep_for(2s);  // let the kernel end what it still does after the boot
  for (const nanoseconds slack : {50'000ns, 1ns}) {
    prctl(PR_SET_TIMERSLACK, slack.count());
    for (const nanoseconds request :
         {-1'000'000ns, -20'000ns, 0ns, 1000ns, 50'000ns, 200'000ns, 1'000'000ns, 3'915'000ns,
          3'930'000ns, 4'000'000ns, 4'100'000ns, 10'000'000ns, 16'666'667ns, 40'000'000ns}) {
      for (int sixteenth = 0; sixteenth < 16; ++sixteenth)
        probe_wait(slack, request, sixteenth * 250us + 60us);
    }
  }
  std::puts("end");
}

}  // namespace guest
