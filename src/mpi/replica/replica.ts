// What a program sees of being run by two or three processes for each rank: `mpi.replica`.
import { deserialize, serialize } from 'node:v8';
import { MultirailError } from '../../errors.ts';
import type { LeadPml } from '../../ft/replica/lead.ts';
import { type Place, twinsOf } from '../../ft/replica/pairs.ts';
import type { ShadowPml } from '../../ft/replica/shadow.ts';
import type { BlockingWaiter } from '../../progress/blocking.ts';
import { type MessageBuffer, sendIov } from '../buffers.ts';

/** What replicas of a rank have done. */
export interface ReplicaCounters {
  /** Messages that this process has begun; results that were compared are among them. */
  readonly messages: number;
  /** At the lead: those of them that were compared with those of its shadows. */
  readonly compared: number;
  /** At the lead: requests whose ends the shadows were told. */
  readonly forwarded: number;
  /** At the lead: bytes of what was received with them. */
  readonly forwardedBytes: number;
  /** Times that requests have ended together. */
  readonly bursts: number;
  /** Calls that looked without waiting. */
  readonly looks: number;
  /** Messages to the other replicas. */
  readonly batches: number;
  /** At the lead of three: messages in which one replica was outvoted by the two others. */
  readonly outvoted: number;
  /** At the lead of three: those of them in which it was the lead, so that the bytes of the others were sent. */
  readonly corrected: number;
  /** Results that were not the same at this replica as at the two others, and are now. */
  readonly healed: number;
}

/**
 * This process as one of two or three replicas of its rank (`multirail run --replicas 2`). To the program all are the same rank of the same world: what
 * one sends is compared with what the others would send, and only one leaves. Of three two that agree are right.
 */
export class Replica {
  /** `lead`: its messages leave. `shadow`: its messages are compared with those of the lead. A shadow becomes the lead when that dies. */
  get role(): 'lead' | 'shadow' {
    return this.layer().isLead ? 'lead' : 'shadow';
  }
  /** Number of the process that is the other replica: at the lead of three the first shadow, at shadows the lead. */
  readonly twin: number;
  /** All that this one compares with: both shadows at the lead of three. */
  readonly twins: readonly number[];
  private readonly layer: () => LeadPml | ShadowPml;
  private readonly waiter: Pick<BlockingWaiter, 'wait'>;
  private readonly schedule: () => void;

  /** What makes the values of once() that have not ended, where another replica makes them. */
  private readonly makers = new Map<number, () => void>();

  /** @internal `layer`: as it is now. */
  constructor(place: Place, layer: () => LeadPml | ShadowPml, waiter: Pick<BlockingWaiter, 'wait'>, schedule: () => void) {
    this.twin = place.twin;
    this.twins = twinsOf(place);
    this.layer = layer;
    this.waiter = waiter;
    this.schedule = schedule;
  }

  /** What all of them do outside of the job, one of them shall do: files are written, and lines printed, by the lead. */
  get isLead(): boolean {
    return this.layer().isLead;
  }

  private get pml(): LeadPml | ShadowPml {
    return this.layer();
  }

  /** What it has done since its start. The numbers are a copy. */
  counters(): ReplicaCounters {
    return { ...this.pml.counters };
  }

  /** No shadow is left, and the lead goes on by itself: what it sends is compared with nothing any more. */
  get isAlone(): boolean {
    return this.pml.isAlone;
  }

  /**
   * Compares results that are sent to nobody. All replicas call it; it resolves when they have the same bytes. Where two of three have, the third one
   * gets them into its buffer; where no two have, the job ends, as with any message that differs.
   *
   * @param buffer What is compared, as for send(). It stays as it is until the promise settles.
   * @throws ERR_BUFFER, ERR_ARG: it is no buffer.
   */
  async validate(buffer: MessageBuffer): Promise<void> {
    await this.settle(buffer);
  }

  /**
   * As validate(), without a promise. The event loop does not run meanwhile.
   * @throws ERR_BUFFER, ERR_ARG: it is no buffer.
   */
  validateSync(buffer: MessageBuffer): void {
    this.settleSync(buffer);
  }

  /** @internal validate(); true: this replica had other bytes than the two others. The answer is not the same at all of them. */
  settle(buffer: MessageBuffer): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const request = this.pml.validate(sendIov(buffer));
      this.schedule();
      request.onDone = () => (request.error === undefined ? resolve(this.pml.wasHealed(request)) : reject(request.error));
    });
  }

  /** @internal As settle(), in a blocking call. */
  settleSync(buffer: MessageBuffer): boolean {
    const request = this.pml.validate(sendIov(buffer));
    this.waiter.wait(request);
    if (request.error !== undefined) throw request.error;
    return this.pml.wasHealed(request);
  }

  /**
   * A value that the program cannot repeat, such as the time, a random number or what a file holds: the lead makes it, and all get it, by
   * structured clone.
   *
   * @param make Called at the lead alone. It may return a promise.
   * @throws ERR_ARG: the value cannot be cloned. An error that `make` throws is thrown at all, as ERR_ARG with its message.
   */
  once<T>(make: () => T | Promise<T>): Promise<T> {
    const { number, answer } = this.pml.value();
    const ended = new Promise<T>((resolve, reject) => {
      answer.onDone = () => {
        this.makers.delete(number);
        if (answer.error !== undefined) reject(answer.error);
        else resolve(deserialize(answer.bytes as Uint8Array) as T);
      };
    });
    const settle = (value: Uint8Array | MultirailError): void => {
      this.pml.settleValue(number, value);
      this.schedule();
    };
    this.byLead(number, () => {
      Promise.resolve()
        .then(make)
        .then((value) => settle(serialize(value)))
        .catch((error: unknown) => settle(failedOnce(error)));
    });
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
    this.byLead(number, () => {
      let value: Uint8Array | MultirailError;
      try {
        value = serialize(make());
      } catch (error) {
        value = failedOnce(error);
      }
      this.pml.settleValue(number, value);
    });
    this.waiter.wait(answer);
    this.makers.delete(number);
    if (answer.error !== undefined) throw answer.error;
    return deserialize(answer.bytes as Uint8Array) as T;
  }

  /** The lead makes that value; a shadow does if it becomes the lead before the value is there. */
  private byLead(number: number, make: () => void): void {
    if (this.isLead) make();
    else this.makers.set(number, make);
  }

  /** @internal This process has become the lead: what its lead was to make, it makes. */
  tookOver(): void {
    for (const make of [...this.makers.values()]) make();
    this.makers.clear();
  }
}

function failedOnce(error: unknown): MultirailError {
  const why = error instanceof Error ? error.message : String(error);
  return new MultirailError('ERR_ARG', `the function given to once() has failed: ${why}`);
}
