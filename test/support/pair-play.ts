// Random sequences of sends, receives, held, refused and half-delivered frames, and lost rails between two ranks, with fragments so
// small that a message has more holes than one RESTARTACK can name. At the end all rails are whole and every byte must be right.
import { expect } from 'vitest';
import { SendLog } from '../../src/ft/log/send-log.ts';
import type { RecvRequest, SendRequest } from '../../src/pml/records.ts';
import { digestOf } from '../../src/pml/tap.ts';
import { crc32cJs } from '../../src/util/crc32c.ts';
import { Prng } from '../../src/util/prng.ts';
import { type Item, MemPair, type Verdict } from './mem-pair.ts';
import { pattern } from './pattern.ts';

const VERDICTS: readonly Verdict[] = ['pass', 'pass', 'pass', 'hold', 'mute', 'half', 'refuse'];
const RAILS = 3;

interface Transfer {
  send: SendRequest;
  recv: RecvRequest | undefined;
  from: 0 | 1;
  into: Uint8Array;
  wanted: Uint8Array;
  tag: number;
}

/**
 * Plays one seed, and checks that every message arrived once and whole. Returns what happened, for comparisons: packets in their order,
 * counters, transitions, credit. `offersWords`: rails offer short frames as words first. `logs`: what is sent is logged, and has a digest where
 * it is received.
 */
export function playPair(seed: number, steps: number, offersWords = false, logs = false): { happened: unknown; takenAsWords: number } {
  const prng = new Prng(seed);
  const pair = new MemPair(RAILS, { fragBytes: 128, eagerLimitBytes: 512, rndvInlineBytes: 64 });
  pair.offersWords = offersWords;
  if (logs)
    for (const { pml } of pair.engines)
      pml.log({ log: new SendLog({ bytesMax: 16_000_000, slabBytes: 8192 }), covers: () => true, digest: crc32cJs }, [0, 1]);
  const transfers: Transfer[] = [];
  const post = (transfer: Transfer): void => {
    transfer.recv = pair.recv((1 - transfer.from) as 0 | 1, transfer.into, transfer.tag);
  };
  for (let step = 0; step < steps; step++) {
    const rail = prng.below(RAILS);
    switch (prng.below(8)) {
      case 0:
      case 1: {
        const from = prng.below(2) as 0 | 1;
        const bytes = prng.pick([0, 1, 100, 512, 513, 5000, 60_000]);
        const tag = transfers.length;
        const wanted = pattern(bytes, tag);
        const into = new Uint8Array(bytes);
        const early = prng.chance(1, 2) ? pair.recv((1 - from) as 0 | 1, into, tag) : undefined;
        transfers.push({ send: pair.send(from, pattern(bytes, tag), tag, prng.chance(1, 4)), recv: early, from, into, wanted, tag });
        break;
      }
      case 2: {
        const open = transfers.filter(({ recv }) => recv === undefined);
        if (open.length > 0) post(prng.pick(open));
        break;
      }
      case 3: {
        // A verdict that depends on the frame and its place only, so that it is the same whenever it is asked.
        const salt = prng.nextU32();
        let refusals = 3;
        pair.verdictOf = ({ header, payload, rail: on, state, type }: Item) => {
          let hash = salt ^ (on * 0x9e3779b1);
          for (const byte of header) hash = Math.imul(hash ^ byte, 0x01000193);
          const verdict = VERDICTS[(hash >>> 16) % VERDICTS.length];
          if (verdict === 'half') return type === 'FRAG' ? 'half' : 'pass';
          // Only payloads are refused, and not for ever.
          if (verdict === 'refuse') return state === 'sent' && payload.length > 0 && refusals-- > 0 ? 'refuse' : 'pass';
          return verdict;
        };
        break;
      }
      case 4:
        pair.cut(rail, prng.pick([undefined, 0, 1]));
        break;
      case 5:
        pair.unreachable.delete(rail);
        pair.advance(prng.between(10, 400));
        break;
      case 6:
        if (prng.chance(1, 2)) pair.busy.add(rail);
        else pair.busy.delete(rail);
        break;
      case 7:
        pair.verdictOf = () => 'pass';
        break;
    }
    pair.run();
  }
  pair.busy.clear();
  pair.unreachable.clear();
  pair.verdictOf = () => 'pass';
  for (const transfer of transfers) if (transfer.recv === undefined) post(transfer);
  pair.advance(3000);
  for (const { send, recv, into, wanted, tag } of transfers) {
    expect(`${tag}: send ${send.done}, receive ${recv?.done}`).toBe(`${tag}: send true, receive true`);
    expect(`${tag}: ${send.error?.code} ${recv?.error?.code}`).toBe(`${tag}: undefined undefined`);
    expect(`${tag}: ${Buffer.compare(into, wanted)}`).toBe(`${tag}: 0`);
  }
  expect(pair.leftovers()).toEqual([]);
  for (const from of logs ? [0, 1] : []) {
    const own = transfers.filter((transfer) => transfer.from === from);
    const digests = own.map(({ wanted, tag }, seq) => ({ seq, bytes: wanted.length, crc: digestOf(crc32cJs, tag, [wanted]) }));
    expect(pair.engines[1 - from].pml.peer(from).flowIn(0).digests?.list() ?? []).toEqual(digests);
  }
  const happened = {
    sent: pair.sent,
    engines: pair.engines.map(({ pml }) => ({
      counters: { ...pml.counters },
      transitions: pml.traceEntries(),
      retainedBytes: pml.retainedBytes,
      opened: pml.openedRequests,
      peers: [...pml.peers].map(({ creditLimit, creditUsed, releasedBytes, heldBytes, creditTold, creditTelling }) => ({
        creditLimit,
        creditUsed,
        releasedBytes,
        heldBytes,
        creditTold,
        creditTelling,
      })),
    })),
  };
  return { happened, takenAsWords: pair.takenAsWords };
}
