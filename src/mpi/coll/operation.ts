// One run of a collective: the machine that takes the steps of an algorithm. An algorithm is a generator that posts the sends and
// receives of a round and yields; it goes on when all of them have ended. The same steps run for promises, requests and blocking calls:
// completions of the PML drive them, whoever looks at the rails.
//
//   RUNNING   takes steps, waits for the sends and receives of a round
//   FAILING   an error is known; what has matched of the round is waited for, so that no byte of a buffer changes after the end
//   ENDED     `done`; `error` says how
//
// A rank on which a collective fails must not leave the others waiting. The rank that finds the error tells everybody (failures.ts), unless it
// is a death of which everybody hears. A rank that is told, or has found such a death, goes through the rest of its steps at once and tells
// whoever it would have sent to: nobody else may reach them. What is sent to either of them for this collective from then on is received
// into nothing.
// After Hoefler, Lumsdaine, Rehm: Implementation and performance analysis of non-blocking collective operations for MPI (2007).
import { MultirailError } from '../../errors.ts';
import type { RecvRequest, SendRequest } from '../../pml/records.ts';
import type { Awaited } from '../../progress/blocking.ts';
import { assert } from '../../util/assert.ts';
import { EMPTY_BYTES, EMPTY_IOV, Iov } from '../../util/iov.ts';
import type { ArrayName } from './kernels.ts';
import { elementBytes, ScratchElements } from './memory.ts';
import { type CallMemory, type LocalProcess, type MemoryCall, mismatchError, type Scope, type Told } from './scope.ts';
import { agree, describeCode, type Ledger, type Signature } from './signature.ts';

/** Steps of an algorithm: yields at the end of each round, returns the result of the call. */
export type Steps<T = void> = Generator<void, T, void>;

type OperationState = 'RUNNING' | 'FAILING' | 'ENDED';

/** Scratch memory with its views that is kept for the next call: pieces, and the length of one. */
const SPARE_MAX = 8;
const SPARE_BYTES_MAX = 64 * 1024;

export class Operation<T = unknown> implements Awaited, MemoryCall {
  readonly kind = 'collective';
  /** Which call it is. */
  signature!: Signature;
  /** Its bits as they travel; 0 when calls are not to be checked. */
  code = 0;
  scope!: Scope;
  tag!: number;
  rank!: number;
  size!: number;
  done = false;
  error: MultirailError | undefined;
  /** What the steps returned. */
  result: T | undefined;
  /** Called once, from within a turn of the engine or of start(). */
  onDone: (() => void) | undefined;
  /** Called once, at the end: lets a timer and a signal go. */
  release: (() => void) | undefined;
  /** Who hears of its end before everybody else; undefined unless somebody traces operations. */
  trace: { ended(error: MultirailError | undefined): void } | undefined;
  /** Called once, when it fails. */
  onFailed: ((error: MultirailError) => void) | undefined;
  // What this rank sent, and how often it had to wait.
  messages = 0;
  bytes = 0;
  rounds = 0;

  private state: OperationState = 'RUNNING';
  private steps: Steps<T> | undefined;
  /** Requests of the round that have not ended. */
  private pending = 0;
  private posted = false;
  private receives: RecvRequest[] = [];
  private sends: SendRequest[] = [];
  /** The error of a send or receive that ended as it was posted. */
  private postError: MultirailError | undefined;
  /** Receives of the round that may bring less than asked for. */
  private short: Set<RecvRequest> | undefined;
  /** Calls that had begun before it on its context. */
  order = 0;
  /** No call of the program's: it is not counted. */
  isHidden = false;
  /** What it shares with the other ranks in place of messages, once it has asked for it. */
  memory: CallMemory | undefined;
  /** Its steps go on when the memory holds what they wait for. */
  awaitsMemory = false;
  openedAs = 0;
  /** World rank that makes another call here: it was asked which, and its answer ends this one. */
  private stranger = -1;
  private strangersCode = 0;
  /** Rounds at the last look for calls that do not move; and whether those that are waited for were asked in this one. */
  private lookedRounds = -1;
  private asked = false;
  /** Its error is that of the earlier call with this tag; -1: it is its own. */
  private lateTag = -1;
  /** Everybody knows that this rank has failed. */
  private toldAll = false;
  private readonly pieces: Uint8Array[] = [];
  private readonly elements: ScratchElements[] = [];
  private readonly onInner = (): void => {
    if (--this.pending > 0) return;
    if (this.state === 'RUNNING') {
      if (this.stranger === -1) this.advance();
    } else if (this.state === 'FAILING') this.finish();
  };

