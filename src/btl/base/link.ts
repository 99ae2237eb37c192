// What an endpoint needs from one live rail epoch, whether frames of a byte stream (rail-link.ts) or records (record-link.ts) carry it.
import type { BtlEndpoint, Frame, RailByteCounters, RailReason, SendResult, Sink, Upcalls } from '../btl.ts';
import type { ByteStream } from './byte-stream.ts';

/** How the epoch ended: `clean` after BYE both ways, else with a reason. */
export type LinkEnd = { clean: true } | { clean: false; reason: RailReason };

/** What the link needs of the endpoint that owns it. */
export interface LinkOwner {
  readonly endpoint: BtlEndpoint;
  readonly upcalls: Upcalls;
  readonly counters: RailByteCounters;
  readonly options: LinkOptions;
  byeDelivered: boolean;
}

export interface LinkOptions {
  payloadCrc: boolean;
  refusalsMax: number;
  ackFrames: number;
  ackBytes: number;
  ackDelayMs: number;
  /** How long a rail that ended by BYE both ways may take to close in good order. */
  endTimeoutMs: number;
}

/** One live rail epoch. Makes upcalls only from poll() and close(). */
export interface Link {
  readonly epoch: number;
  /** The connection whose handshake began the epoch. */
  readonly stream: ByteStream;
  readonly outstandingBytes: number;
  /** Bytes of this epoch that the peer says it has received. */
  readonly receivedByPeerBytes: number;
  /** Set once the epoch is over; the owner then makes the upcalls with close(). */
  readonly end: LinkEnd | undefined;
  send(frame: Frame, windowBytes: number): SendResult;
  flush(): void;
  /** As of the endpoint: true when no payload memory of an accepted frame is read any more. */
  letGo(): boolean;
  probe(probeId: number, paddingBytes: number): void;
  bye(): void;
  /** B4; false when the sink is not open here. */
  revokeSink(sink: Sink): boolean;
  /** Synchronous (B6): from here on no byte lands anywhere and nothing is handed up; close() makes the upcalls. */
  cut(reason: RailReason): void;
  /** At shutdown: true when BYE went both ways, so that the stream may write out its last bytes and close in good order. */
  endsWell(): boolean;
  /** poll() would find nothing to do, and no frame waits for room. The times are those of the turn, and are taken all the same. */
  isQuiet(now: number, aliveMs: number): boolean;
  /** Reads what has come in and makes the upcalls for it; returns how many. */
  poll(now: number, aliveMs: number): number;
  /** Whether a frame that was refused as BUSY would go now; asked once per progress. */
  takeWritable(windowBytes: number): boolean;
  /** True when takeWritable() would say yes: the window was raised by a down-call. */
  writableNow(windowBytes: number): boolean;
  /** When poll() is due, in milliseconds of `now`; at once where a frame that was refused as BUSY would go now. */
  nextDeadline(windowBytes: number): number;
  /** The upcalls of an ended epoch: railDown first, then sinks and completions, in order (B3). Returns how many. */
  close(): number;
}

/** The upcalls that come first when an epoch has ended (B3): railDown, and the sink that was open. Returns how many. */
export function tellEnd({ endpoint, upcalls }: LinkOwner, epoch: number, end: LinkEnd, openSink: Sink | null): number {
  if (end.clean) return 0;
  upcalls.onRailDown(endpoint, epoch, end.reason);
  if (openSink === null) return 1;
  upcalls.onSinkDropped(endpoint, epoch, openSink);
  return 2;
}
