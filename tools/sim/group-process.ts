// One process of the profile `group`: the production saves of its group, its lives, and the steps of saves and recoveries, with the simulated engine
// below them and a program of the profile `log` above.
import { MultirailError } from '../../src/errors.ts';
import type { Placement } from '../../src/ft/checkpoint/placement.ts';
import { GroupLacks } from '../../src/ft/groups/group-lacks.ts';
import { GroupLives } from '../../src/ft/groups/group-lives.ts';
import { type GroupMeetingHost, type GroupMember, type MeetingStreams, meetGroups } from '../../src/ft/groups/group-meeting.ts';
import { type BegunSave, GroupSaveSteps, type SaveSteps, type Until } from '../../src/ft/groups/group-save-steps.ts';
import { type GroupSaveEnd, GroupSaves, type GroupSlot } from '../../src/ft/groups/group-saves.ts';
import type { Groups } from '../../src/ft/groups/groups.ts';
import { SendLog } from '../../src/ft/log/send-log.ts';
import type { Pml } from '../../src/pml/pml.ts';
import type { FlowNumbers, Succession, Sync } from '../../src/pml/succession.ts';
import { crc32cJs } from '../../src/util/crc32c.ts';
import { Iov } from '../../src/util/iov.ts';
import { GroupChannel, type LookSteps } from './group-channel.ts';
import { decodeGroupedImage, encodeGroupedImage, type GroupedImage, type LoggedRow } from './group-image.ts';
import { ImageRoom } from './group-memory.ts';
import { COVERED } from './log-program.ts';
import { newWorker, type Worker } from './log-worker.ts';
import { OracleError } from './oracle.ts';

/** What a save may wait for messages of its own group: as long as it takes. */
const QUIET_MS = 600_000;

export interface ProcessHost {
  readonly groups: Groups;
  readonly placement: Placement;
  readonly logBytesMax: number;
  readonly slabBytes: number;
  readonly isBlocking: boolean;
  readonly counters: Record<string, number>;
  pmlOf(number: number): Pml;
  wake(number: number): void;
  wakeAfter(number: number, ms: number): void;
  nowMs(): number;
  refusesCopy(): boolean;
  /** Contexts that the program of that worker has used, and not freed. */
  usedBy(worker: Worker): readonly number[];
  /** All that are there of what begins at that place of the program. */
  forgets(number: number): void;
  beginsAgain(process: GroupProcess, before: Worker | undefined): void;
  goesBack(why: string | undefined): void;
  committed(process: GroupProcess, k: number): void;
}

interface Begun extends BegunSave {
  readonly worker: Worker;
}

/** A save that the program waits for. */
interface Saving {
  readonly worker: Worker;
  readonly steps: SaveSteps<number>;
  waiting: Until | undefined;
  sinceMs: number;
}

export class GroupProcess {
  readonly number: number;
  rank = -1;
  worker: Worker;
  readonly saves: GroupSaves;
  readonly lives = new GroupLives();
  readonly lacks = new GroupLacks();
  readonly memory: ImageRoom;
  channel: GroupChannel | undefined;
  meeting: LookSteps<'in place' | 'back'> | undefined;
  private readonly host: ProcessHost;
  /** Of its earlier lives. */
  readonly logsBefore: SendLog[] = [];
  private saving: Saving | undefined;
  /** Memory of an image that has come, and with which nothing has begun yet. */
  private fetched: Uint8Array | undefined;
  /** It goes back, and waits until that is so of what is on its way. */
  private awaited: (() => boolean) | undefined;
  private begun: Begun | undefined;
  /** The program has come to so many calls in which it may save; somebody of its group is behind so many. */
  attempts = 0;
  passed = 0;
  /** The call whose save is under way; 0: none is. */
  private savingCall = 0;
  private numbersAtCut: GroupSlot['numbers'] | undefined;

