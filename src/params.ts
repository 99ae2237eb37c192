// Every parameter of multirail, in one table: name, kind, default, unit, range, one sentence.
// Set in Open MPI's style: `--mca NAME VALUE` on the command line of `multirail run`, or MULTIRAIL_MCA_NAME=VALUE in the
// environment; the command line wins. `multirail info --all` prints this table.
import type { Params } from './btl/btl.ts';
import { MultirailError } from './errors.ts';

interface IntParam {
  kind: 'int';
  default: number;
  unit: string;
  min: number;
  max: number;
  text: string;
}
interface BoolParam {
  kind: 'bool';
  default: boolean;
  text: string;
}
interface StringParam {
  kind: 'string';
  default: string;
  text: string;
  choices?: readonly string[];
}
interface ListParam {
  kind: 'list';
  default: string;
  text: string;
}
export type ParamSpec = IntParam | BoolParam | StringParam | ListParam;

const int = (value: number, unit: string, min: number, max: number, text: string): IntParam => ({
  kind: 'int',
  default: value,
  unit,
  min,
  max,
  text,
});
const bool = (value: boolean, text: string): BoolParam => ({ kind: 'bool', default: value, text });
const list = (value: string, text: string): ListParam => ({ kind: 'list', default: value, text });
const string = (value: string, text: string, choices?: readonly string[]): StringParam =>
  choices === undefined ? { kind: 'string', default: value, text } : { kind: 'string', default: value, text, choices };

/** Parameter that names the algorithm of a collective. */
const algorithm = (call: string, names: readonly string[]): StringParam =>
  string('auto', `Algorithm of ${call} where it can be used; auto = by length and number of ranks (docs/reference/collectives.md).`, [
    'auto',
    ...names,
  ]);

const KIB = 1024;
const MIB = 1024 * 1024;

