// Selects the processor's file.
//
// Layer L0.
#pragma once

#include <punctual/platform/config.hpp>

#if PUNCTUAL_CPU_X86
#include <punctual/platform/cpu/x86.hpp>
#else
#include <punctual/platform/cpu/generic.hpp>
#endif