  /** A new run, in a record that may have served another one. */
  begin(scope: Scope, signature: Signature, tag: number): this {
    this.scope = scope;
    this.signature = signature;
    this.code = scope.size > 1 && scope.tuning.checkSignatures ? signature.code : 0;
    this.stranger = -1;
    this.lookedRounds = -1;
    this.tag = tag;
    this.rank = scope.rank;
    this.size = scope.size;
    this.done = false;
    this.result = undefined;
    this.onDone = undefined;
    this.trace = undefined;
    this.messages = 0;
    this.bytes = 0;
    this.rounds = 0;
    this.lateTag = -1;
    this.memory = undefined;
    this.awaitsMemory = false;
    this.state = 'RUNNING';
    return this;
  }

  /** Takes the first steps. */
  start(steps: Steps<T>): this {
    const { proc, ctx, ledger } = this.scope;
    const { tag, code } = this;
    this.steps = steps;
    proc.operations.add(this);
    let told: Told | undefined;
    let late: Ledger['late'];
    let isOwn = false;
    let stranger = -1;
    if (code !== 0) {
      this.order = ledger.begin(tag, this.signature);
      stranger = ledger.earlyStranger(tag, code);
      late = ledger.late;
      ledger.late = undefined;
    }
    if (this.size > 1) {
      told = proc.failures.take(ctx, tag);
      const asked = code === 0 ? undefined : proc.failures.takeQuestion(ctx, tag);
      if (told === undefined && asked !== undefined && !agree(asked.signature, code)) {
        const asker = this.scope.members.indexOf(asked.from);
        told = { error: mismatchError(this.scope, [asker, asked.call], [this.scope.rank, String(this.signature)]), late: -1 };
        isOwn = true;
      }
    }
    if (late !== undefined) this.fail(late.error, true, late.tag);
    else if (told !== undefined) this.fail(told.error, isOwn, told.late);
    else if (stranger !== -1) this.meet(stranger, ledger.earlyCode(tag));
    else {
      const failure = proc.failureOf?.(this.scope);
      if (failure === undefined) this.advance();
      else this.fail(failure, false);
    }
    proc.engine.schedule();
    return this;
  }

  // ---------------------------------------------------------------- for algorithms

  /** The rest of the steps only tells others that this rank has failed: what was received means nothing. */
  get isFailing(): boolean {
    return this.state !== 'RUNNING';
  }

  /** Sends these bytes to that rank. They must stay as they are until the end of the round. */
  send(rank: number, bytes: Uint8Array): void {
    this.sendIov(rank, bytes.length === 0 ? EMPTY_IOV : new Iov([bytes]));
  }

  sendIov(rank: number, iov: Iov): void {
    const { scope } = this;
    if (this.state !== 'RUNNING') {
      if (!this.toldAll) scope.proc.failures.tell(scope.members[rank], scope.ctx, this.tag, this.error as MultirailError, this.lateTag);
      return;
    }
    this.messages++;
    this.bytes += iov.bytes;
    this.posted = true;
    const request = scope.proc.pml.isend(scope.members[rank], scope.ctx, this.tag, iov, false, this.code);
    if (request.done) this.postError ??= request.error;
    else {
      this.pending++;
      request.onDone = this.onInner;
      this.sends.push(request);
    }
  }

  /** Receives from that rank exactly as many bytes as these, which may be written until the end of the round. */
  recv(rank: number, bytes: Uint8Array): void {
    this.recvIov(rank, bytes.length === 0 ? EMPTY_IOV : new Iov([bytes]));
  }

