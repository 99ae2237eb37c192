// Liveness of one rail epoch: its liveness connection, from dialling to the end, the beats on it, and the samples of TCP_INFO that it gives
// to the judge (liveness.ts). It works inside progress() of the module and makes no upcalls.
import { constants } from 'node:os';
import { POLL_IN, TCP_INFO, TCP_INFO_LENGTH } from '../../native/binding.ts';
import type { Poller, PollTarget } from '../../native/poller.ts';
import { assert } from '../../util/assert.ts';
import { WIDE_ZERO } from '../../util/wide-zero.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import { FRAME_WELCOME, type FrameHeader, HANDSHAKE_LIMITS } from '../base/frame-hdr.ts';
import { livenessFrame, welcomeFrame } from '../base/handshake.ts';
import type { StreamEndpoint } from '../base/stream-endpoint.ts';
import { type FramerHandler, StreamFramer } from '../base/stream-framer.ts';
import type { RailReason, Sink } from '../btl.ts';
import {
  type BeatRhythm,
  beatIntervalMs,
  LossMeter,
  SECOND_BEAT_MS,
  SilenceJudge,
  type SilenceLimits,
  type TcpSample,
} from './liveness.ts';

/** Traffic within this time makes a rail active. */
const ACTIVE_MS = 1000;
/** An attempt at a liveness connection is given up after this time and tried again after a pause that grows. */
const ATTEMPT_MS = 600;
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 5000;
/** Reads of one turn: a peer that beats without end does not hold up the rails. */
const READS_MAX = 4;
const { EAGAIN } = constants.errno;

const BEAT = new Uint8Array([0x2e]);
const scratch = new Uint8Array(4096);
const info = new Float64Array(TCP_INFO_LENGTH);

export const LIVENESS_STATES = {
  NONE: 'There is no liveness connection: the dialer waits for its next attempt, the acceptor to be dialled.',
  OPENING: 'The dialer opens the connection.',
  GREETING: 'LIVENESS is sent, the WELCOME is waited for.',
  OPEN: 'Beats go both ways.',
  OVER: 'The epoch has ended.',
} as const;
export type LivenessState = keyof typeof LIVENESS_STATES;

const EDGES: Readonly<Record<LivenessState, readonly LivenessState[]>> = {
  // → OPEN: the acceptor was dialled.
  NONE: ['OPENING', 'OPEN', 'OVER'],
  OPENING: ['GREETING', 'NONE', 'OVER'],
  GREETING: ['OPEN', 'NONE', 'OVER'],
  // → OPEN: the dialer replaced a connection that only it saw break.
  OPEN: ['NONE', 'OPEN', 'OVER'],
  OVER: [],
};

/** What a rail needs of the watch over all rails. */
export interface LivenessHost {
  readonly poller: Poller;
  readonly rank: number;
  readonly limits: SilenceLimits;
  readonly rhythm: BeatRhythm;
  activeRails: number;
  readonly railCount: number;
  /** Opens a stream between the same two addresses as this one. Throws when that fails at once. */
  openBeside(endpoint: StreamEndpoint, stream: ByteStream): ByteStream;
  /** A descriptor of ours is ready: progress() is to look. */
  ready(): void;
}

export class RailLiveness implements PollTarget, FramerHandler {
  readonly endpoint: StreamEndpoint;
  readonly epoch: number;
  state: LivenessState = 'NONE';
  /** Traffic is outstanding, or was moving lately. */
  active = false;
  /** When there is something to be done, in `now`. */
  dueAt: number;
  /** Highest attempt of the dialer that was taken: an older one is a repetition. */
  lastNumber = 0;
  private readonly host: LivenessHost;
  private readonly dataStream: ByteStream;
  private readonly epochKey: Uint8Array;
  private readonly judge: SilenceJudge;
  private readonly data = newSample();
  private readonly beat = newSample();
  private readonly dataLosses = new LossMeter();
  private beatLosses = new LossMeter();
  private fd = -1;
  private readable = false;
  private lastBeatAt = Number.NEGATIVE_INFINITY;
  private unread = 0;
  private movedAt: number;
  private framesBefore = 0;
  private receivedBefore = WIDE_ZERO;
  // The stream of the dialer's attempt.
  private stream: ByteStream | undefined = undefined;
  private framer: StreamFramer | undefined = undefined;
  private outcome: 'welcomed' | 'failed' | undefined = undefined;
  private attemptAt: number;
  private pauseMs = PAUSE_MIN_MS;
  private number = 0;

  constructor(host: LivenessHost, endpoint: StreamEndpoint, dataStream: ByteStream, epochKey: Uint8Array, now: number, aliveMs: number) {
    this.host = host;
    this.endpoint = endpoint;
    this.epoch = endpoint.epoch;
    this.dataStream = dataStream;
    this.epochKey = epochKey;
    this.judge = new SilenceJudge(host.limits, aliveMs);
    this.movedAt = now;
    this.dueAt = now;
    this.attemptAt = host.rank < endpoint.peer ? now : Number.POSITIVE_INFINITY;
  }

  get key(): Uint8Array {
    return this.epochKey;
  }

