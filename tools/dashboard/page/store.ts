// The page's copy of the job: what the server sent, put together, and the questions that the views ask. It uses neither the DOM nor a
// clock.
import type { ControlTarget, JobEvent, JobView, PageMessage, RailView, RankView, SeriesRun, WaitsView } from '../messages.ts';

export const EVENTS_SHOWN_MAX = 2000;
/** A rank that was not heard of for so long, or for so many reports, is busy. */
const BUSY_MS = 1500;
const BUSY_REPORTS = 4;

/** Worst first: of the two ends of a rail the worse one counts. */
export const STATES = {
  DOWN: { word: 'down', symbol: 'cross', carries: false },
  CONNECTING: { word: 'connecting', symbol: 'ring', carries: false },
  PROBING: { word: 'probing', symbol: 'ring', carries: false },
  TRIAL: { word: 'bad, on trial', symbol: 'hollow-triangle', carries: false },
  SUSPECT: { word: 'bad, suspect', symbol: 'triangle', carries: true },
  UP: { word: 'up', symbol: 'disc', carries: true },
  ON_DEMAND: { word: 'on demand', symbol: 'dots', carries: false },
  CLOSED: { word: 'closed', symbol: 'bar', carries: false },
} as const;
export type LinkState = keyof typeof STATES;

/** A rail between two ranks, as both ends see it. */
export interface Link {
  /** `LOW HIGH RAIL` */
  id: string;
  low: number;
  high: number;
  rail: number;
  transport: string;
  key: string;
  standby: boolean;
  state: LinkState;
  /** By low and by high; undefined while that end has said nothing. */
  ends: readonly [RailView | undefined, RailView | undefined];
}

interface Series {
  first: number;
  bytes: number[];
}

/** A stretch of the history. */
export interface Slots {
  first: number;
  last: number;
}

export type RankState = { word: string; kind: 'starting' | 'standby' | 'working' | 'busy' | 'finished' | 'exited' | 'failed' };

export class Store {
  job: JobView | undefined;
  ranks: RankView[] = [];
  readonly rails = new Map<string, RailView>();
  events: JobEvent[] = [];
  targets: readonly ControlTarget[] = [];
  waits: (WaitsView & { atMs: number }) | null = null;
  canAskWaits = false;
  /** The server's clock at the last message. */
  private toldMs = 0;
  private toldAtMs = 0;
  private readonly series = new Map<string, Series>();
  private linkList: Link[] | undefined;

  /** `atMs`: the page's own clock. Returns the events that are new to a page that was looking. */
  apply(message: PageMessage, atMs: number): readonly JobEvent[] {
    this.toldMs = message.nowMs;
    this.toldAtMs = atMs;
    this.linkList = undefined;
    if (message.type === 'snapshot') {
      this.rails.clear();
      this.series.clear();
      this.ranks = [];
      this.events = [];
      this.canAskWaits = message.canAskWaits;
      this.waits = message.waits;
    }
    if (message.job !== undefined) this.job = message.job;
    for (const rank of message.ranks ?? []) this.ranks[rank.rank] = rank;
    for (const rail of message.rails ?? []) this.rails.set(`${rail.rank} ${rail.peer} ${rail.rail}`, rail);
    for (const run of message.history ?? []) this.takeRun(run);
    if (message.targets !== undefined) this.targets = message.targets;
    if (message.type === 'update' && message.waits !== undefined) this.waits = message.waits;
    const events = message.events ?? [];
    this.events = [...this.events, ...events].slice(-EVENTS_SHOWN_MAX);
    return message.type === 'update' ? events : [];
  }

  /** The job's clock. It stops when the job has ended. */
  nowMs(atMs: number): number {
    return this.job?.ended?.atMs ?? this.toldMs + (atMs - this.toldAtMs);
  }

  private takeRun({ key, first, bytes }: SeriesRun): void {
    const series = this.series.get(key);
    const slots = this.job?.slots ?? 0;
    if (series === undefined || first < series.first) {
      this.series.set(key, { first, bytes: [...bytes] });
      return;
    }
    const at = first - series.first;
    while (series.bytes.length < at) series.bytes.push(0);
    series.bytes.splice(at, series.bytes.length - at, ...bytes);
    const surplus = series.bytes.length - slots;
    if (surplus > 0) {
      series.bytes.splice(0, surplus);
      series.first += surplus;
    }
  }

  // --- rails

  /** In the order of the ranks, then of the rails. */
  links(): readonly Link[] {
    this.linkList ??= this.makeLinks();
    return this.linkList;
  }

