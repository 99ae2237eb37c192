// The lives of one process that goes back with its group, and of those that do: which messages of an earlier life have left, and which are on their
// way to here and must be taken before the next life begins. Pure.
import type { FlowNumbers } from '../../pml/succession.ts';

/** The streams of this process; members are ranks. */
export interface LivingStreams {
  /** Numbers below which messages to that member have left; undefined: none that it could still get. */
  sentTo(rank: number): FlowNumbers | undefined;
  /** All that has left to here below these numbers has come, and nothing of it is written any more. */
  hasTaken(rank: number, sent: FlowNumbers): boolean;
}

interface Sent {
  /** Of the receiver. */
  readonly life: number;
  readonly numbers: FlowNumbers;
}

const NONE: FlowNumbers = new Map();

/** The higher number of each context. */
function higher(some: FlowNumbers, others: FlowNumbers): FlowNumbers {
  const numbers = new Map(some);
  for (const [ctx, seq] of others) numbers.set(ctx, Math.max(numbers.get(ctx) ?? 0, seq));
  return numbers;
}

export class GroupLives {
  /** So often has this process begun again. */
  life = 0;
  /** A run of the program is over, and the next one has not begun. */
  isAgain = false;
  /** By rank: what had left to it when nothing more did, of its life then. */
  private readonly sentWhenStopped = new Map<number, Sent>();
  /** By rank: numbers below which messages of an earlier life of this process left, and are with it or on their way. */
  private readonly sentOnce = new Map<number, Sent>();
  /** By rank: what has left to here, in this life. */
  private readonly toTake = new Map<number, FlowNumbers>();

  /** All begin together: nothing is left of what was before. */
  forget(): void {
    this.isAgain = false;
    this.sentWhenStopped.clear();
    this.sentOnce.clear();
    this.toTake.clear();
  }

  /** Another process has that place than before. */
  replaced(rank: number): void {
    this.sentWhenStopped.delete(rank);
    this.sentOnce.delete(rank);
  }

  /**
   * All have told in which life they are. Whoever has begun another one since, in a recovery that this process did not come to the end of, asks for
   * what it lacks itself.
   */
  met(lifeOf: (rank: number) => number): void {
    for (const [rank, { life }] of this.sentOnce) if (life !== lifeOf(rank)) this.sentOnce.delete(rank);
  }

  /** What has left to that member, which goes back and lives: nothing more does. */
  stopFor(rank: number, life: number, streams: LivingStreams | undefined): FlowNumbers {
    const known = this.sentWhenStopped.get(rank);
    if (known?.life === life) return known.numbers;
    // A life that began when this run of the program was over was sent nothing. What the streams know was sent to the one before.
    const numbers = (this.isAgain ? undefined : streams?.sentTo(rank)) ?? NONE;
    this.sentWhenStopped.set(rank, { life, numbers });
    return numbers;
  }

  /** This run of the program is over. What it has sent to the others that live stays sent; `lifeOf`: of each of those. */
  end(living: readonly number[], lifeOf: (rank: number) => number, streams: LivingStreams | undefined): void {
    for (const rank of living) {
      const life = lifeOf(rank);
      const before = this.sentOnce.get(rank)?.numbers ?? NONE;
      this.sentOnce.set(rank, { life, numbers: higher(before, this.stopFor(rank, life, streams)) });
    }
    this.isAgain = true;
  }

  /** That member has told what has left to here. */
  told(rank: number, numbers: FlowNumbers): void {
    this.toTake.set(rank, higher(this.toTake.get(rank) ?? NONE, numbers));
  }

  /** All that was on its way to here has come, and goes nowhere. */
  hasTaken(streams: LivingStreams): boolean {
    return [...this.toTake].every(([rank, numbers]) => streams.hasTaken(rank, numbers));
  }

  /** Members that begin from their images ask for what they lack themselves: what was sent to an earlier life of theirs is of no account. */
  begins(ranks: Iterable<number>): void {
    for (const rank of ranks) this.sentOnce.delete(rank);
  }

  /** The next life of this process begins. */
  begin(): void {
    this.isAgain = false;
    this.life++;
    this.sentWhenStopped.clear();
    this.toTake.clear();
  }

  /** Numbers below which messages to that member left in an earlier life. */
  sentBefore(rank: number): FlowNumbers | undefined {
    return this.sentOnce.get(rank)?.numbers;
  }
}
