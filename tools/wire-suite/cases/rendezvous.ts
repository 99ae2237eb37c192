// Cases of §8 and §9, the receiver's side: ACK, FRAGs in any order and over any rail, duplicates, truncation, RGET and FIN.
import { FLAG, PACKET, type Packet } from '../../../src/pml/hdr.ts';
import type { Case } from '../case.ts';
import type { Feature } from '../convention.ts';
import { pattern } from '../pattern.ts';
import { FRAME_PAYLOAD_BYTES_MAX } from '../rail.ts';
import { ANY, Session } from '../session.ts';

const needs: readonly Feature[] = ['accept', 'receive'];

export const RENDEZVOUS_CASES: readonly Case[] = [
  {
    name: 'eager messages of all lengths',
    group: 'rendezvous',
    needs,
    clauses: ['RV-1', 'RV-9'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      for (const bytes of [0, 1, 7, 8, 63, 64, 1000, 2048, 2049, 4096, 60_000]) {
        const request = await session.recv(ANY, 1, bytes);
        session.sendMatch(rail, 1, pattern(bytes, 0, bytes));
        await session.received('RV-1', request, { data: pattern(bytes, 0, bytes) }, `${bytes} bytes into a buffer of that length`);
      }
      const short = await session.recv(ANY, 1, 10);
      session.sendMatch(rail, 1, pattern(3, 0, 40));
      await session.received('RV-9', short, { data: pattern(3, 0, 10), error: 'ERR_TRUNCATE' }, '40 bytes into a buffer of 10');
      const after = await session.recv(ANY, 1, 10);
      session.sendMatch(rail, 1, pattern(4, 0, 10));
      await session.received('RV-9', after, { data: pattern(4, 0, 10) }, 'the next message');
    },
  },
  {
    name: 'ACK says what is taken, and the first part counts',
    group: 'rendezvous',
    needs,
    clauses: ['RV-2', 'RV-9', 'CN-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      // message, first part, buffer
      const table: [number, number, number][] = [
        [20_000, 0, 20_000],
        [20_000, 1024, 20_000],
        [20_000, 1024, 50_000],
        [20_000, 1024, 15_000],
        [20_000, 1024, 500],
        [20_000, 0, 0],
        [100, 100, 100],
        [100, 100, 30],
        [0, 0, 10],
      ];
      for (const [bytes, first, buffer] of table) {
        const what = `${bytes} bytes, of which ${first} at once, into ${buffer}`;
        const request = await session.recv(ANY, 1, buffer);
        const { ack } = await session.rendezvous(rail, 1, bytes, first);
        const take = Math.min(bytes, buffer);
        t.must('RV-2', ack.packet.takeBytes === take, `${what}: ACK takes ${ack.packet.takeBytes}, and must take ${take}`);
        if (first < take) {
          await session.notDone('RV-2', request, `${what}, before the rest`);
          session.sendFrag(rail, ack, first, take);
        }
        const error = buffer < bytes ? { error: 'ERR_TRUNCATE' } : {};
        await session.received(buffer < bytes ? 'RV-9' : 'RV-2', request, { data: pattern(1, 0, take), ...error }, what);
      }
      session.nothingElse('RV-2');
    },
  },
  {
    name: 'fragments in any order, over any rail',
    group: 'rendezvous',
    transport: 'tcp',
    needs,
    clauses: ['RV-3', 'RV-7'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 3 });
      const rails = [await session.connect(0, 1), await session.connect(1, 1), await session.connect(2, 1)];
      const request = await session.recv(ANY, 1, 50_000);
      const { ack } = await session.rendezvous(rails[0], 1, 50_000, 100);
      const cuts = [100, 101, 5000, 8192, 16_384, 16_385, 30_000, 49_999, 50_000];
      const ranges = cuts.slice(1).map((to, i): [number, number] => [cuts[i], to]);
      const order = [7, 0, 3, 5, 1, 6, 4];
      for (const [i, index] of order.entries()) session.sendFrag(rails[i % 3], ack, ...ranges[index]);
      await session.settle();
      await session.notDone('RV-7', request, 'all ranges but one');
      session.sendFrag(rails[2], ack, ...ranges[2]);
      await session.received('RV-3', request, { data: pattern(1, 0, 50_000) }, 'the last range in the middle');
    },
  },
  {
    name: 'a range counts once, and counted bytes are never written',
    group: 'rendezvous',
    needs,
    clauses: ['RV-4', 'RV-5', 'RV-7'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 4000);
      const { ack } = await session.rendezvous(rail, 1, 4000, 100);
      session.sendFrag(rail, ack, 1000, 2000);
      // What touches counted bytes, with other contents: it goes into nothing, all of it.
      for (const [from, to] of [
        [1000, 2000],
        [1500, 2500],
        [500, 1001],
        [0, 100],
        [0, 4000],
        [99, 101],
      ])
        session.sendFrag(rail, ack, from, to, 66);
      await session.counted('RV-5', rail, 'fragments that touch counted bytes');
      await session.notDone('RV-7', request, 'more bytes than the message has, but not all of it');
      session.sendFrag(rail, ack, 100, 1000);
      session.sendFrag(rail, ack, 3000, 4000);
      await session.counted('RV-5', rail, 'further fragments');
      await session.notDone('RV-7', request, 'all but [2000, 3000)');
      session.sendFrag(rail, ack, 2000, 3000);
      await session.received('RV-4', request, { data: pattern(1, 0, 4000) }, 'the message');
      session.sendFrag(rail, ack, 0, 4000, 66);
      await session.counted('RV-5', rail, 'a fragment for a retired id');
      await session.stays('RV-5', rail, 'a fragment for a retired id');
    },
  },
  {
    name: 'two frames do not write the same bytes',
    group: 'rendezvous',
    transport: 'tcp',
    needs,
    clauses: ['RV-4', 'RV-7'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 2 });
      const [a, b] = [await session.connect(0, 1), await session.connect(1, 1)];
      const request = await session.recv(ANY, 1, 20_000);
      const { ack } = await session.rendezvous(a, 1, 20_000);
      const whole = a.packetFrame(session.frag(ack, 0), pattern(1, 0, 20_000));
      const written = await session.half(a, whole, 12_000);
      session.sendFrag(b, ack, 15_000, 20_000, 66);
      // Where the first frame has written already: it will not come here again.
      session.sendFrag(b, ack, 0, 8000, 66);
      session.sendFrag(b, ack, 0, 20_000, 66);
      await session.counted('RV-4', b, 'fragments that another frame is writing');
      await session.notDone('RV-7', request, 'half a frame');
      a.rest(whole.subarray(written));
      await session.received('RV-4', request, { data: pattern(1, 0, 20_000) }, 'the message');
    },
  },
  {
    name: 'fragments that break the protocol',
    group: 'rendezvous',
    needs,
    clauses: ['RV-6', 'PK-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      let rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 5000);
      const { ack } = await session.rendezvous(rail, 1, 9000, 100);
      const bad: [string, Partial<Packet>, number, number][] = [
        ['beyond takeBytes', {}, 4999, 5001],
        ['behind takeBytes', {}, 9000, 9001],
        ['of a newer epoch', { epoch: 1 }, 100, 200],
      ];
      for (const [name, change, from, to] of bad) {
        session.sendFrag(rail, ack, from, to, 66, change);
        await session.closes('RV-6', rail, `a FRAG ${name}`);
        await session.notDone('PK-5', request, `a FRAG ${name}`);
        rail = await session.connect(0, rail.epoch + 1);
      }
      session.sendFrag(rail, ack, 100, 5000);
      await session.received('PK-5', request, { data: pattern(1, 0, 5000), error: 'ERR_TRUNCATE' }, 'the message afterwards');
    },
  },
  {
    name: 'a fragment of no bytes',
    group: 'rendezvous',
    needs,
    clauses: ['RV-16', 'RV-6'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 5000);
      const { ack } = await session.rendezvous(rail, 1, 5000);
      for (const from of [0, 100, 5000, 0]) rail.send(session.frag(ack, from), pattern(1, 0, 0));
      await session.counted('RV-16', rail, 'four FRAGs of no bytes');
      await session.notDone('RV-16', request, 'FRAGs of no bytes brought nothing');
      rail.send(session.frag(ack, 2000), pattern(1, 2000, 5000));
      // In the midst of what is counted, too.
      rail.send(session.frag(ack, 3000), pattern(1, 0, 0));
      rail.send(session.frag(ack, 0), pattern(1, 0, 2000));
      await session.received('RV-16', request, { data: pattern(1, 0, 5000) }, 'the message, when its bytes have come');
      const second = await session.recv(ANY, 1, 5000);
      const { ack: secondAck } = await session.rendezvous(rail, 1, 5000);
      rail.send(session.frag(secondAck, 5001), pattern(1, 0, 0));
      await session.closes('RV-6', rail, 'a FRAG of no bytes beyond what is taken');
      await session.notDone('RV-6', second, 'it changed nothing');
    },
  },
  {
    name: 'half a fragment is nothing',
    group: 'rendezvous',
    needs,
    clauses: ['RV-7', 'RR-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 30_000);
      const { rndv, ack } = await session.rendezvous(rail, 1, 30_000);
      session.sendFrag(rail, ack, 0, 8192);
      await session.counted('RV-7', rail, 'the first fragment');
      const half = rail.packetFrame(session.frag(ack, 8192), pattern(66, 8192, 24_576));
      await session.half(rail, half, 9000);
      const next = await session.reconnect(rail);
      next.send(session.notify(rndv, ack, 1, { deadRails: [{ rail: 0, epoch: 1 }] }));
      const answer = await session.expect('RR-1', PACKET.RNDVRESTARTACK, 'NOTIFY is answered');
      t.check('RV-7', lacks(answer.packet) === '[8192,30000)', `what was half there is lacking: ${lacks(answer.packet)}`);
      session.sendFrag(next, answer, 8192, 30_000);
      await session.received('RV-7', request, { data: pattern(1, 0, 30_000) }, 'the message');
    },
  },
  {
    name: 'a fragment proves that the answer arrived',
    group: 'rendezvous',
    needs,
    clauses: ['RV-8', 'RV-14'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const proved = await session.recv(ANY, 1, 9000);
      const unproved = await session.recv(ANY, 2, 100);
      rail.autoCount = false;
      const first = await session.rendezvous(rail, 1, 9000);
      // All of this one came with its envelope: the receive is over, and its ACK still owed.
      const second = await session.rendezvous(rail, 2, 100, 100);
      await session.received('RV-14', unproved, { data: pattern(1, 0, 100) }, 'a message that came whole');
      session.sendFrag(rail, first.ack, 0, 4000);
      await session.counted('RV-8', rail, 'a fragment');
      const next = await session.reconnect(rail);
      const again = await session.expect('RV-14', PACKET.ACK, 'an ACK that was neither counted nor proved comes again');
      t.check('RV-14', again.packet.senderSlot === second.rndv.senderSlot, 'it is that of the message that came whole');
      await session.never('RV-8', PACKET.ACK, 'one that a fragment has proved does not');
      session.sendFrag(next, first.ack, 4000, 9000);
      await session.received('RV-8', proved, { data: pattern(1, 0, 9000) }, 'the other message');
    },
  },
  {
    name: 'RGET without a rail that can read',
    group: 'rendezvous',
    needs,
    clauses: ['RV-10', 'RV-11'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const window = { rail: 0, railEpoch: 1, key: new Uint8Array([1, 2, 3, 4, 5]) };
      const dead = { rail: 3, railEpoch: 9, key: new Uint8Array(64) };
      for (const windows of [[], [window], [dead, window]]) {
        const request = await session.recv(ANY, 1, 6000);
        const rget: Packet = { ...session.rndv(6000, { tag: 1 }), type: PACKET.RGET, windows };
        rail.send(rget);
        const ack = await session.expect('RV-10', PACKET.ACK, `an RGET with ${windows.length} windows is answered by ACK`);
        t.check('RV-10', ack.packet.takeBytes === 6000, 'which takes all of it');
        session.sendFrag(rail, ack, 0, 6000);
        await session.received('RV-10', request, { data: pattern(1, 0, 6000) }, 'the message, by FRAG');
      }
      await session.never('RV-11', PACKET.PUT, 'no windows are offered either');
      session.nothingElse('RV-10');
    },
  },
  {
    name: 'FINs to the receiver that do not fit',
    group: 'rendezvous',
    needs,
    clauses: ['RV-12', 'RV-17'],
    run: async (t) => {
      const session = await Session.begin(t);
      let rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 6000);
      const { rndv, ack } = await session.rendezvous(rail, 1, 6000);
      const { receiverSlot, receiverGeneration } = ack.packet;
      const fin = (epoch: number, from: number, to: number) =>
        session.other(PACKET.FIN, { receiverSlot, receiverGeneration, epoch, number: 1, from, to });
      rail.send(fin(0, 5000, 6001));
      await session.closes('RV-12', rail, 'a FIN beyond takeBytes');
      rail = await session.connect(0, 2);
      rail.send(fin(1, 0, 6000));
      await session.closes('RV-12', rail, 'a FIN of a newer epoch');
      // On these rails no window is ever offered.
      rail = await session.connect(0, 3);
      rail.send(fin(0, 0, 6000));
      await session.closes('RV-17', rail, 'a FIN for a window that was never offered');
      await session.notDone('RV-17', request, 'a FIN for a window that was never offered');
      rail = await session.connect(0, 4);
      rail.send(session.notify(rndv, ack, 1));
      const answer = await session.expect('RR-1', PACKET.RNDVRESTARTACK, 'NOTIFY is answered');
      rail.send(fin(0, 0, 6000));
      await session.counted('RV-12', rail, 'a FIN of an older epoch');
      await session.notDone('RV-12', request, 'a FIN of an older epoch');
      session.sendFrag(rail, answer, 0, 6000);
      await session.received('RV-12', request, { data: pattern(1, 0, 6000) }, 'the message');
      rail.send(fin(1, 0, 6000));
      await session.stays('RV-12', rail, 'a FIN for a retired id');
    },
  },
  {
    name: 'a sender that has lost its buffer',
    group: 'rendezvous',
    needs,
    clauses: ['RV-18', 'RV-19'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 6000);
      const { ack } = await session.rendezvous(rail, 1, 6000);
      session.sendFrag(rail, ack, 0, 1000);
      await session.notDone('RV-18', request, 'a part of the message');
      rail.send(session.frag(ack, 1000, { flags: FLAG.VOID }), new Uint8Array(0));
      const lost = await session.done('RV-18', request, 'the receive');
      t.check('RV-18', lost.error === 'ERR_BUFFER', `it ends with ERR_BUFFER (${lost.error})`);
      session.sendFrag(rail, ack, 1000, 6000);
      await session.stays('RV-18', rail, 'a FRAG that was on its way');

      const second = await session.recv(ANY, 1, 6000);
      const { ack: answer } = await session.rendezvous(rail, 1, 6000, 0, 1, 'RV-19', { flags: FLAG.VOID });
      t.check('RV-19', answer.packet.takeBytes === 0, `the ACK takes nothing (${answer.packet.takeBytes})`);
      const never = await session.done('RV-19', second, 'the receive');
      t.check('RV-19', never.error === 'ERR_BUFFER', `it ends with ERR_BUFFER (${never.error})`);
      await session.stays('RV-19', rail, 'a message that was lost before it left');
    },
  },
  {
    name: 'the longest frame',
    group: 'rendezvous',
    needs,
    clauses: ['LM-2', 'RV-7'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const bytes = FRAME_PAYLOAD_BYTES_MAX;
      const request = await session.recv(ANY, 1, bytes);
      const { ack } = await session.rendezvous(rail, 1, bytes);
      session.sendFrag(rail, ack, 0, bytes);
      await session.counted('LM-2', rail, 'a FRAG of 16 842 752 bytes');
      await session.received('RV-7', request, { data: pattern(1, 0, bytes) }, 'it');
    },
  },
  {
    name: 'several messages at a time',
    group: 'rendezvous',
    transport: 'tcp',
    needs,
    clauses: ['RV-3', 'RV-2'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 2 });
      const rails = [await session.connect(0, 1), await session.connect(1, 1)];
      const messages = [];
      for (let i = 0; i < 8; i++) {
        const request = await session.recv(ANY, i, 20_000);
        messages.push({ request, seed: 10 + i, ...(await session.rendezvous(rails[i % 2], i, 20_000, 100 * i, 10 + i)) });
      }
      const ids = new Set(messages.map(({ ack }) => `${ack.packet.receiverSlot}.${ack.packet.receiverGeneration}`));
      t.check('RV-2', ids.size === 8, 'each ACK has an id of its own');
      const sets = messages.map(({ ack }) => ack.packet.receiverGeneration);
      t.check(
        'PK-4',
        sets.every((generation) => generation >= 1),
        'generations are from 1 up',
      );
      for (const from of [8192, 0]) {
        for (const [i, { ack, seed }] of messages.entries()) {
          const begin = from === 0 ? 100 * i : from;
          session.sendFrag(rails[(i + from) % 2], ack, begin, from === 0 ? 8192 : 20_000, seed);
        }
      }
      for (const { request, seed } of messages)
        await session.received('RV-3', request, { data: pattern(seed, 0, 20_000) }, `the message with seed ${seed}`);
    },
  },
  {
    name: 'packets for messages that are over',
    group: 'rendezvous',
    needs,
    clauses: ['PK-4'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 6000);
      const { ack } = await session.rendezvous(rail, 1, 6000);
      session.sendFrag(rail, ack, 0, 6000);
      await session.received('PK-4', request, { data: pattern(1, 0, 6000) }, 'the message');
      const { receiverSlot, receiverGeneration } = ack.packet;
      session.sendFrag(rail, ack, 100, 200, 66);
      rail.send(session.other(PACKET.FIN, { receiverSlot, receiverGeneration, from: 0, to: 9 }));
      await session.stays('PK-4', rail, 'FRAG and FIN for a retired id');
      session.nothingElse('PK-4');
      // The slot may be used again, with a higher generation.
      const next = await session.recv(ANY, 1, 6000);
      const second = await session.rendezvous(rail, 1, 6000);
      const grows = second.ack.packet.receiverSlot !== receiverSlot || second.ack.packet.receiverGeneration > receiverGeneration;
      t.check('PK-4', grows, 'generations of a slot ascend');
      session.sendFrag(rail, ack, 0, 6000, 66);
      session.sendFrag(rail, second.ack, 0, 6000);
      await session.received('PK-4', next, { data: pattern(1, 0, 6000) }, 'a message that has the slot of an older one');
      rail.send(session.other(PACKET.FRAG, { receiverSlot, receiverGeneration: receiverGeneration + 1000 }), pattern(0, 0, 4));
      await session.closes('PK-4', rail, 'a generation that was never issued');
    },
  },
];

/** The bytes that a RESTARTACK lacks, as text: ranges and tail joined. */
export function lacks({ missing, from, takeBytes }: Packet): string {
  const joined: [number, number][] = [];
  for (const [begin, end] of [...missing, [from, takeBytes] as [number, number]]) {
    const last = joined.at(-1);
    if (begin >= end) continue;
    if (last !== undefined && last[1] >= begin) last[1] = Math.max(last[1], end);
    else joined.push([begin, end]);
  }
  return joined.map(([begin, end]) => `[${begin},${end})`).join(' ') || 'nothing';
}
