// Mistake that would live without it: the interruptible wait looks at the flag before and after it
// only, so that a stop in between hangs or is noticed at the end; or it polls the flag, and costs
// CPU all the time.
#include "support/catch.hpp"

#include <punctual/interrupt.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include <pthread.h>
#include <time.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

struct one_round {
  nanoseconds stop_after;  ///< from the begin of the wait; negative: before it
  nanoseconds length;
};

constexpr one_round kinds[] = {{-1ns, 10s}, {1ms, 10s}, {50ms, 10s}, {20ms - 20us, 20ms}};

int rounds() { return std::getenv("PUNCTUAL_LONG") != nullptr ? 200 : 20; }

/// How long after the stop the wait returned; rounds are 5 windows, of which the best counts.
nanoseconds best_p90(std::vector<nanoseconds> all) {
  const std::size_t window = all.size() / 5;
  nanoseconds best = nanoseconds::max();
  for (std::size_t i = 0; i + window <= all.size(); i += window) {
    std::sort(all.begin() + static_cast<std::ptrdiff_t>(i),
              all.begin() + static_cast<std::ptrdiff_t>(i + window));
    best = std::min(best, all[i + window * 9 / 10]);
  }
  return best;
}

/// Runs all rounds of a kind: `wait(length)`, ended by `stop()` from another thread.
template <class Wait, class Stop, class Again>
void is_ended(outcome expected, Wait wait, Stop stop, Again again) {
  for (const one_round& kind : kinds) {
    std::vector<nanoseconds> took;
    int wrong = 0;
    for (int i = 0; i < rounds(); ++i) {
      again();
      instant stopped{};
      std::atomic<bool> begun{false};
      std::thread other([&] {
        while (!begun) std::this_thread::yield();
        const instant at = steady::now() + kind.stop_after;
        while (steady::now() < at) std::this_thread::sleep_until(at);
        stopped = steady::now();
        stop();
      });
      if (kind.stop_after < 0ns) {
        begun = true;
        other.join();
      }
      begun = true;
      const instant from = steady::now();
      const receipt did = wait(kind.length);
      const instant back = steady::now();
      if (other.joinable()) other.join();
      // The last kind may reach its deadline, where the other thread came late.
      const bool over = did.why == outcome::reached && back >= from + kind.length;
      wrong += did.why != expected && !(over && stopped + 1ms >= from + kind.length);
      if (did.why == expected) took.push_back(back - std::max(stopped, from));
      if (kind.stop_after < 0ns) wrong += did.native_waits != 0;
    }
    INFO("stopped after " << kind.stop_after.count() << " ns");
    CHECK(wrong == 0);
    if (took.size() >= 5) CHECK(best_p90(took) < 50ms);
  }
}

}  // namespace

TEST_CASE("b43: a wake from another thread ends the wait at any time", "[cases][b43][G9]") {
  waker w;
  is_ended(
      outcome::woken, [&w](nanoseconds length) { return sleep_for(w, length); }, [&w] { w.wake(); },
      [&w] { w.reset(); });
}

#if defined(__cpp_lib_jthread)
TEST_CASE("b43: a stop from another thread ends the wait at any time", "[cases][b43][G9]") {
  std::stop_source source;
  is_ended(
      outcome::stopped,
      [&source](nanoseconds length) { return sleep_for(source.get_token(), length); },
      [&source] { source.request_stop(); }, [&source] { source = std::stop_source{}; });
}
#endif

namespace {
constinit waker from_handler;
}

TEST_CASE("b43: a wake from a signal handler ends the wait at any time", "[cases][b43][G9]") {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { from_handler.wake(); };
  ::sigaction(SIGUSR1, &action, &before);
  const pthread_t me = ::pthread_self();
  is_ended(
      outcome::woken, [](nanoseconds length) { return sleep_for(from_handler, length); },
      [me] {
        ::pthread_kill(me, SIGUSR1);
        while (!from_handler.pending()) std::this_thread::yield();
      },
      [] { from_handler.reset(); });
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("b43: a wait of 2 s that nobody stops takes at most 1 % of CPU", "[cases][b43][G6]") {
  waker w;
  for (int i = 0; i < 50; ++i) sleep_for(w, 1ms);
  const auto cpu = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
  };
  const nanoseconds before = cpu();
  const receipt did = sleep_for(w, 2s);
  const nanoseconds ran = cpu() - before;
  CHECK(did.why == outcome::reached);
  CHECK(ran - did.spun <= 20ms);
  CHECK(did.native_waits <= 4);  // it does not wake up to look
}
