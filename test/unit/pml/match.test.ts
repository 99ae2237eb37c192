// MatchContext against a naive model: two arrays and a linear search, as the standard describes it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ANY, MatchContext } from '../../../src/pml/match.ts';
import { type Envelope, RecvRequest } from '../../../src/pml/records.ts';
import { EMPTY_IOV } from '../../../src/util/iov.ts';

const matches = (request: RecvRequest, envelope: Envelope): boolean =>
  (request.source === ANY || request.source === envelope.source) && (request.tag === ANY || request.tag === envelope.tag);

class NaiveContext {
  posted: RecvRequest[] = [];
  unexpected: Envelope[] = [];

  probe(source: number, tag: number): Envelope | undefined {
    return this.unexpected.find((envelope) => matches(new RecvRequest(0, source, tag, EMPTY_IOV), envelope));
  }
  post(request: RecvRequest): Envelope | undefined {
    const index = this.unexpected.findIndex((envelope) => matches(request, envelope));
    if (index >= 0) return this.unexpected.splice(index, 1)[0];
    this.posted.push(request);
    return undefined;
  }
  arrive(envelope: Envelope): RecvRequest | undefined {
    const index = this.posted.findIndex((request) => matches(request, envelope));
    if (index >= 0) return this.posted.splice(index, 1)[0];
    this.unexpected.push(envelope);
    return undefined;
  }
}

let serial = 0;
const envelopeOf = (source: number, tag: number) => ({ source, tag, seq: serial++ }) as unknown as Envelope;

const source = fc.integer({ min: ANY, max: 2 });
const tag = fc.integer({ min: ANY, max: 3 });
const step = fc.oneof(
  fc.record({ op: fc.constantFrom('post' as const, 'probe' as const, 'mprobe' as const), source, tag }),
  fc.record({ op: fc.constant('arrive' as const), source: fc.nat(2), tag: fc.nat(3) }),
  fc.record({ op: fc.constant('cancel' as const), source: fc.nat(40), tag: fc.constant(0) }),
);

test('agrees with a linear search under any sequence of posts, arrivals, cancels and probes', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const context = new MatchContext();
      const model = new NaiveContext();
      const requests: RecvRequest[] = [];
      for (const { op, source: s, tag: t } of steps) {
        if (op === 'post') {
          const request = new RecvRequest(0, s, t, EMPTY_IOV);
          requests.push(request);
          expect(context.post(request)).toBe(model.post(request));
        } else if (op === 'arrive') {
          const envelope = envelopeOf(s, t);
          expect(context.arrive(envelope)).toBe(model.arrive(envelope));
        } else if (op === 'probe') expect(context.probe(s, t)).toBe(model.probe(s, t));
        else if (op === 'mprobe') {
          const envelope = context.probe(s, t);
          expect(envelope).toBe(model.probe(s, t));
          if (envelope === undefined) continue;
          context.takeUnexpected(envelope);
          model.unexpected.splice(model.unexpected.indexOf(envelope), 1);
        } else if (requests.length > 0) {
          const request = requests[s % requests.length];
          const index = model.posted.indexOf(request);
          if (index >= 0) model.posted.splice(index, 1);
          expect(context.unpost(request)).toBe(index >= 0);
        }
        expect(context.postedCount).toBe(model.posted.length);
        expect(context.unexpectedCount).toBe(model.unexpected.length);
      }
      expect(new Set(context.postedRequests())).toEqual(new Set(model.posted));
      expect(new Set(context.unexpectedEnvelopes())).toEqual(new Set(model.unexpected));
    }),
    { numRuns: 500 },
  );
});

/** How many lists a context keeps. */
const listsOf = (context: MatchContext): number => {
  const { posted, unexpected } = context as unknown as Record<'posted' | 'unexpected', { lists(): Iterable<unknown> }>;
  return [...posted.lists(), ...unexpected.lists()].length;
};

test('a program that uses every tag once leaves no lists behind, whoever comes first, and what waits stays where it is', () => {
  const context = new MatchContext();
  const kept = new RecvRequest(0, 1, 1_000_000, EMPTY_IOV);
  const early = envelopeOf(2, 1_000_000);
  context.post(kept);
  context.arrive(early);
  for (let t = 0; t < 5000; t++) {
    expect(context.post(new RecvRequest(0, 1, t, EMPTY_IOV))).toBeUndefined();
    expect(context.arrive(envelopeOf(1, t))).toBeDefined();
    const envelope = envelopeOf(2, t);
    expect(context.arrive(envelope)).toBeUndefined();
    expect(context.post(new RecvRequest(0, 2, t, EMPTY_IOV))).toBe(envelope);
  }
  expect(listsOf(context)).toBeLessThan(300);
  expect(context.postedCount).toBe(1);
  expect(context.unexpectedCount).toBe(1);
  expect(context.arrive(envelopeOf(1, 1_000_000))).toBe(kept);
  expect(context.post(new RecvRequest(0, ANY, 1_000_000, EMPTY_IOV))).toBe(early);
});

test('the first wildcard finds what came before it, in the order of arrival', () => {
  const context = new MatchContext();
  const [a, b, c, d] = [envelopeOf(2, 7), envelopeOf(1, 8), envelopeOf(1, 7), envelopeOf(2, 8)];
  for (const envelope of [a, b, c, d]) context.arrive(envelope);
  expect(context.post(new RecvRequest(0, 1, 8, EMPTY_IOV))).toBe(b);
  expect(context.probe(ANY, 8)).toBe(d);
  expect(context.probe(1, ANY)).toBe(c);
  expect(context.post(new RecvRequest(0, ANY, ANY, EMPTY_IOV))).toBe(a);
  const e = envelopeOf(1, 9);
  context.arrive(e);
  expect(context.post(new RecvRequest(0, ANY, ANY, EMPTY_IOV))).toBe(c);
  expect(context.post(new RecvRequest(0, ANY, ANY, EMPTY_IOV))).toBe(d);
  expect(context.post(new RecvRequest(0, 1, 9, EMPTY_IOV))).toBe(e);
  expect(context.probe(ANY, ANY)).toBeUndefined();
  expect(context.unexpectedCount).toBe(0);
});

/** Tags by the hundred, so that lists come and go. */
const manyTags = fc.array(
  fc.oneof(
    fc.record({ op: fc.constant('post' as const), source: fc.constantFrom(ANY, 0, 1), tag: fc.integer({ min: ANY, max: 150 }) }),
    fc.record({ op: fc.constant('arrive' as const), source: fc.nat(1), tag: fc.nat(150) }),
  ),
  { minLength: 400, maxLength: 900 },
);

test('agrees with a linear search over many tags, too', () => {
  fc.assert(
    fc.property(manyTags, (steps) => {
      const context = new MatchContext();
      const model = new NaiveContext();
      for (const { op, source: s, tag: t } of steps) {
        if (op === 'post') {
          const request = new RecvRequest(0, s, t, EMPTY_IOV);
          expect(context.post(request)).toBe(model.post(request));
        } else {
          const envelope = envelopeOf(s, t);
          expect(context.arrive(envelope)).toBe(model.arrive(envelope));
        }
      }
    }),
    { numRuns: 60 },
  );
});
