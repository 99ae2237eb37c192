// Connects and failovers leave nothing behind: the kernel (rdma resource) and node-rdma count queue pairs, queues and regions, before and
// after. MULTIRAIL_VM_CONNECTS sets the number of connects (150; the full run is 10000).
import { execFileSync } from 'node:child_process';
import * as rdma from 'node-rdma';
import { expect, it, type TestContext } from 'vitest';
import { OK } from '../../src/btl/btl.ts';
import { checkStreams, makeFrame } from '../support/btl-recorder.ts';
import { unavailable, verbsFixture } from './verbs-fixture.ts';

const CONNECTS = Number(process.env.MULTIRAIL_VM_CONNECTS ?? 150);
/** The counts are looked at after so many connects, so that a long run that is ended tells something. */
const LOOK_EVERY = 500;
/** What came in them is audited, and forgotten, after so many connects. */
const AUDIT_EVERY = 50;
const FENCED = { kind: 'fenced', text: 'fenced by the test' } as const;

/** What the kernel holds for this process. */
function kernelCounts(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of ['qp', 'cq', 'mr', 'pd']) {
    const list = JSON.parse(execFileSync('rdma', ['-j', 'resource', 'show', kind], { encoding: 'utf8' })) as { pid?: number }[];
    counts[kind] = list.filter(({ pid }) => pid === process.pid).length;
  }
  return counts;
}

it(
  `${CONNECTS} connects with frames under way leave no queue pair, queue or region behind`,
  async ({ skip }: TestContext) => {
    if (unavailable !== undefined) {
      console.info(`skipped: verbs leaks: ${unavailable}`);
      skip(unavailable);
    }
    const atRest = { ...rdma.live() };
    const pair = await verbsFixture().setup({ unconnected: true, params: { btl_verbs_buffer_bytes: '8k', btl_verbs_buffers: '32' } });
    const { a, b } = pair;
    const [mine, theirs] = [a.endpoints[0], b.endpoints[0]];
    let epoch = 0;
    let inVain = 0;
    /** An attempt may run out of time where processors are short: then the next one, with an epoch of its own. */
    const connect = async () => {
      for (const attempts = 5; ; ) {
        const began = ++epoch;
        mine.connect(began);
        const hasFailed = (): boolean => a.recorder.find('connectFailed', 0, began) !== undefined;
        await pair.drive(() => (mine.epoch === began && theirs.epoch === began) || hasFailed(), `epoch ${began}`);
        if (!hasFailed()) return;
        expect(++inVain).toBeLessThan(attempts + CONNECTS / 50);
        await pair.drive(() => theirs.epoch === 0, `the end of epoch ${began} where it was accepted`);
      }
    };
    const end = async () => {
      mine.fence(epoch, FENCED);
      await pair.drive(() => theirs.epoch === 0 && a.open === 0 && b.open === 0, `the end of epoch ${epoch}`);
    };
    const counts = () => ({ live: { ...rdma.live() }, kernel: kernelCounts() });
    await connect();
    await end();
    const before = counts();
    expect(before.live.queuePairs).toBe(0);
    for (let i = 2; i <= CONNECTS; i++) {
      await connect();
      // Some end with frames under way in both directions, some idle.
      if (i % 3 !== 0) for (const side of [a, b]) expect(side.sendFrame(makeFrame(i, 1000))).toBe(OK);
      for (const side of [a, b]) side.endpoints[0].flush();
      if (i % 5 === 0) await pair.settle(5);
      await end();
      if (i % AUDIT_EVERY === 0) {
        expect([...checkStreams(a, b), ...checkStreams(b, a)]).toEqual([]);
        for (const { recorder } of [a, b]) recorder.forgetEpochs();
      }
      if (i % LOOK_EVERY !== 0 && i !== CONNECTS) continue;
      expect(counts(), `after ${i} connects`).toEqual(before);
      if (CONNECTS > LOOK_EVERY) console.info(`${i} connects, ${inVain} attempts in vain: nothing left`);
    }
    await pair.close();
    expect({ ...rdma.live() }).toEqual(atRest);
  },
  60_000 + CONNECTS * 1000,
);
