// The parameters of rails over TCP; src/params.ts puts them into the table of all.
import { bool, int, KIB, list, type ParamRows, string } from '../../param-spec.ts';

export const TCP_PARAMS = {
  btl_tcp_if_include: list(
    'user',
    '',
    'Only these interfaces or subnets (eth0, 10.1.0.0/16, fd00::/8) carry TCP rails; empty = all that are not excluded.',
  ),
  btl_tcp_if_exclude: list(
    'user',
    'docker0,virbr0,veth-docker*,br-*,cni*,flannel*',
    'These interfaces or subnets carry no TCP rails. * matches any text.',
  ),
  btl_tcp_links: int('user', 1, 'connections', 1, 16, 'TCP rails per interface pair.'),
  btl_tcp_port_min: int('user', 0, 'port', 0, 65535, 'Lowest port to listen on; 0 = any.'),
  btl_tcp_port_range: int('user', 100, 'ports', 1, 65535, 'How many ports from btl_tcp_port_min on may be tried.'),
  btl_tcp_disable_family: string('user', 'none', 'Do not use this address family.', ['none', '4', '6']),
  btl_tcp_bandwidth_mbytes_per_s: int('tuner', 125, 'MB/s', 1, 1_000_000, 'Assumed bandwidth of a TCP rail until it is measured.'),
  btl_tcp_latency_us: int('tuner', 50, 'us', 0, 10_000_000, 'Assumed latency of a TCP rail; lower is preferred for small messages.'),
  btl_tcp_if_standby: list('user', '', 'Interfaces or subnets whose TCP rails only work while no other rail is up.'),
  btl_tcp_route_check: bool('tuner', true, 'Refuse a rail whose packets would leave by another interface than its own.'),
  btl_tcp_native: bool('developer', true, 'TCP rails use the native part where it is there; false = the sockets of Node.'),
  btl_tcp_cc: string(
    'tuner',
    'auto',
    "Congestion control of native TCP rails, by its name in the kernel; auto = cubic between ranks of one host and the system's elsewhere, system = never touched.",
  ),
  btl_tcp_notsent_lowat_bytes: int(
    'tuner',
    64 * KIB,
    'bytes',
    0,
    2 ** 30,
    "A native TCP rail keeps about this much unsent in the kernel, so that what waits can still change rail; 0 = the system's. Not on loopback.",
  ),
  btl_tcp_sndbuf_bytes: int('tuner', 0, 'bytes', 0, 2 ** 30, 'Send buffer of native TCP rails (SO_SNDBUF); 0 = sized by the system.'),
  btl_tcp_rcvbuf_bytes: int('tuner', 0, 'bytes', 0, 2 ** 30, 'Receive buffer of native TCP rails (SO_RCVBUF); 0 = sized by the system.'),
  btl_tcp_beat_ms: int(
    'developer',
    20,
    'ms',
    1,
    10_000,
    'Liveness beats of a native TCP rail that carries traffic are this far apart; further with many rails.',
  ),
  btl_tcp_beat_idle_ms: int(
    'developer',
    1000,
    'ms',
    10,
    600_000,
    'Liveness beats of an idle native TCP rail are this far apart; further with many rails.',
  ),
  btl_tcp_silent_ms: int(
    'tuner',
    75,
    'ms',
    50,
    600_000,
    "A native TCP rail is lost when the peer's kernel has acknowledged nothing for this time and twice the round trip, though something is on its way.",
  ),
} as const satisfies ParamRows;
