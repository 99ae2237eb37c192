// The tester's end of one rail epoch: frames out as a test wants them, frames in checked one by one. What every frame must fulfil is
// checked here, in every case; frames that a case waits for go to its session.
import { crc32c } from '../../src/btl/base/crc32c.ts';
import {
  encodeFrameHeader,
  FLAG_PAYLOAD_CRC,
  FLAG_PLACED,
  FRAME_BYE,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  FRAME_NACK,
  FRAME_PROBE,
  FRAME_PROBE_ANSWER,
  type FrameHeader,
  frameKindName,
  liveLimits,
  newFrameHeader,
  PROBE_PADDING_BYTES_MAX,
} from '../../src/btl/base/frame-hdr.ts';
import { decodePacket, encodePacket, newPacket, PACKET, PACKET_NAMES, type Packet, packetBytes } from '../../src/pml/hdr.ts';
import type { CaseContext } from './case.ts';
import type { FrameReader, RawFrame, WireStream } from './wire.ts';

/** docs/internals/PROTOCOL.md §15. */
export const FRAME_PAYLOAD_BYTES_MAX = 16_842_752;

/** A packet of the endpoint, in the order of arrival. */
export interface Arrival {
  rail: Rail;
  packet: Packet;
  payload: Uint8Array;
  header: FrameHeader;
  atMs: number;
}

/** What a rail tells its session. */
export interface RailOwner {
  readonly t: CaseContext;
  /** World rank of the endpoint, and the credit that it starts us with. */
  readonly endpointRank: number;
  readonly endpointUnexpectedBytesMax: number;
  arrived(arrival: Arrival): void;
  /** Anything happened on a rail. */
  changed(): void;
}

/** How a frame differs from the right one. */
export interface FrameSpec {
  kind?: number;
  flags?: number;
  frameNumber?: number;
  deliveredCount?: number;
  payloadCrc?: number;
  /** Changes the bytes after they are sealed; seal() again where the CRC is to be right. */
  spoil?: (bytes: Uint8Array, seal: () => void) => void;
}

const startedMs = performance.now();
const nothing = new Uint8Array(0);

export class Rail {
  readonly index: number;
  readonly epoch: number;
  readonly epochKey: Uint8Array;
  readonly stream: WireStream;
  closed = false;
  /** Frames that this side counts as delivered, and says so at once; or only when count() is called. */
  autoCount: boolean;
  /** Probes of the endpoint are answered at once. */
  autoProbe: boolean;
  /** Counted frames that came, and how many of them we have said to be delivered. */
  receivedFrames = 0;
  toldFrames = 0;
  /** Counted frames that we sent, and how many of them the endpoint has counted. */
  sentFrames = 0;
  peerCount = 0;
  peerReceivedBytes = 0;
  byeReceived = false;
  byeSent = false;
  isMidFrame = false;
  /** Probes that came in the middle of a frame of ours. */
  private readonly unanswered: number[] = [];
  /** Frames of the rail's own: COUNT, PROBE, …, in order. */
  readonly own: FrameHeader[] = [];
  private readonly owner: RailOwner;
  private readonly reader: FrameReader;
  private sentBytes = 0;
  private takenBytes = 0;
  private ownProbesAnswered = 0;
  private lastAliveMs = 0;
  private lastCreditLimit = 0;
  private nextProbeId = 1;

  constructor(
    owner: RailOwner,
    index: number,
    epoch: number,
    epochKey: Uint8Array,
    stream: WireStream,
    reader: FrameReader,
    { autoProbe = true, autoCount = true } = {},
  ) {
    this.owner = owner;
    this.index = index;
    this.epoch = epoch;
    this.epochKey = epochKey;
    this.stream = stream;
    this.reader = reader;
    this.autoProbe = autoProbe;
    this.autoCount = autoCount;
    reader.limits = liveLimits(FRAME_PAYLOAD_BYTES_MAX);
    stream.onBytes = (bytes) => {
      reader.push(bytes);
      this.drain();
    };
    stream.onClosed = () => {
      this.closed = true;
      owner.changed();
    };
    this.drain();
  }

  // ---------------------------------------------------------------- out

