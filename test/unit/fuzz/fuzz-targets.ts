// What is fuzzed: everything that reads others' bytes or text. Each target takes one case and throws unless the code accepts it or refuses
// it in the documented way. test/unit/fuzz/fuzz.test.ts runs the targets shortly, long.mjs for long.
import fc from 'fast-check';
import {
  checkFrameHeader,
  decodeFrameHeader,
  FRAME_CHALLENGE,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  HANDSHAKE_LIMITS,
  liveLimits,
  newFrameHeader,
} from '../../../src/btl/base/frame-hdr.ts';
import { AcceptorHandshake, DialerHandshake } from '../../../src/btl/base/handshake.ts';
import { type FramerHandler, StreamFramer } from '../../../src/btl/base/stream-framer.ts';
import type { Sink } from '../../../src/btl/btl.ts';
import { parseFaultPlan, RandomSchedule } from '../../../src/btl/interpose/fault-plan.ts';
import { selectInterfaces } from '../../../src/btl/tcp/interfaces.ts';
import { MultirailError } from '../../../src/errors.ts';
import { decodeImage } from '../../../src/ft/image/decode.ts';
import { ALIGNMENT, ENTRY_BYTES, HEADER, HEADER_BYTES as IMAGE_HEADER_BYTES } from '../../../src/ft/image/format.ts';
import { decodeManifest, encodeManifest } from '../../../src/ft/image/manifest.ts';
import { decodeEnvelope } from '../../../src/launch/oob/envelope.ts';
import { decodeJson } from '../../../src/launch/oob/messages.ts';
import { OobSession } from '../../../src/launch/oob/session.ts';
import { ParamTable } from '../../../src/params.ts';
import { decodePacket, newPacket, packetBytes } from '../../../src/pml/hdr.ts';
import { decodeServiceBody, decodeServiceHeader, encodeService, HEADER_BYTES, OFFSET, SERVICE_NAMES } from '../../../src/ulfm/wire.ts';
import { crc32cJs } from '../../../src/util/crc32c.ts';
import { bytesOf, goldenFrames, goldenHandshake, goldenPackets } from '../../support/golden.ts';
import { goldenImages } from '../../support/image-golden.ts';
import { goldenServices } from '../../support/ulfm-golden.ts';

export interface Target {
  name: string;
  property: () => fc.IProperty<[unknown]> | fc.IProperty<unknown[]>;
}

/** The body may return, or throw a MultirailError of one of these codes; everything else is a finding. */
function only(codes: readonly string[], body: () => void): void {
  try {
    body();
  } catch (error) {
    if (!(error instanceof MultirailError) || !codes.includes(error.code)) throw error;
  }
}

function check(condition: boolean, text: string): void {
  if (!condition) throw new Error(text);
}

// ---------------------------------------------------------------- bytes

const packets = goldenPackets().packets.map(({ hex }) => bytesOf(hex));
const images = goldenImages().images.map(({ hex }) => bytesOf(hex));
const manifests = [1, 3].map((size) =>
  encodeManifest({
    k: 12,
    epoch: 1,
    size,
    step: 400,
    files: Array.from({ length: size }, (_, rank) => ({ rank, bytes: 4096, crc: 77 })),
    scheme: { domains: 3, duplication: 1, depth: 1 },
    multirail: '0.3.0',
    node: 'v20',
  }),
);
const frames = [...goldenFrames().frames, ...goldenHandshake().frames].map(({ hex }) => bytesOf(hex));

/** Golden bytes, with some of them changed, cut off or put in. */
function mutated(golden: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const change = fc.record({ at: fc.nat(4096), value: fc.nat(255), how: fc.constantFrom('set', 'set', 'flip', 'cut', 'insert') });
  return fc.tuple(fc.constantFrom(...golden), fc.array(change, { maxLength: 6 })).map(([bytes, changes]) => {
    let out = [...bytes];
    for (const { at, value, how } of changes) {
      const i = out.length === 0 ? 0 : at % out.length;
      if (how === 'set') out[i] = value;
      else if (how === 'flip') out[i] ^= 1 << (value & 7);
      else if (how === 'cut') out = out.slice(0, i);
      else out.splice(i, 0, value);
    }
    return Uint8Array.from(out);
  });
}

