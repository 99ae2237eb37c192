// The traffic of a measured rank. Everything that is delivered is audited: a sequence number in every message tells what was lost,
// doubled or reordered; the bytes of a large message are compared with what they must be, those of a small one by a hash.
// Imports the product's types, lab-protocol.
import type { Request, Runtime } from '../../src/index.ts';
import { nowMs, type RankSpec, type ThroughputRow } from './protocol.ts';

const TAG = { data: 1, answer: 2, end: 3 } as const;
const ERRORS_MAX = 20;

export interface TrafficContext {
  readonly mpi: Runtime;
  readonly peer: number;
  readonly spec: RankSpec;
  readonly deliveries: Deliveries;
  readonly errors: string[];
  /** Set from outside: rank 0 sends no more. */
  isStopping: boolean;
  /** Resolves at the same time. */
  readonly stopped: Promise<void>;
  onRow(row: ThroughputRow): void;
  /** Reports when it is time to: for traffic during which no timer runs. */
  tick(): void;
}

/** When things were delivered: their number, and the long intervals between two of them. */
export class Deliveries {
  count = 0;
  lastAt = nowMs();
  private readonly gapMinMs: number;
  private gaps: [number, number][] = [];

  constructor(gapMinMs: number) {
    this.gapMinMs = gapMinMs;
  }

  note(): void {
    const at = nowMs();
    if (at - this.lastAt >= this.gapMinMs) this.gaps.push([this.lastAt, at]);
    this.lastAt = at;
    this.count++;
  }

  takeGaps(): [number, number][] {
    const { gaps } = this;
    this.gaps = [];
    return gaps;
  }
}

/** Runs this rank's side until rank 0 is told to stop and everything is delivered. */
export async function runTraffic(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { traffic } = context.spec;
  const sides = TRAFFIC[traffic];
  return await (context.mpi.rank === 0 ? sides.first(context) : sides.second(context));
}

type Side = (context: TrafficContext) => Promise<{ sent: number; received: number }>;

const TRAFFIC: Record<RankSpec['traffic'], { first: Side; second: Side }> = {
  bulk: { first: sendBulk, second: receiveBulk },
  pingpong: { first: ping, second: pong },
  'pingpong-sync': { first: pingSync, second: pongSync },
  stream8: { first: sendSmall, second: receiveSmall },
  throughput: { first: sendSizes, second: receiveSizes },
  idle: { first: idleUntilStop, second: idleUntilEnd },
  'idle-sync': { first: idleUntilStop, second: idleInRecvSync },
};

function complain({ errors }: Pick<TrafficContext, 'errors'>, text: string): void {
  if (errors.length < ERRORS_MAX) errors.push(text);
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

// ---- bulk: [u32 index, u32 length, a slice of a fixed pattern that the index chooses]

const HEAD_BYTES = 8;
const SLICES = 61_681;

export class Pattern {
  private readonly bytes: Buffer;
  private readonly length: number;

  constructor(length: number) {
    this.length = length;
    this.bytes = Buffer.alloc(length + SLICES);
    let x = 0x9e3779b9;
    for (let i = 0; i < this.bytes.length; i++) {
      x = (Math.imul(x, 1_664_525) + 1_013_904_223) | 0;
      this.bytes[i] = x >>> 24;
    }
  }

  private slice(index: number): Buffer {
    const at = Math.imul(index, 40_503) >>> 0;
    return this.bytes.subarray(at % SLICES, (at % SLICES) + this.length - HEAD_BYTES);
  }

  write(buffer: Buffer, index: number): void {
    buffer.writeUInt32LE(index, 0);
    buffer.writeUInt32LE(this.length, 4);
    this.slice(index).copy(buffer, HEAD_BYTES);
  }

  /** What is wrong with message number `index`, if anything is. */
  fault(buffer: Buffer, bytes: number, index: number): string | undefined {
    if (bytes !== this.length || buffer.readUInt32LE(4) !== this.length) return `message ${index}: ${bytes} bytes`;
    const found = buffer.readUInt32LE(0);
    if (found !== index) return `message ${found} where ${index} was due`;
    return this.slice(index).equals(buffer.subarray(HEAD_BYTES)) ? undefined : `message ${index}: its bytes are not those that were sent`;
  }
}

async function sendBulk(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer, spec } = context;
  const { bytes, window } = spec;
  const pattern = new Pattern(bytes);
  const buffers = Array.from({ length: window }, () => Buffer.alloc(bytes));
  const pending = new Array<Request | undefined>(window).fill(undefined);
  let index = 0;
  while (!context.isStopping) {
    const slot = index % window;
    if (pending[slot] !== undefined) await pending[slot];
    pattern.write(buffers[slot], index);
    pending[slot] = mpi.world.isend(buffers[slot], peer, TAG.data);
    index++;
    // Requests may all be done already: reports and the word to stop come by the event loop.
    if (index % window === 0) await turn();
  }
  for (const request of pending) if (request !== undefined) await request;
  await mpi.world.send(Buffer.from(Uint32Array.of(index).buffer), peer, TAG.data);
  return { sent: index, received: 0 };
}

