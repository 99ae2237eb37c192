// Loads node-rdma, a separate package in this package's folder `native`. It is loaded from there and not by its name, so that it can only
// be this project's package: no package manager is told to fetch what a registry has under that name. Without it, or without libibverbs,
// there are no verbs rails.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type * as Rdma from 'node-rdma';
import { nativeFolder } from '../../native/load.ts';

export type { Rdma };

export interface RdmaState {
  rdma?: typeof Rdma;
  /** Why there is no library, in one line. */
  reason?: string;
}

let state: RdmaState | undefined;

/** Loads the package once; a package that is not there, or that finds no library, is told as a reason and never thrown. */
export function loadRdma(): RdmaState {
  state ??= load();
  return state;
}

function load(): RdmaState {
  const folder = nativeFolder();
  const program = folder === undefined ? undefined : join(folder, 'rdma', 'index.js');
  if (program === undefined || !existsSync(program)) return { reason: 'node-rdma is not in the folder of multirail' };
  let rdma: typeof Rdma;
  try {
    // Not by import: whether there are verbs rails is asked before anything can be awaited.
    rdma = createRequire(program)(program) as typeof Rdma;
  } catch (error) {
    return { reason: (error as Error).message.split('\n')[0] };
  }
  const reason = rdma.unavailable();
  return reason === undefined ? { rdma } : { reason };
}