  recvIov(rank: number, iov: Iov): void {
    const request = this.post(rank, iov);
    if (request !== undefined) this.receives.push(request);
  }

  /** Receives at most that many bytes; the request says how many have come. Undefined when the call has failed. */
  recvUpTo(rank: number, bytes: Uint8Array): RecvRequest | undefined {
    const request = this.post(rank, new Iov([bytes]));
    if (request !== undefined) {
      this.short ??= new Set();
      this.short.add(request);
      this.receives.push(request);
    }
    return request;
  }

  private post(rank: number, iov: Iov): RecvRequest | undefined {
    const { scope } = this;
    const { pml } = scope.proc;
    if (this.state !== 'RUNNING') return undefined;
    this.posted = true;
    const request = pml.irecv(scope.members[rank], scope.ctx, this.tag, iov);
    if (!request.done) {
      this.pending++;
      request.onDone = this.onInner;
    } else if (request.error !== undefined) this.postError ??= this.explain(request.error, request);
    return request;
  }

  /** The round ends when the shared memory holds what the steps have asked it for. */
  awaitMemory(): void {
    this.awaitsMemory = true;
  }

  /** Memory for the time of the call. */
  scratch(bytes: number): Uint8Array {
    if (bytes === 0) return EMPTY_BYTES;
    const piece = this.scope.proc.scratch.take(bytes);
    this.pieces.push(piece);
    return piece.length === bytes ? piece : piece.subarray(0, bytes);
  }

  /** As scratch(), for elements. */
  scratchElements(arrayName: ArrayName, count: number): ScratchElements {
    const { spare } = this.scope.proc;
    // Programs make the same call again and again: its last memory fits.
    for (let i = spare.length - 1; i >= 0; i--) {
      const elements = spare[i];
      if (elements.count !== count || elements.arrayName !== arrayName) continue;
      // The last one takes its place: cheaper than to move all behind it.
      const last = spare.pop() as ScratchElements;
      if (last !== elements) spare[i] = last;
      this.elements.push(elements);
      return elements;
    }
    const bytes = count * elementBytes(arrayName);
    if (bytes > SPARE_BYTES_MAX) return new ScratchElements(arrayName, count, this.scratch(bytes));
    const elements = new ScratchElements(arrayName, count, new Uint8Array(bytes));
    this.elements.push(elements);
    return elements;
  }

  // ---------------------------------------------------------------- rounds

  private advance(): void {
    const steps = this.steps as Steps<T>;
    try {
      for (;;) {
        const error = this.endRound();
        if (this.stranger !== -1) return;
        if (error !== undefined) return this.fail(error, true);
        const step = steps.next();
        if (this.postError !== undefined) {
          // What ended as it was posted may have come from a rank that makes another call.
          this.endRound();
          if (this.stranger === -1) this.fail(this.postError, true);
          return;
        }
        if (step.done === true) {
          assert(!this.posted, `${this.name}: sends or receives after the last round`);
          this.result = step.value;
          return this.finish();
        }
        if (this.posted) this.rounds++;
        this.posted = false;
        if (this.awaitsMemory && !this.hasMemory()) return;
        if (this.pending > 0) return;
      }
    } catch (cause) {
      this.fail(this.wrap(cause), true);
    }
  }

  /** What the steps wait for is in the shared memory. */
  private hasMemory(): boolean {
    const memory = this.memory as CallMemory;
    if (!memory.look(this)) {
      // It may have failed for what it has found there.
      if (this.state === 'RUNNING') memory.check(this);
      return false;
    }
    this.awaitsMemory = false;
    return true;
  }

  /** Goes on, if the shared memory holds what is waited for. Returns false if not. */
  pollMemory(): boolean {
    if (!this.awaitsMemory || this.state !== 'RUNNING' || this.stranger !== -1) return false;
    if (!(this.memory as CallMemory).look(this)) return this.state !== 'RUNNING';
    this.awaitsMemory = false;
    this.advance();
    return true;
  }

