// Worlds of several ranks in one process, for the point-to-point suite: runtimes joined by an out-of-band channel in memory, over
// real transports on loopback or over the simulated fabric, which a pump drives in virtual time.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BtlComponent } from '../../src/btl/btl.ts';
import { type FaultModule, wrapFault } from '../../src/btl/interpose/fault.ts';
import { selfComponent } from '../../src/btl/self/component.ts';
import type { Telemetry } from '../../src/launch/oob/telemetry.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import { createRuntime, type Runtime, type RuntimeDriver, type RuntimeJob, type RuntimeOob } from '../../src/mpi/runtime.ts';
import type { RailFaultOrder } from '../../src/mpi/telemetry.ts';
import { loadNative } from '../../src/native/load.ts';
import { ParamTable } from '../../src/params.ts';
import type { Engine } from '../../src/progress/engine.ts';
import { Prng } from '../../src/util/prng.ts';
import { Fabric, type RailSpec } from '../../tools/sim/fabric.ts';
import { simComponent } from '../../tools/sim/sim-btl.ts';
import { SMALL_LIMITS } from './p2p-audit.ts';

/** Small limits, and rails that are given up and dialled again soon. */
export const SMALL_PARAMS: Readonly<Record<string, string>> = {
  ...SMALL_LIMITS,
  bml_rail_timeout_ms: '200',
  bml_connect_timeout_ms: '300',
  bml_redial_min_ms: '10',
  bml_redial_max_ms: '50',
  bml_flap_hold_max_ms: '50',
  pml_peer_timeout_ms: '60000',
};

type Listener = (...args: never[]) => void;

/** What `multirail run` and the OobClients do, for runtimes in one process. */
export class MemoryOobHub {
  private readonly size: number;
  private readonly entries: unknown[];
  private arrived = 0;
  private readonly modexDone: ((entries: unknown[]) => void)[] = [];
  private readonly listeners = new Map<string, { rank: number; listener: Listener }[]>();
  readonly aborts: { rank: number; code: number; reason: string }[] = [];
  readonly railEvents: { rank: number; event: unknown }[] = [];
  readonly finalizedRanks = new Set<number>();
  readonly reports: { rank: number; report: Telemetry }[] = [];

  constructor(size: number) {
    this.size = size;
    this.entries = new Array(size).fill(undefined);
  }

  private tell(event: string, exceptRank: number, ...args: unknown[]): void {
    for (const { rank, listener } of this.listeners.get(event) ?? []) {
      if (rank !== exceptRank) queueMicrotask(() => (listener as (...given: unknown[]) => void)(...args));
    }
  }

  /** What that rank published at the start. */
  entryOf(rank: number): Record<string, unknown> {
    return structuredClone(this.entries[rank]) as Record<string, unknown>;
  }

  /** The process of that rank ended. */
  exited(rank: number, info: { code?: number; signal?: string; finalized?: boolean } = {}): void {
    this.tell('exit', rank, rank, { code: info.code, signal: info.signal ?? '', finalized: info.finalized ?? false, lost: false });
  }

  /** As exited(), told to one rank only. */
  exitedFor(listenerRank: number, rank: number): void {
    for (const { rank: own, listener } of this.listeners.get('exit') ?? []) {
      if (own === listenerRank) (listener as (...given: unknown[]) => void)(rank, { code: 1, signal: '', finalized: false, lost: false });
    }
  }

  /** The launcher wants a rail of that rank broken or mended. */
  orderFault(rank: number, fault: RailFaultOrder): void {
    for (const { rank: own, listener } of this.listeners.get('railFault') ?? []) {
      if (own === rank) (listener as (...given: unknown[]) => void)(fault);
    }
  }

