// What of a program's messages is on its way, as far as this process knows: a save is a cut that no message of the program crosses.
import { idOf, isUserContext } from '../contexts.ts';
import type { ProcessState } from '../process-state.ts';

export class ProgramTraffic {
  /** Communicators that belong to saves, and not to the program. */
  readonly own = new Set<number>();
  protected readonly proc: ProcessState;

  constructor(proc: ProcessState) {
    this.proc = proc;
  }

  /** What telemetry tells of the saves of this rank from now on; asked for with each report. */
  count(counters: () => Readonly<Record<string, number>>): void {
    this.proc.saveCounters = counters;
  }

  /** Some message that this rank has sent for its program has not arrived; in words, at most so many of them. */
  underWay(textsMax: number): string[] {
    const texts: string[] = [];
    for (const { rank, sends } of this.proc.engine.pml.peers) {
      for (const { ctx } of sends) {
        if (!this.isProgram(ctx) && this.proc.logged?.covers(ctx) !== true) continue;
        if (texts.length < textsMax) texts.push(`a message to process ${rank} on ${this.proc.describe(ctx, 0).comm}`);
      }
    }
    return texts;
  }

  /** As underWay(), of messages to those processes alone where they are logged, and to all others where they are not. */
  underWayTo(numbers: ReadonlySet<number>, textsMax: number): string[] {
    const texts: string[] = [];
    for (const { rank, sends } of this.proc.engine.pml.peers) {
      for (const { ctx } of sends) {
        const isCovered = this.proc.logged?.covers(ctx) === true;
        if (isCovered ? !numbers.has(rank) : !this.isProgram(ctx)) continue;
        if (texts.length < textsMax) texts.push(`a message to process ${rank} on ${this.proc.describe(ctx, 0).comm}`);
      }
    }
    return texts;
  }

  /** As unreceived(), of messages from those processes alone where they are logged. */
  unreceivedOf(numbers: ReadonlySet<number>, textsMax: number): string[] {
    return this.texts(({ peer, ctx }) => this.isProgram(ctx) && (this.proc.logged?.covers(ctx) !== true || numbers.has(peer)), textsMax);
  }

  /** Messages that have come and that the program of this rank has not received, in words. */
  unreceived(textsMax: number): string[] {
    return this.texts(({ ctx }) => this.isProgram(ctx), textsMax);
  }

  private texts(isMeant: (message: { readonly peer: number; readonly ctx: number }) => boolean, textsMax: number): string[] {
    return this.proc.engine.pml
      .unreceived()
      .filter(isMeant)
      .slice(0, textsMax)
      .map(({ peer, ctx, tag, bytes }) => `${bytes} bytes from process ${peer} with tag ${tag} on ${this.proc.describe(ctx, tag).comm}`);
  }

  private isProgram(ctx: number): boolean {
    return isUserContext(ctx) && !this.own.has(idOf(ctx));
  }
}
