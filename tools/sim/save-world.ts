// The simulated world of src/ft/checkpoint: each process has the production engine, PML, BML, src/ulfm and a core of src/ft/checkpoint.
// A program runs on the working processes: a ring whose state depends on every step before, with a save now and then. Copies, inventories
// and images are messages of the PML; votes are agreements of the second series. Whoever dies loses its slots; standbys are called in.
import { Placement } from '../../src/ft/checkpoint/placement.ts';
import { holdsOf, type Inventory, inventoryOf, planRecovery } from '../../src/ft/checkpoint/recovery-plan.ts';
import { type CopyName, SaveCore } from '../../src/ft/checkpoint/save-core.ts';
import type { SaveState } from '../../src/ft/checkpoint/save-states.ts';
import { compareSaves, isSameSave, type Piece, type SaveName } from '../../src/ft/checkpoint/slots.ts';
import type { RecvRequest } from '../../src/pml/records.ts';
import { Bitmap } from '../../src/ulfm/bitmap.ts';
import type { Notice } from '../../src/ulfm/knowledge.ts';
import { type Decision, verdictOf } from '../../src/ulfm/ulfm.ts';
import { OPERATION, type Operation } from '../../src/ulfm/values.ts';
import { SERIES, type SeriesNumber } from '../../src/ulfm/wire.ts';
import { Iov } from '../../src/util/iov.ts';
import type { Prng } from '../../src/util/prng.ts';
import { OracleError } from './oracle.ts';
import { Cuts } from './save-cuts.ts';
import { FIRST_ID, type SimUlfmProcess, UlfmWorld, type UlfmWorldOptions } from './ulfm-world.ts';

/** Bulk messages of the service communicator. */
export const SAVE_CTX = 7;
const MESSAGE_BYTES_MAX = 6144;

/** What a rank's state is after a step of the ring. */
function mixed(state: number, left: number, step: number, rank: number): number {
  let x = (state ^ Math.imul(left + 0x9e3779b9, 0x85ebca6b) ^ Math.imul(step * 31 + rank + 1, 0xc2b2ae35)) >>> 0;
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) >>> 0;
  return (x ^ (x >>> 13)) >>> 0;
}

/** Messages of programs and of saves, by communicator. */
type Message =
  | { readonly kind: 'step'; readonly id: number; readonly step: number; readonly state: number }
  | { readonly kind: 'ready'; readonly id: number; readonly attempt: number }
  | { readonly kind: 'copy'; readonly name: CopyName; readonly memory: Memory | undefined }
  | { readonly kind: 'inventory'; readonly id: number; readonly epoch: number; readonly inventory: Inventory }
  | { readonly kind: 'image'; readonly id: number; readonly memory: Memory };

/** What an image holds. */
interface Memory {
  readonly rank: number;
  readonly step: number;
  readonly state: number;
  /** The save for which it was made, and its attempt: no two images are the same, as no two real ones are, which have the time in them. */
  readonly made: string;
}

const pieceOf = (memory: Memory): Piece => ({ bytes: 8, crc: (memory.state ^ memory.step) >>> 0, memory });

type Phase = 'standby' | 'restoring' | 'running' | 'saving' | 'ending' | 'ended' | 'recovering' | 'without spares';

/** One process with its saves. What has come is kept by communicator: it may come before the communicator does. */
interface Saver {
  readonly process: SimUlfmProcess;
  core: SaveCore | undefined;
  phase: Phase;
  id: number;
  members: readonly number[];
  rank: number;
  memory: Memory;
  /** Committed saves that must be readable here, oldest first: what slots have is compared with it. */
  readable: SaveName[];
  /** A save is due, and one is still under way. */
  isDue: boolean;
  /** The step whose message has gone out. */
  sentStep: number;
  readonly steps: Map<string, number>;
  readonly ready: Map<string, Set<number>>;
  readonly inventories: Map<number, Map<number, { epoch: number; inventory: Inventory }>>;
  readonly images: Map<number, Memory>;
  readonly copies: { readonly name: CopyName; readonly memory: Memory | undefined }[];
}

export interface SaveWorldOptions extends UlfmWorldOptions {
  duplication: number;
  depth: number;
  steps: number;
  everySteps: number;
  /** The program goes on as soon as its state is copied. */
  inBackground: boolean;
  /** One in so many images cannot be made. 0: never. */
  refusesOneIn: number;
}

