// Process failure at one process: feeds src/ulfm with the word of deaths and with the messages of others, and does what comes out of it. Its
// messages are ordinary ones of the service context, received in the background: so an agreement goes on in blocking calls, and while its
// caller does something else. There is one of these in a runtime whose parameter `ft` is on, and none in others.
import { MultirailError } from '../../errors.ts';
import type { RecvRequest } from '../../pml/records.ts';
import type { Engine } from '../../progress/engine.ts';
import { EVIDENCE, EVIDENCE_TEXTS, type Evidence, type Notice } from '../../ulfm/knowledge.ts';
import type { Replacement, StandbyEvent } from '../../ulfm/replace.ts';
import { Ulfm } from '../../ulfm/ulfm.ts';
import { OPERATION, type Operation, type Value } from '../../ulfm/values.ts';
import { SERIES, serviceBytesMax } from '../../ulfm/wire.ts';
import { Iov } from '../../util/iov.ts';
import { type ContextTable, FT_CTX, idOf, SERVICE_ID, WORLD_ID } from '../contexts.ts';
import { AgreementCall } from './agreement-call.ts';
import { type BulletinChannel, type BulletinReader, followBulletin } from './bulletin-reader.ts';
import { HeldObjects } from './held-objects.ts';
import { type PartitionOptions, PartitionWatch, partitionView } from './partition-watch.ts';
import { type ProcessId, ProcessWatch } from './process-watch.ts';
import { RespawnWait } from './respawn-wait.ts';

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
  /** So many of them, those with the highest numbers, stand by at the start. */
  readonly spares: number;
  /** Those that stand by hold objects for the others, of at most so many bytes each; 0: half of what is free. Undefined: they hold nothing. */
  readonly heldBytesMax: number | undefined;
  /** Rails to those are made at the start. */
  readonly connectsSpares: boolean;
  /** How long replace() waits for processes that are started in place of the dead; 0 where nobody starts any. */
  readonly respawnWaitMs: number;
  /** What is done about peers that no rail leads to. */
  readonly partition: PartitionOptions;
  /** The channel to the server of the job. */
  readonly oob: BulletinChannel | undefined;
  /** Calls a standby in by the server of the job, besides the message that goes to it directly. */
  callStandby(number: number, call: Uint8Array): void;
  /** Something has become of this process, which stands by. */
  onStandby(event: StandbyEvent): void;
  /** There are more or fewer that stand by. */
  onPoolChanged(): void;
  /** This process was declared dead: what it does about itself. */
  onOwnDeath(error: MultirailError): void;
  log(level: 'debug' | 'warn', text: string): void;
}

/** A call that begins when a replacement on its communicator has ended. */
interface Beginning {
  readonly call: AgreementCall<unknown, never>;
  readonly isReplacement: boolean;
  /** Returns the number of its agreement. */
  begin(): number;
}

export class FaultTolerance {
  readonly ulfm: Ulfm;
  private readonly proc: FaultyProcess;
  private readonly options: FaultToleranceOptions;
  private readonly messageBytesMax: number;
  private isListening = false;
  /** Told of each process that becomes known to be dead, when all that was under way with it has ended. */
  readonly deathListeners = new Set<(number: number) => void>();
  /** Agreements that were called here and are not decided, by communicator, series and number. */
  private readonly calls = new Map<string, AgreementCall<unknown, never>>();
  /** Communicators on which a replacement is under way, with what was called behind it: its agreements go before those. */
  private readonly replacing = new Map<number, Beginning[]>();
  /** Communicators in which a process of the world and one that was called in have met: nobody leaves before all have come through theirs. */
  private readonly joint = new Set<number>();
  /** Recovery epochs of communicators that are about to be opened. */
  private readonly epochs = new Map<number, number>();
  private poolSize = 0;
  private watch: ProcessWatch | undefined;
  private bulletin: BulletinReader | undefined;
  private readonly partition: PartitionWatch;
  private isSettling = false;
  private isStopped = false;
  private readonly respawns: RespawnWait;
  /** What this process holds for the others, since it stands by, or did so once. */
  held: HeldObjects | undefined;
  /** What every call ends with once this process was declared dead. */
  ownDeath: MultirailError | undefined;

