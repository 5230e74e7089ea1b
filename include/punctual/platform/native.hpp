// Selects the backend of this machine: Linux's own, else the standard library's.
//
// Layer L0. The only place where one backend is preferred to another.
#pragma once

#include <punctual/platform/config.hpp>
#include <punctual/platform/seam.hpp>

#if PUNCTUAL_ON_LINUX
#include <punctual/platform/linux.hpp>
#else
#include <punctual/platform/portable.hpp>
#endif

namespace punctual {

/// The backend of this machine.
#if PUNCTUAL_ON_LINUX
using native_platform = linux_platform<>;
#else
using native_platform = portable_platform;
#endif

static_assert(platform<native_platform>);

}  // namespace punctual
