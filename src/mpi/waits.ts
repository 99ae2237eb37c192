// What this rank waits for, and since when. Looks about once a second, and from within blocking calls; tells when nothing of a request
// has moved for the stall time.
import type { RailLine, RankWaits, Wait } from '../launch/waits.ts';
import { type PendingRequest, pendingRequests } from '../pml/pending.ts';
import { ANY } from '../pml/pml.ts';
import type { Engine } from '../progress/engine.ts';
import type { Host } from './host.ts';

/** How often pending requests are looked at. */
export const LOOK_MS = 1000;
/** Requests in a report: the oldest. */
const WAITS_MAX = 200;
const RAILS_MAX = 64;
/** A blocking call that lasts reports what it waits for this often: nobody can ask this process meanwhile. */
const BLOCKED_FIRST_MS = 1000;
const BLOCKED_AGAIN_MS = 5000;

interface Seen {
  sinceMs: number;
  movedMs: number;
  mark: string;
}

export interface WaitsHooks {
  /** Something has waited for the stall time without moving: once for each. */
  onStall(text: string): void;
  /** A blocking call goes on and on: what it waits for, though nobody asked. */
  onBlocked(waits: RankWaits): void;
}

export class WaitsWatch {
  private readonly engine: Engine;
  private readonly host: Host;
  private readonly stallMs: number;
  private readonly hooks: WaitsHooks;
  private seen = new Map<object, Seen>();
  /** When a stall is told again; it doubles as long as the same stall goes on. */
  private nextStallMs: number;
  private lookedMs = Number.NEGATIVE_INFINITY;
  private blockedAtMs = Number.NEGATIVE_INFINITY;

  constructor(engine: Engine, host: Host, stallMs: number, hooks: WaitsHooks) {
    this.engine = engine;
    this.host = host;
    this.stallMs = stallMs;
    this.nextStallMs = stallMs;
    this.hooks = hooks;
  }

  /** At most once in LOOK_MS: notes what has moved, and tells a stall. */
  look(nowMs: number): void {
    if (nowMs - this.lookedMs < LOOK_MS) return;
    this.refresh(nowMs);
    if (this.stallMs === 0) return;
    let oldestMs = 0;
    for (const { movedMs } of this.seen.values()) oldestMs = Math.max(oldestMs, nowMs - movedMs);
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
    const requests = this.refresh(nowMs);
    const waits: Wait[] = requests.map((pending) => this.waitOf(pending, nowMs));
    for (const [waiter, { source, ctx, tag }] of this.host.probes()) {
      const peer = source === ANY ? 'any' : source;
      const waitedMs = this.age(waiter, 'probe', nowMs);
      waits.push({
        kind: 'probe',
        peer,
        tag: tag === ANY ? 'any' : tag,
        ...this.host.describe(ctx, tag),
        bytes: 0,
        waitedMs,
        phase: 'no message matches',
        rails: [],
      });
    }
    for (const { rank, text } of this.engine.isFinalizing ? this.engine.notLeftPeers() : []) {
      waits.push({ kind: 'finalize', peer: rank, tag: 'any', comm: 'world', bytes: 0, waitedMs: 0, phase: text, rails: [] });
    }
    waits.sort((a, b) => b.waitedMs - a.waitedMs);
    const listed = waits.slice(0, WAITS_MAX);
    return { rank: this.host.rank, pid: process.pid, waits: listed, more: waits.length - listed.length, rails: this.railsOf(listed) };
  }

  private waitOf({ request, kind, peer, tag, ctx, bytes, phase }: PendingRequest, nowMs: number): Wait {
    const rails =
      peer === ANY ? [] : (this.engine.bml.peers.get(peer)?.rails ?? []).filter((rail) => rail.isCarrying).map(({ key }) => key);
    const waitedMs = Math.round(nowMs - (this.seen.get(request)?.sinceMs ?? nowMs));
    return {
      kind,
      peer: peer === ANY ? 'any' : peer,
      tag: tag === ANY ? 'any' : tag,
      ...this.host.describe(ctx, tag),
      bytes,
      waitedMs,
      phase,
      rails,
    };
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

  /** Forgets what is done, remembers what is new. */
  private refresh(nowMs: number): PendingRequest[] {
    this.lookedMs = nowMs;
    const before = this.seen;
    this.seen = new Map();
    const requests = pendingRequests(this.engine.pml);
    for (const { request, mark } of requests) this.note(before, request, mark, nowMs);
    for (const [waiter] of this.host.probes()) this.note(before, waiter, 'probe', nowMs);
    return requests;
  }

  private note(before: ReadonlyMap<object, Seen>, key: object, mark: string, nowMs: number): void {
    const seen = before.get(key) ?? { sinceMs: nowMs, movedMs: nowMs, mark };
    if (seen.mark !== mark) {
      seen.mark = mark;
      seen.movedMs = nowMs;
    }
    this.seen.set(key, seen);
  }

  private age(key: object, mark: string, nowMs: number): number {
    if (!this.seen.has(key)) this.note(this.seen, key, mark, nowMs);
    return Math.round(nowMs - (this.seen.get(key) as Seen).sinceMs);
  }
}
