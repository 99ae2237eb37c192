// The farm under logs (examples/ft-farm-log.mjs) with a process for each rank, and kills at moments that follow from a seed: the results are those of
// one process, and what the master has noted is what each worker has. Without recorded outcomes the same farm is caught.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleInto } from '../support/bundle.mjs';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
let code: BuiltCode;
let folder: string;
beforeAll(async () => {
  code = await buildCode([]);
  folder = mkdtempSync(join(ROOT, '.cache', 'farm-log-'));
  await bundleInto(folder, [join(ROOT, 'examples/ft-farm-log.mjs')], {
    alias: { multirail: join(ROOT, 'src/index.ts'), 'multirail/ft': join(ROOT, 'src/ft/index.ts') },
  });
}, 60_000);
afterAll(() => {
  code?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

async function play(kill: string, spares: number, ...form: string[]) {
  const program = [join(folder, 'ft-farm-log.mjs'), '--seconds', '2', '--tasks', '200', '--rounds', '40', ...form];
  const words = ['run', '-n', '4', '--spares', String(spares), '--kill', kill, ...program];
  const { code: status, stdout, stderr } = await startNode([code.cli, ...words], { input: '', timeoutMs: 60_000 }).ended;
  return { status, all: `${stdout}\n${stderr}`, kills: stderr.match(/--kill: killing /g)?.length ?? 0 };
}

const FORMS: readonly [name: string, form: readonly string[]][] = [
  ['promises', []],
  ['blocking calls', ['--sync']],
  ['promises, all go back', ['--recovery', 'coordinated']],
  ['blocking calls, all go back', ['--sync', '--recovery', 'coordinated']],
];

test.each(FORMS)('kills at random moments: %s', { timeout: 120_000 }, async (_, form) => {
  for (const seed of [1, 2]) {
    const { status, all, kills } = await play(`random:seed=${seed},mtbf=600ms,max=3`, 3, ...form);
    // 3: the job was over before the first kill.
    expect(status, all).toBe(kills === 0 ? 3 : 0);
    if (form.length < 2) expect(all).not.toMatch(/ERR_REPLAY/);
  }
});

test('with nothing recorded the farm does not repeat itself, and is caught', { timeout: 120_000 }, async () => {
  const ends: string[] = [];
  for (let tries = 0; tries < 5 && !ends.some((text) => text.includes('ERR_REPLAY')); tries++) {
    const { status, all } = await play('0@1200ms', 1, '--determinism', 'send');
    ends.push(`${status}\n${all}`);
  }
  expect(ends.at(-1)).toMatch(
    /^1\n[\s\S]*aborted the job with code 1: ERR_REPLAY: message \d+ of context \d+ to rank \d, with tag \d, has \d+ bytes/,
  );
});
