// The runtime of one rank: transports, engine, world communicator, events, and the end of it all. Several may live in one process:
// nothing here is global.
//
//   STARTING    transports open, addresses are exchanged
//   ACTIVE      from createRuntime() on; rails connect in the background
//   FINALIZING  no new calls; what is under way is delivered, peers say BYE
//   FINALIZED   everything is closed

import { EventEmitter } from 'node:events';
import type { BtlContext, BtlModule, Params, Upcalls } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import { abortEverywhere } from '../launch/job-abort.ts';
import { type RankWaits, reportLines, reportOfOne } from '../launch/oob/waits.ts';
import { ParamTable, survivesFailures } from '../params.ts';
import { BlockingWaiter } from '../progress/blocking.ts';
import { Engine } from '../progress/engine.ts';
import { lookOnce } from '../progress/look-once.ts';
import { engineOptions, expectCrowd } from '../progress/options.ts';
import type { RailEvent as EngineRailEvent } from '../progress/rail-events.ts';
import { crowdFactor, limitInCrowd } from '../util/crowd.ts';
import { Deferred } from '../util/deferred.ts';
import { DIVERGED_CODE, OWN_FAILURE_CODE } from '../util/exit-codes.ts';
import { processName } from '../util/replica-names.ts';
import { AddressBook, type ModexTable } from './address-book.ts';
import { peerFailedChannel } from './channels.ts';
import { tuningOf } from './coll/choice.ts';
import { Communicator } from './communicator.ts';
import { checkSyncOptions } from './constants.ts';
import { WORLD_ID } from './contexts.ts';
import { makeDriver, nativeOf } from './drivers.ts';
import type { FaultTolerance } from './ft/fault-tolerance.ts';
import { checkProcess, ownProcess } from './ft/process-watch.ts';
import { type CalledInto, dutyOf, type StandbyDuty, StandbyPool } from './ft/standby.ts';
import { Group } from './group.ts';
import { countersOf, railInfos } from './info.ts';
import { checkSpares, describeExit, evidenceOf, FORGOTTEN, isLate, noRailYet } from './job-facts.ts';
import { ftParts, hasJobParts, loadJobParts, replicaParts } from './job-parts.ts';
import { leaveTogether, leaveUnneeded, notFinished, tellFinalized } from './leaving.ts';
import { MODEX_VERSION, type ModexEntry } from './modex.ts';
import { openModules } from './open-modules.ts';
import { ProcessState } from './process-state.ts';
import { ownProcessors } from './processors.ts';
import type { Injector } from './replica/inject.ts';
import { replicaPlace } from './replica/place.ts';
import type { Replica } from './replica/replica.ts';
import type { ReplicaHooks, ReplicaProcess } from './replica/replica-process.ts';
import type { ExitNotice, ModuleSource, RuntimeDriver, RuntimeJob, RuntimeOob, RuntimeOptions } from './runtime-options.ts';
import { Stay } from './stay.ts';
import { obeyFault, startTelemetry, type TelemetryReporter } from './telemetry.ts';
import { publishRail } from './tracing.ts';
import { undeliveredFrom, unreceivedHere } from './unreceived.ts';
import type { PeerEvent, RailEvent, RailInfo, RuntimeCounters, RuntimeEvents } from './views.ts';
import { WaitsWatch } from './waits.ts';

export type { ModuleSource, RuntimeDriver, RuntimeJob, RuntimeOob, RuntimeOptions };

type RuntimeState = 'STARTING' | 'ACTIVE' | 'FINALIZING' | 'FINALIZED';
const STATE_EDGES: Record<RuntimeState, readonly RuntimeState[]> = {
  STARTING: ['ACTIVE', 'FINALIZED'],
  ACTIVE: ['FINALIZING'],
  FINALIZING: ['FINALIZED'],
  FINALIZED: [],
};

/** Why a rank need not wait for the others at its end. */
const GONE: ReadonlySet<string> = new Set(['ERR_PROC_FAILED', 'ERR_PROC_UNREACHABLE', 'ERR_REVOKED', 'ERR_COMM']);

/** In a crowd the others have so many times as long to leave at most: somebody waits for the end of a job that will not come. */
const LEAVE_CROWD_MAX = 8;

/** The transport whose users share memory for collectives, too. */
const SHARED_MEMORY = 'sm';

