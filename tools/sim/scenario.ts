// Scripted scenarios: a small world, a hook on a packet, a fault at exactly that moment, and the same end as a random run. A scenario also
// says what must have happened (`require`): a scenario in which nothing happened proves nothing.

import { PML_COUNTERS, type PmlCounters } from '../../src/pml/counters.ts';
import { PACKET, PACKET_NAMES, type PacketType } from '../../src/pml/hdr.ts';
import type { Pml } from '../../src/pml/pml.ts';
import type { TransitionListener } from '../../src/pml/states.ts';
import type { PacketFilter, PacketHook, PacketSighting, RailSpec, SimLink } from './fabric.ts';
import type { PostedReceive, SentMessage } from './oracle.ts';
import type { CutFate } from './pipe.ts';
import type { WireItem } from './wire.ts';
import { type CoverageListener, World } from './world.ts';

/** What the caller of a scenario gives to every world in it. */
export interface Lab {
  coverage?: TransitionListener & CoverageListener;
  trace?: (line: string) => void;
}

export interface ScenarioCase {
  /** Begins with the row or hole that it stands for: `bfo 9.1 …`, `hole 7 …`. */
  readonly name: string;
  run(lab: Lab): void;
}

export interface ScenarioOptions {
  ranks?: number;
  rails?: readonly Partial<RailSpec>[];
  params?: Readonly<Record<string, string>>;
  seed?: number;
  /** As in WorldOptions. */
  breaches?: 'allowed';
  fragBytes?: number;
}

/** Small limits, so that a message of a few kilobytes takes every path. */
export const SCENARIO_PARAMS = {
  pml_eager_limit_bytes: '1024',
  pml_rndv_inline_bytes: '256',
  pml_frag_bytes: '1024',
  pml_trace_entries: '64',
  pml_retained_bytes_max: '1048576',
  pml_unexpected_bytes_max: '1048576',
  pml_peer_timeout_ms: '600000',
  bml_window_min_bytes: '4096',
  bml_window_max_bytes: '65536',
  // It has one of its own, like the other windows: what a seed finds does not move with the default.
  bml_window_ms: '10',
} as const;

/** One of eight seeds judges how good rails are: the others play histories of rails that are slow, stand still, and live on. */
export function healthParams(seed: number): Record<string, string> {
  return seed % 8 === 3 ? {} : { bml_stall_timeout_ms: '0' };
}

/** 2 MB/s, 100 us, found out by itself after 1 to 5 ms; every payload in pieces of at most 128 bytes. */
export const SCENARIO_RAIL: Partial<RailSpec> = {
  bytesPerMs: 2000,
  latencyUs: 100,
  jitterUs: 0,
  cellBytesMax: 128,
  cellsMax: 1,
  detectUsMin: 1000,
  detectUsMax: 5000,
};

/** `count` equal rails, except that each is slower than the one before, so that their order is known. */
export function scenarioRails(count: number, more: Partial<RailSpec> = {}): Partial<RailSpec>[] {
  return Array.from({ length: count }, (_, i) => ({ ...SCENARIO_RAIL, latencyUs: 100 + 20 * i, ...more }));
}

export class Scenario {
  readonly world: World;
  private readonly required: { what: string; holds: () => boolean }[] = [];

  constructor(lab: Lab, options: ScenarioOptions = {}) {
    this.world = new World({
      seed: options.seed ?? 1,
      ranks: options.ranks ?? 2,
      rails: options.rails ?? scenarioRails(2),
      params: { ...SCENARIO_PARAMS, ...options.params },
      ...(options.breaches === undefined ? {} : { breaches: options.breaches }),
      ...(options.fragBytes === undefined ? {} : { fragBytes: options.fragBytes }),
      ...(lab.coverage === undefined ? {} : { coverage: lab.coverage }),
      ...(lab.trace === undefined ? {} : { trace: lab.trace }),
    });
    if (!this.world.runUntil(() => this.world.allUp, 10_000)) throw new Error('scenario: the rails did not come up');
  }

  get fabric(): World['fabric'] {
    return this.world.fabric;
  }

  pml(rank: number): Pml {
    return this.world.processes[rank].engine.pml;
  }

  link(linkNo: number, a = 0, b = 1): SimLink {
    return this.fabric.link(a, b, linkNo);
  }

  /** A counter of the PML, over all ranks. */
  count(name: keyof PmlCounters): number {
    return this.world.processes.reduce((sum, { engine }) => sum + engine.pml.counters[name], 0);
  }

  /** Rail epochs lost so far, over all ranks. */
  get railsLost(): number {
    return this.world.processes.reduce((sum, { railEvents }) => sum + railEvents.filter(({ type }) => type === 'lost').length, 0);
  }

  // ---------------------------------------------------------------- what must have happened

  require(what: string, holds: () => boolean): void {
    this.required.push({ what, holds });
  }

  requireCount(name: keyof PmlCounters, least = 1): void {
    this.require(`${name} >= ${least} (${PML_COUNTERS[name]})`, () => this.count(name) >= least);
  }

  requireLost(least = 1): void {
    this.require(`at least ${least} rail epochs lost`, () => this.railsLost >= least);
  }

  // ---------------------------------------------------------------- hooks

  /** The `nth` sighting that fits (counted from 1) runs the action; `until`: so many in a row. */
  on(filter: PacketFilter, action: (sighting: PacketSighting) => 'pass' | 'lose' | undefined, nth = 1, times = 1): PacketHook {
    const hook = this.fabric.onPacket(filter, (sighting, hit) => (hit >= nth && hit < nth + times ? action(sighting) : undefined));
    const type = filter.type === undefined ? (filter.kind ?? 'any item') : PACKET_NAMES[filter.type as PacketType];
    this.require(`the hook on ${type} fired`, () => hook.hits >= nth);
    return hook;
  }

