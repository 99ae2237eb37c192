// What is known about a running job: its ranks, their rails, events, and bytes over time, put together from what the launcher is told. It
// is bounded in every direction, and reads no clock except the one that it is given.

import type { AbortInfo, RankInfo } from '../../src/launch/oob/member.ts';
import {
  RAIL_COUNTER_NAMES,
  REPORT_RAILS_MAX,
  type SaveCounterName,
  type Telemetry,
  type TelemetryMove,
  type TelemetryRail,
} from '../../src/launch/oob/telemetry.ts';
import type { JobObserver, ObservedExit } from '../../src/launch/watch/observer.ts';
import { type EventFields, EventLog } from './event-log.ts';
import { History } from './history.ts';
import type { EventType, JobView, RailView, RankView } from './messages.ts';

export const HISTORY_MS = 10 * 60_000;
export const SERIES_MAX = 1024;
export const EVENTS_MAX = 10_000;
export const RAILS_MAX = 16_384;
/** A rank's clock may run slower than ours by so much, in milliseconds per millisecond. */
const CLOCK_DRIFT = 1e-4;

export interface JobModelOptions {
  jobId: string;
  /** Processes, those that stand by among them. */
  size: number;
  spares?: number;
  survivesFailures?: boolean;
  command: readonly string[];
  version: string;
  intervalMs: number;
  /** Milliseconds since the job was started. */
  now: () => number;
  /** The time of day then. */
  startedAtMs: number;
  historyMs?: number;
  seriesMax?: number;
  eventsMax?: number;
  railsMax?: number;
}

/** A rank, and how its clock stands to ours. */
interface Rank {
  view: RankView;
  /** Ours minus its, as small as it was ever seen: what is more than that was time on the way. */
  offsetMs: number;
  /** Up to when, on our clock, its counts are known. */
  knownMs: number;
  bytesResent: number;
  envelopesResent: number;
  restarts: number;
  movesDropped: number;
}

interface Rail {
  view: RailView;
  knownMs: number;
}

/** What a rail's event of src/mpi/runtime.ts says. */
interface RailNews {
  rank: number;
  peer: number;
  up: number;
  of: number;
  /** The rail, in words. */
  rail: string;
  /** Empty, or `: REASON`. */
  why: string;
}

/** Those events by their type, as they are called here, each in a sentence. */
const RAIL_EVENTS: Readonly<Record<string, { type: EventType; text: (news: RailNews) => string }>> = {
  lost: { type: 'rail-lost', text: ({ rank, rail, up, of, why }) => `rank ${rank}: ${rail} is lost, ${up} of ${of} carry${why}` },
  restored: { type: 'rail-restored', text: ({ rank, rail, up, of }) => `rank ${rank}: ${rail} carries again, ${up} of ${of} carry` },
  added: { type: 'rail-added', text: ({ rank, rail, up, of }) => `rank ${rank}: ${rail} was added, ${up} of ${of} carry` },
  suspect: { type: 'rail-suspect', text: ({ rank, rail, why }) => `rank ${rank}: ${rail} is suspect${why}` },
  degraded: { type: 'rail-degraded', text: ({ rank, peer, up, of }) => `rank ${rank}: ${up} of ${of} rails to rank ${peer} are left` },
  last: { type: 'rail-last', text: ({ rank, peer, of }) => `rank ${rank}: one of ${of} rails to rank ${peer} is left` },
  unreachable: {
    type: 'peer-unreachable',
    text: ({ rank, peer }) => `rank ${rank}: no rail to rank ${peer} is left; it is dialled again until the peer timeout`,
  },
};

export class JobModel implements JobObserver {
  readonly log: EventLog;
  readonly history: History;
  readonly ranks: Rank[] = [];
  readonly rails = new Map<string, Rail>();
  job: JobView;
  private readonly options: JobModelOptions;
  private readonly railsMax: number;
  private changedRanks = new Set<Rank>();
  private changedRails = new Set<Rail>();
  private jobChanged = false;

