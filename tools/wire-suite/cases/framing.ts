// Cases of §3 and §6: frames at every split, damaged frames, counts, refused payloads, probes, and packets that break the protocol.
import {
  FLAG_PAYLOAD_CRC,
  FLAG_PLACED,
  FLAG_PROMPT,
  FRAME_BYE,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_NACK,
  FRAME_PROBE,
  FRAME_PROBE_ANSWER,
} from '../../../src/btl/base/frame-hdr.ts';
import { FLAG, PACKET, type Packet } from '../../../src/pml/hdr.ts';
import type { Case, CaseContext } from '../case.ts';
import type { ClauseId } from '../clauses.ts';
import type { Feature } from '../convention.ts';
import { pattern } from '../pattern.ts';
import { FRAME_PAYLOAD_BYTES_MAX, packetBytesOf, type Rail } from '../rail.ts';
import { ANY, Session, sleep } from '../session.ts';

const needs: readonly Feature[] = ['accept', 'receive'];
const empty = new Uint8Array(0);

const join = (...parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));

/** A turn of this process, and one of the endpoint's where it shares it: pieces are not joined on the way. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/**
 * A job with one rail, for each bad thing a new epoch of it: the epoch must end, nothing of the bad bytes may have had an effect, and the
 * next epoch takes the message that follows.
 */
class Damage {
  readonly t: CaseContext;
  readonly session: Session;
  private epoch = 0;

  constructor(t: CaseContext, session: Session) {
    this.t = t;
    this.session = session;
  }

  /** `bad` makes the bytes, of frames of this rail. A sound MATCH stands right behind them, and must not be looked at. */
  async ends(clause: ClauseId, what: string, bad: (rail: Rail) => Uint8Array): Promise<void> {
    const { t, session } = this;
    const rail = await session.connect(0, ++this.epoch);
    const request = await session.recv(ANY, ANY, 64);
    const bytes = bad(rail);
    const behind = rail.packetFrame(session.match({ tag: 9, seq: 0 }), pattern(1, 0, 8));
    rail.write(join(bytes, behind));
    await session.closes(clause, rail, what);
    await session.notDone('FR-5', request, `${what}, with a MATCH behind it`);
    t.check('PK-5', true, what);
    const { cancelled } = await t.control.run('cancel', { request });
    t.check('FR-5', cancelled, `${what}: the receive is still there to be cancelled`);
    if (t.endpoint.features.includes('rails')) {
      const { rails } = await t.control.run('rails', {});
      t.check('FR-4', rails[0].lastReason === 'damaged', `${what}: the reason is "damaged", and not ${rails[0].lastReason}`);
    }
  }

  /** The header alone must be enough to end the epoch. */
  async endsAtOnce(clause: ClauseId, what: string, bad: (rail: Rail) => Uint8Array): Promise<void> {
    const rail = await this.session.connect(0, ++this.epoch);
    rail.write(bad(rail));
    await this.session.closes(clause, rail, what);
  }

  /** After all that, the first message is still the first. */
  async stillTakes(clause: ClauseId): Promise<void> {
    const { session } = this;
    const rail = await session.connect(0, ++this.epoch);
    const request = await session.recv(session.rank, 9, 64);
    session.sendMatch(rail, 9, pattern(2, 0, 33), { seq: 0 });
    await session.received(clause, request, { tag: 9, data: pattern(2, 0, 33) }, 'a message after all the damage');
    await session.counted(clause, rail, 'it');
  }
}

const damage = (
  name: string,
  clauses: readonly ClauseId[],
  run: (d: Damage, session: Session, t: CaseContext) => Promise<void>,
  more: readonly Feature[] = [],
): Case => ({
  name,
  group: 'framing',
  needs: [...needs, ...more],
  clauses,
  run: async (t) => {
    const session = await Session.begin(t);
    const d = new Damage(t, session);
    await run(d, session, t);
    await d.stillTakes(clauses[0]);
  },
});

const setHeader =
  (change: (view: DataView) => void, sealed = true) =>
  (rail: Rail): Uint8Array =>
    rail.frame({
      kind: FRAME_PROBE,
      spoil: (bytes, seal) => {
        change(new DataView(bytes.buffer));
        if (sealed) seal();
      },
    });

