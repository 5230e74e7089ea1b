// A case that cannot run here says so loudly and counts as passed.
#pragma once

#include "support/catch.hpp"

#include <cstdio>

namespace support {

inline void skip(const char* why) {
  std::printf("SKIPPED: %s\n", why);
  SUCCEED(why);
}

// Sanitizers make system calls and keep memory of their own.
#if defined(PUNCTUAL_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace support
