// A message buffer as a list of byte views (gather on send, scatter on receive).

/** Up to here a loop is faster than a call of set(), which costs about 50 ns (Node 20). */
const LOOP_BYTES_MAX = 48;

/** A list of views that together are one message buffer. The views alias the user's memory; nothing is copied. */
export class Iov {
  readonly views: readonly Uint8Array[];
  /** Total length in bytes. */
  readonly bytes: number;

  constructor(views: readonly Uint8Array[]) {
    this.views = views;
    let bytes = 0;
    for (const view of views) bytes += view.length;
    this.bytes = bytes;
  }

  get isContiguous(): boolean {
    return this.views.length <= 1;
  }

  /** Its memory was taken away: transferred elsewhere, or a WebAssembly memory grew, which detaches every view of it. */
  get isGone(): boolean {
    const { views } = this;
    if (views.length === 1) return views[0].length !== this.bytes;
    let bytes = 0;
    for (let i = 0; i < views.length; i++) bytes += views[i].length;
    return bytes !== this.bytes;
  }

  /** Views of the bytes [from, to). Whoever asks has seen that the memory is not gone. */
  slice(from: number, to: number): Uint8Array[] {
    if (to <= from) return [];
    if (this.views.length === 1) {
      const only = this.views[0];
      return from === 0 && to === only.length ? [only] : [only.subarray(from, to)];
    }
    const out: Uint8Array[] = [];
    let at = 0;
    for (const view of this.views) {
      const end = at + view.length;
      if (end > from && at < to) out.push(view.subarray(Math.max(0, from - at), Math.min(view.length, to - at)));
      at = end;
      if (at >= to) break;
    }
    return out;
  }

  /** Copies everything to `target` from its byte `at` on. */
  copyTo(target: Uint8Array, at: number): void {
    let to = at;
    for (let v = 0; v < this.views.length; v++) {
      const view = this.views[v];
      const { length } = view;
      if (length <= LOOP_BYTES_MAX) for (let i = 0; i < length; i++) target[to + i] = view[i];
      else target.set(view, to);
      to += length;
    }
  }

  /** copyIn() at 0 of `bytes` bytes that `words` holds from the index `at` on, in the order of a little-endian machine. */
  copyWordsIn(words: Int32Array, at: number, bytes: number): number {
    if (bytes === 0) return 0;
    const { views } = this;
    if (views.length === 1 && bytes <= LOOP_BYTES_MAX) {
      const only = views[0];
      if (bytes <= only.length) {
        const whole = bytes & ~3;
        let to = 0;
        let from = at;
        for (; to < whole; to += 4) {
          const word = words[from++];
          only[to] = word;
          only[to + 1] = word >> 8;
          only[to + 2] = word >> 16;
          only[to + 3] = word >> 24;
        }
        for (let word = to < bytes ? words[from] : 0; to < bytes; to++, word >>= 8) only[to] = word;
        return bytes;
      }
    }
    return this.copyIn(0, new Uint8Array(words.buffer, words.byteOffset + at * 4, bytes));
  }

  /** Writes `data` at `offset`; what does not fit is left out. Returns the bytes written, -1 when the memory is gone. */
  copyIn(offset: number, data: Uint8Array): number {
    if (offset === 0 && this.views.length === 1) {
      const only = this.views[0];
      const bytes = data.length;
      if (bytes <= only.length) {
        if (bytes <= LOOP_BYTES_MAX) for (let i = 0; i < bytes; i++) only[i] = data[i];
        else only.set(data);
        return bytes;
      }
    }
    if (this.isGone) return -1;
    const room = Math.max(0, Math.min(data.length, this.bytes - offset));
    let at = 0;
    for (const view of this.slice(offset, offset + room)) {
      view.set(data.subarray(at, at + view.length));
      at += view.length;
    }
    return room;
  }
}

export const EMPTY_BYTES = new Uint8Array(0);
export const EMPTY_VIEWS: readonly Uint8Array[] = [];
export const EMPTY_IOV = new Iov(EMPTY_VIEWS);
