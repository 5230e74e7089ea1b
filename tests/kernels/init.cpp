// The first process of a guest: mounts what a test needs, runs the program named on the kernel's
// command line, and says on the console how that ended. The host believes this line alone: QEMU's
// own exit status can also mean that QEMU failed.

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <cstdio>

#if defined(__x86_64__)
#include <sys/io.h>
#endif

namespace {

void mount_at(const char* type, const char* where) {
  mkdir(where, 0755);
  if (mount(type, where, type, 0, nullptr) != 0) std::printf("init: no %s\n", where);
}

/// Runs a program and waits for it. @return  its exit status, or 128 + the signal that ended it.
int run(char** command) {
  const pid_t child = fork();
  if (child == 0) {
    execv(command[0], command);
    _exit(127);
  }
  int status = 0;
  for (pid_t ended = 0; ended != child;) {
    ended = wait(&status);
    if (ended < 0) return 126;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Ends the machine at once where QEMU offers a door for that (its isa-debug-exit device), else by
/// the kernel's way.
void power_off() {
#if defined(__x86_64__)
  if (iopl(3) == 0) outb(0, 0xf4);
#endif
  reboot(RB_POWER_OFF);
  reboot(RB_AUTOBOOT);
}

}  // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  mount_at("proc", "/proc");
  mount_at("sysfs", "/sys");
  mount_at("devtmpfs", "/dev");
  // The kernel hands over its own unknown options too (`nokaslr` is one): the command begins at the
  // first path.
  int first = 1;
  while (first < count && words[first][0] != '/') ++first;
  std::puts("GUEST-UP");
  const int verdict = first < count ? run(words + first) : 127;
  std::printf("GUEST-EXIT %d\n", verdict);
  tcdrain(STDOUT_FILENO);
  power_off();
}