  constructor(number: number, host: ProcessHost) {
    this.number = number;
    this.host = host;
    this.memory = new ImageRoom(() => host.refusesCopy());
    this.worker = this.makeWorker();
    this.saves = new GroupSaves({
      memory: this.memory,
      warn: () => undefined,
      send: (to, words) => this.channel?.send(to, words),
      sendImage: (to, image) => this.channel?.sendImage(to, image),
      takeImage: (from, room, crc, ended) =>
        this.channel === undefined ? ended('interrupted') : this.channel.takeImage(from, room, crc, ended),
      stop: () => this.channel?.stop(),
      ended: (end, slot) => this.saveEnded(end, slot),
      committedOf: (rank, nextIn, nextOut) => {
        const { succession, members } = this.worker;
        if (succession === undefined || this.worker.isOver) return;
        succession.commitOf(members[rank], nextIn, nextOut);
        succession.tap.retry();
        if (this.lacks.saved(rank, nextIn)) this.worker.log.becomeWhole();
        this.host.wake(this.number);
      },
    });
  }

  private makeWorker(): Worker {
    const { logBytesMax, slabBytes } = this.host;
    return newWorker(this.number, new SendLog({ bytesMax: logBytesMax, slabBytes }), false);
  }

  private get pml(): Pml {
    return this.host.pmlOf(this.number);
  }

  private get group(): number {
    return this.host.groups[this.rank];
  }

  get isRunning(): boolean {
    const { succession, isBack } = this.worker;
    return succession !== undefined && !this.lives.isAgain && !isBack;
  }

  get isMate(): (rank: number) => boolean {
    return (rank) => this.host.groups[rank] === this.group;
  }

  // ---------------------------------------------------------------- what begins

  /** All begin together. */
  beginFirst(rank: number, members: readonly number[]): void {
    this.rank = rank;
    this.saves.form(this.host.groups, rank);
    this.open(0, members);
    this.channel?.listen();
    this.enter(members);
    this.worker.state = rank + 17;
    this.worker.runs = true;
    this.saves.open(this.host.placement, () => false);
  }

  /** Another epoch begins: all of it is on contexts of its own. */
  open(epoch: number, members: readonly number[]): void {
    this.saves.interrupt();
    this.channel?.end(new MultirailError('ERR_REVOKED', 'another epoch has begun'));
    this.channel = new GroupChannel(epoch, members, this.rank, {
      pml: this.pml,
      memory: this.memory,
      wake: () => this.host.wake(this.number),
      handle: (from, words) => this.saves.handle(from, words),
    });
  }

  /** This process has a place in the program. */
  private enter(members: readonly number[]): void {
    const { worker } = this;
    worker.rank = this.rank;
    worker.members = [...members];
    const covered = new Set(COVERED);
    const within = [...members.keys()].filter((rank) => rank !== this.rank && this.isMate(rank)).map((rank) => members[rank]);
    worker.succession = this.pml.log({ log: worker.log, covers: (ctx) => covered.has(ctx), digest: crc32cJs, within }, members);
  }

  // ---------------------------------------------------------------- a recovery

  meet(): void {
    this.awaited = undefined;
    this.meeting = meetGroups(this.meetingHost());
  }

  /** Steps of the recovery, as far as they go now. True when something has moved. */
  step(): boolean {
    const { meeting, worker } = this;
    if (meeting === undefined) return false;
    const next = meeting.next();
    if (next.done !== true) return false;
    this.meeting = undefined;
    if (next.value === 'in place') this.worker.runs = true;
    return next.value === 'in place' && worker !== undefined;
  }

  private view(): GroupMember {
    const { worker, saves, lives } = this;
    const { groups, entries, newest } = saves;
    const mode = lives.isAgain ? 'again' : worker.isBack ? 'back' : this.isRunning ? 'runs' : 'new';
    const isWhole = worker.succession === undefined || this.isLogWhole();
    return { mode, groups, entries, committed: [...newest], life: lives.life, isWhole, places: worker.members.length };
  }