/** A runtime for this job over these transports. Resolves when all ranks have exchanged their addresses. */
export let createRuntime: (job: RuntimeJob, options: RuntimeOptions) => Promise<Runtime>;

/**
 * This process as a rank of its job: what init() gives. It emits `rail` when something happens to a rail, and `peer` when a peer has
 * failed (RuntimeEvents).
 */
export class Runtime extends EventEmitter<RuntimeEvents> {
  /**
   * Number of this process in its job. It is given once, and never again to another one; for processes of the start it is their rank. Groups
   * and events name processes by it.
   */
  readonly process: number;
  /** Id of the job, the same at every rank. */
  readonly jobId: string;
  /** The processes that stand by to take the places of others. */
  readonly standby: StandbyPool;
  /** The parameters of this rank, by name. */
  readonly params: Params;
  /** Faults that were asked for (ft_inject), for programs of experiments; undefined where none were. */
  readonly inject: Injector | undefined;
  private readonly table: ParamTable;
  private readonly job: RuntimeJob;
  private readonly options: Omit<RuntimeOptions, 'params'>;
  /** Undefined where each rank is one process. */
  private readonly pair: ReplicaProcess | undefined;
  private readonly engine: Engine;
  private readonly proc: ProcessState;
  private readonly driver: RuntimeDriver;
  private readonly blocking: BlockingWaiter;
  private state: RuntimeState = 'STARTING';
  private place: { readonly world: Communicator; readonly role: Runtime['role'] } | undefined;
  /** @internal Resolves when the word comes that another rank has aborted the job. */
  readonly aborted = new Deferred<MultirailError>();
  /** @internal Where this process stands by, or has stood by. */
  readonly duty: StandbyDuty | undefined;
  /** @internal Another ArrayBuffer over the memory of that view; undefined without the native part. */
  readonly memoryAlias: ((bytes: Uint8Array) => ArrayBuffer) | undefined;
  private readonly modules: BtlModule[] = [];
  private entry: ModexEntry | undefined;
  private book: AddressBook | undefined;
  /** What came before this rank was done with its own start. */
  private readonly earlyUpdates = new Map<number, unknown>();
  private readonly earlyExits = new Map<number, ExitNotice>();
  private readonly earlyJoins: (() => void)[] = [];
  private finalizing: Promise<void> | undefined;
  private readonly watch: WaitsWatch;
  private stay: Stay | undefined;
  private telemetry: TelemetryReporter | undefined;

  private constructor(job: RuntimeJob, params: ParamTable, options: Omit<RuntimeOptions, 'params'>) {
    super();
    this.job = job;
    this.options = options;
    this.process = job.rank;
    this.jobId = job.jobId;
    this.params = params;
    this.table = params;
    const native = nativeOf(options);
    this.memoryAlias = native?.memoryAlias;
    this.driver = options.driver ?? makeDriver(native, params);
    this.engine = new Engine(engineOptions(job.rank, params), this.driver, {
      planPeer: (rank) => this.book?.planLate(rank),
      onPeerMet: (rank) => this.proc.ft?.peerMet(rank),
      onRailEvent: (event) => this.onRailEvent(event),
      onRailState: (rail, from, to) => this.telemetry?.railMoved(rail, from, to),
      onUnreachable: (rank, forMs) => (this.proc.ft?.unreachable(rank, forMs) === true ? 'wait' : undefined),
      onPeerFailed: (rank, error, lost) => this.onPeerFailed(rank, error, lost),
      onRefused: (rank, text) => this.onRefused(rank, text),
      onPeerLeft: (rank) => this.onPeerLeft(rank),
      onAddressChanged: (module) => this.onAddressChanged(module),
      log: (level, text) => this.options.log?.(level, text),
    });
    this.driver.attach(this.engine);
    const place = replicaPlace(job, params);
    if (params.string('ft_inject') !== '')
      this.inject = replicaParts().injectorOf(job, place, params, (text) => options.log?.('warn', text));
    this.pair = place && new (replicaParts().ReplicaProcess)(place, job, params, this.engine, this.driver, this.replicaHooks());
    this.blocking = this.pair?.waiter ?? new BlockingWaiter(this.engine, this.driver, this.params.int('mpi_blocking_spin_us'));
    this.proc = new ProcessState(this.engine, this.blocking, place?.rank ?? job.rank, tuningOf(params), native, this.pair);
    const spares = checkSpares(job, params.int('ft_spares'));
    const worldSize = job.size - spares;
    this.proc.worldSizeAtStart = worldSize;
    if (survivesFailures(params)) this.proc.ft = this.makeFaultTolerance(spares);
    this.standby = new StandbyPool(() => this.proc.ft?.ulfm.standbys.ready.length ?? 0);
    if (isLate(job) || this.process >= worldSize)
      this.duty = dutyOf(job, this.proc, {
        onCalled: (place, role) => this.sitDown(place, role),
        onUnneeded: () => void this.leaveUnneeded(),
      });
    this.watch = new WaitsWatch(this.engine, this.proc, this.process, this.params.int('mpi_stall_report_ms'), {
      onStall: (text) => this.reportWaits(text),
      onBlocked: (waits) => this.job.oob?.pushWaits?.(waits),
    });
    this.blocking.onSleep = (nowMs, beganMs) => {
      this.watch.lookBlocked(nowMs, beganMs);
      this.pair?.lookBlocked(nowMs);
      this.proc.lookAtBlockedCalls(nowMs);
    };
    if (this.duty !== undefined) return;
    const members = Array.from({ length: place?.ranks ?? worldSize }, (_, rank) => rank);
    this.place = { world: new Communicator(this.proc, 'world', WORLD_ID, new Group(members, this.proc.rank)), role: 'initial' };
  }