  client(rank: number): RuntimeOob {
    return {
      modex: (own) => {
        this.entries[rank] = JSON.parse(JSON.stringify(own));
        return new Promise((resolve) => {
          this.modexDone.push(resolve);
          if (++this.arrived === this.size) for (const done of this.modexDone) done(structuredClone(this.entries));
        });
      },
      updateModex: (own) => this.tell('modexUpdate', rank, rank, JSON.parse(JSON.stringify(own))),
      abort: async (code, reason) => {
        this.aborts.push({ rank, code, reason });
        this.tell('abort', rank, { rank, code, reason });
      },
      finalized: async () => {
        this.finalizedRanks.add(rank);
        this.exited(rank, { finalized: true });
      },
      standbyState: async (isWaiting) => this.tell('standbyState', rank, rank, isWaiting),
      railEvent: (event) => {
        this.railEvents.push({ rank, event });
      },
      telemetry: (report) => {
        this.reports.push({ rank, report });
        return true;
      },
      close: async () => undefined,
      on: (event: string, listener: Listener) => {
        const list = this.listeners.get(event) ?? [];
        list.push({ rank, listener });
        this.listeners.set(event, list);
      },
    };
  }
}

/** What can be done to the rails of a world. Rails are named by their index in the table of a pair of ranks. */
export interface P2pFaults {
  /** Breaks rails of all kinds at moments that the seed chooses, each mended after a while; rail 0 of every pair is left alone. */
  start(seed: string): void;
  /** Ends that, and mends everything. */
  stop(): void;
  /** Cuts that rail of every pair, or every rail; nothing is told to anybody. */
  cut(rail: number | 'all'): void;
  /** Nothing comes through from the lower rank to the higher one on that rail of every pair; the other way it does. */
  cutOneWay(rail: number): void;
  mend(rail: number | 'all'): void;
}

/**
 * A world of runtimes, and what can be done to its rails: all of its ranks in this process, or one of them, with the others in processes of
 * their own (test/launchers/semantics-rank.ts).
 */
export interface P2pWorld {
  /** Of the ranks in this process; `comms[0].size` is the number of all. */
  comms: Communicator[];
  runtimes: Runtime[];
  hub: MemoryOobHub;
  /** Set where ranks are in other processes: ends when every rank has called it. */
  meet?: () => Promise<void>;
  /** Set where ranks are in other processes: what each rank gave, in their order, of one from each process. */
  share?: <T>(own: T) => Promise<T[]>;
  /** Waits in the world's own time, virtual or real. */
  sleep(ms: number): Promise<void>;
  /** Undefined when the fixture cannot break its rails. */
  faults?: P2pFaults;
  teardown(): Promise<void>;
}

export interface P2pFixture {
  /** Why this transport cannot be tested here; then every case is skipped with it. */
  unavailable?: string;
  /** Worlds come with faults. */
  hasFaults?: boolean;
  world(size: number, params?: Readonly<Record<string, string>>): Promise<P2pWorld>;
}

const SECRET = new TextEncoder().encode('the secret of the p2p worlds');

function jobOf(rank: number, size: number, hub: MemoryOobHub): RuntimeJob {
  return {
    rank,
    size,
    localRank: rank,
    localSize: size,
    jobId: 'p2p-world',
    incarnation: 1000 + rank,
    hostId: 'p2p-host',
    secret: SECRET,
    oob: hub.client(rank),
  };
}

/** A process that stands by: it is called in, or everything of it is closed when nobody has needed it. */
export interface Standby {
  readonly calledIn: Promise<Runtime>;
  readonly closed: Promise<void>;
}

/** Runtimes over these transports, and the `self` of each; beyond them, processes that stand by (ft_spares). */
export async function makeRuntimes(
  size: number,
  params: ParamTable,
  components: (rank: number) => readonly BtlComponent[],
  driver?: (rank: number) => RuntimeDriver,
  withNative = true,
): Promise<{ runtimes: Runtime[]; hub: MemoryOobHub; standbys: Standby[] }> {
  const spares = params.int('ft_spares');
  const processes = size + spares;
  const hub = new MemoryOobHub(processes);
  const make = (rank: number, onClosed: () => void = () => undefined): Promise<Runtime> =>
    createRuntime(jobOf(rank, processes, hub), {
      params,
      modules: [selfComponent, ...components(rank)],
      onClosed,
      ...(driver === undefined ? {} : { driver: driver(rank) }),
      ...(withNative ? {} : { native: false as const }),
    });
  const working = Array.from({ length: size }, (_, rank) => make(rank));
  const standbys = Array.from({ length: spares }, (_, i): Standby => {
    let calledIn!: Promise<Runtime>;
    const closed = new Promise<void>((resolve) => {
      calledIn = make(size + i, resolve);
    });
    return { calledIn, closed };
  });
  return { runtimes: await Promise.all(working), hub, standbys };
}