  private isLogWhole(): boolean {
    const { log, members } = this.worker;
    for (const { channel, failure, rank } of this.pml.peers)
      if (failure !== undefined && channel?.state !== 'HELD' && members.includes(rank)) return false;
    return log.isWhole;
  }

  private streams(): MeetingStreams | undefined {
    const { succession, members } = this.worker;
    if (succession === undefined) return undefined;
    return {
      sentTo: (rank) => succession.sentTo(members[rank]),
      hasTaken: (rank, sent) => succession.hasTaken(members[rank], sent),
      stopTo: (rank) => succession.stopTo(members[rank]),
      isDrained: (rank) => succession.isDrained(members[rank]),
      has: (rank, below) => succession.has(members[rank], below),
    };
  }

  private meetingHost(): GroupMeetingHost<void, GroupMember & { readonly passed: number }> {
    const self = this;
    const { host, saves, lives, rank } = this;
    const channel = this.channel as GroupChannel;
    let found: { readonly image: GroupedImage; readonly slot: GroupSlot } | undefined;
    const bytesOf = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
    const valueIn = <T>(bytes: Uint8Array): T => JSON.parse(new TextDecoder().decode(bytes)) as T;
    return {
      rank,
      lives,
      group: saves,
      mayRestart: true,
      get isRunning() {
        return self.isRunning;
      },
      get streams() {
        return self.streams();
      },
      *exchange() {
        const { succession } = self.worker;
        if (self.isRunning && succession !== undefined) succession.tap.mustKeep = true;
        const own = { ...self.view(), passed: self.isRunning ? self.passed : 0 };
        const all = yield* channel.exchange(bytesOf(own));
        return all.map((bytes) => valueIn<typeof own>(bytes));
      },
      form: (groups) => saves.form(groups, rank),
      listen: () => channel.listen(),
      endRun: () => this.endRun(),
      *tellSent(told, from) {
        for (const [to, numbers] of told) channel.tell(to, bytesOf([...numbers]));
        const sent: [number, FlowNumbers][] = [];
        for (const one of from) sent.push([one, new Map(valueIn<[number, number][]>(yield* channel.hear(one)))]);
        return sent;
      },
      nextTurn: (_, isSo) => {
        self.awaited = isSo;
      },
      *fetch(plan) {
        self.awaited = undefined;
        if (self.fetched !== undefined) self.memory.give(self.fetched);
        self.fetched = undefined;
        const line = plan.lines[self.group];
        let piece = plan.failing.has(self.group) ? saves.pieceOf(rank, line) : undefined;
        for (const { giver, owner, bytes, crc, k } of plan.transfers) {
          if (giver === rank) channel.sendImage(owner, saves.pieceOf(owner, k)?.memory as Uint8Array, 1);
          if (owner !== rank) continue;
          const room = self.memory.take(bytes);
          self.fetched = room;
          let end: string | undefined;
          channel.takeImage(
            giver,
            room,
            crc,
            (how) => {
              end = how;
            },
            1,
          );
          while (end === undefined) yield;
          while (end === 'interrupted') yield;
          if (end === 'whole') piece = { bytes, crc, memory: room };
        }
        const memory = piece?.memory as Uint8Array | undefined;
        if (piece !== undefined && crc32cJs(memory as Uint8Array) !== piece.crc)
          throw new OracleError(`F12: rank ${rank} goes back to an image that was written over`);
        if (piece !== undefined) {
          const image = decodeGroupedImage(memory as Uint8Array);
          found = { image, slot: { k: line, step: 0, piece, numbers: image.numbers } };
        }
        return !plan.failing.has(self.group) || line < 0 || found !== undefined;
      },
      *tell(word) {
        const all = yield* channel.exchange(bytesOf(word));
        return all.map((bytes) => valueIn<number>(bytes));
      },
      image: () => found && { lacks: found.image.lacks, flows: found.image.numbers.flows },
      beginFrom: (_, wasRunning) => this.beginFrom(channel.members, found?.image, wasRunning, found?.slot),
      goOn(isMate, views) {
        const { succession, members } = self.worker;
        for (const [place, number] of channel.members.entries()) {
          if (members[place] === number) continue;
          (succession as Succession).succeed(members[place], number);
          members[place] = number;
        }
        (succession as Succession).tap.mustKeep = false;
        self.passed = Math.max(...views.map((view, of) => (isMate(of) && view.mode === 'runs' ? view.passed : 0)));
      },
      settled: () => undefined,
      synchronise: () => this.synchronise(channel),
      open: (lacks) => saves.open(host.placement, lacks),
      goBack: (_, why) => {
        if (why?.startsWith('not all images') === true) host.counters.linesLost++;
        host.goesBack(why);
        return 'back';
      },
    };
  }

