// What the communicators of one process share: the engine, the end of the runtime, and the blocking probes that wait for a message.
// May import: progress (engine), pml (records, types), errors, constants.ts.
import type { MultirailError } from '../errors.ts';
import type { Envelope, RecvRequest } from '../pml/records.ts';
import type { BlockingWaiter } from '../progress/blocking.ts';
import type { Engine } from '../progress/engine.ts';
import { ANY_SOURCE, type CallOptions, watchEnd } from './constants.ts';

interface Waiter {
  /** True when it was served and goes. */
  look(): boolean;
  fail(error: MultirailError): void;
}

export class Host {
  readonly engine: Engine;
  readonly blocking: BlockingWaiter;
  /** World rank of this process. */
  readonly rank: number;
  private readonly waiters = new Set<Waiter>();
  private lookScheduled = false;
  private endError: MultirailError | undefined;

  constructor(engine: Engine, blocking: BlockingWaiter, rank: number) {
    this.engine = engine;
    this.blocking = blocking;
    this.rank = rank;
    engine.pml.receiver.onUnexpected = () => this.lookSoon();
  }

  /** Throws ERR_FINALIZED once finalize() was called. */
  mustBeActive(): void {
    if (this.endError !== undefined) throw this.endError;
  }

  /** From now on every call ends with this error; what waits for a message ends now. */
  end(error: MultirailError): void {
    this.endError = error;
    for (const waiter of [...this.waiters]) waiter.fail(error);
    this.waiters.clear();
    this.engine.pml.endPosted(error);
    this.engine.schedule();
  }

  cancel(request: RecvRequest): boolean {
    const cancelled = this.engine.pml.cancel(request);
    this.engine.schedule();
    return cancelled;
  }

  /** Probes look again, after the rails had their turn. */
  lookSoon(): void {
    if (this.lookScheduled || this.waiters.size === 0) return;
    this.lookScheduled = true;
    queueMicrotask(() => {
      this.lookScheduled = false;
      // In the order in which they came: a matched probe takes the message away from those behind it.
      for (const waiter of [...this.waiters]) if (this.waiters.has(waiter) && waiter.look()) this.waiters.delete(waiter);
    });
  }

  /** The message that a receive with this pattern would match; `take`: it is taken out of the queue. World rank or ANY. */
  findMessage(source: number, ctx: number, tag: number, take: boolean): Envelope | undefined {
    const { pml } = this.engine;
    const envelope = take ? pml.improbe(source, ctx, tag) : pml.iprobe(source, ctx, tag);
    if (envelope !== undefined || source === ANY_SOURCE) return envelope;
    const ended = pml.peer(source).ended;
    if (ended !== undefined) throw ended;
    return undefined;
  }

  /** As findMessage, waiting until there is one. */
  waitForMessage(source: number, ctx: number, tag: number, take: boolean, options: CallOptions | undefined): Promise<Envelope> {
    const found = this.findMessage(source, ctx, tag, take);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        look: () => {
          try {
            const envelope = this.findMessage(source, ctx, tag, take);
            if (envelope === undefined) return false;
            release?.();
            resolve(envelope);
          } catch (error) {
            waiter.fail(error as MultirailError);
          }
          return true;
        },
        fail: (error) => {
          release?.();
          reject(error);
        },
      };
      const release = watchEnd(options, (error) => {
        this.waiters.delete(waiter);
        reject(error);
      });
      this.waiters.add(waiter);
    });
  }
}
