// A process of the simulated world of replicas: the production engine, PML and paired layer, and the program that runs on it (replica-program.ts).
import { MultirailError } from '../../src/errors.ts';
import { SendLog } from '../../src/ft/log/send-log.ts';
import { type CompareMode, crc32cDigest, fullDigest } from '../../src/ft/replica/digest.ts';
import { LeadPml } from '../../src/ft/replica/lead.ts';
import type { Found, PairOptions } from '../../src/ft/replica/paired-pml.ts';
import { placeOf, twinsOf } from '../../src/ft/replica/pairs.ts';
import { ShadowPml } from '../../src/ft/replica/shadow.ts';
import { Takeovers } from '../../src/ft/replica/takeovers.ts';
import type { RecvRequest, SendRequest } from '../../src/pml/records.ts';
import { Iov } from '../../src/util/iov.ts';
import { Prng } from '../../src/util/prng.ts';
import { replicaText } from '../../src/util/replica-names.ts';
import { OracleError } from './oracle.ts';
import { type Flow, type FlowHost, playFlow, type ReplicaProgram, USER_CTX, type Wait } from './replica-program.ts';
import type { World, WorldOptions } from './world.ts';

/** By the shadow that the channel is to. */
export const PAIR_CTX = [8, 12] as const;
export const BULK_CTX = [10, 14] as const;
export const TAKEOVER_CTX = 16;
/** What a look takes; longer, when there was nothing again and again. */
const LOOK_US = 20;
const LOOK_US_MAX = 50_000;
/** More of them without time moving are a livelock. */
const TURNS_MAX = 100_000;

export interface ReplicaWorldOptions extends WorldOptions {
  compare: CompareMode;
  aheadBytesMax: number;
  /** Processes of each rank. */
  replicas: 2 | 3;
  flip: Flip | undefined;
  /** Processes die at these times, and the others are told after that, each of them up to `spreadUs` later. */
  deaths?: readonly Death[];
  /** Bound of the log of each process; 0: no shadow takes the place of its lead. */
  logBytesMax: number;
}

export interface Death {
  readonly process: number;
  readonly atUs: number;
  readonly toldAfterUs: number;
  readonly spreadUs?: number;
}

/**
 * A fault of this process, after so many things have come to it. A bit is flipped in its state, or in the next message that it sends; `rot`: the same
 * at a lead, and the first shadow's bytes of that message change behind its digest; `course`: the next message has another tag; `end`: its program
 * comes to its end too early.
 */
export interface Flip {
  readonly process: number;
  readonly after: number;
  readonly where: 'state' | 'message' | 'rot' | 'course' | 'end';
}

/** The world, as its processes see it. */
export interface ReplicaHost {
  readonly world: World;
  readonly options: ReplicaWorldOptions;
  readonly replicas: readonly Replica[];
  flips: number;
  tornLogs: number;
  /** What a launcher tells a process. */
  tell(replica: Replica, dead: number): void;
  /** The process has a turn then. */
  after(process: number, us: number, then: () => void): void;
  onDiverged(rank: number, error: MultirailError): void;
  onOutvoted(process: number, text: string): void;
  onDropped(process: number, text: string): void;
  onLeave(process: number): void;
  onLost(error: MultirailError): void;
  describe(): string;
}

/** A send, as the program has begun it. */
interface Said {
  readonly to: number;
  readonly tag: number;
  readonly bytes: Uint8Array;
}

/** A message that the program has received. */
interface Got {
  readonly from: number;
  readonly tag: number;
  readonly bytes: Uint8Array;
}

interface Running {
  readonly flow: Flow;
  wait: Wait | undefined;
  isOver: boolean;
}

export class Replica implements FlowHost {
  readonly rank: number;
  readonly process: number;
  pml: LeadPml | ShadowPml;
  readonly takeovers: Takeovers | undefined;
  readonly said: Said[] = [];
  readonly received: Got[] = [];
  state = 1;
  private readonly world: ReplicaHost;
  private readonly flows: Running[];
  private blocked: { readonly running: Running; readonly call: number; isLate: boolean } | undefined;
  private mixed = 0;
  private flipsMessage = false;
  private flipsTag = false;
  private rots = false;
  private hasStopped = false;
  private isFinishing = false;
  private isLooking = false;
  private lookUs = LOOK_US;
  private readonly prng: Prng;
  /** What makes the values that the lead makes, by the numbers of their requests. */
  private readonly makers = new Map<number, () => void>();

