#!/usr/bin/env bash
# Measures over real links: network namespaces of this machine, veth cables shaped by tbf, kernel TCP. NEEDS ROOT, ip and tc
# (Debian package iproute2). Prints progress; writes out/lab/*.jsonl (every single figure) and out/lab/*.md (tables for
# bench/RESULTS.md). Leaves no namespace and no process behind, however it ends.
#   bench/lab.sh throughput [--rounds 9] [--cases 400+400,400+100,1000+400+100] [--seconds 4]
#   bench/lab.sh failover   [--faults 100] [--traffic bulk,pingpong,stream8] [--kinds …] [--seed N]
#   … --minutes N           stop after N minutes with what there is;  bench/lab.sh help: all options
# See bench/soak.sh for false alarms, and the cost of idling.
set -eu
cd "$(dirname "$0")/.."
exec node bench/lab-start.mjs "$@"