  private replicaHooks(): ReplicaHooks {
    return {
      onDiverged: (error) => void this.abort(DIVERGED_CODE, error.message),
      onLeave: (error) => {
        this.options.log?.('warn', error.message);
        // Why it ends without finalize() was said.
        this.job.isEnding = true;
        this.options.exit?.(DIVERGED_CODE);
      },
      onTakeover: () => {
        this.proc.layerChanged();
        this.options.log?.(
          'warn',
          `process ${this.process} takes the place of the lead of rank ${this.rank}, which has died, and goes on by itself`,
        );
      },
      onLost: (error) => void this.abort(1, error.message),
      onDead: (number) => this.onHeardDead(number),
      warn: (text) => this.options.log?.('warn', text),
      beforeSend: this.inject?.beforeSend,
    };
  }

  private makeFaultTolerance(spares: number): FaultTolerance {
    const { job, options, params } = this;
    const { FaultTolerance, partitionOptions } = ftParts();
    return new FaultTolerance(this.proc, {
      incarnation: job.incarnation,
      size: job.size,
      spares,
      connectsSpares: params.bool('ft_standby_connect'),
      heldBytesMax: params.bool('ft_standby_holds') ? params.int('ft_memory_bytes_max') : undefined,
      respawnWaitMs: params.int('ft_respawn') === 0 ? 0 : params.int('ft_respawn_wait_ms'),
      log: (level, text) => options.log?.(level, text),
      onOwnDeath: (error) => this.onOwnDeath(error),
      partition: partitionOptions(params, job.oob),
      oob: job.oob,
      callStandby: (number, call) => job.oob?.callStandby?.(number, call),
      onStandby: (event) => this.duty?.take(event),
      onPoolChanged: () => queueMicrotask(() => this.standby.emit('changed')),
    });
  }

  private get seat(): { readonly world: Communicator; readonly role: Runtime['role'] } {
    if (this.place === undefined) throw new MultirailError('ERR_INTERNAL', `process ${this.process} stands by and has no world`);
    return this.place;
  }

  /** Rank of this process in `world`. */
  get rank(): number {
    return this.place?.world.rank ?? this.process;
  }

  /** Number of ranks of `world`. */
  get size(): number {
    return this.seat.world.size;
  }

  /**
   * The communicator of all ranks of the start (MPI-4.1, section 7.2.4); processes that stand by are not in it. Where this process has taken
   * the place of another one, it is the communicator that replace() has made of it; of a helper it is the team.
   */
  get world(): Communicator {
    return this.seat.world;
  }

  /** How this process has come to its place: with the start of the job, or by a call of replace(). As a helper it has none (`multirail/ft`). */
  get role(): 'initial' | 'replacement' | 'helper' {
    return this.seat.role;
  }

  private moveTo(next: RuntimeState): void {
    if (!STATE_EDGES[this.state].includes(next)) {
      throw new MultirailError('ERR_INTERNAL', `runtime of process ${this.process}: no edge ${this.state} -> ${next}`);
    }
    this.state = next;
  }

