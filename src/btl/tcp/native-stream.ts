// A ByteStream over a non-blocking socket of the native part. Nothing is queued on the way in: poll() reads the socket straight into the
// sink of a placed payload, or into an arena that all streams of a poller share and that the reader empties before poll() goes on. What the
// kernel does not take on the way out waits here, in order.
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { type NativeBinding, POLL_IN, POLL_OUT } from '../../native/binding.ts';
import type { Poller, PollTarget } from '../../native/poller.ts';
import type { ByteStream, StreamReader, StreamStatus } from '../base/byte-stream.ts';
import type { RailReason } from '../btl.ts';

/** One read takes at most this much besides what goes straight into a sink. */
const ARENA_BYTES = 256 * 1024;
/**
 * Read behind a sink, and after one that was filled: headers and small frames. More would only be copied out of the arena, since large
 * payloads follow one another.
 */
const BEHIND_SINK_BYTES = 16 * 1024;
/** The kernel looks at no more chunks in one sendmsg. */
const IOV_MAX = 1024;
/** Written chunks that may stand before the head of the queue. */
const QUEUE_KEPT = 1024;
/** Reads of a stream that nobody reads any more, in one turn. */
const DISCARDS_MAX = 4;
const { EAGAIN, ECONNREFUSED, ECONNRESET, EFAULT, EPIPE, ETIMEDOUT } = constants.errno;

interface Arena {
  bytes: Uint8Array;
  behindSink: Uint8Array;
}

/** By poller, that is by runtime: its streams are read one after the other. */
const arenas = new WeakMap<Poller, Arena>();

function arenaOf(poller: Poller): Arena {
  let arena = arenas.get(poller);
  if (arena === undefined) {
    const bytes = new Uint8Array(ARENA_BYTES);
    arena = { bytes, behindSink: bytes.subarray(0, BEHIND_SINK_BYTES) };
    arenas.set(poller, arena);
  }
  return arena;
}

/** What the negative errno of a call says about the rail, in the words of node:net. */
export function errnoFailure(call: string, result: number, connecting: boolean): RailReason {
  const errno = -result;
  const text = `${call} ${getSystemErrorName(result)}`;
  if (connecting) return { kind: errno === ETIMEDOUT ? 'timeout' : 'error', text, ...(errno === ECONNREFUSED && { isNobody: true }) };
  return { kind: errno === ECONNRESET || errno === EPIPE ? 'closed' : 'error', text };
}

const nothing = (): void => {};

export class NativeStream implements ByteStream, PollTarget {
  status: StreamStatus;
  failure: RailReason | undefined = undefined;
  /** Nothing waits for poll() but in the kernel. */
  readonly inboundBytes = 0;
  queuedBytes = 0;
  more = false;
  localAddress = '';
  remoteAddress = '';
  remotePort = 0;
  onEvent: () => void = nothing;
  onNews: () => void = nothing;
  wantsRoom = false;
  private readonly poller: Poller;
  private readonly native: NativeBinding;
  /** -1 once it is closed. */
  private fd: number;
  private reader: StreamReader | undefined = undefined;
  /** The poller says, or has not yet denied, that a read would find something. */
  private readable = false;
  /** The last read found the end of what was there: a turn of the engine that polls again at once is spared the call. */
  private justDrained = false;
  /** Readiness was told and no poll() has come since: whoever does not poll is not told twice, or the event loop would spin. */
  private toldInVain = false;
  private deaf = false;
  /** Bits that the poller watches; 0 = the descriptor is not in its set. */
  private interest = 0;
  private hot = false;
  /** The last read went into a sink: another large payload is likely to follow. */
  private sinkBefore = false;
  private queue: Uint8Array[] = [];
  private queueHead = 0;
  /** Nothing in the queue is memory of somebody else. */
  private isOwnQueue = false;
  /** Bytes of the head chunk that are written. */
  private headSkip = 0;
  /** Set when a write failed: what came in before is still read, then the stream is closed for this reason. */
  private writeFailure: RailReason | undefined = undefined;
  private ended = false;
  private destroyed = false;
  private told = false;

