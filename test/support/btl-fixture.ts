// Fixtures of the BTL contract suite: a Pair of modules on two ranks over the simulated fabric (virtual time), or over a real
// transport on loopback (turns of the event loop).
import { strict as assert } from 'node:assert';
import { readdirSync, readlinkSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { BtlComponent, BtlContext, BtlModule, Upcalls } from '../../src/btl/btl.ts';
import type { NativeBinding } from '../../src/native/binding.ts';
import { Poller } from '../../src/native/poller.ts';
import { ParamTable } from '../../src/params.ts';
import type { Fabric } from '../../tools/sim/fabric.ts';
import { checkStreams, Recorder, Side } from './btl-recorder.ts';

export interface SetupOptions {
  rails?: 1 | 2;
  params?: Record<string, string>;
  /** Secrets of both ranks; equal by default. */
  secrets?: [string, string];
  /** Leave the rails unconnected. */
  unconnected?: boolean;
}

export interface Pair {
  a: Side;
  b: Side;
  /** A put that is still under way some milliseconds after its first bytes have landed. */
  longPutBytes?: number;
  /** Packets that the device of rail 0 has sent at this side, where the fixture can tell. */
  sentPackets?(side: Side): number;
  /** Both ranks are one: `self`. */
  loopback: boolean;
  /** Runs both modules until the condition holds; fails naming `what` when it does not come true. */
  drive(until: () => boolean, what: string): Promise<void>;
  /** Runs both modules for a while, in milliseconds of the fixture's time. */
  settle(ms: number): Promise<void>;
  /** Lets time go by in which neither module has a turn. */
  idle(ms: number): Promise<void>;
  /** Time of the fixture. */
  now(): number;
  /** Severs the rail; lost = what is under way is lost. Undefined when the fixture cannot. */
  cut?(rail: number, fate: 'lost' | 'delivered' | 'half'): void;
  mend?(rail: number): void;
  /** Nothing comes through from one side, and nobody is told. */
  blackhole?(rail: number, from: Side): void;
  /** The next frame from this side arrives damaged. */
  corrupt?(rail: number, from: Side, part: 'header' | 'payload'): void;
  /** One-sided writes under way when a rail is cut land late. */
  hasLateWrites?: boolean;
  /** Handles that keep the process alive, where the fixture can tell. */
  handles?(): string[];
  /** Asserts that nothing broke the contract so far. */
  check(): void;
  close(): Promise<void>;
}

export interface Fixture {
  /** Why this transport cannot be tested here; then every clause is skipped with it. */
  unavailable?: string;
  /** How many rails there can be between two ranks; default 2. */
  railsMax?: number;
  setup(options: SetupOptions): Promise<Pair>;
}

const params = (options: SetupOptions, more: Record<string, string>) => new ParamTable({ ...more, ...options.params });

function contextOf(rank: number, options: SetupOptions, upcalls: Upcalls, more: Record<string, string>, poller?: Poller): BtlContext {
  return {
    rank,
    size: 2,
    jobId: 'conformance',
    incarnation: 1000 + rank,
    secret: new TextEncoder().encode(options.secrets?.[rank] ?? 'the secret of this job'),
    hostId: 'host',
    params: params(options, more),
    upcalls,
    poller,
  };
}

async function sidesOf(
  options: SetupOptions,
  componentOf: (rank: number) => BtlComponent,
  loopback: boolean,
  more: Record<string, string>,
  pollers: readonly Poller[] = [],
): Promise<[Side, Side]> {
  const makeSide = async (rank: number): Promise<Side> => {
    const recorder = new Recorder(loopback ? 'self' : `rank ${rank}`);
    const module: BtlModule = componentOf(rank).create(contextOf(rank, options, recorder, more, pollers[rank]));
    await module.open();
    return new Side(rank, module, recorder);
  };
  const a = await makeSide(0);
  const b = loopback ? a : await makeSide(1);
  for (const [own, peer] of loopback
    ? [[a, a]]
    : [
        [a, b],
        [b, a],
      ]) {
    // Through JSON, as in the modex.
    const local = JSON.parse(JSON.stringify(own.module.address()));
    const remote = JSON.parse(JSON.stringify(peer.module.address()));
    const plans = own.module.plan(peer.rank, local, remote, 'host').slice(0, options.rails ?? 1);
    assert.equal(plans.length, options.rails ?? 1, `${own.module.name}: the fixture needs ${options.rails ?? 1} rails`);
    for (const [rail, plan] of plans.entries()) own.endpoints.push(own.module.endpoint(peer.rank, rail, plan, remote));
  }
  return [a, b];
}

async function connectAll(pair: Pair, options: SetupOptions): Promise<Pair> {
  if (options.unconnected) return pair;
  for (const endpoint of pair.a.endpoints) if (endpoint.epoch === 0) endpoint.connect(1);
  const up = () => [...pair.a.endpoints, ...pair.b.endpoints].every(({ epoch }) => epoch === 1);
  await pair.drive(up, 'both sides connected');
  return pair;
}

function checkPair(a: Side, b: Side): void {
  const problems = [...checkStreams(a, b), ...(a === b ? [] : checkStreams(b, a))];
  assert.deepEqual(problems, []);
}

export interface SimPairOptions extends SetupOptions {
  fabric: Fabric;
  componentOf(rank: number): BtlComponent;
}

/** Two simulated ranks; time is virtual, so nothing here waits. */
export async function simPair(options: SimPairOptions): Promise<Pair> {
  const { fabric } = options;
  const [a, b] = await sidesOf(options, options.componentOf, false, {});
  const turn = (): void => {
    a.progress(fabric.nowMs);
    b.progress(fabric.nowMs);
  };
  /** On to whatever is due next; false when that is beyond the limit. */
  const advance = (limitMs: number): boolean => {
    const due = Math.min(fabric.nextEventMs(), a.module.nextDeadline(), b.module.nextDeadline());
    if (due > limitMs) return false;
    fabric.advanceTo(Math.max(due, fabric.nowMs));
    return true;
  };
  const link = (rail: number) => fabric.link(0, 1, (a.endpoints[rail].plan.detail as { linkNo: number }).linkNo);
  const pair: Pair = {
    a,
    b,
    loopback: false,
    now: () => fabric.nowMs,
    drive: async (until, what) => {
      const endMs = fabric.nowMs + 60_000;
      for (let i = 0; !until(); i++) {
        turn();
        if (until()) return;
        if (!advance(endMs)) assert.fail(`nothing more happens, and still not: ${what} (at ${fabric.nowMs} ms)`);
        if (i > 2_000_000) assert.fail(`no end of it, and still not: ${what}`);
      }
    },
    settle: async (ms) => {
      const endMs = fabric.nowMs + ms;
      turn();
      for (let i = 0; advance(endMs); i++) {
        turn();
        if (i > 2_000_000) assert.fail('a module asks for progress() again and again, and does nothing in it');
      }
      fabric.advanceTo(endMs);
      turn();
    },
    idle: async (ms) => {
      fabric.advanceTo(fabric.nowMs + ms);
    },
    cut: (rail, fate) => fabric.cut(link(rail), { inFlight: fate }),
    mend: (rail) => fabric.mend(link(rail)),
    blackhole: (rail, from) => fabric.blackhole(link(rail), from.rank, { lossy: true }),
    corrupt: (rail, from, part) => fabric.corruptNext(link(rail), from.rank, part),
    check: () => checkPair(a, b),
    close: async () => {
      await a.module.close();
      await b.module.close();
    },
  };
  pair.hasLateWrites = fabric.link(0, 1, 0).spec.lateOneSidedUsMax > 0;
  return connectAll(pair, options);
}

export interface RealPairOptions extends SetupOptions {
  componentOf(rank: number): BtlComponent;
  loopback?: boolean;
  params?: Record<string, string>;
  /** Each side gets a poller of its own over it, which keeps the process alive as in a runtime: by its listeners. */
  native?: NativeBinding | undefined;
}

/** Sockets of this process that Node knows nothing of are among them. */
export function openSockets(): string[] {
  const list: string[] = [];
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      if (target.startsWith('socket:')) list.push(target);
    } catch {
      // The descriptor of the listing itself.
    }
  }
  return list;
}

