// The cases of the suites of semantics for ranks that are processes, sorted into jobs: parameters are fixed when a rank starts, so cases
// whose parameters do not go together run in different jobs.
import type { Runtime } from '../../src/mpi/runtime.ts';
import { COLLECTIVE_CASES, COLLECTIVE_ERROR_CASES, P2P_CASES, P2P_FAULT_CASES } from '../semantics/cases/index.ts';
import type { P2pCase } from '../semantics/p2p-suite.ts';
import { SMALL_LIMITS } from '../support/p2p-audit.ts';
import type { P2pWorld } from '../support/p2p-worlds.ts';
import { collectiveCases } from '../system/fixtures/coll-cases.mjs';
import { cases as blockingCases } from '../system/fixtures/sync-cases.mjs';

export interface RankCase {
  suite: 'point-to-point' | 'collectives' | 'blocking';
  name: string;
  /** It takes so many, or, when `anySize` is set, as many as there are. */
  ranks: number;
  anySize: boolean;
  params: Readonly<Record<string, string>>;
  /** The base of the parameters: the suites want small limits, the blocking cases count on what short messages may do by default. */
  limits: Readonly<Record<string, string>>;
  /** Set: never run here, for this reason. */
  notApplicable?: string;
  /** Set: not run where the ranks are on several hosts, for this reason. */
  oneHost?: string;
  run(world: P2pWorld, mpi: Runtime): void | Promise<void>;
}

export interface RankJob {
  limits: RankCase['limits'];
  /** Above the limits. */
  params: Record<string, string>;
  cases: RankCase[];
}

function fromSuite(suite: RankCase['suite'], cases: readonly P2pCase[]): RankCase[] {
  return cases.map((one) => {
    const reason = one.skip?.replace(/^not applicable: /, '') ?? one.oneProcess;
    return {
      suite,
      name: one.name,
      ranks: one.ranks,
      anySize: one.anySize === true,
      params: one.params ?? {},
      limits: SMALL_LIMITS,
      ...(reason === undefined ? {} : { notApplicable: reason }),
      ...(one.oneHost === undefined ? {} : { oneHost: one.oneHost }),
      run: (world) => one.run(world),
    };
  });
}

/** Of the blocking cases, which every rank plays by itself already: those that need nothing but ranks. */
const BLOCKING = [
  'sizes',
  'pingpong',
  'windows',
  'wildcards',
  'unexpected',
  'probes',
  'ring',
  'synchronous',
  'nobody',
  'self',
  'vectors',
  'objects',
  'matched',
  'mixed',
  'afterwards',
  'truncation',
  'timeouts',
  'failures',
];
const BLOCKING_COLLECTIVES = ['every', 'communicators', 'mixed', 'outstanding', 'values'];

const DEFAULTS = {};

function blocking(): RankCase[] {
  const one = (name: string, run: RankCase['run']): RankCase => ({
    suite: 'blocking',
    name,
    ranks: 2,
    anySize: true,
    params: {},
    limits: DEFAULTS,
    run,
  });
  return [
    ...BLOCKING.map((name) => one(name, (_, mpi) => blockingCases[name](mpi))),
    ...BLOCKING_COLLECTIVES.map((name) => one(`collectives: ${name}`, (_, mpi) => collectiveCases(mpi)[name]())),
  ];
}

/** All cases, each in the first job whose parameters go with its own: 0 has most, 1 the blocking ones, the others algorithms by name. Those that are never run are in the first, with their reason. */
export function jobs(): RankJob[] {
  const all = [
    ...fromSuite('point-to-point', [...P2P_CASES, ...P2P_FAULT_CASES]),
    ...fromSuite('collectives', [...COLLECTIVE_CASES, ...COLLECTIVE_ERROR_CASES]),
    ...blocking(),
  ];
  const made: RankJob[] = [SMALL_LIMITS, DEFAULTS].map((limits) => ({ limits, params: {}, cases: [] }));
  for (const one of all) {
    const wanted = Object.entries(one.notApplicable === undefined ? one.params : {});
    const { limits } = one;
    let job = made.find(
      ({ params, ...job }) => job.limits === limits && wanted.every(([name, value]) => (params[name] ?? value) === value),
    );
    if (job === undefined) {
      job = { limits, params: {}, cases: [] };
      made.push(job);
    }
    Object.assign(job.params, Object.fromEntries(wanted));
    job.cases.push(one);
  }
  return made;
}
