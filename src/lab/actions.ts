// What can be done to the links of a lab, in words: the same in commands, in timelines and in experiments.
//   pull RAIL [NODE]        the cables are pulled: of all nodes, or of one
//   blackhole RAIL          frames vanish, carriers stay
//   oneway RAIL NODE        what that node sends vanishes
//   loss RAIL PERCENT [NODE]   frames vanish by chance: all nodes', or what one sends
//   flap RAIL EVERY [silent]   goes and comes, half of that time each
//   throttle RAIL RATE      slower or faster
//   restore [RAIL]          everything as at the start
// Imports errors, lab, rails.
import { MultirailError } from '../errors.ts';
import type { Lab } from './lab.ts';
import { type NamedRail, parseRate, railIndex, showRate } from './rails.ts';

export type LabAction =
  | { kind: 'pull'; rail: number; node?: number }
  | { kind: 'blackhole'; rail: number }
  | { kind: 'oneway'; rail: number; node: number }
  | { kind: 'loss'; rail: number; percent: number; node?: number }
  | { kind: 'flap'; rail: number; periodMs: number; silent: boolean }
  | { kind: 'throttle'; rail: number; mbit: number }
  | { kind: 'restore'; rail?: number };

export const ACTION_USAGE: Readonly<Record<LabAction['kind'], string>> = {
  pull: 'pull RAIL [NODE]',
  blackhole: 'blackhole RAIL',
  oneway: 'oneway RAIL NODE',
  loss: 'loss RAIL PERCENT [NODE]',
  flap: 'flap RAIL EVERY [silent]',
  throttle: 'throttle RAIL RATE',
  restore: 'restore [RAIL]',
};

/** Milliseconds of `500ms`, `1.5s` or `2m`; ERR_ARG for anything else. */
export function parseTime(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text);
  if (match === null) throw new MultirailError('ERR_ARG', `"${text}" is no time: expected such as 500ms, 1.5s or 2m`);
  return Number(match[1]) * { ms: 1, s: 1000, m: 60_000 }[match[2] as 'ms' | 's' | 'm'];
}

/** Of `5`, `5%` or `0.1`, 0 to 100; ERR_ARG for anything else. */
function parsePercent(text: string): number {
  const percent = /^\d+(\.\d+)?%?$/.test(text) ? Number(text.replace('%', '')) : Number.NaN;
  if (!(percent <= 100)) throw new MultirailError('ERR_ARG', `"${text}" is no percentage: expected such as 5, 0.1 or 20%, up to 100`);
  return percent;
}

/** The kernel keeps up with this; a timer of Node does not with less. */
const FLAP_PERIOD_MIN_MS = 10;

/** ERR_ARG, with the usage, for words that make no sense in this lab. */
export function parseAction(words: readonly string[], rails: readonly NamedRail[], nodes: number): LabAction {
  const [kind, ...args] = words;
  const usage = ACTION_USAGE[kind as LabAction['kind']];
  if (usage === undefined) {
    throw new MultirailError('ERR_ARG', `"${kind ?? ''}" is nothing that a lab does: expected ${Object.keys(ACTION_USAGE).join(', ')}`);
  }
  const required = usage.split(' ').filter((word) => /^[A-Z]/.test(word)).length;
  const allowed = usage.split(' ').length - 1;
  if (args.length < required || args.length > allowed) throw new MultirailError('ERR_ARG', `expected ${usage}, not "${words.join(' ')}"`);
  const rail = () => railIndex(rails, args[0]);
  const node = (text = args[1]) => {
    const value = /^\d{1,3}$/.test(text) ? Number(text) : -1;
    if (value < 0 || value >= nodes) throw new MultirailError('ERR_ARG', `there is no node "${text}": nodes go from 0 to ${nodes - 1}`);
    return value;
  };
  switch (kind as LabAction['kind']) {
    case 'pull':
      return { kind: 'pull', rail: rail(), ...(args.length > 1 ? { node: node() } : {}) };
    case 'blackhole':
      return { kind: 'blackhole', rail: rail() };
    case 'oneway':
      return { kind: 'oneway', rail: rail(), node: node() };
    case 'loss':
      return { kind: 'loss', rail: rail(), percent: parsePercent(args[1]), ...(args.length > 2 ? { node: node(args[2]) } : {}) };
    case 'flap': {
      const periodMs = parseTime(args[1]);
      if (periodMs < FLAP_PERIOD_MIN_MS)
        throw new MultirailError(
          'ERR_ARG',
          `a rail that flaps every ${args[1]} would be slower than the kernel: ${FLAP_PERIOD_MIN_MS}ms at least`,
        );
      if (args.length > 2 && args[2] !== 'silent') throw new MultirailError('ERR_ARG', `expected ${usage}, not "${words.join(' ')}"`);
      return { kind: 'flap', rail: rail(), periodMs, silent: args[2] === 'silent' };
    }
    case 'throttle':
      return { kind: 'throttle', rail: rail(), mbit: parseRate(args[1]) };
    case 'restore':
      return { kind: 'restore', ...(args.length > 0 ? { rail: rail() } : {}) };
  }
}

/** In words for people. */
export function describeAction(action: LabAction, rails: readonly NamedRail[]): string {
  const name = action.rail === undefined ? 'all rails' : `rail ${rails[action.rail].name}`;
  switch (action.kind) {
    case 'pull':
      return action.node === undefined ? `${name} pulled` : `${name} pulled at node ${action.node}`;
    case 'blackhole':
      return `${name} is a black hole`;
    case 'oneway':
      return `what node ${action.node} sends on ${name} vanishes`;
    case 'loss':
      return `${name} loses ${action.percent} % of ${action.node === undefined ? 'its frames' : `what node ${action.node} sends`}`;
    case 'flap':
      return `${name} flaps every ${action.periodMs} ms${action.silent ? ', in silence' : ''}`;
    case 'throttle':
      return `${name} at ${showRate(action.mbit)}`;
    case 'restore':
      return `${name} restored`;
  }
}

/** Resolves when the kernel has done it. */
export async function applyAction(lab: Lab, action: LabAction): Promise<void> {
  switch (action.kind) {
    case 'pull':
      return action.node === undefined ? await lab.wireCut(action.rail) : await lab.cableCut(action.node, action.rail);
    case 'blackhole':
      return await lab.blackhole(action.rail);
    case 'oneway':
      return await lab.oneWay(action.rail, action.node);
    case 'loss':
      return await lab.loss(action.rail, action.percent, action.node);
    case 'flap':
      lab.flap(action.rail, action.periodMs, { silent: action.silent });
      return;
    case 'throttle':
      return await lab.throttle(action.rail, action.mbit);
    case 'restore':
      return action.rail === undefined ? await lab.healAll() : await lab.heal(action.rail);
  }
}
