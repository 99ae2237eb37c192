// The parser of a rail's byte stream: bytes in, at any split, whole frames out. It has no I/O and no clock. Packet headers and unplaced
// payloads are handed up whole, as views of the chunk that holds them, or otherwise of a bounded buffer; payloads of placed frames are
// written into their sink as they arrive.
import { assert } from '../../util/assert.ts';
import { EMPTY_BYTES } from '../../util/iov.ts';
import { WIDE_ZERO } from '../../util/wide-zero.ts';
import { HEADER_BYTES_MAX, type Sink } from '../btl.ts';
import type { StreamReader } from './byte-stream.ts';
import { crc32c } from './crc32c.ts';
import {
  checkFrameHeader,
  decodeFrameHeader,
  FLAG_PAYLOAD_CRC,
  FLAG_PLACED,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  type FrameLimits,
  frameHeaderBytes,
  frameKindName,
  newFrameHeader,
  readFrameHeader,
  soundUntil,
} from './frame-hdr.ts';

/** Assembly buffers up to this size are kept for the next payload; larger ones are made for one frame. */
const ASSEMBLY_BYTES_KEPT = 256 * 1024;
/** Memory for a header that came in pieces, or whose payload is under way. */
const HELD_BYTES_MIN = 256;
const HELD_BYTES_MAX = FRAME_HEADER_BYTES + HEADER_BYTES_MAX;
const NO_VIEW = new DataView(new ArrayBuffer(0));
/**
 * Packet headers and payloads up to this length are copied out of the chunk in a loop and handed up in views that are made once per
 * length: a new view costs more than the copy (38 ns against 15, Node 20).
 */
const SHORT_BYTES_MAX = 64;

/** Memory for one short piece, and its views by length. */
class ShortPiece {
  private readonly bytes = new Uint8Array(SHORT_BYTES_MAX);
  private readonly words = new Int32Array(this.bytes.buffer);
  private readonly views: (Uint8Array | undefined)[] = new Array(SHORT_BYTES_MAX + 1).fill(undefined);

  /** The bytes at `at` of the chunk behind `view`; `view` reaches at least that far. */
  take(view: DataView, at: number, bytes: number): Uint8Array {
    const { words } = this;
    const whole = bytes >> 2;
    for (let i = 0; i < whole; i++) words[i] = view.getInt32(at + 4 * i, true);
    for (let i = whole << 2; i < bytes; i++) this.bytes[i] = view.getUint8(at + i);
    const known = this.views[bytes];
    if (known !== undefined) return known;
    const made = this.bytes.subarray(0, bytes);
    this.views[bytes] = made;
    return made;
  }
}

/** Shared by all framers: what they hand up is used before another one of them runs. */
const shortHeader = new ShortPiece();
const shortPayload = new ShortPiece();

export interface FramerHandler {
  /** The header of a placed frame is whole and sound: where does its payload go? Null after stop(). */
  placePayload(header: FrameHeader, packetHeader: Uint8Array): Sink | null;
  /**
   * A whole frame; all views are valid during the call. `payloadSound` is false when its payload failed its CRC.
   * The handler may call stop(), or change `limits` and `handler` for what follows.
   */
  frame(header: FrameHeader, packetHeader: Uint8Array, payload: Uint8Array, sink: Sink | null, payloadSound: boolean): void;
  /** The stream is not what it should be; the framer has stopped. */
  damage(text: string, otherVersion: boolean): void;
}

/**
 * HEADER: collecting the frame header and the packet header behind it.
 * WHOLE: collecting a payload that is handed up whole.
 * PLACED: writing a payload into its sink, or into nothing when the sink is a discard or was revoked.
 */
type FramerState = 'HEADER' | 'WHOLE' | 'PLACED';

export class StreamFramer implements StreamReader {
  handler: FramerHandler;
  limits: FrameLimits;
  stopped = false;
  /** Bytes taken from the stream so far. */
  takenBytes = WIDE_ZERO;

