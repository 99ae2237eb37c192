// The simulated world: N processes, each with the production engine, PML and BML over SimBtl, one network, one virtual clock.
import type { RailState } from '../../src/bml/rail.ts';
import type { BtlModule, Params } from '../../src/btl/btl.ts';
import { selfComponent } from '../../src/btl/self/component.ts';
import { MultirailError } from '../../src/errors.ts';
import { ParamTable } from '../../src/params.ts';
import type { RecvRequest } from '../../src/pml/records.ts';
import type { TransitionListener } from '../../src/pml/states.ts';
import { type Driver, Engine, type EngineHooks } from '../../src/progress/engine.ts';
import { engineOptions } from '../../src/progress/options.ts';
import type { PeerPlan } from '../../src/progress/peers.ts';
import type { RailEvent } from '../../src/progress/rail-events.ts';
import { Iov } from '../../src/util/iov.ts';
import { Prng, TraceHash } from '../../src/util/prng.ts';
import { Fabric, type RailSpec, type SimLink } from './fabric.ts';
import { uninitialized } from './gather.ts';
import { fillPattern, freshBuffer, Oracle, OracleError, type PostedReceive, type SentMessage } from './oracle.ts';
import { type SimBtl, simComponent } from './sim-btl.ts';
import { noteForgotten, watch } from './watch.ts';

export interface WorldOptions {
  seed: number | string;
  ranks: number;
  rails: readonly Partial<RailSpec>[];
  /** Parameters, as `--mca` would set them. */
  params?: Readonly<Record<string, string>>;
  /** Every line of the trace. */
  trace?: (line: string) => void;
  /** Keep a hash of the trace (costs time). */
  hashTrace?: boolean;
  coverage?: TransitionListener & CoverageListener;
  /** What no sound peer does (I12) may be done here: a scenario replays packets, or begins with a mistake. */
  breaches?: 'allowed';
  /** Contexts whose messages are not the application's: the oracle of matching does not follow them. */
  services?: ReadonlySet<number>;
  /** Some messages on those contexts come when BYE was said to their sender: they are held to the end, or received in part. */
  leavesUnreceived?: true;
  /** Pairs of ranks between which there are rails (default: all). */
  isLinked?: (low: number, high: number) => boolean;
  onPeerFailed?: (rank: number, peer: number, error: MultirailError) => void;
  /** The rank's engine has had a turn. */
  onTurn?: (rank: number) => void;
  /** The peer has said BYE. */
  onPeerLeft?: (rank: number, peer: number) => void;
  /** Ranks meet when one of them needs the other, not at the start. */
  meets?: boolean;
  /** Grid of fragments, below the least that the parameter allows: messages of hundreds of fragments stay short. */
  fragBytes?: number;
}

export interface CoverageListener {
  onEvent?(side: 'send' | 'recv', state: string, event: string): void;
  onRail?(from: RailState, to: RailState): void;
}

class SimDriver implements Driver {
  armedAtMs = Number.POSITIVE_INFINITY;
  ready = false;
  private readonly fabric: Fabric;
  constructor(fabric: Fabric) {
    this.fabric = fabric;
  }
  now(): number {
    return this.fabric.nowMs;
  }
  defer(): void {
    this.ready = true;
  }
  yield(): void {
    this.ready = true;
  }
  arm(atMs: number): void {
    this.armedAtMs = atMs;
  }
}

export interface SimProcess {
  readonly rank: number;
  readonly engine: Engine;
  readonly driver: SimDriver;
  readonly railEvents: RailEvent[];
  readonly peerFailures: { rank: number; error: MultirailError; lost: number }[];
}

/** Rounds in which processes are ready without time moving: more than that is a livelock. */
const ROUNDS_MAX = 20_000;

export class World {
  readonly options: WorldOptions;
  readonly fabric: Fabric;
  readonly oracle = new Oracle();
  readonly processes: SimProcess[] = [];
  readonly hash = new TraceHash();
  readonly params: Params;
  events = 0;
  /** Ranks that had a turn in this settle(). */
  private readonly ran = new Set<number>();

