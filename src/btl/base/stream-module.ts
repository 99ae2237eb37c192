// What tcp and ws modules share: endpoints, inbound handshakes, the order of work in progress(), deadlines, close().
// Knows nothing of interfaces and routes: that is tcp/ip-module.ts.
import { randomBytes } from 'node:crypto';
import {
  ALIVE_PER_TURN_MAX_MS,
  type BtlContext,
  type BtlEndpoint,
  type CrowdLimits,
  type RailPlan,
  type RailReason,
  type Sink,
  type Upcalls,
} from '../btl.ts';
import type { ByteStream } from './byte-stream.ts';
import type { Dialing } from './dial-attempt.ts';
import { type FrameHeader, HANDSHAKE_LIMITS } from './frame-hdr.ts';
import {
  AcceptorHandshake,
  type AcceptorStep,
  type HandshakeIdentity,
  isLoopbackAddress,
  type LivenessClaim,
  NO_SECRET_HINT,
  NONCE_BYTES,
  refuseFrame,
  welcomeFrame,
} from './handshake.ts';
import type { Link } from './link.ts';
import { RailLink } from './rail-link.ts';
import { type EndpointModule, StreamEndpoint, type StreamOptions } from './stream-endpoint.ts';
import { type FramerHandler, StreamFramer } from './stream-framer.ts';

/** Log lines that wait for the next progress(); a flood of strangers is counted, not kept. */
const LOG_LINES_MAX = 64;
/** How long close() lets rails that ended by BYE write out their last bytes. */
const CLOSE_GRACE_MS = 500;
/** In a crowd, turns in which only time passes are so many times as far apart at most. */
const CROWDED_TURNS_MAX = 4;
/** A refused dialer has this long to read why. */
const REFUSED_LINGER_MS = 500;

/** Outcome of a look at the route of an inbound connection; `failure` is set when the rail must be refused. */
export interface InboundCheck {
  done: boolean;
  failure: string | undefined;
}

/**
 * HANDSHAKE: waits for the dialer's frames.
 * CHECKING: the dialer proved the secret; the route of our answers is looked up.
 * CLOSING: refused, the refusal is on its way.
 * DONE: given to an endpoint, or closed.
 */
type InboundState = 'HANDSHAKE' | 'CHECKING' | 'CLOSING' | 'DONE';

/** One inbound connection until it is a rail epoch or closed. */
class Inbound implements FramerHandler {
  readonly stream: ByteStream;
  readonly framer: StreamFramer;
  readonly machine: AcceptorHandshake;
  state: InboundState = 'HANDSHAKE';
  /** In our own alive time. */
  dueAliveMs = Number.POSITIVE_INFINITY;
  check: InboundCheck | undefined = undefined;
  step: AcceptorStep | undefined = undefined;
  closeText: string | undefined = undefined;

  constructor(stream: ByteStream, machine: AcceptorHandshake) {
    this.stream = stream;
    this.machine = machine;
    this.framer = new StreamFramer(this, HANDSHAKE_LIMITS);
  }

  frame(header: FrameHeader, packetHeader: Uint8Array): void {
    if (this.step !== undefined) {
      this.closeText = 'a frame out of turn';
      this.framer.stop();
      return;
    }
    this.step = this.machine.take(header.kind, packetHeader);
  }

  placePayload(): Sink | null {
    this.closeText = 'a placed frame in the handshake';
    this.framer.stop();
    return null;
  }

  damage(text: string, otherVersion: boolean): void {
    if (otherVersion && this.step === undefined) this.step = this.machine.otherVersion(text);
    else this.closeText = text;
  }
}

