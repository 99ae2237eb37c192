// Asks every rank what it waits for, puts the answers together, and prints the report. It runs next to the server of the out-of-band
// channel, in the launcher or in the process that rank 0 has started.
import { appendFileSync } from 'node:fs';
import type { OobServer } from '../oob/server.ts';
import { makeReport, type RankState, type RankWaits, reportLines, type WaitsReport } from '../oob/waits.ts';

/** A rank that has not answered by then is busy. */
const ANSWER_WAIT_MS = 1000;
/** What a rank in a blocking call said unasked is good for so long: it repeats it more often than that. */
const PUSHED_GOOD_MS = 12_000;
/** Every rank of a job may notice the same stall, or get the same signal: one report is enough for all of them. */
const QUIET_MS = 1000;

export interface GatherOptions {
  say: (text: string) => void;
  /** Each report that is printed is appended as a line; empty = nowhere. */
  jsonFile: string;
  /** Processes of each rank; 1 by default. */
  replicas?: number;
  /** Gets every report, also those that nobody wanted printed. */
  onReport?: (report: WaitsReport) => void;
}

export class WaitsGatherer {
  private readonly server: OobServer;
  private readonly options: GatherOptions;
  private id = 0;
  private reason = '';
  private printed = false;
  private timer: NodeJS.Timeout | undefined;
  private asked = new Set<number>();
  private answers = new Map<number, RankWaits>();
  private lastMs = Number.NEGATIVE_INFINITY;
  private lastPrintedMs = Number.NEGATIVE_INFINITY;
  /** What ranks in blocking calls have said unasked. */
  private readonly pushed = new Map<number, { waits: RankWaits; atMs: number }>();

  constructor(server: OobServer, options: GatherOptions) {
    this.server = server;
    this.options = options;
    server.on('ended', () => this.look());
  }

  /** Begins, unless a report is under way or was just made. One that need not be printed goes to `onReport` alone. */
  gather(reason: string, { printed = true }: { printed?: boolean } = {}): void {
    const living = this.server.living();
    // Programs that are no ranks of ours get signals too.
    if (printed && living.length === 0) return;
    if (this.timer !== undefined) {
      // Who wants to read it must not miss it because somebody else has just asked.
      if (printed && !this.printed) this.reason = reason;
      this.printed ||= printed;
      return;
    }
    if (performance.now() - (printed ? this.lastPrintedMs : this.lastMs) < QUIET_MS) return;
    this.id++;
    this.reason = reason;
    this.printed = printed;
    this.asked = new Set(living);
    this.answers = new Map();
    this.timer = setTimeout(() => this.finish(), ANSWER_WAIT_MS);
    for (const rank of this.asked) this.server.requestWaits(rank, this.id);
    this.look();
  }

  /** A rank's answer. */
  take(rank: number, id: number, json: unknown): void {
    if (!isRankWaits(json, rank)) return;
    if (id === 0) this.pushed.set(rank, { waits: json, atMs: performance.now() });
    if (this.timer === undefined || id !== this.id) return;
    this.answers.set(rank, json);
    this.look();
  }

  private look(): void {
    if (this.timer === undefined) return;
    const living = new Set(this.server.living());
    if ([...this.asked].every((rank) => this.answers.has(rank) || !living.has(rank))) this.finish();
  }

  private finish(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.lastMs = performance.now();
    const living = new Set(this.server.living());
    const states = Array.from({ length: this.server.size }, (_, rank): RankState => {
      const waits = this.answers.get(rank);
      if (!living.has(rank)) return { state: this.server.info(rank) === undefined ? 'absent' : 'ended' };
      if (waits !== undefined) return { state: 'answered', waits };
      const pushed = this.pushed.get(rank);
      const isGood = pushed !== undefined && this.lastMs - pushed.atMs < PUSHED_GOOD_MS;
      return isGood ? { state: 'blocked', waits: pushed.waits, agoMs: Math.round(this.lastMs - pushed.atMs) } : { state: 'silent' };
    });
    const report = makeReport(this.server.jobId, this.reason, states, this.options.replicas);
    this.options.onReport?.(report);
    if (this.printed) this.print(report);
  }

  private print(report: WaitsReport): void {
    this.lastPrintedMs = this.lastMs;
    this.options.say(reportLines(report).join('\n'));
    if (this.options.jsonFile === '') return;
    try {
      appendFileSync(this.options.jsonFile, `${JSON.stringify({ at: new Date().toISOString(), ...report })}\n`);
    } catch (error) {
      this.options.say(`mpi_waits_json_file: ${(error as Error).message}`);
    }
  }
}

/** A rank is believed, but its program may be of another version. */
function isRankWaits(json: unknown, number: number): json is RankWaits {
  const value = json as RankWaits;
  return typeof json === 'object' && json !== null && value.process === number && Array.isArray(value.waits) && Array.isArray(value.rails);
}