export class SaveWorld extends UlfmWorld {
  readonly plan: SaveWorldOptions;
  readonly savers: Saver[] = [];
  readonly placement: Placement;
  readonly counters = { saves: 0, recoveries: 0, restarts: 0, fetched: 0, ghosts: 0 };
  /** States of the undisturbed run, by step and rank. */
  private readonly reference: number[][] = [];
  private readonly cuts = new Cuts();
  private readonly calledInSaves = new Set<string>();
  private newest: SaveName | undefined;

  constructor(prng: Prng, options: SaveWorldOptions) {
    super(prng, { ...options, services: new Set([SAVE_CTX]) });
    this.plan = options;
    const { members, duplication, depth, steps } = options;
    this.placement = new Placement([...Array(members).keys()], duplication, depth);
    let states = Array.from({ length: members }, (_, rank) => rank + 1);
    this.reference.push(states);
    for (let step = 0; step < steps; step++) {
      const before = states;
      states = before.map((state, rank) => mixed(state, before[(rank + members - 1) % members], step, rank));
      this.reference.push(states);
    }
  }

  /** The program begins at all members. */
  start(): void {
    for (const process of this.processes) {
      const saver: Saver = {
        process,
        core: undefined,
        phase: 'standby',
        id: FIRST_ID,
        members: [],
        rank: -1,
        memory: { rank: -1, step: 0, state: 0, made: '' },
        readable: [],
        isDue: false,
        sentStep: -1,
        steps: new Map(),
        ready: new Map(),
        inventories: new Map(),
        images: new Map(),
        copies: [],
      };
      this.savers.push(saver);
      for (const { rank } of this.world.processes[process.number].engine.pml.peers) this.listenTo(saver, rank);
    }
    const members = this.processes.slice(0, this.plan.members).map(({ number }) => number);
    for (const saver of this.savers.slice(0, members.length)) {
      saver.phase = 'restoring';
      this.act(saver.process, () => this.beginEpoch(saver, FIRST_ID, members));
    }
  }

  private initial(rank: number): Memory {
    return { rank, step: 0, state: this.reference[0][rank], made: '' };
  }

  private join(saver: Saver, id: number, members: readonly number[]): void {
    saver.id = id;
    saver.members = members;
    saver.rank = members.indexOf(saver.process.number);
    saver.isDue = false;
    saver.sentStep = -1;
    saver.core ??= new SaveCore({
      rank: saver.rank,
      depth: this.plan.depth,
      listener: { onTransition: (_rank, from, to) => this.onTransition(saver, from, to) },
    });
    saver.core.placement = this.placement;
  }

  /** Whoever comes to this state as the `nth` dies a little later. */
  strike(state: SaveState, nth: number, afterUs: number): void {
    this.strikes.push({ state, left: nth, afterUs });
  }
  private readonly strikes: { readonly state: SaveState; left: number; readonly afterUs: number }[] = [];

  private onTransition({ process, rank }: Saver, from: SaveState, to: SaveState): void {
    this.trace(`saves of rank ${rank}: ${from} -> ${to}`);
    for (const strike of this.strikes) {
      if (strike.state !== to || --strike.left !== 0) continue;
      this.at(strike.afterUs, () => this.kill(process.number));
    }
  }

  /** Does it unless the process has died or gone back meanwhile. */
  private later(saver: Saver, run: () => void): void {
    const { id } = saver;
    this.at(this.prng.pick([0, 0, 10, 10, 300, 5000]), () => {
      if (saver.id !== id || saver.phase === 'recovering') return;
      this.act(saver.process, () => {
        if (saver.id !== id || saver.phase === 'recovering') return;
        run();
        this.obey(saver);
      });
    });
  }

  // ---------------------------------------------------------------- messages

  private listenTo(saver: Saver, source: number): void {
    const { number } = saver.process;
    const { pml } = this.world.processes[number].engine;
    const buffer = new Uint8Array(MESSAGE_BYTES_MAX);
    const read = ({ error, receivedBytes, cancelled }: RecvRequest): boolean => {
      if (cancelled) return false;
      if (error === undefined) {
        const message = JSON.parse(new TextDecoder().decode(buffer.subarray(0, receivedBytes))) as Message;
        this.act(saver.process, () => this.handle(saver, source, message));
      } else if (!this.world.isParted(number, source))
        throw new OracleError(`process ${number} lost a message about saves of ${source}: ${error.message}`);
      return error === undefined && !pml.peer(source).leaving;
    };
    const next = (): void => {
      for (;;) {
        const request = pml.irecvInBackground(source, SAVE_CTX, 0, new Iov([buffer]), (done) => {
          if (read(done)) next();
        });
        if (!request.done || !read(request)) return;
      }
    };
    next();
  }

