// What the tests of saves and of logs share: the clock, the slowest rank, and a line of their tables.
import type { Communicator } from '../../src/mpi/communicator.ts';
import { Op } from '../../src/mpi/op.ts';

const GIGA = 1e9;
const TITLE_WIDTH = 46;

/** A target, and whether it is met; undefined: that cannot be judged here. */
export interface Target {
  readonly text: string;
  readonly isMet: boolean | undefined;
}

/** The same at all processes of a host. */
export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

export async function mostOf(comm: Communicator, own: number): Promise<number> {
  const most = new Float64Array(1);
  await comm.allreduce(Float64Array.of(own), most, Op.MAX);
  return most[0];
}

export const rateText = (bytesPerSecond: number): string => `${(bytesPerSecond / GIGA).toFixed(2)} GB/s`;

export function figureLine(title: string, value: string, target?: Target): string {
  const verdict = target?.isMet === undefined ? '' : target.isMet ? ': met' : ': missed';
  return `${title.padEnd(TITLE_WIDTH)}${value.padStart(12)}${target === undefined ? '' : `   ${target.text}${verdict}`}`;
}
