// What is used of libuv, declared here with opaque types. Node exports these functions, their ABI is fixed within libuv 1, and the
// handle is allocated by the size that libuv tells, so the addon needs no header but those of Node-API.
#pragma once
#include <stddef.h>

extern "C" {
struct uv_loop_s;
struct uv_handle_s;
struct uv_poll_s;

size_t uv_handle_size(int type);
void* uv_handle_get_data(const uv_handle_s* handle);
void uv_handle_set_data(uv_handle_s* handle, void* data);
void uv_ref(uv_handle_s* handle);
void uv_unref(uv_handle_s* handle);
void uv_close(uv_handle_s* handle, void (*closed)(uv_handle_s* handle));
int uv_poll_init(uv_loop_s* loop, uv_poll_s* handle, int fd);
int uv_poll_start(uv_poll_s* handle, int events, void (*ready)(uv_poll_s* handle, int status, int events));
}

namespace multirail {
/// UV_POLL and UV_READABLE of uv.h.
constexpr int kUvPoll = 8;
constexpr int kUvReadable = 1;
}  // namespace multirail
