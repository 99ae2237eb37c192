// The local socket of a shared-memory rail, as a ByteStream over the native part. It carries the handshake with the descriptor of the
// segment; afterwards it is the doorbell, and its end tells of the peer's death, since the kernel closes it whatever kills the peer. A
// sleeper is woken by a byte on this socket and not through a descriptor that it passes: a peer could pass one on which writing blocks.
// Here each write asks not to block, and a peer that does not read its rings loses only those.
import { constants } from 'node:os';
import { type NativeBinding, POLL_IN, POLL_OUT } from '../../native/binding.ts';
import type { Poller, PollTarget } from '../../native/poller.ts';
import type { ByteStream, StreamReader, StreamStatus } from '../base/byte-stream.ts';
import type { RailReason } from '../btl.ts';

/** A handshake is a few hundred bytes; on a live rail a byte comes for each time that this side slept. */
const RECEIVE_BYTES = 4096;
/** A peer that rings all the time gets no more of a turn than this. */
const READS_MAX = 4;
/** Bytes that wait for the kernel: more than a handshake has never to be kept. */
const QUEUED_BYTES_MAX = 4096;
const RING = Uint8Array.of(1);
const EAGAIN = -constants.errno.EAGAIN;
const EINTR = -constants.errno.EINTR;

const nothing = (): void => {};

export class UnixStream implements ByteStream, PollTarget {
  status: StreamStatus = 'open';
  failure: RailReason | undefined = undefined;
  readonly inboundBytes = 0;
  readonly localAddress: string;
  readonly remoteAddress: string;
  readonly remotePort = 0;
  onEvent: () => void = nothing;
  onNews: () => void = nothing;
  wantsRoom = false;
  /** Process at the other end, as the kernel tells it. */
  readonly peerPid: number;
  /** Something is to be read, or the peer has hung up: look with poll(). */
  ready = true;
  private readonly native: NativeBinding;
  private readonly poller: Poller;
  private readonly fd: number;
  private readonly buffer = new Uint8Array(RECEIVE_BYTES);
  private received: number[] = [];
  /** How many descriptors the peer may still pass: whoever passes more is not one of us. */
  private takes: number;
  /** Go with the first bytes that are written; they are the caller's. */
  private passing: readonly number[];
  private queue: Uint8Array[] = [];
  queuedBytes = 0;
  /** Set by the dialer: what must be given back when the stream closes before a link took it. */
  onClose: (() => void) | undefined = undefined;

  private readonly note: () => void;

  /**
   * Owns `fd` from here on. `passing`: descriptors that go with the first write; they stay open here. `takes`: how many the peer
   * passes with its handshake. `note` is called when the poller has something to tell, and only notes it.
   */
  constructor(poller: Poller, fd: number, peerPid: number, passing: readonly number[], takes: number, note: () => void) {
    this.note = note;
    this.native = poller.native;
    this.poller = poller;
    this.fd = fd;
    this.peerPid = peerPid;
    this.passing = passing;
    this.takes = takes;
    this.localAddress = `process ${process.pid}`;
    this.remoteAddress = `process ${peerPid}`;
    poller.add(fd, this, POLL_IN);
  }

  get hasNews(): boolean {
    return this.ready || this.queue.length > 0 || this.status !== 'open';
  }

  onReady(): void {
    this.ready = true;
    this.note();
  }

  /** The descriptors that came, which become the caller's. */
  takeDescriptors(): number[] {
    const taken = this.received;
    this.received = [];
    this.takes = 0;
    return taken;
  }

  poll(reader: StreamReader, budgetBytes: number): number {
    if (this.queue.length > 0) this.writeQueue();
    let taken = 0;
    while (this.status === 'open' && this.ready && taken < budgetBytes && !reader.stopped) {
      const bytes = this.read();
      if (bytes <= 0) break;
      taken += bytes;
      reader.push(this.buffer.subarray(0, bytes));
    }
    return taken;
  }

  /**
   * On a live rail: takes the rings that came, which have done their work by making a turn. True when the peer has hung up, or passes
   * what it must not.
   */
  hasEnded(): boolean {
    for (let i = 0; i < READS_MAX && this.status === 'open' && this.ready; i++) {
      const bytes = this.read();
      // The poller tells of what comes after the last byte.
      if (bytes > 0 && bytes < RECEIVE_BYTES) this.ready = false;
    }
    return this.status === 'closed';
  }

  /** On a live rail: wakes the peer, which sleeps. */
  ring(): void {
    // Bytes that wait for room wake it as well, and nothing may come in between them. Where there is no room at all it has rings to
    // read, and a socket that has failed is found out by the next read.
    if (this.status === 'open' && this.queue.length === 0) this.native.send(this.fd, RING, 0, RING.length);
  }

  write(chunks: readonly Uint8Array[]): void {
    if (this.status !== 'open') return;
    for (const chunk of chunks) {
      this.queue.push(chunk);
      this.queuedBytes += chunk.length;
    }
    if (this.queuedBytes > QUEUED_BYTES_MAX) this.close({ kind: 'error', text: `${this.queuedBytes} bytes wait for a local socket` });
    else this.writeQueue();
  }

  /** Nothing of value can be unwritten: everything but the handshake goes through the rings. */
  end(): void {
    this.writeQueue();
    this.close({ kind: 'closed', text: 'closed here' });
  }

  destroy(): void {
    this.onEvent = nothing;
    this.close({ kind: 'closed', text: 'closed here' });
  }

  private read(): number {
    const bytes = this.native.recvDescriptors(this.fd, this.buffer, this.received);
    if (this.received.length > this.takes) {
      this.close({ kind: 'damaged', text: `the peer passed ${this.received.length} descriptors, not ${this.takes}` });
      return 0;
    }
    if (bytes === EINTR) return 0;
    if (bytes === EAGAIN) this.ready = false;
    else if (bytes === 0) this.close({ kind: 'closed', text: 'the peer closed the connection' });
    else if (bytes < 0) this.close({ kind: 'closed', text: `the local socket failed (errno ${-bytes})` });
    return bytes;
  }

  private writeQueue(): void {
    const { native, fd } = this;
    while (this.queue.length > 0 && this.status === 'open') {
      const chunk = this.queue[0];
      const bytes = this.passing.length > 0 ? native.sendDescriptors(fd, chunk, this.passing) : native.send(fd, chunk, 0, chunk.length);
      if (bytes === EAGAIN || bytes === EINTR) {
        this.poller.change(fd, POLL_IN | POLL_OUT);
        return;
      }
      if (bytes < 0) {
        this.close({ kind: 'closed', text: `the local socket failed (errno ${-bytes})` });
        return;
      }
      this.passing = [];
      this.queuedBytes -= bytes;
      if (bytes === chunk.length) this.queue.shift();
      else this.queue[0] = chunk.subarray(bytes);
      if (this.queue.length === 0) this.poller.change(fd, POLL_IN);
    }
  }

  private close(reason: RailReason): void {
    if (this.status === 'closed') return;
    this.status = 'closed';
    this.failure = reason;
    this.queue = [];
    this.queuedBytes = 0;
    this.poller.remove(this.fd);
    this.native.close(this.fd);
    for (const fd of this.received) this.native.close(fd);
    this.received = [];
    this.onClose?.();
    this.onClose = undefined;
  }
}
