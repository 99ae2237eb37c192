// Nothing is left behind by connects and failovers: queue pairs, queues and regions are counted by the kernel (rdma resource) and by
// node-rdma, before and after. MULTIRAIL_VM_CONNECTS: how many connects (150; the full run is 10000).
import { execFileSync } from 'node:child_process';
import * as rdma from 'node-rdma';
import { expect, it, type TestContext } from 'vitest';
import { OK } from '../../src/btl/btl.ts';
import { makeFrame } from '../conformance/btl-recorder.ts';
import { unavailable, verbsFixture } from './verbs-fixture.ts';

const CONNECTS = Number(process.env.MULTIRAIL_VM_CONNECTS ?? 150);
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
    const connect = async (epoch: number) => {
      mine.connect(epoch);
      await pair.drive(() => mine.epoch === epoch && theirs.epoch === epoch, `epoch ${epoch}`);
    };
    const end = async (epoch: number) => {
      mine.fence(epoch, FENCED);
      await pair.drive(() => theirs.epoch === 0 && a.open === 0 && b.open === 0, `the end of epoch ${epoch}`);
    };
    await connect(1);
    await end(1);
    const before = { live: { ...rdma.live() }, kernel: kernelCounts() };
    expect(before.live.queuePairs).toBe(0);
    for (let epoch = 2; epoch <= CONNECTS; epoch++) {
      await connect(epoch);
      // Some end with frames under way in both directions, some idle.
      if (epoch % 3 !== 0) for (const side of [a, b]) expect(side.sendFrame(makeFrame(epoch, 1000))).toBe(OK);
      for (const side of [a, b]) side.endpoints[0].flush();
      if (epoch % 5 === 0) await pair.settle(5);
      await end(epoch);
    }
    expect({ live: { ...rdma.live() }, kernel: kernelCounts() }).toEqual(before);
    await pair.close();
    expect({ ...rdma.live() }).toEqual(atRest);
  },
  60_000 + CONNECTS * 1000,
);
