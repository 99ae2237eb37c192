// Where messages of covered contexts pass the PML when they are logged: each is copied into the log before it leaves, it leaves from there, so
// the user's buffer is free at once, and what comes in is numbered and its digest kept. Without a tap nothing of this runs: the PML looks at
// one field that is undefined. What becomes of the numbers when a peer dies is in succession.ts; where the copies lie is in src/ft/log.
import { MultirailError } from '../errors.ts';
import { Deque } from '../util/deque.ts';
import type { Iov } from '../util/iov.ts';
import { serialDiff } from '../util/serial.ts';
import type { Channel } from './channel.ts';
import type { PmlCore } from './core.ts';
import { DIGESTS_MAX, DigestTable } from './digests.ts';
import { nextSeq } from './flows.ts';
import { type Checksum, FULL, LOGGED, type PmlTap, type TapOptions, UNLOGGED } from './message-log.ts';
import { type LoggedMessage, type PmlPeer, type RecvMessage, type RecvRequest, SendRequest } from './records.ts';
import type { Sender } from './sender.ts';

interface WaitingSend {
  peer: PmlPeer;
  readonly ctx: number;
  readonly tag: number;
  readonly buffer: Iov;
  readonly sync: boolean;
  readonly signature: number;
  readonly canGiveUp: boolean;
  readonly request: SendRequest;
  /** Of one that leaves without the log: how many outcomes it waits for. */
  mark?: number;
}

/** It waits until so many outcomes are safe. */
interface GatedSend {
  readonly peer: PmlPeer;
  readonly logged: LoggedMessage;
  readonly mark: number;
}

/** Checksum of a message as both sides compute it. */
export function digestOf(digest: Checksum, tag: number, views: readonly Uint8Array[]): number {
  let crc = tag >>> 0;
  for (const view of views) crc = digest(view, crc);
  return crc >>> 0;
}

export class Tap implements PmlTap {
  readonly options: TapOptions;
  /** By peer: digests of what came since the last committed save. They are with the numbers of their flows. */
  private readonly digestCounts: number[] = [];
  /** The context that was asked for last, and the answer. */
  private lastCtx = -1;
  private isLastCovered = false;
  /** Channels that are held or awaited: the log must keep what it has. */
  suspended = 0;
  /** This process has said that its log is whole: it must stay so until it is decided what becomes of those that died. */
  mustKeep = false;
  readonly counters = { logged: 0, loggedBytes: 0, within: 0, suppressed: 0, replayed: 0, unlogged: 0, gated: 0 };
  /** Processes that go back together with this one. */
  readonly within: ReadonlySet<number>;
  /** Sends to one of these that is dead: they end when this process goes back. */
  private readonly stranded = new Set<SendRequest>();
  /** Contexts that were released since the last committed save: their numbers stay until a save is cut behind their end. */
  readonly released: number[] = [];
  /** What this process has sent again was another message than before. */
  private difference: MultirailError | undefined = undefined;
  private readonly core: PmlCore;
  private readonly sender: Sender;
  private readonly waiting = new Deque<WaitingSend>();
  /** Messages with a number that wait until all outcomes are safe on which they may depend. */
  private readonly gated = new Deque<GatedSend>();
  private isOpen = false;

  constructor(core: PmlCore, sender: Sender, options: TapOptions) {
    this.core = core;
    this.sender = sender;
    this.options = options;
    this.within = new Set(options.within);
  }

  covers(peer: number, ctx: number): boolean {
    if (ctx !== this.lastCtx) {
      this.isLastCovered = this.options.covers(ctx);
      this.lastCtx = ctx;
    }
    return this.isLastCovered && peer !== this.core.options.rank;
  }

  get waitingCount(): number {
    return this.waiting.size + this.gated.size;
  }

  isWaitingTo(peer: PmlPeer): boolean {
    for (const send of this.waiting) if (send.peer === peer) return true;
    for (const send of this.gated) if (send.peer === peer) return true;
    return false;
  }

  /** So many outcomes are safe, or need not be any more. */
  private get safe(): number {
    return this.isOpen ? Number.POSITIVE_INFINITY : (this.options.outcomes?.safe ?? Number.POSITIVE_INFINITY);
  }

  /** Outcomes are not safe yet on which what is sent now may depend. */
  private get isGated(): boolean {
    const { outcomes } = this.options;
    return outcomes !== undefined && outcomes.mark > this.safe;
  }

