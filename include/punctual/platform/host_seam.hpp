// The seam between the host guards and a system: what a thread may ask beyond waiting.
//
// Layer L0. Apart from `seam.hpp`, since nothing that waits needs any of it: these calls change how
// the system treats the thread, and are made only by `host.hpp`, for who opts in. A backend is an
// empty value with the functions below, the same names in the same order in every backend.
#pragma once

#include <punctual/platform/seam.hpp>

#include <concepts>
#include <cstdint>

namespace punctual {

/// The two policies under which a thread runs before all ordinary ones.
enum class realtime_policy : std::uint8_t {
  fifo,        ///< until it blocks
  round_robin  ///< in turn with others of the same priority
};

/// What the host guards ask of a system. Errors are the system's positive codes, 0 for success.
///
/// `slack`, `set_slack`  the calling thread's timer slack; negative where there is none
/// `scheduling`          how a thread is scheduled, all of it, to be handed back as it was
/// `read_scheduling`, `write_scheduling`  the calling thread's
/// `realtime_priority`   its real-time priority, 0 for none; above all where it has deadlines
/// instead `make_realtime`       the calling thread's, keeping all but policy and priority
/// `run_limit`           CPU time that a real-time thread may use without blocking
/// `hold_cpu_latency`    asks all processors to wake within this
/// time, until released; its answer is a
///                       handle ≥ 0, or minus the error
template <class H>
concept host = std::default_initializable<H> &&
    requires(const H h, typename H::scheduling& how, const typename H::scheduling& was,
             nanoseconds length, realtime_policy policy, int number) {
  { h.slack() }
  noexcept->std::same_as<nanoseconds>;
  { h.set_slack(length) }
  noexcept->std::same_as<int>;
  { h.read_scheduling(how) }
  noexcept->std::same_as<int>;
  { h.write_scheduling(was) }
  noexcept->std::same_as<int>;
  { h.realtime_priority(was) }
  noexcept->std::same_as<int>;
  { h.make_realtime(was, policy, number) }
  noexcept->std::same_as<int>;
  { h.run_limit() }
  noexcept->std::same_as<nanoseconds>;
  { h.hold_cpu_latency(length) }
  noexcept->std::same_as<int>;
  { h.release_cpu_latency(number) }
  noexcept;
};

}  // namespace punctual
