// One reliable-connected queue pair with its buffers: requests that are staged and posted in lists, receive buffers that are posted again,
// the room of the send queue, the end of it all. It does not know what is in the buffers.
import type { OneSidedRequest } from './one-sided.ts';
import type { LocalPort, PortAddress } from './ports.ts';
import type { Rdma } from './rdma.ts';
import type { Setup } from './verbs-hdr.ts';

/** Requests are posted at the latest when so many are staged. */
export const POST_BATCH = 16;
/** Receive buffers beyond those that the peer counts on, so that they need not be posted again one by one. */
const REPOST_BATCH = 8;
/** Every so many requests one completes, and gives the room of those before it back. */
const SIGNAL_EVERY = 16;
const COMPLETIONS_MAX = 32;
/** In the id of a receive request; the rest is the number of its buffer. Of a send: its number, modulo 2^31. */
const RECEIVE_BIT = 0x80000000;
const ID_MASK = 0x7fffffff;
/** A request for which the peer has no buffer is not tried again: credit says that there is one, and a rail must not wait without end. */
const RNR_RETRIES = 0;
/** What the other side would wait: 0.64 ms. */
const RNR_TIMER = 12;

/** Options of the queue pair, as the parameters btl_verbs_… state them. */
export interface VerbsOptions {
  /** 4.096 us * 2 ** timeout until a packet is sent again, and how often it is. */
  timeout: number;
  retryCount: number;
  /** An idle rail is tried so often, by the devices alone. */
  beatMs: number;
  readsMax: number;
  inlineBytesMax: number;
}

export interface PairShape {
  /** Buffers for sending, and as many that the peer counts on. */
  buffers: number;
  bufferBytes: number;
  /** Requests besides one for each buffer. */
  moreRequests: number;
}

export class BufferedPair {
  /** The buffers: first those for sending, then those for receiving. Only this side may touch them. */
  memory = new Uint8Array(0);
  words = new Int32Array(0);
  doubles = new Float64Array(0);
  /** Requests are counted from 1 on; those up to `retired` have left the send queue. */
  retired = 0;
  private posted = 0;
  /** Written, and not yet given to the device. */
  staged = 0;
  private unsignaled = 0;
  private signaled = 0;
  private requestsMax = 0;
  private inlineBytes = 0;
  private regionId = 0;
  private stagedReceives = 0;
  private readonly rdma: typeof Rdma;
  private readonly options: VerbsOptions;
  private readonly port: LocalPort;
  /** The address of the port, as the peer is told it: the port may have others later. */
  readonly address: PortAddress;
  private readonly shape: PairShape;
  private readonly requestWords: Uint32Array;
  private readonly receiveWords: Uint32Array;
  private readonly completions: Uint32Array;
  private found = 0;
  private at = 0;
  /** Undefined before open() and once it is destroyed. */
  private pair: Rdma.QueuePair | undefined = undefined;
  private queue: Rdma.CompletionQueue | undefined = undefined;
  private region: Rdma.Region | undefined = undefined;
  // The completion that next() took: what it is, and whose.
  status = 0;
  isReceive = false;
  buffer = 0;
  bytes = 0;

  constructor(rdma: typeof Rdma, options: VerbsOptions, port: LocalPort, shape: PairShape) {
    this.rdma = rdma;
    this.options = options;
    this.port = port;
    this.shape = shape;
    this.address = port.address;
    // As many as there are buffers may wait for the peer to be ready.
    this.requestWords = new Uint32Array(shape.buffers * rdma.REQUEST_WORDS);
    this.receiveWords = new Uint32Array(REPOST_BATCH * rdma.REQUEST_WORDS);
    this.completions = new Uint32Array(COMPLETIONS_MAX * rdma.COMPLETION_WORDS);
  }

  /** Makes the device's objects and posts all receive buffers; throws what the device says. */
  open(): void {
    const { rdma, options, shape } = this;
    const { device, number } = this.port;
    const receives = shape.buffers + REPOST_BATCH;
    const requests = shape.buffers + shape.moreRequests;
    this.memory = rdma.memory((shape.buffers + receives) * shape.bufferBytes);
    this.words = new Int32Array(this.memory.buffer);
    this.doubles = new Float64Array(this.memory.buffer);
    this.region = device.domain.register(this.memory, rdma.ACCESS.LOCAL_WRITE);
    this.regionId = this.region.id;
    this.queue = device.handle.createCompletionQueue(requests + receives, device.channel);
    this.pair = device.domain.createQueuePair({
      sendQueue: this.queue,
      sendRequests: requests,
      receiveRequests: receives,
      sendPieces: rdma.PIECES_MAX,
      inlineBytes: options.inlineBytesMax,
    });
    this.requestsMax = Math.min(requests, this.pair.sendRequests);
    this.inlineBytes = Math.min(this.pair.inlineBytes, options.inlineBytesMax);
    const access = rdma.ACCESS.REMOTE_WRITE | rdma.ACCESS.REMOTE_READ;
    this.pair.modify({ state: rdma.QP_STATE.INIT, pkeyIndex: 0, port: number, access });
    for (let i = 0; i < receives; i++) this.repost(i);
    this.postReceives();
  }

