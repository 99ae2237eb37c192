// A world whose gaps are bounded: rails of which some are healthy throughout, an application that keeps messages under way, impairments of
// the other rails, and the judgement of gaps (gaps.ts) and of waste. The profile `impaired`, which draws all of it, and scenarios use it.
// Links and timers are those of real networks and of the product's defaults; streams repair themselves as TCP does (pipe.ts).
import type { Prng } from '../../src/util/prng.ts';
import type { RailSpec, SimLink } from './fabric.ts';
import { GapWatch } from './gaps.ts';
import { OracleError, type SentMessage } from './oracle.ts';
import { World, type WorldOptions } from './world.ts';

/** 1 Mbit/s, in bytes per millisecond. */
export const MBIT = 125;

/** 1 Gbit/s and 100 us. One that checks itself finds a hole after 80 ms or so (btl/tcp/liveness.ts). */
export const REAL_RAIL: Partial<RailSpec> = {
  bytesPerMs: 1000 * MBIT,
  latencyUs: 100,
  jitterUs: 0,
  cellBytesMax: 32 * 1024,
  cellsMax: 1,
  liveness: 'self',
  detectUsMin: 80_000,
  detectUsMax: 100_000,
};

/** How a rail is bad, each with a sentence. */
export const IMPAIRMENTS = {
  dark: 'Everything is lost for a while, in silence.',
  flap: 'It is dark and light by turns.',
  loss: 'Packets are lost.',
  slow: 'The rate falls, with what is queued in it.',
  delay: 'Everything takes longer.',
  swing: 'The delay changes again and again.',
} as const;
export type ImpairmentKind = keyof typeof IMPAIRMENTS;

/** Times in microseconds. `missesAtOnce` as in Path (pipe.ts). */
export type Impairment =
  | { kind: 'dark'; missesAtOnce: boolean }
  | { kind: 'flap'; periodUs: number; darkUs: number; missesAtOnce: boolean }
  | { kind: 'loss'; lossPer10k: number }
  | { kind: 'slow'; bytesPerMs: number }
  | { kind: 'delay'; extraUs: number }
  | { kind: 'swing'; maxUs: number; everyUs: number; prng: Prng };

function describe(impairment: Impairment): string {
  switch (impairment.kind) {
    case 'dark':
      return 'dark';
    case 'flap':
      return `flap, dark for ${impairment.darkUs / 1000} of ${impairment.periodUs / 1000} ms`;
    case 'loss':
      return `loss of ${impairment.lossPer10k / 100} percent`;
    case 'slow':
      return `slow, ${impairment.bytesPerMs * 8} kbit/s`;
    case 'delay':
      return `delay of ${impairment.extraUs / 1000} ms`;
    case 'swing':
      return `swing of up to ${impairment.maxUs / 1000} ms, every ${impairment.everyUs / 1000} ms`;
  }
}

/** A link and the ranks from which it is bad. */
export interface BadLink {
  readonly link: SimLink;
  readonly from: readonly number[];
}

/** What may be sent again: this part of what was delivered, and so many windows each time that a direction of a rail gets bad. */
const WASTE = { part: 0.1, windows: 2 } as const;
/** What a rail of 1 Gbit/s is given at a time (bml_window_ms), which is above bml_window_min_bytes. */
const WINDOW_BYTES = 5 * 1000 * MBIT;
/**
 * What the bound of a gap is widened by for each bad rail beyond the second: what one has held for that long may go to another that turns out
 * to be bad, and so on.
 */
const FURTHER_RAIL_MS = 75;
/** And where rails put and get: messages are read side by side, so that a window of others is ahead of each (bml_window_min_bytes). */
const SIDE_BY_SIDE_BYTES = 512 * 1024;
/** Times that one side leaves a rail for being late, in a run: each time it is on trial for longer. */
const LEFT_MAX = 4;
/** How often it is looked whether something waits for too long: what never arrives is found, too. */
const LOOK_MS = 25;
/** Lines of a timeline: so many in all, and so many of what was before the gap. */
const LINES_MAX = 60;
const LINES_BEFORE = 20;

