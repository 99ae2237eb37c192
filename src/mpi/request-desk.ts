// The part of a communicator that its users do not see: what its requests ask of it, what turns messages of the PML into
// statuses, and why nothing more can come from anybody. One for each communicator.
import { MultirailError } from '../errors.ts';
import type { Envelope, RecvRequest, SendRequest } from '../pml/records.ts';
import type { Awaited } from '../progress/blocking.ts';
import { recvChannel } from './channels.ts';
import { ANY_SOURCE, ANY_TAG } from './constants.ts';
import { ctxOf, USER } from './contexts.ts';
import type { RecordedOutcomes } from './ft/recorded-outcomes.ts';
import type { Turns } from './ft/turns.ts';
import type { Group } from './group.ts';
import type { ProcessState } from './process-state.ts';
import { Request, reportFailure } from './request.ts';
import type { Inner, RequestOwner } from './request-owner.ts';
import { EMPTY_STATUS, PROC_NULL_STATUS, Status } from './status.ts';
import { MessageTrace, type OperationTrace } from './tracing.ts';

export class RequestDesk implements RequestOwner {
  readonly proc: ProcessState;
  /** The name of the communicator, for people. */
  name: string;
  /** Context of the user's messages. */
  readonly userCtx: number;
  private readonly group: Group;
  /** Own rank in the communicator. */
  private readonly rank: number;
  /** World rank of each rank. */
  private readonly members: readonly number[];
  /** The rank here of each world rank is the same. */
  private isWorldOrder: boolean;
  private readonly contextId: number;
  private lastStatus = new Status(0, 0, 0);
  private allGone: MultirailError | undefined;
  private membersGoneSeen = 0;
  /** Requests that stay active when they report a failure, by their receives. */
  private readonly kept = new WeakMap<RecvRequest, Request>();

  constructor(proc: ProcessState, name: string, contextId: number, group: Group) {
    this.proc = proc;
    this.name = name;
    this.contextId = contextId;
    this.userCtx = ctxOf(contextId, USER);
    this.group = group;
    this.rank = group.rank;
    this.members = group.worldRanks;
    this.isWorldOrder = this.members.every((world, rank) => world === rank);
  }

  /** A member has a successor, so the rank of a process is not its number any more. */
  memberSucceeded(): void {
    this.isWorldOrder = false;
  }

  // ---------------------------------------------------------------- RequestOwner

  get outcomes(): RecordedOutcomes | undefined {
    return this.proc.outcomesOf(this.userCtx);
  }

  get turns(): Turns | undefined {
    return this.proc.turnsOf(this.userCtx);
  }

  /** What a call comes to, for the program: in its turn, where that is recorded. */
  inTurn<T>(promise: Promise<T>): Promise<T> {
    return this.turns?.inTurn(promise) ?? promise;
  }

  progress(): void {
    this.proc.look();
  }

  wait(awaited: Awaited, deadlineMs?: number): boolean {
    this.proc.engine.flush();
    return this.proc.blocking.wait(awaited, deadlineMs);
  }

  now(): number {
    return this.proc.blocking.now();
  }

  cancel(inner: RecvRequest): boolean {
    return this.proc.cancel(inner);
  }

  expire(inner: RecvRequest, error: MultirailError): boolean {
    const { replica } = this.proc;
    replica?.pml.expire(inner, error);
    return replica !== undefined;
  }

  giveUp(inner: SendRequest, error: MultirailError): void {
    this.proc.giveUp(inner, error);
  }

  statusOf(inner: Inner): Status {
    if (inner.kind === 'collective') return EMPTY_STATUS;
    if (inner.kind === 'send') return this.status(this.rank, inner.tag, inner.bytes);
    if (inner.cancelled) return new Status(this.rankOf(inner.matchedSource), inner.matchedTag, inner.receivedBytes, true);
    return this.status(this.rankOf(inner.matchedSource), inner.matchedTag, inner.receivedBytes);
  }

  /** Many messages of a program are alike, and so are their statuses: nothing is allocated for the next one that is. */
  private status(source: number, tag: number, bytes: number): Status {
    const last = this.lastStatus;
    if (last.source === source && last.tag === tag && last.bytes === bytes) return last;
    const status = new Status(source, tag, bytes);
    this.lastStatus = status;
    return status;
  }

  onReceived(status: Status): void {
    if (!recvChannel.hasSubscribers) return;
    recvChannel.publish({ rank: this.rank, comm: this.name, source: status.source, tag: status.tag, bytes: status.bytes });
  }

  // ---------------------------------------------------------------- what is handed out

  requestOf(inner: Inner | undefined): Request {
    return inner === undefined ? new Request(this, undefined, PROC_NULL_STATUS) : new Request(this, inner);
  }

  /** The request of a send that was done at once. */
  sentRequest(tag: number, bytes: number): Request {
    return new Request(this, undefined, this.status(this.rank, tag, bytes));
  }

  /** Makes the status of a receive that has ended well; whoever subscribed is told of it. */
  received(inner: RecvRequest): Status {
    const status = this.statusOf(inner);
    this.onReceived(status);
    return status;
  }

