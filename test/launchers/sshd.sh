#!/usr/bin/env bash
# Runs a real sshd on loopback in the foreground, without installing one: Debian's package is unpacked into a folder, and the user that sshd
# asks for exists in this process's view of /etc/passwd only.
#   sshd.sh FOLDER PORT AUTHORIZED-KEYS
# FOLDER holds what is made here. Needs root and Debian; exits with 77 and says why when it cannot be done.
#   MULTIRAIL_SSHD_DEBS=DIR   where the packages are kept between runs (default: .cache/debs-sshd of the checkout)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cannot() {
  echo "sshd.sh: skipped: $*" >&2
  exit 77
}

if [ "${1:-}" != --inside ]; then
  folder=$1
  [ "$(id -u)" = 0 ] || cannot "needs root"
  command -v apt-get >/dev/null || cannot "needs Debian's apt-get"
  for needed in mount ssh ssh-keygen; do command -v $needed >/dev/null || cannot "needs $needed"; done
  debs=${MULTIRAIL_SSHD_DEBS:-$here/../../.cache/debs-sshd}
  if ! [ -f "$debs/complete" ]; then
    mkdir -p "$debs/partial"
    download() {
      # --reinstall: also where it is installed, and might run as a service.
      apt-get install -y --no-install-recommends --download-only --reinstall -o "Dir::Cache::archives=$debs/" openssh-server libwrap0 >"$debs/apt.log" 2>&1
    }
    download || { apt-get update >>"$debs/apt.log" 2>&1 && download; } || cannot "cannot download openssh-server: $(tail -n 1 "$debs/apt.log")"
    touch "$debs/complete"
  fi
  for deb in "$debs"/openssh-server_*.deb "$debs"/libwrap0_*.deb; do dpkg -x "$deb" "$folder/root"; done
  exec unshare --mount --propagation private "$here/sshd.sh" --inside "$@"
fi

shift
folder=$1 port=$2 keys=$3
grep -v '^sshd:' /etc/passwd >"$folder/passwd"
echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >>"$folder/passwd"
mount --bind "$folder/passwd" /etc/passwd
mount -t tmpfs -o mode=755 run /run
mkdir /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
cat >"$folder/sshd_config" <<CONF
Port $port
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
HostKey $folder/host
AuthorizedKeysFile $keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
CONF
export LD_LIBRARY_PATH="$folder/root/usr/lib/$(uname -m)-linux-gnu:$folder/root/lib/$(uname -m)-linux-gnu"
exec "$folder/root/usr/sbin/sshd" -D -e -f "$folder/sshd_config"
