// The engine: the only loop. It polls the BTLs, feeds what they call up to BML and PML, gives the PML's work to the rails, and hands
// completed requests on. It is the one implementation of `Upcalls`. Time comes from its driver (driver.ts, or the simulator).
import { Bml, HANDSHAKE_EPOCHS_AHEAD_MAX } from '../bml/bml.ts';
import { CARRYING, type Rail, type RailState } from '../bml/rail.ts';
import type {
  Admission,
  BtlEndpoint,
  BtlModule,
  CompletionStatus,
  Frame,
  Hello,
  OneSidedOp,
  RailPlan,
  RailReason,
  Sink,
  Upcalls,
} from '../btl/btl.ts';
import { ALIVE_PER_TURN_MAX_MS, DELIVERED, RAILS_MAX, REFUSED } from '../btl/btl.ts';
import { type ErrorCode, MultirailError } from '../errors.ts';
import type { Poller } from '../native/poller.ts';
import { hasLeft } from '../pml/outcome.ts';
import { Pml } from '../pml/pml.ts';
import { assert } from '../util/assert.ts';
import { DeadPeers } from './dead-peers.ts';
import { Departure, type NotLeft } from './departure.ts';
import type { Driver, EngineHooks, EngineOptions, MemoryWaits } from './engine-types.ts';
import { type LogLevel, LogLimit } from './log-limit.ts';
import { OpeningTimes } from './opening-times.ts';
import { type Ending, type EnginePeer, eventLoopNeed, Peers } from './peers.ts';
import { railEvents, unreachableMs, unreachableText } from './rail-events.ts';

export type { Driver, EngineHooks, EngineOptions, MemoryWaits } from './engine-types.ts';

// A blocking call reads the clock once in so many polls of the rails, and asks what else the kernel has to say once in so many more. To
// poll a rail in memory costs less than a system call by two orders of magnitude. Powers of two.
const POLLS_PER_CLOCK = 8;
const POLLS_PER_KERNEL = 64;
const MEMORY_POLLS_PER_CLOCK = 256;
const MEMORY_POLLS_PER_KERNEL = 8192;
/** Passes of one progress(), and its longest time, before the event loop gets its turn. */
const PASSES_MAX = 64;
const PROGRESS_MAX_MS = 10;

export class Engine implements Upcalls {
  readonly bml: Bml;
  readonly pml: Pml;
  readonly modules: BtlModule[] = [];
  private readonly options: EngineOptions;
  private readonly hooks: EngineHooks;
  private readonly driver: Driver;
  private readonly peers = new Peers();
  /** A turn is under way: poll() does nothing. */
  isRunning = false;
  private again = false;
  /** The last progress() did not come to its end; the next one comes after event sources had their turn. */
  private isYielding = false;
  isClosed = false;
  private nowMs: number;
  /** nowMs and aliveMs, as polls hand them on: a field of floating point would make a new value each time, tens of megabytes a second. */
  private readonly times: (number | undefined)[] = [undefined, undefined];
  private readonly logLimit = new LogLimit((level, text) => this.hooks.log?.(level, text));
  private polls = 0;
  /** While all traffic goes through memory: those of `modules` that have rails there. */
  memoryModules: readonly BtlModule[] | undefined = undefined;
  readonly poller: Poller | undefined;
  private readonly openings = new OpeningTimes();
  private readonly departure: Departure;
  private readonly dead: DeadPeers;
  memoryWaits: MemoryWaits | undefined = undefined;
  private awaited: { readonly done: boolean } | undefined = undefined;
  /** Called each time after the rails were polled, while somebody waits for what no request tells: that nothing is under way any more. */
  afterWork: (() => void) | undefined = undefined;
  /** Called when isDrained or isLeft() may have changed. */
  onDepartureStep: (() => void) | undefined = undefined;
  private readonly polledListeners: (() => void)[] = [];
  satisfied = false;
  /** Calls that wait for messages which no request of theirs takes; and those of saves. */
  expected = 0;
  expectedBySaves = 0;
  /** Milliseconds during which this process was polling its rails (B7 of btl/btl.ts). */
  aliveMs = 0;
  turns = 0;
  /** Grows with every frame that came up or was completed: what the application may be waiting for, unlike probes and beats. */
  usefulWork = 0;

