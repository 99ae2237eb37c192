// The BTL contract as a function: btlSuite(name, fixture) holds a transport to rules B1-B9 of src/btl/btl.ts, one test per clause. A clause
// that a fixture cannot exercise is skipped with its reason. Fixtures: btl-fixture.ts; the model that checks every upcall in the
// background: support/btl-recorder.ts; one-sided clauses: suite-one-sided.ts.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { BUSY, DELIVERED, DOWN, HEADER_BYTES_MAX, IN_DOUBT, OK, REFUSED } from '../../src/btl/btl.ts';
import { MultirailError } from '../../src/errors.ts';
import type { Fixture, Pair, SetupOptions } from '../support/btl-fixture.ts';
import { frameId, makeFrame, patternOf, type Side } from '../support/btl-recorder.ts';
import { oneSidedClauses } from './suite-one-sided.ts';

const FENCED = { kind: 'fenced', text: 'fenced by the suite' } as const;
const MIB = 1024 * 1024;

export type Clause = (name: string, body: (pair: Pair, skip: (reason: string) => never) => Promise<void>, options?: SetupOptions) => void;

/** Sends when there is room, driving the pair while there is not. */
export async function sendAll(pair: Pair, from: Side, frames: ReturnType<typeof makeFrame>[], rail = 0): Promise<void> {
  for (const frame of frames) {
    let result = from.sendFrame(frame, rail);
    while (result === BUSY) {
      from.endpoints[rail].flush();
      const before = from.recorder.count('writable', rail);
      await pair.drive(() => from.recorder.count('writable', rail) > before, 'onWritable after BUSY');
      result = from.sendFrame(frame, rail);
    }
    expect(result).toBe(OK);
  }
  from.endpoints[rail].flush();
}

export function statusOf(side: Side, frame: object): number | undefined {
  for (const { model } of side.recorder.models()) {
    const entry = model.byFrame.get(frame as never);
    if (entry !== undefined) return entry.status;
  }
  return undefined;
}

function peerOf(pair: Pair, side: Side): Side {
  return side === pair.a ? pair.b : pair.a;
}

export function btlSuite(name: string, fixture: Fixture): void {
  describe(`BTL contract: ${name}`, () => {
    const clause: Clause = (title, body, options = {}) => {
      it(title, async (context: TestContext) => {
        const skip = (reason: string): never => {
          console.info(`skipped: ${name}: ${title}: ${reason}`);
          return context.skip(reason) as never;
        };
        if (fixture.unavailable !== undefined) skip(fixture.unavailable);
        if ((options.rails ?? 1) > (fixture.railsMax ?? 2)) skip('there is only one rail of this kind between two ranks here');
        const pair = await fixture.setup(options);
        try {
          await body(pair, skip);
          pair.check();
        } finally {
          await pair.close();
        }
      });
    };
    streamClauses(clause);
    lossClauses(clause);
    memoryClauses(clause);
    handshakeClauses(clause);
    endClauses(clause, fixture);
    oneSidedClauses(clause);
  });
}

// --- B1 order, B2 completion, B5 pressure

