// Every broken endpoint must be caught, and by a clause that speaks of what it does wrong; the sound one behind the same relay must not.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { localControl } from '../../src/conformance/control.ts';
import { EndpointDriver } from '../../src/conformance/endpoint/driver.ts';
import { runSuite, type SuiteReport } from '../../src/conformance/run.ts';
import { buildFolder, loadWith } from '../sim/mutants/plant.ts';
import { PLANTED } from '../sim/mutants/table.ts';
import { BrokenControl } from './interposer.ts';
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

let builds: ReturnType<typeof buildFolder>;
beforeAll(() => {
  builds = buildFolder();
});
afterAll(() => builds.dispose());

/** What a broken endpoint does not do is waited for this long; a sound one has all the time that it needs. */
const BROKEN_LIMIT_MS = 700;
const SOUND_LIMIT_MS = 5000;

async function play({ case: only, broken, mutant }: Planted, limitMs: number): Promise<SuiteReport> {
  const Driver = mutant === undefined ? EndpointDriver : (await loadWith('endpoint', [mutant], builds.folder)).EndpointDriver;
  const driver = new Driver({ version: 'test' });
  const control = broken === undefined ? localControl(driver) : new BrokenControl(localControl(driver), broken);
  try {
    return await runSuite(control, { only, limitMs });
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
    test.each(list)('$name is caught by $caughtBy', async (planted) => {
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

test('every planted mistake of the engine is looked for, or cannot be seen from outside', () => {
  const known = [...ENGINE_MUTANTS.map(({ name }) => name), ...Object.keys(UNSEEN_MUTANTS)].sort();
  expect(known).toEqual(PLANTED.map(({ name }) => name).sort());
});
