// What runs inside the guest: its first process, the set-up of its links, and the command that pulls them, as text.

/** Process 1: modules and file systems, then what the control folder holds. */
export const GUEST_INIT = `#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
while read m; do $b insmod /m/$m.ko || echo "insmod $m failed"; done < /m/order
nine=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o ro,cache=loose,$nine host /host
$b mount -t 9p -o ro,cache=loose,$nine tools /tools
$b mount -t 9p -o cache=none,$nine control /control
$b mount -t tmpfs rw /rw
$b mkdir /rw/upper /rw/work
# The machine's own root, the tools over it, and over both what the guest writes, which is forgotten.
$b mount -t overlay -o lowerdir=/tools:/host,upperdir=/rw/upper,workdir=/rw/work root /all
$b mount -t proc proc /all/proc
$b mount -t sysfs sys /all/sys
$b mount -t devtmpfs dev /all/dev
$b mkdir -p /all/dev/pts /all/dev/shm /all/control
$b mount -t devpts -o ptmxmode=666 pts /all/dev/pts
$b mount -t tmpfs shm /all/dev/shm
$b mount -t tmpfs run /all/run
$b mount --move /control /all/control
for pair in fd: stdin:/0 stdout:/1 stderr:/2; do $b ln -s /proc/self/fd\${pair#*:} /all/dev/\${pair%:*}; done
i=0
while read -r shared; do $b mount -t 9p -o cache=none,$nine shared$i "/all$shared"; i=$((i + 1)); done < /all/control/shared
$b hostname rxe
$b chroot /all /bin/bash /control/guest
$b sync
$b poweroff -f
`;

/** Where the guest keeps what `wire known` says again. */
const NEIGHBOURS = '/run/neighbours';

/** wire cut|mend N, wire loss N PERCENT: the cable of device N. wire known: its neighbours again, which an interface forgets when it is taken down. */
export const GUEST_WIRE = `#!/bin/bash
# The cable of soft-RoCE device N, beyond its own interface: wire cut N | wire mend N | wire loss N PERCENT | wire known
set -e
case "$1" in
  cut) ip -n wire link set "w$2" down ;;
  mend)
    ip -n wire link set "w$2" up
    for _ in {1..200}; do
      if grep -q ACTIVE "/sys/class/infiniband/rxe$2/ports/1/state" && bridge -n wire link show dev "w$2" | grep -q forwarding; then exit 0; fi
      sleep 0.02
    done
    echo "wire: device $2 did not come back" >&2
    exit 1
    ;;
  loss) ip netns exec wire tc qdisc replace dev "w$2" root netem loss "$3%" ;;
  known) ip -b ${NEIGHBOURS} ;;
  *) sed -n 2p "$0" >&2; exit 2 ;;
esac
`;

/**
 * Sets the links up and runs the command. All devices stay in the first namespace, since soft-RoCE of this kernel neither sends nor
 * hears anything in another one; so packets between two addresses of the guest are told by rules to take the wire and not lo. The
 * bridge comes first: a veth whose two ends have the same interface number would notice a link change up to a second late.
 */
export function guestScript({ devices, mtu, cwd, args, env }) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const all = Array.from({ length: devices }, (_, i) => i);
  const mac = (i) => `02:00:00:00:00:${i.toString(16).padStart(2, '0')}`;
  const links = all.map((i) => `link add veth${i} mtu ${mtu} address ${mac(i)} type veth peer name w${i} mtu ${mtu} netns wire`);
  const ports = all.map((i) => `link set w${i} master br0 up`);
  const addresses = all.flatMap((i) => [
    `addr add 10.9.0.${i + 1}/24 dev veth${i}`,
    `link set veth${i} up`,
    `rule add pref ${100 + i} oif veth${i} lookup main`,
  ]);
  // Known neighbours: else packets are lost to address resolution, a second of them after each return of a link. Each device is its own, so that two
  // processes can talk over one.
  const neighbours = all.flatMap((i) => all.map((j) => `neigh replace 10.9.0.${i + 1} lladdr ${mac(i)} dev veth${j} nud permanent`));
  const batch = (lines) => quoted(`${lines.join('\n')}\n`);
  return `${Object.entries(env)
    .map(([name, value]) => `export ${name}=${quoted(value)}`)
    .join('\n')}
exec < /dev/null > /dev/ttyS0 2>&1
: > /control/up
ulimit -l unlimited
echo '127.0.1.1 rxe' >> /etc/hosts
for scope in all default; do
  echo 1 > /proc/sys/net/ipv4/conf/$scope/accept_local
  echo 0 > /proc/sys/net/ipv4/conf/$scope/rp_filter
done
echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore
# A RoCE network drops nothing for want of room; a veth does when more packets wait than this (1000 as shipped: less than a read of 1 MiB).
echo 100000 > /proc/sys/net/core/netdev_max_backlog
ip netns add wire
ip -n wire link add br0 mtu ${mtu} up type bridge
printf %s ${batch(links)} | ip -b -
printf %s ${batch(ports)} | ip -n wire -b -
printf %s ${batch(['link set lo up', ...addresses, 'rule add pref 1000 lookup local', 'rule del pref 0'])} | ip -b -
printf %s ${batch(neighbours)} > ${NEIGHBOURS}
wire known
printf %s ${batch(all.map((i) => `link add rxe${i} type rxe netdev veth${i}`))} | rdma -b -
# Nor does it change the order of packets; a veth does when the processor that sends changes, since each has a queue of its own.
order() { for rps in /sys/class/net/*/queues/rx-*/rps_cpus; do echo 1 > "$rps"; done; }
order
ip netns exec wire bash -c "$(declare -f order); order"
mkfifo /run/out /run/err
cat /run/out > "$(echo /dev/vport*p1)" & out=$!
cat /run/err > "$(echo /dev/vport*p2)" & err=$!
cd ${quoted(cwd)}
${args.map(quoted).join(' ')} > /run/out 2> /run/err
echo $? > /control/status
for _ in {1..20}; do kill -0 $out 2> /dev/null || kill -0 $err 2> /dev/null || break; sleep 0.1; done
`;
}