  /** What this process is as one of the replicas of its rank; undefined where each rank is one process. */
  get replica(): Replica | undefined {
    return this.pair?.face;
  }

  /** Whether finalize() was called. */
  get isFinalized(): boolean {
    return this.state === 'FINALIZING' || this.state === 'FINALIZED';
  }

  // ---------------------------------------------------------------- start

  static {
    createRuntime = async (job, { params = new ParamTable(), ...options }) => {
      if (!hasJobParts(params)) await loadJobParts(params);
      return await new Runtime(job, params, options).start();
    };
  }

  /** Opens the transports, exchanges addresses, plans the rails. */
  private async start(): Promise<this> {
    const { job } = this;
    this.listenToJob();
    // A world of one has nobody who might need it: it ends when its program does. Whoever brings a driver looks after the process.
    if ((job.size > 1 || isLate(job)) && this.options.driver === undefined)
      this.stay = new Stay({ isAwaited: () => this.isAwaited(), onForgotten: () => this.options.log?.('warn', FORGOTTEN) });
    try {
      const excluded = await openModules(this.context(), this.options, this.modules);
      this.driver.poller?.keepAlive(false);
      const btl: Record<string, unknown> = {};
      for (const module of this.modules) btl[module.name] = module.address();
      this.entry = {
        version: MODEX_VERSION,
        incarnation: job.incarnation,
        hostId: job.hostId,
        unexpectedBytesMax: this.params.int('pml_unexpected_bytes_max'),
        processors: ownProcessors(),
        btl,
        excluded,
        ...(this.proc.ft === undefined && this.pair === undefined ? {} : { process: ownProcess() }),
      };
      const own = JSON.parse(JSON.stringify(this.entry)) as ModexEntry;
      const entries: ModexTable = job.oob === undefined ? [own] : await job.oob.modex(this.entry);
      this.meetAtStart(own, entries);
    } catch (error) {
      this.moveTo('FINALIZED');
      await this.engine.close();
      await Promise.all(this.modules.map((module) => module.close()));
      this.driver.close?.();
      this.stay?.end();
      throw error;
    }
    for (const module of this.modules) this.engine.addModule(module);
    // Asked for, though it may not work here: the same at every rank.
    const asked = SHARED_MEMORY in (this.entry?.btl ?? {}) || SHARED_MEMORY in (this.entry?.excluded ?? {});
    this.proc.sharesMemory = asked && this.pair === undefined;
    this.moveTo('ACTIVE');
    this.pair?.start(this.book, job.hostId, job.oob);
    if (this.stay !== undefined) this.driver.onCall = this.stay.onCall;
    for (const [rank, json] of this.earlyUpdates) this.takeAddresses(rank, json);
    this.earlyUpdates.clear();
    this.startFaultTolerance();
    for (const join of this.earlyJoins.splice(0)) join();
    for (const [rank, info] of this.earlyExits) this.onExit(rank, info);
    this.earlyExits.clear();
    const source = {
      rank: this.process,
      rails: () => this.rails(),
      counters: () => this.counters(),
      saves: () => this.proc.saveCounters?.(),
    };
    this.telemetry = startTelemetry(source, job.oob, this.params.int('mpi_telemetry_ms'), this.modules);
    this.engine.schedule();
    this.watch.start(() => this.driver.now());
    this.duty?.look();
    await this.pair?.startClocks(job.secret);
    await this.duty?.called;
    return this;
  }

  /** This process, which has stood by, has its place, or is in the team of a successor. */
  private sitDown({ id, members }: CalledInto, role: Runtime['role']): void {
    const { contexts } = this.proc;
    contexts.open(id);
    this.place = { world: new Communicator(this.proc, role === 'helper' ? 'team' : 'world', id, new Group(members, this.process)), role };
    if (role === 'replacement') contexts.endCreation(false);
    if (!contexts.isCreating) this.proc.ft?.ulfm.dropEarly();
  }

  /** This process has stood by, and the job has ended without it. */
  private async leaveUnneeded(): Promise<void> {
    await this.finalize().catch((error: Error) => this.options.log?.('debug', error.message));
    this.options.exit?.(0);
  }

