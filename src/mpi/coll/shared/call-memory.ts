// Collectives of one communicator through memory that its ranks share: who may use it when, what a call waits for, and how one that fails
// tells the others.
//
//   IDLE         no collective has begun yet
//   SETTING_UP   its first collective has begun: the ranks make and map the memory (setup.ts); calls that want it wait
//   READY        every rank has mapped it
//   REFUSED      a rank could not: all go on by messages
//   CLOSED       the communicator is gone, or revoked
//
// Calls take their turn in the order in which they have begun, which is the same at every rank, and one at a time. A rank that is in call T has
// thus finished all earlier ones, and a slot may be written again when every rank has finished the call that it was written for.
//
// No call waits on memory alone. Whoever polls the rails looks at the words (waits.ts); before sleep it rings a bell that those who are waited
// for look at; a rank whose call fails leaves its error in place of its data; and now and then it is looked for members that are gone, that
// have died, or that have gone past the call.
import type { WatchedWords } from '../../../btl/btl.ts';
import { MultirailError } from '../../../errors.ts';
import { type NativeBinding, SHARED_CALL_END } from '../../../native/binding.ts';
import { ANY_SOURCE } from '../../constants.ts';
import type { ArrayName, TypedArray } from '../kernels.ts';
import { typedView } from '../memory.ts';
import type { Operation, Steps } from '../operation.ts';
import type { CallMemory, MemoryCall, Scope } from '../scope.ts';
import { agree } from '../signature.ts';
import { type AtOnce, Plan } from './at-once.ts';
import { hasEnded } from './process-time.ts';
import { CONTRIBUTION, callAfter, isAfter, PARTIAL, RESULT, SHORT_BYTES, type SharedSegment, SLOTS } from './segment.ts';
import { readError, writeError } from './slot-error.ts';

type MemoryState = 'IDLE' | 'SETTING_UP' | 'READY' | 'REFUSED' | 'CLOSED';
const STATE_EDGES: Record<MemoryState, readonly MemoryState[]> = {
  IDLE: ['SETTING_UP', 'CLOSED'],
  SETTING_UP: ['READY', 'REFUSED', 'CLOSED'],
  READY: ['CLOSED'],
  REFUSED: ['CLOSED'],
  CLOSED: [],
};

const { DONE, BELL, TAKEN_AWAY, UNFIT } = SHARED_CALL_END;
/** What came of a call in one step: AGAIN where not everybody has come yet; BY_STEPS where it cannot, or should not, go on in that way. */
export type Attempt = 'DONE' | 'AGAIN' | 'BY_STEPS';

const USES = [CONTRIBUTION, PARTIAL, RESULT] as const;
/** Waits for a member to finish a call, in place of a use. */
const CLEARED = -1;

/** A call that waits for what others write. */
export interface PendingMemoryCall {
  readonly call: MemoryCall;
  /** World ranks. */
  readonly missing: readonly number[];
}

/** What the memory asks of the process. */
export interface MemoryHost {
  /** Its calls are to be looked at from now on. */
  add(memory: SharedCalls): void;
  /** Wakes that process, which sleeps. */
  ring(world: number): void;
  /** Makes short calls in one step. */
  readonly native: Pick<NativeBinding, 'sharedCall'> | undefined;
  /** More ranks than processors are on this host. */
  readonly isCrowded: boolean;
}