  onReady(): void {
    this.readable = true;
    this.host.ready();
  }

  /** This process took no turn for a while: the next look decides nothing, and a beat goes out with it. */
  paused(now: number, aliveMs: number): void {
    this.judge.paused(aliveMs);
    if (this.judge.state !== 'WAITING') return;
    this.lastBeatAt = Number.NEGATIVE_INFINITY;
    this.dueAt = now;
  }

  /** The acceptor's side: the dialer has proved that it belongs to this epoch. False when the stream cannot be taken. */
  adopt(stream: ByteStream, number: number, aliveMs: number): boolean {
    stream.write([welcomeFrame()]);
    const fd = stream.detach?.() ?? -1;
    if (fd < 0) return false;
    this.lastNumber = number;
    if (this.state === 'OPEN') this.closeDescriptor();
    this.opened(fd, aliveMs);
    return true;
  }

  /** Does what is due. Returns why the rail is lost, if it is. */
  progress(now: number, aliveMs: number): RailReason | undefined {
    if (this.state === 'OPENING' || this.state === 'GREETING') this.progressAttempt(now, aliveMs);
    else if (this.state === 'NONE' && now >= this.attemptAt) this.begin(now);
    if (this.readable) this.drain(now);
    if (now < this.dueAt) return undefined;
    this.seeTraffic(now);
    if (!this.look(aliveMs)) return undefined;
    if (this.judge.state === 'SILENT') {
      const { plan, peer } = this.endpoint;
      return { kind: 'silent', text: `rail ${plan.key} to rank ${peer}: ${this.judge.describe()}` };
    }
    if (now >= this.nextBeatAt()) this.sendBeat(now, aliveMs);
    const { host } = this;
    const judgedAt = now + Math.max(1, this.judge.dueAliveMs - aliveMs);
    const attemptAt = this.state === 'NONE' ? this.attemptAt : this.state === 'OPEN' ? Number.POSITIVE_INFINITY : now + host.rhythm.beatMs;
    // While something is waited for, looks are never so far apart that they would be taken for a pause of ours.
    const lookAt = this.judge.state === 'WAITING' ? Math.min(judgedAt, now + SECOND_BEAT_MS) : Number.POSITIVE_INFINITY;
    this.dueAt = Math.min(this.nextBeatAt(), lookAt, attemptAt);
    return undefined;
  }

  close(): void {
    if (this.state === 'OVER') return;
    this.dropAttempt();
    this.closeDescriptor();
    this.setActive(false);
    this.move('OVER');
  }

  // --- the connection

  private begin(now: number): void {
    this.move('OPENING');
    this.outcome = undefined;
    this.attemptAt = now + ATTEMPT_MS;
    this.dueAt = now;
    try {
      this.stream = this.host.openBeside(this.endpoint, this.dataStream);
    } catch {
      this.retry(now);
      return;
    }
    this.stream.onEvent = () => this.host.ready();
  }

  private progressAttempt(now: number, aliveMs: number): void {
    const stream = this.stream as ByteStream;
    if (this.state === 'OPENING' && stream.status === 'open') {
      this.framer = new StreamFramer(this, HANDSHAKE_LIMITS);
      const { rail } = this.endpoint;
      stream.write([livenessFrame({ rank: this.host.rank, rail, epoch: this.epoch, number: ++this.number }, this.epochKey)]);
      this.move('GREETING');
    }
    if (this.state === 'GREETING') stream.poll(this.framer as StreamFramer, 4096);
    if (this.outcome === 'welcomed') {
      const fd = stream.detach?.() ?? -1;
      this.stream = undefined;
      this.framer = undefined;
      if (fd >= 0) {
        this.pauseMs = PAUSE_MIN_MS;
        this.opened(fd, aliveMs);
        this.dueAt = now;
        return;
      }
      this.retry(now);
      return;
    }
    const ended = stream.status === 'closed' || this.outcome === 'failed';
    // A peer that closes instead of answering is of another kind (node:net, an older version): asked again, but seldom.
    if (ended && this.state === 'GREETING') this.pauseMs = PAUSE_MAX_MS;
    if (ended || now >= this.attemptAt) this.retry(now);
  }

  private retry(now: number): void {
    this.dropAttempt();
    this.move('NONE');
    this.attemptAt = now + this.pauseMs;
    this.pauseMs = Math.min(PAUSE_MAX_MS, this.pauseMs * 2);
    this.dueAt = Math.min(this.dueAt, this.attemptAt);
  }

  private dropAttempt(): void {
    this.framer?.stop();
    this.framer = undefined;
    this.stream?.destroy();
    this.stream = undefined;
  }

  private opened(fd: number, aliveMs: number): void {
    this.fd = fd;
    this.readable = false;
    this.unread = 0;
    this.host.poller.add(fd, this, POLL_IN);
    this.judge.beatsBegin(aliveMs);
    this.beatLosses = new LossMeter();
    this.lastBeatAt = Number.NEGATIVE_INFINITY;
    this.dueAt = 0;
    this.move('OPEN');
  }

