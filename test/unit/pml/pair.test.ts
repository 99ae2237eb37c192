// The protocol between two ranks, frame by frame: what happens when exactly this frame is held, refused, half written, or lost with its
// rail before or after it arrived. The simulator has random faults; here each case is one sequence that can be read.
import { describe, expect, test } from 'vitest';
import { ANY } from '../../../src/pml/match.ts';
import { Iov } from '../../../src/util/iov.ts';
import { type Item, MemPair, type Verdict } from '../../support/mem-pair.ts';
import { pattern } from '../../support/pattern.ts';

const only =
  (type: string, verdict: Verdict, more: (item: Item) => boolean = () => true) =>
  (item: Item): Verdict =>
    item.type === type && more(item) ? verdict : 'pass';

/** One line instead of thousands of numbers. */
function expectBytes(actual: Uint8Array, wanted: Uint8Array): void {
  const at = actual.findIndex((byte, i) => byte !== wanted[i]);
  expect({ length: actual.length, firstWrongByte: at }).toEqual({ length: wanted.length, firstWrongByte: -1 });
}

function expectClean(pair: MemPair): void {
  pair.advance(50);
  expect(pair.leftovers()).toEqual([]);
}

describe('eager', () => {
  test('the send is done at once, the copy is kept until delivered', () => {
    const pair = new MemPair();
    pair.verdictOf = only('MATCH', 'hold');
    const bytes = pattern(100);
    const send = pair.send(0, bytes, 7);
    expect(send.done).toBe(true);
    bytes.fill(0);
    expect(pair.engines[0].pml.retainedBytes).toBe(100);
    const into = new Uint8Array(200);
    const recv = pair.recv(1, into, 7);
    expect(recv.done).toBe(false);
    pair.verdictOf = () => 'pass';
    pair.run();
    expect(recv).toMatchObject({ matchedSource: 0, matchedTag: 7, receivedBytes: 100, cancelled: false });
    expectBytes(into.subarray(0, 100), pattern(100));
    expectClean(pair);
  });

  for (const arrived of [false, true]) {
    test(`in doubt, ${arrived ? 'delivered and not reported' : 'not delivered'}: sent again, taken once`, () => {
      const pair = new MemPair(2);
      pair.verdictOf = only('MATCH', arrived ? 'mute' : 'hold', ({ rail }) => rail === 0);
      for (const tag of [1, 2, 3]) pair.send(0, pattern(50, tag), tag);
      pair.cut(0);
      const into = new Uint8Array(50);
      for (const tag of [1, 2, 3]) {
        expect(pair.recv(1, into, ANY)).toMatchObject({ matchedTag: tag, receivedBytes: 50 });
        expectBytes(into, pattern(50, tag));
      }
      expect(pair.engines[1].pml.counters.envelopeDuplicates).toBe(arrived ? 3 : 0);
      expect(pair.engines[0].pml.counters.envelopesResent).toBe(3);
      expectClean(pair);
    });
  }

  test('a frame on a slow rail is waited for: later ones do not overtake it', () => {
    const pair = new MemPair(2);
    pair.verdictOf = only('MATCH', 'hold', ({ rail }) => rail === 0);
    pair.send(0, pattern(9, 1), 5);
    pair.busy.add(0);
    pair.send(0, pattern(9, 2), 5);
    expect(pair.engines[1].pml.counters.earlyArrivals).toBe(1);
    expect(pair.engines[1].pml.iprobe(0, 0, 5)).toBeUndefined();
    const into = [new Uint8Array(9), new Uint8Array(9)];
    const recvs = into.map((buffer) => pair.recv(1, buffer, 5));
    pair.busy.clear();
    pair.verdictOf = () => 'pass';
    pair.run();
    expect(recvs.every(({ done }) => done)).toBe(true);
    expect(into).toEqual([pattern(9, 1), pattern(9, 2)]);
    expectClean(pair);
  });

  test('refused: the same message again from the copy', () => {
    const pair = new MemPair();
    let refusals = 2;
    pair.verdictOf = (item) => (item.type === 'MATCH' && item.state === 'sent' && refusals-- > 0 ? 'refuse' : 'pass');
    pair.send(0, pattern(60), 1);
    const into = new Uint8Array(60);
    expect(pair.recv(1, into, 1).done).toBe(true);
    expectBytes(into, pattern(60));
    expect(pair.engines[0].pml.counters.refused).toBe(2);
    expectClean(pair);
  });
});