export interface BoundedOptions extends Pick<WorldOptions, 'seed' | 'ranks' | 'rails' | 'trace' | 'hashTrace' | 'coverage' | 'params'> {
  /** Numbers of the rails that are healthy throughout, between all ranks. */
  healthy: readonly number[];
  /** What the application sends at most, in all. */
  messagesMax: number;
  bytesMax: number;
}

export class Bounded {
  readonly world: World;
  readonly gaps: GapWatch;
  readonly healthy: readonly number[];
  /** What this run is, line by line. */
  readonly words: string[] = [];
  /** Impairments that began, by kind. */
  readonly faults: Partial<Record<ImpairmentKind, number>> = {};
  /** Times that a process computed. */
  pauses = 0;
  messages = 0;
  deliveredBytes = 0;
  /** Directions of rails that got bad, each time. */
  private episodes = 0;
  private messagesLeft: number;
  private bytesLeft: number;
  private readonly notes: { atMs: number; text: string }[] = [];
  /** Faults and traffic have come to their end. */
  private isOver = false;
  /** What goes on when a message has arrived. */
  private readonly onArrival = new Map<SentMessage, () => void>();
  /** Rows of messages of which each is followed by another. */
  private chains = 0;
  private nextCtx = 0;

  constructor({ healthy, messagesMax, bytesMax, ...options }: BoundedOptions) {
    this.world = new World(options);
    this.healthy = healthy;
    this.messagesLeft = messagesMax;
    this.bytesLeft = bytesMax;
    const rails = options.rails.map(
      ({ bytesPerMs = 0, latencyUs, liveness, canPut }, i) =>
        `${bytesPerMs / MBIT} Mbit/s ${latencyUs} us ${liveness}${canPut ? ' put' : ''}${healthy.includes(i) ? ' healthy' : ''}`,
    );
    this.words.push(`ranks ${options.ranks}, rails ${rails.join(', ')}`);
    const { fabric, oracle } = this.world;
    this.gaps = new GapWatch({
      grantMs: FURTHER_RAIL_MS * Math.max(0, rails.length - healthy.length - 2),
      grantBytes: options.rails.some(({ canPut, canGet }) => canPut || canGet) ? SIDE_BY_SIDE_BYTES : 0,
      nowMs: () => this.world.nowMs,
      isPaused: (rank) => fabric.isPaused(rank),
      healthyRate: (source, dest) => healthy.reduce((sum, linkNo) => sum + fabric.link(source, dest, linkNo).spec.bytesPerMs, 0),
      breach: (text, fromMs) => {
        throw new OracleError(`${text}\n${this.timeline(fromMs)}`);
      },
    });
    oracle.onSent = (message) => this.gaps.sent(message);
    oracle.onDelivered = (message) => {
      this.gaps.delivered(message);
      this.deliveredBytes += message.bytes;
      const next = this.onArrival.get(message);
      // The application goes on in a turn of its own.
      if (next !== undefined) this.later(0, next);
    };
    if (!this.world.runUntil(() => this.world.allUp, 10_000)) throw new OracleError('I5: the rails did not come up');
  }

  // ---------------------------------------------------------------- what is written down

  private note(text: string): void {
    this.notes.push({ atMs: this.world.nowMs, text });
    if (this.world.fabric.tracing) this.world.fabric.note(text);
  }

  /** What was done to the rails and what became of them, around a moment. */
  private timeline(aroundMs: number): string {
    const seen = this.world.processes.flatMap(({ rank, railEvents }) =>
      railEvents
        .filter(({ peer }) => peer !== rank)
        .map(({ atMs, type, peer, rail, reason }) => ({ atMs, text: `rank ${rank}: rail ${rail} to ${peer} ${type} ${reason}` })),
    );
    const all = [...this.notes, ...seen].sort((a, b) => a.atMs - b.atMs);
    const after = all.filter(({ atMs }) => atMs < aroundMs).length;
    const first = Math.max(0, after - LINES_BEFORE);
    const lines = all.slice(first, first + LINES_MAX).map(({ atMs, text }) => `  ${atMs.toFixed(2).padStart(9)} ms  ${text}`);
    lines.splice(after - first, 0, `  ${aroundMs.toFixed(2).padStart(9)} ms  the gap begins`);
    return [`  ${this.words.join('\n  ')}`, ...lines].join('\n');
  }

