// A small world for src/ulfm alone: processes, channels that keep the order of each pair and nothing else, deaths between any two messages,
// and news of them that comes as late as it likes. All of it is drawn from a seed. The programs call agreements in two series, make
// communicators of their decisions, succeed the dead, revoke, and leave at the end.

import { Bitmap } from '../../../src/ulfm/bitmap.ts';
import { EVIDENCE } from '../../../src/ulfm/knowledge.ts';
import type { AgreementListener } from '../../../src/ulfm/states.ts';
import { type Decision, Ulfm, verdictOf } from '../../../src/ulfm/ulfm.ts';
import { type Offer, OPERATION, type Operation } from '../../../src/ulfm/values.ts';
import { SERIES, SERVICE, type SeriesNumber } from '../../../src/ulfm/wire.ts';
import { Prng } from '../../../src/util/prng.ts';
import { UlfmOracle } from '../../../tools/sim/ulfm-oracle.ts';

export interface SmallWorldOptions {
  seed: number;
  members: number;
  /** Processes beyond the members, which may succeed them. */
  spares?: number;
  /** Of the communicator's first members; the program's series is repeated by successors. */
  succeeds?: boolean;
  /** Every message takes exactly this long, and so does nothing else: for counting. */
  fixedDelay?: number;
  listener?: AgreementListener;
  trace?: (line: string) => void;
}

/** The communicator that the members begin with. */
export const FIRST_ID = 2;

interface Process {
  readonly number: number;
  readonly core: Ulfm;
  isAlive: boolean;
  hasLeft: boolean;
  /** Messages that it sends until it dies. */
  sendsLeft: number;
  /** Calls under way of which a communicator comes. */
  creations: number;
  readonly continuations: Map<string, (decision: Decision) => void>;
  readonly ids: Set<number>;
  /** Threads of its program that run. */
  threads: number;
  whenIdle: (() => void) | undefined;
  nextId: number;
  /** The depth of the longest chain of messages that has reached it. */
  depth: number;
}

interface Event {
  at: number;
  order: number;
  run: () => void;
}

export class SmallWorld {
  readonly options: SmallWorldOptions;
  readonly prng: Prng;
  readonly oracle = new UlfmOracle();
  readonly processes: Process[] = [];
  now = 0;
  /** Service messages by type. */
  readonly sent: number[] = [];
  deepest = 0;
  private readonly heap: Event[] = [];
  private order = 0;
  private readonly lastArrival = new Map<number, number>();
  private readonly usedSpares = new Set<number>();
  private readonly calledIn = new Set<string>();
  private readonly delays: readonly number[];
  private readonly newsDelays: readonly number[];

  constructor(options: SmallWorldOptions) {
    this.options = options;
    this.prng = new Prng(options.seed).split('small world');
    const { members, spares = 0 } = options;
    this.delays = this.prng.pick([[1], [1, 10], [1, 10, 100, 1000], [1, 1, 1, 1, 5000], [100]]);
    this.newsDelays = this.prng.pick([[1], [1, 100], [1, 10, 100, 1000, 10_000], [10_000], [1, 50_000]]);
    for (let number = 0; number < members + spares; number++) this.processes.push(this.makeProcess(number));
    for (const { core } of this.processes) for (const { number } of this.processes) core.addProcess(number, 1);
    const first = Array.from({ length: members }, (_, rank) => rank);
    for (const process of this.processes.slice(0, members))
      this.open(process, FIRST_ID, first, { keepsDecisions: options.succeeds === true });
  }

  private makeProcess(number: number): Process {
    const core: Ulfm = new Ulfm({
      self: number,
      incarnation: 1,
      offer: (id, series, operation, failed) => this.offer(process, id, series, operation, failed),
      rendezvousWith: (id) => [...core.membersOf(id).keys()].filter(() => this.prng.chance(1, 16)),
      isCreating: () => process.creations > 0,
      listener: this.oracle.listenerOf(number, this.options.listener),
    });
    const process: Process = {
      number,
      core,
      isAlive: true,
      hasLeft: false,
      sendsLeft: Number.POSITIVE_INFINITY,
      creations: 0,
      continuations: new Map(),
      ids: new Set(),
      threads: 0,
      whenIdle: undefined,
      nextId: 1,
      depth: 0,
    };
    this.oracle.addProcess(number, core);
    return process;
  }