describe('matching', () => {
  test('truncation ends that receive only, eager and rendezvous', () => {
    for (const length of [100, 5000]) {
      const pair = new MemPair();
      const send = pair.send(0, pattern(length), 1);
      const into = new Uint8Array(64);
      const recv = pair.recv(1, into, 1);
      expect(recv.error?.code).toBe('ERR_TRUNCATE');
      expect(recv.receivedBytes).toBe(64);
      expectBytes(into, pattern(length).subarray(0, 64));
      expect(send.done && send.error === undefined).toBe(true);
      pair.send(0, pattern(3), 1);
      expect(pair.recv(1, new Uint8Array(3), 1).error).toBeUndefined();
      expectClean(pair);
    }
  });

  test('cancel succeeds before the match and fails after it', () => {
    const pair = new MemPair();
    const { pml } = pair.engines[1];
    const early = pair.recv(1, new Uint8Array(8), 1);
    expect(pml.cancel(early)).toBe(true);
    expect(early.done && early.cancelled).toBe(true);
    expect(pml.cancel(early)).toBe(false);
    pair.verdictOf = only('FRAG', 'hold');
    const matched = pair.recv(1, new Uint8Array(5000), 1);
    pair.send(0, pattern(5000), 1);
    expect(pml.cancel(matched)).toBe(false);
    expect(matched.done).toBe(false);
    pair.verdictOf = () => 'pass';
    pair.run();
    expect(matched.done && !matched.cancelled).toBe(true);
    expectClean(pair);
  });

  test('probe leaves the message, mprobe takes it from everybody else', () => {
    const pair = new MemPair();
    const { pml } = pair.engines[1];
    pair.send(0, pattern(10, 1), 4);
    pair.send(0, pattern(10, 2), 4);
    expect(pml.iprobe(ANY, 0, ANY)).toMatchObject({ tag: 4, messageBytes: 10, seq: 0 });
    expect(pml.iprobe(0, 0, 5)).toBeUndefined();
    const taken = pml.improbe(0, 0, 4);
    expect(taken).toMatchObject({ seq: 0 });
    const second = new Uint8Array(10);
    pair.recv(1, second, ANY, ANY);
    expectBytes(second, pattern(10, 2));
    const first = new Uint8Array(10);
    expect(pml.imrecv(taken as NonNullable<typeof taken>, new Iov([first])).done).toBe(true);
    expectBytes(first, pattern(10, 1));
    expectClean(pair);
  });

  test('contexts are apart; what comes for a freed one is dropped and its credit given back', () => {
    const pair = new MemPair();
    pair.send(0, pattern(10, 1), 1, false, 5);
    expect(pair.engines[1].pml.iprobe(0, 6, 1)).toBeUndefined();
    pair.engines[1].pml.freeContext(5);
    pair.send(0, pattern(10, 2), 1, false, 5);
    expect(pair.engines[1].pml.counters.freedContextDropped).toBe(2);
    expectClean(pair);
  });
});