  private makeLinks(): Link[] {
    const ids = new Map<string, [low: number, high: number, rail: number]>();
    for (const { rank, peer, rail } of this.rails.values()) {
      const [low, high] = rank < peer ? [rank, peer] : [peer, rank];
      ids.set(`${low} ${high} ${rail}`, [low, high, rail]);
    }
    const links = [...ids].map(([id, [low, high, rail]]): Link => {
      const ends = [this.rails.get(`${low} ${high} ${rail}`), this.rails.get(`${high} ${low} ${rail}`)] as const;
      const known = (ends[0] ?? ends[1]) as RailView;
      const { transport, key, standby } = known;
      return { id, low, high, rail, transport, key, standby, ends, state: this.linkState(low, high, ends) };
    });
    return links.sort((a, b) => a.low - b.low || a.high - b.high || a.rail - b.rail);
  }

  private linkState(low: number, high: number, ends: readonly (RailView | undefined)[]): LinkState {
    const isOver = [low, high].some((rank) => ['FINALIZED', 'EXITED'].includes(this.ranks[rank]?.phase ?? ''));
    if (isOver) return 'CLOSED';
    const names = Object.keys(STATES) as LinkState[];
    return names.find((name) => ends.some((end) => end?.state === name)) ?? 'CONNECTING';
  }

  // --- bytes over time

  /** The slots that at least one rank has told of in full, at most so many. */
  slots(slotsMax: number): Slots {
    let last = -1;
    for (const { first, bytes } of this.series.values()) last = Math.max(last, first + bytes.length - 2);
    return { first: Math.max(0, last - slotsMax + 1), last };
  }

  /**
   * Bytes per second of a rail in one direction, by slot; null where nobody has told of it. Both ends count, but a put only its sender
   * and a get only its reader: the larger of the two is what went over.
   */
  flow(from: number, to: number, rail: number, { first, last }: Slots): (number | null)[] {
    const sent = this.series.get(`sent ${from} ${to} ${rail}`);
    const received = this.series.get(`received ${to} ${from} ${rail}`);
    return this.rates(first, last, (slot) => larger(at(sent, slot), at(received, slot)));
  }

  /** Bytes per second of a rail in both directions. */
  linkFlow({ low, high, rail }: Link, slots: Slots): (number | null)[] {
    const there = this.flow(low, high, rail, slots);
    const back = this.flow(high, low, rail, slots);
    return there.map((value, i) => sum(value, back[i]));
  }

  /** Bytes sent again per second, by all ranks. */
  resent({ first, last }: Slots): (number | null)[] {
    const all = this.ranks.map(({ rank }) => this.series.get(`resent ${rank}`));
    return this.rates(first, last, (slot) => all.map((series) => at(series, slot)).reduce(sum, null));
  }

  private rates(first: number, last: number, bytesAt: (slot: number) => number | null): (number | null)[] {
    const perSecond = 1000 / (this.job?.intervalMs ?? 1000);
    const values: (number | null)[] = [];
    for (let slot = first; slot <= last; slot++) {
      const found = bytesAt(slot);
      values.push(found === null ? null : found * perSecond);
    }
    return values;
  }

  // --- ranks

  rankState(view: RankView, nowMs: number): RankState {
    const { rank, place, phase, died, exit, heardMs } = view;
    if (phase === 'STARTING') return { word: 'starting', kind: 'starting' };
    if (phase === 'FINALIZED') return { word: 'finished', kind: 'finished' };
    if (phase === 'EXITED') {
      const failed = exit?.signal !== undefined || exit?.code !== 0;
      if (exit?.signal === undefined && exit?.code === undefined) return { word: 'lost', kind: 'failed' };
      const how = exit.signal ?? `code ${exit.code}`;
      return { word: `${died ? 'died' : 'exited'} (${how})`, kind: failed ? 'failed' : 'exited' };
    }
    if (place === null) return { word: 'stands by', kind: 'standby' };
    const silentMs = nowMs - heardMs;
    const isBusy = silentMs > Math.max(BUSY_MS, BUSY_REPORTS * (this.job?.intervalMs ?? 0));
    if (isBusy) return { word: `busy, last heard ${(silentMs / 1000).toFixed(1)} s ago`, kind: 'busy' };
    return { word: place === rank ? 'working' : `working as rank ${place}`, kind: 'working' };
  }

  /** A counter of the PML over all ranks. */
  total(counter: string): number {
    return this.ranks.reduce((total, { counters }) => total + (counters[counter] ?? 0), 0);
  }
}

/** The last slot of a series is not over yet. */
function at(series: Series | undefined, slot: number): number | null {
  if (series === undefined || slot < series.first || slot >= series.first + series.bytes.length - 1) return null;
  return series.bytes[slot - series.first];
}

const larger = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : Math.max(a, b));
const sum = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : a + b);
