// The process of a rank on this host: its end, and what is kept of it behind that.
import process from 'node:process';
import { expect, test } from 'vitest';
import { LocalRank } from '../../../src/launch/run/rank-child.ts';

const start = (...command: string[]): Promise<LocalRank> =>
  LocalRank.start(
    { rank: 0, command, cwd: undefined, env: process.env, secret: new Uint8Array(32), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    () => undefined,
  );

test('keeps its number and its end, and lets go of its streams when they are closed', async () => {
  const rank = await start(process.execPath, '-e', 'console.log("there"); process.exitCode = 3');
  const { pid } = rank;
  expect(pid).toBeGreaterThan(1);
  const said: unknown[] = [];
  rank.stdout?.on('data', (bytes) => said.push(String(bytes)));
  rank.stderr?.resume();
  expect(await rank.ended).toEqual({ code: 3, signal: undefined });
  await rank.closed;
  expect(said.join('')).toBe('there\n');
  expect([rank.pid, rank.stdin, rank.stdout, rank.stderr]).toEqual([pid, null, null, null]);
  rank.kill('SIGKILL');
  rank.release();
});

test('a program that is not there is refused with the error of the system', async () => {
  await expect(start('/nowhere/program')).rejects.toMatchObject({ code: 'ENOENT' });
});
