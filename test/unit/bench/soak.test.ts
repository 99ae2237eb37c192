// The soak is only worth what its audit, its schedule and its judgement of memory are: each must be able to fail.
import { describe, expect, test } from 'vitest';
import { AuditError, HEAD_BYTES, Ledger, type MessageName, Payloads } from '../../../bench/soak/audit.ts';
import { pairFaults } from '../../../bench/soak/job.ts';
import { JS_LIMITS, judgeMemory, type MemoryPoint, RSS_LIMITS, SAMPLES_MIN, senSlope, warmUpMs } from '../../../bench/soak/memory.ts';
import { withSoak } from '../../../bench/soak/record.ts';
import { OUTAGE_MS, SOAK_FAULTS, soakSchedule } from '../../../bench/soak/schedule.ts';
import { PARAMS } from '../../../src/params.ts';
import { Prng } from '../../../src/util/prng.ts';

describe('what a message must hold', () => {
  const payloads = new Payloads(7);
  const name: MessageName = { number: 3, source: 1, dest: 2, tag: 5, round: 9, comm: 0 };
  const written = (bytes: number, of = name) => {
    const buffer = Buffer.alloc(bytes);
    payloads.write(buffer, of);
    return buffer;
  };

  test.each([0, 1, 4, 19, 20, 21, 4096, 3 << 20])('%i bytes as they were sent are sound', (bytes) => {
    expect(payloads.fault(written(bytes), name)).toBeUndefined();
  });

  test('one bit anywhere is told', () => {
    for (const bytes of [1, HEAD_BYTES, HEAD_BYTES + 1, 5000]) {
      for (const at of [0, bytes >> 1, bytes - 1]) {
        const buffer = written(bytes);
        buffer[at] ^= 0x10;
        expect(payloads.fault(buffer, name), `${at} of ${bytes}`).toMatch(/^message 3 of 1 to 2, tag 5/);
      }
    }
  });

  test('another message is told by its name, and no message is another’s content', () => {
    const next = { ...name, number: 4 };
    expect(payloads.fault(written(100, next), name)).toContain('in its place came number 4, tag 5, of 1 to 2, round 9');
    for (const other of [{ source: 2 }, { dest: 1 }, { tag: 6 }, { round: 8 }, { comm: 1 }]) {
      expect(payloads.fault(written(100, { ...name, ...other }), name)).toContain('in its place came');
    }
    // A head that is right over the bytes of another.
    const mixed = written(4000, next);
    written(HEAD_BYTES).copy(mixed);
    expect(payloads.fault(mixed, name)).toContain('its bytes are not those that were sent');
  });
});

describe('the counts', () => {
  test('equal counts of sender and receiver are settled; one lost, doubled or on another tag is told', () => {
    const sender = new Ledger(2, 4);
    const receiver = new Ledger(2, 4);
    for (let i = 0; i < 3; i++) expect(sender.nextSent(1, 2)).toBe(i);
    for (let i = 0; i < 3; i++) expect(receiver.nextReceived(0, 2)).toBe(i);
    // What rank 0 has sent to rank 1 is the second block of its counts.
    const sentHere = () => Int32Array.of(...sender.sent.subarray(4, 8), 0, 0, 0, 0);
    receiver.settle(1, sentHere());
    sender.nextSent(1, 2);
    const lost = 'rank 0 has sent 4 messages with tag 2 to rank 1, which has received 3';
    expect(() => receiver.settle(1, sentHere())).toThrow(new AuditError(lost));
    receiver.nextReceived(0, 2);
    receiver.nextReceived(0, 2);
    expect(() => receiver.settle(1, sentHere())).toThrow(/sent 4 .* received 5/);
    sender.nextSent(1, 3);
    expect(() => receiver.settle(1, sentHere())).toThrow(AuditError);
  });

  test('in the end the counts of each pair are held against each other', () => {
    const pairs = [
      { sent: [0, 5], received: [0, 7] },
      { sent: [7, 1], received: [5, 1] },
    ];
    expect(pairFaults(pairs)).toEqual([]);
    pairs[1].received[0] = 4;
    expect(pairFaults(pairs)).toEqual(['rank 0 has sent 5 messages to rank 1, which has received 4']);
  });
});

describe('the schedule', () => {
  const make = (seed: number) => soakSchedule({ prng: new Prng(`${seed}/faults`), durationMs: 3_600_000, nodes: 8, rails: 3 });

  test('a seed repeats it, another seed is another', () => {
    expect(make(1)).toEqual(make(1));
    expect(make(1)).not.toEqual(make(2));
  });

  test.each([1, 2, 3, 4])('seed %i: every kind comes, every few seconds; one rail is whole but in outages; all end restored', (seed) => {
    const steps = make(seed);
    const kinds = new Set(steps.map(({ kind }) => kind));
    for (const kind of Object.keys(SOAK_FAULTS)) expect(kinds).toContain(kind);
    const struck = steps.filter(({ kind }) => kind !== 'restore');
    expect(struck.length).toBeGreaterThan(500);
    const broken = new Set<number>();
    let several = 0;
    let before = 0;
    for (const { atMs, kind, actions, untilMs } of steps) {
      expect(atMs).toBeGreaterThanOrEqual(before);
      expect(atMs).toBeLessThanOrEqual(3_597_000);
      before = atMs;
      for (const { rail } of actions) {
        if (rail === undefined) throw new Error('a step without a rail');
        expect(broken.has(rail)).toBe(kind === 'restore');
        if (kind === 'restore') broken.delete(rail);
        else broken.add(rail);
      }
      if (kind === 'outage') expect(untilMs! - atMs).toBeLessThanOrEqual(OUTAGE_MS[1]);
      else expect(broken.size).toBeLessThan(3);
      if (broken.size > 1) several++;
    }
    expect(broken.size).toBe(0);
    expect(several).toBeGreaterThan(20);
  });

  test('an outage is well under the time after which a peer is given up', () => {
    const preset = PARAMS.pml_peer_timeout_ms.default;
    expect(OUTAGE_MS[1]).toBeLessThan(preset / 10);
  });
});

