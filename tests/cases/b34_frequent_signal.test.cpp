// Mistake that would live without it: every interruption starts the full length anew, so that a
// signal more frequent than the wait makes it endless; or the rest of the wait is lost without a
// word.
#include "support/catch.hpp"

#include <punctual/punctual.hpp>

#include <csignal>

#include <sys/time.h>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b34: a signal every millisecond neither lengthens nor shortens waits of 100 ms",
          "[cases][b34][G3]") {
  for (const int flags : {0, SA_RESTART}) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    ::sigaction(SIGALRM, &action, &before);
    itimerval timer{};
    timer.it_value.tv_usec = timer.it_interval.tv_usec = 1000;
    ::setitimer(ITIMER_REAL, &timer, nullptr);
    int reached = 0;
    nanoseconds ours{0}, base{0};
    for (int i = 0; i < 20; ++i) {
      const instant from = steady::now();
      reached += sleep_for(100ms).why == outcome::reached;
      const nanoseconds took = steady::now() - from;
      CHECK(took >= 100ms);
      ours += took;
      if (i % 4 != 0) continue;
      const instant plain = steady::now();
      const auto due = (plain + 100ms).time_since_epoch().count();
      const timespec t{static_cast<time_t>(due / 1'000'000'000), due % 1'000'000'000};
      while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
      }
      base += steady::now() - plain;
    }
    timer = {};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
    CHECK(reached == 20);
    CHECK(static_cast<double>(ours.count()) / 20 <= 1.2 * static_cast<double>(base.count()) / 5);
  }
}
