# The addon of node-rdma. It needs the headers of libibverbs (Debian: libibverbs-dev) to be built, and the library only at run time. What it
# shares with the other addons lies beside it in the repository of multirail, and within it in the package node-rdma (`prepack`).
{
  "targets": [
    {
      "target_name": "rdma",
      "sources": [
        "src/addon.cc",
        "src/verbs-lib.cc",
        "src/objects.cc",
        "src/objects-binding.cc",
        "src/device.cc",
        "src/device-binding.cc",
        "src/memory-binding.cc",
        "src/completion-binding.cc",
        "src/queue-pair-binding.cc",
        "src/work.cc"
      ],
      "include_dirs": ["<!(test -f ../common/napi-args.h && echo .. || echo .)", "<!(echo ${RDMA_INCLUDE:-/usr/include})"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags_cc!": ["-std=gnu++14", "-std=gnu++17", "-std=gnu++20", "-fexceptions", "-frtti"],
      "cflags_cc": [
        "-std=gnu++17",
        "-O2",
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
      "ldflags": ["-Wl,--as-needed", "-Wl,-z,relro,-z,now", "-static-libgcc", "-static-libstdc++"]
    }
  ]
}
