// Boost.Asio's steady_timer, waited for without a handler's
// thread: one io_context, run in this thread.
#include "../support/contender.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace {

class asio final : public bench::contender {
 public:
  asio() : contender("asio") {}
  void wait_until(bench::instant deadline) override {
    timer_.expires_at(deadline);
    timer_.async_wait([](const boost::system::error_code&) {});
    context_.restart();
    context_.run();
  }

 private:
  boost::asio::io_context context_{1};
  boost::asio::steady_timer timer_{context_};
};

const bench::library here([]() -> std::unique_ptr<bench::contender> {
  return std::make_unique<asio>();
});

}  // namespace