export abstract class StreamModule implements EndpointModule {
  abstract readonly name: string;
  readonly context: BtlContext;
  readonly upcalls: Upcalls;
  readonly identity: HandshakeIdentity;
  readonly options: StreamOptions;
  protected readonly endpoints: StreamEndpoint[] = [];
  protected now = 0;
  protected aliveMs = 0;
  protected closed = false;
  private readonly inbound = new Set<Inbound>();
  private logLines: { level: 'debug' | 'warn'; text: string }[] = [];
  private logLinesLost = 0;
  private dueNow = false;
  /** Where nothing happens, no rail of the module has anything to do before that time. */
  private restUntilMs = 0;
  /** Events of its streams tell the module when a rail has something to do: then rails that are quiet are not looked at. */
  protected readonly mayRest: boolean = true;
  private readonly stirred = (): void => {
    this.restUntilMs = 0;
  };
  private readonly wake = (): void => {
    this.restUntilMs = 0;
    if (!this.closed) this.upcalls.wake();
  };

  constructor(context: BtlContext) {
    const { params } = context;
    this.context = context;
    this.upcalls = context.upcalls;
    this.identity = { rank: context.rank, incarnation: context.incarnation, jobId: context.jobId, secret: context.secret };
    this.options = {
      payloadCrc: params.bool('btl_base_payload_crc'),
      refusalsMax: params.int('btl_base_refusals_max'),
      ackFrames: params.int('btl_base_ack_frames'),
      ackBytes: params.int('btl_base_ack_bytes'),
      ackDelayMs: params.int('btl_base_ack_delay_ms'),
      endTimeoutMs: params.int('bml_connect_timeout_ms'),
      connectTimeoutMs: params.int('bml_connect_timeout_ms'),
      connectAgainMs: params.int('btl_base_connect_again_ms'),
      handshakeTimeoutMs: params.int('btl_base_handshake_timeout_ms'),
      handshakesMax: params.int('btl_base_handshakes_max'),
      aliveTurnMs: ALIVE_PER_TURN_MAX_MS,
    };
  }

  expectCrowd({ factor, connectTimeoutMs, handshakeTimeoutMs }: CrowdLimits): void {
    const aliveTurnMs = ALIVE_PER_TURN_MAX_MS * Math.min(CROWDED_TURNS_MAX, factor);
    Object.assign(this.options, { connectTimeoutMs, handshakeTimeoutMs, aliveTurnMs });
  }

  abstract address(): unknown;
  abstract plan(peer: number, local: unknown, remote: unknown, peerHostId: string): RailPlan[];
  abstract open(): Promise<void>;
  abstract dial(endpoint: StreamEndpoint): Dialing;
  /** ERR_PROTOCOL for what is no address of this transport: it comes from another process. */
  protected abstract checkRemote(remote: unknown): void;
  /** Looks whether our packets to this peer leave by the interface that it came in by. */
  protected abstract checkInbound(stream: ByteStream): InboundCheck;
  /** Why this connection cannot be that rail although its route is right: it came in by another interface. */
  protected wrongInterface(_endpoint: StreamEndpoint, _stream: ByteStream): string | undefined {
    return undefined;
  }
  /** Takes over the stream of a liveness connection, or says why not. */
  protected admitLiveness(_stream: ByteStream, claim: LivenessClaim): string | undefined {
    return `rail ${claim.rail} of rank ${claim.rank} accepts no liveness connection here`;
  }
  /** Work of the module beside its rails (addresses, routes); returns the upcalls made. */
  protected abstract progressModule(now: number): number;
  protected abstract moduleDeadline(): number;
  protected abstract closeListeners(): Promise<void>;

  endpoint(peer: number, rail: number, plan: RailPlan, remote: unknown): BtlEndpoint {
    const endpoint = new StreamEndpoint(this, peer, rail, plan, remote);
    this.endpoints.push(endpoint);
    return endpoint;
  }

  remoteAddressChanged(peer: number, remote: unknown): void {
    this.checkRemote(remote);
    for (const endpoint of this.endpoints) if (endpoint.peer === peer) endpoint.remote = remote;
  }

