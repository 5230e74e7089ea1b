// How often: an exact ratio of beats to seconds, and the names of those that people need.
//
// Layer L1. A rate is two whole numbers, never a floating one: NTSC video is 60000/1001 Hz, and a
// loop at 60 Hz is a frame ahead of it after 17 seconds. Which deadlines a rate makes stands in
// grid.hpp.
#pragma once

#include <punctual/time.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

/// What happens where a precondition does not hold; define it before the first include to replace
/// it. In a constant expression the default does not compile, at run time it says the sentence and
/// aborts.
#if !defined(PUNCTUAL_PRECONDITION)
#define PUNCTUAL_PRECONDITION(holds, sentence) \
  ((holds) ? static_cast<void>(0) : ::punctual::precondition_broken(sentence))
#endif

namespace punctual {

/// Says which precondition was broken, and ends the program.
[[noreturn]] inline void precondition_broken(const char* sentence) noexcept {
  std::fprintf(stderr, "punctual: %s\n", sentence);
  std::abort();
}

/// An integer that can count something: no bool, no character.
template <class T>
concept countable = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// Beats per second as an exact, reduced ratio.
///
/// Guarantee  `num` and `den` have no common factor; a period is from 1 ns to 292 years long.
struct rate {
  std::int64_t num;  ///< beats, > 0
  std::int64_t den;  ///< seconds that they take, > 0; 0 only in `rates::unlimited`

  /// Takes `beats` in `seconds`: `rate{60000, 1001}` for 59.94 Hz.
  template <countable Beats, countable Seconds>
  constexpr rate(Beats beats, Seconds seconds) noexcept : rate(checked(beats, seconds)) {}

  /// A floating rate has lost its exact value: write the ratio, as in `rate{60000, 1001}`.
  template <class Beats, class Seconds>
  requires std::floating_point<Beats> || std::floating_point<Seconds> rate(
      Beats write_the_exact_ratio_as_in_rate_60000_1001, Seconds)
  = delete;

  /// Whether the two numbers are a rate. For values that come from outside.
  template <countable Beats, countable Seconds>
  static constexpr bool valid(Beats beats, Seconds seconds) noexcept {
    if (!std::in_range<std::int64_t>(beats) || !std::in_range<std::int64_t>(seconds)) return false;
    if (beats <= Beats{0} || seconds <= Seconds{0}) return false;
    const std::uint64_t period = multiply_divide(static_cast<std::uint64_t>(seconds), 1'000'000'000,
                                                 static_cast<std::uint64_t>(beats), rounding::down);
    return period >= 1 && period < std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  }

  /// The length of a period, rounded down; what is exact is the grid, not this. Zero when
  /// unlimited.
  constexpr nanoseconds period() const noexcept {
    return nanoseconds{static_cast<std::int64_t>(
        multiply_divide(static_cast<std::uint64_t>(den), 1'000'000'000,
                        static_cast<std::uint64_t>(num), rounding::down))};
  }

  /// The rate for showing to people, in Hz; infinite when unlimited.
  constexpr double hertz() const noexcept {
    return den == 0 ? std::numeric_limits<double>::infinity()
                    : static_cast<double>(num) / static_cast<double>(den);
  }

  /// No deadlines at all: a pacer at this rate never waits.
  static constexpr rate unlimited() noexcept { return rate(reduced{1, 0}); }
  constexpr bool is_unlimited() const noexcept { return den == 0; }

  friend constexpr bool operator==(const rate&, const rate&) noexcept = default;

 private:
  struct reduced {
    std::int64_t num;
    std::int64_t den;
  };
  explicit constexpr rate(reduced r) noexcept : num(r.num), den(r.den) {}

