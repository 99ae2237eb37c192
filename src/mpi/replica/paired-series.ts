// What multirail/ft drives saves by where each rank is two or three processes: whether anything of the program is on its way, which the lead says
// for all, and what they cannot make alike.
import { MultirailError } from '../../errors.ts';
import { ProgramTraffic } from '../ft/program-traffic.ts';
import type { ProcessState } from '../process-state.ts';
import type { Replica } from './replica.ts';
import type { ReplicaProcess } from './replica-process.ts';

export class PairedSeries extends ProgramTraffic {
  readonly replica: Replica;
  /** Number of this process, and of the first one of each rank. */
  readonly process: number;
  private readonly pair: ReplicaProcess;

  constructor(proc: ProcessState) {
    super(proc);
    const { replica } = proc;
    if (replica === undefined) throw new MultirailError('ERR_INTERNAL', 'this rank is one process');
    this.pair = replica;
    this.replica = replica.face;
    this.process = replica.pml.options.self;
  }

  /** At the lead: so many replicas of its rank lack, and so many of those have died with their hosts. */
  get lacking(): ReplicaProcess['lacking'] {
    return this.pair.lacking;
  }

  /** Host of the lead of that rank. */
  hostOf(rank: number): string {
    return this.proc.hostOf(rank);
  }

  override underWay(textsMax: number): string[] {
    const texts = super.underWay(textsMax);
    if (!this.pair.isSettled && texts.length < textsMax) texts.push('what a shadow in the place of its lead has not asked for yet');
    const { unvouched } = this.pair.pml;
    if (unvouched > 0 && texts.length < textsMax) texts.push(`${unvouched} messages for which a shadow has not vouched`);
    return texts;
  }

  /** Resolves when nothing of the program's is on its way from here, or after that time, with what is; at all replicas alike. */
  async whenQuiet(timeoutMs: number, textsMax: number): Promise<string[]> {
    const answer = this.beginQuiet(timeoutMs);
    if (!answer.done)
      await new Promise<void>((resolve) => {
        answer.onDone = resolve;
      });
    return await this.replica.once(() => this.underWay(textsMax));
  }

  /** As whenQuiet(), in a blocking call. */
  waitQuiet(timeoutMs: number, textsMax: number): string[] {
    this.pair.waiter.wait(this.beginQuiet(timeoutMs));
    return this.replica.onceSync(() => this.underWay(textsMax));
  }

  private beginQuiet(timeoutMs: number) {
    const deadlineMs = performance.now() + timeoutMs;
    const { pair } = this;
    // Nothing may come to pass any more that would have the lead look again.
    const timer = setTimeout(() => pair.wake(), timeoutMs + 1);
    return pair.pml.when(() => {
      const isOver = this.underWay(1).length === 0 || performance.now() >= deadlineMs;
      if (isOver) clearTimeout(timer);
      return isOver;
    });
  }
}
