// What the programs of a world do with src/ulfm, drawn from a seed: agreements one after the other in two series, communicators that are
// made of decisions, successors of the dead, processes that join, revocation, and leaving behind a last agreement. How messages travel, time passes and deaths
// become known is left to the world: the simulator's (ulfm-world.ts), and the small one of the unit tests.

import type { Agreement } from '../../src/ulfm/agreement.ts';
import { Bitmap } from '../../src/ulfm/bitmap.ts';
import type { Call, Communicator, OpenOptions } from '../../src/ulfm/communicator.ts';
import { JoinSeries } from '../../src/ulfm/join-series.ts';
import { EVIDENCE, type Notice } from '../../src/ulfm/knowledge.ts';
import { membersAfter, type Replacement, type StandbyEvent } from '../../src/ulfm/replace.ts';
import type { AgreementListener } from '../../src/ulfm/states.ts';
import { type Decision, Ulfm, type UlfmOptions } from '../../src/ulfm/ulfm.ts';
import { OPERATION, type Operation, type Succession, type Value, verdictOf } from '../../src/ulfm/values.ts';
import { SERIES, SERVICE, type SeriesNumber } from '../../src/ulfm/wire.ts';
import { Prng } from '../../src/util/prng.ts';
import { UlfmOracle } from './ulfm-oracle.ts';

/** The communicator that the members begin with. */
export const FIRST_ID = 2;

export interface UlfmProcess {
  readonly number: number;
  readonly core: Ulfm;
  isAlive: boolean;
  hasLeft: boolean;
  /** Messages that it sends until it dies. */
  sendsLeft: number;
  /** Calls under way of which a communicator comes. */
  creations: number;
  readonly continuations: Map<string, (decision: Decision) => void>;
  /** Calls of replace(), by their first agreement. */
  readonly replacing: Map<string, (replacement: Replacement) => void>;
  readonly ids: Set<number>;
  /** Communicators in which members of the start and successors have met: nobody leaves before all are through with them. */
  readonly joint: number[];
  /** Threads of its program that run. */
  threads: number;
  whenIdle: (() => void) | undefined;
  /** Where too few stand by, it waits for others. */
  waits: boolean;
  /** What its program does as soon as it hears of a death. */
  readonly reactions: (() => void)[];
  nextId: number;
}

/** Tells the oracle of everything that is begun and decided, also by calls that go from one agreement to the next. */
class WatchedUlfm extends Ulfm {
  private readonly oracle: UlfmOracle;

  constructor(oracle: UlfmOracle, options: UlfmOptions) {
    super(options);
    this.oracle = oracle;
  }

  override open(id: number, members: readonly number[], options: OpenOptions = {}): void {
    if (this.ownDeath === undefined) this.oracle.join(this.self, id, members, options.generation ?? 0);
    if (options.callIn !== undefined) this.oracle.callInto(id, options.callIn.origin);
    super.open(id, members, options);
  }

  override begin(id: number, series: SeriesNumber, call: Call): number {
    const { operation, flag } = call;
    const { length } = this.membersOf(id);
    const ranks = Array.from({ length }, (_, rank) => rank).filter((rank) => this.isAcknowledged(id, rank));
    const acked = call.acked ?? Bitmap.of(length, ranks);
    this.oracle.call(this.self, id, series, this.nextOf(id, series), { operation, flag: flag >>> 0, acked });
    if (operation === OPERATION.JOIN && !acked.has(this.membersOf(id).indexOf(this.self))) this.oracle.refuse(this.self, id);
    return super.begin(id, series, call);
  }

  override handOut(communicator: Communicator, agreement: Agreement): void {
    const { series, q, value } = agreement;
    if (this.ownDeath === undefined) this.oracle.decide(this.self, { id: communicator.id, series, q, value: value as Value });
    super.handOut(communicator, agreement);
  }
}

export abstract class UlfmPrograms<P extends UlfmProcess = UlfmProcess> {
  readonly prng: Prng;
  readonly oracle = new UlfmOracle();
  readonly processes: P[] = [];
  /** Service messages by type. */
  readonly sent: number[] = [];
  /** Processes from this number on stand by. */
  protected readonly members: number;
  private readonly usedSpares = new Set<number>();
  /** Spares succeed the dead of the first communicator, or stand by for replace(). */
  private spareUse: 'succession' | 'standby' = 'standby';
  private readonly calledIn = new Set<string>();
  private programOperations: readonly Operation[] = [];
  /** What the server of the job keeps of its processes: production code. */
  protected series = new JoinSeries(0);
  /** Processes that have not joined yet. */
  protected readonly absent = new Set<number>();
  /** Who stands by, as the server knows. */
  private readonly pool = new Set<number>();
  /** Calls of replace() may wait for processes that join. */
  protected mayWait = false;
  private readonly joinPrng: Prng;

