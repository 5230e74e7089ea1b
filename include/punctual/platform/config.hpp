// Which system, processor and compiler this is: the only file that reads predefined macros.
//
// Layer L0. Everything below `platform/` asks the PUNCTUAL_ON_* and PUNCTUAL_CPU_* macros defined
// here (always 0 or 1, so that -Wundef stays quiet); everything above asks nothing at all.
#pragma once

#if defined(__linux__)
#define PUNCTUAL_ON_LINUX 1
#else
#define PUNCTUAL_ON_LINUX 0
#endif

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
#define PUNCTUAL_CPU_X86 1
#else
#define PUNCTUAL_CPU_X86 0
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PUNCTUAL_GNU_LIKE 1
#else
#define PUNCTUAL_GNU_LIKE 0
#endif

// NOINLINE: called once a wait, would bloat the caller. ALWAYS_INLINE: a past deadline's few
// instructions, where a call would cost a fifth of the whole.
#if PUNCTUAL_GNU_LIKE
#define PUNCTUAL_NOINLINE [[gnu::noinline]]
#define PUNCTUAL_ALWAYS_INLINE [[gnu::always_inline]] inline
#else
#define PUNCTUAL_NOINLINE
#define PUNCTUAL_ALWAYS_INLINE inline
#endif

// Where the function that is running has its frame; 0 where the compiler does not say.
#if PUNCTUAL_GNU_LIKE
#define PUNCTUAL_FRAME __builtin_frame_address(0)
#else
#define PUNCTUAL_FRAME nullptr
#endif

// 128-bit integers make one multiplication exact; without them a split 64-bit form is used.
#if defined(__SIZEOF_INT128__)
#define PUNCTUAL_HAS_INT128 1
namespace punctual {
__extension__ using unsigned_128 = unsigned __int128;
__extension__ using signed_128 = __int128;
}  // namespace punctual
#else
#define PUNCTUAL_HAS_INT128 0
#endif

#if defined(__cpp_exceptions)
#define PUNCTUAL_HAS_EXCEPTIONS 1
#else
#define PUNCTUAL_HAS_EXCEPTIONS 0
#endif
