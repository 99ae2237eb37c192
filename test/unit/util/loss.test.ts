// What loss does to a stream that repairs itself: how often, how long, and the same for the same seed.
import { describe, expect, it } from 'vitest';
import { drawLoss, type Loss, RETRANSMIT_TIMEOUT_MS, SEGMENT_BYTES } from '../../../src/util/loss.ts';
import { Prng } from '../../../src/util/prng.ts';

const FRAMES = 20_000;

function draw(bytes: number, lossPer10k: number, isFollowed: boolean, seed: string): Loss[] {
  const prng = new Prng(seed);
  return Array.from({ length: FRAMES }, () => drawLoss(prng, bytes, lossPer10k, isFollowed));
}

const part = (list: readonly Loss[], fits: (loss: Loss) => boolean): number => list.filter(fits).length / list.length;

describe('loss', () => {
  it('none loses nothing, and draws nothing', () => {
    const prng = new Prng('none');
    for (let i = 0; i < 100; i++) expect(drawLoss(prng, 1_000_000, 0, false)).toEqual({ isRepaired: false, stallMs: 0 });
    expect(prng.nextU32()).toBe(new Prng('none').nextU32());
  });

  it('of one packet that nothing follows each loss is a time-out', () => {
    const list = draw(64, 500, false, 'alone');
    expect(part(list, ({ stallMs }) => stallMs > 0)).toBeCloseTo(0.05, 2);
    expect(part(list, ({ isRepaired }) => isRepaired)).toBe(0);
  });

  it('of one packet among others most losses are made good at once', () => {
    const list = draw(64, 500, true, 'followed');
    expect(part(list, ({ stallMs, isRepaired }) => isRepaired || stallMs > 0)).toBeCloseTo(0.05, 2);
    expect(part(list, ({ stallMs }) => stallMs > 0)).toBeCloseTo(0.0025, 3);
  });

  it('a long frame has the chances of all of its packets', () => {
    const segments = 45;
    const list = draw(segments * SEGMENT_BYTES, 500, true, 'long');
    expect(part(list, ({ stallMs, isRepaired }) => isRepaired || stallMs > 0)).toBeCloseTo(1 - 0.95 ** segments, 1);
    expect(part(list, ({ stallMs }) => stallMs > 0)).toBeCloseTo(1 - (1 - 0.05 ** 2) ** segments, 1);
  });

  it('time-outs double with each further loss, and have an end', () => {
    const stalls = draw(64, 5000, false, 'doubling').filter(({ stallMs }) => stallMs > 0);
    const times = [...new Set(stalls.map(({ stallMs }) => stallMs))].sort((a, b) => a - b);
    expect(times).toEqual([1, 3, 7, 15, 31, 63, 127].map((n) => n * RETRANSMIT_TIMEOUT_MS));
    expect(part(stalls, ({ stallMs }) => stallMs === RETRANSMIT_TIMEOUT_MS)).toBeCloseTo(0.5, 1);
  });

  it('the same seed gives the same losses', () => {
    expect(draw(10_000, 100, true, 'again')).toEqual(draw(10_000, 100, true, 'again'));
  });
});
