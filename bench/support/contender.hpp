// One way to wait, under one name: a peer's strategy, a real library, or this library.
#pragma once

#include "../peers/native_machine.hpp"
#include "../peers/strategies.hpp"
#include "thread_cost.hpp"

#include <punctual/sleep.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

class contender {
 public:
  explicit contender(std::string name) : name_(std::move(name)) {}
  virtual ~contender() = default;
  contender(const contender&) = delete;
  contender& operator=(const contender&) = delete;

  const std::string& name() const { return name_; }
  virtual void prepare() {}  ///< once, before the first wait
  virtual void enter() {}    ///< before each wait, not measured
  virtual void wait_until(instant deadline) = 0;
  virtual void leave() {}  ///< after each wait, not measured

 private:
  std::string name_;
};

/// A strategy of bench/peers on this machine.
template <class Strategy>
class peer final : public contender {
 public:
  peer(std::string name, Strategy strategy)
      : contender(std::move(name)), strategy_(std::move(strategy)) {}

  void prepare() override {
    strategy_.prepare(machine_);
    if constexpr (requires { strategy_.settle(); }) strategy_.settle();
  }
  void enter() override {
    if (Strategy::small_slack) machine_.small_slack(true);
  }
  void wait_until(instant deadline) override { strategy_.sleep_until(machine_, deadline); }
  void leave() override {
    if (Strategy::small_slack) machine_.small_slack(false);
  }

 private:
  peers::native_machine machine_;
  Strategy strategy_;
};

/// This library, with a sleeper of its own and the default tuning. Remembers its last receipt.
class ours final : public contender {
 public:
  explicit ours(std::string name = "punctual") : contender(std::move(name)) {}
  void wait_until(instant deadline) override { last_ = sleeper_.sleep_until(deadline); }
  const punctual::receipt& last() const { return last_; }
  punctual::sleeper& sleeper() { return sleeper_; }

 private:
  punctual::sleeper sleeper_{};
  punctual::receipt last_{};
};

using contenders = std::vector<std::unique_ptr<contender>>;

/// Makers of the real libraries that were found at configure
/// time; bench/libraries adds itself here.
inline std::vector<std::unique_ptr<contender> (*)()>& libraries() {
  static std::vector<std::unique_ptr<contender> (*)()> all;
  return all;
}

/// Adds a contender to every comparison: `static const library here([] { … });`
struct library {
  explicit library(std::unique_ptr<contender> (*make)()) { libraries().push_back(make); }
};

inline void add_libraries(contenders& all) {
  for (const auto make : libraries()) all.push_back(make());
}

/// This library, every strategy of bench/peers, and a second spin and plain sleep as A/A controls.
inline contenders everyone() {
  contenders all;
  all.push_back(std::make_unique<ours>());
  peers::for_each_strategy([&all](const char* name, auto strategy) {
    all.push_back(std::make_unique<peer<decltype(strategy)>>(name, strategy));
  });
  all.push_back(std::make_unique<peer<peers::spin>>("spin-again", peers::spin{}));
  all.push_back(std::make_unique<peer<peers::kernel>>("kernel-again", peers::kernel{}));
  return all;
}

}  // namespace bench
