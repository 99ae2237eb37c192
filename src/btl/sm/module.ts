// The sm module: rails through shared memory between processes of one host. It listens on an abstract local socket, dials its peers'
// sockets, makes the segments, and puts the process to sleep and wakes it. The dialer makes the segment and sends its descriptor with its
// HELLO, so both sides have it when the handshake is over and no file system knows it by a name. The connection itself is the doorbell of
// both.
import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { MultirailError } from '../../errors.ts';
import { type NativeBinding, POLL_IN } from '../../native/binding.ts';
import type { Poller, PollTarget } from '../../native/poller.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import type { Dialing } from '../base/dial-attempt.ts';
import type { Link } from '../base/link.ts';
import type { StreamEndpoint } from '../base/stream-endpoint.ts';
import { type InboundCheck, StreamModule } from '../base/stream-module.ts';
import type { BtlContext, BtlEndpoint, CrowdLimits, RailPlan, RailReason, WatchedWords } from '../btl.ts';
import { checkAddress, planRails, type SmAddress, type SmPlanDetail } from './address.ts';
import { BrokenLink } from './broken-link.ts';
import { SmEndpoint } from './endpoint.ts';
import { ExportedMemory } from './exported-memory.ts';
import { PROOF_BYTES, Segment, segmentBytes } from './segment.ts';
import { givesSample, mayReadOthers, placeOfProcess, SingleCopyChoice, type SingleCopyMode } from './single-copy.ts';
import { type SmHost, SmLink } from './sm-link.ts';
import { UnixStream } from './unix-stream.ts';

const BACKLOG = 128;
/** Connections taken in one turn. */
const ACCEPTS_MAX = 16;

const ACCEPT_PAUSE_MS = 100;
const WHOLE_TURN_MS = 1;
const ALIVE_EVERY_MS = 5;
/** It is handed on ten times less often than it is told. */
const ALIVE_CROWD_MAX = 10;
const { EAGAIN, ECONNABORTED, EINTR } = constants.errno;

/** A segment of ours that waits for its handshake, by the stream that carries it. */
interface PendingSegment {
  memory: ArrayBuffer;
  fd: number;
}

export class SmModule extends StreamModule implements SmHost {
  readonly name = 'sm';
  /** What comes through a ring is no event. */
  protected override readonly mayRest = false;
  /** These four stand once open() has succeeded. */
  native!: NativeBinding;
  choice!: SingleCopyChoice;
  exported!: ExportedMemory;
  aliveEveryMs = ALIVE_EVERY_MS;
  private poller!: Poller;
  private readonly stopwatch: () => number;
  private readonly ringBytes: number;
  private singleCopy = false;
  private readonly place = placeOfProcess();
  private readonly socketName: string;
  private readonly uid = process.geteuid?.() ?? -1;
  private listener = -1;
  private listenerReady = false;
  private listenAgainAt = Number.POSITIVE_INFINITY;
  private parked = false;
  private readonly links: SmLink[] = [];
  /** The endpoint of each of `links`. */
  private readonly carriers: StreamEndpoint[] = [];
  /** Something else than the rings wants a turn, or will at that time. */
  private wantsWholeTurn = true;
  private wholeTurnAt = 0;
  private readonly pending = new Map<ByteStream, PendingSegment>();

  /** `stopwatch` in milliseconds, for the trial of the single copy alone. */
  constructor(context: BtlContext, stopwatch: () => number) {
    super(context);
    this.stopwatch = stopwatch;
    // A ring is a power of two; the parameter need not be.
    this.ringBytes = 2 ** Math.floor(Math.log2(context.params.int('btl_sm_ring_bytes')));
    const job = createHash('sha256').update(context.jobId).digest('hex').slice(0, 12);
    this.socketName = `multirail-${job}-${context.rank}-${randomBytes(8).toString('hex')}`;
  }