export class SharedCalls implements CallMemory {
  private readonly scope: Scope;
  private readonly host: MemoryHost;
  private state: MemoryState = 'IDLE';
  private segment!: SharedSegment;
  private words!: Int32Array;
  private unmap: (() => void) | undefined;
  /** Calls that want the memory, in their order; a call that has failed stays until the others can be told. */
  private readonly line: MemoryCall[] = [];
  /** Calls by messages that ranks which give other lengths would make through memory. */
  private readonly apart = new Set<MemoryCall>();
  /** The first of the line, once it has its turn. */
  private active: MemoryCall | undefined;
  private call = 0;
  // What the active call waits for: the flags of `use` of the members [cursor, until), every `step`-th.
  private use = CONTRIBUTION;
  private cursor = 0;
  private until = 0;
  private step = 1;
  private expectedBytes = 0;
  /** The call that must be finished, where clearance is waited for. */
  private finishedCall = 0;
  /** Every member has finished all calls below this one. */
  private everybodyClear = 1;
  /** The call that each slot of this rank was written for last, by use and place. */
  private readonly written = new Int32Array(USES.length * SLOTS);
  private readonly longWritten = new Int32Array(2);
  private readonly views = new Map<ArrayName, TypedArray>();
  /** Of calls in one step, while the memory is READY. */
  private plan: Plan | undefined;
  /** The host looks at it. */
  isKnown = false;

  constructor(scope: Scope, host: MemoryHost) {
    this.scope = scope;
    this.host = host;
  }

  private moveTo(next: MemoryState): void {
    if (!STATE_EDGES[this.state].includes(next))
      throw new MultirailError('ERR_INTERNAL', `shared memory of ${this.scope.name}: no edge ${this.state} -> ${next}`);
    this.state = next;
  }

  // ---------------------------------------------------------------- its life

  get isIdle(): boolean {
    return this.state === 'IDLE';
  }

  get isSettingUp(): boolean {
    return this.state === 'SETTING_UP';
  }

  get isReady(): boolean {
    return this.state === 'READY';
  }

  /** For people and tests. */
  get stateName(): string {
    return this.state;
  }

  /** Calls wait for what others write, or have yet to tell them something. */
  get hasCalls(): boolean {
    return this.line.length > 0;
  }

  /** Calls are to be looked at, those by messages now and then. */
  get isWaiting(): boolean {
    return this.line.length > 0 || this.apart.size > 0;
  }

  setUpBegins(): void {
    this.moveTo('SETTING_UP');
  }

  /** Every rank has come to the same result, or a member is gone. */
  setUpEnded(segment: SharedSegment | undefined, unmap: () => void): void {
    if (this.state === 'CLOSED') return segment === undefined ? undefined : unmap();
    if (segment === undefined) return this.moveTo('REFUSED');
    this.segment = segment;
    this.words = segment.words;
    this.unmap = unmap;
    this.plan = new Plan(segment, this.scope.rank, this.host.isCrowded);
    this.moveTo('READY');
  }

  /** The communicator is gone, or revoked: calls that are under way end with the error. */
  close(error: MultirailError): void {
    if (this.state === 'CLOSED') return;
    for (const call of [...this.line, ...this.apart]) if (!call.done) call.fail(error, true);
    this.moveTo('CLOSED');
    this.line.length = 0;
    this.apart.clear();
    this.active = undefined;
    this.views.clear();
    this.plan = undefined;
    this.unmap?.();
    this.unmap = undefined;
  }

  // ---------------------------------------------------------------- a call

  /** Through memory when it is its turn and everybody has it, else by messages. */
  *run(o: Operation, through: (o: Operation, memory: SharedCalls) => Steps, messages: (o: Operation) => Steps): Steps {
    if (this.state === 'REFUSED' || this.state === 'CLOSED') return yield* messages(o);
    this.enter(o);
    o.awaitMemory();
    yield;
    if (this.state === 'READY') yield* through(o, this);
    else yield* messages(o);
  }

  /** By messages, for a kind of call that may go through memory when it is shorter. */
  *runApart(o: Operation, messages: (o: Operation) => Steps): Steps {
    if (this.state !== 'REFUSED' && this.state !== 'CLOSED') {
      o.memory = this;
      this.apart.add(o);
      if (!this.isKnown) this.host.add(this);
    }
    yield* messages(o);
  }

  private enter(call: MemoryCall): void {
    call.memory = this;
    call.openedAs = this.scope.proc.engine.pml.nextOpened();
    this.line.push(call);
    if (!this.isKnown) this.host.add(this);
  }