  /**
   * The own rank, and with mpi_preconnect = all the others. The rest are met when they are needed; that there can be rails at all is looked at
   * with the two neighbours. No progress() comes in between: connections that are here already are looked at afterwards.
   */
  private meetAtStart(own: ModexEntry, table: ModexTable): void {
    const { modules } = this;
    const { rank, size } = this.job;
    const timeoutMs = this.params.int('pml_peer_timeout_ms');
    const onWaiting = (peer: number, text: string): void => this.options.log?.('warn', noRailYet(rank, peer, timeoutMs, text));
    const book = new AddressBook({ rank, size, own, table, modules, onWaiting });
    this.book = book;
    this.proc.hostOf = (number) => book.hostOf(number);
    const isAll = this.params.string('mpi_preconnect') === 'all';
    for (const peer of isAll ? book.numbers : [rank]) {
      const { incarnation, endpoints, unexpectedBytesMax } = book.plan(peer);
      this.engine.addPeer(peer, incarnation, endpoints, unexpectedBytesMax);
    }
    const { ft } = this.proc;
    for (const peer of ft === undefined ? [] : book.numbers) ft?.addProcess(peer, book.entryOf(peer).incarnation);
    for (const peer of isAll ? [] : book.neighbours) book.check(peer);
    this.lookForCrowd(book);
  }

  /** From the first call on, whoever waits knows whether those it waits for have a processor. */
  private lookForCrowd(book: AddressBook): void {
    const mode = this.params.string('mpi_yield_when_idle');
    const isCrowded = book.isHostCrowded();
    if (isCrowded) expectCrowd(crowdFactor(this.job.localSize, book.room), this.table, this.engine.bml, this.modules);
    if (mode === 'never' || (mode === 'auto' && !isCrowded)) return;
    this.proc.isCrowded = true;
    this.blocking.expectCrowd();
    this.driver.expectCrowd?.();
  }

  private context(): BtlContext {
    const { params, driver } = this;
    const { rank, size, jobId, incarnation, secret, hostId } = this.job;
    const upcalls: Upcalls = this.engine;
    return { rank, size, jobId, incarnation, secret, hostId, params, upcalls, poller: driver.poller };
  }

  private listenToJob(): void {
    const { oob } = this.job;
    oob?.on('railFault', (fault) => {
      if (this.state !== 'ACTIVE') return;
      obeyFault(this.modules, fault);
      this.engine.schedule();
    });
    oob?.on('modexUpdate', (rank, json) => {
      if (rank === this.process) return;
      // In the same packet as the last of the first addresses, maybe.
      if (this.state === 'STARTING') this.earlyUpdates.set(rank, json);
      else if (this.state === 'ACTIVE' || this.state === 'FINALIZING') this.takeAddresses(rank, json);
    });
    oob?.on('exit', (rank, info) => {
      if (this.state === 'FINALIZED') return;
      if (rank === this.process) this.proc.ft?.declaredDead(describeExit(info));
      else if (this.state === 'STARTING') this.earlyExits.set(rank, info);
      else this.onExit(rank, info);
    });
    oob?.on('declaredDead', (text) => this.proc.ft?.declaredDead(text));
    oob?.on('processJoined', (number, incarnation, json) => {
      const join = (): void => this.onJoined(number, incarnation, json);
      if (this.state === 'STARTING') this.earlyJoins.push(join);
      else if (this.state !== 'FINALIZED') join();
    });
    oob?.on('standbysEnd', () => this.proc.ft?.standbysEnd());
    oob?.on('standbyState', (rank, isWaiting) => {
      this.proc.ft?.standbyState(rank, isWaiting);
      this.duty?.look();
    });
    oob?.on('standbyCall', (caller, call) => this.proc.ft?.calledByServer(caller, call));
    oob?.on('waitsRequest', (id) => {
      if (this.state !== 'STARTING') oob.waitsReport?.(id, this.waits());
    });
    oob?.on('abort', (info) => {
      if (this.state === 'FINALIZED') return;
      const text = `${processName(info.rank, this.job.size, this.params.int('ft_replicas'))} aborted the job: ${info.reason}`;
      const error = new MultirailError('ERR_ABORT', text, { rank: this.process });
      this.proc.logged?.abort(error);
      for (const rank of this.book?.others ?? []) this.engine.failPeer(rank, 'ERR_ABORT', text);
      this.aborted.resolve(error);
    });
  }

