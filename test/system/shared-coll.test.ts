// Collectives through memory that the ranks of a host share, between real processes: with more ranks than processors, with ranks that are
// stopped and killed in the middle, with limits in time, and with communicators that come and go. The ranks verify every result.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { smComponent } from '../../src/btl/sm/component.ts';
import { ParamTable } from '../../src/params.ts';
import { type BuiltCode, buildCode, type Ran, type Running, startNode } from '../support/helpers.ts';

let code: BuiltCode;
const running: Running[] = [];
const missing = smComponent.unavailable(new ParamTable());

beforeAll(async () => {
  code = await buildCode(['shared-rank.mjs']);
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

function run(options: string, cases: string): Promise<Ran> {
  const job = startNode([code.cli, 'run', ...options.split(' '), code.fixture('shared-rank'), ...cases.split(' ')], {
    input: '',
    timeoutMs: 90_000,
  });
  running.push(job);
  return job.ended;
}

async function passes(ranks: number, cases: string, options = ''): Promise<void> {
  const ran = await run(`-n ${ranks} --mca btl self,sm${options}`, cases);
  expect(ran).toMatchObject({ code: 0, signal: null, stderr: '' });
  for (let rank = 0; rank < ranks; rank++) {
    for (const name of cases.split(' ')) expect(ran.stdout).toContain(`rank ${rank} did ${name}\n`);
    expect(ran.stdout).toContain(`rank ${rank} left\n`);
  }
}

test.skipIf(missing !== undefined)('results, and no message, on two, three and six ranks', { timeout: 90_000 }, async () => {
  await passes(2, 'direct property atOnce mixed');
  await passes(3, 'direct mixed');
  await passes(6, 'direct');
});

test.skipIf(missing !== undefined)('the same where calls are checked', { timeout: 90_000 }, async () => {
  await passes(2, 'direct timeouts atOnce', ' --mca coll_check_signatures true');
  await passes(3, 'direct timeouts mixed', ' --mca coll_check_signatures true');
});

test.skipIf(missing !== undefined)(
  'calls of two communicators interleaved, and many outstanding, in any order',
  { timeout: 90_000 },
  async () => {
    await passes(4, 'interleaved outstanding');
  },
);

test.skipIf(missing !== undefined)(
  'a rank is stopped and goes on; calls end by limits; communicators are freed in use',
  { timeout: 90_000 },
  async () => {
    await passes(4, 'stopped timeouts freed');
  },
);

test.skipIf(missing !== undefined)('a thousand communicators leave no memory and no descriptor', { timeout: 90_000 }, async () => {
  await passes(2, 'thousand');
});

test.skipIf(missing !== undefined)(
  'a rank is killed: the calls of the others end with an error, and so do the next',
  { timeout: 90_000 },
  async () => {
    // By groups with leaders from 17 ranks on, of which most wait for the first of all alone.
    for (const ranks of [4, 17]) {
      const ran = await run(`-n ${ranks} --no-abort-on-failure --mca btl self,sm`, 'killed');
      for (let rank = 0; rank < ranks - 1; rank++) {
        expect(ran.stdout).toContain(`survivor ${rank}: ERR_PROC_FAILED about ${ranks - 1}\n`);
        expect(ran.stdout).toMatch(new RegExp(`survivor ${rank}: then ERR_PROC_(FAILED|UNREACHABLE)`));
        expect(ran.stdout).toContain(`rank ${rank} left\n`);
      }
    }
  },
);