function streamClauses(clause: Clause): void {
  clause('B1 B2: 10 000 small frames each way arrive once, in order, and complete as delivered', async (pair) => {
    const { a, b } = pair;
    let nextId = 1;
    const sides = pair.loopback ? [a] : [a, b];
    for (let round = 0; round < 20; round++) {
      for (const side of sides) {
        const frames = Array.from({ length: 500 }, () => makeFrame(nextId++, nextId % 64));
        await sendAll(pair, side, frames);
      }
    }
    await pair.drive(() => sides.every((side) => side.open === 0), 'all delivered');
    for (const side of sides) expect(peerOf(pair, side).recorder.framesSeen).toBe(10_000);
  });

  clause('B1: eager and placed frames of all sizes keep their order', async (pair) => {
    const { frameBytesMax } = pair.a.endpoints[0].plan.attributes;
    const sizes = [0, 1, 2, 3, 7, 63, 4096, 65_535, 65_536, 100_001, 0, Math.min(300_000, frameBytesMax), 1, 17];
    const frames = sizes.flatMap((size, i) => [makeFrame(2 * i + 1, size), makeFrame(2 * i + 2, size, { placed: true })]);
    await sendAll(pair, pair.a, frames);
    await pair.drive(() => pair.a.open === 0, 'all delivered');
    expect(pair.b.recorder.model(0, 1).received).toEqual(frames.map(({ header }) => frameId(header)));
  });

  clause('B1: header only, largest header, payload of several MiB, many parts with empty ones between', async (pair) => {
    const { frameBytesMax } = pair.a.endpoints[0].plan.attributes;
    const big = Math.min(5 * MIB + 13, frameBytesMax);
    const gathered = makeFrame(4, 50_000, { parts: 100 });
    gathered.payload = gathered.payload.flatMap((part) => [part, new Uint8Array(0)]);
    const frames = [
      makeFrame(1, 0),
      makeFrame(2, 0, { headerBytes: HEADER_BYTES_MAX }),
      makeFrame(3, big),
      gathered,
      makeFrame(5, big, { placed: true, parts: 7 }),
      makeFrame(6, 100, { headerBytes: HEADER_BYTES_MAX }),
    ];
    pair.a.endpoints[0].windowBytes = 16 * MIB;
    await sendAll(pair, pair.a, frames);
    await pair.drive(() => pair.a.open === 0, 'all delivered');
    expect(pair.b.recorder.framesSeen).toBe(frames.length);
    expect(pair.a.endpoints[0].outstandingBytes).toBe(0);
  });

  clause(
    'B2: DELIVERED comes only after onFrame returned at the peer; the last frame is reported without reverse traffic',
    async (pair) => {
      const { a, b } = pair;
      for (const prompt of [false, true]) {
        const { frame } = a.send(1000, { prompt });
        a.endpoints[0].flush();
        let seen = 0;
        b.recorder.onFrameHook = () => {
          seen += 1;
          expect(statusOf(a, frame)).toBeUndefined();
        };
        await pair.drive(() => statusOf(a, frame) !== undefined, 'completed');
        expect(statusOf(a, frame)).toBe(DELIVERED);
        expect(seen).toBe(1);
      }
    },
  );

  clause('B2: a frame that breaks the protocol ends the epoch as damaged and is not counted', async (pair, skip) => {
    if (pair.loopback) skip('both ends are one process: there is no peer that could be wrong');
    const { a, b } = pair;
    b.recorder.onFrameHook = (_, id) => {
      if (id === 3) throw new MultirailError('ERR_PROTOCOL', 'the suite does not like frame 3');
    };
    const sent = [10, 20, 30, 40].map((bytes) => a.send(bytes));
    a.endpoints[0].flush();
    await pair.drive(() => a.recorder.count('railDown') + b.recorder.count('railDown') === 2, 'rail down on both sides');
    expect(b.recorder.find('railDown')?.text).toBe('damaged');
    expect(b.recorder.model(0, 1).received).toEqual([1, 2]);
    expect(statusOf(a, sent[2].frame)).toBe(IN_DOUBT);
    expect(statusOf(a, sent[3].frame)).toBe(IN_DOUBT);
  });

  clause('B2: sinkFor may find that the packet breaks the protocol', async (pair, skip) => {
    if (pair.loopback) skip('both ends are one process');
    const { a, b } = pair;
    b.recorder.sinkHook = () => {
      throw new MultirailError('ERR_PROTOCOL', 'no such message');
    };
    const { frame } = a.send(5000, { placed: true });
    a.endpoints[0].flush();
    await pair.drive(() => statusOf(a, frame) !== undefined && b.recorder.count('railDown') === 1, 'rail down');
    expect(b.recorder.find('railDown')?.text).toBe('damaged');
    expect(statusOf(a, frame)).toBe(IN_DOUBT);
  });

  clause(
    'B2: a damaged payload is refused, and the frames around it are delivered',
    async (pair, skip) => {
      if (pair.corrupt === undefined) return skip('the fixture cannot damage a payload on the way');
      const { a, b } = pair;
      for (const placed of [false, true]) {
        const before = a.send(100);
        a.endpoints[0].flush();
        await pair.drive(() => a.open === 0, 'delivered');
        expect(statusOf(a, before.frame)).toBe(DELIVERED);
        pair.corrupt(0, a, 'payload');
        const hurt = a.send(2000, { placed });
        const after = a.send(100);
        a.endpoints[0].flush();
        await pair.drive(() => a.open === 0, 'all completed');
        expect(statusOf(a, hurt.frame)).toBe(REFUSED);
        expect(statusOf(a, after.frame)).toBe(DELIVERED);
      }
      expect(b.recorder.framesSeen).toBe(4);
      expect(b.recorder.count('sinkDropped')).toBe(b.recorder.count('sinkFor'));
      expect(a.recorder.count('railDown')).toBe(0);
    },
    { params: { btl_base_payload_crc: 'true' } },
  );

  clause('B2: a damaged header ends the epoch', async (pair, skip) => {
    if (pair.corrupt === undefined) return skip('the fixture cannot damage a header on the way');
    const { a, b } = pair;
    pair.corrupt(0, a, 'header');
    const { frame } = a.send(500);
    a.endpoints[0].flush();
    await pair.drive(() => statusOf(a, frame) !== undefined && b.recorder.count('railDown') === 1, 'rail down');
    expect(b.recorder.find('railDown')?.text).toBe('damaged');
    expect(statusOf(a, frame)).toBe(IN_DOUBT);
    expect(b.recorder.framesSeen).toBe(0);
  });

  clause('B5: BUSY beyond the window, a reserve for frames without payload, then onWritable', async (pair) => {
    const { a } = pair;
    const endpoint = a.endpoints[0];
    endpoint.windowBytes = 64 * 1024;
    let accepted = 0;
    while (accepted < 1000 && a.send(16 * 1024).result === OK) accepted += 1;
    expect(accepted).toBeGreaterThan(0);
    expect(accepted).toBeLessThan(1000);
    expect(a.send(0).result).toBe(OK);
    expect(endpoint.outstandingBytes).toBeGreaterThan(0);
    endpoint.flush();
    await pair.drive(() => a.recorder.count('writable') > 0, 'onWritable');
    expect(a.send(1000).result).toBe(OK);
    endpoint.flush();
    await pair.drive(() => a.open === 0, 'all delivered');
    expect(endpoint.outstandingBytes).toBe(0);
  });

  clause('B5: a frame larger than the window still goes when nothing is outstanding', async (pair) => {
    pair.a.endpoints[0].windowBytes = 4096;
    const sent = pair.a.send(100_000);
    expect(sent.result).toBe(OK);
    pair.a.endpoints[0].flush();
    await pair.drive(() => pair.a.open === 0, 'delivered');
  });

  clause('B5: a frame larger than the window is not kept waiting by short ones that always are outstanding', async (pair) => {
    const { a } = pair;
    a.endpoints[0].windowBytes = 64 * 1024;
    let isSent = false;
    let sent = 0;
    await pair.drive(() => {
      expect(a.send(0).result).toBe(OK);
      expect(a.endpoints[0].outstandingBytes).toBeGreaterThan(0);
      if (!isSent && a.send(80_000).result === OK) isSent = true;
      a.endpoints[0].flush();
      return isSent || ++sent === 200;
    }, 'a look');
    expect(isSent).toBe(true);
    await pair.drive(() => a.open === 0, 'all delivered');
  });

  clause('flush: what was accepted without flush() leaves with the next progress()', async (pair) => {
    pair.a.send(100);
    pair.a.send(70_000, { placed: true });
    await pair.drive(() => pair.a.open === 0, 'delivered without a flush');
    expect(pair.b.recorder.framesSeen).toBe(2);
  });

  clause('down-calls never call up, and nothing calls up between two progress() calls', async (pair) => {
    const { a, b } = pair;
    const events = () => a.recorder.events.length + b.recorder.events.length;
    await pair.settle(5);
    const before = events();
    a.send(100);
    a.send(200_000, { placed: true });
    a.endpoints[0].flush();
    a.endpoints[0].probe(7);
    b.endpoints[0].probe(8);
    if (!pair.loopback) b.send(300);
    b.endpoints[0].flush();
    a.endpoints[0].fence(1, FENCED);
    expect(a.endpoints[0].epoch).toBe(0);
    expect(a.send(1).result).toBe(DOWN);
    for (let i = 0; i < 10; i++) await nextTurn();
    expect(events()).toBe(before);
    await pair.drive(() => a.recorder.count('railDown') === 1, 'the fence is reported');
  });
}

