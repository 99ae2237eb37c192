// Packet headers of the PML: layout, encode, decode. Names are those of ob1 and bfo. Little-endian, natural alignment,
// a version byte, append-only. The rail's frame header covers every byte of a packet header by CRC32C, so that none is
// decoded here that was not checked. docs/internals/PROTOCOL.md states the same layouts with golden frames.
import { MultirailError } from '../errors.ts';
import { settleShape } from '../util/shape.ts';

export const PACKET_VERSION = 1;

/** Packet types. NACK is carried by the rail layer itself, since only a rail knows its frame numbers (B2). */
export const PACKET = {
  MATCH: 1,
  RNDV: 2,
  RGET: 3,
  ACK: 4,
  NACK: 5,
  FRAG: 6,
  PUT: 8,
  FIN: 9,
  RNDVRESTARTNOTIFY: 10,
  RNDVRESTARTACK: 11,
  RNDVRESTARTNACK: 12,
  RECVERRNOTIFY: 13,
  RAILDOWN: 14,
  CREDIT: 15,
} as const;
export type PacketType = (typeof PACKET)[keyof typeof PACKET];

export const PACKET_NAMES: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(PACKET).map(([name, type]) => [type, name]),
);

export const FLAG = {
  /** The payload of this envelope was charged to the sender's byte credit. */
  CHARGED: 1,
  /** RNDV: synchronous mode (for traces; a rendezvous is synchronous by nature). */
  SYNC: 2,
  /** RNDV: the sender's buffer is one piece, so that PUT windows may be offered. */
  CONTIG: 4,
  /** FIN: addressed to the sender of the message (end of an RGET), not to its receiver. */
  TO_SENDER: 8,
  /** RNDV, RGET, FRAG: the sender's buffer was taken away from under it; the receive ends with ERR_BUFFER. */
  VOID: 16,
} as const;

/** Bytes charged per envelope besides its payload, so that a flood of empty messages is bounded too. */
export const ENVELOPE_CHARGE_BYTES = 128;

/** Windows in one RGET, rails in one NOTIFY, ranges in one RESTARTACK: what fits in one control frame. */
export const WINDOWS_MAX = 16;
export const DEAD_RAILS_MAX = 128;
export const MISSING_RANGES_MAX = 128;
export const WINDOW_KEY_BYTES_MAX = 64;

/** A registered piece of memory that the other side may reach over one epoch of one rail. */
export interface WireWindow {
  rail: number;
  railEpoch: number;
  key: Uint8Array;
}

/** One decoded (or to be encoded) packet header. Which fields mean something depends on `type`. */
export interface Packet {
  type: PacketType;
  flags: number;
  /** Cumulative bytes that the receiver of this packet may first-send to its sender. On every packet. */
  creditLimit: number;
  // MATCH, RNDV, RGET, restart frames
  ctx: number;
  source: number;
  tag: number;
  seq: number;
  /** MATCH, RNDV, RGET: the collective call that it is a message of; 0 for none. */
  signature: number;
  /** RNDV, RGET: length of the whole message. */
  messageBytes: number;
  senderSlot: number;
  senderGeneration: number;
  receiverSlot: number;
  receiverGeneration: number;
  /** ACK, RESTARTACK: how many bytes the receiver takes. */
  takeBytes: number;
  /** ACK, RESTARTACK: the rail epochs for which a PUT follows; the sender sends no FRAG over these before it has come. */
  putRails: { rail: number; epoch: number }[];
  /** Message epoch, except RAILDOWN: the rail's. */
  epoch: number;
  /** PUT, FIN: number of the window in its epoch. */
  number: number;
  /** FRAG: offset. PUT, FIN: the range [from, to). RESTARTACK: `from` = everything from here on is missing. */
  from: number;
  to: number;
  /** RAILDOWN. */
  rail: number;
  /** RGET: the sender's windows. PUT: one window of the receiver. */
  windows: WireWindow[];
  /** NOTIFY: rails with their highest dead epochs. */
  deadRails: { rail: number; epoch: number }[];
  /** RESTARTACK: missing ranges below `from`. */
  missing: [from: number, to: number][];
}

