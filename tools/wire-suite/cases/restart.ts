// Cases of §11, the receiver's side: the restart by resume with its races, fences, and what is owed after a rail is lost.
import { PACKET, type Packet } from '../../../src/pml/hdr.ts';
import type { Case, CaseContext } from '../case.ts';
import type { ClauseId } from '../clauses.ts';
import type { Feature } from '../convention.ts';
import { pattern } from '../pattern.ts';
import type { Arrival, Rail } from '../rail.ts';
import { ANY, Session, sleep } from '../session.ts';
import type { SessionOptions } from '../session-options.ts';
import { lacks } from './rendezvous.ts';

const needs: readonly Feature[] = ['accept', 'receive'];
const BYTES = 40_000;

interface Pair {
  session: Session;
  rails: [Rail, Rail];
}

async function twoRails(t: CaseContext, options: SessionOptions = {}): Promise<Pair> {
  const session = await Session.begin(t, { links: 2, ...options });
  return { session, rails: [await session.connect(0, 1), await session.connect(1, 1)] };
}

interface Begun extends Pair {
  request: number;
  rndv: Packet;
  ack: Arrival;
}

/** A message of which [0, 8192) has come, over rail 0. */
async function begun(t: CaseContext, options: SessionOptions = {}): Promise<Begun> {
  const pair = await twoRails(t, options);
  const { session, rails } = pair;
  const request = await session.recv(ANY, 1, BYTES);
  const { rndv, ack } = await session.rendezvous(rails[0], 1, BYTES);
  session.sendFrag(rails[0], ack, 0, 8192);
  await session.counted('RV-3', rails[0], 'the first fragment');
  return { ...pair, request, rndv, ack };
}

/** The next RESTARTACK, which must lack just that. */
async function restartAck(session: Session, clause: ClauseId, epoch: number, expected: string, what: string): Promise<Arrival> {
  const answer = await session.expect(clause, PACKET.RNDVRESTARTACK, `${what} is answered by RESTARTACK`);
  const { t } = session;
  t.check(clause, answer.packet.epoch === epoch, `${what}: of epoch ${epoch}, and not ${answer.packet.epoch}`);
  t.check(clause, lacks(answer.packet) === expected, `${what}: lacking is ${lacks(answer.packet)}, and must be ${expected}`);
  return answer;
}

async function finished(b: Begun, rail: Rail, answer: Arrival, from: number, clause: ClauseId, what: string): Promise<void> {
  b.session.sendFrag(rail, answer, from, BYTES);
  await b.session.received(clause, b.request, { data: pattern(1, 0, BYTES) }, what);
  await b.session.settle();
  b.session.nothingElse(clause);
}

