// The BTL contract: what a byte transfer layer promises to the layers above, for every transport alike.
// Types and result codes only; a test suite written as a function (test/contract/suite.ts) holds every BTL,
// the simulated one included, to the rules B1-B9 below.
//
// Words: a RAIL is one endpoint to one peer. A RAIL EPOCH is one incarnation of a rail, from connect to loss.
// A FRAME is the unit that a BTL carries: a packet header, which the BTL does not read, and a payload.
//
// The shape, modelled on a reliable-connected queue pair:
//
//   down-calls (connect, send, fence, …) come from the engine at any time. THEY NEVER CALL UP.
//   up-calls   (onFrame, onCompleted, onRailDown, …) are made ONLY inside BtlModule.progress().
//   wake()     lets an event source (a socket's callback, a timer of the simulator) ask the engine for a
//              progress() soon; the engine may run it at once, inside wake().
//   send()     also comes in the middle of a command of the application: an eager message that has nothing before it is
//              given to a rail at once. A wake() from inside that send() is answered after the command, not in it.
//
// So the layers above are never re-entered, and a module can be polled without the event loop.
//
//  B1 order       Within one rail epoch frames are delivered in the order accepted.
//  B2 completion  Every accepted frame completes exactly once: DELIVERED, REFUSED or IN_DOUBT. A transport's own
//                 "written" is not delivery: the peer's BTL counts frames, raises the count AFTER its onFrame upcall
//                 has returned, and reports the cumulative count of this rail epoch: on reverse traffic, or on its own
//                 after some frames, some bytes, at once for a frame marked `prompt`, when it goes idle, before it closes.
//                 A damaged frame, or one that breaks the protocol, ends the rail epoch and is not counted.
//                 A frame with a sound header and a damaged payload is refused: NACK(frame number) goes back on the same
//                 rail ahead of the count that covers it, and the sender's frame completes as REFUSED.
//  B3 loss        When a rail epoch ends, onRailDown(epoch, reason) comes first, then onSinkDropped of a half-filled sink, then
//                 every outstanding frame as IN_DOUBT, in order. After that no upcall of that epoch is made.
//  B4 memory      Frames are handed up whole, as views valid during the upcall; only `placed` frames (FRAG) are not: for
//                 these the BTL asks sinkFor(header) as soon as the header is there and writes the payload into the
//                 sink's views. A partial frame never counts. revokeSink() is synchronous: after it returns not one byte
//                 is written into that sink; the rest of the frame is read and discarded, then the frame is handed up (its sink
//                 says revoked) and counted.
//  B5 pressure    send() answers OK, BUSY or DOWN, and does not block. BUSY: something is outstanding and this frame would take
//                 it beyond the window. After BUSY comes onWritable once the smallest frame that was refused fits.
//                 A BUSY or DOWN frame was not accepted and never completes.
//  B6 one-sided   put/get complete as B2. fence(epoch) is synchronous: after it returns no byte of that epoch or an older
//                 one can land in local memory (placed or one-sided), and no frame of it is handed up any more;
//                 onRailDown and the IN_DOUBT completions follow in the next progress().
//  B7 liveness    A module either notices silent loss itself within the rail timeout (`liveness: 'self'`), or reports what
//                 it knows through onReport and lets the BML compare sibling rails (`liveness: 'siblings'`).
//  B8 identity    The handshake carries protocol version, job id, rank, incarnation, rail index and key, and epoch, and proves
//                 knowledge of the job's secret both ways (HMAC challenge). Everyone else is refused with a logged reason.
//                 The lower rank dials, with an epoch above all it has seen; the acceptor ends a live older epoch
//                 (onRailDown, IN_DOUBT) before onConnected of the newer one. A connect() of the higher rank is a request: it is
//                 refused as WILL_DIAL (onConnectFailed, kind 'asked'), and the lower rank dials.
//  B9 end         bye() sends a frame that is counted like any other; a rail that closes after the peer's BYE came and this side's
//                 was counted raises no onRailDown. A side that closes in good order reports its count before.
import type { ErrorCode } from '../errors.ts';
import type { Poller } from '../native/poller.ts';
import { WIDE_ZERO } from '../util/wide-zero.ts';

/** Answers of `send`, `put` and `get`. */
export const OK = 0;
/** No room now: not accepted; onWritable follows. */
export const BUSY = 1;
/** The rail epoch is over, or not yet begun: not accepted. */
export const DOWN = 2;
export type SendResult = typeof OK | typeof BUSY | typeof DOWN;

