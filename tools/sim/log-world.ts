// The simulated world of logs and successions: each process has the production engine, PML and BML, with a tap and a log. A program runs on the
// members (log-program.ts); saves are cut when all are at one and nothing is under way, and decided later; a process that dies is succeeded by
// a standby, which begins with the newest committed save. What is decided (saves, successions) has one order, and each process hears of it as
// late as the run has drawn. Standing in for agreement (src/ulfm, which has a profile of its own), the world decides.
import { MultirailError } from '../../src/errors.ts';
import type { HeldRecords } from '../../src/ft/events/holdings.ts';
import { SendLog } from '../../src/ft/log/send-log.ts';
import type { Pml } from '../../src/pml/pml.ts';
import type { RecvRequest } from '../../src/pml/records.ts';
import type { Cut, Succession, Sync } from '../../src/pml/succession.ts';
import { crc32cJs } from '../../src/util/crc32c.ts';
import { Iov } from '../../src/util/iov.ts';
import type { Prng } from '../../src/util/prng.ts';
import { uninitialized } from './gather.ts';
import { OUTCOMES_CTX, Outcomes } from './log-outcomes.ts';
import { COVERED, type Program } from './log-program.ts';
import { Steps, type StepsHost } from './log-steps.ts';
import { awaitsSuccessors, beginsOf, type Decision, type Image, newLogCounters, newWorker, type Save, type Worker } from './log-worker.ts';
import { OracleError } from './oracle.ts';
import { World, type WorldOptions } from './world.ts';

/** SYNCs between members. */
const SYNC_CTX = 7;
const SYNC_BYTES_MAX = 262_144;

export interface LogWorldOptions extends WorldOptions {
  members: number;
  logBytesMax: number;
  slabBytes: number;
  /** Bounds of recorded outcomes, and of a batch of them. */
  recordsBytesMax: number;
  batchBytesMax: number;
  /** So many die shortly after an outcome. */
  strikes: number;
  /** Delays after which somebody hears of something, in microseconds: one is drawn each time. */
  newsUs: readonly number[];
  /** Successors do not repeat themselves. */
  drifts: boolean;
  /** A process dies just now. */
  onDeath: () => void;
}

export class LogWorld implements StepsHost {
  readonly world: World;
  readonly workers: Worker[] = [];
  readonly counters = newLogCounters();
  deaths = 0;
  isQuiet = false;
  private readonly prng: Prng;
  private readonly program: Program;
  private readonly steps: Steps;
  /** Of a wild program. */
  private readonly outcomes: Outcomes | undefined;
  private epoch = 0;
  private readonly options: LogWorldOptions;
  private save: Save;
  private saving: { readonly images: readonly Image[] } | undefined;
  /** Members as decided. */
  private members: number[];
  private nextStandby: number;
  private isDeciding = false;
  private savingSinceMs = 0;
  /** Members have been at so many saves. Those that were abandoned are passed by whoever repeats them. */
  private savesPassed = 0;
  /** The run is over: everybody goes back, or a program did not repeat itself. */
  over: string | undefined;

  constructor(prng: Prng, program: Program, options: LogWorldOptions) {
    this.prng = prng;
    this.program = program;
    this.options = options;
    this.steps = new Steps(this, program);
    if (program.isWild)
      this.outcomes = new Outcomes({
        ranks: options.members,
        batchBytesMax: options.batchBytesMax,
        bytesMax: options.recordsBytesMax,
        pmlOf: (number) => this.pmlOf(number),
        wake: (number) => this.wake(number),
        sentPart: ({ number }) => {
          if (this.strikesLeft === 0 || !this.prng.chance(1, 3)) return;
          this.strikesLeft--;
          this.at(this.prng.pick([0, 300, 1000]), () => this.kill(number));
        },
        took: (worker, request, source, seq) => {
          this.steps.took(worker, request, source, seq);
          this.strike(worker);
        },
      });
    this.world = new World({ ...options, services: new Set([SYNC_CTX, OUTCOMES_CTX, ...COVERED]), onTurn: (rank) => this.onTurn(rank) });
    this.members = Array.from({ length: options.members }, (_, rank) => rank);
    this.nextStandby = options.members;
    this.strikesLeft = options.strikes;
    const none: Cut = { flows: [], unexpected: [], released: 0 };
    this.save = { images: this.members.map((rank) => ({ place: 0, state: rank + 17, cut: none, outcomes: undefined })) };
  }

