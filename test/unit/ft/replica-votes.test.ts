// Three replicas that vote: the verdict on words, and a lead with two shadows over channels that are arrays. How all plays together with rails that
// fail is the simulator's (profile replica).
import { describe, expect, it, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { crc32cDigest, type Digest, fullDigest, type Word } from '../../../src/ft/replica/digest.ts';
import { LeadPml } from '../../../src/ft/replica/lead.ts';
import type { PairOptions } from '../../../src/ft/replica/paired-pml.ts';
import { placeOf, twinsOf } from '../../../src/ft/replica/pairs.ts';
import { ShadowPml } from '../../../src/ft/replica/shadow.ts';
import { moveMessage, movePair } from '../../../src/ft/replica/states.ts';
import { vote } from '../../../src/ft/replica/vote.ts';
import { BatchWriter, decodeBatch } from '../../../src/ft/replica/wire.ts';
import { placeReplicas } from '../../../src/launch/run/hostfile.ts';
import { parseFaults } from '../../../src/mpi/replica/inject.ts';
import type { Pml } from '../../../src/pml/pml.ts';
import { RecvRequest, SendRequest } from '../../../src/pml/records.ts';
import { Iov } from '../../../src/util/iov.ts';
import { replicaText } from '../../../src/util/replica-names.ts';

const word = (digest: number, over: Partial<Word> = {}): Word => ({
  ...{ request: 7, message: 3, ctx: 0, dest: 2, tag: 5, bytes: 4, sync: false },
  digest: Uint8Array.of(digest),
  ...over,
});

describe('places', () => {
  it('of three replicas are in thirds: a lead knows both shadows, and a shadow its lead alone', () => {
    expect([1, 5, 9].map((number) => placeOf(number, 12, 3))).toEqual([
      { role: 'lead', rank: 1, ranks: 4, twin: 5, second: 9 },
      { role: 'shadow', rank: 1, ranks: 4, twin: 1 },
      { role: 'shadow', rank: 1, ranks: 4, twin: 1 },
    ]);
    expect(twinsOf(placeOf(1, 12, 3))).toEqual([5, 9]);
    expect(twinsOf(placeOf(9, 12, 3))).toEqual([1]);
    expect(() => placeOf(0, 8, 3)).toThrow('a multiple of 3; multirail run --replicas 3');
    expect([0, 1, 2].map((index) => replicaText(index, 3))).toEqual(['lead', 'first shadow', 'second shadow']);
  });
  it('on hosts are three different ones, or the same one', () => {
    const hosts = ['a', 'b', 'c'].map((host) => ({ host, slots: 4 }));
    const names = (asked: 'host' | 'core' | undefined) =>
      placeReplicas(hosts, 2, asked, 3)
        .map(({ host }) => host)
        .join('');
    expect(names('host')).toBe('aabbcc');
    expect(names(undefined)).toBe('aabbcc');
    expect(names('core')).toBe('ababab');
    const places = placeReplicas([{ host: 'a', slots: 6 }], 2, 'core', 3);
    expect(places.map(({ localRank }) => localRank)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(new Set(places.map(({ localSize }) => localSize))).toEqual(new Set([6]));
    expect(() => placeReplicas(hosts.slice(0, 2), 2, 'host', 3)).toThrow('three replicas of each of 2 ranks do not fit');
    expect(() => placeReplicas(hosts, 4, 'core', 3)).toThrow('room for 3 ranks of three replicas each, and 4 are asked for');
  });
  it('are what faults on purpose name', () => {
    expect(parseFaults('flip:rank=1,replica=shadow2,send=5')[0]).toMatchObject({ replica: 'shadow2' });
    expect(() => parseFaults('flip:rank=1,replica=shadow3,send=5')).toThrow('shadow2 (the second one of three replicas)');
  });
});

test('the verdict: two that agree are right', () => {
  expect(vote(word(1), [word(1), word(1)])).toEqual({ kind: 'agreed', loser: undefined });
  expect(vote(word(1), [word(2), word(1)])).toEqual({ kind: 'agreed', loser: { index: 0, difference: 'digest' } });
  expect(vote(word(1), [word(1), word(1, { tag: 6 })])).toEqual({
    kind: 'agreed',
    loser: { index: 1, difference: { field: 'tag', lead: '5', shadow: '6' } },
  });
  expect(vote(word(1), [word(2), word(2)])).toEqual({ kind: 'outvoted', difference: 'digest' });
  expect(vote(word(1), [word(1, { dest: 3 }), word(1, { dest: 3 })])).toMatchObject({
    kind: 'outvoted',
    difference: { field: 'destination' },
  });
  expect(vote(word(1), [word(2), word(3)])).toEqual({ kind: 'none', difference: 'digest' });
  expect(vote(word(1), [word(2)])).toEqual({ kind: 'none', difference: 'digest' });
  expect(vote(word(1), [word(1)])).toEqual({ kind: 'agreed', loser: undefined });
});

test('the record that tells a shadow to leave comes back as it was', () => {
  const writer = new BatchWriter();
  writer.leave(300, 'it is late');
  expect(decodeBatch(writer.take())).toEqual([{ kind: 'LEAVE', number: 300, text: 'it is late' }]);
});

test('an outvoted message leaves or is held with the job, and a lead that is alone with one ends it', () => {
  expect(moveMessage('UNVOUCHED', 'OUTVOTED')).toBe('OUTVOTED');
  expect(moveMessage('OUTVOTED', 'VOUCHED')).toBe('VOUCHED');
  expect(() => moveMessage('OUTVOTED', 'HELD')).toThrow('OUTVOTED');
  expect(movePair('ALONE', 'DIVERGED')).toBe('DIVERGED');
});

// ---------------------------------------------------------------- three of them

interface Packet {
  readonly from: number;
  readonly to: number;
  readonly ctx: number;
  readonly bytes: Uint8Array;
}
interface Posted {
  readonly to: number;
  readonly from: number;
  readonly ctx: number;
  readonly request: RecvRequest;
  readonly onDone: (request: RecvRequest) => void;
}

const LEAD = 0;
const FIRST = 1;
const SECOND = 2;

/** Rank 0 of one, three times. What its lead gives to the message layer is in `left`. */
class Three {
  readonly left: { readonly to: number; readonly tag: number; readonly bytes: number[] }[] = [];
  readonly outvoted: string[] = [];
  readonly dropped: number[] = [];
  readonly leaves: string[] = [];
  diverged: string | undefined;
  readonly lead: LeadPml;
  readonly shadows: readonly [ShadowPml, ShadowPml];
  private packets: Packet[] = [];
  private posted: Posted[] = [];

  constructor(compare: 'crc32c' | 'full' = 'crc32c') {
    const digest: Digest = compare === 'full' ? fullDigest : crc32cDigest();
    const options = (self: number): PairOptions => ({
      rank: 0,
      self,
      name: replicaText(self, 3),
      twins: (self === LEAD ? [FIRST, SECOND] : [LEAD]).map((process) => {
        const channel = Math.max(self, process);
        return { number: process, name: replicaText(process, 3), ctx: 4 + 4 * channel, bulkCtx: 6 + 4 * channel };
      }),
      isVoting: true,
      compare,
      digest,
      wake: () => undefined,
      push: () => undefined,
      onDiverged: ({ message }) => {
        this.diverged = message;
      },
      onOutvoted: (_, text) => this.outvoted.push(text),
      onDropped: (process) => this.dropped.push(process),
      onLeave: ({ message }) => this.leaves.push(message),
    });
    this.lead = new LeadPml(this.layerOf(LEAD), options(LEAD));
    this.shadows = [new ShadowPml(this.layerOf(FIRST), options(FIRST)), new ShadowPml(this.layerOf(SECOND), options(SECOND))];
    for (const pml of this.all) pml.start();
  }

  get all(): readonly (LeadPml | ShadowPml)[] {
    return [this.lead, ...this.shadows];
  }

  private layerOf(self: number): Pml {
    return {
      isend: (to: number, ctx: number, tag: number, buffer: Iov) => {
        const bytes = new Uint8Array(buffer.bytes);
        buffer.copyTo(bytes, 0);
        if (ctx === 0) this.left.push({ to, tag, bytes: [...bytes] });
        else this.packets.push({ from: self, to, ctx, bytes });
        const request = new SendRequest(to, tag, bytes.length);
        request.done = true;
        return request;
      },
      irecvInBackground: (from: number, ctx: number, tag: number, buffer: Iov, onDone: Posted['onDone']) => {
        const request = new RecvRequest(ctx, from, tag, buffer);
        this.posted.push({ to: self, from, ctx, request, onDone });
        return request;
      },
      freeContext: () => undefined,
      nextOpened: () => 0,
    } as unknown as Pml;
  }

  /** What was said arrives, from those processes or from all, and what ends then ends. */
  play(from: readonly number[] = [LEAD, FIRST, SECOND]): void {
    for (let isBusy = true; isBusy; ) {
      for (const pml of this.all) {
        pml.flush();
        while (pml.turn(0)) pml.flush();
        pml.flush();
      }
      isBusy = false;
      for (const packet of this.packets) {
        const at = this.posted.findIndex(({ to, from: source, ctx }) => to === packet.to && source === packet.from && ctx === packet.ctx);
        if (at < 0 || !from.includes(packet.from)) continue;
        const [{ request, onDone }] = this.posted.splice(at, 1);
        this.packets.splice(this.packets.indexOf(packet), 1);
        request.receivedBytes = request.buffer.copyIn(0, packet.bytes);
        request.done = true;
        onDone(request);
        isBusy = true;
        break;
      }
    }
  }

  /** All three send, each its own bytes; returns their memory and requests. */
  send(...bytes: readonly number[][]) {
    return this.all.map((pml, i) => {
      const memory = Uint8Array.from(bytes[i]);
      return { memory, request: pml.isend(5, 0, 9, new Iov([memory])) };
    });
  }

  validate(...bytes: readonly number[][]) {
    return this.all.map((pml, i) => {
      const memory = Uint8Array.from(bytes[i]);
      return { memory, request: pml.validate(new Iov([memory])) };
    });
  }
}

const LONG = Array.from({ length: 9000 }, (_, i) => i & 255);
const WRONG = LONG.with(8000, 1);

describe.each(['crc32c', 'full'] as const)('three that compare by %s', (compare) => {
  it.each([
    ['short', [1, 2, 3], [1, 2, 7]],
    ['long', LONG, WRONG],
  ])('send what two have, whoever the third one is: %s', (_, right, wrong) => {
    for (const [index, name] of ['lead', 'first shadow', 'second shadow'].entries()) {
      const three = new Three(compare);
      const sent = [three.send(...[0, 1, 2].map((i) => (i === index ? wrong : right))), three.send(right, right, right)].flat();
      three.play();
      expect(three.left).toEqual([right, right].map((bytes) => ({ to: 5, tag: 9, bytes })));
      expect(three.outvoted).toEqual([expect.stringContaining(`the ${name} of rank 0 (process ${index}) is outvoted in message 1,`)]);
      expect(sent.every(({ request }) => request.done && request.error === undefined)).toBe(true);
      // What a program sends stays as it is.
      expect([...sent[index].memory]).toEqual(wrong);
      expect([three.diverged, three.leaves]).toEqual([undefined, []]);
    }
  });
  it.each([
    ['short', [1, 2, 3], [1, 2, 7]],
    ['long', LONG, WRONG],
  ])('have the same result behind validate(): %s', (_, right, wrong) => {
    for (const index of [0, 1, 2]) {
      const three = new Three(compare);
      const results = three.validate(...[0, 1, 2].map((i) => (i === index ? wrong : right)));
      three.play();
      for (const { memory, request } of results) expect([request.done, [...memory]]).toEqual([true, right]);
      expect(three.all.map((pml, i) => pml.wasHealed(results[i].request))).toEqual([0, 1, 2].map((i) => i === index));
      expect(three.all.map(({ counters }) => counters.healed)).toEqual([0, 1, 2].map((i) => (i === index ? 1 : 0)));
      expect(three.left).toEqual([]);
    }
  });
  it('differ where no two have the same', () => {
    const three = new Three(compare);
    three.send([1, 2], [1, 3], [1, 4]);
    three.play();
    expect(three.diverged).toMatch(
      /^ERR_DIVERGED: the replicas of rank 0 \(processes 0, 1 and 2\) differ: message 1, .* differs, first at byte 1/,
    );
    expect(three.left).toEqual([]);
  });
});

test('one that is outvoted again and again is told once, and counted', () => {
  const three = new Three();
  for (let i = 0; i < 5; i++) three.send([1], [1], [2]);
  three.play();
  expect([three.left.length, three.outvoted.length, three.lead.counters.outvoted]).toEqual([5, 1, 5]);
});

test('a vote waits for all three words', () => {
  const three = new Three();
  three.send([1], [1], [1]);
  three.play([LEAD, FIRST]);
  expect(three.left).toEqual([]);
  three.play();
  expect(three.left.length).toBe(1);
});

test('bytes that are not what two have vouched for are not sent: the other shadow is believed, and nobody where it has others, too', () => {
  const three = new Three();
  const [, first] = three.send([1, 2], [1, 3], [1, 3]);
  for (const shadow of three.shadows) shadow.flush();
  first.memory[1] = 9;
  three.play();
  expect([three.left, three.diverged]).toEqual([[{ to: 5, tag: 9, bytes: [1, 3] }], undefined]);
  const [, one, two] = three.send([1, 2], [1, 3], [1, 3]);
  one.memory[0] = 9;
  two.memory[0] = 9;
  three.play();
  expect(three.left.length).toBe(1);
  expect(three.diverged).toContain('cannot be had of a shadow any more; nothing of it has left');
});

test('an answer that nobody waits for any more is not taken for that to the next question', () => {
  const three = new Three();
  three.send([1, 2], [1, 3], [1, 3]);
  const [, first] = three.send([1, 4], [1, 5], [1, 5]);
  for (const shadow of three.shadows) shadow.flush();
  first.memory[1] = 9;
  three.play([FIRST, SECOND]);
  three.play([LEAD]);
  // Of the first shadow the answer to the first question is right, and that to the second one is not.
  three.play([FIRST]);
  three.play([SECOND]);
  three.play([LEAD]);
  three.play([FIRST]);
  expect([three.left.length, three.diverged]).toEqual([1, undefined]);
  three.play();
  expect([three.left.map(({ bytes }) => bytes), three.diverged]).toEqual([
    [
      [1, 3],
      [1, 5],
    ],
    undefined,
  ]);
});

test('a shadow that dies while it is asked leaves the answer to the other one; with both of them gone nothing of the minority leaves', () => {
  const three = new Three();
  three.send([1, 2], [1, 3], [1, 3]);
  three.play([FIRST, SECOND]);
  three.lead.shadowDied(FIRST);
  expect([three.left, three.diverged]).toEqual([[], undefined]);
  three.play([LEAD, SECOND]);
  expect(three.left.length).toBe(1);
  const both = new Three();
  both.send([1, 2], [1, 3], [1, 3]);
  both.play([FIRST, SECOND]);
  both.lead.shadowDied(FIRST);
  expect([both.left, both.diverged]).toEqual([[], undefined]);
  both.lead.shadowDied(SECOND);
  expect(both.left).toEqual([]);
  expect(both.diverged).toContain('cannot be had of a shadow any more');
});

test('a shadow that dies while it is asked where a pair differs: that it differs is told at once', () => {
  const three = new Three();
  three.lead.shadowDied(FIRST);
  three.send([1, 2], [1, 2], [1, 3]);
  three.play([SECOND]);
  expect([three.left, three.diverged]).toEqual([[], undefined]);
  three.lead.shadowDied(SECOND);
  expect([three.left, three.diverged]).toEqual([[], expect.stringContaining('where is not known: the shadow does not answer')]);
});

test('a message that was given up is asked of shadows whose programs have their memory back', () => {
  const three = new Three();
  const sent = three.send([1, 2], [1, 3], [1, 3]);
  // Nobody hears the shadows yet.
  three.lead.giveUp(sent[0].request, new MultirailError('ERR_TIMEOUT', 'the time is over'));
  three.play([LEAD]);
  for (const { request, memory } of sent) {
    expect(request.error?.code).toBe('ERR_TIMEOUT');
    memory.fill(0);
  }
  expect(three.left).toEqual([]);
  three.play();
  expect(three.left).toEqual([{ to: 5, tag: 9, bytes: [1, 3] }]);
});

test('a shadow that goes its own way is told to leave, and the others go on as a pair', () => {
  const three = new Three();
  three.lead.isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  three.shadows[0].isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  three.shadows[1].isend(5, 0, 8, new Iov([Uint8Array.of(1)]));
  three.play();
  expect([three.left.length, three.dropped, three.diverged]).toEqual([1, [SECOND], undefined]);
  expect(three.leaves).toEqual([
    expect.stringMatching(
      /the second shadow of rank 0 \(process 2\) leaves the job, .* at the second shadow \(tag 9 and 8\); the last event/,
    ),
  ]);
  three.lead.isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  three.shadows[0].isend(5, 0, 9, new Iov([Uint8Array.of(2)]));
  three.play();
  expect(three.left.length).toBe(1);
  expect(three.diverged).toMatch(/\(processes 0 and 1\) differ: message 2, .* at the first shadow; nothing of it has left/);
});

test('a lead that goes its own way ends the job, and a late shadow leaves it', () => {
  const three = new Three();
  three.lead.isend(5, 0, 8, new Iov([Uint8Array.of(1)]));
  for (const shadow of three.shadows) shadow.isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  three.play();
  expect(three.diverged).toMatch(/\(processes 0, 1 and 2\) differ: .* \(tag 8 and 9\); nothing of it has left/);
  const late = new Three();
  late.lead.isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  late.shadows[0].isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  late.play();
  const [first, second] = late.lead.links;
  expect([late.lead.dueOf(first), late.lead.dueOf(second)]).toEqual([undefined, { what: 'its call 1', calls: 1 }]);
  late.lead.late(second, 'it has used 9 s');
  late.play();
  expect([late.left.length, late.dropped, late.diverged]).toEqual([1, [SECOND], undefined]);
});

test('a shadow that has come to its end too early leaves, also where its lead waits for it to take what has ended', () => {
  const three = new Three();
  three.shadows[0].finish();
  three.lead.isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  three.shadows[1].isend(5, 0, 9, new Iov([Uint8Array.of(1)]));
  three.play();
  expect([three.left.length, three.dropped, three.diverged]).toEqual([1, [FIRST], undefined]);
});