  constructor(options: WorldOptions) {
    this.options = options;
    this.params = new ParamTable(options.params ?? {});
    const { trace, hashTrace } = options;
    const tap = (line: string) => {
      if (hashTrace) this.hash.add(line);
      trace?.(line);
    };
    this.fabric = new Fabric({
      seed: options.seed,
      ranks: options.ranks,
      rails: options.rails,
      ...(options.isLinked === undefined ? {} : { isLinked: options.isLinked }),
      ...(trace || hashTrace ? { trace: tap } : {}),
    });
    this.drainedPrng = new Prng(options.seed).split('drained');
    this.oracle.mayFail = (rank, peer) => this.mayFail(rank, peer);
    this.oracle.onGivenBack = ({ buffer }) => this.fabric.givenBack.add(buffer);
    for (let rank = 0; rank < options.ranks; rank++) this.processes.push(this.makeProcess(rank));
    for (const process of this.processes) this.connect(process);
  }

  private modules = new Map<number, BtlModule[]>();

  private makeProcess(rank: number): SimProcess {
    const driver = new SimDriver(this.fabric);
    const railEvents: RailEvent[] = [];
    const peerFailures: SimProcess['peerFailures'] = [];
    const hooks: EngineHooks = {
      ...(this.options.meets === true ? { planPeer: (peer: number) => this.planPeer(rank, peer) } : {}),
      onRailState: (rail, from, to) => {
        if (from === 'UP') this.carriedMs.set(`${rank}/${rail.peer}`, this.nowMs);
        this.options.coverage?.onRail?.(from, to);
      },
      onRailEvent: (event) => {
        railEvents.push(event);
        if (this.fabric.tracing)
          this.fabric.note(`rank ${rank} rail ${event.rail} to ${event.peer} ${event.type} e${event.epoch} ${event.reason}`);
      },
      onPeerFailed: (peer, error, lost) => {
        peerFailures.push({ rank: peer, error, lost });
        this.parts(rank, peer, error);
        this.options.onPeerFailed?.(rank, peer, error);
      },
      onPeerLeft: (peer) => this.options.onPeerLeft?.(rank, peer),
      log: (level, text) => {
        if (this.fabric.tracing) this.fabric.note(`rank ${rank} ${level} ${text}`);
      },
    };
    const settings = engineOptions(rank, this.params);
    const { fragBytes } = this.options;
    if (fragBytes !== undefined) {
      settings.pml.fragBytes = fragBytes;
      settings.bml.fragBytes = fragBytes;
      settings.bml.fragBytesMax = fragBytes;
    }
    const engine = new Engine(settings, driver, hooks);
    const { coverage } = this.options;
    engine.pml.observe({
      onTransition: (side, message, from, to) => {
        if (this.fabric.tracing) this.fabric.note(`rank ${rank} ${side} ${message.traceId}: ${from} -> ${to}`);
        coverage?.onTransition(side, message, from, to);
      },
      onEvent: coverage?.onEvent?.bind(coverage),
      onMatch: (ctx, source, tag, messageBytes, request) => {
        if (this.options.services?.has(ctx) !== true) this.oracle.match(rank, ctx, source, tag, messageBytes, request);
      },
    });
    const context = {
      rank,
      size: this.options.ranks,
      jobId: 'sim',
      incarnation: 1,
      secret: undefined,
      hostId: `host${rank}`,
      params: this.params,
      upcalls: engine,
    };
    const modules = [selfComponent.create(context), simComponent(this.fabric).create(context)];
    for (const module of modules) {
      engine.addModule(module);
      // open() of these two does its work before it returns its promise.
      void module.open();
    }
    this.modules.set(rank, modules);
    return { rank, engine, driver, railEvents, peerFailures };
  }

  private connect({ rank, engine, driver }: SimProcess): void {
    for (let peer = 0; peer < this.options.ranks; peer++) {
      if ((this.options.meets === true && peer !== rank) || !this.isLinked(rank, peer)) continue;
      const { incarnation, endpoints, unexpectedBytesMax } = this.planPeer(rank, peer);
      engine.addPeer(peer, incarnation, endpoints, unexpectedBytesMax);
    }
    driver.ready = true;
  }

  private planPeer(rank: number, peer: number): PeerPlan {
    const [self, sim] = this.modules.get(rank) as [BtlModule, BtlModule];
    const module = peer === rank ? self : sim;
    const remote = (this.modules.get(peer) as BtlModule[])[module === self ? 0 : 1].address();
    const plans = module.plan(peer, module.address(), remote, `host${peer}`);
    const endpoints = plans.map((plan, rail) => module.endpoint(peer, rail, plan, remote));
    return { incarnation: 1, endpoints, unexpectedBytesMax: this.params.int('pml_unexpected_bytes_max') };
  }