export function newPacket(): Packet {
  const packet: Packet = {
    type: PACKET.CREDIT,
    flags: 0,
    creditLimit: 0,
    ctx: 0,
    source: 0,
    tag: 0,
    seq: 0,
    signature: 0,
    messageBytes: 0,
    senderSlot: 0,
    senderGeneration: 0,
    receiverSlot: 0,
    receiverGeneration: 0,
    takeBytes: 0,
    putRails: [],
    epoch: 0,
    number: 0,
    from: 0,
    to: 0,
    rail: 0,
    windows: [],
    deadRails: [],
    missing: [],
  };
  settleShape(packet, ['epoch']);
  return packet;
}

// Offsets. Common part, 16 bytes, on every packet.
export const OFFSET = {
  version: 0,
  type: 1,
  flags: 2,
  signature: 4,
  creditLimit: 8,
  // MATCH 32, RNDV and RGET go on
  ctx: 16,
  source: 20,
  tag: 24,
  seq: 28,
  messageBytes: 32,
  rndvSenderSlot: 40,
  rndvSenderGeneration: 44,
  rgetWindows: 48,
  // ACK 48
  ackSenderSlot: 16,
  ackSenderGeneration: 20,
  ackReceiverSlot: 24,
  ackReceiverGeneration: 28,
  ackTakeBytes: 32,
  ackPutCount: 40,
  ackPutRails: 48,
  // FRAG 40
  fragReceiverSlot: 16,
  fragReceiverGeneration: 20,
  fragEpoch: 24,
  fragOffset: 32,
  // PUT 48 + one window; FIN 48
  putTargetSlot: 16,
  putTargetGeneration: 20,
  putEpoch: 24,
  putNumber: 28,
  putFrom: 32,
  putTo: 40,
  putWindow: 48,
  // restart frames 56
  restartSenderSlot: 16,
  restartSenderGeneration: 20,
  restartReceiverSlot: 24,
  restartReceiverGeneration: 28,
  restartEpoch: 32,
  restartCtx: 36,
  restartSource: 40,
  restartSeq: 44,
  restartCount: 48,
  restartPutCount: 52,
  notifyRails: 56,
  restartAckTailFrom: 56,
  restartAckTakeBytes: 64,
  restartAckRanges: 72,
  // RAILDOWN 24
  raildownRail: 16,
  raildownEpoch: 20,
} as const;

/** Length of each header's fixed part. */
const FIXED_BYTES: Readonly<Record<PacketType, number>> = {
  [PACKET.MATCH]: 32,
  [PACKET.RNDV]: 48,
  [PACKET.RGET]: 56,
  [PACKET.ACK]: 48,
  [PACKET.NACK]: 16,
  [PACKET.FRAG]: 40,
  [PACKET.PUT]: 48,
  [PACKET.FIN]: 48,
  [PACKET.RNDVRESTARTNOTIFY]: 56,
  [PACKET.RNDVRESTARTACK]: 72,
  [PACKET.RNDVRESTARTNACK]: 56,
  [PACKET.RECVERRNOTIFY]: 56,
  [PACKET.RAILDOWN]: 24,
  [PACKET.CREDIT]: 16,
};

/** A window: rail u16, key length u16, rail epoch u32, then the key, padded to 8 bytes. */
function windowBytes(window: WireWindow): number {
  return 8 + Math.ceil(window.key.length / 8) * 8;
}

export const TWO_32 = 2 ** 32;

/** Writes a length or offset below 2^53 as two words. */
export function putU53(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / TWO_32), true);
}

function getU53(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true);
  if (high > 0x1f_ffff) throw new MultirailError('ERR_PROTOCOL', `a length or offset beyond 2^53 at byte ${at}`);
  return high * TWO_32 + view.getUint32(at, true);
}

function putWindow(view: DataView, at: number, window: WireWindow): number {
  view.setUint16(at, window.rail, true);
  view.setUint16(at + 2, window.key.length, true);
  view.setUint32(at + 4, window.railEpoch, true);
  const padded = Math.ceil(window.key.length / 8) * 8;
  const target = new Uint8Array(view.buffer, view.byteOffset + at + 8, padded);
  target.fill(0);
  target.set(window.key);
  return at + 8 + padded;
}

