// The sleeping calls that become precise: nanosleep, clock_nanosleep, usleep, sleep, and select,
// pselect, poll and ppoll where they wait for nothing but the time.
//
// Whatever is not such a sleep goes to the system as it came: descriptors, other clocks, no
// timeout, arguments that the system refuses. So does a length of zero, which programs use to let
// others run. What is left differs from the system's own in its lateness alone.
#include "tally.hpp"
#include "wait.hpp"

#include <punctual/time.hpp>

#include <algorithm>
#include <cstdlib>

namespace {

using namespace preload;
using punctual::native_platform;
using punctual::rounding;
using punctual::saturating_add;

constinit tally counts;
constinit bool all_plain = false;

bool is_valid(const timespec& t) {
  return t.tv_sec >= 0 && t.tv_nsec >= 0 && t.tv_nsec < 1'000'000'000;
}
nanoseconds to_length(const timespec& t) {
  return saturating_add(punctual::to_nanoseconds(std::chrono::seconds{t.tv_sec}),
                        nanoseconds{t.tv_nsec});
}
timespec to_timespec(nanoseconds t) {
  return {static_cast<time_t>(t.count() / 1'000'000'000),
          static_cast<long>(t.count() % 1'000'000'000)};
}

/// The precise wait in place of a system call: a cancellation point that leaves errno alone.
waited wait_until(clock_kind on, instant deadline, const sigset_t* during = nullptr) {
  pthread_testcancel();
  const int kept = errno;
  // With asynchronous cancellation the thread could be unwound anywhere in here.
  int type = PTHREAD_CANCEL_DEFERRED;
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  const waited end = interruptible_wait(during).until(on, deadline);
  if (type != PTHREAD_CANCEL_DEFERRED) pthread_setcanceltype(type, nullptr);
  pthread_testcancel();
  errno = kept;
  return end;
}

/// Makes one wait either way, and counts it if that was asked for.
template <class Ours, class Plain>
auto waited_by(clock_kind on, instant deadline, nanoseconds asked, Ours ours, Plain plain) {
  if (!counts.on()) return all_plain ? plain() : ours();
  counts.begin_wait();
  const bool is_plain = all_plain || counts.is_plain_turn();
  const nanoseconds ran = read_clock(CLOCK_THREAD_CPUTIME_ID);
  const auto answer = is_plain ? plain() : ours();
  const int kept = errno;
  const nanoseconds late = punctual::between(deadline, native_platform::now(on));
  counts.add({is_plain ? way::plain : way::ours, late < nanoseconds::zero(), asked, late,
              read_clock(CLOCK_THREAD_CPUTIME_ID) - ran});
  errno = kept;
  return answer;
}

/// The same for a length from now on. `answer(waited)` is what the call returns for it.
template <class Answer, class Plain>
auto waited_for(nanoseconds length, const sigset_t* during, Answer answer, Plain plain) {
  const instant deadline = punctual::later(native_platform::now(clock_kind::monotonic), length);
  return waited_by(
      clock_kind::monotonic, deadline, length,
      [=] { return answer(wait_until(clock_kind::monotonic, deadline, during)); }, plain);
}

int failed_with(int error) {
  errno = error;
  return -1;
}

[[gnu::constructor]] void begin() {
  system::find_all();
  const auto share = [](const char* name, double otherwise) {
    const char* word = std::getenv(name);
    return word == nullptr ? otherwise : std::strtod(word, nullptr);
  };
  wanted.punctuality = share("PUNCTUAL_PUNCTUALITY", wanted.punctuality);
  wanted.cpu_budget = share("PUNCTUAL_CPU_BUDGET", wanted.cpu_budget);
  all_plain = std::getenv("PUNCTUAL_PLAIN") != nullptr;
  if (std::getenv("PUNCTUAL_STATS") != nullptr) {
    counts.begin(std::getenv("PUNCTUAL_ALL") == nullptr);
    pthread_atfork(nullptr, nullptr, [] { counts.begin_again(); });
  }
}
[[gnu::destructor]] void end() { counts.print(); }

}  // namespace

extern "C" {

int nanosleep(const timespec* length, timespec* left) {
  const auto plain = [=] { return system::nanosleep(length, left); };
  if (length == nullptr || !is_valid(*length)) return plain();
  const nanoseconds asked = to_length(*length);
  if (asked == nanoseconds::zero()) return plain();
  return waited_for(
      asked, nullptr,
      [=](const waited& end) {
        if (!end.interrupted) return 0;
        if (left != nullptr) *left = to_timespec(end.left);
        return failed_with(EINTR);
      },
      plain);
}

// Answers its error instead of leaving it in errno. An absolute wait never writes to `left`.
int clock_nanosleep(clockid_t clock, int flags, const timespec* length, timespec* left) {
  const auto plain = [=] { return system::clock_nanosleep(clock, flags, length, left); };
  if ((clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME) || length == nullptr ||
      !is_valid(*length)) {
    return plain();
  }
  const nanoseconds asked = to_length(*length);
  if ((flags & TIMER_ABSTIME) == 0) {
    if (asked == nanoseconds::zero()) return plain();
    return waited_for(
        asked, nullptr,
        [=](const waited& end) {
          if (!end.interrupted) return 0;
          if (left != nullptr) *left = to_timespec(end.left);
          return EINTR;
        },
        plain);
  }
  const clock_kind on = clock == CLOCK_MONOTONIC ? clock_kind::monotonic : clock_kind::realtime;
  const instant deadline{asked};
  punctual::receipt past;
  instant now;
  if (!all_plain && punctual::is_past(native_platform{}, on, deadline, past, now)) {
    pthread_testcancel();
    counts.add_past();
    return 0;
  }
  return waited_by(
      on, deadline, punctual::between(now, deadline),
      [=] { return wait_until(on, deadline).interrupted ? EINTR : 0; }, plain);
}

int usleep(useconds_t length) {
  const auto plain = [=] { return system::usleep(length); };
  if (length == 0) return plain();
  return waited_for(
      std::chrono::microseconds{length}, nullptr,
      [](const waited& end) { return end.interrupted ? failed_with(EINTR) : 0; }, plain);
}

unsigned sleep(unsigned length) {
  const auto plain = [=] { return system::sleep(length); };
  if (length == 0) return plain();
  return waited_for(
      std::chrono::seconds{length}, nullptr,
      [](const waited& end) {
        if (end.interrupted) errno = EINTR;
        return static_cast<unsigned>(end.interrupted ? end.left.count() / 1'000'000'000 : 0);
      },
      plain);
}

// Linux writes what remained into the timeout, also after an interruption.
int select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout) {
  const auto plain = [=] {
    return system::select(count, readable, writable, exceptional, timeout);
  };
  const bool descriptors =
      count != 0 && (count < 0 || readable != nullptr || writable != nullptr || exceptional);
  if (descriptors || timeout == nullptr || timeout->tv_sec < 0 || timeout->tv_usec < 0) {
    return plain();
  }
  const nanoseconds asked =
      saturating_add(punctual::to_nanoseconds(std::chrono::seconds{timeout->tv_sec}),
                     punctual::to_nanoseconds(std::chrono::microseconds{timeout->tv_usec}));
  if (asked == nanoseconds::zero()) return plain();
  return waited_for(
      asked, nullptr,
      [=](const waited& end) {
        const std::int64_t left = end.interrupted ? end.left.count() / 1000 : 0;
        timeout->tv_sec = static_cast<time_t>(left / 1'000'000);
        timeout->tv_usec = static_cast<suseconds_t>(left % 1'000'000);
        return end.interrupted ? failed_with(EINTR) : 0;
      },
      plain);
}

int pselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
            const timespec* timeout, const sigset_t* during) {
  const auto plain = [=] {
    return system::pselect(count, readable, writable, exceptional, timeout, during);
  };
  const bool descriptors =
      count != 0 && (count < 0 || readable != nullptr || writable != nullptr || exceptional);
  if (descriptors || timeout == nullptr || !is_valid(*timeout)) return plain();
  const nanoseconds asked = to_length(*timeout);
  if (asked == nanoseconds::zero()) return plain();
  return waited_for(
      asked, during, [](const waited& end) { return end.interrupted ? failed_with(EINTR) : 0; },
      plain);
}

int poll(pollfd* descriptors, nfds_t count, int timeout) {
  if (count != 0 || timeout <= 0) return system::poll(descriptors, count, timeout);
  return waited_for(
      std::chrono::milliseconds{timeout}, nullptr,
      [](const waited& end) { return end.interrupted ? failed_with(EINTR) : 0; },
      [=] { return system::poll(descriptors, count, timeout); });
}

int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* during) {
  const auto plain = [=] { return system::ppoll(descriptors, count, timeout, during); };
  if (count != 0 || timeout == nullptr || !is_valid(*timeout)) return plain();
  const nanoseconds asked = to_length(*timeout);
  if (asked == nanoseconds::zero()) return plain();
  return waited_for(
      asked, during, [](const waited& end) { return end.interrupted ? failed_with(EINTR) : 0; },
      plain);
}

// What poll and ppoll are where a program was compiled to have its arrays checked.
int __poll_chk(pollfd* descriptors, nfds_t count, int timeout, std::size_t size) {
  if (count == 0) return poll(descriptors, count, timeout);
  return system::poll_chk(descriptors, count, timeout, size);
}
int __ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* during,
                std::size_t size) {
  if (count == 0) return ppoll(descriptors, count, timeout, during);
  return system::ppoll_chk(descriptors, count, timeout, during, size);
}

}  // extern "C"
