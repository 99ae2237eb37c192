// The ring of outstanding frames against a plain array, through random sequences of pushes, shifts and refusals.
import { describe, expect, test } from 'vitest';
import { OutstandingFrames } from '../../../src/btl/base/outstanding.ts';
import type { Frame } from '../../../src/btl/btl.ts';
import { Prng } from '../../../src/util/prng.ts';

const frameOf = (number: number): Frame => ({ railFrameNumber: number }) as unknown as Frame;

interface Entry {
  frame: Frame | null;
  bytes: number;
  refused: boolean;
}

/** The ring and the model, side by side: every answer is compared. */
class Compared {
  readonly ring = new OutstandingFrames();
  readonly model: Entry[] = [];
  pushes = 0;
  sizeMax = 0;

  push(isBye: boolean): void {
    const frame = isBye ? null : frameOf(this.pushes);
    const bytes = 100 + this.pushes++;
    this.ring.push(frame, bytes);
    this.model.push({ frame, bytes, refused: false });
    this.sizeMax = Math.max(this.sizeMax, this.model.length);
    this.look();
  }

  shift(): void {
    const { frame } = this.model.shift() as Entry;
    expect(this.ring.shift()).toBe(frame);
    this.look();
  }

  refuse(index: number): void {
    const entry = this.model[index] as Entry | undefined;
    const isFrame = entry !== undefined && entry.frame !== null;
    expect(this.ring.refuse(index)).toBe(isFrame);
    if (isFrame) entry.refused = true;
    this.look();
  }

  private look(): void {
    expect(this.ring.size).toBe(this.model.length);
    if (this.model.length === 0) return;
    expect(this.ring.bytes).toBe(this.model[0].bytes);
    expect(this.ring.isRefused).toBe(this.model[0].refused);
  }

  drain(): void {
    while (this.model.length > 0) this.shift();
  }
}

describe('the ring answers as a plain list does', () => {
  test.each(Array.from({ length: 16 }, (_, seed) => seed))('random sequence %i', (seed) => {
    const prng = new Prng(`outstanding ${seed}`);
    const compared = new Compared();
    for (let phase = 0; phase < 8; phase++) {
      // Phases that fill, drain and hover, so that it grows with its first frame at any place, and wraps at every width.
      const pushesOf10 = prng.between(2, 8);
      for (let step = 0; step < 250; step++) {
        const chosen = prng.between(0, 9);
        if (prng.between(0, 7) === 0) compared.refuse(prng.between(-2, compared.model.length + 2));
        else if (chosen < pushesOf10 || compared.model.length === 0) compared.push(prng.between(0, 19) === 0);
        else compared.shift();
      }
      if (prng.between(0, 3) === 0) compared.drain();
    }
    compared.drain();
    expect(compared.pushes).toBeGreaterThan(500);
  });
});

test('it grows twice while it is wrapped, and keeps order, lengths and refusals', () => {
  const compared = new Compared();
  for (let i = 0; i < 64; i++) compared.push(false);
  for (let i = 0; i < 50; i++) compared.shift();
  // The first frame is now at slot 50 of 64.
  for (let i = 0; i < 400; i++) {
    compared.push(i === 399);
    if (i % 7 === 0) compared.refuse(compared.model.length - 1);
  }
  expect(compared.sizeMax).toBeGreaterThan(256);
  expect(compared.model.filter(({ refused }) => refused).length).toBeGreaterThan(50);
  compared.drain();
});

test('many times around without growing', () => {
  const compared = new Compared();
  for (let i = 0; i < 60; i++) compared.push(false);
  for (let i = 0; i < 1000; i++) {
    compared.shift();
    compared.push(false);
    compared.refuse(i % 60);
  }
  expect(compared.sizeMax).toBe(60);
  compared.drain();
});

test('a refusal belongs to its frame, not to the slot: what comes there later is not refused', () => {
  const ring = new OutstandingFrames();
  ring.push(frameOf(0), 1);
  expect(ring.refuse(0)).toBe(true);
  expect(ring.refuse(0)).toBe(true);
  expect(ring.isRefused).toBe(true);
  ring.shift();
  for (let i = 1; i <= 200; i++) {
    ring.push(frameOf(i), i);
    expect(ring.isRefused).toBe(false);
    ring.shift();
  }
});

test('there is nothing to refuse in an empty ring, beyond its end, before its beginning, or in a BYE', () => {
  const ring = new OutstandingFrames();
  expect(ring.refuse(0)).toBe(false);
  ring.push(frameOf(0), 1);
  ring.push(null, 2);
  for (const index of [-1, 1, 2, 63, 64]) expect(ring.refuse(index)).toBe(false);
  expect(ring.isRefused).toBe(false);
  expect(ring.shift()).not.toBeNull();
  expect(ring.refuse(0)).toBe(false);
  expect(ring.shift()).toBeNull();
  expect(ring.size).toBe(0);
});
