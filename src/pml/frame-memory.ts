// The memory of a frame: its packet header, and a short payload right behind it. A frame is used again once it is complete, and its memory
// and the views of it with it.
import type { Frame } from '../btl/btl.ts';
import { EMPTY_BYTES, EMPTY_VIEWS, type Iov } from '../util/iov.ts';

const STORAGE_BYTES = 256;
/** Payloads of eager messages up to this length are retained in their frame's own memory. */
export const PACKED_PAYLOAD_BYTES_MAX = 192;

export class FrameMemory implements Frame {
  header: Uint8Array = EMPTY_BYTES;
  payload: readonly Uint8Array[] = EMPTY_VIEWS;
  payloadBytes = 0;
  placed = false;
  prompt = false;
  railFrameNumber = 0;
  headerWords: Int32Array;
  packed = false;
  private storage = new Uint8Array(STORAGE_BYTES);
  private view: DataView;
  private packedPayload: readonly Uint8Array[] = EMPTY_VIEWS;
  private headerBytes = -1;
  private packedAt = 0;
  private packedBytes = -1;

  constructor() {
    this.view = new DataView(this.storage.buffer);
    this.headerWords = new Int32Array(this.storage.buffer);
  }

  /** Storage for a header of that length; larger ones (NOTIFY, RESTARTACK, RGET) grow it. */
  headerView(bytes: number): DataView {
    if (bytes > this.storage.length) {
      this.storage = new Uint8Array(Math.ceil(bytes / 8) * 8);
      this.view = new DataView(this.storage.buffer);
      this.headerWords = new Int32Array(this.storage.buffer);
      this.packedBytes = -1;
      this.headerBytes = -1;
    }
    if (this.headerBytes !== bytes) {
      this.header = this.storage.subarray(0, bytes);
      this.headerBytes = bytes;
    }
    return this.view;
  }

  /** Copies a short payload behind the header, which headerView() has made room for. */
  packPayload(from: Iov): void {
    const at = this.headerBytes;
    const { bytes } = from;
    if (this.packedBytes !== bytes || this.packedAt !== at) {
      this.packedPayload = bytes === 0 ? EMPTY_VIEWS : [this.storage.subarray(at, at + bytes)];
      this.packedAt = at;
      this.packedBytes = bytes;
    }
    from.copyTo(this.storage, at);
    this.payload = this.packedPayload;
    this.payloadBytes = bytes;
    this.packed = true;
  }
}
