// What the dashboard's server tells its page, as JSON over a WebSocket, and the events that /events and --events FILE give too. Types and
// tables only, since the page is built from this file as well.

/** What happens in a job, and what the fields of such an event mean. Every event has seq, time, atMs, type and text. */
export const EVENT_TYPES = {
  'job-started': 'The ranks are being started. job, size, command.',
  'rank-joined': 'The rank has found the launcher. rank, pid, host.',
  'rank-finalized': 'The rank has delivered everything and may exit. rank.',
  'rank-exited': 'Its process has ended. rank, code or signal.',
  'rank-died': 'Its process has died, and the others go on (parameter ft). rank, code or signal.',
  'standby-waits': 'A process waits to be called into the place of a dead one. rank.',
  'standby-called': 'A process that stood by has taken a place: its rank there. rank, place.',
  saved: 'Saves were committed since the last such event, as rank 0 tells. rank, saves, bytes.',
  recovered: 'The program was called again after failures, as rank 0 tells. rank, failures, lostSteps (all so far).',
  'job-aborted': 'A rank has ended the job. rank, code, reason.',
  'job-ended': 'Every process is gone. code.',
  'rail-state': 'A rail went from one state to another, as that rank sees it. rank, peer, rail, transport, key, from, to, reason.',
  'rail-lost': 'A rail carries no more; what was in doubt goes over the others. rank, peer, rail, transport, key, epoch, reason, up, of.',
  'rail-restored': 'A lost rail carries again. rank, peer, rail, transport, key, epoch, up, of.',
  'rail-added':
    'A rail of interfaces that came after the start carries for the first time. rank, peer, rail, transport, key, epoch, up, of.',
  'rail-suspect': 'Nothing has come through a rail for a while. rank, peer, rail, transport, key, epoch, reason, up, of.',
  'rail-degraded': 'After a loss: fewer rails than there could be. rank, peer, up, of.',
  'rail-last': 'After a loss: one rail is left. rank, peer, up, of.',
  'peer-unreachable': 'After a loss: no rail is left; the peer is dialled until its timeout. rank, peer, up, of.',
  resent: 'The rank has sent again what was in doubt. rank, bytes, envelopes, restarts (since the last such event).',
  ordered: 'Somebody broke or repaired something from the dashboard. action, target.',
  'lab-action':
    'Something was done to the links of the lab: from the dashboard, by a timeline, or in another shell. action, labRail, node.',
  'events-dropped':
    'Changes of state that a rank could not report, or, without rank, events that came faster than they could be taken. rank, count.',
} as const;
export type EventType = keyof typeof EVENT_TYPES;

export interface JobEvent {
  /** Counts from 1, without gaps. */
  seq: number;
  /** ISO 8601, UTC. */
  time: string;
  /** Milliseconds since the job was started. */
  atMs: number;
  type: EventType;
  /** The event in a sentence. */
  text: string;
  rank?: number;
  peer?: number;
  rail?: number;
  transport?: string;
  key?: string;
  [field: string]: unknown;
}

export interface JobView {
  jobId: string;
  /** Processes, those that stand by among them. */
  size: number;
  /** So many of them stand by at the start. */
  spares: number;
  /** The others go on when a process dies (parameter ft). */
  survivesFailures: boolean;
  command: readonly string[];
  /** ISO 8601, UTC. */
  startedAt: string;
  version: string;
  /** How often ranks report, and the width of a slot of the history. */
  intervalMs: number;
  /** Slots of the history. */
  slots: number;
  /** Rails that found no room in the history; their states and counts are shown all the same. */
  seriesDropped: number;
  ended?: { atMs: number; exitCode: number; failure?: string };
}

/** STARTING no word yet; JOINED in the job; FINALIZED done; EXITED its process is gone. */
export type RankPhase = 'STARTING' | 'JOINED' | 'FINALIZED' | 'EXITED';