  /** Takes over the descriptor: `connecting` = of tcpConnect(), else of accept(). */
  constructor(poller: Poller, fd: number, connecting: boolean) {
    this.poller = poller;
    this.native = poller.native;
    this.fd = fd;
    this.status = connecting ? 'connecting' : 'open';
    if (connecting) this.watch();
    else this.opened();
  }

  /** Name of the congestion control in use; empty when it is closed. */
  get congestion(): string {
    return this.fd < 0 ? '' : this.native.congestionOf(this.fd);
  }

  get hasNews(): boolean {
    return this.readable || this.status !== 'open' || this.queuedBytes > 0 || this.writeFailure !== undefined || this.poller.direct;
  }

  poll(reader: StreamReader, budgetBytes: number): number {
    this.reader = reader;
    this.toldInVain = false;
    this.more = false;
    // While it is looked at again and again the kernel is asked for readiness seldom: it may have room long before that.
    if (this.queuedBytes > 0 && this.poller.direct) this.writeQueued();
    if (this.status !== 'open') return 0;
    if (!this.readable && this.writeFailure === undefined) {
      if (this.justDrained || !this.poller.direct) {
        this.justDrained = false;
        return 0;
      }
    }
    return this.read(reader, budgetBytes);
  }

  private read(reader: StreamReader, budgetBytes: number): number {
    const { native, poller } = this;
    const arena = arenaOf(poller);
    let taken = 0;
    while (!reader.stopped) {
      if (taken >= budgetBytes) {
        this.readable = true;
        this.more = true;
        return taken;
      }
      const target = reader.target();
      let sinkBytes = 0;
      let room: number;
      let got: number;
      if (target === undefined) {
        room = this.sinkBefore ? BEHIND_SINK_BYTES : ARENA_BYTES;
        got = native.recv(this.fd, arena.bytes, 0, room);
        // Small frames by the dozen. Nothing, or a frame or two, is no reason to expect anything else than a payload again.
        if (got === room) this.sinkBefore = false;
      } else {
        sinkBytes = target.length;
        room = sinkBytes + BEHIND_SINK_BYTES;
        got = native.recv2(this.fd, target, 0, sinkBytes, arena.behindSink);
        this.sinkBefore = true;
      }
      if (got <= 0) {
        this.readEnded(got);
        return taken;
      }
      taken += got;
      if (sinkBytes > 0) reader.filled(Math.min(got, sinkBytes));
      if (got > sinkBytes && !reader.stopped) reader.push(arena.bytes, got - sinkBytes);
      // The upcalls may have ended the rail.
      if (this.status !== 'open') return taken;
      // Less than there was room for: the kernel has no more, and says so when it has. After a failed write the end is looked for.
      if (got < room && this.writeFailure === undefined) {
        this.justDrained = true;
        this.drained();
        return taken;
      }
    }
    return taken;
  }

  /** recv gave nothing: end of stream, an error, or nothing now. */
  private readEnded(got: number): void {
    if (got === -EAGAIN) {
      if (this.writeFailure === undefined) this.drained();
      else this.close(this.writeFailure);
    } else if (got === 0) {
      this.close(this.writeFailure ?? { kind: 'closed', text: 'the peer closed the connection' });
    } else {
      this.close(errnoFailure('read', got, false));
    }
  }

  private drained(): void {
    this.readable = false;
    if (!this.deaf) return;
    this.deaf = false;
    this.watch();
  }