  template <class Beats, class Seconds>
  static constexpr reduced checked(Beats beats, Seconds seconds) noexcept {
    PUNCTUAL_PRECONDITION(valid(beats, seconds),
                          "a rate is more than zero, with a period from 1 ns to 292 years");
    const auto num = static_cast<std::int64_t>(beats);
    const auto den = static_cast<std::int64_t>(seconds);
    const std::int64_t common = std::gcd(num, den);
    return {num / common, den / common};
  }
};

/// A whole number of beats per second.
template <countable Beats>
constexpr rate hz(Beats beats) noexcept {
  return rate{beats, 1};
}

/// A floating rate has lost its exact value: write the ratio, as in `rate{60000, 1001}`.
template <std::floating_point Beats>
rate hz(Beats write_the_exact_ratio_as_in_rate_60000_1001) = delete;

/// One beat in every such length of time: `every(20ms)` is 50 Hz, exactly.
template <countable Rep, class Period>
constexpr rate every(const std::chrono::duration<Rep, Period>& length) noexcept {
  PUNCTUAL_PRECONDITION(length.count() > Rep{0} && std::in_range<std::int64_t>(length.count()),
                        "one beat in every zero or less is not a rate");
  auto count = static_cast<std::int64_t>(length.count());
  const std::int64_t common = std::gcd(count, std::int64_t{Period::den});
  count /= common;
  PUNCTUAL_PRECONDITION(count <= std::numeric_limits<std::int64_t>::max() / Period::num,
                        "a period is at most 292 years long");
  return rate{Period::den / common, count * Period::num};
}

/// A floating length has lost its exact value: write the ratio, as in `rate{60000, 1001}`.
template <std::floating_point Rep, class Period>
rate every(const std::chrono::duration<Rep, Period>& write_the_exact_ratio_as_in_rate_60000_1001) =
    delete;

/// Rates with a name, each with the source of its figures.
namespace rates {

// Video and film. Source: ITU-R BT.709, picture rates, which has all six.
inline constexpr rate ntsc_field{60000, 1001};
inline constexpr rate ntsc_frame{30000, 1001};
inline constexpr rate pal_field{50, 1};
inline constexpr rate pal_frame{25, 1};
inline constexpr rate film{24, 1};
inline constexpr rate film_ntsc{24000, 1001};

// Game Boy: 4.194304 MHz, 154 lines of 456 clocks. Source: Pan Docs, "Rendering".
inline constexpr rate game_boy{4194304, 70224};

// NES and SNES, NTSC: a master clock of 6 colour carriers (236.25/11 MHz), 262 lines of 1364, of
// which one in every other frame is 4 clocks short. PAL: NES 26.6017125 MHz, 312 lines of 341 dots
// of 5 clocks; SNES 21.28137 MHz, 312 lines of 1364. Source: NESdev Wiki, "Cycle reference chart";
// SNESdev Wiki, "Timing".
inline constexpr rate nes_ntsc{236'250'000, 11 * 357'366};
inline constexpr rate nes_pal{53'203'425, 2 * 5 * 106'392};
inline constexpr rate snes_ntsc{236'250'000, 11 * 357'366};
inline constexpr rate snes_pal{21'281'370, 425'568};

// Mega Drive: 15 NTSC colour carriers (590.625/11 MHz) or 12 PAL ones (53.203425 MHz), lines of
// 3420 clocks, 262 or 313 of them. Source: Sega Retro, "Sega Mega Drive/Technical specifications".
inline constexpr rate mega_drive_ntsc{590'625'000, 11 * 896'040};
inline constexpr rate mega_drive_pal{53'203'425, 1'070'460};

// ZX Spectrum 48K: 3.5 MHz, 312 lines of 224 T-states. Source: World of Spectrum, "48K reference".
inline constexpr rate zx_spectrum{3'500'000, 69'888};

// What displays are sold as. A real one is off by some 100 ppm: steer to it with `nudge`.
inline constexpr rate display_60{60, 1};
inline constexpr rate display_75{75, 1};
inline constexpr rate display_90{90, 1};
inline constexpr rate display_100{100, 1};
inline constexpr rate display_120{120, 1};
inline constexpr rate display_144{144, 1};
inline constexpr rate display_165{165, 1};
inline constexpr rate display_240{240, 1};

/// Never waits.
inline constexpr rate unlimited = rate::unlimited();

/// Blocks of `frames` samples at `sample_rate` samples a second: 48000 and 256 make 187.5 Hz.
template <countable Frames, countable Samples>
constexpr rate audio_block(Frames frames, Samples sample_rate) noexcept {
  return rate{sample_rate, frames};
}

/// A floating rate has lost its exact value: `audio_block(1024 * 1001, 48000 * 1000)` is exact.
template <class Frames, class Samples>
requires std::floating_point<Frames> || std::floating_point<Samples> rate
audio_block(Frames write_whole_numbers_as_in_audio_block_256_48000, Samples)
= delete;

}  // namespace rates

/// Writes a rate for people: `60 Hz`, `60000/1001 Hz (59.9400)`, `unlimited`.
inline std::string to_text(const rate& r) {
  if (r.is_unlimited()) return "unlimited";
  std::string text = std::to_string(r.num);
  if (r.den == 1) return text + " Hz";
  const std::uint64_t parts = multiply_divide(static_cast<std::uint64_t>(r.num), 10'000,
                                              static_cast<std::uint64_t>(r.den), rounding::down);
  return text + '/' + std::to_string(r.den) + " Hz (" + std::to_string(parts / 10'000) + '.' +
         std::to_string(10'000 + parts % 10'000).substr(1) + ')';
}

}  // namespace punctual