  constructor(prng: Prng, members: number) {
    this.prng = prng;
    this.joinPrng = prng.split('joins');
    this.members = members;
  }

  // ---------------------------------------------------------------- what the world gives

  abstract at(delay: number, run: () => void): void;
  /** Hands a message to the network. */
  protected abstract post(process: P, to: number, bytes: Uint8Array): void;
  abstract kill(number: number): void;
  abstract leave(process: P): void;
  protected abstract trace(line: string): void;
  protected abstract rendezvousWith(process: P, id: number): Iterable<number>;
  /** The server of the job is there. */
  protected get isServed(): boolean {
    return true;
  }
  /** These have become known to be dead here. */
  protected onDeaths(_process: P, _notices: readonly Notice[]): void {}
  protected onRevoked(_process: P, _id: number): void {}
  protected onOpened(_process: P, _id: number): void {}
  /** The process has learned that it was declared dead: it ends itself. */
  protected onOwnDeath(process: P): void {
    process.isAlive = false;
  }

  /** A core for that process, and what its program keeps. */
  protected makeProgram(number: number, processOf: () => P, listener?: AgreementListener): UlfmProcess {
    const core: Ulfm = new WatchedUlfm(this.oracle, {
      self: number,
      incarnation: 1,
      offer: (_id, series, operation, failed) => this.offer(processOf(), series, operation, failed),
      rendezvousWith: (id) => this.rendezvousWith(processOf(), id),
      awaitsStandbys: () => processOf().waits,
      isCreating: () => processOf().creations > 0 || (core.standby !== undefined && core.standby.state !== 'WORKING'),
      listener: this.oracle.listenerOf(number, listener),
    });
    this.oracle.addProcess(number, core);
    return {
      number,
      core,
      isAlive: true,
      hasLeft: false,
      sendsLeft: Number.POSITIVE_INFINITY,
      creations: 0,
      continuations: new Map(),
      replacing: new Map(),
      ids: new Set(),
      joint: [],
      threads: 0,
      whenIdle: undefined,
      waits: false,
      reactions: [],
      nextId: 1,
    };
  }

  /** Everybody is there but the last `joiners`, and the members have their first communicator. */
  protected begin(keepsDecisions: boolean, joiners = 0): void {
    this.spareUse = keepsDecisions ? 'succession' : 'standby';
    const starters = this.processes.slice(0, this.processes.length - joiners);
    this.series = new JoinSeries(starters.length);
    for (const { number } of this.processes.slice(starters.length)) this.absent.add(number);
    for (const process of starters) {
      const { core, number: own } = process;
      this.oracle.enroll(own, false);
      for (const { number } of starters) core.addProcess(number, 1);
      if (keepsDecisions) continue;
      for (const { number } of starters.slice(this.members)) core.standbys.set(number, true);
      if (own < this.members) continue;
      core.standBy();
      this.pool.add(own);
    }
    const first = Array.from({ length: this.members }, (_, rank) => rank);
    for (const process of this.processes.slice(0, this.members)) this.open(process, FIRST_ID, first, { keepsDecisions });
  }

  private offer(
    { number, core }: P,
    series: SeriesNumber,
    operation: Operation,
    failed: readonly number[],
  ): { newId: number; successions?: readonly Succession[] } {
    if (series === SERIES.PROGRAM) return { newId: 10_000 * (this.processes[number].nextId++ + 1) + number };
    if (operation === OPERATION.SHRINK || this.spareUse === 'standby') return { newId: 0, successions: [] };
    const spares = this.processes
      .slice(this.members)
      .filter((spare) => !this.usedSpares.has(spare.number) && !core.knowledge.isGone(spare.number));
    const successions = failed.slice(0, spares.length).map((rank, i) => ({ rank, number: spares[i].number }));
    for (const succession of successions) this.usedSpares.add(succession.number);
    return { newId: 0, successions };
  }

  // ---------------------------------------------------------------- processes

  protected open(process: P, id: number, members: readonly number[], options: OpenOptions = {}): void {
    this.trace(`process ${process.number} opens ${id} of ${members.join(' ')}`);
    process.ids.add(id);
    this.act(process, () => {
      process.core.open(id, members, options);
      this.onOpened(process, id);
    });
  }

  /** What a process was making is there: messages that have waited for it and were not for it are for others. */
  protected endCreation(process: P): void {
    if (--process.creations === 0) process.core.dropEarly();
  }