export const PARAMS = {
  // --- which transports
  btl: list(
    'self,sm,verbs,tcp',
    'Transports to use, comma separated; a leading ^ means all but these. One that cannot work here is left out.',
  ),
  // --- PML
  pml_eager_limit_bytes: int(
    64 * KIB,
    'bytes',
    0,
    16 * MIB,
    'Messages up to this length are sent eagerly, without waiting for the receiver.',
  ),
  pml_rndv_inline_bytes: int(16 * KIB, 'bytes', 0, MIB, 'Bytes of a rendezvous message that travel with its first packet.'),
  pml_frag_bytes: int(128 * KIB, 'bytes', 1 * KIB, 16 * MIB, 'Fragment grid of a rendezvous message: the unit that is given to a rail.'),
  pml_frag_bytes_max: int(
    1 * MIB,
    'bytes',
    1 * KIB,
    16 * MIB,
    'Fragments for a fast rail grow, in doublings of pml_frag_bytes, up to this length; no more than pml_frag_bytes switches it off.',
  ),
  pml_frag_us: int(250, 'us', 0, 1_000_000, 'Fragments grow only as long as the rail carries one of them in this time.'),
  pml_retained_bytes_max: int(
    64 * MIB,
    'bytes',
    4 * KIB,
    2 ** 40,
    'Bound on copies of eager messages kept until delivered; beyond it messages go by rendezvous.',
  ),
  pml_abandoned_bytes_max: int(
    256 * MIB,
    'bytes',
    0,
    2 ** 40,
    'Bound on copies of what was left to send when sends were ended by timeoutMs or a signal; beyond it such a send keeps its buffer until there is room.',
  ),
  pml_unexpected_bytes_max: int(
    16 * MIB,
    'bytes',
    4 * KIB,
    2 ** 40,
    'Bound, per peer, on payload held for receives not yet posted; beyond it senders wait by rendezvous.',
  ),
  pml_peer_timeout_ms: int(
    60_000,
    'ms',
    100,
    2 ** 31,
    'A peer to which no rail came up and nothing got through for this time is unreachable for ever: its requests end with ERR_PROC_UNREACHABLE.',
  ),
  pml_trace_entries: int(
    1024,
    'entries',
    0,
    MIB,
    'Length of the ring of state transitions that is printed when an invariant breaks; 0 switches it off.',
  ),
  // --- BML
  bml_rail_timeout_ms: int(
    400,
    'ms',
    20,
    600_000,
    'A rail on which nothing comes through for this time, although the peer is seen to be polling, is lost.',
  ),
  bml_stall_timeout_ms: int(
    60,
    'ms',
    0,
    600_000,
    'A rail that holds something for longer than this and than it usually does, while another rail to that peer moves, is left: what it held goes again over others. 0 = rails are only left when nothing comes through at all.',
  ),
  bml_trial_min_ms: int(
    50,
    'ms',
    0,
    600_000,
    'A rail that was lost is probed for this long, without a late answer, before it carries again beside others.',
  ),
  bml_trial_max_ms: int(
    1200,
    'ms',
    0,
    600_000,
    'Longest trial of a rail that is lost again and again: each one is three times as long as the last.',
  ),
  bml_probe_idle_ms: int(1000, 'ms', 10, 600_000, 'How often an idle rail is probed.'),
  bml_redial_min_ms: int(50, 'ms', 1, 600_000, 'First pause before a lost rail is dialled again; doubled up to bml_redial_max_ms.'),
  bml_redial_max_ms: int(200, 'ms', 1, 600_000, 'Longest pause between two attempts to bring a lost rail back.'),
  bml_connect_timeout_ms: int(
    600,
    'ms',
    10,
    600_000,
    'An attempt to connect is given up after this time, and after three times this time where the peer took the connection and does not answer the handshake.',
  ),
  bml_flap_window_ms: int(10_000, 'ms', 0, 600_000, 'A rail lost several times within this window is held down for longer each time.'),
  bml_flap_hold_max_ms: int(500, 'ms', 0, 600_000, 'Longest time that a flapping rail is held down.'),
  bml_window_min_bytes: int(512 * KIB, 'bytes', 4 * KIB, 2 ** 40, 'Least bytes in flight that a rail is allowed.'),
  bml_window_max_bytes: int(8 * MIB, 'bytes', 4 * KIB, 2 ** 40, 'Most bytes in flight that a rail is allowed.'),
  bml_window_ms: int(5, 'ms', 1, 10_000, 'Bytes in flight on a rail are bounded to what it was measured to carry in this time.'),
  // --- shared-memory BTL
  btl_sm_ring_bytes: int(
    1 * MIB,
    'bytes',
    256 * KIB,
    64 * MIB,
    'Ring of a shared-memory rail, one in each direction, rounded down to a power of two; the smaller one of both sides counts. Memory is used as far as it is touched.',
  ),
  btl_sm_eager_limit_bytes: int(
    32 * KIB,
    'bytes',
    0,
    256 * KIB,
    'Messages up to this length are sent eagerly over shared memory; the smaller one of both sides counts, and pml_eager_limit_bytes too.',
  ),
  btl_sm_single_copy: string(
    'auto',
    'Large messages are read out of the memory of the sender (process_vm_readv) where the kernel permits: always, never, or where a trial at start-up finds it faster than the ring.',
    ['auto', 'always', 'never'],
  ),
  btl_sm_single_copy_min_bytes: int(
    64 * KIB,
    'bytes',
    4 * KIB,
    2 ** 40,
    'Shortest message that is read out of the memory of the sender; it must exceed the eager limit too.',
  ),
  // --- verbs BTL
  btl_verbs_if_include: list(
    '',
    'RDMA devices or single ports of them (mlx5_0, mlx5_0:2) that may carry rails; empty = all that are not excluded.',
  ),
  btl_verbs_if_exclude: list('', 'RDMA devices or ports that carry no rails.'),
  btl_verbs_gid_index: int(
    -1,
    'index',
    -1,
    65_535,
    'Entry of the GID table that names a port; -1 = the best one, RoCE v2 over IPv4 first.',
  ),
  btl_verbs_timeout: int(
    14,
    'exponent',
    0,
    31,
    'The device sends a packet again when it is not acknowledged within 4.096 us times 2 to this power; 14 = 67 ms. Below 12 a busy host is taken for a dead one; 0 waits for ever.',
  ),
  btl_verbs_retry_count: int(2, 'times', 0, 7, 'How often a packet is sent again before the rail is lost; some devices take 7 for ever.'),
  btl_verbs_beat_ms: int(500, 'ms', 10, 600_000, 'An idle rail is tried so often, by the devices alone.'),
  btl_verbs_buffers: int(
    64,
    'buffers',
    32,
    8192,
    'Receive buffers of a rail, rounded down to a power of two; the smaller number of both sides counts. As many for sending.',
  ),
  btl_verbs_buffer_bytes: int(
    32 * KIB,
    'bytes',
    8 * KIB,
    16 * MIB,
    'Length of one of them; the smaller one of both sides counts. Longer messages go by rendezvous, without a copy.',
  ),
  btl_verbs_inline_bytes: int(
    128,
    'bytes',
    0,
    4096,
    'Records up to this length are handed to the device with the request, where it takes so much.',
  ),
  btl_verbs_reads_max: int(
    4,
    'reads',
    1,
    255,
    'Reads of the other side that a rail has under way or serves at a time, where the device can.',
  ),
  btl_verbs_window_min_bytes: int(
    2 * MIB,
    'bytes',
    4 * KIB,
    2 ** 40,
    'Least bytes in flight that a verbs rail is allowed, where that is more than bml_window_min_bytes: what the device carries while nobody looks.',
  ),
  btl_verbs_pipeline_bytes: int(
    8 * MIB,
    'bytes',
    256 * KIB,
    2 ** 40,
    'Memory of a long message that is registered for the peer at once. Longer ones are registered piece by piece while they move, and put.',
  ),
  btl_verbs_get_bytes_max: int(
    512 * KIB,
    'bytes',
    0,
    2 ** 40,
    'Longest message that its receiver reads; the sender puts longer ones, which devices do faster.',
  ),
  btl_verbs_cache_bytes: int(
    256 * MIB,
    'bytes',
    0,
    2 ** 40,
    'Memory that stays registered after use, per device, for the next message out of it.',
  ),
  btl_verbs_exclusivity: int(
    100,
    'class',
    0,
    1000,
    'Only rails of the highest class that is up carry traffic; TCP has 100, so by default both carry parts of one message.',
  ),
  btl_verbs_standby: bool(false, 'Verbs rails only work while no other rail is up.'),
  // --- TCP BTL
  btl_tcp_if_include: list(
    '',
    'Only these interfaces or subnets (eth0, 10.1.0.0/16, fd00::/8) carry TCP rails; empty = all that are not excluded.',
  ),
  btl_tcp_if_exclude: list(
    'docker0,virbr0,veth-docker*,br-*,cni*,flannel*',
    'These interfaces or subnets carry no TCP rails. * matches any text.',
  ),
  btl_tcp_links: int(1, 'connections', 1, 16, 'TCP rails per interface pair.'),
  btl_tcp_port_min: int(0, 'port', 0, 65535, 'Lowest port to listen on; 0 = any.'),
  btl_tcp_port_range: int(100, 'ports', 1, 65535, 'How many ports from btl_tcp_port_min on may be tried.'),
  btl_tcp_disable_family: string('none', 'Do not use this address family.', ['none', '4', '6']),
  btl_tcp_bandwidth_mbps: int(125, 'MB/s', 1, 1_000_000, 'Assumed bandwidth of a TCP rail until it is measured.'),
  btl_tcp_latency_us: int(50, 'us', 0, 10_000_000, 'Assumed latency of a TCP rail; lower is preferred for small messages.'),
  btl_tcp_standby: list('', 'Interfaces or subnets whose TCP rails only work while no other rail is up.'),
  btl_tcp_route_check: bool(true, 'Refuse a rail whose packets would leave by another interface than its own.'),
  btl_tcp_native: bool(true, 'TCP rails use the native part where it is there; false = the sockets of Node.'),
  btl_tcp_cc: string(
    'auto',
    "Congestion control of native TCP rails, by its name in the kernel; auto = cubic between ranks of one host and the system's elsewhere, system = never touched.",
  ),
  btl_tcp_notsent_lowat_bytes: int(
    64 * KIB,
    'bytes',
    0,
    2 ** 30,
    "A native TCP rail keeps about this much unsent in the kernel, so that what waits can still change rail; 0 = the system's. Not on loopback.",
  ),
  btl_tcp_sndbuf_bytes: int(0, 'bytes', 0, 2 ** 30, 'Send buffer of native TCP rails (SO_SNDBUF); 0 = sized by the system.'),
  btl_tcp_rcvbuf_bytes: int(0, 'bytes', 0, 2 ** 30, 'Receive buffer of native TCP rails (SO_RCVBUF); 0 = sized by the system.'),
  btl_tcp_beat_ms: int(
    20,
    'ms',
    1,
    10_000,
    'Liveness beats of a native TCP rail that carries traffic are this far apart; further with many rails.',
  ),
  btl_tcp_beat_idle_ms: int(
    1000,
    'ms',
    10,
    600_000,
    'Liveness beats of an idle native TCP rail are this far apart; further with many rails.',
  ),
  btl_tcp_silent_ms: int(
    75,
    'ms',
    50,
    600_000,
    "A native TCP rail is lost when the peer's kernel has acknowledged nothing for this time and twice the round trip, though something is on its way.",
  ),
  // --- WebSocket BTL
  btl_ws_if_include: list('', 'As btl_tcp_if_include, for WebSocket rails.'),
  btl_ws_if_exclude: list('docker0,virbr0,veth-docker*,br-*,cni*,flannel*', 'As btl_tcp_if_exclude, for WebSocket rails.'),
  btl_ws_port_min: int(0, 'port', 0, 65535, 'Lowest port to listen on; 0 = any.'),
  btl_ws_port_range: int(100, 'ports', 1, 65535, 'How many ports from btl_ws_port_min on may be tried.'),
  btl_ws_standby: bool(false, 'WebSocket rails only work while no other rail is up.'),
  btl_ws_tls_cert_file: string('', 'PEM certificate for wss:// rails; empty = ws:// without TLS.'),
  btl_ws_tls_key_file: string('', 'PEM private key that belongs to btl_ws_tls_cert_file.'),
  btl_ws_tls_ca_file: string('', 'PEM certificates that the other side must be signed by.'),
  btl_ws_route_check: bool(true, 'As btl_tcp_route_check, for WebSocket rails.'),
  // --- all stream BTLs
  btl_base_payload_crc: bool(false, 'Check payloads by CRC32C too (headers always are). Costs CPU.'),
  btl_base_refusals_max: int(16, 'frames', 1, 1_000_000, 'A rail that refused this many damaged payloads within a second goes down.'),
  btl_base_ack_frames: int(64, 'frames', 1, 1_000_000, 'Report the delivered count at the latest after this many frames.'),
  btl_base_ack_bytes: int(256 * KIB, 'bytes', 1 * KIB, 2 ** 40, 'Report the delivered count at the latest after this many bytes.'),
  btl_base_ack_delay_ms: int(2, 'ms', 0, 1000, 'Report the delivered count at the latest after this time.'),
  btl_base_connect_again_ms: int(
    200,
    'ms',
    10,
    600_000,
    'While a connection is not open, another is begun beside it this often, since the kernel repeats its first packet only after a second.',
  ),
  btl_base_handshake_timeout_ms: int(3000, 'ms', 50, 600_000, 'A connection that has not finished its handshake by then is closed.'),
  btl_base_handshakes_max: int(
    256,
    'connections',
    1,
    65536,
    'Inbound connections in the handshake at the same time; further ones are refused.',
  ),
  // --- collectives
  coll_check_signatures: bool(
    false,
    'Every message of a collective says which call it is of, so that calls that do not belong together end with ERR_COLLECTIVE_MISMATCH.',
  ),
  coll_bcast_algorithm: algorithm('bcast', ['binomial', 'scatter_allgather', 'chain']),
  coll_bcast_long_bytes: int(
    64 * KIB,
    'bytes',
    0,
    2 ** 40,
    'bcast: from this length on, with 4 ranks or more, scatter and ring allgather.',
  ),
  coll_bcast_segment_bytes: int(64 * KIB, 'bytes', 1, 2 ** 30, 'bcast by chain: length of the pieces that follow each other.'),
  coll_reduce_algorithm: algorithm('reduce', ['binomial', 'rabenseifner']),
  coll_reduce_long_bytes: int(64 * KIB, 'bytes', 0, 2 ** 40, 'reduce: from this length on by the algorithm of Rabenseifner.'),
  coll_allreduce_algorithm: algorithm('allreduce', ['recursive_doubling', 'rabenseifner', 'ring']),
  coll_allreduce_long_bytes: int(16 * KIB, 'bytes', 0, 2 ** 40, 'allreduce: from this length on by the algorithm of Rabenseifner.'),
  coll_allreduce_ring_bytes: int(
    512 * KIB,
    'bytes',
    0,
    2 ** 40,
    'allreduce: from this length on by ring, where the number of ranks is no power of two and the operation commutes.',
  ),
  coll_gather_algorithm: algorithm('gather', ['binomial', 'linear']),
  coll_scatter_algorithm: algorithm('scatter', ['binomial', 'linear']),
  coll_gather_long_bytes: int(4 * KIB, 'bytes', 0, 2 ** 40, 'gather and scatter: from this length of each rank on without a tree.'),
  coll_allgather_algorithm: algorithm('allgather', ['bruck', 'recursive_doubling', 'ring']),
  coll_allgather_long_bytes: int(64 * KIB, 'bytes', 0, 2 ** 40, 'allgather: from this length of all ranks together on by ring.'),
  coll_alltoall_algorithm: algorithm('alltoall', ['linear', 'bruck', 'pairwise']),
  coll_alltoall_short_bytes: int(
    256,
    'bytes',
    0,
    2 ** 40,
    'alltoall: up to this length for each rank, with 8 ranks or more, by the algorithm of Bruck.',
  ),
  coll_alltoall_long_bytes: int(32 * KIB, 'bytes', 0, 2 ** 40, 'alltoall: from this length for each rank on one pair after the other.'),
  coll_reduce_scatter_algorithm: algorithm('reduceScatter and reduceScatterBlock', ['reduce_scatterv', 'recursive_halving', 'pairwise']),
  coll_reduce_scatter_long_bytes: int(
    256 * KIB,
    'bytes',
    0,
    2 ** 40,
    'reduceScatter: from this length of all parts together on one pair after the other.',
  ),
  coll_scan_algorithm: algorithm('scan and exscan', ['recursive_doubling', 'linear']),
  // --- fault interposer
  btl_fault: string(
    '',
    'Wrap every transport in the fault interposer with this plan (see docs/guide/tuning.md); for tests and demonstrations.',
  ),
  // --- launcher
  plm_rsh_agent: string('ssh', 'Command, with its options, by which `multirail run` reaches other hosts; it gets the host and a command.'),
  plm_rsh_node: string(
    '',
    'Node on other hosts; empty = at the same path as here. multirail itself has to be at the same path in any case.',
  ),
  // --- runtime
  mpi_finalize_timeout_ms: int(30_000, 'ms', 100, 2 ** 31, 'finalize() names what is not delivered and gives up after this time.'),
  mpi_spin_us: int(
    200,
    'us',
    0,
    1_000_000,
    'How long the event loop goes on polling after the last useful work, while something is waited for; 0 = it sleeps at once. Native part only.',
  ),
  mpi_blocking_spin_us: int(
    1000,
    'us',
    0,
    1_000_000,
    'How long a blocking call looks at its rails without a pause before it sleeps in the kernel; less while other processes take the processor away.',
  ),
  mpi_abort_on_uncaught: bool(true, 'An uncaught exception or unhandled rejection of one rank ends the whole job, with its stack.'),
  mpi_waits_on_signal: bool(true, 'SIGUSR2 to a rank prints who waits for whom in the whole job; false leaves the signal to the program.'),
  mpi_stall_report_ms: int(
    0,
    'ms',
    0,
    2 ** 31,
    'When a request of a rank has waited for this long and nothing of it moved, the job prints who waits for whom; 0 = never.',
  ),
  mpi_waits_json_file: string('', 'Who waits for whom is also appended to this file, one line of JSON per report, by whoever prints it.'),
  mpi_telemetry_ms: int(
    0,
    'ms',
    0,
    60_000,
    'How often a rank tells the launcher how its rails stand, for the dashboard and its events; 0 = never. multirail run sets it where it is needed.',
  ),
  oob_reconnect_timeout_ms: int(
    60_000,
    'ms',
    100,
    2 ** 31,
    'How long the out-of-band channel may be away before the launcher is taken for dead.',
  ),
  oob_join_timeout_ms: int(
    120_000,
    'ms',
    100,
    2 ** 31,
    'How long a rank that another engine has started looks for its job, and how long the others wait for it.',
  ),
  oob_exit_grace_ms: int(
    2000,
    'ms',
    0,
    2 ** 31,
    'A rank without launcher of ours whose kernel has closed its lifeline is dead unless it is back within this time.',
  ),
} as const satisfies Record<string, ParamSpec>;