  /** Why a receive has failed; what was cut off is said in ranks of this communicator. */
  failed(inner: RecvRequest): MultirailError {
    const error = inner.error as MultirailError;
    if (error.code !== 'ERR_TRUNCATE' || error.status !== undefined) return error;
    const { source, tag, bytes } = this.statusOf(inner);
    const { rank, peer } = error;
    const text = error.message.slice(error.code.length + 2);
    return new MultirailError('ERR_TRUNCATE', text, {
      ...(rank === undefined ? {} : { rank }),
      ...(peer === undefined ? {} : { peer }),
      tag,
      status: { source, tag, bytes },
      cause: error,
    });
  }

  statusOfEnvelope(envelope: Envelope): Status {
    return new Status(this.rankOf(envelope.source), envelope.tag, envelope.messageBytes);
  }

  private rankOf(world: number): number {
    return this.isWorldOrder ? world : (this.group.rankOf(world) ?? world);
  }

  // ---------------------------------------------------------------- tracing

  traceSend(inner: SendRequest, sinceMs: number, { peer, sync }: { peer: number; sync: boolean }): void {
    const { tag, bytes } = inner;
    this.traceFrom(inner, sinceMs, { operation: sync ? 'ssend' : 'send', rank: this.rank, comm: this.name, peer, tag, bytes });
  }

  traceReceive(inner: RecvRequest, sinceMs: number, source: number): void {
    const trace: OperationTrace = { operation: 'recv', rank: this.rank, comm: this.name };
    if (source !== ANY_SOURCE) trace.peer = source;
    if (inner.tag !== ANY_TAG) trace.tag = inner.tag;
    this.traceFrom(inner, sinceMs, trace);
  }

  /** One that is done already ends at once. */
  private traceFrom(inner: SendRequest | RecvRequest, sinceMs: number, trace: OperationTrace): void {
    const running = new MessageTrace(trace, sinceMs, (world) => this.rankOf(world));
    if (inner.done) running.requestEnded(inner);
    else inner.trace = running;
  }

  // ---------------------------------------------------------------- when nobody is left, or somebody has failed

  /** Whoever waits here waits for the successor of a dead member. */
  private get isHeld(): boolean {
    return this.proc.logged?.holds(this.userCtx) === true;
  }

  /**
   * Set once every other member is gone, and at least one of them is dead: a receive from ANY_SOURCE would never end. (When all have
   * left by finalize(), a rank may go on to talk to itself.)
   */
  private get deserted(): MultirailError | undefined {
    const { proc, members } = this;
    if (this.isHeld) return undefined;
    if (this.membersGoneSeen === proc.membersGone) return this.allGone;
    this.membersGoneSeen = proc.membersGone;
    let failure: MultirailError | undefined;
    for (let rank = 0; rank < members.length; rank++) {
      if (rank === this.rank) continue;
      const ending = proc.endingOf(members[rank]);
      if (ending === undefined) return undefined;
      failure ??= ending.failure;
    }
    if (failure === undefined) return undefined;
    const text = `no rank is left in ${this.name} that could send: ${failure.message}`;
    this.allGone = new MultirailError(failure.code, text, { rank: proc.rank, cause: failure });
    return this.allGone;
  }

  /** A member has failed that is not acknowledged, and might have sent what a receive from anybody waits for. */
  private unacknowledged(code: 'ERR_PROC_FAILED' | 'ERR_PROC_FAILED_PENDING'): MultirailError | undefined {
    const { proc } = this;
    if (this.isHeld) return undefined;
    const failure = proc.ft?.unacknowledged(this.contextId);
    if (failure === undefined) return undefined;
    const { rank, number, text } = failure;
    const stays = code === 'ERR_PROC_FAILED_PENDING' ? '; the request stays active: call ackFailed() and wait for it again' : '';
    const what = `rank ${rank} of ${this.name} (process ${number}) has failed and might have sent what is waited for: ${text}${stays}`;
    return new MultirailError(code, what, { rank: proc.rank, peer: number });
  }

  /** Why a call that takes a message of anybody ends without one. */
  get desertion(): MultirailError | undefined {
    return this.unacknowledged('ERR_PROC_FAILED') ?? this.deserted;
  }

  /** This request of a receive from anybody stays active when a failure is reported. */
  keep(inner: RecvRequest | undefined, request: Request): Request {
    if (this.proc.ft !== undefined && inner?.source === ANY_SOURCE) this.kept.set(inner, request);
    return request;
  }

  failureOf(inner: RecvRequest): MultirailError | undefined {
    return inner.matched ? undefined : this.unacknowledged('ERR_PROC_FAILED_PENDING');
  }

  /** Receives from ANY_SOURCE end when nobody is left; when a member has failed, those that are requests report it, and the others end. */
  memberGone(): void {
    const { pml } = this.proc;
    const failure = this.unacknowledged('ERR_PROC_FAILED');
    if (failure === undefined) return this.endDeserted();
    const reporting: Request[] = [];
    pml.endPostedToAny(this.userCtx, failure, (inner) => {
      const request = this.kept.get(inner);
      if (request !== undefined) reporting.push(request);
      return request === undefined;
    });
    for (const request of reporting) reportFailure(request);
  }

  endDeserted(): void {
    const { deserted } = this;
    if (deserted !== undefined) this.proc.pml.endPostedToAny(this.userCtx, deserted);
  }
}
