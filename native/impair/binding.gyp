# The forwarder of the lab. `npm run build:native` builds it, beside the native part, of which it is no part: no rank loads it.
{
  "targets": [
    {
      "target_name": "impair",
      "sources": ["src/addon.cc", "src/forwarder.cc", "src/wire.cc"],
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
