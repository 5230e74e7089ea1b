// Mistake that would live without it: a wait that ends early on a real kernel, on some clock, after
// some failure: by a nanosecond or by a second, once in ten thousand. Zero exceptions, whatever the
// load.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <random>

#include <sched.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

bool long_run() { return std::getenv("PUNCTUAL_LONG") != nullptr; }

/// Read outside the library.
instant kernel_clock(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return instant{std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec}};
}

/// Log-uniform lengths from 1 ns to `longest`.
class lengths {
 public:
  explicit lengths(nanoseconds longest)
      : exponent_(0, std::log(static_cast<double>(longest.count()))) {}
  nanoseconds next() {
    return nanoseconds{static_cast<std::int64_t>(std::exp(exponent_(random_)))};
  }

 private:
  std::mt19937_64 random_{11};
  std::uniform_real_distribution<double> exponent_;
};

/// A clock of the user's own: half the pace of the steady one, in whole microseconds.
struct half_speed {
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<half_speed>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  static time_point now() noexcept {
    return time_point{std::chrono::floor<duration>(kernel_clock().time_since_epoch() / 2)};
  }
};

/// Waits `waits` times and counts the early ones; for children as well.
int early_waits(int waits, nanoseconds longest) {
  lengths length(longest);
  int early = 0;
  for (int i = 0; i < waits; ++i) {
    const instant due = kernel_clock() + length.next();
    sleep_until(due);
    early += kernel_clock() < due;
  }
  return early;
}

}  // namespace

TEST_CASE("ten thousand real waits of 1 ns to 20 ms are never early", "[contract][G1]") {
  CHECK(early_waits(long_run() ? 100'000 : 10'000, 20ms) == 0);
}

TEST_CASE("waits on every clock and in every family are never early on that clock",
          "[contract][G1]") {
  lengths length(5ms);
  int early = 0;
  for (int i = 0; i < 600; ++i) {
    const instant due = kernel_clock() + length.next();
    i % 2 == 0 ? block_until(due) : spin_until(due);
    early += kernel_clock() < due;

    const auto wall = kernel_clock(CLOCK_REALTIME) + length.next();
    sleep_until(std::chrono::sys_time<nanoseconds>{wall.time_since_epoch()});
    early += kernel_clock(CLOCK_REALTIME) < wall;

    const nanoseconds relative = length.next();
    const instant from = kernel_clock();
    sleep_for(relative);
    early += kernel_clock() - from < relative;

    const auto own =
        half_speed::now() + std::chrono::ceil<std::chrono::microseconds>(length.next());
    const receipt did = sleep_until(own);
    early += half_speed::now() < own;
    early += did.why != outcome::reached && did.why != outcome::already_past;
  }
  CHECK(early == 0);
}

TEST_CASE("waits are not early when the sleeping call is refused, and do not burn",
          "[contract][G1][G6]") {
  for (const int error : {EPERM, ENOSYS, EINVAL}) {
    const int code = support::in_child([error] {
      if (!support::refuse_calls({SYS_clock_nanosleep}, error)) return 77;
      if (early_waits(300, 20ms) != 0) return 1;
      timespec before{}, after{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      for (int i = 0; i < 20; ++i) {
        const receipt did = sleep_for(20ms);
        if (did.error != error || did.why != outcome::reached) return 2;
        // A busy machine makes it wait in stages, but each of them waits.
        if (did.blocked < did.native_waits * 50us) return 2;
      }
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      const double ran = static_cast<double>(after.tv_sec - before.tv_sec) +
                         static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9;
      return ran < 0.5 * 0.4 ? 0 : 3;
    });
    if (code == 77) return support::skip("filters may not be installed here");
    INFO("error " << error);
    CHECK(code == 0);
  }
}

TEST_CASE("with every blocking call refused, sleep_* still waits and block_* gives up",
          "[contract][G1]") {
  const int code = support::in_child([] {
    if (!support::refuse_calls({SYS_clock_nanosleep, SYS_futex, SYS_ppoll}, EPERM)) return 77;
    if (early_waits(200, 5ms) != 0) return 1;
    const receipt slept = sleep_for(5ms);
    if (slept.why != outcome::reached || slept.error != EPERM) return 2;
    const receipt blocked = block_for(5ms);
    if (blocked.why != outcome::gave_up || blocked.error != EPERM || blocked.left <= 0ns) return 3;
    return 0;
  });
  if (code == 77) return support::skip("filters may not be installed here");
  CHECK(code == 0);
}

TEST_CASE("waits are not early in a time namespace", "[contract][G1]") {
  const int code = support::in_child([] {
    if (::unshare(CLONE_NEWTIME) != 0) return 77;
    if (std::FILE* offsets = std::fopen("/proc/self/timens_offsets", "w")) {
      std::fputs("monotonic 100000 0\n", offsets);
      std::fclose(offsets);
    }
    const instant outside = kernel_clock();
    return support::in_child([outside] {  // children enter the namespace
      if (kernel_clock() - outside < 50'000s) return 78;
      if (early_waits(300, 10ms) != 0) return 1;
      const instant due = kernel_clock() + 20ms;
      sleep_until(due);
      return kernel_clock() - due < 1s ? 0 : 2;
    });
  });
  if (code == 77 || code == 78) return support::skip("no time namespace may be made here");
  CHECK(code == 0);
}