  constructor(world: ReplicaHost, process: number, program: ReplicaProgram, options: ReplicaWorldOptions) {
    const { replicas } = options;
    const place = placeOf(process, options.ranks, replicas);
    const { role, rank, ranks } = place;
    this.world = world;
    this.rank = rank;
    this.process = process;
    // What a process cannot foresee: the other replica has another one.
    this.prng = new Prng(`${options.seed}/chance/${process}`);
    const { engine, driver } = world.world.processes[process];
    const indexOf = (number: number): number => Math.floor(number / ranks);
    this.takeovers = options.logBytesMax === 0 ? undefined : this.makeTakeovers(options, ranks);
    const pair: PairOptions = {
      takeovers: this.takeovers,
      rank,
      self: process,
      name: replicaText(indexOf(process), replicas),
      twins: twinsOf(place).map((twin) => {
        const channel = indexOf(Math.max(twin, process)) - 1;
        return { number: twin, name: replicaText(indexOf(twin), replicas), ctx: PAIR_CTX[channel], bulkCtx: BULK_CTX[channel] };
      }),
      isVoting: replicas > 2,
      compare: options.compare,
      digest: options.compare === 'full' ? fullDigest : crc32cDigest(),
      aheadBytesMax: options.aheadBytesMax,
      wake: () => {
        engine.schedule();
        // Also where a frame that arrives has the engine run: the program has its turn behind it.
        driver.yield();
      },
      push: () => engine.serveCommands(),
      onDiverged: (error) => world.onDiverged(rank, error),
      onLeave: () => world.onLeave(process),
      onOutvoted: (number, text) => world.onOutvoted(number, text),
      onDropped: (number, text) => world.onDropped(number, text),
    };
    if (role === 'lead') {
      const lead = new LeadPml(engine.pml, pair);
      this.pml = lead;
      this.takeovers?.begin(lead);
    } else this.pml = new ShadowPml(engine.pml, pair);
    this.pml.admits = () => true;
    this.pml.onUnexpected = () => {};
    if (role === 'lead') this.watchSends(0);
    this.flows = program.rounds.map((rounds) => ({ flow: playFlow(this, rounds), wait: undefined, isOver: false }));
    this.flows.push({ flow: this.last(), wait: undefined, isOver: false });
    this.pml.start();
  }

  private makeTakeovers({ logBytesMax }: ReplicaWorldOptions, ranks: number): Takeovers {
    const { process: self, world } = this;
    const { engine, driver } = world.world.processes[self];
    const onPressure = (kind: string): void => {
      if (kind === 'given up') world.tornLogs++;
    };
    return new Takeovers(engine.pml, {
      self,
      ranks,
      ctx: TAKEOVER_CTX,
      covers: (ctx) => ctx === USER_CTX,
      log: new SendLog({ bytesMax: logBytesMax, slabBytes: 4096, onPressure }),
      logBytesMax,
      wake: () => {
        engine.schedule();
        driver.yield();
      },
      onLeadDead: (rank) => world.tell(this, rank),
      onLost: (error) => world.onLost(error),
    });
  }

  /** Its lead has died. */
  takeOver(shadow: ShadowPml, takeovers: Takeovers): void {
    const { engine } = this.world.world.processes[this.process];
    const lead = new LeadPml(engine.pml, { ...shadow.options, twins: [] });
    this.pml = lead;
    // What it has begun leaves from its log.
    this.watchSends(this.said.length);
    shadow.leadDied();
    lead.inherit(shadow.inheritance, takeovers, shadow.ownStreams);
    this.pml.onUnexpected = () => {};
    for (const make of this.makers.values()) make();
  }

  got(from: number, tag: number, bytes: Uint8Array): void {
    this.received.push({ from, tag, bytes: bytes.slice() });
  }

  /** F11: what the real layer is given must have been said by the others, byte for byte, in the same order; of three by two. */
  private watchSends(from: number): void {
    const { pml } = this.world.world.processes[this.process].engine;
    const isend = pml.isend.bind(pml);
    let left = from;
    pml.isend = (to, ctx, tag, buffer, ...rest) => {
      if (ctx === USER_CTX) {
        const index = left++;
        const bytes = new Uint8Array(buffer.bytes);
        buffer.copyTo(bytes, 0);
        this.mustBeSaid(index, { to: to % (this.world.options.ranks / this.world.options.replicas), tag, bytes });
      }
      return isend(to, ctx, tag, buffer, ...rest);
    };
  }