  /** This run of the program is over. */
  private endRun(): void {
    const { worker } = this;
    const error = new MultirailError('ERR_REVOKED', 'a rank of this group has failed');
    this.host.counters.again++;
    worker.isOver = true;
    this.saving = undefined;
    worker.succession?.giveUp(error);
    for (const ctx of this.host.usedBy(worker)) this.pml.revokeContext(ctx, error);
  }

  private beginFrom(
    members: readonly number[],
    image: GroupedImage | undefined,
    wasRunning: boolean,
    slot: GroupSlot | undefined,
  ): GroupSlot | undefined {
    const before = this.worker;
    this.fetched = undefined;
    if (wasRunning) {
      this.host.forgets(this.number);
      const { succession } = before;
      succession?.forget(COVERED);
      succession?.tap.open();
      this.pml.endLog();
      before.log.clear();
      // Rails may read from it still.
      this.logsBefore.push(before.log);
      this.host.counters.livesBegun++;
    }
    this.worker = this.makeWorker();
    const { worker } = this;
    worker.began = this.channel?.epoch ?? 0;
    this.saving = undefined;
    this.begun = undefined;
    this.savingCall = 0;
    this.enter(members);
    const { flows = [], unexpected = [] } = image?.numbers ?? {};
    worker.succession?.restore({
      flows: flows.map((flow) => ({ ...flow, peer: members[flow.peer] })),
      unexpected: unexpected.map((message) => ({ ...message, source: members[message.source] })),
    });
    worker.place = image?.place ?? 0;
    worker.state = image?.state ?? this.rank + 17;
    this.attempts = image?.attempts ?? 0;
    this.passed = this.attempts;
    for (const { to, ctx, tag, seq, signature, sync, payload } of image?.logged ?? [])
      worker.log.add(members[to], ctx, tag, seq, signature, sync, new Iov(payload.length === 0 ? [] : [payload]), true);
    this.lacks.list = image?.lacks ?? [];
    if (!this.lacks.isEmpty) worker.log.becomeTorn();
    this.host.beginsAgain(this, wasRunning ? before : undefined);
    return slot;
  }