describe('rendezvous', () => {
  test('lengths around every limit arrive whole, posted and unexpected', () => {
    for (const length of [0, 1, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 20_000]) {
      for (const posted of [false, true]) {
        const pair = new MemPair(2);
        const into = new Uint8Array(length);
        const post = () => pair.recv(1, into, 3);
        const before = posted ? post() : undefined;
        const send = pair.send(0, pattern(length), 3);
        const recv = before ?? post();
        expect(recv.done && send.done, `${length} bytes`).toBe(true);
        expectBytes(into, pattern(length));
        expectClean(pair);
      }
    }
  });

  test('a synchronous send ends with its match, however short', () => {
    const pair = new MemPair();
    const send = pair.send(0, pattern(4), 1, true);
    expect(pair.sent).toContain('RNDV');
    expect(send.done).toBe(false);
    pair.recv(1, new Uint8Array(4), 1);
    expect(send.done).toBe(true);
    expectClean(pair);
  });

  test('without credit messages leave without data and a later tag still matches', () => {
    const pair = new MemPair(1, { unexpectedBytesMax: 64 * 1024, eagerLimitBytes: 16 * 1024 });
    const sends = Array.from({ length: 12 }, (_, i) => pair.send(0, pattern(16_000, i), i));
    const { counters } = pair.engines[0].pml;
    expect(counters.creditStalls).toBeGreaterThan(0);
    expect(sends.filter(({ done }) => !done)).toHaveLength(counters.creditStalls);
    expect(pair.engines[1].pml.peer(0).heldBytes).toBeLessThanOrEqual(64 * 1024);
    for (const i of [11, 0, 5, 1, 2, 3, 4, 6, 7, 8, 9, 10]) {
      const into = new Uint8Array(16_000);
      expect(pair.recv(1, into, i).done, `tag ${i}`).toBe(true);
      expectBytes(into, pattern(16_000, i));
    }
    expect(sends.every(({ done }) => done)).toBe(true);
    expect(pair.count('CREDIT')).toBeGreaterThan(0);
    pair.send(0, pattern(16_000), 99);
    expect(pair.recv(1, new Uint8Array(16_000), 99).done).toBe(true);
    expectClean(pair);
  });

  test('CREDIT in doubt is told again with the newest limit, never added up', () => {
    const pair = new MemPair(2);
    pair.verdictOf = only('CREDIT', 'mute', ({ rail }) => rail === 0);
    for (let i = 0; i < 100; i++) {
      pair.send(0, pattern(1000), 1);
      pair.recv(1, new Uint8Array(1000), 1);
    }
    expect(pair.count('CREDIT')).toBeGreaterThan(0);
    pair.cut(0);
    const [sender, receiver] = [pair.engines[0].pml.peer(1), pair.engines[1].pml.peer(0)];
    expect(sender.creditLimit).toBeLessThanOrEqual(receiver.releasedBytes + 64 * 1024);
    expect(sender.creditUsed).toBe(receiver.releasedBytes);
    expectClean(pair);
  });

  test('refused fragments and refused first parts go again', () => {
    const pair = new MemPair();
    let refusals = 5;
    pair.verdictOf = (item) => (item.payload.length > 0 && item.state === 'sent' && refusals-- > 0 ? 'refuse' : 'pass');
    const send = pair.send(0, pattern(9000), 1);
    const into = new Uint8Array(9000);
    pair.recv(1, into, 1);
    expect(send.done).toBe(true);
    expectBytes(into, pattern(9000));
    expect(pair.engines[0].pml.counters).toMatchObject({ refused: 5, restarts: 0 });
    expectClean(pair);
  });

  test('a message alone is shared among fast rails', () => {
    const pair = new MemPair(2);
    for (const rail of pair.engines[0].bml.peers.get(1)?.rails ?? []) rail.fragScale = 8;
    const carried = [0, 0];
    pair.verdictOf = (item) => {
      if (item.type === 'FRAG') carried[item.rail] += item.payload.length;
      return 'pass';
    };
    const bytes = pattern(4096 + 256);
    const into = new Uint8Array(bytes.length);
    pair.send(0, bytes, 7);
    const recv = pair.recv(1, into, 7);
    pair.run();
    expect(recv.done).toBe(true);
    expectBytes(into, bytes);
    expect(Math.min(...carried)).toBeGreaterThan(1024);
    expectClean(pair);
  });

  test('the buffer is not given back while a fragment of it lies on a rail', () => {
    const pair = new MemPair(2);
    const into = new Uint8Array(5000);
    const recv = pair.recv(1, into, 1);
    // One FRAG of rail 0 arrives and is not reported; its rail dies for the receiver alone.
    pair.verdictOf = only('FRAG', 'mute', ({ rail }) => rail === 0);
    const send = pair.send(0, pattern(5000), 1);
    expect(recv.done).toBe(true);
    expect(send.done).toBe(false);
    pair.verdictOf = () => 'pass';
    pair.run();
    expect(send.done).toBe(true);
    expectClean(pair);
  });
});

