// Random sequences of sends, receives, held, refused and half-delivered frames, and lost rails between two ranks (support/pair-play.ts).
import fc from 'fast-check';
import { test } from 'vitest';
import { playPair } from '../../support/pair-play.ts';

/** Seeds that once failed. 120248022: every rail is cut at the acceptor's end alone. */
test.each([120248022, 2147483630])('seed %d', (seed) => void playPair(seed, 60));

test('every message arrives once and whole, whatever became of its frames and rails', () => {
  fc.assert(
    fc.property(fc.nat(0x7fff_ffff), (seed) => void playPair(seed, 60)),
    { numRuns: Number(process.env.PAIR_RUNS ?? 120) },
  );
});

test('where messages are logged, each has the digest of what was sent, whatever became of its fragments', () => {
  fc.assert(
    fc.property(fc.nat(0x7fff_ffff), fc.boolean(), (seed, offersWords) => void playPair(seed, 60, offersWords, true)),
    { numRuns: Number(process.env.PAIR_RUNS ?? 120) },
  );
});
