// What a campaign of bad links has measured, line by line as it is kept, and what follows from the lines of a cell. Pure.
// Imports gray-protocol, lab-stats.

import { median } from '../lib/stats.mjs';
import type { GrayTraffic } from './gray-protocol.ts';

export const TOPOLOGIES = {
  '2': { mbits: [1000, 1000], bad: 1, text: 'one bad rail of two of 1 Gbit/s' },
  '3': { mbits: [1000, 1000, 1000], bad: 2, text: 'two bad rails of three of 1 Gbit/s' },
  slow: { mbits: [1000, 100], bad: 1, text: 'a bad rail of 1 Gbit/s beside a healthy one of 100 Mbit/s' },
} as const;
export type Topology = keyof typeof TOPOLOGIES;

export const TRANSPORTS = {
  tcp: { mca: { btl: 'self,tcp' }, ifInclude: 'btl_tcp_if_include', text: 'tcp, native part' },
  ws: { mca: { btl: 'self,ws' }, ifInclude: 'btl_ws_if_include', text: 'ws' },
  'tcp-node': { mca: { btl: 'self,tcp', btl_tcp_native: 'false' }, ifInclude: 'btl_tcp_if_include', text: 'tcp, node:net' },
  /** A peer, not ours: measured by --peers beside each cell, and never judged. */
  mptcp: { mca: {}, ifInclude: '', text: 'for comparison: Multipath TCP of the kernel, without a library' },
} as const;
export type Transport = keyof typeof TRANSPORTS;
export const OWN_TRANSPORTS = ['tcp', 'ws', 'tcp-node'] as const satisfies readonly Transport[];

/** The cell that a line belongs to. Lines of the same run number belong together: a cell that is run again begins from the start. */
export interface CellKey {
  topology: Topology;
  transport: Transport;
  fault: string;
  traffic: GrayTraffic;
}

export interface FaultLine extends CellKey {
  kind: 'fault';
  run: string;
  seed: number;
  number: number;
  /** That were bad. */
  rails: number[];
  /** Something came over one of them shortly before. A rail that has lost its trust is struck again, and that proves little. */
  inUse: boolean;
  holdMs: number;
  /** From the order until the kernel had done it. */
  beginMs: number;
  /** How often a flapping rail has gone. */
  cycles?: number;
  /** The longest of the gaps of which a part lies between the beginning of the fault and the end of the pause behind it. */
  worstGapMs: number;
  /** The same, by stream. */
  worstOfStreamMs: number[];
  /** Worst gap by second since the fault began, by the second in which the gap ended. */
  bySecondMs: number[];
  /** Payload delivered while the fault lasted, and in how many ms. */
  inFault: { bytes: number; ms: number };
  /** From its beginning to the end of the pause. */
  delivered: number;
  sentAgain: number;
  beyondOnce: number;
  /** From the beginning of the heal until something had come over each rail that was bad; undefined: not within the pause. */
  backMs?: number | undefined;
}

export interface AloneLine extends CellKey {
  kind: 'alone';
  run: string;
  /** The control: the same fault was on a rail that this traffic did not use. */
  underFault?: boolean;
  /** What the same traffic carries over the healthy rails alone, in bytes by ms. */
  rate: number;
  worstGapMs: number;
}

export interface CellLine extends CellKey {
  kind: 'cell';
  run: string;
  /** At which it was measured; undefined outside of a checkout. */
  commit?: string | undefined;
  messages: number;
  /** What the audit and the watch have found; nothing: the cell counts. */
  wrong: string[];
  /** What the job had printed, when something was wrong. */
  log?: string;
  counters?: Record<string, number>[];
}

export interface NotRunLine extends CellKey {
  kind: 'not run';
  run: string;
  reason: string;
}

export type GrayLine = FaultLine | AloneLine | CellLine | NotRunLine;

export const cellName = ({ fault, traffic }: Pick<CellKey, 'fault' | 'traffic'>): string => `${fault}/${traffic}`;
export const fullName = (key: CellKey): string => `${key.topology}/${key.transport}/${cellName(key)}`;

export const BOUND = { worstMs: 150, medianMs: 110, share: 0.9, wasted: 0.1, wastedWithoutFaults: 0.02 } as const;

export interface CellFigures extends CellKey {
  /** When it was measured, and at which commit. */
  run: string;
  commit?: string | undefined;
  faults: number;
  /** Faults on rails that were in use. */
  inUse: number;
  wrong: string[];
  notRun?: string;
  medianMs: number;
  worstMs: number;
  worstOfStreamMs: number[];
  /** Payload carried during faults : what the healthy rails carry alone while the same fault is elsewhere, in their faster run. */
  share: number;
  /** The same : what they carry when nothing is wrong anywhere. */
  shareOfQuiet: number;
  /** In bytes by ms: when nothing is wrong, and while the same fault is elsewhere. */
  aloneRate: number;
  controlRate: number;
  aloneWorstMs: number;
  /** Payload sent again : delivered. */
  wasted: number;
  /** The same, as the rails count. */
  beyondOnce: number;
  /** Part of the faults behind which the rails were in use again within the pause. */
  back: number;
  /** Means, of a rail that flaps; NaN of others. */
  periodMs: number;
}

