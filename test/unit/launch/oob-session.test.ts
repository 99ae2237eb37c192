// The reliable stream under the out-of-band channel, without sockets: two sessions, and a wire that loses its tail at will.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeEnvelope } from '../../../src/launch/oob/envelope.ts';
import { OobSession, OUTBOX_MESSAGES_MAX } from '../../../src/launch/oob/session.ts';

describe('oob session', () => {
  test('cut anywhere, in both directions: each message is taken once and in order', async () => {
    // Each step sends some messages from one side, then delivers a part of what is on the wire, then perhaps cuts it.
    const step = fc.record({
      side: fc.integer({ min: 0, max: 1 }),
      sends: fc.integer({ min: 0, max: 5 }),
      delivers: fc.nat(12),
      cut: fc.boolean(),
    });
    await fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const sides = [new OobSession(), new OobSession()];
        const taken: number[][] = [[], []];
        const sent = [0, 0];
        let wires: Uint8Array[][] = [[], []]; // wires[i]: on the way to side i
        const join = () => {
          wires = [[], []];
          const [to0, to1] = wires;
          const received = sides.map((session) => session.received);
          sides[0].attach((bytes) => to1.push(bytes), received[1]);
          sides[1].attach((bytes) => to0.push(bytes), received[0]);
        };
        const deliver = (side: number) => {
          const bytes = wires[side].shift();
          if (bytes === undefined) return false;
          const envelope = decodeEnvelope(bytes);
          const verdict = sides[side].intake(envelope);
          expect(verdict).not.toBe('gap');
          if (verdict === 'take' && envelope.kind === 'barrierEnter') taken[side].push(Number(envelope.body.name));
          return true;
        };
        join();
        for (const { side, sends, delivers, cut } of steps) {
          for (let i = 0; i < sends; i++) sides[side].send('barrierEnter', { name: String(sent[side]++), tolerant: false });
          for (let i = 0; i < delivers; i++) deliver(i % 2);
          if (cut) {
            for (const session of sides) session.detach();
            join();
          }
        }
        for (const session of sides) session.detach();
        join();
        for (let more = true; more; ) more = [deliver(0), deliver(1)].includes(true);
        for (const side of [0, 1]) expect(taken[1 - side]).toEqual([...Array(sent[side]).keys()]);
        for (const session of sides) session.sendUnnumbered('ack');
        for (let more = true; more; ) more = [deliver(0), deliver(1)].includes(true);
        for (const session of sides) expect(session.unacknowledged).toBe(0);
      }),
      { numRuns: 200 },
    );
  });

  test('the queue is bounded, a gap is seen, and an acknowledgement of what was never sent is refused', () => {
    const session = new OobSession();
    for (let i = 0; i < OUTBOX_MESSAGES_MAX; i++) session.send('finalized', {});
    expect(() => session.send('finalized', {})).toThrow(expect.objectContaining({ code: 'ERR_OOB' }));
    const envelope = { acknowledged: 0, kind: 'finalized', body: {} } as const;
    expect(session.intake({ ...envelope, sequence: 2 })).toBe('gap');
    expect(session.intake({ ...envelope, sequence: 1 })).toBe('take');
    expect(session.intake({ ...envelope, sequence: 1 })).toBe('duplicate');
    expect(() => session.intake({ ...envelope, sequence: 0, acknowledged: OUTBOX_MESSAGES_MAX + 1 })).toThrow(
      expect.objectContaining({ code: 'ERR_PROTOCOL' }),
    );
  });

  test('whoever waits for an acknowledgement is told when the session ends', async () => {
    const session = new OobSession();
    const waiting = session.acknowledgedUpTo(session.send('finalized', {}));
    session.end(new Error('over'));
    await expect(waiting).rejects.toThrow('over');
  });
});