  private isLinked(a: number, b: number): boolean {
    const { isLinked } = this.options;
    return a === b || isLinked === undefined || isLinked(Math.min(a, b), Math.max(a, b));
  }

  // ---------------------------------------------------------------- time

  get nowMs(): number {
    return this.fabric.nowMs;
  }

  /** Every rail of every process carries traffic, unless it is made on demand. */
  get allUp(): boolean {
    return this.processes.every(({ engine }) =>
      [...engine.bml.peers.values()].every((peer) => peer.rails.every(({ state }) => state === 'UP' || state === 'ON_DEMAND')),
    );
  }

  private isOff(process: SimProcess): boolean {
    return this.fabric.isPaused(process.rank) || this.fabric.isKilled(process.rank);
  }

  /** Lets everything that is ready run, without moving time. */
  settle(): void {
    const { ran } = this;
    ran.clear();
    for (let round = 0; round < ROUNDS_MAX; round++) {
      let again = false;
      for (const process of this.processes) {
        const { driver } = process;
        if (this.isOff(process)) continue;
        if (!driver.ready && driver.armedAtMs > this.fabric.nowMs) continue;
        driver.ready = false;
        if (driver.armedAtMs <= this.fabric.nowMs) driver.armedAtMs = Number.POSITIVE_INFINITY;
        process.engine.progress();
        this.options.onTurn?.(process.rank);
        this.events++;
        ran.add(process.rank);
        again = true;
      }
      if (!again) return this.look(ran);
    }
    throw new OracleError('livelock: processes are always ready and time does not move');
  }

  /** One step: to the next event or deadline, but not beyond `untilMs`. False when that is reached. */
  step(untilMs: number): boolean {
    this.settle();
    let next = this.fabric.nextEventMs();
    for (const process of this.processes) if (!this.isOff(process)) next = Math.min(next, process.driver.armedAtMs);
    if (next >= untilMs) {
      if (untilMs > this.fabric.nowMs) this.fabric.advanceTo(untilMs);
      this.settle();
      return false;
    }
    // Deadlines of engines are not whole microseconds: the first one at which they are over.
    let nextUs = Math.ceil(next * 1000);
    if (nextUs / 1000 < next) nextUs++;
    this.fabric.advanceTo(Math.max(this.fabric.nowMs, nextUs / 1000));
    this.events++;
    return true;
  }

  runFor(ms: number): void {
    const until = this.nowMs + ms;
    while (this.step(until)) {}
  }

  /** Runs until `done`, at most `ms` of virtual time. Returns whether it came about. */
  runUntil(done: () => boolean, ms: number): boolean {
    const until = this.nowMs + ms;
    this.settle();
    while (!done()) if (!this.step(until)) return done();
    return true;
  }

  // ---------------------------------------------------------------- death

  /** When a rail of the one to the other carried last, by "rank/peer". */
  private readonly carriedMs = new Map<string, number>();
  /** "rank/peer": the one was told that the other is dead, has found it to be, or was. */
  private readonly told = new Set<string>();
  private readonly parted = new Set<string>();

  /** The process is dead from this moment on. */
  kill(rank: number, host: 'up' | 'down' = 'up'): void {
    this.fabric.kill(rank, host);
    this.oracle.dead.add(rank);
  }

  isDead(rank: number): boolean {
    return this.oracle.dead.has(rank);
  }

  /** The rank has a good reason to take that one for dead. */
  expectDeath(rank: number, dead: number): void {
    this.told.add(`${rank}/${dead}`);
  }

  /** What a launcher does: it says that a process is dead. */
  tellFailed(rank: number, dead: number): void {
    if (this.isDead(rank)) return;
    this.expectDeath(rank, dead);
    const { engine, driver } = this.processes[rank];
    engine.failPeer(dead, 'ERR_PROC_FAILED', 'its process ended');
    driver.ready = true;
  }