  private later(us: number, act: () => void): void {
    const { fabric } = this.world;
    fabric.at(fabric.nowUs + us, act);
  }

  // ---------------------------------------------------------------- rails get bad, and better

  /** So much later, for so long; then these links are as they were built, though what they hold may still be waiting. */
  impair(bad: readonly BadLink[], impairment: Impairment, inUs: number, forUs: number): void {
    const { fabric } = this.world;
    const text = describe(impairment);
    const where = bad.map(({ link, from }) => `${link.name} from ${from.join(' and ')}`).join(', ');
    /** Something is done to all of them, unless the run is over. */
    const at = (us: number, act: (link: SimLink, from: number) => void) =>
      this.later(us, () => {
        if (!this.isOver) for (const { link, from } of bad) for (const rank of from) act(link, rank);
      });
    const endUs = inUs + forUs;
    switch (impairment.kind) {
      case 'dark':
      case 'flap': {
        const { missesAtOnce } = impairment;
        const { periodUs, darkUs } = impairment.kind === 'flap' ? impairment : { periodUs: forUs, darkUs: forUs };
        for (let us = inUs; us < endUs; us += periodUs) {
          at(us, (link, from) => fabric.impair(link, from, { dark: true, missesAtOnce }));
          at(Math.min(us + darkUs, endUs), (link, from) => fabric.impair(link, from, { dark: false }));
        }
        break;
      }
      case 'loss':
        at(inUs, (link, from) => fabric.impair(link, from, { lossPer10k: impairment.lossPer10k }));
        at(endUs, (link, from) => fabric.impair(link, from, { lossPer10k: 0 }));
        break;
      case 'slow':
        at(inUs, (link, from) => fabric.impair(link, from, { bytesPerMs: impairment.bytesPerMs }));
        at(endUs, (link, from) => fabric.impair(link, from, { bytesPerMs: Number.POSITIVE_INFINITY }));
        break;
      case 'delay':
        at(inUs, (link, from) => fabric.skew(link, from, impairment.extraUs));
        at(endUs, (link, from) => fabric.skew(link, from, 0));
        break;
      case 'swing': {
        const { maxUs, everyUs, prng } = impairment;
        for (let us = inUs; us < endUs; us += everyUs) at(us, (link, from) => fabric.skew(link, from, prng.between(0, maxUs)));
        at(endUs, (link, from) => fabric.skew(link, from, 0));
        break;
      }
    }
    this.words.push(`${where}: ${text}, from ${(this.world.nowMs + inUs / 1000).toFixed(1)} ms on for ${(forUs / 1000).toFixed(1)} ms`);
    this.later(inUs, () => {
      if (this.isOver) return;
      this.note(`${where}: ${text}`);
      for (const { from } of bad) this.episodes += from.length;
      this.faults[impairment.kind] = (this.faults[impairment.kind] ?? 0) + 1;
    });
    this.later(endUs, () => this.note(`${where}: ${impairment.kind} is over`));
  }

  // ---------------------------------------------------------------- processes compute

  /** So much later that process gets no turn for so long: it computes, or is stopped. No rail is bad for that (I15). */
  pause(rank: number, inUs: number, forUs: number): void {
    const { fabric } = this.world;
    this.words.push(`rank ${rank} computes from ${(this.world.nowMs + inUs / 1000).toFixed(1)} ms on for ${forUs / 1000} ms`);
    this.later(inUs, () => {
      if (this.isOver) return;
      this.gaps.look();
      this.note(`rank ${rank} computes`);
      this.pauses++;
      fabric.pause(rank);
      this.later(forUs, () => {
        this.note(`rank ${rank} polls again`);
        // First, since what its rails hold may be delivered at once.
        this.gaps.resumed(rank);
        fabric.resume(rank);
      });
    });
  }

  // ---------------------------------------------------------------- traffic

  /** A message whose receive is posted, and what follows once it has arrived. The chain ends when the application has sent enough. */
  private send(source: number, dest: number, ctx: number, bytes: number, next?: () => void): boolean {
    if (this.isOver || this.messagesLeft <= 0 || this.bytesLeft < bytes) {
      this.chains--;
      return false;
    }
    this.messagesLeft--;
    this.bytesLeft -= bytes;
    this.messages++;
    this.world.irecv(dest, source, ctx, 0, bytes);
    const message = this.world.isend(source, dest, ctx, 0, bytes);
    if (next !== undefined) this.onArrival.set(message, next);
    return true;
  }