export const FRAMING_CASES: readonly Case[] = [
  {
    name: 'two messages and a probe at every split of their bytes',
    group: 'framing',
    needs,
    clauses: ['FR-1', 'RV-1', 'MT-1', 'CN-3', 'PB-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const make = () => {
        const first = rail.packetFrame(session.match({ tag: 1 }), pattern(3, 0, 21));
        const { id, bytes } = rail.probeFrame();
        const second = rail.packetFrame(session.match({ tag: 2 }), pattern(4, 0, 5), { flags: FLAG_PAYLOAD_CRC | FLAG_PROMPT });
        return { id, bytes: join(first, bytes, second) };
      };
      const length = make().bytes.length;
      // These were never sent: their numbers are used again.
      rail.sentFrames -= 2;
      session.forgetSeqs();
      for (let at = 1; at < length; at++) {
        const [a, b] = [await session.recv(ANY, 1, 64), await session.recv(ANY, 2, 64)];
        const { id, bytes } = make();
        rail.begin(bytes.subarray(0, at));
        await turn();
        await turn();
        rail.rest(bytes.subarray(at));
        await session.received('FR-1', a, { tag: 1, data: pattern(3, 0, 21) }, `split after byte ${at}, the first message`);
        await session.received('FR-1', b, { tag: 2, data: pattern(4, 0, 5) }, `split after byte ${at}, the second message`);
        if (!(await session.until(() => rail.hasAnswered(id)))) throw t.fail('PB-1', `split after byte ${at}: the probe is answered`);
      }
      t.check('RV-1', true, 'a MATCH carries the whole message');
      t.check('MT-1', true, 'in the order of their numbers');
      await session.counted('CN-3', rail, 'everything');
    },
  },
  {
    name: 'frames byte by byte, and hundreds in one piece',
    group: 'framing',
    needs,
    clauses: ['FR-1', 'MT-1'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const slow = await session.recv(ANY, ANY, 64);
      for (const byte of rail.packetFrame(session.match({ tag: 7 }), pattern(5, 0, 40))) {
        rail.begin(new Uint8Array([byte]));
        await turn();
      }
      rail.rest(empty);
      await session.received('FR-1', slow, { tag: 7, data: pattern(5, 0, 40) }, 'a message byte by byte');
      const requests: number[] = [];
      const frames: Uint8Array[] = [];
      for (let i = 0; i < 200; i++) {
        requests.push(await session.recv(ANY, ANY, 64));
        frames.push(rail.packetFrame(session.match({ tag: i }), pattern(i, 0, i % 64)));
      }
      rail.write(join(...frames));
      for (const [i, request] of requests.entries()) {
        await session.received('MT-1', request, { tag: i, data: pattern(i, 0, i % 64) }, `message ${i} of 200 in one piece`);
      }
      await session.counted('FR-1', rail, '200 messages in one piece');
    },
  },
  {
    name: 'a placed payload at many splits, and several in one piece',
    group: 'framing',
    needs,
    clauses: ['FR-1', 'PL-1', 'RV-3'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      for (const at of [1, 39, 40, 41, 79, 80, 81, 90, 179, 180, 181, 219, 220, 259, 260, 261]) {
        const request = await session.recv(ANY, 1, 200);
        const { ack } = await session.rendezvous(rail, 1, 200);
        const bytes = join(
          rail.packetFrame(session.frag(ack, 100), pattern(1, 100, 200)),
          rail.packetFrame(session.frag(ack, 0), pattern(1, 0, 100)),
        );
        rail.begin(bytes.subarray(0, at));
        await turn();
        await turn();
        rail.rest(bytes.subarray(at));
        await session.received('FR-1', request, { data: pattern(1, 0, 200) }, `two FRAGs split after byte ${at}`);
      }
      t.check('RV-3', true, 'the upper range first');
    },
  },
  damage('headers that say what cannot be', ['FR-2', 'FR-4', 'FR-5', 'PK-5', 'CV-1', 'LM-1', 'LM-2'], async (d) => {
    await d.ends(
      'FR-2',
      'a wrong magic',
      setHeader((view) => view.setUint16(6, 0x524e, true)),
    );
    await d.ends(
      'CV-1',
      'frame version 2',
      setHeader((view) => view.setUint8(0, 2)),
    );
    await d.ends(
      'CV-1',
      'frame version 0',
      setHeader((view) => view.setUint8(0, 0)),
    );
    await d.endsAtOnce(
      'FR-2',
      'a wrong magic, and nothing behind the header',
      setHeader((view) => view.setUint16(6, 0, true)),
    );
    // The frame is a DATA frame: on another kind any packet header or payload is wrong.
    const announces = (change: (view: DataView) => void) => (rail: Rail) =>
      rail.frame({
        kind: FRAME_DATA,
        frameNumber: 1,
        spoil: (bytes, seal) => {
          change(new DataView(bytes.buffer));
          seal();
        },
      });
    await d.endsAtOnce(
      'LM-1',
      'a header that announces a packet header of 4097 bytes',
      announces((view) => view.setUint16(4, 4097, true)),
    );
    await d.endsAtOnce(
      'LM-2',
      'a header that announces one byte of payload too many',
      announces((view) => view.setUint32(8, FRAME_PAYLOAD_BYTES_MAX + 1, true)),
    );
    await d.endsAtOnce(
      'LM-2',
      'a header that announces 4 GiB of payload',
      announces((view) => view.setUint32(8, 0xffff_ffff, true)),
    );
  }),
  damage('checks of the header', ['FR-3', 'FR-4', 'FR-8'], async (d) => {
    await d.ends(
      'FR-3',
      'a wrong headerCrc',
      setHeader((view) => view.setUint32(36, view.getUint32(36, true) ^ 1, true), false),
    );
    await d.ends(
      'FR-3',
      'a field that was changed after the CRC was made',
      setHeader((view) => view.setUint32(12, 99, true), false),
    );
    for (const flag of [8, 0x10, 0x8000])
      await d.ends(
        'FR-3',
        `flag ${flag}`,
        setHeader((view) => view.setUint16(2, flag, true)),
      );
    await d.ends('FR-3', 'a packet header with a bit flipped', (rail) =>
      rail.packetFrame(d.session.match({ tag: 3, seq: 0 }), pattern(1, 0, 10), {
        spoil: (bytes) => {
          bytes[40 + 24] ^= 1;
        },
      }),
    );
  }),
  damage('kinds that are no kinds of a live rail', ['FR-4'], async (d) => {
    for (const kind of [0, 7, 15, 16, 17, 18, 19, 20, 21, 22, 255])
      await d.ends('FR-4', `a frame of kind ${kind}`, (rail) => rail.frame({ kind }));
  }),
  damage('what only DATA carries, on other kinds', ['FR-9', 'FR-2'], async (d) => {
    const kinds = { COUNT: FRAME_COUNT, PROBE: FRAME_PROBE, PROBE_ANSWER: FRAME_PROBE_ANSWER, NACK: FRAME_NACK, BYE: FRAME_BYE };
    for (const [name, kind] of Object.entries(kinds)) {
      // A BYE that is right in all else, and a NACK that would be damage for another reason too.
      const frameNumber = kind === FRAME_BYE ? 1 : 0;
      const payloadBytes = kind === FRAME_PROBE ? 64 * 1024 + 1 : 8;
      await d.ends('FR-9', `a ${name} with a payload of ${payloadBytes} bytes`, (rail) =>
        rail.frame({ kind, frameNumber }, empty, pattern(1, 0, payloadBytes)),
      );
      await d.ends('FR-9', `a ${name} with a packet header of 4 bytes`, (rail) => rail.frame({ kind, frameNumber }, new Uint8Array(4)));
      await d.endsAtOnce('FR-2', `a ${name} that announces a payload of 1 MiB, of which nothing has come`, (rail) =>
        rail.frame({
          kind,
          frameNumber,
          spoil: (bytes, seal) => {
            new DataView(bytes.buffer).setUint32(8, 1024 * 1024, true);
            seal();
          },
        }),
      );
      for (const flags of [FLAG_PLACED, FLAG_PROMPT, FLAG_PAYLOAD_CRC])
        await d.ends('FR-9', `a ${name} with flag ${flags}`, (rail) => rail.frame({ kind, frameNumber, flags }));
    }
  }),
  damage('wrong frame numbers', ['CN-2'], async (d, session) => {
    for (const frameNumber of [0, 2, 17, 0xffff_ffff]) {
      await d.ends('CN-2', `${frameNumber} as first number`, (rail) => rail.packetFrame(session.match({ seq: 0 }), empty, { frameNumber }));
    }
    await d.ends('CN-2', 'a number again', (rail) =>
      join(
        rail.frame({ frameNumber: 1 }, packetBytesOf(session.other(PACKET.CREDIT, {}))),
        rail.frame({ frameNumber: 1 }, packetBytesOf(session.match({ seq: 0 }))),
      ),
    );
    await d.ends('CN-2', 'a number left out', (rail) =>
      join(
        rail.frame({ frameNumber: 1 }, packetBytesOf(session.other(PACKET.CREDIT, {}))),
        rail.frame({ frameNumber: 3 }, packetBytesOf(session.match({ seq: 0 }))),
      ),
    );
  }),
  damage('wrong counts', ['CN-7'], async (d) => {
    await d.ends('CN-7', 'a count of what was never sent', (rail) => rail.frame({ kind: FRAME_COUNT, deliveredCount: 1 }));
    await d.ends('CN-7', 'a count far beyond', (rail) => rail.frame({ kind: FRAME_COUNT, deliveredCount: 0x4000_0000 }));
    await d.ends('CN-7', 'a count below the last one', (rail) => rail.frame({ kind: FRAME_PROBE, deliveredCount: 0xffff_ffff }));
  }),
  {
    name: 'a count that goes back',
    group: 'framing',
    needs,
    clauses: ['CN-7'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      await session.recv(ANY, ANY, 3000);
      await session.rendezvous(rail, 1, 3000);
      t.must('CN-7', rail.toldFrames > 0, 'the ACK was counted');
      rail.write(rail.frame({ kind: FRAME_COUNT, deliveredCount: rail.toldFrames - 1 }));
      await session.closes('CN-7', rail, 'a count below the last one');
    },
  },
  damage('NACKs of frames that are not outstanding', ['NK-3'], async (d) => {
    await d.ends('NK-3', 'NACK of a frame that was never sent', (rail) => rail.frame({ kind: FRAME_NACK, frameNumber: 1 }));
    await d.ends('NK-3', 'NACK of frame 0', (rail) => rail.frame({ kind: FRAME_NACK, frameNumber: 0 }));
  }),
  damage('packets of wrong lengths', ['PK-1', 'PK-5', 'PK-6'], async (d, session) => {
    const packets: [string, Packet][] = [
      ['MATCH', session.match({ seq: 0 })],
      ['RNDV', session.rndv(5000, { seq: 0 })],
      ['RGET', { ...session.rndv(5000, { seq: 0 }), type: PACKET.RGET }],
      ['ACK', session.other(PACKET.ACK, {})],
      ['FIN', session.other(PACKET.FIN, { flags: FLAG.TO_SENDER })],
      ['RAILDOWN', session.other(PACKET.RAILDOWN, { rail: 7, epoch: 1 })],
      ['CREDIT', session.other(PACKET.CREDIT, {})],
    ];
    for (const [name, packet] of packets) {
      const bytes = packetBytesOf(packet);
      await d.ends('PK-1', `a ${name} without its last byte`, (rail) => rail.frame({}, bytes.subarray(0, bytes.length - 1)));
      await d.ends('PK-1', `a ${name} with a byte too many`, (rail) => rail.frame({}, join(bytes, new Uint8Array(1))));
    }
    await d.ends('PK-6', 'a DATA frame without a packet', (rail) => rail.frame({}));
    await d.ends('PK-6', 'a packet of 15 bytes', (rail) => rail.frame({}, packetBytesOf(session.other(PACKET.CREDIT, {})).subarray(0, 15)));
  }),
  damage('packets of other versions and types', ['CV-1', 'PK-8'], async (d, session) => {
    const credit = packetBytesOf(session.other(PACKET.CREDIT, {}));
    const changed = (at: number, value: number) => {
      const bytes = credit.slice();
      bytes[at] = value;
      return bytes;
    };
    for (const version of [0, 2]) await d.ends('CV-1', `packet version ${version}`, (rail) => rail.frame({}, changed(0, version)));
    for (const type of [0, 5, 7, 16, 255]) await d.ends('PK-8', `packet type ${type}`, (rail) => rail.frame({}, changed(1, type)));
  }),
  damage('fields out of their ranges', ['CV-3', 'LM-8', 'LM-5', 'LM-6', 'LM-7', 'PK-3', 'PK-1'], async (d, session) => {
    const patched = (packet: Packet, change: (view: DataView) => void) => (rail: Rail) => {
      const bytes = packetBytesOf(packet);
      change(new DataView(bytes.buffer));
      return rail.frame({}, bytes);
    };
    const match = session.match({ seq: 0 });
    await d.ends(
      'CV-3',
      'a credit limit of 2^53',
      patched(match, (view) => view.setUint32(12, 0x20_0000, true)),
    );
    await d.ends(
      'CV-3',
      'a message of 2^53 bytes',
      patched(session.rndv(1, { seq: 0 }), (view) => view.setUint32(36, 0x20_0000, true)),
    );
    await d.ends(
      'LM-8',
      'a negative tag',
      patched(match, (view) => view.setInt32(24, -1, true)),
    );
    await d.ends(
      'PK-3',
      'a message of another rank',
      patched(match, (view) => view.setUint32(20, session.endpointRank, true)),
    );
    await d.ends(
      'PK-3',
      'a message of a rank that does not exist',
      patched(match, (view) => view.setUint32(20, 99, true)),
    );
    const rget = { ...session.rndv(5000, { seq: 0 }), type: PACKET.RGET } as Packet;
    rget.windows = Array.from({ length: 17 }, (_, rail) => ({ rail, railEpoch: 1, key: new Uint8Array(8) }));
    await d.ends('LM-5', 'an RGET with 17 windows', (rail) => rail.packetFrame(rget));
    const ids = { senderSlot: 1, senderGeneration: 1, receiverSlot: 1, receiverGeneration: 1, epoch: 1 };
    const deadRails = Array.from({ length: 129 }, (_, rail) => ({ rail, epoch: 1 }));
    await d.ends('LM-6', 'a NOTIFY with 129 rails', (rail) =>
      rail.packetFrame(session.other(PACKET.RNDVRESTARTNOTIFY, { ...ids, source: session.rank, deadRails })),
    );
    const missing = Array.from({ length: 129 }, (_, i): [number, number] => [2 * i, 2 * i + 1]);
    await d.ends('LM-7', 'a RESTARTACK with 129 ranges', (rail) =>
      rail.packetFrame(session.other(PACKET.RNDVRESTARTACK, { ...ids, source: session.rank, missing, from: 1000, takeBytes: 1000 })),
    );
    await d.ends('PK-1', 'a FIN whose range ends before it begins', (rail) =>
      rail.packetFrame(session.other(PACKET.FIN, { flags: FLAG.TO_SENDER, from: 10, to: 9 })),
    );
  }),
  damage('ids that were never issued', ['PK-4'], async (d, session) => {
    const ids = { senderSlot: 77, senderGeneration: 1, receiverSlot: 77, receiverGeneration: 1, source: session.rank };
    for (const [name, type] of [
      ['ACK', PACKET.ACK],
      ['RNDVRESTARTNOTIFY', PACKET.RNDVRESTARTNOTIFY],
      ['RNDVRESTARTACK', PACKET.RNDVRESTARTACK],
      ['RNDVRESTARTNACK', PACKET.RNDVRESTARTNACK],
      ['RECVERRNOTIFY', PACKET.RECVERRNOTIFY],
      ['FIN', PACKET.FIN],
    ] as const) {
      await d.ends('PK-4', `a ${name} that names an id which was never issued`, (rail) => rail.packetFrame(session.other(type, ids)));
    }
    await d.ends('PK-4', 'a FIN to the sender of no message', (rail) =>
      rail.packetFrame(session.other(PACKET.FIN, { ...ids, flags: FLAG.TO_SENDER })),
    );
    const window = { rail: 0, railEpoch: 1, key: new Uint8Array(8) };
    await d.ends('PK-4', 'a PUT for no message', (rail) => rail.packetFrame(session.other(PACKET.PUT, { ...ids, windows: [window] })));
    await d.ends('PK-4', 'a FRAG for no message', (rail) => rail.packetFrame(session.other(PACKET.FRAG, ids), pattern(0, 0, 10)));
  }),
  damage('placed where it must not be, and payload where none belongs', ['PL-1', 'PK-9'], async (d, session) => {
    await d.ends('PL-1', 'a placed MATCH', (rail) => rail.packetFrame(session.match({ seq: 0 }), pattern(0, 0, 4), { flags: FLAG_PLACED }));
    await d.ends('PL-1', 'a placed PROBE', (rail) => rail.frame({ kind: FRAME_PROBE, flags: FLAG_PLACED }));
    await d.ends('PK-9', 'a CREDIT with payload', (rail) => rail.packetFrame(session.other(PACKET.CREDIT, {}), pattern(0, 0, 4)));
    await d.ends('PK-9', 'a RAILDOWN with payload', (rail) =>
      rail.packetFrame(session.other(PACKET.RAILDOWN, { rail: 9, epoch: 1 }), pattern(0, 0, 4)),
    );
    await d.ends('PK-9', 'an RGET with payload', (rail) =>
      rail.packetFrame({ ...session.rndv(5000, { seq: 0 }), type: PACKET.RGET }, pattern(0, 0, 4)),
    );
    await d.ends('PK-9', 'a RNDV whose first part is longer than its message', (rail) =>
      rail.packetFrame(session.rndv(3, { seq: 0 }), pattern(0, 0, 4)),
    );
  }),
  {
    name: 'a FRAG that is not placed',
    group: 'framing',
    needs,
    clauses: ['PL-1', 'PK-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 5000);
      const { ack } = await session.rendezvous(rail, 1, 5000);
      rail.send(session.frag(ack, 0), pattern(1, 0, 5000), { flags: 0 });
      await session.closes('PL-1', rail, 'a FRAG without PLACED');
      await session.notDone('PK-5', request, 'a FRAG without PLACED');
      const next = await session.connect(0, 2);
      session.sendFrag(next, ack, 0, 5000);
      await session.received('PK-5', request, { data: pattern(1, 0, 5000) }, 'the same FRAG, placed');
    },
  },
  {
    name: 'zeros and unknown flags are not looked at',
    group: 'framing',
    needs,
    clauses: ['CV-2', 'PK-2'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const flagged = await session.recv(ANY, 3, 16);
      rail.send(session.match({ tag: 3, flags: 0xff00 }), pattern(3, 0, 16));
      await session.received('PK-2', flagged, { data: pattern(3, 0, 16) }, 'a MATCH with unknown flags, and nothing else unusual');
      const request = await session.recv(ANY, 1, 5000);
      const small = await session.recv(ANY, 2, 16);
      const rndv = session.rndv(5000, { tag: 1 });
      const withZeros = (packet: Packet, fields: readonly number[]) => {
        const bytes = packetBytesOf(packet);
        for (const at of fields) new DataView(bytes.buffer).setUint32(at, 0xdead_beef, true);
        return bytes;
      };
      rail.write(rail.frame({}, withZeros({ ...rndv, flags: 0xfff8 & ~(FLAG.TO_SENDER | FLAG.VOID) }, [4])));
      const ack = await session.expect('CV-2', PACKET.ACK, 'a RNDV whose zero field is not zero, with unknown flags');
      t.check('PK-2', true, 'unknown flags of a RNDV');
      rail.write(rail.frame({ flags: FLAG_PLACED }, withZeros(session.frag(ack, 0), [4, 28]), pattern(1, 0, 5000)));
      await session.received('CV-2', request, { data: pattern(1, 0, 5000) }, 'a FRAG whose zero fields are not zero');
      rail.write(rail.frame({}, withZeros(session.match({ tag: 2, flags: 0xffc0 }), [4]), pattern(1, 0, 16)));
      await session.received('PK-2', small, { data: pattern(1, 0, 16) }, 'a MATCH with unknown flags');
      const raildown = withZeros(session.other(PACKET.RAILDOWN, { rail: 60_000, epoch: 1 }), [4]);
      new DataView(raildown.buffer).setUint16(18, 0xffff, true);
      rail.write(rail.frame({}, raildown));
      await session.stays('CV-2', rail, 'a RAILDOWN of an unknown rail whose zero field is not zero');
    },
  },
  {
    name: 'a count says delivered, and is on every frame',
    group: 'framing',
    needs,
    clauses: ['CN-3', 'CN-4', 'CN-5'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      for (let i = 0; i < 20; i++) {
        const request = await session.recv(ANY, i, 32);
        session.sendMatch(rail, i, pattern(i, 0, 32), {}, i % 2 === 0 ? { flags: FLAG_PROMPT } : {});
        await session.counted('CN-5', rail, `message ${i}, with nothing to send back`);
        const state = await session.test(request);
        t.check('CN-3', state.done, `message ${i} is received by the time that it is counted`);
      }
      const before = rail.own.length;
      session.sendMatch(rail, 99, pattern(0, 0, 10));
      const { id, bytes } = rail.probeFrame();
      rail.write(bytes);
      await session.until(() => rail.hasAnswered(id));
      const answer = rail.own.slice(before).find(({ kind }) => kind === FRAME_PROBE_ANSWER);
      t.check(
        'CN-4',
        answer?.deliveredCount === rail.sentFrames,
        `PROBE_ANSWER carries the newest count (${answer?.deliveredCount} of ${rail.sentFrames})`,
      );
    },
  },
  {
    name: 'a frame that is not whole is not counted, and its bytes are reported',
    group: 'framing',
    needs,
    clauses: ['CN-6', 'CN-3', 'RV-7', 'FR-6'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const request = await session.recv(ANY, 1, 100_000);
      const { ack } = await session.rendezvous(rail, 1, 100_000);
      const before = rail.sentFrames;
      const bytes = rail.packetFrame(session.frag(ack, 0), pattern(1, 0, 100_000));
      const reported = rail.peerReceivedBytes;
      const written = await session.half(rail, bytes, 60_000);
      t.check('FR-6', rail.peerReceivedBytes > reported, 'the bytes of a frame that is not whole are among those received');
      await sleep(t.config.quietMs);
      t.check('CN-3', rail.peerCount <= before, 'a frame that is not whole is not counted');
      await session.notDone('RV-7', request, 'a FRAG that is not whole');
      rail.rest(bytes.subarray(written));
      await session.received('RV-7', request, { data: pattern(1, 0, 100_000) }, 'the rest of it');
      await session.counted('CN-3', rail, 'the whole frame');
    },
  },
  {
    name: 'refused payloads',
    group: 'framing',
    needs,
    clauses: ['NK-1', 'NK-2', 'RV-7'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const small = await session.recv(ANY, 1, 64);
      const nackOf = async (frame: number, what: string) => {
        const find = () => rail.own.findIndex(({ kind, frameNumber }) => kind === FRAME_NACK && frameNumber === frame);
        await session.until(() => find() !== -1 || rail.closed);
        t.must('NK-1', find() !== -1, `${what} is answered by NACK of frame ${frame}`);
        const nack = rail.own[find()];
        t.check('NK-2', nack.deliveredCount === frame - 1, `${what}: the NACK has the count before that frame (${nack.deliveredCount})`);
        const earlier = rail.own.slice(0, find()).every(({ deliveredCount }) => deliveredCount < frame);
        t.check('NK-2', earlier, `${what}: no count that covers it came before`);
        await session.counted('NK-2', rail, `${what}: then it`, frame);
      };
      const match = session.match({ tag: 1 });
      rail.send(match, pattern(8, 0, 50), { flags: FLAG_PAYLOAD_CRC, payloadCrc: 1 });
      await nackOf(rail.sentFrames, 'a MATCH with a damaged payload');
      await session.notDone('NK-1', small, 'a refused MATCH');
      rail.send(match, pattern(8, 0, 50), { flags: FLAG_PAYLOAD_CRC });
      await session.received('NK-1', small, { tag: 1, data: pattern(8, 0, 50) }, 'the MATCH again, with the same number');
      const large = await session.recv(ANY, 2, 20_000);
      const { ack } = await session.rendezvous(rail, 2, 20_000);
      session.sendFrag(rail, ack, 0, 10_000);
      session.sendFrag(rail, ack, 10_000, 20_000, 77, {}, { flags: FLAG_PLACED | FLAG_PAYLOAD_CRC, payloadCrc: 1 });
      await nackOf(rail.sentFrames, 'a FRAG with a damaged payload');
      await session.notDone('RV-7', large, 'a refused FRAG');
      session.sendFrag(rail, ack, 10_000, 20_000, 1, {}, { flags: FLAG_PLACED | FLAG_PAYLOAD_CRC });
      await session.received('NK-1', large, { data: pattern(1, 0, 20_000) }, 'the FRAG again');
      await session.stays('NK-1', rail, 'two refusals');
    },
  },
  {
    name: 'too many refused payloads',
    group: 'framing',
    needs,
    clauses: ['NK-4'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const damaged = (on: Rail, count: number): Uint8Array => {
        const packet = session.match({ tag: 1, seq: 0 });
        const one = () => on.packetFrame(packet, pattern(0, 0, 4), { flags: FLAG_PAYLOAD_CRC, payloadCrc: 1 });
        return join(...Array.from({ length: count }, one));
      };
      rail.write(damaged(rail, 40));
      await session.closes('NK-4', rail, '40 damaged payloads in one piece');
      const next = await session.connect(0, 2);
      next.write(damaged(next, 16));
      await session.stays('NK-4', next, '16 damaged payloads in one piece, in a new epoch');
      next.drop();
      const last = await session.connect(0, 3);
      last.write(damaged(last, 17));
      await session.closes('NK-4', last, '17 damaged payloads in one piece');
    },
  },
  {
    name: 'probes',
    group: 'framing',
    needs: ['accept'],
    clauses: ['PB-1', 'PB-2'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const began = rail.own.length;
      const answers = () =>
        rail.own
          .slice(began)
          .filter(({ kind }) => kind === FRAME_PROBE_ANSWER)
          .map(({ frameNumber }) => frameNumber);
      const ids = [5, 0, 0xffff_ffff, 5, 12];
      rail.write(join(...ids.map((frameNumber) => rail.frame({ kind: FRAME_PROBE, frameNumber }))));
      await session.until(() => answers().length >= ids.length);
      t.check('PB-1', answers().join() === ids.join(), `five probes in one piece are answered in order: ${answers().join(', ')}`);
      const paddings = [1, 2048, 2049, 64 * 1024];
      const padded = paddings.map((bytes, i) => rail.frame({ kind: FRAME_PROBE, frameNumber: 50 + i }, empty, pattern(i, 0, bytes)));
      rail.write(join(...padded));
      const paddedAnswered = () => paddings.every((_, i) => answers().includes(50 + i));
      await session.until(paddedAnswered);
      t.check('PB-1', paddedAnswered(), `probes with ${paddings.join(', ')} bytes of padding are answered`);
      const flood = Array.from({ length: 100 }, (_, i) => 1000 + i);
      rail.write(join(...flood.map((frameNumber) => rail.frame({ kind: FRAME_PROBE, frameNumber }))));
      const last16 = () => answers().slice(-16).join() === flood.slice(-16).join();
      await session.until(last16);
      t.check('PB-2', last16(), `of 100 probes in one piece at least the last 16 are answered: ${answers().slice(-16).join(', ')}`);
      rail.write(rail.frame({ kind: FRAME_PROBE_ANSWER, frameNumber: 424_242 }));
      await session.stays('PB-1', rail, 'an answer to no question');
    },
  },
  {
    name: 'what is in doubt comes again',
    group: 'framing',
    needs,
    clauses: ['CN-8', 'RV-14', 'RR-13'],
    run: async (t) => {
      const session = await Session.begin(t);
      const rail = await session.connect(0, 1);
      const requests = [await session.recv(ANY, 1, 3000), await session.recv(ANY, 2, 3000)];
      rail.autoCount = false;
      const first = await session.rendezvous(rail, 1, 3000);
      const second = await session.rendezvous(rail, 2, 3000);
      // The first ACK is counted, the second is not.
      rail.count(first.ack.header.frameNumber);
      await session.settle();
      const next = await session.reconnect(rail);
      const again = await session.expect('CN-8', PACKET.ACK, 'the ACK that was not counted comes again');
      t.check('CN-8', again.packet.senderSlot === second.rndv.senderSlot, 'it is the second one');
      t.check(
        'RV-14',
        again.packet.receiverSlot === second.ack.packet.receiverSlot && again.packet.takeBytes === 3000,
        'and says the same',
      );
      await session.never('CN-8', PACKET.ACK, 'what was counted does not come again');
      t.check('RR-13', true, 'the ACK is held until delivered');
      session.sendFrag(next, first.ack, 0, 3000);
      session.sendFrag(next, again, 0, 3000);
      for (const request of requests) await session.received('CN-8', request, { data: pattern(1, 0, 3000) }, 'both messages');
    },
  },
];
