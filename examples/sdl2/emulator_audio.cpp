// The sound of ../emulator_audio.cpp by a real card: frames at the Game Boy's rate, played through
// SDL2.
//
// SDL queues the samples. How much of the queue is left says how far the card's crystal and the
// machine's are apart, and the pacer is nudged after it.
//
//   emulator_audio [SECONDS]    five by default
// smoke: 1
#include <punctual/pacer.hpp>

#include <SDL.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 5;
  if (SDL_Init(SDL_INIT_AUDIO) != 0) {
    std::fprintf(stderr, "no audio: %s\n", SDL_GetError());
    return 1;
  }
  SDL_AudioSpec wanted{};
  wanted.freq = 48'000;
  wanted.format = AUDIO_S16SYS;
  wanted.channels = 1;
  wanted.samples = 512;
  SDL_AudioSpec got{};
  const SDL_AudioDeviceID card = SDL_OpenAudioDevice(nullptr, 0, &wanted, &got, 0);
  if (card == 0) {
    std::fprintf(stderr, "no sound card: %s\n", SDL_GetError());
    return 1;
  }

  constexpr punctual::rate machine = punctual::rates::game_boy;
  constexpr double middle = 2048;  // samples, 43 ms
  std::uint64_t made = 0;
  std::vector<std::int16_t> samples;
  // The samples of all frames up to this one, so that no fraction of one is ever lost.
  const auto emulate = [&](std::uint64_t frames) {
    const std::uint64_t until = punctual::multiply_divide(
        frames, static_cast<std::uint64_t>(got.freq * machine.den),
        static_cast<std::uint64_t>(machine.num), punctual::rounding::down);
    samples.clear();
    for (; made < until; ++made) {
      const bool high = made * 880 / static_cast<std::uint64_t>(got.freq) % 2 == 0;
      samples.push_back(high ? 3'000 : -3'000);
    }
    SDL_QueueAudio(card, samples.data(),
                   static_cast<Uint32>(samples.size() * sizeof(std::int16_t)));
  };
  const auto queued = [card] {
    return static_cast<double>(SDL_GetQueuedAudioSize(card)) / sizeof(std::int16_t);
  };

  std::uint64_t frames_made = 0;
  while (queued() < middle) emulate(++frames_made);
  SDL_PauseAudioDevice(card, 0);

  punctual::pacer frames{machine, punctual::missed::burst};
  const punctual::instant end = punctual::later(
      punctual::steady::now(), punctual::to_nanoseconds(std::chrono::duration<double>(seconds)));
  double smooth = middle;
  std::uint64_t dry = 0;
  for (const punctual::beat& frame : frames.beats()) {
    if (frame.due >= end) break;
    dry += queued() == 0;
    // What a debugger's stop has cost is not queued: it would be heard as so much delay.
    for (auto step = frame.steps(); step > 0 && queued() < 2 * middle; --step) {
      emulate(++frames_made);
    }
    smooth += (queued() - smooth) / 30;
    if (frames_made > 60) {
      const double too_much = (smooth - middle) / got.freq;  // seconds
      frames.nudge(punctual::nanoseconds{static_cast<std::int64_t>(too_much * 1e9 / 200)});
    }
  }

  std::printf("%llu frames, queue dry at %llu of them, %.0f samples left\n%s",
              static_cast<unsigned long long>(frames_made), static_cast<unsigned long long>(dry),
              queued(), to_text(frames).c_str());
  SDL_CloseAudioDevice(card);
  SDL_Quit();
  return 0;
}
