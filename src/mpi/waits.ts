// What this rank waits for, and since when: put together when somebody asks, and from within blocking calls that last. Where stalls are to be
// told (mpi_stall_report_ms), it also looks once a second whether something moves; otherwise nothing runs until somebody asks.
import type { PairedWait } from '../ft/replica/paired-pml.ts';
import type { RailLine, RankWaits, Wait } from '../launch/oob/waits.ts';
import { markOf, type OpenRequest, type PendingRequest } from '../pml/pending.ts';
import { ANY } from '../pml/pml.ts';
import type { Engine } from '../progress/engine.ts';
import type { MemoryCall } from './coll/scope.ts';
import { FT_CTX, idOf, SERVICE_ID } from './contexts.ts';
import type { ProcessState } from './process-state.ts';

/** How often pending requests are looked at, where stalls are to be told. */
const LOOK_MS = 1000;
/** Requests in a report: the oldest. */
const WAITS_MAX = 200;
const RAILS_MAX = 64;
/** A blocking call that lasts reports what it waits for this often: nobody can ask this process meanwhile. */
const BLOCKED_FIRST_MS = 1000;
const BLOCKED_AGAIN_MS = 5000;

interface Seen {
  readonly movedMs: number;
  readonly mark: string;
}

export interface WaitsHooks {
  /** Something has waited for the stall time without moving: once for each. */
  onStall(text: string): void;
  /** A blocking call goes on and on: what it waits for, though nobody asked. */
  onBlocked(waits: RankWaits): void;
}

export class WaitsWatch {
  private readonly engine: Engine;
  private readonly proc: ProcessState;
  private readonly process: number;
  private readonly stallMs: number;
  private readonly hooks: WaitsHooks;
  private seen = new Map<object, Seen>();
  /** When a stall is told again; it doubles as long as the same stall goes on. */
  private nextStallMs: number;
  private lookedMs = Number.NEGATIVE_INFINITY;
  private blockedAtMs = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;

  /** `process`: its number in the job. */
  constructor(engine: Engine, proc: ProcessState, process: number, stallMs: number, hooks: WaitsHooks) {
    this.process = process;
    this.engine = engine;
    this.proc = proc;
    this.stallMs = stallMs;
    this.nextStallMs = stallMs;
    this.hooks = hooks;
  }

