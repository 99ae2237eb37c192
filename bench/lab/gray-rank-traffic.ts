// The traffic of the campaign of bad links, each message audited by content and order: a number tells what was lost, doubled or
// reordered, all bytes are compared with what they must be. Imports the product's types, lab-protocol, gray-protocol.
import { Op, type Request, type Runtime } from '../../src/index.ts';
import type { GrayGap, GrayPlant, GrayTraffic } from './gray-protocol.ts';
import { nowMs } from './protocol.ts';

const ERRORS_MAX = 20;
/** Number of the message that a planted mistake strikes. */
const PLANTED = 20;
const STALL_MS = 15_000;
const TAG = { first: 1, second: 2 } as const;

/** Deliveries at this rank and the gaps between them, stream by stream: see gray-protocol.ts. */
export class GrayDeliveries {
  messages = 0;
  bytes = 0;
  private readonly gapMinMs: number;
  private readonly lastOfStream: number[];
  private gaps: GrayGap[] = [];

  constructor(gapMinMs: number, streams: number) {
    this.gapMinMs = gapMinMs;
    this.lastOfStream = new Array<number>(streams).fill(nowMs());
  }

  /** The last delivery of the stream that has waited longest. */
  get lastAt(): number {
    return Math.min(...this.lastOfStream);
  }

  note(sentAt: number, bytes: number, stream = 0): void {
    const at = nowMs();
    const from = Math.max(this.lastOfStream[stream], sentAt);
    if (at - from >= this.gapMinMs) this.gaps.push([from, at, stream]);
    this.lastOfStream[stream] = at;
    this.messages++;
    this.bytes += bytes;
  }

  takeGaps(): GrayGap[] {
    const { gaps } = this;
    this.gaps = [];
    return gaps;
  }
}

/** The word from outside, as rank 0 heard it. */
export class Pace {
  isStopping = false;
  private isRunning = false;
  private waiting: (() => void)[] = [];

  get isSending(): boolean {
    return this.isRunning && !this.isStopping;
  }

  go(): void {
    this.isRunning = true;
    this.wake();
  }

  pause(): void {
    this.isRunning = false;
  }

  stop(): void {
    this.isStopping = true;
    this.wake();
  }

