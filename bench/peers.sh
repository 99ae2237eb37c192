#!/usr/bin/env bash
# Measures multirail against its peers on this machine: installs them (Debian's Open MPI, MPICH and iperf3; ws and zeromq.js from npm, into
# bench/peers/.cache), builds the counterparts in C, lets all take turns, and writes the section "Peers" of bench/RESULTS.md.
#   bench/peers.sh --quick --rounds 12          the sizes of the targets: about four minutes a round
#   bench/peers.sh --quick --minutes 60         as many rounds as begin within an hour; the same command again goes on from there
#   bench/peers.sh --rails --rounds 9           rails between network namespaces (root)
#   bench/peers.sh --summarise                  the section again, from what was measured
#   bench/peers.sh --help                       all options
# Every run is written down at once in out/peers/raw.jsonl. Run it on a machine that does nothing else.
set -eu
cd "$(dirname "$0")/.."
# A command line that makes no sense ends here, before anything is installed or built.
node bench/peers/run.mjs "$@" --help > /dev/null || exit 2
install=1 build=1 measure=1
for word in "$@"; do
  case "$word" in
    --no-install) install='' ;;
    --no-build) build='' ;;
    --summarise | --list | --help) measure='' ;;
  esac
done
cache=bench/peers/.cache

install_peers() {
  local missing=() name
  for name in gcc:gcc mpicc.openmpi:libopenmpi-dev mpirun.openmpi:openmpi-bin mpicc.mpich:libmpich-dev mpirun.mpich:mpich \
    mpichversion:mpich iperf3:iperf3 taskset:util-linux ip:iproute2; do
    command -v "${name%%:*}" > /dev/null || missing+=("${name#*:}")
  done
  if [ "${#missing[@]}" -gt 0 ]; then
    echo "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
  fi
  mkdir -p "$cache/npm"
  if ! cmp -s bench/peers/npm/package.json "$cache/npm/package.json" || [ ! -d "$cache/npm/node_modules" ]; then
    cp bench/peers/npm/package.json "$cache/npm/package.json"
    (cd "$cache/npm" && npm install --no-audit --no-fund --loglevel=error)
  fi
}

build_peers() {
  local bin="$cache/bin" c=bench/peers/c
  mkdir -p "$bin"
  for name in pair probe booked; do gcc -O2 -Wall -Wextra -pthread "$c/$name.c" -o "$bin/$name"; done
  gcc -O2 -Wall -Wextra -shared -fPIC "$c/cubic.c" -o "$bin/cubic.so" -ldl
  mpicc.openmpi -O2 -Wall "$c/mpi.c" -o "$bin/mpi-openmpi"
  # MPICH's MPI_STATUSES_IGNORE looks like an array of no elements to gcc.
  mpicc.mpich -O2 -Wall -Wno-stringop-overflow "$c/mpi.c" -o "$bin/mpi-mpich"
}

if [ -n "$measure" ]; then
  [ "$(nproc)" -ge 2 ] || { echo "bench/peers.sh: two CPUs are needed, one for each rank" >&2; exit 1; }
  if [ -n "$install" ]; then install_peers; fi
  build_peers
  if [ -n "$build" ]; then npm run -s build; fi
fi
exec node bench/peers/run.mjs "$@"