  private engine(number: number) {
    return this.world.processes[number].engine;
  }

  wake(number: number): void {
    this.world.processes[number].driver.ready = true;
  }

  private at(us: number, run: () => void): void {
    const { fabric } = this.world;
    fabric.at(fabric.nowUs + us, run);
  }

  pmlOf(number: number): Pml {
    return this.engine(number).pml;
  }

  later(run: () => void): void {
    this.at(this.drawUs(), run);
  }

  flip(): boolean {
    return this.prng.chance(1, 2);
  }

  passes(worker: Worker): boolean {
    return this.countOf(worker) <= this.savesPassed;
  }

  private trace(text: string): void {
    if (this.world.fabric.tracing) this.world.fabric.note(text);
  }

  start(): void {
    for (let number = 0; number < this.options.ranks; number++) {
      const log = new SendLog({ bytesMax: this.options.logBytesMax, slabBytes: this.options.slabBytes });
      const worker = newWorker(number, log, number < this.options.members);
      this.workers.push(worker);
      const { pml } = this.engine(number);
      pml.onUnexpected = () => this.wake(number);
      pml.admits = (ctx) => !worker.freed.has(ctx);
      for (const { rank } of pml.peers) {
        if (rank === number) continue;
        this.listenTo(worker, rank);
        this.outcomes?.listenTo(worker, rank);
      }
    }
    for (const number of this.members) {
      const worker = this.workers[number];
      this.join(worker, number, this.members, false);
      worker.state = number + 17;
      worker.runs = true;
      this.wake(number);
    }
  }

  private join(worker: Worker, rank: number, members: readonly number[], isNew: boolean): void {
    worker.rank = rank;
    worker.members = [...members];
    const covered = new Set(COVERED);
    const outcomes = this.outcomes?.join(worker, isNew);
    worker.succession = this.engine(worker.number).pml.log(
      { log: worker.log, covers: (ctx) => covered.has(ctx), digest: crc32cJs, ...(outcomes === undefined ? {} : { outcomes }) },
      members,
    );
    worker.succession.tap.mustKeep = awaitsSuccessors(worker);
  }

  // ---------------------------------------------------------------- deaths and decisions

  kill(number: number): void {
    if (this.isQuiet || this.world.isDead(number) || this.over !== undefined) return;
    const isMember = this.members.includes(number);
    if (this.standbysLeft - (isMember || number < this.nextStandby ? 0 : 1) < this.deadMembers().length + (isMember ? 1 : 0)) return;
    this.trace(`process ${number} dies`);
    this.world.kill(number);
    this.deaths++;
    this.options.onDeath();
    for (const other of this.workers) if (other.number !== number) this.at(this.drawUs(), () => this.tell(other.number, number));
    this.decideLater();
  }

  private strikesLeft = 0;

  /** An outcome of that process was just now: it may die before anybody else has it, or whoever holds it may, and then it. */
  private strike({ number, rank, members }: Worker): void {
    if (this.strikesLeft === 0 || !this.prng.chance(1, 8)) return;
    this.strikesLeft--;
    const soonUs = this.prng.pick([0, 50, 300, 1000, 3000]);
    if (this.prng.chance(2, 3)) return this.at(soonUs, () => this.kill(number));
    const holder = members[this.outcomes?.holderOf(rank) ?? rank];
    this.at(soonUs, () => this.kill(holder));
    this.at(soonUs + this.prng.pick([5000, 20_000, 100_000]), () => this.kill(number));
  }

  /** One that was called in dies, if there is one. */
  killSuccessor(): void {
    const called = this.members.filter((number) => number >= this.options.members && !this.world.isDead(number));
    if (called.length > 0) this.kill(this.prng.pick(called));
  }

  private get standbysLeft(): number {
    let left = 0;
    for (let number = this.nextStandby; number < this.options.ranks; number++) if (!this.world.isDead(number)) left++;
    return left;
  }

