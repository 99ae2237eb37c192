// Three replicas of each rank, as jobs: one that is struck is outvoted, healed or left behind, and the job ends well without being started again.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, type Ran, startNode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

let code: BuiltCode;
const folders: string[] = [];
beforeAll(async () => {
  code = await buildCode(['replica-rank.mjs', 'replica-saves-rank.mjs', 'replica-steps-rank.mjs', 'replica-heal-rank.mjs']);
});
afterAll(() => {
  code?.dispose();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'multirail-votes-'));
  folders.push(folder);
  return folder;
};
const run = (ranks: number, options: string, fixture: string, ...words: string[]): Promise<Ran> =>
  startNode([code.cli, 'run', '-n', String(ranks), ...options.split(' ').filter(Boolean), code.fixture(fixture), ...words], {
    timeoutMs: 90_000,
  }).ended;
const results = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line.includes('{"'))
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))));
const byRank = ({ stdout }: Ran) => results(stdout).sort((a, b) => Number(a.rank) - Number(b.rank));

test('an unchanged program has the same results, and nothing is said', async () => {
  const [alone, three] = [await run(3, '', 'replica-rank.mjs'), await run(3, '--replicas 3', 'replica-rank.mjs')];
  expect([alone.code, three.code, three.stderr]).toEqual([0, 0, '']);
  const plain = byRank(alone);
  expect(byRank(three).map(({ work }) => work)).toEqual(plain.map(({ work }) => work));
});

const FLIPS: readonly (readonly [replica: string, name: string, number: number, more: string])[] = [
  ['lead', 'lead', 1, ''],
  ['shadow', 'first shadow', 4, ''],
  ['shadow2', 'second shadow', 7, '--mca ft_compare sha256'],
  ['lead over tcp', 'lead', 1, '--mca ft_compare full --mca btl self,tcp'],
];
test.each(drawTests('flips that are outvoted', FLIPS, 0.5))(
  'a bit that flips in a message of the %s is outvoted, and the right message leaves',
  async (where, name, number, more) => {
    const [replica] = where.split(' ');
    const plain = byRank(await run(3, '', 'replica-rank.mjs'));
    const ran = await run(3, `--replicas 3 ${more} --inject flip:rank=1,replica=${replica},at=50%,buffer=work,seed=3`, 'replica-rank.mjs');
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stderr).toMatch(
      new RegExp(`the ${name} of rank 1 \\(process ${number}\\) is outvoted in message \\d+, of 800 bytes to rank \\d`),
    );
    // Once, however often it differs.
    expect(ran.stderr.match(/is outvoted/g)).toHaveLength(1);
    if (!more.includes('full'))
      expect(ran.stderr).toMatch(/with tag \d+: (crc32c|sha256) [0-9a-f]+, and [0-9a-f]+ at the two others; theirs is sent/);
    expect(byRank(ran).map(({ work }) => work)).toEqual(plain.map(({ work }) => work));
  },
);

const REPLICAS = ['lead', 'shadow', 'shadow2'] as const;
test.each(
  drawTests(
    'replicas that are healed',
    REPLICAS.map((name) => [name] as const),
  ),
)('validate() and validateSync() heal the %s', async (replica) => {
  const ran = await run(
    2,
    `--replicas 3 --inject flip:rank=1,replica=${replica},at=50%,buffer=held,seed=3;flip:rank=1,replica=${replica},at=70%,buffer=held,seed=9`,
    'replica-heal-rank.mjs',
  );
  expect(ran.code, ran.stderr).toBe(0);
  const told = results(ran.stderr).sort((a, b) => Number(a.number) - Number(b.number));
  const struck = { lead: 1, shadow: 3, shadow2: 5 }[replica];
  expect(told.map(({ number, first, second, sum, healed }) => [number, first, second, sum, healed])).toEqual(
    [0, 1, 2, 3, 4, 5].map((number) => [number, true, true, 2 * 1999 + 1, number === struck ? 2 : 0]),
  );
  expect(told[1]).toMatchObject({ outvoted: 2, corrected: replica === 'lead' ? 2 : 0 });
});

test('a shadow that ends, is in a loop, or is killed is left behind', async () => {
  const ended = await run(3, '--replicas 3 --inject exit:rank=0,replica=shadow,at=30%,code=9', 'replica-rank.mjs');
  expect([ended.code, byRank(ended).length]).toEqual([0, 3]);
  expect(ended.stderr).toMatch(/the first shadow of rank 0 \(pid \d+\) exited with code 9; the rank goes on with its other shadow/);
  const late = await run(3, '--replicas 3 --inject stall:rank=1,replica=shadow2,at=30%', 'replica-rank.mjs');
  expect([late.code, byRank(late).length]).toEqual([0, 3]);
  expect(late.stderr).toMatch(
    /process 7, a shadow of rank 1, is to leave the job, which goes on with two replicas of that rank: the second shadow is late/,
  );
});

test('a lead that ends or is in a loop ends the job', async () => {
  expect((await run(3, '--replicas 3 --inject exit:rank=0,replica=lead,at=30%,code=9', 'replica-rank.mjs')).code).toBe(9);
  const ran = await run(3, '--replicas 3 --on-diverged relaunch --inject stall:rank=1,replica=lead,at=30%', 'replica-rank.mjs');
  expect([ran.code, byRank(ran).length]).toEqual([0, 3]);
  expect(ran.stderr).toMatch(/the (first|second) shadow of rank 1 \(process [47]\) leaves the job, .*: the lead is late: /);
  expect(ran.stderr).toContain('the job was started again 1 time and ends with exit code 0');
});

