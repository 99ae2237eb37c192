// Which (state, event) cells and which edges the runs have taken, and which cells cannot be. The test of the coverage fails on
// a cell that is neither hit nor listed here as impossible, and on an impossible one that is hit.
// May import: bml, pml (tables), sim.
import { RAIL_EDGES, type RailState } from '../bml/rail.ts';
import { RECV_EDGES, RECV_STATES, SEND_EDGES, SEND_STATES, type TransitionListener } from '../pml/states.ts';
import type { CoverageListener } from './world.ts';

type Side = 'send' | 'recv';

const COMPLETIONS = ['delivered', 'refused', 'in doubt'] as const;
const CONTROL = ['delivered', 'in doubt'] as const;
const AGES = ['old', 'current', 'new'] as const;

function cross(names: readonly string[], ages: readonly string[], outcomes: readonly string[]): string[] {
  return names.flatMap((name) => ages.flatMap((age) => outcomes.map((outcome) => [name, age, outcome].filter((part) => part !== '').join(' '))));
}

/** Every event that the code can name, by side. Control frames have no payload, so they are never refused. */
export const EVENTS: Readonly<Record<Side, readonly string[]>> = {
  send: [
    ...cross(['envelope'], [''], COMPLETIONS),
    ...cross(['frag', 'put'], ['current', 'old'], COMPLETIONS),
    ...cross(['NOTIFY', 'FIN'], ['current', 'old'], CONTROL),
    'ACK',
    ...cross(['PUT', 'FIN', 'RNDVRESTARTACK', 'RNDVRESTARTNACK', 'RECVERRNOTIFY'], AGES, ['']),
  ],
  recv: [
    ...cross(['answer', 'PUT', 'RECVERR', 'FIN'], ['current', 'old'], CONTROL),
    ...cross(['get'], ['current', 'old'], COMPLETIONS),
    ...cross(['FRAG', 'FIN', 'RNDVRESTARTNOTIFY'], AGES, ['']),
  ],
};

const STATES: Readonly<Record<Side, readonly string[]>> = { send: Object.keys(SEND_STATES), recv: Object.keys(RECV_STATES) };

/** A pattern of cells that cannot be: side, states, event names (by their beginning, or their whole), and why. */
interface Impossible {
  side: Side;
  states: readonly string[];
  events: readonly string[];
  why: string;
}

export const IMPOSSIBLE: readonly Impossible[] = [];

export interface Cell {
  side: Side;
  state: string;
  event: string;
  hits: number;
  impossible: string | undefined;
}

export class Coverage implements TransitionListener, CoverageListener {
  readonly cells = new Map<string, number>();
  readonly edges = new Map<string, number>();

  onTransition(side: Side, _id: string, from: string, to: string): void {
    bump(this.edges, `${side} ${from} -> ${to}`);
  }

  onEvent(side: Side, state: string, event: string): void {
    bump(this.cells, `${side}/${state}/${event}`);
  }

  onRail(from: RailState, to: RailState): void {
    bump(this.edges, `rail ${from} -> ${to}`);
  }

  /** Adds what another run, perhaps in another process, has seen. */
  merge(other: { cells: Iterable<[string, number]>; edges: Iterable<[string, number]> }): void {
    for (const [name, hits] of other.cells) bump(this.cells, name, hits);
    for (const [name, hits] of other.edges) bump(this.edges, name, hits);
  }

  /** Every cell of both tables, in order. */
  table(): Cell[] {
    const list: Cell[] = [];
    for (const side of ['send', 'recv'] as const) {
      for (const state of STATES[side]) {
        for (const event of EVENTS[side]) {
          list.push({ side, state, event, hits: this.cells.get(`${side}/${state}/${event}`) ?? 0, impossible: whyImpossible(side, state, event) });
        }
      }
    }
    return list;
  }

  /** What is wrong: cells neither hit nor impossible, impossible ones that were hit, unknown ones, edges never taken. */
  faults(): string[] {
    const lines: string[] = [];
    for (const { side, state, event, hits, impossible } of this.table()) {
      if (hits === 0 && impossible === undefined) lines.push(`never hit: ${side} ${state} x ${event}`);
      if (hits > 0 && impossible !== undefined) lines.push(`hit ${hits} times, but called impossible: ${side} ${state} x ${event} (${impossible})`);
    }
    for (const name of this.cells.keys()) {
      const [side, state, event] = name.split('/') as [Side, string, string];
      if (!STATES[side].includes(state) || !EVENTS[side].includes(event)) lines.push(`unknown: ${name}`);
    }
    for (const edge of ALL_EDGES) {
      if (!this.edges.has(edge) && IMPOSSIBLE_EDGES[edge] === undefined) lines.push(`never taken: ${edge}`);
      if (this.edges.has(edge) && IMPOSSIBLE_EDGES[edge] !== undefined) lines.push(`taken, but called impossible: ${edge}`);
    }
    return lines;
  }

  /** For people: one row per event, one column per state; `-` stands for impossible. */
  format(): string {
    const lines: string[] = [];
    for (const side of ['send', 'recv'] as const) {
      const width = Math.max(...EVENTS[side].map((event) => event.length));
      lines.push(`${side.padEnd(width)} ${STATES[side].map((state) => state.padStart(10)).join('')}`);
      for (const event of EVENTS[side]) {
        const row = STATES[side].map((state) => {
          const hits = this.cells.get(`${side}/${state}/${event}`) ?? 0;
          return (hits > 0 ? String(hits) : whyImpossible(side, state, event) === undefined ? '?' : '-').padStart(10);
        });
        lines.push(`${event.padEnd(width)} ${row.join('')}`);
      }
      lines.push('');
    }
    for (const edge of ALL_EDGES) lines.push(`${edge.padEnd(28)} ${this.edges.get(edge) ?? (IMPOSSIBLE_EDGES[edge] === undefined ? '?' : '-')}`);
    return lines.join('\n');
  }
}

function bump(map: Map<string, number>, name: string, by = 1): void {
  map.set(name, (map.get(name) ?? 0) + by);
}

function whyImpossible(side: Side, state: string, event: string): string | undefined {
  const rule = IMPOSSIBLE.find((each) => each.side === side && each.states.includes(state) && each.events.some((name) => event === name || event.startsWith(`${name} `)));
  return rule?.why;
}

/** Edges of the tables that stand there for safety and that no run can take. */
export const IMPOSSIBLE_EDGES: Readonly<Record<string, string>> = {};

const ALL_EDGES: readonly string[] = [
  ...Object.entries(SEND_EDGES).flatMap(([from, list]) => list.map((to) => `send ${from} -> ${to}`)),
  'recv MATCHED -> RECEIVING',
  'recv MATCHED -> READING',
  ...Object.entries(RECV_EDGES).flatMap(([from, list]) => list.map((to) => `recv ${from} -> ${to}`)),
  ...Object.entries(RAIL_EDGES).flatMap(([from, list]) => list.map((to) => `rail ${from} -> ${to}`)),
];