  private deadMembers(): number[] {
    return this.members.filter((number) => this.world.isDead(number));
  }

  private drawUs(): number {
    return this.prng.pick(this.options.newsUs);
  }

  private tell(number: number, dead: number): void {
    if (this.world.isDead(number) || !this.world.isDead(dead)) return;
    const worker = this.workers[number];
    const mustHold = worker.log.isWhole && this.pmlOf(number).knownPeer(dead)?.failure === undefined;
    this.world.tellFailed(number, dead);
    const { failure, channel } = this.pmlOf(number).peer(dead);
    if (worker.isBack || !worker.members.includes(dead) || failure === undefined || channel !== undefined) return;
    if (mustHold) throw new OracleError(`F10: the log of process ${number} is whole, and ${dead}, which has died, is not held`);
    worker.notHeld.add(dead);
  }

  private decideLater(): void {
    if (this.isDeciding) return;
    this.isDeciding = true;
    this.at(this.drawUs() + 1, () => {
      this.isDeciding = false;
      this.decide();
    });
  }

  /** One decision: about the save that is under way, then about those that are dead by now. */
  private decide(): void {
    if (this.over !== undefined) return;
    const dead = this.deadMembers();
    if (this.saving !== undefined) {
      const committed = dead.length === 0 || this.prng.chance(1, 2);
      if (committed) this.save = this.saving;
      this.counters[committed ? 'saves' : 'abandoned']++;
      this.saving = undefined;
      this.announce({ kind: 'save', committed });
    }
    if (dead.length === 0) return;
    // A log that was given up and whose save is committed by this decision is whole again at whoever hears of it.
    for (const { succession } of this.members.map((number) => this.workers[number]))
      if (succession !== undefined) succession.tap.mustKeep = true;
    let isLost = false;
    const isWhole = this.members.every((number) => this.world.isDead(number) || this.willBeWhole(this.workers[number]));
    const lists = new Map<number, HeldRecords | undefined>();
    for (const [rank, number] of this.members.entries()) {
      if (this.outcomes === undefined || !this.world.isDead(number)) continue;
      const holder = this.members[this.outcomes.holderOf(rank)];
      if (!this.world.isDead(holder))
        lists.set(rank, this.outcomes.listOf(this.workers[holder], this.workers[number], this.save.images[rank]));
      if (lists.get(rank) === undefined) isLost = true;
    }
    if (isLost) this.counters.listsLost++;
    if (!isWhole || isLost) {
      this.counters.fallbacks++;
      this.over = 'all go back';
      return this.announce({ kind: 'all go back' });
    }
    const epoch = ++this.epoch;
    const list: { rank: number; dead: number; successor: number }[] = [];
    for (const [rank, number] of this.members.entries()) {
      if (!this.world.isDead(number)) continue;
      while (this.world.isDead(this.nextStandby)) this.nextStandby++;
      list.push({ rank, dead: number, successor: this.nextStandby++ });
    }
    for (const { rank, successor } of list) this.members[rank] = successor;
    this.counters.successions += list.length;
    this.announce({ kind: 'successors', epoch, list });
    for (const { rank, successor } of list) this.prepare(successor, rank, epoch, lists.get(rank));
  }

  /** In a real agreement it is the contribution of each; whoever gave its log up since the cut says no. */
  private willBeWhole({ log, succession, number }: Worker): boolean {
    if (succession === undefined) return true;
    for (const { channel, failure, rank } of this.engine(number).pml.peers)
      if (failure !== undefined && channel?.state !== 'HELD' && this.members.includes(rank)) return false;
    return log.isWhole;
  }

  private announce(decision: Decision): void {
    for (const worker of this.workers) {
      if (this.world.isDead(worker.number) || !worker.isCalled) continue;
      worker.news.push(decision);
      this.hearLater(worker);
    }
  }

  private hearLater(worker: Worker): void {
    if (worker.hears || worker.news.length === 0 || worker.succession === undefined) return;
    worker.hears = true;
    this.at(this.drawUs(), () => {
      worker.hears = false;
      const decision = worker.news.shift();
      if (this.world.isDead(worker.number) || decision === undefined) return;
      this.hear(worker, decision);
      this.hearLater(worker);
      this.wake(worker.number);
    });
  }

