// The simulated world of groups that go back together: each process has the production engine, PML and BML, with a tap, a log and the saves of its
// group; a program of the profile `log` runs on the members. A process that dies is succeeded by a standby, and the living ranks of its group
// begin again with it. Who succeeds whom is decided by the world, which stands in for agreement (src/ulfm has a profile of its own); each
// process hears of it as late as the run has drawn.
import { MultirailError } from '../../src/errors.ts';
import { Placement } from '../../src/ft/checkpoint/placement.ts';
import type { GroupSaveState } from '../../src/ft/groups/group-core.ts';
import { countOf, type Groups, membersOf } from '../../src/ft/groups/groups.ts';
import type { Pml } from '../../src/pml/pml.ts';
import type { Prng } from '../../src/util/prng.ts';
import { CHANNEL_CONTEXTS } from './group-channel.ts';
import { GroupProcess, type ProcessHost } from './group-process.ts';
import { COVERED, type Op, type Program } from './log-program.ts';
import { Steps, type StepsHost } from './log-steps.ts';
import { newLogCounters, type Worker } from './log-worker.ts';
import { OracleError } from './oracle.ts';
import { World, type WorldOptions } from './world.ts';

export interface GroupWorldOptions extends WorldOptions {
  members: number;
  groups: Groups;
  logBytesMax: number;
  slabBytes: number;
  /** Copies of each image. */
  duplication: number;
  /** Programs wait until their saves are committed. */
  isBlocking: boolean;
  /** One in so many copies finds no room; 0: none. */
  refusedIn: number;
  /** Delays after which somebody hears of something, in microseconds: one is drawn each time. */
  newsUs: readonly number[];
  /** So many die shortly after they have come to a state of a save, or of a recovery. */
  strikes: number;
  /** A process dies just now. */
  onDeath: () => void;
}

interface Decision {
  readonly epoch: number;
  readonly members: readonly number[];
  readonly dead: readonly number[];
}

/** What a run has come by, besides what one of logs does. */
const newCounters = () => ({
  ...newLogCounters(),
  committed: 0,
  interrupted: 0,
  // Ranks that lived and ended their run of the program, and those that began the next one.
  again: 0,
  livesBegun: 0,
  // Saves that were begun once more after a death in another group.
  triedAgain: 0,
  // Recoveries that were begun, and those in which more than one group went back.
  recoveries: 0,
  severalGroups: 0,
  startedOver: 0,
  linesLost: 0,
  within: 0,
  strikes: 0,
});

export class GroupWorld implements StepsHost, ProcessHost {
  readonly world: World;
  readonly processes: GroupProcess[] = [];
  readonly counters = newCounters();
  readonly placement: Placement;
  deaths = 0;
  isQuiet = false;
  over: string | undefined;
  private readonly prng: Prng;
  private readonly program: Program;
  private readonly steps: Steps;
  private readonly options: GroupWorldOptions;
  private epoch = 0;
  /** As decided, by rank. */
  private members: number[];
  private nextStandby: number;
  private isDeciding = false;
  private strikesLeft: number;
  private readonly news = new Map<number, Decision[]>();
  private readonly hears = new Set<number>();
  private readonly states = new Map<number, GroupSaveState>();

  constructor(prng: Prng, program: Program, options: GroupWorldOptions) {
    this.prng = prng;
    this.program = program;
    this.options = options;
    this.strikesLeft = options.strikes;
    this.steps = new Steps(this, program);
    const { groups, members } = options;
    // As run() does: copies are in other groups, where there are any.
    const domains = countOf(groups) > 1 ? groups : [...groups.keys()];
    this.placement = new Placement(domains, Math.min(options.duplication, new Set(domains).size - 1), 1);
    this.world = new World({ ...options, services: new Set([...CHANNEL_CONTEXTS, ...COVERED]), onTurn: (rank) => this.onTurn(rank) });
    this.members = Array.from({ length: members }, (_, rank) => rank);
    this.nextStandby = members;
  }

  // ---------------------------------------------------------------- for processes and their programs

  get groups(): Groups {
    return this.options.groups;
  }

  get logBytesMax(): number {
    return this.options.logBytesMax;
  }

  get slabBytes(): number {
    return this.options.slabBytes;
  }

  get isBlocking(): boolean {
    return this.options.isBlocking;
  }

  pmlOf(number: number): Pml {
    return this.world.processes[number].engine.pml;
  }

  wake(number: number): void {
    this.world.processes[number].driver.ready = true;
  }

  wakeAfter(number: number, ms: number): void {
    this.at(ms * 1000, () => this.wake(number));
  }

  nowMs(): number {
    return this.world.nowMs;
  }

