// Saves and recovery with a process for each rank: a job that is killed as a whole goes on from its folder, the wrong number of ranks and a
// damaged save are told, and a program that cannot be saved gets an error that names the message.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
let folder: string;
beforeAll(async () => {
  code = await buildCode(['ft-saves-rank.ts']);
  folder = mkdtempSync(join(tmpdir(), 'multirail-saves-'));
}, 60_000);
afterAll(() => {
  code?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function start(ranks: number, mode: string, ...more: string[]) {
  const words = [code.cli, 'run', '-n', String(ranks), '--mca', 'ft', 'on', ...more, code.fixture('ft-saves-rank.ts'), mode, folder];
  return startNode(words, { timeoutMs: 40_000 });
}

/** A process and all that it has started. */
function tree(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return [
    pid,
    ...text
      .split(' ')
      .filter((one) => one !== '')
      .flatMap((one) => tree(Number(one))),
  ];
}

test('killed as a whole, a job goes on from its newest save on disk; a damaged one and another size are told', async () => {
  const first = start(2, 'long');
  const saved = join(folder, 'job', '0-1', 'COMMIT.json');
  for (let i = 0; i < 1000 && !existsSync(saved); i++) await new Promise((resolve) => setTimeout(resolve, 20));
  for (const pid of tree(first.child.pid as number)) process.kill(pid, 'SIGKILL');
  await first.ended;
  // Epoch 0 alone: the newest number that is committed.
  const steps = readdirSync(join(folder, 'job'))
    .map((save) => join(folder, 'job', save, 'COMMIT.json'))
    .filter((file) => existsSync(file))
    .map((file) => (JSON.parse(readFileSync(file, 'utf8')) as { step: number }).step);
  const resumed = await start(2, 'short').ended;
  expect(resumed.code, resumed.stderr).toBe(0);
  const from = [...resumed.stdout.matchAll(/rank \d resumed from step (\d+) on disk, sum right/g)].map(([, step]) => Number(step));
  expect(from.length).toBe(2);
  expect(from).toEqual([Math.max(...steps), Math.max(...steps)]);

  const other = await start(3, 'short').ended;
  expect(other.code).not.toBe(0);
  expect(other.stderr).toMatch(/ERR_CHECKPOINT: save \d+ of epoch \d+ of job "job" was made by 2 ranks, and there are 3/);

  // One byte of every image of rank 1.
  for (const save of readdirSync(join(folder, 'job'))) {
    const image = join(folder, 'job', save, 'rank-1.mrck');
    if (!existsSync(image)) continue;
    const bytes = readFileSync(image);
    bytes[300] ^= 1;
    writeFileSync(image, bytes);
  }
  const damaged = await start(2, 'short').ended;
  expect(damaged.code).not.toBe(0);
  expect(damaged.stderr).toMatch(/ERR_CORRUPT: job\/\d+-\d+\/rank-1\.mrck of level disk is not the image of rank 1/);
}, 60_000);

test('without a save, a message that nobody receives is named', async () => {
  const { code: status, stderr } = await start(2, 'loud').ended;
  expect(status).not.toBe(0);
  expect(stderr).toMatch(/ERR_CHECKPOINT: rank 1 cannot save in step 1: .* 8 bytes from process 0 with tag 5 on world/);
}, 30_000);