  constructor(proc: FaultyProcess, options: FaultToleranceOptions) {
    this.proc = proc;
    this.options = options;
    this.messageBytesMax = serviceBytesMax(options.size);
    this.ulfm = new Ulfm({
      self: proc.rank,
      incarnation: options.incarnation,
      offer: () => ({ newId: proc.contexts.allocate() }),
      rendezvousWith: (id) => this.rendezvousWith(id),
      isCreating: () => proc.contexts.isCreating,
      awaitsStandbys: (id) => this.respawns.awaits(id),
    });
    this.respawns = new RespawnWait(options.respawnWaitMs, (id) => {
      this.ulfm.resumeReplace(id);
      this.settle();
    });
    this.partition = new PartitionWatch(options.partition, partitionView(proc.engine, this.ulfm, proc.rank));
    const { size, spares } = options;
    for (let number = size - spares; number < size; number++) this.ulfm.standbys.set(number, true);
    if (proc.rank < size - spares) return;
    this.ulfm.standBy();
    // Messages may come for the communicator that it is called into as soon as others have it.
    proc.contexts.beginCreation();
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
    this.lookForBulletin();
    // Nothing has to be dialled when a death is told: rails to those who are told are there from the start.
    for (const number of this.ulfm.knowledge.neighbours) engine.meet(number);
    const { heldBytesMax } = this.options;
    const here = [...processes.values()].filter((id) => id?.boot === own?.boot).length;
    if (heldBytesMax !== undefined && this.ulfm.standby !== undefined) this.held = new HeldObjects(engine, heldBytesMax, here);
    if (this.options.connectsSpares && this.ulfm.standby === undefined) for (const number of this.ulfm.standbys.ready) engine.meet(number);
    this.settle();
  }

  /** A process was over before this one joined. */
  processWasOver(number: number, hasLeft: boolean, evidence: Evidence, text: string): void {
    if (hasLeft) this.ulfm.knowledge.leave(number);
    else this.ulfm.knowledge.takeOld({ serial: 0, number, incarnation: 0, evidence, text });
  }

  /** Nobody is started any more in place of those that die. */
  standbysEnd(): void {
    this.respawns.standbysEnd();
  }

  /** A process has joined, which stands by. `meets`: rails to it are made now, where they are made before they are needed. */
  processJoined(number: number, incarnation: number, id: ProcessId | undefined, meets: boolean): void {
    const { ulfm, proc, options } = this;
    ulfm.addProcess(number, incarnation);
    this.watch?.add(number, id);
    this.watch?.refresh();
    this.lookForBulletin();
    // Its neighbours in the ring tell it of deaths, and it them; who works may call it in.
    const isNeeded = options.connectsSpares && ulfm.standby?.state !== 'WAITING';
    const { knowledge } = ulfm;
    if (meets && !knowledge.isGone(number) && (isNeeded || knowledge.neighbours.includes(number))) proc.engine.meet(number);
    this.settle();
  }

  /** The kernel here does not see the end of every process: the server tells of it, in blocking calls too. */
  private lookForBulletin(): void {
    const { engine } = this.proc;
    if (this.watch?.hasOthers !== true || this.isStopped) return;
    this.bulletin ??= followBulletin(engine.poller, this.options.oob, (told) => engine.oncePolled(told));
    this.bulletin?.dial();
  }

  stop(): void {
    this.isStopped = true;
    this.respawns.close();
    this.bulletin?.close();
    this.watch?.close();
  }

