// Golden dialogues: what a tester says on a connected rail, and what a receiver must answer, frame by frame. The file makes
// docs/internals/golden/dialogues.json; dialogues.test.ts holds file and endpoints to it.
import { crc32c } from '../../src/btl/base/crc32c.ts';
import {
  encodeFrameHeader,
  FLAG_PAYLOAD_CRC,
  FLAG_PLACED,
  FRAME_BYE,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  FRAME_PROBE,
  newFrameHeader,
} from '../../src/btl/base/frame-hdr.ts';
import { newPacket, PACKET, PACKET_NAMES, type Packet } from '../../src/pml/hdr.ts';
import { pattern, sha256 } from '../../tools/wire-suite/pattern.ts';
import { packetBytesOf } from '../../tools/wire-suite/rail.ts';

export const UNEXPECTED_BYTES_MAX = 65_536;

export type Step =
  | { step: 'connect'; epoch: number }
  | { step: 'say'; name: string; hex: string }
  /** A DATA frame with just this packet header. */
  | { step: 'hear'; name: string; packet: string }
  /** NACK or PROBE_ANSWER. */
  | { step: 'hearOwn'; name: string; kind: number; frameNumber: number }
  | { step: 'received'; request: number; tag: number; bytes: number; sha256: string; error?: string };

export interface Dialogue {
  name: string;
  about: string;
  /** Posted before anything is said, in this order. */
  receives: { source: number; tag: number; ctx: number; bytes: number }[];
  steps: Step[];
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const OWN_CREDIT = 1 << 20;

/** Writes a dialogue down: numbers what is said, and counts what was heard. */
class Script {
  readonly steps: Step[] = [];
  private number = 0;
  private heard = 0;
  private slot = 0;

  connect(epoch: number): void {
    this.number = 0;
    this.heard = 0;
    this.steps.push({ step: 'connect', epoch });
  }

  private frame(
    name: string,
    kind: number,
    frameNumber: number,
    flags = 0,
    packet: Uint8Array = new Uint8Array(0),
    payload: Uint8Array = new Uint8Array(0),
    payloadCrc = 0,
  ): void {
    const header = newFrameHeader(kind);
    header.flags = flags;
    header.frameNumber = frameNumber;
    header.deliveredCount = this.heard;
    header.packetHeaderBytes = packet.length;
    header.payloadBytes = payload.length;
    header.payloadCrc = payloadCrc;
    const bytes = new Uint8Array(FRAME_HEADER_BYTES + packet.length + payload.length);
    bytes.set(packet, FRAME_HEADER_BYTES);
    bytes.set(payload, FRAME_HEADER_BYTES + packet.length);
    encodeFrameHeader(header, bytes, 0);
    this.steps.push({ step: 'say', name, hex: hex(bytes) });
  }

  say(type: keyof typeof PACKET, fields: Partial<Packet>, payload: Uint8Array = new Uint8Array(0), damaged?: boolean): void {
    const packet = { ...newPacket(), creditLimit: OWN_CREDIT, ...fields, type: PACKET[type] };
    const flags = (type === 'FRAG' ? FLAG_PLACED : 0) | (damaged === undefined ? 0 : FLAG_PAYLOAD_CRC);
    const crc = damaged === undefined ? 0 : (crc32c(payload) ^ (damaged ? 1 : 0)) >>> 0;
    this.frame(type, FRAME_DATA, ++this.number, flags, packetBytesOf(packet), payload, crc);
  }

  probe(id: number): void {
    this.frame('PROBE', FRAME_PROBE, id);
  }

  count(): void {
    this.frame('COUNT', FRAME_COUNT, 0);
  }

  bye(): void {
    this.frame('BYE', FRAME_BYE, ++this.number);
  }

  hear(type: keyof typeof PACKET, fields: Partial<Packet>, creditLimit = UNEXPECTED_BYTES_MAX): void {
    this.heard++;
    const packet = { ...newPacket(), creditLimit, ...fields, type: PACKET[type] };
    this.steps.push({ step: 'hear', name: PACKET_NAMES[packet.type], packet: hex(packetBytesOf(packet)) });
    this.count();
  }

  hearOwn(name: string, kind: number, frameNumber: number): void {
    this.steps.push({ step: 'hearOwn', name, kind, frameNumber });
  }

  received(request: number, tag: number, data: Uint8Array, error?: string): void {
    const step: Step = { step: 'received', request, tag, bytes: data.length, sha256: sha256(data) };
    this.steps.push(error === undefined ? step : { ...step, error });
  }