  /** `depth` messages under way, each followed by another after a pause of up to so long. */
  bulk(source: number, dest: number, bytes: number, depth: number, inUs = 0, pauseUs: () => number = () => 0): void {
    const ctx = this.nextCtx++;
    const more = (): void => this.later(pauseUs(), () => this.send(source, dest, ctx, bytes, more));
    this.words.push(`rank ${source} to ${dest}: messages of ${bytes} bytes, ${depth} under way, in ${inUs / 1000} ms`);
    this.chains += depth;
    this.later(inUs, () => {
      for (let i = 0; i < depth; i++) this.send(source, dest, ctx, bytes, more);
    });
  }

  /** One message after the other, whether the last has arrived or not. */
  each(source: number, dest: number, bytes: number, everyUs: number, inUs = 0): void {
    const ctx = this.nextCtx++;
    const next = (): void => {
      if (this.send(source, dest, ctx, bytes)) this.later(everyUs, next);
    };
    this.words.push(`rank ${source} to ${dest}: ${bytes} bytes every ${everyUs / 1000} ms, in ${inUs / 1000} ms`);
    this.chains++;
    this.later(inUs, next);
  }

  /** One message, to and fro. */
  pingPong(source: number, dest: number, bytes: number, pauseUs: number, inUs = 0): void {
    const ctx = this.nextCtx++;
    const ping = (from: number, to: number): void => {
      this.send(from, to, ctx, bytes, () => this.later(pauseUs, () => ping(to, from)));
    };
    this.words.push(`ranks ${source} and ${dest}: ping-pong of ${bytes} bytes, with pauses of ${pauseUs / 1000} ms, in ${inUs / 1000} ms`);
    this.chains++;
    this.later(inUs, () => ping(source, dest));
  }

  // ---------------------------------------------------------------- the whole run

  /** Runs until the application has sent all and all has arrived, at most so long; then everything is healed and ends. */
  play(msMax: number): void {
    const { world } = this;
    const endMs = world.nowMs + msMax;
    const isDone = () => this.chains === 0 && world.oracle.isFinished;
    while (world.nowMs < endMs && !isDone()) {
      world.runUntil(isDone, LOOK_MS);
      this.gaps.look();
    }
    this.isOver = true;
    world.oracle.checkUnchanged();
    this.checkWaste();
    this.checkLeft();
    world.healAll();
    world.mustFinish(60_000);
    world.mustFinalize(60_000);
  }

  /** A rail that was healthy throughout was never left for being late, and a bad one is not trusted again and again. */
  private checkLeft(): void {
    for (const { railEvents, rank } of this.world.processes) {
      const times = new Map<string, number>();
      for (const { type, peer, rail, reason, atMs } of railEvents) {
        if (type !== 'lost' || peer === rank || !reason.startsWith('stalled')) continue;
        const name = `rail ${rail} to rank ${peer}`;
        const count = (times.get(name) ?? 0) + 1;
        times.set(name, count);
        const isHealthy = this.healthy.includes(rail);
        if (isHealthy || count > LEFT_MAX)
          throw new OracleError(
            `I15: rank ${rank} left ${name} for the ${count}. time, and ${isHealthy ? 'it was healthy' : `${LEFT_MAX} are enough to learn that it is bad`}\n${this.timeline(atMs)}`,
          );
      }
    }
  }

  /** Bytes that were sent again, over all ranks. */
  get wastedBytes(): number {
    let bytes = 0;
    for (const { engine } of this.world.processes) bytes += engine.pml.counters.bytesResent;
    return bytes;
  }

  private checkWaste(): void {
    const { wastedBytes, deliveredBytes, episodes } = this;
    const allowedBytes = deliveredBytes * WASTE.part + episodes * WASTE.windows * WINDOW_BYTES;
    if (wastedBytes > allowedBytes)
      throw new OracleError(
        `I14: ${wastedBytes} bytes were sent again, of ${deliveredBytes} that were delivered, and ${Math.round(allowedBytes)} may be\n${this.timeline(0)}`,
      );
  }
}
