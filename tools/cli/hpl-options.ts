// The options of `multirail hpl`, as they are after parsing.
import type { AlgebraWish } from '../hpl/blas.ts';
import type { Series } from '../hpl/experiment.ts';
import type { BroadcastName, SwapName } from '../hpl/problem.ts';
import type { Waits } from '../hpl/rank.ts';

export interface HplOptions {
  np: number;
  order: number[];
  nb: number[];
  grid: { p: number; q: number }[];
  depth: '0' | '1';
  broadcast: BroadcastName;
  swap: SwapName;
  kernel: AlgebraWish;
  seed: number;
  repeat: number;
  waits: Waits;
  warmUp: boolean;
  checkpoint?: string;
  checkpointEvery?: number;
  onRailLost: 'finish' | 'stop';
  resume: boolean;
  progress: boolean;
  lines: boolean;
  json?: string;
  mca: string[];
  rails?: string;
  standby?: string;
  pull: string[];
  restore: string[];
  fault: 'pull' | 'blackhole';
  sweep: boolean;
  moments?: string;
  series: Series | 'both';
  /** Seconds. */
  timeout: number;
  out: string;
  plot: boolean;
}
