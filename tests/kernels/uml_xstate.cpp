// Lets User-mode Linux run on a processor whose register state is larger than its 6.1 release knows
// (AMX: 11 KiB). It sets a guest's floating-point registers from a buffer that is too short, which
// the host refuses with EFAULT, and the guest's init dies at once. Preloaded, this fills the rest
// of the state with what the process has, and changes nothing else.

#include <dlfcn.h>
#include <elf.h>
#include <linux/ptrace.h>
#include <sys/uio.h>
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>

namespace {

using ptrace_call = long (*)(long, long, void*, void*);

ptrace_call real_ptrace() {
  static const auto found = reinterpret_cast<ptrace_call>(dlsym(RTLD_NEXT, "ptrace"));
  return found;
}

long set_whole_state(long process, void* which, const iovec& given) {
  alignas(64) static std::array<std::byte, std::size_t{64} * 1024> whole;
  iovec all{whole.data(), whole.size()};
  if (real_ptrace()(PTRACE_GETREGSET, process, which, &all) != 0) return -1;
  const auto* from = static_cast<const std::byte*>(given.iov_base);
  std::copy_n(from, std::min(given.iov_len, all.iov_len), whole.begin());
  return real_ptrace()(PTRACE_SETREGSET, process, which, &all);
}

}  // namespace

extern "C" long ptrace(int request, ...) noexcept {
  std::va_list rest;
  va_start(rest, request);
  const auto process = static_cast<long>(va_arg(rest, int));
  void* const address = va_arg(rest, void*);
  void* const data = va_arg(rest, void*);
  va_end(rest);
  const bool state =
      request == PTRACE_SETREGSET && reinterpret_cast<long>(address) == NT_X86_XSTATE;
  return state ? set_whole_state(process, address, *static_cast<const iovec*>(data))
               : real_ptrace()(request, process, address, data);
}
