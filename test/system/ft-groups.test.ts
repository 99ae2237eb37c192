// Ranks that go back by groups, with a process for each rank, which dies by SIGKILL: its group begins again from its own save and the other one goes
// on, and the end is bit for bit that of the undisturbed run.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-logs-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

async function play(mode: string, deaths: readonly string[], spares = 1, mca: readonly string[] = []) {
  const standing = spares > 0 ? ['--spares', String(spares)] : ['--mca', 'ft', 'on'];
  const words = [code.cli, 'run', '-n', '4', ...standing, ...mca.flatMap((one) => ['--mca', ...one.split('=')])];
  const {
    code: status,
    stdout,
    stderr,
  } = await startNode([...words, code.fixture('ft-logs-rank.ts'), mode, ...deaths], {
    timeoutMs: 40_000,
    env: { ...process.env, FT_GROUPS: '2' },
  }).ended;
  const all = `${stdout}\n${stderr}`;
  const digests = [...new Set([...stdout.matchAll(/rank (\d) ends with (\w+)/g)].map(([, rank, digest]) => `${rank} ${digest}`))].sort();
  const bodies = [...stdout.matchAll(/body of rank (\d) begins in step (\d+) at process (\d+)/g)].map(([, ...words]) => words.map(Number));
  const totals = [...stdout.matchAll(/after (\d+) failures, (\d+) in place, (\d+) steps again/g)].map(([, ...words]) => words.map(Number));
  const [failures, inPlace, lostSteps] = [0, 1, 2].map((at) => Math.max(...totals.map((total) => total[at])));
  return { status, stdout, all, digests, bodies, total: { failures, inPlace, lostSteps } };
}

let still: Awaited<ReturnType<typeof play>>;
beforeAll(async () => {
  still = await play('async', [], 0);
}, 60_000);

test('nobody dies', () => {
  expect(still.status, still.all).toBe(0);
  expect(still.digests, still.all).toHaveLength(4);
});

const cases: readonly [what: string, mode: string, deaths: readonly string[]][] = [['one dies after a save', 'async', ['1@10']]];

test.each(cases)('%s', { timeout: 60_000 }, async (_, mode, deaths) => {
  const { status, all, digests, total } = await play(mode, deaths, deaths.length);
  expect(status, all).toBe(0);
  expect(digests, all).toEqual(still.digests);
  expect(total, all).toMatchObject({ failures: deaths.length, inPlace: deaths.length });
  expect(all).not.toMatch(/no recovery in place/);
});
