// A rank of the soak: round after round of audited messages and collectives until rank 0 is told to stop. Whatever the audit finds ends
// the job with rank, round and seed. Argument: JSON of SoakSpec. Needs --expose-gc.
// Imports the product's public face, lab-protocol, the files of the soak.
import { connect } from 'node:net';
import { getHeapCodeStatistics } from 'node:v8';
import { ANY_SOURCE, init, MultirailError, Op } from '../../src/index.ts';
import { lineSplitter, nowMs } from '../lab/protocol.ts';
import { Deliveries } from '../lab/rank-traffic.ts';
import { Arena, Payloads } from './audit.ts';
import type { FromSoakRank, SoakCounts, SoakMemory, SoakSpec, ToSoakRank } from './protocol.ts';
import { runRound } from './round.ts';
import { type OwnState, Talk } from './talk.ts';

const RAILS_UP_TIMEOUT_MS = 30_000;
const REPORT_EVERY_MS = 500;
/** More than a round takes, but for a few: those get memory of their own. */
const ARENA_BYTES = 48 << 20;
/** A tag that no part of a round uses. */
const TAG_OF_NOBODY = 30_000;
const LEAK_BYTES = 1024;
const { gc } = globalThis;
if (gc === undefined) throw new Error('soak-rank needs --expose-gc');

const spec = JSON.parse(process.argv[2]) as SoakSpec;
const mpi = await init();
const { rank, size, world } = mpi;
const control = connect(spec.control);
control.setEncoding('utf8');
// The driver is gone: nobody wants the rest.
control.on('error', () => process.exit(1));
const say = (message: FromSoakRank) => control.write(`${JSON.stringify(message)}\n`);
say({ type: 'hello', rank, pid: process.pid });

let isStopping = false;
control.on(
  'data',
  lineSplitter((line) => {
    if ((JSON.parse(line) as ToSoakRank).type === 'stop') isStopping = true;
  }),
);

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const railsToPeers = () => mpi.rails().filter(({ peer }) => peer !== rank);
const deadline = nowMs() + RAILS_UP_TIMEOUT_MS;
while (railsToPeers().filter(({ state }) => state === 'UP').length < spec.rails * (size - 1)) {
  if (nowMs() > deadline) {
    const down = railsToPeers().filter(({ state }) => state !== 'UP');
    const states = down.map(({ peer, key, state, lastReason }) => `${key} to rank ${peer} ${state} ${lastReason ?? ''}`);
    throw new Error(`rank ${rank}: ${spec.rails} rails to each rank were to come up, but: ${states.join('; ') || 'there are fewer'}`);
  }
  await pause(10);
}

/** All rails can be polled without the event loop, at every rank. */
async function canBlock(): Promise<boolean> {
  let can = spec.sync ? 1 : 0;
  try {
    world.recvSync(new Uint8Array(1), ANY_SOURCE, TAG_OF_NOBODY, { timeoutMs: 1 });
  } catch (error) {
    if (!(error instanceof MultirailError) || (error.code !== 'ERR_TIMEOUT' && error.code !== 'ERR_SUPPORT')) throw error;
    if (error.code === 'ERR_SUPPORT') can = 0;
  }
  const all = new Int32Array(1);
  await world.allreduce(Int32Array.of(can), all, Op.MIN);
  return all[0] === 1;
}

const deliveries = new Deliveries(spec.gapMinMs);
const own: OwnState = {
  payloads: new Payloads(spec.seed),
  arena: new Arena(ARENA_BYTES),
  pairs: { sent: new Array<number>(size).fill(0), received: new Array<number>(size).fill(0) },
  plant: spec.plant,
  delivered: () => deliveries.note(),
  sent: 0,
  received: 0,
  bytesReceived: 0,
  collectives: 0,
  isPlanted: false,
};

function counts(): SoakCounts {
  const { pml } = mpi.counters();
  let ups = 0;
  let downs = 0;
  for (const { counters } of railsToPeers()) {
    ups += counters.ups;
    downs += counters.downs;
  }
  return {
    sent: own.sent,
    received: own.received,
    bytesReceived: own.bytesReceived,
    collectives: own.collectives,
    pmlMessages: pml.messagesReceived,
    pmlBytes: pml.bytesReceived,
    ups,
    downs,
    bytesResent: pml.bytesResent,
    envelopesResent: pml.envelopesResent,
    restarts: pml.restarts,
    duplicatesDropped: pml.envelopeDuplicates + pml.fragDuplicates,
  };
}

/** Between two rounds: nothing of the program is under way. */
async function memorySample(): Promise<SoakMemory> {
  // Finalisers of what a collection frees run in later turns, and free more.
  for (let i = 0; i < 2; i++) {
    gc?.();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  gc?.();
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  const code = getHeapCodeStatistics();
  const { waits, more } = mpi.waits();
  return {
    rssBytes: rss,
    heapTotalBytes: heapTotal,
    heapUsedBytes: heapUsed,
    codeBytes: code.code_and_metadata_size + code.bytecode_and_metadata_size,
    externalBytes: external,
    arrayBufferBytes: arrayBuffers,
    retainedBytes: mpi.counters().engine.retainedBytes,
    pendingRequests: waits.length + more,
  };
}

const leaked: number[][] = [];
const sync = await canBlock();
const context = { seed: spec.seed, own, world: new Talk(world, own, 0, 0), sync };
let round = 0;
let reportedAt = 0;
let sampledAt = nowMs();
say({ type: 'ready', at: nowMs() });
try {
  const stop = new Int32Array(1);
  do {
    await runRound(context, round);
    if (spec.plant === 'leak' && rank === 1) leaked.push(new Array<number>(LEAK_BYTES / 8).fill(round + 0.5));
    // Nobody begins the next round before all are here: what this one has left over would be taken for the next one's.
    await world.allreduce(Int32Array.of(isStopping && rank === 0 ? 1 : 0), stop, Op.MAX);
    round++;
    const at = nowMs();
    if (at - reportedAt < REPORT_EVERY_MS && stop[0] === 0) continue;
    reportedAt = at;
    const isSampled = at - sampledAt >= spec.sampleEveryMs;
    if (isSampled) sampledAt = at;
    const memory = isSampled ? { memory: await memorySample() } : {};
    say({ type: 'round', at, round, counts: counts(), gaps: deliveries.takeGaps(), ...memory });
    // The word to stop comes by the event loop.
    await new Promise<void>((resolve) => setImmediate(resolve));
  } while (stop[0] === 0);
} catch (error) {
  const text = `rank ${rank}, round ${round}, seed ${spec.seed}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  say({ type: 'wrong', round, text });
  throw new Error(text, { cause: error });
}
const last = counts();
await mpi.finalize();
say({ type: 'done', rounds: round, counts: last, pairs: own.pairs });
control.end();
