// Saves and recovery with a process for each rank: a job that is killed as a whole goes on from its folder, by itself with --restarts; one
// that is told to end saves before; the wrong number of ranks and a damaged save are told, and a program that cannot be saved is told why.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
let folder: string;
beforeAll(async () => {
  code = await buildCode(['ft-saves-rank.ts']);
  folder = mkdtempSync(join(tmpdir(), 'multirail-saves-'));
}, 60_000);
afterAll(() => {
  code?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function startIn(where: string, ranks: number, mode: string, ...more: string[]) {
  const words = [code.cli, 'run', '-n', String(ranks), '--mca', 'ft', 'on', ...more, code.fixture('ft-saves-rank.ts'), mode, where];
  return startNode(words, { timeoutMs: 40_000 });
}
const start = (ranks: number, mode: string, ...more: string[]) => startIn(folder, ranks, mode, ...more);

const resumedFrom = (stdout: string): number[] =>
  [...stdout.matchAll(/rank \d resumed from step (\d+) on disk, sum right/g)].map(([, step]) => Number(step));

/** A process and all that it has started. */
function tree(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return [
    pid,
    ...text
      .split(' ')
      .filter((one) => one !== '')
      .flatMap((one) => tree(Number(one))),
  ];
}

test('killed as a whole, a job goes on from its newest save on disk; a damaged one is passed over, and another size is told', async () => {
  const first = start(2, 'long');
  const saved = join(folder, 'job', '0-1', 'COMMIT.json');
  for (let i = 0; i < 1000 && !existsSync(saved); i++) await new Promise((resolve) => setTimeout(resolve, 20));
  for (const pid of tree(first.child.pid as number)) process.kill(pid, 'SIGKILL');
  await first.ended;
  // Epoch 0 alone: the newest number that is committed.
  const steps = readdirSync(join(folder, 'job'))
    .map((save) => join(folder, 'job', save, 'COMMIT.json'))
    .filter((file) => existsSync(file))
    .map((file) => (JSON.parse(readFileSync(file, 'utf8')) as { step: number }).step);
  const resumed = await start(2, 'short').ended;
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(resumedFrom(resumed.stdout)).toEqual([Math.max(...steps), Math.max(...steps)]);

  const other = await start(3, 'short').ended;
  expect(other.code).not.toBe(0);
  expect(other.stderr).toMatch(/ERR_CHECKPOINT: save \d+ of epoch \d+ of job "job" was made by 2 ranks, and there are 3/);

  // One byte of rank 1's image: of the newest save, which is passed over for the one before; then of all, and nobody begins from the beginning.
  const committed = (): { readonly folder: string; readonly epoch: number; readonly k: number; readonly step: number }[] =>
    readdirSync(join(folder, 'job'))
      .map((save) => join(folder, 'job', save))
      .filter((save) => existsSync(join(save, 'COMMIT.json')))
      .map((save) => ({
        folder: save,
        ...(JSON.parse(readFileSync(join(save, 'COMMIT.json'), 'utf8')) as { epoch: number; k: number; step: number }),
      }))
      .sort((a, b) => b.epoch - a.epoch || b.k - a.k);
  const damage = (save: string): void => {
    const image = join(save, 'rank-1.mrck');
    const bytes = readFileSync(image);
    bytes[300] ^= 1;
    writeFileSync(image, bytes);
  };
  const [newest, older] = committed();
  damage(newest.folder);
  const passed = await start(2, 'short').ended;
  expect(passed.code, passed.stderr).toBe(0);
  expect(passed.stderr).toMatch(
    /rank 1: save \d+ of epoch \d+ at level disk is passed over: ERR_CORRUPT: job\/\d+-\d+\/rank-1\.mrck of level disk is not the image/,
  );
  expect(resumedFrom(passed.stdout)).toEqual([older.step, older.step]);
  // What was made since is newer than all that was there, the damaged one too.
  const [next] = committed();
  expect(next.epoch).toBe(newest.epoch + 1);

  for (const { folder: save } of committed()) if (save !== newest.folder) damage(save);
  const damaged = await start(2, 'short').ended;
  expect(damaged.code).not.toBe(0);
  expect(damaged.stderr).toMatch(/ERR_CORRUPT: job\/\d+-\d+\/rank-1\.mrck of level disk is not the image of rank 1/);
}, 60_000);

test('without a save, a message that nobody receives is named', async () => {
  const { code: status, stderr } = await start(2, 'loud').ended;
  expect(status).not.toBe(0);
  expect(stderr).toMatch(/ERR_CHECKPOINT: rank 1 cannot save in step 1: .* 8 bytes from process 0 with tag 5 on world/);
}, 30_000);

test('--restarts: a job that nobody can recover starts again from its newest save, and at most so often', async () => {
  const where = join(folder, 'restarts');
  // Rank 1 dies in step 6 of the first start, and no process stands by; step 4 is the newest save of which all know then.
  const { code: status, stdout, stderr } = await startIn(where, 2, 'dies', '--restarts', '2').ended;
  expect(status, stderr).toBe(0);
  expect(stderr).toMatch(/after the death of 1 process .*; it is started again, from its newest save if it has one \(restart 1 of 2\)/);
  expect(stderr).toContain('the job was started again 1 time and ends with exit code 0');
  expect(resumedFrom(stdout)).toEqual([4, 4]);

  const given = await startIn(join(folder, 'always'), 2, 'dies-always', '--restarts', '1').ended;
  expect(given.code).not.toBe(0);
  expect(given.stderr).toContain('it is not started again: 1 restart is used up');
}, 90_000);

test('saves and recoveries are published on diagnostics channels', async () => {
  const { code: status, stdout, stderr } = await startIn(join(folder, 'traced'), 2, 'traced', '--spares', '1').ended;
  expect(status, stderr).toBe(0);
  const told = (name: string) => [...stdout.matchAll(new RegExp(`${name} (\\{.*\\})`, 'g'))].map(([, json]) => JSON.parse(json));
  const saves = told('save').filter(({ error }) => error === undefined);
  const ofRank0 = saves.filter(({ rank }) => rank === 0);
  expect(ofRank0.map(({ step }) => step)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
  expect(ofRank0.map(({ level }) => level)).toEqual(ofRank0.map(({ step }) => (step % 2 === 0 ? 'disk' : 'memory')));
  for (const { bytes, durationMs } of saves) expect([bytes > 0, durationMs > 0]).toEqual([true, true]);
  const recoveries = told('recovery');
  expect(recoveries.map(({ rank }) => rank).sort()).toEqual([0, 1]);
  for (const one of recoveries) expect(one).toMatchObject({ level: 'memory', failed: [1], save: 4, lostSteps: 1 });
}, 60_000);

/** Starts a job that goes on until it is told to end, tells it, and says in which step it has saved. */
async function told(
  where: string,
  mode: string,
  tell: (running: ReturnType<typeof start>, pids: readonly number[]) => void,
  more: readonly string[] = ['--restarts', '3'],
) {
  const running = startIn(where, 2, mode, ...more);
  const pids: number[] = [];
  for (const rank of [0, 1]) pids.push(Number((await running.until(new RegExp(`rank ${rank} pid (\\d+) is under way`)))[1]));
  tell(running, pids);
  const { code: status, stderr } = await running.ended;
  expect(status, stderr).toBe(75);
  expect(stderr).not.toContain('started again');
  return { stderr, step: Number(/it goes on from save \d+ in step (\d+) at level disk/.exec(stderr)?.[1]) };
}

test('told to end through the launcher, all ranks save at once, and the job goes on from there', async () => {
  const where = join(folder, 'told');
  const { step, stderr } = await told(where, 'told', ({ child }) => child.kill('SIGTERM'));
  expect(step, stderr).toBeGreaterThanOrEqual(20);
  const { code: status, stdout } = await startIn(where, 2, 'resumed').ended;
  expect(status).toBe(0);
  expect(resumedFrom(stdout)).toEqual([step, step]);
}, 90_000);

test('one rank is told, while the ranks are in different steps: all save in the same', async () => {
  const where = join(folder, 'skewed');
  const { step, stderr } = await told(where, 'told-skewed', (_, [, pid]) => void process.kill(pid, 'SIGTERM'));
  expect(step, stderr).toBeGreaterThanOrEqual(20);
  const { code: status, stdout } = await startIn(where, 2, 'resumed').ended;
  expect(status).toBe(0);
  expect(resumedFrom(stdout)).toEqual([step, step]);
}, 90_000);

test('told to end with saves in memory alone, a job ends with the same code, and says that nothing is left', async () => {
  const { stderr } = await told(folder, 'told-memory', (_, [pid]) => void process.kill(pid, 'SIGTERM'));
  expect(stderr).toMatch(/saves are in memory alone: it cannot go on from them/);
}, 60_000);

test.each([
  ['one is told', 'told-asynchronous', ['--restarts', '3']],
  ['one dies when all have saved, and its successor leaves with the others', 'told-asynchronous-last', ['--spares', '1']],
] as const)(
  'under asynchronous recovery all save with the next look at the logs: %s',
  async (_, mode, words) => {
    const where = join(folder, mode);
    const { step, stderr } = await told(where, mode, (__, [pid]) => void process.kill(pid, 'SIGTERM'), words);
    expect(step, stderr).toBeGreaterThanOrEqual(32);
    const { code: status, stdout } = await startIn(where, 2, 'resumed-asynchronous').ended;
    expect(status).toBe(0);
    expect(resumedFrom(stdout)).toEqual([step, step]);
  },
  90_000,
);
