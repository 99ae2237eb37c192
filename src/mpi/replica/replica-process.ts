// A process as one of two or three replicas of a rank: the paired layer over its PML, driven from its event loop.
import { createHash } from 'node:crypto';
import type { MultirailError } from '../../errors.ts';
import { SendLog } from '../../ft/log/send-log.ts';
import { type CompareMode, crc32cDigest, type Digest, fullDigest } from '../../ft/replica/digest.ts';
import { LeadPml } from '../../ft/replica/lead.ts';
import type { Link, Twin } from '../../ft/replica/link.ts';
import type { PairOptions } from '../../ft/replica/paired-pml.ts';
import { type Place, twinsOf } from '../../ft/replica/pairs.ts';
import { ShadowPml } from '../../ft/replica/shadow.ts';
import { Takeovers } from '../../ft/replica/takeovers.ts';
import { crc32c } from '../../native/crc32c.ts';
import { type ParamTable, takesOver } from '../../params.ts';
import type { Envelope } from '../../pml/records.ts';
import type { Engine } from '../../progress/engine.ts';
import type { Iov } from '../../util/iov.ts';
import { replicaText } from '../../util/replica-names.ts';
import type { AddressBook } from '../address-book.ts';
import { type CallOptions, timeoutError, watchEnd } from '../constants.ts';
import { ctxOf, idOf, OBJECT, USER } from '../contexts.ts';
import { exportableMemory } from '../exportable-memory.ts';
import { type BulletinChannel, type BulletinReader, followBulletin } from '../ft/bulletin-reader.ts';
import { checkProcess, type ProcessId } from '../ft/process-watch.ts';
import type { ExitNotice, RuntimeDriver, RuntimeJob } from '../runtime-options.ts';
import { DistantClocks } from './clock/distant-clocks.ts';
import { PairedWaiter } from './paired-waiter.ts';
import { Replica } from './replica.ts';
import { clockHere, processorMs, TOE_LOOK_MS, ToeWatch, type TwinClock } from './toe-watch.ts';

/** Id of the contexts of the pair channel to a first shadow, and of that to a second one: no communicator has them, their ids begin at 16,384. */
const PAIR_ID = 2;
/** Id of the context on which leads say to each other what they have. */
const TAKEOVER_ID = 4;
const SLAB_BYTES_MAX = 1024 * 1024;
const SLABS_MIN = 64;
/** How long the shadow is given to say what it would have sent. */
const EVIDENCE_MS = 2000;
/** How long a shadow that was told to leave is given to do so. */
const LEAVE_MS = 2000;
const FINISH_POLL_MS = 1;

export interface ReplicaHooks {
  /** The replicas differ: the job is to end. */
  onDiverged(error: MultirailError): void;
  /** This process is not in the majority: it is to end, and the job goes on. */
  onLeave(error: MultirailError): void;
  /** This process has taken the place of its lead: the layer under its communicators is another one. */
  onTakeover(): void;
  /** A lead has died, and its rank cannot go on: the job is to end. */
  onLost(error: MultirailError): void;
  /** That process is dead, as another one says that was told of it. */
  onDead(number: number): void;
  warn(text: string): void;
  readonly beforeSend?: ((message: number, buffer: Iov) => void) | undefined;
}

const sha256Digest: Digest = ({ views }) => {
  const hash = createHash('sha256');
  for (const view of views) hash.update(view);
  return new Uint8Array(hash.digest());
};

const DIGESTS: Readonly<Record<CompareMode, Digest>> = { crc32c: crc32cDigest(crc32c), sha256: sha256Digest, full: fullDigest };

/** What a probe that waits looks for: world rank or ANY, context, tag or ANY. */
interface Pattern {
  readonly source: number;
  readonly ctx: number;
  readonly tag: number;
}

export class ReplicaProcess {
  readonly place: Place;
  /** Another one once this process has taken the place of its lead. */
  pml: LeadPml | ShadowPml;
  readonly waiter: PairedWaiter;
  readonly face: Replica;
  private readonly engine: Engine;
  private readonly driver: RuntimeDriver;
  private isFlushing = false;
  private isExpecting = false;
  private timer: NodeJS.Timeout | undefined;
  private evidenceTimer: NodeJS.Timeout | undefined;
  private readonly toes: ToeWatch[] = [];
  private toeLookedMs = 0;
  private readonly factor: number;
  /** Processes of twins on this host. */
  private readonly here = new Map<number, ProcessId>();
  /** What was told to leave, and when it is killed. */
  private readonly leaving = new Map<number, number>();
  private readonly hooks: ReplicaHooks;
  private readonly takeovers: Takeovers | undefined;
  private lostWithHosts = 0;
  private bulletin: BulletinReader | undefined;
  /** Numbers of twins on other hosts. */
  private readonly distant: number[] = [];
  private clocks: DistantClocks | undefined;
  /** What those have said of their clocks before this process has its own. */
  private readonly told = new Map<number, string>();

