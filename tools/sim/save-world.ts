// The simulated world of src/ft/checkpoint: each process has the production engine, PML, BML, src/ulfm and a core of src/ft/checkpoint.
// A program runs on the working processes: a ring whose state depends on every step before, with a save now and then. Copies, inventories
// and images are messages of the PML; votes are agreements of the second series. Whoever dies loses its slots; standbys are called in.
import { entriesOf, formerOf, groupingOf } from '../../src/ft/checkpoint/former.ts';
import { takenOver } from '../../src/ft/checkpoint/grouping.ts';
import { Placement } from '../../src/ft/checkpoint/placement.ts';
import { holdsOf, inventoryOf, planRecovery } from '../../src/ft/checkpoint/recovery-plan.ts';
import { SaveCore } from '../../src/ft/checkpoint/save-core.ts';
import type { SaveState } from '../../src/ft/checkpoint/save-states.ts';
import { compareSaves, type Piece, type SaveName } from '../../src/ft/checkpoint/slots.ts';
import { checkScheme } from '../../src/ft/plan/scheme.ts';
import type { RecvRequest } from '../../src/pml/records.ts';
import { Bitmap } from '../../src/ulfm/bitmap.ts';
import type { Notice } from '../../src/ulfm/knowledge.ts';
import { membersAfter } from '../../src/ulfm/replace.ts';
import type { Decision } from '../../src/ulfm/ulfm.ts';
import { OPERATION, type Operation, verdictOf } from '../../src/ulfm/values.ts';
import { SERIES, type SeriesNumber } from '../../src/ulfm/wire.ts';
import { Iov } from '../../src/util/iov.ts';
import type { Prng } from '../../src/util/prng.ts';
import { OracleError } from './oracle.ts';
import { Cuts } from './save-cuts.ts';
import { checkLine, checkReadable } from './save-oracle.ts';
import { type Image, imagesOf, pieceOf, Ring } from './save-program.ts';
import { type Message, newSaver, packed, type Saver, type View } from './saver.ts';
import { Strikes, type Struck } from './strikes.ts';
import { FIRST_ID, type SimUlfmProcess, UlfmWorld, type UlfmWorldOptions } from './ulfm-world.ts';

/** Bulk messages of the service communicator. */
export const SAVE_CTX = 7;
const MESSAGE_BYTES_MAX = 6144;

export interface SaveWorldOptions extends UlfmWorldOptions {
  duplication: number;
  depth: number;
  steps: number;
  everySteps: number;
  /** The program goes on as soon as its state is copied. */
  inBackground: boolean;
  /** One in so many images cannot be made. 0: never. */
  refusesOneIn: number;
  /** Where too few stand by, fewer ranks go on. */
  mayShrink: boolean;
}

export class SaveWorld extends UlfmWorld {
  readonly plan: SaveWorldOptions;
  readonly savers: Saver[] = [];
  readonly counters = { saves: 0, recoveries: 0, restarts: 0, fetched: 0, ghosts: 0, regrouped: 0 };
  readonly strikes = new Strikes();
  private readonly ring: Ring;
  /** By the number of members. */
  private readonly placements = new Map<number, Placement>();
  private readonly cuts = new Cuts();
  private readonly calledInSaves = new Set<string>();
  private newest: SaveName | undefined;

  constructor(prng: Prng, options: SaveWorldOptions) {
    super(prng, { ...options, services: new Set([SAVE_CTX]) });
    this.plan = options;
    this.ring = new Ring(options.members, options.steps);
  }

  /** Copies among so many, each a domain of its own: fewer of them with few domains. */
  placementOf(size: number): Placement {
    const known = this.placements.get(size);
    if (known !== undefined) return known;
    const { duplication, depth } = this.plan;
    const { scheme } = checkScheme({ domains: size, duplication: Math.min(duplication, size - 1), depth });
    const placement = new Placement([...Array(size).keys()], scheme.duplication, depth);
    this.placements.set(size, placement);
    return placement;
  }

  /** The program begins at all members. */
  start(): void {
    for (const process of this.processes) {
      const saver = newSaver(process, FIRST_ID);
      this.savers.push(saver);
      for (const { rank } of this.world.processes[process.number].engine.pml.peers) this.listenTo(saver, rank);
    }
    const members = this.processes.slice(0, this.plan.members).map(({ number }) => number);
    for (const saver of this.savers.slice(0, members.length)) {
      saver.phase = 'restoring';
      this.act(saver.process, () => this.beginEpoch(saver, FIRST_ID, members));
    }
  }

