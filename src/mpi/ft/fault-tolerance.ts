// Process failure at one process: feeds src/ulfm with the word of deaths and with the messages of others, and does what comes out of it. Its
// messages are ordinary ones of the service context, received in the background: so an agreement goes on in blocking calls, and while its
// caller does something else. There is one of these in a runtime whose parameter `ft` is on, and none in others.
import { MultirailError } from '../../errors.ts';
import type { RecvRequest } from '../../pml/records.ts';
import type { Engine } from '../../progress/engine.ts';
import { EVIDENCE, EVIDENCE_TEXTS, type Evidence, type Notice } from '../../ulfm/knowledge.ts';
import { Ulfm } from '../../ulfm/ulfm.ts';
import { OPERATION, type Operation, type Value } from '../../ulfm/values.ts';
import { SERIES, serviceBytesMax } from '../../ulfm/wire.ts';
import { Iov } from '../../util/iov.ts';
import { type ContextTable, ctxOf, idOf, OBJECT, SERVICE_ID, WORLD_ID } from '../contexts.ts';
import { AgreementCall } from './agreement-call.ts';
import { type ProcessId, ProcessWatch } from './process-watch.ts';

/** The messages of failures and agreements travel on it. */
export const FT_CTX = ctxOf(SERVICE_ID, OBJECT);
const TAG = 0;
const ALL_BITS = 0xffff_ffff;

/** What this uses of the process that it belongs to. */
export interface FaultyProcess {
  readonly engine: Engine;
  /** Number of this process. */
  readonly rank: number;
  readonly contexts: ContextTable;
  /** Somebody has failed or left: whatever waits for it looks again. */
  memberGone(): void;
  /** A communicator was revoked, here or by another member. */
  revoked(id: number): void;
}

export interface FaultToleranceOptions {
  readonly incarnation: number;
  /** Processes of the job. */
  readonly size: number;
  /** This process was declared dead: what it does about itself. */
  onOwnDeath(error: MultirailError): void;
  log(level: 'debug' | 'warn', text: string): void;
}

export class FaultTolerance {
  readonly ulfm: Ulfm;
  private readonly proc: FaultyProcess;
  private readonly options: FaultToleranceOptions;
  private readonly messageBytesMax: number;
  private isListening = false;
  /** Agreements that were called here and are not decided, by communicator and number. */
  private readonly calls = new Map<string, AgreementCall<unknown>>();
  private watch: ProcessWatch | undefined;
  private isSettling = false;
  private isStopped = false;
  /** What every call ends with once this process was declared dead. */
  ownDeath: MultirailError | undefined;

  constructor(proc: FaultyProcess, options: FaultToleranceOptions) {
    this.proc = proc;
    this.options = options;
    this.messageBytesMax = serviceBytesMax(options.size);
    this.ulfm = new Ulfm({
      self: proc.rank,
      incarnation: options.incarnation,
      offer: () => ({ newId: proc.contexts.allocate(), successions: [] }),
      rendezvousWith: (id) => this.rendezvousWith(id),
      isCreating: () => proc.contexts.isCreating,
    });
  }

  // ---------------------------------------------------------------- start and end

  addProcess(number: number, incarnation: number): void {
    this.ulfm.addProcess(number, incarnation);
  }

  /** From now on messages are taken, and the processes of this host are watched. Every process of the job is known. */
  start(own: ProcessId | undefined, processes: ReadonlyMap<number, ProcessId | undefined>): void {
    const { engine, rank } = this.proc;
    const evidence = engine.poller === undefined ? EVIDENCE.PROCESS_GONE : EVIDENCE.PIDFD;
    // What the dead have sent may be here already, and is taken first.
    this.watch = new ProcessWatch(rank, own, engine.poller, (number) => engine.oncePolled(() => this.tell(number, evidence)));
    for (const [number, id] of processes) if (number !== rank) this.watch.add(number, id);
    this.isListening = true;
    for (const { rank: number } of [...engine.pml.peers]) this.peerMet(number);
    this.watch.refresh();
    // Nothing has to be dialled when a death is told: rails to those who are told are there from the start.
    for (const number of this.ulfm.knowledge.neighbours) engine.meet(number);
  }

  stop(): void {
    this.isStopped = true;
    this.watch?.close();
  }

  /**
   * The end of the job begins with an agreement whose value nobody needs: once it is decided, everybody has come through all that were called
   * before, so nobody leaves with the only copy of a decision. False when the time is over before.
   */
  leave(timeoutMs: number): Promise<boolean> {
    if (this.ownDeath !== undefined) return Promise.resolve(true);
    const call = this.begin(WORLD_ID, OPERATION.AGREE, ALL_BITS, () => true);
    if (call.done) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs);
      call.onDone = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  /** Calls end with this error: the runtime is being finalized. */
  endCalls(error: MultirailError): void {
    const calls = [...this.calls.values()];
    this.calls.clear();
    this.countCalls();
    for (const call of calls) call.fail(error);
  }

