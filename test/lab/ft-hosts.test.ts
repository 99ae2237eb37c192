// Whole hosts that die, over real links: all processes of a host at once, with and without its links. Copies of what they had saved lie on another
// host, processes that stand by on a fourth one take their places, and the results are those of an undisturbed run, bit by bit.
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Lab, labUnavailable } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) console.log(`skipped: whole hosts that die: ${unavailable}`);

const HOSTS = 4;
const EACH = 2;
const RANKS = (HOSTS - 1) * EACH;
const STEPS = 40;
/** Of the job; a rank that hangs is a failure, and not a test run that hangs. Whoever waits for a dead host to come back waits as long. */
const JOB_MS_MAX = 60_000;

interface Story {
  name: string;
  /** Its links go as well: nobody answers for the dead any more. */
  withLinks: boolean;
  host: number;
}
const STORIES: Story[] = [
  { name: 'all processes of a host', withLinks: false, host: 1 },
  { name: 'a host with its links', withLinks: true, host: 2 },
];

let code: BuiltCode;
let folder: string;
let lab: Lab | undefined;
let children: ChildProcess[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'multirail-hosts-'));
  writeFileSync(join(folder, 'secret'), randomBytes(32), { mode: 0o600 });
  if (unavailable === undefined) code = await buildCode(['ft-hosts-rank.ts']);
}, 60_000);
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  await lab?.destroy();
  lab = undefined;
});
afterAll(() => {
  code?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** One process of the job; the last ones stand by. `underWay` resolves when it is, or has ended. */
function start(made: Lab, number: number, ...words: readonly string[]) {
  const env: Record<string, string> = {
    RANK: String(number),
    WORLD_SIZE: String(HOSTS * EACH),
    MASTER_ADDR: made.address(0, 1),
    MASTER_PORT: '29400',
    MULTIRAIL_SECRET_FILE: join(folder, 'secret'),
  };
  const mca = {
    ft: 'on',
    ft_spares: String(EACH),
    btl: 'self,sm,tcp',
    btl_tcp_if_include: 'mr0',
    ft_host_timeout_ms: '1500',
    pml_peer_timeout_ms: '3000',
  };
  for (const [name, value] of Object.entries(mca)) env[`MULTIRAIL_MCA_${name}`] = value;
  const child = made.spawn(Math.floor(number / EACH), [process.execPath, code.fixture('ft-hosts-rank'), String(STEPS), ...words], {
    env: { ...process.env, XDG_RUNTIME_DIR: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let output = '';
  let go = (): void => {};
  const underWay = new Promise<void>((resolve) => {
    go = resolve;
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data) => {
      output += data;
      if (output.includes('is under way')) go();
    });
  const timer = setTimeout(() => child.kill('SIGKILL'), JOB_MS_MAX);
  const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.on('close', (exitCode) => {
      clearTimeout(timer);
      go();
      resolve({ code: exitCode, output });
    });
  });
  return { underWay, ended };
}

/** A job that loses those processes when it is under way; all ranks come to the right end, at once or in another process. Returns what was said. */
async function lose(lost: readonly number[], strike: (made: Lab) => Promise<void> | void, ...words: readonly string[]): Promise<string> {
  const made = await Lab.create({ nodes: HOSTS, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
  lab = made;
  const processes = Array.from({ length: HOSTS * EACH }, (_, number) => start(made, number, ...words));
  await Promise.all(processes.slice(0, RANKS).map(({ underWay }) => underWay));
  await strike(made);
  const ends = await Promise.all(processes.filter((_, number) => !lost.includes(number)).map(({ ended }) => ended));
  const text = ends.map(({ output }) => output).join('\n');
  const right = [...text.matchAll(/rank (\d) ends right in process (\d)/g)].map(([, rank, number]) => [Number(rank), Number(number)]);
  // The lowest that stands by takes the lowest place.
  const places = Array.from({ length: RANKS }, (_, rank) => [rank, lost.includes(rank) ? RANKS + lost.indexOf(rank) : rank]);
  expect(
    right.sort(([a], [b]) => a - b),
    text,
  ).toEqual(places);
  for (const end of ends) expect(end.code, text).toBe(0);
  return text;
}

describe.skipIf(unavailable !== undefined)('a job with saves loses', () => {
  test.each(drawTests('whole hosts', STORIES))(
    '$name, and recovers from the copies on another one',
    async ({ withLinks, host }) => {
      const lost = Array.from({ length: EACH }, (_, i) => host * EACH + i);
      const text = await lose(lost, async (made) => {
        if (withLinks) await made.halt(host);
        await made.kill(host);
      });
      const again = [...text.matchAll(/rank (\d) runs again from memory in step (\d+), failed ([\d ]+)/g)];
      expect(again.length, text).toBeGreaterThanOrEqual(RANKS);
      for (const [, , step] of again) expect(Number(step), text).toBeGreaterThanOrEqual(2);
    },
    120_000,
  );

  test.each(
    drawTests('groups by host', [
      { name: 'one process of a host', lost: [2] },
      { name: 'both processes of a host', lost: [2, 3] },
    ]),
  )(
    '$name, and only its group of that host goes back',
    async ({ lost }) => {
      const kill = (): void => {
        for (const number of lost) children[number].kill('SIGKILL');
      };
      const text = await lose(lost, kill, 'groups');
      const again = [...text.matchAll(/rank (\d) runs again from memory in step (\d+)/g)];
      expect(again.map(([, rank]) => Number(rank)).sort(), text).toEqual([2, 3]);
    },
    120_000,
  );
});
