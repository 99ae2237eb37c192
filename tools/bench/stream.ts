// The failover run: rank 1 streams numbered messages to rank 0 for some seconds while rails are pulled and restored; rank 0
// audits every one of them. Rank 0 receives because only the receiver knows what has arrived, and rank 0 has the terminal.
import { crc32c } from '../../src/btl/base/crc32c.ts';
import { MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { Request } from '../../src/mpi/request.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import type { RailEvent, RailInfo, RuntimeCounters } from '../../src/mpi/views.ts';
import { type AuditFindings, StreamAudit, StreamHash, type StreamTotals } from './audit.ts';
import { encodeHeader, HEADER_BYTES, MessagePattern } from './message.ts';
import {
  checkActions,
  isBadMode,
  type PullMode,
  pulledAt,
  pulledText,
  pulledWord,
  type RailAction,
  type RailHand,
  railName,
  SENDER_LAG_MS,
} from './rail-actions.ts';
import { BENCH_TAGS } from './tags.ts';
import { type Phase, type RailSample, Timeline } from './timeline.ts';

export interface StreamSpec {
  /** Length of each message, header included. */
  sizeBytes: number;
  durationMs: number;
  /** Messages under way at the same time. */
  window: number;
  /** Contents too, not only headers. */
  verify: boolean;
  seed: string;
  actions: readonly RailAction[];
  mode: PullMode;
  /** The receiver gives up when nothing was delivered for so long. */
  stallMs: number;
}

/** Something that happened to a rail, or was done to it. */
export interface StreamEvent {
  atMs: number;
  rank: number;
  rail: number | undefined;
  /** `pulled` and `restored-by-hand` are done here; the others are what the runtime reports. */
  type: 'pulled' | 'put-back' | RailEvent['type'];
  text: string;
}

export interface RailView {
  rail: number;
  name: string;
  state: string;
  isPulled: boolean;
  /** What it is then: pulled, lossy, slow. */
  pulledWord: string;
  /** Payload that has arrived on it since the start. */
  bytes: number;
}

export interface StreamView {
  elapsedMs: number;
  rails: RailView[];
  /** Delivered to the receiving program. */
  messages: number;
  bytes: number;
}

export interface StreamListener {
  onView(view: StreamView): void;
  onEvent(event: StreamEvent): void;
}

/** What the sending rank reports at the end. */
interface SenderReport {
  totals: StreamTotals;
  counters: RuntimeCounters;
  events: StreamEvent[];
}

export interface StreamReport {
  spec: StreamSpec;
  railNames: string[];
  findings: AuditFindings;
  /** Reasons to fail, those of the audit and those of the run; empty = passed. */
  problems: string[];
  /** Worth knowing, and no reason to fail. */
  remarks: string[];
  events: StreamEvent[];
  samples: RailSample[];
  phases: Phase[];
  worstGapMs: number;
  worstGapEndMs: number;
  elapsedMs: number;
  receiverCounters: RuntimeCounters;
  senderCounters: RuntimeCounters | undefined;
}

const RECEIVER = 0;
const SENDER = 1;
const RAILS_UP_MS_MAX = 10_000;
const RAILS_POLL_MS = 5;
const REPORT_MS_MAX = 15_000;
/** The event loop gets its turn after so many bytes of eager messages, which end at once. */
const TURN_BYTES = 256 * 1024;
/** Events of one rank that are kept; of a run with more, the first ones. */
const EVENTS_MAX = 1000;
/**
 * When a pulled rail must carry nothing any more: not at once, since what is under way still arrives, and the other process may be
 * late on a busy machine; but for the last part of every pull of some length.
 */
const PULL_SETTLE_MS = 150;
const PULL_SETTLE_PART = 0.6;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export const railLabel = ({ rail, transport, key }: RailInfo): string =>
  `rail ${rail} (${key.startsWith(transport) ? key : `${transport} ${key}`})`;

/** Waits until every rail to the peer that is made carries traffic: a run that starts on half of them would show nothing. */
async function allRailsUp(mpi: Runtime, peer: number): Promise<RailInfo[]> {
  const deadlineMs = performance.now() + RAILS_UP_MS_MAX;
  for (;;) {
    const rails = mpi.rails().filter((rail) => rail.peer === peer);
    if (rails.every(({ state }) => state === 'UP' || state === 'ON_DEMAND')) return rails;
    if (performance.now() > deadlineMs) {
      const states = rails.map(
        (rail) => `${railLabel(rail)}: ${rail.state}${rail.lastReason === undefined ? '' : ` (${rail.lastReason})`}`,
      );
      throw new MultirailError('ERR_RAIL', `rank ${mpi.rank}: not all rails to rank ${peer} came up: ${states.join('; ')}`, { peer });
    }
    await pause(RAILS_POLL_MS);
  }
}

/** Does the actions of the plan on this rank, and writes down what happens to its rails. */
class RailWatch {
  readonly events: StreamEvent[] = [];
  readonly startMs = performance.now();
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly mpi: Runtime;
  private readonly onEvent: (event: StreamEvent) => void;
  private readonly onRail = (event: RailEvent) => {
    if (event.peer !== this.peer || event.type === 'suspect') return;
    const { type, rail, reason, up, of } = event;
    const what = type === 'restored' ? 'is used again' : type === 'lost' ? `is lost: ${reason}` : `${type}: ${reason}`;
    this.note({ rail, type, text: `rail ${rail} ${what}; ${up} of ${of} carry` });
  };
  private readonly peer: number;

  constructor(mpi: Runtime, peer: number, hand: RailHand, spec: StreamSpec, onEvent: (event: StreamEvent) => void) {
    this.mpi = mpi;
    this.peer = peer;
    this.onEvent = onEvent;
    mpi.on('rail', this.onRail);
    const end = mpi.rank === RECEIVER ? 'receiver' : 'sender';
    for (const action of spec.actions) {
      const lagMs = action.kind === 'pull' && spec.mode === 'silent' && end === 'sender' ? SENDER_LAG_MS : 0;
      const act = () => {
        const isPull = action.kind === 'pull';
        const text = `${railName(action.rail)} ${isPull ? pulledText(spec.mode) : 'put back'}`;
        this.note({ rail: action.rail, type: isPull ? 'pulled' : 'put-back', text });
        hand.apply(action, peer, spec.mode, end);
      };
      this.timers.push(setTimeout(act, action.atMs + lagMs));
    }
  }

  get elapsedMs(): number {
    return performance.now() - this.startMs;
  }

  private note(event: Omit<StreamEvent, 'atMs' | 'rank'>): void {
    const noted = { ...event, atMs: this.elapsedMs, rank: this.mpi.rank };
    if (this.events.length < EVENTS_MAX) this.events.push(noted);
    this.onEvent(noted);
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.mpi.off('rail', this.onRail);
  }
}

/** Rank 1. */
export async function sendStream(mpi: Runtime, comm: Communicator, hand: RailHand, spec: StreamSpec): Promise<void> {
  const { data, start, report } = BENCH_TAGS;
  checkActions(spec.actions, (await allRailsUp(mpi, RECEIVER)).length);
  const payloadBytes = spec.sizeBytes - HEADER_BYTES;
  const pattern = new MessagePattern(spec.seed, payloadBytes);
  const hash = new StreamHash();
  const headers = Array.from({ length: spec.window }, () => new Uint8Array(HEADER_BYTES));
  const requests: Request[] = [];
  await comm.send(new Uint8Array(0), RECEIVER, start);
  await comm.recv(new Uint8Array(0), RECEIVER, start);
  const watch = new RailWatch(mpi, RECEIVER, hand, spec, () => undefined);
  let index = 0;
  let turnBytes = 0;
  for (; watch.elapsedMs < spec.durationMs; index++) {
    // A header is written again only when its message has left.
    const slot = index % spec.window;
    if (index >= spec.window) await requests[slot];
    const payload = pattern.payload(index, payloadBytes);
    const payloadCrc = spec.verify ? crc32c(payload) : 0;
    encodeHeader({ kind: 'data', index, length: spec.sizeBytes, payloadCrc }, headers[slot]);
    requests[slot] = comm.isend([headers[slot], payload], RECEIVER, data);
    hash.add(index, spec.sizeBytes, payloadCrc);
    turnBytes += spec.sizeBytes;
    if (turnBytes >= TURN_BYTES) {
      turnBytes = 0;
      await turn();
    }
  }
  for (const request of requests) await request;
  await comm.send(encodeHeader({ kind: 'end', index, length: index, payloadCrc: 0 }), RECEIVER, data);
  watch.stop();
  const done: SenderReport = { totals: hash.totals(), counters: mpi.counters(), events: watch.events };
  await comm.sendObject(done, RECEIVER, report);
}

interface Slot {
  memory: Uint8Array;
  request: Request;
}

/** Rank 0. */
export async function receiveStream(
  mpi: Runtime,
  comm: Communicator,
  hand: RailHand,
  spec: StreamSpec,
  listener: StreamListener,
): Promise<StreamReport> {
  const { data, start } = BENCH_TAGS;
  const rails = await allRailsUp(mpi, SENDER);
  checkActions(spec.actions, rails.length);
  const audit = new StreamAudit(spec.verify ? new MessagePattern(spec.seed, spec.sizeBytes - HEADER_BYTES) : undefined);
  const timeline = new Timeline(spec.actions, rails.length, spec.durationMs);
  const problems: string[] = [];
  const slots = Array.from({ length: spec.window }, (): Slot => {
    const memory = new Uint8Array(spec.sizeBytes);
    return { memory, request: comm.irecv(memory, SENDER, data) };
  });
  await comm.recv(new Uint8Array(0), SENDER, start);
  const watch = new RailWatch(mpi, SENDER, hand, spec, (event) => listener.onEvent(event));
  const pullCheck = new PullCheck(mpi, spec, problems);
  await comm.send(new Uint8Array(0), SENDER, start);

  // Whoever waits is told when nothing has come for too long.
  let lastMs = performance.now();
  let giveUp: () => void = () => {};
  let totals = { messages: 0, bytes: 0 };
  const bytesAtStart = rails.map(({ counters }) => counters.payloadBytesReceived);
  const look = () => {
    const elapsedMs = watch.elapsedMs;
    const now = mpi.rails().filter(({ peer }) => peer === SENDER);
    const railBytes = now.map(({ counters }, rail) => counters.payloadBytesReceived - bytesAtStart[rail]);
    timeline.sample(elapsedMs, railBytes);
    const pulled = pulledAt(spec.actions, now.length, elapsedMs);
    listener.onView({
      elapsedMs,
      rails: now.map((rail, i) => ({
        rail: i,
        name: railLabel(rail),
        state: rail.state,
        isPulled: pulled[i],
        pulledWord: pulledWord(spec.mode),
        bytes: railBytes[i],
      })),
      ...totals,
    });
    if (performance.now() - lastMs > spec.stallMs) giveUp();
  };
  look();
  const ticker = setInterval(look, Timeline.intervalMs(spec.durationMs));
  try {
    for (let at = 0; !audit.isEnded; at = (at + 1) % slots.length) {
      const slot = slots[at];
      const outcome = await new Promise<'ended' | 'failed' | 'stalled'>((resolve) => {
        giveUp = () => resolve('stalled');
        slot.request.then(
          () => resolve('ended'),
          () => resolve('failed'),
        );
      });
      if (outcome === 'stalled') {
        problems.push(`nothing was delivered for ${spec.stallMs / 1000} s: ${mpi.undelivered().slice(0, 3).join('; ')}`);
        break;
      }
      if (outcome === 'failed') {
        const { error } = slot.request;
        problems.push(`a receive failed: ${error?.message}`);
        // A message that is too long is one more that is wrong; anything else is the end.
        if (error?.code !== 'ERR_TRUNCATE') break;
      }
      const bytes = slot.request.status?.bytes ?? 0;
      lastMs = performance.now();
      timeline.delivered(watch.elapsedMs, bytes);
      totals = { messages: totals.messages + 1, bytes: totals.bytes + bytes };
      audit.take(slot.memory.subarray(0, bytes));
      slot.request = comm.irecv(slot.memory, SENDER, data);
    }
  } finally {
    clearInterval(ticker);
  }
  look();
  const elapsedMs = watch.elapsedMs;
  pullCheck.finish();
  const sender = audit.isEnded ? await senderReport(comm) : undefined;
  // Whatever completes one of the receives that are still posted came after the end.
  for (const { request, memory } of slots) {
    if (request.cancel() || !audit.isEnded || request.error !== undefined) continue;
    if (request.status === undefined) problems.push('one more message began after the end of the stream');
    else audit.take(memory.subarray(0, request.status.bytes));
  }
  watch.stop();
  const findings = audit.finish(sender?.totals);
  return {
    spec,
    railNames: rails.map(railLabel),
    findings,
    problems: [...findings.problems, ...problems],
    remarks: remarksOn(spec, rails.length, watch.events, sender?.events ?? []),
    events: [...watch.events, ...(sender?.events ?? [])].sort((a, b) => a.atMs - b.atMs),
    samples: timeline.samples,
    phases: timeline.finish(),
    worstGapMs: timeline.worstGapMs,
    worstGapEndMs: timeline.worstGapEndMs,
    elapsedMs,
    receiverCounters: mpi.counters(),
    senderCounters: sender?.counters,
  };
}

async function senderReport(comm: Communicator): Promise<SenderReport | undefined> {
  try {
    return (await comm.recvObject<SenderReport>(SENDER, BENCH_TAGS.report, { timeoutMs: REPORT_MS_MAX })).data;
  } catch (error) {
    if (error instanceof MultirailError && error.code === 'ERR_TIMEOUT') return undefined;
    throw error;
  }
}

/** A rail that goes on carrying data while it is pulled out would make the whole run worthless. */
class PullCheck {
  private readonly mpi: Runtime;
  private readonly problems: string[];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly open = new Map<number, { atMs: number; bytes: number }>();

  constructor(mpi: Runtime, spec: StreamSpec, problems: string[]) {
    this.mpi = mpi;
    this.problems = problems;
    // A bad rail goes on carrying.
    if (isBadMode(spec.mode)) return;
    const count = this.received().length;
    const edges = [0, ...spec.actions.map(({ atMs }) => atMs), spec.durationMs];
    for (let i = 1; i + 1 < edges.length; i++) {
      const pulled = pulledAt(spec.actions, count, edges[i]).flatMap((isPulled, rail) => (isPulled ? [rail] : []));
      const spanMs = edges[i + 1] - edges[i];
      if (pulled.length === 0 || spanMs < 2 * PULL_SETTLE_MS) continue;
      this.timers.push(
        setTimeout(() => this.begin(pulled), edges[i] + Math.max(PULL_SETTLE_MS, spanMs * PULL_SETTLE_PART)),
        setTimeout(() => this.end(), edges[i + 1] - PULL_SETTLE_MS / 2),
      );
    }
  }

  private received(): number[] {
    return this.mpi
      .rails()
      .filter(({ peer }) => peer === SENDER)
      .map(({ counters }) => counters.payloadBytesReceived);
  }

  private begin(rails: readonly number[]): void {
    const bytes = this.received();
    for (const rail of rails) this.open.set(rail, { atMs: performance.now(), bytes: bytes[rail] });
  }

  private end(): void {
    const bytes = this.received();
    for (const [rail, before] of this.open) {
      const more = bytes[rail] - before.bytes;
      if (more > 0) this.problems.push(`rail ${rail} carried ${more} bytes while it was pulled: the pull had no effect`);
    }
    this.open.clear();
  }

  finish(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.end();
  }
}

function remarksOn(spec: StreamSpec, count: number, here: readonly StreamEvent[], there: readonly StreamEvent[]): string[] {
  const remarks: string[] = [];
  const isPulledAtEnd = pulledAt(spec.actions, count, Number.POSITIVE_INFINITY);
  for (let rail = 0; rail < count; rail++) {
    const concerns = (event: { rail: number | undefined }) => event.rail === undefined || event.rail === rail;
    const pulls = spec.actions.filter((action) => action.kind === 'pull' && concerns(action));
    if (pulls.length === 0) continue;
    const noticed = [...here, ...there].filter((event) => event.type === 'lost' && concerns(event)).length;
    if (noticed === 0 && !isBadMode(spec.mode)) remarks.push(`rail ${rail} was pulled, and neither rank noticed: it was back too soon`);
    const lastPutBack = here.filter((event) => event.type === 'put-back' && concerns(event)).at(-1);
    const usedAgain = here.filter((event) => event.type === 'restored' && event.rail === rail).at(-1);
    // A bad rail may have been left and taken up again many times, whatever was done by hand.
    if (noticed === 0 || isPulledAtEnd[rail] || lastPutBack === undefined || isBadMode(spec.mode)) continue;
    if (usedAgain === undefined || usedAgain.atMs < lastPutBack.atMs)
      remarks.push(`rail ${rail} was put back, and not used again before the end`);
    else remarks.push(`rail ${rail} was used again ${Math.round(usedAgain.atMs - lastPutBack.atMs)} ms after it was put back`);
  }
  return remarks;
}