const anyPacket = fc.oneof(mutated(packets), fc.uint8Array({ maxLength: 300 }));
const services = goldenServices().messages.map(({ hex }) => bytesOf(hex));
const anyService = fc.oneof(mutated(services), fc.uint8Array({ maxLength: 200 }));
const anyFrame = fc.oneof(mutated(frames), fc.uint8Array({ maxLength: 200 }));

/** A handler that places, counts, and never keeps more than it is allowed. */
class Collector implements FramerHandler {
  frames: string[] = [];
  damaged: string | undefined;
  placedBytes = 0;
  framer: StreamFramer | undefined;

  placePayload(header: FrameHeader): Sink | null {
    this.placedBytes = header.payloadBytes;
    if (header.frameNumber % 3 === 0) return { views: [], revoked: false };
    const first = Math.min(5, header.payloadBytes);
    return { views: [new Uint8Array(first), new Uint8Array(header.payloadBytes - first)], revoked: header.frameNumber % 5 === 0 };
  }
  frame(header: FrameHeader, packetHeader: Uint8Array, payload: Uint8Array, sink: Sink | null, sound: boolean): void {
    check(packetHeader.length === header.packetHeaderBytes, 'a packet header of another length');
    check(sink !== null || payload.length === header.payloadBytes, 'a payload of another length');
    const placed = sink === null ? '' : sink.views.map((view) => Buffer.from(view).toString('hex')).join('');
    this.frames.push(
      [
        header.kind,
        header.frameNumber,
        Buffer.from(packetHeader).toString('hex'),
        Buffer.from(payload).toString('hex'),
        placed,
        sound,
      ].join(),
    );
  }
  damage(text: string): void {
    check(this.damaged === undefined, 'damage() twice');
    this.damaged = text;
  }
}

const LIVE = liveLimits(4096);

function frameAll(bytes: Uint8Array, cuts: readonly number[]): Collector {
  const collector = new Collector();
  const framer = new StreamFramer(collector, LIVE);
  let at = 0;
  for (const cut of [...cuts.map((c) => c % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    // A chunk of its own memory, which is gone after the call.
    const chunk = bytes.slice(at, cut);
    at = cut;
    framer.push(chunk);
    chunk.fill(0xee);
    if (framer.stopped) check(collector.damaged !== undefined, 'it stopped without a word');
  }
  check(framer.takenBytes <= bytes.length, 'more bytes taken than given');
  return collector;
}

// ---------------------------------------------------------------- handshake

const SECRET = bytesOf(goldenHandshake().secret);
const NONCE = new Uint8Array(32).fill(7);
const identity = (rank: number) => ({ rank, incarnation: 5, jobId: 'fuzz', secret: SECRET });

function goldenBodies(): Uint8Array[] {
  const dialer = new DialerHandshake(identity(0), 1, 0, 'tcp:a-b#0', 1, NONCE);
  const acceptor = new AcceptorHandshake(identity(1), NONCE);
  const step = acceptor.take(16, dialer.hello().subarray(FRAME_HEADER_BYTES));
  const challenge = 'bytes' in step ? step.bytes : new Uint8Array(FRAME_HEADER_BYTES);
  return [dialer.hello(), challenge, ...frames].map((frame) => frame.slice(FRAME_HEADER_BYTES));
}
const bodies = goldenBodies();
const anyBody = fc.oneof(mutated(bodies), fc.uint8Array({ maxLength: 472 }));
const anyKind = fc.oneof(fc.integer({ min: 16, max: 20 }), fc.nat(255));

// ---------------------------------------------------------------- texts

const planText = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc
    .array(
      fc.constantFrom(
        'pull',
        'restore',
        'busy',
        'stall',
        'corrupt',
        'random',
        ':',
        '@',
        '+',
        ',',
        '*',
        '1',
        '0',
        '/2',
        'key=',
        'x',
        'ms',
        's',
        'silent',
        'inside',
        'payload',
        'header',
        'seed=',
        'rate=',
        'every=',
        'heal=',
        'kinds=',
        'busy',
        ' ',
        '9999999999999999999',
      ),
      { maxLength: 24 },
    )
    .map((parts) => parts.join('')),
);
const entryText = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.ipV4(),
  fc.ipV6(),
  fc
    .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.oneof(fc.integer({ min: -2, max: 200 }).map(String), fc.string({ maxLength: 4 })))
    .map((p) => p.join('/')),
  fc
    .array(fc.constantFrom('*', 'eth', '0', '.', '[', '(', '\\', '+', '?', ':', '/', 'fd00::', 'fe80::1%eth0'), { maxLength: 12 })
    .map((parts) => parts.join('')),
);
const INTERFACES = [
  { name: 'eth0', loopback: false, addresses: [{ address: '10.1.0.7', family: 4 as const, prefix: 16, linkLocal: false }] },
  { name: 'ib0', loopback: false, addresses: [{ address: 'fd00::7', family: 6 as const, prefix: 64, linkLocal: false }] },
];

