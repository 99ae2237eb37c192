// Cases of §8 to §11, the sender's side: eager and rendezvous, credit, and the restart when fragments are in doubt. The tester receives.
import { FRAME_NACK } from '../../../src/btl/base/frame-hdr.ts';
import { ENVELOPE_CHARGE_BYTES, FLAG, PACKET, type PacketType } from '../../../src/pml/hdr.ts';
import type { Case, CaseContext } from '../case.ts';
import type { ClauseId } from '../clauses.ts';
import type { Feature } from '../convention.ts';
import { pattern } from '../pattern.ts';
import type { Arrival, Rail } from '../rail.ts';
import { Session } from '../session.ts';
import type { SessionOptions } from '../session-options.ts';

const needs: readonly Feature[] = ['accept', 'send'];

/** Parameters that Session starts an endpoint with. */
const EAGER = 4096;
const INLINE = 1024;
const FRAG = 8192;
const BYTES = 40_000;

const equal = (a: Uint8Array, b: Uint8Array): boolean => Buffer.from(a).equals(b);

async function oneRail(t: CaseContext, options: SessionOptions = {}): Promise<{ session: Session; rail: Rail }> {
  const session = await Session.begin(t, options);
  return { session, rail: await session.connect(0, 1) };
}

/** The ranges that came as FRAGs, joined, and whether their bytes were right. Takes them out of the inbox. */
function takeFrags(session: Session, seed: number): { ranges: string; right: boolean; list: [number, number][] } {
  const frags = session.inbox.filter(({ packet }) => packet.type === PACKET.FRAG);
  session.inbox = session.inbox.filter(({ packet }) => packet.type !== PACKET.FRAG);
  let right = true;
  const list: [number, number][] = frags.map(({ packet, payload }) => {
    const to = packet.from + payload.length;
    if (!equal(payload, pattern(seed, packet.from, to))) right = false;
    return [packet.from, to];
  });
  const joined: [number, number][] = [];
  for (const [from, to] of [...list].sort((a, b) => a[0] - b[0])) {
    const last = joined.at(-1);
    if (last !== undefined && last[1] === from) last[1] = to;
    else joined.push([from, to]);
  }
  return { ranges: joined.map(([from, to]) => `[${from},${to})`).join(' ') || 'nothing', right, list };
}

/** Waits until just these ranges have come, each once, with the right bytes. */
async function fragsAre(session: Session, clause: ClauseId, expected: string, what: string, seed = 1): Promise<[number, number][]> {
  await session.settle();
  const { ranges, right, list } = takeFrags(session, seed);
  session.t.check(clause, ranges === expected, `${what}: what comes by FRAG is ${ranges}, and must be ${expected}`);
  session.t.check(clause, right, `${what}: with the bytes of the message`);
  return list;
}

interface Streaming {
  session: Session;
  rails: [Rail, Rail];
  request: number;
  rndv: Arrival;
  /** On which rail each fragment came. */
  onRail: number[];
}

/** A message of the endpoint that is streaming over two rails, none of its fragments counted. */
async function streaming(t: CaseContext): Promise<Streaming> {
  const session = await Session.begin(t, { links: 2 });
  const rails: [Rail, Rail] = [await session.connect(0, 1), await session.connect(1, 1)];
  const request = await session.sendFrom(BYTES, { tag: 3 });
  const rndv = await session.expect('SD-2', PACKET.RNDV, 'a long message leaves as RNDV');
  for (const rail of rails) rail.autoCount = false;
  rails[0].send(session.ack(rndv, BYTES));
  await session.settle();
  const onRail = session.inbox.filter(({ packet }) => packet.type === PACKET.FRAG).map(({ rail }) => rail.index);
  await fragsAre(session, 'SD-3', `[${INLINE},${BYTES})`, 'ACK of everything');
  return { session, rails, request, rndv, onRail };
}

/** The rail dies with its fragments; the NOTIFY that follows. */
async function lose(s: Streaming, rail: Rail, epoch: number, clause: ClauseId = 'SR-1'): Promise<Arrival> {
  rail.drop();
  const notify = await s.session.expect(clause, PACKET.RNDVRESTARTNOTIFY, `fragments in doubt lead to NOTIFY of epoch ${epoch}`);
  s.session.t.check(clause, notify.packet.epoch === epoch, `NOTIFY is of epoch ${epoch}, and not ${notify.packet.epoch}`);
  return notify;
}