  constructor(place: Place, job: RuntimeJob, params: ParamTable, engine: Engine, driver: RuntimeDriver, hooks: ReplicaHooks) {
    this.place = place;
    this.engine = engine;
    this.driver = driver;
    this.hooks = hooks;
    this.factor = params.int('ft_toe_cpu');
    const bytesMax = params.int('ft_log_bytes_max');
    if (takesOver(params)) this.takeovers = this.makeTakeovers(job.rank, place, bytesMax);
    const compare = params.string('ft_compare') as CompareMode;
    const replicas = params.int('ft_replicas');
    const { rank, ranks } = place;
    const indexOf = (number: number): number => Math.floor(number / ranks);
    // A channel has the number of its shadow, which is the greater one.
    const twinOf = (number: number): Twin => {
      const id = PAIR_ID + indexOf(Math.max(number, job.rank)) - 1;
      return { number, name: replicaText(indexOf(number), replicas), ctx: ctxOf(id, USER), bulkCtx: ctxOf(id, OBJECT) };
    };
    const options: PairOptions = {
      rank,
      self: job.rank,
      name: replicaText(indexOf(job.rank), replicas),
      twins: twinsOf(place).map(twinOf),
      isVoting: replicas > 2,
      compare,
      digest: DIGESTS[compare],
      takeovers: this.takeovers,
      wake: () => this.wake(),
      push: () => engine.serveCommands(),
      onDiverged: (error) => hooks.onDiverged(error),
      onLeave: (error) => hooks.onLeave(error),
      onOutvoted: (_, text) => hooks.warn(text),
      onDropped: (number, text) => {
        hooks.warn(
          `process ${number}, a shadow of rank ${rank}, is to leave the job, which goes on with two replicas of that rank: ${text}`,
        );
        this.leaving.set(number, performance.now() + LEAVE_MS);
      },
      onClock: (number, address) => {
        if (this.clocks === undefined) this.told.set(number, address);
        else this.clocks.know(number, address);
      },
      beforeSend: hooks.beforeSend,
    };
    if (place.role === 'lead') {
      const lead = new LeadPml(engine.pml, options);
      this.pml = lead;
      this.takeovers?.begin(lead);
    } else this.pml = new ShadowPml(engine.pml, options);
    this.waiter = new PairedWaiter(engine, driver, params.int('mpi_blocking_spin_us'), () => this.pml);
    this.face = new Replica(
      place,
      () => this.pml,
      this.waiter,
      () => this.wake(),
    );
    driver.atRest = () => this.rest();
  }

  private makeTakeovers(self: number, { role, ranks }: Place, bytesMax: number): Takeovers {
    const { engine, hooks } = this;
    const ids = new Set([PAIR_ID, PAIR_ID + 1, TAKEOVER_ID]);
    const log = new SendLog({
      bytesMax,
      slabBytes: Math.min(SLAB_BYTES_MAX, Math.max(4096, Math.floor(bytesMax / SLABS_MIN))),
      ...(role === 'lead' ? { exportable: exportableMemory(engine) } : {}),
      onPressure: (kind) => {
        if (kind === 'given up')
          hooks.warn(
            `the log of process ${self} is full (${bytesMax} bytes, ft_log_bytes_max): its messages are not kept any more, and the death of a lead ends the job; allow more, or receive what was sent sooner`,
          );
      },
    });
    return new Takeovers(engine.pml, {
      self,
      ranks,
      ctx: ctxOf(TAKEOVER_ID, USER),
      covers: (ctx) => !ids.has(idOf(ctx)),
      log,
      logBytesMax: bytesMax,
      wake: () => this.wake(),
      onLeadDead: (rank) => hooks.onDead(rank),
      onLost: (error) => hooks.onLost(error),
    });
  }

