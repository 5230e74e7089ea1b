// How late the kernel wakes sleepers: a quantile of the overshoot for each class of wait length.
//
// Layer L2. Knows no clock and no system: it is told pairs (length asked for, overshoot) and answers
// with the overshoot that a share `punctuality` of waits of a length stays below.
#pragma once

#include <punctual/platform/seam.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace punctual {

/// Learns a quantile of the overshoot by length class, with forgetting, in fixed memory.
class overshoot_estimator {
 public:
  static constexpr std::size_t classes = 21;

  constexpr explicit overshoot_estimator(double punctuality = 0.98) noexcept
      : punctuality_(static_cast<float>(punctuality)) {}

  /// The class of a length: one for each power of two from 16 us to 17 s.
  static constexpr std::size_t class_of(nanoseconds length) noexcept {
    constexpr int lowest = 15;  // bit width of 16384 ns
    if (length.count() <= 0) return 0;
    const auto width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(length.count())));
    if (width <= lowest) return 0;
    const auto index = static_cast<std::size_t>(width - lowest);
    return index < classes ? index : classes - 1;
  }

  constexpr void learn(nanoseconds length, nanoseconds overshoot) noexcept {
    one& c = class_[class_of(length)];
    float sample = static_cast<float>(overshoot.count());
    if (sample < 0.0F) sample = 0.0F;
    if (c.samples == 0) {
      c.value = sample;
      c.scale = sample / 8.0F;
    }
    const float most = c.value + 8.0F * c.scale + 2000.0F;
    if (sample > most) sample = most;
    const float away = sample > c.value ? sample - c.value : c.value - sample;
    c.scale += (away - c.scale) / 16.0F;
    const float step = c.scale / 4.0F + 100.0F;
    c.value += sample > c.value ? step * punctuality_ : -step * (1.0F - punctuality_);
    if (c.value < 0.0F) c.value = 0.0F;
    if (c.samples < 0xffff) ++c.samples;
  }

  /// The overshoot that a share `punctuality` of waits of this length stays below.
  constexpr nanoseconds quantile(nanoseconds length) const noexcept {
    const std::size_t here = class_of(length);
    for (std::size_t away = 0; away < classes; ++away) {
      if (here >= away && class_[here - away].samples > 0) return whole(class_[here - away].value);
      if (here + away < classes && class_[here + away].samples > 0) {
        return whole(class_[here + away].value);
      }
    }
    return std::chrono::microseconds{150};
  }

  constexpr double punctuality() const noexcept { return static_cast<double>(punctuality_); }
  constexpr std::uint32_t samples(nanoseconds length) const noexcept {
    return class_[class_of(length)].samples;
  }

 private:
  struct one {
    float value = 0.0F, scale = 0.0F;
    std::uint16_t samples = 0;
  };
  static constexpr nanoseconds whole(float ns) noexcept {
    return nanoseconds{static_cast<std::int64_t>(ns)};
  }

  float punctuality_;
  std::array<one, classes> class_{};
};

}  // namespace punctual