  /** Does something at a process, and sends what comes of it: it may die between any two messages. */
  act(process: P, run: () => void): void {
    if (!process.isAlive || process.hasLeft) return;
    const { core, number } = process;
    run();
    if (core.deaths.length > 0) {
      this.onDeaths(process, core.deaths.splice(0));
      // At once, and so before the word of it has gone round: an agreement is what most programs do about a death.
      for (const react of process.reactions.splice(0)) this.at(0, react);
    }
    const mayDeath = this.prng.chance(1, 2);
    if (mayDeath) this.takeDecisions(process);
    for (const { to, bytes } of core.serverCalls.splice(0)) this.callByServer(process, this.processes[to], bytes);
    for (const event of core.standby?.events.splice(0) ?? []) this.takeStandbyEvent(process, event);
    for (const { to, bytes } of core.messages.splice(0)) {
      if (process.sendsLeft-- <= 0) this.kill(number);
      if (!process.isAlive) return;
      this.sent[bytes[1]] = (this.sent[bytes[1]] ?? 0) + 1;
      this.oracle.send(number, bytes);
      this.oracle.checkKnown(number, to);
      this.post(process, to, bytes);
    }
    for (const id of core.revocations.splice(0)) this.onRevoked(process, id);
    if (core.ownDeath !== undefined) return this.onOwnDeath(process);
    if (!mayDeath) this.takeDecisions(process);
  }

  private takeDecisions(process: P): void {
    for (const id of process.core.replacements.awaiting.splice(0)) {
      this.trace(`process ${process.number} waits for standbys on ${id}`);
      this.at(this.joinPrng.pick([2000, 2000, 20_000]), () => this.act(process, () => process.core.resumeReplace(id)));
    }
    for (const decision of process.core.decisions.splice(0)) {
      const key = `${decision.id}/${decision.series}/${decision.q}`;
      this.trace(`process ${process.number} decides ${key}`);
      const then = process.continuations.get(key);
      process.continuations.delete(key);
      this.at(0, () => {
        if (process.isAlive && !process.hasLeft) then?.(decision);
      });
    }
    for (const replacement of process.core.replacements.ended.splice(0)) {
      const key = `${replacement.id}/${replacement.ticket}`;
      this.trace(`process ${process.number} has replaced ${key}: ${replacement.made?.members.join(' ') ?? 'nothing'}`);
      this.oracle.replaced(process.number, replacement);
      const then = process.replacing.get(key);
      process.replacing.delete(key);
      this.at(0, () => {
        if (process.isAlive && !process.hasLeft) then?.(replacement);
      });
    }
  }

  // ---------------------------------------------------------------- processes that stand by

  /** The server passes a call on, as late as it likes, but it does pass it on. */
  private callByServer(caller: P, standby: P, bytes: Uint8Array): void {
    if (this.oracle.declared.has(caller.number) || this.prng.chance(1, 4)) return;
    this.think(() => this.act(standby, () => standby.core.handleMessage(caller.number, bytes)));
  }

  private takeStandbyEvent(process: P, event: StandbyEvent): void {
    const { number } = process;
    this.trace(`process ${number}, which stands by: ${event.kind} ${event.id}`);
    if (event.kind === 'called') {
      // The server is told before.
      this.tellPool(number, false);
      this.think(() => this.act(process, () => process.core.answerCall(event.id)));
      return;
    }
    if (event.kind === 'released') return this.tellPool(number, true);
    this.oracle.joined(number, event.id, event.members);
    this.at(0, () => {
      if (!process.isAlive) return;
      this.leaveWhenIdle(process);
      this.enter(process, event.id, event.members);
    });
  }

  private tellPool(number: number, isWaiting: boolean): void {
    if (isWaiting) this.pool.add(number);
    else this.pool.delete(number);
    for (const other of this.processes)
      if (other.number !== number && !this.absent.has(other.number))
        this.think(() => this.act(other, () => void other.core.standbys.set(number, isWaiting)));
  }