const HANDLE_KINDS = /TCP|Pipe|Server|Timeout|Immediate|TLS/;

/** Two modules of a real transport in this process, on loopback; time is that of the machine. */
export async function realPair(options: RealPairOptions): Promise<Pair> {
  const handles = () => [
    ...process.getActiveResourcesInfo().filter((kind) => HANDLE_KINDS.test(kind)),
    ...(options.native === undefined ? [] : openSockets()),
  ];
  const { native } = options;
  const pollers: Poller[] = [];
  for (let rank = 0; native !== undefined && rank < 2; rank++) {
    // As the driver of a runtime does it; what is ready is worked on in the turns.
    const poller: Poller = new Poller(native, () => {
      poller.look();
      return false;
    });
    poller.keepAlive(false);
    pollers.push(poller);
  }
  const [a, b] = await sidesOf(options, options.componentOf, options.loopback ?? false, {}, pollers);
  const loopback = options.loopback ?? false;
  const now = () => performance.now();
  const turn = async (): Promise<void> => {
    for (const poller of pollers) poller.look();
    a.progress(now());
    if (!loopback) b.progress(now());
    await nextTurn();
  };
  const pair: Pair = {
    a,
    b,
    loopback,
    now,
    drive: async (until, what) => {
      const endMs = now() + 20_000;
      while (!until()) {
        if (now() > endMs) assert.fail(`20 s, and still not: ${what}`);
        await turn();
      }
    },
    settle: async (ms) => {
      const endMs = now() + ms;
      while (now() < endMs) await turn();
    },
    idle: async (ms) => {
      await sleep(ms);
    },
    handles,
    check: () => checkPair(a, b),
    close: async () => {
      await a.module.close();
      if (!loopback) await b.module.close();
      for (const poller of pollers) poller.close();
    },
  };
  try {
    return await connectAll(pair, options);
  } catch (error) {
    await pair.close();
    throw error;
  }
}
