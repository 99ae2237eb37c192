// What can be done to the links of a lab, in words: the same in commands, in timelines and in experiments.
//   pull RAIL [NODE]        the cables of all nodes, or of one, are pulled
//   blackhole RAIL          frames vanish, carriers stay
//   oneway RAIL NODE        what that node sends vanishes
//   loss RAIL PERCENT [NODE]   frames vanish by chance: those of all nodes, or those that one sends
//   delay RAIL MS [SPREAD]   frames take longer
//   reorder RAIL PERCENT [HOLD]   frames are held back, and overtaken
//   flip RAIL PERCENT [NODE]   a bit flips in frames: in those of all nodes, or in those that one sends
//   flap RAIL EVERY [silent]   the rail goes and comes, half of that time each
//   throttle RAIL RATE [QUEUE]     slower or faster
//   kill NODE               every process on the node is killed
//   halt NODE               the host is gone without a word: its processes stop, its cables are out
//   restore [RAIL]          everything as at the start; without a rail, halted nodes go on, too
import { MultirailError } from '../../src/errors.ts';
import type { Lab } from './lab.ts';
import { DEFAULT_HOLD_MS, DELAY_MAX_MS } from './plan.ts';
import { type NamedRail, parseRate, railIndex, showRate } from './rails.ts';

export type LabAction =
  | { kind: 'pull'; rail: number; node?: number }
  | { kind: 'blackhole'; rail: number }
  | { kind: 'oneway'; rail: number; node: number }
  | { kind: 'loss'; rail: number; percent: number; node?: number }
  | { kind: 'flap'; rail: number; periodMs: number; silent: boolean }
  | { kind: 'delay'; rail: number; delayMs: number; spreadMs: number }
  | { kind: 'reorder'; rail: number; percent: number; holdMs: number }
  | { kind: 'flip'; rail: number; percent: number; node?: number }
  | { kind: 'throttle'; rail: number; mbit: number; queueBytes?: number }
  | { kind: 'kill'; node: number; rail?: undefined }
  | { kind: 'halt'; node: number; rail?: undefined }
  | { kind: 'restore'; rail?: number };

/** Nobody has ordered that: the forwarder of a rail has died, and the rail is without what it did to frames. */
export interface LabMishap {
  kind: 'forwarder-lost';
  rail: number;
  why: string;
}

/** What happens to a lab. */
export type LabEvent = LabAction | LabMishap;

export const ACTION_USAGE: Readonly<Record<LabAction['kind'], string>> = {
  pull: 'pull RAIL [NODE]',
  blackhole: 'blackhole RAIL',
  oneway: 'oneway RAIL NODE',
  loss: 'loss RAIL PERCENT [NODE]',
  delay: 'delay RAIL MS [SPREAD]',
  reorder: 'reorder RAIL PERCENT [HOLD]',
  flip: 'flip RAIL PERCENT [NODE]',
  flap: 'flap RAIL EVERY [silent]',
  throttle: 'throttle RAIL RATE [QUEUE]',
  kill: 'kill NODE',
  halt: 'halt NODE',
  restore: 'restore [RAIL]',
};

/** Milliseconds of `500ms`, `1.5s` or `2m`; ERR_ARG for anything else. */
export function parseTime(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text);
  if (match === null) throw new MultirailError('ERR_ARG', `"${text}" is not a time: expected one such as 500ms, 1.5s or 2m`);
  return Number(match[1]) * { ms: 1, s: 1000, m: 60_000 }[match[2] as 'ms' | 's' | 'm'];
}

/** As parseTime(), and a bare number is milliseconds. 0 to DELAY_MAX_MS. */
function parseDelay(text: string): number {
  const ms = parseTime(/^\d+(\.\d+)?$/.test(text) ? `${text}ms` : text);
  if (ms > DELAY_MAX_MS)
    throw new MultirailError('ERR_ARG', `a delay of ${text} is longer than a lab can hold frames: expected at most ${DELAY_MAX_MS}ms`);
  return ms;
}

/** Bytes of `16kb`, `1mb` or `2000`; ERR_ARG for anything else. */
function parseBytes(text: string): number {
  const match = /^(\d+)(kb|mb)?$/i.exec(text);
  const bytes = match === null ? 0 : Number(match[1]) * ({ kb: 1 << 10, mb: 1 << 20 }[match[2]?.toLowerCase() as 'kb' | 'mb'] ?? 1);
  if (bytes < 1 || bytes > QUEUE_BYTES_MAX)
    throw new MultirailError(
      'ERR_ARG',
      `"${text}" is not the length of a queue: expected one such as 16kb, up to ${QUEUE_BYTES_MAX >> 20}mb`,
    );
  return bytes;
}

