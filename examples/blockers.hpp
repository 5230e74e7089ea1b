// Ready-made blocking calls for `sleeper.sleep_until(deadline, block)` and `pacer.next(block)`.
//
// Copy the one that your loop needs. Each blocks until the handover at most, in poll, ppoll, select
// or epoll, and returns true if there is something to serve: the wait then ends as `woken`. A call
// that a signal has ended, or that failed, returns false and is made again. `poll` and an old epoll
// know only whole milliseconds and round down: in what is left of the last one no event is noticed,
// so a loop that must answer within microseconds takes `ppoll`, `select` or `epoll_pwait2`.
#pragma once

#include <punctual/time.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>

#include <poll.h>
#include <sys/select.h>
#include <unistd.h>
#if __has_include(<sys/epoll.h>)
#include <sys/epoll.h>
#include <sys/syscall.h>
#endif

namespace blockers {

/// How long a call may block, at least 0 and at most a day: `until` may be the end of time.
template <class Unit>
Unit left_until(punctual::instant until) noexcept {
  constexpr punctual::nanoseconds day = std::chrono::hours{24};
  const punctual::nanoseconds left = punctual::between(punctual::steady::now(), until);
  if (left <= punctual::nanoseconds::zero()) return Unit::zero();
  return std::chrono::floor<Unit>(left < day ? left : day);
}

/// poll(2), in whole milliseconds. `files[i].revents` says what came.
struct poll_blocker {
  pollfd* files;
  std::size_t count;

  bool operator()(punctual::instant handover) const noexcept {
    const auto left = left_until<std::chrono::milliseconds>(handover);
    return ::poll(files, static_cast<nfds_t>(count), static_cast<int>(left.count())) > 0;
  }
};

/// ppoll(2), in nanoseconds.
struct ppoll_blocker {
  pollfd* files;
  std::size_t count;

  bool operator()(punctual::instant handover) const noexcept {
    const auto left = left_until<punctual::nanoseconds>(handover).count();
    const timespec time{static_cast<time_t>(left / 1'000'000'000),
                        static_cast<long>(left % 1'000'000'000)};
    return ::ppoll(files, static_cast<nfds_t>(count), &time, nullptr) > 0;
  }
};

/// select(2), in microseconds. `ready` says what came.
struct select_blocker {
  fd_set readable;  ///< what to look for
  int highest;      ///< the highest of these files
  fd_set* ready;

  bool operator()(punctual::instant handover) const noexcept {
    const auto left = left_until<std::chrono::microseconds>(handover).count();
    timeval time{static_cast<time_t>(left / 1'000'000), static_cast<suseconds_t>(left % 1'000'000)};
    *ready = readable;
    if (::select(highest + 1, ready, nullptr, nullptr, &time) > 0) return true;
    FD_ZERO(ready);
    return false;
  }
};

#if __has_include(<sys/epoll.h>)
/// epoll_pwait2(2), in nanoseconds; where that is refused (by Linux before 5.11, by an older filter
/// with whatever error), epoll_wait(2) in whole milliseconds.
struct epoll_blocker {
  int epoll;
  epoll_event* events;
  int room;
  int* came;  ///< how many events there are

  bool operator()(punctual::instant handover) const noexcept {
#if defined(SYS_epoll_pwait2)
    if (sizeof(time_t) == sizeof(long)) {  // else the kernel's timespec is not this one
      const auto left = left_until<punctual::nanoseconds>(handover).count();
      const timespec time{static_cast<time_t>(left / 1'000'000'000),
                          static_cast<long>(left % 1'000'000'000)};
      *came = static_cast<int>(
          ::syscall(SYS_epoll_pwait2, epoll, events, room, &time, nullptr, std::size_t{8}));
      if (*came >= 0 || errno == EINTR) return served();
    }
#endif
    const auto left = left_until<std::chrono::milliseconds>(handover);
    *came = ::epoll_wait(epoll, events, room, static_cast<int>(left.count()));
    return served();
  }

 private:
  bool served() const noexcept {
    if (*came < 0) *came = 0;
    return *came > 0;
  }
};
#endif

}  // namespace blockers
