// The lab on paper: names, addresses, interface indexes, and the ip and tc lines that build, break and restore it. Nothing here runs a
// command.

/** One rail of the lab: one Ethernet that every node has one port on. */
export interface RailSpec {
  /** Rate of every port, towards the node and (with two nodes, hence) from it. Default 1000; Infinity: as fast as the machine. */
  mbit?: number;
  /** Longest stay in a port's queue at that rate. Default 25: TCP fills the rate, and the queue does not bloat. */
  queueMs?: number;
}

export interface RailPlan {
  readonly mbit: number;
  readonly queueMs: number;
  /** Instead of what queueMs makes. */
  readonly queueBytes?: number;
}

export const MAX_NODES = 32;
export const MAX_RAILS = 8;

/** How long reordered frames are held: on a rail of 1 Gbit/s some 800 others pass. */
export const DEFAULT_HOLD_MS = 10;
export const DELAY_MAX_MS = 10_000;

/** Marks the routes that the lab puts in (`ip route show proto 77`), so that healing removes those and no others. */
const LAB_ROUTE_PROTOCOL = 77;

// Interface indexes. Linkwatch reports a carrier change at once when an interface's index differs from its peer's, and may
// sit on it for up to a second when they are equal, which they easily are in fresh namespaces. So both are chosen here.
const NODE_INDEX_BASE = 11;
const WIRE_INDEX_BASE = 1000;
const WIRE_INDEX_STRIDE = 100;

/** At less than that, the ports' bursts are of one frame. */
const TINY_MBIT = 10;

/** Queue of a port without a rate. */
const UNSHAPED_PACKETS = 10_000;

// cBPF programs as an ingress filter. Their verdicts (`ret #n`): 0 is TC_ACT_OK, 2 is TC_ACT_SHOT.
const DROP_EVERYTHING = '1,6 0 0 2';
/** `ld #random`, of the kernel's get_prandom_u32: SKF_AD_OFF + SKF_AD_RANDOM. */
const LOAD_RANDOM = `32 0 0 ${2 ** 32 - 0x1000 + 56}`;

/** What an interface may hand on as one packet of segmentation offload; the kernel's own value at its birth is the larger. */
const SEGMENTS_OF_OFFLOAD = 65_535;

/** The interface of every node on this rail. */
export function nodeInterface(rail: number): string {
  return `mr${rail}`;
}

/** The other end of that veth pair, in the wire namespace: the switch port of this node. */
export function wirePort(node: number, rail: number): string {
  return `r${rail}n${node}`;
}

export function bridge(rail: number): string {
  return `br${rail}`;
}

export function address4(node: number, rail: number): string {
  return `10.77.${rail}.${node + 1}`;
}

export function subnet4(rail: number): string {
  return `10.77.${rail}.0/24`;
}

/** Canonical text (a zero group is folded into `::`), so that it compares equal to what the kernel and Node print. */
export function address6(node: number, rail: number): string {
  return `${prefix6(rail)}::${(node + 1).toString(16)}`;
}

export function subnet6(rail: number): string {
  return `${prefix6(rail)}::/64`;
}

function prefix6(rail: number): string {
  return rail === 0 ? 'fd77' : `fd77:${rail.toString(16)}`;
}

function macAddress(node: number, rail: number): string {
  const hex = (n: number) => n.toString(16).padStart(2, '0');
  return `02:77:00:00:${hex(rail)}:${hex(node + 1)}`;
}

/** Kernel settings of a node, `path=value` under /proc/sys/net, written before its interfaces exist. */
export const NODE_SETTINGS: readonly string[] = [
  // A stolen route brings packets in by the "wrong" interface; strict filtering on the receiver would hide the theft.
  'ipv4/conf/all/rp_filter=0',
  'ipv4/conf/default/rp_filter=0',
  // No waiting for duplicate address detection: an address is usable when `ip` returns.
  'ipv6/conf/default/accept_dad=0',
  'ipv6/conf/default/dad_transmits=0',
  'ipv6/conf/default/accept_ra=0',
  'ipv6/conf/default/router_solicitations=0',
  // A path that was broken once would start its next connection with the remembered threshold: tests would depend on order.
  'ipv4/tcp_no_metrics_save=1',
];

/**
 * Congestion control of a lab's TCP where nobody says another. It is the kernel's own choice, and most systems leave it so; what a lab
 * shows is then the same on a system that was set to another one.
 */
export const DEFAULT_CONGESTION_CONTROL = 'cubic';

/** Node setting: how TCP finds its rate. */
export const congestionControlSetting = (name: string): string => `ipv4/tcp_congestion_control=${name}`;

/** The wire only bridges: no address of its own, so that every counted frame is a node's. */
export const WIRE_SETTINGS: readonly string[] = ['ipv6/conf/all/disable_ipv6=1', 'ipv6/conf/default/disable_ipv6=1'];

/** Lines for `ip` in this process's namespace: one veth pair per node and rail, born inside the two namespaces. */
export function cableLines(nodeNamespaces: readonly string[], wireNamespace: string, rails: readonly RailPlan[]): string[] {
  return nodeNamespaces.flatMap((namespace, node) =>
    rails.map((_, rail) => {
      const wireIndex = WIRE_INDEX_BASE + rail * WIRE_INDEX_STRIDE + node + 1;
      const own = `name ${nodeInterface(rail)} index ${NODE_INDEX_BASE + rail} netns ${namespace} address ${macAddress(node, rail)}`;
      return `link add ${own} type veth peer name ${wirePort(node, rail)} index ${wireIndex} netns ${wireNamespace}`;
    }),
  );
}