export const RESTART_CASES: readonly Case[] = [
  {
    name: 'a rail is lost with a fragment on it',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-1', 'RR-7', 'RD-1'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      rails[0].drop();
      rails[1].send(session.other(PACKET.RAILDOWN, { rail: 0, epoch: 1 }));
      rails[1].send(session.notify(rndv, ack, 1, { deadRails: [{ rail: 0, epoch: 1 }] }));
      const answer = await restartAck(session, 'RR-1', 1, `[8192,${BYTES})`, 'NOTIFY of epoch 1');
      const { packet } = answer;
      t.check('RR-1', packet.takeBytes === BYTES, `RESTARTACK takes ${packet.takeBytes}`);
      const named = packet.senderSlot === rndv.senderSlot && packet.senderGeneration === rndv.senderGeneration;
      t.check('RR-1', named && packet.receiverSlot === ack.packet.receiverSlot, 'RESTARTACK names both ids');
      t.check('RR-7', !rails[1].closed, 'the other rail lives');
      t.check('RD-1', !rails[1].closed, 'a RAILDOWN of a rail that is gone harms no other');
      await finished(b, rails[1], answer, 8192, 'RR-1', 'the rest in epoch 1');
    },
  },
  {
    name: 'everything had arrived: only the counts were lost',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-3', 'RR-11'],
    run: async (t) => {
      const { session, rails, request, rndv, ack } = await begun(t);
      session.sendFrag(rails[0], ack, 8192, BYTES);
      await session.received('RR-3', request, { data: pattern(1, 0, BYTES) }, 'the whole message');
      rails[0].drop();
      rails[1].autoCount = false;
      for (const epoch of [1, 2]) {
        rails[1].send(session.notify(rndv, ack, epoch, { deadRails: [{ rail: 0, epoch: 1 }] }));
        const answer = await session.expect(
          'RR-3',
          PACKET.RNDVRESTARTNACK,
          `NOTIFY of epoch ${epoch} for a message that is over is answered`,
        );
        t.check(
          'RR-3',
          answer.packet.senderSlot === rndv.senderSlot && answer.packet.epoch === epoch,
          'it names the message and the epoch',
        );
      }
      const next = await session.reconnect(rails[1]);
      const again = await session.expect('RR-11', PACKET.RNDVRESTARTNACK, 'a RESTARTNACK in doubt comes again');
      t.check('RR-11', again.packet.senderSlot === rndv.senderSlot, 'for the same message');
      await session.never('RR-11', PACKET.RNDVRESTARTNACK, 'once it is delivered it does not');
      await session.stays('RR-3', next, 'all this');
    },
  },
  {
    name: 'NOTIFY of the current epoch is only answered again',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-4', 'RR-12'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      const dead = { deadRails: [{ rail: 0, epoch: 1 }] };
      rails[1].send(session.notify(rndv, ack, 1, dead));
      const first = await restartAck(session, 'RR-4', 1, `[8192,${BYTES})`, 'NOTIFY');
      // While the answer is on a rail it needs no repeat: here it is known to be delivered.
      await session.settle();
      rails[1].send(session.notify(rndv, ack, 1, dead));
      await restartAck(session, 'RR-4', 1, `[8192,${BYTES})`, 'the same NOTIFY again');
      // A late copy over another rail while fragments of that epoch are arriving.
      const other = await session.connect(0, 2);
      const whole = rails[1].packetFrame(session.frag(first, 8192), pattern(1, 8192, BYTES));
      const written = await session.half(rails[1], whole, 20_000);
      other.send(session.notify(rndv, ack, 1, dead));
      await session.counted('RR-4', other, 'a late copy of NOTIFY');
      rails[1].rest(whole.subarray(written));
      await session.received('RR-4', b.request, { data: pattern(1, 0, BYTES) }, 'the fragment that was arriving counts');
      t.check('RR-12', true, 'a repeat in the middle');
    },
  },
  {
    name: 'NOTIFY of an older epoch is dropped',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-5', 'RR-9'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      rails[1].send(session.notify(rndv, ack, 5));
      const answer = await restartAck(session, 'RR-9', 5, `[8192,${BYTES})`, 'NOTIFY of epoch 5');
      rails[1].send(session.notify(rndv, ack, 4, { deadRails: [{ rail: 0, epoch: 1 }] }));
      await session.never('RR-5', PACKET.RNDVRESTARTACK, 'NOTIFY of epoch 4 is not answered');
      t.check('RR-5', !rails[0].closed, 'and fences nothing');
      await finished(b, rails[0], answer, 8192, 'RR-9', 'the rest in epoch 5');
    },
  },
  {
    name: 'serial arithmetic of message epochs',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['CV-4', 'RR-5'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      let answer = ack;
      for (const epoch of [0x7fff_ffff, 0xffff_fff0, 3]) {
        rails[1].send(session.notify(rndv, ack, epoch));
        answer = await restartAck(session, 'CV-4', epoch, `[8192,${BYTES})`, `NOTIFY of epoch ${epoch}`);
      }
      rails[1].send(session.notify(rndv, ack, 0xffff_ffff));
      await session.never('RR-5', PACKET.RNDVRESTARTACK, 'epoch 2^32 - 1 after epoch 3 is an older one');
      // It is of the epoch before the wrap: behind, although its number is greater.
      session.sendFrag(rails[1], answer, 8192, BYTES, 66, { epoch: 0xffff_fff0 });
      await session.counted('CV-4', rails[1], 'a FRAG of epoch 2^32 - 16 after epoch 3');
      await session.notDone('CV-4', b.request, 'a FRAG of an older epoch');
      await finished(b, rails[1], answer, 8192, 'CV-4', 'the rest in epoch 3');
    },
  },
  {
    name: 'NOTIFY that names another sender',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-6', 'PK-5'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      rails[1].send(session.notify(rndv, ack, 1, { senderSlot: rndv.senderSlot + 50 }));
      await session.closes('RR-6', rails[1], "NOTIFY with another sender's id");
      await session.settle();
      session.nothingElse('RR-6');
      session.sendFrag(rails[0], ack, 8192, BYTES);
      await session.received('PK-5', b.request, { data: pattern(1, 0, BYTES) }, 'the message goes on in epoch 0');
    },
  },
  {
    name: 'NOTIFY fences the rails that it names, up to their epochs',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-7', 'HS-8'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rndv, ack } = b;
      const [zero, one] = b.rails;
      // For the endpoint rail 0 still lives; a fragment on it must not land any more.
      const half = zero.packetFrame(session.frag(ack, 8192), pattern(66, 8192, 24_576));
      await session.half(zero, half, 9000);
      one.send(session.notify(rndv, ack, 1, { deadRails: [{ rail: 0, epoch: 1 }] }));
      await session.closes('RR-7', zero, 'a rail that NOTIFY names');
      const answer = await restartAck(session, 'RR-7', 1, `[8192,${BYTES})`, 'NOTIFY');
      const stale = await session.connect(0, 3);
      t.check('HS-8', !stale.closed, 'a newer epoch of it is welcome');
      one.send(session.notify(rndv, ack, 2, { deadRails: [{ rail: 0, epoch: 2 }] }));
      const again = await restartAck(session, 'RR-7', 2, `[8192,${BYTES})`, 'NOTIFY of epoch 2');
      await session.stays('RR-7', stale, 'a NOTIFY that names an older epoch of a rail');
      await session.never('RR-4', PACKET.RNDVRESTARTACK, 'no answer more than is due');
      t.check('RR-1', answer.packet.epoch === 1, 'the first answer was of epoch 1');
      await finished(b, stale, again, 8192, 'RR-7', 'the rest over the newer epoch');
    },
  },
  {
    name: 'NOTIFY fences all the rails that it names',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-7'],
    run: async (t) => {
      const session = await Session.begin(t, { links: 3 });
      const rails = [await session.connect(0, 1), await session.connect(1, 1), await session.connect(2, 1)];
      const request = await session.recv(ANY, 1, BYTES);
      const { rndv, ack } = await session.rendezvous(rails[0], 1, BYTES);
      session.sendFrag(rails[0], ack, 0, 8192);
      await session.counted('RV-3', rails[0], 'the first fragment');
      const deadRails = [
        { rail: 0, epoch: 1 },
        { rail: 1, epoch: 1 },
      ];
      rails[2].send(session.notify(rndv, ack, 1, { deadRails }));
      for (const rail of [0, 1]) await session.closes('RR-7', rails[rail], `rail ${rail}, which NOTIFY names`);
      const answer = await restartAck(session, 'RR-7', 1, `[8192,${BYTES})`, 'NOTIFY');
      session.sendFrag(rails[2], answer, 8192, BYTES);
      await session.received('RR-7', request, { data: pattern(1, 0, BYTES) }, 'the rest over the rail that is left');
    },
  },
  {
    name: 'NOTIFY with as many rails as it may name, and one more',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['LM-6'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      // Rails that are none of this pair's: nothing is fenced, and only their number is looked at.
      const dead = (count: number) => ({ deadRails: Array.from({ length: count }, (_, i) => ({ rail: 100 + i, epoch: 1 })) });
      rails[1].send(session.notify(rndv, ack, 1, dead(128)));
      const answer = await restartAck(session, 'LM-6', 1, `[8192,${BYTES})`, 'NOTIFY with 128 rails');
      rails[1].send(session.notify(rndv, ack, 2, dead(129)));
      await session.closes('LM-6', rails[1], 'NOTIFY with 129 rails, of a message that exists');
      await finished(b, rails[0], answer, 8192, 'LM-6', 'the rest in the epoch of the good one');
    },
  },
  {
    name: 'NOTIFY revokes what is being written on living rails',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-8', 'RR-9', 'RV-5'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      const old = rails[0].packetFrame(session.frag(ack, 8192), pattern(66, 8192, 24_576));
      const written = await session.half(rails[0], old, 9000);
      rails[1].send(session.notify(rndv, ack, 1));
      const answer = await restartAck(session, 'RR-8', 1, `[8192,${BYTES})`, 'NOTIFY');
      session.sendFrag(rails[1], answer, 8192, 24_576);
      await session.counted('RR-8', rails[1], 'the same range in the new epoch');
      rails[0].rest(old.subarray(written));
      await session.counted('RV-5', rails[0], 'the old fragment, into nothing');
      await session.notDone('RR-8', b.request, 'an old fragment');
      session.sendFrag(rails[0], ack, 24_576, BYTES, 66);
      await session.counted('RR-9', rails[0], 'a whole fragment of the older epoch');
      await session.notDone('RR-9', b.request, 'a fragment of an older epoch');
      await finished(b, rails[0], answer, 24_576, 'RR-8', 'the message');
    },
  },
  {
    name: 'more is lacking than an answer can name',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-1', 'RR-2', 'RR-4', 'LM-7'],
    run: async (t) => {
      const { session, rails } = await twoRails(t);
      const bytes = 10_000;
      const request = await session.recv(ANY, 1, bytes);
      const { rndv, ack } = await session.rendezvous(rails[0], 1, bytes);
      // Every other piece of 10 bytes: 500 ranges are missing.
      for (let from = 0; from < bytes; from += 20) session.sendFrag(rails[0], ack, from, from + 10);
      await session.counted('RR-1', rails[0], 'every other piece');
      rails[1].send(session.notify(rndv, ack, 1));
      const answer = await session.expect('RR-1', PACKET.RNDVRESTARTACK, 'NOTIFY is answered');
      const { missing, from, takeBytes } = answer.packet;
      t.must('LM-7', missing.length <= 128 && missing.length > 0, `it names ${missing.length} ranges, at most 128`);
      const right = missing.every(([begin, end], i) => begin === 20 * i + 10 && end === 20 * i + 20);
      t.check('RR-1', right, 'the lowest ones, in order');
      const last = missing.at(-1) as [number, number];
      t.must('RR-2', from >= last[1] && from <= last[1] + 10 && takeBytes === bytes, `from ${from} on everything is missing`);
      await session.settle();
      rails[1].send(session.notify(rndv, ack, 1));
      const again = await session.expect('RR-4', PACKET.RNDVRESTARTACK, 'the same NOTIFY is answered again');
      t.check('RR-4', lacks(again.packet) === lacks(answer.packet), 'by the same answer');
      for (const [begin, end] of missing) session.sendFrag(rails[0], answer, begin, end);
      await session.counted('RR-2', rails[0], 'what was named');
      await session.notDone('RR-2', request, 'all but the tail');
      session.sendFrag(rails[1], answer, from, bytes);
      await session.received('RR-2', request, { data: pattern(1, 0, bytes) }, 'the tail as a whole');
    },
  },
  {
    name: 'NOTIFY finds a message that is complete and owes its ACK',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-10'],
    run: async (t) => {
      const { session, rails } = await twoRails(t);
      for (const rail of rails) rail.autoCount = false;
      const request = await session.recv(ANY, 1, 500);
      const { rndv, ack } = await session.rendezvous(rails[0], 1, 500, 500);
      await session.received('RR-10', request, { data: pattern(1, 0, 500) }, 'a message that came whole');
      rails[1].send(session.notify(rndv, ack, 1));
      const answer = await session.expect('RR-10', PACKET.RNDVRESTARTNACK, 'NOTIFY is answered by RESTARTNACK');
      t.check('RR-10', answer.packet.senderSlot === rndv.senderSlot, 'which names it');
      rails[1].count();
      await session.settle();
      await session.reconnect(rails[0]);
      await session.never('RR-10', PACKET.ACK, 'the ACK is not owed any more');
    },
  },
  {
    name: 'the answer to a restart is lost',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RV-14', 'RR-12', 'RV-8'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      rails[0].drop();
      rails[1].autoCount = false;
      const dead = { deadRails: [{ rail: 0, epoch: 1 }] };
      rails[1].send(session.notify(rndv, ack, 1, dead));
      await restartAck(session, 'RV-14', 1, `[8192,${BYTES})`, 'NOTIFY');
      const second = await session.reconnect(rails[1], false);
      const again = await restartAck(session, 'RV-14', 1, `[8192,${BYTES})`, 'an answer in doubt: it');
      session.sendFrag(second, again, 8192, 16_384);
      await session.counted('RV-8', second, 'a fragment of the new epoch');
      const third = await session.reconnect(second);
      await session.never('RV-8', PACKET.RNDVRESTARTACK, 'an answer that a fragment has proved does not come again');
      // It strikes again: the fragment's count was lost too.
      third.send(session.notify(rndv, ack, 2, { deadRails: [{ rail: 1, epoch: 2 }] }));
      const last = await restartAck(session, 'RR-12', 2, `[16384,${BYTES})`, 'NOTIFY of epoch 2');
      session.sendFrag(third, again, 16_384, BYTES, 66);
      await session.counted('RR-12', third, 'a fragment of epoch 1');
      await finished(b, third, last, 16_384, 'RR-12', 'the rest in epoch 2');
    },
  },
  {
    name: 'a rail is lost while NOTIFY is on it',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RR-12'],
    run: async (t) => {
      const b = await begun(t);
      const { session, rails, rndv, ack } = b;
      rails[0].drop();
      const bytes = rails[1].packetFrame(session.notify(rndv, ack, 1, { deadRails: [{ rail: 0, epoch: 1 }] }));
      rails[1].begin(bytes.subarray(0, bytes.length - 1));
      await sleep(t.config.quietMs);
      const next = await session.reconnect(rails[1]);
      await session.never('RR-12', PACKET.RNDVRESTARTACK, 'half a NOTIFY is nothing');
      next.send(
        session.notify(rndv, ack, 1, {
          deadRails: [
            { rail: 0, epoch: 1 },
            { rail: 1, epoch: 1 },
          ],
        }),
      );
      const answer = await restartAck(session, 'RR-12', 1, `[8192,${BYTES})`, 'the whole one');
      await finished(b, next, answer, 8192, 'RR-12', 'the rest');
    },
  },
  {
    name: 'RAILDOWN from the other side',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RD-1', 'RD-6', 'HS-8'],
    run: async (t) => {
      const { session, rails } = await twoRails(t);
      rails[0].send(session.other(PACKET.RAILDOWN, { rail: 1, epoch: 1 }));
      await session.closes('RD-1', rails[1], 'RAILDOWN(1, 1)');
      await session.stays('RD-1', rails[0], 'RAILDOWN of the other rail');
      const next = await session.connect(1, 2);
      rails[0].send(session.other(PACKET.RAILDOWN, { rail: 1, epoch: 1 }));
      await session.stays('RD-1', next, 'RAILDOWN of an epoch that is over');
      rails[0].send(session.other(PACKET.RAILDOWN, { rail: 1, epoch: 4 }));
      await session.closes('RD-1', next, 'RAILDOWN up to epoch 4 while epoch 2 lives');
      const after = await session.connect(1, 5);
      await session.stays('HS-8', after, 'epoch 5');
      // The rail itself may carry it.
      after.send(session.other(PACKET.RAILDOWN, { rail: 1, epoch: 5 }));
      await session.closes('RD-1', after, 'RAILDOWN of the very epoch that carries it');
      // Taken for at most 1000 above the highest that was seen, which is 5.
      rails[0].send(session.other(PACKET.RAILDOWN, { rail: 1, epoch: 0xffff_fff0 }));
      await session.stays('RD-6', rails[0], 'RAILDOWN of an epoch far ahead');
      for (const [epoch, expected] of [
        [1005, 'STALE_EPOCH'],
        [1006, 'welcome'],
      ] as const) {
        const answer = await session.tryConnect(1, epoch);
        t.check('RD-6', answer === expected, `epoch ${epoch}, ${epoch - 5} above the highest that was seen: ${answer}`);
      }
    },
  },
  {
    name: 'RAILDOWN to the other side',
    group: 'restart',
    transport: 'tcp',
    needs,
    clauses: ['RD-2', 'RD-3'],
    run: async (t) => {
      const { session, rails } = await twoRails(t);
      const of = (rail: number, epoch?: number) => (one: Arrival) =>
        one.packet.rail === rail && (epoch === undefined || one.packet.epoch === epoch);
      rails[0].autoCount = false;
      rails[1].drop();
      await session.expect('RD-2', PACKET.RAILDOWN, 'the loss of rail 1 is told over rail 0', of(1, 1));
      const zero = await session.reconnect(rails[0]);
      zero.autoCount = true;
      await session.expect('RD-2', PACKET.RAILDOWN, 'a RAILDOWN in doubt is told again', of(1, 1));
      await session.never('RD-2', PACKET.RAILDOWN, 'once it is delivered it is not', of(1));
      await session.never('RD-3', PACKET.RAILDOWN, 'a rail that lives in a newer epoch is not told of', of(0, 1));
      // Both at once: the first that comes up tells of the other.
      const one = await session.connect(1, 2);
      session.inbox = [];
      zero.drop();
      one.drop();
      await sleep(t.config.quietMs);
      await session.connect(1, 3);
      await session.expect('RD-3', PACKET.RAILDOWN, 'when a rail comes up, the dead epoch of the other one is told', of(0, 2));
      // It was told and counted; the rail is still dead when another one comes up, and is told of again.
      const two = await session.connect(1, 4);
      await session.expect('RD-3', PACKET.RAILDOWN, 'a dead epoch that was told before is told on every rail that comes up', of(0, 2));
      await session.stays('RD-3', two, 'all this');
    },
  },
  {
    name: 'nothing came back within the peer timeout',
    group: 'restart',
    needs,
    clauses: ['RD-4', 'RD-5'],
    run: async (t) => {
      const session = await Session.begin(t, { peerTimeoutMs: 200 });
      const rail = await session.connect(0, 1);
      const posted = await session.recv(session.rank, 1, 10);
      const matched = await session.recv(session.rank, 2, 9000);
      await session.rendezvous(rail, 2, 9000);
      rail.drop();
      for (const [name, request] of [
        ['a receive that waits', posted],
        ['a receive in the middle', matched],
      ] as const) {
        const state = await session.done('RD-4', request, name);
        t.check('RD-4', state.error === 'ERR_PROC_UNREACHABLE', `${name} ends with ERR_PROC_UNREACHABLE, and not ${state.error}`);
      }
      const answer = await session.tryConnect(0, 9);
      t.check('RD-5', answer === 'PEER_FAILED', `the peer is refused with PEER_FAILED from then on (${answer})`);
    },
  },
];