  write(chunks: readonly Uint8Array[]): void {
    if (this.status !== 'open' || this.ended || this.writeFailure !== undefined) return;
    let bytes = 0;
    for (const chunk of chunks) bytes += chunk.length;
    if (bytes === 0) return;
    this.isOwnQueue = false;
    if (this.queuedBytes > 0) {
      for (const chunk of chunks) if (chunk.length > 0) this.queue.push(chunk);
      this.queuedBytes += bytes;
      return;
    }
    const { native, fd } = this;
    const sent = chunks.length === 1 ? native.send(fd, chunks[0], 0, bytes) : native.sendv(fd, chunks, 0, 0);
    if (sent === bytes) return;
    if (sent < 0 && sent !== -EAGAIN) {
      this.writeFailed(sent);
      return;
    }
    this.queue = chunks.filter((chunk) => chunk.length > 0);
    this.queueHead = 0;
    this.headSkip = 0;
    this.queuedBytes = bytes;
    if (sent > 0) this.advance(sent);
    if (sent > 0 && chunks.length > IOV_MAX) this.writeQueued();
    else this.watch();
  }

  writePiece(bytes: Uint8Array, from: number, to: number): void {
    if (this.status !== 'open' || this.ended || this.writeFailure !== undefined || from === to) return;
    if (this.queuedBytes === 0) {
      const sent = this.native.send(this.fd, bytes, from, to - from);
      if (sent === to - from) return;
      if (sent < 0 && sent !== -EAGAIN) {
        this.writeFailed(sent);
        return;
      }
      this.queue = [bytes.subarray(from + Math.max(0, sent), to)];
      this.queueHead = 0;
      this.headSkip = 0;
      this.queuedBytes = to - from - Math.max(0, sent);
      this.watch();
      return;
    }
    this.queue.push(bytes.subarray(from, to));
    this.queuedBytes += to - from;
  }

  letGo(): void {
    if (this.isOwnQueue || this.queuedBytes === 0) return;
    const { queue } = this;
    // (A slice() of a Buffer would be the same memory, and one that was detached cannot be copied.)
    for (let i = this.queueHead; i < queue.length; i++) if (queue[i].length > 0) queue[i] = new Uint8Array(queue[i]);
    this.isOwnQueue = true;
  }

  private writeQueued(): void {
    while (this.queuedBytes > 0) {
      if (this.isQueueBroken()) {
        this.writeFailed(-EFAULT);
        return;
      }
      const offered = this.queue.length - this.queueHead <= IOV_MAX ? this.queuedBytes : Number.POSITIVE_INFINITY;
      const sent = this.native.sendv(this.fd, this.queue, this.queueHead, this.headSkip);
      if (sent === -EAGAIN) break;
      if (sent < 0) {
        this.writeFailed(sent);
        return;
      }
      this.advance(sent);
      if (this.queuedBytes > 0 && offered !== Number.POSITIVE_INFINITY) break;
    }
    if (this.queuedBytes === 0) {
      this.dropQueue();
      if (this.ended) this.native.shutdownWrite(this.fd);
    }
    this.watch();
  }

  /** Memory that waits to be written was taken away (a detached buffer): frames behind it would be read as its bytes. */
  private isQueueBroken(): boolean {
    const end = Math.min(this.queue.length, this.queueHead + IOV_MAX);
    for (let i = this.queueHead; i < end; i++) if (this.queue[i].length === 0) return true;
    return false;
  }

  private advance(bytes: number): void {
    this.queuedBytes -= bytes;
    let left = bytes + this.headSkip;
    while (this.queueHead < this.queue.length && left >= this.queue[this.queueHead].length) {
      left -= this.queue[this.queueHead].length;
      this.queueHead++;
    }
    this.headSkip = left;
    if (this.queueHead > QUEUE_KEPT && this.queueHead * 2 > this.queue.length) {
      this.queue.splice(0, this.queueHead);
      this.queueHead = 0;
    }
  }

  private dropQueue(): void {
    this.queue = [];
    this.queueHead = 0;
    this.headSkip = 0;
    this.queuedBytes = 0;
  }

  private writeFailed(result: number): void {
    const failure = errnoFailure('write', result, false);
    this.dropQueue();
    if (this.ended) {
      this.close(failure);
      return;
    }
    this.writeFailure = failure;
    this.more = true;
    this.watch();
    this.changed();
  }

