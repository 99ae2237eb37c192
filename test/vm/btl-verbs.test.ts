// The BTL contract over queue pairs of soft-RoCE, both sides within this process, and what only queue pairs have: receive buffers that can
// run out. It runs inside the guest (vm.mjs).
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { BUSY, DELIVERED, type Frame, IN_DOUBT, OK } from '../../src/btl/btl.ts';
import { loadRdma, type Rdma } from '../../src/btl/verbs/rdma.ts';
import { btlSuite, statusOf } from '../contract/suite.ts';
import { makeFrame } from '../support/btl-recorder.ts';
import { DEVICES, hardwareCounter, unavailable, verbsFixture } from './verbs-fixture.ts';

btlSuite('verbs', verbsFixture());

const BUFFERS = 32;
/** The part of the credit that is kept for records without payload. */
const RESERVED = 16;
const FEW_BUFFERS = { btl_verbs_buffers: String(BUFFERS), btl_verbs_buffer_bytes: '8k' };
const FRAME_BYTES = 2000;

/** How often a device of the guest has told another one that it had no receive buffer. */
function notReady(): number {
  let count = 0;
  for (let i = 0; i < DEVICES; i++) count += hardwareCounter(`rxe${i}`, 'send_rnr_err');
  return count;
}

if (unavailable !== undefined) console.info(`skipped: receive buffers of verbs: ${unavailable}`);

describe.skipIf(unavailable !== undefined)('receive buffers', () => {
  // The very instance of node-rdma that the transport has.
  const pairs = loadRdma().rdma?.QueuePair.prototype as Rdma.QueuePair;
  const postReceive = pairs?.postReceive;
  afterEach(() => {
    pairs.postReceive = postReceive;
  });

  test('a receiver that does not look: credit holds the sender back, no request finds the queue empty, and nothing is lost', async () => {
    const pair = await verbsFixture().setup({ params: FEW_BUFFERS });
    const { a, b } = pair;
    const before = notReady();
    let id = 0;
    for (let round = 1; round <= 5; round++) {
      const seen = b.recorder.framesSeen;
      let accepted = 0;
      while (a.sendFrame(makeFrame(id + 1, FRAME_BYTES)) === OK) {
        id++;
        if (++accepted > BUFFERS) break;
      }
      expect(accepted).toBe(BUFFERS - RESERVED);
      expect(a.endpoints[0].outstandingBytes).toBeLessThan(a.endpoints[0].windowBytes);
      for (let turn = 0; turn < 20; turn++) {
        a.progress(pair.now());
        await sleep(5);
      }
      expect(a.sendFrame(makeFrame(id + 1, FRAME_BYTES))).toBe(BUSY);
      expect([a.endpoints[0].epoch, b.recorder.framesSeen]).toEqual([1, seen]);
      await pair.drive(() => a.open === 0, 'all delivered');
      expect(b.recorder.framesSeen).toBe(round * (BUFFERS - RESERVED));
    }
    expect(notReady()).toBe(before);
    pair.check();
    await pair.close();
  });

  test('a receiver that breaks its word: the rail ends and says why, nothing is lost unsaid, and the next epoch carries on', async () => {
    const pair = await verbsFixture().setup({ params: FEW_BUFFERS });
    const { a, b } = pair;
    const before = notReady();
    const { pairLink } = b.endpoints[0] as unknown as { pairLink: { pair: { pair: Rdma.QueuePair } } };
    const broken = pairLink.pair.pair;
    pairs.postReceive = function (words, count) {
      return this === broken ? count : postReceive.call(this, words, count);
    };
    const frames: Frame[] = [];
    while (a.recorder.count('railDown') === 0) {
      const frame = makeFrame(frames.length + 1, FRAME_BYTES);
      expect(a.sendFrame(frame)).toBe(OK);
      expect(frames.push(frame)).toBeLessThan(3 * BUFFERS);
      a.endpoints[0].flush();
      await pair.drive(() => a.open === 0, `frame ${frames.length}`);
    }
    pairs.postReceive = postReceive;
    expect(a.recorder.model(0, 1).down).toEqual({
      kind: 'error',
      text: 'the peer had no receive buffer where it had given credit: RNR_RETRY_EXC_ERR',
    });
    expect(notReady()).toBeGreaterThan(before);
    expect(frames.map((frame) => statusOf(a, frame))).toEqual([...frames.slice(1).map(() => DELIVERED), IN_DOUBT]);
    expect(b.recorder.framesSeen).toBe(frames.length - 1);
    await pair.drive(() => b.recorder.count('railDown') === 1, 'the receiver learns of it');
    a.endpoints[0].connect(2);
    await pair.drive(() => a.endpoints[0].epoch === 2 && b.endpoints[0].epoch === 2, 'epoch 2 connected');
    const { frame } = a.send(FRAME_BYTES);
    a.endpoints[0].flush();
    await pair.drive(() => statusOf(a, frame) !== undefined, 'delivered');
    expect(statusOf(a, frame)).toBe(DELIVERED);
    pair.check();
    await pair.close();
  });
});