  /** All have met: the pair channel is open. */
  start(book: Pick<AddressBook, 'hostOf' | 'entryOf'> | undefined, hostId: string, oob: BulletinChannel | undefined): void {
    this.pml.start();
    this.wake();
    // The event loop does not run in a blocking call, and the death of another replica has to be heard there, too.
    this.bulletin = followBulletin(this.engine.poller, oob, (told) => this.engine.oncePolled(told));
    this.bulletin?.dial();
    for (const link of this.pml.links) {
      const { number } = link.twin;
      const host = book?.hostOf(number) ?? '';
      if (host !== hostId) {
        if (host !== '') this.distant.push(number);
        continue;
      }
      const twin = checkProcess(book?.entryOf(number).process);
      if (twin === undefined) continue;
      this.here.set(number, twin);
      if (this.factor > 0) this.toes.push(this.toeOf(link, clockHere(twin)));
    }
    this.lookFromNowOn();
  }

  /** Other replicas are asked on their hosts how much they compute. Resolves when they can ask this one: before its program runs, which may not rest. */
  async startClocks(secret: Uint8Array | undefined): Promise<void> {
    const { distant: others, factor, hooks } = this;
    const { self, isVoting } = this.pml.options;
    // Without a secret there is nothing beyond this host.
    if (secret === undefined || others.length === 0 || !(factor > 0 || isVoting)) return;
    const clocks = await DistantClocks.open({ self, secret, others, warn: (text) => hooks.warn(text) });
    if (clocks === undefined) return;
    this.clocks = clocks;
    for (const [number, address] of this.told) clocks.know(number, address);
    if (factor > 0)
      for (const link of this.pml.links)
        if (others.includes(link.twin.number)) this.toes.push(this.toeOf(link, clocks.clockOf(link.twin.number)));
    this.pml.showClock(clocks.address, clocks.calls);
    this.lookFromNowOn();
  }

  private lookFromNowOn(): void {
    if (this.timer !== undefined || (this.toes.length === 0 && !this.pml.options.isVoting)) return;
    this.timer = setInterval(() => this.lookAtTwins(), TOE_LOOK_MS);
    this.timer.unref();
  }