  constructor(options: JobModelOptions) {
    this.options = options;
    this.railsMax = options.railsMax ?? RAILS_MAX;
    this.log = new EventLog(options.startedAtMs, options.eventsMax ?? EVENTS_MAX);
    const slots = Math.ceil((options.historyMs ?? HISTORY_MS) / options.intervalMs);
    this.history = new History({ slotMs: options.intervalMs, slots, seriesMax: options.seriesMax ?? SERIES_MAX });
    const { jobId, size, spares = 0, survivesFailures = false, command, version, intervalMs } = options;
    const startedAt = new Date(options.startedAtMs).toISOString();
    this.job = { jobId, size, spares, survivesFailures, command, startedAt, version, intervalMs, slots, seriesDropped: 0 };
    for (let rank = 0; rank < size; rank++) this.addRank(rank < size - spares ? rank : null);
    const ranks = `${size - spares} ${size - spares === 1 ? 'rank' : 'ranks'}`;
    const standing = spares === 0 ? '' : `, and of ${spares} more ${spares === 1 ? 'process that stands' : 'processes that stand'} by,`;
    this.event('job-started', `the job of ${ranks}${standing} is started`, { job: jobId, size, command });
  }

  /** `place`: its rank in the communicator at work; null: it stands by. */
  private addRank(place: number | null): void {
    const view: RankView = {
      rank: this.ranks.length,
      phase: 'STARTING',
      died: false,
      place,
      pid: 0,
      host: '',
      heardMs: -1,
      aliveMs: 0,
      retainedBytes: 0,
      takesFaults: false,
      counters: {},
    };
    const counts = { bytesResent: 0, envelopesResent: 0, restarts: 0, movesDropped: 0 };
    this.ranks.push({ view, offsetMs: Number.POSITIVE_INFINITY, knownMs: 0, ...counts });
  }

  /** A process of that number may have come after the start: then it stands by, and so do those before it that are not heard of yet. */
  private mayBeNew(number: number): Rank {
    for (; this.ranks.length <= number; this.jobChanged = true) {
      this.addRank(null);
      this.job = { ...this.job, size: this.job.size + 1, spares: this.job.spares + 1 };
    }
    return this.ranks[number];
  }

  nowMs(): number {
    return this.options.now();
  }

  event(type: EventType, text: string, fields: EventFields = {}, atMs = this.nowMs()): void {
    this.log.add(atMs, type, text, fields);
  }

  // --- JobObserver

  spawned(rank: number, pid: number): void {
    this.changeRank(this.mayBeNew(rank), { pid });
  }

  joined(rank: number, { pid, hostId }: RankInfo): void {
    const one = this.mayBeNew(rank);
    const now = this.nowMs();
    one.knownMs = now;
    this.changeRank(one, { phase: 'JOINED', pid, host: hostId, heardMs: now });
    this.event('rank-joined', `rank ${rank} (pid ${pid}) has joined`, { rank, pid, host: hostId });
  }

  finalized(rank: number): void {
    this.changeRank(this.ranks[rank], { phase: 'FINALIZED', heardMs: this.nowMs() });
    this.event('rank-finalized', `rank ${rank} has finished`, { rank });
  }

  exited(rank: number, { code, signal, lost, died = false }: ObservedExit): void {
    const exit = { ...(code === undefined ? {} : { code }), ...(signal === '' ? {} : { signal }) };
    this.changeRank(this.ranks[rank], { phase: 'EXITED', died, exit });
    // On another host, to which there is no connection any more.
    const known = signal === '' ? `has exited with code ${code}` : `was killed by ${signal}`;
    const how = lost ? 'is lost: nothing is known of its end' : known;
    this.event(died ? 'rank-died' : 'rank-exited', `rank ${rank} ${how}`, { rank, ...exit });
  }

  standby(rank: number, isWaiting: boolean, place: number): void {
    this.changeRank(this.ranks[rank], { place: isWaiting ? null : place });
    if (isWaiting) this.event('standby-waits', `process ${rank} stands by`, { rank });
    else this.event('standby-called', `process ${rank} has taken the place of rank ${place}`, { rank, place });
  }

  aborted({ rank, code, reason }: AbortInfo): void {
    this.event('job-aborted', `rank ${rank} aborts the job: ${reason}`, { rank, code, reason });
  }

  ended(exitCode: number, failure: string | undefined): void {
    const atMs = this.nowMs();
    this.job = { ...this.job, ended: { atMs, exitCode, ...(failure === undefined ? {} : { failure }) } };
    this.jobChanged = true;
    this.event(
      'job-ended',
      `the job has ended with code ${exitCode}${failure === undefined ? '' : `: ${failure}`}`,
      { code: exitCode },
      atMs,
    );
  }