  /** What the peer must know of it. */
  setup(psn: number): Setup {
    const { port, shape } = this;
    return {
      queuePair: this.pair?.number ?? 0,
      psn,
      lid: this.address.lid,
      mtu: port.mtu,
      readsAsTarget: Math.min(this.options.readsMax, port.device.attributes.readsAsTargetMax),
      buffers: shape.buffers,
      bufferBytes: shape.bufferBytes,
      gid: this.address.gid,
    };
  }

  /** From here on it can send and receive; throws what the device says. */
  connect(peer: Setup, psn: number): void {
    const { rdma, options, port, pair } = this;
    const address: Rdma.PathAddress = { port: port.number };
    if (port.link === 'infiniband') address.lid = peer.lid;
    else Object.assign(address, { gid: peer.gid, gidIndex: this.address.gidIndex, hopLimit: 64 });
    const { readsAsTargetMax, readsAsInitiatorMax } = port.device.attributes;
    pair?.modify({
      state: rdma.QP_STATE.RTR,
      mtu: Math.min(port.mtu, peer.mtu),
      remoteNumber: peer.queuePair,
      receivePsn: peer.psn,
      readsAsTarget: Math.min(options.readsMax, readsAsTargetMax),
      rnrTimer: RNR_TIMER,
      address,
    });
    pair?.modify({
      state: rdma.QP_STATE.RTS,
      timeout: options.timeout,
      retryCount: options.retryCount,
      rnrRetry: RNR_RETRIES,
      sendPsn: psn,
      readsAsInitiator: Math.max(1, Math.min(options.readsMax, readsAsInitiatorMax, peer.readsAsTarget)),
    });
  }

  get id(): number {
    return this.pair?.id ?? 0;
  }

  /** Where the buffer of that record, or that receive buffer, begins. */
  sendAt(record: number): number {
    return ((record >>> 0) % this.shape.buffers) * this.shape.bufferBytes;
  }
  receiveAt(buffer: number): number {
    return (this.shape.buffers + buffer) * this.shape.bufferBytes;
  }

  // --- requests out

  /** Number of the last request that was staged. */
  get lastRequest(): number {
    return this.posted + this.staged;
  }

  /** Requests that will complete by themselves are under way. */
  get isAwaiting(): boolean {
    return this.signaled > 0;
  }

  /** For requests that are staged and not posted yet. */
  canStage(requests: number): boolean {
    return this.staged + requests <= this.shape.buffers;
  }

  hasRoom(requests: number): boolean {
    return this.lastRequest - this.retired + requests < this.requestsMax;
  }

  /** The next request completes by itself. */
  signalNext(): void {
    this.unsignaled = SIGNAL_EVERY;
  }

  /** What stands at that place of the memory goes into a receive buffer of the peer. The caller posts when POST_BATCH are staged. */
  stageSend(at: number, bytes: number): void {
    const { REQUEST_WORDS, OPCODE, SEND_FLAG } = this.rdma;
    const words = this.requestWords;
    const w = this.staged * REQUEST_WORDS;
    const isSignaled = this.unsignaled + 1 >= SIGNAL_EVERY;
    words[w] = OPCODE.SEND;
    words[w + 1] = (isSignaled ? SEND_FLAG.SIGNALED : 0) | (bytes <= this.inlineBytes ? SEND_FLAG.INLINE : 0);
    words[w + 2] = (this.lastRequest + 1) & ID_MASK;
    words[w + 3] = 0;
    words[w + 8] = 1;
    writePiece(words, w + 12, this.regionId, at, bytes);
    this.count(isSignaled);
  }