  private toeOf(link: Link, clock: TwinClock): ToeWatch {
    return new ToeWatch({
      factor: this.factor,
      due: () => this.pml.dueOf(link),
      calls: () => this.pml.callsOf(link),
      ownMs: () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1000;
      },
      clock,
      onLate: (what) => this.pml.late(link, what),
    });
  }

  private lookAtTwins(): void {
    this.endLeaving();
    if (this.pml.due !== undefined || this.pml.isAhead) this.pml.ask();
    for (const toe of this.toes) toe.look();
  }

  /** One that is in a loop does not read that it is to leave. */
  private endLeaving(): void {
    for (const [number, untilMs] of this.leaving) {
      if (performance.now() < untilMs) continue;
      // What is said to another host may be lost, and is said again until the process is gone.
      if (this.distant.includes(number)) {
        this.clocks?.end(number);
        continue;
      }
      this.leaving.delete(number);
      const twin = this.here.get(number);
      // Whoever has its pid now is not meant.
      if (twin === undefined || processorMs(twin) === undefined) continue;
      try {
        process.kill(twin.pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
  }

  /** Number of the process that is the lead of that rank now. */
  numberOf(rank: number): number {
    return this.takeovers?.numberOf(rank) ?? rank;
  }

  /** At the lead: so many replicas of its rank lack, and so many of those have died with their hosts. */
  get lacking(): { readonly replicas: number; readonly withHosts: number } {
    return { replicas: this.face.twins.length - this.pml.livingCount, withHosts: this.lostWithHosts };
  }

  /** Every shadow that has taken the place of its lead has said what it has, as far as this process knows. */
  get isSettled(): boolean {
    return this.takeovers?.isSettled !== false;
  }

  /**
   * A process has ended. A lead goes on without its shadow, a shadow in the place of its lead, and the others with whoever is left of a rank. `fail`: the
   * message layer is to take it for dead. By a signal, or with its host: who exits with a code ends the job.
   */
  died(number: number, { code, signal }: Pick<ExitNotice, 'code' | 'signal'>, fail: () => void): void {
    const { pml, takeovers, place } = this;
    const isDeath = code === undefined;
    this.leaving.delete(number);
    if (isDeath && takeovers !== undefined) takeovers.died(number, fail);
    else fail();
    if (pml.links.some(({ twin }) => twin.number === number)) {
      if (isDeath && signal === '') this.lostWithHosts++;
      if (pml instanceof LeadPml) pml.shadowDied(number);
      else if (isDeath && takeovers !== undefined && !pml.isDiverged && number === place.rank) this.takeOver(pml, takeovers);
    }
    this.wake();
  }

  /** The lead is dead, and this process goes on in its place. */
  private takeOver(shadow: ShadowPml, takeovers: Takeovers): void {
    const lead = new LeadPml(this.engine.pml, { ...shadow.options, name: 'lead', twins: [] });
    this.pml = lead;
    this.toes.length = 0;
    this.clocks?.close();
    shadow.leadDied();
    lead.inherit(shadow.inheritance, takeovers, shadow.ownStreams);
    this.hooks.onTakeover();
    this.face.tookOver();
  }

  /** Also from blocking calls that last, during which no timer runs. */
  lookBlocked(nowMs: number): void {
    if (nowMs - this.toeLookedMs < TOE_LOOK_MS) return;
    this.toeLookedMs = nowMs;
    this.lookAtTwins();
  }

  /** Something is to be done when the program rests, and something may be said before. */
  wake(): void {
    this.expect();
    this.engine.schedule();
    this.driver.yield();
    if (this.isFlushing) return;
    this.isFlushing = true;
    // What the program begins in one go is said together.
    queueMicrotask(() => {
      this.isFlushing = false;
      this.pml.flush();
    });
  }

  /** Whoever waits for the other replica waits for messages that no request of the PML takes. */
  private expect(): void {
    const isExpecting = this.pml.openCount > 0;
    if (isExpecting === this.isExpecting) return;
    this.isExpecting = isExpecting;
    this.engine.expected += isExpecting ? 1 : -1;
  }

  /** Nothing of the program is about to run: one burst, behind which it runs. */
  private rest(): void {
    if (this.pml.turn(0)) this.driver.yield();
    this.pml.flush();
    this.expect();
    if (!this.pml.isDiverged || this.evidenceTimer !== undefined) return;
    const { pml } = this;
    if (pml instanceof LeadPml) this.evidenceTimer = setTimeout(() => pml.show(undefined), EVIDENCE_MS);
  }

  /** A probe that waits. */
  probe({ source, ctx, tag }: Pattern, takes: boolean, options: CallOptions | undefined): Promise<Envelope> {
    const { pml } = this;
    return new Promise((resolve, reject) => {
      const answer = pml.probe(source, ctx, tag, takes);
      const release = watchEnd(options, (error) => pml.expireAnswer(answer, error));
      answer.onDone = () => {
        release?.();
        if (answer.error === undefined) resolve(answer.envelope as Envelope);
        else reject(answer.error);
      };
    });
  }

  /** As probe(), in a blocking call. */
  probeSync({ source, ctx, tag }: Pattern, takes: boolean, timeoutMs: number | undefined): Envelope {
    const { pml, waiter } = this;
    const answer = pml.probe(source, ctx, tag, takes);
    if (!waiter.wait(answer, timeoutMs === undefined ? undefined : waiter.now() + timeoutMs)) {
      const error = timeoutError(timeoutMs as number);
      pml.expireAnswer(answer, error);
      throw error;
    }
    if (answer.error !== undefined) throw answer.error;
    return answer.envelope as Envelope;
  }

  /** The program has come to its end: resolves when those of the other replicas have, too, and all that was begun has left. What is still open: one line. */
  async leave(timeoutMs: number): Promise<string | undefined> {
    const twins = this.pml.options.twins.map(({ number }) => number);
    const deadlineMs = performance.now() + timeoutMs;
    this.pml.finish();
    this.engine.schedule();
    // A job whose replicas differ is about to end.
    while (!this.pml.isFinished) {
      if (performance.now() >= deadlineMs)
        return `the other ${twins.length === 1 ? 'replica' : 'replicas'} of rank ${this.place.rank}, process ${twins.join(' and ')}: it has not come to its end`;
      await new Promise((resolve) => setTimeout(resolve, FINISH_POLL_MS));
    }
    this.pml.flush();
    this.engine.schedule();
    return undefined;
  }

  stop(): void {
    clearInterval(this.timer);
    clearTimeout(this.evidenceTimer);
    this.clocks?.close();
    this.bulletin?.close();
    this.driver.atRest = undefined;
  }
}