  async open(): Promise<void> {
    const { params, poller } = this.context;
    if (poller === undefined) throw new MultirailError('ERR_INIT', 'sm: this process runs without the native part');
    const { native } = poller;
    this.poller = poller;
    this.native = native;
    const mode = params.string('btl_sm_single_copy') as SingleCopyMode;
    const bytesMin = params.int('btl_sm_single_copy_min_bytes');
    this.exported = new ExportedMemory(native);
    this.singleCopy = mode !== 'never' && mayReadOthers(native);
    this.choice = new SingleCopyChoice(native, mode, bytesMin, new Uint8Array(randomBytes(PROOF_BYTES)), this.stopwatch);
    // A rail needs a segment: where none can be made, it is better to know now than from each attempt to connect.
    try {
      native.close(native.memoryCreate('multirail-sm', segmentBytes(this.ringBytes)));
    } catch (cause) {
      throw new MultirailError(
        'ERR_INIT',
        `sm: no memory can be shared here: ${(cause as Error).message}. The seccomp profile of a container may forbid memfd_create: allow it, or use ` +
          'another transport (tcp) in btl',
        { cause },
      );
    }
    try {
      this.listener = native.unixListen(`\0${this.socketName}`, BACKLOG);
    } catch (cause) {
      throw new MultirailError('ERR_INIT', `sm: ${(cause as Error).message}`, { cause });
    }
    const listening: PollTarget = {
      onReady: () => {
        this.listenerReady = true;
        this.wantsWholeTurn = true;
      },
    };
    poller.add(this.listener, listening);
    // A rank that listens waits for others.
    poller.keepAlive(true);
  }

  override expectCrowd(limits: CrowdLimits): void {
    super.expectCrowd(limits);
    this.aliveEveryMs = ALIVE_EVERY_MS * Math.min(ALIVE_CROWD_MAX, limits.factor);
  }

  address(): SmAddress {
    return {
      pid: process.pid,
      name: this.socketName,
      boot: this.place.boot,
      net: this.place.net,
      pidNamespace: this.place.pid,
      userNamespace: this.place.user,
      ringBytes: this.ringBytes,
      eagerBytesMax: this.context.params.int('btl_sm_eager_limit_bytes'),
      singleCopy: this.singleCopy,
    };
  }

  plan(_peer: number, local: unknown, remote: unknown, peerHostId: string): RailPlan[] {
    return peerHostId === this.context.hostId ? planRails(checkAddress(local), checkAddress(remote)) : [];
  }

  protected checkRemote(remote: unknown): void {
    checkAddress(remote);
  }

  override endpoint(peer: number, rail: number, plan: RailPlan, remote: unknown): BtlEndpoint {
    const endpoint = new SmEndpoint(this, peer, rail, plan, remote);
    this.endpoints.push(endpoint);
    return endpoint;
  }

  exportMemory(bytes: number): Uint8Array | undefined {
    // The rail to whoever is to read it may not be up yet.
    return this.endpoints.length > 0 ? this.exported.make(bytes) : undefined;
  }

  dropMemory(memory: Uint8Array): void {
    this.exported.drop(memory);
  }

  get inMemory(): boolean {
    return this.links.length > 0;
  }

  // --- connections

  dial(endpoint: StreamEndpoint): Dialing {
    const { native } = this;
    const dialing: Dialing = { stream: undefined, failure: undefined, cancelled: false };
    let segment: PendingSegment | undefined;
    let fd = -1;
    try {
      const { pid, name } = checkAddress(endpoint.remote);
      const { ringBytes } = endpoint.plan.detail as SmPlanDetail;
      fd = native.unixConnect(`\0${name}`);
      const peer = native.unixPeer(fd);
      if (peer.pid !== pid || peer.uid !== this.uid) {
        throw new MultirailError(
          'ERR_HANDSHAKE',
          `the socket of rank ${endpoint.peer} belongs to process ${peer.pid} of user ${peer.uid}; expected process ${pid} of user ${this.uid}`,
        );
      }
      segment = this.makeSegment(ringBytes);
      const stream = this.streamOf(fd, pid, [segment.fd], 0);
      this.pending.set(stream, segment);
      stream.onClose = () => this.dropPending(stream);
      this.adopt(dialing, stream);
    } catch (error) {
      if (fd >= 0) native.close(fd);
      if (segment !== undefined) {
        native.close(segment.fd);
        native.memoryUnmap(segment.memory);
      }
      // A process that computes takes no connections, and so many may wait for it.
      const isFull = (error as NodeJS.ErrnoException).code === 'EAGAIN';
      dialing.failure = { kind: isFull ? 'busy' : 'error', text: (error as Error).message };
      this.due();
    }
    return dialing;
  }

