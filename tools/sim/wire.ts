// What travels through the pipes of the simulated fabric, and the interfaces between fabric and SimBtl.
// Types and a few constants only.
import type { Hello, RailReason } from '../../src/btl/btl.ts';
import type { ErrorCode } from '../../src/errors.ts';

/** One side of one rail epoch. The fabric marks it when the stream that it sends has lost something. */
export interface SimConn {
  readonly epoch: number;
  /** The module ended it: nothing more of it is transmitted. */
  ended: boolean;
  /** A cut or a hole took part of what this side sent: the rest of the stream is worthless and vanishes too. */
  gap: boolean;
}

/** What each item of a live epoch tells of its sender: delivered count, bytes heard, alive time. */
export interface Report {
  count: number;
  receivedBytes: number;
  aliveMs: number;
}

export interface HelloItem {
  kind: 'hello';
  epoch: number;
  hello: Hello;
  jobId: string;
  /** Stands for the HMAC proof: both secrets must be equal. */
  secret: Uint8Array | undefined;
}

/** A piece of a frame; the first one carries the header. */
export interface CellItem {
  kind: 'cell';
  epoch: number;
  number: number;
  first: boolean;
  last: boolean;
  header: Uint8Array | null;
  payloadBytes: number;
  placed: boolean;
  prompt: boolean;
  chunk: Uint8Array;
  headerDamaged: boolean;
  payloadDamaged: boolean;
  report: Report | null;
}

export type WireItem =
  | HelloItem
  /** The peer's kernel took the connection; its process has not answered yet. */
  | { kind: 'kernelAck'; epoch: number }
  | { kind: 'helloOk'; epoch: number; proof: Uint8Array | undefined }
  | { kind: 'helloRefused'; epoch: number; text: string; highestEpoch: number | undefined; code?: ErrorCode; isAsked?: boolean }
  | CellItem
  | { kind: 'count'; epoch: number; report: Report | null }
  | { kind: 'nack'; epoch: number; number: number }
  | { kind: 'probe'; epoch: number; probeId: number }
  | { kind: 'probeAnswer'; epoch: number; probeId: number; report: Report | null }
  | { kind: 'bye'; epoch: number; number: number; report: Report | null }
  | { kind: 'close'; epoch: number }
  | { kind: 'put'; epoch: number; number: number; key: number; offset: number; chunk: Uint8Array; last: boolean }
  | { kind: 'putAck'; epoch: number; number: number }
  | { kind: 'get'; epoch: number; number: number; key: number; offset: number; bytes: number }
  | { kind: 'getData'; epoch: number; number: number; at: number; chunk: Uint8Array; last: boolean }
  | { kind: 'remoteError'; epoch: number; number: number; text: string };

/** What waits for transmission. Bytes are copied only when the last of them leaves (`capture`), as from a real buffer. */
export interface Parcel {
  /** The stream it belongs to; null for handshake items. */
  conn: SimConn | null;
  /** Bytes on the wire, for the bandwidth. */
  bytes: number;
  /** Copies what is sent; null when there is nothing to send any more. */
  capture(): WireItem | null;
}

/** Implemented by SimBtl. Called by the fabric from advanceTo() and from fault controls, never from progress(). */
export interface Nic {
  arrive(linkNo: number, peer: number, item: WireItem): void;
  /** The rail's own liveness check found it dead. Concerns the epoch that is live now. */
  lost(linkNo: number, peer: number, reason: RailReason): void;
  /** The live stream of this side, if any. */
  conn(linkNo: number, peer: number): SimConn | null;
  /** The process may run again. */
  resumed(): void;
  /** The process is dead: it makes no call any more. */
  killed(): void;
}

/** Bytes that an item without payload takes on the wire. */
export const ITEM_BYTES = 24;

/** What a module says of itself in the modex. */
export interface SimAddress {
  sim: number[];
}
