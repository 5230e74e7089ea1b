// The seam between the library and a system: its words, and the concept `platform`.
//
// Layer L0. A backend is a small value with the functions below, the same names in the same order
// in every backend; real ones are empty, the simulated one points to a world of virtual time.
// Nothing here knows any system. `native.hpp` selects the backend of this machine.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>

namespace punctual {

using std::chrono::nanoseconds;

/// The clock on which deadlines live unless the caller names another.
using steady = std::chrono::steady_clock;

/// A point on a clock, in nanoseconds since that clock's epoch.
///
/// Almost always on `steady`; inside the library the same type also carries nanoseconds since the
/// Unix epoch where a `clock_kind` beside it says `realtime`.
using instant = std::chrono::time_point<steady, nanoseconds>;

/// Names the clock that an instant is on.
enum class clock_kind : std::uint8_t {
  monotonic,  ///< `steady`'s own: never stepped; on Linux it stands still in a suspend
  realtime    ///< the wall clock of `std::chrono::system_clock`: may be stepped either way
};

/// Whether a native wait may ask the kernel to give up its slack for that one wait.
enum class slack : std::uint8_t {
  as_is,  ///< the caller's own setting: cheapest, and as late as the kernel likes
  tight   ///< as small as the kernel grants, and handed back as it was just before
};

/// How one native wait ended.
enum class native_end : std::uint8_t {
  woke,         ///< the kernel says that the time has come, or that the word has changed
  interrupted,  ///< a signal handler ran; ask again for the same instant
  spurious,     ///< it ended early for no reason; ask again for the same instant
  refused       ///< no call of this backend may wait here; `error` says what the last one answered
};

/// What one native wait answered.
struct native_wait {
  native_end how;
  int error;  ///< the platform's code if any call on the way was refused, else 0; also after `woke`
};

/// The word that a native wait can be parked on: any change of it, followed by `unpark`, ends it.
using park_word = std::atomic<std::uint32_t>;

/// Whether the processor has a counter that user code may read, and why not.
struct counter_support {
  bool usable;
  const char* reason;  ///< one phrase: what it is, or why it is not used
};

/// What a backend knows of itself and of the calling thread.
struct platform_facts {
  const char* name;         ///< the backend
  const char* native_call;  ///< the call that a native wait makes
  nanoseconds slack;        ///< the calling thread's timer slack; negative where there is none
};

/// What every class above this layer asks of a system.
///
/// `now`          the precise clock
/// `coarse_now`   a cheaper clock, never ahead of the precise one; the same where there is none
/// `block_until`  one native wait to an absolute instant; may end early or be interrupted
/// `park_until`   the same, ended also by `unpark(word)` once the word differs from `expected`
/// `unpark`       ends every native wait that is parked on the word; `signal_safe_unpark` says
///                whether a signal handler may call it
/// `counter_facts`, `counter`  detection apart from reading
/// `relax`        tells the processor that this is a spin
/// `running_time` CPU time that the calling thread has used
/// `facts`        names for reports; may make a system call
template <class P>
concept platform = std::copyable<P> && requires(const P p, clock_kind on, instant until, slack how,
                                                park_word& word, std::uint32_t expected) {
  { p.now(on) }
  noexcept->std::same_as<instant>;
  { p.coarse_now(on) }
  noexcept->std::same_as<instant>;
  { p.block_until(on, until, how) }
  noexcept->std::same_as<native_wait>;
  { p.park_until(word, expected, on, until, how) }
  noexcept->std::same_as<native_wait>;
  { p.unpark(word) }
  noexcept;
  { P::signal_safe_unpark } -> std::same_as<const bool&>;
  { p.counter_facts() }
  noexcept->std::same_as<counter_support>;
  { p.counter() }
  noexcept->std::same_as<std::uint64_t>;
  { p.relax() }
  noexcept;
  { p.running_time() }
  noexcept->std::same_as<nanoseconds>;
  { p.facts() }
  noexcept->std::same_as<platform_facts>;
};

}  // namespace punctual