  private state: FramerState = 'HEADER';
  private readonly header = newFrameHeader();
  /** A header that came in pieces; also the packet header of a frame whose payload is under way. */
  private held: Uint8Array = EMPTY_BYTES;
  private heldBytes = 0;
  /** Bytes of frame header and packet header together, once the lengths were checked; 0 before. */
  private neededBytes = 0;
  private packetHeader: Uint8Array = EMPTY_BYTES;
  /** Payload bytes that came so far. */
  private payloadBytes = 0;
  private assembly: Uint8Array = EMPTY_BYTES;
  private crc = 0;
  private sink: Sink | null = null;
  private sinkView = 0;
  private sinkViewAt = 0;
  /** The memory of the sink was taken away: the rest of the payload goes into nothing. */
  private sinkGone = false;
  /** View of the chunk that push() is at, and how far the headers in it are known to be sound. */
  private view: DataView = NO_VIEW;
  private chunk: Uint8Array = EMPTY_BYTES;
  /** Bytes of the chunk that are the stream's. */
  private end = 0;
  private soundTo = 0;

  constructor(handler: FramerHandler, limits: FrameLimits) {
    this.handler = handler;
    this.limits = limits;
  }

  /** A frame has begun and is not whole. */
  get midFrame(): boolean {
    return this.state !== 'HEADER' || this.heldBytes > 0;
  }

  /** The sink that is being filled, if any. */
  get openSink(): Sink | null {
    return this.sink;
  }

  /** No more bytes are taken, and none is written into a sink any more. */
  stop(): void {
    this.stopped = true;
  }

  push(chunk: Uint8Array, bytes = chunk.length): void {
    let at = 0;
    // Streams that read by themselves bring the same memory again and again.
    if (chunk !== this.chunk) {
      this.view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      this.chunk = chunk;
    }
    this.end = bytes;
    this.soundTo = 0;
    while (at < bytes && !this.stopped) {
      const before = at;
      switch (this.state) {
        case 'HEADER':
          at = this.takeHeader(chunk, at);
          break;
        case 'WHOLE':
          at = this.takeWhole(chunk, at);
          break;
        case 'PLACED':
          at = this.takePlaced(chunk, at);
          break;
      }
      assert(at > before || this.stopped, 'the framer does not move');
    }
    if (bytes === chunk.length) {
      this.view = NO_VIEW;
      this.chunk = EMPTY_BYTES;
    }
    // The chunk ended with a packet header whose payload has not begun: the chunk is not ours after this call.
    if (this.state === 'WHOLE' && this.payloadBytes === 0) this.holdPacketHeader();
  }

  target(): Uint8Array | undefined {
    if (this.stopped || this.state === 'HEADER') return undefined;
    // The rest of a payload that is put together anyway.
    if (this.state === 'WHOLE')
      return this.payloadBytes === 0 ? undefined : this.assembly.subarray(this.payloadBytes, this.header.payloadBytes);
    const sink = this.sink;
    if (sink === null || sink.revoked || sink.views.length === 0 || this.isSinkGone(sink)) return undefined;
    return sink.views[this.sinkView].subarray(this.sinkViewAt);
  }

  filled(bytes: number): void {
    if (bytes === 0 || this.stopped) return;
    if (this.state === 'WHOLE') {
      this.takenBytes += bytes;
      this.payloadBytes += bytes;
      this.finishAssembly();
      return;
    }
    const sink = this.sink;
    assert(this.state === 'PLACED' && sink !== null, 'filled() without a placed payload');
    const view = sink.views[this.sinkView];
    if ((this.header.flags & FLAG_PAYLOAD_CRC) !== 0) {
      this.crc = crc32c(view.subarray(this.sinkViewAt, this.sinkViewAt + bytes), this.crc);
    }
    this.takenBytes += bytes;
    this.advanceSink(bytes);
    this.payloadBytes += bytes;
    if (this.payloadBytes === this.header.payloadBytes) this.finishPlaced();
  }