export const TARGETS: readonly Target[] = [
  {
    name: 'packet headers',
    property: () =>
      fc.property(anyPacket, (bytes) => {
        only(['ERR_PROTOCOL'], () => {
          const packet = newPacket();
          decodePacket(bytes, packet);
          check(packetBytes(packet) === bytes.length, 'what was accepted has another length than what it says');
        });
      }),
  },
  {
    name: 'service messages',
    property: () =>
      fc.property(anyService, fc.constantFrom(1, 4, 4, 9, 11, 64, 8192), fc.boolean(), (bytes, size, fits) => {
        // Half of the cases say the length that they have, so that what is behind the header is reached.
        if (fits && bytes.length >= HEADER_BYTES) new DataView(bytes.buffer).setUint32(OFFSET.bodyBytes, bytes.length - HEADER_BYTES, true);
        only(['ERR_PROTOCOL'], () => {
          const header = decodeServiceHeader(bytes);
          if (SERVICE_NAMES[header.type] === undefined) return;
          const again = encodeService(decodeServiceBody(header, bytes, size));
          check(Buffer.compare(again, bytes) === 0, 'what was accepted is written in another way');
        });
      }),
  },
  {
    name: 'rail frame headers',
    property: () =>
      fc.property(anyFrame, fc.boolean(), (bytes, handshake) => {
        if (bytes.length < FRAME_HEADER_BYTES) return;
        const limits = handshake ? HANDSHAKE_LIMITS : LIVE;
        const result = checkFrameHeader(bytes, 0, limits);
        if ('damage' in result) return;
        check(result.bytes <= FRAME_HEADER_BYTES + limits.packetHeaderBytesMax, 'more bytes wanted than the limits allow');
        const header = newFrameHeader();
        if (bytes.length >= result.bytes && decodeFrameHeader(bytes, 0, header))
          check(header.payloadBytes <= limits.payloadBytesMax, 'too large');
      }),
  },
  {
    name: 'byte streams, cut anywhere',
    property: () =>
      fc.property(fc.array(anyFrame, { maxLength: 5 }), fc.array(fc.nat(2000), { maxLength: 8 }), (list, cuts) => {
        const bytes = new Uint8Array(Buffer.concat(list));
        const whole = frameAll(bytes, []);
        const pieces = frameAll(bytes, cuts);
        check(whole.frames.join('\n') === pieces.frames.join('\n'), 'the frames depend on where the stream was cut');
        check(whole.damaged === pieces.damaged, 'the damage depends on where the stream was cut');
      }),
  },
  {
    name: 'handshakes',
    property: () =>
      fc.property(fc.array(fc.tuple(anyKind, anyBody), { maxLength: 4 }), fc.boolean(), (messages, proved) => {
        const acceptor = new AcceptorHandshake(identity(1), NONCE);
        const dialer = new DialerHandshake(identity(0), 1, 0, 'tcp:a-b#0', 1, NONCE);
        if (proved && dialer.take(FRAME_CHALLENGE, bodies[1]).kind === 'challenged') dialer.proof();
        for (const [kind, body] of messages) {
          const step = acceptor.take(kind, body);
          check(step.kind !== 'proved', 'a stranger was admitted');
          if ('bytes' in step) check(step.bytes.length <= 512, 'a large answer to a stranger');
          const answer = dialer.take(kind, body);
          if (answer.kind === 'failed')
            check(/^[\x20-\x7e]*$/.test(answer.reason.text), `bytes of a stranger in the log: ${answer.reason.text}`);
        }
      }),
  },
  {
    // Nothing that differs from a golden image passes: whatever was changed is under a checksum, or must be zero.
    name: 'images',
    property: () =>
      fc.property(mutated(images), (bytes) => {
        if (images.some((one) => Buffer.compare(one, bytes) === 0)) return;
        let isTaken = false;
        only(['ERR_CORRUPT'], () => {
          decodeImage(bytes, crc32cJs);
          isTaken = true;
        });
        check(!isTaken, 'a damaged image was taken');
      }),
  },
  {
    // Whoever computes checksums can write what he likes: it is read, or refused, and never more than there is.
    name: 'images with sound checksums',
    property: () =>
      fc.property(
        fc.constantFrom(...images),
        fc.array(fc.tuple(fc.nat(700), fc.constantFrom(0, 1, 0x7f, 0x80, 0xff)), { maxLength: 5 }),
        (golden, changes) => {
          const bytes = golden.slice();
          const view = new DataView(bytes.buffer);
          const head = IMAGE_HEADER_BYTES + ENTRY_BYTES * view.getUint32(HEADER.sections, true);
          for (const [at, value] of changes) bytes[at % Math.min(head, bytes.length)] = value;
          const payloadAt = bytes.length - 16 - view.getUint32(HEADER.payloadBytes, true);
          view.setUint32(HEADER.tableCrc, crc32cJs(bytes.subarray(IMAGE_HEADER_BYTES, Math.max(IMAGE_HEADER_BYTES, payloadAt))), true);
          view.setUint32(HEADER.headerCrc, crc32cJs(bytes.subarray(0, HEADER.headerCrc)), true);
          only(['ERR_CORRUPT', 'ERR_SUPPORT'], () => {
            for (const { offset, bytes: length, data } of decodeImage(bytes, crc32cJs).sections) {
              check(data.length === length && offset + length <= bytes.length, 'a section that is not in the image');
              check(offset % ALIGNMENT === 0, 'a section at a wrong place');
            }
          });
        },
      ),
  },
  {
    name: 'manifests of saves',
    property: () =>
      fc.property(mutated(manifests), (bytes) => {
        only(['ERR_CORRUPT', 'ERR_SUPPORT'], () => {
          const { files, size } = decodeManifest(bytes);
          check(files.length === size && files.every(({ rank }, i) => rank === i), 'a manifest that does not name every rank');
        });
      }),
  },
  {
    name: 'out-of-band messages',
    property: () =>
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(31), (bytes, field) => {
        // Half of the cases begin like a body of that field, so that nested messages are reached.
        const lead = bytes.length % 2 === 0 ? [((field << 3) | 2) & 0x7f, Math.min(127, bytes.length)] : [];
        only(['ERR_PROTOCOL'], () => {
          const envelope = decodeEnvelope(Uint8Array.from([...lead, ...bytes]));
          const session = new OobSession();
          session.intake(envelope);
          if ('json' in envelope.body) decodeJson(envelope.body.json, 'fuzz');
        });
      }),
  },
  {
    name: 'fault plans',
    property: () =>
      fc.property(planText, (text) => {
        only(['ERR_CONFIG'], () => {
          const { random } = parseFaultPlan(text);
          if (random === undefined) return;
          const schedule = new RandomSchedule(random, {}, 'fuzz');
          for (let i = 0, last = 0; i < 20; i++) {
            check(schedule.nextMs >= last, 'a schedule that runs backwards');
            last = schedule.nextMs;
            schedule.take();
          }
        });
      }),
  },
  {
    name: 'interface lists',
    property: () =>
      fc.property(fc.array(entryText, { maxLength: 3 }), fc.array(entryText, { maxLength: 3 }), (include, exclude) => {
        only(['ERR_CONFIG'], () => selectInterfaces(INTERFACES, { include, exclude, disabledFamily: 0 }));
      }),
  },
  {
    name: 'parameters',
    property: () =>
      fc.property(
        fc.constantFrom('btl', 'pml_frag_bytes', 'btl_ws_standby', 'btl_tcp_disable_family', '__proto__'),
        fc.string({ maxLength: 20 }),
        (name, text) => {
          only(['ERR_CONFIG'], () => {
            const frag = new ParamTable({ [name]: text }, { MULTIRAIL_MCA_pml_frag_bytes: '2k' }).int('pml_frag_bytes');
            check(frag >= 1024 && frag <= 16 * 1024 * 1024, `pml_frag_bytes = ${frag}`);
          });
        },
      ),
  },
];
