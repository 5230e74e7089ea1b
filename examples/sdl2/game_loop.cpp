// The game loop of ../game_loop.cpp with a window: fixed time steps, pictures in between, by SDL2.
//
// The renderer does not wait for the display here; the pacer does the waiting, and says how well.
// In the background, without the focus, ten frames a second are enough, and no spin.
//
//   game_loop [SECONDS]    until the window is closed, or so long
// smoke: 1
#include <punctual/pacer.hpp>

#include <SDL.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int width = 640;
constexpr int height = 360;
constexpr int size = 24;

struct world {
  double at = 0;       // pixels from the left
  double speed = 240;  // a second

  void step(double seconds) {
    at += speed * seconds;
    if (at < 0 || at > width - size) {
      at = at < 0 ? -at : 2 * (width - size) - at;
      speed = -speed;
    }
  }
};

punctual::rate display_rate(SDL_Window* window) {
  SDL_DisplayMode mode{};
  const bool known = SDL_GetWindowDisplayMode(window, &mode) == 0 && mode.refresh_rate > 0;
  return punctual::hz(known ? mode.refresh_rate : 60);
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 0;
  if (SDL_Init(SDL_INIT_VIDEO) != 0) {
    std::fprintf(stderr, "no video: %s\n", SDL_GetError());
    return 1;
  }
  SDL_Window* const window =
      SDL_CreateWindow("punctual", SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, width, height,
                       SDL_WINDOW_SHOWN);
  SDL_Renderer* const renderer = window != nullptr ? SDL_CreateRenderer(window, -1, 0) : nullptr;
  if (renderer == nullptr) {
    std::fprintf(stderr, "no window: %s\n", SDL_GetError());
    return 1;
  }

  constexpr punctual::rate step_rate = punctual::hz(50);
  constexpr double step = 1 / step_rate.hertz();
  constexpr std::uint64_t most_steps = 12;  // a quarter of a second: after a stop the world waits
  const punctual::rate frame_rate = display_rate(window);
  punctual::pacer frames{frame_rate};
  punctual::pacer steps{step_rate};
  world before;
  world now;

  const punctual::instant end = punctual::later(
      punctual::steady::now(), punctual::to_nanoseconds(std::chrono::duration<double>(seconds)));
  for (const punctual::beat& frame : frames.beats()) {
    SDL_Event event;
    while (SDL_PollEvent(&event) != 0) {
      if (event.type == SDL_QUIT) frames.stop();
      if (event.type != SDL_WINDOWEVENT) continue;
      if (event.window.event == SDL_WINDOWEVENT_FOCUS_LOST) frames.set_background(punctual::hz(10));
      if (event.window.event == SDL_WINDOWEVENT_FOCUS_GAINED) frames.set_rate(frame_rate);
    }
    if (seconds > 0 && frame.due >= end) frames.stop();

    for (auto due = std::min(steps.poll().steps(), most_steps); due > 0; --due) {
      before = now;
      now.step(step);
    }
    const auto left =
        std::chrono::duration<double>(steps.deadline() - punctual::steady::now()).count();
    const double part = 1 - std::fmin(std::fmax(left / step, 0), 1);

    SDL_SetRenderDrawColor(renderer, 20, 22, 30, 255);
    SDL_RenderClear(renderer);
    SDL_SetRenderDrawColor(renderer, 240, 180, 60, 255);
    const SDL_Rect box{static_cast<int>(std::lround(before.at + (now.at - before.at) * part)),
                       (height - size) / 2, size, size};
    SDL_RenderFillRect(renderer, &box);
    SDL_RenderPresent(renderer);
  }

  std::fputs(to_text(frames).c_str(), stdout);
  SDL_DestroyRenderer(renderer);
  SDL_DestroyWindow(window);
  SDL_Quit();
  return 0;
}