  forgetPeer(peer: number): boolean {
    const { endpoints } = this;
    for (const endpoint of endpoints) if (endpoint.peer === peer && !endpoint.isIdle) return false;
    for (let i = endpoints.length - 1; i >= 0; i--) if (endpoints[i].peer === peer) endpoints.splice(i, 1);
    return true;
  }

  get isResting(): boolean {
    return this.restUntilMs > 0;
  }

  stir(endpoint?: StreamEndpoint): void {
    if (this.restUntilMs === 0) return;
    this.restUntilMs = 0;
    // While the module rests its links do not hear what time it is.
    endpoint?.isQuiet(this.now, this.aliveMs);
  }

  due(): void {
    this.restUntilMs = 0;
    if (this.dueNow || this.closed) return;
    this.dueNow = true;
    queueMicrotask(this.wake);
  }

  /** For people; told in the next progress(). */
  protected note(text: string, level: 'debug' | 'warn' = 'warn'): void {
    if (this.logLines.length < LOG_LINES_MAX) this.logLines.push({ level, text: `${this.name}: ${text}` });
    else this.logLinesLost++;
    this.due();
  }

  link(endpoint: StreamEndpoint, epoch: number, stream: ByteStream, framer: StreamFramer, now: number, aliveMs: number): Link {
    return new RailLink(endpoint, epoch, stream, framer, now, aliveMs);
  }

  /** The other end is on this host: without a secret nobody else may connect. */
  protected isWithinReach(stream: ByteStream): boolean {
    return isLoopbackAddress(stream.remoteAddress);
  }

  /** A listener accepted a connection. Called from the socket's callback: decides only whether it may shake hands. */
  protected accept(stream: ByteStream): void {
    const from = `${stream.remoteAddress} port ${stream.remotePort}`;
    if (this.closed) {
      stream.destroy();
    } else if (this.context.secret === undefined && !this.isWithinReach(stream)) {
      this.note(`refused a connection from ${from}: ${NO_SECRET_HINT}`);
      stream.destroy();
    } else if (this.inbound.size >= this.options.handshakesMax) {
      this.note(`refused a connection from ${from}: ${this.inbound.size} handshakes are under way (btl_base_handshakes_max)`);
      stream.destroy();
    } else {
      const inbound = new Inbound(stream, new AcceptorHandshake(this.identity, new Uint8Array(randomBytes(NONCE_BYTES))));
      stream.onEvent = this.wake;
      stream.onNews = this.stirred;
      this.inbound.add(inbound);
      this.due();
    }
  }

  /** A stream that this side opened; its events wake the engine. */
  protected adopt(dialing: Dialing, stream: ByteStream): void {
    if (dialing.cancelled || this.closed) {
      stream.destroy();
      return;
    }
    stream.onEvent = this.wake;
    stream.onNews = this.stirred;
    dialing.stream = stream;
    this.due();
  }

  progress(now: number, aliveMs: number): number {
    if (this.closed) return 0;
    let made = 0;
    // A blocking call polls many times within one reading of the clock: only the rails are looked at each time.
    if (now !== this.now || this.dueNow) {
      this.now = now;
      this.dueNow = false;
      this.aliveMs = aliveMs;
      made += this.tellLog();
      made += this.progressModule(now);
    }
    if (now >= this.restUntilMs) {
      const { endpoints } = this;
      let isQuiet = this.mayRest;
      for (let i = 0; i < endpoints.length; i++) {
        const endpoint = endpoints[i];
        if (endpoint.isQuiet(now, aliveMs)) continue;
        isQuiet = false;
        made += endpoint.progress(now, aliveMs);
        if (this.closed) return made;
      }
      this.restUntilMs = isQuiet ? this.endpointDeadline() : 0;
    }
    if (this.inbound.size === 0) return made;
    for (const inbound of this.inbound) {
      made += this.progressInbound(inbound);
      if (this.closed) return made;
    }
    return made;
  }