/** Cells by name, each of the lines of its last run. */
export function cellsOf(lines: readonly GrayLine[]): Map<string, CellFigures> {
  const lastRun = new Map<string, string>();
  for (const line of lines) lastRun.set(fullName(line), line.run);
  const grouped = new Map<string, GrayLine[]>();
  for (const line of lines) {
    const name = fullName(line);
    if (lastRun.get(name) !== line.run) continue;
    const list = grouped.get(name);
    if (list === undefined) grouped.set(name, [line]);
    else list.push(line);
  }
  return new Map([...grouped].map(([name, list]) => [name, figuresOf(list)]));
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const most = (values: readonly number[]): number => (values.length === 0 ? Number.NaN : Math.max(...values));

function figuresOf(lines: readonly GrayLine[]): CellFigures {
  const { run, topology, transport, fault, traffic } = lines[0];
  const all = lines.filter((line) => line.kind === 'fault');
  const used = all.filter(({ inUse }) => inUse);
  // Medians, shares and sums are of the faults that struck a rail in use, as long as there were any; the worst is of all.
  const faults = used.length > 0 ? used : all;
  const alone = lines.filter((line) => line.kind === 'alone');
  const cells = lines.filter((line) => line.kind === 'cell');
  const notRun = lines.find((line) => line.kind === 'not run');
  const quiet = alone.filter(({ underFault }) => underFault !== true);
  const control = alone.filter(({ underFault }) => underFault === true);
  const aloneRate = median(quiet.map(({ rate }) => rate));
  // A record from before there was a control, or a cell that was cut short, is judged by the quiet rails.
  const controlRate = control.length === 0 ? aloneRate : Math.min(aloneRate, Math.max(...control.map(({ rate }) => rate)));
  const delivered = sum(faults.map((line) => line.delivered));
  const inFault = { bytes: sum(faults.map((line) => line.inFault.bytes)), ms: sum(faults.map((line) => line.inFault.ms)) };
  const flapping = faults.filter(({ cycles }) => cycles !== undefined);
  const streams = Math.max(0, ...faults.map(({ worstOfStreamMs }) => worstOfStreamMs.length));
  return {
    run,
    commit: cells[0]?.commit,
    topology,
    transport,
    fault,
    traffic,
    faults: all.length,
    inUse: used.length,
    // Without its last line a cell was cut short: what it has counts, but for the audit.
    wrong: cells.flatMap(({ wrong }) => wrong),
    ...(notRun === undefined ? {} : { notRun: notRun.reason }),
    medianMs: median(faults.map(({ worstGapMs }) => worstGapMs)),
    worstMs: most(all.map(({ worstGapMs }) => worstGapMs)),
    worstOfStreamMs: Array.from({ length: streams }, (_, i) => most(faults.map(({ worstOfStreamMs }) => worstOfStreamMs[i] ?? 0))),
    share: inFault.bytes / (controlRate * inFault.ms),
    shareOfQuiet: inFault.bytes / (aloneRate * inFault.ms),
    aloneRate,
    controlRate,
    aloneWorstMs: most(quiet.map(({ worstGapMs }) => worstGapMs)),
    wasted: sum(faults.map(({ sentAgain }) => sentAgain)) / delivered,
    beyondOnce: sum(faults.map(({ beyondOnce }) => beyondOnce)) / delivered,
    back: faults.filter(({ backMs }) => backMs !== undefined).length / faults.length,
    periodMs: sum(flapping.map(({ holdMs }) => holdMs)) / sum(flapping.map(({ cycles }) => cycles ?? 0)),
  };
}

/** Time that the healthy rails need for one message; for an allreduce, in which each port takes its vector twice, for two. */
export function healthyMs({ topology, traffic }: Pick<CellKey, 'topology' | 'traffic'>, bytes: number): number {
  const { mbits, bad } = TOPOLOGIES[topology];
  const mbit = sum(mbits.slice(bad));
  return ((traffic === 'allreduce' ? 2 : 1) * bytes * 8) / (mbit * 1000);
}

export type Missed = 'worst' | 'median' | 'share' | 'wasted' | 'audit';

/** By what a cell misses the bound; empty: it is met. What was not measured is missed. */
export function missedBy(cell: CellFigures, bytes: number): Missed[] {
  const missed: Missed[] = [];
  const allowMs = healthyMs(cell, bytes);
  if (cell.wrong.length > 0) missed.push('audit');
  if (!(cell.worstMs <= BOUND.worstMs + allowMs)) missed.push('worst');
  if (!(cell.medianMs <= BOUND.medianMs + allowMs)) missed.push('median');
  if (!(cell.share >= BOUND.share)) missed.push('share');
  if (!(cell.wasted <= (cell.fault === 'none' ? BOUND.wastedWithoutFaults : BOUND.wasted))) missed.push('wasted');
  return missed;
}
