// The one system call in which a thread may be cancelled at any instruction.
#pragma once

#include <cstdint>

namespace preload {

/// Waits until the time is up, or a handler has run for a signal that `open` lets in.
///
/// @param left  The kernel's own timespec, 64 bits each: how long, and afterwards what remained
///              when the wait ended, before any handler ran.
/// @param open  The signal mask to wait with, as the kernel has it.
/// @return  0, or a negative error: -EINTR after a handler.
long wait_open(std::int64_t (&left)[2], const std::uint64_t& open);

}  // namespace preload