export type ParamName = keyof typeof PARAMS;

export const PARAM_ENV_PREFIX = 'MULTIRAIL_MCA_';

function parseParam(name: string, spec: ParamSpec, text: string): number | boolean | string {
  switch (spec.kind) {
    case 'int': {
      const match = /^(\d+)([kmg]?)$/i.exec(text.trim());
      const scale = { '': 1, k: KIB, m: MIB, g: 1024 * MIB }[(match?.[2] ?? '').toLowerCase()] ?? Number.NaN;
      const value = match ? Number(match[1]) * scale : Number.NaN;
      if (!Number.isSafeInteger(value) || value < spec.min || value > spec.max) {
        throw new MultirailError(
          'ERR_CONFIG',
          `${name} = "${text}": expected a whole number of ${spec.unit} from ${spec.min} to ${spec.max} (k, m, g allowed)`,
        );
      }
      return value;
    }
    case 'bool':
      if (/^(1|true|yes|on)$/i.test(text)) return true;
      if (/^(0|false|no|off)$/i.test(text)) return false;
      throw new MultirailError('ERR_CONFIG', `${name} = "${text}": expected true or false`);
    case 'string':
      if (spec.choices !== undefined && !spec.choices.includes(text)) {
        throw new MultirailError('ERR_CONFIG', `${name} = "${text}": expected one of ${spec.choices.join(', ')}`);
      }
      return text;
    case 'list':
      return text;
  }
}