  /** Looks by itself from now on, if stalls are to be told. */
  start(now: () => number): void {
    if (this.stallMs === 0) return;
    this.timer = setInterval(() => this.look(now()), LOOK_MS);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** At most once in LOOK_MS, where stalls are to be told: notes what has moved, and tells a stall. */
  look(nowMs: number): void {
    if (this.stallMs === 0 || nowMs - this.lookedMs < LOOK_MS) return;
    this.lookedMs = nowMs;
    const before = this.seen;
    this.seen = new Map();
    let oldestMs = 0;
    const note = (key: object, mark: string, sinceMs: number): void => {
      const known = before.get(key);
      const movedMs = known === undefined ? sinceMs : known.mark === mark ? Math.max(known.movedMs, sinceMs) : nowMs;
      this.seen.set(key, { mark, movedMs });
      oldestMs = Math.max(oldestMs, nowMs - movedMs);
    };
    for (const open of this.openRequests()) note(open.request, markOf(open), this.openedMs(open.request, nowMs));
    for (const probe of this.proc.probes()) note(probe, 'probe', probe.sinceMs);
    for (const wait of this.pairedWaits()) note(wait.request, wait.phase, this.openedMs(wait.request, nowMs));
    for (const { call, missing } of this.proc.memoryWaits.pending()) note(call, missing.join(), this.openedMs(call, nowMs));
    if (oldestMs < this.stallMs) this.nextStallMs = this.stallMs;
    else if (oldestMs >= this.nextStallMs) {
      this.nextStallMs = oldestMs * 2;
      this.hooks.onStall(`nothing has moved for ${(oldestMs / 1000).toFixed(1)} s (mpi_stall_report_ms)`);
    }
  }

  /** From a blocking call that sleeps. `beganMs`: when it began. */
  lookBlocked(nowMs: number, beganMs: number): void {
    // Report first, so that whoever is told of the stall has it.
    if (nowMs - beganMs < BLOCKED_FIRST_MS) this.blockedAtMs = Number.NEGATIVE_INFINITY;
    else if (nowMs >= this.blockedAtMs) {
      this.blockedAtMs = nowMs + BLOCKED_AGAIN_MS;
      this.hooks.onBlocked(this.report(nowMs));
    }
    this.look(nowMs);
  }

  /** What is pending now, oldest first. */
  report(nowMs: number): RankWaits {
    const open = this.openRequests();
    const oldest = oldestOf(open);
    const waits = this.engine.pml.describeRequests(oldest).map((pending, i) => ({
      ...this.waitOf(pending, this.openedMs(oldest[i].request, nowMs), nowMs),
      rails: this.carryingTo(pending.peer),
    }));
    for (const wait of this.pairedWaits()) waits.push(this.waitOf(wait, this.openedMs(wait.request, nowMs), nowMs));
    for (const { call, missing } of this.proc.memoryWaits.pending()) waits.push(...this.memoryWaits(call, missing, nowMs));
    for (const { pattern, sinceMs } of this.proc.probes()) {
      const { source: peer, ctx, tag } = pattern;
      waits.push(this.waitOf({ kind: 'probe', peer, ctx, tag, bytes: 0, phase: 'no message matches' }, sinceMs, nowMs));
    }
    for (const { rank, text } of this.engine.isFinalizing ? this.engine.notLeftPeers() : []) {
      waits.push({ kind: 'finalize', peer: rank, tag: 'any', comm: 'world', bytes: 0, waitedMs: 0, phase: text, rails: [] });
    }
    waits.sort((a, b) => b.waitedMs - a.waitedMs);
    const listed = waits.slice(0, WAITS_MAX);
    const more = waits.length - listed.length + open.length - oldest.length;
    return { rank: this.proc.rank, process: this.process, pid: globalThis.process.pid, waits: listed, more, rails: this.railsOf(listed) };
  }

  private waitOf(pending: Omit<PendingRequest, 'kind'> & Pick<Wait, 'kind'>, sinceMs: number, nowMs: number): Wait {
    const { kind, peer, tag, ctx, bytes, phase } = pending;
    return {
      kind,
      peer: peer === ANY ? 'any' : peer,
      tag: tag === ANY ? 'any' : tag,
      ...this.proc.describe(ctx, tag),
      bytes,
      waitedMs: Math.round(nowMs - sinceMs),
      phase: peer === ANY ? `${phase}${this.deadOf(ctx)}` : phase,
      rails: [],
    };
  }

  /** Names of the rails to that peer that carry. */
  private carryingTo(peer: number): string[] {
    const rails = peer === ANY ? undefined : this.engine.bml.peers.get(peer)?.rails;
    return (rails ?? []).filter((rail) => rail.isCarrying).map(({ key }) => key);
  }

  /** A collective through shared memory: a line for each rank that it waits for. */
  private memoryWaits(call: MemoryCall, missing: readonly number[], nowMs: number): Wait[] {
    const about = { comm: call.scope.name, call: call.name, bytes: 0, waitedMs: Math.round(nowMs - this.openedMs(call, nowMs)), rails: [] };
    const line = (peer: number | 'any', phase: string): Wait => ({ kind: 'collective', peer, tag: 'any', ...about, phase });
    if (missing.length === 0) return [line('any', 'waits for its turn in shared memory')];
    return missing.map((rank) => line(rank, 'has not come so far (shared memory)'));
  }

  private pairedWaits(): readonly PairedWait[] {
    return this.proc.replica?.pml.waitsForReplicas() ?? [];
  }

  /** What somebody waits for: not the receives that are posted for whatever may come of failures. */
  private openRequests(): OpenRequest[] {
    const open = this.engine.pml.openRequests();
    return this.proc.ft === undefined ? open : open.filter(({ request }) => request.kind === 'send' || request.ctx !== FT_CTX);
  }

  /** Whoever waits for anybody may wait for one that is dead: the first member whose failure nobody has acknowledged here, in words. */
  private deadOf(ctx: number): string {
    const { ft } = this.proc;
    const id = idOf(ctx);
    if (ft === undefined || id === SERVICE_ID) return '';
    const failure = ft.unacknowledged(id);
    if (failure === undefined) return '';
    const { rank, number, text } = failure;
    return `; rank ${rank} of ${this.proc.describe(ctx, 0).comm} (process ${number}) has failed: ${text}, and is not acknowledged`;
  }

  private openedMs(opened: { readonly openedAs: number }, nowMs: number): number {
    return this.engine.openedAtMs(opened) ?? nowMs;
  }

  private railsOf(waits: readonly Wait[]): RailLine[] {
    const lines: RailLine[] = [];
    for (const peer of new Set(waits.map((wait) => wait.peer))) {
      for (const rail of peer === 'any' ? [] : (this.engine.bml.peers.get(peer)?.rails ?? [])) {
        if (lines.length >= RAILS_MAX) return lines;
        const reason = rail.lastReason === undefined ? '' : `${rail.lastReason.kind}: ${rail.lastReason.text}`;
        lines.push({ peer: rail.peer, key: rail.key, state: rail.state, reason });
      }
    }
    return lines;
  }
}

/** As many as a report has, of what may be a million. */
function oldestOf(open: readonly OpenRequest[]): OpenRequest[] {
  if (open.length <= WAITS_MAX) return [...open];
  const order = Float64Array.from(open, ({ request }) => request.openedAs).sort();
  const last = order[WAITS_MAX - 1];
  return open.filter(({ request }) => request.openedAs <= last);
}
