// The point-to-point suite: what every transport, alone or with others, must give a user, checked through the public interface. The ideas
// are those of MPICH's tests (numbers as in its list of cases), the code is this project's. Every payload is audited by content. Run again
// with faults, the same cases must end in the same way while rails break at moments that a seed chooses.
import { strict as assert } from 'node:assert';
import { describe as group, test } from 'vitest';
import { closeWorld } from '../support/p2p-audit.ts';
import type { P2pFixture, P2pWorld } from '../support/p2p-worlds.ts';
import { isDrawn, NOT_DRAWN } from '../support/sample.ts';
import { P2P_CASES, P2P_FAULT_CASES } from './cases/index.ts';

/** One case. It gets a fresh world of `ranks` ranks; the suite drains and closes it and looks that nothing is left. */
export interface P2pCase {
  /** Number in the list of cases and name. */
  name: string;
  ranks: number;
  /** Set: never run, for this reason. */
  skip?: string;
  /** Set: the case runs with any number of ranks, one included. */
  anySize?: true;
  /** Set: the case does not fit a world in which the only peer is the own rank. */
  notAlone?: true;
  /** In every sample: so much of it is under way that faults are sure to meet frames. */
  alwaysDrawn?: true;
  /** Needs a fixture that can break rails; not repeated with faults. */
  needsFaults?: true;
  /** Not repeated with faults, for this reason. */
  calmOnly?: string;
  /** Set: not run where the ranks are processes, for this reason. */
  oneProcess?: string;
  /** Set: not run where the ranks are on several hosts, for this reason. */
  oneHost?: string;
  params?: Readonly<Record<string, string>>;
  run(world: P2pWorld): Promise<void>;
}

export interface P2pSuiteOptions {
  /** Only the own rank is there: worlds of one. */
  alone?: boolean;
  /** Seeds with which the cases run again while rails break. */
  faultSeeds?: readonly string[];
  /** How long one case may take; 25 s unless told. */
  caseLimitMs?: number;
  /** All cases with faults, every time: where so little strikes that a sample might miss it. */
  neverSampled?: boolean;
  /** The calm cases are sampled, too: for places where they take long. */
  sampleCalm?: boolean;
  /** Cases that are left out here, by name, and why. */
  leaveOut?: Readonly<Record<string, string>>;
}

const CASE_LIMIT_MS = 25_000;
/** How often the cases with most under way are played again until the faults have met frames. */
const AGAIN_MAX = 10;
const isPlayed = (group: string, one: P2pCase): boolean => one.alwaysDrawn === true || isDrawn(group, one.name);

export function p2pSuite(name: string, fixture: P2pFixture, options: P2pSuiteOptions = {}): void {
  suiteOf('p2p', P2P_CASES, P2P_FAULT_CASES, name, fixture, options);
}

/** Runs cases calm, and those without faults of their own again while rails break. */
export function suiteOf(
  kind: string,
  cases: readonly P2pCase[],
  faultCases: readonly P2pCase[],
  name: string,
  fixture: P2pFixture,
  options: P2pSuiteOptions,
): void {
  group(`${kind} over ${name}`, () => {
    for (const one of [...cases, ...faultCases]) {
      if (options.sampleCalm !== true || isPlayed(name, one)) add(fixture, one, options, undefined);
      else test.skip(`${one.name} (${NOT_DRAWN})`, () => undefined);
    }
  });
  // MULTIRAIL_TEST_SEEDS=a,b,c runs the faults with other seeds than those of every day.
  const seeds = options.faultSeeds === undefined ? [] : (process.env.MULTIRAIL_TEST_SEEDS?.split(',') ?? options.faultSeeds);
  for (const seed of seeds) {
    group(`${kind} over ${name}, 86: again while rails break, seed ${seed}`, () => {
      const struck: Struck = { railsLost: 0, framesInDoubt: 0, resent: 0 };
      for (const one of cases) {
        if (options.neverSampled === true || isPlayed(`${name}, ${seed}`, one)) add(fixture, one, options, seed, struck);
        else test.skip(`${one.name} (${NOT_DRAWN})`, () => undefined);
      }
      // A run in which nothing broke would prove nothing. A sample may be over before much has: then the cases with most under way are
      // played once more, with other moments.
      const limitMs = AGAIN_MAX * (options.caseLimitMs ?? CASE_LIMIT_MS);
      test('the faults struck: rails were lost with frames on them', { timeout: limitMs }, async () => {
        const heavy = cases.filter((one) => one.alwaysDrawn && reasonToSkip(fixture, one, options, seed) === undefined);
        const hasStruck = () => struck.railsLost > 0 && struck.framesInDoubt > 0;
        for (let again = 1; again <= AGAIN_MAX && !hasStruck(); again++) {
          for (const one of heavy) await play(fixture, one, options, `${seed}, again ${again}`, struck);
        }
        console.info(`${name}, seed ${seed}: ${JSON.stringify(struck)}`);
        assert(hasStruck(), JSON.stringify(struck));
      });
    });
  }
}

