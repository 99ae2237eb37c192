// What a rank of the campaign of bad links and the campaign say to each other: lines of JSON over a local socket, which no fault of the
// lab reaches. Imports nothing.
//
// A GAP is the time between two deliveries at a receiver while something for it is outstanding. Every message carries the time at which
// its sender handed it to the library (the machine's monotonic clock, which all namespaces share), so a gap that ends with the delivery
// of message i at time t is t - max(time of the delivery before, time at which i was sent): what nobody had sent is not missed.
//   bulk, small, mixed   rank 1 receives; a delivery is the completion of a receive. A sender of bulk keeps its window full.
//   pingpong             both ranks receive: a ball that is on its way back is not missed by the one who has it.
//   allreduce            a delivery is the return of an allreduce at a rank; it is outstanding from the call of rank 0 on, since the other
//                        ranks call again as soon as they have returned.
// With two streams of messages to a rank (mixed) each is a receiver of its own: who waits for the long messages is not served by short
// ones. A gap of either counts.

/** The messages that a job's traffic is made of. */
export const GRAY_TRAFFICS = {
  bulk: { ranks: 2, streams: 1, bytes: 1 << 20, text: '1 MiB, 16 under way' },
  small: { ranks: 2, streams: 1, bytes: 64, text: '64 B, 2,000 a second' },
  pingpong: { ranks: 2, streams: 1, bytes: 64, text: '64 B ping-pong' },
  allreduce: { ranks: 4, streams: 1, bytes: 64 << 10, text: '4 ranks, allreduce of 64 KiB' },
  mixed: { ranks: 2, streams: 2, bytes: 1 << 20, text: '1 MiB, 8 under way, and 500 of 64 B a second' },
} as const;
export type GrayTraffic = keyof typeof GRAY_TRAFFICS;

/** Planted mistakes of rank 0's first stream, to see that they are found. */
export const GRAY_PLANTS = {
  flip: 'a bit of a message is flipped',
  twice: 'a message is sent twice',
  swap: 'a message is sent under the number of the one after it',
  lose: 'a message is not sent',
  stall: 'nothing is sent for 15 s',
} as const;
export type GrayPlant = keyof typeof GRAY_PLANTS;

/** Argument of gray-rank. */
export interface GraySpec {
  control: string;
  traffic: GrayTraffic;
  /** Rails to each other rank that must be up before the traffic begins. */
  rails: number;
  /** Gaps are reported from this length on. */
  gapMinMs: number;
  reportEveryMs: number;
  plant?: GrayPlant | undefined;
}

/** By number of the lab's rail: what the rank has of it, over all peers. */
export interface GrayRail {
  rail: number;
  up: number;
  of: number;
  /** Since the start. */
  framesReceived: number;
}

/** Since the start, at one rank. */
export interface GrayBytes {
  /** Payload of messages that were delivered to the program. */
  delivered: number;
  /** As the library counts: payload that was sent more than once. */
  sentAgain: number;
  /** As the rails count: payload that was handed to them beyond one time each. It includes what still is under way. */
  beyondOnce: number;
}

/** [from, to, number of the stream] */
export type GrayGap = [number, number, number];

export type FromGrayRank =
  | { type: 'hello'; rank: number; pid: number }
  | { type: 'ready'; at: number }
  /** lastAt: the last delivery of the stream that has waited longest. */
  | { type: 'report'; at: number; lastAt: number; messages: number; bytes: GrayBytes; gaps: GrayGap[]; rails: GrayRail[] }
  | { type: 'rail'; at: number; event: string; key: string; peer: number; reason: string }
  /** Everything that was sent has left, and nothing is sent until the next `go`. */
  | { type: 'paused'; at: number }
  | { type: 'done'; sent: number[]; received: number[]; errors: string[]; counters: Record<string, number> };

/** To rank 0, which sets the pace. */
export type ToGrayRank = { type: 'go' } | { type: 'pause' } | { type: 'stop' };
