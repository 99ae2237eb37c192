// A shadow takes the place of its lead, in real jobs whose leads are killed at moments that are drawn: the program goes on as if nothing had been, its output
// too. MULTIRAIL_TEST_TAKEOVERS=N plays so many jobs of each kind.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Prng } from '../../src/util/prng.ts';
import { type BuiltCode, buildCode, type Ran, startNode } from '../support/helpers.ts';

const RANKS = 3;
const STEPS = 300;
const JOBS = Number(process.env.MULTIRAIL_TEST_TAKEOVERS ?? 1);
const SEED = process.env.MULTIRAIL_TEST_SAMPLE_SEED ?? String(Date.now() % 1_000_000);

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['replica-takeover-rank.mjs', 'replica-takeover-saves-rank.mjs']);
});
afterAll(() => code?.dispose());

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

interface Job {
  readonly ended: Promise<Ran>;
  pidOf(process: number): number;
  kill(process: number): void;
}

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'multirail-takeover-'));
  folders.push(folder);
  return folder;
};

/** Starts a job, and resolves once all of its processes have begun. */
async function start(calls: string, ...options: string[]): Promise<Job> {
  const folder = newFolder();
  return await startProgram([code.fixture('replica-takeover-rank.mjs'), folder, String(STEPS), calls], folder, options);
}

/** `folder`: where its processes leave their pids. */
async function startProgram(rank: readonly string[], folder: string, options: readonly string[]): Promise<Job> {
  const { ended } = startNode([code.cli, 'run', '-n', String(RANKS), '--replicas', '2', ...options, ...rank], { timeoutMs: 60_000 });
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  const pidOf = (number: number): number => Number(readFileSync(join(folder, `${number}`), 'utf8'));
  // A file may be there before its pid is in it.
  const begun = (): string[] => readdirSync(folder).filter((number) => pidOf(Number(number)) > 0);
  while (begun().length < 2 * RANKS && !isOver) await sleep(5);
  return { ended, pidOf, kill: (number) => void process.kill(pidOf(number), 'SIGKILL') };
}

/** What each rank has written, without the rank in front. */
function linesOf({ stdout }: Ran): string[][] {
  const lines: string[][] = Array.from({ length: RANKS }, () => []);
  for (const line of stdout.trim().split('\n')) {
    const [, rank, text] = /^\[(\d+)\] (.*)$/.exec(line) ?? [];
    lines[Number(rank)]?.push(text);
  }
  return lines;
}

/** All have come to the right end, and each line of theirs is there once. */
function expectWhole(ran: Ran, what: string): void {
  expect([ran.code, ran.stderr], what).toEqual([0, expect.not.stringContaining('were not kept')]);
  const steps = Array.from({ length: STEPS }, (_, step) => `step ${step}`);
  let total = 0;
  for (let step = 0; step < STEPS; step++) total += (RANKS * (RANKS - 1)) / 2 + RANKS * step;
  for (const [rank, lines] of linesOf(ran).entries()) {
    expect(lines.slice(0, -1), `${what}, rank ${rank}: ${ran.stderr}`).toEqual(steps);
    expect(JSON.parse(lines.at(-1) as string)).toEqual({ rank, total });
  }
}

const KINDS = [
  ['promises', []],
  ['blocking', []],
  ['promises', ['--mca', 'btl', 'self,tcp']],
  ['blocking', ['--mca', 'btl', 'self,tcp']],
] as const;

test.each(KINDS)('a lead that is killed is succeeded by its shadow: %s %s', async (calls, options) => {
  const prng = new Prng(`${SEED}/${calls}${options}`);
  for (let i = 0; i < JOBS; i++) {
    const job = await start(calls, ...options);
    const [rank, afterMs] = [prng.below(RANKS), prng.below(400)];
    const what = `seed ${SEED}, job ${i}: rank ${rank} after ${afterMs} ms`;
    await sleep(afterMs);
    job.kill(rank);
    const ran = await job.ended;
    expectWhole(ran, what);
    expect(ran.stderr, what).toMatch(
      new RegExp(`rank ${rank} \\(pid \\d+\\) was killed by SIGKILL; its shadow, process ${rank + RANKS}, takes its place`),
    );
  }
});