  /** Somebody waits for what is in the log, or is about to. */
  private get isNeeded(): boolean {
    return this.suspended > 0 || this.mustKeep;
  }

  // ---------------------------------------------------------------- what is sent

  /**
   * What most messages are: short, to a peer that is simply there, with room for them everywhere and nothing to wait for. They are logged and
   * leave without a record of their own. False: nothing has changed, and start() says what becomes of the message.
   */
  sendEager(peer: PmlPeer, ctx: number, tag: number, buffer: Iov, signature: number): boolean {
    if (this.within.size > 0 && this.within.has(peer.rank)) {
      if (peer.channel !== undefined || !this.sender.eager.start(peer, ctx, tag, buffer, signature)) return false;
      this.counters.within++;
      return true;
    }
    if (this.waiting.size > 0 || this.gated.size > 0 || this.isGated || this.difference !== undefined) return false;
    const { channel } = peer;
    if (channel !== undefined && channel.state !== 'LIVE') return false;
    const { eager } = this.sender;
    if (!eager.takes(peer, buffer.bytes)) return false;
    const { nextSeq: seq } = peer.flowOut(ctx);
    if (this.options.log.add(peer.rank, ctx, tag, seq, signature, false, buffer, this.isNeeded) !== LOGGED) return false;
    this.counters.logged++;
    this.counters.loggedBytes += buffer.bytes;
    eager.begin(peer, ctx, tag, nextSeq(peer, ctx), buffer, signature);
    return true;
  }

  /** Logs the message and sends it from there, unless its peer has it. Done on return, but for a synchronous one, and one without room. */
  start(peer: PmlPeer, ctx: number, tag: number, buffer: Iov, sync: boolean, signature: number, canGiveUp: boolean): SendRequest {
    if (this.within.has(peer.rank)) return this.startWithin(peer, ctx, tag, buffer, sync, signature, canGiveUp);
    const request = new SendRequest(peer.rank, tag, buffer.bytes);
    if (!sync && this.sendEager(peer, ctx, tag, buffer, signature)) {
      request.done = true;
      return request;
    }
    const send: WaitingSend = { peer, ctx, tag, buffer, sync, signature, canGiveUp, request };
    // What waits for room has its number before this one.
    if (this.waiting.size === 0 && this.give(send, false)) return request;
    this.core.open(request);
    this.waiting.push(send);
    return request;
  }

  /** As one that is not logged. Whoever is dead there takes this process back with it. */
  private startWithin(
    peer: PmlPeer,
    ctx: number,
    tag: number,
    buffer: Iov,
    sync: boolean,
    signature: number,
    canGiveUp: boolean,
  ): SendRequest {
    this.counters.within++;
    if (peer.channel?.state !== 'HELD') return this.sender.start(peer, ctx, tag, buffer, sync, signature, canGiveUp);
    const request = new SendRequest(peer.rank, tag, buffer.bytes);
    this.core.open(request);
    this.strand(request);
    return request;
  }

  /** Its peer is dead, and goes back together with this process. */
  strand(request: SendRequest): void {
    this.stranded.add(request);
  }

  endStranded(error: MultirailError): void {
    for (const request of this.stranded) this.end(request, error);
    this.stranded.clear();
  }

  /** There may be room now, and outcomes may be safe. */
  retry(): void {
    this.release();
    for (let send = this.waiting.peek(); send !== undefined; send = this.waiting.peek()) {
      if (!this.give(send, true)) return;
      this.waiting.shift();
    }
  }

