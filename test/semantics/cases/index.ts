// All cases of the suites, without the code that runs them: the suites use them with all ranks of a world in one process, and
// test/launchers/semantics-rank.ts with each rank in a separate process.

import type { P2pCase } from '../p2p-suite.ts';
import { COMMUNICATOR_CASES } from './coll-communicators.ts';
import { DATA_CASES } from './coll-data.ts';
import { COLLECTIVE_FAULT_CASES } from './coll-faults.ts';
import { OBJECT_CASES } from './coll-objects.ts';
import { REDUCTION_CASES } from './coll-reductions.ts';
import { COLLECTIVE_REQUEST_CASES } from './coll-requests.ts';
import { END_CASES } from './p2p-ends.ts';
import { FAULT_CASES } from './p2p-faults.ts';
import { MATCHING_CASES } from './p2p-matching.ts';
import { REQUEST_CASES } from './p2p-requests.ts';
import { TRANSFER_CASES } from './p2p-transfer.ts';

export const P2P_CASES: readonly P2pCase[] = [...TRANSFER_CASES, ...MATCHING_CASES, ...REQUEST_CASES, ...END_CASES];
/** Those that break rails, or need errors of their own, and are not repeated while others do. */
export const P2P_FAULT_CASES: readonly P2pCase[] = FAULT_CASES;

export const COLLECTIVE_CASES: readonly P2pCase[] = [
  ...DATA_CASES,
  ...REDUCTION_CASES,
  ...COLLECTIVE_REQUEST_CASES,
  ...OBJECT_CASES,
  ...COMMUNICATOR_CASES,
];
export const COLLECTIVE_ERROR_CASES: readonly P2pCase[] = COLLECTIVE_FAULT_CASES;