  constructor(options: EngineOptions, driver: Driver, hooks: EngineHooks = {}) {
    this.options = options;
    this.driver = driver;
    this.poller = driver.poller;
    this.hooks = hooks;
    this.nowMs = driver.now();
    this.bml = new Bml(options.bml, (rail, from, to) => this.onRailState(rail, from, to));
    this.pml = new Pml(options.pml, this.bml);
    this.departure = new Departure(options.rank, this.bml, this.pml, () => this.onDepartureStep?.());
    this.dead = new DeadPeers(this.modules, this.bml, this.pml);
    this.pml.onFirstUse = (rank) => this.meet(rank);
  }

  // ---------------------------------------------------------------- set-up

  addModule(module: BtlModule): void {
    this.modules.push(module);
  }

  /**
   * A peer, with the endpoints of its rails in the order of the plan. Dialling begins with the next progress(). `asks`: where it is the
   * peer that dials, it may not know yet that it shall.
   */
  addPeer(rank: number, incarnation: number, endpoints: readonly BtlEndpoint[], unexpectedBytesMax: number, asks = false): EnginePeer {
    const bml = this.bml.addPeer(rank, endpoints, this.driver.now(), this.aliveMs, asks);
    this.pml.addPeer(rank, bml, unexpectedBytesMax);
    this.departure.addPeer(rank, bml);
    return this.peers.add({ rank, incarnation, bml });
  }

  /** The peer of that rank. `asks`: it is this side that needs it. Undefined when it is not in the job. */
  meet(rank: number, asks = true): EnginePeer | undefined {
    const known = this.peers.get(rank);
    if (known !== undefined) return known;
    const plan = this.hooks.planPeer?.(rank);
    if (plan === undefined) return undefined;
    const ending = this.peers.endingOf(rank);
    const peer = this.addPeer(rank, plan.incarnation, ending === undefined ? plan.endpoints : [], plan.unexpectedBytesMax, asks);
    const failure = ending?.failure ?? plan.failure;
    if (failure !== undefined || ending !== undefined) this.bml.closePeer(peer.bml);
    if (failure !== undefined) this.dead.add(peer.bml, failure);
    else if (ending !== undefined) this.departure.heardBye(rank, true);
    this.hooks.onPeerMet?.(rank);
    this.schedule();
    return peer;
  }

  /** How that rank ended; undefined while it lives. Nothing is needed of it by asking. */
  endingOf(rank: number): Ending | undefined {
    const { ended, failure } = this.pml.knownPeer(rank) ?? {};
    return ended === undefined ? this.peers.endingOf(rank) : { ended, failure };
  }

  private peer(rank: number): EnginePeer {
    const peer = this.peers.get(rank);
    assert(peer !== undefined, `unknown peer ${rank}`);
    return peer;
  }

  // ---------------------------------------------------------------- the loop

  /** Does everything that is due. Safe to call at any time; a call from inside runs another pass afterwards. */
  progress(): void {
    if (!this.runPasses() || this.driver.pollsAgain === true) return;
    this.isYielding = this.again || !this.park();
    if (this.isYielding) this.driver.yield();
    this.driver.arm(this.nextDeadline());
  }

  /** The same, for a program that looks again and again: timers and doorbells are seen to once, when it gives the event loop back. */
  look(): void {
    this.driver.defer();
    this.runPasses();
  }