  /** The connection broke while the epoch lives. */
  private broke(now: number): void {
    this.closeDescriptor();
    this.judge.beatsEnd();
    this.attemptAt = this.host.rank < this.endpoint.peer ? now + this.pauseMs : Number.POSITIVE_INFINITY;
    this.pauseMs = Math.min(PAUSE_MAX_MS, this.pauseMs * 2);
    this.dueAt = now;
    this.move('NONE');
  }

  private closeDescriptor(): void {
    if (this.fd < 0) return;
    this.host.poller.remove(this.fd);
    // Nothing on it is worth being delivered, and an orderly end into a dead rail would linger in the kernel for minutes.
    this.host.poller.native.closeReset(this.fd);
    this.fd = -1;
  }

  // --- FramerHandler, for the one frame that the dialer gets

  frame(header: FrameHeader): void {
    this.outcome = header.kind === FRAME_WELCOME ? 'welcomed' : 'failed';
    this.framer?.stop();
  }
  placePayload(): Sink | null {
    this.outcome = 'failed';
    this.framer?.stop();
    return null;
  }
  damage(): void {
    this.outcome = 'failed';
  }

  // --- beats

  private drain(now: number): void {
    this.readable = false;
    if (this.fd < 0) return;
    const { native } = this.host.poller;
    for (let i = 0; i < READS_MAX; i++) {
      const got = native.recv(this.fd, scratch, 0, scratch.length);
      if (got > 0) this.unread = 0;
      if (got === 0 || (got < 0 && got !== -EAGAIN)) {
        this.broke(now);
        return;
      }
      if (got < scratch.length) return;
    }
  }

  private nextBeatAt(): number {
    const { active, host, judge, lastBeatAt, unread } = this;
    const { rhythm, activeRails, railCount } = host;
    const intervalMs = beatIntervalMs(rhythm, { active, state: judge.state, unread, activeRails, rails: railCount });
    // Idle rails beat together: one waking of the process serves them all.
    if (active || judge.state === 'WAITING' || lastBeatAt === Number.NEGATIVE_INFINITY) return lastBeatAt + intervalMs;
    return Math.ceil(lastBeatAt / intervalMs + 0.5) * intervalMs;
  }

  private sendBeat(now: number, aliveMs: number): void {
    this.lastBeatAt = now;
    if (this.fd < 0) {
      // Without a liveness connection an idle rail is asked by a frame: the kernel that acknowledges it is the same.
      if (!this.active) this.endpoint.probe(0);
      return;
    }
    const sent = this.host.poller.native.send(this.fd, BEAT, 0, 1);
    if (sent === 1) {
      this.unread++;
      this.judge.beatSent(aliveMs);
    } else if (sent !== -EAGAIN) this.broke(now);
  }

  // --- looking

  /** False when there is nothing to be asked: the data connection is over. */
  private look(aliveMs: number): boolean {
    const { native } = this.host.poller;
    const descriptor = this.dataStream.descriptor ?? -1;
    if (descriptor < 0 || native.tcpInfo(descriptor, info) < 0) {
      this.dueAt = Number.POSITIVE_INFINITY;
      return false;
    }
    fill(this.data);
    const beats = this.fd >= 0 && native.tcpInfo(this.fd, info) >= 0;
    if (beats) fill(this.beat);
    this.judge.look(this.data, beats ? this.beat : undefined, aliveMs);
    const isLossy = this.dataLosses.take(this.data);
    if ((beats && this.beatLosses.take(this.beat)) || isLossy) this.endpoint.counters.losses++;
    return true;
  }

  /** Bytes that the peer's process sent tell that it reads, too. */
  private seeTraffic(now: number): void {
    const { counters, outstandingBytes } = this.endpoint;
    const { framesSent, framesReceived, bytesReceived } = counters;
    if (bytesReceived !== this.receivedBefore) this.unread = 0;
    this.receivedBefore = bytesReceived;
    const frames = framesSent + framesReceived;
    if (frames !== this.framesBefore || outstandingBytes > 0) this.movedAt = now;
    this.framesBefore = frames;
    this.setActive(now - this.movedAt < ACTIVE_MS);
  }

  private setActive(active: boolean): void {
    if (active === this.active) return;
    this.active = active;
    this.host.activeRails += active ? 1 : -1;
  }

  private move(to: LivenessState): void {
    assert(EDGES[this.state].includes(to), `liveness: no edge from ${this.state} to ${to}`);
    this.state = to;
  }
}

function fill(sample: TcpSample): void {
  sample.unackedSegments = info[TCP_INFO.unackedSegments];
  sample.notSentBytes = info[TCP_INFO.notSentBytes];
  sample.ackedBytes = info[TCP_INFO.ackedBytes];
  sample.rttUs = info[TCP_INFO.rttUs];
  sample.minRttUs = info[TCP_INFO.minRttUs];
  sample.retransmissions = info[TCP_INFO.retransmissions];
  sample.duplicates = info[TCP_INFO.duplicates];
}

function newSample(): TcpSample {
  return { unackedSegments: 0, notSentBytes: 0, ackedBytes: 0, rttUs: 0, minRttUs: 0, retransmissions: 0, duplicates: 0 };
}
