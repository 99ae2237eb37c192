// All cases of the conformance suites, without what runs them: the suites take them from here, with all ranks of a world in one process,
// and test/launchers/conformance-rank.ts, with each rank in a process of its own.
import { COMMUNICATOR_CASES } from './coll-cases-communicators.ts';
import { DATA_CASES } from './coll-cases-data.ts';
import { COLLECTIVE_FAULT_CASES } from './coll-cases-faults.ts';
import { OBJECT_CASES } from './coll-cases-objects.ts';
import { REDUCTION_CASES } from './coll-cases-reductions.ts';
import { COLLECTIVE_REQUEST_CASES } from './coll-cases-requests.ts';
import { END_CASES } from './p2p-cases-ends.ts';
import { FAULT_CASES } from './p2p-cases-faults.ts';
import { MATCHING_CASES } from './p2p-cases-matching.ts';
import { REQUEST_CASES } from './p2p-cases-requests.ts';
import { TRANSFER_CASES } from './p2p-cases-transfer.ts';
import type { P2pCase } from './p2p-suite.ts';

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
