// The bytes that verbs rails exchange: the header in front of every record in a receive buffer, and the setup record by which two sides
// agree upon their queue pairs.
//
// A record, in words of 32 bits, little-endian; the device guards it by its own checksums:
//   0-3  the head of all records (base/record-hdr.ts)
//   4  milliseconds during which the sender's engine was polling, modulo 2^32
//   5  0
//   6-7  f64: bytes of this epoch that the sender has received
//   8  packet header, payload
import { MultirailError } from '../../errors.ts';
import { RECORD_BYE } from '../base/record-hdr.ts';

export const RECORD_HEADER_BYTES = 32;
/** Nothing but the count. */
export const RECORD_COUNT = RECORD_BYE + 1;

/**
 * What each side tells of its queue pair, as the packet header of a DATA frame of the companion connection. The second frame of each
 * side is empty and says that it can receive: nothing is sent before that has come.
 *
 *   0 u32 magic   4 u32 number of the queue pair   8 u32 first packet sequence number   12 u16 lid   14 u8 mtu (ibv_mtu)
 *   15 u8 reads that it serves at a time   16 u32 receive buffers   20 u32 bytes of one   24 16 bytes gid
 */
export interface Setup {
  queuePair: number;
  psn: number;
  lid: number;
  mtu: number;
  readsAsTarget: number;
  buffers: number;
  bufferBytes: number;
  gid: Uint8Array;
}

export const SETUP_BYTES = 40;
const SETUP_MAGIC = 0x3153564d; // "MVS1"

export function encodeSetup(setup: Setup): Uint8Array {
  const bytes = new Uint8Array(SETUP_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, SETUP_MAGIC, true);
  view.setUint32(4, setup.queuePair, true);
  view.setUint32(8, setup.psn, true);
  view.setUint16(12, setup.lid, true);
  view.setUint8(14, setup.mtu);
  view.setUint8(15, setup.readsAsTarget);
  view.setUint32(16, setup.buffers, true);
  view.setUint32(20, setup.bufferBytes, true);
  bytes.set(setup.gid, 24);
  return bytes;
}

/** Throws ERR_PROTOCOL when it is not the setup of a connection. */
export function decodeSetup(bytes: Uint8Array): Setup {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length !== SETUP_BYTES || view.getUint32(0, true) !== SETUP_MAGIC) {
    throw new MultirailError(
      'ERR_PROTOCOL',
      `${bytes.length} bytes are not the setup of a queue pair; expected ${SETUP_BYTES} that begin with its magic`,
    );
  }
  const setup: Setup = {
    queuePair: view.getUint32(4, true),
    psn: view.getUint32(8, true),
    lid: view.getUint16(12, true),
    mtu: view.getUint8(14),
    readsAsTarget: view.getUint8(15),
    buffers: view.getUint32(16, true),
    bufferBytes: view.getUint32(20, true),
    gid: bytes.slice(24, 40),
  };
  if (setup.queuePair > 0xffffff || setup.psn > 0xffffff || setup.mtu < 1 || setup.mtu > 5) {
    throw new MultirailError('ERR_PROTOCOL', 'the setup of a queue pair has a number or an MTU that is out of range');
  }
  return setup;
}

/**
 * The key of registered memory, at most 64 bytes: for each piece its address (u64), length (f64) and remote key (u32).
 */
export interface Window {
  pieces: readonly { address: bigint; bytes: number; rkey: number }[];
}

const PIECE_BYTES = 20;
export const WINDOW_PIECES_MAX = 3;

export function encodeWindow(window: Window): Uint8Array {
  const key = new Uint8Array(PIECE_BYTES * window.pieces.length);
  const view = new DataView(key.buffer);
  for (const [i, { address, bytes, rkey }] of window.pieces.entries()) {
    view.setBigUint64(i * PIECE_BYTES, address, true);
    view.setFloat64(i * PIECE_BYTES + 8, bytes, true);
    view.setUint32(i * PIECE_BYTES + 16, rkey, true);
  }
  return key;
}

/** Undefined when it is not one of ours. */
export function decodeWindow(key: Uint8Array): Window | undefined {
  const count = key.length / PIECE_BYTES;
  if (!Number.isInteger(count) || count < 1 || count > WINDOW_PIECES_MAX) return undefined;
  const view = new DataView(key.buffer, key.byteOffset, key.length);
  const pieces = Array.from({ length: count }, (_, i) => ({
    address: view.getBigUint64(i * PIECE_BYTES, true),
    bytes: view.getFloat64(i * PIECE_BYTES + 8, true),
    rkey: view.getUint32(i * PIECE_BYTES + 16, true),
  }));
  return pieces.every(({ bytes }) => Number.isSafeInteger(bytes) && bytes >= 0) ? { pieces } : undefined;
}
