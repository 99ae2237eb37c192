// A rank's reports to the launcher, where the parameter mpi_telemetry_ms asks for them: every so often what changed of its rails and
// counters since the last report that was taken, and each move of a rail between states. Reads only what users see too (rails(), counters()).
// And the other direction: rails that the launcher wants broken or mended.
import type { Rail, RailState } from '../bml/rail.ts';
import type { BtlModule } from '../btl/btl.ts';
import type { FaultModule } from '../btl/interpose/fault.ts';
import {
  type FaultActionName,
  RAIL_COUNTER_NAMES,
  REPORT_MOVES_MAX,
  REPORT_NAME_MAX,
  REPORT_RAILS_MAX,
  REPORT_REASON_MAX,
  type Telemetry,
  type TelemetryMove,
  type TelemetryRail,
} from '../launch/oob/telemetry.ts';
import type { RailInfo, RuntimeCounters } from './views.ts';

/** Moves that are kept for the next report; it takes REPORT_MOVES_MAX of them. */
const MOVES_KEPT_MAX = 1024;

export type { SaveCounters } from '../launch/oob/telemetry.ts';

export interface TelemetrySource {
  readonly rank: number;
  rails(): RailInfo[];
  counters(): RuntimeCounters;
  /** What multirail/ft counts, where the program runs under it. */
  saves?(): Readonly<Record<string, number>> | undefined;
}

export interface TelemetryOptions {
  intervalMs: number;
  /** This rank obeys RailFault. */
  takesFaults: boolean;
  /** False: not now. */
  send: (report: Telemetry) => boolean;
  /** Milliseconds; performance.now() by default. */
  now?: () => number;
}

/** What the launcher was told of a rail. */
interface Told {
  state: string;
  epoch: number;
  outstandingBytes: number;
  counters: number[];
}

export class TelemetryReporter {
  private readonly source: TelemetrySource;
  private readonly options: Required<TelemetryOptions>;
  private readonly startMs: number;
  private readonly told = new Map<string, Told>();
  private readonly toldCounters: Record<string, number> = {};
  private firstRail = 0;
  private nextFirstRail = 0;
  private moves: TelemetryMove[] = [];
  private movesDropped = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(source: TelemetrySource, options: TelemetryOptions) {
    this.source = source;
    this.options = { now: () => performance.now(), ...options };
    this.startMs = this.options.now();
  }

  start(): void {
    this.timer = setInterval(() => this.report(), this.options.intervalMs);
    // A finished process must not live on to tell that it has finished.
    this.timer.unref();
    this.report();
  }

  /** The last report, and no further one. */
  stop(): void {
    if (this.timer === undefined) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.report();
  }

  /** For the engine's hook: a rail changed its state. */
  railMoved(rail: Rail, from: RailState, to: RailState): void {
    if (rail.peer === this.source.rank) return;
    if (this.moves.length >= MOVES_KEPT_MAX) {
      this.movesDropped++;
      return;
    }
    const { lastReason } = rail;
    // Only these two states have a reason: the other ones are on the way up.
    const reason =
      lastReason === undefined || (to !== 'DOWN' && to !== 'SUSPECT' && to !== 'TRIAL') ? '' : `${lastReason.kind}: ${lastReason.text}`;
    this.moves.push({ peer: rail.peer, rail: rail.index, from, to, reason: cut(reason, REPORT_REASON_MAX), atUs: this.nowUs() });
  }