/** All ranks leave. A rank that cannot is named in the error. */
export async function finalizeAll(runtimes: readonly Runtime[]): Promise<void> {
  await Promise.all(runtimes.map((runtime) => runtime.finalize({ timeoutMs: 15_000 })));
}

// ---------------------------------------------------------------- real transports

/** Whether the native part must be there, must not be used, or is used where it is there. */
export type NativeUse = 'required' | 'none' | 'as it is';

/** Rails over real sockets on loopback, each behind the fault interposer where faults are wanted; one rail of each pair is spared. */
export function realFixture(
  components: readonly BtlComponent[],
  more: Readonly<Record<string, string>> = {},
  faulty = false,
  native: NativeUse = 'as it is',
  sparedRail = 0,
): P2pFixture {
  const { reason } = loadNative();
  return {
    ...(native === 'required' && reason !== undefined ? { unavailable: reason } : {}),
    hasFaults: faulty,
    world: async (size, params) => {
      const table = new ParamTable({ ...SMALL_PARAMS, ...LOOPBACK_PARAMS, ...more, ...params });
      const modules: FaultModule[][] = Array.from({ length: size }, () => []);
      const wrapped = (rank: number): BtlComponent[] =>
        components.map((component) => ({
          name: component.name,
          description: component.description,
          unavailable: (given) => component.unavailable(given),
          create: (context) => {
            const module = wrapFault((inner) => component.create(inner), context, '');
            modules[rank].push(module);
            return module;
          },
        }));
      const { runtimes, hub } = await makeRuntimes(size, table, faulty ? wrapped : () => components, undefined, native !== 'none');
      const world: P2pWorld = {
        comms: runtimes.map((runtime) => runtime.world),
        runtimes,
        hub,
        sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
        teardown: () => finalizeAll(runtimes),
      };
      if (faulty) world.faults = new InterposedFaults(runtimes, modules, sparedRail);
      return world;
    },
  };
}

/** Faults by the interposer. A cable has two ends: what breaks it is done at both. */
class InterposedFaults implements P2pFaults {
  private readonly runtimes: readonly Runtime[];
  private readonly modules: readonly (readonly FaultModule[])[];
  private readonly sparedRail: number;
  private timer: NodeJS.Timeout | undefined;

  constructor(runtimes: readonly Runtime[], modules: readonly (readonly FaultModule[])[], sparedRail: number) {
    this.runtimes = runtimes;
    this.modules = modules;
    this.sparedRail = sparedRail;
  }

  private at(rank: number, act: (control: FaultModule['control']) => void): void {
    for (const module of this.modules[rank]) act(module.control);
  }

  private atBoth(low: number, high: number, act: (control: FaultModule['control'], peer: number) => void): void {
    this.at(low, (control) => act(control, high));
    this.at(high, (control) => act(control, low));
  }

  start(seed: string): void {
    const prng = new Prng(seed);
    const next = (): void => {
      this.timer = setTimeout(
        () => {
          this.breakOne(prng);
          next();
        },
        prng.between(1, 6),
      );
    };
    next();
  }

  private breakOne(prng: Prng): void {
    const size = this.runtimes.length;
    if (size < 2) return;
    const low = prng.below(size - 1);
    const high = prng.between(low + 1, size - 1);
    const rails = this.runtimes[low].rails().filter(({ peer, rail }) => peer === high && rail !== this.sparedRail);
    if (rails.length === 0) return;
    const { rail } = rails[prng.below(rails.length)];
    const [one, other] = prng.below(2) === 0 ? [low, high] : [high, low];
    const mendMs = prng.between(5, 120);
    const mend = () => this.atBoth(low, high, (control, peer) => control.restore({ rail, peer }));
    switch (prng.below(6)) {
      case 0:
        this.atBoth(low, high, (control, peer) => control.pull({ rail, peer }, 'silent'));
        setTimeout(mend, mendMs + 250);
        return;
      case 1:
        this.at(one, (control) => control.pull({ rail, peer: other }, prng.pick(['error', 'inside', 'inside'] as const)));
        setTimeout(mend, mendMs);
        return;
      case 2:
        this.at(one, (control) => control.pull({ rail, peer: other }, prng.pick(['silent-out', 'silent-in'] as const)));
        setTimeout(mend, mendMs + 250);
        return;
      case 3:
        this.at(one, (control) => control.busy({ rail, peer: other }, mendMs));
        return;
      case 4:
        this.at(one, (control) => control.stall({ rail, peer: other }, mendMs));
        return;
      case 5:
        this.at(one, (control) => control.corrupt({ rail, peer: other }, prng.pick(['header', 'payload'] as const)));
        return;
    }
  }