  /** A process has joined the job. Nothing is needed of it before it takes somebody's place. */
  private onJoined(number: number, incarnation: number, json: unknown): void {
    this.book?.add(number, json);
    const { process } = (typeof json === 'object' && json !== null ? json : {}) as Partial<ModexEntry>;
    this.proc.ft?.processJoined(number, incarnation, checkProcess(process), this.state === 'ACTIVE');
  }

  /** Another process was told of that death before this one. */
  private onHeardDead(number: number): void {
    const info = { code: undefined, signal: '', finalized: false, lost: true, replaced: false };
    if (this.job.oob?.ended === undefined) this.onExit(number, info);
    else this.job.oob.ended(number, info);
  }

  private onExit(rank: number, info: ExitNotice): void {
    const { ft } = this.proc;
    const fail = (): void => this.engine.failPeer(rank, 'ERR_PROC_FAILED', describeExit(info));
    if (info.finalized) this.engine.peerLeft(rank, true);
    else if (ft !== undefined) ft.tell(rank, evidenceOf(info), describeExit(info));
    else if (this.pair !== undefined) this.pair.died(rank, info, fail);
    else fail();
  }

  private startFaultTolerance(): void {
    const { book } = this;
    const { ft } = this.proc;
    if (ft === undefined || book === undefined) return;
    const processes = new Map(book.numbers.map((peer) => [peer, checkProcess(book.entryOf(peer).process)]));
    // What had become of others before this process came: nothing that they published is here.
    for (const [number, info] of isLate(this.job) ? this.earlyExits : []) {
      if (book.numbers.includes(number)) continue;
      book.wasOver(number);
      ft.processWasOver(number, info.finalized, evidenceOf(info), describeExit(info));
      this.earlyExits.delete(number);
    }
    ft.start(processes.get(this.process), processes);
    this.duty?.standBy((begin) => ftParts().standByToHelp(this.engine, ft.deathListeners, begin));
  }

  /** Another rank published its addresses again: looked at as those of the start are, and ignored where they cannot be right. */
  private takeAddresses(rank: number, json: unknown): void {
    try {
      this.book?.update(rank, json);
    } catch (error) {
      this.options.log?.('warn', `a new address of rank ${rank} is ignored: ${(error as Error).message}`);
    }
    this.engine.schedule();
  }

  /** A call of the program, or what it began, is under way. While it starts or ends, the runtime itself is. */
  private isAwaited(): boolean {
    return this.state !== 'ACTIVE' || this.duty?.isWaiting === true || this.engine.wantsSpin() || this.proc.isBusy;
  }

  // ---------------------------------------------------------------- events

  private onRailEvent(engineEvent: EngineRailEvent): void {
    const event: RailEvent = { ...engineEvent, rank: this.process };
    if (event.type === 'restored') {
      // The first time that a rail comes up is no news.
      const rail = this.engine.bml.peers.get(event.peer)?.byNumber[event.rail];
      if (rail !== undefined && rail.counters.ups <= 1) return;
    }
    this.job.oob?.railEvent(event);
    // Listeners are user code: they run after the engine's turn, not in the middle of it.
    queueMicrotask(() => {
      publishRail(event);
      this.emit('rail', event);
    });
  }

  /** A probe of that rank can only end in an error now. */
  private onPeerLeft(rank: number): void {
    this.proc.ft?.peerLeft(rank);
    this.proc.memberGone();
    this.duty?.look();
  }

  /** Who is refused as a failed process has been declared dead: with ft that word counts, else the one that refuses does not. */
  private onRefused(by: number, text: string): boolean {
    const { ft } = this.proc;
    if (ft === undefined || this.state === 'FINALIZED') return false;
    ft.refused(by, text);
    return true;
  }

  /** The others have gone on without this process: whatever it did from now on would be wrong. */
  private onOwnDeath(error: MultirailError): void {
    this.options.log?.('warn', error.message.slice(error.code.length + 2));
    if (this.params.string('ft_on_own_failure') === 'exit') this.options.exit?.(OWN_FAILURE_CODE);
  }

  private onPeerFailed(peer: number, error: MultirailError, lostMessages: number): void {
    this.proc.ft?.peerFailed(peer, error);
    this.book?.forgetAddresses(peer);
    this.proc.memberGone();
    this.duty?.look();
    const event: PeerEvent = { type: 'failed', rank: this.process, peer, error, lostMessages };
    queueMicrotask(() => {
      if (peerFailedChannel.hasSubscribers) peerFailedChannel.publish(event);
      this.emit('peer', event);
    });
  }