  private hear(worker: Worker, decision: Decision): void {
    const { succession } = worker;
    if (succession === undefined) return;
    this.trace(`process ${worker.number} hears: ${decision.kind}`);
    switch (decision.kind) {
      case 'save': {
        const { cut } = worker;
        // Decided before this successor came.
        if (cut === undefined) return;
        worker.cut = undefined;
        if (!decision.committed) {
          worker.recorder?.abandon();
          return succession.abandonCut();
        }
        worker.recorder?.commit();
        succession.commit(cut);
        worker.logBegins = beginsOf(worker.members, cut);
        return this.checkLog(worker);
      }
      case 'all go back':
        for (const { number } of this.workers) this.tell(worker.number, number);
        return this.goBack(worker);
      case 'successors': {
        for (const { rank, dead, successor } of decision.list) {
          this.tell(worker.number, dead);
          for (const { isAgain, request } of worker.posted)
            if (isAgain && !request.done && (request as RecvRequest).source === dead) this.counters.persistentHeld++;
          succession.succeed(dead, successor);
          worker.members[rank] = successor;
        }
        this.checkLog(worker);
        // Only now: until all of whom it is decided are held here, nothing else keeps the log.
        succession.tap.mustKeep = awaitsSuccessors(worker);
        worker.recorder?.beginEpoch(decision.epoch);
        for (const { successor } of decision.list) this.sync(worker, successor);
      }
    }
  }

  /** A log that is whole has every number from that of the newest committed save to the newest, in order, and no other. */
  private checkLog({ number, rank, members, log, logBegins }: Worker): void {
    if (!log.isWhole) return;
    const { pml } = this.engine(number);
    for (const [other, member] of members.entries()) {
      if (other === rank) continue;
      const due = new Map<number, number>();
      for (const { ctx, seq } of log.messagesTo(member)) {
        const expected = due.get(ctx) ?? logBegins.get(`${other}/${ctx}`) ?? 0;
        if (seq !== expected)
          throw new OracleError(`F10: the log of rank ${rank} has number ${seq} to rank ${other} where ${expected} is due`);
        due.set(ctx, expected + 1);
      }
      for (const [ctx, { nextSeq }] of pml.peer(member).flowsOut) {
        const last = due.get(ctx) ?? logBegins.get(`${other}/${ctx}`) ?? 0;
        if (COVERED.includes(ctx) && last !== nextSeq)
          throw new OracleError(`F10: the log of rank ${rank} ends at ${last} of context ${ctx} to rank ${other}; ${nextSeq} is next`);
      }
    }
  }

  /** The standby is called in with what has been decided so far. */
  private prepare(number: number, rank: number, epoch: number, list: HeldRecords | undefined): void {
    const image = this.save.images[rank];
    const members = [...this.members];
    this.workers[number].isCalled = true;
    this.at(this.drawUs(), () => {
      if (this.world.isDead(number) || this.over !== undefined) return;
      const worker = this.workers[number];
      this.join(worker, rank, members, true);
      const { cut } = image;
      worker.recorder?.restore(image.outcomes, list);
      worker.recorder?.beginEpoch(epoch);
      worker.succession?.restore({
        flows: cut.flows.map((flow) => ({ ...flow, peer: members[flow.peer] })),
        unexpected: cut.unexpected.map((message) => ({ ...message, source: members[message.source] })),
      });
      worker.logBegins = new Map(cut.flows.map(({ peer, ctx, nextOut }) => [`${peer}/${ctx}`, nextOut]));
      worker.place = image.place;
      worker.state = image.state;
      if (this.options.drifts) {
        worker.drifts = true;
        worker.state ^= 1;
      }
      for (const member of members) if (member !== number) this.sync(worker, member);
      this.wake(number);
      this.hearLater(worker);
    });
  }

  private sync(worker: Worker, member: number): void {
    const { succession } = worker;
    if (succession === undefined) return;
    const sync = succession.syncFor(member);
    const { pml } = this.engine(worker.number);
    if (pml.knownPeer(member)?.failure === undefined)
      pml.isend(member, SYNC_CTX, 0, new Iov([new TextEncoder().encode(JSON.stringify(sync))]));
    this.trySync(worker, member);
  }

