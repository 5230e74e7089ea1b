// Mistake that would live without it: in C, where EINTR is a program's daily bread, a signal that
// comes more often than a sleep lasts makes it endless, or ends it, or passes for a wake-up.
#include "support/catch.hpp"

#include <punctual/punctual.h>

#include <csignal>

#include <sys/time.h>

namespace {

/// SIGALRM every millisecond for as long as the object lives; its handler does nothing.
class frequent_signal {
 public:
  explicit frequent_signal(int flags) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    ::sigaction(SIGALRM, &action, &before_);
    itimerval timer{};
    timer.it_value.tv_usec = timer.it_interval.tv_usec = 1000;
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
  ~frequent_signal() {
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  frequent_signal(const frequent_signal&) = delete;
  frequent_signal& operator=(const frequent_signal&) = delete;

 private:
  struct sigaction before_ {};
};

constexpr std::int64_t ms = 1'000'000;

}  // namespace

TEST_CASE("b34: a signal every millisecond neither lengthens nor ends the waits of the C face",
          "[cases][b34][c_face][G3]") {
  punctual_waker* waker = nullptr;
  REQUIRE(punctual_waker_create(&waker) == PUNCTUAL_OK);
  for (const int flags : {0, SA_RESTART}) {
    const frequent_signal signals(flags);
    for (int i = 0; i < 4; ++i) {
      punctual_receipt did = PUNCTUAL_RECEIPT_INIT;
      const std::int64_t from = punctual_now_ns();
      CHECK(punctual_sleep_for_ns(100 * ms, &did) == PUNCTUAL_REACHED);
      CHECK(did.interruptions > 0);
      CHECK(punctual_block_for_ns(100 * ms, nullptr) == PUNCTUAL_REACHED);
      CHECK(punctual_sleep_for_or_woken_ns(waker, 100 * ms, nullptr) == PUNCTUAL_REACHED);
      const std::int64_t took = punctual_now_ns() - from;
      CHECK(took >= 300 * ms);
      CHECK(took < 600 * ms);  // restarted from the beginning each time, they would never end
    }
  }
  punctual_waker_destroy(waker);
}