  /** A rank gives another up: it must have a reason. */
  private parts(rank: number, peer: number, error: MultirailError): void {
    this.parted.add(`${rank}/${peer}`);
    if (error.code !== 'ERR_PROC_UNREACHABLE') {
      // Dead, said to be, or it has given up this rank and refuses it.
      if (this.isDead(peer) || this.told.has(`${rank}/${peer}`) || this.parted.has(`${peer}/${rank}`)) return;
      throw new OracleError(`rank ${rank} takes rank ${peer} for dead (${error.code}), which it is not`);
    }
    const timeoutMs = this.params.int('pml_peer_timeout_ms');
    const sinceMs = this.carriedMs.get(`${rank}/${peer}`) ?? 0;
    if (this.processes[rank].engine.bml.peers.get(peer)?.rails.some((rail) => rail.state === 'UP'))
      throw new OracleError(`I5: rank ${rank} gives up rank ${peer}, to which a rail carries`);
    // A microsecond is rounding: the rank adds up its turns, and here two moments are subtracted.
    if (this.nowMs - sinceMs < timeoutMs - 0.001)
      throw new OracleError(
        `I5: rank ${rank} gives up rank ${peer} ${this.nowMs - sinceMs} ms after a rail carried, before ${timeoutMs} ms`,
      );
  }

  /** The one has given the other up, or was given up by it, or the other is leaving. */
  isParted(rank: number, peer: number): boolean {
    return this.mayFail(rank, peer) || this.parted.has(`${peer}/${rank}`);
  }

  private mayFail(rank: number, peer: number): boolean {
    if (peer < 0) return this.processes.every((other) => other.rank === rank || this.mayFail(rank, other.rank));
    return this.parted.has(`${rank}/${peer}`) || this.leaving.has(peer);
  }

  /** Ranks that have begun to finalize. */
  private readonly leaving = new Set<number>();
  private drainedTold = false;
  private readonly drainedPrng: Prng;

  finalize(rank: number): void {
    this.leaving.add(rank);
    this.processes[rank].engine.beginFinalize(this.options.meets === true);
  }

  /** What the launcher does where ranks have not met all the others: once all that live are drained, it says so. */
  private tellDrained(): void {
    if (this.options.meets !== true || this.drainedTold || this.leaving.size === 0) return;
    const alive = this.processes.filter(({ rank }) => !this.isDead(rank));
    if (!alive.every(({ rank, engine }) => this.leaving.has(rank) && engine.isDrained)) return;
    this.drainedTold = true;
    for (const { engine } of alive) this.fabric.at(this.fabric.nowUs + this.drainedPrng.between(0, 20_000), () => engine.everyoneDrained());
  }

  /** Memory of that rank that others may reach just now. */
  registeredBytes(rank: number): number {
    const [, sim] = this.modules.get(rank) as [BtlModule, SimBtl];
    return sim.registeredBytes;
  }

  private readonly forgotten = new Map<string, number>();

  /** That rank is about to forget the numbers of what it has been sent. */
  forgets(rank: number, contexts: readonly number[]): void {
    noteForgotten(this.processes, rank, contexts, this.forgotten);
  }

  /** What spans several processes, at every step (watch.ts). */
  private look(ran: ReadonlySet<number>): void {
    if (this.options.breaches !== 'allowed' && this.fabric.breaches.length > 0) throw new OracleError(`I12: ${this.fabric.breaches[0]}`);
    watch(this.processes, ran, this.forgotten);
    this.tellDrained();
  }

  // ---------------------------------------------------------------- commands of the simulated application

  /** `giveUpUs`: the user gives the send up so much later, unless it has ended by then. */
  isend(
    source: number,
    dest: number,
    ctx: number,
    tag: number,
    bytes: number,
    sync = false,
    abandoned = false,
    giveUpUs?: number,
  ): SentMessage {
    const message: SentMessage = {
      index: this.oracle.sent.length,
      source,
      dest,
      ctx,
      tag,
      bytes,
      sync,
      buffer: uninitialized(bytes),
      abandoned,
      request: undefined,
      matchedBy: undefined,
      done: false,
    };
    fillPattern(message.index, message.buffer);
    if (this.fabric.tracing)
      this.fabric.note(`rank ${source} isend #${message.index} to ${dest} ctx ${ctx} tag ${tag} bytes ${bytes}${sync ? ' sync' : ''}`);
    this.oracle.send(message);
    const { engine } = this.processes[source];
    const request = engine.pml.isend(dest, ctx, tag, new Iov([message.buffer]), sync, 0, giveUpUs !== undefined);
    message.request = request;
    if (request.done) this.oracle.sendDone(message, true);
    else {
      request.onDone = () => this.oracle.sendDone(message, false);
      if (giveUpUs !== undefined) this.fabric.at(this.fabric.nowUs + giveUpUs, () => this.giveUp(message));
    }
    engine.schedule();
    return message;
  }

