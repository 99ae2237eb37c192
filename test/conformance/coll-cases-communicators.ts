// x
import type { P2pCase } from './p2p-suite.ts';
export const COMMUNICATOR_CASES: readonly P2pCase[] = [];