  private makeSegment(ringBytes: number): PendingSegment {
    const { native } = this;
    const bytes = segmentBytes(ringBytes);
    const fd = native.memoryCreate('multirail-sm', bytes);
    try {
      const memory = native.memoryMap(fd, bytes);
      new Segment(memory, ringBytes, 'dialer').format();
      return { memory, fd };
    } catch (error) {
      native.close(fd);
      throw error;
    }
  }

  private dropPending(stream: ByteStream): void {
    const segment = this.pending.get(stream);
    if (segment === undefined) return;
    this.pending.delete(stream);
    this.native.close(segment.fd);
    this.native.memoryUnmap(segment.memory);
  }

  private acceptAll(): void {
    const { native } = this;
    this.listenerReady = false;
    for (let i = 0; i < ACCEPTS_MAX; i++) {
      const fd = native.accept(this.listener);
      if (fd < 0) {
        if (fd !== -EAGAIN && fd !== -ECONNABORTED && fd !== -EINTR) this.rest();
        return;
      }
      const peer = native.unixPeer(fd);
      if (peer.uid !== this.uid) {
        this.note(`refused process ${peer.pid}: it is of user ${peer.uid}`);
        native.close(fd);
        continue;
      }
      this.accept(this.streamOf(fd, peer.pid, [], 1));
    }
  }

  /** The kernel had no descriptor or memory for a connection: it will not have it for the next one either. */
  private rest(): void {
    this.poller.change(this.listener, 0);
    this.listenAgainAt = this.now + ACCEPT_PAUSE_MS;
  }

  private streamOf(fd: number, pid: number, passing: readonly number[], takes: number): UnixStream {
    return new UnixStream(this.poller, fd, pid, passing, takes, () => {
      this.wantsWholeTurn = true;
    });
  }

  /** The kernel has told which process of our own user it is. */
  protected override isWithinReach(): boolean {
    return true;
  }

  protected checkInbound(): InboundCheck {
    return { done: true, failure: undefined };
  }

  protected override wrongInterface(endpoint: StreamEndpoint, stream: ByteStream): string | undefined {
    const { pid } = checkAddress(endpoint.remote);
    const found = (stream as UnixStream).peerPid;
    return found === pid ? undefined : `process ${found} is not rank ${endpoint.peer}, which is process ${pid}`;
  }

  override link(endpoint: StreamEndpoint, epoch: number, stream: ByteStream): Link {
    const unix = stream as UnixStream;
    const { ringBytes } = endpoint.plan.detail as SmPlanDetail;
    const made = this.takeSegment(unix, ringBytes);
    if ('reason' in made) return new BrokenLink(endpoint, epoch, unix, made.reason);
    const link = new SmLink(endpoint, this, epoch, unix, made.segment);
    this.links.push(link);
    this.carriers.push(endpoint);
    (endpoint as SmEndpoint).memoryLink = link;
    return link;
  }