  private offer({ number, core }: Process, _id: number, series: SeriesNumber, operation: Operation, failed: readonly number[]): Offer {
    const newId = series === SERIES.RECOVERY ? 0 : 10_000 * (this.processes[number].nextId++ + 1) + number;
    if (operation === OPERATION.SHRINK) return { newId, successions: [] };
    const { members } = this.options;
    const spares = this.processes
      .slice(members)
      .filter((spare) => !this.usedSpares.has(spare.number) && !core.knowledge.isGone(spare.number));
    const successions = failed.slice(0, spares.length).map((rank, i) => ({ rank, number: spares[i].number }));
    for (const succession of successions) this.usedSpares.add(succession.number);
    return { newId, successions };
  }

  // ---------------------------------------------------------------- time

  at(delay: number, run: () => void): void {
    const event = { at: this.now + delay, order: this.order++, run };
    const { heap } = this;
    let i = heap.length;
    heap.push(event);
    for (; i > 0; ) {
      const parent = (i - 1) >>> 1;
      if (isSooner(heap[parent], event)) break;
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = event;
  }

  private next(): Event | undefined {
    const { heap } = this;
    const top = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isSooner(heap[child + 1], heap[child])) child++;
      if (isSooner(last, heap[child])) break;
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = last;
    return top;
  }

  /** Runs until nothing is left to happen. */
  run(eventsMax = 2_000_000): void {
    for (let events = 0; ; events++) {
      const event = this.next();
      if (event === undefined) return;
      if (events > eventsMax) throw new Error('the world does not come to rest');
      this.now = event.at;
      event.run();
    }
  }

  // ---------------------------------------------------------------- processes

  private open(process: Process, id: number, members: readonly number[], options = {}): void {
    this.trace(`process ${process.number} opens ${id} of ${members.join(' ')}`);
    process.ids.add(id);
    this.act(process, () => process.core.open(id, members, options));
  }

  /** Does something at a process, and sends what comes of it: it may die between any two messages. */
  act(process: Process, run: () => void): void {
    if (!process.isAlive || process.hasLeft) return;
    const { core, number } = process;
    run();
    const mayDeath = this.prng.chance(1, 2);
    if (mayDeath) this.takeDecisions(process);
    for (const { to, bytes } of core.messages.splice(0)) {
      if (process.sendsLeft-- <= 0) this.kill(number);
      if (!process.isAlive) return;
      this.send(process, to, bytes);
    }
    core.deaths.length = 0;
    core.revocations.length = 0;
    if (core.ownDeath !== undefined) {
      process.isAlive = false;
      return;
    }
    if (!mayDeath) this.takeDecisions(process);
  }

  private takeDecisions(process: Process): void {
    for (const decision of process.core.decisions.splice(0)) {
      const key = `${decision.id}/${decision.series}/${decision.q}`;
      this.trace(`process ${process.number} decides ${key}`);
      this.oracle.decide(process.number, decision);
      const then = process.continuations.get(key);
      process.continuations.delete(key);
      this.at(0, () => {
        if (process.isAlive && !process.hasLeft) then?.(decision);
      });
    }
  }

  private send(process: Process, to: number, bytes: Uint8Array): void {
    const { number } = process;
    this.sent[bytes[1]] = (this.sent[bytes[1]] ?? 0) + 1;
    const pair = number * 65_536 + to;
    const delay = this.options.fixedDelay ?? this.prng.pick(this.delays) * this.prng.between(1, 3);
    const arrival = Math.max(this.lastArrival.get(pair) ?? 0, this.now + delay);
    this.lastArrival.set(pair, arrival);
    const depth = process.depth + 1;
    this.at(arrival - this.now, () => {
      const target = this.processes[to];
      // What was under way when its sender died has arrived, or never will.
      if (!process.isAlive && this.prng.chance(1, 2)) {
        this.lost.add(pair);
      }
      if (this.lost.has(pair) || !target.isAlive) return;
      target.depth = Math.max(target.depth, depth);
      this.deepest = Math.max(this.deepest, depth);
      this.trace(`process ${to} gets type ${bytes[1]}${bytes[3] & 1 ? ' direct' : ''} of ${number}`);
      this.act(target, () => target.core.handleMessage(number, bytes));
    });
  }
  private readonly lost = new Set<number>();

  kill(number: number): void {
    const process = this.processes[number];
    if (!process.isAlive || process.hasLeft) return;
    this.trace(`process ${number} dies`);
    process.isAlive = false;
    this.oracle.kill(number);
    this.spreadNews(number);
  }