  /** What changed. Nothing is taken for told before the report is sent. */
  makeReport(): Telemetry {
    const { engine, pml } = this.source.counters();
    const rails: TelemetryRail[] = [];
    const all = this.source.rails();
    let looked = 0;
    for (; looked < all.length && rails.length < REPORT_RAILS_MAX; looked++) {
      const rail = all[(this.firstRail + looked) % all.length];
      // The way to oneself cannot be lost, and is no rail to look at.
      if (rail.peer === this.source.rank) continue;
      const counters = RAIL_COUNTER_NAMES.map((name) => rail.counters[name]);
      const told = this.told.get(`${rail.peer} ${rail.rail}`);
      if (told !== undefined && isTold(told, rail, counters)) continue;
      rails.push({
        peer: rail.peer,
        rail: rail.rail,
        state: rail.state,
        epoch: rail.epoch,
        reason: cut(rail.lastReason ?? '', REPORT_REASON_MAX),
        outstandingBytes: rail.outstandingBytes,
        windowBytes: count(rail.windowBytes),
        measuredBytesPerSecond: count(rail.measuredMBps * 1e6),
        counters,
        ...(told === undefined ? { name: nameOf(rail) } : {}),
      });
    }
    // Where there are more rails than a report takes, each has its turn.
    this.nextFirstRail = looked < all.length ? (this.firstRail + looked) % all.length : 0;
    const values = Object.entries({ ...pml, ...this.source.saves?.() });
    const counters = values.filter(([name, value]) => this.toldCounters[name] !== value);
    return {
      atUs: this.nowUs(),
      aliveMs: count(engine.aliveMs),
      turns: engine.turns,
      retainedBytes: engine.retainedBytes,
      takesFaults: this.options.takesFaults,
      rails,
      moves: this.moves.slice(0, REPORT_MOVES_MAX),
      movesDropped: this.movesDropped,
      counters: Object.fromEntries(counters),
    };
  }

  private report(): void {
    const report = this.makeReport();
    if (!this.options.send(report)) return;
    this.moves.splice(0, report.moves.length);
    Object.assign(this.toldCounters, report.counters);
    this.firstRail = this.nextFirstRail;
    for (const { peer, rail, state, epoch, outstandingBytes, counters } of report.rails) {
      this.told.set(`${peer} ${rail}`, { state, epoch, outstandingBytes, counters });
    }
  }

  private nowUs(): number {
    return count((this.options.now() - this.startMs) * 1000);
  }
}

function isTold(told: Told, rail: RailInfo, counters: readonly number[]): boolean {
  return (
    told.state === rail.state &&
    told.epoch === rail.epoch &&
    told.outstandingBytes === rail.outstandingBytes &&
    told.counters.every((value, i) => value === counters[i])
  );
}

function nameOf(rail: RailInfo): NonNullable<TelemetryRail['name']> {
  const { key, transport, role, bandwidthMBps, latencyUs } = rail;
  return {
    key: cut(key, REPORT_NAME_MAX),
    transport: cut(transport, REPORT_NAME_MAX),
    standby: role === 'standby',
    bandwidthBytesPerSecond: bandwidthMBps * 1e6,
    latencyUs,
  };
}

const cut = (text: string, charactersMax: number): string => (text.length <= charactersMax ? text : `${text.slice(0, charactersMax - 1)}…`);
/** Whole, not negative, and exact. */
const count = (value: number): number => Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(value)));

/** What the launcher may order of a rank whose transports are behind the fault interposer. */
export interface RailFaultOrder {
  action: FaultActionName;
  peer: number;
  rail: number;
}

const isFaultModule = (module: BtlModule): module is FaultModule => 'control' in module;

export const takesFaults = (modules: readonly BtlModule[]): boolean => modules.some(isFaultModule);

/** Both ends of a rail are told: with `blackhole` both swallow in silence, with `pull` each sees an error at once. */
export function obeyFault(modules: readonly BtlModule[], { action, peer, rail }: RailFaultOrder): void {
  for (const { control } of modules.filter(isFaultModule)) {
    if (action === 'restore') control.restore({ peer, rail });
    else control.pull({ peer, rail }, action === 'pull' ? 'error' : 'silent');
  }
}

/** Reports from now on; undefined where nobody is to be told, or there is nobody. */
export function startTelemetry(
  source: TelemetrySource,
  oob: { telemetry: TelemetryOptions['send'] } | undefined,
  intervalMs: number,
  modules: readonly BtlModule[],
): TelemetryReporter | undefined {
  if (oob === undefined || intervalMs === 0) return undefined;
  const reporter = new TelemetryReporter(source, { intervalMs, takesFaults: takesFaults(modules), send: oob.telemetry.bind(oob) });
  reporter.start();
  return reporter;
}