  /** False when there is no room. */
  private give(send: WaitingSend, isOpen: boolean): boolean {
    const { peer, ctx, tag, buffer, sync, signature, request } = send;
    const { log } = this.options;
    const { channel } = peer;
    const end = (): true => {
      if (isOpen) this.core.complete(request);
      else request.done = true;
      return true;
    };
    const isHeld = channel?.state === 'HELD';
    // Whoever has not repeated itself once says nothing more: others would take it for what they wait for.
    request.error = this.difference ?? (isHeld ? undefined : peer.ended);
    if (request.error !== undefined) return end();
    const { nextSeq: seq } = peer.flowOut(ctx);
    const answer = log.add(peer.rank, ctx, tag, seq, signature, sync, buffer, this.isNeeded);
    if (answer === FULL) return false;
    const isWanted = channel === undefined || channel.wants(ctx, seq);
    if (answer === UNLOGGED) {
      send.mark ??= this.options.outcomes?.mark ?? 0;
      if (send.mark > this.safe) return false;
      this.counters.unlogged++;
      if (isWanted) {
        this.sender.send(peer, ctx, tag, buffer, sync, signature, send.canGiveUp, request, isOpen);
        if (channel?.state === 'REPLAYING') this.checkPassed(peer, channel);
        return true;
      }
    } else {
      this.counters.logged++;
      this.counters.loggedBytes += buffer.bytes;
    }
    nextSeq(peer, ctx);
    if (channel?.state === 'HELD' || channel?.state === 'AWAITED') {
      if (!sync || answer === UNLOGGED) return end();
      log.newest(peer.rank).request = request;
      if (!isOpen) this.core.open(request);
      return true;
    }
    if (!isWanted) {
      this.counters.suppressed++;
      this.compare(peer, send, seq);
    } else if (answer === LOGGED) {
      const logged = log.newest(peer.rank);
      if (sync) {
        logged.request = request;
        if (!isOpen) this.core.open(request);
      }
      this.transmit(peer, logged);
    }
    if (channel?.state === 'REPLAYING') this.checkPassed(peer, channel);
    return sync && isWanted ? true : end();
  }

  /** As an ordinary message, with the number that it has. */
  transmit(peer: PmlPeer, logged: LoggedMessage): void {
    if (this.isGated || this.gated.size > 0) {
      this.counters.gated++;
      // The log may be given up before it leaves.
      this.options.log.hold(logged);
      this.gated.push({ peer, logged, mark: this.options.outcomes?.mark ?? 0 });
    } else this.sender.sendLogged(peer, logged);
  }

  /** What waits for its leave leaves. */
  private release(): void {
    const { safe } = this;
    for (let first = this.gated.peek(); first !== undefined && first.mark <= safe; first = this.gated.peek()) {
      this.gated.shift();
      const { peer, logged } = first;
      if (peer.ended === undefined) this.sender.sendLogged(peer, logged);
      else this.endLogged(logged, peer.ended);
      this.options.log.letGo(logged);
    }
  }

  /** There will be no successors: nothing waits for its leave any more. */
  open(): void {
    this.isOpen = true;
    this.release();
  }

  /** That peer has died: its successor is sent from the log what it asks for. With an error: it has none. */
  dropGated(peer: PmlPeer, error?: MultirailError): void {
    for (let left = this.gated.size; left > 0; left--) {
      const message = this.gated.shift() as GatedSend;
      if (message.peer !== peer) {
        this.gated.push(message);
        continue;
      }
      if (error !== undefined) this.endLogged(message.logged, error);
      this.options.log.letGo(message.logged);
    }
  }

  /** Whoever waits for that message to be matched is told that it will not be. */
  private endLogged(logged: LoggedMessage, error: MultirailError): void {
    const { request } = logged;
    logged.request = undefined;
    if (request !== undefined) this.end(request, error);
  }

  /** The peer has it, from a life before this one: it must be the same. */
  private compare(peer: PmlPeer, { ctx, tag, buffer, request }: WaitingSend, seq: number): void {
    const { digest } = this.options;
    const had = peer.channel?.needs.get(ctx)?.digests.get(seq);
    if (digest === undefined || had === undefined) return;
    const crc = digestOf(digest, tag, buffer.views);
    if (crc === had.crc && buffer.bytes === had.bytes) return;
    const error = new MultirailError(
      'ERR_REPLAY',
      `message ${seq} of context ${ctx} to rank ${peer.rank}, with tag ${tag}, has ${buffer.bytes} bytes and digest ${crc.toString(16)}; before the failure it had ${had.bytes} bytes and digest ${had.crc.toString(16)}: the program does not repeat itself, so record what it cannot foresee (once(), determinism: 'recorded'), or use recovery 'coordinated'`,
      { rank: this.core.options.rank, peer: peer.rank, tag },
    );
    request.error = error;
    this.difference = error;
    this.options.onDiffers?.(error);
  }

  /** Every number that the peer has is passed: what comes now is new to it. */
  checkPassed(peer: PmlPeer, channel: Channel): void {
    for (const [ctx, { nextIn }] of channel.needs) if (serialDiff(peer.flowOut(ctx).nextSeq, nextIn) < 0) return;
    channel.needs = new Map();
    channel.move('LIVE');
  }

