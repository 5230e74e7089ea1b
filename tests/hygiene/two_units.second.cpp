// The second file of two_units.cpp.
#include <punctual/punctual.hpp>

const punctual::sleeper* sleeper_seen_by_the_second_unit();

const punctual::sleeper* sleeper_seen_by_the_second_unit() {
  punctual::sleep_for(std::chrono::microseconds(10));
  return &punctual::this_thread_sleeper();
}