  /** Whoever waits for the word of a member gets it. */
  private *synchronise(channel: GroupChannel): LookSteps<void> {
    const { members } = channel;
    const { pml, rank } = this;
    const succession = this.worker.succession as Succession;
    const awaited = [...members.keys()].filter((one) => one !== rank && pml.peer(members[one]).channel?.state === 'AWAITED');
    const text = new TextEncoder();
    const all = yield* channel.exchange(text.encode(JSON.stringify(awaited)));
    const lists = all.map((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as number[]);
    for (const [one, list] of lists.entries()) {
      if (list.includes(rank)) channel.tell(one, text.encode(JSON.stringify(succession.syncFor(members[one]))));
    }
    for (const one of awaited) {
      const sync = JSON.parse(new TextDecoder().decode(yield* channel.hear(one))) as Sync;
      const sent = this.lives.sentBefore(one);
      this.checkReach(one, sync, sent);
      succession.takeSync(members[one], sync, sent);
      this.host.wake(this.number);
    }
  }

  /** F12: the log has all that a member asks for; what an earlier life has sent is with it. */
  private checkReach(rank: number, { contexts }: Sync, sent: FlowNumbers | undefined): void {
    const { log, members } = this.worker;
    const has = new Set<string>();
    for (const { ctx, seq } of log.messagesTo(members[rank])) has.add(`${ctx}/${seq}`);
    const asked = new Map(contexts.map(({ ctx, nextIn, holes }) => [ctx, { nextIn, holes }]));
    for (const [ctx, { nextSeq }] of this.pml.peer(members[rank]).flowsOut) {
      if (!COVERED.includes(ctx)) continue;
      // Of a context that it does not name it has nothing.
      const { nextIn, holes } = asked.get(ctx) ?? { nextIn: 0, holes: [] };
      const low = sent?.get(ctx) ?? 0;
      for (const seq of [...holes, ...Array.from({ length: Math.max(0, nextSeq - nextIn) }, (_, i) => nextIn + i)]) {
        if (seq < low || seq >= nextSeq || has.has(`${ctx}/${seq}`)) continue;
        throw new OracleError(`F12: rank ${this.rank} has trimmed message ${seq} of context ${ctx}, for which rank ${rank} asks`);
      }
    }
  }

  // ---------------------------------------------------------------- a save

  private saveEnded(end: GroupSaveEnd, slot: GroupSlot): void {
    const { begun, host } = this;
    host.counters[end === 'committed' ? 'saves' : end]++;
    // What a recovery finds out about a save can be that it was committed before a holder of its images died.
    if (end === 'committed' && this.saves.isOpen) host.committed(this, slot.k);
    if (begun !== undefined && begun.slot === slot) begun.end = end;
    host.wake(this.number);
    if (begun === undefined || begun.slot !== slot || begun.worker !== this.worker) return;
    if (end === 'committed' && this.savingCall > 0) this.passed = Math.max(this.passed, this.savingCall);
    this.endCut();
  }

  private endCut(): void {
    this.savingCall = 0;
    if (this.worker.isOver) return;
    this.worker.succession?.abandonCut();
    this.worker.succession?.tap.retry();
    this.host.wake(this.number);
  }

  /** What it waits for beside messages is so: it needs a turn. */
  get wantsTurn(): boolean {
    const { isOver, runs } = this.worker;
    if (this.saving?.worker === this.worker && runs && !isOver && this.saving.waiting?.isSo() === true) return true;
    return this.awaited?.() === true;
  }

  /** The program is at a call in which it may save. True: it goes on. */
  passes(isLook: boolean): boolean {
    const { worker, host } = this;
    if (this.saving?.worker !== worker) {
      this.attempts++;
      const steps = new GroupSaveSteps(this.saveHost(worker)).save(isLook, host.isBlocking);
      this.saving = { worker, steps, waiting: undefined, sinceMs: host.nowMs() };
    }
    const { saving } = this;
    if (saving === undefined) return false;
    for (;;) {
      const { waiting, sinceMs, steps } = saving;
      const { limitMs } = waiting ?? {};
      if (waiting !== undefined && !waiting.isSo() && (limitMs === undefined || host.nowMs() - sinceMs < limitMs)) return false;
      const next = steps.next();
      if (this.saving !== saving || worker.isOver) return false;
      if (next.done === true) {
        this.saving = undefined;
        return true;
      }
      saving.waiting = next.value;
      saving.sinceMs = host.nowMs();
      if (next.value.limitMs !== undefined) host.wakeAfter(this.number, next.value.limitMs);
    }
  }

  /** What a save of its program waits for. */
  describeSave(): string {
    const { saving } = this;
    if (saving === undefined) return '';
    const { underWay, unreceived, isWritten } = this.saveHost(saving.worker);
    const sends = [...this.pml.peers].flatMap(({ rank, sends: of, recvs, channel }) => [
      ...[...of].map((message) => `send ${message.ctx}/${message.seq} to ${rank}`),
      ...[...recvs].map(({ ctx, seq }) => `receive ${ctx}/${seq} from ${rank}`),
      ...(channel === undefined ? [] : [`channel ${rank} ${channel.state}`]),
    ]);
    return `, waits for ${saving.waiting?.isSo}: ${isWritten ? 'written' : 'not written'}; ${[...underWay(), ...unreceived(), ...sends].join(', ')}`;
  }

  private mates(): Set<number> {
    const { members } = this.worker;
    return new Set(this.saves.members.map((rank) => members[rank]));
  }

  private saveHost(worker: Worker): ConstructorParameters<typeof GroupSaveSteps>[0] {
    const self = this;
    const { saves, host } = this;
    const succession = worker.succession as Succession;
    const isCovered = (ctx: number): boolean => COVERED.includes(ctx);
    return {
      rank: this.rank,
      group: saves,
      quietMs: QUIET_MS,
      get isOver() {
        return worker.isOver;
      },
      get step() {
        return self.attempts;
      },
      get attempts() {
        return self.attempts;
      },
      get isAhead() {
        return self.attempts > self.passed;
      },
      measured: [],
      get isWritten() {
        return (
          succession.tap.waitingCount === 0 && worker.members.every((number) => number === self.number || succession.isWritten(number))
        );
      },
      get isNearlyFull() {
        return worker.log.usedBytes >= (host.logBytesMax / 4) * 3 || !worker.log.isWhole;
      },
      underWay: () => {
        const mates = this.mates();
        const texts: string[] = [];
        for (const { rank, sends } of this.pml.peers)
          for (const { ctx } of sends) if (isCovered(ctx) && mates.has(rank)) texts.push(`to process ${rank}`);
        return texts;
      },
      unreceived: () => {
        const mates = this.mates();
        const left = this.pml.unreceived().filter(({ peer, ctx }) => isCovered(ctx) && mates.has(peer));
        return left.map(({ peer }) => `from process ${peer}`);
      },
      cut: () => this.cut(),
      abandonCut: () => this.endCut(),
      capture: () => this.capture(),
      saved: () => undefined,
      looked: () => undefined,
      pass: () => {
        this.passed = Math.max(this.passed, this.attempts);
      },
      again: () => {
        host.counters.triedAgain++;
      },
      failed: () => new MultirailError('ERR_REVOKED', 'a rank has failed'),
      isFailure: (error) => error instanceof MultirailError && error.code === 'ERR_REVOKED',
    };
  }

  private cut(): void {
    const { worker } = this;
    const { members, log } = worker;
    const succession = worker.succession as Succession;
    const wasWhole = log.isWhole;
    this.savingCall = this.attempts;
    succession.abandonCut();
    const { flows, unexpected } = succession.cut();
    const rankOf = (number: number): number => members.indexOf(number);
    this.numbersAtCut = {
      flows: flows.map((flow) => ({ ...flow, peer: rankOf(flow.peer) })),
      unexpected: unexpected.map((message) => ({ ...message, source: rankOf(message.source) })),
    };
    if (!wasWhole) this.lacks.cut(this.numbersAtCut.flows, this.isMate);
  }

  private capture(): Begun | undefined {
    const { worker, saves, memory } = this;
    const { members, log } = worker;
    const numbers = this.numbersAtCut as GroupSlot['numbers'];
    const logged: LoggedRow[] = [];
    for (const [to, number] of members.entries()) {
      if (to === this.rank) continue;
      for (const { ctx, tag, seq, signature, sync, payload } of log.messagesTo(number))
        logged.push({ to, ctx, tag, seq, signature, sync, payload: payload.views[0] ?? new Uint8Array(0) });
    }
    const { attempts, lacks } = this;
    const image = encodeGroupedImage({ place: worker.place + 1, state: worker.state, attempts, numbers, lacks: lacks.list, logged });
    const room = memory.take(image.length);
    room.set(image);
    const piece = { bytes: room.length, crc: crc32cJs(room), memory: room };
    this.begun = { slot: { k: saves.core.k, step: worker.place, piece, numbers }, end: undefined, worker };
    return this.begun;
  }
}