  /**
   * A process joins the job, if there is one more: the server tells it what there is to know, and everybody of it, each at its time. Once all have
   * heard of it they hear that it waits.
   */
  joinJob(): void {
    if (this.absent.size === 0 || !this.isServed) return;
    const number = this.series.take();
    this.oracle.enroll(number, true);
    this.absent.delete(number);
    const process = this.processes[number];
    const { core } = process;
    this.trace(`process ${number} joins`);
    for (const other of this.processes) {
      if (this.absent.has(other.number)) continue;
      if (this.oracle.declared.has(other.number)) this.takeOld(process, other.number);
      else core.addProcess(other.number, 1);
      if (this.oracle.left.has(other.number)) core.handleLeft(other.number);
    }
    for (const other of this.pool) if (!this.oracle.declared.has(other)) core.standbys.set(other, true);
    core.standBy();
    for (const other of this.series.join(number)) {
      this.hearOfJoin(() =>
        this.act(this.processes[other], () => {
          this.processes[other].core.addProcess(number, 1);
          this.series.hear(other, number);
          this.takeReady();
        }),
      );
    }
    this.takeReady();
  }

  private hearOfJoin(run: () => void): void {
    this.at(this.joinPrng.pick([0, 100, 3000, 50_000]), run);
  }

  /** That one was dead before this process came. */
  protected takeOld({ core }: P, number: number): void {
    core.knowledge.takeOld({ serial: 1, number, incarnation: 1, evidence: EVIDENCE.ENDED, text: 'it ended before' });
  }

  /** The server knows that that process is over. */
  protected processOver(number: number): void {
    this.series.end(number);
    this.takeReady();
  }

  private takeReady(): void {
    for (const number of this.series.ready.splice(0)) if (this.isServed) this.at(0, () => this.tellPool(number, true));
  }

  /** A member uses a communicator that has just come into being. */
  private enter(process: P, id: number, members: readonly number[]): void {
    this.trace(`process ${process.number} enters ${id} of ${members.join(' ')}`);
    process.ids.add(id);
    process.joint.push(id);
    this.onOpened(process, id);
    this.use(process, id);
  }

  /** What the members of a communicator do on it: the same at all of them. */
  private use(process: P, id: number): void {
    const more = new Prng(id).chance(1, 3) && this.spareUse === 'standby' ? OPERATION.REPLACE_SOME : OPERATION.AGREE;
    this.thread(process, id, SERIES.PROGRAM, [OPERATION.AGREE, more]);
  }

  // ---------------------------------------------------------------- programs

  /** Calls one agreement, and goes on with its decision. */
  call(process: P, id: number, series: SeriesNumber, operation: Operation, then: (decision: Decision) => void): void {
    this.act(process, () => {
      const { core, number } = process;
      if (this.prng.chance(1, 2)) {
        core.getFailed(id);
        core.ackFailed(id, this.prng.chance(1, 2) ? undefined : this.prng.below(3));
      }
      const flag = this.prng.nextU32() | 0xff;
      const isCreating = operation !== OPERATION.AGREE;
      if (isCreating) process.creations++;
      // It must be known before it begins: alone, it is decided at once.
      const q = core.nextOf(id, series);
      process.continuations.set(`${id}/${series}/${q}`, (decision) => {
        then(decision);
        if (isCreating) this.endCreation(process);
      });
      this.trace(`process ${number} calls ${id}/${series}/${q}`);
      if (core.begin(id, series, { operation, flag }) !== q) throw new Error('another number than was said');
    });
  }

  /** Calls replace(), and goes on when it has ended. */
  private callReplace(process: P, id: number, operation: Operation, then: (replacement: Replacement) => void): void {
    this.act(process, () => {
      const { core, number } = process;
      process.creations++;
      const q = core.nextOf(id, SERIES.PROGRAM);
      process.replacing.set(`${id}/${q}`, (replacement) => {
        then(replacement);
        this.endCreation(process);
      });
      process.waits = this.mayWait && this.joinPrng.chance(3, 4);
      this.at(this.joinPrng.pick([10_000, 100_000, 300_000]), () => {
        process.waits = false;
      });
      this.oracle.beginReplace(number, id, q);
      this.trace(`process ${number} calls replace on ${id}/${q}`);
      if (core.beginReplace(id, operation) !== q) throw new Error('another number than was said');
    });
  }

  private think(run: () => void): void {
    this.at(this.prng.pick([0, 0, 10, 300, 20_000]), run);
  }

  /** The same, or when the process hears of the next death. */
  private thinkOrReact(process: P, run: () => void): void {
    if (!this.prng.chance(1, 8)) return this.think(run);
    let hasRun = false;
    const once = () => {
      if (hasRun) return;
      hasRun = true;
      run();
    };
    process.reactions.push(once);
    this.at(50_000, once);
  }

