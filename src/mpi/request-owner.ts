// What stands behind a request: what was started, and whom the request asks.
import type { MultirailError } from '../errors.ts';
import type { RecvRequest, SendRequest } from '../pml/records.ts';
import type { Awaited } from '../progress/blocking.ts';
import type { RecordedOutcomes } from './ft/recorded-outcomes.ts';
import type { Turns } from './ft/turns.ts';
import type { Status } from './status.ts';

/** A collective that was started. */
export interface CollectiveInner {
  readonly kind: 'collective';
  readonly done: boolean;
  readonly error: MultirailError | undefined;
  onDone: (() => void) | undefined;
  fail(error: MultirailError, isOwn: boolean): void;
}

/** What a request was started for. */
export type Inner = SendRequest | RecvRequest | CollectiveInner;

/** What a request needs of the communicator that it belongs to. */
export interface RequestOwner {
  /** Undefined where none are recorded. */
  readonly outcomes?: RecordedOutcomes | undefined;
  readonly turns?: Turns | undefined;
  /** Polls the rails once. */
  progress(): void;
  /** Blocks until it is done, without the event loop; false when the deadline, of the clock that now() reads, is over before. */
  wait(awaited: Awaited, deadlineMs?: number): boolean;
  /** Milliseconds. */
  now(): number;
  cancel(inner: RecvRequest): boolean;
  /** True: its end by a timer, a signal or another request comes in its place among all others, and is not the caller's affair. */
  expire?(inner: RecvRequest, error: MultirailError): boolean;
  giveUp(inner: SendRequest, error: MultirailError): void;
  statusOf(inner: Inner): Status;
  /** A receive has ended well. */
  onReceived(status: Status): void;
  /** Why this receive from anybody, which is under way, reports a failure; it stays active. */
  failureOf?(inner: RecvRequest): MultirailError | undefined;
}