function reasonToSkip(fixture: P2pFixture, one: P2pCase, options: P2pSuiteOptions, seed: string | undefined): string | undefined {
  if (fixture.unavailable !== undefined) return fixture.unavailable;
  if (one.skip !== undefined) return one.skip;
  if (options.leaveOut?.[one.name] !== undefined) return options.leaveOut[one.name];
  if (options.alone && ((one.ranks > 2 && !one.anySize) || one.notAlone)) return 'not applicable: the world is one rank';
  if (one.needsFaults && !fixture.hasFaults) return 'not applicable: this fixture cannot break its rails';
  if (seed !== undefined && one.calmOnly !== undefined) return `not applicable with faults: ${one.calmOnly}`;
  return undefined;
}

/** What the faults of one run did, summed over its cases. */
interface Struck {
  railsLost: number;
  framesInDoubt: number;
  resent: number;
}

function add(fixture: P2pFixture, one: P2pCase, options: P2pSuiteOptions, seed: string | undefined, struck?: Struck): void {
  const reason = reasonToSkip(fixture, one, options, seed);
  if (reason !== undefined) {
    test.skip(`${one.name} (${reason})`, () => undefined);
    return;
  }
  const limitMs = options.caseLimitMs ?? CASE_LIMIT_MS;
  test(one.name, { timeout: limitMs + 20_000 }, () => play(fixture, one, options, seed, struck));
}

/** One case in a world of its own, and what the faults of that seed did to it. */
async function play(fixture: P2pFixture, one: P2pCase, options: P2pSuiteOptions, seed?: string, struck?: Struck): Promise<void> {
  const world = await fixture.world(options.alone ? 1 : one.ranks, one.params);
  if (seed !== undefined) world.faults?.start(`${seed}/${one.name}`);
  let failed = true;
  try {
    await inTime(world, one.run(world), options.caseLimitMs ?? CASE_LIMIT_MS);
    failed = false;
  } finally {
    world.faults?.stop();
    // After a failure the world's own complaint would hide the reason.
    if (failed) await world.teardown().catch(() => undefined);
  }
  await closeWorld(world);
  if (struck === undefined) return;
  for (const runtime of world.runtimes) {
    for (const { counters } of runtime.rails()) {
      struck.railsLost += counters.downs;
      struck.framesInDoubt += counters.framesInDoubt;
    }
    const { pml } = runtime.counters();
    struck.resent += pml.envelopesResent + pml.restarts;
  }
}

/** A case that does not come to its end says what it waits for. */
async function inTime(world: P2pWorld, running: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const rails = world.runtimes.flatMap((runtime) =>
        runtime
          .rails()
          .map(
            (rail) =>
              `${runtime.rank}->${rail.peer} ${rail.key} ${rail.state} e${rail.epoch} out ${rail.outstandingBytes} ${rail.lastReason ?? ''}`,
          ),
      );
      const open = world.runtimes.flatMap((runtime) => runtime.undelivered().map((line) => `rank ${runtime.rank}: ${line}`));
      reject(new Error(`no end after ${limitMs} ms\n${[...open.slice(0, 20), ...rails].join('\n')}`));
    }, limitMs);
  });
  try {
    await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
  }
}
