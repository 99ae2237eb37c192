// Many ranks on one processor: a job that starts, meets and leaves says nothing, since nothing is wrong. Real processes; nothing is timed.
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

const RANKS = 40;
const hasTaskset = spawnSync('taskset', ['--version']).status === 0;

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['crowd-rank.mjs']);
}, 60_000);
afterAll(() => code?.dispose());

test.skipIf(!hasTaskset)(`${RANKS} ranks on one processor start, meet and leave without a warning`, { timeout: 240_000 }, async () => {
  const args = ['-c', '0', process.execPath, code.cli, 'run', '-n', String(RANKS), code.fixture('crowd-rank.mjs')];
  const { code: exitCode, stdout, stderr } = await startNode(args, { program: 'taskset', timeoutMs: 230_000 }).ended;
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
  expect(stdout.match(/OK/g)).toHaveLength(RANKS);
});