  refusesCopy(): boolean {
    const { refusedIn } = this.options;
    return refusedIn > 0 && !this.isQuiet && this.prng.chance(1, refusedIn);
  }

  later(run: () => void): void {
    this.at(this.drawUs(), run);
  }

  flip(): boolean {
    return this.prng.chance(1, 2);
  }

  passes({ number, rank, place }: Worker): boolean {
    return this.processes[number].passes(this.program.ops[rank][place].op === 'look');
  }

  isLaterLife(number: number): boolean {
    const { lives, rank } = this.processes[number];
    return lives.life > 0 || this.mustGoBack(this.groups[rank]);
  }

  /** What a group says to itself is not logged, so it need not be the same when the group begins again. */
  lifeOf({ rank, began }: Worker, other: number): number | undefined {
    return this.groups[rank] === this.groups[other] ? began : undefined;
  }

  /** Somebody of that group is dead, or has not begun in the place of a dead one: what its living ranks still do, they do once more. */
  private mustGoBack(group: number): boolean {
    return this.members.some(
      (number, rank) =>
        this.groups[rank] === group && (this.world.isDead(number) || this.processes[number].worker.succession === undefined),
    );
  }

  diverged(): void {
    throw new OracleError('F9: a program that repeats itself is taken for another one');
  }

  usedBy({ rank, place }: Worker): readonly number[] {
    const used = new Set(COVERED.slice(0, 4));
    for (const op of this.program.ops[rank].slice(0, place + 1)) {
      if (op.op === 'free') used.delete(op.ctx);
      else if ('ctx' in op) used.add(op.ctx);
    }
    return [...used];
  }

  forgets(number: number): void {
    this.world.forgets(number, COVERED);
  }

  beginsAgain({ number }: GroupProcess, before: Worker | undefined): void {
    if (before !== undefined) this.count(before);
    this.trace(`process ${number} begins${before === undefined ? '' : ' again'}`);
  }

  /** What the tap of a run of the program has counted. */
  private count({ succession }: Worker): void {
    if (succession === undefined) return;
    for (const name of ['suppressed', 'replayed', 'logged', 'unlogged', 'within'] as const)
      this.counters[name] += succession.tap.counters[name];
  }

  /** Recovery in place is not possible for a reason that all have come to. */
  goesBack(why: string | undefined): void {
    if (why?.startsWith('not all images')) this.checkLost(Number(/group (\d+)/.exec(why)?.[1]));
    if (this.over !== undefined) return;
    this.over = why ?? 'all go back';
    this.trace(this.over);
    this.counters.fallbacks++;
    for (const { number } of this.processes) this.at(this.drawUs(), () => this.goBack(number));
  }

  /** F12: a save that was committed is lost only with whoever had its images. */
  private checkLost(group: number): void {
    const living = this.processes.filter(({ number, rank }) => rank >= 0 && !this.world.isDead(number));
    const newest = Math.max(...living.map(({ saves }) => saves.newest[group] ?? -1));
    const isThere = membersOf(this.groups, group).every((owner) => living.some(({ saves }) => saves.pieceOf(owner, newest) !== undefined));
    if (isThere) throw new OracleError(`F12: save ${newest} of group ${group} is given up, and all of its images are there`);
  }

  /** F12: when a save is committed, all copies are where they must be, as long as nobody has heard of a death. */
  committed({ rank, channel }: GroupProcess, k: number): void {
    const { members = [], epoch } = channel ?? {};
    const group = this.groups[rank];
    for (const owner of membersOf(this.groups, group))
      for (const holder of this.placement.holders(owner, 0)) {
        const other = this.processes[members[holder]];
        if (other.channel?.epoch !== epoch || other.saves.pieceOf(owner, k) !== undefined) continue;
        throw new OracleError(`F12: save ${k} of group ${group} is committed, and rank ${holder} has no copy of rank ${owner}`);
      }
  }

  private goBack(number: number): void {
    if (this.world.isDead(number)) return;
    const process = this.processes[number];
    const { worker } = process;
    for (const other of this.processes) this.tell(number, other.number);
    const error = new MultirailError('ERR_REVOKED', 'all go back');
    process.meeting = undefined;
    process.saves.interrupt();
    process.channel?.end(error);
    worker.isOver = true;
    worker.isBack = true;
    worker.succession?.giveUp(error);
    // Of epochs of which it has not heard, too.
    for (const ctx of [...COVERED, ...CHANNEL_CONTEXTS]) this.pmlOf(number).revokeContext(ctx, error);
    this.wake(number);
  }

  private at(us: number, run: () => void): void {
    const { fabric } = this.world;
    fabric.at(fabric.nowUs + us, run);
  }