  /**
   * Tries to make a call in one step of the native part, where the calls before it have ended; nothing that is done then is wrong to do again, in this
   * way or by steps.
   */
  tryAtOnce(tag: number, code: number, call: AtOnce): Attempt {
    const { host, plan, segment, words, scope } = this;
    if (plan === undefined || host.native === undefined || this.line.length > 0) return 'BY_STEPS';
    this.call = tag;
    if (call.puts && !this.mayWrite(CONTRIBUTION, call.bytes) && !this.isCleared()) return 'BY_STEPS';
    if (words[segment.clearAt(scope.rank)] !== tag) this.clearUpTo(tag);
    const end = host.native.sharedCall(words, plan.of(tag, code, call), call.own, call.out);
    if (call.puts) this.written[CONTRIBUTION * SLOTS + (tag & (SLOTS - 1))] = tag;
    if ((end & BELL) !== 0) this.answerBell();
    if ((end & DONE) === 0) return (end & (TAKEN_AWAY | UNFIT)) === 0 ? 'AGAIN' : 'BY_STEPS';
    if (call.until - call.from === this.members) this.everybodyIsHere();
    return 'DONE';
  }

  look(call: MemoryCall): boolean {
    if (this.state === 'SETTING_UP') return false;
    if (this.state !== 'READY') return true;
    if (this.line[0] !== call) return false;
    if (this.active !== call) this.activate(call);
    return this.isThere(call);
  }

  private activate(call: MemoryCall): void {
    const { segment, words, scope } = this;
    this.active = call;
    this.call = call.tag;
    this.cursor = this.until = 0;
    // Every call before this one has ended here.
    const at = segment.clearAt(scope.rank);
    if (words[at] !== call.tag) this.clearUpTo(call.tag);
  }

  private clearUpTo(call: number): void {
    Atomics.store(this.words, this.segment.clearAt(this.scope.rank), call);
    this.answerBell();
  }

  leave(call: MemoryCall): void {
    this.apart.delete(call);
    const { line } = this;
    if (this.state === 'READY' && line[0] === call) {
      if (this.active !== call) this.activate(call);
      if (call.error !== undefined && !this.leaveError(call.error)) return;
      this.passOn();
    } else if (this.state === 'REFUSED') {
      const at = line.indexOf(call);
      if (at >= 0) line.splice(at, 1);
    }
    // Else it has failed before its turn, and waits for that to tell the others.
  }

  private passOn(): void {
    const { line } = this;
    this.clearUpTo(callAfter(this.call));
    this.active = undefined;
    this.cursor = this.until = 0;
    if (line.length === 1) line.pop();
    else {
      line.shift();
      this.scope.proc.engine.schedule();
    }
  }

  // ---------------------------------------------------------------- for the steps of calls

  /** Members of the segment, which are the ranks. */
  get members(): number {
    return this.segment.members;
  }

  /** False: `o.awaitMemory()` first, since not everybody has finished the call that the slot was written for. */
  mayWrite(use: number, bytes: number): boolean {
    const { call } = this;
    const short = this.written[use * SLOTS + (call & (SLOTS - 1))];
    const long = bytes > SHORT_BYTES ? this.longWritten[call & 1] : 0;
    const last = isAfter(long, short) && long !== 0 ? long : short;
    // Its own: an attempt in one step has put it there.
    if (last === 0 || last === call || isAfter(this.everybodyClear, last)) return true;
    this.use = CLEARED;
    this.finishedCall = last;
    this.cursor = 0;
    this.until = this.members;
    this.step = 1;
    return false;
  }

  /** Where data of that length, of that member and use, begin in `bytes`. */
  placeOf(member: number, use: number, bytes: number): number {
    return bytes > SHORT_BYTES ? this.segment.longAt(member, this.call) : this.segment.dataAt(member, use, this.call);
  }

  /** Puts data where the others find them, and says that they are there. */
  put(use: number, data: Uint8Array): void {
    const { length } = data;
    // An attempt in one step has put it, and others may be reading it.
    if (this.written[use * SLOTS + (this.call & (SLOTS - 1))] === this.call) return;
    if (length > 0) this.segment.bytes.set(data, this.placeOf(this.scope.rank, use, length));
    this.publish(use, length);
  }

