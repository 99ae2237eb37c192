// The out-of-band channel over two real links that are pulled one after the other: ranks in a separate network namespace, the launcher
// outside. It needs root and the `ip` command; without them it says so and is skipped.
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJob } from '../../src/launch/run/launcher.ts';
import { type BuiltCode, buildCode, untilGone } from '../support/helpers.ts';
import { ip, TwoLinks } from '../support/two-links.ts';

const hosts = new TwoLinks('ml', 213);
const unavailable = hosts.setUp();
if (unavailable !== undefined) console.log(`launch-netns: skipped: ${unavailable}`);
let code: BuiltCode;

beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['launch-rank.mjs']);
});
afterAll(() => {
  if (unavailable !== undefined) return;
  hosts.tearDown();
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
      rankCommand: () => ['ip', 'netns', 'exec', hosts.namespace],
      oobListen: hosts.links.map((link) => link.outsideAddress),
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
      ip('link', 'set', hosts.links[0].outside, 'down');
      await more(20);
      ip('link', 'set', hosts.links[0].outside, 'up');
      ip('-n', hosts.namespace, 'link', 'set', hosts.links[1].inside, 'down');
      await more(20);
      // Both away: nothing ends by that; one comes back.
      ip('link', 'set', hosts.links[0].outside, 'down');
      await new Promise((resolve) => setTimeout(resolve, 1500));
      ip('-n', hosts.namespace, 'link', 'set', hosts.links[1].inside, 'up');
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
