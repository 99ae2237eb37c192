// The suite of collectives and communicators: what every transport must give its users. Numbers are those of the list of cases that the
// point-to-point suite follows; the code is this project's. It runs calm, and again while rails break at moments that a seed chooses.

import type { P2pFixture } from '../support/p2p-worlds.ts';
import { COLLECTIVE_CASES, COLLECTIVE_ERROR_CASES } from './cases/index.ts';
import { type P2pCase, type P2pSuiteOptions, suiteOf } from './p2p-suite.ts';

export interface CollSuiteOptions extends P2pSuiteOptions {
  /** Every algorithm by name, and not only the one that is chosen. They send and receive as all others do: some transports will do. */
  everyAlgorithm?: boolean;
}

export function collSuite(name: string, fixture: P2pFixture, options: CollSuiteOptions = {}): void {
  const isForced = (one: P2pCase) => / \((?!auto\))[a-z_]+\)$/.test(one.name);
  const cases = options.everyAlgorithm ? COLLECTIVE_CASES : COLLECTIVE_CASES.filter((one) => !isForced(one));
  suiteOf('collectives', cases, COLLECTIVE_ERROR_CASES, name, fixture, options);
}