  nextDeadline(): number {
    if (this.closed) return Number.POSITIVE_INFINITY;
    if (this.dueNow) return 0;
    let at = Math.min(this.moduleDeadline(), this.restUntilMs > 0 ? this.restUntilMs : this.endpointDeadline());
    for (const inbound of this.inbound) {
      const due =
        inbound.dueAliveMs === Number.POSITIVE_INFINITY
          ? 0
          : this.now + Math.min(this.options.aliveTurnMs, Math.max(1, inbound.dueAliveMs - this.aliveMs));
      at = Math.min(at, due);
    }
    return at;
  }

  private endpointDeadline(): number {
    let at = Number.POSITIVE_INFINITY;
    for (const endpoint of this.endpoints) at = Math.min(at, endpoint.nextDeadline());
    return at;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const inbound of this.inbound) inbound.stream.destroy();
    this.inbound.clear();
    const ending: ByteStream[] = [];
    for (const endpoint of this.endpoints) {
      const stream = endpoint.shutdown();
      if (stream !== undefined && stream.status === 'open') ending.push(stream);
    }
    const listeners = this.closeListeners();
    await Promise.all(ending.map((stream) => streamClosed(stream, CLOSE_GRACE_MS)));
    await listeners;
  }

  private tellLog(): number {
    if (this.logLines.length === 0) return 0;
    const lines = this.logLines;
    this.logLines = [];
    if (this.logLinesLost > 0) lines.push({ level: 'warn', text: `${this.name}: and ${this.logLinesLost} more like these` });
    this.logLinesLost = 0;
    for (const { level, text } of lines) this.upcalls.log(level, text);
    return lines.length;
  }

  private progressInbound(inbound: Inbound): number {
    const { stream, framer } = inbound;
    if (inbound.dueAliveMs === Number.POSITIVE_INFINITY) inbound.dueAliveMs = this.aliveMs + this.options.handshakeTimeoutMs;
    if (inbound.state === 'CLOSING') {
      if (stream.status === 'closed' || this.aliveMs >= inbound.dueAliveMs) this.drop(inbound);
      return 0;
    }
    // Polled while the route is looked up too: a dialer that goes on talking is refused, and one that leaves is noticed.
    stream.poll(framer, 64 * 1024);
    if (inbound.state === 'CHECKING' && inbound.closeText !== undefined) return this.refuseInbound(inbound, inbound.closeText);
    if (inbound.state === 'HANDSHAKE') {
      const step = inbound.step;
      inbound.step = step?.kind === 'proved' ? step : undefined;
      if (inbound.closeText !== undefined) return this.refuseInbound(inbound, inbound.closeText);
      switch (step?.kind) {
        case 'send':
          stream.write([step.bytes]);
          break;
        case 'refuse':
          return this.refuseInbound(inbound, step.text, step.bytes);
        case 'close':
          return this.refuseInbound(inbound, step.text);
        case 'liveness': {
          const refusal = this.admitLiveness(stream, step.claim);
          framer.stop();
          if (refusal === undefined) {
            inbound.state = 'DONE';
            this.inbound.delete(inbound);
            return 0;
          }
          // Mostly an epoch that has ended meanwhile; whoever is no dialer of ours learns nothing.
          this.upcalls.log('debug', `${this.name}: refused a liveness connection from ${stream.remoteAddress}: ${refusal}`);
          this.drop(inbound);
          return 1;
        }
        case 'proved':
          inbound.state = 'CHECKING';
          inbound.check = this.checkInbound(stream);
          break;
      }
    }
    if (stream.status === 'closed') {
      // A dialer that gave way to a live epoch leaves like this: nothing to warn of, unless it never said a word.
      this.drop(inbound);
      this.upcalls.log('debug', `${this.name}: ${stream.remoteAddress} left during the handshake`);
      return 1;
    }
    if (inbound.state === 'CHECKING' && inbound.check?.done) return this.admit(inbound);
    if (this.aliveMs >= inbound.dueAliveMs) {
      return this.refuseInbound(inbound, `no handshake within ${this.options.handshakeTimeoutMs} ms`);
    }
    return 0;
  }

  private admit(inbound: Inbound): number {
    const { stream, framer, step, check } = inbound;
    if (step?.kind !== 'proved') return 0;
    const { hello } = step;
    const who = `rank ${hello.rank}, rail ${hello.key}, epoch ${hello.epoch}`;
    if (framer.midFrame || stream.inboundBytes > 0) return this.refuseInbound(inbound, `${who}: bytes before the welcome`);
    if (check?.failure !== undefined) {
      return this.refuseInbound(inbound, `${who}: ROUTE: ${check.failure}`, refuseFrame('ROUTE', check.failure));
    }
    const admission = this.upcalls.admit(this, hello);
    if (!admission.ok) {
      const bytes = refuseFrame(admission.reason, admission.text, admission.highestEpoch);
      return 1 + this.refuseInbound(inbound, `${who}: ${admission.reason}: ${admission.text}`, bytes);
    }
    const endpoint = admission.endpoint;
    if (!(endpoint instanceof StreamEndpoint) || endpoint.module !== this || endpoint.plan.key !== hello.key) {
      const text = `rail ${hello.key} is not a rail of this module`;
      return 1 + this.refuseInbound(inbound, `${who}: RAIL_MISMATCH: ${text}`, refuseFrame('RAIL_MISMATCH', text));
    }
    const wrong = this.wrongInterface(endpoint, stream);
    if (wrong !== undefined) return 1 + this.refuseInbound(inbound, `${who}: ROUTE: ${wrong}`, refuseFrame('ROUTE', wrong));
    if (hello.epoch <= endpoint.highestEpoch) {
      const text = `epoch ${hello.epoch}, the highest here is ${endpoint.highestEpoch}`;
      return 1 + this.refuseInbound(inbound, `${who}: STALE_EPOCH: ${text}`, refuseFrame('STALE_EPOCH', text, endpoint.highestEpoch));
    }
    inbound.state = 'DONE';
    this.inbound.delete(inbound);
    stream.write([welcomeFrame()]);
    return 1 + endpoint.accepted(hello.epoch, stream, framer, inbound.machine.epochKey(), this.now, this.aliveMs);
  }

  /** Closes an inbound connection, after telling it why where that is allowed; the log always hears it. */
  private refuseInbound(inbound: Inbound, text: string, bytes?: Uint8Array): number {
    const { stream } = inbound;
    // This side leaving the job is nothing to warn of, nor is a request to dial.
    const level = text.includes(': FINALIZED: ') || text.includes(': WILL_DIAL: ') ? 'debug' : 'warn';
    this.upcalls.log(level, `${this.name}: refused a connection from ${stream.remoteAddress} port ${stream.remotePort}: ${text}`);
    inbound.framer.stop();
    if (bytes === undefined || stream.status !== 'open') {
      this.drop(inbound);
      return 1;
    }
    stream.write([bytes]);
    stream.end();
    inbound.state = 'CLOSING';
    inbound.dueAliveMs = this.aliveMs + REFUSED_LINGER_MS;
    return 1;
  }

  private drop(inbound: Inbound): void {
    inbound.state = 'DONE';
    this.inbound.delete(inbound);
    inbound.stream.destroy();
  }
}

/** Why a dial without a secret is not even tried. */
export function noSecretReason(address: string): RailReason {
  return { kind: 'refused', text: `not dialling ${address}: ${NO_SECRET_HINT}`, code: 'ERR_HANDSHAKE' };
}

/** Resolves when the stream has closed, or was destroyed after the grace. */
function streamClosed(stream: ByteStream, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish(), graceMs);
    const finish = (): void => {
      clearTimeout(timer);
      stream.destroy();
      resolve();
    };
    stream.onEvent = () => {
      if (stream.status === 'closed') finish();
    };
    if (stream.status === 'closed') finish();
  });
}
