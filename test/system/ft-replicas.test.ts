// Two replicas of each rank, as jobs: an unchanged program has the same results, and what is flipped, stalled or ended is found.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, type Ran, startNode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['replica-rank.mjs', 'replica-saves-rank.mjs', 'replica-steps-rank.mjs', 'ft-replica-computes-rank.ts']);
});
afterAll(() => code?.dispose());

const folders: string[] = [];
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'multirail-replicas-'));
  folders.push(folder);
  return folder;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const run = (options: string): Promise<Ran> =>
  startNode([code.cli, 'run', '-n', '3', ...options.split(' ').filter(Boolean), code.fixture('replica-rank.mjs')], { timeoutMs: 90_000 })
    .ended;
/** How often the job was started again, as the launcher tells. */
const relaunches = ({ stderr }: Ran): number => (stderr.match(/the job is started again, from a save/g) ?? []).length;
const results = ({ stdout }: Ran): Record<string, unknown>[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))))
    .sort((a, b) => a.rank - b.rank);

const COMPARISONS: readonly (readonly [options: string])[] = [
  [''],
  ['--mca ft_compare sha256'],
  ['--mca ft_compare full'],
  ['--mca btl self,tcp'],
];
test.each(drawTests('comparisons of replicas', COMPARISONS, 0.5))('an unchanged program has the same results %s', async (more) => {
  const [alone, pairs] = [await run(''), await run(`--replicas 2 ${more}`)];
  expect([alone.code, pairs.code, pairs.stderr]).toEqual([0, 0, '']);
  const [plain, replicated] = [results(alone), results(pairs)];
  expect(replicated.length).toBe(3);
  for (const [rank, result] of replicated.entries()) {
    expect(result).toMatchObject({ rank, size: 3, orders: 20, chances: 3, timedOut: 'ERR_TIMEOUT', role: 'lead' });
    expect(result.work).toBe(plain[rank].work);
  }
});

test.each(['promises', 'blocking'])('no process waits for what another one computes: %s', async (calls) => {
  const words = ['run', '-n', '2', '--replicas', '2', code.fixture('ft-replica-computes-rank.mjs'), newFolder(), calls];
  const ran = await startNode([code.cli, ...words], { timeoutMs: 60_000 }).ended;
  expect([ran.code, ran.stdout], ran.stderr).toEqual([0, '[0] all have computed at once\n']);
});

test.each(['lead', 'shadow'])('a bit that flips in a message of the %s is found before it leaves', async (replica) => {
  const ran = await run(`--replicas 2 --inject flip:rank=1,replica=${replica},at=50%,buffer=work,seed=3`);
  expect(ran.code, ran.stderr).toBe(76);
  expect(ran.stdout).toBe('');
  expect(ran.stderr).toMatch(
    /ERR_DIVERGED: the replicas of rank 1 \(processes 1 and 4\) differ: message \d+, of 800 bytes to rank \d with tag \d+, differs, first at byte \d+; crc32c [0-9a-f]{8} at the lead, [0-9a-f]{8} at the shadow; nothing of it has left; the last event in common is message \d+/,
  );
});

test('a job whose replicas differ is started again, and the fault does not come again', async () => {
  const ran = await run('--replicas 2 --on-diverged relaunch:2 --inject flip:rank=2,replica=shadow,send=3');
  expect(ran.code, ran.stderr).toBe(0);
  expect(ran.stderr).toContain('the job was started again 1 time and ends with exit code 0');
  expect(results(ran).length).toBe(3);
});

test('a replica that ends ends the job; one that is in a loop is late', async () => {
  expect((await run('--replicas 2 --inject exit:rank=0,replica=shadow,at=30%,code=9')).code).toBe(9);
  for (const replica of ['lead', 'shadow']) {
    const ran = await run(`--replicas 2 --inject stall:rank=1,replica=${replica},at=30%`);
    expect(ran.code, ran.stderr).toBe(76);
    expect(ran.stderr).toMatch(
      new RegExp(`the replicas of rank 1 .* differ: the ${replica} is late: it has used 1\\.\\d+ s of a processor`),
    );
  }
});

test('what does not go together is refused', async () => {
  expect((await run('--replicas 2 --spares 1')).stderr).toContain('--replicas does not go together');
  expect((await run('--on-diverged relaunch')).stderr).toContain('--on-diverged needs --replicas 2');
  expect((await run('--inject flop:rank=1')).code).toBe(2);
});