  /** What stands at placeOf() is what the others wait for. */
  publish(use: number, bytes: number): void {
    const { segment, words, call } = this;
    const at = segment.flagAt(this.scope.rank, use, call);
    words[at + 1] = (this.active as MemoryCall).code;
    words[at + 2] = bytes;
    this.setFlag(at, use, call);
    if (bytes > SHORT_BYTES) this.longWritten[call & 1] = call;
  }

  private setFlag(at: number, use: number, flag: number): void {
    this.written[use * SLOTS + (this.call & (SLOTS - 1))] = this.call;
    Atomics.store(this.words, at, flag);
    this.answerBell();
  }

  /** The steps go on when these members have put as many bytes, after `o.awaitMemory()`. */
  expect(use: number, from: number, until: number, step: number, bytes: number): void {
    this.use = use;
    this.cursor = from;
    this.until = until;
    this.step = step;
    this.expectedBytes = bytes;
  }

  /** Everybody has begun this call, so that all have finished those before it. */
  everybodyIsHere(): void {
    if (isAfter(this.call, this.everybodyClear)) this.everybodyClear = this.call;
  }

  get bytes(): Uint8Array {
    return this.segment.bytes;
  }

  /** The segment as elements of that class. */
  viewOf(name: ArrayName): TypedArray {
    let view = this.views.get(name);
    if (view === undefined) {
      view = typedView(name, this.segment.bytes);
      this.views.set(name, view);
    }
    return view;
  }

  // ---------------------------------------------------------------- waiting

  private isThere(call: MemoryCall): boolean {
    if (this.cursor >= this.until) return true;
    if (this.use === CLEARED) return this.isCleared();
    const { words, segment, use, until, step } = this;
    const expected = this.call;
    for (let member = this.cursor; member < until; member += step) {
      const at = segment.flagAt(member, use, expected);
      const flag = Atomics.load(words, at);
      if (flag !== expected) {
        this.cursor = member;
        if (flag === ~expected) call.fail(this.errorOf(member, at), false);
        return false;
      }
      if (words[at + 1] !== call.code || words[at + 2] !== this.expectedBytes) {
        this.cursor = member;
        if (!this.fits(call, member, at)) return false;
      }
    }
    this.cursor = until;
    return true;
  }

  private isCleared(): boolean {
    const { words, segment, finishedCall, until } = this;
    for (; this.cursor < until; this.cursor++) {
      if (!isAfter(Atomics.load(words, segment.clearAt(this.cursor)), finishedCall)) return false;
    }
    let lowest = words[segment.clearAt(0)];
    for (let member = 1; member < until; member++) {
      const clear = words[segment.clearAt(member)];
      if (isAfter(lowest, clear)) lowest = clear;
    }
    this.everybodyClear = lowest;
    return true;
  }

  /** A member's data are of the same call and length; else the call fails, or finds out why. */
  private fits(call: MemoryCall, member: number, at: number): boolean {
    const { words, scope, expectedBytes } = this;
    const code = words[at + 1] >>> 0;
    if (!agree(code, call.code)) {
      call.meet(scope.members[member], code);
      return false;
    }
    const found = words[at + 2];
    if (found === expectedBytes) return true;
    call.fail(this.wrongLength(call, member, `sent ${found} bytes where rank ${scope.rank} takes ${expectedBytes}`), true);
    return false;
  }

  private wrongLength({ name }: MemoryCall, member: number, text: string): MultirailError {
    const { scope } = this;
    return new MultirailError(
      'ERR_TRUNCATE',
      `${name} on ${scope.name}: rank ${member} ${text}: the lengths of the ranks do not fit together`,
      {
        rank: scope.proc.rank,
        ...(scope.members[member] === undefined ? {} : { peer: scope.members[member] }),
      },
    );
  }

