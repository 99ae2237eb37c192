// The machine as the bench sees it: where its CPUs are, whether others use them, what it is; and how a contender is run on it.
// Imports node:*.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const BIN = join(import.meta.dirname, '.cache/bin');
const PROBES_MAX = 4;
/** Beyond any place that two CPUs can have: the probe was disturbed. */
const PROBE_CREDIBLE_NS = 600;
const QUIET_SAMPLE_MS = 200;
/** Busy seconds of others in one sample that still count as quiet. */
const QUIET_BUSY_S = 0.02;
const ERROR_TEXT_MAX = 300;

/** Half the round trip of one cache line between CPU 0 and CPU 1, in ns: the best of a few tries, since others can only make it longer. */
export async function probeNs() {
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < PROBES_MAX && !(best < PROBE_CREDIBLE_NS); attempt++) {
    const { stdout } = await promisify(execFile)(join(BIN, 'probe'), { timeout: 10_000 });
    best = Math.min(best, Number(stdout));
  }
  return best;
}

function busyS() {
  const [, user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8').split(/\s+/, 8).map(Number);
  return (user + nice + system + irq + softirq) / 100;
}

const ownS = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/** Waits until nobody else uses the CPUs, at most `mostMs`. False when it never became quiet. */
export async function waitForQuiet(mostMs) {
  const until = performance.now() + mostMs;
  while (performance.now() < until) {
    const before = busyS() - ownS();
    await sleep(QUIET_SAMPLE_MS);
    if (busyS() - ownS() - before <= QUIET_BUSY_S) return true;
  }
  return false;
}

/**
 * Runs one contender to its end, or to `timeoutS`. Resolves with its cells, the part of one CPU that others took meanwhile, and why it
 * failed, if it did. An aborted signal kills it and all its processes.
 */
export async function runContender({ command, env = {} }, { latency, bandwidth, timeoutS, signal }) {
  const child = spawn(join(BIN, 'booked'), [String(timeoutS), ...command], {
    // The preload shim is for the contender; booked itself and the shell take no harm from it.
    env: { ...process.env, ...env, PEERS_LATENCY: latency.join(','), PEERS_BANDWIDTH: bandwidth.join(',') },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const abort = () => child.kill('SIGTERM');
  signal?.addEventListener('abort', abort, { once: true });
  const before = ownS();
  const texts = ['', '', '', ''];
  for (const fd of [1, 2, 3]) {
    child.stdio[fd].setEncoding('utf8').on('data', (text) => {
      texts[fd] += text;
    });
  }
  const exit = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  signal?.removeEventListener('abort', abort);
  const own = ownS() - before;
  const booked = texts[3] === '' ? undefined : JSON.parse(texts[3]);
  if (booked === undefined) return { ok: false, why: `booked ended with ${exit}: ${texts[2]}`, foreign: 1, wallS: 0, cells: [] };
  const cells = texts[1].split('\n').flatMap((line) => (line.startsWith('{"metric"') ? [JSON.parse(line)] : []));
  const isWhole = cells.filter(({ metric }) => metric !== 'rate').length === latency.length + bandwidth.length;
  const ok = booked.exit === 0 && !booked.late && isWhole;
  const told = `${texts[2]}${texts[1]}`.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('{"metric"'));
  const text = told
    .join(' | ')
    .replaceAll(process.cwd(), '.')
    .replaceAll(/\bfile:\/\//g, '');
  const reason = booked.late ? `not done after ${timeoutS} s` : `exit ${booked.exit}, ${cells.length} cells`;
  return {
    ok,
    why: ok ? undefined : `${reason}: ${text.slice(0, ERROR_TEXT_MAX)}`,
    foreign: Number((Math.max(0, booked.busyS - booked.ownS - own) / booked.wallS).toFixed(3)),
    steal: Number((booked.stealS / booked.wallS).toFixed(3)),
    wallS: booked.wallS,
    cells,
  };
}

/** A name for the code that is measured: of what was built, and of the native parts beside it. */
export function buildName() {
  const hash = createHash('sha256');
  const folders = ['dist', 'native/addon/prebuilds', 'native/addon/build/Release'].filter((folder) => existsSync(folder));
  for (const folder of folders) {
    for (const name of readdirSync(folder, { recursive: true }).sort()) {
      if (/\.(c?js|node)$/.test(name)) hash.update(name).update(readFileSync(join(folder, name)));
    }
  }
  return hash.digest('hex').slice(0, 12);
}

function firstLine(command, ...args) {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split('\n')[0]
      .trim();
  } catch {
    return 'not there';
  }
}

const packageVersion = (name) => {
  const file = join(import.meta.dirname, '.cache/npm/node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : 'not there';
};

const sysctl = (name) => {
  const file = `/proc/sys/${name.replaceAll('.', '/')}`;
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : 'unknown';
};

/** What figures say nothing without. */
export function describeMachine() {
  const list = cpus();
  return {
    cpu: `${list.length} × ${(list[0]?.model ?? 'unknown').trim()}`,
    kernel: release(),
    node: process.version,
    congestionControl: sysctl('net.ipv4.tcp_congestion_control'),
    versions: {
      'Open MPI': firstLine('mpirun.openmpi', '--version').replace(/^\D*/, ''),
      MPICH: firstLine('sh', '-c', "mpichversion | sed -n 's/^MPICH Version:[ \\t]*//p'"),
      iperf3: firstLine('iperf3', '--version').replace(/ \(.*/, '').replace('iperf ', ''),
      gcc: firstLine('gcc', '-dumpfullversion'),
      ws: packageVersion('ws'),
      'zeromq.js': packageVersion('zeromq'),
    },
    commit: firstLine('git', 'describe', '--always', '--exclude', '*', '--dirty'),
  };
}
