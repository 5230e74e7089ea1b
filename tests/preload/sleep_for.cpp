// A C++ program that knows nothing of punctual: threads that sleep by the standard library.
#include <chrono>
#include <thread>

int main() {
  using namespace std::chrono;
  int early = 0;
  const auto sleep = [&early] {
    for (int i = 0; i < 100; ++i) {
      const auto due = steady_clock::now() + microseconds{1500};
      if (i % 2 == 0) {
        std::this_thread::sleep_for(microseconds{1500});
      } else {
        std::this_thread::sleep_until(due);
      }
      early += steady_clock::now() < due;
    }
  };
  sleep();
  std::thread(sleep).join();
  return early == 0 ? 0 : 1;
}