  /** A thread of calls of one series, one after the other; `first` of them were called by a predecessor. */
  private thread(process: P, id: number, series: SeriesNumber, operations: readonly Operation[], first = 0): void {
    process.threads++;
    const step = (i: number): void => {
      if (!process.isAlive || process.hasLeft) return;
      if (i >= operations.length) {
        if (--process.threads === 0) process.whenIdle?.();
        return;
      }
      if (series === SERIES.PROGRAM && (operations[i] === OPERATION.REPLACE_ALL || operations[i] === OPERATION.REPLACE_SOME)) {
        this.think(() =>
          this.callReplace(process, id, operations[i], (replacement) => {
            this.followReplace(process, replacement);
            step(i + 1);
          }),
        );
        return;
      }
      this.thinkOrReact(process, () =>
        this.call(process, id, series, operations[i], (decision) => {
          this.follow(process, decision, operations);
          step(i + 1);
        }),
      );
    };
    step(first);
  }

  /** What a program does with a decision: it makes the communicator that it is about, and uses it. */
  private follow(process: P, decision: Decision, operations: readonly Operation[]): void {
    const { value, id, series } = decision;
    if (verdictOf(value).isMismatch) throw new Error('calls that do not belong together');
    if (series === SERIES.RECOVERY) {
      for (const { number } of value.successions) this.callIn(process, number, decision, operations);
      return;
    }
    if (value.newId === 0) return;
    this.open(process, value.newId, membersAfter(process.core.membersOf(id), value));
    this.use(process, value.newId);
  }

  private followReplace(process: P, { made, value }: Replacement): void {
    if (verdictOf(value).isMismatch) throw new Error('calls that do not belong together');
    if (made === undefined) return;
    if (made.hasSuccessors) return this.enter(process, made.id, made.members);
    this.open(process, made.id, made.members);
    this.use(process, made.id);
  }

  /** A process takes the place of a dead one: it repeats the program's calls from the first on. */
  private callIn(caller: P, number: number, { id, q, value }: Decision, operations: readonly Operation[]): void {
    const key = `${number} ${id}/1/${q}`;
    // The server that calls a standby in listens to nobody whom it has declared dead.
    if (this.calledIn.has(key) || this.oracle.declared.has(caller.number)) return;
    this.calledIn.add(key);
    const successor = this.processes[number];
    const members = [...caller.core.membersOf(id)];
    for (const succession of value.successions) members[succession.rank] = succession.number;
    successor.creations++;
    this.think(() => {
      if (!successor.isAlive) return;
      this.open(successor, id, members, { generation: value.generation + 1, next: [0, q + 1], keepsDecisions: true });
      this.endCreation(successor);
      this.program(successor, this.programOperations, operations, q + 1);
    });
  }

  /** The program of a member: both series, then one more agreement, behind which it leaves. */
  program(process: P, operations: readonly Operation[], recoveries: readonly Operation[], firstRecovery = 0): void {
    this.programOperations = operations;
    this.leaveWhenIdle(process, FIRST_ID);
    process.threads++;
    this.thread(process, FIRST_ID, SERIES.PROGRAM, operations);
    this.thread(process, FIRST_ID, SERIES.RECOVERY, recoveries, firstRecovery);
    if (--process.threads === 0) process.whenIdle?.();
  }

  /** Behind its program come agreements that nobody needs, on all communicators which others might still be waiting in: then it leaves. */
  private leaveWhenIdle(process: P, ...first: readonly number[]): void {
    process.whenIdle = () => {
      process.whenIdle = undefined;
      const ids = [...first, ...process.joint];
      let open = ids.length;
      process.threads++;
      const leave = () => {
        process.threads--;
        this.leave(process);
      };
      for (const id of ids) {
        this.think(() =>
          this.call(process, id, SERIES.PROGRAM, OPERATION.AGREE, () => {
            if (--open === 0) this.think(leave);
          }),
        );
      }
    };
  }

  revoke(process: P, id: number): void {
    if (!process.isAlive || process.hasLeft || !process.ids.has(id)) return;
    this.oracle.revoked.add(id);
    this.trace(`process ${process.number} revokes ${id}`);
    this.act(process, () => process.core.revoke(id));
  }

  /** How many messages of agreements were sent. */
  get agreementMessages(): number {
    return [SERVICE.STATE, SERVICE.PROPOSE, SERVICE.ACK, SERVICE.DECIDE].reduce((sum, type) => sum + (this.sent[type] ?? 0), 0);
  }

  /** Programs of living processes that have not come to their end. */
  get unfinished(): string[] {
    return this.processes
      .filter(({ number, isAlive, hasLeft, threads, creations }) => {
        return isAlive && !hasLeft && !this.oracle.declared.has(number) && (threads > 0 || creations > 0);
      })
      .map(({ number, threads, creations }) => `process ${number}: ${threads} threads, ${creations} creations`);
  }
}
