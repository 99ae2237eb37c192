#!/bin/sh
# Takes the place of ssh: it "reaches" a network namespace of this machine, and gives the command to a shell there, as sshd does. It logs
# the words of every call, so that a test can look for words that must not be among them. Usage: fake-ssh.sh LOG NAMESPACE-PREFIX HOST
# COMMAND
log=$1 prefix=$2 host=$3
shift 3
printf '%s %s\n' "$host" "$*" >>"$log"
case $host in
  *refused*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255 ;;
esac
# A clean environment, as after a login.
if [ "$prefix" = - ]; then exec env -i PATH="$PATH" HOME="$HOME" sh -c "$*"; fi
exec ip netns exec "$prefix$host" env -i PATH="$PATH" HOME="$HOME" sh -c "$*"