  private join(saver: Saver, id: number, members: readonly number[]): void {
    saver.id = id;
    saver.members = members;
    saver.rank = members.indexOf(saver.process.number);
    saver.isDue = false;
    saver.awaitsCells = false;
    saver.sentStep = -1;
    saver.core ??= new SaveCore({
      rank: saver.rank,
      depth: this.plan.depth,
      listener: { onTransition: (_rank, from, to) => this.onTransition(saver, from, to) },
    });
  }

  private onTransition(saver: Saver, from: SaveState, to: SaveState): void {
    this.trace(`saves of rank ${saver.rank}: ${from} -> ${to}`);
    this.comesTo(saver, to);
  }

  private comesTo({ process }: Saver, state: Struck): void {
    for (const us of this.strikes.comeTo(state)) this.at(us, () => this.kill(process.number));
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
          // Behind a message that the dead has not sent whole there may be others.
          if (read(done) || done.error !== undefined) next();
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
        saver.steps.set(`${message.id}/${message.step}/${message.cell}`, message.state);
        if (message.id === saver.id) this.tryStep(saver);
        break;
      case 'cells': {
        const owners = saver.owners.get(message.id) ?? new Map();
        saver.owners.set(message.id, owners.set(source, message));
        if (message.id === saver.id && saver.awaitsCells) this.stepOn(saver);
        break;
      }
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
        const list = saver.views.get(message.id) ?? new Map();
        saver.views.set(message.id, list.set(source, message));
        this.tryPlan(saver);
        break;
      }
      case 'image':
        saver.images.set(message.id, message);
        this.tryRestore(saver);
        break;
    }
    this.obey(saver);
  }

  // ---------------------------------------------------------------- the program

  private stepOn(saver: Saver): void {
    const { id, members } = saver;
    if (saver.phase !== 'running') return;
    const isEach = members.length === this.ring.cells;
    const owners = saver.owners.get(id);
    saver.awaitsCells = !isEach && owners?.size !== members.length;
    if (saver.awaitsCells) return;
    // One that has none does not know the step.
    if (saver.memory.cells.length === 0 && saver.sentStep < 0)
      saver.memory = { ...saver.memory, step: Math.max(...[...(owners?.values() ?? [])].map(({ step }) => step)) };
    const { memory } = saver;
    if (memory.step === this.plan.steps) {
      saver.phase = 'ending';
      return this.tryEnd(saver);
    }
    saver.sentStep = memory.step;
    for (const { number, state } of memory.cells) {
      const cell = this.ring.rightOf(number);
      const owner = isEach ? cell : members.findIndex((process) => owners?.get(process)?.cells.includes(cell));
      this.send(saver, owner, { kind: 'step', id, step: memory.step, cell, state });
    }
    this.tryStep(saver);
  }

  private tryStep(saver: Saver): void {
    const { memory, id } = saver;
    const keyOf = (cell: number): string => `${id}/${memory.step}/${cell}`;
    if (saver.phase !== 'running' || saver.sentStep !== memory.step) return;
    if (memory.cells.some(({ number }) => !saver.steps.has(keyOf(number)))) return;
    saver.memory = this.ring.advanced(memory, (cell) => saver.steps.get(keyOf(cell)) as number);
    for (const { number } of memory.cells) saver.steps.delete(keyOf(number));
    const { step } = saver.memory;
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
      else core.handleCopied(pieceOf([{ ...saver.memory, made }]));
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
      const { name, images, parts } = copies.shift() as (typeof copies)[number];
      if (images === undefined) core.handleNoCopy(name);
      else if (!core.handleCopy(name, pieceOf(images, parts))) this.counters.ghosts++;
    }
  }

  /** Does what has come out of the core. */
  private obey(saver: Saver): void {
    this.obeyActions(saver);
    checkReadable(saver);
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
          for (const to of action.to) this.send(saver, to, { kind: 'copy', name: copy, ...packed(own as Piece) });
          this.takeCopies(saver);
          // The program goes on with what was restored while its copies are spread.
          if (saver.phase === 'restoring') this.beginAgain(saver);
          break;
        }
        case 'excuse': {
          const copy = { ...action.name, owner: saver.rank, attempt: core.attempt };
          for (const to of action.to) this.send(saver, to, { kind: 'copy', name: copy, images: undefined, parts: undefined });
          break;
        }
        case 'committed':
          saver.membership = { rank: saver.rank, domains: [...saver.members.keys()] };
          saver.readableBefore = undefined;
          saver.committed = action.name;
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
          if (!this.ring.isRight(saver.memory))
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
    for (const owner of this.placementOf(saver.members.length).owners(saver.rank, name.k))
      if (!slot.held.has(owner)) throw new OracleError(`F7: save ${key} is committed, and rank ${saver.rank} has no copy of rank ${owner}`);
    for (const [owner, piece] of [[saver.rank, slot.own as Piece] as const, ...slot.held]) this.checkPiece(saver, name, owner, piece);
    saver.readable = [...saver.readable, name].slice(-this.plan.depth);
    if (this.newest === undefined || name.epoch > this.newest.epoch || (name.epoch === this.newest.epoch && name.k > this.newest.k)) {
      this.newest = name;
      this.counters.saves++;
    }
  }

  /** All images in it are right, of the cut of that save, and those that it says. */
  private checkPiece({ rank }: Saver, name: SaveName, owner: number, { memory, parts }: Piece): void {
    const images = memory as readonly Image[];
    const told = parts === undefined ? [owner] : parts.map((part) => part.rank);
    if (told.join() !== images.map((image) => image.rank).join())
      throw new OracleError(`F7: rank ${rank} has of rank ${owner} the images ${told.join(' ')}, as is told, and has other ones`);
    for (const image of images) {
      const { step, made } = this.cuts.cutOf(name, image);
      if (image.step !== step || image.made !== made || !this.ring.isRight(image))
        throw new OracleError(
          `F7: save ${name.epoch}-${name.k} at rank ${rank} has step ${image.step} of rank ${image.rank}, made for ${image.made}, for rank ${owner}; its cut is step ${step}, made for ${made}`,
        );
    }
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
      const operation = this.plan.mayShrink ? OPERATION.REPLACE_SOME : OPERATION.REPLACE_ALL;
      this.agree(saver, SERIES.PROGRAM, operation, 0, (decision) => {
        this.replaced(saver, decision);
        this.endCreation(process);
      });
    });
  }

  private replaced(saver: Saver, { value, id, q }: Decision): void {
    if (verdictOf(value).lacksSuccessors) {
      saver.phase = 'without spares';
      return;
    }
    const members = membersAfter(saver.members, value);
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
        this.endCreation(successor.process);
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
    if (saver.membership === undefined) core.place(saver.rank, this.placementOf(members.length));
    // Somebody died before the line was committed by those who went on: slots are those of before.
    if (saver.readableBefore !== undefined) saver.readable = saver.readableBefore;
    saver.readableBefore = undefined;
    for (const number of members) if (saver.process.core.knowledge.isFailed(number)) this.tellDeath(saver, number);
    const { membership } = saver;
    this.sendAll(saver, { kind: 'inventory', id, epoch: core.epoch, inventory: inventoryOf(core.rank, core.slots), membership });
    this.obey(saver);
  }

  private planOf({ views, id, members }: Saver) {
    const list = views.get(id);
    if (list?.size !== members.length) return undefined;
    const all = members.map((number) => list.get(number) as View);
    const former = formerOf(all) ?? { domains: [...members.keys()], now: [...members.keys()], inventories: members.map(() => []) };
    const placement = this.placementOf(former.domains.length);
    const plan = planRecovery(former.inventories, placement);
    return {
      ...plan,
      former,
      placement,
      isSame: former.domains.length === members.length,
      epoch: Math.max(...all.map(({ epoch }) => epoch)) + 1,
    };
  }

  private tryPlan(saver: Saver): void {
    const plan = saver.core?.state === 'RESTORING' ? this.planOf(saver) : undefined;
    if (plan === undefined) return;
    const { transfers, isSame } = plan;
    checkLine(plan, this.newest, (rank) => this.savers[saver.members[rank]]);
    for (const { giver, owner, epoch, k } of isSame ? transfers : []) {
      if (giver !== saver.rank) continue;
      const piece = saver.core?.slots.find({ epoch, k })?.held.get(owner) as Piece;
      this.send(saver, owner, { kind: 'image', id: saver.id, ...packed(piece) });
    }
    this.tryRestore(saver);
  }

  private tryRestore(saver: Saver): void {
    const { core, rank, images, id, members } = saver;
    const plan = core?.state === 'RESTORING' ? this.planOf(saver) : undefined;
    if (core === undefined || plan === undefined) return;
    const { line, transfers, former, isSame, epoch } = plan;
    const isGiven = isSame && transfers.some(({ owner }) => owner === rank);
    const given = images.get(id);
    if (isGiven && given?.images === undefined) return;
    if (isGiven) this.counters.fetched++;
    this.cuts.begin(epoch, id, saver.process.number, (number) => this.processes[number].isAlive);
    if (isSame) {
      const fetched = isGiven && given?.images !== undefined ? pieceOf(given.images, given.parts) : undefined;
      core.restore(epoch, line, fetched, line === undefined ? undefined : holdsOf(former.inventories, line));
      // What is newer than the line cannot be read any more.
      const { committed } = saver;
      if (committed !== undefined && (line === undefined || compareSaves(committed, line) > 0)) saver.committed = undefined;
      if (line !== undefined) saver.membership = { rank, domains: [...members.keys()] };
    } else {
      this.counters.regrouped++;
      core.regroup(rank, this.placementOf(members.length), line, this.takenBy(saver, plan));
      core.restore(epoch, line, undefined);
      saver.readableBefore = saver.readable;
      this.comesTo(saver, 'REGROUPED');
    }
    // Older ones stay, newer ones are gone, and a successor, like those who go on with what others have made, has the line alone.
    const older = isSame && line !== undefined ? saver.readable.filter((name) => compareSaves(name, line) < 0) : [];
    saver.readable = line === undefined ? [] : [...older, line].slice(-this.plan.depth);
  }

  /** What a rank goes on with when those who made the line are not those who meet: its own part of it, and those that it holds for others. */
  private takenBy({ core, rank, members }: Saver, plan: NonNullable<ReturnType<SaveWorld['planOf']>>): Piece | undefined {
    const { line, former, transfers } = plan;
    if (core === undefined || line === undefined) return undefined;
    const parts = groupingOf(line, plan, former, members.length, false)[rank];
    const slot = core.slots.find(line);
    const taken = takenOver(entriesOf(line, former), transfers, former.now, members.length)[rank];
    const pieces = taken.map(({ owner }) => (owner === core.rank ? slot?.own : slot?.held.get(owner)) as Piece);
    return pieceOf(pieces.flatMap(imagesOf), parts);
  }

  /** The program begins again, from what was restored. */
  private beginAgain(saver: Saver): void {
    const newest = saver.core?.slots.newest;
    if (newest === undefined && saver.core?.epoch !== 0) this.counters.restarts++;
    const { rank, members, id } = saver;
    saver.phase = 'running';
    saver.sentStep = -1;
    saver.memory = newest === undefined ? this.ring.initial(rank, members.length) : this.ring.restored(rank, imagesOf(newest.own as Piece));
    if (members.length < this.ring.cells)
      this.sendAll(saver, { kind: 'cells', id, step: saver.memory.step, cells: saver.memory.cells.map(({ number }) => number) });
    this.later(saver, () => this.stepOn(saver));
  }

  // ---------------------------------------------------------------- the end

  private get working(): Saver[] {
    return this.savers.filter(({ process, phase }) => phase !== 'standby' && process.isAlive && !this.oracle.declared.has(process.number));
  }

  override get isFinished(): boolean {
    return this.oracle.isFinished && this.working.every(({ phase }) => phase === 'ended' || phase === 'without spares');
  }

  /** Those that live, and of whom nobody says otherwise. */
  get living(): number[] {
    return this.processes.filter(({ number, isAlive }) => isAlive && !this.oracle.declared.has(number)).map(({ number }) => number);
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
    const ended = this.working.filter(({ phase }) => phase === 'ended');
    if (ended.length > 0 && ended.length === ended[0].members.length)
      this.ring.checkWhole(
        ended.map(({ memory }) => memory),
        'what they end with',
      );
  }
}