async function receiveBulk(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer, spec, deliveries } = context;
  const pattern = new Pattern(spec.bytes);
  const buffers = Array.from({ length: spec.window }, () => Buffer.alloc(spec.bytes));
  const pending = buffers.map((buffer) => mpi.world.irecv(buffer, peer, TAG.data));
  for (let index = 0; ; index++) {
    const slot = index % spec.window;
    const { bytes } = await pending[slot];
    // The last message is the number of those before it.
    if (bytes === 4) {
      const total = buffers[slot].readUInt32LE(0);
      if (total !== index) complain(context, `${index} messages arrived of ${total}`);
      for (let rest = 1; rest < spec.window; rest++) pending[(slot + rest) % spec.window].cancel();
      return { sent: 0, received: index };
    }
    deliveries.note();
    const fault = pattern.fault(buffers[slot], bytes, index);
    if (fault !== undefined) complain(context, fault);
    pending[slot] = mpi.world.irecv(buffers[slot], peer, TAG.data);
  }
}

// ---- small messages: [u32 index, u32 hash of it]; the last one says END and the number of those before it

const SMALL_BYTES = 8;
export const END = 0xffff_ffff;

const hash = (index: number) => {
  const h = Math.imul(index ^ (index >>> 16), 0x85eb_ca6b);
  return (h ^ (h >>> 13)) >>> 0;
};

export function writeSmall(buffer: Buffer, index: number, second = hash(index)): Buffer {
  buffer.writeUInt32LE(index, 0);
  buffer.writeUInt32LE(second, 4);
  return buffer;
}

/** Looks at message number `index`; true when it is the end. */
export function isEnd(context: Pick<TrafficContext, 'errors'>, buffer: Buffer, bytes: number, index: number): boolean {
  const found = buffer.readUInt32LE(0);
  const second = buffer.readUInt32LE(4);
  if (found === END) {
    if (second !== index) complain(context, `${index} messages arrived of ${second}`);
    return true;
  }
  if (bytes !== SMALL_BYTES) complain(context, `message ${index}: ${bytes} bytes`);
  else if (found !== index) complain(context, `message ${found} where ${index} was due`);
  else if (second !== hash(index)) complain(context, `message ${index}: its bytes are damaged`);
  return false;
}

async function ping(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer, spec, deliveries } = context;
  const out = Buffer.alloc(SMALL_BYTES);
  const into = Buffer.alloc(SMALL_BYTES);
  let index = 0;
  while (!context.isStopping) {
    await mpi.world.send(writeSmall(out, index), peer, TAG.data);
    const { bytes } = await mpi.world.recv(into, peer, TAG.answer);
    deliveries.note();
    isEnd(context, into, bytes, index);
    index++;
    if (spec.pauseMs > 0) await pause(spec.pauseMs);
    else if (index % 64 === 0) await turn();
  }
  await mpi.world.send(writeSmall(out, END, index), peer, TAG.data);
  return { sent: index, received: index };
}

async function pong(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer, deliveries } = context;
  const buffer = Buffer.alloc(SMALL_BYTES);
  for (let index = 0; ; index++) {
    const { bytes } = await mpi.world.recv(buffer, peer, TAG.data);
    if (isEnd(context, buffer, bytes, index)) return { sent: index, received: index };
    deliveries.note();
    await mpi.world.send(buffer, peer, TAG.answer);
    if (index % 64 === 0) await turn();
  }
}

/** The blocking calls, where this build has them. */
interface BlockingCalls {
  sendSync(buffer: Uint8Array, dest: number, tag: number): void;
  recvSync(buffer: Uint8Array, source: number, tag: number): { bytes: number };
}

function blockingCalls({ mpi }: TrafficContext): BlockingCalls {
  const world = mpi.world as unknown as Partial<BlockingCalls>;
  if (world.sendSync === undefined || world.recvSync === undefined) throw new Error('this build has no sendSync and recvSync');
  return world as BlockingCalls;
}