// --- B3 loss, B6 fence

function lossClauses(clause: Clause): void {
  clause('B3 B6: fence() reports railDown first, then every outstanding frame in doubt, in order, in the next progress()', async (pair) => {
    const { a } = pair;
    const sent = Array.from({ length: 50 }, (_, i) => a.send(i * 100, { placed: i % 3 === 0 })).filter(({ result }) => result === OK);
    a.endpoints[0].fence(1, FENCED);
    const from = a.recorder.events.length;
    a.progress(pair.now());
    const seen = a.recorder.events.slice(from).filter(({ type }) => type !== 'sinkDropped');
    expect(seen[0].type).toBe('railDown');
    expect(seen[0].text).toBe('fenced');
    expect(seen.slice(1).map(({ type, text }) => `${type} ${text}`)).toEqual(sent.map(() => `completed ${IN_DOUBT}`));
    expect(a.endpoints[0].outstandingBytes).toBe(0);
    await pair.settle(20);
    expect(a.recorder.count('railDown')).toBe(1);
  });

  clause('B3: the other side learns of the end, and its frames are in doubt too', async (pair, skip) => {
    if (pair.loopback) skip('both ends are one');
    const { a, b } = pair;
    a.endpoints[0].fence(1, FENCED);
    const sent = Array.from({ length: 5 }, () => b.send(1000));
    b.endpoints[0].flush();
    await pair.drive(() => b.recorder.count('railDown') === 1, 'the peer learns of it');
    for (const { frame } of sent) expect(statusOf(b, frame)).toBe(IN_DOUBT);
    expect(b.send(1).result).toBe(DOWN);
  });

  clause('B6: a fence below the live epoch does nothing; the next epoch works and old frames stay away', async (pair, skip) => {
    if (pair.loopback) skip('self has one epoch');
    const { a, b } = pair;
    a.endpoints[0].fence(0, FENCED);
    for (let epoch = 1; epoch <= 4; epoch++) {
      const frames = Array.from({ length: 20 }, (_, i) => makeFrame(epoch * 100 + i, 3000, { placed: i % 2 === 0 }));
      await sendAll(pair, a, frames);
      await sendAll(
        pair,
        b,
        frames.map(({ header }) => makeFrame(frameId(header), 10)),
      );
      if (epoch === 4) break;
      a.endpoints[0].fence(epoch, FENCED);
      await pair.drive(() => a.recorder.find('railDown', 0, epoch) !== undefined, 'down');
      a.endpoints[0].connect(epoch + 1);
      await pair.drive(() => a.endpoints[0].epoch === epoch + 1 && b.endpoints[0].epoch === epoch + 1, `epoch ${epoch + 1} connected`);
      b.endpoints[0].fence(epoch, FENCED);
      expect(b.endpoints[0].epoch).toBe(epoch + 1);
    }
    await pair.drive(() => a.open + b.open === 0, 'the last epoch is delivered');
    expect(b.recorder.model(0, 4).received.length).toBe(20);
  });

  clause('B6: fence() inside an upcall stops the epoch there: that frame is not counted', async (pair, skip) => {
    if (pair.loopback) skip('both ends are one');
    const { a, b } = pair;
    b.recorder.onFrameHook = (endpoint, id) => {
      if (id === 2) endpoint.fence(1, FENCED);
    };
    const sent = Array.from({ length: 4 }, () => a.send(100));
    a.endpoints[0].flush();
    await pair.drive(() => a.recorder.count('railDown') === 1 && b.recorder.count('railDown') === 1, 'down');
    expect(b.recorder.model(0, 1).received).toEqual([1, 2]);
    expect(statusOf(a, sent[1].frame)).toBe(IN_DOUBT);
  });

  clause('forgetPeer() waits until all that is owed has been told; then nothing of the peer is asked or told any more', async (pair) => {
    const { a } = pair;
    const { module, peer } = a.endpoints[0];
    expect(module.forgetPeer(peer)).toBe(false);
    // Of whom it never heard, it has nothing.
    expect(module.forgetPeer(peer + 1000)).toBe(true);
    // The own rank is over when the module is closed.
    if (pair.loopback) return;
    const sent = Array.from({ length: 5 }, () => a.send(1000));
    for (const endpoint of a.endpoints) endpoint.fence(1, FENCED);
    // Its frames have not come back.
    expect(module.forgetPeer(peer)).toBe(false);
    await pair.drive(() => a.open === 0, 'all frames are back');
    for (const { frame } of sent) expect(statusOf(a, frame)).toBe(IN_DOUBT);
    await pair.drive(() => module.forgetPeer(peer), 'the peer is forgotten');
    const events = a.recorder.events.length;
    await pair.settle(50);
    expect(a.recorder.events.slice(events).map(({ type }) => type)).toEqual([]);
    expect(module.forgetPeer(peer)).toBe(true);
  });

  for (const fate of ['lost', 'delivered', 'half'] as const) {
    clause(
      `B3: a rail cut in the middle (${fate}): in doubt or delivered, nothing lost unsaid; then the next epoch works`,
      async (pair, skip) => {
        if (pair.cut === undefined || pair.mend === undefined) return skip('the fixture cannot cut a rail');
        const { a, b } = pair;
        a.endpoints[0].windowBytes = 16 * MIB;
        const frames = Array.from({ length: 60 }, (_, i) => makeFrame(i + 1, 40_000, { placed: i % 2 === 0 }));
        await sendAll(pair, a, frames);
        await pair.drive(() => b.recorder.framesSeen > 5, 'some frames over');
        pair.cut(0, fate);
        await pair.settle(30);
        // A rail that leaves judging to its siblings does not notice; the BML would fence it.
        for (const side of [a, b]) if (side.endpoints[0].plan.attributes.liveness === 'siblings') side.endpoints[0].fence(1, FENCED);
        await pair.drive(() => a.recorder.count('railDown') === 1 && b.recorder.count('railDown') === 1, 'down on both sides');
        expect(a.open).toBe(0);
        pair.mend(0);
        a.endpoints[0].connect(2);
        await pair.drive(() => a.endpoints[0].epoch === 2 && b.endpoints[0].epoch === 2, 'connected again');
        const again = a.send(70_000, { placed: true });
        a.endpoints[0].flush();
        await pair.drive(() => statusOf(a, again.frame) === DELIVERED, 'delivered on the new epoch');
      },
    );
  }

  clause('B7: silent loss is noticed by a rail that checks itself, and left to the siblings by one that does not', async (pair, skip) => {
    if (pair.blackhole === undefined) return skip('the fixture cannot make a rail silent');
    const { a, b } = pair;
    pair.blackhole(0, a);
    a.send(1000);
    a.endpoints[0].flush();
    if (a.endpoints[0].plan.attributes.liveness === 'self') {
      await pair.drive(() => a.recorder.count('railDown') === 1 && b.recorder.count('railDown') === 1, 'silence noticed');
      expect(b.recorder.framesSeen).toBe(0);
    } else {
      await pair.settle(2000);
      expect(a.recorder.count('railDown')).toBe(0);
      expect(a.open).toBe(1);
    }
  });

  clause(
    'rails are independent: the end of one leaves the other alone',
    async (pair) => {
      const { a, b } = pair;
      for (const rail of [0, 1]) for (let i = 0; i < 20; i++) expect(a.send(5000, { placed: i % 2 === 0 }, rail).result).toBe(OK);
      a.endpoints[0].flush();
      a.endpoints[1].flush();
      a.endpoints[0].fence(1, FENCED);
      await pair.drive(() => a.open === 0, 'both settled');
      expect(a.recorder.count('railDown', 1)).toBe(0);
      expect(b.recorder.model(1, 1).received.length).toBe(20);
      expect(a.recorder.model(1, 1).accepted.every(({ status }) => status === DELIVERED)).toBe(true);
    },
    { rails: 2 },
  );

  clause('B7: probe() is answered over the rail; a report tells what the peer has heard', async (pair) => {
    const { a } = pair;
    a.endpoints[0].probe(11);
    await pair.drive(() => a.recorder.probes.length === 1, 'the probe is answered');
    // Two at once may be answered as one: the answer to the later one says more.
    a.endpoints[0].probe(12);
    a.endpoints[0].probe(13);
    await pair.drive(() => a.recorder.probes.at(-1) === 13, 'the later probe is answered');
    expect([
      [11, 13],
      [11, 12, 13],
    ]).toContainEqual(a.recorder.probes);
    await sendAll(pair, a, [makeFrame(1, 10_000), makeFrame(2, 10_000, { prompt: true })]);
    await pair.drive(() => a.open === 0, 'delivered');
    if (!pair.loopback && a.endpoints[0].plan.attributes.liveness === 'siblings') {
      a.endpoints[0].probe(14);
      await pair.drive(() => (a.recorder.reports.at(-1)?.receivedBytes ?? 0) >= 20_000, 'onReport');
    }
  });
}