/** Completion states of an accepted frame or one-sided operation (B2). */
export const DELIVERED = 0;
export const REFUSED = 1;
export const IN_DOUBT = 2;
export type CompletionStatus = typeof DELIVERED | typeof REFUSED | typeof IN_DOUBT;

/**
 * One unit of transfer. Owned by the caller; the BTL keeps a reference from OK until completion, and header and payload
 * must not change in between. A BTL sets `railFrameNumber` for its own use and touches nothing else.
 */
export interface Frame {
  /** Packet header: opaque bytes to the BTL, at most HEADER_BYTES_MAX. */
  header: Uint8Array;
  /** Payload as a gather list; may be empty. */
  payload: readonly Uint8Array[];
  /** Sum of the payload's lengths. */
  payloadBytes: number;
  /** The receiver's BTL places the payload through sinkFor instead of handing it up. */
  placed: boolean;
  /** A request waits for this frame's completion: the receiver reports its count at the end of its turn. */
  prompt: boolean;
  /** Scratch of the BTL that carries the frame. */
  railFrameNumber: number;
  /**
   * The memory of `header` as 32-bit words of a little-endian machine, header first, for transports that copy short frames in a
   * loop (a call of set() costs as much as 50 bytes). Undefined where the header stands elsewhere.
   */
  headerWords?: Int32Array | undefined;
  /** The payload stands right behind the header in that memory too. */
  packed?: boolean;
}

export const HEADER_BYTES_MAX = 4096;

/**
 * What one turn of the engine adds to the alive time at most: a longer one was spent computing, stopped or asleep. Whoever waits in
 * alive time must be woken at least this often, or an idle process would wait many times as long.
 */
export const ALIVE_PER_TURN_MAX_MS = 50;

/** Where the payload of one placed frame goes. Made by the PML, filled by the BTL. */
export interface Sink {
  /** Scatter list whose lengths sum to the payload's length; empty = discard. The BTL writes into nothing else. */
  views: readonly Uint8Array[];
  /** Set by revokeSink: the BTL writes no more bytes (B4). */
  revoked: boolean;
}

/** Why a rail epoch ended or a connection attempt failed. `kind` is stable, `text` is for people. */
export interface RailReason {
  kind:
    | 'closed' // the peer closed the connection, or it was reset
    | 'error' // the transport reported an error
    | 'silent' // nothing came through for the rail timeout
    | 'stalled' // what it held was late while another rail moved
    | 'damaged' // a frame failed its check or broke the protocol
    | 'refusals' // too many frames were refused for damaged payloads
    | 'fenced' // ended here because the peer (or the PML) said so
    | 'replaced' // a newer epoch of the same rail took over
    | 'route' // packets would leave by another interface
    | 'refused' // the peer refused the handshake
    | 'asked' // the peer is the side that dials, and does so now
    | 'timeout' // no answer to the connection attempt
    | 'busy' // connected, but the peer's process did not answer the handshake
    | 'carrier' // the interface lost its carrier or address
    | 'shutdown' // this side is closing down
    | 'peer-failed' // the peer's process is dead
    | 'injected'; // a test or bench pulled the rail
  text: string;
  code?: ErrorCode;
  /** The kernel of the peer's host answered, and said that nobody listens at that address. */
  isNobody?: boolean;
}

/** Static attributes of a rail; the BML adds measured ones. */
export interface RailAttributes {
  /** Expected bandwidth in MB/s and one-way latency in microseconds; both only order rails until they are measured. */
  bandwidthMBps: number;
  latencyUs: number;
  /** Higher excludes lower: only the rails of the highest class that is up carry traffic. */
  exclusivity: number;
  /** `standby` works only while no active rail is up. */
  role: 'active' | 'standby';
  canPut: boolean;
  canGet: boolean;
  liveness: 'self' | 'siblings';
  /** It is whole or gone: what it holds waits for the peer's process alone, so another rail would not be faster. */
  isSteady?: true;
  /** Largest payload of one frame, in bytes. */
  frameBytesMax: number;
  /**
   * Longest message that is worth copying into one frame on this rail, where that is less than the parameter pml_eager_limit_bytes
   * says; longer ones go by rendezvous.
   */
  eagerBytesMax?: number;
  /** What the rail is taken to carry until it was busy long enough to be measured, in MB/s; else it begins with the least window. */
  startRateMBps?: number;
  /**
   * Least bytes in flight that keep this rail busy, where that is more than the parameter bml_window_min_bytes says: a device that works
   * while the process does not look needs enough for that time.
   */
  windowMinBytes?: number;
  /** Length of a put or get that is worth its fixed cost on this rail, where that is more than the fragment grid. */
  oneSidedBytes?: number;
  /**
   * Memory that is registered for the peer at once, where registering takes its time: a longer message is offered piece by piece and put
   * by its sender, instead of being read. Absent: any.
   */
  pipelineBytes?: number;
  /** Shortest message that is worth a get on this rail; shorter ones come in fragments. 0 when absent. */
  getBytesMin?: number;
  /** The same, of a message that lies in memory of exportMemory(). Absent: as any other. */
  getExportedBytesMin?: number;
  /** Longest message that is worth a get, where the rail can put too and does it faster; longer ones are put. Absent: any. */
  getBytesMax?: number;
}