  giveUp(message: SentMessage): void {
    const { request, source, index } = message;
    if (request === undefined || request.done || this.fabric.isKilled(source)) return;
    if (this.fabric.tracing) this.fabric.note(`rank ${source} gives up send #${index}`);
    const { engine } = this.processes[source];
    message.givenUp = true;
    engine.pml.giveUp(request, new MultirailError('ERR_TIMEOUT', `send #${index} was given up`));
    engine.schedule();
  }

  irecv(rank: number, source: number, ctx: number, tag: number, bytes: number): PostedReceive {
    const receive: PostedReceive = {
      rank,
      ctx,
      source,
      tag,
      buffer: freshBuffer(bytes),
      request: undefined,
      matched: undefined,
      done: false,
      cancelled: false,
    };
    if (this.fabric.tracing) this.fabric.note(`rank ${rank} irecv from ${source} ctx ${ctx} tag ${tag} bytes ${bytes}`);
    this.oracle.post(receive);
    const { engine } = this.processes[rank];
    const request = engine.pml.irecv(source, ctx, tag, new Iov([receive.buffer]));
    this.oracle.bind(receive, request);
    this.whenReceived(receive, request);
    engine.schedule();
    return receive;
  }

  private whenReceived(receive: PostedReceive, request: RecvRequest): void {
    if (request.done) this.oracle.recvDone(receive);
    else request.onDone = () => this.oracle.recvDone(receive);
  }

  /** A matched probe and its receive, if a message is there. */
  mprobeRecv(rank: number, source: number, ctx: number, tag: number): PostedReceive | undefined {
    const { engine } = this.processes[rank];
    const envelope = engine.pml.improbe(source, ctx, tag);
    if (envelope === undefined) return undefined;
    const receive: PostedReceive = {
      rank,
      ctx,
      source: envelope.source,
      tag: envelope.tag,
      buffer: freshBuffer(envelope.messageBytes),
      request: undefined,
      matched: undefined,
      done: false,
      cancelled: false,
    };
    this.oracle.post(receive);
    const request = engine.pml.imrecv(envelope, new Iov([receive.buffer]));
    this.oracle.bind(receive, request);
    this.whenReceived(receive, request);
    engine.schedule();
    return receive;
  }

  /** The context is revoked at that rank, as src/mpi does it: what is under way on it there ends, and what comes goes into nothing. */
  revoke(rank: number, ctx: number): void {
    const { engine } = this.processes[rank];
    this.oracle.revoke(rank, ctx);
    engine.pml.revokeContext(ctx, new MultirailError('ERR_REVOKED', `context ${ctx} was revoked`));
    engine.schedule();
  }

  cancel(receive: PostedReceive): boolean {
    const { engine } = this.processes[receive.rank];
    const cancelled = receive.request !== undefined && engine.pml.cancel(receive.request);
    if (cancelled) this.oracle.cancel(receive);
    engine.schedule();
    return cancelled;
  }

  // ---------------------------------------------------------------- the end

  /** Links that are not healed, and what strikes them again. */
  readonly gone = new Map<SimLink, () => void>();

  /** Everything is healed: links carry, nobody is blind or paused. Links that are gone are as they were struck, and no worse. */
  healAll(): void {
    for (let rank = 0; rank < this.options.ranks; rank++) this.fabric.resume(rank);
    for (const link of this.fabric.links()) {
      const strike = this.gone.get(link);
      if (strike !== undefined) {
        for (const rank of [link.low, link.high]) this.fabric.dropCounts(link, rank, false);
        strike();
        continue;
      }
      this.endCountLoss(link);
      this.fabric.mend(link);
      this.fabric.healPath(link);
      for (const rank of [link.low, link.high]) {
        this.fabric.onlyOtherSideNotices(link, rank, false);
        this.fabric.dropCounts(link, rank, false);
        this.fabric.refuseConnections(link, rank, false);
        this.fabric.skew(link, rank, 0);
      }
      // A side that was blind until now finds out what it missed.
      this.fabric.armDetection(link, 'silent', 'the other side has ended this epoch');
    }
  }