  railEvent(rank: number, event: unknown): void {
    const given = (typeof event === 'object' && event !== null ? event : {}) as Record<string, unknown>;
    const known = RAIL_EVENTS[String(given.type)];
    const { peer, rail, epoch, up, of } = given;
    // A rank is believed, but its program may be of another version.
    if (known === undefined || ![peer, rail, epoch, up, of].every(Number.isSafeInteger)) return;
    const reason = typeof given.reason === 'string' ? given.reason : '';
    const name = this.railName(rank, peer as number, rail as number, String(given.key ?? ''));
    const why = reason === '' ? '' : `: ${reason}`;
    const text = known.text({ rank, peer: peer as number, up: up as number, of: of as number, rail: name.text, why });
    this.event(known.type, text, { rank, ...name.fields, epoch, reason, up, of });
  }

  eventsLeftOut(count: number): void {
    this.event('events-dropped', `${count} events of rails were left out: they came faster than they could be taken`, { count });
  }

  telemetry(rank: number, report: Telemetry): void {
    const one = this.ranks[rank];
    const now = this.nowMs();
    const before = one.knownMs;
    one.offsetMs = Math.min(now - report.atUs / 1000, one.offsetMs + (now - one.view.heardMs) * CLOCK_DRIFT);
    one.knownMs = Math.max(before, report.atUs / 1000 + one.offsetMs);
    for (const rail of report.rails) this.takeRail(rank, rail, one.knownMs, before, now);
    // What a report does not name has not changed, unless it was full.
    if (report.rails.length < REPORT_RAILS_MAX) this.standStill(rank, one.knownMs);
    for (const move of report.moves) this.takeMove(rank, move, one.offsetMs);
    this.takeCounters(one, report, before);
    this.changeRank(one, {
      heardMs: now,
      aliveMs: report.aliveMs,
      retainedBytes: report.retainedBytes,
      takesFaults: report.takesFaults,
      counters: { ...one.view.counters, ...report.counters },
    });
    this.noteDropped();
  }

  // --- what changed

  /** For a live page: everything that changed since the last call. */
  takeChanged(): { job?: JobView; ranks: RankView[]; rails: RailView[] } {
    const ranks = [...this.changedRanks].map(({ view }) => view);
    const rails = [...this.changedRails].map(({ view }) => view);
    const changes = { ranks, rails, ...(this.jobChanged ? { job: this.job } : {}) };
    this.changedRanks = new Set();
    this.changedRails = new Set();
    this.jobChanged = false;
    return changes;
  }

  // --- parts of a report

  private takeRail(rank: number, told: TelemetryRail, toMs: number, joinedMs: number, now: number): void {
    const key = railKey(rank, told.peer, told.rail);
    let rail = this.rails.get(key);
    if (rail === undefined) {
      // Without its name it is from a rank that thinks us told: a later report has it.
      if (told.name === undefined || told.name === null || this.rails.size >= this.railsMax) return;
      rail = { view: firstView(rank, told, now), knownMs: joinedMs };
      this.rails.set(key, rail);
    }
    const before = rail.view;
    const counters = Object.fromEntries(RAIL_COUNTER_NAMES.map((name, i) => [name, told.counters[i] ?? 0]));
    for (const direction of ['sent', 'received'] as const) {
      const name = direction === 'sent' ? 'payloadBytesSent' : 'payloadBytesReceived';
      const bytes = counters[name] - (before.counters[name] ?? 0);
      this.history.add(`${direction} ${key}`, rail.knownMs, toMs, Math.max(0, bytes));
    }
    rail.knownMs = toMs;
    rail.view = {
      ...before,
      state: told.state,
      sinceMs: told.state === before.state ? before.sinceMs : now,
      epoch: told.epoch,
      reason: told.reason,
      outstandingBytes: told.outstandingBytes,
      windowBytes: told.windowBytes,
      measuredBytesPerSecond: told.measuredBytesPerSecond,
      counters,
    };
    this.changedRails.add(rail);
  }

  private standStill(rank: number, toMs: number): void {
    for (const [key, rail] of this.rails) {
      if (rail.view.rank !== rank || rail.knownMs >= toMs) continue;
      for (const direction of ['sent', 'received']) this.history.add(`${direction} ${key}`, rail.knownMs, toMs, 0);
      rail.knownMs = toMs;
    }
  }

