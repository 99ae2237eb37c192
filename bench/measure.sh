#!/usr/bin/env bash
# Measures everything that README.md and bench/RESULTS.md say, on this machine over loopback, and writes it there, with machine,
# Node version, date and load. Run it on a machine that does nothing else.
#   bench/measure.sh            all of it, some ten minutes
#   bench/measure.sh --quick    fewer repetitions, a minute: to see that it works
#   bench/measure.sh --dry      writes only to out/measure, and leaves the documents alone
set -eu
cd "$(dirname "$0")/.."
quick='' dry=''
for word in "$@"; do
  case "$word" in
    --quick) quick=1 ;;
    --dry) dry=--dry ;;
    *) echo "usage: bench/measure.sh [--quick] [--dry]" >&2; exit 2 ;;
  esac
done
out=out/measure
rm -rf "$out"
mkdir -p "$out"
# Before the build, which is a load of its own.
node -p "os.loadavg()[0].toFixed(2)" > "$out/load.txt"
npm run -s build

latency='' window='' runs=5
if [ -n "$quick" ]; then latency='--iterations 50 --warmup 5' window='--iterations 4 --warmup 1' runs=1; fi

# NAME: the rails of a job, and how it calls.
rails() {
  case "$1" in
    sm) echo '--mca btl self,sm' ;;
    sm-sync) echo '--mca btl self,sm --sync' ;;
    tcp) echo '--mca btl self,tcp' ;;
    tcp-sync) echo '--mca btl self,tcp --sync' ;;
    tcp2) echo '--mca btl self,tcp --mca btl_tcp_links 2' ;;
    ws) echo '--mca btl self,ws' ;;
    tcp-ws) echo '--mca btl self,tcp,ws' ;;
  esac
}

# The words of options are meant to be split.
# shellcheck disable=SC2046,SC2086
for name in sm-sync sm tcp-sync tcp tcp2 ws tcp-ws; do
  node dist/cli.js bench latency $(rails $name) $latency --json "$out/latency-$name.json"
  node dist/cli.js bench bw $(rails $name) $window --json "$out/bw-$name.json"
done
# shellcheck disable=SC2046,SC2086
{
  node dist/cli.js bench bibw $(rails tcp) $window --json "$out/bibw-tcp.json"
  node dist/cli.js bench rate $(rails tcp) $window --sizes 1..64k --json "$out/rate-tcp.json"
}
for mode in silent error; do
  for run in $(seq "$runs"); do
    # shellcheck disable=SC2046
    node dist/cli.js bench bw $(rails tcp2) --pull 1@1s --restore 1@2s --seconds 4 --mode "$mode" --verify --no-plot --json "$out/failover-$mode-$run.json"
  done
done
node dist/cli.js demo --out "$out"
exec node bench/results.mjs "$out" $dry