export interface RankView {
  rank: number;
  phase: RankPhase;
  /** Its process has died, and the others go on (parameter ft). */
  died: boolean;
  /** The rank that it works as, which is that of a dead process where it was called in; null while it stands by. */
  place: number | null;
  pid: number;
  host: string;
  /** When its last report came, on the clock of atMs; -1 = never. */
  heardMs: number;
  aliveMs: number;
  retainedBytes: number;
  takesFaults: boolean;
  /** Counters of the PML, by name. */
  counters: Readonly<Record<string, number>>;
  exit?: { code?: number; signal?: string };
}

export interface RailView {
  rank: number;
  peer: number;
  rail: number;
  key: string;
  transport: string;
  standby: boolean;
  state: string;
  /** When the launcher heard of this state first, on the clock of atMs. */
  sinceMs: number;
  epoch: number;
  reason: string;
  outstandingBytes: number;
  windowBytes: number;
  measuredBytesPerSecond: number;
  bandwidthBytesPerSecond: number;
  latencyUs: number;
  counters: Readonly<Record<string, number>>;
}

/** Bytes in successive slots of the history; a newer run replaces what an older one said of the same slots. */
export interface SeriesRun {
  /** `sent RANK PEER RAIL`, `received RANK PEER RAIL`, `resent RANK`. */
  key: string;
  first: number;
  bytes: readonly number[];
}

/** Something that can be broken: a rail of a pair of ranks, a cable of a lab, a process. */
export interface ControlTarget {
  id: string;
  label: string;
  state: TargetState;
  /** The state in a sentence, where its name does not say everything. */
  detail?: string;
  actions: readonly ControlAction[];
  /** The rails that run over it; shown beside them. */
  rails: readonly { rank: number; peer: number; rail: number }[];
}
export type TargetState =
  | 'alive'
  | 'dead'
  | 'up'
  | 'throttled'
  | 'impaired'
  | 'one-way'
  | 'flapping'
  | 'pulled'
  | 'black-holed'
  | 'changing';
export const CONTROL_ACTIONS = ['pull', 'blackhole', 'oneway', 'loss', 'delay', 'reorder', 'flip', 'flap', 'restore', 'kill'] as const;
export type ControlAction = (typeof CONTROL_ACTIONS)[number];

/** One thing that a rank waits for. */
export interface WaitView {
  kind: string;
  peer: number | 'any';
  tag: number | 'any';
  /** Name of the communicator. */
  comm: string;
  /** The collective that waits, if it is not a message of the user's own. */
  call?: string | undefined;
  bytes: number;
  waitedMs: number;
  phase: string;
  rails: readonly string[];
}

/** A report of who waits for whom, as the launcher makes it. */
export interface WaitsView {
  reason: string;
  ranks: readonly {
    /** Number of the process: that of the rank, but for a shadow. */
    rank: number;
    /** It is a further replica of that rank. */
    shadowOf?: number;
    /** blocked: it is in a blocking call, hears no question, and said `agoMs` ago by itself what it waits for. */
    state: 'answered' | 'blocked' | 'silent' | 'ended' | 'absent';
    agoMs?: number;
    waits?: { pid: number; more: number; waits: readonly WaitView[] };
  }[];
  cycles: readonly (readonly number[])[];
}

/** From the server to the page. The first message of a connection is a snapshot. */
export type PageMessage =
  | {
      type: 'snapshot';
      nowMs: number;
      job: JobView;
      ranks: readonly RankView[];
      rails: readonly RailView[];
      events: readonly JobEvent[];
      history: readonly SeriesRun[];
      targets: readonly ControlTarget[];
      waits: (WaitsView & { atMs: number }) | null;
      /** The page may ask for a report of who waits for whom. */
      canAskWaits: boolean;
    }
  | {
      type: 'update';
      nowMs: number;
      /** What changed since the last message. */
      job?: JobView;
      ranks?: readonly RankView[];
      rails?: readonly RailView[];
      events?: readonly JobEvent[];
      history?: readonly SeriesRun[];
      targets?: readonly ControlTarget[];
      waits?: WaitsView & { atMs: number };
    };