const QUEUE_BYTES_MAX = 256 << 20;

/** Of `5`, `5%` or `0.1`, 0 to 100; ERR_ARG for anything else. */
function parsePercent(text: string): number {
  const percent = /^\d+(\.\d+)?%?$/.test(text) ? Number(text.replace('%', '')) : Number.NaN;
  if (!(percent <= 100))
    throw new MultirailError('ERR_ARG', `"${text}" is not a percentage: expected one such as 5, 0.1 or 20%, up to 100`);
  return percent;
}

/** The kernel keeps up with this; a timer of Node does not with less. */
const FLAP_PERIOD_MIN_MS = 10;

/** ERR_ARG, with the usage, for words that make no sense in this lab. */
export function parseAction(words: readonly string[], rails: readonly NamedRail[], nodes: number): LabAction {
  const [kind, ...args] = words;
  const usage = ACTION_USAGE[kind as LabAction['kind']];
  if (usage === undefined) {
    throw new MultirailError(
      'ERR_ARG',
      `"${kind ?? ''}" is not an action of a lab: expected one of ${Object.keys(ACTION_USAGE).join(', ')}`,
    );
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
    case 'delay':
      return { kind: 'delay', rail: rail(), delayMs: parseDelay(args[1]), spreadMs: args.length > 2 ? parseDelay(args[2]) : 0 };
    case 'reorder':
      return {
        kind: 'reorder',
        rail: rail(),
        percent: parsePercent(args[1]),
        holdMs: args.length > 2 ? parseDelay(args[2]) : DEFAULT_HOLD_MS,
      };
    case 'flip':
      return { kind: 'flip', rail: rail(), percent: parsePercent(args[1]), ...(args.length > 2 ? { node: node(args[2]) } : {}) };
    case 'flap': {
      const periodMs = parseTime(args[1]);
      if (periodMs < FLAP_PERIOD_MIN_MS)
        throw new MultirailError(
          'ERR_ARG',
          `flap every ${args[1]} is faster than a lab can switch: expected at least ${FLAP_PERIOD_MIN_MS}ms`,
        );
      if (args.length > 2 && args[2] !== 'silent') throw new MultirailError('ERR_ARG', `expected ${usage}, not "${words.join(' ')}"`);
      return { kind: 'flap', rail: rail(), periodMs, silent: args[2] === 'silent' };
    }
    case 'throttle':
      return {
        kind: 'throttle',
        rail: rail(),
        mbit: parseRate(args[1]),
        ...(args.length > 2 ? { queueBytes: parseBytes(args[2]) } : {}),
      };
    case 'kill':
      return { kind: 'kill', node: node(args[0]) };
    case 'halt':
      return { kind: 'halt', node: node(args[0]) };
    case 'restore':
      return { kind: 'restore', ...(args.length > 0 ? { rail: rail() } : {}) };
  }
}

/** In words for people. */
export function describeAction(action: LabEvent, rails: readonly NamedRail[]): string {
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
    case 'delay':
      return `${name} takes ${action.delayMs} ms longer each way${action.spreadMs === 0 ? '' : `, and swings by ${action.spreadMs} ms`}`;
    case 'reorder':
      return `${name} holds ${action.percent} % of its frames back for ${action.holdMs} ms`;
    case 'flip':
      return `${name} flips a bit in ${action.percent} % of ${action.node === undefined ? 'its frames' : `what node ${action.node} sends`}`;
    case 'forwarder-lost':
      return `${name} is without delay, reordering and flips, since its forwarder is gone: ${action.why}`;
    case 'flap':
      return `${name} flaps every ${action.periodMs} ms${action.silent ? ', in silence' : ''}`;
    case 'throttle':
      return `${name} at ${showRate(action.mbit)}${action.queueBytes === undefined ? '' : `, with a queue of ${action.queueBytes} bytes`}`;
    case 'kill':
      return `every process on node ${action.node} killed`;
    case 'halt':
      return `node ${action.node} is halted: its processes stand still, its cables are out`;
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
    case 'delay':
      return await lab.delay(action.rail, action.delayMs, action.spreadMs);
    case 'reorder':
      return await lab.reorder(action.rail, action.percent, action.holdMs);
    case 'flip':
      return await lab.flip(action.rail, action.percent, action.node);
    case 'flap':
      lab.flap(action.rail, action.periodMs, { silent: action.silent });
      return;
    case 'throttle':
      return await lab.throttle(action.rail, action.mbit, action.queueBytes);
    case 'kill':
      return await lab.kill(action.node);
    case 'halt':
      return await lab.halt(action.node);
    case 'restore':
      return action.rail === undefined ? await lab.healAll() : await lab.heal(action.rail);
  }
}
