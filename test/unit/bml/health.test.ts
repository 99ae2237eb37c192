// The function that decides whether a rail that works is also good, and how the BML uses it.
import { describe, expect, test } from 'vitest';
import {
  addSample,
  judgeCarrying,
  judgeTrial,
  leaveAfterMs,
  nextTrialMs,
  trialAnswerMs,
  trialIntervalMs,
  usualMaxMs,
} from '../../../src/bml/health.ts';
import { BML_OPTIONS, FakeRails } from './fake-rails.ts';

const LIMITS = { stallTimeoutMs: 60, trialMinMs: 50, trialMaxMs: 1200 };
const HELD = {
  state: 'UP' as const,
  heldMs: 0,
  heldPeerMs: 0,
  holdsDoubted: false,
  usualMaxMs: 0,
  siblingMs: 1,
  siblingUsualMs: Number.POSITIVE_INFINITY,
  proofs: 0,
};

describe('a rail that carries', () => {
  test('is doubted at half of the time-out and left at the whole, when the peer polled and a sibling moved', () => {
    expect(judgeCarrying({ ...HELD, heldMs: 29, heldPeerMs: 29 }, LIMITS)).toBe('keep');
    expect(judgeCarrying({ ...HELD, heldMs: 30, heldPeerMs: 30 }, LIMITS)).toBe('doubt');
    expect(judgeCarrying({ ...HELD, state: 'SUSPECT', heldMs: 59, heldPeerMs: 59 }, LIMITS)).toBe('keep');
    expect(judgeCarrying({ ...HELD, state: 'SUSPECT', heldMs: 60, heldPeerMs: 30 }, LIMITS)).toBe('leave');
    expect(judgeCarrying({ ...HELD, state: 'SUSPECT', heldMs: 29, heldPeerMs: 29 }, LIMITS)).toBe('clear');
    expect(judgeCarrying({ ...HELD, state: 'SUSPECT', heldMs: 29, heldPeerMs: 29, holdsDoubted: true }, LIMITS)).toBe('keep');
  });

  test('is never left while the peer computes, nor when no sibling moves', () => {
    expect(judgeCarrying({ ...HELD, state: 'SUSPECT', heldMs: 60_000, heldPeerMs: 29 }, LIMITS)).toBe('keep');
    const alone = { ...HELD, heldMs: 60_000, heldPeerMs: 60_000, siblingMs: Number.POSITIVE_INFINITY };
    expect(judgeCarrying(alone, LIMITS)).toBe('keep');
  });

  test('is doubted sooner when siblings have answered what was asked after the mark, and left when it would have been', () => {
    const proven = { ...HELD, proofs: 3 };
    expect(judgeCarrying({ ...proven, heldMs: 14, heldPeerMs: 14 }, LIMITS)).toBe('keep');
    expect(judgeCarrying({ ...proven, heldMs: 15, heldPeerMs: 15 }, LIMITS)).toBe('doubt');
    expect(judgeCarrying({ ...proven, siblingUsualMs: 70, heldMs: 15, heldPeerMs: 15 }, LIMITS)).toBe('keep');
    expect(judgeCarrying({ ...proven, heldMs: 59, heldPeerMs: 59 }, LIMITS)).toBe('doubt');
    expect(judgeCarrying({ ...proven, heldMs: 60, heldPeerMs: 30 }, LIMITS)).toBe('leave');
    expect(leaveAfterMs({ ...proven, siblingMs: 80 }, LIMITS)).toBe(100);
    expect(leaveAfterMs({ ...HELD, siblingMs: 80 }, LIMITS)).toBe(160);
  });

  test('may be late by its own habit, within bounds, and by what siblings would need twice', () => {
    expect(leaveAfterMs({ ...HELD, usualMaxMs: 80, siblingMs: 1, proofs: 0 }, LIMITS)).toBe(80);
    expect(leaveAfterMs({ ...HELD, usualMaxMs: 5000, siblingMs: 1, proofs: 0 }, LIMITS)).toBe(120);
    expect(leaveAfterMs({ ...HELD, usualMaxMs: 100, siblingUsualMs: 40 }, LIMITS)).toBe(80);
    expect(leaveAfterMs({ ...HELD, usualMaxMs: 100, siblingUsualMs: 2 }, LIMITS)).toBe(60);
    expect(judgeCarrying({ ...HELD, usualMaxMs: 50, heldMs: 49, heldPeerMs: 49 }, LIMITS)).toBe('keep');
    expect(judgeCarrying({ ...HELD, usualMaxMs: 50, heldMs: 50, heldPeerMs: 50 }, LIMITS)).toBe('doubt');
    expect(leaveAfterMs({ ...HELD, usualMaxMs: 0, siblingMs: 400, proofs: 0 }, LIMITS)).toBe(800);
  });

  test('has a usual time with a deviation, as round trips have', () => {
    const usual = { meanMs: 0, deviationMs: 0, samples: 0 };
    expect(usualMaxMs(usual)).toBe(0);
    addSample(usual, 8);
    expect(usual).toEqual({ meanMs: 8, deviationMs: 4, samples: 1 });
    for (let i = 0; i < 200; i++) addSample(usual, 8);
    expect(usualMaxMs(usual)).toBeCloseTo(8, 3);
    addSample(usual, 16);
    expect(usual.meanMs).toBeCloseTo(9, 3);
    expect(usual.deviationMs).toBeCloseTo(2, 3);
  });
});

