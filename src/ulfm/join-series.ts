// The processes of a job as its server keeps them: numbers, of which none is given twice, and who of those that joined after the start stands by
// for all. That is so as soon as each process that lives has heard of it: so nobody is ever named as a successor whom a member does not know.
import { MultirailError } from '../errors.ts';
import { PROCESSES_MAX } from './limits.ts';

export class JoinSeries {
  /** Those that have come to stand by for all since the driver took them last. */
  readonly ready: number[] = [];
  private next = 0;
  /** Processes that the others know, or are being told of. */
  private readonly known = new Set<number>();
  private readonly over = new Set<number>();
  /** Of a process that has joined: who has not heard of it. */
  private readonly unheard = new Map<number, Set<number>>();

  /** `size`: processes of the start, which know each other. */
  constructor(size: number) {
    for (let i = 0; i < size; i++) this.known.add(this.take());
  }

  /** The next number. Throws ERR_LAUNCH when all were given. */
  take(): number {
    if (this.next >= PROCESSES_MAX)
      throw new MultirailError('ERR_LAUNCH', `this job has given ${PROCESSES_MAX} numbers to processes, which is the most`);
    return this.next++;
  }

  /** That process has joined, and knows the others: returns those that are to be told of it. */
  join(number: number): readonly number[] {
    const others = [...this.known].filter((other) => !this.over.has(other));
    this.known.add(number);
    this.unheard.set(number, new Set(others));
    this.look(number);
    return others;
  }

  /** Process `by` has heard of that one. */
  hear(by: number, number: number): void {
    this.unheard.get(number)?.delete(by);
    this.look(number);
  }

  /** That process is over: nobody waits for it, and it stands by for nobody. */
  end(number: number): void {
    this.over.add(number);
    this.unheard.delete(number);
    for (const joined of [...this.unheard.keys()]) this.hear(number, joined);
  }

  /** The others know that process, or are being told of it. */
  isKnown(number: number): boolean {
    return this.known.has(number);
  }

  private look(number: number): void {
    if (this.unheard.get(number)?.size !== 0) return;
    this.unheard.delete(number);
    this.ready.push(number);
  }
}
