// The out-of-band channel over two real links that are pulled one after the other: ranks in a network namespace of their own,
// the launcher outside. Needs root and the `ip` command; says so and is skipped without them.
import { execFileSync, spawnSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJob } from '../../src/launch/launcher.ts';
import { type BuiltCode, buildCode, untilGone } from './helpers.ts';

// Names and subnets by process id, so that two runs on one machine do not meet.
const ID = String(process.pid % 100_000);
const NAMESPACE = `mrl-${ID}`;
const LINKS = [0, 1].map((link) => {
  const net = `10.${213 + link}.${process.pid % 250}`;
  return { outside: `ml${ID}o${link}`, inside: `ml${ID}i${link}`, outsideAddress: `${net}.1`, insideAddress: `${net}.2` };
});

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

function setUp(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
  if (spawnSync('ip', ['-V']).status !== 0) return 'needs the ip command';
  try {
    ip('netns', 'add', NAMESPACE);
    ip('-n', NAMESPACE, 'link', 'set', 'lo', 'up');
    for (const { outside, inside, outsideAddress, insideAddress } of LINKS) {
      ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', NAMESPACE);
      ip('addr', 'add', `${outsideAddress}/24`, 'dev', outside);
      ip('-n', NAMESPACE, 'addr', 'add', `${insideAddress}/24`, 'dev', inside);
      ip('link', 'set', outside, 'up');
      ip('-n', NAMESPACE, 'link', 'set', inside, 'up');
    }
  } catch (error) {
    tearDown();
    return `network namespaces do not work here: ${(error as Error).message}`;
  }
  return undefined;
}

function tearDown(): void {
  spawnSync('ip', ['netns', 'del', NAMESPACE]);
  for (const { outside } of LINKS) spawnSync('ip', ['link', 'del', outside]);
}

const unavailable = setUp();
if (unavailable !== undefined) console.log(`launch-netns: skipped: ${unavailable}`);
let code: BuiltCode;

beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['launch-rank.mjs']);
});
afterAll(() => {
  if (unavailable !== undefined) return;
  tearDown();
  code?.dispose();
});

test.skipIf(unavailable !== undefined)(
  'each of two links is pulled while the other is there: no message is lost or doubled',
  async () => {
    const rounds: number[][] = [[], []];
    let changed: () => void = () => undefined;
    const stdout = new PassThrough().resume();
    const stderr = new PassThrough().resume();
    const job = await startJob({
      size: 2,
      command: [code.fixture('launch-rank'), 'rounds'],
      rankCommand: () => ['ip', 'netns', 'exec', NAMESPACE],
      oobListen: LINKS.map((link) => link.outsideAddress),
      stdinTo: 'none',
      stdout,
      stderr,
      onRailEvent: (rank, event) => {
        rounds[rank].push(event as number);
        changed();
      },
    });
    const more = (count: number) => {
      const target = rounds.map((list) => list.length + count);
      return new Promise<void>((resolve, reject) => {
        changed = () => {
          if (rounds.every((list, rank) => list.length >= target[rank])) resolve();
        };
        job.result.then((result) => reject(new Error(`the job ended: ${result.failure}`)), reject);
      });
    };
    try {
      await more(20);
      ip('link', 'set', LINKS[0].outside, 'down');
      await more(20);
      ip('link', 'set', LINKS[0].outside, 'up');
      ip('-n', NAMESPACE, 'link', 'set', LINKS[1].inside, 'down');
      await more(20);
      // Both away: nothing ends by that; one comes back.
      ip('link', 'set', LINKS[0].outside, 'down');
      await new Promise((resolve) => setTimeout(resolve, 1500));
      ip('-n', NAMESPACE, 'link', 'set', LINKS[1].inside, 'up');
      await more(20);
    } finally {
      job.end('the test is over', 0);
      await job.result;
    }
    for (const list of rounds) expect(list).toEqual(list.map((_, index) => index + 1));
    await untilGone(job.pids);
  },
  60_000,
);