/**
 * One rail between two ranks as both sides compute it from both modex entries, with the same result on both sides.
 * `key` names it for people and is compared in the handshake.
 */
export interface RailPlan {
  key: string;
  attributes: RailAttributes;
  /** Opaque to all but the module that planned it. */
  detail: unknown;
}

/** What the acceptor learns from a connection whose handshake proved the secret, before it accepts. */
export interface Hello {
  rank: number;
  /** u53, larger in a later process of the same rank. */
  incarnation: number;
  /** Rail index in the pair's table, and its key. */
  rail: number;
  key: string;
  epoch: number;
}

export type Admission =
  | { ok: true; endpoint: BtlEndpoint }
  | {
      ok: false;
      reason:
        | 'UNKNOWN_RANK'
        | 'UNAVAILABLE'
        | 'OLD_INCARNATION'
        | 'PEER_FAILED'
        | 'STALE_EPOCH'
        | 'RAIL_MISMATCH'
        | 'FINALIZED'
        | 'WILL_DIAL';
      text: string;
      /** With STALE_EPOCH: the highest epoch seen here, so that the dialer can go above it. */
      highestEpoch?: number;
    };

/** Implemented once, by the engine. Called by BTL modules, only from inside progress() - except wake(). */
export interface Upcalls {
  /**
   * What a blocking call waits for has come. What stands behind it may stay where it is until the next call: handed up now, it would
   * most often find no receive posted, and cost a copy.
   */
  readonly satisfied?: boolean;
  /** An event source has something for progress(). Safe to call at any time. */
  wake(): void;
  /** Asked by the acceptor after the peer proved the secret. */
  admit(module: BtlModule, hello: Hello): Admission;
  /** The handshake of this epoch is done on this side: frames may come; sending is allowed (the engine probes first). */
  onConnected(endpoint: BtlEndpoint, epoch: number): void;
  /**
   * A connect() came to nothing. The live epoch, if any, is untouched.
   * `highestEpoch` is set when the peer refused the epoch as stale.
   */
  onConnectFailed(endpoint: BtlEndpoint, epoch: number, reason: RailReason, highestEpoch?: number): void;
  onRailDown(endpoint: BtlEndpoint, epoch: number, reason: RailReason): void;
  onCompleted(endpoint: BtlEndpoint, epoch: number, frame: Frame, status: CompletionStatus): void;
  /**
   * A whole frame. `header` and `payload` are valid during the call. For a placed frame `payload` is empty and `sink` is
   * what sinkFor answered. Returns normally for everything that counts; throws a MultirailError ERR_PROTOCOL when the
   * packet breaks the protocol: then the BTL ends the rail epoch as `damaged` and does not count the frame.
   */
  onFrame(endpoint: BtlEndpoint, epoch: number, header: Uint8Array, payload: Uint8Array, sink: Sink | null): void;
  /**
   * Offered before onFrame() by rails in memory, for a whole frame that is not placed: the words of `words` from `headerAt` on hold its packet
   * header of `headerBytes` bytes, those from `payloadAt` on its payload of `payloadBytes` bytes. The peer can change them at any time, so
   * whoever looks reads each of them once. True: the frame was taken, as onFrame() would have taken it. False: nothing has changed, and the
   * frame comes through onFrame().
   */
  onFrameWords?(
    endpoint: BtlEndpoint,
    words: Int32Array,
    headerAt: number,
    headerBytes: number,
    payloadAt: number,
    payloadBytes: number,
  ): boolean;
  /** Where the payload of this placed frame goes. May throw ERR_PROTOCOL like onFrame. */
  sinkFor(endpoint: BtlEndpoint, epoch: number, header: Uint8Array, payloadBytes: number): Sink;
  /**
   * The sink of a frame that will never be whole is released: its epoch ended, or its payload was damaged (refused).
   * The bytes in its views are undefined and not counted.
   */
  onSinkDropped(endpoint: BtlEndpoint, epoch: number, sink: Sink): void;
  onWritable(endpoint: BtlEndpoint): void;
  onProbeAnswered(endpoint: BtlEndpoint, epoch: number, probeId: number): void;
  onBye(endpoint: BtlEndpoint, epoch: number): void;
  /**
   * What this side knows of the other end of the rail (B7): the cumulative bytes of this epoch that the peer says it has
   * received, and the peer's alive time (milliseconds during which its engine was polling its rails).
   */
  onReport(endpoint: BtlEndpoint, epoch: number, receivedBytes: number, peerAliveMs: number): void;
  onOneSidedCompleted(endpoint: BtlEndpoint, epoch: number, op: OneSidedOp, status: CompletionStatus): void;
  /**
   * Something outside says that this rail may work again (its interface got its carrier or address back): dial it now, whatever
   * the back-off says. Ignored while an epoch is live or an attempt is under way.
   */
  onReachable(endpoint: BtlEndpoint): void;
  /**
   * Lower rank only: interfaces that were not there at the start make another rail. It gets the next number of the pair's table, and the
   * engine asks for its endpoint.
   */
  onRailPlanned(module: BtlModule, peer: number, plan: RailPlan, remote: unknown): void;
  /** A module's own address list changed (an interface got another address): publish module.address() again. */
  onAddressChanged(module: BtlModule): void;
  /** For people: refused strangers and the like. Rate-limited by the engine. */
  log(level: 'debug' | 'info' | 'warn', text: string): void;
}