  private drawUs(): number {
    return this.prng.pick(this.options.newsUs);
  }

  private trace(text: string): void {
    if (this.world.fabric.tracing) this.world.fabric.note(text);
  }

  start(): void {
    for (let number = 0; number < this.options.ranks; number++) {
      this.processes.push(new GroupProcess(number, this));
      const pml = this.pmlOf(number);
      pml.onUnexpected = () => this.wake(number);
      pml.admits = (ctx) => !this.processes[number].worker.freed.has(ctx);
      const { engine } = this.world.processes[number];
      // Rails may be polled beside the turns of the world.
      engine.afterWork = () => {
        if (this.processes[number].wantsTurn) this.wake(number);
      };
    }
    for (const [rank, number] of this.members.entries()) {
      this.processes[number].beginFirst(rank, this.members);
      this.processes[number].worker.isCalled = true;
      this.wake(number);
    }
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
    for (const other of this.processes) if (other.number !== number) this.at(this.drawUs(), () => this.tell(other.number, number));
    this.decideLater();
  }

  /** Whoever has just come to a state, or somebody of its group or of another one, dies soon. */
  private strike(number: number): void {
    if (this.strikesLeft === 0 || !this.prng.chance(1, 12)) return;
    this.strikesLeft--;
    this.counters.strikes++;
    const soonUs = this.prng.pick([0, 50, 300, 1000, 3000]);
    const victim = this.prng.chance(1, 2) ? number : this.prng.pick(this.members);
    this.at(soonUs, () => this.kill(victim));
  }

