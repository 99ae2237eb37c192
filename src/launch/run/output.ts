// The ranks' output on its way through the launcher: whole lines, each with its rank; and standard input on its way in.
import type { Readable, Writable } from 'node:stream';
import { Transform, type TransformCallback } from 'node:stream';

/** A line that is longer than this is cut: a program that never ends its line must not fill the launcher's memory. */
export const LINE_BYTES_MAX = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * Puts a prefix before every line. What leaves is always made of whole lines, so that the lines of several ranks never mix; a
 * line longer than the bound leaves in pieces, each a line of its own, cut between characters of UTF-8.
 */
export class LinePrefixer extends Transform {
  private readonly prefix: Buffer;
  private readonly lineBytesMax: number;
  /** The line that has begun, in the pieces in which it came. */
  private kept: Buffer[] = [];
  private keptBytes = 0;

  constructor(prefix: string, lineBytesMax = LINE_BYTES_MAX) {
    super();
    this.prefix = Buffer.from(prefix);
    this.lineBytesMax = lineBytesMax;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const out: Buffer[] = [];
    let at = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, at);
      this.keep(out, chunk.subarray(at, newline < 0 ? chunk.length : newline));
      if (newline < 0) break;
      this.endLine(out);
      at = newline + 1;
    }
    // A copy, so that a short rest does not hold the whole chunk.
    const last = this.kept.length - 1;
    if (last >= 0) this.kept[last] = Buffer.from(this.kept[last]);
    done(null, out.length === 0 ? undefined : Buffer.concat(out));
  }

  override _flush(done: TransformCallback): void {
    const out: Buffer[] = [];
    if (this.keptBytes > 0) this.endLine(out);
    done(null, out.length === 0 ? undefined : Buffer.concat(out));
  }

  private keep(out: Buffer[], part: Buffer): void {
    if (part.length === 0) return;
    this.kept.push(part);
    this.keptBytes += part.length;
    if (this.keptBytes <= this.lineBytesMax) return;
    const bytes = Buffer.concat(this.kept);
    let at = 0;
    while (bytes.length - at > this.lineBytesMax) {
      const cut = cutBetweenCharacters(bytes, at, at + this.lineBytesMax);
      out.push(this.prefix, bytes.subarray(at, cut), Buffer.of(NEWLINE));
      at = cut;
    }
    this.kept = [Buffer.from(bytes.subarray(at))];
    this.keptBytes = bytes.length - at;
  }

  private endLine(out: Buffer[]): void {
    out.push(this.prefix, ...this.kept, Buffer.of(NEWLINE));
    this.kept = [];
    this.keptBytes = 0;
  }
}

/** The largest index in (from, to] at which a character of UTF-8 begins; `to` when these bytes are no UTF-8. */
function cutBetweenCharacters(bytes: Buffer, from: number, to: number): number {
  let cut = to;
  while (cut > from && cut > to - 4 && (bytes[cut] & 0xc0) === 0x80) cut--;
  return cut > from && (bytes[cut] & 0xc0) !== 0x80 ? cut : to;
}

/**
 * Copies one input to several outputs at the pace of the slowest, and ends them with it. An output that goes away is left
 * out. Returns the function that stops this and lets go of the source.
 */
export function pumpInput(source: Readable, targets: Writable[]): () => void {
  const live = new Set(targets);
  const full = new Set<Writable>();
  const gone = (target: Writable) => {
    live.delete(target);
    full.delete(target);
    if (live.size === 0) stop();
    else if (full.size === 0) source.resume();
  };
  const onData = (chunk: Buffer) => {
    for (const target of live) {
      if (!target.write(chunk)) full.add(target);
    }
    if (full.size > 0) source.pause();
  };
  const onEnd = () => {
    for (const target of live) target.end();
  };
  const stop = () => {
    source.off('data', onData);
    source.off('end', onEnd);
    source.off('error', onEnd);
    source.pause();
    // A terminal or pipe that is still read would keep the launcher alive.
    (source as Readable & { unref?: () => void }).unref?.();
  };
  for (const target of targets) {
    target.on('error', () => gone(target));
    target.on('close', () => gone(target));
    target.on('drain', () => {
      full.delete(target);
      if (full.size === 0) source.resume();
    });
  }
  source.on('data', onData);
  source.on('end', onEnd);
  source.on('error', onEnd);
  return stop;
}
