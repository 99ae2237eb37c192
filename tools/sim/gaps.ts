// The bound on gaps, in virtual time. A gap is the time between two deliveries at a receiver while something is outstanding for it. A
// delivery is the arrival of a flow's first missing message: a program that receives its messages in order sees nothing of later ones. Gaps
// are judged for each pair of ranks and direction. While one of the two computes, or is stopped, nothing can be delivered: its gaps begin
// again when it polls again.
import { OracleError, type SentMessage } from './oracle.ts';

/** No gap above this, plus what the healthy rails need for one message. */
export const GAP_MAX_MS = 150;
/**
 * What is granted on top: a turn of the engine's clock that was just missed on either side, and the round trips of a restart. A real run
 * has these within the bound.
 */
export const ALLOWANCE_MS = 10;

interface Flow {
  /** Sent and not yet delivered, in the order of sending. */
  readonly waiting: SentMessage[];
  readonly arrived: Set<SentMessage>;
}

interface Pair {
  readonly source: number;
  readonly dest: number;
  readonly flows: Map<number, Flow>;
  /** Since when something is outstanding without a delivery; -1 while nothing is. */
  sinceMs: number;
  worstMs: number;
}

export interface GapOptions {
  nowMs(): number;
  /** Bytes per millisecond of all rails between the two that are healthy throughout. */
  healthyRate(source: number, dest: number): number;
  /** Granted on top, in milliseconds and in bytes that the healthy rails have to carry first. */
  grantMs?: number;
  grantBytes?: number;
  /** That process gets no turn. */
  isPaused(rank: number): boolean;
  /** Told of a gap above the bound; it throws. */
  breach(text: string, fromMs: number): never;
}

export class GapWatch {
  private readonly pairs = new Map<string, Pair>();
  private readonly options: GapOptions;

  constructor(options: GapOptions) {
    this.options = options;
  }

  private pair({ source, dest }: SentMessage): Pair {
    const name = `${source}>${dest}`;
    let pair = this.pairs.get(name);
    if (pair === undefined) {
      pair = { source, dest, flows: new Map(), sinceMs: -1, worstMs: 0 };
      this.pairs.set(name, pair);
    }
    return pair;
  }

  /** The receive of a message is posted before it is sent: from now on it is outstanding. */
  sent(message: SentMessage): void {
    const pair = this.pair(message);
    let flow = pair.flows.get(message.ctx);
    if (flow === undefined) {
      flow = { waiting: [], arrived: new Set() };
      pair.flows.set(message.ctx, flow);
    }
    flow.waiting.push(message);
    if (pair.sinceMs < 0) pair.sinceMs = this.options.nowMs();
  }

  delivered(message: SentMessage): void {
    const pair = this.pair(message);
    const flow = pair.flows.get(message.ctx);
    if (flow === undefined) throw new OracleError(`message ${message.index} was delivered and never sent`);
    flow.arrived.add(message);
    if (flow.waiting[0] !== message) return;
    this.judge(pair);
    while (flow.waiting.length > 0 && flow.arrived.delete(flow.waiting[0])) flow.waiting.shift();
    pair.sinceMs = [...pair.flows.values()].every(({ waiting }) => waiting.length === 0) ? -1 : this.options.nowMs();
  }

  /** What is still outstanding waits for no longer than it may. */
  look(): void {
    for (const pair of this.pairs.values()) if (pair.sinceMs >= 0) this.judge(pair);
  }

  /** That process gets its turns again. */
  resumed(rank: number): void {
    for (const pair of this.pairs.values()) {
      if ((pair.source === rank || pair.dest === rank) && pair.sinceMs >= 0) pair.sinceMs = this.options.nowMs();
    }
  }

  private judge(pair: Pair): void {
    const { source, dest, sinceMs } = pair;
    if (this.options.isPaused(source) || this.options.isPaused(dest)) return;
    const { grantMs = 0, grantBytes = 0 } = this.options;
    const gapMs = this.options.nowMs() - sinceMs;
    pair.worstMs = Math.max(pair.worstMs, gapMs);
    if (gapMs <= GAP_MAX_MS) return;
    let bytesMax = 0;
    for (const { waiting } of pair.flows.values()) for (const { bytes } of waiting) bytesMax = Math.max(bytesMax, bytes);
    const carriedMs = (bytesMax + grantBytes) / this.options.healthyRate(source, dest);
    const boundMs = GAP_MAX_MS + ALLOWANCE_MS + grantMs + carriedMs;
    if (gapMs <= boundMs) return;
    const text = `I13: nothing was delivered from rank ${source} to rank ${dest} for ${gapMs.toFixed(1)} ms, and at most ${boundMs.toFixed(1)} ms may pass (messages of up to ${bytesMax} bytes are outstanding)`;
    this.options.breach(text, sinceMs);
  }

  /** Over all pairs. */
  get worstMs(): number {
    return Math.max(0, ...[...this.pairs.values()].map(({ worstMs }) => worstMs));
  }
}
