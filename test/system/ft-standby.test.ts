// Processes that stand by, as processes: one that dies while it is called in, one that dies unneeded, and jobs whose ranks are all dead.
import process from 'node:process';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, type Running, startNode } from '../support/helpers.ts';

let code: BuiltCode;
const running: Running[] = [];
beforeAll(async () => {
  code = await buildCode(['ft-standby.ts']);
}, 60_000);
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

function run(line: string, part: string): Running {
  const job = startNode([code.cli, 'run', ...line.split(' '), code.fixture('ft-standby.ts'), part], { timeoutMs: 40_000 });
  running.push(job);
  return job;
}

/** Waits until so many of the processes have said it. */
async function said(job: Running, text: RegExp, times: number): Promise<void> {
  while ((job.output().stdout.match(new RegExp(text, 'g')) ?? []).length < times) await new Promise((resolve) => setTimeout(resolve, 20));
}

test('a standby that dies while it is called in is replaced by the next one', async () => {
  const job = run('-n 3 --spares 2', 'replace');
  await said(job, /at work/, 3);
  const pids = [...job.output().stdout.matchAll(/process (\d+) has pid (\d+)/g)]
    .sort((a, b) => Number(a[1]) - Number(b[1]))
    .map(([, , pid]) => Number(pid));
  expect(pids.length).toBe(5);
  // It is called, and cannot answer.
  process.kill(pids[3], 'SIGSTOP');
  process.kill(pids[1], 'SIGKILL');
  await said(job, /replacing/, 2);
  process.kill(pids[3], 'SIGKILL');
  const { code: exitCode, stdout, stderr } = await job.ended;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  expect(stdout.match(/the sum is 3 with 0 4 2/g)?.length).toBe(3);
  expect(stderr).toContain('2 of 5 processes died; 1 of 2 that stood by took the place of one of them; the others came to their end');
}, 50_000);

test('a standby that dies is taken out of the pool, and fails nobody', async () => {
  const { code: exitCode, stdout, stderr } = await run('-n 2 --spares 1 --kill #2@100ms', 'pool').ended;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  expect(stdout.match(/1 stand by/g)?.length).toBe(2);
  expect(stderr).toContain('--kill: killing process 2');
}, 50_000);

test('where all ranks are dead the standbys leave, and the job has failed', async () => {
  const { code: exitCode, stdout, stderr } = await run('-n 1 --spares 2 --kill 0@100ms', 'pool').ended;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(137);
}, 50_000);

test.each([
  ['-n 2 --spares 1 --kill 2@1s', /--kill names rank 2, but ranks go from 0 to 1/],
  ['-n 2 --spares 1 --kill #3@1s', /--kill names process 3, but processes go from 0 to 2/],
  ['-n 2 --mca ft_spares 2', /ft_spares = 2 in a job of 2 processes: at least one of them has to work/],
])('%s is refused', async (line, text) => {
  const { code: exitCode, stderr } = await run(line, 'pool').ended;
  expect(exitCode).not.toBe(0);
  expect(stderr).toMatch(text);
});
