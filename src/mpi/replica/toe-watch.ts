// Whether the other replica is late. It is judged by the time that a processor has spent on it since this one began to wait for it: a process
// that is stopped, or that gets no processor because others have it, uses none and is never late; one that is in a loop is.
import { readFileSync } from 'node:fs';
import type { Due } from '../../ft/replica/paired-pml.ts';
import type { ProcessId } from '../ft/process-watch.ts';

/** Ticks of a processor's time in a second: of every Linux. */
const TICKS_PER_SECOND = 100;
/** Less is no judgement. */
const LEAST_MS = 1000;
/** Of how many places in the program it is kept how much time this process had used there. */
const PLACES_KEPT = 64;
export const TOE_LOOK_MS = 250;

/** Processor time of a process, in milliseconds; undefined: it cannot be known. */
export function processorMs({ pid, startTicks }: Pick<ProcessId, 'pid' | 'startTicks'>): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Behind the name, which may hold anything: user and system time are the fourteenth and fifteenth field, the start is the twenty-second.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(fields[19]) !== startTicks) return undefined;
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** What is known of the processor time of another replica. */
export interface TwinClock {
  /** A wait begins: what was known before does not count for it. */
  refresh(): void;
  /** Undefined: it is not known, or not yet. `calls`: those that it had begun by then, where that is known. */
  read(): { readonly ms: number; readonly calls: number | undefined } | undefined;
}

/** Of a process on this host. */
export function clockHere(id: ProcessId): TwinClock {
  return {
    refresh: () => undefined,
    read: () => {
      const ms = processorMs(id);
      return ms === undefined ? undefined : { ms, calls: undefined };
    },
  };
}

export interface ToeWatchOptions {
  /** So many times the time that this process has used, and a second at least. */
  readonly factor: number;
  /** What the other replica is waited for; undefined: it is not. */
  due(): Due | undefined;
  /** Calls that this process has begun, and those that the other one is known to have begun. */
  calls(): { readonly own: number; readonly twin: number };
  ownMs(): number;
  readonly clock: TwinClock;
  onLate(what: string): void;
}

export class ToeWatch {
  private readonly options: ToeWatchOptions;
  private due: string | undefined;
  /** By the calls that had been begun: what this process had used when it was last seen there. Ascending. */
  private readonly places: { calls: number; ms: number }[] = [];
  /** Processor time of the other one when the wait began. */
  private twinFromMs: number | undefined;
  private ownUsedMs = 0;
  /** The last look found it late. */
  private isSuspected = false;

  constructor(options: ToeWatchOptions) {
    this.options = options;
    this.places.push({ calls: 0, ms: options.ownMs() });
  }

  look(): void {
    const { factor, due: dueOf, ownMs, clock, onLate } = this.options;
    const due = dueOf();
    const since = this.sinceCommon();
    if (due?.what !== this.due) {
      this.due = due?.what;
      this.isSuspected = false;
      // What this one has used until it came here, the other may use, too.
      this.ownUsedMs = ownMs() - since;
      this.twinFromMs = undefined;
      if (due !== undefined) clock.refresh();
    }
    if (due === undefined) return;
    const now = clock.read();
    if (now === undefined) return;
    this.twinFromMs ??= now.ms;
    // It has come to it, and its word has not come here: the rails between the two may be down.
    if (now.calls !== undefined && (due.calls === undefined || now.calls >= due.calls)) return;
    const usedMs = now.ms - this.twinFromMs;
    const mostMs = Math.max(LEAST_MS, factor * this.ownUsedMs);
    if (usedMs <= mostMs) return;
    // This process may not have had a processor itself: what the other one has said meanwhile is read before the next look.
    if (this.isSuspected)
      onLate(
        `it has used ${(usedMs / 1000).toFixed(2)} s of a processor without coming to ${due.what}; at most ${(mostMs / 1000).toFixed(2)} s were to be expected, from what the other one had used`,
      );
    this.isSuspected = true;
  }

  /**
   * What this process had used when it was last seen before the call that the other one came to last. Not later: the other one may have stood
   * at that call all the time that this one computed behind it, in which no timer runs.
   */
  private sinceCommon(): number {
    const { own, twin } = this.options.calls();
    const { places } = this;
    const last = places[places.length - 1];
    if (last.calls === own) last.ms = this.options.ownMs();
    else places.push({ calls: own, ms: this.options.ownMs() });
    while (places.length > 1 && places[1].calls < twin) places.shift();
    // An earlier place allows the other one more.
    if (places.length > PLACES_KEPT) places.splice(1, 1);
    return places[0].ms;
  }
}
