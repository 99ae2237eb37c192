// What a process of the profile `log` is at a time, and what is decided for all of them.
import type { SendLog } from '../../src/ft/log/send-log.ts';
import type { RecvRequest, SendRequest } from '../../src/pml/records.ts';
import type { Cut, Succession, Sync } from '../../src/pml/succession.ts';

/** What a successor begins with; peers are ranks of the communicator. */
export interface Image {
  readonly place: number;
  readonly state: number;
  readonly cut: Cut;
}

export interface Save {
  readonly images: readonly Image[];
}

export type Decision =
  | { readonly kind: 'save'; readonly committed: boolean }
  | { readonly kind: 'successors'; readonly list: readonly { rank: number; dead: number; successor: number }[] }
  | { readonly kind: 'all go back' };

export interface Pending {
  readonly place: number;
  readonly request: SendRequest | RecvRequest;
  readonly buffer: Uint8Array;
}

export interface Worker {
  readonly number: number;
  readonly log: SendLog;
  succession: Succession | undefined;
  rank: number;
  members: number[];
  place: number;
  state: number;
  /** Sends and posted receives of this step. */
  sends: Pending[];
  posted: Pending[];
  /** What it waits for now. */
  current: Pending | undefined;
  cut: Cut | undefined;
  /** Decisions that it has yet to hear, oldest first. */
  readonly news: Decision[];
  hears: boolean;
  /** It has a place; a standby has none. */
  isCalled: boolean;
  readonly syncs: Map<number, Sync>;
  /** Its program runs. */
  runs: boolean;
  isOver: boolean;
  /** It is a successor whose program does not repeat itself. */
  drifts: boolean;
  /** A request that has ended, to be used again. */
  ended: RecvRequest | undefined;
}

/** One that stands by, or is about to begin. */
export function newWorker(number: number, log: SendLog, isCalled: boolean): Worker {
  return {
    number,
    log,
    succession: undefined,
    rank: -1,
    members: [],
    place: 0,
    state: 0,
    sends: [],
    posted: [],
    current: undefined,
    cut: undefined,
    news: [],
    hears: false,
    isCalled,
    syncs: new Map(),
    runs: false,
    isOver: false,
    drifts: false,
    ended: undefined,
  };
}

/** What a run has come by. */
export const newLogCounters = () => ({
  saves: 0,
  abandoned: 0,
  successions: 0,
  fallbacks: 0,
  suppressed: 0,
  replayed: 0,
  logged: 0,
  unlogged: 0,
  divergences: 0,
});
