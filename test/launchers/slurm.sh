#!/usr/bin/env bash
# Brings up a Slurm of four nodes on this one machine, runs a command in it, and takes everything down again.
#
#   sudo test/launchers/slurm.sh srun -N4 --ntasks-per-node=2 --overcommit node examples/ring.mjs
#   sudo test/launchers/slurm.sh bash          (a shell in the cluster: sinfo, srun, scancel, … work there)
#
# Nothing stays behind: packages are unpacked into an overlay in memory over the root file system, and the daemons run in
# separate namespaces (mounts, processes, network, host name) that end with the command. It needs root, Debian and overlayfs.
#   MULTIRAIL_SLURM_DEBS=DIR   where the packages are kept between runs (default: .cache/debs-slurm of the checkout)
# It exits with 77 and says why when it cannot be done here, otherwise with the command's exit code.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
packages="slurm-wlm slurm-client slurmd slurmctld slurm-wlm-basic-plugins munge libpmix2"

# Slurm's daemons and commands are there: this machine has them, or they have been unpacked.
have_slurm() {
  for command in slurmctld slurmd srun scancel sinfo munged; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || return 1
  done
}

cannot() {
  echo "slurm.sh: skipped: $*" >&2
  exit 77
}

outside() {
  [ "$(id -u)" = 0 ] || cannot "needs root"
  [ "$#" -gt 0 ] || { sed -n '2,10p' "$0"; exit 2; }
  command -v apt-get >/dev/null || cannot "needs Debian's apt-get"
  for needed in mount ip; do command -v $needed >/dev/null || cannot "needs $needed"; done
  grep -qw overlay /proc/filesystems || cannot "the kernel has no overlayfs"
  debs=${MULTIRAIL_SLURM_DEBS:-$top/.cache/debs-slurm}
  mkdir -p "$debs/partial"
  # apt downloads only what is not installed: on a machine that has Slurm that is nothing, and nothing is needed.
  if ! have_slurm && ! [ -f "$debs/complete-with-pmix" ]; then
    download() {
      apt-get install -y --no-install-recommends --download-only -o "Dir::Cache::archives=$debs/" $packages >"$debs/apt.log" 2>&1
    }
    download || { apt-get update >>"$debs/apt.log" 2>&1 && download; } || cannot "cannot download Slurm: $(tail -n 1 "$debs/apt.log")"
    touch "$debs/complete-with-pmix"
  fi
  export MULTIRAIL_SLURM_DEBS=$debs
  exec unshare --mount --pid --fork --kill-child --net --uts --ipc --propagation private "$here/slurm.sh" --overlay "$PWD" "$@"
}

overlay() {
  cwd=$1
  shift
  memory=$(mktemp -d)
  mount -t tmpfs -o mode=755 multirail-slurm "$memory"
  rmdir_later=$memory
  mkdir "$memory/up" "$memory/work" "$memory/root" "$memory/debs"
  mount --bind "$MULTIRAIL_SLURM_DEBS" "$memory/debs"
  mount -t overlay -o "lowerdir=/,upperdir=$memory/up,workdir=$memory/work" multirail-slurm "$memory/root" 2>/dev/null ||
    cannot "cannot mount an overlay over the root file system"
  for mounted in dev sys; do mount --rbind "/$mounted" "$memory/root/$mounted"; done
  mount -t proc proc "$memory/root/proc"
  mount -t tmpfs -o mode=1777 tmp "$memory/root/tmp"
  mount -t tmpfs -o mode=755 run "$memory/root/run"
  mkdir -p "$memory/root/run/debs"
  mount --bind "$memory/debs" "$memory/root/run/debs"
  # A checkout on a file system of its own does not show through the overlay.
  [ -e "$memory/root$here/slurm.sh" ] || { mkdir -p "$memory/root$top" && mount --rbind "$top" "$memory/root$top"; }
  exec chroot "$memory/root" /usr/bin/env "$here/slurm.sh" --cluster "$cwd" "$@"
}

cluster() {
  cwd=$1
  shift
  hostname multirail-slurm
  # An address per node, on one interface of this namespace: as far as names and addresses go, four hosts.
  printf '127.0.0.1 localhost\n10.77.0.1 n1 multirail-slurm\n10.77.0.2 n2\n10.77.0.3 n3\n10.77.0.4 n4\n' >/etc/hosts
  ip link set lo up
  ip link add nodes type veth peer name nodes-end
  for node in 1 2 3 4; do ip address add "10.77.0.$node/24" dev nodes; done
  ip link set nodes up
  ip link set nodes-end up
  log=/var/log/multirail-slurm
  mkdir -p "$log" /etc/munge /etc/slurm /var/lib/munge /var/log/munge /run/munge /var/spool/slurmctld
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  if ! have_slurm; then
    DEBIAN_FRONTEND=noninteractive dpkg -i /run/debs/*.deb >"$log/dpkg.log" 2>&1 || true
    # What was kept does not do where packages have been removed since: the next time it is downloaded again.
    have_slurm || { rm -f /run/debs/complete-with-pmix; cannot "cannot unpack Slurm: $(tail -n 1 "$log/dpkg.log")"; }
  fi

  dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 status=none
  chown -R munge: /etc/munge /var/lib/munge /var/log/munge /run/munge
  chmod 400 /etc/munge/munge.key
  chmod 755 /run/munge
  runuser -u munge -- munged --force 2>"$log/munged.log"

  cat >/etc/slurm/slurm.conf <<CONF
ClusterName=multirail
SlurmctldHost=multirail-slurm(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=10
KillWait=2
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd.%n
TmpFS=/run/slurm-tmp.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=$log/slurmctld.log
SlurmdLogFile=$log/slurmd.%n.log
NodeName=n[1-4] NodeHostname=multirail-slurm NodeAddr=10.77.0.[1-4] CPUs=2 Port=[17001-17004]
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  mkdir -p /etc/slurm-llnl && ln -sf /etc/slurm/slurm.conf /etc/slurm-llnl/slurm.conf
  slurmctld
  # The nodes have one file system, and PMIx makes a folder for each step on each node, under one name.
  for node in 1 2 3 4; do mkdir "/run/slurm-tmp.n$node" && slurmd -N "n$node"; done
  for _ in $(seq 100); do
    [ "$(timeout 2 sinfo --noheader --format '%D %t' 2>/dev/null)" = "4 idle" ] && break
    sleep 0.1
  done
  [ "$(timeout 2 sinfo --noheader --format '%D %t' 2>/dev/null)" = "4 idle" ] || { tail -n 5 "$log"/*.log >&2; echo "slurm.sh: the nodes did not come up" >&2; exit 1; }
  # Commands must not find themselves in a job of whoever started this.
  cd "$cwd"
  status=0
  "$@" || status=$?
  exit "$status"
}

case "${1:-}" in
  --overlay) shift; overlay "$@" ;;
  --cluster) shift; cluster "$@" ;;
  *) outside "$@" ;;
esac