// --- B4 memory

async function untilHalf(pair: Pair, bytes: number): Promise<Uint8Array | undefined> {
  const { a, b } = pair;
  const { frame } = a.send(bytes, { placed: true });
  const ends = patternOf(frameId(frame.header), bytes);
  a.endpoints[0].flush();
  const count = b.recorder.sinks.length;
  await pair.drive(() => b.recorder.sinks.length > count, 'sinkFor asked');
  const record = b.recorder.sinks[count];
  // The pattern has zero bytes, so the start is read over a few bytes, and likewise the end.
  const begun = () => record.buffer.subarray(0, 16).some((byte) => byte !== 0);
  const isWhole = () => record.buffer.subarray(-16).every((byte, i) => byte === ends[bytes - 16 + i]);
  await pair.drive(() => begun() || record.whole, 'first bytes of the sink written');
  return isWhole() || record.whole ? undefined : record.buffer;
}

function memoryClauses(clause: Clause): void {
  clause('B4: an empty sink discards, a placed frame without payload has one too', async (pair) => {
    const { a, b } = pair;
    b.recorder.sinkHook = () => ({ views: [], revoked: false });
    await sendAll(pair, a, [makeFrame(1, 100_000, { placed: true }), makeFrame(2, 0, { placed: true }), makeFrame(3, 5)]);
    await pair.drive(() => a.open === 0, 'delivered');
    expect(b.recorder.model(0, 1).received).toEqual([1, 2, 3]);
  });

  clause('B4: the BTL writes into the views of the sink and into nothing else', async (pair) => {
    const { a, b } = pair;
    const memory = new Uint8Array(4000).fill(0xee);
    const views = [memory.subarray(100, 101), memory.subarray(200, 1199), memory.subarray(2000, 2000), memory.subarray(3000, 3500)];
    b.recorder.sinkHook = () => ({ views, revoked: false });
    await sendAll(pair, a, [makeFrame(9, 1500, { placed: true })]);
    await pair.drive(() => a.open === 0, 'delivered');
    const expected = new Uint8Array(4000).fill(0xee);
    const sent = patternOf(9, 1500);
    expected.set(sent.subarray(0, 1), 100);
    expected.set(sent.subarray(1, 1000), 200);
    expected.set(sent.subarray(1000), 3000);
    expect(Buffer.compare(memory, expected)).toBe(0);
  });

  clause('B4: after revokeSink() not one byte is written; the frame runs to its end, is handed up and counted', async (pair, skip) => {
    const { a, b } = pair;
    a.endpoints[0].windowBytes = 16 * MIB;
    const buffer = await untilHalf(pair, Math.min(8 * MIB, a.endpoints[0].plan.attributes.frameBytesMax));
    const record = b.recorder.sinks[0];
    if (buffer === undefined) return skip('the payload always arrives whole within one progress()');
    b.endpoints[0].revokeSink(record.sink);
    expect(record.sink.revoked).toBe(true);
    const snapshot = buffer.slice();
    await pair.drive(() => a.open === 0, 'the frame completes');
    expect(Buffer.compare(snapshot, buffer)).toBe(0);
    expect(record.whole).toBe(true);
    expect(a.recorder.find('completed')?.text).toBe(String(DELIVERED));
    const next = a.send(100_000, { placed: true });
    a.endpoints[0].flush();
    await pair.drive(() => statusOf(a, next.frame) === DELIVERED, 'the rail lives on');
  });

  clause('B4: revokeSink() from inside sinkFor’s frame before any byte, and of a stranger sink, is harmless', async (pair) => {
    const { a, b } = pair;
    b.endpoints[0].revokeSink({ views: [], revoked: false });
    await sendAll(pair, a, [makeFrame(1, 1000, { placed: true })]);
    await pair.drive(() => a.open === 0, 'delivered');
    b.endpoints[0].revokeSink(b.recorder.sinks[0].sink);
    await sendAll(pair, a, [makeFrame(2, 1000, { placed: true })]);
    await pair.drive(() => a.open === 0, 'delivered');
  });

  clause(
    'B4 B6: after fence() in the middle of a placed frame not one byte is written; railDown and onSinkDropped follow',
    async (pair, skip) => {
      const { a, b } = pair;
      a.endpoints[0].windowBytes = 16 * MIB;
      const buffer = await untilHalf(pair, Math.min(8 * MIB, a.endpoints[0].plan.attributes.frameBytesMax));
      if (buffer === undefined) return skip('the payload always arrives whole within one progress()');
      b.endpoints[0].fence(1, FENCED);
      const snapshot = buffer.slice();
      for (let i = 0; i < 5; i++) await nextTurn();
      b.progress(pair.now());
      expect(b.recorder.count('railDown')).toBe(1);
      expect(b.recorder.sinks[0].dropped).toBe(true);
      await pair.drive(() => a.open === 0, 'the sender learns of it');
      await pair.settle(20);
      expect(Buffer.compare(snapshot, buffer)).toBe(0);
      expect(b.recorder.sinks[0].whole).toBe(false);
      if (!pair.loopback) expect(a.recorder.find('completed')?.text).toBe(String(IN_DOUBT));
    },
  );

  clause('B4: header and payload are the caller’s again after completion, and not before', async (pair) => {
    const { a } = pair;
    for (let i = 0; i < 10; i++) {
      const { frame } = a.send(50_000, { placed: i % 2 === 0 });
      a.endpoints[0].flush();
      await pair.drive(() => statusOf(a, frame) === DELIVERED, 'delivered');
      for (const part of frame.payload) part.fill(0xff);
      frame.header.fill(0xff);
    }
  });
}

