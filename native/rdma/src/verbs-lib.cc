// See verbs-lib.h.
#include "verbs-lib.h"

#include <pthread.h>
#include <stdio.h>

#include "common/dl.h"

namespace noderdma {
namespace {

VerbsLib lib;
bool tried = false;
bool loaded = false;
char reason[256];
pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

template <typename F>
bool find(void* handle, const char* name, F* out) {
  void* symbol = dlsym(handle, name);
  if (symbol == nullptr) {
    snprintf(reason, sizeof reason, "libibverbs.so.1 has no %s", name);
    return false;
  }
  *out = reinterpret_cast<F>(symbol);
  return true;
}

void load() {
  void* handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* text = dlerror();
    snprintf(reason, sizeof reason, "%s", text == nullptr ? "libibverbs.so.1 cannot be loaded" : text);
    return;
  }
  loaded = find(handle, "ibv_get_device_list", &lib.get_device_list) && find(handle, "ibv_free_device_list", &lib.free_device_list) &&
           find(handle, "ibv_get_device_name", &lib.get_device_name) && find(handle, "ibv_get_device_guid", &lib.get_device_guid) &&
           find(handle, "ibv_open_device", &lib.open_device) && find(handle, "ibv_close_device", &lib.close_device) &&
           find(handle, "ibv_query_device", &lib.query_device) && find(handle, "ibv_query_port", &lib.query_port) &&
           find(handle, "ibv_query_gid", &lib.query_gid) && find(handle, "ibv_query_pkey", &lib.query_pkey) &&
           find(handle, "ibv_alloc_pd", &lib.alloc_pd) && find(handle, "ibv_dealloc_pd", &lib.dealloc_pd) &&
           find(handle, "ibv_reg_mr", &lib.reg_mr) && find(handle, "ibv_dereg_mr", &lib.dereg_mr) &&
           find(handle, "ibv_create_comp_channel", &lib.create_comp_channel) &&
           find(handle, "ibv_destroy_comp_channel", &lib.destroy_comp_channel) && find(handle, "ibv_create_cq", &lib.create_cq) &&
           find(handle, "ibv_destroy_cq", &lib.destroy_cq) && find(handle, "ibv_get_cq_event", &lib.get_cq_event) &&
           find(handle, "ibv_ack_cq_events", &lib.ack_cq_events) && find(handle, "ibv_create_qp", &lib.create_qp) &&
           find(handle, "ibv_modify_qp", &lib.modify_qp) && find(handle, "ibv_query_qp", &lib.query_qp) &&
           find(handle, "ibv_destroy_qp", &lib.destroy_qp) && find(handle, "ibv_get_async_event", &lib.get_async_event) &&
           find(handle, "ibv_ack_async_event", &lib.ack_async_event);
}

}  // namespace

const VerbsLib* verbsLib(const char** why) {
  // Worker threads may load the addon at the same time.
  pthread_mutex_lock(&once);
  if (!tried) load();
  tried = true;
  pthread_mutex_unlock(&once);
  *why = loaded ? nullptr : reason;
  return loaded ? &lib : nullptr;
}

}  // namespace noderdma