/**
 * How often the event loop gets a turn between blocking calls: the word to stop comes by it. Seldom, since a program of blocking calls
 * gives it none, and its rails have to come back all the same.
 */
const SYNC_TURN_EVERY_MS = 2000;

async function pingSync(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { peer, deliveries } = context;
  const world = blockingCalls(context);
  const out = Buffer.alloc(SMALL_BYTES);
  const into = Buffer.alloc(SMALL_BYTES);
  let index = 0;
  let turnAt = nowMs() + SYNC_TURN_EVERY_MS;
  while (!context.isStopping) {
    world.sendSync(writeSmall(out, index), peer, TAG.data);
    const { bytes } = world.recvSync(into, peer, TAG.answer);
    deliveries.note();
    isEnd(context, into, bytes, index);
    index++;
    context.tick();
    if (nowMs() < turnAt) continue;
    await turn();
    turnAt = nowMs() + SYNC_TURN_EVERY_MS;
  }
  world.sendSync(writeSmall(out, END, index), peer, TAG.data);
  return { sent: index, received: index };
}

async function pongSync(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { peer, deliveries } = context;
  const world = blockingCalls(context);
  const buffer = Buffer.alloc(SMALL_BYTES);
  for (let index = 0; ; index++) {
    const { bytes } = world.recvSync(buffer, peer, TAG.data);
    if (isEnd(context, buffer, bytes, index)) return { sent: index, received: index };
    deliveries.note();
    world.sendSync(buffer, peer, TAG.answer);
    context.tick();
  }
}

/** Messages of one batch; the sender is at most two batches ahead of what the receiver has acknowledged. */
const BATCH = 64;

async function sendSmall(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer } = context;
  const buffers = Array.from({ length: BATCH }, () => Buffer.alloc(SMALL_BYTES));
  const requests = new Array<Request | undefined>(BATCH).fill(undefined);
  const acks = [Buffer.alloc(4), Buffer.alloc(4)];
  const answers = acks.map((ack) => mpi.world.irecv(ack, peer, TAG.answer));
  let index = 0;
  let batch = 0;
  const awaitAnswer = async (number: number) => {
    const slot = number % 2;
    await answers[slot];
    if (acks[slot].readUInt32LE(0) !== number) complain(context, `acknowledgement ${acks[slot].readUInt32LE(0)} where ${number} was due`);
  };
  for (; !context.isStopping; batch++) {
    if (batch >= 2) {
      await awaitAnswer(batch - 2);
      answers[batch % 2] = mpi.world.irecv(acks[batch % 2], peer, TAG.answer);
    }
    for (let i = 0; i < BATCH; i++) {
      if (requests[i] !== undefined) await requests[i];
      requests[i] = mpi.world.isend(writeSmall(buffers[i], index++), peer, TAG.data);
    }
    if (batch % 4 === 0) await turn();
  }
  for (let number = Math.max(0, batch - 2); number < batch; number++) await awaitAnswer(number);
  for (let spare = batch; spare < 2; spare++) answers[spare].cancel();
  for (const request of requests) if (request !== undefined) await request;
  await mpi.world.send(writeSmall(buffers[0], END, index), peer, TAG.data);
  return { sent: index, received: 0 };
}

async function receiveSmall(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer, deliveries } = context;
  const slots = 2 * BATCH;
  const buffers = Array.from({ length: slots }, () => Buffer.alloc(SMALL_BYTES));
  const pending = buffers.map((buffer) => mpi.world.irecv(buffer, peer, TAG.data));
  const ack = Buffer.alloc(4);
  for (let index = 0; ; index++) {
    const slot = index % slots;
    const { bytes } = await pending[slot];
    if (isEnd(context, buffers[slot], bytes, index)) {
      for (let rest = 1; rest < slots; rest++) pending[(slot + rest) % slots].cancel();
      return { sent: 0, received: index };
    }
    deliveries.note();
    pending[slot] = mpi.world.irecv(buffers[slot], peer, TAG.data);
    if ((index + 1) % BATCH !== 0) continue;
    ack.writeUInt32LE((index + 1) / BATCH - 1, 0);
    await mpi.world.send(ack, peer, TAG.answer);
  }
}

// ---- throughput: a sliding window of messages from one buffer into one buffer, as the OSU tests do it