// --- B8 handshake

function handshakeClauses(clause: Clause): void {
  const UNCONNECTED = { unconnected: true };

  clause(
    'B8: no epoch before connect(), then the same on both sides; the hello names rank, incarnation, rail, key and epoch',
    async (pair, skip) => {
      if (pair.loopback) skip('self needs no handshake');
      const { a, b } = pair;
      expect(a.endpoints[0].epoch).toBe(0);
      expect(a.send(1).result).toBe(DOWN);
      expect(b.send(1).result).toBe(DOWN);
      a.endpoints[0].connect(5);
      await pair.drive(() => a.endpoints[0].epoch === 5 && b.endpoints[0].epoch === 5, 'connected');
      expect(a.recorder.count('connected')).toBe(1);
      expect(b.recorder.count('connected')).toBe(1);
      const { key } = a.endpoints[0].plan;
      expect(b.recorder.hellos).toEqual([{ rank: 0, incarnation: 1000, rail: 0, key, epoch: 5 }]);
      const sent = b.send(100);
      b.endpoints[0].flush();
      await pair.drive(() => statusOf(b, sent.frame) === DELIVERED, 'delivered');
    },
    UNCONNECTED,
  );

  clause(
    'B8: a stale epoch is refused with the highest one seen',
    async (pair, skip) => {
      if (pair.loopback) skip('self needs no handshake');
      const { a, b } = pair;
      b.recorder.highestSeen.set(0, 7);
      a.endpoints[0].connect(3);
      await pair.drive(() => a.recorder.count('connectFailed') === 1, 'refused');
      expect(a.recorder.find('connectFailed')?.text).toBe('refused highest 7');
      a.endpoints[0].connect(8);
      await pair.drive(() => a.endpoints[0].epoch === 8 && b.endpoints[0].epoch === 8, 'connected above it');
    },
    UNCONNECTED,
  );

  clause(
    'B8: a refusal by the acceptor reaches the dialer',
    async (pair, skip) => {
      if (pair.loopback) skip('self needs no handshake');
      const { a, b } = pair;
      b.recorder.admitHook = () => ({ ok: false, reason: 'PEER_FAILED', text: 'you are dead' });
      a.endpoints[0].connect(1);
      await pair.drive(() => a.recorder.count('connectFailed') === 1, 'refused');
      expect(a.recorder.find('connectFailed')?.text).toBe('refused');
      expect(b.recorder.count('connected')).toBe(0);
      await pair.settle(10);
      expect(a.recorder.count('connected')).toBe(0);
    },
    UNCONNECTED,
  );

  clause(
    'B8: who does not know the secret is never asked about, let alone admitted, and the reason is logged',
    async (pair, skip) => {
      if (pair.loopback) skip('self needs no handshake');
      const { a, b } = pair;
      a.endpoints[0].connect(1);
      await pair.drive(() => a.recorder.count('connectFailed') === 1, 'refused');
      expect(a.recorder.count('connected') + b.recorder.count('connected')).toBe(0);
      expect(b.recorder.hellos).toEqual([]);
      await pair.drive(() => a.recorder.logs.length + b.recorder.logs.length > 0, 'the reason is logged');
    },
    { unconnected: true, secrets: ['right', 'wrong'] },
  );

  clause(
    'B8: cancelConnect() gives up without an upcall, and the next attempt works',
    async (pair, skip) => {
      if (pair.loopback) skip('self needs no handshake');
      const { a, b } = pair;
      a.endpoints[0].connect(1);
      a.endpoints[0].cancelConnect();
      await pair.settle(20);
      expect(a.recorder.events).toEqual([]);
      const epoch = (b.recorder.highestSeen.get(0) ?? 0) + 1;
      a.endpoints[0].connect(epoch);
      await pair.drive(() => a.endpoints[0].epoch === epoch && b.endpoints[0].epoch === epoch, 'connected');
    },
    UNCONNECTED,
  );

  clause(
    'B8: a connect() at or below a fenced epoch comes to nothing',
    async (pair, skip) => {
      if (pair.loopback) skip('self needs no handshake');
      const { a, b } = pair;
      b.endpoints[0].fence(4, FENCED);
      a.endpoints[0].connect(4);
      await pair.drive(() => a.recorder.count('connectFailed') === 1 || a.recorder.count('railDown') === 1, 'refused');
      expect(b.endpoints[0].epoch).toBe(0);
      a.endpoints[0].connect(5);
      await pair.drive(() => a.endpoints[0].epoch === 5 && b.endpoints[0].epoch === 5, 'connected above it');
    },
    UNCONNECTED,
  );

  clause(
    'B8: beside a live epoch that hears nothing a newer one takes over, railDown of the old before onConnected',
    async (pair, skip) => {
      if (pair.loopback) skip('self needs no handshake');
      const { a, b } = pair;
      await pair.settle(20);
      const { frame } = b.send(0);
      a.endpoints[0].connect(2);
      await pair.drive(() => a.recorder.count('connectFailed') > 0 || a.endpoints[0].epoch === 2, 'the attempt ends');
      await pair.drive(() => a.endpoints[0].epoch === b.endpoints[0].epoch || a.endpoints[0].epoch === 0, 'both agree');
      await pair.drive(() => statusOf(b, frame) !== undefined, 'the frame on the old epoch completes');
      for (const side of [a, b]) {
        const types = side.recorder.events.filter(({ type }) => type === 'connected' || type === 'railDown');
        if (side.endpoints[0].epoch === 2)
          expect(types.map(({ type, epoch }) => `${type} ${epoch}`)).toEqual(['connected 1', 'railDown 1', 'connected 2']);
      }
    },
  );

  clause('B8: beside a live epoch that hears bytes the attempt is given up as busy, or taken over: never both', async (pair, skip) => {
    if (pair.loopback) skip('self needs no handshake');
    const { a, b } = pair;
    a.endpoints[0].connect(2);
    let nextId = 1;
    await pair.drive(() => {
      const done = a.recorder.count('connectFailed') > 0 || a.endpoints[0].epoch === 2;
      if (!done && b.sendFrame(makeFrame(nextId, 50)) === OK) nextId += 1;
      b.endpoints[0].flush();
      return done;
    }, 'the attempt ends');
    if (a.recorder.count('connectFailed') > 0) {
      expect(a.recorder.find('connectFailed')?.text).toBe('busy');
      expect(a.endpoints[0].epoch).not.toBe(2);
    }
    await pair.drive(() => b.open === 0, 'every frame completes, on the old epoch or by its end');
  });

  clause('B8: an older epoch that is live at the acceptor only is ended there before the newer one connects', async (pair, skip) => {
    if (pair.loopback) skip('self needs no handshake');
    const { a, b } = pair;
    const sent = Array.from({ length: 3 }, () => b.send(100));
    a.endpoints[0].fence(1, FENCED);
    a.progress(pair.now());
    a.endpoints[0].connect(2);
    await pair.drive(() => a.endpoints[0].epoch === 2 && b.endpoints[0].epoch === 2, 'connected');
    const types = b.recorder.events.filter(({ type }) => type === 'connected' || type === 'railDown');
    expect(types.map(({ type, epoch }) => `${type} ${epoch}`)).toEqual(['connected 1', 'railDown 1', 'connected 2']);
    for (const { frame } of sent) expect(statusOf(b, frame)).toBe(IN_DOUBT);
  });

  clause(
    'B8: without an answer the attempt ends by its timeout',
    async (pair, skip) => {
      if (pair.blackhole === undefined || pair.mend === undefined) return skip('the fixture cannot make a rail silent');
      const { a, b } = pair;
      pair.blackhole(0, a);
      a.endpoints[0].connect(1);
      await pair.drive(() => a.recorder.count('connectFailed') === 1, 'timeout');
      expect(a.recorder.find('connectFailed')?.text).toBe('timeout');
      pair.mend(0);
      a.endpoints[0].connect(2);
      await pair.drive(() => a.endpoints[0].epoch === 2 && b.endpoints[0].epoch === 2, 'connected');
    },
    UNCONNECTED,
  );
}