  /**
   * The end of the job begins with an agreement whose value nobody needs: once it is decided, everybody has come through all that were called
   * before, so nobody leaves with the only copy of a decision. False when the time is over before.
   */
  async leave(timeoutMs: number): Promise<boolean> {
    if (this.ownDeath !== undefined) return true;
    const ids = [WORLD_ID, ...this.joint].filter((id) => this.ulfm.has(id));
    const calls = ids.map((id) => this.begin(id, OPERATION.AGREE, ALL_BITS, () => true)).filter((call) => !call.done);
    if (calls.length === 0) return true;
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs);
      let open = calls.length;
      for (const call of calls) {
        call.onDone = () => {
          if (--open > 0) return;
          clearTimeout(timer);
          resolve(true);
        };
      }
    });
  }

  /** Calls end with this error: the runtime is being finalized. */
  endCalls(error: MultirailError): void {
    const waiting = [...this.replacing.values()].flat().map(({ call }) => call);
    const calls = [...this.calls.values(), ...waiting];
    this.calls.clear();
    this.replacing.clear();
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

  /** No rail has led to that process for so long. True: it is not given up, since others judge that, or since it is this process that goes. */
  unreachable(number: number, forMs: number): boolean {
    if (this.isStopped || this.ownDeath !== undefined) return false;
    const verdict = this.partition.judge(number, forMs);
    if (verdict === 'gone') this.tell(number, EVIDENCE.REFUSED);
    if (verdict === 'leave') this.declaredDead(this.partition.whyItLeaves, EVIDENCE.HOST_SILENT);
    return verdict !== 'fail';
  }

  /** The server of the job says that this process is over. */
  declaredDead(text: string, evidence: Evidence = EVIDENCE.REPLACED): void {
    if (this.isStopped || this.ownDeath !== undefined) return;
    const { incarnation } = this.options;
    this.take({ serial: 0, number: this.proc.rank, incarnation, evidence, text });
  }

  peerLeft(number: number): void {
    this.watch?.remove(number);
    this.ulfm.handleLeft(number);
    this.settle();
  }

  // ---------------------------------------------------------------- processes that stand by

  /** The server says that that process waits to be called in, or has a place. */
  standbyState(number: number, isWaiting: boolean): void {
    this.ulfm.standbys.set(number, isWaiting);
    this.settle();
  }

  /** A call of this process that came by the server. */
  calledByServer(caller: number, call: Uint8Array): void {
    this.hear(caller, call);
  }

  /** Whoever has to know that this process is not free any more knows it. */
  answerCall(id: number): void {
    if (this.isStopped) return;
    this.ulfm.answerCall(id);
    this.settle();
  }

  /** Every process that is not waiting for a place itself is dead or has left: nobody will call this one in. */
  get isUnneeded(): boolean {
    const { knowledge, standbys } = this.ulfm;
    return knowledge.living.every((number) => standbys.ready.includes(number));
  }

  // ---------------------------------------------------------------- communicators

  open(id: number, members: readonly number[]): void {
    // One that has successors in it was opened when they were called in.
    if (id === SERVICE_ID || this.ulfm.has(id)) return;
    const epoch = this.epochs.get(id) ?? 0;
    this.epochs.delete(id);
    this.ulfm.open(id, members, { epoch });
    this.settle();
  }

  /** The communicator that is opened next with this id has come of so many recoveries. */
  noteEpoch(id: number, epoch: number): void {
    this.epochs.set(id, epoch);
  }

  free(id: number, isClean: boolean): void {
    // The end of the job still begins with an agreement on one in which members of the start and successors have met.
    if (!this.joint.has(id)) this.ulfm.free(id, isClean);
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
    const call = new AgreementCall<T>(read, onEnd);
    this.call(id, { call, isReplacement: false, begin: () => this.ulfm.begin(id, SERIES.PROGRAM, { operation, flag }) });
    return call;
  }

  /** Calls replace() on that communicator: its agreements come one after the other, and what is called behind it begins when it has ended. */
  beginReplace<T>(
    id: number,
    operation: Operation,
    isBlocking: boolean,
    read: (replacement: Replacement) => T,
    onEnd?: () => void,
  ): AgreementCall<T, Replacement> {
    const call = new AgreementCall<T, Replacement>(read, onEnd);
    const begin = (): number => {
      this.respawns.begin(id, isBlocking);
      return this.ulfm.beginReplace(id, operation);
    };
    this.call(id, { call, isReplacement: true, begin });
    return call;
  }

  /** Calls the next agreement of the second series, about saves: it waits for nothing of the program's. */
  vote<T>(id: number, flag: number, read: (value: Value) => T): AgreementCall<T> {
    if (this.ownDeath !== undefined) throw this.ownDeath;
    const call = new AgreementCall<T>(read);
    const q = this.ulfm.begin(id, SERIES.RECOVERY, { operation: OPERATION.AGREE, flag });
    this.calls.set(`${id}/r${q}`, call as AgreementCall<unknown, never>);
    this.countCalls();
    this.settle();
    this.leaveNow();
    return call;
  }

  private call(id: number, beginning: Beginning): void {
    if (this.ownDeath !== undefined) throw this.ownDeath;
    this.enter(id, beginning);
    this.countCalls();
    this.settle();
    this.leaveNow();
  }

  private enter(id: number, beginning: Beginning): void {
    const queue = this.replacing.get(id);
    if (queue !== undefined) {
      queue.push(beginning);
      return;
    }
    if (beginning.isReplacement) this.replacing.set(id, []);
    this.calls.set(`${id}/${beginning.begin()}`, beginning.call);
  }

  /** A replacement has ended, and what was called behind it begins. */
  private endReplacement(replacement: Replacement): void {
    const { id, ticket, made } = replacement;
    if (made?.hasSuccessors === true) this.joint.add(made.id);
    else if (made !== undefined) this.noteEpoch(made.id, made.epoch);
    this.respawns.forget(id);
    const waiting = this.replacing.get(id) ?? [];
    this.replacing.delete(id);
    const key = `${id}/${ticket}`;
    const call = this.calls.get(key) as AgreementCall<unknown, Replacement> | undefined;
    this.calls.delete(key);
    for (const beginning of waiting) this.enter(id, beginning);
    this.countCalls();
    call?.decide(replacement);
  }

  /** Whoever waits for a decision waits for messages. */
  private countCalls(): void {
    let waiting = 0;
    for (const queue of this.replacing.values()) waiting += queue.length;
    this.proc.engine.expected = this.calls.size + waiting;
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
      // Behind a long one there may have come others. Of those that are over nobody hears any more.
      if (engine.endingOf(source) !== undefined) engine.pml.dropUnexpected(source, FT_CTX);
    };
    const onMessage = (request: RecvRequest): void => {
      this.read(source, request, buffer);
      post();
    };
    post();
  }

  private read(source: number, { error, cancelled, receivedBytes }: RecvRequest, buffer: Uint8Array): void {
    if (cancelled || (error !== undefined && error.code !== 'ERR_TRUNCATE')) return;
    this.hear(source, buffer.subarray(0, receivedBytes), error);
  }

  private hear(source: number, message: Uint8Array, error?: MultirailError): void {
    try {
      if (error !== undefined) throw error;
      this.ulfm.handleMessage(source, message);
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
    const serverCall = ulfm.serverCalls.shift();
    if (serverCall !== undefined) {
      this.options.callStandby(serverCall.to, serverCall.bytes);
      return true;
    }
    const event = ulfm.standby?.events.shift();
    if (event !== undefined) {
      if (event.kind === 'joined') this.joint.add(event.id);
      this.options.onStandby(event);
      return true;
    }
    const replacement = ulfm.replacements.ended.shift();
    if (replacement !== undefined) {
      this.endReplacement(replacement);
      return true;
    }
    const awaiting = ulfm.replacements.awaiting.shift();
    if (awaiting !== undefined) {
      this.respawns.await(awaiting);
      return true;
    }
    const decision = ulfm.decisions.shift();
    if (decision === undefined) return this.lookAtPool();
    const key = `${decision.id}/${decision.series === SERIES.RECOVERY ? 'r' : ''}${decision.q}`;
    const call = this.calls.get(key) as AgreementCall<unknown> | undefined;
    this.calls.delete(key);
    this.countCalls();
    call?.decide(decision.value);
    return true;
  }

  /** Tells it when others stand by than before. Returns whether there is more to do now. */
  private lookAtPool(): boolean {
    const { length } = this.ulfm.standbys.ready;
    if (length === this.poolSize) return false;
    this.poolSize = length;
    this.options.onPoolChanged();
    return this.respawns.look();
  }

  private send(to: number, bytes: Uint8Array): void {
    // Whoever was declared dead, and does not know it yet, is told of nobody that joins.
    if (this.ulfm.knowledge.incarnationOf(to) === undefined) return;
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
    for (const listener of this.deathListeners) listener(number);
  }

  private die({ text }: Notice): void {
    const { proc, options } = this;
    const error = new MultirailError('ERR_PROC_FAILED', `this process, rank ${proc.rank}, was declared dead: ${text}`, { rank: proc.rank });
    this.ownDeath = error;
    this.watch?.close();
    for (const rank of this.ulfm.knowledge.numbers)
      if (rank !== proc.rank) proc.engine.failPeer(rank, 'ERR_PROC_FAILED', `this process, rank ${proc.rank}, was declared dead: ${text}`);
    this.endCalls(error);
    options.onOwnDeath(error);
  }
}
