// Selects the side of the host guards that this machine has.
//
// Layer L0. Beside native.hpp, so that who only waits does not compile it.
#pragma once

#include <punctual/platform/config.hpp>
#include <punctual/platform/host_seam.hpp>

#if PUNCTUAL_ON_LINUX
#include <punctual/platform/linux_host.hpp>
#else
#include <punctual/platform/portable_host.hpp>
#endif

namespace punctual {

#if PUNCTUAL_ON_LINUX
using native_host = linux_host;
#else
using native_host = portable_host;
#endif

}  // namespace punctual