  /** Passes until there is no more to do, or for long enough. False: none, since this is called from inside of one, or all is closed. */
  private runPasses(): boolean {
    if (this.isClosed) return false;
    if (this.isRunning) {
      this.again = true;
      return false;
    }
    // A driver that polls again by itself takes the place of further passes, and of timers: the application may run in between.
    const passesMax = this.driver.pollsAgain === true ? 1 : PASSES_MAX;
    this.isRunning = true;
    this.isYielding = false;
    try {
      let passes = 0;
      let beganMs = 0;
      do {
        this.takeTime();
        this.again = false;
        if (this.work(this.modules) > 0) this.again = true;
        if (passes === 0) beganMs = this.nowMs;
      } while (this.again && ++passes < passesMax && this.nowMs - beganMs < PROGRESS_MAX_MS);
    } finally {
      this.isRunning = false;
    }
    return true;
  }

  /** Calls this once, after the rails were polled the next time: what has come by now is taken before. */
  oncePolled(listener: () => void): void {
    this.polledListeners.push(listener);
    this.schedule();
  }

  /** When this request was started, to within a tenth of a second for those of late; undefined: since the last turn. */
  openedAtMs(request: { readonly openedAs: number }): number | undefined {
    return this.openings.atMs(request.openedAs);
  }

  /** There was something to do in the last pass: another one may find more. */
  get hasMore(): boolean {
    return this.again;
  }

  /** Commands of the application go out; the rails are not polled, because the driver is about to do that. */
  serveCommands(): void {
    if (this.isClosed) return;
    if (this.isRunning) {
      this.again = true;
      return;
    }
    this.isRunning = true;
    try {
      this.pml.pump();
      this.flush();
      this.pml.handOnCompletions();
    } finally {
      this.isRunning = false;
    }
  }

  /** From here on, until it is called again, a blocking call waits for this. */
  awaits(awaited: { readonly done: boolean } | undefined): void {
    this.awaited = awaited;
    this.satisfied = false;
  }

  /** Polls the rails once, for blocking calls, which have no event loop. Returns how much there was to do. */
  poll(): number {
    if (this.isClosed || this.isRunning) return 0;
    this.isRunning = true;
    try {
      const polls = this.polls++;
      const { memoryModules } = this;
      if (memoryModules !== undefined) {
        // Rails of the kernel's stand by: they are polled when the clock is read.
        if ((polls & (MEMORY_POLLS_PER_CLOCK - 1)) !== 0) return this.work(memoryModules, true);
        if ((polls & (MEMORY_POLLS_PER_KERNEL - 1)) === 0) this.poller?.look();
        this.takeTime();
      } else {
        if (this.poller?.direct === false || (polls & (POLLS_PER_KERNEL - 1)) === 0) this.poller?.look();
        if ((polls & (POLLS_PER_CLOCK - 1)) === 0) this.takeTime();
      }
      return this.work(this.modules);
    } finally {
      this.isRunning = false;
    }
  }

  /** Without polls (MemoryWatch): the next one reads the clock. */
  timePassed(): void {
    this.polls = (this.polls | (MEMORY_POLLS_PER_CLOCK - 1)) + 1;
  }

  /** As poll(), after a sleep: with the time as it is now, and with everything that the kernel has. */
  pollAfterSleep(): void {
    this.polls = 0;
    this.poll();
  }

  /** Why a blocking call might never end: transports that only the event loop serves carry traffic, and no other does. */
  needsEventLoop(): string | undefined {
    return eventLoopNeed(this.modules, this.peers, this.hooks.planPeer !== undefined);
  }

  /** Before sleep: asks modules that are polled in memory for a doorbell. False when something has come meanwhile. */
  park(): boolean {
    let parked = true;
    for (const module of this.modules) if (module.park !== undefined && !module.park()) parked = false;
    if (this.memoryWaits?.isWaiting === true && !this.memoryWaits.park()) parked = false;
    return parked;
  }

  /** Everything given to rails leaves now: for calls that do not wait for the end of a turn. */
  flush(): void {
    const { railsToFlush } = this.pml;
    // From the end: emptying an array by its length is a call out of compiled code.
    for (let rail = railsToFlush.pop(); rail !== undefined; rail = railsToFlush.pop()) {
      rail.needsFlush = false;
      rail.endpoint.flush();
      this.bml.handleSent(rail, this.nowMs);
    }
  }

