// What lets a shadow take the place of its lead: the numbers that it counts along, what leads tell each other, and the output of a rank. How all plays
// together with deaths at any moment is the simulator's (profile replica).
import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it, test, vi } from 'vitest';
import { SendLog } from '../../../src/ft/log/send-log.ts';
import type { Word } from '../../../src/ft/replica/digest.ts';
import { ALL, ShadowStreams } from '../../../src/ft/replica/streams.ts';
import {
  decodeTakeover,
  encodeAsk,
  encodeSync,
  encodeTaken,
  joinContexts,
  TAKEOVER_BYTES_MAX,
} from '../../../src/ft/replica/takeover-wire.ts';
import { BatchWriter, decodeBatch } from '../../../src/ft/replica/wire.ts';
import { JobReplicas } from '../../../src/launch/run/job-replicas.ts';
import { KEPT_BYTES_MAX, ReplicaOutput } from '../../../src/launch/run/replica-output.ts';
import type { Envelope } from '../../../src/pml/records.ts';
import { Iov } from '../../../src/util/iov.ts';

const iov = (...bytes: number[]): Iov => new Iov([Uint8Array.from(bytes)]);
const newLog = (): SendLog => new SendLog({ bytesMax: 1 << 20, slabBytes: 4096 });
const word = (dest: number, ctx = 0, sync = false): Omit<Word, 'digest'> => ({ request: 1, message: 1, dest, ctx, tag: 5, bytes: 1, sync });
const seqs = (log: SendLog, peer: number): number[] => [...log.messagesTo(peer)].map(({ seq }) => seq);

describe('a shadow counts along', () => {
  it('numbers what is sent by peer and context, and keeps copies', () => {
    const log = newLog();
    const streams = new ShadowStreams(log);
    expect(streams.sent(word(1), iov(1), 0)).toBeUndefined();
    streams.sent(word(1), iov(2), 0);
    streams.sent(word(1, 4), iov(3), 0);
    const kept = streams.sent(word(2, 0, true), iov(4), 0);
    expect(kept).toMatchObject({ seq: 0, sync: true, ctx: 0 });
    expect([seqs(log, 1), seqs(log, 2)]).toEqual([[0, 1, 0], [0]]);
    const cuts = streams.flowCuts((peer) => peer + 10);
    expect(cuts).toContainEqual({ peer: 11, ctx: 0, nextOut: 2, nextIn: 0, taken: new Set() });
    expect(cuts).toContainEqual({ peer: 11, ctx: 4, nextOut: 1, nextIn: 0, taken: new Set() });
  });

  it('knows what was received in another order, and what a matched probe has taken', () => {
    const streams = new ShadowStreams(newLog());
    streams.received(3, 0, 2);
    streams.received(3, 0, 0);
    const envelope = { ctx: 0, seq: 1 } as Envelope;
    streams.probed(3, envelope);
    const cut = (): unknown => streams.flowCuts((peer) => peer)[0];
    expect(cut()).toMatchObject({ peer: 3, nextIn: 3, taken: new Set() });
    expect(streams.probedEnvelopes).toEqual([envelope]);
    // Its data are not here: whoever has sent it keeps it.
    expect(streams.news()).toEqual([{ peer: 3, ctx: 0, below: 1 }]);
    expect(streams.news()).toEqual([]);
    streams.received(3, 0, 1);
    expect(streams.probedEnvelopes).toEqual([]);
    expect(streams.news()).toEqual([{ peer: 3, ctx: 0, below: 3 }]);
    streams.received(3, 0, 5);
    expect(cut()).toMatchObject({ nextIn: 3, taken: new Set([5]) });
  });

  it('goes round with numbers of 32 bits', () => {
    const streams = new ShadowStreams(newLog());
    const first = 2 ** 32 - 1;
    for (let seq = 0; seq < 3; seq++) streams.received(1, 0, seq);
    const flows = streams.flowCuts((peer) => peer);
    expect(flows[0].nextIn).toBe(3);
    // As if four thousand million had come.
    (streams as unknown as { flows(peer: number): { flowIn(ctx: number): { nextIn: number } } }).flows(1).flowIn(0).nextIn = first;
    streams.received(1, 0, 0);
    streams.received(1, 0, first);
    expect(streams.flowCuts((peer) => peer)[0]).toMatchObject({ nextIn: 1, taken: new Set() });
  });

  it('tells once that a context is over, if anything went over it', () => {
    const streams = new ShadowStreams(newLog());
    streams.received(1, 8, 0);
    streams.contextOver(8);
    streams.contextOver(12);
    expect(streams.overCount).toBe(1);
    expect(streams.news()).toEqual([{ peer: ALL, ctx: 8, below: undefined }]);
    expect(streams.flowCuts((peer) => peer)).toEqual([]);
  });
});

