// The suites of semantics with every rank in a separate process, under the starters that one command can start here (Slurm has its own
// file), run by the script that a person would use. Its reports stay in .cache for docs/make-semantics.mjs.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { drawTests } from '../support/sample.ts';
import { run } from './command.ts';
import { CASES, expectPassed } from './verdicts.ts';

const SCRIPT = fileURLToPath(new URL('./semantics.mjs', import.meta.url));
const CACHE = fileURLToPath(new URL('../../.cache/', import.meta.url));
/** What the script exits with where it cannot be done. */
const CANNOT = 77;
/** Case 59 has tests of its own with many more. */
const ENV = { MULTIRAIL_TEST_CTX_ROUNDS: '50' };
mkdirSync(CACHE, { recursive: true });

describe('the suites of semantics under', () => {
  const RUNS: { starter: string; ranks: number; jobs: string; only?: string; cases: number }[] = [
    { starter: 'run', ranks: 4, jobs: 'all', cases: CASES.all },
    { starter: 'mpiexec', ranks: 4, jobs: '0,1', cases: CASES[0] + CASES[1] },
    { starter: 'mpirun', ranks: 4, jobs: '0', cases: CASES[0] },
    { starter: 'env', ranks: 4, jobs: '0', cases: CASES[0] },
    // All of them with eight take a minute where there are two processors.
    { starter: 'env', ranks: 8, jobs: '0', only: '^(4|5|7|11|12|45|56|57|58|61) ', cases: 11 },
  ];
  const named = RUNS.map((one) => ({
    ...one,
    name: `${one.starter}: ${one.ranks} ranks, jobs ${one.jobs}${one.only === undefined ? '' : ', some cases'}`,
  }));
  for (const { name, starter, ranks, jobs, only, cases } of drawTests('semantics under starters', named)) {
    test(name, async ({ skip }) => {
      const report = `${CACHE}report-launchers-${starter}-${ranks}.json`;
      rmSync(report, { force: true });
      const chosen = only === undefined ? [] : ['--only', only];
      const ran = await run([process.execPath, SCRIPT, starter, '-n', String(ranks), '--jobs', jobs, ...chosen], ENV, 110_000);
      if (ran.code === CANNOT) {
        console.log(ran.stderr.trim());
        skip();
      }
      expect({ code: ran.code, stderr: ran.stderr }, ran.stdout).toEqual({ code: 0, stderr: '' });
      expectPassed(readFileSync(report, 'utf8'), cases, only === undefined ? undefined : []);
    });
  }
});

describe('the script', () => {
  test('a case that fails is named with its rank and text, and the exit code says so', async () => {
    const report = `${CACHE}report-launchers-failing.json.tmp`;
    // No number of rounds: what the case counts is not what it expects.
    const ran = await run([process.execPath, SCRIPT, 'run', '-n', '2', '--jobs', '0', '--only', '^(59|63) ', '--report', report], {
      MULTIRAIL_TEST_CTX_ROUNDS: 'many',
    });
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(/^not ok 1 - collectives: 59 .*\n# rank 0: AssertionError.*\n#\s*\n# +0 !== NaN/m);
    expect(ran.stdout).toContain('# rank 1: AssertionError');
    expect(ran.stdout).toMatch(/^ok 2 - collectives: 63 names/m);
    expect(ran.stdout).toContain('semantics: 1 passed, 1 failed, 0 not applicable (2 ranks under run)\n');
    rmSync(report);
  });

  test('misuse is told', async () => {
    for (const [args, text] of [
      [['pbs'], 'starter pbs is not known'],
      [['run', '-n', '0'], '-n is 0; expected a number of ranks'],
      [['run', '--jobs', 'x'], '--jobs is x'],
    ] as const) {
      const ran = await run([process.execPath, SCRIPT, ...args]);
      expect(ran.code).toBe(2);
      expect(ran.stderr).toContain(text);
    }
  });
});
