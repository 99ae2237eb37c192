// libpmix by name: loaded when a rank asks for it, never linked. No Node headers.
#pragma once
#include <stddef.h>

#include "abi.h"

namespace pmix {

/**
 * Loads the library that dlopen() finds under `name` and fills in all of `functions`. False when it is not there or lacks one of them; then
 * `text` says why. Otherwise `text` is the version that it names. It stays loaded.
 */
bool openLibrary(const char* name, abi::Functions* functions, char* text, size_t capacity);

}  // namespace pmix
