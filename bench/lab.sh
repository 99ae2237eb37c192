#!/usr/bin/env bash
# Measures over real links (needs root): throughput of one and of two rails of 1 Gbit/s, interleaved, as a ratio in one run; and
# gaps and return times of many faults. Writes nothing; put the figures into bench/RESULTS.md with the machine.
#   bench/lab.sh [ROUNDS]     default 5
set -eu
cd "$(dirname "$0")/.."
MULTIRAIL_LAB_ROUNDS="${1:-5}" exec npx vitest run --config bench/vitest.config.ts --reporter=verbose --silent=false