  /** One frame as bytes; DATA and BYE take the next number unless told otherwise. */
  frame(spec: FrameSpec, packetHeader: Uint8Array = nothing, payload: Uint8Array = nothing): Uint8Array {
    const header = newFrameHeader(spec.kind ?? FRAME_DATA);
    const counts = header.kind === FRAME_DATA || header.kind === FRAME_BYE;
    if (counts && spec.frameNumber === undefined) this.sentFrames = (this.sentFrames + 1) >>> 0;
    header.flags = spec.flags ?? 0;
    header.packetHeaderBytes = packetHeader.length;
    header.payloadBytes = payload.length;
    header.frameNumber = spec.frameNumber ?? (counts ? this.sentFrames : 0);
    header.deliveredCount = spec.deliveredCount ?? this.toldFrames;
    header.aliveMs = Math.floor(performance.now() - startedMs) >>> 0;
    header.receivedBytes = this.takenBytes;
    header.payloadCrc = spec.payloadCrc ?? ((header.flags & FLAG_PAYLOAD_CRC) === 0 ? 0 : crc32c(payload));
    const bytes = new Uint8Array(FRAME_HEADER_BYTES + packetHeader.length + payload.length);
    bytes.set(packetHeader, FRAME_HEADER_BYTES);
    bytes.set(payload, FRAME_HEADER_BYTES + packetHeader.length);
    encodeFrameHeader(header, bytes, 0);
    spec.spoil?.(bytes, () => sealHeader(bytes, packetHeader.length));
    return bytes;
  }

  write(bytes: Uint8Array): void {
    this.sentBytes += bytes.length;
    if (!this.closed) this.stream.write(bytes);
  }

  /** In one message of the transport, however long: of a WebSocket rail. */
  writeWhole(bytes: Uint8Array): void {
    this.sentBytes += bytes.length;
    if (!this.closed) this.stream.writeWhole?.(bytes);
  }

  /** The beginning of a frame: until the rest follows, no other frame may be written. */
  begin(bytes: Uint8Array): void {
    this.isMidFrame = true;
    this.write(bytes);
  }

  rest(bytes: Uint8Array): void {
    this.write(bytes);
    this.isMidFrame = false;
    for (const id of this.unanswered.splice(0)) this.answer(id);
    if (this.autoCount && this.toldFrames !== this.receivedFrames) this.count();
  }

  packetFrame(packet: Packet, payload: Uint8Array = nothing, spec: FrameSpec = {}): Uint8Array {
    const placed = packet.type === PACKET.FRAG ? FLAG_PLACED : 0;
    return this.frame({ flags: placed, ...spec }, packetBytesOf(packet), payload);
  }

  send(packet: Packet, payload: Uint8Array = nothing, spec: FrameSpec = {}): void {
    this.write(this.packetFrame(packet, payload, spec));
  }

  /** Says that everything that came is delivered, or the first `count` frames of it. */
  count(count = this.receivedFrames): void {
    this.toldFrames = count;
    this.write(this.frame({ kind: FRAME_COUNT }));
  }

  nack(frameNumber: number, spec: FrameSpec = {}): void {
    this.write(this.frame({ kind: FRAME_NACK, frameNumber, ...spec }));
  }

  bye(): void {
    this.byeSent = true;
    this.write(this.frame({ kind: FRAME_BYE }));
  }

  /** The frame of a question, and its id. */
  probeFrame(): { id: number; bytes: Uint8Array } {
    const id = this.nextProbeId++;
    return { id, bytes: this.frame({ kind: FRAME_PROBE, frameNumber: id }) };
  }

  hasAnswered(id: number): boolean {
    return this.own.some(({ kind, frameNumber }) => kind === FRAME_PROBE_ANSWER && frameNumber === id);
  }

  /** Gone at once. */
  drop(): void {
    this.stream.destroy();
    this.closed = true;
  }

  // ---------------------------------------------------------------- in

  private drain(): void {
    const { reader, owner } = this;
    for (let frame = reader.next(); frame !== undefined; frame = reader.next()) this.take(frame);
    if (reader.damage !== undefined && !this.closed) {
      owner.t.check('FR-8', false, `the endpoint sent what no reader can read: ${reader.damage}`);
      this.drop();
    }
    owner.changed();
  }

  private take({ header, packetHeader, payload, payloadSound, bytes }: RawFrame): void {
    const { t } = this.owner;
    const name = frameKindName(header.kind);
    this.takenBytes += bytes.length;
    t.check('FR-8', true, 'a sound header');
    this.checkReports(header, name);
    const counts = header.kind === FRAME_DATA || header.kind === FRAME_BYE;
    if (counts) {
      const expected = (this.receivedFrames + 1) >>> 0;
      t.check('CN-1', header.frameNumber === expected, `${name} has number ${header.frameNumber} where ${expected} is due`);
      t.check('CN-2', !this.byeReceived, `a ${name} came ${this.byeReceived ? 'after' : 'before'} BYE`);
      t.check('HS-13', this.ownProbesAnswered > 0, `a ${name} came although no PROBE of the endpoint was answered on this epoch`);
      this.receivedFrames = (this.receivedFrames + 1) >>> 0;
      if (header.kind === FRAME_BYE) this.byeReceived = true;
    }
    if (header.kind === FRAME_DATA) this.takeData(header, packetHeader, payload, payloadSound);
    else {
      const paddingBytesMax = header.kind === FRAME_PROBE ? PROBE_PADDING_BYTES_MAX : 0;
      t.check('CV-2', packetHeader.length === 0 && payload.length <= paddingBytesMax, `${name} of the rail itself carries no packet`);
      this.own.push({ ...header });
    }
    if (header.kind === FRAME_PROBE && this.autoProbe) {
      if (this.isMidFrame) this.unanswered.push(header.frameNumber);
      else this.answer(header.frameNumber);
    }
    if (counts && this.autoCount && !this.isMidFrame) this.count();
  }

