// What every rank must say alike when it makes a collective call: which call, its root, the class of its elements, its operation, its
// lengths. It travels as 32 bits with each message of the call (docs/internals/PROTOCOL.md has the formula), so that the first message from a rank
// that makes another call tells of it.
//
//   bits 27-31  call          bits 23-26  class of the elements, 0: bytes        bits 19-22  operation
//   bits 0-18   hash of root, length and what else must agree
import type { MultirailError } from '../../errors.ts';
import type { Op } from '../op.ts';
import type { ArrayName } from './kernels.ts';

/** By number on the wire. */
export const CALL_NAMES = [
  '',
  'barrier',
  'bcast',
  'reduce',
  'allreduce',
  'gather',
  'gatherv',
  'scatter',
  'scatterv',
  'allgather',
  'allgatherv',
  'alltoall',
  'alltoallv',
  'alltoallw',
  'reduceScatter',
  'reduceScatterBlock',
  'scan',
  'exscan',
  'bcastObject',
  'gatherObject',
  'allgatherObject',
  'scatterObject',
  'alltoallObject',
  'reduceObject',
  'allreduceObject',
  'dup',
  'split',
  'create',
  'createGroup',
  'free',
] as const;
export type CallName = Exclude<(typeof CALL_NAMES)[number], ''>;

const CALL_NUMBERS = Object.fromEntries(CALL_NAMES.map((name, number) => [name, number])) as Readonly<Record<CallName, number>>;

/** By number on the wire; 0 is bytes, which go with every class. */
const CLASS_NUMBERS: Readonly<Record<ArrayName, number>> = {
  Int8Array: 1,
  Uint8Array: 2,
  Uint8ClampedArray: 3,
  Int16Array: 4,
  Uint16Array: 5,
  Int32Array: 6,
  Uint32Array: 7,
  Float16Array: 8,
  Float32Array: 9,
  Float64Array: 10,
  BigInt64Array: 11,
  BigUint64Array: 12,
};
const CLASS_BITS = 0b1111 << 23;

/** By number on the wire; 0 where there is no operation, and 13 for those that Op.create() makes. */
const OP_NUMBERS: Readonly<Record<string, number>> = {
  SUM: 1,
  PROD: 2,
  MAX: 3,
  MIN: 4,
  LAND: 5,
  LOR: 6,
  LXOR: 7,
  BAND: 8,
  BOR: 9,
  BXOR: 10,
  MAXLOC: 11,
  MINLOC: 12,
};
const OP_OF_USER = 13;

/** What all ranks must give alike; which of it there is depends on the call. */
export interface SignedFields {
  root?: number;
  /** Class of the elements. Of what is only moved, Uint8Array counts as bytes. */
  arrayName?: ArrayName | undefined;
  /** A length. */
  bytes?: number;
  op?: Op;
  /** A length for each rank. */
  lengths?: readonly number[];
}

export class Signature {
  readonly name: CallName;
  readonly root: number | undefined;
  readonly arrayName: ArrayName | undefined;
  readonly bytes: number | undefined;
  readonly op: Op | undefined;
  private readonly lengths: readonly number[] | undefined;
  /** 32 bits, never 0. */
  readonly code: number;

  constructor(name: CallName, { root, arrayName, bytes, op, lengths }: SignedFields = {}) {
    this.name = name;
    this.root = root;
    this.arrayName = arrayName;
    this.bytes = bytes;
    this.op = op;
    this.lengths = lengths;
    const classNumber = arrayName === undefined || (op === undefined && arrayName === 'Uint8Array') ? 0 : CLASS_NUMBERS[arrayName];
    let opNumber = 0;
    let extra = 0;
    if (op !== undefined) {
      opNumber = op.isOfUser ? OP_OF_USER : OP_NUMBERS[op.name];
      // Names of functions may differ; how their operands may be taken apart decides about the algorithm.
      if (op.isOfUser) extra = op.unit * 2 + (op.commute ? 1 : 0);
    }
    if (lengths !== undefined) for (const length of lengths) extra = mix(extra, length);
    const hash = mix(mix(mix(0, root === undefined ? 0 : root + 1), bytes ?? 0), extra >>> 0);
    this.code = ((CALL_NUMBERS[name] << 27) | (classNumber << 23) | (opNumber << 19) | (hash >>> 13)) >>> 0;
  }

  /** For people. */
  toString(): string {
    const { root, arrayName, bytes, op, lengths } = this;
    const parts: string[] = [];
    if (arrayName !== undefined) parts.push(arrayName);
    if (bytes !== undefined) parts.push(`${bytes} bytes`);
    if (lengths !== undefined) parts.push(`${lengths.slice(0, 8).join(' + ')}${lengths.length > 8 ? ' + …' : ''} bytes`);
    if (op !== undefined) parts.push(op.isOfUser ? `${op.name}, ${op.commute ? '' : 'not '}commutative, unit ${op.unit}` : op.name);
    if (root !== undefined) parts.push(`root ${root}`);
    return `${this.name}(${parts.join(', ')})`;
  }
}