  /** As on(), but it is not a defect if nothing fits. */
  whenever(filter: PacketFilter, action: (sighting: PacketSighting, hit: number) => 'pass' | 'lose' | undefined): PacketHook {
    return this.fabric.onPacket(filter, action);
  }

  // ---------------------------------------------------------------- traffic

  send(bytes: number, tag = 0, source = 0, dest = 1, sync = false, ctx = 0): SentMessage {
    return this.world.isend(source, dest, ctx, tag, bytes, sync);
  }

  recv(bytes: number, tag = 0, rank = 1, source = 0, ctx = 0): PostedReceive {
    return this.world.irecv(rank, source, ctx, tag, bytes);
  }

  run(ms: number): void {
    this.world.runFor(ms);
    this.world.oracle.checkUnchanged();
  }

  /** Runs until that holds; a scenario that waits in vain is a defect. */
  until(what: string, holds: () => boolean, ms = 60_000): void {
    if (!this.world.runUntil(holds, ms)) throw new Error(`scenario: in vain: ${what}`);
  }

  /** The end of every scenario. Faults stay as they are unless the scenario healed them. */
  finish(ms = 120_000): void {
    this.world.mustFinish(ms);
    this.world.runFor(500);
    this.world.oracle.checkUnchanged();
    this.world.mustFinalize(ms);
    for (const { what, holds } of this.required) {
      if (!holds()) throw new Error(`scenario: it did not come about: ${what}`);
    }
  }

  finishHealed(ms = 120_000): void {
    this.world.healAll();
    this.finish(ms);
  }
}

/** What became of the frame at which the rail was cut. */
export const FATES = {
  'not arrived': 'lose',
  arrived: 'pass',
  'half arrived': 'half',
} as const;
export type Fate = keyof typeof FATES;

/**
 * The rail is cut when a frame of that type is about to arrive. Arrived: the frame does, its count does not get back. Not arrived:
 * it does not. Half arrived: its first piece did (frames with a payload only).
 */
export function cutAt(
  s: Scenario,
  what: PacketType | WireItem['kind'],
  fate: Fate,
  filter: PacketFilter = {},
  nth = 1,
  rest: CutFate = 'lost',
): PacketHook {
  const piece = fate === 'half arrived' ? 'inner' : fate === 'arrived' ? 'last' : 'first';
  const base: PacketFilter = typeof what === 'string' ? { kind: what } : { type: what };
  const pieces = what === 'put' || what === 'getData' || typeof what === 'number';
  const hook = s.on(
    { stage: 'arrive', ...base, ...(pieces ? { piece } : {}), ...filter },
    ({ link }) => {
      s.fabric.cut(link, { inFlight: rest });
      return fate === 'not arrived' ? 'lose' : 'pass';
    },
    nth,
  );
  s.requireLost();
  return hook;
}

/**
 * The failure during the recovery: the first frame of any kind that travels over another rail after a rail was lost takes that
 * one along, whichever way it goes. With two rails the first comes back a little later.
 */
export function cutAgain(s: Scenario, fate: 'lose' | 'pass', types: readonly PacketType[] = RECOVERY_TYPES): PacketHook {
  let cutMs = -1;
  const hook = s.whenever({ stage: 'arrive', kind: 'cell', piece: 'first' }, ({ link, type }) => {
    if (cutMs >= 0 || s.railsLost === 0 || !types.includes(type as PacketType)) return undefined;
    cutMs = s.world.nowMs;
    s.fabric.cut(link);
    // Whatever was lost comes back, so that two rails are enough.
    for (const each of s.fabric.links()) s.fabric.at(s.fabric.nowUs + 20_000, () => s.fabric.mend(each));
    return fate;
  });
  s.require('the second failure hit the recovery', () => cutMs >= 0);
  s.requireLost(2);
  return hook;
}

export const RECOVERY_TYPES: readonly PacketType[] = [
  PACKET.MATCH,
  PACKET.RNDV,
  PACKET.RGET,
  PACKET.ACK,
  PACKET.PUT,
  PACKET.FIN,
  PACKET.FRAG,
  PACKET.RNDVRESTARTNOTIFY,
  PACKET.RNDVRESTARTACK,
  PACKET.RNDVRESTARTNACK,
  PACKET.RECVERRNOTIFY,
  PACKET.RAILDOWN,
];

/** A copy of a packet header that travelled, to be handed up once more later: the late duplicate. */
export interface Captured {
  header: Uint8Array | undefined;
  from: number;
  to: number;
  linkNo: number;
}

export function capture(s: Scenario, filter: PacketFilter, nth = 1): Captured {
  const captured: Captured = { header: undefined, from: 0, to: 0, linkNo: 0 };
  s.on(
    { stage: 'arrive', piece: 'first', ...filter },
    ({ header, from, to, link }) => {
      captured.header = header?.slice();
      captured.from = from;
      captured.to = to;
      captured.linkNo = link.linkNo;
      return 'pass';
    },
    nth,
  );
  return captured;
}

/** Hands a captured control packet up again, as the frame of another rail would bring it. */
export function replay(s: Scenario, captured: Captured): void {
  if (captured.header === undefined) throw new Error('scenario: nothing was captured');
  const { engine } = s.world.processes[captured.to];
  engine.pml.handleFrame(captured.from, captured.header.slice(), new Uint8Array(0), null);
  engine.schedule();
  s.world.settle();
}
