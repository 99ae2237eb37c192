#!/usr/bin/env bash
# All of the project's tests, in order. It ends with the plain line "N passed, N failed, N skipped".
#   MULTIRAIL_TEST_APT=0        never install Debian packages
#   MULTIRAIL_TEST_ONLY="unit sim"   only these parts (the names are those of the table `parts` in test/run.mjs)
set -u
cd "$(dirname "$0")/.."
exec node test/run.mjs "$@"
