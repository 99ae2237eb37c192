/**
 * node-rdma: libibverbs for Node.js. Devices, memory regions, completion queues and reliable-connected queue pairs, as thin as they can
 * be: no connection management, no retries, no buffers of its own. Linux; the library libibverbs is looked for at run time.
 *
 * Objects may be closed in any order: what others still need is destroyed with the last of these. What was not closed goes with its
 * thread. A call of a closed object throws an error with the code ERR_RDMA_CLOSED, an argument of the wrong type or out of its range a
 * TypeError with ERR_INVALID_ARG; a call that the library refuses throws one with `code` ('ENODEV'), `errno` (negative) and `syscall`.
 * Objects belong to the thread that made them.
 */

/** Thrown by every function but `unavailable` and `devicesOfKernel` where verbs cannot be used; code ERR_RDMA_UNAVAILABLE. */
export class RdmaUnavailableError extends Error {
  readonly code: 'ERR_RDMA_UNAVAILABLE';
}

/** Why verbs cannot be used in this process, in one line; undefined when they can. Devices need not be there. */
export function unavailable(): string | undefined;

export interface DeviceInfo {
  name: string;
  /** 16 hexadecimal digits. */
  guid: string;
  nodeType: number;
  transport: number;
}

/** The devices of this host; an empty list where there is no device. */
export function devices(): DeviceInfo[];

/** Names of the devices as the kernel shows them, without libibverbs: to tell a missing library from a missing device. */
export function devicesOfKernel(): string[];

export function openDevice(name: string): Device;

/** Whole pages outside of V8's heap, for buffers that stay registered; filled with zeros, freed by the collector. */
export function memory(bytes: number): Uint8Array<ArrayBuffer>;

/** Objects of this thread that exist, those included that were closed and wait for others. */
export function live(): Record<'devices' | 'domains' | 'regions' | 'channels' | 'completionQueues' | 'queuePairs', number>;

declare abstract class Handle {
  /** 0 once closed. */
  readonly id: number;
  readonly closed: boolean;
  /** Closing twice is no error. */
  close(): void;
}

export interface DeviceAttributes {
  firmware: string;
  ports: number;
  regionBytesMax: number;
  regionsMax: number;
  queuePairsMax: number;
  requestsMax: number;
  piecesMax: number;
  completionQueuesMax: number;
  completionsMax: number;
  readsAsTargetMax: number;
  readsAsInitiatorMax: number;
  pkeys: number;
}

export interface PortAttributes {
  /** PORT_STATE. */
  state: number;
  /** 1 to 5: 256, 512, 1024, 2048, 4096 bytes. */
  mtu: number;
  mtuMax: number;
  lid: number;
  lmc: number;
  /** Entries of the GID table. */
  gids: number;
  messageBytesMax: number;
  /** LINK_LAYER. */
  linkLayer: number;
  width: number;
  speed: number;
  physicalState: number;
}

export interface GidEntry {
  index: number;
  /** 16 bytes. */
  gid: Uint8Array;
  /** 'IB/RoCE v1' or 'RoCE v2'; empty where the kernel does not say. */
  type: string;
  netdev: string;
}

/** `of` is the port, or the id of the queue or queue pair that it is about; 0 where it is about the device. */
export interface AsyncEvent {
  /** EVENT. */
  type: number;
  of: number;
}

export class Device extends Handle {
  readonly name: string;
  query(): DeviceAttributes;
  queryPort(port: number): PortAttributes;
  gid(port: number, index: number): Uint8Array | undefined;
  gids(port: number): GidEntry[];
  /** Readable when an event waits; for a poller. Belongs to the device: do not close it. */
  readonly asyncFd: number;
  /** The next asynchronous event, acknowledged; undefined when no event waits. */
  nextEvent(): AsyncEvent | undefined;
  allocDomain(): Domain;
  createChannel(): CompletionChannel;
  createCompletionQueue(depth: number, channel?: CompletionChannel): CompletionQueue;
}

export interface QueuePairOptions {
  sendQueue: CompletionQueue;
  /** Default: the same as `sendQueue`. */
  receiveQueue?: CompletionQueue;
  /** Requests that may be outstanding, and pieces in one of them. Defaults 64, 64, 1, 1. */
  sendRequests?: number;
  receiveRequests?: number;
  sendPieces?: number;
  receivePieces?: number;
  /** Longest inline send; the device may grant more. Default 0. */
  inlineBytes?: number;
  /** Every send completes, not only those with SEND_FLAG.SIGNALED. Default false. */
  signalAll?: boolean;
}

export class Domain extends Handle {
  /**
   * Registers the memory of a view: ACCESS bits. It is kept alive until the region is closed; it must not be transferred or resized
   * meanwhile, since the device knows the address alone.
   */
  register(view: ArrayBufferView, access: number): Region;
  createQueuePair(options: QueuePairOptions): QueuePair;
}

export class Region extends Handle {
  readonly lkey: number;
  readonly rkey: number;
  /** The address of the first byte, for the other side. */
  readonly address: bigint;
  /** The memory; undefined once closed. */
  readonly bytes: Uint8Array | undefined;
}

export interface Lease {
  readonly region: Region;
  /** The place of the first byte in the region. */
  readonly offset: number;
}