  /** A process is declared dead while it lives: the others hear of it, and at some time it does. */
  declare(number: number): void {
    const process = this.processes[number];
    if (!process.isAlive || process.hasLeft) return;
    this.trace(`process ${number} is declared dead`);
    this.oracle.declared.add(number);
    this.spreadNews(number);
    this.at(this.prng.pick(this.newsDelays), () => this.tell(process, number));
  }

  private spreadNews(number: number): void {
    for (const other of this.processes) {
      if (other.number !== number) this.at(this.prng.pick(this.newsDelays) * this.prng.between(1, 3), () => this.tell(other, number));
    }
  }

  private tell(process: Process, number: number): void {
    this.act(process, () => {
      process.core.handleNotice({ serial: 0, number, incarnation: 1, evidence: EVIDENCE.ENDED, text: 'it was killed' });
    });
  }

  /** Says BYE to everybody: it comes behind all that was sent before it. */
  leave(process: Process): void {
    if (!process.isAlive || process.hasLeft) return;
    this.trace(`process ${process.number} leaves`);
    process.hasLeft = true;
    this.oracle.left.add(process.number);
    for (const other of this.processes) {
      if (other === process) continue;
      const pair = process.number * 65_536 + other.number;
      const arrival = Math.max(this.lastArrival.get(pair) ?? 0, this.now + this.prng.pick(this.delays));
      this.at(arrival - this.now, () => this.act(other, () => other.core.handleLeft(process.number)));
    }
  }

  // ---------------------------------------------------------------- programs

  /** Calls one agreement, and goes on with its decision. */
  call(process: Process, id: number, series: SeriesNumber, operation: Operation, then: (decision: Decision) => void): void {
    this.act(process, () => {
      const { core, number } = process;
      if (this.prng.chance(1, 2)) {
        core.getFailed(id);
        core.ackFailed(id, this.prng.chance(1, 2) ? undefined : this.prng.below(3));
      }
      const flag = this.prng.nextU32() | 0xff;
      const isCreating = operation !== OPERATION.AGREE;
      if (isCreating) process.creations++;
      const acked = Bitmap.of(
        core.membersOf(id).length,
        core.getFailed(id).filter((rank) => core.isAcknowledged(id, rank)),
      );
      // It must be known before it begins: alone, it is decided at once.
      const q = core.nextOf(id, series);
      this.oracle.call(number, id, series, q, { operation, flag: flag >>> 0, acked });
      process.continuations.set(`${id}/${series}/${q}`, (decision) => {
        then(decision);
        if (isCreating && --process.creations === 0) core.dropEarly();
      });
      this.trace(`process ${number} calls ${id}/${series}/${q}`);
      if (core.begin(id, series, { operation, flag }) !== q) throw new Error('another number than was said');
    });
  }

  private think(run: () => void): void {
    this.at(this.prng.pick([0, 0, 10, 300, 20_000]), run);
  }

  /** A thread of calls of one series, one after the other; `first` of them were called by a predecessor. */
  thread(process: Process, id: number, series: SeriesNumber, operations: readonly Operation[], first = 0): void {
    process.threads++;
    const step = (i: number): void => {
      if (!process.isAlive || process.hasLeft) return;
      if (i >= operations.length) {
        if (--process.threads === 0) process.whenIdle?.();
        return;
      }
      this.think(() =>
        this.call(process, id, series, operations[i], (decision) => {
          this.follow(process, decision, operations);
          step(i + 1);
        }),
      );
    };
    step(first);
  }

  /** What a program does with a decision: it makes the communicator that it is about, and uses it. */
  private follow(process: Process, decision: Decision, operations: readonly Operation[]): void {
    const { value, id, series, q } = decision;
    const { lacksSuccessors, isMismatch } = verdictOf(value);
    if (isMismatch) throw new Error('calls that do not belong together');
    if (series === SERIES.RECOVERY) {
      for (const { rank, number } of value.successions) this.callIn(process, number, rank, decision, operations);
      return;
    }
    if (value.newId === 0 || lacksSuccessors) return;
    const successors = new Map(value.successions.map(({ rank, number }) => [rank, number]));
    const members = process.core
      .membersOf(id)
      .map((number, rank) => successors.get(rank) ?? (value.failed.has(rank) ? -1 : number))
      .filter((number) => number >= 0);
    const enter = (member: Process) => {
      this.open(member, value.newId, members);
      this.thread(member, value.newId, SERIES.PROGRAM, [OPERATION.AGREE, OPERATION.AGREE]);
    };
    enter(process);
    for (const number of successors.values()) {
      const key = `${number} ${id}/${series}/${q}`;
      if (this.calledIn.has(key) || this.oracle.declared.has(process.number)) continue;
      this.calledIn.add(key);
      const successor = this.processes[number];
      successor.creations++;
      this.think(() => {
        if (!successor.isAlive) return;
        enter(successor);
        if (--successor.creations === 0) successor.core.dropEarly();
      });
    }
  }