  answer(probeId: number): void {
    this.ownProbesAnswered++;
    this.write(this.frame({ kind: FRAME_PROBE_ANSWER, frameNumber: probeId }));
  }

  /** Fields that every frame has. */
  private checkReports(header: FrameHeader, name: string): void {
    const { t } = this.owner;
    const { deliveredCount, receivedBytes, aliveMs } = header;
    const news = (deliveredCount - this.peerCount) | 0;
    t.check('CN-4', news >= 0, `${name} has the count ${deliveredCount} after ${this.peerCount}`);
    t.check('CN-7', ((this.sentFrames - deliveredCount) | 0) >= 0, `${name} counts ${deliveredCount} frames, ${this.sentFrames} were sent`);
    this.peerCount = Math.max(this.peerCount, deliveredCount);
    const plausible = Number.isInteger(receivedBytes) && receivedBytes >= this.peerReceivedBytes && receivedBytes <= this.sentBytes;
    t.check('FR-6', plausible, `${name} says ${receivedBytes} bytes received after ${this.peerReceivedBytes}, ${this.sentBytes} were sent`);
    this.peerReceivedBytes = Math.max(this.peerReceivedBytes, receivedBytes);
    t.check('FR-7', ((aliveMs - this.lastAliveMs) | 0) >= 0, `${name} says alive for ${aliveMs} ms after ${this.lastAliveMs}`);
    this.lastAliveMs = aliveMs;
    const numbered = header.kind === FRAME_COUNT ? header.frameNumber === 0 : true;
    const crcField = (header.flags & FLAG_PAYLOAD_CRC) !== 0 || header.payloadCrc === 0;
    t.check('CV-2', numbered && crcField, `${name}: fields without meaning are 0`);
  }

  private takeData(header: FrameHeader, packetHeader: Uint8Array, payload: Uint8Array, payloadSound: boolean): void {
    const { t } = this.owner;
    const packet = newPacket();
    try {
      decodePacket(packetHeader, packet);
    } catch (error) {
      t.check('PK-1', false, `the endpoint sent a packet that cannot be read: ${(error as Error).message}`);
      return;
    }
    const name = PACKET_NAMES[packet.type];
    t.check('PK-1', true, name);
    t.check('NK-1', payloadSound, `the payload of ${name} fits its payloadCrc`);
    const again = packetBytesOf(packet);
    t.check('CV-2', Buffer.from(again).equals(packetHeader), `${name}: zero fields and padding are 0`);
    const placed = (header.flags & FLAG_PLACED) !== 0;
    t.check('PL-1', placed === (packet.type === PACKET.FRAG), `${name} comes ${placed ? 'with' : 'without'} PLACED`);
    const carries = packet.type === PACKET.MATCH || packet.type === PACKET.RNDV || packet.type === PACKET.FRAG;
    t.check('PK-9', carries || payload.length === 0, `${name} comes with ${payload.length} bytes of payload`);
    t.check(
      'RV-11',
      packet.type !== PACKET.PUT && packet.putRails.length === 0,
      `${name} offers no window on a rail that cannot be put to`,
    );
    const isEnvelope = packet.type === PACKET.MATCH || packet.type === PACKET.RNDV || packet.type === PACKET.RGET;
    if (isEnvelope || (packet.type >= PACKET.RNDVRESTARTNOTIFY && packet.type <= PACKET.RECVERRNOTIFY)) {
      const { endpointRank } = this.owner;
      t.check('PK-3', packet.source === endpointRank, `${name} names rank ${packet.source} as its sender, which is ${endpointRank}`);
    }
    const least = Math.max(this.lastCreditLimit, this.owner.endpointUnexpectedBytesMax);
    t.check(
      'CR-1',
      packet.creditLimit >= least,
      `${name} states the credit limit ${packet.creditLimit}, at least ${least} was stated before`,
    );
    this.lastCreditLimit = Math.max(this.lastCreditLimit, packet.creditLimit);
    this.owner.arrived({ rail: this, packet, payload, header: { ...header }, atMs: performance.now() });
  }
}

/** Writes the header CRC again, over bytes that were changed. */
export function sealHeader(bytes: Uint8Array, packetHeaderBytes: number): void {
  const crc = crc32c(bytes.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + packetHeaderBytes), crc32c(bytes.subarray(0, 36)));
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(36, crc, true);
}

export function packetBytesOf(packet: Packet): Uint8Array {
  const bytes = new Uint8Array(packetBytes(packet));
  encodePacket(packet, new DataView(bytes.buffer));
  return bytes;
}
