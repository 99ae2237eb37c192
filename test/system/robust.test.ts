// What a message layer must bear, with real processes over real sockets: a rank that computes, a rank that is stopped, a rank that
// does not receive, many ranks. Each over two TCP rails on loopback.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['robust-rank.mjs']);
}, 60_000);
afterAll(() => code?.dispose());

function job(ranks: number, scenario: string, timeoutMs = 90_000) {
  const args = ['run', '-n', String(ranks), '--mca', 'btl_tcp_links', '2', code.fixture('robust-rank.mjs'), scenario];
  return startNode([code.cli, ...args], { timeoutMs });
}

async function expectOk(ranks: number, scenario: string, timeoutMs?: number): Promise<string> {
  const { code: exitCode, stdout, stderr } = await job(ranks, scenario, timeoutMs).ended;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  expect(stdout.match(/OK /g)?.length).toBe(ranks);
  console.log(stdout.split('\n').filter((line) => line.includes('OK'))[0]);
  return stdout;
}

async function expectStoppedOk(): Promise<void> {
  const running = job(2, 'stopped', 120_000);
  const first = await running.until(/\[0\] PID (\d+)/);
  const second = await running.until(/\[1\] PID (\d+)/);
  for (const pid of [Number(first[1]), Number(second[1])]) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    process.kill(pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    process.kill(pid, 'SIGCONT');
  }
  const { code: exitCode, stdout, stderr } = await running.ended;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  expect(stdout.match(/OK /g)?.length).toBe(2);
}

const CASES: readonly (readonly [name: string, play: () => Promise<unknown>])[] = [
  ['a receiver that computes for 10 s while 64 MiB are on the way loses no rail and no byte', () => expectOk(2, 'compute')],
  ['either side stopped for 10 s (SIGSTOP) loses no rail and no byte', expectStoppedOk],
  ['1 GiB at a rank that posts no receive keeps both processes under 300 MB above idle', () => expectOk(2, 'memory')],
  ['32 ranks exchange all-to-all messages over 2 rails each', () => expectOk(32, 'alltoall', 110_000)],
];
test.each(drawTests('robust', CASES, 0.5))('%s', { timeout: 150_000 }, async (_, play) => {
  await play();
});