function getWindow(view: DataView, at: number, out: WireWindow[]): number {
  if (at + 8 > view.byteLength) throw new MultirailError('ERR_PROTOCOL', 'a window runs past its header');
  const keyBytes = view.getUint16(at + 2, true);
  const padded = Math.ceil(keyBytes / 8) * 8;
  if (keyBytes > WINDOW_KEY_BYTES_MAX || at + 8 + padded > view.byteLength)
    throw new MultirailError('ERR_PROTOCOL', 'a window key is too long');
  out.push({
    rail: view.getUint16(at, true),
    railEpoch: view.getUint32(at + 4, true),
    key: new Uint8Array(view.buffer, view.byteOffset + at + 8, keyBytes).slice(),
  });
  return at + 8 + padded;
}

/** Rail epochs: rail u16, zero u16, epoch u32 each. */
function putRailEpochs(view: DataView, at: number, list: readonly { rail: number; epoch: number }[]): number {
  let end = at;
  for (const { rail, epoch } of list) {
    view.setUint16(end, rail, true);
    view.setUint16(end + 2, 0, true);
    view.setUint32(end + 4, epoch, true);
    end += 8;
  }
  return end;
}

function getRailEpochs(view: DataView, at: number, count: number, max: number, out: { rail: number; epoch: number }[]): number {
  if (count > max || at + 8 * count > view.byteLength) throw new MultirailError('ERR_PROTOCOL', `a list of ${count} rails`);
  for (let i = 0; i < count; i++) out.push({ rail: view.getUint16(at + 8 * i, true), epoch: view.getUint32(at + 8 * i + 4, true) });
  return at + 8 * count;
}

/** How many bytes `encodePacket` will write. */
export function packetBytes(packet: Packet): number {
  let bytes: number = FIXED_BYTES[packet.type];
  switch (packet.type) {
    case PACKET.RGET:
    case PACKET.PUT:
      for (const window of packet.windows) bytes += windowBytes(window);
      break;
    case PACKET.ACK:
      bytes += 8 * packet.putRails.length;
      break;
    case PACKET.RNDVRESTARTNOTIFY:
      bytes += 8 * packet.deadRails.length;
      break;
    case PACKET.RNDVRESTARTACK:
      bytes += 16 * packet.missing.length + 8 * packet.putRails.length;
      break;
  }
  return bytes;
}

