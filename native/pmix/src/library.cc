// See library.h.
#include "library.h"

#include <stdio.h>
#include <string.h>

#include "common/dl.h"

namespace pmix {
namespace {

struct Symbol {
  const char* name;
  void** place;
};

/// dlsym() answers a pointer to data; POSIX lets it be one to a function.
template <typename Function>
void** placeOf(Function** function) {
  return reinterpret_cast<void**>(function);
}

}  // namespace

bool openLibrary(const char* name, abi::Functions* functions, char* text, size_t capacity) {
  // Its components look for its symbols in the whole process.
  void* library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* why = dlerror();
    snprintf(text, capacity, "%s", why == nullptr ? "it cannot be loaded" : why);
    return false;
  }
  const Symbol symbols[] = {
      {"PMIx_Init", placeOf(&functions->init)},
      {"PMIx_Finalize", placeOf(&functions->finalize)},
      {"PMIx_Abort", placeOf(&functions->abort)},
      {"PMIx_Put", placeOf(&functions->put)},
      {"PMIx_Commit", placeOf(&functions->commit)},
      {"PMIx_Fence_nb", placeOf(&functions->fenceNb)},
      {"PMIx_Get_nb", placeOf(&functions->getNb)},
      {"PMIx_Register_event_handler", placeOf(&functions->registerEventHandler)},
      {"PMIx_Error_string", placeOf(&functions->errorString)},
      {"PMIx_Get_version", placeOf(&functions->getVersion)},
  };
  for (const Symbol& symbol : symbols) {
    *symbol.place = dlsym(library, symbol.name);
    if (*symbol.place != nullptr) continue;
    snprintf(text, capacity, "%s has no %s", name, symbol.name);
    dlclose(library);
    return false;
  }
  const char* version = functions->getVersion();
  snprintf(text, capacity, "%s", version == nullptr ? "" : version);
  return true;
}

}  // namespace pmix
