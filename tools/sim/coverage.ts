// Which (state, event) cells and which edges the runs have taken, and which cells cannot be taken. The test of the coverage fails on a cell
// that is neither hit nor listed here as impossible, and on an impossible one that is hit.
import { RAIL_EDGES, type RailState } from '../../src/bml/rail.ts';
import { RECV_EDGES, RECV_STATES, SEND_EDGES, SEND_STATES, type TransitionListener } from '../../src/pml/states.ts';
import type { CoverageListener } from './world.ts';

type Side = 'send' | 'recv';

const COMPLETIONS = ['delivered', 'refused', 'in doubt'] as const;
const CONTROL = ['delivered', 'in doubt'] as const;
const AGES = ['old', 'current', 'new'] as const;

function cross(names: readonly string[], ages: readonly string[], outcomes: readonly string[]): string[] {
  return names.flatMap((name) =>
    ages.flatMap((age) => outcomes.map((outcome) => [name, age, outcome].filter((part) => part !== '').join(' '))),
  );
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

/** Cells of one side that cannot be, or need not come up, with the reason. A state may be left out: then all are meant. */
interface Rule {
  side: Side;
  states?: readonly string[];
  events: readonly string[];
  why: string;
}

const TO_SEND = cross(['PUT', 'FIN', 'RNDVRESTARTACK', 'RNDVRESTARTNACK', 'RECVERRNOTIFY'], AGES, ['']);
const TO_RECV = cross(['FRAG', 'FIN', 'RNDVRESTARTNOTIFY'], AGES, ['']);
const BOTH = ['current', 'old'] as const;

export const IMPOSSIBLE: readonly Rule[] = [
  // --- the sender's side
  {
    side: 'send',
    states: ['DONE'],
    events: ['ACK', ...TO_SEND],
    why: 'A retired id is known by its generation, before any state is looked at.',
  },
  {
    side: 'send',
    events: TO_SEND.filter((event) => event.endsWith('new')),
    why: 'Only the sender begins an epoch, so nothing newer than its own comes back.',
  },
  {
    side: 'send',
    states: ['ENVELOPE'],
    events: [...cross(['frag', 'put'], BOTH, COMPLETIONS), ...cross(['NOTIFY', 'FIN'], BOTH, CONTROL)],
    why: 'Nothing but the envelope was sent yet.',
  },
  {
    side: 'send',
    states: ['ENVELOPE'],
    events: TO_SEND.filter((event) => event.endsWith('old')),
    why: 'ENVELOPE is epoch 0: nothing is older.',
  },
  { side: 'send', states: ['ENVELOPE'], events: ['RNDVRESTARTACK current', 'RNDVRESTARTNACK current'], why: 'No NOTIFY was sent yet.' },
  {
    side: 'send',
    states: ['NOTIFYING'],
    events: [...cross(['frag', 'put'], ['current'], COMPLETIONS), ...cross(['FIN'], ['current'], CONTROL)],
    why: 'NOTIFYING begins an epoch; its data leave from STREAMING on.',
  },
  {
    side: 'send',
    states: ['OWING'],
    events: cross(['frag', 'put'], ['current'], COMPLETIONS),
    why: 'Every byte of this epoch is delivered.',
  },
  { side: 'send', events: cross(['put'], ['old'], COMPLETIONS), why: 'DRAINING waits for own puts, so none outlives its epoch.' },
  { side: 'send', events: ['put current refused'], why: 'A simulated rail refuses no put: one that is not allowed ends the rail.' },
  {
    side: 'send',
    states: ['STREAMING', 'DRAINING', 'NOTIFYING', 'OWING'],
    events: ['FIN old', 'FIN current'],
    why: 'The FIN of an RGET comes when all was read, and the sender leaves ENVELOPE otherwise only when that cannot be any more.',
  },
  {
    side: 'send',
    states: ['STREAMING', 'DRAINING', 'NOTIFYING', 'OWING'],
    events: ['RECVERRNOTIFY current'],
    why: 'It belongs to epoch 0, which the first one ends at once.',
  },
  // --- the receiver's side
  { side: 'recv', states: ['DONE'], events: TO_RECV, why: 'A retired id is known by its generation, before any state is looked at.' },
  { side: 'recv', events: ['FRAG new', 'FIN new'], why: 'The sender sends data of an epoch only after the receiver answered its NOTIFY.' },
  {
    side: 'recv',
    states: ['READING'],
    events: [...cross(['answer', 'PUT'], BOTH, CONTROL), 'FRAG old', 'FRAG current', 'FIN old', 'FIN current'],
    why: 'Who reads gives no answer and offers no window, so no data are sent to it.',
  },
  {
    side: 'recv',
    states: ['FENCING'],
    events: [...cross(['answer', 'PUT'], BOTH, CONTROL), 'FRAG old', 'FRAG current', 'FIN old', 'FIN current'],
    why: 'FENCING lasts only while own gets are under way, that is straight after READING: no answer was given yet.',
  },
  {
    side: 'recv',
    states: ['READING'],
    events: ['RNDVRESTARTNOTIFY old', 'RNDVRESTARTNOTIFY current'],
    why: 'READING is epoch 0: every NOTIFY is newer.',
  },
  {
    side: 'recv',
    states: ['READING'],
    events: [...cross(['RECVERR'], ['old'], CONTROL), ...cross(['get'], ['old'], COMPLETIONS)],
    why: 'READING is epoch 0: nothing is older.',
  },
  {
    side: 'recv',
    states: ['RECEIVING', 'FENCING'],
    events: cross(['RECVERR'], ['current'], CONTROL),
    why: 'It was sent in epoch 0; a NOTIFY has ended that.',
  },
  {
    side: 'recv',
    states: ['OWING'],
    events: cross(['RECVERR'], ['current'], CONTROL),
    why: 'With a read in doubt the message is not complete before a NOTIFY.',
  },
  {
    side: 'recv',
    states: ['RECEIVING', 'READING', 'FENCING'],
    events: cross(['FIN'], ['current'], CONTROL),
    why: 'The FIN of an RGET leaves from OWING only, and OWING leads to DONE only.',
  },
  { side: 'recv', events: cross(['FIN'], ['old'], CONTROL), why: 'OWING takes no NOTIFY, so the FIN of an RGET never gets old.' },
  {
    side: 'recv',
    states: ['RECEIVING', 'FENCING', 'OWING'],
    events: cross(['get'], ['current'], COMPLETIONS),
    why: 'Reads belong to epoch 0, and a receive is complete only when none is under way.',
  },
  { side: 'recv', states: ['RECEIVING', 'OWING'], events: cross(['get'], ['old'], COMPLETIONS), why: 'FENCING waits for own reads.' },
  {
    side: 'recv',
    events: cross(['get'], BOTH, ['refused']),
    why: 'A simulated rail refuses no get: one that is not allowed ends the rail.',
  },
];

/** Cells that can be and that these runs need not reach: several things must coincide, or the peer must die just then. */
export const RARE: readonly Rule[] = [
  {
    side: 'send',
    states: ['STREAMING', 'DRAINING', 'NOTIFYING', 'OWING', 'DONE'],
    events: ['envelope refused', 'envelope delivered', 'envelope in doubt'],
    why: 'The envelope arrived before, in doubt, and its second copy ends after the answer.',
  },
  {
    side: 'send',
    states: ['DRAINING', 'DONE', 'OWING', 'STREAMING', 'NOTIFYING'],
    events: [...cross(['frag'], BOTH, COMPLETIONS), ...cross(['put'], ['current'], CONTROL)],
    why: 'A data frame that ends after its message moved on, by a restart, by BYE or by the death of the peer.',
  },
  { side: 'send', events: [...cross(['NOTIFY', 'FIN'], BOTH, CONTROL)], why: 'A control frame that ends after its message moved on.' },
  {
    side: 'send',
    events: [
      'ACK',
      'PUT current',
      'PUT old',
      'RNDVRESTARTACK old',
      'RNDVRESTARTACK current',
      'RNDVRESTARTNACK old',
      'RNDVRESTARTNACK current',
      'RECVERRNOTIFY old',
    ],
    why: 'A repeated or overtaken packet.',
  },
  {
    side: 'recv',
    events: [...cross(['answer', 'PUT', 'RECVERR', 'FIN'], BOTH, CONTROL), ...cross(['get'], BOTH, CONTROL)],
    why: 'A frame or read that ends after its message moved on.',
  },
  {
    side: 'recv',
    events: [
      'FRAG old',
      'FRAG current',
      'FIN old',
      'FIN current',
      'RNDVRESTARTNOTIFY old',
      'RNDVRESTARTNOTIFY current',
      'RNDVRESTARTNOTIFY new',
    ],
    why: 'A repeated or overtaken packet.',
  },
];

/** Cells of RARE that are the everyday of the protocol and must be hit. */
const MUST: readonly Rule[] = [
  {
    side: 'send',
    states: ['STREAMING'],
    events: [
      ...cross(['frag'], ['current'], COMPLETIONS),
      'put current delivered',
      'put current in doubt',
      'PUT current',
      'NOTIFY current delivered',
      'FIN current delivered',
      'FIN current in doubt',
      'ACK',
    ],
    why: '',
  },
  {
    side: 'send',
    states: ['NOTIFYING'],
    events: [
      'frag old delivered',
      'frag old in doubt',
      'NOTIFY current delivered',
      'NOTIFY current in doubt',
      'RNDVRESTARTACK current',
      'RNDVRESTARTNACK current',
    ],
    why: '',
  },
  { side: 'send', states: ['ENVELOPE'], events: ['ACK', 'envelope delivered', 'envelope refused', 'envelope in doubt'], why: '' },
  { side: 'send', states: ['DRAINING'], events: ['put current delivered', 'put current in doubt'], why: '' },
  { side: 'send', states: ['OWING'], events: ['FIN current delivered', 'FIN current in doubt'], why: '' },
  {
    side: 'recv',
    states: ['RECEIVING'],
    events: [
      'answer current delivered',
      'answer current in doubt',
      'PUT current delivered',
      'PUT current in doubt',
      'FRAG current',
      'FIN current',
      'RNDVRESTARTNOTIFY current',
      'RNDVRESTARTNOTIFY new',
    ],
    why: '',
  },
  {
    side: 'recv',
    states: ['READING'],
    events: [
      'get current delivered',
      'get current in doubt',
      'RECVERR current delivered',
      'RECVERR current in doubt',
      'RNDVRESTARTNOTIFY new',
    ],
    why: '',
  },
  {
    side: 'recv',
    states: ['OWING'],
    events: ['answer current delivered', 'answer current in doubt', 'FIN current delivered', 'FIN current in doubt'],
    why: '',
  },
];

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

  onTransition(side: Side, _message: unknown, from: string, to: string): void {
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
          list.push({
            side,
            state,
            event,
            hits: this.cells.get(`${side}/${state}/${event}`) ?? 0,
            impossible: whyImpossible(side, state, event),
          });
        }
      }
    }
    return list;
  }

  /** What is wrong: cells neither hit nor impossible, impossible ones that were hit, unknown ones, edges never taken. */
  faults(): string[] {
    const lines: string[] = [];
    for (const { side, state, event, hits, impossible } of this.table()) {
      if (hits === 0 && impossible === undefined && !isRare(side, state, event)) lines.push(`never hit: ${side} ${state} x ${event}`);
      if (hits > 0 && impossible !== undefined)
        lines.push(`hit ${hits} times, but called impossible: ${side} ${state} x ${event} (${impossible})`);
    }
    for (const name of this.cells.keys()) {
      const [side, state, event] = name.split('/') as [Side, string, string];
      if (!STATES[side].includes(state) || !EVENTS[side].includes(event)) lines.push(`unknown: ${name}`);
    }
    for (const edge of ALL_EDGES) {
      if (!this.edges.has(edge) && IMPOSSIBLE_EDGES[edge] === undefined && RARE_EDGES[edge] === undefined)
        lines.push(`never taken: ${edge}`);
      if (this.edges.has(edge) && IMPOSSIBLE_EDGES[edge] !== undefined) lines.push(`taken, but called impossible: ${edge}`);
    }
    return lines;
  }

  /** For people: one row per event, one column per state; `-` stands for impossible, `.` for rare and not seen. */
  format(): string {
    const lines: string[] = [];
    for (const side of ['send', 'recv'] as const) {
      const width = Math.max(...EVENTS[side].map((event) => event.length));
      lines.push(`${side.padEnd(width)} ${STATES[side].map((state) => state.padStart(10)).join('')}`);
      for (const event of EVENTS[side]) {
        const row = STATES[side].map((state) => {
          const hits = this.cells.get(`${side}/${state}/${event}`) ?? 0;
          return (
            hits > 0 ? String(hits) : whyImpossible(side, state, event) === undefined ? (isRare(side, state, event) ? '.' : '?') : '-'
          ).padStart(10);
        });
        lines.push(`${event.padEnd(width)} ${row.join('')}`);
      }
      lines.push('');
    }
    for (const edge of ALL_EDGES)
      lines.push(`${edge.padEnd(28)} ${this.edges.get(edge) ?? (IMPOSSIBLE_EDGES[edge] === undefined ? '?' : '-')}`);
    return lines.join('\n');
  }
}

