// Ranks that go back by groups, with a process for each rank, which dies by SIGKILL: its group begins again from its own save and the other one goes
// on, and the end is bit for bit that of the undisturbed run.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { playLogs } from '../support/logs-play.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-logs-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

const play = (mode: string, deaths: readonly string[], spares = 1, more: Readonly<Record<string, string>> = {}) =>
  playLogs(code, { mode, deaths, spares, env: { FT_GROUPS: '2', ...more } });

let still: Awaited<ReturnType<typeof play>>;
let stillHalves: typeof still;
beforeAll(async () => {
  [still, stillHalves] = [await play('async', [], 0), await play('halves', [], 0)];
}, 120_000);

// Two groups: ranks 0 and 1 save in steps 4, 8 and 12, ranks 2 and 3 in steps 2, 6, 10 and 14. Images of rank 0 are at rank 2, those of rank 1 at 3.
const cases: readonly [what: string, mode: string, deaths: readonly string[]][] = [
  ['one dies before there is a save of its group, and its successor after one', 'async', ['1@3', '4@12']],
  ['two of one group die', 'async', ['0@11', '1@11']],
  ['two of different groups die, one of which leads all', 'async', ['0@10', '3@10']],
  [
    'other communicators: one dies between making two of them, and the other one of its group after it has begun again',
    'halves',
    ['0@-1', '1@3.5'],
  ],
  ['other communicators: one dies while it makes another one', 'halves', ['1@10.6']],
  ['blocking calls: one dies in the step of its save, and its successor', 'sync', ['2@10', '4@10']],
];

test.each(cases)('%s', { timeout: 60_000 }, async (_, mode, deaths) => {
  const undisturbed = mode === 'halves' ? stillHalves : still;
  expect(undisturbed.status, undisturbed.all).toBe(0);
  expect(undisturbed.digests, undisturbed.all).toHaveLength(4);
  const { status, all, digests, total } = await play(mode, deaths, deaths.length);
  expect(status, all).toBe(0);
  expect(digests, all).toEqual(undisturbed.digests);
  expect(total, all).toMatchObject({ failures: deaths.length, inPlace: deaths.length });
  expect(all).not.toMatch(/no recovery in place/);
});

// Ranks 0 and 1, and 2 and 3; 0 and 2 lead. The process is struck that has the other group's copies, or its turn, or whose copies are on their way.
const strikes: readonly [what: string, mode: string, strikes: readonly string[]][] = [
  ['the holder of copies of the group that saves, while they leave', 'async', ['0:SPREADING:2']],
  ['a member of the group that saves, as another one has the copies of all', 'async', ['3:DONE:2']],
  ['the leader of a group, while a member waits for its turn', 'async', ['1:WAITING:0']],
  ['one of the other group, between the numbers and the copy', 'async', ['2:CUT:1']],
  ['one of each group, while one of them saves', 'async', ['2:SPREADING:0', '2:SPREADING:3']],
  ['blocking calls: the holder, while copies leave', 'sync', ['2:SPREADING:0']],
];

test.each(strikes)('in a save: %s', { timeout: 60_000 }, async (_, mode, strikes) => {
  const pids = mkdtempSync(join(tmpdir(), 'multirail-groups-'));
  try {
    const more = { FT_STRIKES: strikes.join(' '), FT_PIDS: pids };
    const { status, all, digests, total } = await play(mode, [], strikes.length, more);
    expect(status, all).toBe(0);
    expect(all.match(/, and kills process/g), all).toHaveLength(strikes.length);
    expect(digests, all).toEqual(still.digests);
    expect(total, all).toMatchObject({ failures: strikes.length, inPlace: strikes.length });
    expect(all).not.toMatch(/no recovery in place/);
  } finally {
    rmSync(pids, { recursive: true, force: true });
  }
});

test('the others go on: only the group of the dead begins again', { timeout: 60_000 }, async () => {
  const { status, all, digests, bodies } = await play('async', ['1@10'], 1);
  expect(status, all).toBe(0);
  expect(digests, all).toEqual(still.digests);
  expect(
    bodies.filter(([rank]) => rank >= 2),
    all,
  ).toHaveLength(2);
  expect(
    bodies
      .filter(([, step]) => step > 0)
      .map(([rank, step]) => [rank, step])
      .sort(),
    all,
  ).toEqual([
    [0, 8],
    [1, 8],
  ]);
});
