// The C face on a simulated machine, and on this one: for the one file of a program that includes
// <punctual/c/punctual.ipp>. Handles made while a `simulated_c_face` lives stand on its world; all
// others on the machine.
#pragma once

#include <punctual/platform/native.hpp>
#include <punctual/testing/simulated_platform.hpp>

namespace support {

inline constinit punctual::testing::simulation* c_world = nullptr;

class simulated_c_face {
 public:
  explicit simulated_c_face(punctual::testing::simulation& world) { c_world = &world; }
  ~simulated_c_face() { c_world = nullptr; }
  simulated_c_face(const simulated_c_face&) = delete;
  simulated_c_face& operator=(const simulated_c_face&) = delete;
};

/// This machine, or the simulated one that was there when it was made.
class switched_platform {
 public:
  static constexpr bool signal_safe_unpark = punctual::native_platform::signal_safe_unpark;
  using instant = punctual::instant;
  using clock_kind = punctual::clock_kind;

  instant now(clock_kind on) const noexcept {
    return world_ != nullptr ? world_->read_clock(on) : real.now(on);
  }
  instant coarse_now(clock_kind on) const noexcept {
    return world_ != nullptr ? world_->read_coarse(on) : real.coarse_now(on);
  }
  punctual::native_wait block_until(clock_kind on, instant until,
                                    punctual::slack how) const noexcept {
    return world_ != nullptr ? world_->block(on, until, how, nullptr, 0)
                             : real.block_until(on, until, how);
  }
  punctual::native_wait park_until(const punctual::park_word& word, std::uint32_t expected,
                                   clock_kind on, instant until,
                                   punctual::slack how) const noexcept {
    return world_ != nullptr ? world_->block(on, until, how, &word, expected)
                             : real.park_until(word, expected, on, until, how);
  }
  void unpark(const punctual::park_word& word) const noexcept {
    world_ != nullptr ? world_->unpark(word) : real.unpark(word);
  }
  punctual::counter_support counter_facts() const noexcept {
    return world_ != nullptr ? world_->counter_is : real.counter_facts();
  }
  std::uint64_t counter() const noexcept {
    return world_ != nullptr ? world_->read_counter() : real.counter();
  }
  void relax() const noexcept { world_ != nullptr ? world_->pause() : real.relax(); }
  punctual::nanoseconds running_time() const noexcept {
    return world_ != nullptr ? world_->count.ran : real.running_time();
  }
  punctual::platform_facts facts() const noexcept { return real.facts(); }

 private:
  static constexpr punctual::native_platform real{};
  punctual::testing::simulation* world_ = c_world;
};

static_assert(punctual::platform<switched_platform>);

}  // namespace support

#define PUNCTUAL_C_PLATFORM ::support::switched_platform
