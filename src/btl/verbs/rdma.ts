// The package node-rdma, where it is installed. An optional dependency: without it, or without libibverbs, there are no verbs rails.
import { createRequire } from 'node:module';
import type * as Rdma from 'node-rdma';
import { thisFile } from '../../native/load.ts';

export type { Rdma };

export interface RdmaState {
  rdma?: typeof Rdma;
  /** Why there is none, in one line. */
  reason?: string;
}

let state: RdmaState | undefined;

/** Loads the package once; a package that is not there, or that finds no library, is told as a reason and never thrown. */
export function loadRdma(): RdmaState {
  state ??= load();
  return state;
}

function load(): RdmaState {
  let rdma: typeof Rdma;
  try {
    // Not by import: whether there are verbs rails is asked before anything can be awaited.
    rdma = createRequire(thisFile())('node-rdma') as typeof Rdma;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { reason: code === 'MODULE_NOT_FOUND' ? 'the package node-rdma is not installed' : message.split('\n')[0] };
  }
  const reason = rdma.unavailable();
  return reason === undefined ? { rdma } : { reason };
}