/**
 * Registrations of this side's own memory that outlive one transfer. A region reaches to the borders of `granuleBytes` (2 MiB) around what
 * is asked for, within its ArrayBuffer. Idle ones are kept, and keep their memory alive, within bounds.
 * What the other side may reach must end when it is said to end, and belongs in Domain.register().
 */
export class RegionCache {
  constructor(domain: Domain, access: number, options?: { idleBytesMax?: number; idleRegionsMax?: number; granuleBytes?: number });
  readonly hits: number;
  readonly misses: number;
  /** The region in which these bytes lie, registered now where no region holds them. Held until release(). */
  acquire(view: ArrayBufferView): Lease;
  release(lease: Lease): void;
  /** The memory is about to be transferred or given back: its regions go, those in use with their last user. */
  invalidate(buffer: ArrayBufferLike): void;
  /** Every region, whether in use or not. */
  close(): void;
}

export class CompletionChannel extends Handle {
  /** Readable when an event waits; for a poller. Belongs to the channel. */
  readonly fd: number;
  /** Takes and acknowledges the events that wait; answers how many. */
  takeEvents(): number;
}

export class CompletionQueue extends Handle {
  /** Fills `words`, COMPLETION_WORDS for each completion, and answers how many there were. */
  poll(words: Uint32Array): number;
  /** The channel gets one event at the next completion. What came before is not told: poll once more after this. */
  requestNotify(solicitedOnly?: boolean): void;
}

export interface PathAddress {
  /** RoCE, and InfiniBand beyond a subnet: 16 bytes, and the index of the own GID. */
  gid?: Uint8Array;
  gidIndex?: number;
  hopLimit?: number;
  trafficClass?: number;
  flowLabel?: number;
  /** InfiniBand within a subnet. */
  lid?: number;
  serviceLevel?: number;
  pathBits?: number;
  port: number;
}

export interface QueuePairAttributes {
  /** QP_STATE. */
  state?: number;
  pkeyIndex?: number;
  port?: number;
  /** ACCESS bits that the other side may use. */
  access?: number;
  mtu?: number;
  remoteNumber?: number;
  receivePsn?: number;
  sendPsn?: number;
  readsAsTarget?: number;
  readsAsInitiator?: number;
  rnrTimer?: number;
  /** 4.096 us * 2 ** timeout until a request is sent again; 0 = never. */
  timeout?: number;
  retryCount?: number;
  /** 7 = without limit. */
  rnrRetry?: number;
  address?: PathAddress;
}

export class QueuePair extends Handle {
  readonly number: number;
  /** As the device granted them. */
  readonly sendRequests: number;
  readonly receiveRequests: number;
  readonly inlineBytes: number;
  /** Changes what the object names, and nothing else. */
  modify(attributes: QueuePairAttributes): void;
  query(): { state: number; timeout: number; retryCount: number; mtu: number; remoteNumber: number };
  /** Posts the first `count` requests of `words`, REQUEST_WORDS each; answers how many the device took. */
  postSend(words: Uint32Array, count: number): number;
  postReceive(words: Uint32Array, count: number): number;
}

export interface Request {
  /** OPCODE; of no meaning in a receive. */
  opcode?: number;
  /** SEND_FLAG bits. */
  flags?: number;
  /** Comes back with the completion; below 2^53. */
  id?: number;
  remoteAddress?: bigint;
  rkey?: number;
  immediate?: number;
  /** At most PIECES_MAX. */
  pieces?: readonly (readonly [region: Region, offset: number, bytes: number])[];
}

/** Writes one request into `words`; programs that count nanoseconds write the words themselves (src/work.h says which). */
export function writeRequest(words: Uint32Array, index: number, request: Request): void;
/** Why the request at that index was not posted: an error number. */
export function errorOf(words: Uint32Array, index: number): number;

export const REQUEST_WORDS: 32;
export const COMPLETION_WORDS: 8;
export const PIECES_MAX: 4;
type Names<K extends string> = Readonly<Record<K, number>>;
export const OPCODE: Names<'WRITE' | 'WRITE_WITH_IMM' | 'SEND' | 'SEND_WITH_IMM' | 'READ'>;
export const SEND_FLAG: Names<'FENCE' | 'SIGNALED' | 'SOLICITED' | 'INLINE'>;
export const ACCESS: Names<'LOCAL_WRITE' | 'REMOTE_WRITE' | 'REMOTE_READ' | 'REMOTE_ATOMIC'>;
export const COMPLETION: Names<'SEND' | 'WRITE' | 'READ' | 'RECV' | 'RECV_WRITE_WITH_IMM'>;
export const STATUS: Readonly<Record<string, number>>;
export const QP_STATE: Names<'RESET' | 'INIT' | 'RTR' | 'RTS' | 'SQD' | 'SQE' | 'ERR'>;
export const PORT_STATE: Names<'NOP' | 'DOWN' | 'INIT' | 'ARMED' | 'ACTIVE' | 'ACTIVE_DEFER'>;
export const LINK_LAYER: Names<'UNSPECIFIED' | 'INFINIBAND' | 'ETHERNET'>;
export const EVENT: Readonly<Record<string, number>>;
/** The name of a number in one of these tables; the number itself when it has none. */
export function nameOf(table: Readonly<Record<string, number>>, value: number): string;