  end(): void {
    if (this.destroyed || this.ended) return;
    this.ended = true;
    // Nobody reads after this: what a failed write left to be read is not waited for.
    if (this.writeFailure !== undefined) this.close(this.writeFailure);
    if (this.status === 'open' && this.queuedBytes === 0) this.native.shutdownWrite(this.fd);
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.onEvent = nothing;
    this.onNews = nothing;
    this.reader = undefined;
    if (this.status === 'closed') return;
    this.status = 'closed';
    this.failure = { kind: 'closed', text: 'closed here' };
    this.release();
  }

  get descriptor(): number {
    return this.status === 'open' ? this.fd : -1;
  }

  detach(): number {
    if (this.status !== 'open' || this.queuedBytes > 0) return -1;
    const { fd } = this;
    if (this.interest !== 0) this.poller.remove(fd, this.hot);
    this.interest = 0;
    this.fd = -1;
    this.destroy();
    return fd;
  }

  /** Called by the poller: notes what is ready, and writes what waits, which needs nobody's consent. */
  onReady(events: number): void {
    if (this.fd < 0) return;
    this.onNews();
    if (this.status === 'connecting') {
      this.connected();
      return;
    }
    if (this.queuedBytes > 0 && events !== POLL_IN) this.writeQueued();
    // An error or a hang-up is found by reading.
    if (events === POLL_OUT || this.status !== 'open') return;
    this.readable = true;
    if (this.ended && this.reader?.stopped !== false) {
      this.discard();
    } else if (!this.toldInVain) {
      this.toldInVain = true;
    } else {
      this.deaf = true;
      this.watch();
    }
  }

  /** The peer's end is waited for, and what it sends until then is of no use to anybody. */
  private discard(): void {
    const { bytes } = arenaOf(this.poller);
    for (let i = 0; i < DISCARDS_MAX && this.readable && this.status === 'open'; i++) {
      const got = this.native.recv(this.fd, bytes, 0, bytes.length);
      if (got <= 0) this.readEnded(got);
    }
  }

  private connected(): void {
    const result = this.native.connectResult(this.fd);
    if (result < 0) {
      this.close(errnoFailure('connect', result, true));
      return;
    }
    this.poller.remove(this.fd);
    this.interest = 0;
    this.status = 'open';
    this.opened();
    if (this.ended && this.status === 'open') this.native.shutdownWrite(this.fd);
    this.changed();
  }

  private opened(): void {
    try {
      this.localAddress = this.native.socketName(this.fd).address;
      const peer = this.native.peerName(this.fd);
      this.remoteAddress = peer.address;
      this.remotePort = peer.port;
    } catch (error) {
      // Reset before it was looked at.
      this.close({ kind: 'closed', text: error instanceof Error ? error.message : String(error) });
      return;
    }
    this.hot = true;
    this.watch();
  }

  /** Brings what the poller watches in line with the state. */
  private watch(): void {
    if (this.fd < 0) return;
    const wanted = this.status === 'connecting' ? POLL_OUT : (this.deaf ? 0 : POLL_IN) | (this.queuedBytes > 0 ? POLL_OUT : 0);
    if (wanted === this.interest) return;
    if (wanted === 0) this.poller.remove(this.fd, this.hot);
    else if (this.interest === 0) this.poller.add(this.fd, this, wanted, this.hot);
    else this.poller.change(this.fd, wanted);
    this.interest = wanted;
  }

  private close(reason: RailReason): void {
    if (this.status === 'closed') return;
    this.status = 'closed';
    this.failure = reason;
    this.release();
    this.changed();
  }

  private release(): void {
    const { fd } = this;
    if (fd < 0) return;
    if (this.interest !== 0) this.poller.remove(fd, this.hot);
    this.interest = 0;
    this.fd = -1;
    this.native.close(fd);
    this.dropQueue();
    this.readable = false;
    this.more = false;
  }

  /** After this turn, since the owner may be in the middle of something now. */
  private changed(): void {
    if (this.told || this.destroyed) return;
    this.told = true;
    queueMicrotask(() => {
      this.told = false;
      if (!this.destroyed) this.onEvent();
    });
  }
}