  /** A put or get, or a part of one; `isLast`: it completes by itself. */
  stageOneSided(opcode: number, request: OneSidedRequest, leases: readonly Rdma.Lease[], isLast: boolean): void {
    this.rdma.writeRequest(this.requestWords, this.staged, {
      opcode,
      flags: isLast ? this.rdma.SEND_FLAG.SIGNALED : 0,
      id: (this.lastRequest + 1) & ID_MASK,
      remoteAddress: request.address,
      rkey: request.rkey,
      pieces: request.pieces.map(({ length }, i) => [leases[i].region, leases[i].offset, length] as const),
    });
    this.count(isLast);
  }

  /** A write of nothing: the peer's device acknowledges it, and needs neither its process nor its memory. */
  stageNothing(): void {
    const { OPCODE, SEND_FLAG } = this.rdma;
    const id = (this.lastRequest + 1) & ID_MASK;
    this.rdma.writeRequest(this.requestWords, this.staged, { opcode: OPCODE.WRITE, flags: SEND_FLAG.SIGNALED, id });
    this.count(true);
  }

  private count(isSignaled: boolean): void {
    this.staged++;
    if (isSignaled) {
      this.unsignaled = 0;
      this.signaled++;
    } else this.unsignaled++;
  }

  /** Gives the staged requests to the device; answers with why it took not all of them. */
  post(): string | undefined {
    const { staged, pair } = this;
    if (staged === 0 || pair === undefined) return undefined;
    this.staged = 0;
    this.posted += staged;
    const taken = pair.postSend(this.requestWords, staged);
    if (taken === staged) return undefined;
    return `the device refused a request: error ${this.rdma.errorOf(this.requestWords, taken)}`;
  }

  // --- receive buffers

  /** That buffer may be filled again. Given to the device a few at a time; answers with why it did not take them. */
  repost(buffer: number): string | undefined {
    const words = this.receiveWords;
    const w = this.stagedReceives++ * this.rdma.REQUEST_WORDS;
    words[w + 2] = (RECEIVE_BIT | buffer) >>> 0;
    words[w + 3] = 0;
    words[w + 8] = 1;
    writePiece(words, w + 12, this.regionId, this.receiveAt(buffer), this.shape.bufferBytes);
    return this.stagedReceives === REPOST_BATCH ? this.postReceives() : undefined;
  }

  private postReceives(): string | undefined {
    const staged = this.stagedReceives;
    this.stagedReceives = 0;
    const { pair } = this;
    if (staged === 0 || pair === undefined || pair.postReceive(this.receiveWords, staged) === staged) return undefined;
    return 'the device refused a receive buffer';
  }

  // --- completions in

  /** Completions were taken from the device and wait for next(). */
  get hasMore(): boolean {
    return this.at < this.found;
  }

  /** Takes the next completion; false when no completion is there. */
  next(): boolean {
    if (this.at === this.found && !this.fill()) return false;
    const { completions } = this;
    const w = this.at++ * this.rdma.COMPLETION_WORDS;
    const id = completions[w];
    this.status = completions[w + 2];
    this.isReceive = (id & RECEIVE_BIT) !== 0;
    if (this.isReceive) {
      this.buffer = id & ID_MASK;
      this.bytes = completions[w + 4];
    } else if (this.status === this.rdma.STATUS.SUCCESS) {
      this.retired += (id - this.retired) & ID_MASK;
      this.signaled--;
    }
    return true;
  }

  private fill(): boolean {
    this.at = 0;
    this.found = this.queue?.poll(this.completions) ?? 0;
    return this.found > 0;
  }

  /** Nobody asks from here on: the channel rings with the next completion. What came before the call is there afterwards (hasMore). */
  arm(): void {
    this.queue?.requestNotify();
    if (this.at === this.found) this.fill();
  }

  /**
   * Synchronous: the queue pair goes to error, so that the device stops, and is destroyed, so that no request of the peer's finds it. When
   * this returns no byte can land by it. Answers with what the device had to say against it.
   */
  destroy(): string[] {
    const { pair, queue, region } = this;
    this.pair = undefined;
    this.queue = undefined;
    this.region = undefined;
    const complaints: string[] = [];
    try {
      pair?.modify({ state: this.rdma.QP_STATE.ERR });
    } catch {
      // A device that is gone has stopped by itself.
    }
    for (const object of [pair, queue, region]) {
      try {
        object?.close();
      } catch (error) {
        complaints.push((error as Error).message);
      }
    }
    return complaints;
  }
}

function writePiece(words: Uint32Array, at: number, region: number, offset: number, bytes: number): void {
  words[at] = region;
  words[at + 1] = offset % 2 ** 32;
  words[at + 2] = Math.floor(offset / 2 ** 32);
  words[at + 3] = bytes;
}
