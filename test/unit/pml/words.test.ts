// Short messages in words: what takes them from where they lie must do what the general way does, event by event. Both ways are fed the same
// events, and everything that can be seen of them afterwards is compared.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { SendLog } from '../../../src/ft/log/send-log.ts';
import { encodeMatchWords, encodePacket, FLAG, MATCH_HEADER_BYTES, newPacket, PACKET, putCreditWords } from '../../../src/pml/hdr.ts';
import { ANY } from '../../../src/pml/match.ts';
import type { MessageOutcomes } from '../../../src/pml/message-log.ts';
import type { RecvRequest } from '../../../src/pml/records.ts';
import { crc32cJs } from '../../../src/util/crc32c.ts';
import { Iov } from '../../../src/util/iov.ts';
import { Prng } from '../../../src/util/prng.ts';
import { MemPair } from '../../support/mem-pair.ts';
import { playPair } from '../../support/pair-play.ts';
import { pattern } from '../../support/pattern.ts';

const RUNS = Number(process.env.PAIR_RUNS ?? 12);
const LIMIT_MS = 120_000 + RUNS * 1000;

test('a MATCH in words is the MATCH of encodePacket()', () => {
  const u32 = fc.nat(0xffff_ffff);
  fc.assert(
    fc.property(u32, u32, fc.nat(0x7fff_ffff), u32, u32, fc.maxSafeNat(), (ctx, source, tag, seq, signature, creditLimit) => {
      const packet = { ...newPacket(), type: PACKET.MATCH, flags: FLAG.CHARGED, ctx, source, tag, seq, signature, creditLimit };
      const bytes = new Uint8Array(MATCH_HEADER_BYTES);
      expect(encodePacket(packet, new DataView(bytes.buffer))).toBe(MATCH_HEADER_BYTES);
      const words = new Int32Array(MATCH_HEADER_BYTES / 4).fill(-1);
      encodeMatchWords(words, ctx, source, tag, seq, signature);
      putCreditWords(words, creditLimit);
      expect([...new Uint8Array(words.buffer)]).toEqual([...bytes]);
    }),
  );
});

test(
  'the same faults, seen by rails that offer words and by rails that do not',
  () => {
    let taken = 0;
    fc.assert(
      fc.property(fc.nat(0x7fff_ffff), (seed) => {
        const words = playPair(seed, 60, true);
        taken += words.takenAsWords;
        expect(words.happened).toEqual(playPair(seed, 60).happened);
      }),
      { numRuns: RUNS },
    );
    expect(taken).toBeGreaterThan(RUNS);
  },
  LIMIT_MS,
);

/** A receiver that is fed frames by hand. */
class Fed {
  readonly pair = new MemPair();
  readonly requests: RecvRequest[] = [];
  readonly buffers: Uint8Array[] = [];
  readonly errors: string[] = [];
  /** Receives from anybody whose outcome was recorded, and what they took. */
  readonly outcomes: number[][] = [];
  readonly offers: boolean;
  taken = 0;

  /** `logs`: what comes on context 1 is logged. */
  constructor(offers: boolean, logs: boolean) {
    this.offers = offers;
    if (!logs) return;
    let receives = 0;
    const outcomes: MessageOutcomes = {
      mark: 0,
      safe: 0,
      post: (request) => {
        request.anyNumber = ++receives;
      },
      matched: (request, peer, seq) => {
        this.outcomes.push([request.anyNumber, peer, seq]);
        if (seq % 5 === 4) request.error = new MultirailError('ERR_REPLAY', 'it took another message before');
      },
    };
    const log = new SendLog({ bytesMax: 1_000_000 });
    this.pml.log({ log, covers: (ctx) => ctx === 1, digest: crc32cJs, outcomes }, [0, 1]);
  }

  get pml() {
    return this.pair.engines[0].pml;
  }

  post(source: number, ctx: number, tag: number, room: number, parts: number): void {
    const buffer = new Uint8Array(room).fill(0xee);
    const at = parts === 1 ? room : room >> 1;
    this.buffers.push(buffer);
    const views = parts === 0 ? [] : [buffer.subarray(0, at), buffer.subarray(at)].filter(({ length }) => length > 0);
    this.requests.push(this.pml.irecv(source, ctx, tag, new Iov(views)));
  }

