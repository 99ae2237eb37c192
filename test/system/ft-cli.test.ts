// `multirail ft` as a command: its exit codes, text and JSON, figures, and what it says to wrong words.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bytesOf } from '../support/golden.ts';
import { type BuiltCode, buildCode, type Ran, startNode } from '../support/helpers.ts';
import { goldenImages } from '../support/image-golden.ts';

let code: BuiltCode;
const folder = mkdtempSync(join(tmpdir(), 'multirail-ft-'));
beforeAll(async () => {
  code = await buildCode([]);
});
afterAll(() => {
  code?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const ft = (line: string, timeoutMs = 60_000): Promise<Ran> => startNode([code.cli, 'ft', ...line.split(' ')], { timeoutMs }).ended;

test('plan, in words, as JSON and as a figure', async () => {
  const svg = join(folder, 'cost.svg');
  const ran = await ft(`plan --mtbf 2h,48h --cost 1s,6s --restore 0.5s,4s --nodes 12 --df 2 --sd 3 --state 2GiB --svg ${svg}`);
  expect([ran.code, ran.stderr]).toEqual([0, '']);
  expect(ran.stdout).toMatch(/^1 +2.0 h +1 s +0.5 s +2.0 min +1.67 %/m);
  expect(ran.stdout).toContain('12 of level 1 every 2.0 min, 1 of level 2 every 24.0 min');
  expect(ran.stdout).toContain('survives 4 failed domains at once, whichever they are (by searching all sets)');
  expect(ran.stdout).toContain('room for 12 images in each process: 24 GiB');
  expect(readFileSync(svg, 'utf8')).toMatch(/^<\?xml[\s\S]*Young 2.0 min/);
  const json = await ft('plan --mtbf 60 --cost 100ms --groups 4 --alpha 0.7 --json');
  const { levels, problems } = JSON.parse(json.stdout);
  expect([json.code, levels[0].mtbfSeconds, levels[0].costSeconds, problems]).toEqual([0, 60, 0.1, []]);
});

test('tables and figures end with 0 in their band and with 1 outside of it', async () => {
  const figure = await ft('figure 001 --json');
  expect([figure.code, JSON.parse(figure.stdout).rows.length]).toEqual([0, 9]);
  const svg = join(folder, 'figure.svg');
  expect((await ft(`figure 004 --periods 50000 --svg ${svg}`)).code).toBe(0);
  expect(existsSync(svg)).toBe(true);
  expect((await ft('table 002 --runs 1500')).stdout).toContain('W 657.3 s, N1 10.95');
  // Four runs have means of their own.
  const few = await ft('table 002 --runs 4');
  expect(few.code).toBe(1);
  expect(few.stdout).toMatch(/^FAIL: MTBF .* from the paper's/m);
});

test('campaign: a set that the scheme survives, and one that it does not', async () => {
  const survived = await ft('campaign 000 -n 4 --df 1 --sd 1 --runs 1');
  expect(survived.code, survived.stderr).toBe(0);
  expect(survived.stderr).toMatch(/^run 1 of 1: rank \d dies at step \d+: all go back to save \d+ in memory$/m);
  expect(survived.stdout).toMatch(/^with the result of a job in which nobody dies +1$/m);
  // Rank 1 has the only copies of rank 0.
  const lost = await ft('campaign 000 -n 4 --df 1 --sd 1 --sets 0,1 --runs 1 --json');
  const { played, problems } = JSON.parse(lost.stdout);
  expect([lost.code, problems, played[0].outcome.failures, played[0].outcome.save]).toEqual([0, [], 2, undefined]);
  const wrong = await ft('campaign 000 -n 4 --df 1 --sd 1 --sets 0,9');
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('expected different ranks from 0 to 3')]);
});

test('campaign 004: a job that saves by planned periods survives, and its costs are compared with the plan', async () => {
  const { code: status, stdout, stderr } = await ft('campaign 004 --mtbf 800ms --failures 2 --json');
  // Whether two failures lie in the band is chance: what the result is, is not.
  const { played, judged, problems } = JSON.parse(stdout);
  expect(status).toBe(problems.length === 0 ? 0 : 1);
  expect(stderr).toMatch(/^MTBF 0.8 s: [12] failures and \d+ saves in \d/m);
  expect(played[0].outcome.isRight).toBe(true);
  expect(played[0].outcome.everySteps).toBeGreaterThan(1);
  expect(judged[0].measured).toBeGreaterThan(0);
  expect(problems.every((problem: string) => problem.startsWith('MTBF 0.8 s: overhead'))).toBe(true);
  const wrong = await ft('campaign 004 --df 2');
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--df with campaign 004: it belongs to 000')]);
});

test('campaign 002: both recoveries of a plate meet the same deaths, and its bits are those of the undisturbed one', {
  timeout: 120_000,
}, async () => {
  const {
    code: status,
    stdout,
    stderr,
  } = await ft('campaign 002 --scale 0.0005 --rows 1 --runs 1 --repeaters 2 --seed 12 --json', 110_000);
  // Which of two short jobs takes longer is chance: what the plate is, is not.
  const { played, cells, undisturbed, problems } = JSON.parse(stdout);
  expect(status).toBe(problems.length === 0 ? 0 : 1);
  expect(problems.every((problem: string) => problem.includes('longer than coordinated recovery'))).toBe(true);
  expect(stderr).toMatch(/^undisturbed: \d+ steps in \d/m);
  expect(stderr).toMatch(/^row 1, run 1 of 1, asynchronous, k = 2: [1-9] \+ 0 failures in .* [1-9] ranks recovered in place/m);
  expect(played.map(({ outcome }: { outcome: { digest: string } }) => outcome.digest)).toEqual(played.map(() => undisturbed.digest));
  expect(cells.every(({ restartSeconds }: { restartSeconds: number }) => restartSeconds > 0)).toBe(true);
  const wrong = await ft('campaign 002 --mtbf 1s');
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--mtbf with campaign 002: it belongs to 004')]);
});

test('inspect', async () => {
  const path = join(folder, 'rank-3.mrck');
  const image = bytesOf(goldenImages().images[1].hex);
  writeFileSync(path, image);
  const ran = await ft(`inspect ${path}`);
  expect([ran.code, ran.stderr]).toEqual([0, '']);
  expect(ran.stdout).toContain('image of rank 3 of 8, save 41 of recovery epoch 2, at step 5000');
  image[0x100] ^= 1;
  writeFileSync(path, image);
  const damaged = await ft(`inspect ${path}`);
  expect(damaged.code).toBe(1);
  expect(damaged.stdout).toMatch(/^FAIL: .*section "plate", at byte 256/m);
});

test.each([
  ['plan --mtbf 2x --cost 1s', /"2x": expected a time such as 0.5s, 10min or 2h/],
  ['plan --mtbf 2h,1h --cost 1s,2s', /mtbfSeconds\[1\] = 3600 s is below/],
  ['table 003', /table 003: expected 001 or 002/],
  ['figure 000', /--tolerance prints what its scheme survives/],
  ['figure 004 --tolerance', /it belongs to figure 000/],
  ['inspect /nowhere/at/all', /\/nowhere\/at\/all: ENOENT/],
])('%s ends with 2 and a sentence', async (line, text) => {
  const ran = await ft(line);
  expect([ran.code, ran.stdout]).toEqual([2, '']);
  expect(ran.stderr).toMatch(text);
});
