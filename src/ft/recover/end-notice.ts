// The notice of the end: a signal tells one rank or all of them that the job has to end soon, as schedulers do before they kill it. Rank 0
// asks all how far they are and says where all stop: at a call of next() or checkpoint() that nobody has begun. Answers come from a timer,
// since a program may wait for another rank just then.
import type { Communicator } from '../../mpi/communicator.ts';
import { ANY_SOURCE } from '../../mpi/constants.ts';
import { isFailure } from './exchange.ts';

/** By tag, on the communicator of saves: rank → 0, 0 → all, rank → 0, 0 → all. */
const TAG = { TOLD: 4, ASK: 5, PLACE: 6, STOP: 7 } as const;
const LOOK_MS = 50;

/** Whether this process was told; it outlasts recoveries. */
export class EndNotice {
  isTold = false;
  private readonly signal: NodeJS.Signals | undefined;
  private readonly listener = (): void => {
    this.isTold = true;
  };

  /** `name`: the parameter ft_end_signal. */
  constructor(name: string) {
    this.signal = name === 'none' ? undefined : (name as NodeJS.Signals);
    if (this.signal !== undefined) process.on(this.signal, this.listener);
  }

  get isAwaited(): boolean {
    return this.signal !== undefined;
  }

  /** The signal does what it did before. */
  close(): void {
    if (this.signal !== undefined) process.off(this.signal, this.listener);
  }
}

/** Nobody tells. Under logs it is the rows of a save, or of a look, that say who was told: each recovery replaces the communicator of saves. */
export const NO_NOTICE = new EndNotice('none');

/** The way of one run of the program to its end before time. */
export class Stopping {
  /** All ranks save and leave in this call of theirs. Undefined: nobody was told, as far as this rank knows. */
  at: number | undefined;
  /** How often the program has called next() and checkpoint(). */
  place = 0;
  /** This rank has told rank 0. */
  hasTold = false;
  /** It will not stop before this call, and not begin it before it knows where all stop. */
  private promised: number | undefined;
  private isClosed = false;
  /** What rank 0 has heard. */
  private readonly told = new Set<number>();
  private readonly places = new Map<number, number>();
  private looking: Promise<void> | undefined;
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly own: Communicator;
  private readonly notice: EndNotice;
  private readonly isOver: () => boolean;

  /** `isOver`: a rank has failed, and this run of the program is over. */
  constructor(own: Communicator, notice: EndNotice, isOver: () => boolean) {
    this.own = own;
    this.notice = notice;
    this.isOver = isOver;
    if (!notice.isAwaited) return;
    // What goes wrong here goes wrong again in the next call of the program, which is told.
    this.timer = setInterval(() => void this.look().catch(() => undefined), LOOK_MS);
    this.timer.unref();
  }

  /** Nobody looks any more. */
  close(): void {
    clearInterval(this.timer);
  }

  /** A call begins: it waits while this rank must not pass. False: this run of the program is over. */
  async enter(): Promise<boolean> {
    this.place++;
    // The timer looks, too: a step that nobody has to wait for costs nothing.
    if (!this.notice.isTold && this.promised === undefined) return true;
    return await this.known(() => this.promised !== undefined && this.place >= this.promised);
  }

  /** The program has ended here: nobody is told from now on. What all have begun comes to its end. */
  async end(): Promise<boolean> {
    this.isClosed = true;
    return await this.known(() => this.promised !== undefined);
  }

  /** All ranks are at their end: `told` are those that have told rank 0. Takes what nobody has waited for. */
  async drain(told: readonly number[]): Promise<void> {
    const { own } = this;
    this.close();
    // Rank 0 has said where all stop before it came to its end, and the word may still be on its way.
    await this.known(() => this.promised !== undefined);
    if (own.rank !== 0) return;
    for (const rank of told) if (!this.told.has(rank)) await own.recv(new Float64Array(1), rank, TAG.TOLD);
  }

  private async known(hasToWait: () => boolean): Promise<boolean> {
    await this.look();
    while (hasToWait() && this.at === undefined && !this.isOver()) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS / 10));
      await this.look();
    }
    return !this.isOver();
  }

  /** One look at a time. */
  private look(): Promise<void> {
    this.looking ??= this.lookOnce()
      .catch((error: unknown) => {
        if (!isFailure(error)) throw error;
      })
      .finally(() => {
        this.looking = undefined;
      });
    return this.looking;
  }

  private async lookOnce(): Promise<void> {
    const { own } = this;
    if (this.isOver()) return;
    if (own.rank !== 0) {
      if (this.notice.isTold && !this.isClosed && !this.hasTold && this.promised === undefined) {
        this.hasTold = true;
        await own.send(Float64Array.of(1), 0, TAG.TOLD);
      }
      if (this.promised === undefined && (await this.heard(0, TAG.ASK)) !== undefined) {
        this.promised = this.place + 1;
        await own.send(Float64Array.of(this.promised), 0, TAG.PLACE);
      }
      if (this.promised !== undefined) this.at ??= (await this.heard(0, TAG.STOP))?.value;
      return;
    }
    for (let word = await this.heard(ANY_SOURCE, TAG.TOLD); word !== undefined; word = await this.heard(ANY_SOURCE, TAG.TOLD))
      this.told.add(word.source);
    if (this.promised === undefined && !this.isClosed && (this.notice.isTold || this.told.size > 0)) {
      this.promised = this.place + 1;
      this.places.set(0, this.promised);
      await this.sayToAll(TAG.ASK, 0);
    }
    if (this.promised === undefined || this.at !== undefined) return;
    for (let word = await this.heard(ANY_SOURCE, TAG.PLACE); word !== undefined; word = await this.heard(ANY_SOURCE, TAG.PLACE))
      this.places.set(word.source, word.value);
    if (this.places.size < own.size) return;
    const at = Math.max(...this.places.values());
    await this.sayToAll(TAG.STOP, at);
    this.at = at;
  }

  private async sayToAll(tag: number, value: number): Promise<void> {
    for (let rank = 1; rank < this.own.size; rank++) await this.own.send(Float64Array.of(value), rank, tag);
  }

  private async heard(source: number, tag: number): Promise<{ source: number; value: number } | undefined> {
    const status = this.own.iprobe(source, tag);
    if (status === undefined) return undefined;
    const word = new Float64Array(1);
    await this.own.recv(word, status.source, tag);
    return { source: status.source, value: word[0] };
  }
}