test('with both shadows killed the lead goes on by itself; what is left of three compares as a pair', async () => {
  const folder = newFolder();
  const { ended } = startNode([code.cli, 'run', '-n', '2', '--replicas', '3', code.fixture('replica-steps-rank.mjs'), folder, '60', '20'], {
    timeoutMs: 110_000,
  });
  while (readdirSync(folder).length < 6) await sleep(20);
  await sleep(200);
  for (const number of [3, 5]) {
    process.kill(Number(readFileSync(join(folder, `${number}`), 'utf8')), 'SIGKILL');
    await sleep(300);
  }
  const ran = await ended;
  expect(ran.code, ran.stderr).toBe(0);
  expect(ran.stderr).toMatch(/the first shadow of rank 1 \(pid \d+\) was killed by SIGKILL; the rank goes on with its other shadow/);
  expect(ran.stderr).toMatch(/the second shadow of rank 1 \(pid \d+\) was killed by SIGKILL; the rank goes on by itself/);
  const [first, second] = byRank(ran);
  expect(second.total).toBe(first.total);
  const pair = await run(
    3,
    '--replicas 3 --inject exit:rank=1,replica=shadow,at=10%;flip:rank=1,replica=shadow2,at=50%,buffer=work,seed=3',
    'replica-rank.mjs',
  );
  expect(pair.code, pair.stderr).toBe(76);
  expect(pair.stderr).toMatch(/the replicas of rank 1 \(processes 1 and 7\) differ: message \d+, of 800 bytes/);
});

test.each(['lead', 'shadow'])('a save gives the %s the state of the two others, and nobody goes back', async (replica) => {
  const right = byRank(await run(2, '--replicas 3', 'replica-saves-rank.mjs', newFolder(), 'yes'));
  const struck = `--replicas 3 --inject flip:rank=1,replica=${replica},at=51%,buffer=own,seed=3`;
  const ran = await run(2, struck, 'replica-saves-rank.mjs', newFolder(), 'yes');
  expect(ran.code, ran.stderr).toBe(0);
  expect(ran.stderr).toMatch(/is outvoted in message \d+, a result of \d+ bytes: .* at the two others; it gets theirs/);
  expect(ran.stderr).toMatch(/process [13] goes on with the state of the two other replicas, in save 3/);
  // Nothing differs any more: neither in a save nor in what is sent in the last step.
  expect(ran.stderr.match(/goes on with the state/g)).toHaveLength(1);
  expect(byRank(ran).map(({ from, sum }) => [from, sum])).toEqual(right.map(({ sum }) => [0, sum]));
});

test('two that are struck at once differ from all, and the job goes on from its newest save', async () => {
  const right = byRank(await run(2, '--replicas 3', 'replica-saves-rank.mjs', newFolder(), 'yes'));
  const flips = [1, 2].map((seed) => `flip:rank=1,replica=${['lead', 'shadow2'][seed - 1]},at=51%,buffer=own,seed=${seed}`).join(';');
  const ran = await run(2, `--replicas 3 --on-diverged relaunch --inject ${flips}`, 'replica-saves-rank.mjs', newFolder(), 'yes');
  expect(ran.code, ran.stderr).toBe(0);
  expect(ran.stderr).toMatch(
    /\(processes 1, 3 and 5\) differ: message \d+, a result of \d+ bytes, differs, first at byte \d+; crc32c \w+ at the lead, \w+ at the first shadow, \w+ at the second shadow/,
  );
  expect(byRank(ran).map(({ from, sum }) => [from, sum])).toEqual(right.map(({ sum }) => [15, sum]));
});

test.each([
  ['shadow', 5, 'rank 1 lacks a replica, and save'],
  ['lead', 1, 'the lead of a rank has died'],
])('a %s that was killed is there again behind a save', async (_, number, why) => {
  const right = byRank(await run(2, '--replicas 3', 'replica-saves-rank.mjs', newFolder(), 'yes'));
  const options = `--replicas 3 --on-replica-death relaunch --kill #${number}@700ms`;
  const ran = await run(2, options, 'replica-saves-rank.mjs', newFolder(), 'yes', '5', '50');
  expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining(why)]);
  expect(ran.stderr).toContain('the job was started again 1 time and ends with exit code 0');
  const [first, second] = byRank(ran);
  expect([first.sum, second.sum, second.from]).toEqual([right[0].sum, right[1].sum, first.from]);
  expect(first.from).toBeGreaterThan(0);
});

test('what does not go together is refused', async () => {
  const refused = async (options: string): Promise<string> => {
    const ran = await run(2, options, 'replica-rank.mjs');
    expect(ran.code).not.toBe(0);
    return ran.stderr;
  };
  expect(await refused('--replicas 4')).toContain('expected a whole number from 1 to 3');
  expect(await refused('--replicas 3 --spares 1')).toContain('--replicas does not go together');
  expect(await refused('--on-replica-death relaunch')).toContain('--on-replica-death needs --replicas 2 or 3');
  expect(await refused('--replica-place host')).toContain('--replica-place needs --replicas 2 or 3');
  expect(await refused('--replicas 3 --replica-place host')).toContain('three replicas of each of 2 ranks do not fit on different hosts');
  expect(await refused('--replicas 3 --replica-place core --hosts localhost:5')).toContain(
    'room for 1 ranks of three replicas each, and 2',
  );
  expect(await refused('--replicas 2 --inject flip:rank=0,replica=shadow2,send=1')).toContain('the third of three replicas');
  const unvalidated = await run(2, '--replicas 3', 'replica-saves-rank.mjs', newFolder(), 'no');
  expect(unvalidated.code).toBe(1);
  expect(unvalidated.stderr).toContain('validate: false does not go together with three replicas');
  const help = await startNode([code.cli, 'run', '--help'], { timeoutMs: 30_000 }).ended;
  expect(help.stdout.replace(/\s+/g, ' ')).toContain('of 3, two that agree are right');
});
