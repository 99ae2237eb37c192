// Libraries that are loaded by name, in binaries that load on old systems. (pthread_once has moved as well, and is not used for that reason.)
#pragma once
#include <dlfcn.h>

#include "old-version.h"

OLD_VERSION(dlopen);
OLD_VERSION(dlsym);
OLD_VERSION(dlerror);
OLD_VERSION(dlclose);