/** A registered piece of local memory that the peer may reach one-sided. */
export interface Registration {
  /** At most 64 bytes, sent to the peer in PUT and RGET packets. */
  readonly key: Uint8Array;
  /** Synchronous: after it no further byte lands there. */
  deregister(): void;
}

/** One put or get. Owned by the caller, kept by the BTL from OK until completion. */
export interface OneSidedOp {
  kind: 'put' | 'get';
  /** Local bytes: source of a put, target of a get. */
  local: readonly Uint8Array[];
  bytes: number;
  /** The peer's registration key, which never changes its content, and the byte offset in its registration. */
  remoteKey: Uint8Array;
  remoteOffset: number;
  /** Scratch of the BTL. */
  railFrameNumber: number;
}

/** One rail to one peer. */
export interface BtlEndpoint {
  readonly module: BtlModule;
  /** World rank of the peer. */
  readonly peer: number;
  /** Index of the rail in the pair's table. */
  readonly rail: number;
  readonly plan: RailPlan;
  /** Epoch that is live (connected, not ended); 0 when none is. */
  readonly epoch: number;
  /** Payload and header bytes accepted and not yet completed. */
  readonly outstandingBytes: number;
  /** This side's BYE on the live or last epoch is known to be delivered: counted, or that epoch ended after BYE both ways. */
  readonly byeDelivered: boolean;
  /**
   * Bound on outstandingBytes beyond which a frame is BUSY (see fitsWindow). Set by the BML from what it measures.
   */
  windowBytes: number;
  /** Cumulative counters of this rail over all epochs. */
  readonly counters: RailByteCounters;

  /**
   * Begins a connection attempt of that epoch. While an older epoch is live the attempt runs at the same time (BESIDE): if the live epoch hears any byte
   * meanwhile, the attempt is given up (onConnectFailed, kind 'busy'). An attempt of the higher rank asks the lower one to dial, and never
   * comes to an epoch; it ends without an upcall when the lower rank's connection has come.
   */
  connect(epoch: number): void;
  /** Gives up a connection attempt under way, without an upcall. */
  cancelConnect(): void;
  send(frame: Frame): SendResult;
  /** Everything accepted since the last flush may now leave in one go. */
  flush(): void;
  /**
   * The caller wants the payload memory of accepted frames back before they complete: what of it has not left is copied. True: none of it
   * is read from here on. False: some of it is in hands that cannot be told (a socket of Node's), so ask again later. Does not concern
   * puts. Absent: the memory is read until the frame completes.
   */
  letGo?(): boolean;
  /** B4. Ignored when the sink is not open on this endpoint. */
  revokeSink(sink: Sink): void;
  /** B6. Epochs at or below `epoch` are over on this rail, and stay so; a newer live epoch is untouched. */
  fence(epoch: number, reason: RailReason): void;
  /**
   * Asks the peer's BTL for an answer over this rail (a frame of the BTL's own, not subject to the window). Of several
   * questions under way only the last need be answered. It may be padded, up to 64 KiB, where the rail carries frames of any length: what
   * only small ones get through is not whole.
   */
  probe(probeId: number, paddingBytes?: number): void;
  /** Says that this side sends no more frames on this epoch. */
  bye(): void;
  /** Registers local memory for the peer; undefined when that is refused. One-sided rails only. */
  register?(memory: readonly Uint8Array[]): Registration | undefined;
  put?(op: OneSidedOp): SendResult;
  get?(op: OneSidedOp): SendResult;
}