/** Lines for `ip` in the wire namespace that make the switches. Ports are plugged in by `wireUpLines`. */
export function switchLines(rails: readonly RailPlan[]): string[] {
  return rails.map((_, rail) => {
    const index = WIRE_INDEX_BASE + rail * WIRE_INDEX_STRIDE;
    return `link add name ${bridge(rail)} index ${index} type bridge stp_state 0 forward_delay 0 mcast_snooping 0`;
  });
}

/** Lines for `ip` in the wire namespace: the rail's switch and all its ports as they should be. Changes nothing that is right. */
export function wireUpLines(nodes: number, rail: number): string[] {
  const ports = Array.from({ length: nodes }, (_, node) => `link set ${wirePort(node, rail)} master ${bridge(rail)} up`);
  return [`link set ${bridge(rail)} up`, ...ports];
}

/** Line for `tc` in the wire namespace: this port sends at the rail's rate. */
export function shapeLine(node: number, rail: number, { mbit, queueMs, queueBytes }: RailPlan): string {
  // A queue all the same, so that whatever stands there is replaced; a port that takes every frame at once never fills it.
  if (mbit === Number.POSITIVE_INFINITY) return `qdisc replace dev ${wirePort(node, rail)} root handle 1: pfifo limit ${UNSHAPED_PACKETS}`;
  const bytesPerMs = (mbit * 1e6) / 8 / 1000;
  // Two milliseconds of burst hide the timers' coarseness; a segmentation-offload packet that is larger is cut up by tbf.
  // What one frame takes must pass at once, and at a tiny rate a second one would already be a burst.
  const burstBytes = Math.ceil(Math.max(2 * bytesPerMs, mbit < TINY_MBIT ? 2048 : 4096));
  const limitBytes = Math.ceil((queueBytes ?? Math.max(queueMs * bytesPerMs, 32_768)) + burstBytes);
  return `qdisc replace dev ${wirePort(node, rail)} root handle 1: tbf rate ${Math.round(mbit * 1e6)}bit burst ${burstBytes} limit ${limitBytes}`;
}

/** Line for `tc` in the wire namespace: nothing leaves the switch towards this node; what is queued for it is gone too. */
export function blackholeLine(node: number, rail: number): string {
  return `qdisc replace dev ${wirePort(node, rail)} root handle 2: blackhole`;
}

/**
 * Lines for `tc` in the wire namespace: of what this node sends, so many percent (above 0, up to 100) do not enter the switch, each frame
 * by chance. What is already queued arrives. Replaces what such lines have set before.
 */
export function ingressLossLines(node: number, rail: number, percent: number): string[] {
  const port = wirePort(node, rail);
  // Dropped below the threshold; `jge` skips the drop.
  const threshold = Math.max(1, Math.round((percent / 100) * 2 ** 32));
  const program = percent >= 100 ? DROP_EVERYTHING : `4,${LOAD_RANDOM},53 1 0 ${Math.min(threshold, 2 ** 32 - 1)},6 0 0 2,6 0 0 0`;
  return [
    `qdisc replace dev ${port} ingress`,
    `filter replace dev ${port} ingress protocol all pref 1 handle 1 bpf direct-action bytecode '${program}'`,
  ];
}

export function noIngressLossLine(node: number, rail: number): string {
  return `qdisc del dev ${wirePort(node, rail)} ingress`;
}

/**
 * Line for `ip` in a node: whether what leaves by this rail may be a packet of segmentation offload, or is cut into frames before. A
 * chance is one per packet, and it is frames that a wire loses.
 */
export function segmentationLine(rail: number, isOffloaded: boolean): string {
  return `link set ${nodeInterface(rail)} gso_max_segs ${isOffloaded ? SEGMENTS_OF_OFFLOAD : 1}`;
}

/** Lines for `ip` in a node: its port on this rail with its addresses, as at the start. Changes nothing that is right. */
export function nodeUpLines(node: number, rail: number): string[] {
  const dev = nodeInterface(rail);
  return [
    `link set ${dev} up`,
    `address replace ${address4(node, rail)}/24 dev ${dev}`,
    // Setting an interface down takes its IPv6 addresses away, and up does not bring them back.
    `address replace ${address6(node, rail)}/64 dev ${dev} nodad`,
  ];
}

/** Line for `ip` in a node: forget what ARP and neighbour discovery learnt, or failed to learn, on this rail. */
export function forgetNeighboursLine(rail: number): string {
  return `neighbour flush dev ${nodeInterface(rail)}`;
}

/**
 * Lines for `ip` in a node: the subnet of `rail` leaves by the interface of `viaRail`. The connected routes stay where they
 * are, behind better ones: in front of it for IPv4, with a lower metric for IPv6. So removing ours restores the table exactly.
 */
export function stealRouteLines(node: number, rail: number, viaRail: number): string[] {
  const via = `dev ${nodeInterface(viaRail)} proto ${LAB_ROUTE_PROTOCOL}`;
  return [
    `route prepend ${subnet4(rail)} ${via} scope link src ${address4(node, rail)}`,
    `route replace ${subnet6(rail)} ${via} metric 1 src ${address6(node, rail)}`,
  ];
}

/** Line for `ip -4` or `ip -6` in a node. The family is not read off the prefix: without the option only IPv4 is flushed. */
export function returnRouteLine(rail: number, family: 4 | 6): string {
  return `route flush exact ${family === 4 ? subnet4(rail) : subnet6(rail)} proto ${LAB_ROUTE_PROTOCOL}`;
}
