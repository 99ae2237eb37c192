// Everything that the bench with peers compares: how each contender is started, and what has to be said about it. Imports node:*.
import { join } from 'node:path';
import process from 'node:process';

const HERE = import.meta.dirname;
const BIN = join(HERE, '.cache/bin');
const rank = (name) => join(HERE, 'ranks', name);
const node = process.execPath;
const CUBIC_ENV = { LD_PRELOAD: join(BIN, 'cubic.so') };
/** Sizes that a run measures: none, or 8 bytes alone. */
const NONE = { latency: [] };
const RATE = { latency: [], bandwidth: [8] };

const pair = (...words) => ({ command: [join(BIN, 'pair'), ...words] });
const eventPair = (kind) => ({ command: [node, rank('event-pair.mjs'), kind] });
const OPEN_MPI = ['mpirun.openmpi', '--allow-run-as-root', '-np', '2', '--bind-to', 'core', '--mca', 'pml', 'ob1'];
const openMpi = (...mca) => ({ command: [...OPEN_MPI, ...mca.flatMap((one) => ['--mca', ...one]), join(BIN, 'mpi-openmpi')] });
const mpich = (env) => ({ command: ['mpirun.mpich', '-bind-to', 'core', '-np', '2', join(BIN, 'mpi-mpich')], env });
const OMPI_TCP = openMpi(['btl', 'self,tcp'], ['btl_tcp_if_include', 'lo']);
export const MPICH_TCP = { MPIR_CVAR_NOLOCAL: '1', UCX_TLS: 'tcp,self', UCX_NET_DEVICES: 'lo' };

/** A job of multirail: `mca` are its parameters, `pinned` puts rank r on CPU r. */
function multirail(program, mca, { pinned = false, args = [] } = {}) {
  const pin = pinned ? ['sh', join(HERE, 'pin.sh')] : [];
  const options = mca.flatMap((one) => ['--mca', ...one]);
  const command = [node, 'dist/cli.js', 'run', '-n', '2', '--no-prefix', ...options, '--', ...pin, node, rank(program), ...args];
  return { command };
}
const TCP = ['btl', 'self,tcp'];
const SM = ['btl', 'self,sm'];
const PINNED = { pinned: true };

/**
 * name: what runs. `text` goes into the table of contenders. `sizes` restricts what it measures. Contenders that spin are pinned, rank r
 * to CPU r; those that sleep are left to the scheduler.
 */
