// Results that are awaited, handed to the program one at a time where outcomes are recorded: the next one when nothing of the program is left to run
// but what other awaits are to go on with. So its course depends on their order alone, and where several are awaited at once, that is recorded. A
// successor is handed them in the order in which its predecessor was, however early some of them come.
import { MultirailError } from '../../errors.ts';
import type { RecordedOutcomes } from './recorded-outcomes.ts';

/** What is awaited. */
interface Awaited {
  /** There is a result, or an error, to be handed out. */
  isReady(): boolean;
  handOut(): void;
}

/** A successor waits so long for what its program must do next, before its predecessor's list goes on: for timers, and what else is not recorded. */
const STALLED_MS = 10_000;

export class Turns {
  private readonly outcomes: RecordedOutcomes;
  private readonly onDiffers: (error: MultirailError) => void;
  /** By number, ascending. */
  private readonly open = new Map<number, Awaited>();
  private last = 0;
  private isAsked = false;
  private isOver = false;
  private stalled: NodeJS.Timeout | undefined;

  constructor(outcomes: RecordedOutcomes, onDiffers: (error: MultirailError) => void) {
    this.outcomes = outcomes;
    this.onDiffers = onDiffers;
  }

  /** For the program: what that promise comes to, when it is its turn. */
  inTurn<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let handOut: (() => void) | undefined;
      this.add({ isReady: () => handOut !== undefined, handOut: () => handOut?.() });
      const ended = (how: () => void): void => {
        handOut = how;
        this.lookSoon();
      };
      promise.then(
        (value) => ended(() => resolve(value)),
        (error: unknown) => ended(() => reject(error)),
      );
    });
  }

  /** Another await begins; lookSoon() is called when it may be ready. */
  add(awaited: Awaited): void {
    this.last = this.outcomes.beginAwait();
    this.open.set(this.last, awaited);
    this.lookSoon();
  }

  /** When all that the program can run by itself has run. */
  lookSoon(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    queueMicrotask(() =>
      process.nextTick(() => {
        this.isAsked = false;
        this.look();
      }),
    );
  }

  /** Nothing is recorded any more: what is ready is handed out, and so is what comes. */
  end(): void {
    this.isOver = true;
    this.lookSoon();
  }

  private look(): void {
    clearTimeout(this.stalled);
    const next = this.isOver ? this.firstReady() : this.next();
    if (next === undefined) return;
    const awaited = this.open.get(next) as Awaited;
    this.open.delete(next);
    awaited.handOut();
    this.lookSoon();
  }

  private firstReady(): number | undefined {
    for (const [number, awaited] of this.open) if (awaited.isReady()) return number;
    return undefined;
  }

  private next(): number | undefined {
    const { open, outcomes } = this;
    const { nextTurn } = outcomes;
    if (open.size < 2) {
      // One that is awaited alone needs no record: what is listed is about later ones.
      const alone = this.firstReady();
      if (alone !== undefined && alone === nextTurn) outcomes.tookTurn();
      return alone;
    }
    if (!outcomes.hasListed) {
      const ready = this.firstReady();
      if (ready !== undefined) outcomes.noteTurn(ready);
      return ready;
    }
    const awaited = nextTurn === undefined ? undefined : open.get(nextTurn);
    if (nextTurn === undefined || awaited === undefined) {
      if (nextTurn !== undefined && nextTurn <= this.last) this.differs(`await ${nextTurn} comes to its end once more`);
      else this.stalled = setTimeout(() => this.differs('it waits, and did something else'), STALLED_MS);
      return undefined;
    }
    if (!awaited.isReady()) return undefined;
    outcomes.tookTurn();
    return nextTurn;
  }

  private differs(what: string): void {
    const { rank } = this.outcomes;
    this.onDiffers(
      new MultirailError(
        'ERR_REPLAY',
        `rank ${rank}: ${what}, before the failure: the program does not repeat itself; what depends on timers, files or other events outside of the job cannot be recorded (determinism: 'recorded'), so await nothing of the job at the same time, or use recovery 'coordinated'`,
        { rank },
      ),
    );
    this.end();
  }
}