describe('restart by resume', () => {
  function stream(pair: MemPair, length = 12_000) {
    const into = new Uint8Array(length);
    return { into, recv: pair.recv(1, into, 1), send: pair.send(0, pattern(length), 1) };
  }
  function expectWhole({ into, recv, send }: ReturnType<typeof stream>, pair: MemPair): void {
    expect(recv.done && send.done).toBe(true);
    expectBytes(into, pattern(into.length));
    expect(pair.engines[0].pml.counters.messagesSent).toBe(1);
    expectClean(pair);
  }

  for (const verdict of ['hold', 'mute', 'half'] as const) {
    test(`a FRAG that is in doubt (${verdict}) restarts the message and sends only what is missing`, () => {
      const pair = new MemPair(2);
      let seen = 0;
      pair.verdictOf = (item) => (item.type === 'FRAG' && item.rail === 0 && (item.state !== 'sent' || seen++ > 1) ? verdict : 'pass');
      const transfer = stream(pair);
      pair.verdictOf = (item) => (item.rail === 0 ? 'hold' : 'pass');
      pair.cut(0);
      expectWhole(transfer, pair);
      const { restarts, bytesResent } = pair.engines[0].pml.counters;
      if (verdict !== 'mute') expect(restarts).toBe(1);
      expect(bytesResent).toBeLessThan(12_000);
    });
  }

  test('an unanswered RNDV in doubt is sent again with its number', () => {
    const pair = new MemPair(2);
    pair.verdictOf = only('RNDV', 'mute', ({ rail }) => rail === 0);
    const transfer = { into: new Uint8Array(5000), send: pair.send(0, pattern(5000), 1) };
    pair.cut(0);
    const recv = pair.recv(1, transfer.into, 1);
    expectWhole({ ...transfer, recv }, pair);
    expect(pair.engines[1].pml.counters.envelopeDuplicates).toBe(1);
    expect(pair.engines[0].pml.counters.restarts).toBe(0);
  });

  for (const verdict of ['hold', 'mute'] as const) {
    test(`an ACK in doubt (${verdict}) is said again; a second one changes nothing`, () => {
      const pair = new MemPair(2);
      pair.verdictOf = (item) =>
        item.type === 'ACK' && item.rail === 0 ? verdict : item.type === 'FRAG' && verdict === 'mute' ? 'hold' : 'pass';
      const transfer = stream(pair);
      pair.cut(0, 1);
      pair.verdictOf = () => 'pass';
      pair.cut(0);
      expectWhole(transfer, pair);
    });

    for (const [type, from] of [
      ['RNDVRESTARTNOTIFY', 0],
      ['RNDVRESTARTACK', 1],
      ['RAILDOWN', 1],
    ] as const) {
      test(`${type} in doubt (${verdict}) with a second rail`, () => {
        const pair = new MemPair(3);
        pair.verdictOf = only('FRAG', 'hold', ({ rail }) => rail === 0);
        const transfer = stream(pair);
        pair.verdictOf = (item) =>
          item.type === type && item.from === from && item.rail === 1 ? verdict : item.rail === 0 ? 'hold' : 'pass';
        pair.cut(0);
        const once = pair.count(type);
        expect(once).toBeGreaterThan(0);
        pair.verdictOf = () => 'pass';
        pair.cut(1);
        expect(pair.count(type)).toBeGreaterThan(once - 1);
        expectWhole(transfer, pair);
      });
    }
  }

  test('a NOTIFY for a message that is complete is answered by RESTARTNACK', () => {
    const pair = new MemPair(2);
    pair.verdictOf = only('FRAG', 'mute', ({ rail }) => rail === 0);
    const transfer = stream(pair);
    expect(transfer.recv.done).toBe(true);
    expect(transfer.send.done).toBe(false);
    pair.cut(0);
    expectWhole(transfer, pair);
    expect(pair.engines[0].pml.counters).toMatchObject({ restarts: 1, restartNacks: 1, restartAcks: 0 });
  });

  test('no rail left: everything waits, and goes on when one is back', () => {
    const pair = new MemPair(2);
    pair.verdictOf = only('FRAG', 'hold');
    const transfer = stream(pair);
    pair.cut(0);
    pair.cut(1);
    expect(transfer.send.done).toBe(false);
    pair.verdictOf = () => 'pass';
    pair.advance(3000);
    expect(transfer.recv.done).toBe(false);
    pair.restore(1);
    expectWhole(transfer, pair);
    expect(pair.events.map(({ type }) => type)).toContain('unreachable');
  });

  test('one side alone loses the rail: RAILDOWN over the other rail ends it there too, the newer epoch is untouched', () => {
    const pair = new MemPair(2);
    pair.verdictOf = only('FRAG', 'hold', ({ rail }) => rail === 0);
    const transfer = stream(pair);
    pair.verdictOf = () => 'pass';
    pair.cut(0, 1);
    expect(pair.endpoints[0][0].epoch).toBe(0);
    expectWhole(transfer, pair);
    pair.restore(0);
    expect(pair.endpoints[0][0].epoch).toBeGreaterThan(1);
    expect(pair.endpoints[1][0].epoch).toBe(pair.endpoints[0][0].epoch);
  });

  test('a NOTIFY of the current epoch is only answered again, also with more holes than one RESTARTACK can name', () => {
    // Rail 0 takes every other fragment and delivers none of them: hundreds of holes. Then it dies.
    const length = 300 * 1024;
    const pair = new MemPair(3, { fragBytes: 256 });
    pair.verdictOf = (item) => (item.type === 'FRAG' && item.rail === 0 ? 'hold' : 'pass');
    const transfer = stream(pair, length);
    const { received } = [...pair.engines[1].pml.peer(0).recvs][0];
    const holesBefore = received.missing(0, length).length;
    expect(holesBefore).toBeGreaterThan(140);
    // The NOTIFY arrives over rail 1, is answered, and is not reported: it will be said again over rail 2. Of the fragments
    // that the answer calls for, those on rail 1 are held, so that holes are many again.
    pair.verdictOf = (item) =>
      item.type === 'RNDVRESTARTNOTIFY' && item.rail === 1 ? 'mute' : item.type === 'FRAG' && item.rail !== 2 ? 'hold' : 'pass';
    pair.cut(0);
    const counted = received.bytes;
    // The sender alone loses rail 1, after the RESTARTACK was obeyed: nothing that it believes delivered may be forgotten.
    const [message] = [...pair.engines[0].pml.peer(1).sends];
    expect(message.state).toBe('STREAMING');
    const notify = pair.endpoints[0][1].items.find(({ type }) => type === 'RNDVRESTARTNOTIFY');
    expect(notify?.state).toBe('arrived');
    pair.engines[1].pml.handleFrame(0, (notify as Item).header.slice(), new Uint8Array(0), null);
    const missing = received.missing(0, length).length;
    expect(missing).toBeGreaterThan(140);
    const answers = pair.count('RNDVRESTARTACK');
    pair.engines[1].pml.pump();
    expect(pair.count('RNDVRESTARTACK')).toBe(answers + 1);
    expect(received.bytes).toBe(counted);
    pair.verdictOf = () => 'pass';
    pair.run();
    expectWhole(transfer, pair);
  });

  test('a FRAG of an older epoch goes into nothing', () => {
    const pair = new MemPair(2);
    pair.verdictOf = only('FRAG', 'half', ({ rail }) => rail === 0);
    const transfer = stream(pair);
    // Only the sender notices; the half-written fragment is still coming in at the receiver.
    pair.verdictOf = (item) => (item.type === 'FRAG' && item.rail === 0 ? 'half' : 'pass');
    pair.cut(0, 0);
    expectWhole(transfer, pair);
  });
});