/** Writes the header into `view` from its byte 0 and returns its length. The caller has made room for packetBytes(). */
export function encodePacket(packet: Packet, view: DataView): number {
  view.setUint8(OFFSET.version, PACKET_VERSION);
  view.setUint8(OFFSET.type, packet.type);
  view.setUint16(OFFSET.flags, packet.flags, true);
  view.setUint32(OFFSET.signature, packet.type <= PACKET.RGET ? packet.signature : 0, true);
  putU53(view, OFFSET.creditLimit, packet.creditLimit);
  switch (packet.type) {
    case PACKET.MATCH:
    case PACKET.RNDV:
    case PACKET.RGET: {
      view.setUint32(OFFSET.ctx, packet.ctx, true);
      view.setUint32(OFFSET.source, packet.source, true);
      view.setInt32(OFFSET.tag, packet.tag, true);
      view.setUint32(OFFSET.seq, packet.seq, true);
      if (packet.type === PACKET.MATCH) return 32;
      putU53(view, OFFSET.messageBytes, packet.messageBytes);
      view.setUint32(OFFSET.rndvSenderSlot, packet.senderSlot, true);
      view.setUint32(OFFSET.rndvSenderGeneration, packet.senderGeneration, true);
      if (packet.type === PACKET.RNDV) return 48;
      view.setUint32(OFFSET.rgetWindows, packet.windows.length, true);
      view.setUint32(OFFSET.rgetWindows + 4, 0, true);
      let at: number = FIXED_BYTES[PACKET.RGET];
      for (const window of packet.windows) at = putWindow(view, at, window);
      return at;
    }
    case PACKET.ACK:
      view.setUint32(OFFSET.ackSenderSlot, packet.senderSlot, true);
      view.setUint32(OFFSET.ackSenderGeneration, packet.senderGeneration, true);
      view.setUint32(OFFSET.ackReceiverSlot, packet.receiverSlot, true);
      view.setUint32(OFFSET.ackReceiverGeneration, packet.receiverGeneration, true);
      putU53(view, OFFSET.ackTakeBytes, packet.takeBytes);
      view.setUint32(OFFSET.ackPutCount, packet.putRails.length, true);
      view.setUint32(OFFSET.ackPutCount + 4, 0, true);
      return putRailEpochs(view, OFFSET.ackPutRails, packet.putRails);
    case PACKET.FRAG:
      view.setUint32(OFFSET.fragReceiverSlot, packet.receiverSlot, true);
      view.setUint32(OFFSET.fragReceiverGeneration, packet.receiverGeneration, true);
      view.setUint32(OFFSET.fragEpoch, packet.epoch, true);
      view.setUint32(OFFSET.fragEpoch + 4, 0, true);
      putU53(view, OFFSET.fragOffset, packet.from);
      return 40;
    case PACKET.PUT:
    case PACKET.FIN: {
      const toSender = packet.type === PACKET.PUT || (packet.flags & FLAG.TO_SENDER) !== 0;
      view.setUint32(OFFSET.putTargetSlot, toSender ? packet.senderSlot : packet.receiverSlot, true);
      view.setUint32(OFFSET.putTargetGeneration, toSender ? packet.senderGeneration : packet.receiverGeneration, true);
      view.setUint32(OFFSET.putEpoch, packet.epoch, true);
      view.setUint32(OFFSET.putNumber, packet.number, true);
      putU53(view, OFFSET.putFrom, packet.from);
      putU53(view, OFFSET.putTo, packet.to);
      return packet.type === PACKET.FIN ? 48 : putWindow(view, OFFSET.putWindow, packet.windows[0]);
    }
    case PACKET.RNDVRESTARTNOTIFY:
    case PACKET.RNDVRESTARTACK:
    case PACKET.RNDVRESTARTNACK:
    case PACKET.RECVERRNOTIFY: {
      view.setUint32(OFFSET.restartSenderSlot, packet.senderSlot, true);
      view.setUint32(OFFSET.restartSenderGeneration, packet.senderGeneration, true);
      view.setUint32(OFFSET.restartReceiverSlot, packet.receiverSlot, true);
      view.setUint32(OFFSET.restartReceiverGeneration, packet.receiverGeneration, true);
      view.setUint32(OFFSET.restartEpoch, packet.epoch, true);
      view.setUint32(OFFSET.restartCtx, packet.ctx, true);
      view.setUint32(OFFSET.restartSource, packet.source, true);
      view.setUint32(OFFSET.restartSeq, packet.seq, true);
      const isNotify = packet.type === PACKET.RNDVRESTARTNOTIFY;
      const isAck = packet.type === PACKET.RNDVRESTARTACK;
      view.setUint32(OFFSET.restartCount, isNotify ? packet.deadRails.length : isAck ? packet.missing.length : 0, true);
      view.setUint32(OFFSET.restartPutCount, isAck ? packet.putRails.length : 0, true);
      let at = 56;
      if (isNotify) {
        at = putRailEpochs(view, at, packet.deadRails);
      } else if (isAck) {
        putU53(view, OFFSET.restartAckTailFrom, packet.from);
        putU53(view, OFFSET.restartAckTakeBytes, packet.takeBytes);
        at = OFFSET.restartAckRanges;
        for (const [from, to] of packet.missing) {
          putU53(view, at, from);
          putU53(view, at + 8, to);
          at += 16;
        }
        at = putRailEpochs(view, at, packet.putRails);
      }
      return at;
    }
    case PACKET.RAILDOWN:
      view.setUint16(OFFSET.raildownRail, packet.rail, true);
      view.setUint16(OFFSET.raildownRail + 2, 0, true);
      view.setUint32(OFFSET.raildownEpoch, packet.epoch, true);
      return 24;
    case PACKET.CREDIT:
      return 16;
    case PACKET.NACK:
      throw new MultirailError('ERR_INTERNAL', 'NACK is a frame of the rail, not a packet');
  }
}

// A MATCH as words of 32 bits of a little-endian machine, for messages that are written and matched where they lie. The layout is that of
// OFFSET.
export const MATCH_WORDS = { head: 0, signature: 1, creditLow: 2, creditHigh: 3, ctx: 4, source: 5, tag: 6, seq: 7 } as const;
export const MATCH_HEADER_BYTES = 32;
/** First word of a MATCH of this version that is charged to the sender's credit, as every one of ours is. */
export const MATCH_CHARGED_HEAD = PACKET_VERSION | (PACKET.MATCH << 8) | (FLAG.CHARGED << 16);
/** Greatest high word of a length or limit below 2^53. */
export const U53_HIGH_MAX = 0x1f_ffff;

