// Compiled without exceptions, so that its frame has no rules of its own: the cancellation of a
// thread passes through it wherever it comes, as through the C library's own system calls.
#include "cancellable.hpp"

#include <cerrno>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace preload {

long wait_open(std::int64_t (&left)[2], const std::uint64_t& open) {
#if defined(SYS_ppoll_time64)
  constexpr long number = SYS_ppoll_time64;
#else
  constexpr long number = SYS_ppoll;
#endif
  int type;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  long answer = syscall(number, nullptr, 0UL, left, &open, sizeof open);
  pthread_setcanceltype(type, nullptr);
  if (answer != 0) answer = -errno;
  return answer;
}

}  // namespace preload
