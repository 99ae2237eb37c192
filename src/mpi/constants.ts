// The constants of the interface, and the checks of arguments that every call shares.
import { MultirailError } from '../errors.ts';

/** As the source of a receive or probe: a message of any rank of the communicator matches (MPI-4.1, section 3.2.4). */
export const ANY_SOURCE = -1;
/** As the tag of a receive or probe: any tag matches (MPI-4.1, section 3.2.4). */
export const ANY_TAG = -1;
/** A rank that is nobody: sends to it and receives from it end at once, with no data (MPI-4.1, section 3.11). */
export const PROC_NULL = -2;
/** Means no colour, no rank, no index, or not a whole number of elements. */
export const UNDEFINED = -3;
/** Highest tag (MPI-4.1, section 9.1). */
export const TAG_UB = 2 ** 31 - 1;

/** When a call ends before its time. */
export interface CallOptions {
  /**
   * Ends the call with ERR_ABORTED when it is aborted. A receive or probe that has not matched is taken back; a receive that has matched
   * goes on to its end, and the call resolves as if nothing had happened. A send takes its place in the order of messages at once and
   * cannot be taken back: when it has not ended by then, what has not left is copied, the buffer is the caller's again, and **the message
   * may still arrive**. (Copies are bounded by pml_abandoned_bytes_max: beyond it, and while a transport still reads the buffer, the call
   * goes on, and waits() says why.) Large messages of such sends are not read out of the caller's memory by their receiver. A collective
   * ends at every rank where it has not ended.
   */
  signal?: AbortSignal | undefined;
  /** As `signal`, after this many milliseconds, with ERR_TIMEOUT; without it the call waits for as long as it takes. */
  timeoutMs?: number | undefined;
}

/** When a blocking call ends before its time: no signal can come while it blocks. */
export interface SyncOptions {
  /** Milliseconds after which the call ends with ERR_TIMEOUT, as with CallOptions; without it, it waits for as long as it takes. */
  timeoutMs?: number | undefined;
}

const CALL_KEYS: readonly string[] = ['signal', 'timeoutMs'];
export const SYNC_KEYS: readonly string[] = ['timeoutMs'];

/** What was given, for error messages. */
export function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object' || value === null) return String(value);
  const name = value.constructor?.name ?? '';
  return name === '' || name === 'Object' ? 'an object' : `an object of class ${name}`;
}

/** ERR_COUNT for a list that has not one entry for each rank. `more`: what else would do. */
export function checkForEachRank(list: { readonly length: number }, size: number, name: string, more = ''): void {
  if (list.length === size) return;
  const text = `${name} has ${list.length} ${list.length === 1 ? 'entry' : 'entries'}; expected ${size}, one for each rank of the communicator`;
  throw new MultirailError('ERR_COUNT', `${text}${more}`);
}

/** A rank that can be sent to: 0 to size - 1, or PROC_NULL. */
export function checkDest(dest: unknown, size: number, name = 'dest'): void {
  if (Number.isInteger(dest) && (dest as number) >= 0 && (dest as number) < size) return;
  if (dest === PROC_NULL) return;
  throw new MultirailError('ERR_RANK', `${name} is ${describe(dest)}; expected a rank from 0 to ${size - 1}, or PROC_NULL`);
}

/** A rank that can be received from: 0 to size - 1, ANY_SOURCE or PROC_NULL. */
export function checkSource(source: unknown, size: number, name = 'source'): void {
  if (Number.isInteger(source) && (source as number) >= 0 && (source as number) < size) return;
  if (source === ANY_SOURCE || source === PROC_NULL) return;
  throw new MultirailError('ERR_RANK', `${name} is ${describe(source)}; expected a rank from 0 to ${size - 1}, ANY_SOURCE or PROC_NULL`);
}

export function checkSendTag(tag: unknown, name = 'tag'): void {
  if (Number.isInteger(tag) && (tag as number) >= 0 && (tag as number) <= TAG_UB) return;
  throw new MultirailError('ERR_TAG', `${name} is ${describe(tag)}; expected a whole number from 0 to ${TAG_UB}`);
}

export function checkRecvTag(tag: unknown, name = 'tag'): void {
  if (Number.isInteger(tag) && (tag as number) >= 0 && (tag as number) <= TAG_UB) return;
  if (tag === ANY_TAG) return;
  throw new MultirailError('ERR_TAG', `${name} is ${describe(tag)}; expected a whole number from 0 to ${TAG_UB}, or ANY_TAG`);
}

