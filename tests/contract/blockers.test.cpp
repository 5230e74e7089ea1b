// Mistake that would live without it: a ready-made blocker that passes a wrong unit to its call,
// takes a signal for an event, blocks past the handover, or for ever where the deadline is the end
// of time.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include "../../examples/blockers.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/pacer.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include <pthread.h>
#include <sys/time.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

/// A pipe, and each blocker on its reading end.
class pipes {
 public:
  pipes() {
    REQUIRE(::pipe(ends_) == 0);
    file_ = {ends_[0], POLLIN, 0};
    FD_ZERO(&readable_);
    FD_SET(ends_[0], &readable_);
    epoll_ = ::epoll_create1(0);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    REQUIRE(::epoll_ctl(epoll_, EPOLL_CTL_ADD, ends_[0], &wanted) == 0);
  }
  ~pipes() {
    ::close(epoll_);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  pipes(const pipes&) = delete;
  pipes& operator=(const pipes&) = delete;

  // Called from two threads at once: no place for Catch's macros.
  void send() { failed_ += ::write(ends_[1], "x", 1) != 1; }
  void take() {
    char byte = 0;
    failed_ += ::read(ends_[0], &byte, 1) != 1;
  }
  int failed() const { return failed_; }

  std::function<bool(instant)> blocker(const std::string& name) {
    if (name == "poll") return blockers::poll_blocker{&file_, 1};
    if (name == "ppoll") return blockers::ppoll_blocker{&file_, 1};
    if (name == "select") return blockers::select_blocker{readable_, ends_[0], &ready_};
    return blockers::epoll_blocker{epoll_, &event_, 1, &came_};
  }

 private:
  int ends_[2]{};
  pollfd file_{};
  fd_set readable_{}, ready_{};
  int epoll_ = -1;
  epoll_event event_{};
  int came_ = 0;
  std::atomic<int> failed_{0};
};

}  // namespace

TEST_CASE("each ready-made blocker keeps the deadline and is ended by an event",
          "[blockers][contract][G1]") {
  pipes p;
  for (const std::string name : {"poll", "ppoll", "select", "epoll"}) {
    INFO(name);
    sleeper mine;
    const auto block = p.blocker(name);
    for (const auto length : {16'667us, 3'400us, 800us, 50us}) {
      for (int i = 0; i < 10; ++i) {
        const instant due = steady::now() + length;
        const receipt did = mine.sleep_until(due, block);
        CHECK(did.why == outcome::reached);
        CHECK(steady::now() >= due);
        // It does not poll: each native wait has waited. How many there are depends on the machine:
        // one so busy that long waits look too late makes short ones in a row, of 100 us or more.
        CHECK(did.blocked >= did.native_waits * 10us);
      }
    }
    p.send();
    CHECK(mine.sleep_until(steady::now() + 10s, block).why == outcome::woken);
    CHECK(mine.sleep_until(instant::max(), block).why == outcome::woken);
    CHECK(mine.sleep_until(steady::now() - 1s, block).why == outcome::already_past);
    p.take();
    std::thread other([&p] {
      std::this_thread::sleep_for(20ms);
      p.send();
    });
    const instant from = steady::now();
    const receipt did = mine.sleep_until(instant::max(), block);
    other.join();
    CHECK(did.why == outcome::woken);
    CHECK(steady::now() - from >= 19ms);
    CHECK(steady::now() - from < 5s);
    p.take();
  }
  CHECK(p.failed() == 0);
}

TEST_CASE("a signal is no event for any of the ready-made blockers", "[blockers][contract][G3]") {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, &before);
  itimerval timer{};
  timer.it_value.tv_usec = timer.it_interval.tv_usec = 2000;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  pipes p;
  int wrong = 0;
  for (const std::string name : {"poll", "ppoll", "select", "epoll"}) {
    sleeper mine;
    const auto block = p.blocker(name);
    for (int i = 0; i < 3; ++i) {
      const instant due = steady::now() + 30ms;
      wrong += mine.sleep_until(due, block).why != outcome::reached || steady::now() < due;
    }
  }
  timer = {};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  CHECK(wrong == 0);
}