// --- B9 end

function endClauses(clause: Clause, fixture: Fixture): void {
  clause('B9: after BYE both ways the rail ends without onRailDown, and what was outstanding is delivered', async (pair, skip) => {
    if (pair.loopback) skip('self has no second side that could close');
    const { a, b } = pair;
    await sendAll(pair, a, [makeFrame(1, 10), makeFrame(2, 20_000)]);
    a.endpoints[0].bye();
    a.endpoints[0].flush();
    await pair.drive(() => b.recorder.count('bye') === 1, 'BYE arrives');
    expect(b.recorder.model(0, 1).received).toEqual([1, 2]);
    await sendAll(pair, b, [makeFrame(3, 30)]);
    b.endpoints[0].bye();
    b.endpoints[0].flush();
    await pair.drive(() => a.recorder.count('bye') === 1 && a.open + b.open === 0, 'BYE the other way');
    await b.module.close();
    await pair.settle(50);
    expect(a.recorder.count('railDown') + b.recorder.count('railDown')).toBe(0);
    expect(a.recorder.model(0, 1).accepted.every(({ status }) => status === DELIVERED)).toBe(true);
  });

  clause('B9: without BYE the close of one side is a loss for the other', async (pair, skip) => {
    if (pair.loopback) skip('self has no second side');
    const { a, b } = pair;
    await sendAll(pair, a, [makeFrame(1, 10)]);
    await pair.drive(() => a.open === 0, 'delivered');
    await b.module.close();
    const late = a.send(10);
    a.endpoints[0].flush();
    await pair.drive(() => a.recorder.count('railDown') === 1, 'the loss is noticed');
    if (late.result === OK) expect(statusOf(a, late.frame)).toBe(IN_DOUBT);
  });

  clause('B9: close() makes no upcall, whatever is outstanding, and leaves nothing behind', async (pair) => {
    const { a, b } = pair;
    for (let i = 0; i < 20; i++) a.send(30_000, { placed: true });
    a.endpoints[0].flush();
    const before = a.recorder.events.length;
    await a.module.close();
    if (!pair.loopback) await b.module.close();
    a.progress(pair.now());
    for (let i = 0; i < 5; i++) await nextTurn();
    expect(a.recorder.events.length).toBe(before);
  });

  it('B9: after close() no handle of the module keeps the process alive', async (context) => {
    if (fixture.unavailable !== undefined) return context.skip(fixture.unavailable);
    const probe = await fixture.setup({});
    const { handles } = probe;
    await probe.close();
    if (handles === undefined) return context.skip('simulated: there are no handles');
    const tally = () => handles().filter((kind) => kind !== 'Timeout' && kind !== 'Immediate').length;
    for (let i = 0; i < 20; i++) await nextTurn();
    const base = tally();
    const pair = await fixture.setup({});
    pair.a.send(100_000);
    await pair.settle(5);
    await pair.close();
    for (let i = 0; i < 20 && tally() > base; i++) await nextTurn();
    expect(tally()).toBeLessThanOrEqual(base);
  });
}
