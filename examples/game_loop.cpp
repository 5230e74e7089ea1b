// A game loop: the world in fixed time steps, pictures in between, and how punctual the frames
// were.
//
// Two pacers. One waits for the next frame; the other never waits, and says how many time steps of
// the world are due. A picture shows the world between its last two steps, by how much of the next
// one has gone by, so that 50 steps a second look smooth at any frame rate. A hitch costs frames,
// never steps; only beyond a quarter of a second, after a debugger's stop, the world stands still.
//
//   game_loop                          ten seconds at 60 Hz, figures live in the terminal
//   game_loop --rate 60000/1001        another rate, exactly
//   game_loop --seconds 60 --hitch     with a hitch of 80 ms every two seconds
// smoke: --seconds 1 --hitch
#include <punctual/pacer.hpp>
#include <punctual/sleep.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

using namespace std::chrono_literals;

namespace {

/// A ball on a floor, between two walls.
struct world {
  double at = 0.5;      // 0 … 1
  double speed = 0.35;  // a second

  void step(double seconds) {
    at += speed * seconds;
    if (at < 0 || at > 1) {
      at = at < 0 ? -at : 2 - at;
      speed = -speed;
    }
  }
};

struct options {
  punctual::rate frames = punctual::hz(60);
  double seconds = 10;
  bool hitch = false;
};

options read(int count, char** words) {
  options o;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    long long num = 0;
    long long den = 1;
    if (word == "--hitch") {
      o.hitch = true;
    } else if (word == "--seconds" && i + 1 < count) {
      o.seconds = std::atof(words[++i]);
    } else if (word == "--rate" && i + 1 < count &&
               std::sscanf(words[++i], "%lld/%lld", &num, &den) >= 1 &&
               punctual::rate::valid(num, den)) {
      o.frames = punctual::rate{num, den};
    } else {
      std::fprintf(stderr, "usage: game_loop [--rate NUM[/DEN]] [--seconds S] [--hitch]\n");
      std::_Exit(2);
    }
  }
  return o;
}

std::string picture(double at) {
  std::string line(42, ' ');
  line.front() = line.back() = '|';
  line[1 + static_cast<std::size_t>(std::lround(at * 39))] = 'o';
  return line;
}

}  // namespace

int main(int count, char** words) {
  const options chosen = read(count, words);
  const bool live = ::isatty(STDOUT_FILENO) != 0;

  constexpr punctual::rate step_rate = punctual::hz(50);
  constexpr double step = 1 / step_rate.hertz();
  constexpr std::uint64_t most_steps = 12;
  world before;
  world now;

  punctual::pacer frames{chosen.frames};
  punctual::pacer steps{step_rate};
  const punctual::instant end =
      punctual::later(punctual::steady::now(),
                      punctual::to_nanoseconds(std::chrono::duration<double>(chosen.seconds)));

  for (const punctual::beat& frame : frames.beats()) {
    if (frame.due >= end) frames.stop();

    for (auto due = std::min(steps.poll().steps(), most_steps); due > 0; --due) {
      before = now;
      now.step(step);
    }
    // What is left of the step that is under way: 0 just after a step, 1 just before the next.
    const auto left =
        std::chrono::duration<double>(steps.deadline() - punctual::steady::now()).count();
    const double part = 1 - std::fmin(std::fmax(left / step, 0), 1);

    if (live && frame.index % 4 == 0) {
      const punctual::statistics& late = frames.lateness();
      std::printf("\r%s  %7.3f Hz  late: median %s, 99 %% %s, most %s  dropped %llu   ",
                  picture(before.at + (now.at - before.at) * part).c_str(), frames.achieved_hertz(),
                  punctual::to_text(late.quantile(0.5)).c_str(),
                  punctual::to_text(late.quantile(0.99)).c_str(),
                  punctual::to_text(late.max()).c_str(),
                  static_cast<unsigned long long>(frames.dropped()));
      std::fflush(stdout);
    }
    if (chosen.hitch && frame.index % 120 == 30)
      punctual::block_for(80ms);  // a texture, a garbage collector
  }

  std::printf("%s%s", live ? "\n\n" : "", to_text(frames).c_str());
  return 0;
}
