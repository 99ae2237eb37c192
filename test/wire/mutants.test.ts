// Every broken endpoint must be caught, by a clause about what it does wrong; the sound endpoint behind the same relay must not be.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Control, localControl } from '../../tools/wire-suite/control.ts';
import { EndpointDriver } from '../../tools/wire-suite/endpoint/driver.ts';
import { runSuite, type SuiteOptions, type SuiteReport } from '../../tools/wire-suite/run.ts';
import { PLANTED_GROUPS } from '../sim/mutants/group-table.ts';
import { PLANTED_HEALTH } from '../sim/mutants/health-table.ts';
import { PLANTED_LOGS } from '../sim/mutants/log-table.ts';
import { buildFolder, loadWith, type Mistake } from '../sim/mutants/plant.ts';
import { PLANTED_REPLICAS } from '../sim/mutants/replica-table.ts';
import { PLANTED_SAVES } from '../sim/mutants/save-table.ts';
import { PLANTED_SPARES } from '../sim/mutants/spare-table.ts';
import { PLANTED } from '../sim/mutants/table.ts';
import { PLANTED_ULFM } from '../sim/mutants/ulfm-table.ts';
import { drawTests } from '../support/sample.ts';
import { BrokenControl } from './interposer.ts';
import { chaptersWithFew, documentedMutants, documentMutants, mutantsByChapter } from './mutant-table.ts';
import {
  ENGINE_MUTANTS,
  FRAMING_MUTANTS,
  HANDSHAKE_MUTANTS,
  MESSAGE_MUTANTS,
  type Planted,
  SOUND,
  SOUND_HANDSHAKES,
  UNSEEN_MUTANTS,
} from './mutants.ts';
import { PLANTED_INSIDE } from './planted.ts';

let builds: ReturnType<typeof buildFolder>;
beforeAll(() => {
  builds = buildFolder();
});
afterAll(() => builds.dispose());

/** What a broken endpoint does not do is waited for this long; a sound one has all the time that it needs. */
const BROKEN_LIMIT_MS = 700;
const SOUND_LIMIT_MS = 5000;

async function play({ case: only, broken, mutant }: Planted, limitMs: number): Promise<SuiteReport> {
  if (mutant !== undefined) return await playWith(mutant, { only, limitMs });
  const local = localControl(new EndpointDriver({ version: 'test' }));
  return await played(broken === undefined ? local : new BrokenControl(local, broken), { only, limitMs });
}

/** Against an endpoint that is built with that mistake. */
async function playWith(mistake: Mistake, options: SuiteOptions): Promise<SuiteReport> {
  const { EndpointDriver: Driver } = await loadWith('endpoint', [mistake], builds.folder);
  return await played(localControl(new Driver({ version: 'test' })), options);
}

async function played(control: Control, options: SuiteOptions): Promise<SuiteReport> {
  try {
    return await runSuite(control, options);
  } finally {
    await control.close();
  }
}

/**
 * A mistake inside the engine may run into one of its assertions: the endpoint has crashed, which its tester sees as silence. Such errors
 * are kept from ending this process.
 */
async function mayCrash<T>(run: () => Promise<T>): Promise<{ result: T; crashes: string[] }> {
  const before = process.listeners('uncaughtException');
  const crashes: string[] = [];
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => crashes.push(error.message));
  try {
    return { result: await run(), crashes };
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const listener of before) process.on('uncaughtException', listener);
  }
}

const caught: string[] = [];
afterAll(() => {
  console.log(`${caught.length} broken endpoints and what caught them:\n${caught.join('\n')}`);
});

for (const [name, list] of Object.entries({
  handshake: HANDSHAKE_MUTANTS,
  framing: FRAMING_MUTANTS,
  messages: MESSAGE_MUTANTS,
  'inside the engine': ENGINE_MUTANTS,
})) {
  describe(name, () => {
    test.each(drawTests(`broken endpoints, ${name}`, list))('$name is caught by $caughtBy', async (planted) => {
      const { result, crashes } = await mayCrash(() => play(planted, BROKEN_LIMIT_MS));
      const { clauses, results } = result;
      expect(results.filter(({ skipped }) => skipped === undefined).length, `no case is called "${planted.case}"`).toBeGreaterThan(0);
      const failed = clauses.filter(({ verdict }) => verdict === 'failed').map(({ id }) => id);
      const crashed = crashes.length === 0 ? '' : ` (and an assertion: ${crashes[0]})`;
      caught.push(`  ${planted.name}: ${failed.join(' ')}${crashed}`);
      if (planted.mutant === undefined) expect(crashes).toEqual([]);
      expect(failed).toContain(planted.caughtBy);
    });
  });
}

test.each([...SOUND, ...SOUND_HANDSHAKES])('nothing is wrong behind a relay that changes nothing: $name', async (planted) => {
  const { clauses, results } = await play(planted, SOUND_LIMIT_MS);
  expect(results.filter(({ skipped }) => skipped === undefined).length).toBeGreaterThan(0);
  expect(
    clauses.filter(({ verdict }) => verdict === 'failed').flatMap(({ id, failures }) => failures.map(({ text }) => `${id}: ${text}`)),
  ).toEqual([]);
});

describe('inside the endpoint', () => {
  test.each(drawTests('broken endpoints, inside', PLANTED_INSIDE))('$name is caught by $caughtBy', async (planted) => {
    const { case: only, caughtBy, transport = 'tcp', limitMs = BROKEN_LIMIT_MS } = planted;
    const { result, crashes } = await mayCrash(() => playWith(planted, { only, limitMs, transport }));
    const { clauses, results } = result;
    expect(results.filter(({ skipped }) => skipped === undefined).length, `no case is called "${only}"`).toBeGreaterThan(0);
    const failed = clauses.filter(({ verdict }) => verdict === 'failed').map(({ id }) => id);
    caught.push(`  ${planted.name}: ${failed.join(' ')}${crashes.length === 0 ? '' : ` (and an assertion: ${crashes[0]})`}`);
    expect(failed).toContain(caughtBy);
  });
});

test('every chapter with clauses that can be tested has at least six broken endpoints', () => {
  expect(chaptersWithFew(6)).toEqual([]);
});

test('the document lists them, and who catches each', () => {
  if (process.env.UPDATE_MUTANTS === '1') documentMutants();
  expect(documentedMutants(), 'the list is older than the table; UPDATE_MUTANTS=1 writes it again').toBe(mutantsByChapter());
});

test('every planted mistake of the engine is looked for, or cannot be seen from outside', () => {
  // How a side judges its rails is its own affair: the profile `impaired` of the simulator has the bounds that these break.
  const ofHealth = PLANTED_HEALTH.map(({ name }) => name);
  // Agreement, saves, logs, groups and replicas are among the ranks of a job, in messages of theirs: no endpoint of this suite takes part. The
  // profiles `ulfm`, `save`, `log`, `group` and `replica` find these.
  const ofFailures = [...PLANTED_ULFM, ...PLANTED_SAVES, ...PLANTED_LOGS, ...PLANTED_GROUPS, ...PLANTED_REPLICAS].map(({ name }) => name);
  // The suite has rails of one class: none is spare.
  const ofSpares = PLANTED_SPARES.map(({ name }) => name);
  const known = [...ENGINE_MUTANTS.map(({ name }) => name), ...Object.keys(UNSEEN_MUTANTS), ...ofHealth, ...ofFailures, ...ofSpares].sort();
  expect(known).toEqual(PLANTED.map(({ name }) => name).sort());
});