/** A pair of ranks has no more rails than this, whenever they were made. */
export const RAILS_MAX = 256;
/** Rails that are made after the start carry frames of at least this many bytes: a message that was cut for others fits. */
export const ADDED_FRAME_BYTES_MIN = 16 * 1024 * 1024 + 64 * 1024;

export const CONTROL_RESERVE_BYTES = 256 * 1024;

/**
 * Whether so many bytes more may be outstanding in a window. A frame without payload has a reserve above it. One with a payload that is
 * longer than half of the window goes as soon as the other half is free: short frames that come all the time would keep it waiting otherwise.
 */
export function fitsWindow(outstandingBytes: number, bytes: number, hasPayload: boolean, windowBytes: number): boolean {
  if (outstandingBytes === 0) return true;
  const limit = hasPayload ? Math.max(windowBytes, bytes + windowBytes / 2) : windowBytes + CONTROL_RESERVE_BYTES;
  return outstandingBytes + bytes <= limit;
}

export interface RailByteCounters {
  framesSent: number;
  framesReceived: number;
  bytesSent: number;
  bytesReceived: number;
  payloadBytesSent: number;
  payloadBytesReceived: number;
  framesRefused: number;
  /**
   * Looks of the transport at which the kernel had sent something again although nothing queued up before it: what the link lost. 0 where
   * nobody can tell.
   */
  losses: number;
}

export function newRailByteCounters(): RailByteCounters {
  return {
    framesSent: 0,
    framesReceived: 0,
    bytesSent: WIDE_ZERO,
    bytesReceived: WIDE_ZERO,
    payloadBytesSent: WIDE_ZERO,
    payloadBytesReceived: WIDE_ZERO,
    framesRefused: 0,
    losses: 0,
  };
}

/** A put or get that is done: no frame carried its bytes, and users see what a rail carried. */
export function countOneSided(counters: RailByteCounters, { kind, bytes }: OneSidedOp): void {
  if (kind === 'put') {
    counters.bytesSent += bytes;
    counters.payloadBytesSent += bytes;
  } else {
    counters.bytesReceived += bytes;
    counters.payloadBytesReceived += bytes;
  }
}

/** What a module needs to know of the process it works for. */
export interface BtlContext {
  rank: number;
  size: number;
  jobId: string;
  incarnation: number;
  /** The job's secret; undefined = none, and then nothing beyond loopback is accepted or dialled. */
  secret: Uint8Array | undefined;
  /** Names this host and network namespace: equal on both sides = the peer is reached without leaving the machine. */
  hostId: string;
  params: Params;
  upcalls: Upcalls;
  /** Readiness of descriptors, where the native part is there; undefined = the module works over Node's own sockets. */
  poller?: Poller | undefined;
}

/** The parameters of a rank, by name; `multirail info --all` lists them. */
export interface Params {
  /**
   * A parameter that is a number, in the unit that it is described with.
   *
   * @param name Name of the parameter.
   * @throws ERR_CONFIG: there is no such parameter.
   */
  int(name: string): number;
  /**
   * A parameter that is on or off.
   *
   * @param name Name of the parameter.
   * @throws ERR_CONFIG: there is no such parameter.
   */
  bool(name: string): boolean;
  /**
   * A parameter that is a text.
   *
   * @param name Name of the parameter.
   * @throws ERR_CONFIG: there is no such parameter.
   */
  string(name: string): string;
  /**
   * A parameter that is a list of names, separated by commas.
   *
   * @param name Name of the parameter.
   * @throws ERR_CONFIG: there is no such parameter.
   */
  list(name: string): string[];
}

