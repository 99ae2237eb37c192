#!/bin/sh
# Takes the place of ssh for mpirun and prterun: it "reaches" a network namespace of this machine, under a host name of its own, and gives the
# command to a shell there. Usage: netns-agent.sh NAMESPACE-PREFIX HOST COMMAND
prefix=$1 host=$2
shift 2
exec nsenter "--net=/run/netns/$prefix$host" unshare --uts sh -c "hostname $host; $*"
