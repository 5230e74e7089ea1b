// Mistake that would live without it: a call that is none of our business is slowed down by being
// looked at. Run with the library loaded; the system's own is called beside it, in turns.
#include "support.hpp"

#include "support/catch.hpp"
#include "support/skip.hpp"

#include <algorithm>
#include <cstdio>

#include <dlfcn.h>
#include <semaphore.h>

using namespace preload_tests;

namespace {

template <class Function>
Function* system_s(const char* name, const char* version) {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(libc != nullptr);
  void* symbol = dlvsym(libc, name, version);
  if (symbol == nullptr) symbol = dlsym(libc, name);
  REQUIRE(symbol != nullptr);
  return reinterpret_cast<Function*>(symbol);
}

/// What a call costs more by one way than by the other, ns: the least of many short batches each.
template <class A, class B>
double difference(A ours, B theirs) {
  constexpr int calls = 200;
  const auto batch = [](auto call) {
    const nanoseconds from = now();
    for (int i = 0; i < calls; ++i) call();
    return static_cast<double>((now() - from).count()) / calls;
  };
  double least_ours = 1e9, least_theirs = 1e9;
  for (int i = 0; i < 300; ++i) {
    least_theirs = std::min(least_theirs, batch(theirs));
    least_ours = std::min(least_ours, batch(ours));
  }
  return least_ours - least_theirs;
}

void judge(const char* name, double more) {
  std::printf("%-28s %6.1f ns more\n", name, more);
  INFO(name);
  CHECK(more <= 30);
}

}  // namespace

TEST_CASE("a call that is passed through costs at most 30 ns more", "[preload][cost]") {
  if (!replaced()) return support::skip("about the replaced calls");
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "x", 1) == 1);
  pollfd one{ends[0], POLLIN, 0};
  const auto libc_poll = system_s<int(pollfd*, nfds_t, int)>("poll", "GLIBC_2.2.5");
  judge("poll, one descriptor",
        difference([&] { poll(&one, 1, 100); }, [&] { libc_poll(&one, 1, 100); }));

  const auto libc_select =
      system_s<int(int, fd_set*, fd_set*, fd_set*, timeval*)>("select", "GLIBC_2.2.5");
  fd_set set;
  timeval t{};
  const auto prepare = [&] {
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    t = {1, 0};
  };
  judge("select, one descriptor", difference(
                                      [&] {
                                        prepare();
                                        select(ends[0] + 1, &set, nullptr, nullptr, &t);
                                      },
                                      [&] {
                                        prepare();
                                        libc_select(ends[0] + 1, &set, nullptr, nullptr, &t);
                                      }));

  const auto libc_ppoll =
      system_s<int(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll", "GLIBC_2.4");
  const timespec second{1, 0};
  judge("ppoll, one descriptor", difference([&] { ppoll(&one, 1, &second, nullptr); },
                                            [&] { libc_ppoll(&one, 1, &second, nullptr); }));

  const auto libc_nanosleep = system_s<int(const timespec*, timespec*)>("nanosleep", "GLIBC_2.2.5");
  const timespec wrong{0, -1};
  judge("nanosleep, refused",
        difference([&] { nanosleep(&wrong, nullptr); }, [&] { libc_nanosleep(&wrong, nullptr); }));

  const timespec far = to_timespec(now(CLOCK_REALTIME) + 1h);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const auto libc_timedlock =
      system_s<int(pthread_mutex_t*, const timespec*)>("pthread_mutex_timedlock", "GLIBC_2.34");
  judge("pthread_mutex_timedlock, free", difference(
                                             [&] {
                                               pthread_mutex_timedlock(&mutex, &far);
                                               pthread_mutex_unlock(&mutex);
                                             },
                                             [&] {
                                               libc_timedlock(&mutex, &far);
                                               pthread_mutex_unlock(&mutex);
                                             }));

  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  const auto libc_timedrdlock =
      system_s<int(pthread_rwlock_t*, const timespec*)>("pthread_rwlock_timedrdlock", "GLIBC_2.34");
  judge("pthread_rwlock_timedrdlock, free", difference(
                                                [&] {
                                                  pthread_rwlock_timedrdlock(&lock, &far);
                                                  pthread_rwlock_unlock(&lock);
                                                },
                                                [&] {
                                                  libc_timedrdlock(&lock, &far);
                                                  pthread_rwlock_unlock(&lock);
                                                }));

  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  const auto libc_sem_timedwait =
      system_s<int(sem_t*, const timespec*)>("sem_timedwait", "GLIBC_2.34");
  judge("sem_timedwait, free", difference(
                                   [&] {
                                     sem_timedwait(&semaphore, &far);
                                     sem_post(&semaphore);
                                   },
                                   [&] {
                                     libc_sem_timedwait(&semaphore, &far);
                                     sem_post(&semaphore);
                                   }));
}