  /** A process takes the place of a dead one: it repeats the program's calls from the first on. */
  private callIn(caller: Process, number: number, _rank: number, { id, q, value }: Decision, operations: readonly Operation[]): void {
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
      if (--successor.creations === 0) successor.core.dropEarly();
      this.program(successor, this.programOperations, operations, q + 1);
    });
  }
  programOperations: readonly Operation[] = [];

  /** The program of a member: both series, then one more agreement, behind which it leaves. */
  program(process: Process, operations: readonly Operation[], recoveries: readonly Operation[], firstRecovery = 0): void {
    this.programOperations = operations;
    process.whenIdle = () => {
      process.whenIdle = undefined;
      this.think(() => this.call(process, FIRST_ID, SERIES.PROGRAM, OPERATION.AGREE, () => this.think(() => this.leave(process))));
    };
    process.threads++;
    this.thread(process, FIRST_ID, SERIES.PROGRAM, operations);
    this.thread(process, FIRST_ID, SERIES.RECOVERY, recoveries, firstRecovery);
    if (--process.threads === 0) process.whenIdle();
  }

  revoke(process: Process, id: number): void {
    if (!process.isAlive || process.hasLeft || !process.ids.has(id)) return;
    this.oracle.revoked.add(id);
    this.trace(`process ${process.number} revokes ${id}`);
    this.act(process, () => process.core.revoke(id));
  }

  private trace(line: string): void {
    this.options.trace?.(`${this.now} ${line}`);
  }

  /** How many messages of agreements were sent. */
  get agreementMessages(): number {
    return [SERVICE.STATE, SERVICE.PROPOSE, SERVICE.ACK, SERVICE.DECIDE].reduce((sum, type) => sum + (this.sent[type] ?? 0), 0);
  }
}

function isSooner(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** One random run. */
export function runSmallWorld(seed: number, options: Partial<SmallWorldOptions> = {}): SmallWorld {
  const prng = new Prng(seed).split('plan');
  const members = options.members ?? prng.pick([1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 16]);
  const succeeds = prng.chance(1, 3);
  const spares = succeeds || prng.chance(1, 2) ? prng.between(1, 4) : 0;
  const world = new SmallWorld({ seed, members, spares, succeeds, ...options });
  const calls = prng.between(1, 4);
  const kinds = succeeds
    ? [OPERATION.AGREE]
    : [OPERATION.AGREE, OPERATION.AGREE, OPERATION.SHRINK, OPERATION.REPLACE_SOME, OPERATION.REPLACE_ALL];
  const operations = Array.from({ length: calls }, () => prng.pick(kinds));
  const recoveries = Array.from({ length: prng.between(0, 3) }, () => (succeeds ? OPERATION.REPLACE_SOME : OPERATION.AGREE));
  for (const process of world.processes.slice(0, members)) world.program(process, operations, recoveries);
  // Deaths: at some time, or after so many messages, several in a row.
  const deaths = prng.pick([0, 1, 1, 1, 2, 2, 3, members]);
  for (let i = 0; i < deaths; i++) {
    const number = prng.chance(2, 3) ? prng.below(Math.min(3, members)) : prng.below(members + spares);
    if (prng.chance(1, 8)) world.at(prng.pick([0, 10, 200, 3000]), () => world.declare(number));
    else if (prng.chance(1, 3)) world.at(prng.below(prng.pick([5, 50, 1000, 40_000])), () => world.kill(number));
    else world.processes[number].sendsLeft = prng.below(prng.pick([members, 4 * members, 12 * members]));
  }
  if (prng.chance(1, 4)) {
    const id = FIRST_ID;
    const process = prng.pick(world.processes.slice(0, members));
    world.at(prng.below(prng.pick([10, 1000])), () => world.revoke(process, id));
  }
  world.run();
  world.oracle.checkEnd((number, id) => world.processes[number].ids.has(id));
  return world;
}