// ---------------------------------------------------------------- replicas that are slow, and not late

/** Starts a job of steps, and resolves with the pids of its processes, by number, once all have begun. */
async function startSteps(steps: number, ...options: string[]): Promise<{ pids: number[]; ended: Promise<Ran> }> {
  const folder = newFolder();
  const words = ['run', '-n', '2', '--replicas', '2', ...options, code.fixture('replica-steps-rank.mjs'), folder, String(steps), '20'];
  const { ended } = startNode([code.cli, ...words], { timeoutMs: 110_000 });
  while (readdirSync(folder).length < 4) await sleep(20);
  await sleep(200);
  return { pids: ['0', '1', '2', '3'].map((name) => Number(readFileSync(join(folder, name), 'utf8'))), ended };
}

/** Rails that were not made yet may have waited for a process that was stopped, and say so. */
async function expectWell(ended: Promise<Ran>): Promise<void> {
  const ran = await ended;
  expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringMatching(/late|differ/)]);
  const [first, second] = results(ran);
  expect(first.total).toBeGreaterThan(0);
  expect(second.total).toBe(first.total);
}

/** A minute, where it is asked for; it takes as long. */
const HELD_MS = 1000 * Number(process.env.MULTIRAIL_TEST_HELD_SECONDS ?? 4);

test.each([
  ['shadow', 3],
  ['lead', 0],
])('a %s that is stopped is not late', async (_, number) => {
  const { pids, ended } = await startSteps(60);
  process.kill(pids[number], 'SIGSTOP');
  await sleep(HELD_MS);
  process.kill(pids[number], 'SIGCONT');
  await expectWell(ended);
});

test('a shadow that gets hardly any processor is not late', async () => {
  const { pids, ended } = await startSteps(60);
  setPriority(pids[2], 19);
  const busy = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  await sleep(HELD_MS);
  for (const one of busy) one.kill('SIGKILL');
  await expectWell(ended);
});

test('a shadow that is killed leaves its rank to the lead, which goes on by itself', async () => {
  const { pids, ended } = await startSteps(60);
  process.kill(pids[3], 'SIGKILL');
  const ran = await ended;
  expect(ran.code, ran.stderr).toBe(0);
  expect(ran.stderr).toMatch(
    /the shadow of rank 1 \(pid \d+\) was killed by SIGKILL; the rank goes on by itself: what it sends is compared with nothing any more/,
  );
  const [first, second] = results(ran);
  expect(second.total).toBe(first.total);
});

test('a job that ends by the death of a lead is started again where that was asked for', async () => {
  const two = await startSteps(60, '--on-diverged', 'relaunch', '--mca', 'ft_takeover', 'off');
  process.kill(two.pids[1], 'SIGKILL');
  const again = await two.ended;
  expect([again.code, relaunches(again), results(again).length]).toEqual([0, 1, 2]);
  expect(again.stderr).toMatch(/the lead of a rank has died \(rank 1 \(pid \d+\) was killed by SIGKILL\); the job is started again/);
});

// ---------------------------------------------------------------- saves

const withSaves = async (validate: 'yes' | 'no', options: string, folder: string, everySteps = 5, restMs = 0): Promise<Ran> =>
  await startNode(
    [
      code.cli,
      'run',
      '-n',
      '2',
      '--replicas',
      '2',
      ...options.split(' ').filter(Boolean),
      code.fixture('replica-saves-rank.mjs'),
      folder,
      validate,
      String(everySteps),
      String(restMs),
    ],
    { timeoutMs: 90_000 },
  ).ended;
/** The one job that has saves there. */
const jobOf = (folder: string): string => readdirSync(folder)[0];
const FLIP = '--inject flip:rank=1,replica=shadow,at=51%,buffer=own,seed=3';

test('validated saves: a fault is found when the state is saved, and the save before it is gone back to', async () => {
  const right = results(await withSaves('yes', '', newFolder()));
  expect(right.map(({ from, save }) => [from, save])).toEqual([
    [0, undefined],
    [0, undefined],
  ]);
  const ran = await withSaves('yes', `--on-diverged relaunch:3 ${FLIP}`, newFolder());
  expect([ran.code, relaunches(ran)]).toEqual([0, 1]);
  expect(ran.stderr).toMatch(/differ: message \d+, a result of \d+ bytes, differs/);
  // Struck in step 15, found in that of the save behind step 20: gone back to the third save, which is behind step 15.
  for (const [rank, result] of results(ran).entries())
    expect(result).toMatchObject({ from: 15, save: 2, level: 'disk', sum: right[rank].sum });
});

