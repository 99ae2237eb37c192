#!/usr/bin/env bash
# Measures everything that README.md and bench/RESULTS.md say, on this machine over loopback, and writes it there, with machine,
# Node version, date and load. Run it on a machine that does nothing else.
#   bench/measure.sh            all of it, some twenty minutes: five rounds over all tables, so that every figure has a spread
#   bench/measure.sh --rounds 3 fewer rounds
#   bench/measure.sh --quick    two rounds of few repetitions: to see that it works
#   bench/measure.sh --dry      writes only to out/measure, and leaves the documents alone
set -eu
cd "$(dirname "$0")/.."
quick='' dry='' rounds=5
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) quick=1 rounds=2 ;;
    --dry) dry=--dry ;;
    --rounds) shift; rounds=${1:-} ;;
    *) rounds='' ;;
  esac
  case "$rounds" in
    '' | *[!0-9]* | 0*) echo "usage: bench/measure.sh [--rounds N] [--quick] [--dry]" >&2; exit 2 ;;
  esac
  shift
done
out=out/measure
rm -rf "$out"
mkdir -p "$out"
# Before the build, which is a load of its own.
node -p "os.loadavg()[0].toFixed(2)" > "$out/load.txt"
npm run -s build

latency='' window='' sizes=1,8,64,512,1k,4k,8k,16k,64k,256k,1m,4m
if [ -n "$quick" ]; then latency='--iterations 50 --warmup 5' window='--iterations 4 --warmup 1' sizes=1,1k,8k,64k,1m,4m; fi
git rev-parse --short HEAD > "$out/commit.txt" 2>/dev/null || echo unknown > "$out/commit.txt"
if [ -n "$(git status --porcelain --untracked-files=no 2>/dev/null)" ]; then echo "with changes that are not committed" >> "$out/commit.txt"; fi

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

# Round by round and not table by table: what changes on the machine meanwhile is in the spread of every figure, and not in one table.
# The words of options are meant to be split.
# shellcheck disable=SC2046,SC2086
for round in $(seq "$rounds"); do
  for name in sm-sync sm tcp-sync tcp tcp2 ws tcp-ws; do
    node dist/cli.js bench latency $(rails $name) $latency --sizes "$sizes" --json "$out/latency-$name-$round.json"
    node dist/cli.js bench bw $(rails $name) $window --sizes "$sizes" --json "$out/bw-$name-$round.json"
  done
  node dist/cli.js bench bibw $(rails tcp) $window --sizes "$sizes" --json "$out/bibw-tcp-$round.json"
  node dist/cli.js bench rate $(rails tcp) $window --sizes 1,8,64,512,1k,4k,8k,16k,64k --json "$out/rate-tcp-$round.json"
done
for mode in silent error; do
  for run in $(seq "$rounds"); do
    # shellcheck disable=SC2046
    node dist/cli.js bench bw $(rails tcp2) --pull 1@1s --restore 1@2s --seconds 4 --mode "$mode" --verify --no-plot --json "$out/failover-$mode-$run.json"
  done
done
node dist/cli.js demo --out "$out"
exec node bench/lib/results.mjs "$out" $dry
