#!/usr/bin/env bash
# What must not happen, and what must not cost: rails lost by false alarm, CPU and memory while idle, anything lost or leaking in hours. NEEDS ROOT, ip and tc
# (everything runs in network namespaces of its own). Writes out/lab/*.jsonl and out/lab/*.md.
#   bench/soak.sh alarms [--short]   a receiver that computes 60 s, SIGSTOP of 60 s, 10 minutes beside busy processes; over
#                                    loopback with 2 links and over two lab rails: some 55 minutes; --short: 2 minutes
#   bench/soak.sh idle               CPU of a rank with 8 rails open, over 30 s
#   bench/soak.sh memory             memory of a process with 128 peers of 2 rails each
#   bench/soak.sh traffic [--minutes N] [--ranks 8] [--seed S]
#                                    all kinds of messages and collectives, audited, over three rails that are pulled, black-holed,
#                                    flapped and restored every few seconds; nothing lost, memory flat: 120 minutes; --results
#                                    writes its record into bench/RESULTS.md
#   … --minutes N                    stop after N minutes with what there is;  bench/soak.sh help: all options
set -eu
cd "$(dirname "$0")/.."
case "${1:--}" in
  -h | --help) ;;
  -*) set -- alarms "$@" ;;
esac
exec node bench/lab/start.mjs "$@"