describe('ends', () => {
  test('a peer that fails ends its requests and is refused afterwards', () => {
    const pair = new MemPair();
    pair.verdictOf = only('FRAG', 'hold');
    const matched = pair.recv(1, new Uint8Array(5000), 1);
    const waiting = pair.recv(1, new Uint8Array(5), 2);
    const send = pair.send(0, pattern(5000), 1);
    pair.engines[1].failPeer(0, 'ERR_PROC_FAILED', 'the test says so');
    pair.run();
    expect([matched, waiting].map(({ error }) => error?.code)).toEqual(['ERR_PROC_FAILED', 'ERR_PROC_FAILED']);
    expect(send.done).toBe(false);
    expect(pair.engines[1].admit(pair.modules[1], { rank: 0, incarnation: 1, rail: 0, key: 'mem#0', epoch: 9 })).toMatchObject({
      ok: false,
      reason: 'PEER_FAILED',
    });
    expect(pair.recv(1, new Uint8Array(1), 3).error?.code).toBe('ERR_PROC_FAILED');
  });

  test('the rails of a peer that failed are gone once they have given back what they had; what waits for a receive is here', () => {
    const pair = new MemPair(2);
    const [engine] = pair.engines;
    pair.send(1, pattern(20), 7);
    pair.verdictOf = only('MATCH', 'hold');
    for (const tag of [1, 2]) pair.send(0, pattern(100, tag), tag);
    const peer = engine.pml.peer(1);
    const kept = () => ({
      rails: peer.bml.rails.length,
      endpoints: pair.modules[0].endpoints.length,
      flows: peer.flowsIn.size + peer.flowsOut.size,
    });
    expect(kept()).toEqual({ rails: 2, endpoints: 2, flows: 2 });
    engine.failPeer(1, 'ERR_PROC_FAILED', 'the test says so');
    // Their epochs have ended, and the frames are not back.
    expect(kept()).toEqual({ rails: 2, endpoints: 2, flows: 2 });
    pair.run();
    expect(kept()).toEqual({ rails: 0, endpoints: 0, flows: 0 });
    expect(engine.pml.retainedBytes).toBe(0);
    const into = new Uint8Array(20);
    expect(pair.recv(0, into, 7).error).toBeUndefined();
    expect(into).toEqual(pattern(20));
    for (const request of [pair.send(0, pattern(5), 3), pair.recv(0, new Uint8Array(5), 3)])
      expect(request.error?.code).toBe('ERR_PROC_FAILED');
    expect(engine.admit(pair.modules[0], { rank: 1, incarnation: 1, rail: 0, key: 'mem#0', epoch: 9 })).toMatchObject({
      ok: false,
      reason: 'PEER_FAILED',
    });
    pair.advance(70_000);
    expect(pair.endpoints[0].map(({ epoch }) => epoch)).toEqual([0, 0]);
  });

  test('messages that a dead peer had not received are counted: undelivered ones, and those that sat there', () => {
    const pair = new MemPair();
    for (const tag of [1, 2, 3, 4, 5]) pair.send(0, pattern(100, tag), tag);
    for (const tag of [1, 2]) pair.recv(1, new Uint8Array(100), tag);
    // A packet from there carries what was received.
    pair.send(1, pattern(5), 9);
    pair.recv(0, new Uint8Array(5), 9);
    pair.verdictOf = only('MATCH', 'hold');
    pair.send(0, pattern(100, 6), 6);
    pair.engines[0].failPeer(1, 'ERR_PROC_FAILED', 'the test says so');
    pair.run();
    expect(pair.engines[0].pml.counters.lostWithPeer).toBe(4);
  });

  test('a peer to which no rail comes back is unreachable in the end', () => {
    const pair = new MemPair(2);
    pair.cut(0);
    pair.cut(1);
    const send = pair.send(0, pattern(5000), 1);
    pair.advance(70_000);
    expect(send.error?.code).toBe('ERR_PROC_UNREACHABLE');
    expect(send.error?.message).toMatch(/mem#0.*mem#1/);
  });

  test('what waited for a peer that failed is let go: its queues keep no buffer alive', () => {
    const pair = new MemPair();
    // Matched, and its data waits for room; sent before and not on a rail; not sent at all.
    pair.recv(1, new Uint8Array(50_000), 1);
    pair.busy.add(0);
    pair.recv(1, new Uint8Array(50_000), 2);
    for (const tag of [1, 2, 3]) pair.send(0, pattern(50_000, tag), tag);
    pair.send(0, pattern(20), 4);
    const peer = pair.engines[0].pml.peer(1);
    const waiting = () => [peer.control, peer.envelopes, peer.resends, peer.streams].map(({ size }) => size);
    expect(waiting()).not.toEqual([0, 0, 0, 0]);
    pair.engines[0].failPeer(1, 'ERR_PROC_FAILED', 'the test says so');
    pair.run();
    expect(waiting()).toEqual([0, 0, 0, 0]);
  });

  test('finalize: BYE both ways, also when a rail with a BYE on it is lost', () => {
    for (const lost of [false, true]) {
      const pair = new MemPair(2);
      if (lost) pair.verdictOf = only('BYE', 'hold', ({ rail }) => rail === 0);
      for (const engine of pair.engines) engine.beginFinalize();
      pair.run();
      if (lost) pair.cut(0);
      pair.advance(100);
      expect(pair.engines.map((engine) => engine.isLeft())).toEqual([true, true]);
    }
  });

  test('one that leaves when all others have left is told BYE, and its own is not waited for', () => {
    const pair = new MemPair();
    // It has to hear it: on a rail that is not there yet, nobody has left.
    pair.verdictOf = only('BYE', 'hold');
    pair.engines[0].beginFinalize(false, [1]);
    pair.run();
    expect(pair.engines[0].isLeft()).toBe(false);
    pair.verdictOf = () => 'pass';
    pair.advance(100);
    expect(pair.engines[0].isLeft()).toBe(true);
    expect(pair.engines[1].endingOf(0)).toBeDefined();
    pair.engines[1].beginFinalize();
    pair.advance(100);
    expect(pair.engines[1].isLeft()).toBe(true);
  });

  test('a call to a peer that left ends with ERR_PROC_FAILED', () => {
    const pair = new MemPair();
    pair.engines[1].beginFinalize();
    pair.run();
    expect(pair.engines[1].isLeft()).toBe(false);
    expect(pair.send(0, pattern(5), 1).error?.code).toBe('ERR_PROC_FAILED');
    expect(pair.recv(0, new Uint8Array(5), 1).error?.code).toBe('ERR_PROC_FAILED');
    pair.engines[0].beginFinalize();
    pair.advance(100);
    expect(pair.engines.map((engine) => engine.isLeft())).toEqual([true, true]);
  });
});
