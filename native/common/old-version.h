// OLD_VERSION(name): a binary that is built on a new system asks for the oldest version of that function of the C library, so that it loads
// on old systems too. glibc 2.34 moved some functions into libc under a new version; the old one is still there.
#pragma once
#include <features.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define OLD_VERSION(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__GLIBC__) && defined(__aarch64__)
#define OLD_VERSION(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#else
#define OLD_VERSION(name) static_assert(true, #name)
#endif
