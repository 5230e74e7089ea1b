// SDL 2's own delay. It takes whole milliseconds; asked for the
// next one, since early is not an option.
#include "../support/contender.hpp"

#include <SDL2/SDL_timer.h>

#include <cstdint>
#include <memory>

namespace {

class sdl2 final : public bench::contender {
 public:
  sdl2() : contender("sdl2") {}
  void wait_until(bench::instant deadline) override {
    const bench::nanoseconds left = deadline - bench::now();
    if (left > bench::nanoseconds::zero()) {
      SDL_Delay(static_cast<std::uint32_t>((left.count() + 999'999) / 1'000'000));
    }
  }
};

const bench::library here([]() -> std::unique_ptr<bench::contender> {
  return std::make_unique<sdl2>();
});

}  // namespace
