# A job of two languages: `multirail run -n 2 sh examples/python-peer/job.sh` starts this once per rank. Rank 0 is Node, rank 1 Python.
# Arguments, for tests: another program for rank 0, and "cut", for which rank 1 breaks its connection to the launcher once.
here=$(dirname "$0")
if [ "$MULTIRAIL_RANK" = 0 ]; then exec node "${1:-$here/job-rank0.mjs}"; fi
exec python3 "$here/job.py" "$2"
