#!/usr/bin/env bash
# Measures over real links: network namespaces of this machine, veth cables shaped by tbf, kernel TCP. NEEDS ROOT, ip and tc
# (Debian package iproute2). Prints progress; writes out/lab/*.jsonl (every single figure) and out/lab/*.md (tables for
# bench/RESULTS.md). Leaves no namespace and no process behind, however it ends.
#   bench/lab.sh throughput [--rounds 9] [--cases 400+400,400+100,1000+400+100] [--seconds 4]
#   bench/lab.sh failover   [--faults 100] [--traffic bulk,pingpong,stream8] [--kinds …] [--seed N]
#   bench/lab.sh gray       [--cells LIST] [--faults 20] [--sample N --seed S] [--topology 2|3|slow] [--transport tcp|ws|tcp-node]
#     links that are bad without being down, judged by the bound; one cell by name, printed fault by fault:
#     bench/lab.sh gray --cells flap-silent-60/bulk --faults 5 --events;  --resume goes on with a campaign that was cut short;
#     --peers each cell over the kernel's Multipath TCP, too (needs gcc);  --audit judges nothing but the messages
#   … --minutes N           stop after N minutes with what there is;  bench/lab.sh help: all options
# See bench/soak.sh for false alarms, and the cost of idling.
set -eu
cd "$(dirname "$0")/.."
exec node bench/lab/start.mjs "$@"