  stop(): void {
    clearTimeout(this.timer);
    this.mend('all');
  }

  cut(rail: number | 'all'): void {
    for (const rank of this.modules.keys()) this.at(rank, (control) => control.pull(rail === 'all' ? {} : { rail }, 'silent'));
  }

  cutOneWay(rail: number): void {
    for (const low of this.modules.keys()) {
      for (let high = low + 1; high < this.modules.length; high++) {
        this.at(low, (control) => control.pull({ rail, peer: high }, 'silent-out'));
        this.at(high, (control) => control.pull({ rail, peer: low }, 'silent-in'));
      }
    }
  }

  mend(rail: number | 'all'): void {
    for (const rank of this.modules.keys()) this.at(rank, (control) => control.restore(rail === 'all' ? {} : { rail }));
  }
}

/** Only the loopback address: a test needs no other interface, and no other may be there. */
export const LOOPBACK_PARAMS: Readonly<Record<string, string>> = { btl_tcp_if_include: '127.0.0.1', btl_ws_if_include: '127.0.0.1' };

// ---------------------------------------------------------------- simulated rails

/** Drives one engine in the fabric's time; the pump calls it. */
class SimDriver implements RuntimeDriver {
  engine: Engine | undefined;
  dueMs = Number.POSITIVE_INFINITY;
  wanted = false;
  private readonly fabric: Fabric;

  constructor(fabric: Fabric) {
    this.fabric = fabric;
  }

  attach(engine: Engine): void {
    this.engine = engine;
  }
  now(): number {
    return this.fabric.nowMs;
  }
  defer(): void {
    this.wanted = true;
  }
  yield(): void {
    this.wanted = true;
  }
  arm(atMs: number): void {
    this.dueMs = atMs;
  }
}

/** Steps of virtual time between two turns of the event loop: promises settle in between, sockets and timers of tests too. */
const STEPS_PER_TURN = 16;

/**
 * Moves virtual time forward for as long as it runs: engines that want a turn get it, promises settle, then time jumps to the next
 * event or deadline.
 */
class SimPump {
  private readonly fabric: Fabric;
  private readonly drivers: readonly SimDriver[];
  private readonly sleepers: { atMs: number; wake: () => void }[] = [];
  private stopped = false;
  private readonly ended: Promise<void>;
  /** Set when an engine threw: the world is broken, and its error ends the test. */
  failure: unknown;

  constructor(fabric: Fabric, drivers: readonly SimDriver[]) {
    this.fabric = fabric;
    this.drivers = drivers;
    this.ended = this.run().catch((error: unknown) => {
      this.failure = error;
      for (const { wake } of this.sleepers.splice(0)) wake();
      throw error;
    });
    this.ended.catch(() => undefined);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((wake) => this.sleepers.push({ atMs: this.fabric.nowMs + ms, wake }));
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.ended;
  }

  private async run(): Promise<void> {
    for (let step = 0; !this.stopped; step++) {
      for (const driver of this.drivers) {
        driver.wanted = false;
        driver.engine?.progress();
      }
      if (step % STEPS_PER_TURN === 0) await nextTurn();
      else for (let i = 0; i < 8; i++) await undefined;
      if (this.drivers.some((driver) => driver.wanted)) continue;
      let dueMs = this.fabric.nextEventMs();
      for (const driver of this.drivers) dueMs = Math.min(dueMs, driver.dueMs);
      for (const { atMs } of this.sleepers) dueMs = Math.min(dueMs, atMs);
      if (dueMs === Number.POSITIVE_INFINITY) {
        await nextTurn();
        continue;
      }
      // Upwards: a deadline between two microseconds would never be reached.
      let dueUs = Math.ceil(dueMs * 1000);
      if (dueUs / 1000 < dueMs) dueUs++;
      this.fabric.advanceTo(Math.max(this.fabric.nowMs, dueUs / 1000));
      for (let i = this.sleepers.length - 1; i >= 0; i--) {
        if (this.sleepers[i].atMs <= this.fabric.nowMs) this.sleepers.splice(i, 1)[0].wake();
      }
    }
  }
}

