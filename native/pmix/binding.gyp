# PMIx for ranks that mpirun or srun has started. `npm run build:native` builds it, next to the native part, which does not need it.
{
  "targets": [
    {
      "target_name": "pmix",
      "sources": ["src/addon.cc", "src/client.cc", "src/library.cc"],
      "include_dirs": [".."],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags_cc!": ["-std=gnu++14", "-std=gnu++17", "-std=gnu++20", "-fexceptions", "-frtti"],
      "cflags_cc": [
        "-std=c++17",
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
      # Nothing of the C++ library is used, so none is wanted at run time.
      "ldflags": ["-Wl,--as-needed", "-Wl,-z,relro,-z,now", "-static-libgcc", "-static-libstdc++"]
    }
  ]
}