  get isBusy(): boolean {
    return this.calls.size > 0;
  }

  // ---------------------------------------------------------------- evidence

  /** A process is dead, by this evidence; whatever was told before is known. */
  tell(number: number, evidence: Evidence, text: string = EVIDENCE_TEXTS[evidence]): void {
    if (this.isStopped) return;
    const incarnation = this.ulfm.knowledge.incarnationOf(number) ?? 0;
    this.take({ serial: 0, number, incarnation, evidence, text });
  }

  private take(notice: Notice): void {
    this.ulfm.handleNotice(notice);
    this.settle();
  }

  /** The rails have given a peer up, or found a newer process in its place. */
  peerFailed(number: number, { code, message }: MultirailError): void {
    if (code === 'ERR_ABORT' || this.ownDeath !== undefined || this.ulfm.knowledge.isFailed(number)) return;
    const evidence = code === 'ERR_PROC_UNREACHABLE' ? EVIDENCE.HOST_SILENT : EVIDENCE.REPLACED;
    this.tell(number, evidence, message.slice(code.length + 2));
  }

  /** A peer refuses this process as one that has failed. It may be the only one that does, and yet it will not take it back. */
  refused(by: number, text: string): void {
    if (this.isStopped || this.ownDeath !== undefined) return;
    const { rank } = this.proc;
    const told = `rank ${by} refuses it: ${text}`;
    this.take({ serial: 0, number: rank, incarnation: this.options.incarnation, evidence: EVIDENCE.PEER_FAILED, text: told });
  }

  peerLeft(number: number): void {
    this.watch?.remove(number);
    this.ulfm.handleLeft(number);
    this.settle();
  }

  // ---------------------------------------------------------------- communicators

  open(id: number, members: readonly number[]): void {
    if (id === SERVICE_ID) return;
    this.ulfm.open(id, members);
    this.settle();
  }

  free(id: number, isClean: boolean): void {
    this.ulfm.free(id, isClean);
  }

  /** The first of these processes that is known to be dead, in words; undefined when all live. */
  failureAmong(members: readonly number[]): { rank: number; number: number; text: string } | undefined {
    const { knowledge } = this.ulfm;
    if (!knowledge.hasFailures) return undefined;
    const rank = members.findIndex((number) => knowledge.isFailed(number));
    if (rank === -1) return undefined;
    return { rank, number: members[rank], text: knowledge.noticeOf(members[rank])?.text ?? '' };
  }

  /** The first failed member of that communicator that is not acknowledged there; undefined when there is no such. */
  unacknowledged(id: number): { rank: number; number: number; text: string } | undefined {
    const { ulfm } = this;
    if (!ulfm.knowledge.hasFailures || !ulfm.hasUnacknowledged(id)) return undefined;
    const members = ulfm.membersOf(id);
    const rank = members.findIndex((number, at) => ulfm.knowledge.isFailed(number) && !ulfm.isAcknowledged(id, at));
    return { rank, number: members[rank], text: ulfm.knowledge.noticeOf(members[rank])?.text ?? '' };
  }

  /** Revokes it here and at all members: the word of it has been given to the rails on return. */
  revoke(id: number): void {
    if (this.ownDeath !== undefined) throw this.ownDeath;
    this.ulfm.revoke(id);
    this.settle();
    this.leaveNow();
  }

  /** Calls the next agreement of the program on that communicator. */
  begin<T>(id: number, operation: Operation, flag: number, read: (value: Value) => T, onEnd?: () => void): AgreementCall<T> {
    if (this.ownDeath !== undefined) throw this.ownDeath;
    const call = new AgreementCall(read, onEnd);
    const q = this.ulfm.begin(id, SERIES.PROGRAM, { operation, flag });
    this.calls.set(`${id}/${q}`, call as AgreementCall<unknown>);
    this.countCalls();
    this.settle();
    this.leaveNow();
    return call;
  }

  /** Whoever waits for a decision waits for messages. */
  private countCalls(): void {
    this.proc.engine.expected = this.calls.size;
  }

  /** What was sent leaves without waiting for the end of a turn, which a blocking call may keep from coming. */
  private leaveNow(): void {
    const { engine } = this.proc;
    if (!engine.isRunning) engine.flush();
  }