  private send(saver: Saver, rank: number, message: Message): void {
    const { process, members } = saver;
    if (rank === saver.rank) return this.handle(saver, process.number, message);
    if (!process.isAlive || process.core.knowledge.isGone(members[rank])) return;
    if (process.sendsLeft-- <= 0) this.kill(process.number);
    if (!process.isAlive) return;
    const { engine } = this.world.processes[process.number];
    engine.pml.isend(members[rank], SAVE_CTX, 0, new Iov([new TextEncoder().encode(JSON.stringify(message))]));
    engine.schedule();
  }

  private sendAll(saver: Saver, message: Message): void {
    for (let i = 1; i <= saver.members.length; i++) this.send(saver, (saver.rank + i) % saver.members.length, message);
  }

  private handle(saver: Saver, source: number, message: Message): void {
    switch (message.kind) {
      case 'step':
        saver.steps.set(`${message.id}/${message.step}`, message.state);
        if (message.id === saver.id) this.tryStep(saver);
        break;
      case 'ready': {
        const key = `${message.id}/${message.attempt}`;
        const ready = saver.ready.get(key) ?? new Set();
        saver.ready.set(key, ready.add(source));
        this.tryQuiet(saver);
        break;
      }
      case 'copy':
        saver.copies.push(message);
        this.takeCopies(saver);
        break;
      case 'inventory': {
        const list = saver.inventories.get(message.id) ?? new Map();
        saver.inventories.set(message.id, list.set(source, message));
        this.tryPlan(saver);
        break;
      }
      case 'image':
        saver.images.set(message.id, message.memory);
        this.tryRestore(saver);
        break;
    }
    this.obey(saver);
  }

  // ---------------------------------------------------------------- the program

  private stepOn(saver: Saver): void {
    if (saver.phase !== 'running') return;
    const { id, memory, members, rank } = saver;
    if (memory.step === this.plan.steps) {
      saver.phase = 'ending';
      return this.tryEnd(saver);
    }
    saver.sentStep = memory.step;
    this.send(saver, (rank + 1) % members.length, { kind: 'step', id, step: memory.step, state: memory.state });
    this.tryStep(saver);
  }

  private tryStep(saver: Saver): void {
    const { memory, id, rank } = saver;
    const key = `${id}/${memory.step}`;
    const left = saver.steps.get(key);
    if (saver.phase !== 'running' || saver.sentStep !== memory.step || left === undefined) return;
    saver.steps.delete(key);
    const step = memory.step + 1;
    saver.memory = { rank, step, state: mixed(memory.state, left, memory.step, rank), made: '' };
    const isDue = step % this.plan.everySteps === 0 && step < this.plan.steps;
    this.later(saver, () => (isDue ? this.save(saver) : this.stepOn(saver)));
  }

  private tryEnd(saver: Saver): void {
    if (saver.phase === 'ending' && saver.core?.isIdle === true) saver.core.end();
  }

  // ---------------------------------------------------------------- saves

  private save(saver: Saver): void {
    const core = saver.core as SaveCore;
    saver.isDue = !core.isIdle;
    if (saver.isDue || !core.begin()) return;
    saver.phase = 'saving';
    this.sendAll(saver, { kind: 'ready', id: saver.id, attempt: core.attempt });
  }

  private tryQuiet(saver: Saver): void {
    const { core, id, members } = saver;
    if (core?.state !== 'QUIETING' || saver.ready.get(`${id}/${core.attempt}`)?.size !== members.length) return;
    core.handleQuiet(false);
    const { epoch, k } = core.nextName;
    const { attempt } = core;
    const made = `${epoch}-${k} attempt ${attempt}`;
    this.takeCopies(saver);
    this.later(saver, () => {
      const { refusesOneIn } = this.plan;
      // Another rank could not make its image, and the next save has begun meanwhile.
      if (core.attempt !== attempt && !this.plan.inBackground) return;
      if (refusesOneIn > 0 && this.prng.chance(1, refusesOneIn)) core.refuse();
      else core.handleCopied(pieceOf({ ...saver.memory, made }));
      if (this.plan.inBackground) this.goOn(saver);
    });
  }