async function delivered(session: Session, clause: ClauseId, request: number, what: string): Promise<void> {
  const state = await session.done(clause, request, what);
  session.t.check(clause, state.error === undefined, `${what}: the send ends well (${state.error})`);
}

export const SENDING_CASES: readonly Case[] = [
  {
    name: 'eager messages',
    group: 'sending',
    needs,
    clauses: ['SD-1', 'RV-1', 'MT-1', 'CR-6'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      rail.autoCount = false;
      for (const [i, bytes] of [0, 1, 100, 2049, EAGER].entries()) {
        const request = await session.sendFrom(bytes, { tag: i, seed: i });
        const match = await session.expect('RV-1', PACKET.MATCH, `a message of ${bytes} bytes leaves as MATCH`);
        t.check('RV-1', equal(match.payload, pattern(i, 0, bytes)), `with all its ${bytes} bytes`);
        t.check('MT-1', match.packet.seq === i && match.packet.tag === i, `with number ${i} and its tag`);
        t.check('CR-6', (match.packet.flags & FLAG.CHARGED) !== 0, 'CHARGED');
        await delivered(session, 'SD-1', request, `a message of ${bytes} bytes that is not counted yet`);
      }
      const other = await session.sendFrom(5, { ctx: 9 });
      const match = await session.expect('MT-1', PACKET.MATCH, 'a message in another context');
      t.check('MT-1', match.packet.seq === 0 && match.packet.ctx === 9, 'has number 0 of its context');
      await delivered(session, 'SD-1', other, 'it');
    },
  },
  {
    name: 'eager messages in doubt are sent again',
    group: 'sending',
    needs,
    clauses: ['SD-6', 'CN-8', 'CR-6'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      rail.autoCount = false;
      const matches: Arrival[] = [];
      for (let i = 0; i < 4; i++) {
        await session.sendFrom(100 + i, { tag: i, seed: i });
        matches.push(await session.expect('RV-1', PACKET.MATCH, `message ${i}`));
      }
      // The first two are counted.
      rail.count(matches[1].header.frameNumber);
      await session.settle();
      await session.reconnect(rail);
      for (const i of [2, 3]) {
        const again = await session.expect('SD-6', PACKET.MATCH, `message ${i}, which was not counted, comes again`);
        t.check('SD-6', again.packet.seq === i && again.packet.tag === i, `in its order, with its number (${again.packet.seq})`);
        t.check('SD-6', equal(again.payload, pattern(i, 0, 100 + i)), 'with its bytes');
      }
      await session.never('CN-8', PACKET.MATCH, 'what was counted does not come again');
      t.check('CR-6', true, 'a resend needs no credit');
    },
  },
  {
    name: 'room in the store',
    group: 'sending',
    needs,
    clauses: ['SD-11', 'SD-1'],
    run: async (t) => {
      const { session, rail } = await oneRail(t, { retainedBytesMax: 8192 });
      rail.autoCount = false;
      for (let round = 0; round < 3; round++) {
        for (let i = 0; i < 2; i++) {
          await session.sendFrom(4000);
          await session.expect('SD-11', PACKET.MATCH, `round ${round}: message ${i} fits into the store`);
        }
        const request = await session.sendFrom(4000);
        const rndv = await session.expect('SD-11', PACKET.RNDV, `round ${round}: a third one that does not fit leaves as RNDV`);
        rail.send(session.ack(rndv, 4000));
        await session.until(() => session.inbox.some(({ packet }) => packet.type === PACKET.FRAG));
        await fragsAre(session, 'SD-3', `[${rndv.payload.length},4000)`, 'its rest');
        rail.count();
        await delivered(session, 'SD-1', request, 'it');
      }
    },
  },
  {
    name: 'what leaves as a rendezvous',
    group: 'sending',
    needs,
    clauses: ['SD-2', 'SD-5'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      const table: [string, number, boolean, number][] = [
        ['one byte above the eager limit', EAGER + 1, false, INLINE],
        ['a long one', 300_000, false, INLINE],
        ['a short synchronous one', 10, true, 10],
        ['a synchronous one without bytes', 0, true, 0],
      ];
      for (const [what, bytes, sync, first] of table) {
        const request = await session.sendFrom(bytes, { sync });
        const rndv = await session.expect('SD-2', PACKET.RNDV, `${what} leaves as RNDV`);
        t.check('SD-2', rndv.packet.messageBytes === bytes, `${what}: it says ${rndv.packet.messageBytes} bytes`);
        t.check(
          'SD-2',
          rndv.payload.length === first && equal(rndv.payload, pattern(1, 0, first)),
          `${what}: with its first ${first} bytes, and not ${rndv.payload.length}`,
        );
        t.check('PK-4', rndv.packet.senderGeneration >= 1, 'the generation of its id is at least 1');
        await session.settle();
        await session.notDone('SD-5', request, `${what}, without an answer`);
        rail.send(session.ack(rndv, 0));
        await delivered(session, 'SD-5', request, `${what}, of which nothing is taken`);
      }
      await session.never('SD-5', PACKET.FRAG, 'of what is not taken nothing comes');
    },
  },
  {
    name: 'fragments on the grid, lowest first',
    group: 'sending',
    needs,
    clauses: ['SD-3', 'SD-4', 'SD-5'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      rail.autoCount = false;
      for (const take of [BYTES, 20_001, INLINE + 1, INLINE, 10]) {
        const request = await session.sendFrom(BYTES, { seed: 7 });
        const rndv = await session.expect('SD-2', PACKET.RNDV, 'a long message leaves as RNDV');
        const ack = session.ack(rndv, take);
        rail.send(ack);
        await session.until(
          () => session.inbox.some(({ packet }) => packet.type === PACKET.FRAG),
          take > INLINE ? undefined : t.config.quietMs,
        );
        const frags = session.inbox.filter(({ packet }) => packet.type === PACKET.FRAG);
        const named = frags.every(
          ({ packet }) => packet.receiverSlot === ack.receiverSlot && packet.receiverGeneration === 1 && packet.epoch === 0,
        );
        t.check('SD-3', named, "FRAGs name the receiver's id and epoch 0");
        const list = await fragsAre(session, 'SD-3', take > INLINE ? `[${INLINE},${take})` : 'nothing', `ACK of ${take}`, 7);
        const ascending = list.every(([from], i) => i === 0 || from === list[i - 1][1]);
        t.check('SD-4', ascending, `lowest first: ${list.map(([from]) => from).join(', ')}`);
        const onGrid = list.every(([from, to], i) => (i === 0 || from % FRAG === 0) && (to % FRAG === 0 || to === take));
        t.check('SD-4', onGrid, `cut on multiples of ${FRAG}: ${list.map(([from, to]) => `${from}-${to}`).join(', ')}`);
        if (take > INLINE) await session.notDone('SD-5', request, `ACK of ${take}, before the FRAGs are counted`);
        rail.count();
        await delivered(session, 'SD-5', request, `ACK of ${take}`);
      }
      session.nothingElse('SD-5');
    },
  },
  {
    name: 'envelopes in doubt',
    group: 'sending',
    needs,
    clauses: ['SD-6', 'SD-7'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      rail.autoCount = false;
      const request = await session.sendFrom(BYTES);
      const first = await session.expect('SD-2', PACKET.RNDV, 'a long message leaves as RNDV');
      const next = await session.reconnect(rail, false);
      const again = await session.expect('SD-6', PACKET.RNDV, 'an RNDV that was not counted comes again');
      const same = again.packet.seq === first.packet.seq && again.packet.senderSlot === first.packet.senderSlot;
      t.check('SD-6', same && again.packet.senderGeneration === first.packet.senderGeneration, 'with the same number and id');
      // Answered, and never counted: the answer is proof enough.
      next.send(session.ack(again, INLINE));
      await session.settle();
      const third = await session.reconnect(next);
      await session.never('SD-6', PACKET.RNDV, 'an RNDV that was answered does not come again');
      await delivered(session, 'SD-5', request, 'a message of which only its first part was taken');
      third.send(session.ack(again, BYTES));
      await session.never('SD-7', PACKET.FRAG, 'an ACK for a message that is over is dropped');
      await session.stays('SD-7', third, 'an ACK for a message that is over');
    },
  },
  {
    name: 'ACKs that do not fit',
    group: 'sending',
    needs,
    clauses: ['SD-7', 'PK-5'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      const request = await session.sendFrom(BYTES);
      const rndv = await session.expect('SD-2', PACKET.RNDV, 'a long message leaves as RNDV');
      rail.send(session.ack(rndv, BYTES + 1));
      await session.closes('SD-7', rail, 'an ACK that takes more than there is');
      const next = await session.connect(0, 2);
      next.autoCount = false;
      next.send(session.ack(rndv, 20_000));
      await session.until(() => session.inbox.some(({ packet }) => packet.type === PACKET.FRAG));
      await fragsAre(session, 'PK-5', `[${INLINE},20000)`, 'a right ACK afterwards');
      next.send(session.ack(rndv, BYTES));
      await session.never('SD-7', PACKET.FRAG, 'a second ACK is dropped');
      next.count();
      await delivered(session, 'SD-5', request, 'the message');
    },
  },
  {
    name: 'an ACK for an eager message',
    group: 'sending',
    needs,
    clauses: ['SD-7'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      await session.sendFrom(10);
      await session.expect('RV-1', PACKET.MATCH, 'a short message leaves as MATCH');
      rail.send(session.other(PACKET.ACK, { senderSlot: 0, senderGeneration: 1, receiverSlot: 0, receiverGeneration: 1, takeBytes: 10 }));
      await session.closes('SD-7', rail, 'an ACK, although no message has an id');
    },
  },
  {
    name: 'refused frames are sent again',
    group: 'sending',
    needs,
    clauses: ['SD-8', 'SD-9', 'SD-5'],
    run: async (t) => {
      const { session, rail } = await oneRail(t, { payloadCrc: true });
      rail.autoCount = false;
      /** NACK goes ahead of the count that covers the frame. */
      const refuse = (arrival: Arrival) => {
        rail.toldFrames = arrival.header.frameNumber - 1;
        rail.nack(arrival.header.frameNumber);
        rail.count(arrival.header.frameNumber);
      };
      await session.sendFrom(500, { seed: 5 });
      const match = await session.expect('RV-1', PACKET.MATCH, 'a short message leaves as MATCH');
      t.check('NK-1', (match.header.flags & 4) !== 0, 'payloads carry a CRC when that is asked for');
      refuse(match);
      const again = await session.expect('SD-9', PACKET.MATCH, 'a refused MATCH comes again');
      t.check('SD-9', again.packet.seq === match.packet.seq && equal(again.payload, match.payload), 'the same one');
      rail.count();
      await session.never('SD-9', PACKET.MATCH, 'once it is counted it does not');
      const request = await session.sendFrom(BYTES);
      const first = await session.expect('SD-2', PACKET.RNDV, 'a long message leaves as RNDV');
      refuse(first);
      const rndv = await session.expect('SD-9', PACKET.RNDV, 'a refused RNDV comes again');
      rail.count();
      rail.send(session.ack(rndv, BYTES));
      await session.until(() => session.inbox.filter(({ packet }) => packet.type === PACKET.FRAG).length >= 5);
      const third = session.inbox.filter(({ packet }) => packet.type === PACKET.FRAG)[2];
      takeFrags(session, 1);
      refuse(third);
      const repeat = await session.expect('SD-8', PACKET.FRAG, 'a refused FRAG comes again');
      t.check('SD-8', repeat.packet.from === third.packet.from && equal(repeat.payload, third.payload), 'the same range');
      t.check('SD-8', repeat.packet.epoch === 0, 'in the same epoch');
      await session.notDone('SD-5', request, 'a message with fragments that are not counted');
      rail.count();
      await delivered(session, 'SD-5', request, 'the message');
      session.nothingElse('SD-8');
    },
  },
  {
    name: 'NACKs that make no sense to a sender',
    group: 'sending',
    needs,
    clauses: ['NK-3'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      await session.sendFrom(10);
      const match = await session.expect('RV-1', PACKET.MATCH, 'a short message leaves as MATCH');
      await session.settle();
      rail.write(rail.frame({ kind: FRAME_NACK, frameNumber: match.header.frameNumber }));
      await session.closes('NK-3', rail, 'NACK of a frame that was counted');
    },
  },
  {
    name: 'credit of the other side',
    group: 'sending',
    needs,
    clauses: ['CR-5', 'CR-6', 'CR-7'],
    run: async (t) => {
      const { session, rail } = await oneRail(t, { ownUnexpectedBytesMax: 4096 });
      const sent = async (bytes: number, type: PacketType, charged: boolean, what: string) => {
        await session.sendFrom(bytes, { seed: bytes & 255 });
        const arrival = await session.expect(type === PACKET.MATCH ? 'CR-6' : 'CR-7', type, `${what}`);
        t.check(
          charged ? 'CR-6' : 'CR-7',
          ((arrival.packet.flags & FLAG.CHARGED) !== 0) === charged,
          `${what}: it is ${charged ? '' : 'not '}CHARGED`,
        );
        if (type === PACKET.RNDV && !charged) t.check('CR-7', arrival.payload.length === 0, `${what}: it has no data`);
        return arrival;
      };
      const credit = (creditLimit: number) => rail.send(session.other(PACKET.CREDIT, { creditLimit }));
      // Of 4096: 3000 + 128 and 800 + 128 leave 40.
      await sent(3000, PACKET.MATCH, true, '3000 bytes of 4096');
      await sent(800, PACKET.MATCH, true, '800 bytes of what is left');
      const waiting = await sent(1, PACKET.RNDV, false, 'one byte with 40 left, which 129 need');
      await sent(BYTES, PACKET.RNDV, false, 'a long message with 40 left');
      credit(4096 + 2000);
      await session.settle();
      await sent(1500, PACKET.MATCH, true, '1500 bytes with 2040 left');
      // A repeat, and an older one that was late.
      credit(4096 + 2000);
      credit(4096);
      credit(100);
      await session.settle();
      await sent(200, PACKET.MATCH, true, '200 bytes with 412 left');
      await sent(300, PACKET.RNDV, false, '300 bytes with 84 left, although older limits came again');
      credit(4096 + 2000 + 344);
      await session.settle();
      await sent(300, PACKET.MATCH, true, '300 bytes with 428 left, which is just enough');
      rail.send(session.ack(waiting, 1));
      await session.expect('CR-7', PACKET.FRAG, 'a message that left without data goes on when it is answered');
      t.check('CR-5', true, 'the highest limit counts');
    },
  },
  {
    name: 'a resend needs no credit',
    group: 'sending',
    needs,
    clauses: ['CR-6', 'SD-6'],
    run: async (t) => {
      const { session, rail } = await oneRail(t, { ownUnexpectedBytesMax: 4096 });
      rail.autoCount = false;
      // What a tester sends states a limit, too: none but that of the modex entry has been stated so far.
      await session.sendFrom(3900);
      await session.expect('CR-6', PACKET.MATCH, '3900 bytes of 4096');
      const next = await session.reconnect(rail);
      const again = await session.expect('SD-6', PACKET.MATCH, 'in doubt it comes again without credit');
      t.check('CR-6', again.payload.length === 3900 && again.rail === next, 'whole');
      // Room for exactly one more of that length, if the first was charged once.
      next.send(session.other(PACKET.CREDIT, { creditLimit: 2 * (3900 + ENVELOPE_CHARGE_BYTES) }));
      await session.settle();
      await session.sendFrom(3900);
      const second = await session.expect('CR-6', PACKET.MATCH, 'the next one finds the credit that a second charge would have used');
      t.check('CR-6', second.payload.length === 3900, 'whole');
    },
  },
  {
    name: 'packets of an RGET for a message that is none, and windows on a rail without them',
    group: 'sending',
    needs,
    clauses: ['SD-10', 'SR-4', 'SD-3'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      rail.autoCount = false;
      const request = await session.sendFrom(BYTES);
      const rndv = await session.expect('SD-2', PACKET.RNDV, 'a long message leaves as RNDV');
      const { senderSlot, senderGeneration } = rndv.packet;
      const ids = { senderSlot, senderGeneration, receiverSlot: 3, receiverGeneration: 1 };
      rail.send(session.other(PACKET.FIN, { ...ids, flags: FLAG.TO_SENDER, from: 0, to: BYTES }));
      rail.send(session.other(PACKET.RECVERRNOTIFY, { ...ids, source: session.rank }));
      rail.send(session.other(PACKET.RNDVRESTARTACK, { ...ids, source: session.rank, from: 0, takeBytes: BYTES }));
      rail.send(session.other(PACKET.RNDVRESTARTNACK, { ...ids, source: session.rank }));
      await session.never('SR-4', PACKET.FRAG, 'FIN, RECVERRNOTIFY, RESTARTACK and RESTARTNACK before an answer are dropped');
      await session.notDone('SR-4', request, 'they');
      const window = { rail: 0, railEpoch: 1, key: new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]) };
      const put = { ...ids, number: 1, from: 0, to: FRAG, windows: [window] };
      rail.send(session.other(PACKET.PUT, put));
      rail.send(session.other(PACKET.PUT, { ...put, epoch: 9 }));
      await session.stays('SD-10', rail, 'PUTs, of the current epoch and of another one');
      rail.send(session.ack(rndv, BYTES));
      await session.until(() => session.inbox.some(({ packet }) => packet.type === PACKET.FRAG));
      await fragsAre(session, 'SD-10', `[${INLINE},${BYTES})`, 'over a rail that cannot put everything');
      rail.count();
      await delivered(session, 'SD-3', request, 'the message');
      rail.send(session.other(PACKET.PUT, put));
      await session.stays('SD-10', rail, 'a PUT for a message that is over');
    },
  },
];