#if defined(SYS_epoll_pwait2)
TEST_CASE("where epoll_pwait2 is unknown to the kernel or to a filter, epoll_wait takes its place",
          "[blockers][contract][G9]") {
  if (support::sanitized) return support::skip("a sanitizer does things of its own here");
  // Filters that do not know a call answer EPERM (older container runtimes) or ENOSYS.
  for (const int error : {ENOSYS, EPERM}) {
    const int code = support::in_child([error] {
      pipes p;
      sleeper mine;
      const auto block = p.blocker("epoll");
      if (!support::refuse_calls({SYS_epoll_pwait2}, error)) return 77;
      const instant due = steady::now() + 20ms;
      const receipt quiet = mine.sleep_until(due, block);
      if (quiet.why != outcome::reached || quiet.native_waits > 4) return 1;
      std::thread other([&p] {
        std::this_thread::sleep_for(5ms);
        p.send();
      });
      const receipt did = mine.sleep_until(steady::now() + 1s, block);
      other.join();
      return did.why == outcome::woken ? 0 : 2;
    });
    if (code == 77) return support::skip("filters may not be installed here");
    INFO("error " << error);
    CHECK(code == 0);
  }
}
#endif

TEST_CASE("a blocker whose files are closed neither ends the wait early nor runs hot",
          "[blockers][contract][G6]") {
  fd_set readable{}, ready{};
  FD_ZERO(&readable);
  FD_SET(1000, &readable);  // nobody has opened it
  epoll_event event{};
  int came = 0;
  const std::function<bool(instant)> closed[] = {
      blockers::select_blocker{readable, 1000, &ready},
      blockers::epoll_blocker{-1, &event, 1, &came},
  };
  for (const auto& block : closed) {
    sleeper mine;
    const instant due = steady::now() + 20ms;
    const receipt did = mine.sleep_until(due, block);
    CHECK(did.why == outcome::reached);
    CHECK(steady::now() >= due);
    CHECK(did.native_waits <= 25);  // once a millisecond
    CHECK(did.spun < 5ms);
    CHECK(came == 0);
  }
  // poll and ppoll say so: the wait ends, and `revents` is POLLNVAL.
  pollfd file{1000, POLLIN, 0};
  sleeper mine;
  CHECK(mine.sleep_until(steady::now() + 10s, blockers::ppoll_blocker{&file, 1}).why ==
        outcome::woken);
  CHECK((file.revents & POLLNVAL) != 0);
}

TEST_CASE("the handover of any deadline, past or without end, is something to block until",
          "[blockers][contract][G5]") {
  pipes p;
  p.send();
  sleeper mine;
  for (const std::string name : {"poll", "ppoll", "select", "epoll"}) {
    const auto block = p.blocker(name);
    for (const instant due : {instant::min(), instant{}, steady::now(), instant::max()}) {
      CHECK(block(mine.handover(due)));
    }
  }
  p.take();
  for (const std::string name : {"poll", "ppoll", "select", "epoll"}) {
    const instant from = steady::now();
    CHECK_FALSE(p.blocker(name)(mine.handover(instant::min())));
    CHECK(steady::now() - from < 5s);
  }
}

TEST_CASE("a pacer that blocks in ppoll keeps its beats while messages come",
          "[blockers][contract][G9]") {
  pipes p;
  const auto block = p.blocker("ppoll");
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      p.send();
      std::this_thread::sleep_for(1ms);
    }
  });
  pacer beats{hz(100)};
  int woken = 0, early = 0;
  std::uint64_t delivered = 0, dropped = 0;
  while (delivered + dropped < 50) {
    const beat b = beats.next(block);
    if (b) {
      ++delivered;
      dropped += b.skipped;
      early += steady::now() < b.due;
    } else {
      ++woken;
      p.take();
    }
  }
  over = true;
  other.join();
  CHECK(early == 0);
  CHECK(woken > 50);
  CHECK(p.failed() == 0);
}