  /** The program goes on behind its save. */
  private goOn(saver: Saver): void {
    if (saver.phase !== 'saving') return;
    saver.phase = 'running';
    this.later(saver, () => this.stepOn(saver));
  }

  /** Copies are looked at while this rank takes some; those of saves that are over are among them. */
  private takeCopies(saver: Saver): void {
    const { core, copies } = saver;
    while (core !== undefined && copies.length > 0 && (core.state === 'COPYING' || core.state === 'SPREADING')) {
      const { name, memory } = copies.shift() as (typeof copies)[number];
      if (memory === undefined) core.handleNoCopy(name);
      else if (!core.handleCopy(name, pieceOf(memory))) this.counters.ghosts++;
    }
  }

  /** Does what has come out of the core. */
  private obey(saver: Saver): void {
    this.obeyActions(saver);
    this.checkReadable(saver);
  }

  private obeyActions(saver: Saver): void {
    const { core, process } = saver;
    for (let action = core?.actions.shift(); core !== undefined && action !== undefined; action = core.actions.shift()) {
      switch (action.kind) {
        case 'vote':
          this.agree(saver, SERIES.RECOVERY, OPERATION.AGREE, action.flag, (decision) => this.decided(saver, decision));
          break;
        case 'spread': {
          const { name, own } = action.slot;
          const copy = { ...name, owner: saver.rank, attempt: core.attempt };
          for (const to of action.to) this.send(saver, to, { kind: 'copy', name: copy, memory: (own as Piece).memory as Memory });
          this.takeCopies(saver);
          // The program goes on with what was restored while its copies are spread.
          if (saver.phase === 'restoring') this.beginAgain(saver);
          break;
        }
        case 'excuse': {
          const copy = { ...action.name, owner: saver.rank, attempt: core.attempt };
          for (const to of action.to) this.send(saver, to, { kind: 'copy', name: copy, memory: undefined });
          break;
        }
        case 'committed':
          if (action.name !== undefined) this.checkSave(saver, action.name);
          if (saver.phase === 'restoring') this.beginAgain(saver);
          else this.saveEnded(saver);
          break;
        case 'abandoned':
          if (saver.phase !== 'restoring') this.saveEnded(saver);
          break;
        case 'recover':
          this.counters.recoveries++;
          saver.phase = 'recovering';
          this.trace(`process ${process.number} goes back: ranks ${action.failed.join(' ')} have failed`);
          this.at(this.prng.pick([0, 10, 1000]), () => this.replace(saver));
          break;
        case 'ended':
          saver.phase = 'ended';
          if (saver.memory.state !== this.reference[this.plan.steps][saver.rank])
            throw new OracleError(`F8: rank ${saver.rank} ends with another result than an undisturbed run`);
          break;
      }
    }
  }

  private saveEnded(saver: Saver): void {
    const { core } = saver;
    if (core?.isIdle !== true) return;
    if (saver.isDue) this.save(saver);
    else if (!this.plan.inBackground) this.goOn(saver);
    this.tryEnd(saver);
  }

  private decided(saver: Saver, { value }: Decision): void {
    this.act(saver.process, () => {
      saver.core?.handleDecision(value.flag, [...value.failed]);
      this.obey(saver);
    });
  }

  /** F7: whole, of one cut, at this rank and in the copies that it holds. */
  private checkSave(saver: Saver, name: SaveName): void {
    const slot = saver.core?.slots.newest;
    const key = `${name.epoch}-${name.k}`;
    if (slot?.name.epoch !== name.epoch || slot.name.k !== name.k) throw new OracleError(`F7: save ${key} is committed and not the newest`);
    for (const owner of this.placement.owners(saver.rank, name.k))
      if (!slot.held.has(owner)) throw new OracleError(`F7: save ${key} is committed, and rank ${saver.rank} has no copy of rank ${owner}`);
    for (const [owner, piece] of [[saver.rank, slot.own as Piece] as const, ...slot.held]) {
      const memory = piece.memory as Memory;
      const { step, made } = this.cuts.cutOf(name, memory);
      if (memory.rank !== owner || memory.step !== step || memory.made !== made || memory.state !== this.reference[step][owner])
        throw new OracleError(
          `F7: save ${key} at rank ${saver.rank} has step ${memory.step} of rank ${memory.rank}, made for ${memory.made}, for rank ${owner}; its cut is step ${step}, made for ${made}`,
        );
    }
    saver.readable = [...saver.readable, name].slice(-this.plan.depth);
    if (this.newest === undefined || name.epoch > this.newest.epoch || (name.epoch === this.newest.epoch && name.k > this.newest.k)) {
      this.newest = name;
      this.counters.saves++;
    }
  }