  /** The segment of a connection whose handshake is over. */
  private takeSegment(stream: UnixStream, ringBytes: number): { segment: Segment } | { reason: RailReason } {
    const { native } = this;
    const descriptors = stream.takeDescriptors();
    const ours = this.pending.get(stream);
    this.pending.delete(stream);
    const fd = ours?.fd ?? descriptors.pop();
    let memory = ours?.memory;
    let complaint: string | undefined;
    if (fd === undefined || descriptors.length > 0) complaint = 'not the descriptors of a rail were passed';
    else {
      try {
        memory ??= native.memoryMap(fd, segmentBytes(ringBytes));
        complaint = new Segment(memory, ringBytes, 'acceptor').complaint();
      } catch (error) {
        complaint = `the segment cannot be mapped: ${(error as Error).message}`;
      }
    }
    if (fd !== undefined) native.close(fd);
    for (const other of descriptors) native.close(other);
    if (complaint === undefined && memory !== undefined) {
      return { segment: new Segment(memory, ringBytes, ours === undefined ? 'acceptor' : 'dialer') };
    }
    if (memory !== undefined) native.memoryUnmap(memory);
    return { reason: { kind: 'damaged', text: complaint ?? 'no segment' } };
  }

  givesSample(peer: number): boolean {
    return givesSample(
      this.context.rank,
      this.endpoints.map((endpoint) => endpoint.peer),
      peer,
    );
  }

  chosen(): void {
    for (const { plan } of this.endpoints)
      if ((plan.detail as SmPlanDetail).singleCopy) plan.attributes.getBytesMin = this.choice.getBytesMin;
  }

  forget(link: SmLink): void {
    const at = this.links.indexOf(link);
    if (at === -1) return;
    this.links.splice(at, 1);
    this.carriers.splice(at, 1);
  }

  // --- turns, sleep

  override due(): void {
    this.wantsWholeTurn = true;
    super.due();
  }

  /**
   * A turn of the rings costs a few loads while nothing comes; handshakes, attempts and their deadlines are looked at in whole turns:
   * when something calls for one, and every millisecond.
   */
  override progress(now: number, aliveMs: number): number {
    if (this.parked) this.unpark();
    if (this.wantsWholeTurn || now >= this.wholeTurnAt) {
      this.wantsWholeTurn = false;
      this.wholeTurnAt = now + WHOLE_TURN_MS;
      return super.progress(now, aliveMs);
    }
    const { links, carriers } = this;
    let made = 0;
    for (let i = 0; i < links.length; i++) {
      if (!links[i].wantsTurn(now)) continue;
      made += carriers[i].progress(now, aliveMs);
      // An upcall may have ended rails, or closed the module.
      if (this.wantsWholeTurn || this.closed) return made + 1;
    }
    return made;
  }

  protected progressModule(now: number): number {
    if (now >= this.listenAgainAt) {
      this.listenAgainAt = Number.POSITIVE_INFINITY;
      this.poller.change(this.listener, POLL_IN);
    }
    if (this.listenerReady) this.acceptAll();
    return 0;
  }

  protected moduleDeadline(): number {
    return this.listenAgainAt;
  }

  park(): boolean {
    if (this.closed) return true;
    const { links } = this;
    if (!this.parked) {
      this.parked = true;
      for (const link of links) link.sleep();
    }
    for (const link of links) {
      if (!link.hasNews()) continue;
      this.unpark();
      return false;
    }
    return true;
  }

  watch(watched: WatchedWords): boolean {
    if (this.parked || this.wantsWholeTurn || this.closed) return false;
    const { links } = this;
    for (let i = 0; i < links.length; i++) if (!links[i].watch(watched)) return false;
    return true;
  }

  ring(peer: number): boolean {
    const { links, carriers } = this;
    for (let i = 0; i < links.length; i++) if (carriers[i].peer === peer && links[i].ring()) return true;
    return false;
  }

  private unpark(): void {
    this.parked = false;
    for (const link of this.links) link.awake();
  }

  protected async closeListeners(): Promise<void> {
    const { native, poller } = this;
    if (poller === undefined) return;
    for (const link of [...this.links]) link.release();
    this.exported.close();
    for (const stream of [...this.pending.keys()]) stream.destroy();
    if (this.listener < 0) return;
    poller.remove(this.listener);
    native.close(this.listener);
    this.listener = -1;
  }
}