  /** Somebody waits for something that may come any moment. */
  wantsSpin(): boolean {
    return this.pml.hasAwaitedRequests || this.expected > 0 || this.expectedBySaves > 0 || this.memoryWaits?.wantsSpin === true;
  }

  private takeTime(): void {
    const nowMs = this.driver.now();
    this.aliveMs += Math.min(Math.max(0, nowMs - this.nowMs), ALIVE_PER_TURN_MAX_MS);
    this.nowMs = nowMs;
    this.times[0] = nowMs;
    this.times[1] = this.aliveMs;
    this.turns++;
    this.openings.note(this.pml.openedRequests, this.nowMs);
  }

  /** `spares`: no time has passed, so where the rails have nothing and nothing is left to do, nothing else can be due. */
  private work(modules: readonly BtlModule[], spares = false): number {
    let work = 0;
    const { bml, pml, times } = this;
    const nowMs = times[0] as number;
    const aliveMs = times[1] as number;
    for (let i = 0; i < modules.length; i++) work += modules[i].progress(nowMs, aliveMs);
    const come = this.memoryWaits?.isWaiting === true ? this.memoryWaits.progress(nowMs) : 0;
    this.usefulWork += come;
    work += come;
    if (spares && work === 0 && !pml.hasWork && !this.departure.isBegun && this.polledListeners.length === 0) {
      this.afterWork?.();
      return 0;
    }
    if (bml.handleTime(nowMs, aliveMs)) this.checkUnreachable();
    this.dead.step();
    if (pml.pump()) work++;
    if (this.departure.isBegun) this.departure.step(nowMs);
    this.flush();
    const handedOn = pml.handOnCompletions();
    this.afterWork?.();
    if (this.polledListeners.length > 0) for (const listener of this.polledListeners.splice(0)) listener();
    return work + handedOn;
  }

  nextDeadline(): number {
    let deadline = this.bml.nextDeadline();
    for (const module of this.modules) deadline = Math.min(deadline, module.nextDeadline());
    if (this.memoryWaits?.isWaiting === true) deadline = Math.min(deadline, this.memoryWaits.nextDeadline());
    if (this.departure.isBegun) deadline = Math.min(deadline, this.departure.nextDeadline(this.nowMs));
    if (this.pml.isUnfinished) deadline = Math.min(deadline, this.nowMs);
    return deadline;
  }

  /** After a command of the application: everything it starts in this turn leaves together. */
  schedule(): void {
    if (!this.isRunning) this.driver.defer();
    else this.again = true;
  }

  // ---------------------------------------------------------------- upcalls

  wake(): void {
    // An eager message is leaving in the middle of a command: whoever asks from inside it has to wait for the end of the command.
    if (this.pml.isSending) this.schedule();
    // Whoever asks from a microtask would keep the event loop from its turn: the next progress() comes after that.
    else if (!this.isYielding) this.progress();
  }

