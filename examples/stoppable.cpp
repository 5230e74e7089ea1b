// A worker that stops at once: std::jthread, its stop token, and a wait that listens to it.
//
// Two workers do something every 250 ms. One sleeps with the standard library and looks at its
// token between two sleeps: joining it takes up to a period. The other waits with the token:
// joining it takes as long as it takes to wake a thread, and its beats are as punctual as without
// the token.
//
//   stoppable                          ten stops of each
//   stoppable 100                      a hundred
// smoke: 2
#include <punctual/interrupt.hpp>
#include <punctual/pacer.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace std::chrono_literals;
using punctual::nanoseconds;
using punctual::steady;

namespace {

void sleeps(const std::stop_token& token) {
  auto due = steady::now();
  while (!token.stop_requested()) {
    due += 250ms;
    std::this_thread::sleep_until(due);
  }
}

void listens(const std::stop_token& token) {
  punctual::pacer beats{punctual::every(250ms)};
  while (beats.next(token)) {
    // the work
  }
}

double milliseconds_to_stop(void (*worker)(const std::stop_token&), int times) {
  nanoseconds all{0};
  for (int i = 0; i < times; ++i) {
    std::jthread thread([worker](const std::stop_token& token) { worker(token); });
    std::this_thread::sleep_for(37ms * (i % 10 + 1));
    const auto from = steady::now();
    thread.request_stop();
    thread.join();
    all += steady::now() - from;
  }
  return std::chrono::duration<double, std::milli>(all).count() / times;
}

}  // namespace

int main(int count, char** words) {
  const int times = count > 1 ? std::atoi(words[1]) : 10;
  if (times < 1) {
    std::fprintf(stderr, "usage: stoppable [TIMES]\n");
    return 2;
  }
  std::printf("%-34s %8.3f ms to stop\n", "sleeps, looks in between",
              milliseconds_to_stop(sleeps, times));
  std::printf("%-34s %8.3f ms to stop\n", "waits with the stop token",
              milliseconds_to_stop(listens, times));
}
