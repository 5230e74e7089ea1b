// Mistake that would live without it: every interruption starts the full length of an interruptible
// wait anew, or is taken for the stop or for the deadline.
#include "support/catch.hpp"

#include <punctual/interrupt.hpp>

#include <cerrno>
#include <csignal>
#include <ctime>

#include <sys/time.h>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE(
    "b34: a signal every millisecond neither ends nor lengthens an interruptible wait of 100 ms",
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
    waker w;
    int wrong = 0;
    nanoseconds ours{0}, base{0};
    for (int i = 0; i < 10; ++i) {
      instant from = steady::now();
      const receipt did = i % 2 == 0 ? sleep_for(w, 100ms) : block_for(w, 100ms);
      const nanoseconds took = steady::now() - from;
      wrong += did.why != outcome::reached || took < 100ms || did.interruptions == 0;
      ours += took;

      from = steady::now();
      const auto due = (from + 100ms).time_since_epoch().count();
      const timespec t{static_cast<time_t>(due / 1'000'000'000),
                       static_cast<long>(due % 1'000'000'000)};
      while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
      }
      base += steady::now() - from;
    }
    timer = {};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
    CHECK(wrong == 0);
    CHECK(static_cast<double>(ours.count()) <= 1.2 * static_cast<double>(base.count()));
  }
}
