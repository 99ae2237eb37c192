// The native part as TypeScript sees it: its typed surface, and the one place that loads it. The native part moves bytes and reports
// counts; it knows no tag, no sequence, no rail and no retry. Every descriptor is a plain number that its opener closes.
//
// Hot calls return a count >= 0, or a negative errno (-EAGAIN = nothing now). Cold calls throw an Error with `code` ('EADDRINUSE') and
// `syscall`; calls without an answer (close, eventSignal, pollerSet, …) count as cold. An argument of the wrong type, a number that is not
// whole, and a range outside its bytes throw a TypeError with the code ERR_INVALID_ARG. Hosts are numeric addresses. No call blocks, except
// `pollerWait` with a timeout. JavaScript is never called from another thread.

/** Raised with every change of this surface: a binary of another number is not used. */
export const NATIVE_ABI = 9;

export interface SocketOptions {
  /** Interface to bind to (SO_BINDTODEVICE); '' = none. */
  device?: string;
  /** TCP_CONGESTION; '' = the system's. An unknown name is ignored (the answer of `congestionOf` tells). */
  congestion?: string;
  /** TCP_NOTSENT_LOWAT in bytes; 0 = the system's. */
  notSentLowatBytes?: number;
  /** SO_SNDBUF and SO_RCVBUF in bytes; 0 = the system's (autotuned). */
  sendBufferBytes?: number;
  receiveBufferBytes?: number;
}

export interface SocketName {
  /** Numeric; link-local IPv6 addresses carry their zone (`fe80::1%eth0`). */
  address: string;
  port: number;
}

/** An event of the kernel's own, from `netlinkRead`. */
export type NetlinkEvent =
  | {
      type: 'link';
      index: number;
      name: string /** IFF_UP */;
      up: boolean /** IFF_RUNNING and IFF_LOWER_UP */;
      carrier: boolean;
      removed: boolean;
    }
  | { type: 'address'; index: number; address: string; removed: boolean }
  /** Events were lost (ENOBUFS): look at everything again. */
  | { type: 'overrun' };

/** Indices of the Float64Array that `tcpInfo` fills. */
export const TCP_INFO = {
  /** Kernel's connection state: 1 = ESTABLISHED. */
  state: 0,
  /** Segments sent and not acknowledged. */
  unackedSegments: 1,
  /** Bytes in the send buffer that were never sent. */
  notSentBytes: 2,
  /** Cumulative bytes that the peer's kernel acknowledged (the dialer's counts one for the SYN), and that we received. */
  ackedBytes: 3,
  receivedBytes: 4,
  /** Milliseconds since the last acknowledgement, the last data in, the last data out. */
  sinceAckMs: 5,
  sinceDataReceivedMs: 6,
  sinceDataSentMs: 7,
  rttUs: 8,
  rtoUs: 9,
  /** The peer's receive window in bytes (0 = it does not read); -1 where the kernel does not tell. */
  sendWindowBytes: 10,
  /** Times in a row that the retransmission timer ran out without an answer; not the sum of all retransmissions. */
  retransmits: 11,
  /** Bytes in the send buffer, sent or not (SIOCOUTQ). */
  sendQueueBytes: 12,
  /** Segments sent again since the connection began, for whatever reason; and the least round trip of the last minutes. */
  retransmissions: 13,
  minRttUs: 14,
  /** Segments that the peer says it got twice: those were sent again for nothing. -1 where the kernel does not tell. */
  duplicates: 15,
} as const;
export const TCP_INFO_LENGTH = 16;

/** Readiness bits of the poller; those of epoll. */
export const POLL_IN = 1;
export const POLL_OUT = 4;
export const POLL_ERR = 8;
export const POLL_HUP = 16;
export const POLL_RDHUP = 0x2000;

/** What `combine` takes. */
export type CombineArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** How `watchWords` ends: as often as asked for in vain; a word has changed; another process took an offer of the processor for long. */
export const WATCH = { NOTHING: 0, CHANGED: 1, TAKEN_AWAY: 2 } as const;
/** Words that it looks at together. */
export const WATCHED_MAX = 64;

/** Operations of `combine`. */
export const COMBINE = { SUM: 0, PROD: 1, MAX: 2, MIN: 3, LAND: 4, LOR: 5, LXOR: 6, BAND: 7, BOR: 8, BXOR: 9 } as const;

/** Places in the plan of `sharedCall`: native/addon/src/shm/shared-call.h says what each is. */
export const SHARED_CALL = {
  flagAt: 0,
  stride: 1,
  members: 2,
  rank: 3,
  call: 4,
  nextCall: 5,
  code: 6,
  bytes: 7,
  puts: 8,
  from: 9,
  until: 10,
  /** One of COMBINE, or -1. */
  op: 11,
  source: 12,
  clearAt: 13,
  bellAt: 14,
  looks: 15,
  looksPerYield: 16,
  takenAwayUs: 17,
} as const;
export const SHARED_CALL_LENGTH = 18;
/**
 * Bits of its answer: the call is done; somebody waits for a bell; another process took an offer of the processor for long; a member has failed, or
 * makes another call. None: not all have come yet.
 */