  /** F7: nothing committed is touched before as many newer ones are committed as stay readable. */
  private checkReadable({ core, readable, rank }: Saver): void {
    if (core === undefined || core.state === 'RESTORING' || core.state === 'ENDED') return;
    const text = (names: readonly SaveName[]): string => names.map(({ epoch, k }) => `${epoch}-${k}`).join(' ');
    const there = text(core.slots.committed.map(({ name }) => name));
    if (there !== text(readable))
      throw new OracleError(`F7: rank ${rank} can read ${there || 'nothing'} and must be able to read ${text(readable)}`);
  }

  // ---------------------------------------------------------------- agreements and deaths

  private agree(saver: Saver, series: SeriesNumber, operation: Operation, flag: number, then: (decision: Decision) => void): void {
    const { process, id } = saver;
    const { core, number } = process;
    const q = core.nextOf(id, series);
    this.oracle.call(number, id, series, q, { operation, flag, acked: new Bitmap(core.membersOf(id).length) });
    process.continuations.set(`${id}/${series}/${q}`, then);
    if (core.begin(id, series, { operation, flag }) !== q) throw new Error('another number than was said');
  }

  protected override onDeaths(process: SimUlfmProcess, notices: readonly Notice[]): void {
    super.onDeaths(process, notices);
    const saver = this.savers[process.number];
    for (const { number } of notices) this.tellDeath(saver, number);
    this.obey(saver);
  }

  private tellDeath(saver: Saver, number: number): void {
    const rank = saver.members.indexOf(number);
    if (rank >= 0) saver.core?.handleDeath(rank);
  }

  // ---------------------------------------------------------------- recovery

  private replace(saver: Saver): void {
    const { process } = saver;
    if (!process.isAlive) return;
    this.act(process, () => {
      process.creations++;
      this.agree(saver, SERIES.PROGRAM, OPERATION.REPLACE_ALL, 0, (decision) => {
        this.replaced(saver, decision);
        if (--process.creations === 0) process.core.dropEarly();
      });
    });
  }

  private replaced(saver: Saver, { value, id, q }: Decision): void {
    if (verdictOf(value).lacksSuccessors) {
      saver.phase = 'without spares';
      return;
    }
    const members = [...saver.members];
    for (const { rank, number } of value.successions) members[rank] = number;
    this.meet(saver, value.newId, members);
    for (const { number } of value.successions) {
      const key = `${number} ${id}/${q}`;
      if (this.calledInSaves.has(key) || this.oracle.declared.has(saver.process.number)) continue;
      this.calledInSaves.add(key);
      const successor = this.savers[number];
      successor.process.creations++;
      this.at(this.prng.pick([0, 10, 300, 20_000]), () => {
        if (!successor.process.isAlive) return;
        this.meet(successor, value.newId, members);
        if (--successor.process.creations === 0) successor.process.core.dropEarly();
      });
    }
  }

  private meet(saver: Saver, id: number, members: readonly number[]): void {
    const { process } = saver;
    this.open(process, id, members);
    this.act(process, () => this.beginEpoch(saver, id, members));
  }

  /** Begins an epoch: the first thing is that all know what everybody has. */
  private beginEpoch(saver: Saver, id: number, members: readonly number[]): void {
    saver.phase = 'restoring';
    this.join(saver, id, members);
    const core = saver.core as SaveCore;
    core.meet();
    for (const number of members) if (saver.process.core.knowledge.isFailed(number)) this.tellDeath(saver, number);
    this.sendAll(saver, { kind: 'inventory', id, epoch: core.epoch, inventory: inventoryOf(saver.rank, core.slots) });
    this.obey(saver);
  }

  private planOf({ inventories, id, members }: Saver) {
    const list = inventories.get(id);
    if (list?.size !== members.length) return undefined;
    const all = members.map((number) => list.get(number) as { epoch: number; inventory: Inventory });
    const plan = planRecovery(
      all.map(({ inventory }) => inventory),
      this.placement,
    );
    return { ...plan, all, epoch: Math.max(...all.map(({ epoch }) => epoch)) + 1 };
  }