  /**
   * Counts that were left out do not come any more. A rail that checks itself would have found its frames unreported long ago:
   * it ends, with everything delivered and nothing reported. (Rails without that are judged by the BML, from the reports.)
   */
  endCountLoss(link: SimLink): void {
    if (link.spec.liveness !== 'self' || !link.pipes.some((pipe) => pipe.dropCounts)) return;
    for (const pipe of link.pipes) pipe.dropCounts = false;
    this.fabric.cut(link, { inFlight: 'delivered' });
    this.fabric.mend(link);
  }

  /** The liveness phase: with all healed, every request must end within that virtual time. */
  mustFinish(ms: number): void {
    this.runUntil(() => this.oracle.isFinished, ms);
    const unfinished = this.oracle.unfinished();
    if (unfinished.length > 0) {
      const states = this.processes.flatMap(({ engine, rank }) =>
        [...engine.pml.peers].flatMap((peer) => engine.pml.undelivered(peer.rank).map((line) => `rank ${rank}: ${line}`)),
      );
      throw new OracleError(
        `I5: ${unfinished.length} requests did not end: ${unfinished.slice(0, 6).join('; ')} | ${states.slice(0, 12).join('; ')}`,
      );
    }
    this.oracle.checkUnchanged();
  }

  /** Nothing that one of these ranks, or of those that live, has sent to another may be on its way: a rail that comes back later would find nobody to receive it. */
  mustDeliver(ms: number, among = () => this.processes.map(({ rank }) => rank).filter((rank) => !this.isDead(rank))): void {
    const undelivered = (rank: number, peer: number): string[] => this.processes[rank].engine.pml.undelivered(peer);
    const isDelivered = (): boolean => {
      const ranks = among();
      return ranks.every((rank) => ranks.every((peer) => undelivered(rank, peer).length === 0));
    };
    if (this.runUntil(isDelivered, ms)) return;
    const left = among().flatMap((rank) => among().flatMap((peer) => undelivered(rank, peer).map((text) => `${rank} to ${peer}: ${text}`)));
    throw new OracleError(`I5: messages are still on their way: ${left.join('; ')}`);
  }

  /** All ranks finalize: nothing may be retained, held or owed (I6, I9). */
  mustFinalize(ms: number): void {
    // One that is paused just now finalizes, too: it takes its turns when it gets them again.
    const living = () => this.processes.filter((process) => !this.fabric.isKilled(process.rank));
    for (const { rank } of living()) this.finalize(rank);
    if (!this.runUntil(() => living().every((process) => process.engine.isLeft()), ms)) {
      const left = living().flatMap((p) => p.engine.notLeftPeers().map(({ rank, text }) => `rank ${p.rank}: rank ${rank}: ${text}`));
      throw new OracleError(`I9: finalize did not end: ${left.join(' | ')}`);
    }
    for (const { rank, engine } of living()) {
      const { retainedBytes, abandonedBytes } = engine.pml;
      const { sends, recvs, givenUp } = engine.pml.messagesKept();
      if (retainedBytes !== 0) throw new OracleError(`I6: rank ${rank} still retains ${retainedBytes} bytes`);
      if (abandonedBytes !== 0 || givenUp !== 0)
        throw new OracleError(`I6: rank ${rank} still keeps ${abandonedBytes} bytes of sends that were given up`);
      const recvsMax = this.options.leavesUnreceived === true ? Number.POSITIVE_INFINITY : 0;
      if (sends !== 0 || recvs > recvsMax) throw new OracleError(`I6: rank ${rank} still holds ${sends} sends and ${recvs} receives`);
      for (const peer of engine.pml.peers) {
        if (peer.sends.size !== 0) throw new OracleError(`I6: rank ${rank} still holds ${peer.sends.size} sends to rank ${peer.rank}`);
        // What nobody receives is held to the end; I10 has counted it.
        if (peer.heldBytes !== 0 && !this.oracle.abandons && this.options.leavesUnreceived !== true)
          throw new OracleError(`I6: rank ${rank} still holds ${peer.heldBytes} bytes of rank ${peer.rank}`);
      }
      const registeredBytes = this.registeredBytes(rank);
      if (registeredBytes !== 0 && this.options.leavesUnreceived !== true)
        throw new OracleError(`I6: rank ${rank} still has ${registeredBytes} bytes registered`);
    }
    this.oracle.checkUnchanged();
    this.oracle.checkAbandoned();
  }
}