describe('a trial', () => {
  const trial = { waitingMs: 0, siblingMs: 0, faultlessMs: 0, answers: 0, trialMs: 50 };

  test('ends in trust after its time and four answers, and meets a fault when one is late', () => {
    expect(judgeTrial({ ...trial, faultlessMs: 49, answers: 9 }, LIMITS)).toBe('keep');
    expect(judgeTrial({ ...trial, faultlessMs: 50, answers: 3 }, LIMITS)).toBe('keep');
    expect(judgeTrial({ ...trial, faultlessMs: 50, answers: 4 }, LIMITS)).toBe('trust');
    expect(judgeTrial({ ...trial, waitingMs: 21, faultlessMs: 50, answers: 4 }, LIMITS)).toBe('fault');
    expect(trialAnswerMs(10, LIMITS)).toBe(80);
  });

  test('is three times as long after each fault, up to a bound, and short again after a time without any', () => {
    let trialMs = 0;
    const lengths = Array.from({ length: 6 }, () => (trialMs = nextTrialMs(trialMs, 100, LIMITS)));
    expect(lengths).toEqual([50, 150, 450, 1200, 1200, 1200]);
    expect(nextTrialMs(1200, 2399, LIMITS)).toBe(1200);
    expect(nextTrialMs(1200, 2400, LIMITS)).toBe(50);
    expect(nextTrialMs(150, 1499, LIMITS)).toBe(450);
    expect(nextTrialMs(150, 1500, LIMITS)).toBe(50);
  });

  test('asks often enough to meet short holes, and seldom when nothing else goes to that peer', () => {
    expect([50, 200, 800, 4000].map((ms) => trialIntervalMs(ms, false, 1000))).toEqual([5, 12.5, 50, 200]);
    expect(trialIntervalMs(50, true, 1000)).toBe(250);
  });
});

describe('in the BML', () => {
  const KiB64 = 64 * 1024;
  function two(): FakeRails {
    const f = new FakeRails([{ liveness: 'self' }, { liveness: 'self' }], { ...BML_OPTIONS, ...LIMITS });
    f.turn();
    f.up(0, 1);
    expect(f.states()).toBe('UP UP');
    return f;
  }
  /** `delivers`: the rails over which something gets through in every turn. */
  function carry(f: FakeRails, ms: number, delivers: readonly number[]): void {
    for (let i = 0; i < ms / 10; i++) {
      for (const rail of [0, 1]) {
        if (f.endpoints[rail].epoch === 0) continue;
        f.endpoints[rail].outstandingBytes = KiB64;
        if (!delivers.includes(rail) || !f.rails[rail].isCarrying) continue;
        f.delivered(rail, KiB64);
      }
      f.turn();
    }
  }

  test('a rail that holds what it has while its sibling moves is suspect, then left, then on trial, then trusted', () => {
    const f = two();
    carry(f, 200, [0, 1]);
    expect(f.states()).toBe('UP UP');
    carry(f, 40, [1]);
    expect(f.states()).toBe('SUSPECT UP');
    expect(f.peer.send.map(({ index }) => index)).toEqual([1]);
    carry(f, 50, [1]);
    expect(f.rails[0].state).toBe('DOWN');
    expect(f.rails[0].lastReason?.kind).toBe('stalled');
    expect(f.rails[0].counters).toMatchObject({ stalls: 1, suspicions: 1 });
    f.run(200);
    f.up(0);
    expect(f.rails[0].state).toBe('TRIAL');
    expect(f.peer.eager.map(({ index }) => index)).toEqual([1]);
    for (let i = 0; i < 200 && f.rails[0].state === 'TRIAL'; i++) carry(f, 10, [1]);
    expect(f.rails[0].state).toBe('UP');
    expect(f.rails[0].counters.paddingBytes).toBeGreaterThanOrEqual(4 * 4096);
  });

  test('short messages pass over a rail whose link loses something, for a second, and for longer each time', () => {
    const f = two();
    // The one that came up first has answered sooner; that is forgotten by then.
    carry(f, 32_000, [0, 1]);
    expect(f.indexes(f.peer.eager)).toEqual([0, 1]);
    const passedOverMs = () => {
      for (let i = 0; i < 2; i++) {
        expect(f.indexes(f.peer.eager)).toEqual([0, 1]);
        f.endpoints[0].counters.losses++;
        carry(f, 10, [0, 1]);
      }
      let ms = 0;
      for (; f.indexes(f.peer.eager)[0] === 1; ms += 10) carry(f, 10, [0, 1]);
      return ms;
    };
    const [first, second] = [passedOverMs(), passedOverMs()];
    expect(first).toBeGreaterThanOrEqual(990);
    expect(first).toBeLessThan(1200);
    expect(second).toBeGreaterThanOrEqual(1990);
    expect(second).toBeLessThan(2200);
  });

  test('a peer that computes, and rails that all stand still, are left alone', () => {
    const f = two();
    carry(f, 100, [0, 1]);
    f.peerPolls = false;
    carry(f, 2000, []);
    expect(f.rails.map((rail) => rail.counters.stalls)).toEqual([0, 0]);
    f.peerPolls = true;
    carry(f, 20, [0, 1]);
    expect(f.states()).toBe('UP UP');
  });

  test('turns that are long at both sides, as on a crowded machine, make no rail late; one that brings nothing is left all the same', () => {
    const f = two();
    carry(f, 200, [0, 1]);
    const longTurns = (count: number) => {
      for (let i = 0; i < count; i++) {
        f.endpoints[0].outstandingBytes = f.rails[0].isCarrying ? KiB64 : 0;
        f.endpoints[1].outstandingBytes = KiB64;
        f.delivered(1, KiB64);
        f.turn(45);
      }
    };
    longTurns(4);
    expect(f.rails[0].counters).toMatchObject({ stalls: 0, suspicions: 0 });
    longTurns(30);
    expect(f.rails[0].counters.stalls).toBe(1);
    expect(f.rails[0].lastReason?.kind).toBe('stalled');
  });
});