test.each(['promises', 'blocking'])('of each rank one replica is killed, of one the shadow: %s', async (calls) => {
  const prng = new Prng(`${SEED}/each/${calls}`);
  for (let i = 0; i < JOBS; i++) {
    const job = await start(calls);
    const kept = prng.below(RANKS);
    const spreadMs = prng.pick([0, 0, 300]);
    const ranks = prng.shuffle([0, 1, 2]);
    for (const rank of ranks) {
      job.kill(rank === kept ? rank + RANKS : rank);
      await sleep(prng.below(spreadMs + 1));
    }
    expectWhole(await job.ended, `seed ${SEED}, job ${i}: ranks ${ranks} within ${2 * spreadMs} ms, the shadow of ${kept}`);
  }
});

test('where a shadow takes no place, or both replicas of a rank are dead, the job ends', async () => {
  const off = await start('promises', '--mca', 'ft_takeover', 'off');
  off.kill(1);
  const ended = await off.ended;
  expect(ended.code, ended.stderr).toBe(137);
  expect(ended.stderr).toMatch(/rank 1 \(pid \d+\) was killed by SIGKILL; ending the job/);
  const both = await start('promises');
  both.kill(1);
  await sleep(100);
  both.kill(1 + RANKS);
  const ran = await both.ended;
  expect(ran.code, ran.stderr).toBe(137);
  expect(ran.stderr).toMatch(/the shadow of rank 1 \(pid \d+\) was killed by SIGKILL; ending the job/);
});

async function startSaving(steps: number, saves: string, ...options: string[]): Promise<Job> {
  const pids = newFolder();
  return await startProgram([code.fixture('replica-takeover-saves-rank.mjs'), pids, saves, String(steps)], pids, options);
}

/** What the ranks of a job that saves have come to: the last line of each. */
const sums = (ran: Ran): unknown[] => linesOf(ran).map((lines) => JSON.parse(lines.at(-1) as string));

test('a job that saves goes on saving, and what it has saved is begun with', async () => {
  const saves = newFolder();
  const right = sums(await (await startSaving(120, newFolder())).ended);
  const prng = new Prng(`${SEED}/saves`);
  const job = await startSaving(90, saves);
  const [rank, afterMs] = [prng.below(RANKS), prng.below(300)];
  await sleep(afterMs);
  job.kill(rank);
  const ran = await job.ended;
  expect(ran.code, `seed ${SEED}: rank ${rank} after ${afterMs} ms: ${ran.stderr}`).toBe(0);
  expect(ran.stderr).toContain('takes its place');
  expect(ran.stderr).not.toContain('not committed');
  const again = await (await startSaving(120, saves)).ended;
  expect(again.code, again.stderr).toBe(0);
  expect(sums(again)).toEqual((right as { from: number }[]).map((one) => ({ ...one, from: 90 })));
});

test.each(['lead', 'shadow'])('behind its next save a job whose %s has died has two replicas of each rank again', async (replica) => {
  const steps = 90;
  const right = sums(await (await startSaving(steps, newFolder())).ended);
  const prng = new Prng(`${SEED}/renewed/${replica}`);
  for (let i = 0; i < JOBS; i++) {
    const job = await startSaving(steps, newFolder(), '--on-replica-death', 'relaunch');
    const [rank, afterMs] = [prng.below(RANKS), prng.below(100)];
    const what = `seed ${SEED}, job ${i}: rank ${rank} after ${afterMs} ms`;
    await sleep(afterMs);
    const number = replica === 'lead' ? rank : rank + RANKS;
    const killed = job.pidOf(number);
    job.kill(number);
    const ran = await job.ended;
    expect([ran.code, ran.stderr], what).toEqual([
      0,
      expect.stringContaining('the job was started again 1 time and ends with exit code 0'),
    ]);
    const [, save] = new RegExp(`rank ${rank} lacks a replica, and save (\\d+) is whole`).exec(ran.stderr) ?? [];
    // Saves are made every three steps, the first one has the number 0.
    const from = 3 * (Number(save) + 1);
    expect(sums(ran), `${what}: ${ran.stderr}`).toEqual((right as { from: number }[]).map((one) => ({ ...one, from })));
    expect(job.pidOf(number), what).not.toBe(killed);
    // Nothing is written twice, and nothing is left out.
    const lines = Array.from({ length: steps }, (_, step) => `step ${step}`);
    for (const [one, written] of linesOf(ran).entries()) expect(written.slice(0, -1), `${what}, rank ${one}`).toEqual(lines);
  }
});