  private wrap(cause: unknown): MultirailError {
    if (cause instanceof MultirailError) return cause;
    const text = cause instanceof Error ? cause.message : String(cause);
    return new MultirailError('ERR_OP', `${this.name} on ${this.scope.name}: a function of the caller threw: ${text}`, { cause });
  }

  /** Looks at what has ended of the round; the error of the first that failed. */
  private endRound(): MultirailError | undefined {
    const { receives, sends, code } = this;
    let error: MultirailError | undefined;
    for (let i = 0; i < receives.length; i++) {
      const request = receives[i];
      if (!request.done) continue;
      if (request.matchedSignature !== code && code !== 0 && !agree(request.matchedSignature, code))
        this.meet(request.matchedSource, request.matchedSignature);
      if (request.error !== undefined) error ??= this.explain(request.error, request);
      else if (request.receivedBytes !== request.buffer.bytes && !this.short?.has(request)) error ??= this.tooShort(request);
    }
    for (let i = 0; i < sends.length; i++) if (sends[i].done) error ??= sends[i].error;
    if (error === undefined && this.pending === 0) {
      // One by one: emptying an array by its length is a call out of compiled code.
      while (receives.length > 0) receives.pop();
      while (sends.length > 0) sends.pop();
      this.short?.clear();
    }
    return error;
  }

  private tooShort(request: RecvRequest): MultirailError {
    const from = this.scope.members.indexOf(request.matchedSource);
    return new MultirailError(
      'ERR_TRUNCATE',
      `${this.name} on ${this.scope.name}: rank ${from} sent ${request.receivedBytes} bytes where rank ${this.rank} takes ${request.buffer.bytes}: the lengths of the ranks do not fit together`,
      { rank: this.scope.proc.rank, peer: request.matchedSource },
    );
  }

  private explain(error: MultirailError, request: RecvRequest): MultirailError {
    if (error.code !== 'ERR_TRUNCATE') return error;
    const from = this.scope.members.indexOf(request.matchedSource);
    return new MultirailError(
      'ERR_TRUNCATE',
      `${this.name} on ${this.scope.name}: rank ${from} sent more than the ${request.buffer.bytes} bytes that rank ${this.rank} takes: the lengths of the ranks do not fit together`,
      { rank: this.scope.proc.rank, peer: request.matchedSource, cause: error },
    );
  }

  // ---------------------------------------------------------------- ends

  /** Looks whether one of the round has failed while others are still waited for: a member is gone. */
  check(): void {
    if (this.state !== 'RUNNING') return;
    const error = this.endRound();
    if (this.stranger !== -1) {
      if (this.scope.proc.pml.peer(this.stranger).ended !== undefined) this.fail(this.strangerGone(), true);
    } else if (error !== undefined) this.fail(error, true);
    else if (this.awaitsMemory) this.memory?.check(this);
  }

  // ---------------------------------------------------------------- other calls

  get name(): string {
    return this.signature.name;
  }

  /** A message of that world rank is of another call: it is asked which, and ends this one with its answer, at every rank. */
  meet(world: number, code: number): void {
    if (this.stranger !== -1 || this.state !== 'RUNNING') return;
    this.stranger = world;
    this.strangersCode = code;
    this.scope.proc.failures.ask(world, this.scope, this.tag, this.signature, true);
  }

  get isRunning(): boolean {
    return this.state === 'RUNNING';
  }

  private strangerGone(): MultirailError {
    const { scope, stranger } = this;
    return mismatchError(scope, [scope.rank, String(this.signature)], [scope.members.indexOf(stranger), describeCode(this.strangersCode)]);
  }

  /** Once in a while: if nothing has moved since the last time, those that are waited for are asked which call they make. */
  askAround(): void {
    if (this.state !== 'RUNNING' || this.code === 0 || this.stranger !== -1) return;
    const isNew = this.lookedRounds !== this.rounds;
    this.lookedRounds = this.rounds;
    const wasAsked = this.asked && !isNew;
    this.asked = !isNew;
    if (isNew || wasAsked) return;
    for (const request of this.receives) {
      if (!request.done && !request.matched) this.scope.proc.failures.ask(request.source, this.scope, this.tag, this.signature, false);
    }
    if (!this.awaitsMemory) return;
    const { scope } = this;
    for (const rank of this.memory?.missing(this) ?? [])
      scope.proc.failures.ask(scope.members[rank], scope, this.tag, this.signature, false);
  }