  private takeMove(rank: number, { peer, rail, from, to, reason, atUs }: TelemetryMove, offsetMs: number): void {
    const name = this.railName(rank, peer, rail, '');
    const why = reason === '' ? '' : `: ${reason}`;
    const fields = { rank, ...name.fields, from, to, reason };
    this.event('rail-state', `rank ${rank}: ${name.text} went from ${from} to ${to}${why}`, fields, atUs / 1000 + offsetMs);
  }

  private takeCounters(one: Rank, { counters, movesDropped }: Telemetry, fromMs: number): void {
    const { rank } = one.view;
    const bytesResent = counters.bytesResent ?? one.bytesResent;
    const envelopesResent = counters.envelopesResent ?? one.envelopesResent;
    const restarts = counters.restarts ?? one.restarts;
    const bytes = bytesResent - one.bytesResent;
    this.history.add(`resent ${rank}`, fromMs, one.knownMs, Math.max(0, bytes));
    if (bytes > 0 || envelopesResent > one.envelopesResent || restarts > one.restarts) {
      const envelopes = envelopesResent - one.envelopesResent;
      const text = `rank ${rank} has sent again ${envelopes} envelopes and ${bytes} bytes, ${restarts - one.restarts} messages were resumed`;
      this.event('resent', text, { rank, bytes, envelopes, restarts: restarts - one.restarts });
    }
    this.takeSaves(one, counters);
    if (movesDropped > one.movesDropped) {
      const count = movesDropped - one.movesDropped;
      this.event('events-dropped', `rank ${rank} could not report ${count} changes of state`, { rank, count });
    }
    Object.assign(one, { bytesResent, envelopesResent, restarts, movesDropped });
  }

  /** What rank 0 of the program tells: saves and recoveries are those of all. */
  private takeSaves({ view }: Rank, counters: Telemetry['counters']): void {
    if (view.place !== 0) return;
    const { rank } = view;
    const grown = (name: SaveCounterName): number => (counters[name] ?? view.counters[name] ?? 0) - (view.counters[name] ?? 0);
    const now = (name: SaveCounterName): number => counters[name] ?? view.counters[name] ?? 0;
    const inPlace = grown('ftRecoveriesInPlace');
    if (grown('ftRecoveries') + inPlace > 0) {
      const [failures, lostSteps] = [now('ftFailures'), now('ftLostSteps')];
      const what = inPlace > 0 ? 'only the dead went back' : 'the program was called again';
      const fields = { rank, failures, lostSteps, inPlace };
      this.event('recovered', `${what}: ${failures} failures so far, ${lostSteps} steps done again`, fields);
    }
    const [saves, bytes] = [grown('ftSavesCommitted'), grown('ftSaveBytes')];
    if (saves > 0)
      this.event('saved', `${saves === 1 ? 'a save was' : `${saves} saves were`} committed, ${bytes} bytes of rank 0`, {
        rank,
        saves,
        bytes,
      });
  }

  private railName(rank: number, peer: number, rail: number, givenKey: string): { text: string; fields: EventFields } {
    const view = this.rails.get(railKey(rank, peer, rail))?.view;
    const transport = view?.transport ?? '';
    const key = view?.key ?? givenKey;
    const text = `rail ${rail}${transport === '' ? '' : ` (${transport})`} to rank ${peer}`;
    return { text, fields: { peer, rail, transport, key } };
  }

  private changeRank(one: Rank, changes: Partial<RankView>): void {
    one.view = { ...one.view, ...changes };
    this.changedRanks.add(one);
  }

  private noteDropped(): void {
    const { seriesDropped } = this.history;
    if (seriesDropped === this.job.seriesDropped) return;
    this.job = { ...this.job, seriesDropped };
    this.jobChanged = true;
  }
}

export const railKey = (rank: number, peer: number, rail: number): string => `${rank} ${peer} ${rail}`;

function firstView(rank: number, { peer, rail, state, name }: TelemetryRail, now: number): RailView {
  return {
    rank,
    peer,
    rail,
    key: name?.key ?? '',
    transport: name?.transport ?? '',
    standby: name?.standby ?? false,
    state,
    sinceMs: now,
    epoch: 0,
    reason: '',
    outstandingBytes: 0,
    windowBytes: 0,
    measuredBytesPerSecond: 0,
    bandwidthBytesPerSecond: name?.bandwidthBytesPerSecond ?? 0,
    latencyUs: name?.latencyUs ?? 0,
    counters: {},
  };
}