  /**
   * Calls that wait, each with the ranks that it waits for, of which a call that has yet to get its turn knows nothing. For people, who see the
   * messages by which it is set up.
   */
  *pending(): Generator<PendingMemoryCall> {
    if (this.state === 'SETTING_UP') return;
    for (const call of this.line) {
      if (!call.done && call.awaitsMemory) yield { call, missing: this.missing(call).map((rank) => this.scope.members[rank]) };
    }
  }

  /** Ranks that the call waits for. */
  missing(call: MemoryCall): number[] {
    const { scope } = this;
    const list: number[] = [];
    if (this.state === 'SETTING_UP') for (let rank = 0; rank < scope.size; rank++) if (rank !== scope.rank) list.push(rank);
    if (this.state !== 'READY' || this.active !== call) return list;
    for (let member = this.cursor; member < this.until; member += this.step) if (!this.has(member)) list.push(member);
    return list;
  }

  /** What is waited for of that member is there, or its error is. */
  private has(member: number): boolean {
    const { words, segment, use, call } = this;
    if (use === CLEARED) return isAfter(Atomics.load(words, segment.clearAt(member)), this.finishedCall);
    const flag = Atomics.load(words, segment.flagAt(member, use, call));
    return flag === call || flag === ~call;
  }

  /** Lets calls go on for which something has come. True: there was something. */
  poll(): boolean {
    const { line } = this;
    if (this.state === 'SETTING_UP') return false;
    if (this.state !== 'READY') {
      const all = line.splice(0);
      for (const call of all) if (!call.done) call.pollMemory();
      return all.length > 0;
    }
    let moved = false;
    while (line.length > 0) {
      const head = line[0];
      if (head.done) {
        if (this.active !== head) this.activate(head);
        if (head.error !== undefined && !this.leaveError(head.error)) break;
        this.passOn();
      } else if (!head.pollMemory()) break;
      moved = true;
    }
    return moved;
  }

  // ---------------------------------------------------------------- sleep

  /** Nobody polls from here on: whoever brings what is waited for must ring. False when it is there already. */
  sleep(): boolean {
    const { words, segment, scope, cursor } = this;
    if (this.state !== 'READY' || this.active === undefined || cursor >= this.until) return true;
    Atomics.store(words, segment.sleepingAt(scope.rank), 1 + cursor);
    Atomics.store(words, segment.bellAt(cursor), 1);
    if (!this.has(cursor)) return true;
    this.awake();
    return false;
  }

  /** The word that brings the first call of the line on. False: it goes on now, or something else does. */
  watch(watched: WatchedWords): boolean {
    const { line, segment, words, cursor, use, call } = this;
    // The calls wait for messages.
    if (line.length === 0 || this.state === 'SETTING_UP') return true;
    if (this.state !== 'READY' || this.active !== line[0] || line[0].done || cursor >= this.until) return false;
    const at = use === CLEARED ? segment.clearAt(cursor) : segment.flagAt(cursor, use, call);
    // Before it is looked at: what comes in between is seen as a change.
    const seen = words[at];
    return !this.has(cursor) && watched.add(words, at, seen);
  }

  awake(): void {
    if (this.state === 'READY') Atomics.store(this.words, this.segment.sleepingAt(this.scope.rank), 0);
  }

  /** After something that others may wait for: those that sleep are woken. */
  private answerBell(): void {
    const { words, segment, scope } = this;
    const bell = segment.bellAt(scope.rank);
    if (Atomics.load(words, bell) === 0) return;
    Atomics.store(words, bell, 0);
    for (let member = 0; member < segment.members; member++) {
      const at = segment.sleepingAt(member);
      if (Atomics.load(words, at) !== 1 + scope.rank) continue;
      if (Atomics.compareExchange(words, at, 1 + scope.rank, 0) === 1 + scope.rank) this.host.ring(scope.members[member]);
    }
  }

  // ---------------------------------------------------------------- failures