  /**
   * `isOwn`: found out here, so that everybody must be told; otherwise those that wait for this rank must be. `lateTag`: the error is that of the earlier
   * collective with this tag, which had ended well here or elsewhere. Whoever is told by us has to know that, too: other news of that
   * collective may come later.
   */
  fail(error: MultirailError, isOwn: boolean, lateTag = -1): void {
    // Where everybody hears of a death anyway, all who wait for the dead rank find out by themselves: if each of them told everybody, every
    // rank would have to be connected to every other, at the very moment at which all have to agree.
    const tellsAll = isOwn && !(error.code === 'ERR_PROC_FAILED' && this.scope.proc.hearsOfDeaths);
    this.end(error, tellsAll, lateTag, tellsAll);
  }

  /** Nobody has to be told: everybody hears of the revocation by another way. */
  revoked(error: MultirailError): void {
    this.end(error, false, -1, true);
  }

  /** `tellsAll`: everybody. `isTold`: nobody has to be told besides; otherwise those that wait for this rank. */
  private end(error: MultirailError, tellsAll: boolean, lateTag: number, isTold: boolean): void {
    if (this.state !== 'RUNNING') return;
    this.lateTag = lateTag;
    this.state = 'FAILING';
    this.error = error;
    if (this.code !== 0) this.scope.ledger.failed(this.tag);
    this.onFailed?.(error);
    const { proc, members, ctx } = this.scope;
    this.toldAll = isTold;
    if (tellsAll) for (const world of members) if (world !== proc.rank) proc.failures.tell(world, ctx, this.tag, error, this.lateTag);
    // Buffers that are only read are left to the sends: those cannot be taken back. A caller that has set a limit wants to use them again: then
    // they are waited for, which is not long, since everybody takes them into nothing once it is told.
    const isLimit = error.code === 'ERR_TIMEOUT' || error.code === 'ERR_ABORTED';
    for (const request of this.sends) {
      request.isForsaken = true;
      if (request.done || isLimit) continue;
      request.onDone = undefined;
      this.pending--;
    }
    for (const request of this.receives) if (!request.done) proc.cancel(request);
    if (this.size > 1) proc.failures.drain(ctx, this.tag);
    if (!isTold) this.tellDependents();
    if (this.pending === 0) this.finish();
    proc.engine.schedule();
  }

  /** The rest of the steps, which send nothing but the news. */
  private tellDependents(): void {
    try {
      while (this.steps?.next().done === false) {}
    } catch {
      // A function of the caller threw; who depends on this rank was told by the one that found the error.
    }
  }

  private finish(): void {
    if (this.state === 'ENDED') return;
    this.state = 'ENDED';
    this.done = true;
    this.trace?.ended(this.error);
    this.release?.();
    this.release = undefined;
    this.steps = undefined;
    const { proc } = this.scope;
    proc.operations.delete(this);
    this.memory?.leave(this);
    // What failed may still be read by sends that nobody waits for.
    if (this.error === undefined) this.giveBack(proc);
    if (!this.isHidden) this.count(proc);
    this.onDone?.();
  }

  private count({ counters }: LocalProcess): void {
    counters.collectives++;
    counters.messages += this.messages;
    counters.bytes += this.bytes;
    counters.rounds += this.rounds;
  }

  private giveBack({ scratch, spare }: LocalProcess): void {
    const { pieces, elements } = this;
    for (let piece = pieces.pop(); piece !== undefined; piece = pieces.pop()) scratch.give(piece);
    for (let piece = elements.pop(); piece !== undefined; piece = elements.pop()) {
      if (spare.length >= SPARE_MAX) spare.shift();
      spare.push(piece);
    }
  }
}
