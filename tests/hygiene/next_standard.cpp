// The next standard compiles every header.
// standard: 23
#include <punctual/punctual.hpp>

static_assert(__cplusplus > 202002L);

int main() {
  const punctual::instant deadline = punctual::steady::now() + std::chrono::milliseconds(1);
  punctual::sleep_until(deadline);
  return punctual::steady::now() >= deadline ? 0 : 1;
}