  private mustBeSaid(index: number, { to, tag, bytes }: Said): void {
    const { replicas } = this.world.options;
    const says = ({ said }: Replica): boolean => {
      const own = said[index];
      return own !== undefined && own.to === to && own.tag === tag && Buffer.compare(own.bytes, bytes) === 0;
    };
    const living = this.pml.links.filter(({ isLost }) => !isLost).map(({ twin }) => this.world.replicas[twin.number]);
    const all = [this, ...this.pml.links.map(({ twin }) => this.world.replicas[twin.number])];
    const message = `message ${index + 1} of rank ${this.rank}`;
    if (living.length === 0) {
      if (!says(this)) throw new OracleError(`F11: ${message} leaves, and its lead, which is alone, would have sent another one`);
      return;
    }
    if (living.some(({ said }) => said[index] === undefined))
      throw new OracleError(`F11: ${message} leaves before a shadow has come to it`);
    // One that was lost may have had its word in an earlier vote; of a pair the one that is left must be among the two.
    if (replicas === 3 && all.filter(says).length >= 2 && (living.length === 2 || says(living[0]))) return;
    if (replicas === 3 || !says(living[0])) throw new OracleError(`F11: ${message} leaves, and the others would have sent another one`);
  }

  // ---------------------------------------------------------------- for the program

  isend(to: number, planned: number, bytes: Uint8Array, sync: boolean) {
    const tag = this.flipsTag ? planned + 1 : planned;
    this.flipsTag = false;
    this.said.push({ to, tag, bytes: bytes.slice() });
    const request = this.pml.isend(to, USER_CTX, tag, new Iov([bytes]), sync);
    if (this.rots && bytes.length > 0) {
      this.rots = false;
      bytes[bytes.length - 1] ^= 1;
    }
    return request;
  }

  irecv(source: number, tag: number, bytes: Uint8Array): RecvRequest {
    return this.pml.irecv(source, USER_CTX, tag, new Iov([bytes]));
  }

  imrecv(envelope: Parameters<LeadPml['imrecv']>[0], bytes: Uint8Array): RecvRequest {
    return this.pml.imrecv(envelope, new Iov([bytes]));
  }

  probe(source: number, tag: number, takes: boolean) {
    return this.pml.probe(source, USER_CTX, tag, takes);
  }

  find(source: number, tag: number): Found {
    const found = this.pml.isLead ? (this.pml as LeadPml).find(source, USER_CTX, tag, false) : undefined;
    return found === undefined ? [] : [found.source, found.tag, 0, found.messageBytes, found.seq];
  }

  value() {
    const { number, answer } = this.pml.value();
    const make = (): void => {
      const bytes = Uint8Array.from({ length: this.prng.pick([1, 30, 6000]) }, () => this.prng.below(256));
      this.world.world.fabric.at(this.world.world.fabric.nowUs + this.prng.below(500), () => this.pml.settleValue(number, bytes));
    };
    if (this.pml.isLead) make();
    else this.makers.set(number, make);
    answer.onDone = () => void this.makers.delete(number);
    return answer;
  }

  validate() {
    const { state } = this;
    const bytes = Uint8Array.of(state, state >>> 8, state >>> 16, state >>> 24);
    const request: SendRequest = this.pml.validate(new Iov([bytes]));
    request.onDone = () => {
      // Other flows may have gone on meanwhile: then it stays as it is until the end.
      if (this.pml.wasHealed(request) && this.state === state) this.state = new DataView(bytes.buffer).getUint32(0, true);
    };
    return request;
  }

  cancel(request: RecvRequest): Wait {
    const wait: Wait = {
      kind: 'look',
      find: () => [(this.pml as LeadPml).cancel(request) ? 1 : 0],
    };
    this.cancels.set(wait, request);
    return wait;
  }

  expireLater(request: RecvRequest): void {
    const { fabric } = this.world.world;
    fabric.at(fabric.nowUs + this.prng.below(3000), () => {
      this.pml.expire(request, new MultirailError('ERR_TIMEOUT', 'the time is over'));
      this.world.world.processes[this.process].engine.schedule();
    });
  }

  mix(value: number): void {
    this.state = Math.imul(this.state ^ value, 0x9e3779b1);
    this.state = (this.state ^ (this.state >>> 15)) >>> 0;
    const { flip, ranks, replicas } = this.world.options;
    if (flip === undefined) return;
    // Its first shadow, which comes by the same.
    const isRotten = flip.where === 'rot' && this.process === flip.process + ranks / replicas;
    if ((flip.process !== this.process && !isRotten) || ++this.mixed !== flip.after) return;
    if (isRotten) {
      this.rots = true;
      return;
    }
    this.world.flips++;
    if (flip.where === 'state') this.state = (this.state ^ (1 << this.prng.below(31))) >>> 0;
    else if (flip.where === 'course') this.flipsTag = true;
    else if (flip.where === 'end') this.hasStopped = true;
    else this.flipsMessage = true;
  }

  mixBytes(bytes: Uint8Array): void {
    let sum = bytes.length;
    for (const byte of bytes) sum = (Math.imul(sum, 31) + byte) | 0;
    this.mix(sum);
  }