  private onAddressChanged(module: BtlModule): void {
    if (this.entry === undefined || this.state === 'FINALIZED') return;
    this.entry = { ...this.entry, btl: { ...this.entry.btl, [module.name]: module.address() } };
    if (this.book !== undefined) this.book.isChanged = true;
    try {
      this.job.oob?.updateModex(this.entry);
    } catch (error) {
      this.options.log?.('warn', `the new address of ${module.name} could not be published: ${(error as Error).message}`);
    }
  }

  // ---------------------------------------------------------------- views

  /** Every rail to every rank that something was needed of so far, as it is now; the way to oneself included. */
  rails(): RailInfo[] {
    return railInfos(this.engine.bml);
  }

  /** What messages, collectives and the engine of this rank have done since its start. The numbers are copies. */
  counters(): RuntimeCounters {
    return countersOf(this.engine, this.proc.counters);
  }

  /** Sends and receives of this rank that have not ended, one line each, for people. */
  undelivered(): string[] {
    return [...this.engine.bml.peers.keys()].flatMap((peer) => this.engine.pml.undelivered(peer));
  }

  /** What this rank waits for, oldest first: its pending requests and probes, with the state of the protocol and the rails. */
  waits(): RankWaits {
    return this.watch.report(this.driver.now());
  }

  /**
   * Prints who waits for whom in the whole job: by the launcher, or by the process that serves the out-of-band channel. In a world of one,
   * and as a rank that cannot reach it, this rank prints what it waits for itself.
   *
   * @param reason Why, in words: it is printed in the report.
   */
  reportWaits(reason: string): void {
    const { oob } = this.job;
    if (oob?.askWaits?.(reason) === true) return;
    const count = (this.book?.numbers.at(-1) ?? this.job.size - 1) + 1;
    this.options.log?.(
      'warn',
      reportLines(reportOfOne(this.jobId, reason, this.waits(), count, this.params.int('ft_replicas'))).join('\n'),
    );
  }

  // ---------------------------------------------------------------- progress

  /** @internal Ranks of this host are more than its processors. */
  get isCrowded(): boolean {
    return this.proc.isCrowded;
  }

  /**
   * Moves messages without the event loop: looks at the rails once, and, with a time, until something has happened or the time is over. Returns
   * whether something has happened. For programs that have nothing to wait for, but others to serve.
   *
   * @param timeoutMs Milliseconds; 0, which is the default, looks once.
   * @throws ERR_ARG: the time is negative or no number.
   * @throws ERR_SUPPORT: it is to wait, and a rail needs the event loop (ws, tcp without the native part).
   * @throws ERR_FINALIZED: finalize() was called.
   */
  progressSync(timeoutMs = 0): boolean {
    if (timeoutMs !== 0) checkSyncOptions({ timeoutMs });
    this.proc.mustBeActive();
    const { engine, blocking } = this;
    const before = engine.usefulWork;
    lookOnce(engine);
    if (timeoutMs === 0 || engine.usefulWork !== before) return engine.usefulWork !== before;
    const awaited = {
      get done() {
        return engine.usefulWork !== before;
      },
    };
    return blocking.wait(awaited, blocking.now() + timeoutMs);
  }

  // ---------------------------------------------------------------- end

  /**
   * As abort(), without a promise: this process exits now, with the code, or with 1 for a code of 0. The launcher or starter sees that, and ends
   * the other ranks.
   */
  abortSync(code = 1, reason = 'abortSync() was called'): void {
    this.options.log?.('warn', `rank ${this.process} aborts the job: ${reason}`);
    this.options.exit?.(code === 0 ? 1 : code);
  }

  /**
   * As finalize(), without a promise: returns when every rank of the world that lives has come to the same point. What is left of the end (what is
   * still to be delivered, and what the launcher is to be told) is done by the event loop, and finalize() gives its promise.
   *
   * @throws ERR_TIMEOUT: the time was over.
   * @throws ERR_ARG: an option does not fit.
   * @throws ERR_SUPPORT: a rail needs the event loop (ws, tcp without the native part).
   */
  finalizeSync(options: { timeoutMs?: number } = {}): void {
    checkSyncOptions(options);
    if (this.finalizing !== undefined) return;
    const timeoutMs = options.timeoutMs ?? this.params.int('mpi_finalize_timeout_ms');
    try {
      this.world.barrierSync({ timeoutMs });
    } catch (error) {
      // Whoever has died, or has revoked the world, is not waited for.
      if (!(error instanceof MultirailError) || !GONE.has(error.code)) throw error;
    }
    this.finalize().catch((error: Error) => this.options.log?.('warn', error.message));
  }

