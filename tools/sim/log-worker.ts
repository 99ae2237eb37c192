// What a process of the profile `log` is at a time, and what is decided for all of them.
import type { Holdings } from '../../src/ft/events/holdings.ts';
import type { Recorder, RecorderCut } from '../../src/ft/events/recorder.ts';
import type { SendLog } from '../../src/ft/log/send-log.ts';
import type { RecvRequest, SendRequest } from '../../src/pml/records.ts';
import type { Cut, Succession, Sync } from '../../src/pml/succession.ts';
import { COLL_BYTES_MAX } from './log-program.ts';

/** What a successor begins with; peers are ranks of the communicator. */
export interface Image {
  readonly place: number;
  readonly state: number;
  readonly cut: Cut;
  readonly outcomes: RecorderCut | undefined;
}

export interface Save {
  readonly images: readonly Image[];
}

export type Decision =
  | { readonly kind: 'save'; readonly committed: boolean }
  | { readonly kind: 'successors'; readonly epoch: number; readonly list: readonly { rank: number; dead: number; successor: number }[] }
  | { readonly kind: 'all go back' };

export interface Pending {
  readonly place: number;
  readonly request: SendRequest | RecvRequest;
  readonly buffer: Uint8Array;
  /** The request was used before. */
  readonly isAgain: boolean;
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
  /** It has gone back with all the others: nothing of the program is under way any more. */
  isBack: boolean;
  /** Members that died when its log was given up: what is sent to them, or waits for them, ends with an error. */
  readonly notHeld: Set<number>;
  /** The epoch in which it has begun, with all of its group: where groups go back, their messages among themselves carry it. */
  began: number;
  /** Contexts that its program has freed: as in src/mpi, what comes for them is a late copy, and is dropped. */
  readonly freed: Set<number>;
  /** It is a successor whose program does not repeat itself. */
  drifts: boolean;
  /** A request that has ended, to be used again. */
  ended: RecvRequest | undefined;
  /** Collectives send from it and receive into it. */
  memory: Uint8Array;
  /** The last message in it was sent. */
  isMemorySent: boolean;
  /** Where the program is wild: its outcomes, and those of others. */
  recorder: Recorder | undefined;
  holdings: Holdings | undefined;
  /** A look or a probe from anybody that it is at: what was listed of it. */
  listed: { readonly values: readonly number[] | 'nothing' | undefined } | undefined;
  probing: { readonly receive: number; readonly source: number | undefined } | undefined;
  lastSource: number;
  /** By rank and context: what its log begins with, which are the numbers of the newest save of which it knows. */
  logBegins: Map<string, number>;
}

/** It has been decided who succeeds somebody, and this process has yet to hear of it: its log is needed. */
export const awaitsSuccessors = ({ news }: Pick<Worker, 'news'>): boolean => news.some(({ kind }) => kind === 'successors');

/** By rank and context: the numbers that a log begins with once that save is committed. */
export function beginsOf(members: readonly number[], { flows }: Cut): Map<string, number> {
  return new Map(flows.map(({ peer, ctx, nextOut }) => [`${members.indexOf(peer)}/${ctx}`, nextOut]));
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
    isBack: false,
    notHeld: new Set(),
    began: 0,
    freed: new Set(),
    drifts: false,
    ended: undefined,
    memory: new Uint8Array(COLL_BYTES_MAX),
    isMemorySent: false,
    recorder: undefined,
    holdings: undefined,
    listed: undefined,
    probing: undefined,
    lastSource: 0,
    logBegins: new Map(),
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
  // Requests that were used again; those that waited for a process when it was succeeded.
  persistent: 0,
  persistentHeld: 0,
  // Contexts that were freed, and those that a successor freed again while it repeated.
  freed: 0,
  freedAgain: 0,
  // Receives into memory from which a message had just been sent.
  inPlace: 0,
  // Messages to a successor, or of one that repeats, that went without their data for want of credit.
  stalledReplays: 0,
  // Outcomes that were recorded and obeyed, messages that waited for those to be safe, and lists that were lost with their holders.
  recorded: 0,
  obeyed: 0,
  gated: 0,
  listsLost: 0,
});