export const CONTENDERS = {
  'c-spin': { ...pair('spin'), text: 'C, non-blocking TCP, polled' },
  'c-spin-cubic': { ...pair('spin', '--cubic'), text: 'C, non-blocking TCP, polled, cubic' },
  'c-batch': { ...pair('batch'), text: 'C, as c-spin, one send a window up to 64 KiB' },
  'c-batch-cubic': { ...pair('batch', '--cubic'), text: 'C, one send a window up to 64 KiB, cubic' },
  'c-block': { ...pair('block', '--unpinned'), text: 'C, blocking TCP calls' },
  'c-block-pinned': { ...pair('block'), sizes: { latency: [8], bandwidth: [] }, text: 'C, blocking TCP calls, pinned' },
  'c-shm': { ...pair('shm'), text: 'C, byte ring of 1 MiB in shared memory' },
  iperf3: { command: [node, rank('iperf3.mjs')], sizes: { ...NONE, bandwidth: [1048576] }, text: 'iperf3 -l 1M' },
  'iperf3-cubic': {
    command: [node, rank('iperf3.mjs'), '--cubic'],
    sizes: { ...NONE, bandwidth: [1048576] },
    text: 'iperf3 -l 1M -C cubic',
  },
  'ompi-tcp': { ...OMPI_TCP, text: 'Open MPI, `--mca btl self,tcp`, as shipped' },
  'ompi-tcp-cubic': { ...OMPI_TCP, env: CUBIC_ENV, text: 'Open MPI, `--mca btl self,tcp`, every socket with cubic' },
  'ompi-vader': { ...openMpi(['btl', 'self,vader']), text: 'Open MPI, `--mca btl self,vader`' },
  'mpich-tcp': { ...mpich(MPICH_TCP), text: 'MPICH, ch4:ucx over TCP, as shipped' },
  'mpich-tcp-cubic': { ...mpich({ ...MPICH_TCP, ...CUBIC_ENV }), text: 'MPICH, ch4:ucx over TCP, every socket with cubic' },
  'mpich-shm': { ...mpich({}), text: 'MPICH over shared memory' },
  net: { ...eventPair('net'), text: 'node:net with onread and cork, length-prefixed' },
  'net-cubic': { ...eventPair('net'), env: CUBIC_ENV, text: 'node:net with onread and cork, cubic' },
  ws: { ...eventPair('ws'), text: 'ws' },
  zeromq: { ...eventPair('zeromq'), text: 'zeromq.js PAIR' },
  'zeromq-cubic': { ...eventPair('zeromq'), env: CUBIC_ENV, text: 'zeromq.js PAIR, every socket with cubic' },
  'mr-tcp-sync': { ...multirail('multirail-sync.mjs', [TCP], PINNED), text: 'multirail, synchronous calls, as shipped' },
  'mr-tcp-cubic': {
    ...multirail('multirail-sync.mjs', [TCP, ['btl_tcp_cc', 'cubic']], PINNED),
    text: 'multirail, synchronous calls, `btl_tcp_cc cubic`',
  },
  'mr-tcp-system': {
    ...multirail('multirail-sync.mjs', [TCP, ['btl_tcp_cc', 'system']], PINNED),
    text: 'multirail, synchronous calls, `btl_tcp_cc system`: what the kernel has by default',
  },
  'mr-tcp-rate': {
    ...multirail('multirail-sync.mjs', [TCP], { ...PINNED, args: ['--blocking'] }),
    sizes: RATE,
    text: 'multirail, windows of sendSync and recvSync, which make no Request',
  },
  'mr-tcp-promise': { ...multirail('multirail-promise.mjs', [TCP], PINNED), text: 'multirail, promise calls, as shipped' },
  'mr-tcp-promise-idle': {
    ...multirail('multirail-promise.mjs', [TCP, ['mpi_spin_us', '0']]),
    text: 'multirail, promise calls that never spin (`mpi_spin_us 0`)',
  },
  'mr-tcp-net': {
    ...multirail('multirail-promise.mjs', [TCP, ['btl_tcp_native', 'false']]),
    text: 'multirail without its native part (node:net)',
  },
  'mr-sm-sync': { ...multirail('multirail-sync.mjs', [SM], PINNED), text: 'multirail over shared memory, synchronous calls' },
  'mr-sm-rate': {
    ...multirail('multirail-sync.mjs', [SM], { ...PINNED, args: ['--blocking'] }),
    sizes: RATE,
    text: 'multirail over shared memory, windows of sendSync and recvSync',
  },
  'mr-sm-promise': { ...multirail('multirail-promise.mjs', [SM], PINNED), text: 'multirail over shared memory, promise calls' },
};

/** Rates in Mbit/s of the rails of each case, the fastest first. */
export const RAIL_CASES = { '400+400': [400, 400], '400+100': [400, 100], '1000+400+100': [1000, 400, 100] };
const RAIL_RUNS = {
  tcp: 'C, TCP over the fastest rail',
  mptcp: 'C, Multipath TCP over all rails',
  'mr-one': 'multirail over the fastest rail',
  'mr-all': 'multirail over all rails',
};

/** Between two network namespaces, over veth rails shaped by tbf. What is measured is bandwidth at 1 MiB. */
export const RAIL_CONTENDERS = Object.fromEntries(
  Object.entries(RAIL_CASES).flatMap(([name, mbits]) =>
    Object.entries(RAIL_RUNS).map(([kind, text]) => [
      `rails-${name}-${kind}`,
      {
        command: [node, rank('rails.mjs'), kind, mbits.join(',')],
        sizes: { ...NONE, bandwidth: [1048576] },
        // Shaped far below what the CPUs can do, wherever they are.
        placed: false,
        text: `${text}, ${name} Mbit/s`,
      },
    ]),
  ),
);
