// The notice of the end: a signal tells one rank or all of them that the job has to end soon, as schedulers do before they kill it. The ranks
// tell each other, find the next point that all of them come to, save there, and leave.
import type { Communicator } from '../../mpi/communicator.ts';
import { ANY_SOURCE } from '../../mpi/constants.ts';
import { COME_TO, isFailure, type Row, TAG_TOLD } from './exchange.ts';

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

/** The way of one run of the program to its end before time: the same at all ranks, since it follows from what they exchange. */
export class Stopping {
  /** All ranks save and leave in this call of theirs. Undefined: nobody was told, as far as all know. */
  at: number | undefined;
  /** This rank has told the others. */
  hasTold = false;
  /** Some rank is at the end of the program already: there is nothing to stop. */
  private isMoot = false;
  private readonly received = new Set<number>();
  private readonly own: Communicator;
  private readonly notice: EndNotice;

  constructor(own: Communicator, notice: EndNotice) {
    this.own = own;
    this.notice = notice;
  }

  /** Looks whether somebody was told, and tells the others. True: all have to meet. */
  look(): boolean {
    if (!this.notice.isAwaited || this.isMoot || this.at !== undefined) return false;
    const { own } = this;
    if (this.notice.isTold && !this.hasTold) {
      this.hasTold = true;
      for (let rank = 0; rank < own.size; rank++) {
        if (rank === own.rank) continue;
        try {
          own.isend(new Uint8Array(0), rank, TAG_TOLD).then(undefined, () => undefined);
        } catch (error) {
          if (!isFailure(error)) throw error;
        }
      }
    }
    return this.hasTold || own.iprobe(ANY_SOURCE, TAG_TOLD) !== undefined;
  }

  /** What all have come to: takes the words of those who were told, and finds where all stop. */
  async exchanged(rows: readonly Row[]): Promise<void> {
    for (const [rank, { isTold }] of rows.entries()) {
      if (!isTold || rank === this.own.rank || this.received.has(rank)) continue;
      this.received.add(rank);
      await this.own.recv(new Uint8Array(0), rank, TAG_TOLD);
    }
    this.found(rows);
  }

  private found(rows: readonly Row[]): void {
    if (this.at !== undefined || this.isMoot || !rows.some(({ isTold }) => isTold)) return;
    if (rows.some(({ kind }) => kind === COME_TO.END)) this.isMoot = true;
    else this.at = Math.max(...rows.map(({ place }) => place));
  }
}
