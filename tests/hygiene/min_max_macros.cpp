// Macros called min and max, as some systems' headers define them, do not break a header.
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) < (b) ? (b) : (a))
#include <punctual/punctual.hpp>

int main() {
  const punctual::instant deadline = punctual::steady::now() + std::chrono::milliseconds(1);
  punctual::sleep_until(deadline);
  return punctual::steady::now() >= deadline ? 0 : 1;
}
