// The whole of a program that uses punctual: waits a millisecond and says whether it really did.
#include <punctual/punctual.hpp>

#include <chrono>
#include <cstdio>

int main() {
  const auto deadline = punctual::steady::now() + std::chrono::milliseconds(1);
  const punctual::receipt slept = punctual::sleep_until(deadline);
  const bool waited = punctual::steady::now() >= deadline &&
                      slept.why == punctual::outcome::reached && slept.native_waits > 0;
  std::printf("%lld ns late\n", static_cast<long long>(slept.late.count()));
  return waited ? 0 : 1;
}