  admit(module: BtlModule, hello: Hello): Admission {
    // A newer incarnation of the own rank would make this process declare itself failed.
    if (hello.rank === this.options.rank) return { ok: false, reason: 'RAIL_MISMATCH', text: 'a rank does not dial itself' };
    const peer = this.meet(hello.rank, false);
    if (peer === undefined) return { ok: false, reason: 'UNKNOWN_RANK', text: `rank ${hello.rank} is not in this job` };
    if (this.pml.peer(hello.rank).failure !== undefined) {
      return { ok: false, reason: 'PEER_FAILED', text: `rank ${hello.rank} was declared failed here` };
    }
    if (hello.incarnation < peer.incarnation) {
      return { ok: false, reason: 'OLD_INCARNATION', text: `rank ${hello.rank} has a newer process than incarnation ${hello.incarnation}` };
    }
    if (hello.incarnation > peer.incarnation) {
      // A newer process proves the older one dead; it belongs to no communicator of ours.
      this.failPeer(hello.rank, 'ERR_PROC_FAILED', 'a newer process of this rank appeared');
      return { ok: false, reason: 'PEER_FAILED', text: `rank ${hello.rank} was replaced by a newer process` };
    }
    if (hello.rank > this.options.rank) return this.asked(peer, hello.rail);
    const rail = peer.bml.byNumber[hello.rail] ?? this.railAdded(module, peer, hello);
    if (rail === undefined || rail.key !== hello.key || rail.endpoint.module !== module) {
      return {
        ok: false,
        reason: 'RAIL_MISMATCH',
        text: `rail ${hello.rail} is ${rail?.key ?? 'unknown'} here and ${hello.key} at rank ${hello.rank}: are the parameters the same on both?`,
      };
    }
    if (peer.bml.closed || this.isClosed) return { ok: false, reason: 'FINALIZED', text: 'this rank is leaving the job' };
    const highestEpoch = Math.max(rail.highestSeen, rail.highestDead, rail.epoch);
    if (hello.epoch <= Math.max(rail.highestDead, rail.epoch)) {
      return { ok: false, reason: 'STALE_EPOCH', text: `epoch ${hello.epoch} of rail ${rail.key} is over`, highestEpoch };
    }
    if (hello.epoch > highestEpoch + HANDSHAKE_EPOCHS_AHEAD_MAX) {
      const text = `epoch ${hello.epoch} of rail ${rail.key} is too far above ${highestEpoch}, the highest here`;
      return { ok: false, reason: 'STALE_EPOCH', text, highestEpoch };
    }
    return { ok: true, endpoint: rail.endpoint };
  }

  /** A higher rank needs this one, which is the side that dials. */
  private asked({ rank, bml }: EnginePeer, over: number): Admission {
    if (bml.closed || this.isClosed) return { ok: false, reason: 'FINALIZED', text: 'this rank is leaving the job' };
    this.bml.handleAsked(bml, over, this.nowMs);
    return { ok: false, reason: 'WILL_DIAL', text: `rank ${this.options.rank} is the lower one, and dials rank ${rank} now` };
  }

  /** The lower rank has made a rail of interfaces that came after the start. */
  private railAdded(module: BtlModule, peer: EnginePeer, { rail, key }: Hello): Rail | undefined {
    // A key names one rail, and a number that cannot be is no reason to make room for it.
    if (rail >= RAILS_MAX || peer.bml.closed || peer.bml.rails.some((known) => known.key === key)) return undefined;
    const added = module.planAdded?.(peer.rank, key);
    if (added === undefined) return undefined;
    this.addRail(module, peer, rail, added.plan, added.remote);
    return peer.bml.byNumber[rail];
  }

  onRailPlanned(module: BtlModule, rank: number, plan: RailPlan, remote: unknown): void {
    const peer = this.peers.get(rank);
    if (peer === undefined || peer.bml.closed || peer.bml.byNumber.length >= RAILS_MAX) return;
    this.addRail(module, peer, peer.bml.byNumber.length, plan, remote);
  }

  private addRail(module: BtlModule, peer: EnginePeer, rail: number, plan: RailPlan, remote: unknown): void {
    this.bml.addRail(peer.bml, module.endpoint(peer.rank, rail, plan, remote), this.nowMs);
    this.log('info', `rail ${plan.key} to rank ${peer.rank} is there since an interface came up`);
  }

  onConnected(endpoint: BtlEndpoint, epoch: number): void {
    this.bml.handleConnected(endpoint, epoch, this.nowMs, this.aliveMs);
  }

  onConnectFailed(endpoint: BtlEndpoint, epoch: number, reason: RailReason, highestEpoch?: number): void {
    this.bml.handleConnectFailed(endpoint, epoch, reason, highestEpoch, this.nowMs);
    if (reason.code === 'ERR_PROC_FAILED' && this.hooks.onRefused?.(endpoint.peer, reason.text) !== true)
      this.failPeer(endpoint.peer, 'ERR_PROC_FAILED', `it refused us: ${reason.text}`);
    // It said BYE and had ours before it closed: only its own BYE got lost with a rail (B9).
    else if (reason.code === 'ERR_FINALIZED' && this.departure.awaitsBye(endpoint.peer)) this.peerLeft(endpoint.peer, true);
    else this.log('debug', `rail ${endpoint.plan.key} to rank ${endpoint.peer}: epoch ${epoch} not connected: ${reason.text}`);
  }

