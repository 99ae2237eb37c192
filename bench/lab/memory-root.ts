// The measured process of the memory measurement: rank 0, as any program's rank, with a rail or two to each of many peers. Prints
// samples of its memory as JSON lines. Argument: JSON of MemoryJobSpec. Needs --expose-gc.
// Imports the product's public face, lab-memory-protocol, node: modules.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { init, type Runtime } from '../../src/index.ts';
import {
  EXCHANGE_BYTES,
  EXCHANGE_TAG,
  type MemoryJobSpec,
  type MemoryLine,
  type MemorySample,
  type MemoryStage,
} from './memory-protocol.ts';

const CONNECT_TIMEOUT_MS = 120_000;
const SETTLE_MS = 4000;
const PAGE_BYTES = 4096;
/** Of 1 KiB each: several times the young generation. */
const YOUNG_TOUCHES = 200_000;
const { gc } = globalThis;
if (gc === undefined) throw new Error('lab-memory-root needs --expose-gc');

const spec = JSON.parse(process.argv[2]) as MemoryJobSpec;
const say = (line: MemoryLine) => process.stdout.write(`${JSON.stringify(line)}\n`);
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

function railsUp(mpi: Runtime | undefined): number {
  return mpi?.rails().filter((rail) => rail.peer !== 0 && rail.state === 'UP').length ?? 0;
}

/** skmem:(r…,rb…,t…,tb…,f…,w…,o…,bl…,d…): r, f, w, o and bl are memory in use; rb and tb are bounds. */
function socketBytes(): number {
  let total = 0;
  for (const [, list] of execFileSync('ss', ['-tamnH'], { encoding: 'utf8', maxBuffer: 1 << 26 }).matchAll(/skmem:\(([^)]*)\)/g))
    for (const [, name, bytes] of list.matchAll(/([a-z]+)(\d+)/g)) if (['r', 'f', 'w', 'o', 'bl'].includes(name)) total += Number(bytes);
  return total;
}

async function sample(stage: MemoryStage, mpi: Runtime | undefined): Promise<void> {
  const up = railsUp(mpi);
  // Finalisers of what a collection frees run in later turns, and free more.
  for (let i = 0; i < 5; i++) {
    gc?.();
    await pause(50);
  }
  const cpuBefore = process.cpuUsage();
  await pause(SETTLE_MS);
  const { user, system } = process.cpuUsage(cpuBefore);
  gc?.();
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  const rollup = readFileSync('/proc/self/smaps_rollup', 'utf8');
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(rollup)?.[1] ?? Number.NaN);
  const pages = Number(/^TCP:.* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1] ?? Number.NaN);
  const value: MemorySample = {
    rssBytes: rss,
    privateBytes: (kib('Private_Clean') + kib('Private_Dirty')) * 1024,
    jsBytes: heapUsed + external,
    arrayBufferBytes: arrayBuffers,
    sockstatBytes: pages * PAGE_BYTES,
    socketBytes: socketBytes(),
    railsUp: up,
    cpuPercent: (user + system) / 10 / SETTLE_MS,
  };
  say({ type: 'sample', stage, sample: value });
}

/** Fills the young generation once: what of it was never touched is no memory yet, and would look as if it came with the peers. */
function touchYoungGeneration(): void {
  for (let i = 0; i < YOUNG_TOUCHES; i++) new Array<number>(128).fill(i);
}

touchYoungGeneration();
await sample('start', undefined);
const mpi = await init({ params: { mpi_preconnect: 'all', ...spec.mca, btl_tcp_links: spec.rails } });
const deadline = performance.now() + CONNECT_TIMEOUT_MS;
while (railsUp(mpi) < spec.peers * spec.rails) {
  if (performance.now() > deadline) {
    const reasons = new Set(mpi.rails().flatMap(({ state, lastReason }) => (state === 'UP' ? [] : [`${state} ${lastReason ?? ''}`])));
    throw new Error(`${railsUp(mpi)} of ${spec.peers * spec.rails} rails came up: ${[...reasons].slice(0, 5).join('; ')}`);
  }
  await pause(100);
}
say({ type: 'text', text: 'all rails are up' });
await sample('connected', mpi);

{
  const out = new Uint8Array(EXCHANGE_BYTES).fill(7);
  const into = new Uint8Array(EXCHANGE_BYTES);
  for (const bytes of [64, EXCHANGE_BYTES]) {
    for (let peer = 1; peer <= spec.peers; peer++) {
      await mpi.world.send(out.subarray(0, bytes), peer, EXCHANGE_TAG);
      const status = await mpi.world.recv(into, peer, EXCHANGE_TAG);
      if (status.bytes !== bytes || into[bytes - 1] !== 7) throw new Error(`rank ${peer} answered something else`);
    }
  }
}
say({ type: 'text', text: 'exchanged 64 B and 1 MiB with each' });
await sample('used', mpi);
// The peers end with the job; there is nobody to wait for, and nothing to warn of.
process.removeAllListeners('exit');
process.exit(0);