async function sendSizes(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer, spec } = context;
  let sent = 0;
  for (const { bytes, window } of spec.sizes) {
    const buffer = Buffer.alloc(bytes, 0x61);
    const pending = new Array<Request | undefined>(window).fill(undefined);
    await mpi.world.recv(Buffer.alloc(4), peer, TAG.answer);
    const until = nowMs() + spec.warmMs + spec.measureMs;
    for (let index = 0; nowMs() < until; index++) {
      const slot = index % window;
      if (pending[slot] !== undefined) await pending[slot];
      pending[slot] = mpi.world.isend(buffer, peer, TAG.data);
      sent++;
      if (index % window === 0) await turn();
    }
    for (const request of pending) if (request !== undefined) await request;
    await mpi.world.send(Buffer.alloc(1), peer, TAG.data);
    const rates = mpi.rails().filter((rail) => rail.peer === peer);
    await mpi.world.sendObject(
      rates.map(({ key, measuredMBps }) => ({ key, measuredMBps })),
      peer,
      TAG.end,
    );
  }
  return { sent, received: 0 };
}

async function receiveSizes(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer, spec } = context;
  const payloads = () => new Map(mpi.rails().flatMap((r) => (r.peer === peer ? [[r.key, r.counters.payloadBytesReceived] as const] : [])));
  let received = 0;
  for (const { bytes: size, window } of spec.sizes) {
    const buffer = Buffer.alloc(size);
    const pending = Array.from({ length: window }, () => mpi.world.irecv(buffer, peer, TAG.data));
    const before = payloads();
    await mpi.world.send(Buffer.alloc(4), peer, TAG.answer);
    const fromMs = nowMs() + spec.warmMs;
    const toMs = fromMs + spec.measureMs;
    let first = { at: 0, index: -1 };
    let steady = { at: 0, index: -1 };
    let last = { at: 0, index: -1 };
    for (let index = 0; ; index++) {
      const slot = index % window;
      const { bytes } = await pending[slot];
      if (bytes === 1) {
        for (let rest = 1; rest < window; rest++) pending[(slot + rest) % window].cancel();
        break;
      }
      if (bytes !== size) complain(context, `message ${index}: ${bytes} bytes`);
      received++;
      const at = nowMs();
      if (first.index === -1 && at >= fromMs) first = { at, index };
      if (at <= toMs) steady = { at, index };
      last = { at, index };
      pending[slot] = mpi.world.irecv(buffer, peer, TAG.data);
    }
    const rate = (end: { at: number; index: number }) => ((end.index - first.index) * size) / 1000 / (end.at - first.at);
    if (first.index === -1 || steady.index <= first.index) complain(context, `${size} bytes: no two messages within the measured time`);
    const { data } = await mpi.world.recvObject<{ key: string; measuredMBps: number }[]>(peer, TAG.end);
    const rates = new Map(data.map(({ key, measuredMBps }) => [key, measuredMBps]));
    const rails = [...payloads()].map(([key, now]) => ({
      key,
      payloadBytes: now - (before.get(key) ?? 0),
      measuredMBps: rates.get(key) ?? 0,
    }));
    context.onRow({ bytes: size, window, steadyMBps: rate(steady), toEndMBps: rate(last), messages: steady.index - first.index, rails });
  }
  return { sent: 0, received };
}

// ---- nothing at all, after one exchange

async function idleUntilStop(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer } = context;
  const buffer = Buffer.alloc(64);
  await mpi.world.send(buffer, peer, TAG.data);
  await mpi.world.recv(buffer, peer, TAG.answer);
  // A receive that waits, as in a program that waits for work.
  const waiting = mpi.world.irecv(buffer, peer, TAG.end);
  await context.stopped;
  waiting.cancel();
  await mpi.world.send(buffer, peer, TAG.data);
  return { sent: 2, received: 1 };
}

/** Blocked in a call that spins, then sleeps. */
async function idleInRecvSync(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer } = context;
  const world = blockingCalls(context);
  const buffer = Buffer.alloc(64);
  await mpi.world.recv(buffer, peer, TAG.data);
  await mpi.world.send(buffer, peer, TAG.answer);
  await turn();
  world.recvSync(buffer, peer, TAG.data);
  return { sent: 1, received: 2 };
}

async function idleUntilEnd(context: TrafficContext): Promise<{ sent: number; received: number }> {
  const { mpi, peer } = context;
  const buffer = Buffer.alloc(64);
  await mpi.world.recv(buffer, peer, TAG.data);
  await mpi.world.send(buffer, peer, TAG.answer);
  await mpi.world.recv(buffer, peer, TAG.data);
  return { sent: 1, received: 2 };
}
