// What a program sees of being run by two processes for each rank: `mpi.replica`.
import { deserialize, serialize } from 'node:v8';
import { MultirailError } from '../../errors.ts';
import type { LeadPml } from '../../ft/replica/lead.ts';
import type { ShadowPml } from '../../ft/replica/shadow.ts';
import type { BlockingWaiter } from '../../progress/blocking.ts';
import { type MessageBuffer, sendIov } from '../buffers.ts';

/** What replicas of a rank have done. */
export interface ReplicaCounters {
  /** Messages that this process has begun; results that were compared are among them. */
  readonly messages: number;
  /** At the lead: those of them that were compared with the shadow's. */
  readonly compared: number;
  /** At the lead: requests whose ends the shadow was told. */
  readonly forwarded: number;
  /** At the lead: bytes of what was received with them. */
  readonly forwardedBytes: number;
  /** Times that requests have ended together. */
  readonly bursts: number;
  /** Calls that looked without waiting. */
  readonly looks: number;
  /** Messages to the other replica. */
  readonly batches: number;
}

/**
 * This process as one of two replicas of its rank (`multirail run --replicas 2`). To the program both are the same rank of the same world: what
 * one sends is compared with what the other would send, and only the lead's leaves.
 */
export class Replica {
  /** `lead`: its messages leave. `shadow`: its messages are compared with those of the lead. */
  readonly role: 'lead' | 'shadow';
  /** Number of the process that is the other replica. */
  readonly twin: number;
  private readonly pml: LeadPml | ShadowPml;
  private readonly waiter: Pick<BlockingWaiter, 'wait'>;
  private readonly schedule: () => void;

  /** @internal */
  constructor(role: 'lead' | 'shadow', twin: number, pml: LeadPml | ShadowPml, waiter: Pick<BlockingWaiter, 'wait'>, schedule: () => void) {
    this.role = role;
    this.twin = twin;
    this.pml = pml;
    this.waiter = waiter;
    this.schedule = schedule;
  }

  /** What both do outside of the job, one of them shall do: files are written, and lines printed, by the lead. */
  get isLead(): boolean {
    return this.role === 'lead';
  }

  /** What it has done since its start. The numbers are a copy. */
  counters(): ReplicaCounters {
    return { ...this.pml.counters };
  }

  /** The shadow has died, and the lead goes on by itself: what it sends is compared with nothing any more. */
  get isAlone(): boolean {
    return this.pml.isAlone;
  }

  /**
   * Compares results that are sent to nobody. Both replicas call it; it resolves when both have the same bytes, and where they have not the
   * job ends, as with any message that differs.
   *
   * @param buffer What is compared, as for send(). It stays as it is until the promise settles.
   * @throws ERR_BUFFER, ERR_ARG: it is no buffer.
   */
  validate(buffer: MessageBuffer): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = this.pml.validate(sendIov(buffer));
      this.schedule();
      request.onDone = () => (request.error === undefined ? resolve() : reject(request.error));
    });
  }

  /**
   * As validate(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_BUFFER, ERR_ARG: it is no buffer.
   */
  validateSync(buffer: MessageBuffer): void {
    const request = this.pml.validate(sendIov(buffer));
    this.waiter.wait(request);
    if (request.error !== undefined) throw request.error;
  }

  /**
   * A value that the program cannot repeat, such as the time, a random number or what a file holds: the lead makes it, and both get it, by
   * structured clone.
   *
   * @param make Called at the lead alone. It may return a promise.
   * @throws ERR_ARG: the value cannot be cloned. An error that `make` throws is thrown at both, as ERR_ARG with its message.
   */
  once<T>(make: () => T | Promise<T>): Promise<T> {
    const { number, answer } = this.pml.value();
    const ended = new Promise<T>((resolve, reject) => {
      answer.onDone = () => {
        if (answer.error !== undefined) reject(answer.error);
        else resolve(deserialize(answer.bytes as Uint8Array) as T);
      };
    });
    if (this.isLead) {
      const settle = (value: Uint8Array | MultirailError): void => {
        this.pml.settleValue(number, value);
        this.schedule();
      };
      Promise.resolve()
        .then(make)
        .then((value) => settle(serialize(value)))
        .catch((error: unknown) => settle(failedOnce(error)));
    }
    return ended;
  }

  /**
   * As once(), without a promise. The event loop does not run meanwhile.
   *
   * @param make Called at the lead alone. What it returns must not be a promise.
   * @throws ERR_ARG: as for once().
   */
  onceSync<T>(make: () => T): T {
    const { number, answer } = this.pml.value();
    if (this.isLead) {
      let value: Uint8Array | MultirailError;
      try {
        value = serialize(make());
      } catch (error) {
        value = failedOnce(error);
      }
      this.pml.settleValue(number, value);
    }
    this.waiter.wait(answer);
    if (answer.error !== undefined) throw answer.error;
    return deserialize(answer.bytes as Uint8Array) as T;
  }
}

function failedOnce(error: unknown): MultirailError {
  const why = error instanceof Error ? error.message : String(error);
  return new MultirailError('ERR_ARG', `the function given to once() has failed: ${why}`);
}