  onRailDown(endpoint: BtlEndpoint, epoch: number, reason: RailReason): void {
    this.bml.handleRailDown(endpoint, epoch, reason, this.nowMs);
    this.pml.handleRailDown(endpoint.peer, endpoint.rail, epoch);
  }

  onCompleted(endpoint: BtlEndpoint, _epoch: number, frame: Frame, status: CompletionStatus): void {
    this.usefulWork++;
    const bytes = frame.header.length + frame.payloadBytes;
    if (status === DELIVERED) this.bml.handleDelivered(endpoint, bytes, this.nowMs, this.aliveMs);
    else if (status === REFUSED) this.bml.handleRefused(endpoint, bytes);
    else this.bml.handleInDoubt(endpoint);
    this.pml.handleCompleted(frame, status);
  }

  onFrame(endpoint: BtlEndpoint, _epoch: number, header: Uint8Array, payload: Uint8Array, sink: Sink | null): void {
    this.usefulWork++;
    this.pml.handleFrame(endpoint.peer, header, payload, sink);
    if (this.awaited?.done) this.satisfied = true;
  }

  onFrameWords(
    endpoint: BtlEndpoint,
    words: Int32Array,
    headerAt: number,
    headerBytes: number,
    payloadAt: number,
    payloadBytes: number,
  ): boolean {
    if (!this.pml.handleFrameWords(endpoint.peer, words, headerAt, headerBytes, payloadAt, payloadBytes)) return false;
    this.usefulWork++;
    if (this.awaited?.done) this.satisfied = true;
    return true;
  }

  sinkFor(endpoint: BtlEndpoint, _epoch: number, header: Uint8Array, payloadBytes: number): Sink {
    return this.pml.sinkFor(endpoint.peer, endpoint.rail, header, payloadBytes);
  }

  onSinkDropped(_endpoint: BtlEndpoint, _epoch: number, sink: Sink): void {
    this.pml.handleSinkDropped(sink);
  }

  onWritable(endpoint: BtlEndpoint): void {
    this.bml.handleWritable(endpoint);
    this.pml.handleWritable(endpoint.peer);
  }

  onProbeAnswered(endpoint: BtlEndpoint, epoch: number, probeId: number): void {
    this.bml.handleProbeAnswered(endpoint, epoch, probeId, this.nowMs, this.aliveMs);
    // What is known of a rail now may be what a frame waits for.
    this.pml.handleWritable(endpoint.peer);
  }

  onBye(endpoint: BtlEndpoint, _epoch: number): void {
    this.peerLeft(endpoint.peer);
  }

  onReport(endpoint: BtlEndpoint, epoch: number, receivedBytes: number, peerAliveMs: number): void {
    this.bml.handleReport(endpoint, epoch, receivedBytes, peerAliveMs, this.aliveMs);
  }

  onOneSidedCompleted(endpoint: BtlEndpoint, _epoch: number, op: OneSidedOp, status: CompletionStatus): void {
    if (status === DELIVERED) this.bml.handleDelivered(endpoint, op.bytes, this.nowMs, this.aliveMs);
    this.pml.handleOneSidedCompleted(op, status);
  }

  onReachable(endpoint: BtlEndpoint): void {
    this.bml.handleReachable(endpoint, this.nowMs);
  }

  onAddressChanged(module: BtlModule): void {
    this.hooks.onAddressChanged?.(module);
  }

  log(level: LogLevel, text: string): void {
    this.logLimit.log(level, text, this.nowMs);
  }

  // ---------------------------------------------------------------- rails and peers

