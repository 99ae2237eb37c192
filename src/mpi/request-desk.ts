// What stands behind a communicator and that its users do not see: what its requests ask of it, what turns messages of the PML into
// statuses, and why nothing more can come from anybody. One for each communicator.
import { MultirailError } from '../errors.ts';
import type { Envelope, RecvRequest, SendRequest } from '../pml/records.ts';
import type { Awaited } from '../progress/blocking.ts';
import { recvChannel } from './channels.ts';
import { ANY_SOURCE, ANY_TAG } from './constants.ts';
import { ctxOf, USER } from './contexts.ts';
import type { Group } from './group.ts';
import type { ProcessState } from './process-state.ts';
import { type Inner, Request, type RequestOwner } from './request.ts';
import { EMPTY_STATUS, PROC_NULL_STATUS, Status } from './status.ts';
import { MessageTrace, type OperationTrace } from './tracing.ts';

export class RequestDesk implements RequestOwner {
  readonly proc: ProcessState;
  /** Of the communicator: for people. */
  name: string;
  /** Context of the user's messages. */
  readonly userCtx: number;
  private readonly group: Group;
  /** Own rank in the communicator. */
  private readonly rank: number;
  /** World rank of each rank. */
  private readonly members: readonly number[];
  /** The rank here of each world rank is the same. */
  private readonly isWorldOrder: boolean;
  private lastStatus = new Status(0, 0, 0);
  private desertion: MultirailError | undefined;
  private membersGoneSeen = 0;

  constructor(proc: ProcessState, name: string, contextId: number, group: Group) {
    this.proc = proc;
    this.name = name;
    this.userCtx = ctxOf(contextId, USER);
    this.group = group;
    this.rank = group.rank;
    this.members = group.worldRanks;
    this.isWorldOrder = this.members.every((world, rank) => world === rank);
  }

  // ---------------------------------------------------------------- RequestOwner

  progress(): void {
    this.proc.engine.progress();
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

  /** Of a send that was done at once. */
  sentRequest(tag: number, bytes: number): Request {
    return new Request(this, undefined, this.status(this.rank, tag, bytes));
  }

  /** Of a receive that has ended well; whoever subscribed is told of it. */
  received(inner: RecvRequest): Status {
    const status = this.statusOf(inner);
    this.onReceived(status);
    return status;
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

  // ---------------------------------------------------------------- when nobody is left

  /**
   * Set once every other member is gone, and at least one of them is dead: a receive from ANY_SOURCE would wait for ever. (When all have
   * left by finalize(), a rank may go on to talk to itself.)
   */
  get deserted(): MultirailError | undefined {
    const { proc, members } = this;
    if (this.membersGoneSeen === proc.membersGone) return this.desertion;
    this.membersGoneSeen = proc.membersGone;
    let failure: MultirailError | undefined;
    for (let rank = 0; rank < members.length; rank++) {
      if (rank === this.rank) continue;
      const ending = proc.engine.endingOf(members[rank]);
      if (ending === undefined) return undefined;
      failure ??= ending.failure;
    }
    if (failure === undefined) return undefined;
    const text = `no rank is left in ${this.name} that could send: ${failure.message}`;
    this.desertion = new MultirailError(failure.code, text, { rank: proc.rank, cause: failure });
    return this.desertion;
  }

  /** Receives from ANY_SOURCE end when nobody is left. */
  memberGone(): void {
    const { deserted } = this;
    if (deserted !== undefined) this.proc.engine.pml.endPostedToAny(this.userCtx, deserted);
  }
}