  /** A send ends before its time that is not on its way: it waits for room, or for a successor. */
  giveUp(request: SendRequest, error: MultirailError): void {
    for (let left = this.waiting.size; left > 0; left--) {
      const send = this.waiting.shift() as WaitingSend;
      if (send.request === request) this.end(request, error);
      else this.waiting.push(send);
    }
    if (request.done) return;
    if (this.stranded.delete(request)) return this.end(request, error);
    for (const logged of this.options.log.synchronousTo(request.peer)) if (logged.request === request) this.endLogged(logged, error);
  }

  private end(request: SendRequest, error: MultirailError): void {
    request.error = error;
    this.core.complete(request);
  }

  /** Who waits to send to the one sends to the other; without another, it ends. */
  redirect(peer: PmlPeer, successor: PmlPeer | undefined, error?: MultirailError): void {
    for (let left = this.waiting.size; left > 0; left--) {
      const send = this.waiting.shift() as WaitingSend;
      if (send.peer === peer && successor === undefined) {
        this.end(send.request, error as MultirailError);
        continue;
      }
      if (send.peer === peer && successor !== undefined) {
        send.peer = successor;
        send.request.peer = successor.rank;
      }
      this.waiting.push(send);
    }
  }

  // ---------------------------------------------------------------- what comes in

  matched(request: RecvRequest, peer: number, seq: number): void {
    this.options.outcomes?.matched(request, peer, seq);
  }

  received(peer: PmlPeer, ctx: number, seq: number, tag: number, bytes: Uint8Array, length: number): void {
    const { digest } = this.options;
    if (digest === undefined || !this.covers(peer.rank, ctx) || this.within.has(peer.rank)) return;
    this.keepDigest(peer, ctx, seq, length, digest(bytes, tag >>> 0, length));
  }

  placed(message: RecvMessage): void {
    const { received, takeBytes, digestedBytes } = message;
    const missing = received.firstMissing(digestedBytes, takeBytes);
    this.digestTo(message, missing < 0 ? takeBytes : missing);
  }

  completed(message: RecvMessage): void {
    if (!this.digestTo(message, message.takeBytes)) return;
    const { peer, ctx, seq, tag, takeBytes, digest } = message;
    this.keepDigest(peer, ctx, seq, takeBytes, takeBytes === 0 ? tag >>> 0 : digest);
  }

  /** Its digest is that of its first `to` bytes. Bytes that are just here are in the cache still. False: it has none. */
  private digestTo(message: RecvMessage, to: number): boolean {
    const { digest } = this.options;
    const { peer, ctx, tag, request, digestedBytes, takeBytes, messageBytes } = message;
    if (digest === undefined || request === undefined || request.error !== undefined) return false;
    if (takeBytes !== messageBytes || !this.covers(peer.rank, ctx) || this.within.has(peer.rank)) return false;
    if (to <= digestedBytes) return true;
    let crc = digestedBytes === 0 ? tag >>> 0 : message.digest;
    for (const view of message.slice(digestedBytes, to)) crc = digest(view, crc);
    message.digest = crc >>> 0;
    message.digestedBytes = to;
    return true;
  }

  private keepDigest(peer: PmlPeer, ctx: number, seq: number, bytes: number, crc: number): void {
    const { rank } = peer;
    const count = this.digestCounts[rank] ?? 0;
    if (count >= DIGESTS_MAX) return;
    const flow = peer.flowIn(ctx);
    flow.digests ??= new DigestTable();
    if (flow.digests.set(seq, bytes, crc) === true) this.digestCounts[rank] = count + 1;
  }

  /** The flows of the one, with their digests, are the other's. */
  moveDigests(peer: number, successor: number): void {
    this.digestCounts[successor] = this.digestCounts[peer] ?? 0;
    this.digestCounts[peer] = 0;
  }

  /** That peer sends nothing again below these numbers. */
  trimDigestsOf(peer: PmlPeer, nextInOf: (ctx: number) => number): void {
    let count = 0;
    for (const [ctx, { digests }] of peer.flowsIn) {
      if (digests === undefined) continue;
      digests.trim(nextInOf(ctx));
      count += digests.size;
    }
    this.digestCounts[peer.rank] = count;
  }

  /** Digests below the numbers of a committed save are not asked for any more. */
  trimDigests(nextInOf: (peer: number, ctx: number) => number): void {
    for (const { rank, flowsIn } of this.core.peers.values()) {
      let count = 0;
      for (const [ctx, { digests }] of flowsIn) {
        if (digests === undefined) continue;
        digests.trim(nextInOf(rank, ctx));
        count += digests.size;
      }
      this.digestCounts[rank] = count;
    }
  }
}