export const SENDING_RESTART_CASES: readonly Case[] = [
  {
    name: 'fragments in doubt are resumed',
    group: 'sending',
    transport: 'tcp',
    needs,
    clauses: ['SR-1', 'SR-2', 'SR-3', 'RD-2', 'SD-5'],
    run: async (t) => {
      const s = await streaming(t);
      const { session, rails, request, rndv } = s;
      const notify = await lose(s, rails[0], 1);
      const { packet } = notify;
      const ids = packet.senderSlot === rndv.packet.senderSlot && packet.senderGeneration === rndv.packet.senderGeneration;
      t.check('SR-1', ids && packet.receiverGeneration === 1, 'NOTIFY names both ids');
      t.check('SR-1', packet.ctx === 0 && packet.seq === rndv.packet.seq, 'NOTIFY names context and number');
      const dead = packet.deadRails.map(({ rail, epoch }) => `${rail}:${epoch}`).join();
      t.check('SR-1', dead === '0:1', `NOTIFY names the dead rails: ${dead}`);
      await session.expect('RD-2', PACKET.RAILDOWN, 'RAILDOWN is told', (one) => one.packet.rail === 0 && one.packet.epoch === 1);
      await session.never('SR-2', PACKET.FRAG, 'nothing is sent before the answer');
      rails[1].send(
        session.restartAnswer(PACKET.RNDVRESTARTACK, notify, {
          missing: [
            [2000, 3000],
            [9000, 20_000],
          ],
          from: 35_000,
          takeBytes: BYTES,
        }),
      );
      await session.until(() => session.inbox.some((one) => one.packet.type === PACKET.FRAG));
      const frags = session.inbox.filter((one) => one.packet.type === PACKET.FRAG);
      t.check(
        'SR-3',
        frags.every((one) => one.packet.epoch === 1),
        'FRAGs of epoch 1',
      );
      await fragsAre(session, 'SR-3', `[2000,3000) [9000,20000) [35000,${BYTES})`, 'RESTARTACK');
      await session.notDone('SD-5', request, 'before these are counted');
      rails[1].count();
      await delivered(session, 'SD-5', request, 'then');
    },
  },
  {
    name: 'some fragments counted, others in doubt',
    group: 'sending',
    transport: 'tcp',
    needs,
    clauses: ['SD-5', 'SR-1'],
    run: async (t) => {
      const s = await streaming(t);
      const { session, rails, request } = s;
      const lost = rails.map((rail) => s.onRail.filter((index) => index === rail.index).length);
      t.must('SD-5', lost[0] > 0 && lost[1] > 0, `both rails carry fragments, as they have room (${lost.join(' and ')})`);
      rails[1].count();
      await session.settle();
      await session.notDone('SD-5', request, 'the fragments of one rail counted, those of the other not');
      const notify = await lose(s, rails[0], 1, 'SD-5');
      t.check('SR-1', notify.packet.deadRails.length === 1, 'NOTIFY names the dead rail');
      rails[1].send(session.restartAnswer(PACKET.RNDVRESTARTNACK, notify));
      await delivered(session, 'SD-5', request, 'RESTARTNACK');
    },
  },
  {
    name: 'completions of an older epoch count for nothing',
    group: 'sending',
    transport: 'tcp',
    needs,
    clauses: ['SR-6', 'SD-5'],
    run: async (t) => {
      const s = await streaming(t);
      const { session, rails, request } = s;
      const notify = await lose(s, rails[0], 1);
      const before = rails[1].receivedFrames;
      rails[1].send(session.restartAnswer(PACKET.RNDVRESTARTACK, notify, { from: 0, takeBytes: BYTES }));
      await session.until(() => session.inbox.some((one) => one.packet.type === PACKET.FRAG));
      await fragsAre(session, 'SR-3', `[0,${BYTES})`, 'RESTARTACK that lacks everything');
      // What lay on the living rail in epoch 0 is delivered now.
      rails[1].count(before);
      await session.settle();
      await session.notDone('SR-6', request, 'fragments of epoch 0 that are counted in epoch 1');
      rails[1].count(rails[1].receivedFrames - 1);
      await session.settle();
      await session.notDone('SD-5', request, 'all but the last fragment counted');
      rails[1].count();
      await delivered(session, 'SR-6', request, 'all counted');
    },
  },
  {
    name: 'RESTARTACKs that nobody waits for',
    group: 'sending',
    transport: 'tcp',
    needs,
    clauses: ['SR-4', 'SR-8', 'SR-3'],
    run: async (t) => {
      const s = await streaming(t);
      const { session, rails, request } = s;
      const answer = (notify: Arrival, epoch: number, missing: [number, number][]) =>
        session.restartAnswer(PACKET.RNDVRESTARTACK, notify, { epoch, missing, from: BYTES, takeBytes: BYTES });
      const notify = await lose(s, rails[0], 1);
      rails[1].send(answer(notify, 0, [[0, 5000]]));
      rails[1].send(answer(notify, 2, [[0, 6000]]));
      await session.never('SR-8', PACKET.FRAG, 'RESTARTACKs of other epochs are dropped');
      rails[1].send(answer(notify, 1, [[1000, 2000]]));
      await session.until(() => session.inbox.some((one) => one.packet.type === PACKET.FRAG));
      await fragsAre(session, 'SR-3', '[1000,2000)', 'the RESTARTACK of epoch 1');
      rails[1].send(answer(notify, 1, [[3000, 4000]]));
      await session.never('SR-4', PACKET.FRAG, 'a second one, which finds it in STREAMING, is dropped');
      rails[1].count();
      await delivered(session, 'SR-4', request, 'the message');
      rails[1].send(answer(notify, 1, [[3000, 4000]]));
      await session.stays('SR-4', rails[1], 'a third one after the end');
    },
  },
  {
    name: 'RESTARTNACK: everything had arrived',
    group: 'sending',
    transport: 'tcp',
    needs,
    clauses: ['SR-5'],
    run: async (t) => {
      const s = await streaming(t);
      const { session, rails, request } = s;
      const notify = await lose(s, rails[0], 1);
      rails[1].count();
      await session.settle();
      await session.notDone('SR-2', request, 'NOTIFY without an answer');
      rails[1].send(session.restartAnswer(PACKET.RNDVRESTARTNACK, notify));
      await delivered(session, 'SR-5', request, 'RESTARTNACK');
      await session.never('SR-5', PACKET.FRAG, 'nothing more is sent');
    },
  },
  {
    name: 'NOTIFY in doubt, and a second loss in the restart',
    group: 'sending',
    transport: 'tcp',
    needs,
    clauses: ['SR-7', 'SR-8', 'SR-5', 'RR-12'],
    run: async (t) => {
      const s = await streaming(t);
      const { session, rails, request } = s;
      const first = await lose(s, rails[0], 1);
      const zero = await session.connect(0, 2);
      zero.autoCount = false;
      rails[1].drop();
      const again = await session.expect('SR-7', PACKET.RNDVRESTARTNOTIFY, 'a NOTIFY in doubt comes again');
      t.check('SR-7', again.packet.epoch === 1, `of the same epoch (${again.packet.epoch})`);
      const dead = again.packet.deadRails.map(({ rail, epoch }) => `${rail}:${epoch}`).join();
      t.check('SR-7', dead === '0:1,1:1', `with the rails that are dead by now: ${dead}`);
      zero.send(session.restartAnswer(PACKET.RNDVRESTARTACK, again, { missing: [[0, 10_000]], from: BYTES, takeBytes: BYTES }));
      await session.until(() => session.inbox.some((one) => one.packet.type === PACKET.FRAG));
      await fragsAre(session, 'SR-3', '[0,10000)', 'its answer');
      const one = await session.connect(1, 2);
      one.autoCount = false;
      zero.drop();
      const second = await session.expect('RR-12', PACKET.RNDVRESTARTNOTIFY, 'a second loss leads to another NOTIFY');
      t.check('RR-12', second.packet.epoch === 2, `of epoch 2 (${second.packet.epoch})`);
      one.send(session.restartAnswer(PACKET.RNDVRESTARTACK, first, { from: 0, takeBytes: BYTES }));
      await session.never('SR-8', PACKET.FRAG, 'a late RESTARTACK of epoch 1 is dropped');
      one.send(session.restartAnswer(PACKET.RNDVRESTARTNACK, first));
      await delivered(session, 'SR-5', request, 'a late RESTARTNACK of epoch 1: complete is complete');
      one.send(session.restartAnswer(PACKET.RNDVRESTARTACK, second, { from: 0, takeBytes: BYTES }));
      await session.stays('SR-4', one, 'an answer after the end');
    },
  },
  {
    name: 'RESTARTACK with as many ranges as it may have, and one more',
    group: 'sending',
    needs,
    clauses: ['LM-7'],
    run: async (t) => {
      const { session, rail } = await oneRail(t);
      await session.sendFrom(30_000);
      const rndv = await session.expect('SD-2', PACKET.RNDV, 'a rendezvous');
      // The message exists and waits for no such answer: this one is dropped, unless it cannot be read.
      const answer = (count: number) =>
        session.other(PACKET.RNDVRESTARTACK, {
          senderSlot: rndv.packet.senderSlot,
          senderGeneration: rndv.packet.senderGeneration,
          receiverSlot: 1,
          receiverGeneration: 1,
          source: session.rank,
          epoch: 1,
          missing: Array.from({ length: count }, (_, i): [number, number] => [2 * i, 2 * i + 1]),
          from: 1000,
          takeBytes: 1000,
        });
      rail.send(answer(128));
      await session.stays('LM-7', rail, 'a RESTARTACK with 128 ranges');
      rail.send(answer(129));
      await session.closes('LM-7', rail, 'a RESTARTACK with 129 ranges');
    },
  },
  {
    name: 'RESTARTACKs that break the protocol',
    group: 'sending',
    transport: 'tcp',
    needs,
    clauses: ['PK-1', 'PK-5'],
    run: async (t) => {
      const s = await streaming(t);
      const { session, request } = s;
      let rail = s.rails[1];
      const notify = await lose(s, s.rails[0], 1);
      const bad: [string, { missing?: [number, number][]; from: number; takeBytes: number }][] = [
        ['whose tail begins beyond takeBytes', { from: BYTES + 1, takeBytes: BYTES }],
        ['with an empty range', { missing: [[5, 5]], from: BYTES, takeBytes: BYTES }],
        [
          'whose ranges do not ascend',
          {
            missing: [
              [50, 60],
              [10, 20],
            ],
            from: BYTES,
            takeBytes: BYTES,
          },
        ],
        ['with a range beyond its tail', { missing: [[10, 20_001]], from: 20_000, takeBytes: BYTES }],
        ['that takes more than there is', { from: 0, takeBytes: BYTES + 1 }],
      ];
      for (const [what, fields] of bad) {
        rail.send(session.restartAnswer(PACKET.RNDVRESTARTACK, notify, fields));
        await session.closes('PK-1', rail, `a RESTARTACK ${what}`);
        rail = await session.connect(1, rail.epoch + 1);
      }
      await session.notDone('PK-5', request, 'all these');
      rail.send(session.restartAnswer(PACKET.RNDVRESTARTACK, notify, { from: 30_000, takeBytes: BYTES }));
      await session.until(() => session.inbox.some((one) => one.packet.type === PACKET.FRAG));
      await fragsAre(session, 'PK-5', `[30000,${BYTES})`, 'a right one afterwards');
      await delivered(session, 'PK-5', request, 'the message');
    },
  },
];
