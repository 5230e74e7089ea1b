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

bool waits_a_fraction() {
  const punctual::instant start = punctual::steady::now();
  punctual::sleep_for(seconds(0.0015));
  return punctual::steady::now() - start >= std::chrono::microseconds(1500);
}

}  // namespace

int main() {
  return returns_at_once(not_a_number) && returns_at_once(minus_infinity) && waits_a_fraction() ? 0
                                                                                                : 1;
}