describe('the judgement of memory', () => {
  const warmMs = 120_000;
  const MIB = 1 << 20;
  /** Ten minutes, a sample in ten seconds, some 4 rounds a second. */
  const series = (bytesOf: (round: number, i: number, prng: Prng) => number, seed = 1, samples = 60): MemoryPoint[] => {
    const prng = new Prng(`memory/${seed}`);
    return Array.from({ length: samples }, (_, i) => ({ atMs: i * 10_000, round: i * 40, bytes: bytesOf(i * 40, i, prng) }));
  };
  const js = (points: MemoryPoint[]) => judgeMemory(points, { ...JS_LIMITS, warmMs });
  const rss = (points: MemoryPoint[]) => judgeMemory(points, { ...RSS_LIMITS, warmMs });
  const noise = (prng: Prng, bytes: number) => prng.below(2 * bytes) - bytes;

  test.each([1, 2, 3, 4, 5])('noise around a level is flat (%i)', (seed) => {
    expect(js(series((_round, _i, prng) => 15 * MIB + noise(prng, 100_000), seed)).verdict).toBe('flat');
    expect(rss(series((_round, _i, prng) => 170 * MIB + noise(prng, 4 * MIB), seed)).verdict).toBe('flat');
  });

  test('growth that ends with the warm-up is flat', () => {
    expect(js(series((_round, i, prng) => 15 * MIB - Math.max(0, 12 - i) * MIB + noise(prng, 100_000))).verdict).toBe('flat');
  });

  test.each(Array.from({ length: 40 }, (_, seed) => seed))('1 KiB in every round is told (%i)', (seed) => {
    const verdict = js(series((round, _i, prng) => 15 * MIB + round * 1024 + noise(prng, 100_000), seed));
    expect(verdict.verdict).toBe('grows');
    expect(verdict.why).toContain('a leak of 768 is not excluded');
    expect(Math.abs(verdict.bytesPerRound - 1024)).toBeLessThan(400);
  });

  test('noise in which such a leak could hide is not called flat', () => {
    expect(js(series((_round, _i, prng) => 60 * MIB + noise(prng, 8 * MIB))).verdict).toBe('grows');
  });

  test('a leak too slow for the slope shows in the growth of a long run', () => {
    const points = series((round, _i, prng) => 15 * MIB + round * 300 + noise(prng, 100_000), 1, 720);
    const verdict = js(points);
    expect(verdict.high).toBeLessThan(768);
    expect(verdict.why).toContain('above that of the first');
  });

  test('a step that stays is told', () => {
    expect(js(series((_round, i, prng) => (i < 40 ? 15 : 19) * MIB + noise(prng, 100_000))).verdict).toBe('grows');
  });

  test('resident pages that grow with the rounds are told', () => {
    const verdict = rss(series((round, _i, prng) => 170 * MIB + round * 16_384 + noise(prng, MIB)));
    expect(verdict.why).toMatch(/a leak of \d+ is shown/);
    // 1 KiB a round in the hours of a whole soak.
    const long = rss(series((round, _i, prng) => 170 * MIB + round * 1400 + noise(prng, MIB), 1, 720));
    expect(long.why).toContain('a leak of 1024 is shown');
  });

  test('too few samples, or rounds, are not judged', () => {
    const points = series(() => MIB, 1, 12 + SAMPLES_MIN - 1);
    expect(js(points).verdict).toBe('not judged');
    expect(js(series(() => MIB, 1, 12 + 2 * SAMPLES_MIN)).verdict).toBe('flat');
    // Many samples of few rounds.
    const slow = series(() => MIB, 1, 60).map((point) => ({ ...point, round: point.round / 10 }));
    expect(js(slow)).toMatchObject({ verdict: 'not judged', why: '92 rounds in the second half, 500 are needed' });
    expect(warmUpMs(600_000)).toBe(120_000);
  });

  test('the slope is that of most pairs, whatever a few samples say', () => {
    const points = Array.from({ length: 30 }, (_, x) => ({ x, y: 2 * x + 1 }));
    points[7].y = 1e9;
    const { slope, low, high } = senSlope(points);
    expect(slope).toBe(2);
    expect(low).toBeLessThanOrEqual(2);
    expect(high).toBeGreaterThanOrEqual(2);
    expect(senSlope([{ x: 1, y: 1 }]).slope).toBeNaN();
  });
});

test('the record replaces the one that is there, and leaves the rest alone', () => {
  const first = withSoak('# Results\n\n<!-- by hand from here on -->\n\ntext\n', 'one\n');
  expect(first).toMatch(/text\n\n<!-- soak:begin[^\n]*-->\n\n## Soak\n\none\n\n<!-- soak:end -->\n$/);
  expect(withSoak(`${first}more\n`, 'two')).toBe(`${first.replace('one', 'two')}more\n`);
});
