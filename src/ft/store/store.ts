// A place for images: four methods, which a program may write itself. What is put is there whole or not at all.
import { MultirailError } from '../../errors.ts';

/** An object of a store. */
export interface StoreEntry {
  /** Its key. */
  readonly key: string;
  /** Its length. */
  readonly bytes: number;
}

/** Options of Store.put(). */
export interface PutOptions {
  /** Ends the write; nothing is left of it under the key. */
  readonly signal?: AbortSignal;
}

/**
 * A place for images. Keys are words of letters, digits, `.`, `_` and `-`, separated by `/`; a word does not begin with a dot. The library
 * comes with fileStore(), s3Store() and memoryStore(); another class with these methods will do as well.
 */
export interface Store {
  /**
   * Writes an object, or replaces it: readers see the old one or the new one, whole. The parts must stay as they are until the promise has
   * settled.
   *
   * @param key Its key.
   * @param parts Its bytes, one part after the other.
   * @param options `signal` ends the write.
   * @throws ERR_STORE: it could not be written, and `cause` says why; what was there before is still there.
   * @throws ERR_ABORTED: `signal` was aborted.
   * @throws ERR_ARG: the key is not one.
   */
  put(key: string, parts: readonly Uint8Array[], options?: PutOptions): Promise<void>;

  /**
   * Reads an object.
   *
   * @param key Its key.
   * @param into Memory that takes it, at least as long as the object; new memory unless given.
   * @throws ERR_CHECKPOINT: there is no object with this key.
   * @throws ERR_STORE: it could not be read, and `cause` says why.
   * @throws ERR_BUFFER: `into` is too short; the text says how long it must be.
   * @throws ERR_ARG: the key is not one.
   */
  get(key: string, into?: Uint8Array): Promise<Uint8Array>;

  /**
   * Lists the objects whose keys begin with `prefix`, in order of their keys.
   *
   * @param prefix Begin of the keys; empty for all.
   * @throws ERR_STORE: the store could not be asked, and `cause` says why.
   */
  list(prefix: string): Promise<StoreEntry[]>;

  /**
   * Removes objects, in this order. Keys that are not there count as removed.
   *
   * @param keys Their keys.
   * @throws ERR_STORE: one could not be removed, and `cause` says why; those after it are still there.
   * @throws ERR_ARG: a key is not one.
   */
  remove(keys: readonly string[]): Promise<void>;
}

const WORD = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;
const KEY_LENGTH_MAX = 512;

/** Throws ERR_ARG unless this is a key: nothing that it names lies outside of the store. */
export function requireKey(key: string): void {
  if (typeof key !== 'string' || key.length > KEY_LENGTH_MAX || !key.split('/').every((word) => WORD.test(word)))
    throw new MultirailError(
      'ERR_ARG',
      `key ${JSON.stringify(key)} of a store: expected words of letters, digits, ".", "_" and "-" with "/" between them, at most ${KEY_LENGTH_MAX} characters`,
    );
}

/** ERR_ABORTED when the signal is aborted. */
export function requireNotAborted(signal: AbortSignal | undefined, what: string): void {
  if (signal?.aborted === true) throw new MultirailError('ERR_ABORTED', `${what} was ended by its signal`, { cause: signal.reason });
}

/** Bytes of all parts together. */
export const bytesOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, { length }) => sum + length, 0);

/** Memory for an object of `bytes` bytes: what was handed in, or new memory. */
export function roomFor(key: string, bytes: number, into: Uint8Array | undefined): Uint8Array {
  if (into === undefined) return new Uint8Array(bytes);
  if (into.length < bytes)
    throw new MultirailError('ERR_BUFFER', `${key} has ${bytes} bytes, and the memory for it has ${into.length}: make it longer`);
  return into.subarray(0, bytes);
}

export const notThere = (key: string, where: string): MultirailError =>
  new MultirailError('ERR_CHECKPOINT', `there is no ${key} in ${where}: list() says what there is`);
