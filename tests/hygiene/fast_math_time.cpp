// Under -ffast-math every floating count still becomes the length that it means.
// flags: -O2 -ffast-math
#include <punctual/time.hpp>

#include <bit>
#include <chrono>
#include <cstdint>

namespace {

using punctual::nanoseconds;
using punctual::to_nanoseconds;

// Read at run time, so that no compiler folds what it may assume away.
template <class Period = std::ratio<1>>
nanoseconds of_bits(std::uint64_t bits) {
  volatile std::uint64_t hidden = bits;
  return to_nanoseconds(std::chrono::duration<double, Period>(std::bit_cast<double>(hidden + 0)));
}
nanoseconds of_float_bits(std::uint32_t bits) {
  volatile std::uint32_t hidden = bits;
  return to_nanoseconds(std::chrono::duration<float>(std::bit_cast<float>(hidden + 0)));
}
template <class Period = std::ratio<1>>
nanoseconds of(double count) {
  return of_bits<Period>(std::bit_cast<std::uint64_t>(count));
}

constexpr nanoseconds longest = nanoseconds::max();
constexpr nanoseconds shortest = nanoseconds::min();

}  // namespace

int main() {
  const bool right[] = {
      of_bits(0x7FF8000000000000) == nanoseconds(0),  // NaN, quiet, negative, signalling
      of_bits(0xFFF8000000000000) == nanoseconds(0),
      of_bits(0x7FF0000000000001) == nanoseconds(0),
      of_bits<std::milli>(0x7FFFFFFFFFFFFFFF) == nanoseconds(0),
      of_float_bits(0x7FC00000) == nanoseconds(0),
      of_bits(0x7FF0000000000000) == longest,  // the infinities
      of_bits(0xFFF0000000000000) == shortest,
      of_float_bits(0x7F800000) == longest,
      of_float_bits(0xFF800000) == shortest,
      of(1e300) == longest,
      of(-1e300) == shortest,
      of(0) == nanoseconds(0),
      of(-0.0) == nanoseconds(0),
      of(0.5) == nanoseconds(500'000'000),
      of<std::milli>(1.5) == nanoseconds(1'500'000),
      of(1e-9 * 2.5) == nanoseconds(3),
      of(-2.5) == nanoseconds(-2'500'000'000),
  };
  int failed = 0;
  for (const bool each : right) failed += each ? 0 : 1;
  return failed;
}
