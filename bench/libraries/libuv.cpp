// A one-shot timer of libuv and its loop. Whole milliseconds; asked for the next one.
#include "../support/contender.hpp"

#include <uv.h>

#include <cstdint>
#include <memory>

namespace {

class libuv final : public bench::contender {
 public:
  libuv() : contender("libuv") {
    uv_loop_init(&loop_);
    uv_timer_init(&loop_, &timer_);
  }
  ~libuv() override {
    uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  void wait_until(bench::instant deadline) override {
    const bench::nanoseconds left = deadline - bench::now();
    if (left <= bench::nanoseconds::zero()) return;
    uv_update_time(&loop_);
    const auto ms = static_cast<std::uint64_t>((left.count() + 999'999) / 1'000'000);
    uv_timer_start(
        &timer_, [](uv_timer_t*) {}, ms, 0);
    uv_run(&loop_, UV_RUN_DEFAULT);
  }

 private:
  uv_loop_t loop_{};
  uv_timer_t timer_{};
};

const bench::library here([]() -> std::unique_ptr<bench::contender> {
  return std::make_unique<libuv>();
});

}  // namespace