  /** In place of data that will not come, the error. False: others may still read what stands there. */
  private leaveError(error: MultirailError): boolean {
    const { segment, words, scope, call } = this;
    const slot = call & (SLOTS - 1);
    for (const use of USES) {
      if (this.written[use * SLOTS + slot] === call) continue;
      if (!this.mayWrite(use, 0) && !this.isCleared()) {
        // A member that is gone will never clear it; then everybody who waits here knows that by itself.
        return this.lacksMember();
      }
      const at = segment.flagAt(scope.rank, use, call);
      words[at + 2] = writeError(error, segment.bytes.subarray(at * 4 + 16, at * 4 + 16 + SHORT_BYTES));
      this.setFlag(at, use, ~call);
    }
    return true;
  }

  private errorOf(member: number, flagAt: number): MultirailError {
    const { segment, words, scope } = this;
    const from = flagAt * 4 + 16;
    const { code, text, peer } = readError(segment.bytes.slice(from, from + Math.min(SHORT_BYTES, words[flagAt + 2])));
    return new MultirailError(code, `${text} (rank ${scope.members[member]} of the world has told)`, {
      rank: scope.proc.rank,
      ...(peer === undefined ? {} : { peer }),
    });
  }

  private lacksMember(): boolean {
    const { members, proc } = this.scope;
    return proc.membersGone > 0 && members.some((world) => proc.engine.endingOf(world) !== undefined);
  }

  /**
   * A member is gone: a call that waits for it ends. A member that has left while this rank is still setting up had come through the setup,
   * and through its part of the call: what it had to say is in the memory already.
   */
  check(call: MemoryCall): void {
    const { scope } = this;
    if (scope.proc.membersGone === 0) return;
    const isSettingUp = this.state === 'SETTING_UP';
    for (const member of this.missing(call)) {
      const ending = scope.proc.engine.endingOf(scope.members[member]);
      if (ending !== undefined && !(isSettingUp && ending.failure === undefined)) return call.fail(ending.ended, true);
    }
  }

  /** Now and then: whether what is waited for can come at all. `alsoProcesses`: asks the kernel, too. */
  lookSlowly(alsoProcesses: boolean): void {
    for (const call of [...this.apart]) this.lookApart(call);
    const { active } = this;
    if (this.state !== 'READY' || active === undefined || active.done) return;
    this.check(active);
    const { scope, segment, words } = this;
    // A member for which the memory is not there, since it heard of a death while that was made, makes the call by messages, and puts nothing here.
    const death = scope.proc.failureOf?.(scope);
    if (death !== undefined) active.fail(death, false);
    for (const member of this.missing(active)) {
      if (active.done) return;
      const hasPassed = this.use !== CLEARED && isAfter(Atomics.load(words, segment.clearAt(member)), this.call) && !this.has(member);
      if (hasPassed) this.disagrees(active, member, 0);
      else if (alsoProcesses && hasEnded(segment.processOf(member))) {
        const world = scope.members[member];
        const { pid } = segment.processOf(member);
        active.fail(
          new MultirailError('ERR_PROC_FAILED', `rank ${world}: its process ${pid} has ended`, { rank: scope.proc.rank, peer: world }),
          true,
        );
      }
    }
    if (active.done) return;
    // Whoever makes this call by messages gives another length, or makes another call.
    const message = scope.proc.pml.iprobe(ANY_SOURCE, scope.ctx, active.tag);
    if (message !== undefined) this.disagrees(active, scope.members.indexOf(message.source), message.signature);
  }

  /** A call by messages, which others make through memory. */
  private lookApart(call: MemoryCall): void {
    if (this.state !== 'READY' || call.done) return;
    const { segment, words } = this;
    for (let member = 0; member < segment.members; member++) {
      const at = segment.flagAt(member, CONTRIBUTION, call.tag);
      if (Atomics.load(words, at) === call.tag) return this.disagrees(call, member, words[at + 1] >>> 0);
    }
  }

  private disagrees(call: MemoryCall, member: number, code: number): void {
    const { scope } = this;
    if (call.code !== 0) call.meet(scope.members[member], code);
    else
      call.fail(this.wrongLength(call, member, `makes the call with another length than rank ${scope.rank}, or makes another call`), true);
  }
}