  /** Id of a rendezvous of the tester. */
  sender(): { senderSlot: number; senderGeneration: number } {
    return { senderSlot: this.slot++, senderGeneration: 1 };
  }
}

const recv = (tag: number, bytes: number) => ({ source: -1, tag, ctx: 0, bytes });
/** The first id that the receiver issues: see `about` of the file. */
const FIRST = { receiverSlot: 0, receiverGeneration: 1 };

function dialogue(name: string, about: string, receives: Dialogue['receives'], write: (s: Script) => void): Dialogue {
  const script = new Script();
  script.connect(1);
  write(script);
  return { name, about, receives, steps: script.steps };
}

export function makeDialogues(): { about: string; unexpectedBytesMax: number; dialogues: Dialogue[] } {
  const dialogues = [
    dialogue(
      'eager',
      'Number 1 overtakes number 0; number 0 comes twice; a probe shows that all was taken.',
      [recv(-1, 64), recv(-1, 64)],
      (s) => {
        s.say('MATCH', { tag: 11, seq: 1 }, pattern(1, 0, 20));
        s.say('MATCH', { tag: 10, seq: 0 }, pattern(0, 0, 10));
        s.say('MATCH', { tag: 10, seq: 0 }, pattern(99, 0, 10));
        s.probe(7);
        s.hearOwn('PROBE_ANSWER', 4, 7);
        s.received(0, 10, pattern(0, 0, 10));
        s.received(1, 11, pattern(1, 0, 20));
      },
    ),
    dialogue('rendezvous', 'A first part, the answer, and the rest in two fragments, the upper one first.', [recv(5, 3000)], (s) => {
      const id = s.sender();
      s.say('RNDV', { tag: 5, seq: 0, messageBytes: 3000, ...id }, pattern(2, 0, 1000));
      s.hear('ACK', { ...id, ...FIRST, takeBytes: 3000 });
      s.say('FRAG', { ...FIRST, from: 2000 }, pattern(2, 2000, 3000));
      s.say('FRAG', { ...FIRST, from: 1000 }, pattern(2, 1000, 2000));
      s.received(0, 5, pattern(2, 0, 3000));
    }),
    dialogue(
      'truncation',
      'The receiver takes less than the message has; what comes next is not disturbed.',
      [recv(5, 100), recv(6, 10)],
      (s) => {
        const id = s.sender();
        s.say('RNDV', { tag: 5, seq: 0, messageBytes: 3000, ...id });
        s.hear('ACK', { ...id, ...FIRST, takeBytes: 100 });
        s.say('FRAG', { ...FIRST, from: 0 }, pattern(3, 0, 100));
        s.received(0, 5, pattern(3, 0, 100), 'ERR_TRUNCATE');
        s.say('MATCH', { tag: 6, seq: 1 }, pattern(4, 0, 10));
        s.received(1, 6, pattern(4, 0, 10));
      },
    ),
    dialogue('refused payload', 'A payload that does not fit its CRC, and the same message again.', [recv(1, 64)], (s) => {
      s.say('MATCH', { tag: 1, seq: 0 }, pattern(5, 0, 30), true);
      s.hearOwn('NACK', 5, 1);
      s.say('MATCH', { tag: 1, seq: 0 }, pattern(5, 0, 30), false);
      s.received(0, 1, pattern(5, 0, 30));
    }),
    dialogue(
      'restart',
      'The rail is lost after one of three fragments; NOTIFY comes twice, then once more when all has arrived.',
      [recv(1, 3000)],
      (s) => {
        const id = s.sender();
        s.say('RNDV', { tag: 1, seq: 0, messageBytes: 3000, ...id });
        s.hear('ACK', { ...id, ...FIRST, takeBytes: 3000 });
        s.say('FRAG', { ...FIRST, from: 1000 }, pattern(6, 1000, 2000));
        s.probe(1);
        s.hearOwn('PROBE_ANSWER', 4, 1);
        s.connect(2);
        const notify = { ...id, ...FIRST, ctx: 0, source: 0, seq: 0, deadRails: [{ rail: 0, epoch: 1 }] };
        const lacking: Partial<Packet> = {
          ...id,
          ...FIRST,
          epoch: 1,
          source: 1,
          missing: [
            [0, 1000],
            [2000, 3000],
          ],
          from: 3000,
          takeBytes: 3000,
        };
        s.say('RNDVRESTARTNOTIFY', { ...notify, epoch: 1 });
        s.hear('RNDVRESTARTACK', lacking);
        s.say('RNDVRESTARTNOTIFY', { ...notify, epoch: 1 });
        s.hear('RNDVRESTARTACK', lacking);
        s.say('FRAG', { ...FIRST, epoch: 0, from: 0 }, pattern(66, 0, 1000));
        s.say('FRAG', { ...FIRST, epoch: 1, from: 0 }, pattern(6, 0, 1000));
        s.say('FRAG', { ...FIRST, epoch: 1, from: 2000 }, pattern(6, 2000, 3000));
        s.received(0, 1, pattern(6, 0, 3000));
        s.say('RNDVRESTARTNOTIFY', { ...notify, epoch: 2 });
        s.hear('RNDVRESTARTNACK', { ...id, ...FIRST, epoch: 2, source: 1 });
      },
    ),
    dialogue(
      'credit',
      'Charged messages are received: when a quarter of the bound has been released, the new limit is told.',
      [recv(1, 9000), recv(1, 9000)],
      (s) => {
        s.say('MATCH', { tag: 1, seq: 0, flags: 1 }, pattern(7, 0, 9000));
        s.received(0, 1, pattern(7, 0, 9000));
        s.say('MATCH', { tag: 1, seq: 1, flags: 1 }, pattern(8, 0, 9000));
        s.received(1, 1, pattern(8, 0, 9000));
        s.hear('CREDIT', {}, UNEXPECTED_BYTES_MAX + 2 * (9000 + 128));
      },
    ),
  ];
  return {
    about:
      'Dialogues with a receiver, rank 1 of 2, dialled by rank 0 over rail 0, after the handshake of each `connect` (a new epoch; the older connection is gone). ' +
      '`say`: the tester writes this whole frame; receivedBytes and aliveMs are 0 in it. `hear`: a DATA frame of the receiver with exactly this packet header comes next ' +
      '(RESTARTNACK: ctx and seq may differ); COUNT frames and probes, which the tester answers, may come at any time. `hearOwn`: a frame of that kind and number. ' +
      '`received`: the receive with that index is done. Receiver ids: the first one is taken to be slot 0, generation 1; where it is not, put yours in. ' +
      'Byte i of a payload is (seed + 31 i + floor(i / 256)) mod 256.',
    unexpectedBytesMax: UNEXPECTED_BYTES_MAX,
    dialogues,
  };
}