  private takeHeader(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.heldBytes === 0 && this.end - at >= FRAME_HEADER_BYTES) {
      // The common case: header and packet header lie in this chunk.
      const bytes = frameHeaderBytes(this.view, at, this.limits);
      if (bytes === 0) {
        const check = checkFrameHeader(chunk, at, this.limits);
        assert('damage' in check, 'the two checks of a frame header do not agree');
        return this.damaged(check.damage, check.otherVersion, at);
      }
      if (this.end - at >= bytes) {
        this.takenBytes += bytes;
        if (this.soundTo < at + bytes) this.soundTo = soundUntil(chunk, at, bytes - FRAME_HEADER_BYTES, this.end);
        const isSound = this.soundTo >= at + bytes && readFrameHeader(this.view, at, this.header);
        if (!isSound) {
          decodeFrameHeader(chunk, at, this.header);
          return this.damaged(`the header of a ${frameKindName(this.header.kind)} frame failed its check`, false, at);
        }
        const packetHeaderBytes = bytes - FRAME_HEADER_BYTES;
        this.packetHeader =
          packetHeaderBytes <= SHORT_BYTES_MAX
            ? shortHeader.take(this.view, at + FRAME_HEADER_BYTES, packetHeaderBytes)
            : chunk.subarray(at + FRAME_HEADER_BYTES, at + bytes);
        return this.takeSmall(at + bytes);
      }
    }
    const wanted = this.neededBytes === 0 ? FRAME_HEADER_BYTES : this.neededBytes;
    const bytes = Math.min(wanted - this.heldBytes, this.end - at);
    this.makeRoomToHold(wanted);
    this.held.set(chunk.subarray(at, at + bytes), this.heldBytes);
    this.heldBytes += bytes;
    this.takenBytes += bytes;
    at += bytes;
    if (this.neededBytes === 0 && this.heldBytes === FRAME_HEADER_BYTES) {
      const check = checkFrameHeader(this.held, 0, this.limits);
      if ('damage' in check) return this.damaged(check.damage, check.otherVersion, at);
      this.neededBytes = check.bytes;
    }
    if (this.neededBytes !== 0 && this.heldBytes === this.neededBytes) {
      this.heldBytes = 0;
      this.neededBytes = 0;
      const { header } = this;
      if (!decodeFrameHeader(this.held, 0, header)) {
        return this.damaged(`the header of a ${frameKindName(header.kind)} frame failed its check`, false, at);
      }
      this.packetHeader = this.held.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + header.packetHeaderBytes);
      this.headerWhole();
    }
    return at;
  }

  /** The header is known; a short payload that lies in the chunk, from `at` on, makes the frame whole at once. */
  private takeSmall(at: number): number {
    const { header } = this;
    const { payloadBytes } = header;
    if (payloadBytes > SHORT_BYTES_MAX || this.end - at < payloadBytes || (header.flags & (FLAG_PLACED | FLAG_PAYLOAD_CRC)) !== 0) {
      this.headerWhole();
      return at;
    }
    this.takenBytes += payloadBytes;
    const payload = payloadBytes === 0 ? EMPTY_BYTES : shortPayload.take(this.view, at, payloadBytes);
    this.handler.frame(header, this.packetHeader, payload, null, true);
    return at + payloadBytes;
  }

  /** Frame header and packet header are known and sound: see what follows. */
  private headerWhole(): void {
    const { header } = this;
    this.payloadBytes = 0;
    this.crc = 0;
    if ((header.flags & FLAG_PLACED) === 0) {
      if (header.payloadBytes === 0) {
        this.handler.frame(header, this.packetHeader, EMPTY_BYTES, null, true);
        return;
      }
      this.state = 'WHOLE';
      return;
    }
    this.holdPacketHeader();
    const sink = this.handler.placePayload(header, this.packetHeader);
    // Kept even when the handler stopped us meanwhile: then it is the open sink of an ended epoch, to be dropped.
    this.sink = sink;
    if (this.stopped || sink === null) return;
    let room = 0;
    for (const view of sink.views) room += view.length;
    assert(room === header.payloadBytes || sink.views.length === 0, 'a sink must have exactly the length of its payload');
    this.sinkView = 0;
    this.sinkViewAt = 0;
    this.sinkGone = false;
    this.skipFullViews();
    this.state = 'PLACED';
    if (header.payloadBytes === 0) this.finishPlaced();
  }

  /** Keeps the packet header beyond this chunk. */
  private holdPacketHeader(): void {
    const bytes = this.packetHeader.length;
    if (bytes === 0 || this.packetHeader.buffer === this.held.buffer) return;
    this.makeRoomToHold(FRAME_HEADER_BYTES + bytes);
    this.held.set(this.packetHeader, FRAME_HEADER_BYTES);
    this.packetHeader = this.held.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + bytes);
  }

  /** An idle rail holds nothing, and few headers are as long as one may be. What is held already stays. */
  private makeRoomToHold(bytes: number): void {
    if (this.held.length >= bytes) return;
    const larger = new Uint8Array(Math.min(HELD_BYTES_MAX, Math.max(HELD_BYTES_MIN, bytes * 2)));
    larger.set(this.held.subarray(0, this.heldBytes));
    this.held = larger;
  }

  private takeWhole(chunk: Uint8Array, at: number): number {
    const total = this.header.payloadBytes;
    const here = Math.min(total - this.payloadBytes, this.end - at);
    this.takenBytes += here;
    if (here === total) {
      this.finishWhole(chunk.subarray(at, at + here));
      return at + here;
    }
    if (this.payloadBytes === 0) {
      this.holdPacketHeader();
      if (this.assembly.length < total) this.assembly = new Uint8Array(Math.max(total, 4096));
    }
    this.assembly.set(chunk.subarray(at, at + here), this.payloadBytes);
    this.payloadBytes += here;
    this.finishAssembly();
    return at + here;
  }

  private finishAssembly(): void {
    const total = this.header.payloadBytes;
    if (this.payloadBytes < total) return;
    const { assembly } = this;
    if (assembly.length > ASSEMBLY_BYTES_KEPT) this.assembly = EMPTY_BYTES;
    this.finishWhole(assembly.subarray(0, total));
  }

  private finishWhole(payload: Uint8Array): void {
    const header = this.header;
    this.state = 'HEADER';
    const sound = (header.flags & FLAG_PAYLOAD_CRC) === 0 || crc32c(payload) === header.payloadCrc;
    this.handler.frame(header, this.packetHeader, payload, null, sound);
  }

  private takePlaced(chunk: Uint8Array, at: number): number {
    const sink = this.sink as Sink;
    const here = Math.min(this.header.payloadBytes - this.payloadBytes, this.end - at);
    const bytes = chunk.subarray(at, at + here);
    this.takenBytes += here;
    if ((this.header.flags & FLAG_PAYLOAD_CRC) !== 0) this.crc = crc32c(bytes, this.crc);
    if (!sink.revoked && sink.views.length > 0 && !this.isSinkGone(sink)) {
      let from = 0;
      while (from < here) {
        const view = sink.views[this.sinkView];
        const n = Math.min(view.length - this.sinkViewAt, here - from);
        view.set(n === here ? bytes : bytes.subarray(from, from + n), this.sinkViewAt);
        from += n;
        this.advanceSink(n);
      }
    }
    this.payloadBytes += here;
    if (this.payloadBytes === this.header.payloadBytes) this.finishPlaced();
    return at + here;
  }

  /** Views that are detached have no length: what is left of them is no longer what is left of the payload. */
  private isSinkGone({ views }: Sink): boolean {
    if (this.sinkGone) return true;
    let room = -this.sinkViewAt;
    for (let i = this.sinkView; i < views.length; i++) room += views[i].length;
    this.sinkGone = room !== this.header.payloadBytes - this.payloadBytes;
    return this.sinkGone;
  }

  private advanceSink(bytes: number): void {
    this.sinkViewAt += bytes;
    this.skipFullViews();
  }

  private skipFullViews(): void {
    const views = (this.sink as Sink).views;
    while (this.sinkView < views.length && this.sinkViewAt === views[this.sinkView].length) {
      this.sinkView++;
      this.sinkViewAt = 0;
    }
  }

  private finishPlaced(): void {
    const header = this.header;
    const sink = this.sink;
    this.sink = null;
    this.state = 'HEADER';
    const sound = (header.flags & FLAG_PAYLOAD_CRC) === 0 || this.crc === header.payloadCrc;
    this.handler.frame(header, this.packetHeader, EMPTY_BYTES, sink, sound);
  }

  private damaged(text: string, otherVersion: boolean, at: number): number {
    this.stop();
    this.handler.damage(text, otherVersion);
    return at;
  }
}
