// The messages of the factorisation: point-to-point only, as in HPL, which has its own broadcasts and reductions. A wait is a blocking call
// where the rails allow it, and a promise elsewhere: callers write `await messages.wait(…)`, which costs nothing when the answer is there
// already.
import { MultirailError } from '../../src/errors.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import type { Request } from '../../src/mpi/request.ts';

/** One tag per purpose: messages of one purpose between two ranks keep their order. */
export const TAG = {
  panel: 1,
  pivot: 2,
  displaced: 3,
  rowsOfU: 4,
  solve: 5,
  combine: 6,
} as const;

type Doubles = Float64Array<ArrayBuffer>;

export class Messages {
  readonly comm: Communicator;
  private isBlocking: boolean;

  /** `blocking` false: promises from the start. */
  constructor(comm: Communicator, blocking = true) {
    this.comm = comm;
    this.isBlocking = blocking;
  }

  get waitsBy(): 'blocking calls' | 'promises' {
    return this.isBlocking ? 'blocking calls' : 'promises';
  }

  isend(part: Doubles | readonly Doubles[], dest: number, tag: number): Request {
    return this.comm.isend(part, dest, tag);
  }

  irecv(part: Doubles | readonly Doubles[], source: number, tag: number): Request {
    return this.comm.irecv(part, source, tag);
  }

  /** The end of a request: now, or by a promise where only the event loop serves the rails. */
  wait(request: Request): PromiseLike<unknown> | undefined {
    if (request.done && request.error === undefined) return undefined;
    if (this.isBlocking) {
      try {
        request.waitSync();
        return undefined;
      } catch (error) {
        if (!(error instanceof MultirailError && error.code === 'ERR_SUPPORT')) throw error;
        this.isBlocking = false;
      }
    }
    return request;
  }

  async waitAll(requests: readonly Request[]): Promise<void> {
    for (const request of requests) await this.wait(request);
  }

  async send(part: Doubles, dest: number, tag: number): Promise<void> {
    await this.wait(this.isend(part, dest, tag));
  }

  async recv(part: Doubles, source: number, tag: number): Promise<void> {
    await this.wait(this.irecv(part, source, tag));
  }

  async exchange(sent: Doubles, received: Doubles, peer: number, tag: number): Promise<void> {
    const receive = this.irecv(received, peer, tag);
    await this.wait(this.isend(sent, peer, tag));
    await this.wait(receive);
  }

  /**
   * Every rank of the list ends with the same `own`, merged of all: by recursive doubling, in log2 exchanges. `merge` folds `other` into
   * `own`; it must not matter in which order two are merged. `me` is the place of this rank in the list.
   */
  async combine(ranks: readonly number[], me: number, own: Doubles, other: Doubles, merge: () => void, tag: number): Promise<void> {
    let power = 1;
    while (power * 2 <= ranks.length) power *= 2;
    // What does not fit into a power of two hands its part over, and gets the result.
    if (me >= power) {
      await this.send(own, ranks[me - power], tag);
      await this.recv(own, ranks[me - power], tag);
      return;
    }
    const extra = me + power < ranks.length ? ranks[me + power] : undefined;
    if (extra !== undefined) {
      await this.recv(other, extra, tag);
      merge();
    }
    for (let bit = 1; bit < power; bit *= 2) {
      await this.exchange(own, other, ranks[me ^ bit], tag);
      merge();
    }
    if (extra !== undefined) await this.send(own, extra, tag);
  }

  /** Element by element over all ranks of the list. */
  async reduce(ranks: readonly number[], me: number, values: Doubles, operation: 'sum' | 'max'): Promise<void> {
    const other = new Float64Array(values.length);
    const merge = () => {
      for (let i = 0; i < values.length; i++) values[i] = operation === 'sum' ? values[i] + other[i] : Math.max(values[i], other[i]);
    };
    await this.combine(ranks, me, values, other, merge, TAG.combine);
  }

  /** Over all ranks. */
  async reduceAll(values: readonly number[], operation: 'sum' | 'max'): Promise<number[]> {
    const own = Float64Array.from(values);
    await this.reduce(
      Array.from({ length: this.comm.size }, (_, rank) => rank),
      this.comm.rank,
      own,
      operation,
    );
    return [...own];
  }

  async barrier(): Promise<void> {
    await this.reduceAll([0], 'max');
  }

  /** A binomial tree over the list, from its place `root` to all. */
  async broadcast(ranks: readonly number[], me: number, root: number, part: Doubles, tag: number): Promise<void> {
    const size = ranks.length;
    const place = (me - root + size) % size;
    const rankOf = (relative: number) => ranks[(relative + root) % size];
    let bit = 1;
    while (bit < size && (place & bit) === 0) bit *= 2;
    if (place !== 0) await this.recv(part, rankOf(place - bit), tag);
    const sends: Request[] = [];
    for (bit /= 2; bit >= 1; bit /= 2) if (place + bit < size) sends.push(this.isend(part, rankOf(place + bit), tag));
    await this.waitAll(sends);
  }

  /** A turn of the event loop: events of rails, the launcher's word, output. */
  breathe(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}