test('saves that are not validated hold the fault: they are tried one after the other', async () => {
  const right = results(await withSaves('no', '', newFolder()));
  const folder = newFolder();
  const ran = await withSaves('no', `--on-diverged relaunch:9 ${FLIP}`, folder);
  // Found in the last step. Of the saves behind steps 5 to 25 (30 comes after it) those behind 25 and 20 hold it, and that behind 15 does not.
  expect([ran.code, relaunches(ran)]).toEqual([0, 3]);
  for (const [rank, result] of results(ran).entries()) expect(result).toMatchObject({ from: 15, save: 2, sum: right[rank].sum });
  expect(JSON.parse(readFileSync(join(folder, jobOf(folder), 'CHAIN.json'), 'utf8'))).toEqual({ newest: 4, back: 2 });
});

test('a fault that is in every save is gone back behind all of them', async () => {
  // Each run makes those again that come after the one that it began with: there are more in the end than are looked at.
  const ran = await withSaves('no', '--on-diverged relaunch:9 --inject flip:rank=0,replica=lead,at=1%,buffer=own,seed=5', newFolder());
  expect([ran.code, relaunches(ran)]).toEqual([0, 6]);
  for (const result of results(ran)) expect([result.from, result.save]).toEqual([0, undefined]);
});

test('a replica that is caught in a loop is late, and the job goes on from its newest save', async () => {
  const ran = await withSaves('yes', '--on-diverged relaunch:2 --inject stall:rank=0,replica=shadow,at=70%', newFolder());
  expect([ran.code, relaunches(ran)]).toEqual([0, 1]);
  for (const result of results(ran)) expect([result.from, result.save]).toEqual([20, 3]);
});

test('a damaged image is passed over for an older save, and once() is restored as it was', async () => {
  const folder = newFolder();
  const first = results(await withSaves('yes', '', folder, 10));
  const newest = readdirSync(join(folder, jobOf(folder)))
    .sort()
    .at(-1) as string;
  const image = join(folder, jobOf(folder), newest, 'rank-1.mrck');
  const bytes = readFileSync(image);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(image, bytes);
  const again = await withSaves('yes', '', folder, 10);
  expect(again.stderr).toMatch(/save 2 of epoch 0 at level disk cannot be read: .*rank-1\.mrck .*; an older one is looked for/);
  for (const [rank, result] of results(again).entries())
    expect(result).toMatchObject({ from: 20, save: 1, sum: first[rank].sum, chance: first[rank].chance });
});

test.each(['yes', 'no'] as const)('one whose other replica has died saves for both (validated: %s)', async (validate) => {
  const folder = newFolder();
  const first = await withSaves(validate, '--kill 1@1s', folder, 5, 100);
  expect([first.code, first.stderr]).toEqual([0, expect.stringMatching(/its shadow goes on in its place|takes the place of the lead/)]);
  // Saves behind steps 25 and 30 come long after the death.
  const again = results(await withSaves(validate, '', folder, 10));
  for (const [rank, result] of results(first).entries()) {
    expect(result).toMatchObject({ from: 0 });
    expect(again[rank]).toMatchObject({ from: 30, save: 5, sum: result.sum, chance: result.chance });
  }
});

test('with ft_replica_renew a job whose replica has died ends behind its next save', async () => {
  const folder = newFolder();
  const ended = await withSaves('no', '--mca ft_replica_renew process --kill #3@600ms', folder, 5, 50);
  expect([ended.code, ended.stdout], ended.stderr).toEqual([77, '']);
  const [, save] = /rank 1 lacks a replica, and save (\d+) is whole/.exec(ended.stderr) ?? [];
  const again = await withSaves('no', '', folder);
  expect(again.code, again.stderr).toBe(0);
  for (const result of results(again)) expect(result).toMatchObject({ from: 5 * (Number(save) + 1), save: Number(save) });
});

test('saves of two replicas are not those of one process: the option validate is the same at each start', async () => {
  const folder = newFolder();
  expect((await withSaves('no', '', folder, 10)).code).toBe(0);
  const ran = await withSaves('yes', '', folder, 10);
  expect(ran.code).not.toBe(0);
  expect(ran.stderr).toContain('has 4 images, and 2 were expected: start as many ranks, with the same option validate');
});