export const SHARED_CALL_END = { DONE: 1, BELL: 2, TAKEN_AWAY: 4, UNFIT: 8 } as const;

export interface NativeBinding {
  readonly abi: number;

  // --- sockets. All non-blocking, close-on-exec, TCP_NODELAY; writes never raise SIGPIPE.
  /** Listens; `port` 0 = any. The options are inherited by what is accepted. */
  tcpListen(host: string, port: number, backlog: number, options: SocketOptions): number;
  /** A connection, or -EAGAIN. */
  accept(fd: number): number;
  /** Begins to connect from `localHost` ('' = any). Throws when that fails at once. */
  tcpConnect(host: string, port: number, localHost: string, options: SocketOptions): number;
  /** After POLL_OUT: 0, or the negative errno of the attempt (SO_ERROR). */
  connectResult(fd: number): number;
  socketName(fd: number): SocketName;
  peerName(fd: number): SocketName;
  congestionOf(fd: number): string;
  /** Sends and receives as the socket calls do: 0 from recv = the peer closed. Bounds are checked. */
  send(fd: number, bytes: Uint8Array, offset: number, length: number): number;
  recv(fd: number, bytes: Uint8Array, offset: number, length: number): number;
  /**
   * One sendmsg with everything: chunks[from..], the first of them from its byte `skip` on (at most IOV_MAX chunks are looked at).
   * Returns the bytes taken.
   */
  sendv(fd: number, chunks: readonly Uint8Array[], from: number, skip: number): number;
  /** One readv into `first` (from `offset`, `length` bytes) and then into `rest`. Returns the bytes of both together. */
  recv2(fd: number, first: Uint8Array, offset: number, length: number, rest: Uint8Array): number;
  shutdownWrite(fd: number): number;
  /** Any descriptor made here. */
  close(fd: number): void;
  /** SO_LINGER 0 and close: the peer sees a reset. */
  closeReset(fd: number): void;
  /** Fills `out` (TCP_INFO_LENGTH); 0 or negative errno. */
  tcpInfo(fd: number, out: Float64Array): number;

  // --- local sockets, which carry descriptors
  /** A name that begins with NUL is abstract. */
  unixListen(name: string, backlog: number): number;
  unixConnect(name: string): number;
  /** Process and user at the other end (SO_PEERCRED). */
  unixPeer(fd: number): { pid: number; uid: number };
  /** Bytes with at most 8 descriptors; at least one byte. Returns the bytes taken. */
  sendDescriptors(fd: number, bytes: Uint8Array, descriptors: readonly number[]): number;
  /**
   * As recv, and pushes the descriptors that came onto `descriptors` (the caller closes them). -EMSGSIZE when there were more than 8,
   * which are closed; the byte is taken.
   */
  recvDescriptors(fd: number, bytes: Uint8Array, descriptors: number[]): number;

  // --- readiness: one epoll set per poller, watched by the event loop
  /**
   * `onReady` is called from the event loop when something in the set is ready (through napi_make_callback, so that microtasks run
   * after each call), again at once for as long as it returns true.
   */
  pollerOpen(onReady: () => boolean): number;
  /**
   * Adds, changes (events 0 = none, stays in the set) or removes (events -1) a descriptor. Level-triggered. Errors and hang-ups are
   * reported even when they were not asked for; with events 0 each of them once.
   */
  pollerSet(poller: number, fd: number, events: number): void;
  /**
   * What is ready: pairs [fd, events] in `out`, at most 256; returns the number of pairs. timeoutMs 0 = look only, else sleeps in the
   * kernel for at most that long (fractions count: epoll_pwait2 where it is). A signal ends the sleep with 0.
   */
  pollerWait(poller: number, out: Int32Array, timeoutMs: number): number;
  /** Whether the poller keeps the event loop alive. */
  pollerRef(poller: number, keepsAlive: boolean): void;
  pollerClose(poller: number): void;
  yieldCpu(): void;

  // --- doorbells (eventfd)
  eventOpen(): number;
  eventSignal(fd: number): void;
  /** Takes the signals; returns whether there were any. */
  eventClear(fd: number): boolean;

