// A library that waits, to be loaded with dlopen: contract/dlopen.test.cpp.
#include <punctual/sleep.hpp>

/// Waits; 0 if the wait was as promised.
extern "C" [[gnu::visibility("default")]] int plugin_waits(long long length_ns) {
  const punctual::instant due = punctual::steady::now() + std::chrono::nanoseconds{length_ns};
  const punctual::receipt did = punctual::sleep_until(due);
  return did.why == punctual::outcome::reached && punctual::steady::now() >= due ? 0 : 1;
}
