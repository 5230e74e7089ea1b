// An emulator's sound: frames at the Game Boy's own rate, samples played at the sound card's.
//
// The emulator makes 59.7275 frames a second and the samples that belong to each; the card plays
// 48000 a second by a crystal of its own, here 120 ppm fast. Left alone, the ring between them runs
// dry within a minute. So each frame looks at how full the ring is and nudges the pacer a little
// towards the middle: the emulator follows the card, and nobody hears it. (A frame lasts 0.01 %
// less than it should.)
//
//   emulator_audio                     an hour in simulated time, on a busy machine
//   emulator_audio --without-control   the same left alone
//   emulator_audio --real 10           ten seconds in real time
// smoke:
#include <punctual/pacer.hpp>
#include <punctual/testing/kernels.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace std::chrono_literals;
using punctual::instant;
using punctual::nanoseconds;
using punctual::rate;

namespace {

constexpr rate machine = punctual::rates::game_boy;
constexpr std::int64_t sample_rate = 48'000;

/// Samples between two threads; here both ends are in one.
class ring {
 public:
  std::int64_t filled() const { return written_ - read_; }
  bool write(std::int16_t sample) {
    if (filled() == size) return false;
    samples_[static_cast<std::size_t>(written_++ % size)] = sample;
    return true;
  }
  bool read(std::int16_t& sample) {
    if (filled() == 0) return false;
    sample = samples_[static_cast<std::size_t>(read_++ % size)];
    return true;
  }
  static constexpr std::int64_t size = 4096;  // 85 ms

 private:
  std::array<std::int16_t, static_cast<std::size_t>(size)> samples_{};
  std::int64_t written_ = 0;
  std::int64_t read_ = 0;
};

/// A sound card that fetches blocks of 512 samples by its own crystal.
class sound_card {
 public:
  sound_card(ring& from, rate samples) : from_(from), blocks_{samples.num, samples.den * block} {}

  /// Fetches what it has played until now. @return  samples that were not there.
  std::int64_t play(instant now) {
    if (!playing_) clock_ = punctual::grid{blocks_, now};
    playing_ = true;
    std::int64_t missing = 0;
    for (; clock_.at(fetched_ + 1) <= now; ++fetched_) {
      std::int16_t sample = 0;
      for (std::int64_t i = 0; i < block; ++i) missing += from_.read(sample) ? 0 : 1;
    }
    return missing;
  }
  static constexpr std::int64_t block = 512;

 private:
  ring& from_;
  rate blocks_;
  punctual::grid clock_;
  std::uint64_t fetched_ = 0;
  bool playing_ = false;
};

/// The machine: a square wave of 440 Hz, as many samples with each frame as belong to it.
class emulator {
 public:
  std::int64_t frame(ring& to) {
    ++frames_;
    // Of all frames together, so that the fraction of a sample is never lost.
    const auto until = static_cast<std::int64_t>(punctual::multiply_divide(
        frames_, static_cast<std::uint64_t>(sample_rate * machine.den),
        static_cast<std::uint64_t>(machine.num), punctual::rounding::down));
    std::int64_t lost = 0;
    for (; made_ < until; ++made_) {
      const bool high = made_ * 880 / sample_rate % 2 == 0;
      lost += to.write(high ? 8'000 : -8'000) ? 0 : 1;
    }
    return lost;
  }

 private:
  std::uint64_t frames_ = 0;
  std::int64_t made_ = 0;
};

struct figures {
  std::int64_t missing = 0;
  std::int64_t lost = 0;
  std::int64_t emptiest = ring::size;
  std::int64_t fullest = 0;
  std::uint64_t frames = 0;
  nanoseconds nudged{0};
};

/// The loop of the emulator. `now` reads the clock that the pacer waits on.
template <class Pacer, class Now>
figures run(Pacer& frames, Now now, nanoseconds length, bool controlled) {
  constexpr std::int64_t middle = ring::size / 2;
  constexpr std::uint64_t most_steps = 5;  // a whole ring
  constexpr rate card_rate{sample_rate * 1'000'120, 1'000'000};
  ring samples;
  sound_card card{samples, card_rate};
  emulator game;
  figures seen;

  while (samples.filled() < middle) game.frame(samples);  // something to play from the start
  const instant end = punctual::later(now(), length);
  double smooth = middle;
  for (const punctual::beat& frame : frames.beats()) {
    if (frame.due >= end) break;
    seen.missing += card.play(now());
    seen.emptiest = std::min(seen.emptiest, samples.filled());
    // Sound never skips; but what a debugger's stop has cost nobody wants to hear afterwards.
    for (auto step = std::min(frame.steps(), most_steps); step > 0; --step)
      seen.lost += game.frame(samples);
    seen.fullest = std::max(seen.fullest, samples.filled());
    ++seen.frames;

    // Half a second's mean, for the card fetches in blocks; a frame takes away 1/200 of what is too
    // much.
    smooth += (static_cast<double>(samples.filled()) - smooth) / 30;
    if (!controlled || seen.frames < 60) continue;
    const double too_much = (smooth - middle) / static_cast<double>(sample_rate);  // seconds
    const nanoseconds by{static_cast<std::int64_t>(too_much * 1e9 / 200)};
    frames.nudge(by);
    seen.nudged += by;
  }
  return seen;
}

int report(const figures& seen, const std::string& loop) {
  std::printf(
      "%llu frames: %lld samples missing, %lld lost, ring between %lld and %lld of %lld, nudged by "
      "%s\n%s",
      static_cast<unsigned long long>(seen.frames), static_cast<long long>(seen.missing),
      static_cast<long long>(seen.lost), static_cast<long long>(seen.emptiest),
      static_cast<long long>(seen.fullest), static_cast<long long>(ring::size),
      punctual::to_text(seen.nudged).c_str(), loop.c_str());
  return seen.missing + seen.lost == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string first = count > 1 ? words[1] : "";
  if (first == "--real") {
    punctual::pacer frames{machine, punctual::missed::burst};
    const double seconds = count > 2 ? std::atof(words[2]) : 10;
    const nanoseconds length = punctual::to_nanoseconds(std::chrono::duration<double>(seconds));
    const figures seen = run(frames, punctual::steady::now, length, true);
    return report(seen, to_text(frames));
  }
  if (!first.empty() && first != "--without-control") {
    std::fprintf(stderr, "usage: emulator_audio [--without-control | --real SECONDS]\n");
    return 2;
  }

  namespace sim = punctual::testing;
  sim::simulation world;
  sim::kernels::named("linux, busy").install(world, 1);
  punctual::basic_pacer frames{
      machine, punctual::missed::burst, 3, {}, sim::simulated_platform{world}};
  const figures seen = run(
      frames, [&world] { return world.time(); }, 1h, first.empty());
  const int failed = report(seen, to_text(frames));
  return first.empty() ? failed : 1 - failed;  // left alone it has to fail
}