  private trySync(worker: Worker, member: number): void {
    const sync = worker.syncs.get(member);
    if (sync === undefined) return;
    const { counters } = this.pmlOf(worker.number);
    const stalled = counters.creditStalls;
    if (worker.succession?.takeSync(member, sync) === true) worker.syncs.delete(member);
    this.counters.stalledReplays += counters.creditStalls - stalled;
  }

  private listenTo(worker: Worker, source: number): void {
    const { pml } = this.engine(worker.number);
    const buffer = uninitialized(SYNC_BYTES_MAX);
    const read = ({ error, receivedBytes, cancelled }: RecvRequest): boolean => {
      if (cancelled || error !== undefined) return false;
      worker.syncs.set(source, JSON.parse(new TextDecoder().decode(buffer.subarray(0, receivedBytes))) as Sync);
      this.trySync(worker, source);
      this.wake(worker.number);
      return !pml.peer(source).leaving;
    };
    const next = (): void => {
      for (;;) {
        const request = pml.irecvInBackground(source, SYNC_CTX, 0, new Iov([buffer]), (done) => {
          if (read(done)) next();
        });
        if (!request.done || !read(request)) return;
      }
    };
    next();
  }

  /** Recovery in place is not possible, or of no use: as in a coordinated one, what is under way ends with an error. */
  private goBack(worker: Worker): void {
    const { pml } = this.engine(worker.number);
    const error = new MultirailError('ERR_REVOKED', 'all go back');
    worker.isOver = true;
    worker.isBack = true;
    worker.succession?.giveUp(error);
    this.steps.dropProbed(worker);
    for (const ctx of COVERED) pml.revokeContext(ctx, error);
  }

  // ---------------------------------------------------------------- saves

  /** All are at the same save and nothing is under way: it is cut. A message that waits for its receive for too long is in its way. */
  private trySave(): void {
    if (this.saving !== undefined || this.over !== undefined || this.deadMembers().length > 0) return;
    const workers = this.members.map((number) => this.workers[number]);
    const first = workers[0];
    for (const worker of workers) {
      const { runs, rank, place, news, cut } = worker;
      if (!runs || worker.isOver || news.length > 0 || cut !== undefined || this.program.ops[rank][place].op !== 'save') {
        this.savingSinceMs = this.world.nowMs;
        return;
      }
      if (this.countOf(worker) !== this.countOf(first)) return;
    }
    const isQuiet = workers.every((worker) => this.isQuietAt(worker));
    if (!isQuiet && this.world.nowMs - this.savingSinceMs < 2000) return;
    if (isQuiet) {
      this.saving = { images: workers.map((worker) => this.image(worker)) };
      this.at(this.drawUs() + 1, () => this.decide());
    } else this.counters.abandoned++;
    this.savingSinceMs = this.world.nowMs;
    this.savesPassed = this.countOf(first);
    for (const worker of workers) {
      worker.place++;
      this.wake(worker.number);
    }
  }

  /** Saves of its program up to the place where it is. */
  private countOf({ rank, place }: Worker): number {
    return this.program.ops[rank].slice(0, place + 1).filter(({ op }) => op === 'save').length;
  }

  private isQuietAt({ number, succession }: Worker): boolean {
    if (succession?.isReplaying !== false || succession.tap.waitingCount > 0) return false;
    for (const { sends, recvs, flowsIn } of this.engine(number).pml.peers) {
      for (const { ctx } of sends) if (COVERED.includes(ctx)) return false;
      for (const { ctx } of recvs) if (COVERED.includes(ctx)) return false;
      for (const { holes, early } of flowsIn.values()) if ((holes?.size ?? 0) > 0 || early.size > 0) return false;
    }
    return true;
  }

