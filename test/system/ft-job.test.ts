// Process failure with a process for each rank, which dies by SIGKILL: the cases of blocking calls, and of the others those in which the
// kernel's word of a death, its way to everybody and the end of the job matter most. MULTIRAIL_TEST_SHARE=1 runs all.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { FT_CASES } from '../semantics/cases/ft.ts';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

const DRAWN =
  /^(err_any|err_insulation|what came whole|revoke in the midst|revshrinkkill|agreements are the same|a rank that dies|replace: (?:two|rank 0|a replacement))/;
const runsAll = process.env.MULTIRAIL_TEST_SHARE === '1';
const noNative = loadNative().reason;

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

async function play(index: number, mca: readonly string[] = [], env: Record<string, string> = {}): Promise<void> {
  const { ranks, dying, spares = 0 } = FT_CASES[index];
  const spareArgs = spares === 0 ? [] : ['--spares', String(spares)];
  const args = ['run', '-n', String(ranks), ...spareArgs, '--mca', 'ft', 'on', ...mca, code.fixture('ft-rank.ts'), String(index)];
  const { code: exitCode, stdout, stderr } = await startNode([code.cli, ...args], { env, timeoutMs: 40_000 }).ended;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  const through = stdout.match(/is through/g)?.length ?? 0;
  // Those of them that were called in play, too.
  expect(through).toBeGreaterThanOrEqual(ranks - dying.filter((number) => number < ranks).length);
  if (spares === 0) expect(through).toBe(ranks - dying.length);
}

// Each way to hear of deaths has a case of its own, so that none is played twice: handles over shared memory, handles over TCP, and /proc.
const OVER_TCP = 'a rank that dies in finalize() holds up nobody';
const BY_PROC = 'revshrinkkill: one after the other dies until two are left';

for (const [index, { name, processes }] of FT_CASES.entries()) {
  if (processes === true && noNative !== undefined) test.skip(`${name} (${noNative})`, () => undefined);
  else if (name === OVER_TCP) test(`${name}, over TCP alone`, () => play(index, ['--mca', 'btl', 'self,tcp']), 50_000);
  else if (name === BY_PROC)
    test(`${name}, without the native part: the kernel is asked by /proc`, () => play(index, [], { MULTIRAIL_NATIVE: '0' }), 50_000);
  else if (processes === true || runsAll || DRAWN.test(name)) test(name, () => play(index), 50_000);
}

test('the cases that have a way of their own are there', () => {
  for (const wanted of [OVER_TCP, BY_PROC]) expect(FT_CASES.filter(({ name }) => name === wanted)).toHaveLength(1);
});