  /** One that was called in dies, or one that has begun again. */
  killSuccessor(): void {
    const called = this.members.filter(
      (number) => (number >= this.options.members || this.processes[number].lives.life > 0) && !this.world.isDead(number),
    );
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

  private tell(number: number, dead: number): void {
    if (this.world.isDead(number) || !this.world.isDead(dead)) return;
    const { worker } = this.processes[number];
    const mustHold = worker.log.isWhole && this.pmlOf(number).knownPeer(dead)?.failure === undefined;
    this.world.tellFailed(number, dead);
    const { failure, channel } = this.pmlOf(number).peer(dead);
    if (worker.isOver || worker.succession === undefined || !worker.members.includes(dead)) return;
    if (failure === undefined || channel !== undefined) return;
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

  private decide(): void {
    const dead = this.deadMembers();
    if (this.over !== undefined || dead.length === 0) return;
    this.counters.recoveries++;
    if (new Set(dead.map((number) => this.groups[this.members.indexOf(number)])).size > 1) this.counters.severalGroups++;
    const epoch = ++this.epoch;
    for (const [rank, number] of this.members.entries()) {
      if (!this.world.isDead(number)) continue;
      while (this.world.isDead(this.nextStandby)) this.nextStandby++;
      this.members[rank] = this.nextStandby++;
      this.counters.successions++;
      const process = this.processes[this.members[rank]];
      process.rank = rank;
      process.worker.isCalled = true;
    }
    const decision = { epoch, members: [...this.members], dead };
    for (const number of this.members) {
      const news = this.news.get(number) ?? [];
      this.news.set(number, news);
      news.push(decision);
      this.hearLater(number);
    }
  }

  private hearLater(number: number): void {
    if (this.hears.has(number) || (this.news.get(number)?.length ?? 0) === 0) return;
    this.hears.add(number);
    this.at(this.drawUs(), () => {
      this.hears.delete(number);
      const decision = this.news.get(number)?.shift();
      if (this.world.isDead(number) || decision === undefined || this.over !== undefined) return;
      this.hear(this.processes[number], decision);
      this.hearLater(number);
      this.wake(number);
    });
  }

  private hear(process: GroupProcess, { epoch, members, dead }: Decision): void {
    this.trace(`process ${process.number} hears: epoch ${epoch}`);
    for (const one of dead) this.tell(process.number, one);
    if (process.meeting !== undefined) this.counters.startedOver++;
    process.open(epoch, members);
    process.meet();
  }

  // ---------------------------------------------------------------- turns

  private onTurn(number: number): void {
    const process = this.processes[number];
    if (process === undefined || process.rank < 0) return;
    const { worker } = process;
    if (worker.log.bytes > this.options.logBytesMax)
      throw new OracleError(`F10: the log of process ${number} has ${worker.log.bytes} bytes`);
    this.checkImages(process);
    if (worker.isBack) return;
    if (process.step()) this.wake(number);
    this.look(process);
    const { worker: now } = process;
    if (now.isOver || !now.runs) return;
    for (let steps = 0; steps < 64 && this.steps.step(now); steps++) this.wake(number);
    this.look(process);
  }

  /** It may have come to another state of its save. */
  private look({ number, saves }: GroupProcess): void {
    const state = saves.core?.state;
    if (state === undefined || this.states.get(number) === state) return;
    this.states.set(number, state);
    if (state !== 'IDLE') this.strike(number);
  }

  /** F12: a rank has two images of each other one that it holds copies of, and two of its own, at most. */
  private checkImages({ rank, saves, memory }: GroupProcess): void {
    const counts = new Map<number, number>();
    for (const { owner } of saves.entries) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    for (const [owner, count] of counts) if (count > 2) throw new OracleError(`F12: rank ${rank} has ${count} images of rank ${owner}`);
    const bytes = saves.entries.reduce((sum, entry) => sum + entry.bytes, 0);
    if (memory.bytes < bytes) throw new OracleError(`F12: rank ${rank} has images of ${bytes} bytes in ${memory.bytes}`);
  }

  // ---------------------------------------------------------------- the end

  private opOf({ rank, place }: Worker): Op {
    return this.program.ops[rank][place];
  }

  get isFinished(): boolean {
    if (this.over !== undefined)
      return this.processes.every(({ worker, number, rank }) => worker.isBack || rank < 0 || this.world.isDead(number));
    if (this.deadMembers().length > 0) return false;
    return this.members.every((number) => {
      const { worker, meeting, saves } = this.processes[number];
      const { runs, isOver, succession } = worker;
      if (!runs || isOver || meeting !== undefined || (this.news.get(number)?.length ?? 0) > 0) return false;
      return this.opOf(worker).op === 'end' && succession?.isReplaying === false && saves.isOpen && saves.core.state === 'IDLE';
    });
  }

  /** Where each member is. */
  describe(): string {
    return this.members
      .map((number) => this.processes[number])
      .map((process) => {
        const { number, rank, worker, meeting, saves } = process;
        const op = worker.rank < 0 ? 'nothing' : JSON.stringify(this.opOf(worker));
        const doing = meeting === undefined ? (worker.isOver ? ', over' : '') : ', in a recovery';
        return `rank ${rank} (process ${number}) at ${op}${doing}, save ${saves.core?.state}${saves.isOpen ? '' : ' closed'}${process.describeSave()}`;
      })
      .join('; ');
  }

  /** What the program still waits for, process by process. */
  openRequests(): string[] {
    return this.processes.flatMap(({ number }) => {
      if (this.world.isDead(number)) return [];
      const pml = this.pmlOf(number);
      const own = pml.describeRequests(pml.openRequests()).filter(({ ctx }) => COVERED.includes(ctx));
      return own.map((request) => `process ${number}: ${JSON.stringify(request)}`);
    });
  }

  checkEnd(): void {
    if (this.over === undefined) this.checkTrimmed();
    for (const process of this.processes) {
      const { number, worker, saves, memory } = process;
      if (this.world.isDead(number)) continue;
      for (const log of [...process.logsBefore, worker.log]) {
        log.clear();
        if (log.bytes !== 0) throw new OracleError(`F10: a log of process ${number} keeps ${log.bytes} bytes`);
      }
      const bytes = saves.entries.reduce((sum, entry) => sum + entry.bytes, 0);
      if (this.over === undefined && memory.bytes !== bytes)
        throw new OracleError(`F12: process ${number} has images of ${bytes} bytes, and ${memory.bytes} bytes are in use`);
      this.count(worker);
    }
  }

  /** F12: what the saves of other groups have made needless is in no log any more, once all have been told. */
  private checkTrimmed(): void {
    for (const [rank, number] of this.members.entries()) {
      const { worker, lives } = this.processes[number];
      // Whoever has gone back logs once more what it repeats, up to the next save of whoever has it.
      if (number >= this.options.members || lives.life > 0) continue;
      for (const [other, member] of this.members.entries()) {
        if (this.groups[other] === this.groups[rank]) continue;
        const { numbers } = this.processes[member].saves.committed ?? {};
        if (numbers === undefined) continue;
        const lows = new Map(numbers.flows.filter(({ peer }) => peer === rank).map(({ ctx, nextIn }) => [ctx, nextIn]));
        for (const { source, ctx, seq, messageBytes } of numbers.unexpected)
          if (source === rank && messageBytes !== undefined) lows.set(ctx, Math.min(lows.get(ctx) ?? 0, seq));
        const [first] = worker.log.messagesTo(member);
        if (first !== undefined && first.seq < (lows.get(first.ctx) ?? 0))
          throw new OracleError(`F12: the log of rank ${rank} keeps message ${first.seq} of context ${first.ctx} for rank ${other}`);
      }
    }
  }
}
