// Two files of one program include everything; they link, and share what they must share.
#include <punctual/punctual.hpp>

const punctual::sleeper* sleeper_seen_by_the_second_unit();

int main() {
  punctual::sleep_for(std::chrono::microseconds(10));
  return &punctual::this_thread_sleeper() == sleeper_seen_by_the_second_unit() ? 0 : 1;
}
