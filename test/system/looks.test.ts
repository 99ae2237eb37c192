// Programs that look again and again, by test(), iprobe() or progressSync(), until what they look for has come: the event loop has no turn
// meanwhile. The more peers there are over tcp, the more is left to the kernel to tell.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['looks-rank.mjs']);
});
afterAll(() => code?.dispose());

const { reason } = loadNative();
// Without it the rails need the event loop, and blocking calls are refused.
if (reason !== undefined) console.log(`skipped: looks without the event loop: no native part: ${reason}`);

test.skipIf(reason !== undefined).each([
  ['iprobe', '-n 7 --mca btl self,tcp'],
  ['any', '-n 7 --mca btl self,tcp'],
  ['test', '-n 7 --mca btl self,tcp'],
  ['testAny', '-n 7 --mca btl self,tcp'],
  ['progress', '-n 7 --mca btl self,tcp'],
  ['iprobe', '-n 3 --mca btl self,tcp'],
  ['test', '-n 3 --mca btl self,sm'],
  ['iprobe', '-n 3 --replicas 3 --mca btl self,tcp'],
])('%s in a loop, %s', async (how, options) => {
  const {
    code: exit,
    stdout,
    stderr,
  } = await startNode([code.cli, 'run', ...options.split(' '), code.fixture('looks-rank'), how], {
    timeoutMs: 90_000,
  }).ended;
  const size = Number(options.split(' ')[1]);
  expect([exit, stdout, stderr]).toEqual([0, `[0] rank 0: ${how}: ${(size * (size - 1)) / 2}\n`, '']);
});