  // --- shared memory
  /** An anonymous segment (memfd), sealed against shrinking. Gone with its last descriptor and mapping, whatever kills its makers. */
  memoryCreate(name: string, bytes: number): number;
  /**
   * Maps a segment, shared. Throws when the segment is smaller (ERR_SEGMENT_SIZE), or not sealed against shrinking (ERR_SEGMENT_SEAL),
   * or when this runtime allows no ArrayBuffer over foreign memory (ERR_NO_EXTERNAL). Without memoryUnmap it is unmapped when the
   * ArrayBuffer is collected.
   */
  memoryMap(fd: number, bytes: number): ArrayBuffer;
  /** Detaches the ArrayBuffer and unmaps at once. A second time throws ERR_INVALID_ARG. */
  memoryUnmap(memory: ArrayBuffer): void;
  /**
   * An ArrayBuffer over the memory of a view, which belongs to others and has to live as long: what is shared with other threads can be
   * copied through it without an atomic access for each word. Throws ERR_NO_EXTERNAL as memoryMap.
   */
  memoryAlias(bytes: Uint8Array): ArrayBuffer;
  /** Address of a view in this process, exact (below 2^53). */
  addressOf(bytes: Uint8Array): number;
  /** process_vm_readv: reads `length` bytes at `address` of process `pid`. Count or negative errno. */
  processRead(pid: number, address: number, bytes: Uint8Array, offset: number, length: number): number;
  /**
   * Looks at the first `count` (at most WATCHED_MAX) of the arrays, each at its word places[2 i], until one is not places[2 i + 1]: at most
   * `looks` times, with an offer of the processor after each `looksPerYield` of them. Returns one of WATCH.
   */
  watchWords(
    words: readonly Int32Array[],
    places: Int32Array,
    count: number,
    looks: number,
    looksPerYield: number,
    takenAwayMs: number,
  ): number;
  /**
   * A short collective call in memory that ranks share, in one step, or as much of it as can be done without a sleep: native/addon/src/shm/shared-call.h.
   * `own`: what this rank puts, or empty. `out`: where the result comes, of the length in the plan, or undefined. Both lie apart from `words`.
   */
  sharedCall(words: Int32Array, plan: Int32Array, own: Uint8Array, out: CombineArray | undefined): number;
  /** A handle that becomes readable (POLL_IN) when the process ends (pidfd_open); negative errno where there is none. */
  processWatch(pid: number): number;

  // --- events of the network
  /** Subscribes to link and address events of this network namespace. */
  netlinkOpen(): number;
  /** What has come; [] = nothing now. */
  netlinkRead(fd: number): NetlinkEvent[];
  /**
   * The interface by which packets to `remote` from `local` ('' = any) would leave now, policy rules included. Throws with the code that a
   * connection would get (ENETUNREACH, EHOSTUNREACH, EACCES) when there is no way, or when the question itself failed.
   */
  routeDevice(remote: string, local: string): string;
  /** All interfaces as they are now. */
  links(): { index: number; name: string; up: boolean; carrier: boolean }[];

  // --- checksums
  /** CRC32C of bytes[offset, offset+length), continuing `crc` (0 = beginning). */
  crc32c(bytes: Uint8Array, offset: number, length: number, crc: number): number;
  /** Copies `source` to `target`, as long and apart from it, and gives the CRC32C of what was copied: each byte is read once. */
  copyCrc32c(target: Uint8Array, source: Uint8Array, crc: number): number;
  /**
   * Frames of btl/base/frame-hdr.ts that stand in bytes[from, to), one after the other, each followed by its payload when that is at
   * most `inlinePayloadMax` bytes: writes the header CRC of each. Throws ERR_INVALID_ARG when they do not fill the range exactly.
   */
  frameSeal(bytes: Uint8Array, from: number, to: number, inlinePayloadMax: number): void;
  /**
   * Frames that stand in bytes[from, to), each followed by its payload: how far the header CRCs are sound. Returns the end of the
   * last frame whose header and packet header are whole and sound (its payload may be cut off: the end then lies beyond `to`); `from`
   * when none is. Magic, version, lengths and CRC are looked at; kinds, flags and limits are the caller's.
   */
  frameScan(bytes: Uint8Array, from: number, to: number): number;

  // --- reductions
  /**
   * out[k + n] = left[i + n] operation right[j + n] for `count` elements of three typed arrays of one class, with the results of the same
   * loop in JavaScript, bit for bit but for the payload of a NaN: integers wrap around (those of a Uint8ClampedArray are cut), of MAX and
   * MIN NaN wins, and MAX takes 0 before -0. `op` is one of COMBINE; logical and bitwise ones are for integers. `out` is the memory of an
   * operand at the same place, or apart from both.
   */
  combine(op: number, left: CombineArray, i: number, right: CombineArray, j: number, out: CombineArray, k: number, count: number): void;

  // --- the machine, for the launcher and benchmarks
  /** Binds the calling thread to a processor: 0 or negative errno. */
  setAffinity(cpu: number): number;
  currentCpu(): number;
}

/** An addon of this process, or why there is none. */
export type Availability<T> = { binding: T; reason: undefined; path: string } | { binding: undefined; reason: string };
export type NativeAvailability = Availability<NativeBinding>;
