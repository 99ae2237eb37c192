// What a rail behind the fault interposer keeps for each frame and sink, and what it needs from the module around it.
import type { CompletionStatus, Frame, OneSidedOp, Sink, Upcalls } from '../btl.ts';

export type Work = { frame: Frame; op: null } | { frame: null; op: OneSidedOp };

/** One accepted frame or operation. The Map that holds them keeps the order in which they were accepted. */
export interface Entry {
  work: Work;
  bytes: number;
  /** Handed to the inner endpoint. */
  given: boolean;
  /** On a bad path: when it leaves; 0 on a sound one. */
  dueMs: number;
  /** What the inner endpoint said while nobody might hear it. */
  settled: CompletionStatus | undefined;
}

export interface OpenSink {
  outer: Sink;
  inner: Sink;
  /** Its frame must not count: part of the payload went nowhere. */
  spoiled: boolean;
}

/** What the endpoint needs of the module around it. */
export interface FaultHost {
  readonly upcalls: Upcalls;
  /** Time of the latest progress(). */
  readonly now: number;
  readonly railTimeoutMs: number;
  readonly connectTimeoutMs: number;
  counted(): void;
  wake(): void;
}

/** The first half of the payload into the sink, the rest into nothing that anyone sees. */
export function halfOf(views: readonly Uint8Array[], payloadBytes: number): readonly Uint8Array[] {
  if (views.length === 0) return views;
  const half = Math.floor(payloadBytes / 2);
  const list: Uint8Array[] = [];
  let left = half;
  for (const view of views) {
    if (left === 0) break;
    const piece = view.subarray(0, left);
    list.push(piece);
    left -= piece.length;
  }
  list.push(new Uint8Array(payloadBytes - half));
  return list;
}
