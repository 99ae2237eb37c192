// Images of the profile `group` as bytes: where the program is, its numbers, and what it has sent to other groups.
import type { Lacks } from '../../src/ft/groups/group-lacks.ts';
import type { GroupNumbers } from '../../src/ft/groups/group-saves.ts';

export interface LoggedRow {
  /** Rank. */
  readonly to: number;
  readonly ctx: number;
  readonly tag: number;
  readonly seq: number;
  readonly signature: number;
  readonly sync: boolean;
  readonly payload: Uint8Array;
}

/** Peers and sources are ranks. */
export interface GroupedImage {
  readonly place: number;
  readonly state: number;
  /** Calls in which the program may save, so far. */
  readonly attempts: number;
  readonly numbers: GroupNumbers;
  readonly lacks: Lacks;
  readonly logged: readonly LoggedRow[];
}

interface Head extends Omit<GroupedImage, 'logged' | 'numbers'> {
  readonly flows: GroupNumbers['flows'];
  readonly unexpected: readonly (Omit<GroupNumbers['unexpected'][number], 'payload'> & { readonly bytes: number })[];
  readonly rows: readonly (Omit<LoggedRow, 'payload'> & { readonly bytes: number })[];
}

export function encodeGroupedImage({ numbers, logged, ...rest }: GroupedImage): Uint8Array {
  const head: Head = {
    ...rest,
    flows: numbers.flows,
    unexpected: numbers.unexpected.map(({ payload, ...message }) => ({ ...message, bytes: payload.length })),
    rows: logged.map(({ payload, ...row }) => ({ ...row, bytes: payload.length })),
  };
  const text = new TextEncoder().encode(JSON.stringify(head));
  const payloads = [...numbers.unexpected, ...logged].map(({ payload }) => payload);
  const image = new Uint8Array(4 + text.length + payloads.reduce((sum, { length }) => sum + length, 0));
  new DataView(image.buffer).setUint32(0, text.length);
  image.set(text, 4);
  let at = 4 + text.length;
  for (const payload of payloads) {
    image.set(payload, at);
    at += payload.length;
  }
  return image;
}

export function decodeGroupedImage(image: Uint8Array): GroupedImage {
  const length = new DataView(image.buffer, image.byteOffset).getUint32(0);
  const { flows, unexpected, rows, ...rest } = JSON.parse(new TextDecoder().decode(image.subarray(4, 4 + length))) as Head;
  let at = 4 + length;
  const take = (bytes: number): Uint8Array => {
    at += bytes;
    return image.slice(at - bytes, at);
  };
  const messages = unexpected.map(({ bytes, ...message }) => ({ ...message, payload: take(bytes) }));
  return { ...rest, numbers: { flows, unexpected: messages }, logged: rows.map(({ bytes, ...row }) => ({ ...row, payload: take(bytes) })) };
}