const KNOWN_MAX = 4;

/** Programs make a few calls again and again: each is signed once. */
export class KnownSignatures {
  private readonly known: Signature[] = [];
  private next = 0;

  of(name: CallName, root?: number, arrayName?: ArrayName, bytes?: number, op?: Op): Signature {
    const { known } = this;
    for (let i = 0; i < known.length; i++) {
      const one = known[i];
      if (one.bytes === bytes && one.name === name && one.op === op && one.arrayName === arrayName && one.root === root) return one;
    }
    const made = new Signature(name, { root, arrayName, bytes, op } as SignedFields);
    known[this.next] = made;
    this.next = (this.next + 1) % KNOWN_MAX;
    return made;
  }
}

/** Calls of which it is known what they were: a call that came later may have taken the place of one that many lie behind. */
const LEDGER_CALLS = 64;

interface LedgerEntry {
  tag: number;
  signature: Signature;
  /** Calls that had begun before it. */
  order: number;
  /** It has ended with an error, or its mismatch was told. */
  failed: boolean;
}

/** The calls that a communicator has begun last, by tag, and the first message of each that came before its call. */
export class Ledger {
  private readonly begun: (LedgerEntry | undefined)[] = [];
  private readonly earlyTags = new Int32Array(LEDGER_CALLS).fill(-1);
  private readonly earlyCodes = new Uint32Array(LEDGER_CALLS);
  private readonly earlySources = new Int32Array(LEDGER_CALLS);
  private begunCount = 0;
  /** The error of a call that had ended well when it came to light: the next one ends with it. */
  late: { readonly error: MultirailError; readonly tag: number } | undefined;

  /** Returns how many had begun before it. */
  begin(tag: number, signature: Signature): number {
    const order = this.begunCount++;
    const at = tag % LEDGER_CALLS;
    const entry = this.begun[at];
    if (entry === undefined) this.begun[at] = { tag, signature, order, failed: false };
    else {
      entry.tag = tag;
      entry.signature = signature;
      entry.order = order;
      entry.failed = false;
    }
    return order;
  }

  failed(tag: number): void {
    const entry = this.find(tag);
    if (entry !== undefined) entry.failed = true;
    if (this.late?.tag === tag) this.late = undefined;
  }

  find(tag: number): LedgerEntry | undefined {
    const entry = this.begun[tag % LEDGER_CALLS];
    return entry?.tag === tag ? entry : undefined;
  }

  /** A message of a call that has not begun here. */
  noteEarly(tag: number, source: number, code: number): void {
    const at = tag % LEDGER_CALLS;
    this.earlyTags[at] = tag;
    this.earlyCodes[at] = code;
    this.earlySources[at] = source;
  }

  earlyCode(tag: number): number {
    return this.earlyCodes[tag % LEDGER_CALLS];
  }

  /** The rank that has sent for that call and makes another one; -1 when there is no such rank. */
  earlyStranger(tag: number, code: number): number {
    const at = tag % LEDGER_CALLS;
    return this.earlyTags[at] !== tag || agree(this.earlyCodes[at], code) ? -1 : this.earlySources[at];
  }
}

/** Both halves of a whole number below 2^53. */
function mix(hash: number, value: number): number {
  const low = Math.imul(hash ^ (value | 0), 0x9e3779b1);
  const folded = low ^ (low >>> 15);
  const high = value > 0xffff_ffff ? Math.floor(value / 2 ** 32) : 0;
  return Math.imul(folded ^ high, 0x85ebca6b);
}

/** Two ranks make the same call, as far as the bits tell. 0 says nothing; bytes go with every class. */
export function agree(a: number, b: number): boolean {
  if (a === b || a === 0 || b === 0) return true;
  return ((a ^ b) & ~CLASS_BITS) === 0 && ((a & CLASS_BITS) === 0 || (b & CLASS_BITS) === 0);
}

/** What the bits alone tell of a call, for people. */
export function describeCode(code: number): string {
  const className = Object.entries(CLASS_NUMBERS).find(([, number]) => number === ((code >>> 23) & 15))?.[0];
  const opNumber = (code >>> 19) & 15;
  const op =
    opNumber === OP_OF_USER ? 'an operation of the user' : Object.entries(OP_NUMBERS).find(([, number]) => number === opNumber)?.[0];
  const name = CALL_NAMES[code >>> 27] || 'an unknown call';
  return `${name}(${[className, op, '…'].filter((part) => part !== undefined).join(', ')})`;
}