/** Writes the header of a charged MATCH; its credit limit is written when it is sent. */
export function encodeMatchWords(words: Int32Array, ctx: number, source: number, tag: number, seq: number, signature: number): void {
  words[0] = MATCH_CHARGED_HEAD;
  words[1] = signature;
  words[2] = 0;
  words[3] = 0;
  words[4] = ctx;
  words[5] = source;
  words[6] = tag;
  words[7] = seq;
}

/** Writes the credit limit into the words of any header. */
export function putCreditWords(words: Int32Array, creditLimit: number): void {
  words[2] = creditLimit;
  words[3] = creditLimit < TWO_32 ? 0 : Math.floor(creditLimit / TWO_32);
}

let lastHeader: Uint8Array | undefined;
let lastView: DataView | undefined;

/** Transports hand up short headers in memory that they use again and again: its view is made once. */
function viewOf(header: Uint8Array): DataView {
  if (header === lastHeader) return lastView as DataView;
  lastHeader = header;
  lastView = new DataView(header.buffer, header.byteOffset, header.length);
  return lastView;
}

/**
 * Reads a header. Throws ERR_PROTOCOL for an unknown version or type, a wrong length, or a count or range out of bounds:
 * the rail that carried it is then ended (I8 of docs/internals/SIMULATION.md).
 */