test('a log drops what is taken, wherever it stands', () => {
  const log = newLog();
  for (const [ctx, seq] of [
    [0, 0],
    [4, 0],
    [0, 1],
    [4, 1],
  ])
    log.add(1, ctx, 7, seq, 0, false, iov(ctx, seq), false);
  const before = log.usedBytes;
  log.dropTaken(1, (ctx) => ctx === 4);
  expect([...log.messagesTo(1)].map(({ ctx, seq, payload }) => [ctx, seq, ...payload.views[0]])).toEqual([
    [0, 0, 0, 0],
    [0, 1, 0, 1],
  ]);
  log.dropTaken(1, (ctx, seq) => ctx === 0 && seq < 1);
  expect(seqs(log, 1)).toEqual([1]);
  log.dropTaken(1, () => true);
  expect([log.has(1), seqs(log, 1)]).toEqual([false, []]);
  expect(log.usedBytes).toBeLessThan(before);
  log.dropTaken(1, () => true);
  // It is as good as new.
  log.add(1, 0, 7, 2, 0, false, iov(9), false);
  expect(seqs(log, 1)).toEqual([2]);
});

test('a long message whose copy is dropped among others gives its memory back', () => {
  const log = newLog();
  log.add(1, 0, 7, 0, 0, false, iov(1), false);
  log.add(1, 0, 7, 1, 0, true, new Iov([new Uint8Array(100_000)]), false);
  const full = log.usedBytes;
  log.dropTaken(1, (_, seq) => seq === 1);
  expect(full - log.usedBytes).toBeGreaterThanOrEqual(100_000);
  expect([...log.synchronousTo(1)]).toEqual([]);
});

describe('what leads say', () => {
  it('comes back as it was, in as many messages as it needs', () => {
    const contexts = [
      { ctx: 3, nextIn: 4_294_967_295, holes: [1, 2, 70_000] },
      { ctx: 900_000, nextIn: 0, holes: [] },
      { ctx: 5, nextIn: 40_000, holes: Array.from({ length: 30_000 }, (_, i) => i) },
    ];
    const messages = encodeSync(contexts);
    expect(messages.length).toBeGreaterThan(1);
    for (const bytes of messages) expect(bytes.length).toBeLessThanOrEqual(TAKEOVER_BYTES_MAX);
    const read = messages.map((bytes) => decodeTakeover(bytes));
    expect(read.map((one) => one.kind === 'SYNC' && one.isLast)).toEqual([...messages.slice(1).map(() => false), true]);
    const pieces = read.flatMap((one) => (one.kind === 'SYNC' ? one.contexts : []));
    expect(joinContexts(pieces)).toEqual(contexts.map((one) => ({ ...one, digests: [] })));
    expect(decodeTakeover(encodeSync([])[0])).toEqual({ kind: 'SYNC', contexts: [], isLast: true });
    expect(decodeTakeover(encodeAsk())).toEqual({ kind: 'ASK' });
    const taken = [
      { ctx: 3, below: 0 },
      { ctx: 4, below: undefined },
    ];
    expect(decodeTakeover(encodeTaken(taken)[0])).toEqual({ kind: 'TAKEN', taken });
  });

  it.each([
    ['nothing', [], 'it ends at byte 0'],
    ['another version', [9, 2], 'version 9, expected 1'],
    ['another kind', [1, 77], 'kind 77'],
    ['half of a context', [1, 2, 3], 'it ends'],
    ['holes that are not there', [1, 2, 3, 4, 100], '100 holes'],
    ['half of what is taken', [1, 4, 3], 'it ends'],
  ])('is refused where it is %s', (_, bytes, text) => {
    expect(() => decodeTakeover(Uint8Array.from(bytes))).toThrow(text);
  });

  it('to their shadows, and hear, comes back as well', () => {
    const writer = new BatchWriter();
    writer.tell();
    writer.taken({ peer: 3, ctx: 8, below: 70_000 });
    writer.taken({ peer: ALL, ctx: 8, below: undefined });
    writer.peerHas({ peer: 0, ctx: 1, below: 0 });
    writer.clock('{"port":7}');
    expect(decodeBatch(writer.take())).toEqual([
      { kind: 'TELL' },
      { kind: 'TAKEN', taken: { peer: 3, ctx: 8, below: 70_000 } },
      { kind: 'TAKEN', taken: { peer: ALL, ctx: 8, below: undefined } },
      { kind: 'PEER_HAS', taken: { peer: 0, ctx: 1, below: 0 } },
      { kind: 'CLOCK', address: '{"port":7}' },
    ]);
  });
});

