// Libraries that are loaded by name, in binaries that load on old systems: glibc 2.34 moved these functions into libc under a new version;
// the old one is still there, and a binary that asks for it loads everywhere. (pthread_once has moved as well and is not used for that reason.)
#pragma once
#include <dlfcn.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define OLD_VERSION(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__GLIBC__) && defined(__aarch64__)
#define OLD_VERSION(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif
#ifdef OLD_VERSION
OLD_VERSION(dlopen);
OLD_VERSION(dlsym);
OLD_VERSION(dlerror);
OLD_VERSION(dlclose);
#undef OLD_VERSION
#endif