export function decodePacket(header: Uint8Array, packet: Packet): void {
  const view = viewOf(header);
  if (header.length < 16) throw new MultirailError('ERR_PROTOCOL', `a packet header of ${header.length} bytes`);
  const version = view.getUint8(OFFSET.version);
  if (version !== PACKET_VERSION) throw new MultirailError('ERR_PROTOCOL', `packet version ${version}, expected ${PACKET_VERSION}`);
  const type = view.getUint8(OFFSET.type) as PacketType;
  const fixed = FIXED_BYTES[type];
  if (fixed === undefined || type === PACKET.NACK) throw new MultirailError('ERR_PROTOCOL', `unknown packet type ${type}`);
  if (header.length < fixed) throw new MultirailError('ERR_PROTOCOL', `a ${PACKET_NAMES[type]} header of ${header.length} bytes`);
  packet.type = type;
  packet.flags = view.getUint16(OFFSET.flags, true);
  packet.creditLimit = getU53(view, OFFSET.creditLimit);
  let end: number = fixed;
  switch (type) {
    case PACKET.MATCH:
    case PACKET.RNDV:
    case PACKET.RGET:
      packet.ctx = view.getUint32(OFFSET.ctx, true);
      packet.source = view.getUint32(OFFSET.source, true);
      packet.tag = view.getInt32(OFFSET.tag, true);
      packet.seq = view.getUint32(OFFSET.seq, true);
      packet.signature = view.getUint32(OFFSET.signature, true);
      if (packet.windows.length > 0) packet.windows = [];
      if (packet.tag < 0) throw new MultirailError('ERR_PROTOCOL', `negative tag ${packet.tag}`);
      if (type === PACKET.MATCH) break;
      packet.messageBytes = getU53(view, OFFSET.messageBytes);
      packet.senderSlot = view.getUint32(OFFSET.rndvSenderSlot, true);
      packet.senderGeneration = view.getUint32(OFFSET.rndvSenderGeneration, true);
      if (type === PACKET.RGET) {
        const count = view.getUint32(OFFSET.rgetWindows, true);
        if (count > WINDOWS_MAX) throw new MultirailError('ERR_PROTOCOL', `an RGET with ${count} windows`);
        for (let i = 0; i < count; i++) end = getWindow(view, end, packet.windows);
      }
      break;
    case PACKET.ACK:
      packet.senderSlot = view.getUint32(OFFSET.ackSenderSlot, true);
      packet.senderGeneration = view.getUint32(OFFSET.ackSenderGeneration, true);
      packet.receiverSlot = view.getUint32(OFFSET.ackReceiverSlot, true);
      packet.receiverGeneration = view.getUint32(OFFSET.ackReceiverGeneration, true);
      packet.takeBytes = getU53(view, OFFSET.ackTakeBytes);
      packet.putRails = [];
      end = getRailEpochs(view, end, view.getUint32(OFFSET.ackPutCount, true), WINDOWS_MAX, packet.putRails);
      break;
    case PACKET.FRAG:
      packet.receiverSlot = view.getUint32(OFFSET.fragReceiverSlot, true);
      packet.receiverGeneration = view.getUint32(OFFSET.fragReceiverGeneration, true);
      packet.epoch = view.getUint32(OFFSET.fragEpoch, true);
      packet.from = getU53(view, OFFSET.fragOffset);
      break;
    case PACKET.PUT:
    case PACKET.FIN: {
      const slot = view.getUint32(OFFSET.putTargetSlot, true);
      const generation = view.getUint32(OFFSET.putTargetGeneration, true);
      if (type === PACKET.PUT || (packet.flags & FLAG.TO_SENDER) !== 0) {
        packet.senderSlot = slot;
        packet.senderGeneration = generation;
      } else {
        packet.receiverSlot = slot;
        packet.receiverGeneration = generation;
      }
      packet.epoch = view.getUint32(OFFSET.putEpoch, true);
      packet.number = view.getUint32(OFFSET.putNumber, true);
      packet.from = getU53(view, OFFSET.putFrom);
      packet.to = getU53(view, OFFSET.putTo);
      if (packet.to < packet.from) throw new MultirailError('ERR_PROTOCOL', 'a range that ends before it begins');
      packet.windows = [];
      if (type === PACKET.PUT) end = getWindow(view, end, packet.windows);
      break;
    }
    case PACKET.RNDVRESTARTNOTIFY:
    case PACKET.RNDVRESTARTACK:
    case PACKET.RNDVRESTARTNACK:
    case PACKET.RECVERRNOTIFY: {
      packet.senderSlot = view.getUint32(OFFSET.restartSenderSlot, true);
      packet.senderGeneration = view.getUint32(OFFSET.restartSenderGeneration, true);
      packet.receiverSlot = view.getUint32(OFFSET.restartReceiverSlot, true);
      packet.receiverGeneration = view.getUint32(OFFSET.restartReceiverGeneration, true);
      packet.epoch = view.getUint32(OFFSET.restartEpoch, true);
      packet.ctx = view.getUint32(OFFSET.restartCtx, true);
      packet.source = view.getUint32(OFFSET.restartSource, true);
      packet.seq = view.getUint32(OFFSET.restartSeq, true);
      const count = view.getUint32(OFFSET.restartCount, true);
      packet.putRails = [];
      packet.deadRails = [];
      packet.missing = [];
      if (type === PACKET.RNDVRESTARTNOTIFY) {
        end = getRailEpochs(view, end, count, DEAD_RAILS_MAX, packet.deadRails);
      } else if (type === PACKET.RNDVRESTARTACK) {
        if (count > MISSING_RANGES_MAX || fixed + 16 * count > header.length)
          throw new MultirailError('ERR_PROTOCOL', `a RESTARTACK with ${count} ranges`);
        packet.from = getU53(view, OFFSET.restartAckTailFrom);
        packet.takeBytes = getU53(view, OFFSET.restartAckTakeBytes);
        if (packet.from > packet.takeBytes) throw new MultirailError('ERR_PROTOCOL', 'a RESTARTACK that lacks more than is taken');
        let last = 0;
        for (let i = 0; i < count; i++, end += 16) {
          const from = getU53(view, end);
          const to = getU53(view, end + 8);
          if (from < last || to <= from || to > packet.from)
            throw new MultirailError('ERR_PROTOCOL', 'a RESTARTACK whose ranges are not ascending');
          last = to;
          packet.missing.push([from, to]);
        }
        end = getRailEpochs(view, end, view.getUint32(OFFSET.restartPutCount, true), WINDOWS_MAX, packet.putRails);
      }
      break;
    }
    case PACKET.RAILDOWN:
      packet.rail = view.getUint16(OFFSET.raildownRail, true);
      packet.epoch = view.getUint32(OFFSET.raildownEpoch, true);
      break;
    case PACKET.CREDIT:
      break;
  }
  if (end !== header.length) {
    throw new MultirailError('ERR_PROTOCOL', `a ${PACKET_NAMES[type]} header of ${header.length} bytes, expected ${end}`);
  }
}
