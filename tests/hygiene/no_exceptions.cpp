// A program without exceptions and type information waits like any other.
// flags: -fno-exceptions -fno-rtti
#include <punctual/punctual.hpp>

int main() {
  const punctual::instant deadline = punctual::steady::now() + std::chrono::milliseconds(1);
  const punctual::receipt slept = punctual::sleep_until(deadline);
  return punctual::steady::now() >= deadline && slept.late >= slept.late.zero() ? 0 : 1;
}
