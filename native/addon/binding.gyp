# The addon. `npm run build:native` builds it; native/scripts/build.mjs finds the headers.
{
  "targets": [
    {
      "target_name": "multirail",
      "sources": [
        "src/addon.cc",
        "src/net/socket.cc",
        "src/net/net-binding.cc",
        "src/net/unix.cc",
        "src/net/unix-binding.cc",
        "src/net/tcp-info.cc",
        "src/net/netlink.cc",
        "src/net/route.cc",
        "src/net/netlink-binding.cc",
        "src/os/poller.cc",
        "src/os/affinity.cc",
        "src/os/os-binding.cc",
        "src/shm/segment.cc",
        "src/shm/doorbell.cc",
        "src/shm/cma.cc",
        "src/shm/watch.cc",
        "src/shm/shared-call.cc",
        "src/shm/shm-binding.cc",
        "src/crc/crc32c.cc",
        "src/crc/crc-fold.cc",
        "src/crc/copy-crc.cc",
        "src/crc/frames.cc",
        "src/crc/crc-binding.cc",
        "src/combine/combine.cc",
        "src/combine/combine-binding.cc"
      ],
      "include_dirs": [".."],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags_cc!": ["-std=gnu++14", "-std=gnu++17", "-std=gnu++20", "-fexceptions", "-frtti"],
      "cflags_cc": [
        "-std=c++17",
        "-O3",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-threadsafe-statics",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unknown-warning-option"
      ],
      # Nothing of the C++ library is used, so none is wanted at run time.
      "ldflags": ["-Wl,--as-needed", "-Wl,-z,relro,-z,now", "-static-libgcc", "-static-libstdc++"]
    }
  ]
}