/** What is given to others where many ranks share the processors of this host. */
export interface CrowdLimits {
  /** How many times as long as alone everything takes. */
  factor: number;
  connectTimeoutMs: number;
  handshakeTimeoutMs: number;
}

/** One transport of one process: `tcp`, `ws`, `self`, `sim`, … */
export interface BtlModule {
  readonly name: string;
  /** What goes into the modex; plain JSON. Valid after open(). */
  address(): unknown;
  /**
   * The rails between the two ranks: a pure function of both sides' addresses and ranks that gives the same list, in the
   * same order, on both sides. `local` is ours; `hostId` tells whether the peer is on the same host.
   */
  plan(peer: number, local: unknown, remote: unknown, peerHostId: string): RailPlan[];
  /** Makes the endpoint of a planned rail. Nothing is connected yet. */
  endpoint(peer: number, rail: number, plan: RailPlan, remote: unknown): BtlEndpoint;
  /**
   * The peer published a new address list: used by the next connect(). ERR_PROTOCOL, and nothing is changed, when it is no address of
   * this transport.
   */
  remoteAddressChanged(peer: number, remote: unknown): void;
  /**
   * Higher rank only: a HELLO of that rank names a rail with this key, which is not in the pair's table. The rail, when it can be one:
   * the lower rank plans what is added after the start, since both would not see the interfaces come in one order.
   */
  planAdded?(peer: number, key: string): { plan: RailPlan; remote: unknown } | undefined;
  /** Where plan() found no rail: what it waits for, when there may be one later. Undefined when there never will. */
  mayComeLater?(peer: number, local: unknown, remote: unknown, peerHostId: string): string | undefined;
  /**
   * That peer is over, and nothing more is asked of its endpoints: they go, with all that is kept for it. False, and nothing is changed, while
   * one of them has a live epoch, an attempt under way, or an upcall to make: it is asked again later.
   */
  forgetPeer(peer: number): boolean;
  /**
   * Makes memory that peers of this host can map, so that a get out of it needs no help of this process. Returns undefined where the kernel gives
   * none, or no peer is on this host. The memory is the caller's until it calls dropMemory().
   */
  exportMemory?(bytes: number): Uint8Array | undefined;
  /** Gives memory of exportMemory() back: nobody may read or write it any more. Any other memory is left alone. */
  dropMemory?(memory: Uint8Array): void;
  /** Binds listeners. Rejects with ERR_INIT when the transport cannot work here. */
  open(): Promise<void>;
  /**
   * Does everything that is due: reads what has come in, makes all upcalls, writes what can be written.
   * `now` is monotonic milliseconds, `aliveMs` this process's own alive time. Returns how many upcalls were made.
   */
  progress(now: number, aliveMs: number): number;
  /** When progress() must be called even if nothing arrives; Infinity when it need not. */
  nextDeadline(): number;
  /**
   * Modules that are polled in memory: nobody polls until the next progress(), so peers must ring the doorbell from now on. False when
   * something has come meanwhile: progress() is then called again instead of waiting.
   */
  park?(): boolean;
  /**
   * Modules that are polled in memory: adds the words that change when something comes for progress(), which need not be called before. False
   * when it has something to do now, or what may come is not seen in words; a caller that gets no true polls as ever.
   */
  watch?(watched: WatchedWords): boolean;
  /** Wakes the process of that rank, which then polls, if it sleeps. False when no rail of this module to it can. */
  ring?(peer: number): boolean;
  /** Its connections are served by Node's event loop: progress() alone brings nothing, so blocking calls cannot wait for it. */
  readonly needsEventLoop?: boolean;
  /** Rails of this module that carry traffic are polled in memory: then the engine asks the kernel for sockets only now and then. */
  readonly inMemory?: boolean;
  /** Many ranks share the processors of this host: peers are given more time from here on. Before the first progress(). */
  expectCrowd?(limits: CrowdLimits): void;
  /** Closes everything; no upcalls follow. Resolves when no handle of the module keeps the process alive. */
  close(): Promise<void>;
}

/** Words of shared memory that are looked at in place of polls. */
export interface WatchedWords {
  /** `seen`: what stood at the word `at`. False: there are too many. */
  add(words: Int32Array, at: number, seen: number): boolean;
}

/** Probes and opens a transport. */
export interface BtlComponent {
  readonly name: string;
  /** One sentence for `multirail info`. */
  readonly description: string;
  /** Undefined when the component can work here, else why not. */
  unavailable(params: Params): string | undefined;
  create(context: BtlContext): BtlModule;
}