  private onRailState(rail: Rail, from: RailState, to: RailState): void {
    this.hooks.onRailState?.(rail, from, to);
    this.memoryModules = this.peers.areInMemory(this.options.rank) ? this.modules.filter((module) => module.inMemory === true) : undefined;
    if (this.poller !== undefined) this.poller.memoryFirst = this.memoryModules !== undefined;
    const wasCarrying = CARRYING.has(from);
    if (wasCarrying || rail.isCarrying) this.pml.handleRailsChanged(rail);
    if (rail.isCarrying && !wasCarrying) {
      this.pml.handleRailUp(rail.peer, rail.index, rail.epoch);
      this.departure.railUp(rail, this.nowMs);
    }
    for (const event of railEvents(rail, from, to, this.peer(rail.peer).bml.rails, this.nowMs)) this.hooks.onRailEvent?.(event);
  }

  private checkUnreachable(): void {
    for (const peer of this.peers.values()) {
      const forMs = unreachableMs(peer.bml, this.aliveMs);
      if (forMs === 0 || this.hooks.onUnreachable?.(peer.rank, forMs) === 'wait' || forMs < this.options.peerTimeoutMs) continue;
      this.failPeer(peer.rank, 'ERR_PROC_UNREACHABLE', unreachableText(peer.bml, this.options.peerTimeoutMs));
    }
  }

  /** The peer has failed and does not come back: all its requests end with `code`; its process is refused from now on. */
  failPeer(rank: number, code: ErrorCode, text: string): void {
    const peer = this.peers.get(rank);
    const error = new MultirailError(code, `rank ${rank}: ${text}`, { rank: this.options.rank, peer: rank });
    if (peer === undefined) {
      if (this.peers.end(rank, { ended: error, failure: error })) this.hooks.onPeerFailed?.(rank, error, 0);
      return this.schedule();
    }
    if (this.departure.isOver(rank) || this.pml.peer(rank).failure !== undefined) return;
    const before = this.pml.counters.lostWithPeer;
    this.bml.closePeer(peer.bml);
    for (const rail of peer.bml.rails) {
      this.bml.fence(peer.bml, rail.index, rail.highestSeen, { kind: 'peer-failed', text });
    }
    this.dead.add(peer.bml, error);
    this.hooks.onPeerFailed?.(rank, error, this.pml.counters.lostWithPeer - before);
    this.schedule();
  }

  /** The peer said BYE on a rail, or the launcher says that it finished: it owes us nothing and wants nothing (B9). */
  peerLeft(rank: number, isGone = false): void {
    const isNews = this.peers.has(rank)
      ? this.departure.heardBye(rank, isGone)
      : this.peers.end(rank, { ended: hasLeft(this.options.rank, rank), failure: undefined });
    if (!isNews) return;
    this.hooks.onPeerLeft?.(rank);
    this.schedule();
  }

  // ---------------------------------------------------------------- end of the job

  /**
   * Begins to leave: drains, then says BYE on each rail. isLeft() tells when it is done. `awaitsAll`: not before everyoneDrained() was
   * called, too, since ranks that were not met may still have messages for this one. `last`: peers that leave when all others have left.
   */
  beginFinalize(awaitsAll = false, last: readonly number[] = []): void {
    this.departure.begin(awaitsAll, last);
    this.schedule();
  }

  /** Everything that this rank has sent is delivered, as far as it has come. */
  get isDrained(): boolean {
    return this.departure.isDrained;
  }

  /** Every rank that lives is drained: nobody dials any more. */
  everyoneDrained(): void {
    this.departure.everyoneDrained();
    this.schedule();
  }

  /** True when every peer has said BYE, or is dead, and so have we. */
  isLeft(): boolean {
    return this.departure.isDone;
  }

  get isFinalizing(): boolean {
    return this.departure.isBegun;
  }

  /** The peers that have not left, and why isLeft() is not yet true. */
  notLeftPeers(): NotLeft[] {
    return this.departure.notLeft();
  }

  /** Closes the transports; nothing happens any more. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.driver.arm(Number.POSITIVE_INFINITY);
    await Promise.all(this.modules.map((module) => module.close()));
  }
}
