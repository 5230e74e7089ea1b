// Mistake that would live without it: a period that is rounded to whole milli-, micro- or
// nanoseconds and then added up, so that audio at an emulator's own rate starves several times a
// second.
#include "support/catch.hpp"

#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>
#include <cstdint>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

constexpr struct {
  rate beats;
  nanoseconds length;
} runs[] = {{hz(60), 1h},
            {hz(120), 1h},
            {hz(144), 1h},
            {rate{60'000, 1'001}, 1h},
            {rate{24'000, 1'001}, 1h},
            {rate{4'194'304, 70'224}, 1h},
            {hz(50), 1h},
            {rate{1'000'000, 19'968}, 1h},
            {hz(7), 1h},
            {rate{1, 3}, 1h},
            {hz(999'983), 2s}};

std::uint64_t whole(const rate& r, std::uint64_t times) {
  return multiply_divide(times, static_cast<std::uint64_t>(r.num),
                         static_cast<std::uint64_t>(r.den), rounding::down);
}

}  // namespace

TEST_CASE("b13: an hour has the right number of frames, and each its right deadline",
          "[cases][b13][G10]") {
  for (const auto& run : runs) {
    simulation world;
    // Cheap steps: zero jitter is what is wanted, not a spin in steps of a few ns. At a megahertz a
    // step must be short against the period.
    const bool fast = run.beats.period() < 10us;
    world.cost.clock_read = fast ? 20ns : 100ns;
    world.cost.counter_read = fast ? 10ns : 100ns;
    world.cost.pause = fast ? 20ns : 1us;
    basic_pacer<simulated_platform> p{
        run.beats, missed::burst, 1'000, {}, simulated_platform{world}};
    const instant began = p.next().due;
    std::uint64_t frames = 1;
    int wrong = 0;
    for (; p.deadline() <= began + run.length; ++frames) {
      const beat b = p.next();
      wrong += b.skipped != 0;
      if (frames != 1 && frames != 1'000 && frames != 100'000) continue;
      // Rounded to the nearest, within a nanosecond: the promise is floor, to the nanosecond.
      const std::uint64_t twice =
          multiply_divide(2 * frames * static_cast<std::uint64_t>(run.beats.den), 1'000'000'000,
                          static_cast<std::uint64_t>(run.beats.num), rounding::down);
      const nanoseconds off =
          b.due - began - nanoseconds{static_cast<std::int64_t>((twice + 1) / 2)};
      wrong += off < -1ns || off > 1ns;
    }
    CAPTURE(to_text(run.beats));
    CHECK(wrong == 0);
    const std::uint64_t right = whole(run.beats, static_cast<std::uint64_t>(run.length / 1s));
    CHECK(frames >= right);
    CHECK(frames <= right + 1);
  }
}

TEST_CASE("b13: audio at the machine's own rate never starves and never overflows",
          "[cases][b13]") {
  for (const rate machine : {rates::zx_spectrum, rates::game_boy, rates::ntsc_field}) {
    simulation world;
    world.cost.clock_read = 100ns;
    world.cost.counter_read = 100ns;
    world.cost.pause = 1us;
    basic_pacer<simulated_platform> p{machine, simulated_platform{world}};
    const rate samples{48'000 * machine.den, machine.num};  // a frame
    const auto frame = static_cast<std::int64_t>(whole(samples, 1));
    instant began{};
    std::int64_t lowest = 1'000'000;
    std::int64_t highest = 0;
    for (std::uint64_t n = 0; n < 180'000; ++n) {  // about an hour
      p.next();
      if (n == 0) began = world.time();
      // The buffer begins half full; this frame is made now, and the sound card has played since
      // the start.
      const auto played = static_cast<std::int64_t>(
          multiply_divide(static_cast<std::uint64_t>((world.time() - began).count()), 48'000,
                          1'000'000'000, rounding::down));
      const std::int64_t before = frame + static_cast<std::int64_t>(whole(samples, n)) - played;
      lowest = std::min(lowest, before);
      highest = std::max(highest, before + frame + 1);
    }
    CAPTURE(to_text(machine), frame);
    CHECK(lowest > 0);
    CHECK(highest <= 2 * frame + 4);  // two frames, and the samples that are being rounded
  }
}