export const CREDIT_CASES: readonly Case[] = [
  {
    name: 'charges are released when the payload is disposed of',
    group: 'credit',
    needs,
    clauses: ['CR-1', 'CR-2', 'CR-3'],
    run: async (t) => {
      const max = 16_384;
      const session = await Session.begin(t, { unexpectedBytesMax: max });
      const rail = await session.connect(0, 1);
      let released = 0;
      /** The limit as an ACK states it. */
      const limitIs = async (what: string) => {
        await session.recv(ANY, 99, 5000);
        const { ack } = await session.rendezvous(rail, 99, 5000);
        const limit = ack.packet.creditLimit;
        t.check('CR-2', limit === max + released, `${what}: the limit is ${limit}, and must be ${max + released}`);
        session.sendFrag(rail, ack, 0, 5000);
      };
      await limitIs('at the beginning');
      const first = session.sendMatch(rail, 1, pattern(1, 0, 1000), { flags: 1 });
      session.sendMatch(rail, 2, pattern(1, 0, 900), { flags: 0 });
      await limitIs('payload that waits');
      session.sendMatch(rail, 1, pattern(1, 0, 1000), { seq: first.seq, flags: 1 });
      await limitIs('a duplicate');
      const one = await session.recv(ANY, 1, 4096);
      await session.received('CR-2', one, { data: pattern(1, 0, 1000) }, 'a charged message');
      released += session.charge(1000);
      await limitIs('a charged message that was received');
      const two = await session.recv(ANY, 2, 4096);
      await session.received('CR-2', two, { data: pattern(1, 0, 900) }, 'a message that was not charged');
      await limitIs('a message that was not charged');
      session.sendMatch(rail, 1, pattern(1, 0, 1000), { seq: first.seq, flags: 1 });
      await limitIs('a duplicate of a message that was received');
      const short = await session.recv(ANY, 3, 10);
      session.sendMatch(rail, 3, pattern(1, 0, 700), { flags: 1 });
      await session.received('CR-2', short, { data: pattern(1, 0, 10), error: 'ERR_TRUNCATE' }, 'a message that is cut');
      released += session.charge(700);
      await limitIs('a charged message that was cut');
      const rndv = await session.recv(ANY, 4, 9000);
      const envelope = session.rndv(9000, { tag: 4, flags: 1 });
      rail.send(envelope, pattern(1, 0, 600));
      const ack = await session.expect(
        'CR-2',
        PACKET.ACK,
        'a charged rendezvous',
        ({ packet }) => packet.senderSlot === envelope.senderSlot,
      );
      session.sendFrag(rail, ack, 600, 9000);
      await session.received('CR-2', rndv, { data: pattern(1, 0, 9000) }, 'a charged rendezvous');
      released += session.charge(600);
      await limitIs('a charged rendezvous that was received');
      // A quarter of 16384 at once, with nothing to answer: it must be told by itself.
      session.inbox = [];
      for (let i = 0; i < 5; i++) {
        const request = await session.recv(ANY, 5, 1000);
        session.sendMatch(rail, 5, pattern(1, 0, 1000), { flags: 1 });
        await session.received('CR-2', request, { data: pattern(1, 0, 1000) }, 'one of five');
        released += session.charge(1000);
      }
      const told = await session.expect('CR-3', PACKET.CREDIT, 'a limit that rose by more than a quarter is told');
      t.check('CR-3', told.packet.creditLimit >= max + max / 4, `the limit that is told is ${told.packet.creditLimit}`);
      await limitIs('five charged messages');
    },
  },
  {
    name: 'a CREDIT in doubt is told again',
    group: 'credit',
    needs,
    clauses: ['CR-4', 'CR-3'],
    run: async (t) => {
      const max = 8192;
      const session = await Session.begin(t, { unexpectedBytesMax: max });
      const rail = await session.connect(0, 1);
      rail.autoCount = false;
      for (let i = 0; i < 3; i++) {
        await session.recv(ANY, 1, 1000);
        session.sendMatch(rail, 1, pattern(1, 0, 1000), { flags: 1 });
      }
      const limit = max + 2 * session.charge(1000);
      await session.expect('CR-3', PACKET.CREDIT, 'a limit that rose is told', ({ packet }) => packet.creditLimit >= limit);
      const next = await session.reconnect(rail);
      const again = await session.expect('CR-4', PACKET.CREDIT, 'in doubt it is told again', ({ packet }) => packet.creditLimit >= limit);
      t.check('CR-4', again.rail === next, 'over the next epoch');
      await session.never('CR-4', PACKET.CREDIT, 'once it is delivered it is not');
    },
  },
];