  fill(bytes: Uint8Array): void {
    let x = this.state;
    for (let i = 0; i < bytes.length; i++) {
      x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0;
      bytes[i] = x >>> 24;
    }
    if (!this.flipsMessage || bytes.length === 0) return;
    this.flipsMessage = false;
    bytes[this.prng.below(bytes.length)] ^= 1 << this.prng.below(8);
  }

  /** When all flows have come to their ends, the results are compared. */
  private *last(): Flow {
    const others = this.flows.slice(0, -1);
    yield { kind: 'idle', done: () => others.every(({ isOver }) => isOver) };
    // It would not be seen.
    if (this.flipsMessage || this.flipsTag) this.state = (this.state ^ 1) >>> 0;
    const result = this.validate();
    yield { kind: 'idle', done: () => result.done };
  }

  // ---------------------------------------------------------------- the event loop

  /** Where it is, for people. */
  get place(): string {
    const waits = this.flows.map(({ wait, isOver }) =>
      isOver ? 'over' : wait === undefined ? 'not begun' : `${wait.kind}${wait.kind === 'look' ? '' : wait.done()}`,
    );
    return `${this.blocked === undefined ? 'rests' : `in call ${this.blocked.call}`} (${waits.join(' ')})`;
  }

  get isOver(): boolean {
    return this.flows.every(({ isOver }) => isOver);
  }

  private resume(running: Running, found: Found): void {
    const step = running.flow.next(found);
    if (this.hasStopped) {
      for (const flow of this.flows) flow.isOver = true;
      return;
    }
    running.wait = step.done === true ? undefined : step.value;
    running.isOver = step.done === true;
    const { wait } = running;
    if (wait === undefined || wait.kind === 'idle') return;
    const blocked = { running, call: this.isCancelOfLead(wait) ? 0 : this.pml.beginCall(), isLate: false };
    this.blocked = blocked;
    if (wait.kind === 'call' && wait.forUs !== undefined)
      this.world.after(this.process, wait.forUs, () => {
        blocked.isLate = true;
      });
  }

  /** LeadPml.cancel() begins its call itself. */
  private isCancelOfLead(wait: Wait): boolean {
    return this.pml.isLead && this.cancels.has(wait);
  }
  private readonly cancels = new WeakMap<Wait, RecvRequest>();

  run(): void {
    if (this.world.world.isDead(this.process)) return;
    // A look takes time.
    if (this.isLooking) return;
    for (let turns = 0; ; turns++) {
      if (turns > TURNS_MAX) throw new OracleError(`livelock: ${this.world.describe()}`);
      if (this.isLooking) break;
      if (this.blocked !== undefined) {
        if (!this.goOn(this.blocked)) break;
        continue;
      }
      const ready = this.flows.find(({ wait, isOver }) => !isOver && (wait === undefined || (wait.kind === 'idle' && wait.done())));
      if (ready !== undefined) this.resume(ready, []);
      else if (!this.pml.turn(0)) break;
    }
    this.pml.flush();
    if (!this.isOver || this.isFinishing) return;
    this.isFinishing = true;
    this.pml.endPosted(new MultirailError('ERR_FINALIZED', 'the end'));
    this.pml.finish();
  }

  /** True: the call or look has come to its end, and the flow went on. */
  private goOn(blocked: NonNullable<Replica['blocked']>): boolean {
    const { running, call } = blocked;
    const { pml } = this;
    const wait = running.wait as Exclude<Wait, { kind: 'idle' }>;
    let found: Found | undefined;
    if (wait.kind === 'look') {
      if (pml instanceof LeadPml) {
        pml.turnForLook(call);
        found = wait.find();
        if (call !== 0) pml.noteLook(found);
        this.isLooking = true;
        this.lookUs = found.length > 0 ? LOOK_US : Math.min(LOOK_US_MAX, 2 * this.lookUs);
        this.world.after(this.process, this.lookUs, () => {
          this.isLooking = false;
        });
      } else {
        while (pml.turn(call)) {}
        found = pml.takeLook();
        const cancelled = found?.[0] === 1 ? this.cancels.get(wait) : undefined;
        if (cancelled !== undefined) pml.cancelled(cancelled);
      }
    } else {
      while (!wait.done() && pml.turn(call)) {}
      if (wait.done()) found = [1];
      else if (pml instanceof LeadPml) {
        if (blocked.isLate) {
          found = pml.noteOver(call, () => wait.done()) ? [] : [1];
        }
      } else if (pml.takeOver(call)) found = [];
      else pml.mustNotLook();
    }
    if (found === undefined) return false;
    this.blocked = undefined;
    this.resume(running, found);
    return true;
  }
}
