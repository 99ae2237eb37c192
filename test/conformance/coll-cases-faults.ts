// x
import type { P2pCase } from './p2p-suite.ts';
export const COLLECTIVE_FAULT_CASES: readonly P2pCase[] = [];