export interface SimFixtureOptions {
  seed: string;
  rails: readonly Partial<RailSpec>[];
}

export function simFixture(options: SimFixtureOptions): P2pFixture {
  let worlds = 0;
  return {
    hasFaults: true,
    world: async (size, params) => {
      const fabric = new Fabric({ seed: `${options.seed}/${worlds++}`, ranks: size, rails: options.rails });
      const drivers = Array.from({ length: size }, () => new SimDriver(fabric));
      const table = new ParamTable({ ...SMALL_PARAMS, ...params });
      const { runtimes, hub } = await makeRuntimes(
        size,
        table,
        () => [simComponent(fabric)],
        (rank) => drivers[rank],
      );
      const pump = new SimPump(fabric, drivers);
      return {
        comms: runtimes.map((runtime) => runtime.world),
        runtimes,
        hub,
        sleep: (ms) => pump.sleep(ms),
        faults: new FabricFaults(fabric),
        teardown: async () => {
          try {
            await finalizeAll(runtimes);
          } finally {
            await pump.stop();
          }
        },
      };
    },
  };
}

/** Faults of the simulated network itself. */
class FabricFaults implements P2pFaults {
  private readonly fabric: Fabric;
  private active = false;

  constructor(fabric: Fabric) {
    this.fabric = fabric;
  }

  start(seed: string): void {
    this.active = true;
    const prng = new Prng(seed);
    this.fabric.at(this.fabric.nowUs + prng.between(0, 2000), () => this.breakOne(prng));
  }

  private breakOne(prng: Prng): void {
    if (!this.active) return;
    const links = this.fabric.links().filter((link) => link.linkNo > 0);
    if (links.length > 0) breakLink(this.fabric, links[prng.below(links.length)], prng);
    this.fabric.at(this.fabric.nowUs + prng.between(200, 8000), () => this.breakOne(prng));
  }

  stop(): void {
    this.active = false;
    this.mend('all');
  }

  private links(rail: number | 'all'): ReturnType<Fabric['links']> {
    return this.fabric.links(rail === 'all' ? {} : { linkNo: rail });
  }

  /** Cut, and closed to new connections until it is mended. */
  cut(rail: number | 'all'): void {
    for (const link of this.links(rail)) {
      this.fabric.cut(link, { inFlight: 'half' });
      for (const rank of [link.low, link.high]) this.fabric.blackhole(link, rank, { lossy: true });
    }
  }

  cutOneWay(rail: number): void {
    for (const link of this.links(rail)) this.fabric.blackhole(link, link.low, { lossy: true });
  }

  mend(rail: number | 'all'): void {
    for (const link of this.links(rail)) this.fabric.mend(link);
  }
}

function breakLink(fabric: Fabric, link: ReturnType<Fabric['links']>[number], prng: Prng): void {
  const fate = prng.pick(['lost', 'delivered', 'half'] as const);
  const side = prng.below(2) === 0 ? link.low : link.high;
  switch (prng.below(5)) {
    case 0:
      fabric.cut(link, { inFlight: fate });
      fabric.at(fabric.nowUs + prng.between(500, 30_000), () => fabric.mend(link));
      return;
    case 1:
      fabric.blackhole(link, side, { lossy: prng.below(2) === 0 });
      fabric.at(fabric.nowUs + prng.between(500, 60_000), () => fabric.mend(link));
      return;
    case 2:
      fabric.flap(link, prng.between(1, 4), prng.between(100, 3000), prng.between(100, 3000), { inFlight: fate });
      return;
    case 3:
      fabric.stall(link, side, prng.between(100, 20_000));
      return;
    case 4:
      fabric.corruptNext(link, side, prng.below(2) === 0 ? 'header' : 'payload');
      return;
  }
}