export function checkCount(count: unknown, name: string): void {
  if (Number.isSafeInteger(count) && (count as number) >= 0) return;
  throw new MultirailError('ERR_COUNT', `${name} is ${describe(count)}; expected a whole number that is not negative`);
}

/** Throws ERR_ARG for a value that is not an object, and for an unknown option: that is a slip of the pen, and would do nothing. */
export function checkKeys(options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    throw new MultirailError('ERR_ARG', `options is ${describe(options)}; expected an object`);
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const text = known.length === 0 ? 'there are none' : `expected ${known.join(', ')}`;
    throw new MultirailError('ERR_ARG', `options.${key} is no option of this call; ${text}`);
  }
}

export function checkSyncOptions(options: SyncOptions | undefined): void {
  checkOptions(options, SYNC_KEYS);
}

export function checkOptions(options: CallOptions | undefined, known = CALL_KEYS): void {
  if (options === undefined) return;
  checkKeys(options, known);
  const { signal, timeoutMs } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new MultirailError('ERR_ARG', `options.signal is ${describe(signal)}; expected an AbortSignal`);
  }
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0)) {
    throw new MultirailError('ERR_ARG', `options.timeoutMs is ${describe(timeoutMs)}; expected milliseconds, 0 or more`);
  }
  if (signal?.aborted) throw abortedError(signal);
}

export function abortedError(signal: AbortSignal): MultirailError {
  return new MultirailError('ERR_ABORTED', 'the signal that was passed to the call is aborted', { cause: signal.reason });
}

/** What did not happen in time. */
export const NO_MATCH = 'nothing matched';
export const NOT_SENT = 'the send did not end';
export const NOT_EXCHANGED = 'the exchange did not end';

export function timeoutError(timeoutMs: number, what: string = NO_MATCH): MultirailError {
  const more = what !== NO_MATCH ? '; its message may still arrive' : '';
  return new MultirailError('ERR_TIMEOUT', `${what} within ${timeoutMs} ms${more}`);
}

/** The call can end before its time. */
export function canEnd(options: CallOptions | undefined): boolean {
  return options !== undefined && (options.signal !== undefined || isTimed(options.timeoutMs));
}

function isTimed(timeoutMs: number | undefined): timeoutMs is number {
  return timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY;
}

/** What an aborted signal calls. One listener for each signal: Node warns of a leak where one has more than ten. */
const watched = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `onAbort` when the signal is aborted. Returns what takes that back. */
function watchSignal(signal: AbortSignal, onAbort: () => void): () => void {
  let callbacks = watched.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    watched.set(signal, callbacks);
  }
  const all = callbacks;
  if (all.size === 0) signal.addEventListener('abort', tellAborted);
  all.add(onAbort);
  return () => {
    if (all.delete(onAbort) && all.size === 0) signal.removeEventListener('abort', tellAborted);
  };
}

function tellAborted(this: AbortSignal): void {
  const callbacks = watched.get(this);
  watched.delete(this);
  for (const onAbort of callbacks ?? []) onAbort();
}

/** Node's timers take whole milliseconds up to this many; longer ones are cut down to it (25 days). */
const TIMER_MAX_MS = 0x7fff_ffff;

/** Calls `end` once, when the signal is aborted or the time is over. Returns what takes both back. */
export function watchEnd(
  options: CallOptions | undefined,
  end: (error: MultirailError) => void,
  what: string = NO_MATCH,
): (() => void) | undefined {
  if (options === undefined) return undefined;
  const { signal, timeoutMs } = options;
  if (!canEnd(options)) return undefined;
  let timer: NodeJS.Timeout | undefined;
  let unwatch: (() => void) | undefined;
  const release = () => {
    clearTimeout(timer);
    unwatch?.();
  };
  if (signal !== undefined) {
    unwatch = watchSignal(signal, () => {
      release();
      end(abortedError(signal));
    });
  }
  if (isTimed(timeoutMs)) {
    timer = setTimeout(
      () => {
        release();
        end(timeoutError(timeoutMs, what));
      },
      Math.min(timeoutMs, TIMER_MAX_MS),
    );
  }
  return release;
}