  frame(header: Uint8Array, payload: Uint8Array): void {
    if (this.offers) {
      const words = new Int32Array((header.length + 3 + payload.length + 3) >> 2);
      const payloadAt = (header.length + 3) >> 2;
      new Uint8Array(words.buffer).set(header);
      new Uint8Array(words.buffer).set(payload, payloadAt * 4);
      if (this.pml.handleFrameWords(1, words, 0, header.length, payloadAt, payload.length)) {
        this.taken++;
        return;
      }
      // It must not have changed what the general way reads next.
      expect([...new Uint8Array(words.buffer, 0, header.length)]).toEqual([...header]);
    }
    try {
      this.pml.handleFrame(1, header, payload, null);
    } catch (error) {
      this.errors.push((error as Error).message);
    }
  }

  seen(): unknown {
    const { pml } = this;
    const peer = pml.peer(1);
    return {
      counters: { ...pml.counters },
      errors: this.errors,
      buffers: this.buffers.map((buffer) => Buffer.from(buffer).toString('hex')),
      requests: this.requests.map(({ done, error, cancelled, matched, matchedSource, matchedTag, matchedSignature, receivedBytes }) => ({
        done,
        error: error?.message,
        cancelled,
        matched,
        matchedSource,
        matchedTag,
        matchedSignature,
        receivedBytes,
      })),
      unreceived: pml.unreceived(),
      flows: [...peer.flowsIn].map(([ctx, { expectedSeq, early }]) => [ctx, expectedSeq, [...early.keys()]]),
      credit: [peer.creditLimit, peer.releasedBytes, peer.heldBytes, peer.creditTelling],
      isDue: pml.internals.core.isCreditDue(peer),
      outcomes: this.outcomes,
      digests: [...peer.flowsIn].map(([ctx, { digests }]) => [ctx, digests?.list()]),
    };
  }
}

function feed(seed: number): number {
  const prng = new Prng(seed);
  const logs = prng.chance(1, 2);
  const both = [new Fed(true, logs), new Fed(false, logs)];
  const seqs = new Map<number, number>();
  const step = (what: (fed: Fed) => void) => {
    for (const fed of both) what(fed);
    expect(both[0].seen()).toEqual(both[1].seen());
  };
  for (let i = 0; i < 60; i++) {
    const ctx = prng.below(2);
    const tag = prng.below(3);
    switch (prng.below(12)) {
      case 0: {
        const at = prng.below(Math.max(1, both[0].requests.length));
        step(({ pml, requests }) => void (requests[at] !== undefined && pml.cancel(requests[at])));
        break;
      }
      case 1: {
        const source = prng.chance(1, 2) ? 1 : ANY;
        step(({ pml }) => void pml.improbe(source, ctx, tag));
        break;
      }
      case 2:
        if (prng.chance(1, 6)) step(({ pml }) => pml.freeContext(ctx));
        break;
      case 3:
      case 4:
      case 5:
      case 6: {
        const [source, wanted] = [prng.chance(1, 4) ? ANY : 1, prng.chance(1, 4) ? ANY : tag];
        const [room, parts] = [prng.pick([0, 1, 7, 8, 40, 48, 49, 128]), prng.pick([1, 1, 1, 2])];
        step((fed) => fed.post(source, ctx, wanted, room, parts));
        break;
      }
      default: {
        const next = seqs.get(ctx) ?? 0;
        // Mostly the next one; else one that was there, or one that overtakes.
        const seq = prng.chance(1, 8) ? Math.max(0, next + prng.below(5) - 2) : next;
        if (seq === next) seqs.set(ctx, next + 1);
        const header = new Uint8Array(prng.chance(1, 30) ? 48 : MATCH_HEADER_BYTES);
        const packet = {
          ...newPacket(),
          type: prng.chance(1, 30) ? PACKET.CREDIT : PACKET.MATCH,
          flags: prng.chance(1, 10) ? 0 : FLAG.CHARGED,
          ctx,
          source: prng.chance(1, 30) ? 7 : 1,
          tag: prng.chance(1, 30) ? -1 : tag,
          seq,
          signature: prng.nextU32(),
          creditLimit: 65536 + i * 300,
        };
        encodePacket(packet, new DataView(header.buffer));
        if (prng.chance(1, 20)) header[prng.below(16)] ^= 1 << prng.below(8);
        const payload = pattern(prng.pick([0, 1, 3, 8, 40, 47, 48, 49, 127, 128]), i);
        step((fed) => fed.frame(header.slice(), payload.slice()));
        break;
      }
    }
  }
  return both[0].taken;
}

test(
  'frames of all kinds, good and bad, between all that a receiver can do',
  () => {
    let taken = 0;
    fc.assert(
      fc.property(fc.nat(0x7fff_ffff), (seed) => {
        taken += feed(seed);
      }),
      { numRuns: RUNS * 20 },
    );
    expect(taken).toBeGreaterThan(RUNS * 20);
  },
  LIMIT_MS,
);
