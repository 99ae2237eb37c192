// Cases of §7: numbers, duplicates, early arrivals, wildcards, contexts.
import { PACKET } from '../../../src/pml/hdr.ts';
import type { Case } from '../case.ts';
import type { Feature } from '../convention.ts';
import { pattern } from '../pattern.ts';
import { ANY, Session } from '../session.ts';

const needs: readonly Feature[] = ['accept', 'receive'];
const SPAN = 2 ** 30;

export const MATCHING_CASES: readonly Case[] = [
  {
    name: 'messages are delivered in the order of their numbers',
    group: 'matching',
    needs,
    clauses: ['MT-1', 'MT-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const requests: number[] = [];
      for (let i = 0; i < 6; i++) requests.push(await session.recv(ANY, ANY, 4096));
      const order = [3, 1, 5, 2, 4];
      for (const seq of order) session.sendMatch(rail, 100 + seq, pattern(seq, 0, 1000 + seq), { seq });
      await session.settle();
      for (const request of requests) await session.notDone('MT-3', request, 'numbers 1 to 5 without number 0');
      await session.counted('MT-3', rail, 'messages that wait for a lower number');
      session.sendMatch(rail, 100, pattern(0, 0, 1000), { seq: 0 });
      for (const [seq, request] of requests.entries()) {
        await session.received('MT-1', request, { tag: 100 + seq, data: pattern(seq, 0, 1000 + seq) }, `number ${seq}`);
      }
    },
  },
  {
    name: 'duplicates',
    group: 'matching',
    needs,
    clauses: ['MT-2'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const first = await session.recv(ANY, 1, 64);
      const second = await session.recv(ANY, 1, 64);
      session.sendMatch(rail, 1, pattern(1, 0, 20), { seq: 0 });
      session.sendMatch(rail, 1, pattern(99, 0, 20), { seq: 0 });
      session.sendMatch(rail, 1, pattern(98, 0, 20), { seq: 0xffff_ffff });
      await session.received('MT-2', first, { data: pattern(1, 0, 20) }, 'the first copy');
      await session.counted('MT-2', rail, 'the duplicates');
      await session.notDone('MT-2', second, 'a duplicate of number 0, and a number below it');
      // One that waits already, twice.
      session.sendMatch(rail, 1, pattern(3, 0, 20), { seq: 2 });
      session.sendMatch(rail, 1, pattern(97, 0, 20), { seq: 2 });
      await session.counted('MT-2', rail, 'a duplicate of one that waits');
      await session.notDone('MT-2', second, 'a duplicate of one that waits');
      session.sendMatch(rail, 1, pattern(2, 0, 20), { seq: 1 });
      await session.received('MT-2', second, { data: pattern(2, 0, 20) }, 'number 1');
      const third = await session.recv(ANY, 1, 64);
      await session.received('MT-2', third, { data: pattern(3, 0, 20) }, 'number 2: the first copy of it');
      const fourth = await session.recv(ANY, 1, 64);
      session.sendMatch(rail, 1, pattern(96, 0, 20), { seq: 2 });
      await session.settle();
      await session.notDone('MT-2', fourth, 'one more copy of number 2');
    },
  },
  {
    name: 'duplicates of a rendezvous',
    group: 'matching',
    needs,
    clauses: ['MT-2', 'RR-13'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 9000);
      await session.recv(ANY, 1, 9000);
      const { rndv, ack } = await session.rendezvous(rail, 1, 9000, 500);
      rail.send(rndv, pattern(1, 0, 500));
      await session.never('RR-13', PACKET.ACK, 'the same RNDV again is dropped without an answer');
      session.sendFrag(rail, ack, 500, 9000);
      await session.received('MT-2', request, { data: pattern(1, 0, 9000) }, 'the message');
      rail.send(rndv, pattern(1, 0, 500));
      await session.never('MT-2', PACKET.ACK, 'the same RNDV after its end');
      session.nothingElse('MT-2');
    },
  },
  {
    name: 'how far ahead a number may be',
    group: 'matching',
    needs,
    clauses: ['MT-4'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      session.sendMatch(rail, 1, pattern(1, 0, 4), { seq: SPAN - 1 });
      await session.stays('MT-4', rail, 'a number 2^30 - 1 ahead');
      session.sendMatch(rail, 1, pattern(1, 0, 4), { seq: SPAN });
      await session.stays('MT-4', rail, 'a number 2^30 ahead');
      session.sendMatch(rail, 1, pattern(1, 0, 4), { seq: SPAN + 1 });
      await session.closes('MT-4', rail, 'a number 2^30 + 1 ahead');
    },
  },
  {
    name: 'the oldest posted receive that fits',
    group: 'matching',
    needs,
    clauses: ['MT-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const me = session.rank;
      // Every kind of pattern, twice, in an order in which neither "specific first" nor "newest first" is right.
      const posted: [string, number, number][] = [
        ['anything', ANY, ANY],
        ['tag 5 of anybody', ANY, 5],
        ['any tag of ours', me, ANY],
        ['tag 5 of ours', me, 5],
        ['tag 5 of ours, again', me, 5],
        ['any tag of ours, again', me, ANY],
        ['tag 6 of anybody', ANY, 6],
        ['anything, again', ANY, ANY],
      ];
      const requests = new Map<string, number>();
      for (const [name, source, tag] of posted) requests.set(name, await session.recv(source, tag, 64));
      const expected: [number, string][] = [
        [6, 'anything'],
        [6, 'any tag of ours'],
        [5, 'tag 5 of anybody'],
        [5, 'tag 5 of ours'],
        [7, 'any tag of ours, again'],
        [6, 'tag 6 of anybody'],
        [5, 'tag 5 of ours, again'],
        [5, 'anything, again'],
      ];
      for (const [i, [tag, name]] of expected.entries()) {
        session.sendMatch(rail, tag, pattern(i, 0, 10 + i));
        await session.received(
          'MT-5',
          requests.get(name) as number,
          { tag, data: pattern(i, 0, 10 + i) },
          `message ${i} with tag ${tag} in the receive for ${name}`,
        );
      }
    },
  },
  {
    name: 'unexpected messages, oldest first',
    group: 'matching',
    needs: [...needs, 'probe'],
    clauses: ['MT-6', 'MT-7'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const ctx = 12;
      const tags = [1, 2, 1, 3, 2];
      for (const [i, tag] of tags.entries()) session.sendMatch(rail, tag, pattern(i, 0, 100 + i), { ctx });
      rail.send(session.rndv(7000, { tag: 1, ctx }));
      await session.counted('MT-7', rail, 'messages for a context that nobody has used');
      await session.never('MT-6', PACKET.ACK, 'a rendezvous without a receive is not answered');
      const look = (source: number, tag: number) => t.control.run('probe', { source, ctx, tag });
      const any = await look(ANY, ANY);
      t.check('MT-6', any.found && any.tag === 1 && any.bytes === 100, `a probe for anything sees the first: ${JSON.stringify(any)}`);
      const two = await look(session.rank, 2);
      t.check('MT-6', two.found && two.bytes === 101, `a probe for tag 2 sees the first of that tag: ${JSON.stringify(two)}`);
      t.check('MT-6', !(await look(ANY, 9)).found, 'a probe for tag 9 sees nothing');
      const take = async (tag: number, index: number) => {
        const request = await session.recv(ANY, tag, 200, ctx);
        await session.received(
          'MT-6',
          request,
          { tag: tags[index], data: pattern(index, 0, 100 + index) },
          `message ${index} by a receive for ${tag === ANY ? 'anything' : `tag ${tag}`}`,
        );
      };
      await take(2, 1);
      await take(ANY, 0);
      await take(1, 2);
      await take(ANY, 3);
      await take(ANY, 4);
      const large = await session.recv(ANY, 1, 7000, ctx);
      const ack = await session.expect('MT-6', PACKET.ACK, 'the rendezvous that waited is answered');
      session.sendFrag(rail, ack, 0, 7000);
      await session.received('MT-6', large, { data: pattern(1, 0, 7000) }, 'it');
    },
  },
  {
    name: 'no message overtakes another, whatever its length and its rail',
    group: 'matching',
    transport: 'tcp',
    needs,
    clauses: ['MT-5', 'MT-1', 'MT-3'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 2 });
      const rails = [await session.connect(0, 1), await session.connect(1, 1)];
      const first = await session.recv(session.rank, 1, 9000);
      const second = await session.recv(session.rank, 1, 9000);
      // The short one has the higher number, and comes first, over another rail.
      const long = session.rndv(9000, { tag: 1 });
      session.sendMatch(rails[1], 1, pattern(2, 0, 50));
      await session.counted('MT-3', rails[1], 'the short one');
      await session.notDone('MT-1', second, 'the short one before the long one');
      rails[0].send(long, pattern(1, 0, 800));
      const ack = await session.expect('MT-5', PACKET.ACK, 'the long one matches the first receive');
      await session.received('MT-5', second, { data: pattern(2, 0, 50) }, 'the short one is in the second receive');
      session.sendFrag(rails[1], ack, 800, 9000);
      await session.received('MT-5', first, { data: pattern(1, 0, 9000) }, 'the long one in the first');
    },
  },
  {
    name: 'contexts do not see each other',
    group: 'matching',
    needs,
    clauses: ['MT-9', 'MT-7'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const zero = await session.recv(ANY, ANY, 64, 0);
      const seven = await session.recv(ANY, ANY, 64, 7);
      const last = await session.recv(ANY, ANY, 64, 0xffff_ffff);
      session.sendMatch(rail, 1, pattern(9, 0, 30), { ctx: 7, seq: 1 });
      session.sendMatch(rail, 2, pattern(2, 0, 20), { ctx: 0xffff_ffff, seq: 0 });
      await session.received('MT-9', last, { tag: 2, data: pattern(2, 0, 20) }, 'context 2^32 - 1');
      await session.notDone('MT-9', zero, 'messages of other contexts');
      await session.notDone('MT-9', seven, 'number 1 of context 7 before number 0');
      session.sendMatch(rail, 3, pattern(3, 0, 10), { ctx: 0, seq: 0 });
      await session.received('MT-9', zero, { tag: 3, data: pattern(3, 0, 10) }, 'context 0');
      session.sendMatch(rail, 4, pattern(4, 0, 11), { ctx: 7, seq: 0 });
      await session.received('MT-9', seven, { tag: 4, data: pattern(4, 0, 11) }, 'number 0 of context 7');
      const next = await session.recv(ANY, ANY, 64, 7);
      await session.received('MT-7', next, { tag: 1, data: pattern(9, 0, 30) }, 'number 1 of context 7');
    },
  },
  {
    name: 'a context that was freed',
    group: 'matching',
    needs: [...needs, 'contexts'],
    clauses: ['MT-8', 'CR-2'],
    run: async (t) => {
      const max = 8192;
      const session = await Session.begin(t, { unexpectedBytesMax: max });
      const rail = await session.connect(0, 1);
      const ctx = 4;
      session.sendMatch(rail, 1, pattern(1, 0, 1000), { ctx, flags: 1 });
      await session.counted('MT-8', rail, 'a message that waits');
      await t.control.run('freeContext', { ctx });
      session.sendMatch(rail, 1, pattern(2, 0, 500), { ctx, flags: 1 });
      // Out of sequence: it waits until the one below it comes, and is then dropped too.
      const late = session.match({ ctx, tag: 1, flags: 1 });
      session.sendMatch(rail, 1, pattern(4, 0, 100), { ctx, flags: 1 });
      rail.send(session.rndv(9000, { ctx, tag: 1 }));
      await session.never('MT-8', PACKET.ACK, 'a rendezvous for it is not answered');
      rail.send(late, pattern(3, 0, 200));
      await session.counted('MT-8', rail, 'what comes for it');
      await session.settle();
      await session.recv(ANY, 1, 5000);
      const { ack } = await session.rendezvous(rail, 1, 5000);
      const released = session.charge(1000) + session.charge(500) + session.charge(200) + session.charge(100);
      const limit = ack.packet.creditLimit;
      t.check('CR-2', limit === max + released, `all its charges are released: the limit is ${limit}, and must be ${max + released}`);
    },
  },
  {
    name: 'a cancelled receive takes nothing',
    group: 'matching',
    needs,
    clauses: ['MT-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const first = await session.recv(ANY, 1, 64);
      const second = await session.recv(ANY, 1, 64);
      const { cancelled } = await t.control.run('cancel', { request: first });
      t.check('MT-5', cancelled, 'a receive that has not matched can be cancelled');
      session.sendMatch(rail, 1, pattern(1, 0, 10));
      await session.received('MT-5', second, { data: pattern(1, 0, 10) }, 'the next receive gets the message');
    },
  },
];