  private tryPlan(saver: Saver): void {
    const plan = saver.core?.state === 'RESTORING' ? this.planOf(saver) : undefined;
    if (plan === undefined) return;
    const { line, transfers, all, differs } = plan;
    // As many as have copies elsewhere may be lost at once; a successor that died or lives without the copies that it is to hold is one of them.
    const { newest } = this;
    const isWhole = ({ inventory }: (typeof all)[number], rank: number): boolean =>
      newest !== undefined &&
      [rank, ...this.placement.owners(rank, newest.k)].every((owner) =>
        inventory.some((entry) => entry.owner === owner && isSameSave(entry, newest)),
      );
    const lost = all.filter((one, rank) => !isWhole(one, rank)).length;
    if (differs) throw new OracleError(`F7: formula and inventories differ for ${JSON.stringify(line)}`);
    if (newest !== undefined && lost <= this.plan.duplication && (line?.epoch !== newest.epoch || line.k !== newest.k))
      throw new OracleError(`F7: ${lost} are lost, and ${JSON.stringify(line)} is restored instead of ${JSON.stringify(newest)}`);
    for (const { giver, owner, epoch, k } of transfers) {
      if (giver !== saver.rank) continue;
      const piece = saver.core?.slots.find({ epoch, k })?.held.get(owner) as Piece;
      this.send(saver, owner, { kind: 'image', id: saver.id, memory: piece.memory as Memory });
    }
    this.tryRestore(saver);
  }

  private tryRestore(saver: Saver): void {
    const { core, rank, images, id } = saver;
    const plan = core?.state === 'RESTORING' ? this.planOf(saver) : undefined;
    if (core === undefined || plan === undefined) return;
    const isGiven = plan.transfers.some(({ owner }) => owner === rank);
    const memory = images.get(id);
    if (isGiven && memory === undefined) return;
    if (isGiven) this.counters.fetched++;
    const { line } = plan;
    const has =
      line === undefined
        ? undefined
        : holdsOf(
            plan.all.map(({ inventory }) => inventory),
            line,
          );
    this.cuts.begin(plan.epoch, id, saver.process.number, (number) => this.processes[number].isAlive);
    core.restore(plan.epoch, line, isGiven && memory !== undefined ? pieceOf(memory) : undefined, has);
    // Older ones stay, newer ones are gone, and a successor has the line alone.
    saver.readable =
      line === undefined ? [] : [...saver.readable.filter((name) => compareSaves(name, line) < 0), line].slice(-this.plan.depth);
  }

  /** The program begins again, from what was restored. */
  private beginAgain(saver: Saver): void {
    const newest = saver.core?.slots.newest;
    if (newest === undefined && saver.core?.epoch !== 0) this.counters.restarts++;
    saver.phase = 'running';
    saver.memory = newest === undefined ? this.initial(saver.rank) : ((newest.own as Piece).memory as Memory);
    this.later(saver, () => this.stepOn(saver));
  }

  // ---------------------------------------------------------------- the end

  private get working(): Saver[] {
    return this.savers.filter(({ process, phase }) => phase !== 'standby' && process.isAlive && !this.oracle.declared.has(process.number));
  }

  override get isFinished(): boolean {
    return this.oracle.isFinished && this.working.every(({ phase }) => phase === 'ended' || phase === 'without spares');
  }

  /** No message of a process that lives is on its way. */
  get isDelivered(): boolean {
    const living = this.processes.filter(({ number, isAlive }) => isAlive && !this.oracle.declared.has(number)).map(({ number }) => number);
    return living.every((number) => living.every((peer) => this.world.processes[number].engine.pml.undelivered(peer).length === 0));
  }

  /** Whoever lives has ended with the right result, or has been told that there are too few to go on; all alike. */
  checkEndings(): void {
    const open = this.working.filter(({ phase }) => phase !== 'ended' && phase !== 'without spares');
    if (open.length > 0)
      throw new OracleError(
        `I18: ${open.map(({ process, phase, core }) => `process ${process.number} is ${phase}, its saves ${core?.state}`).join('; ')}`,
      );
    const phases = new Set(this.working.map(({ phase }) => phase));
    if (phases.size > 1) throw new OracleError('F12: some have ended, and others were told that there are no spares');
  }
}