/** Values of all parameters: defaults, then the environment, then `overrides`. Unknown names throw ERR_CONFIG. */
export class ParamTable implements Params {
  private readonly values = new Map<string, number | boolean | string>();
  /** Where each value that is not a default came from. */
  readonly origins = new Map<string, string>();

  constructor(overrides: Readonly<Record<string, string>> = {}, env: Readonly<Record<string, string | undefined>> = {}) {
    for (const [name, spec] of Object.entries(PARAMS)) this.values.set(name, spec.default);
    for (const [variable, text] of Object.entries(env)) {
      if (variable.startsWith(PARAM_ENV_PREFIX) && text !== undefined)
        this.set(variable.slice(PARAM_ENV_PREFIX.length), text, `environment ${variable}`);
    }
    for (const [name, text] of Object.entries(overrides)) this.set(name, text, 'argument');
  }

  private set(name: string, text: string, origin: string): void {
    const spec = (PARAMS as Record<string, ParamSpec>)[name];
    if (spec === undefined) {
      throw new MultirailError('ERR_CONFIG', `unknown parameter "${name}" (${origin}); multirail info --all lists them`);
    }
    this.values.set(name, parseParam(name, spec, text));
    this.origins.set(name, origin);
  }

  private value(name: string): number | boolean | string {
    const value = this.values.get(name);
    if (value === undefined) throw new MultirailError('ERR_CONFIG', `unknown parameter "${name}"`);
    return value;
  }

  int(name: ParamName): number {
    return this.value(name) as number;
  }
  bool(name: ParamName): boolean {
    return this.value(name) as boolean;
  }
  string(name: ParamName): string {
    return this.value(name) as string;
  }
  list(name: ParamName): string[] {
    return (this.value(name) as string)
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  }
}
