// The system's own calls, behind those that this library replaces.
//
// They are found by name when the library is loaded, before the program starts; a call that comes
// even earlier, from the start-up code of another library, finds its own.
#pragma once

#include <csignal>
#include <cstddef>
#include <ctime>

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/select.h>
#include <unistd.h>

namespace preload {

/// One of them, called like the function that it is. Not noexcept: a thread may be cancelled in it.
template <class Function>
class original;
template <class Result, class... Arguments>
class original<Result(Arguments...)> {
 public:
  /// @param version  Of the symbol, where an older one is another function; else nullptr.
  constexpr explicit original(const char* name, const char* version = nullptr)
      : name_(name), version_(version) {}

  void find() {
    void* symbol = version_ != nullptr ? dlvsym(RTLD_NEXT, name_, version_) : nullptr;
    if (symbol == nullptr) symbol = dlsym(RTLD_NEXT, name_);
    found_ = reinterpret_cast<Result (*)(Arguments...)>(symbol);
  }

  Result operator()(Arguments... arguments) {
    if (found_ == nullptr) find();
    return found_(arguments...);
  }

 private:
  Result (*found_)(Arguments...) = nullptr;
  const char* name_;
  const char* version_;
};

/// Under the names that POSIX gives them.
namespace system {

inline constinit original<int(const timespec*, timespec*)> nanosleep{"nanosleep"};
inline constinit original<int(clockid_t, int, const timespec*, timespec*)> clock_nanosleep{
    "clock_nanosleep"};
inline constinit original<int(useconds_t)> usleep{"usleep"};
inline constinit original<unsigned(unsigned)> sleep{"sleep"};
inline constinit original<int(int, fd_set*, fd_set*, fd_set*, timeval*)> select{"select"};
inline constinit original<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>
    pselect{"pselect"};
inline constinit original<int(pollfd*, nfds_t, int)> poll{"poll"};
inline constinit original<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> ppoll{"ppoll"};
inline constinit original<int(pollfd*, nfds_t, int, std::size_t)> poll_chk{"__poll_chk"};
inline constinit original<int(pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t)>
    ppoll_chk{"__ppoll_chk"};

// Before glibc 2.3.2 condition variables were other objects.
inline constinit original<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>
    pthread_cond_timedwait{"pthread_cond_timedwait", "GLIBC_2.3.2"};
inline constinit original<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>
    pthread_cond_clockwait{"pthread_cond_clockwait"};
inline constinit original<int(pthread_mutex_t*, const timespec*)> pthread_mutex_timedlock{
    "pthread_mutex_timedlock"};
inline constinit original<int(pthread_mutex_t*, clockid_t, const timespec*)>
    pthread_mutex_clocklock{"pthread_mutex_clocklock"};
inline constinit original<int(pthread_rwlock_t*, const timespec*)> pthread_rwlock_timedrdlock{
    "pthread_rwlock_timedrdlock"};
inline constinit original<int(pthread_rwlock_t*, const timespec*)> pthread_rwlock_timedwrlock{
    "pthread_rwlock_timedwrlock"};
inline constinit original<int(pthread_rwlock_t*, clockid_t, const timespec*)>
    pthread_rwlock_clockrdlock{"pthread_rwlock_clockrdlock"};
inline constinit original<int(pthread_rwlock_t*, clockid_t, const timespec*)>
    pthread_rwlock_clockwrlock{"pthread_rwlock_clockwrlock"};
inline constinit original<int(sem_t*, const timespec*)> sem_timedwait{"sem_timedwait"};
inline constinit original<int(sem_t*, clockid_t, const timespec*)> sem_clockwait{"sem_clockwait"};

inline void find_all() {
  const auto find = [](auto&... each) { (each.find(), ...); };
  find(nanosleep, clock_nanosleep, usleep, sleep, select, pselect, poll, ppoll, poll_chk, ppoll_chk,
       pthread_cond_timedwait, pthread_cond_clockwait, pthread_mutex_timedlock,
       pthread_mutex_clocklock, pthread_rwlock_timedrdlock, pthread_rwlock_timedwrlock,
       pthread_rwlock_clockrdlock, pthread_rwlock_clockwrlock, sem_timedwait, sem_clockwait);
}

}  // namespace system

}  // namespace preload