describe('the output of a rank', () => {
  const start = () => {
    const say = vi.fn();
    const output = new ReplicaOutput(say);
    const [lead, shadow] = [new PassThrough(), new PassThrough()];
    output.addLead(lead);
    output.addShadow(shadow);
    let text = '';
    let hasEnded = false;
    output.out.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    output.out.on('end', () => {
      hasEnded = true;
    });
    const end = async (stream: PassThrough): Promise<void> => {
      stream.end();
      stream.resume();
      for (let i = 0; i < 5; i++) await turn();
    };
    return { say, output, lead, shadow, end, text: () => text, hasEnded: () => hasEnded };
  };

  it('is that of the lead', async () => {
    const { lead, shadow, end, text, hasEnded } = start();
    shadow.write('one\ntwo\n');
    lead.write('one\n');
    lead.write('two\n');
    await end(lead);
    expect(hasEnded()).toBe(false);
    await end(shadow);
    expect([text(), hasEnded()]).toEqual(['one\ntwo\n', true]);
  });

  it.each([
    ['is ahead of it', 'one\ntwo\nthr', 'one\nt'],
    ['is as far', 'one\n', 'one\n'],
    ['is behind it', 'on', 'one\ntwo\n'],
  ])('goes on with that of a shadow that %s', async (_, shadowText, leadText) => {
    const { say, output, lead, shadow, end, text, hasEnded } = start();
    shadow.write(shadowText);
    lead.write(leadText);
    output.takeOver();
    await end(lead);
    shadow.write('one\ntwo\nthree\nfour\n'.slice(shadowText.length));
    shadow.write('five\n');
    await end(shadow);
    expect([text(), hasEnded()]).toEqual(['one\ntwo\nthree\nfour\nfive\n', true]);
    expect(say).not.toHaveBeenCalled();
  });

  it('has a gap, which is said, where a shadow was too far ahead', async () => {
    const { say, output, lead, shadow, end, text } = start();
    const piece = Buffer.alloc(1024 * 1024, 'x');
    for (let bytes = 0; bytes <= KEPT_BYTES_MAX; bytes += piece.length) shadow.write(piece);
    for (let i = 0; i < 40; i++) await turn();
    lead.write('y');
    output.takeOver();
    await end(lead);
    await end(shadow);
    expect(say).toHaveBeenCalledWith(`${piece.length - 1} bytes of output of a shadow that was far ahead of its lead were not kept`);
    expect(text().length).toBe(1 + KEPT_BYTES_MAX);
  });
});

describe('the end of a process', () => {
  const start = (replicas: number, takesOver: boolean, dead: number[] = []) => {
    const said: string[] = [];
    const job = new JobReplicas({ replicas, ranks: 2, takesOver, isLiving: (n) => !dead.includes(n), say: (text) => void said.push(text) });
    return { job, said };
  };

  it('is no matter where another replica goes on', () => {
    const { job, said } = start(2, true, [0, 3]);
    expect(job.survives(0, 'A', true)).toBe(true);
    expect(job.survives(3, 'B', true)).toBe(true);
    expect(said[0]).toMatch(/^A; its shadow, process 2, takes its place/);
    expect(said[1]).toMatch(/^B; the rank goes on by itself/);
  });

  it('ends the job where nobody is left, or nobody takes the place', () => {
    const pair = start(2, true, [0]);
    expect(pair.job.survives(0, 'A', true)).toBe(true);
    expect(pair.job.survives(2, 'C', true)).toBe(false);
    expect(start(2, true, [2]).job.survives(0, 'A', true)).toBe(false);
    expect(start(2, false).job.survives(0, 'A', true)).toBe(false);
    expect(start(2, true).job.survives(0, 'A', false)).toBe(false);
    expect(start(2, true).job.survives(2, 'A', false)).toBe(false);
    expect(start(1, false).job.survives(0, 'A', true)).toBe(false);
    expect(start(3, false).job.survives(4, 'A', false)).toBe(true);
  });
});
