// Deaths outside of the usual course, with a process for each rank: kills by plan and what `run` says of them, a process that was declared
// dead and lives, a death before init() is through, rank 0's, the launcher's, and what a rank says of whom it waits for when one is dead.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode, startNode, untilGone } from '../support/helpers.ts';

const noNative = loadNative().reason;

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-deaths-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

const start = (ranks: number, story: string, ...options: string[]) => {
  const program = [code.fixture('ft-deaths-rank.ts'), story];
  return startNode([code.cli, 'run', '-n', String(ranks), '--mca', 'ft', 'on', ...options, ...program], { timeoutMs: 40_000 });
};
const run = (...args: Parameters<typeof start>) => start(...args).ended;

test('each kill of a plan is carried out and printed, rank 0 among them, until one is left', async () => {
  const { code: exitCode, stdout, stderr } = await run(3, 'last', '--kill', '1@10ms,0@40ms');
  expect(stderr).toMatch(/--kill: killing rank 1\n.*--kill: killing rank 0\n/s);
  expect(stderr).toMatch(/2 of 3 ranks died; the others came to their end/);
  expect(stdout).toContain('rank 2: failed 0 1, left 1');
  expect(exitCode, stderr).toBe(0);
}, 50_000);

test('a plan that was not carried out is exit code 3, with what is missing', async () => {
  const [listed, random] = await Promise.all([
    run(1, 'quick', '--kill', '0@1m'),
    run(1, 'quick', '--kill', 'random:seed=1,mtbf=100m,max=1'),
  ]);
  expect(listed.stderr).toContain('--kill: 0@60000ms could not be carried out: the rank, or the job, had ended before');
  expect(listed.code).toBe(3);
  expect(random.stderr).toContain('--kill: no rank was killed: the job had ended before the first time that came up');
  expect(random.code).toBe(3);
}, 50_000);

test('a random plan kills so many as it says, and never the last', async () => {
  const { code: exitCode, stdout, stderr } = await run(3, 'last', '--kill', 'random:seed=3,mtbf=5ms,max=9');
  expect(stderr.match(/--kill: killing (rank|process) \d/g)).toHaveLength(2);
  expect(stdout).toMatch(/rank \d: failed \d \d, left 1/);
  expect(exitCode, stderr).toBe(0);
}, 50_000);

test.skipIf(noNative !== undefined)(
  `collectives go through shared memory until a member dies or somebody revokes, and among those who are left again (${noNative ?? 'sm'})`,
  async () => {
    const { code: exitCode, stdout, stderr } = await run(4, 'memory');
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain('rank 0: ERR_PROC_FAILED; messages 0 0 0');
    for (const rank of [2, 3])
      expect(stdout).toContain(`rank ${rank}: ERR_PROC_FAILED ERR_PROC_FAILED ERR_REVOKED ERR_REVOKED; messages 0 0 0`);
  },
  50_000,
);

test('a process that was declared dead and lives ends itself with code 70 and a sentence, or ends every call with an error', async () => {
  const [exits, goesOn] = await Promise.all([run(3, 'declared'), run(3, 'declared', '--mca', 'ft_on_own_failure', 'error')]);
  for (const { stdout, stderr } of [exits, goesOn]) {
    for (const rank of [0, 2]) expect(stdout, stderr).toContain(`rank ${rank}: failed 1`);
    expect(stderr).toMatch(/this process, rank 1, was declared dead: /);
  }
  expect(exits.stdout).not.toContain('rank 1: ');
  expect(exits.stderr).toMatch(/rank 1 \(pid \d+\) exited with code 70/);
  expect(exits.code).toBe(0);
  expect(goesOn.stdout).toContain('rank 1: ERR_PROC_FAILED true, ERR_PROC_FAILED true, ERR_PROC_FAILED true, ERR_PROC_FAILED true');
  // Its own code is that of a program that failed.
  expect(goesOn.code).toBe(5);
}, 50_000);

test('waits() name the dead while their failure is not acknowledged', async () => {
  const { code: exitCode, stdout, stderr } = await run(3, 'waits');
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  const [before, after] = ['waits', 'acknowledged'].map((name) => JSON.parse(new RegExp(`${name}: (.*)`).exec(stdout)?.[1] ?? 'null'));
  expect(before).toEqual([expect.stringMatching(/; rank 1 of world \(process 1\) has failed: .*, and is not acknowledged$/)]);
  expect(after).toEqual([expect.not.stringContaining('failed')]);
}, 50_000);

test('a rank that dies before init() is through ends init() at the others, and a launcher that dies takes all ranks along', async () => {
  const early = run(3, 'dies-in-init');
  const job = start(2, 'long');
  const pids = [Number((await job.until(/\[0\] pid (\d+)/))[1]), Number((await job.until(/\[1\] pid (\d+)/))[1])];
  job.child.kill('SIGKILL');
  await untilGone(pids);
  const { code: exitCode, stdout, stderr } = await early;
  expect(stdout).not.toContain('came through');
  expect(stderr).toMatch(/rank 1 \(pid \d+\) was killed by SIGKILL/);
  expect(exitCode).not.toBe(0);
}, 50_000);