  /**
   * Ends the whole job, this process included (MPI-4.1, section 11.4.2). Other ranks end with the same code.
   *
   * @param code Exit code of the processes; 1 by default.
   * @param reason Why, in words: it is printed.
   */
  async abort(code = 1, reason = 'abort() was called'): Promise<void> {
    await abortEverywhere(this.job, code, reason);
    this.options.log?.('warn', `rank ${this.process} aborts the job: ${reason}`);
    this.options.exit?.(code);
  }

  /**
   * Leaves the job (MPI-4.1, section 11.2.2). Collective: resolves when everything that this rank sent is delivered and every other rank
   * has come to the same point or is dead; then nothing of the runtime keeps the process alive. When it rejects, everything is closed all
   * the same. A short message that arrived and that nobody received is known to its receiver only: that rank names it in a warning. What
   * was lost with a dead rank is told by the event `peer`. Further calls answer with the same promise.
   *
   * @param options `timeoutMs`: how long it waits, in milliseconds; the parameter mpi_finalize_timeout_ms by default.
   * @throws ERR_UNDELIVERED: ranks left without having received what was sent to them; the message names it by rank and tag.
   * @throws ERR_FINALIZE_TIMEOUT: the time was over; the message names what was not delivered.
   * @throws ERR_ARG: an option does not fit.
   */
  finalize(options: { timeoutMs?: number } = {}): Promise<void> {
    try {
      checkSyncOptions(options);
    } catch (error) {
      return Promise.reject(error);
    }
    this.finalizing ??= this.leave(options.timeoutMs);
    return this.finalizing;
  }

  private async leave(ownTimeoutMs: number | undefined): Promise<void> {
    const { engine, job } = this;
    // Whoever has set a limit means it. That of nobody bounds how long nobody leaves: many ranks on few processors take their time.
    const whileNobodyLeaves = ownTimeoutMs === undefined && !this.table.isSet('mpi_finalize_timeout_ms');
    const limitMs = ownTimeoutMs ?? this.params.int('mpi_finalize_timeout_ms');
    const timeoutMs = whileNobodyLeaves ? limitInCrowd(limitMs, Math.min(LEAVE_CROWD_MAX, this.engine.bml.options.crowd)) : limitMs;
    this.moveTo('FINALIZING');
    this.proc.end(new MultirailError('ERR_FINALIZED', 'finalize() was called', { rank: this.process }));
    const beganMs = performance.now();
    await this.proc.ft?.leave(timeoutMs);
    const twinLeft = await this.pair?.leave(timeoutMs);
    const leftMs = timeoutMs - (performance.now() - beganMs);
    const notLeft =
      twinLeft !== undefined
        ? [twinLeft]
        : await (this.place === undefined || this.place.role === 'helper'
            ? leaveUnneeded(engine, leftMs)
            : leaveTogether(engine, this.book?.others ?? [], this.proc.ft?.ulfm.standbys.ready ?? [], job.oob, {
                timeoutMs: leftMs,
                whileNobodyLeaves,
              }));
    const failed = notLeft.length > 0;
    this.telemetry?.stop();
    if (job.oob !== undefined && !failed) {
      await tellFinalized(job.oob).catch((error: Error) => this.options.log?.('debug', `finalize: ${error.message}`));
    }
    const unreceived = unreceivedHere(this.proc);
    if (unreceived !== undefined) this.options.log?.('warn', unreceived);
    this.moveTo('FINALIZED');
    this.watch.stop();
    this.proc.ft?.stop();
    this.pair?.stop();
    await engine.close();
    this.driver.close?.();
    await job.oob?.close();
    await job.leave?.();
    this.stay?.end();
    this.options.onClosed?.();
    if (failed) throw notFinished(this.process, timeoutMs, notLeft);
    const undelivered = undeliveredFrom(this.proc);
    if (undelivered !== undefined) throw undelivered;
  }

  /** As finalize(), for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.finalize();
  }
}