  private wake(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  /** Resolves when it is time to send, or to end. */
  async turn(): Promise<void> {
    while (!this.isRunning && !this.isStopping) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}

export interface GrayContext {
  readonly mpi: Runtime;
  readonly deliveries: GrayDeliveries;
  readonly pace: Pace;
  readonly errors: string[];
  readonly plant: GrayPlant | undefined;
  /** Nothing is under way any more. */
  onPaused(): void;
}

/** Messages of each stream. */
export interface GrayCounts {
  sent: number[];
  received: number[];
}

export function runGrayTraffic(traffic: GrayTraffic, context: GrayContext): Promise<GrayCounts> {
  return TRAFFIC[traffic](context);
}

const TRAFFIC: Record<GrayTraffic, (context: GrayContext) => Promise<GrayCounts>> = {
  bulk: (context) => streams(context, [{ tag: TAG.first, bytes: 1 << 20, window: 16, perSecond: undefined }]),
  small: (context) => streams(context, [{ tag: TAG.first, bytes: 64, window: 1024, perSecond: 2000 }]),
  mixed: (context) =>
    streams(context, [
      { tag: TAG.first, bytes: 1 << 20, window: 8, perSecond: undefined },
      { tag: TAG.second, bytes: 64, window: 1024, perSecond: 500 },
    ]),
  pingpong,
  allreduce,
};

function complain({ errors }: GrayContext, text: string): void {
  if (errors.length < ERRORS_MAX) errors.push(text);
}

const eventLoop = () => new Promise<void>((resolve) => setImmediate(resolve));
const timer = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

// ---- a message: [f64 time of sending, u32 number, u32 length, a slice of a fixed pattern that the number chooses]

const HEAD_BYTES = 16;
const SLICES = 61_681;
/** Number of the last message of a stream; its length field says how many were before it. */
const END = 0xffff_ffff;

class Messages {
  private readonly pattern: Buffer;
  private readonly bytes: number;

  constructor(bytes: number) {
    this.bytes = bytes;
    this.pattern = Buffer.alloc(bytes + SLICES);
    let x = 0x9e3779b9;
    for (let i = 0; i < this.pattern.length; i++) {
      x = (Math.imul(x, 1_664_525) + 1_013_904_223) | 0;
      this.pattern[i] = x >>> 24;
    }
  }

  private slice(index: number): Buffer {
    const at = Math.imul(index, 40_503) >>> 0;
    return this.pattern.subarray(at % SLICES, (at % SLICES) + this.bytes - HEAD_BYTES);
  }

  write(buffer: Buffer, index: number): void {
    this.slice(index).copy(buffer, HEAD_BYTES);
    buffer.writeUInt32LE(index, 8);
    buffer.writeUInt32LE(this.bytes, 12);
    buffer.writeDoubleLE(nowMs(), 0);
  }

  writeEnd(buffer: Buffer, count: number): void {
    buffer.writeUInt32LE(END, 8);
    buffer.writeUInt32LE(count, 12);
  }

  /** What is wrong with what must be message number `index`, if anything is. */
  fault(buffer: Buffer, bytes: number, index: number): string | undefined {
    if (bytes !== this.bytes || buffer.readUInt32LE(12) !== this.bytes) return `message ${index}: ${bytes} bytes`;
    const found = buffer.readUInt32LE(8);
    if (found !== index) return `message ${found} where ${index} was due`;
    return this.slice(index).equals(buffer.subarray(HEAD_BYTES)) ? undefined : `message ${index}: its bytes are not those that were sent`;
  }
}

/** Looks at what must be message number `index`; false when it is the end of the stream. */
function audit(context: GrayContext, messages: Messages, buffer: Buffer, bytes: number, index: number, stream: number): boolean {
  if (buffer.readUInt32LE(8) === END) {
    const count = buffer.readUInt32LE(12);
    if (count !== index) complain(context, `stream ${stream}: ${index} messages arrived of ${count}`);
    return false;
  }
  const fault = messages.fault(buffer, bytes, index);
  if (fault !== undefined) complain(context, `stream ${stream}: ${fault}`);
  return true;
}

// ---- one or more streams from rank 0 to rank 1

interface Stream {
  tag: number;
  bytes: number;
  window: number;
  /** undefined: as fast as its window lets it. */
  perSecond: number | undefined;
}

async function streams(context: GrayContext, list: readonly Stream[]): Promise<GrayCounts> {
  const none = list.map(() => 0);
  if (context.mpi.rank !== 0) {
    const received = await Promise.all(list.map((stream, i) => receiveStream(context, stream, i)));
    return { sent: none, received };
  }
  let drained = 0;
  // The last one to have drained says so.
  const onDrained = () => {
    drained = (drained + 1) % list.length;
    if (drained === 0) context.onPaused();
  };
  const sent = await Promise.all(list.map((stream, i) => sendStream(context, stream, i === 0 ? context.plant : undefined, onDrained)));
  return { sent, received: none };
}

async function sendStream(
  { mpi, pace }: GrayContext,
  stream: Stream,
  plant: GrayPlant | undefined,
  onDrained: () => void,
): Promise<number> {
  const { tag, bytes, window, perSecond } = stream;
  const messages = new Messages(bytes);
  const buffers = Array.from({ length: window }, () => Buffer.alloc(bytes));
  const pending = new Array<Request | undefined>(window).fill(undefined);
  let index = 0;
  await pace.turn();
  while (!pace.isStopping) {
    const from = { at: nowMs(), index };
    while (pace.isSending) {
      if (perSecond !== undefined) {
        const due = from.index + Math.floor(((nowMs() - from.at) * perSecond) / 1000);
        // What a full window held back is not made up for: the pace begins again.
        if (due - index > window) Object.assign(from, { at: nowMs(), index });
        if (index >= due) {
          await timer(1);
          continue;
        }
      }
      const slot = index % window;
      if (pending[slot] !== undefined) await pending[slot];
      const planted = index === PLANTED ? plant : undefined;
      if (planted === 'stall') await timer(STALL_MS);
      messages.write(buffers[slot], planted === 'swap' ? index + 1 : index);
      if (planted === 'flip') buffers[slot][bytes - 1] ^= 1;
      if (planted === 'twice') await mpi.world.send(buffers[slot], 1, tag);
      if (planted !== 'lose') pending[slot] = mpi.world.isend(buffers[slot], 1, tag);
      index++;
      // Requests may all be done already: reports and the word to stop come by the event loop.
      if (index % Math.min(window, 64) === 0) await eventLoop();
    }
    for (const request of pending) if (request !== undefined) await request;
    if (pace.isStopping) break;
    onDrained();
    await pace.turn();
  }
  messages.writeEnd(buffers[0], index);
  await mpi.world.send(buffers[0].subarray(0, HEAD_BYTES), 1, tag);
  return index;
}

async function receiveStream(context: GrayContext, stream: Stream, number: number): Promise<number> {
  const { mpi, deliveries } = context;
  const { tag, bytes: length } = stream;
  const posted = Math.min(stream.window, 64);
  const messages = new Messages(length);
  const buffers = Array.from({ length: posted }, () => Buffer.alloc(length));
  const pending = buffers.map((buffer) => mpi.world.irecv(buffer, 0, tag));
  for (let index = 0; ; index++) {
    const slot = index % posted;
    const buffer = buffers[slot];
    const { bytes } = await pending[slot];
    if (buffer.readUInt32LE(8) !== END) deliveries.note(buffer.readDoubleLE(0), bytes, number);
    if (!audit(context, messages, buffer, bytes, index, number)) {
      for (let rest = 1; rest < posted; rest++) pending[(slot + rest) % posted].cancel();
      return index;
    }
    pending[slot] = mpi.world.irecv(buffer, 0, tag);
  }
}

// ---- one ball between rank 0 and rank 1

async function pingpong(context: GrayContext): Promise<GrayCounts> {
  const { mpi, pace, deliveries } = context;
  const messages = new Messages(64);
  const out = Buffer.alloc(64);
  const into = Buffer.alloc(64);
  const peer = 1 - mpi.rank;
  let index = 0;
  const receive = async () => {
    const { bytes } = await mpi.world.recv(into, peer, TAG.first);
    if (into.readUInt32LE(8) !== END) deliveries.note(into.readDoubleLE(0), bytes);
    return audit(context, messages, into, bytes, index, 0);
  };
  const send = () => {
    messages.write(out, index);
    return mpi.world.send(out, peer, TAG.first);
  };
  if (mpi.rank === 1) {
    for (; await receive(); index++) {
      await send();
      if (index % 64 === 0) await eventLoop();
    }
    return { sent: [index], received: [index] };
  }
  await pace.turn();
  while (!pace.isStopping) {
    for (; pace.isSending; index++) {
      await send();
      await receive();
      if (index % 64 === 0) await eventLoop();
    }
    if (pace.isStopping) break;
    context.onPaused();
    await pace.turn();
  }
  messages.writeEnd(out, index);
  await mpi.world.send(out, peer, TAG.first);
  return { sent: [index], received: [index] };
}

// ---- all ranks

/** Doubles of an allreduce: whether rank 0 wants to end, when it called, and what is audited. */
const DOUBLES = 8192;
const AUDITED_FROM = 2;

async function allreduce(context: GrayContext): Promise<GrayCounts> {
  const { mpi, pace, deliveries } = context;
  const { rank, size } = mpi;
  const own = new Float64Array(DOUBLES);
  const sum = new Float64Array(DOUBLES);
  const ranksSum = (size * (size - 1)) / 2;
  let count = 0;
  for (let isOver = false; !isOver; ) {
    if (rank === 0 && !pace.isSending && !pace.isStopping) {
      context.onPaused();
      await pace.turn();
    }
    // The sum of small whole numbers is exact, in whichever order it is made.
    for (let i = AUDITED_FROM; i < DOUBLES; i++) own[i] = ((count + i * 7) & 0xffff) + rank;
    own[0] = rank === 0 && pace.isStopping ? 1 : 0;
    own[1] = rank === 0 ? nowMs() : 0;
    await mpi.world.allreduce(own, sum, Op.SUM);
    isOver = sum[0] !== 0;
    deliveries.note(sum[1], sum.byteLength);
    const wrong = sum.findIndex((value, i) => i >= AUDITED_FROM && value !== size * ((count + i * 7) & 0xffff) + ranksSum);
    if (wrong >= 0) complain(context, `allreduce ${count}: element ${wrong} is ${sum[wrong]}`);
    count++;
    if (count % 16 === 0) await eventLoop();
  }
  return { sent: [count], received: [count] };
}
