// Short calls through shared memory that the native part makes in one step (native/addon/src/shm/shared-call.h): each rank puts what it contributes,
// waits for all others for a moment, and takes the result. It is what the steps of such a call do (steps.ts), which take over wherever that
// is not enough: V8 has not compiled those for the first thousands of calls.
import { type CombineArray, SHARED_CALL, SHARED_CALL_LENGTH } from '../../../native/binding.ts';
import { CROWDED_LOOKS, LOOKS, LOOKS_PER_YIELD, TAKEN_AWAY_MS } from '../../../progress/memory-watch.ts';
import type { Op } from '../../op.ts';
import type { Elements } from '../memory.ts';
import type { Scope } from '../scope.ts';
import { CONTRIBUTION, callAfter, FLAT_MAX, SHORT_BYTES, type SharedSegment } from './segment.ts';

const NONE = -1;
const NOTHING = new Uint8Array(0);

/** What this rank does in such a call. */
export interface AtOnce {
  /** It puts something, or says that it has come. */
  readonly puts: boolean;
  /** What it puts; empty where it only says that it has come. */
  readonly own: Uint8Array;
  readonly ownBytes: number;
  /** The length that every rank gives. */
  readonly bytes: number;
  /** It waits for the ranks [from, until). */
  readonly from: number;
  readonly until: number;
  /** How the contributions of all are combined, by its number in the native part; or NONE. */
  readonly op: number;
  /** The rank whose contribution is the result, or NONE. */
  readonly source: number;
  /** Where the result goes; undefined for a rank that gets no result. */
  readonly out: CombineArray | undefined;
}

/** Such a call fits where all others look for it, and everybody looks at everybody. */
export const isShort = ({ size }: Scope, bytes: number): boolean => size > 1 && size <= FLAT_MAX && bytes <= SHORT_BYTES;

/** Everybody waits for everybody. */
export function barrierAtOnce({ size }: Scope): AtOnce {
  return { puts: true, own: NOTHING, ownBytes: 0, bytes: 0, from: 0, until: size, op: NONE, source: NONE, out: undefined };
}

/** Where calls are checked, everybody says which one it makes, and waits for everybody to. */
export function bcastAtOnce({ rank, size, tuning }: Scope, data: Uint8Array, root: number): AtOnce {
  const isRoot = rank === root;
  const waits = tuning.checkSignatures ? { from: 0, until: size } : isRoot ? { from: 0, until: 0 } : { from: root, until: root + 1 };
  const out = isRoot || data.length === 0 ? undefined : data;
  const puts = isRoot || tuning.checkSignatures;
  const own = isRoot ? data : NOTHING;
  return { puts, own, ownBytes: own.length, bytes: data.length, ...waits, op: NONE, source: root, out };
}

/** `into`: where this rank gets the result. Undefined where the native part does not know the operation. */
export function reductionAtOnce({ size, tuning, proc }: Scope, from: Elements, into: Elements | undefined, op: Op): AtOnce | undefined {
  const code = op.isOfUser ? undefined : proc.nativeKernels?.codeOf(op.name, from.arrayName);
  if (code === undefined) return undefined;
  const { bytes } = from;
  const until = into === undefined && !tuning.checkSignatures ? 0 : size;
  const out = bytes.length === 0 ? undefined : (into?.array as CombineArray | undefined);
  return { puts: true, own: bytes, ownBytes: bytes.length, bytes: bytes.length, from: 0, until, op: code, source: NONE, out };
}

/** What the native part is told of the calls in one segment. */
export class Plan {
  private readonly segment: SharedSegment;
  private readonly words = new Int32Array(SHARED_CALL_LENGTH);

  constructor(segment: SharedSegment, rank: number, isCrowded: boolean) {
    const { words } = this;
    this.segment = segment;
    words[SHARED_CALL.stride] = segment.clearAt(1) - segment.clearAt(0);
    words[SHARED_CALL.members] = segment.members;
    words[SHARED_CALL.rank] = rank;
    words[SHARED_CALL.clearAt] = segment.clearAt(rank);
    words[SHARED_CALL.bellAt] = segment.bellAt(rank);
    words[SHARED_CALL.looks] = isCrowded ? CROWDED_LOOKS : LOOKS;
    words[SHARED_CALL.looksPerYield] = isCrowded ? 1 : LOOKS_PER_YIELD;
    words[SHARED_CALL.takenAwayUs] = TAKEN_AWAY_MS * 1000;
  }

  /** Of the call with that number; good until the next one. */
  of(call: number, code: number, { bytes, puts, from, until, op, source }: AtOnce): Int32Array {
    const { words } = this;
    words[SHARED_CALL.flagAt] = this.segment.flagAt(0, CONTRIBUTION, call);
    words[SHARED_CALL.call] = call;
    words[SHARED_CALL.nextCall] = callAfter(call);
    words[SHARED_CALL.code] = code;
    words[SHARED_CALL.bytes] = bytes;
    words[SHARED_CALL.puts] = puts ? 1 : 0;
    words[SHARED_CALL.from] = from;
    words[SHARED_CALL.until] = until;
    words[SHARED_CALL.op] = op;
    words[SHARED_CALL.source] = source;
    return words;
  }
}