  private image(worker: Worker): Image {
    const cut = (worker.succession as Succession).cut();
    worker.cut = cut;
    if (worker.recorder?.isReplaying)
      throw new OracleError(`F11: rank ${worker.rank} is at a save, and has not asked for all that is listed`);
    const rankOf = (number: number): number => worker.members.indexOf(number);
    return {
      place: worker.place + 1,
      state: worker.state,
      outcomes: worker.recorder?.cut(),
      cut: {
        ...cut,
        flows: cut.flows.map((flow) => ({ ...flow, peer: rankOf(flow.peer) })),
        unexpected: cut.unexpected.map((message) => ({ ...message, source: rankOf(message.source) })),
      },
    };
  }

  // ---------------------------------------------------------------- the program

  private onTurn(number: number): void {
    const worker = this.workers[number];
    if (worker === undefined || worker.rank < 0) return;
    if (worker.log.bytes > this.options.logBytesMax)
      throw new OracleError(`F10: the log of process ${number} has ${worker.log.bytes} bytes`);
    if (worker.isOver) return;
    this.outcomes?.send(worker);
    if (!worker.runs) {
      if (worker.succession?.isSynced !== true) return;
      worker.runs = true;
    }
    for (let steps = 0; steps < 64 && this.steps.step(worker); steps++) this.wake(number);
    this.outcomes?.send(worker);
    if (this.opOf(worker) === 'save') this.trySaveLater();
  }

  private opOf = ({ rank, place, isOver }: Worker): string => (rank < 0 || isOver ? 'none' : this.program.ops[rank][place].op);
  private isSaveTried = false;

  /** Looked at again until it is cut: nothing else may happen meanwhile. */
  private trySaveLater(): void {
    if (this.isSaveTried) return;
    this.isSaveTried = true;
    this.at(500, () => {
      this.isSaveTried = false;
      this.trySave();
      if (this.members.some((number) => !this.world.isDead(number) && this.opOf(this.workers[number]) === 'save')) this.trySaveLater();
    });
  }

  /** A program that does not repeat itself was caught, or is about to be believed: the run ends here. */
  diverged(): void {
    this.over = 'the program does not repeat itself';
    for (const worker of this.workers) {
      if (this.world.isDead(worker.number)) continue;
      worker.isOver = true;
      worker.news.length = 0;
      this.at(0, () => {
        for (const { number } of this.workers) this.tell(worker.number, number);
        if (!this.world.isDead(worker.number)) this.goBack(worker);
        this.wake(worker.number);
      });
    }
  }

  // ---------------------------------------------------------------- the end

  get isFinished(): boolean {
    if (this.over !== undefined) return this.workers.every(({ isBack, number, rank }) => isBack || rank < 0 || this.world.isDead(number));
    if (this.deadMembers().length > 0 || this.saving !== undefined) return false;
    return this.members.every((number) => {
      const { rank, place, news, runs, succession } = this.workers[number];
      return runs && news.length === 0 && succession?.isReplaying === false && this.program.ops[rank][place].op === 'end';
    });
  }

  /** Where each member is. */
  describe(): string {
    return this.members
      .map((number) => this.workers[number])
      .map(({ number, rank, place }) => `${number} at ${rank < 0 ? 'nothing' : JSON.stringify(this.program.ops[rank][place])}`)
      .join('; ');
  }

  /** What the program still waits for, process by process. */
  openRequests(): string[] {
    return this.workers.flatMap(({ number }) => {
      if (this.world.isDead(number)) return [];
      const { pml } = this.engine(number);
      const own = pml.describeRequests(pml.openRequests()).filter(({ ctx }) => COVERED.includes(ctx));
      return own.map((request) => `process ${number}: ${JSON.stringify(request)}`);
    });
  }

  checkEnd(): void {
    if (this.over === undefined) this.steps.checkOutcomes();
    for (const { number, log, succession, recorder } of this.workers) {
      if (this.world.isDead(number)) continue;
      log.clear();
      if (log.bytes !== 0) throw new OracleError(`F10: the log of process ${number} keeps ${log.bytes} bytes`);
      if (succession === undefined) continue;
      this.counters.recorded += recorder?.counters.recorded ?? 0;
      this.counters.obeyed += recorder?.counters.obeyed ?? 0;
      for (const name of ['suppressed', 'replayed', 'logged', 'unlogged', 'gated'] as const)
        this.counters[name] += succession.tap.counters[name];
    }
  }
}
