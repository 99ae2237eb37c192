// A job of `multirail run` in two languages: rank 0 is Node, rank 1 the Python of examples/python-peer, which was written from
// docs/internals/OOB.md and docs/internals/PROTOCOL.md.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleInto } from '../support/bundle.mjs';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PEER = join(ROOT, 'examples/python-peer');

const python = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 8))']);
const why = python.status === 0 ? undefined : 'there is no python3 of 3.8 or later';
if (why !== undefined) console.log(`skipped: a job with a rank in Python: ${why}`);

let code: BuiltCode;
let folder: string | undefined;

beforeAll(async () => {
  code = await buildCode([]);
  folder = mkdtempSync(join(ROOT, '.cache', 'python-job-'));
  await bundleInto(folder, [join(PEER, 'job-rank0.mjs')], { alias: { multirail: join(ROOT, 'src/index.ts') } });
});
afterAll(() => {
  code?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

async function run(...more: string[]): Promise<string[]> {
  const command = ['run', '-n', '2', 'sh', join(PEER, 'job.sh'), join(folder as string, 'job-rank0.mjs'), ...more];
  const { code: status, stdout, stderr } = await startNode([code.cli, ...command], { input: '', timeoutMs: 60_000 }).ended;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.split('\n').filter(Boolean).sort();
}

const LINES = [
  '[0] rank 0, Node: hello from Python; 1000003 bytes, SHA-256 90366825506b1376',
  '[1] rank 1, Python: hello from Node; 1000003 bytes, SHA-256 5fb6bba41054000d',
];

test.skipIf(why !== undefined)('hello, modex, an eager message and a rendezvous each way, BYE, finalized', async () => {
  expect(await run()).toEqual(LINES);
});

test.skipIf(why !== undefined)('the channel to the launcher breaks in between: the session goes on over the next connection', async () => {
  expect(await run('cut')).toEqual(LINES);
});