  private rendezvousWith(id: number): Iterable<number> {
    const members = this.ulfm.membersOf(id);
    const ranks: number[] = [];
    for (const { rank: number, sends, recvs } of this.proc.engine.pml.peers) {
      const rank = members.indexOf(number);
      if (rank === -1) continue;
      let isUnderWay = false;
      for (const { ctx } of sends) if (idOf(ctx) === id) isUnderWay = true;
      for (const { ctx } of recvs) if (idOf(ctx) === id) isUnderWay = true;
      if (isUnderWay) ranks.push(rank);
    }
    return ranks;
  }

  // ---------------------------------------------------------------- messages

  /** That process has come to be known here: it may send, and be sent to. */
  peerMet(number: number): void {
    if (this.isListening && number !== this.proc.rank) this.listen(number);
  }

  /**
   * Takes the messages of one process. Each has a receive of its own: a message that finds no credit is a rendezvous, and with one receive for
   * all a sender that dies in the middle of it would keep the word of its own death from being heard.
   */
  private listen(source: number): void {
    const { engine } = this.proc;
    const buffer = new Uint8Array(this.messageBytesMax);
    const post = (): void => {
      // Also after the end of all receives that finalize() begins with: the agreement on leaving comes after it.
      while (!this.isStopped && engine.endingOf(source) === undefined) {
        const request = engine.pml.irecvInBackground(source, FT_CTX, TAG, new Iov([buffer]), onMessage);
        if (!request.done) return;
        this.read(source, request, buffer);
      }
    };
    const onMessage = (request: RecvRequest): void => {
      this.read(source, request, buffer);
      post();
    };
    post();
  }

  private read(source: number, { error, cancelled, receivedBytes }: RecvRequest, buffer: Uint8Array): void {
    if (cancelled || (error !== undefined && error.code !== 'ERR_TRUNCATE')) return;
    try {
      if (error !== undefined) throw error;
      this.ulfm.handleMessage(source, buffer.subarray(0, receivedBytes));
    } catch (cause) {
      if (!(cause instanceof MultirailError) || (cause.code !== 'ERR_PROTOCOL' && cause.code !== 'ERR_TRUNCATE')) throw cause;
      this.options.log('warn', `a message about failures from process ${source} is dropped: ${cause.message}`);
      return;
    }
    this.settle();
  }

  /** Does what came out of the last event. What that leads to comes out, too, and is done by whoever is at it already. */
  private settle(): void {
    if (this.isSettling) return;
    this.isSettling = true;
    try {
      while (this.step()) {}
    } finally {
      this.isSettling = false;
    }
    this.proc.engine.schedule();
  }

  private step(): boolean {
    const { ulfm, proc } = this;
    if (ulfm.ownDeath !== undefined && this.ownDeath === undefined) {
      this.die(ulfm.ownDeath);
      return true;
    }
    const death = ulfm.deaths.shift();
    if (death !== undefined) {
      this.bury(death);
      return true;
    }
    const revoked = ulfm.revocations.shift();
    if (revoked !== undefined) {
      proc.revoked(revoked);
      return true;
    }
    const message = ulfm.messages.shift();
    if (message !== undefined) {
      this.send(message.to, message.bytes);
      return true;
    }
    const decision = ulfm.decisions.shift();
    if (decision === undefined) return false;
    const key = `${decision.id}/${decision.q}`;
    const call = this.calls.get(key);
    this.calls.delete(key);
    this.countCalls();
    call?.decide(decision.value);
    return true;
  }

  private send(to: number, bytes: Uint8Array): void {
    const { engine } = this.proc;
    const { pml } = engine;
    // Nothing is said to a peer behind BYE: it counts as one that has decided, and so do we there.
    if (engine.endingOf(to) !== undefined || pml.knownPeer(to)?.leaving === true) return;
    const request = pml.isend(to, FT_CTX, TAG, new Iov([bytes]));
    // Whether it is ever taken is no news to the program.
    request.isForsaken = true;
  }

  /** Ends what is under way with a process that is dead. */
  private bury({ number, text }: Notice): void {
    this.watch?.remove(number);
    this.proc.engine.failPeer(number, 'ERR_PROC_FAILED', text);
    // The rails may have known before.
    this.proc.memberGone();
  }

  private die({ text }: Notice): void {
    const { proc, options } = this;
    const error = new MultirailError('ERR_PROC_FAILED', `this process, rank ${proc.rank}, was declared dead: ${text}`, { rank: proc.rank });
    this.ownDeath = error;
    this.watch?.close();
    const { size } = options;
    for (let rank = 0; rank < size; rank++)
      if (rank !== proc.rank) proc.engine.failPeer(rank, 'ERR_PROC_FAILED', `this process, rank ${proc.rank}, was declared dead: ${text}`);
    this.endCalls(error);
    options.onOwnDeath(error);
  }
}