function bump(map: Map<string, number>, name: string, by = 1): void {
  map.set(name, (map.get(name) ?? 0) + by);
}

function ruled(rules: readonly Rule[], side: Side, state: string, event: string): string | undefined {
  return rules.find(
    (rule) => rule.side === side && (rule.states === undefined || rule.states.includes(state)) && rule.events.includes(event),
  )?.why;
}

function whyImpossible(side: Side, state: string, event: string): string | undefined {
  return ruled(IMPOSSIBLE, side, state, event);
}

/** It can be, but need not come up in a run of moderate length. */
function isRare(side: Side, state: string, event: string): boolean {
  return ruled(MUST, side, state, event) === undefined && ruled(RARE, side, state, event) !== undefined;
}

/** Edges of the tables that stand there for safety and that no run can take. */
export const IMPOSSIBLE_EDGES: Readonly<Record<string, string>> = {};

/** Edges that can be taken and that no run has taken yet. */
export const RARE_EDGES: Readonly<Record<string, string>> = {
  'send DRAINING -> DONE': 'By the end of the peer, if that is handled ahead of its puts, which else lead to NOTIFYING first.',
  'recv FENCING -> DONE': 'By last own reads that complete the message, or by the end of the peer ahead of those reads.',
};

const ALL_EDGES: readonly string[] = [
  ...Object.entries(SEND_EDGES).flatMap(([from, list]) => list.map((to) => `send ${from} -> ${to}`)),
  'recv MATCHED -> RECEIVING',
  'recv MATCHED -> READING',
  ...Object.entries(RECV_EDGES).flatMap(([from, list]) => list.map((to) => `recv ${from} -> ${to}`)),
  ...Object.entries(RAIL_EDGES).flatMap(([from, list]) => list.map((to) => `rail ${from} -> ${to}`)),
];
