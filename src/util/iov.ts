// A message buffer as a list of byte views (gather on send, scatter on receive). Imports nothing.

/** A list of views that together are one message buffer. The views alias the user's memory; nothing is copied. */
export class Iov {
  readonly views: readonly Uint8Array[];
  /** Total length in bytes. */
  readonly bytes: number;

  constructor(views: readonly Uint8Array[]) {
    this.views = views;
    let bytes = 0;
    for (const view of views) bytes += view.byteLength;
    this.bytes = bytes;
  }

  get isContiguous(): boolean {
    return this.views.length <= 1;
  }

  /** Views of the bytes [from, to). */
  slice(from: number, to: number): Uint8Array[] {
    if (to <= from) return [];
    if (this.views.length === 1) {
      const only = this.views[0];
      return from === 0 && to === only.byteLength ? [only] : [only.subarray(from, to)];
    }
    const out: Uint8Array[] = [];
    let at = 0;
    for (const view of this.views) {
      const end = at + view.byteLength;
      if (end > from && at < to) out.push(view.subarray(Math.max(0, from - at), Math.min(view.byteLength, to - at)));
      at = end;
      if (at >= to) break;
    }
    return out;
  }

  /** A copy of the bytes [from, to) in one piece. */
  copyOut(from: number, to: number): Uint8Array {
    const copy = new Uint8Array(to - from);
    let at = 0;
    for (const view of this.slice(from, to)) {
      copy.set(view, at);
      at += view.byteLength;
    }
    return copy;
  }

  /** Writes `data` at `offset`; what does not fit is left out. Returns the bytes written. */
  copyIn(offset: number, data: Uint8Array): number {
    const room = Math.max(0, Math.min(data.byteLength, this.bytes - offset));
    let at = 0;
    for (const view of this.slice(offset, offset + room)) {
      view.set(data.subarray(at, at + view.byteLength));
      at += view.byteLength;
    }
    return room;
  }
}

export const EMPTY_BYTES = new Uint8Array(0);
export const EMPTY_IOV = new Iov([]);
