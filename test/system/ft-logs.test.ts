// Asynchronous recovery with a process for each rank, which dies by SIGKILL: only its successor begins again, and the end is bit for bit that of
// the undisturbed run.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';
import { playLogs } from '../support/logs-play.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-logs-rank.ts', 'ft-helped-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

const play = (mode: string, deaths: readonly string[], spares = 1, mca: readonly string[] = []) =>
  playLogs(code, { mode, deaths, spares, mca });

let still: Awaited<ReturnType<typeof play>>;
let stillSync: typeof still;
let stillHalves: typeof still;
beforeAll(async () => {
  [still, stillSync, stillHalves] = await Promise.all([play('async', [], 0), play('sync', [], 0), play('halves', [], 0)]);
}, 60_000);

const cases: readonly [what: string, mode: string, deaths: readonly string[]][] = [
  [
    'rank 0 dies before there is a save, another one after a save, and the successor of rank 0 at the end',
    'async',
    ['0@3', '3@10', '4@17'],
  ],
  ['one dies, and its successor, and then two in the same step that hold no copies of each other', 'async', ['2@6', '4@5', '1@13', '3@13']],
  ['two neighbours die in the same step, with two copies of each image', 'double', ['1@11', '2@11']],
  ['other communicators: one dies between making two of them, and another one before there is a save', 'halves', ['0@-1', '1@3.5']],
  [
    'other communicators: the one that leads them dies after a save, while it makes another one; another one while one is freed, and its successor',
    'halves',
    ['0@10.6', '2@15.7', '5@15.6'],
  ],
  ['blocking calls: one dies in the middle, and its successor', 'sync', ['2@10', '4@10']],
];

test.concurrent.each(cases)('%s', { timeout: 60_000 }, async (_, mode, deaths) => {
  const undisturbed = mode === 'sync' ? stillSync : mode === 'halves' ? stillHalves : still;
  expect(undisturbed.status, undisturbed.all).toBe(0);
  expect(undisturbed.digests, undisturbed.all).toHaveLength(4);
  const { status, all, digests, bodies, total } = await play(mode, deaths, deaths.length);
  expect(status, all).toBe(0);
  expect(digests, all).toEqual(undisturbed.digests);
  expect(total, all).toMatchObject({ failures: deaths.length, inPlace: deaths.length });
  // Whoever lives runs its program once.
  const processes = bodies.map(([, , process]) => process).sort();
  expect(processes, all).toEqual(Array.from({ length: 4 + deaths.length }, (__, process) => process));
  expect(all).not.toMatch(/no recovery in place/);
});

test.concurrent('too few stand by: all go back, and are told why', { timeout: 60_000 }, async () => {
  const { status, all } = await play('async', ['1@10', '2@15'], 1);
  expect(status, all).not.toBe(0);
  expect(all).toMatch(/ERR_SPARES: rank 2 \(process 2\)/);
});

test.concurrent('no copy is left: all go back to the beginning, and come to the same end', { timeout: 60_000 }, async () => {
  const { status, all, digests, bodies, total } = await play('async', ['1@11', '2@11'], 2);
  expect(status, all).toBe(0);
  expect(digests, all).toEqual(still.digests);
  expect(all).toMatch(/no recovery in place: no copy of an image of save 1 of epoch 0 is left; all ranks go back/);
  expect(bodies.filter(([, step]) => step === 0).length, all).toBe(8);
  expect(total, all).toMatchObject({ failures: 2, inPlace: 0 });
});

test.concurrent('a log that is too small is told, and a failure takes all back', { timeout: 60_000 }, async () => {
  const { status, all, digests } = await play('unsaved', ['1@16'], 1, ['ft_log_bytes_max=300000']);
  expect(status, all).toBe(0);
  expect(digests, all).toEqual(still.digests);
  expect(all.match(/the log of messages is full \(300000 bytes, ft_log_bytes_max\)/g)?.length, all).toBeGreaterThanOrEqual(4);
});

test.concurrent('a log that is filling up makes a save due', { timeout: 60_000 }, async () => {
  const { status, all, digests, bodies } = await play('unsaved', ['1@17'], 1, ['ft_log_bytes_max=8000000']);
  expect(status, all).toBe(0);
  expect(digests, all).toEqual(still.digests);
  expect(all).not.toMatch(/the log of messages is full|no recovery in place/);
  expect(bodies.find(([, , process]) => process === 4)?.[1], all).toBeGreaterThan(0);
});

test.concurrent.each([
  ['drifts', ''],
  ['late', ', also where the deaths that follow are seen before the word of the abort'],
])('a program that does not repeat itself is caught (%s)%s', { timeout: 60_000 }, async (mode) => {
  // More stand by: none of them takes the place of the one that did not repeat itself.
  const { status, all, bodies } = await play(mode, ['1@10'], 2);
  expect(status, all).toBe(1);
  expect(all).toMatch(
    /rank 4 \(pid \d+\) aborted the job with code 1: ERR_REPLAY: message \d+ of context \d+ to rank \d, with tag \d, has \d+ bytes and digest \w+; before the failure it had \d+ bytes and digest \w+/,
  );
  expect(all).not.toMatch(/ERR_SPARES/);
  expect(bodies.filter(([rank]) => rank === 1).length, all).toBe(2);
});

test('a process that stands by helps the successor of a plate to catch up, and its bits are those of the undisturbed one', {
  timeout: 60_000,
}, async () => {
  const example = fileURLToPath(new URL('../../examples/ft-heat.mjs', import.meta.url));
  const words = ['--seconds', '6', '--every', '150', '--recovery', 'asynchronous', '--helpers', '1', '--verbose'];
  const run = [code.cli, 'run', '-n', '4', '--spares', '2', '--kill', '2@3s', example, ...words];
  const { code: status, stdout, stderr } = await startNode(run, { timeoutMs: 50_000 }).ended;
  expect(status, stderr).toBe(0);
  expect(stdout).toMatch(/recovered from 1 failures \(1 asynchronous\)/);
  expect(stderr).toMatch(/rank 2 has caught up: [1-9]\d* steps were shared/);
});

test('a program of blocking calls is helped by one of blocking calls', { timeout: 60_000 }, async () => {
  const ends = async (mode: string, spares: string): Promise<readonly string[][]> => {
    const words = [code.cli, 'run', '-n', '2', '--spares', spares, code.fixture('ft-helped-rank.ts'), mode];
    const { code: status, stdout, stderr } = await startNode(words, { timeoutMs: 50_000 }).ended;
    expect(status, stderr).toBe(0);
    return [...stdout.matchAll(/rank (\d) ends with (\d+) and (\d+) shared/g)].map(([, ...found]) => found).sort();
  };
  const undisturbed = await ends('lives', '1');
  const helped = await ends('dies', '2');
  expect(undisturbed).toHaveLength(2);
  expect(helped.map(([rank, end]) => [rank, end])).toEqual(undisturbed.map(([rank, end]) => [rank, end]));
  expect(helped.map(([, , shared]) => Number(shared) > 0)).toEqual([false, true]);
});
