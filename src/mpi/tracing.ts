// Operations as tracing sees them: published when they begin, and again, the same object, when they end, with how long they took.
import { performance } from 'node:perf_hooks';
import type { MultirailError } from '../errors.ts';
import type { RecvRequest, SendRequest } from '../pml/records.ts';
import { operationEndChannel, operationStartChannel, railLostChannel, railRestoredChannel } from './channels.ts';
import type { RailEvent } from './views.ts';

/** What is published of one operation. Ranks are those of the communicator. */
export interface OperationTrace {
  /** `send`, `ssend`, `recv`, or the name of a collective: `allreduce`, … */
  readonly operation: string;
  readonly rank: number;
  /** Name of the communicator. */
  readonly comm: string;
  /** The other side of a message; of a receive from any source, once it has ended. */
  peer?: number;
  /** Root of a collective that has one. */
  root?: number;
  tag?: number;
  /** Length of the message; of a receive, once it has ended. */
  bytes?: number;
  /** Milliseconds from the call to its end; undefined until then. */
  durationMs?: number;
  /** Why it failed; undefined as long as it has not. */
  error?: MultirailError;
}

/** When an operation begins that somebody listens to; undefined where nobody does, and then nothing else needs to be done. */
export function tracedSince(): number | undefined {
  return operationStartChannel.hasSubscribers || operationEndChannel.hasSubscribers ? performance.now() : undefined;
}

/** One operation from its beginning to its end. */
export class RunningTrace {
  private readonly trace: OperationTrace;
  private readonly sinceMs: number;

  constructor(trace: OperationTrace, sinceMs: number) {
    this.trace = trace;
    this.sinceMs = sinceMs;
    operationStartChannel.publish(trace);
  }

  ended(error: MultirailError | undefined): void {
    this.trace.durationMs = performance.now() - this.sinceMs;
    if (error !== undefined) this.trace.error = error;
    operationEndChannel.publish(this.trace);
  }
}

/** A message: of a receive its source, tag and length are known when it has ended. */
export class MessageTrace extends RunningTrace {
  private readonly message: OperationTrace;
  private readonly rankOf: (world: number) => number;

  constructor(trace: OperationTrace, sinceMs: number, rankOf: (world: number) => number) {
    super(trace, sinceMs);
    this.message = trace;
    this.rankOf = rankOf;
  }

  requestEnded(request: SendRequest | RecvRequest): void {
    if (request.kind === 'recv' && request.error === undefined && !request.cancelled) {
      this.message.peer = this.rankOf(request.matchedSource);
      this.message.tag = request.matchedTag;
      this.message.bytes = request.receivedBytes;
    }
    this.ended(request.error);
  }
}

/** Hands a rail's event to whoever subscribes to its channel. */
export function publishRail(event: RailEvent): void {
  if (event.type === 'lost' && railLostChannel.hasSubscribers) railLostChannel.publish(event);
  if (event.type === 'restored' && railRestoredChannel.hasSubscribers) railRestoredChannel.publish(event);
}
