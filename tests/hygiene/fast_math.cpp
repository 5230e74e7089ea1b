// Under -ffast-math a comparison with NaN may answer anything; the waits tell it by its bits.
// flags: -O2 -ffast-math
#include <punctual/punctual.hpp>

#include <bit>
#include <cstdint>

namespace {

using seconds = std::chrono::duration<double>;

// Read at run time, so that no compiler folds what it may assume away.
volatile std::uint64_t not_a_number = 0x7FF8000000000000;
volatile std::uint64_t minus_infinity = 0xFFF0000000000000;

bool returns_at_once(std::uint64_t bits) {
  const punctual::instant start = punctual::steady::now();
  const punctual::receipt slept = punctual::sleep_for(seconds(std::bit_cast<double>(bits)));
  return slept.native_waits == 0 && punctual::steady::now() - start < std::chrono::seconds(1);
}

/// A clock that counts seconds in a double: a deadline of NaN is compared on the clock itself.
struct own_clock {
  using duration = seconds;
  using rep = double;
  using period = std::ratio<1>;
  using time_point = std::chrono::time_point<own_clock>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  static time_point now() noexcept {
    return time_point(seconds(punctual::steady::now().time_since_epoch()));
  }
};

/// And one that counts nanoseconds, with deadlines in seconds.
struct whole_clock {
  using duration = punctual::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<whole_clock>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  static time_point now() noexcept {
    return time_point(punctual::steady::now().time_since_epoch());
  }
};

bool returns_at_once_on_its_own_clock(std::uint64_t bits) {
  const own_clock::time_point deadline(seconds(std::bit_cast<double>(bits)));
  const std::chrono::time_point<whole_clock, seconds> other(seconds(std::bit_cast<double>(bits)));
  return punctual::sleep_until(deadline).why == punctual::outcome::already_past &&
         punctual::block_until(deadline).why == punctual::outcome::already_past &&
         punctual::sleep_until(other).why == punctual::outcome::already_past &&
         punctual::block_until(other).why == punctual::outcome::already_past;
}

bool waits_on_its_own_clock() {
  const auto deadline = own_clock::now() + seconds(0.0015);
  return punctual::sleep_until(deadline).why == punctual::outcome::reached &&
         own_clock::now() >= deadline;
}

bool waits_a_fraction() {
  const punctual::instant start = punctual::steady::now();
  punctual::sleep_for(seconds(0.0015));
  return punctual::steady::now() - start >= std::chrono::microseconds(1500);
}

}  // namespace

int main() {
  const bool all = returns_at_once(not_a_number) && returns_at_once(minus_infinity) &&
                   returns_at_once_on_its_own_clock(not_a_number) &&
                   returns_at_once_on_its_own_clock(minus_infinity) && waits_on_its_own_clock() &&
                   waits_a_fraction();
  return all ? 0 : 1;
}
