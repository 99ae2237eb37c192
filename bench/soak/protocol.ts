// What a rank of the soak and its driver say to each other, as JSON lines over a local socket. Imports nothing.

/** Planted mistakes, to see that they are found. */
export const PLANTS = {
  flip: 'rank 1 flips a bit of a message that it sends',
  twice: 'rank 1 sends a message twice',
  swap: 'rank 1 sends a message under the number of the one after it',
  lose: 'rank 1 does not send a message',
  leak: 'rank 1 keeps 1 KiB of every round',
} as const;
export type Plant = keyof typeof PLANTS;

/** Argument of soak-rank. */
export interface SoakSpec {
  control: string;
  seed: number;
  /** Rails to each other rank that must be up before the first round. */
  rails: number;
  sampleEveryMs: number;
  /** Intervals between two deliveries are reported from this length on. */
  gapMinMs: number;
  /** Without these only promises are used. */
  sync: boolean;
  plant?: Plant | undefined;
}

export interface SoakMemory {
  rssBytes: number;
  heapTotalBytes: number;
  heapUsedBytes: number;
  /** The part of the heap that V8 has compiled so far. */
  codeBytes: number;
  externalBytes: number;
  arrayBufferBytes: number;
  /** What the library retains of eager messages, and how many requests it knows of, between two rounds. */
  retainedBytes: number;
  pendingRequests: number;
}

export interface SoakCounts {
  /** Messages of the program, point to point. */
  sent: number;
  received: number;
  bytesReceived: number;
  collectives: number;
  /** Counters of the library: messages of collectives are among them. */
  pmlMessages: number;
  pmlBytes: number;
  ups: number;
  downs: number;
  bytesResent: number;
  envelopesResent: number;
  restarts: number;
  duplicatesDropped: number;
}

export type FromSoakRank =
  | { type: 'hello'; rank: number; pid: number }
  | { type: 'ready'; at: number }
  | { type: 'round'; at: number; round: number; counts: SoakCounts; gaps: [number, number][]; memory?: SoakMemory }
  /** The audit has found something: the rank ends with it. */
  | { type: 'wrong'; round: number; text: string }
  | { type: 'done'; rounds: number; counts: SoakCounts; pairs: SoakPairs };

/** By world rank: messages to and from each, over all tags and communicators. */
export interface SoakPairs {
  sent: number[];
  received: number[];
}

export type ToSoakRank = { type: 'stop' };
