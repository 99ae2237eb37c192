// Operations of reductions: those of MPI for every kind of element that C has, and those of the program, which are functions in its table.
import { Op, type OpFunction } from '../mpi/op.ts';
import { OP_NULL } from './abi.ts';
import { fail } from './errors.ts';
import type { ArrayClass } from './linear-memory.ts';
import { hex, type Machine, type UserOp } from './machine.ts';
import type { Basic, Kind } from './types/basics.ts';
import type { Datatype } from './types/datatype.ts';
import { pack, unpack } from './types/pack.ts';

/** How elements of a type are combined: as elements of a class of arrays, with an operation of the library. */
export interface Combining {
  readonly array: ArrayClass;
  readonly op: Op;
}

const ARRAYS: Partial<Record<Kind, ArrayClass>> = {
  i8: 'Int8Array',
  char: 'Int8Array',
  u8: 'Uint8Array',
  i16: 'Int16Array',
  u16: 'Uint16Array',
  i32: 'Int32Array',
  u32: 'Uint32Array',
  i64: 'BigInt64Array',
  u64: 'BigUint64Array',
  f32: 'Float32Array',
  f64: 'Float64Array',
  bool: 'Uint8Array',
  logical: 'Int32Array',
  byte: 'Uint8Array',
};

const NAMES: Readonly<Record<number, string>> = {
  33: 'SUM',
  34: 'MIN',
  35: 'MAX',
  36: 'PROD',
  40: 'BAND',
  41: 'BOR',
  42: 'BXOR',
  48: 'LAND',
  49: 'LOR',
  50: 'LXOR',
  56: 'MINLOC',
  57: 'MAXLOC',
  60: 'REPLACE',
  61: 'NO_OP',
};

const INTEGER = 'SUM MIN MAX PROD BAND BOR BXOR LAND LOR LXOR';
const FLOAT = 'SUM MIN MAX PROD LAND LOR LXOR';
/** Which operations a kind of element has. */
const ALLOWED: Readonly<Record<Kind, string>> = {
  i8: INTEGER,
  u8: INTEGER,
  i16: INTEGER,
  u16: INTEGER,
  i32: INTEGER,
  u32: INTEGER,
  i64: INTEGER,
  u64: INTEGER,
  char: INTEGER,
  f32: FLOAT,
  f64: FLOAT,
  f128: FLOAT,
  c64: 'SUM PROD',
  c128: 'SUM PROD',
  c256: 'SUM PROD',
  bool: 'LAND LOR LXOR BAND BOR BXOR',
  logical: 'LAND LOR LXOR',
  byte: 'BAND BOR BXOR',
};

export const isPredefinedOp = (handle: number): boolean => NAMES[handle] !== undefined;

/** Operations that this file has made, by name: the same object for the same thing. */
const made = new Map<string, Op>();
function once(name: string, make: () => Op): Op {
  const known = made.get(name) ?? make();
  made.set(name, known);
  return known;
}

export function combining(m: Machine, type: Datatype, handle: number): Combining {
  const name = NAMES[handle];
  if (name === undefined) return ofProgram(m, type, handle);
  if (handle === 0x3c || handle === 0x3d) return fail('OP', `MPI_${name} is for one-sided calls only`);
  const pair = pairOf(type);
  if (pair !== undefined) return ofPairs(type, pair, name);
  const basic = basicOf(type);
  if (basic === undefined)
    return fail('OP', `MPI_${name} is not defined for datatypes that the program has made: MPI_Op_create makes operations for those`);
  if (!ALLOWED[basic.kind].split(' ').includes(name)) return fail('OP', `MPI_${name} is not defined for ${basic.name}`);
  return ofBasic(m, basic, name);
}

function basicOf(type: Datatype): Basic | undefined {
  const { shape } = type;
  if (shape.is === 'basic') return shape.basic;
  return shape.is === 'as' && shape.child.extent === type.extent ? basicOf(shape.child) : undefined;
}

type Pair = readonly [value: Basic, index: Basic];
function pairOf(type: Datatype): Pair | undefined {
  const { shape } = type;
  if (shape.is === 'as') return pairOf(shape.child);
  if (!type.isPredefined || shape.is !== 'list') return undefined;
  return [basicOf(shape.child(0)) as Basic, basicOf(shape.child(1)) as Basic];
}

const PLAIN: Readonly<Record<string, Op>> = {
  SUM: Op.SUM,
  MIN: Op.MIN,
  MAX: Op.MAX,
  PROD: Op.PROD,
  BAND: Op.BAND,
  BOR: Op.BOR,
  BXOR: Op.BXOR,
  LAND: Op.LAND,
  LOR: Op.LOR,
  LXOR: Op.LXOR,
};

function ofBasic(m: Machine, basic: Basic, name: string): Combining {
  const { kind } = basic;
  if (kind === 'f128' || kind === 'c256') return ofLongDoubles(m, basic, name);
  if (kind === 'c64' || kind === 'c128') {
    const array = kind === 'c64' ? 'Float32Array' : 'Float64Array';
    return {
      array,
      op: name === 'SUM' ? Op.SUM : once(`complex ${name}`, () => Op.create(multiplyComplex, { commute: true, unit: 2, name })),
    };
  }
  const array = ARRAYS[kind] as ArrayClass;
  if ((kind === 'f32' || kind === 'f64') && name[0] === 'L') return { array, op: once(`real ${name}`, () => logicalOfReals(name)) };
  return { array, op: PLAIN[name] };
}

const multiplyComplex: OpFunction<Float64Array> = (incoming, inout) => {
  for (let i = 0; i < inout.length; i += 2) {
    const [a, b, c, d] = [incoming[i], incoming[i + 1], inout[i], inout[i + 1]];
    inout[i] = a * c - b * d;
    inout[i + 1] = a * d + b * c;
  }
};

function logicalOfReals(name: string): Op {
  const holds =
    name === 'LAND'
      ? (a: boolean, b: boolean) => a && b
      : name === 'LOR'
        ? (a: boolean, b: boolean) => a || b
        : (a: boolean, b: boolean) => a !== b;
  const fn: OpFunction<Float64Array> = (incoming, inout) => {
    for (let i = 0; i < inout.length; i++) inout[i] = holds(incoming[i] !== 0, inout[i] !== 0) ? 1 : 0;
  };
  return Op.create(fn, { commute: true, name });
}

const LONG_DOUBLE_OPS = ['SUM', 'PROD', 'MAX', 'MIN', 'LAND', 'LOR', 'LXOR'];

/** Numbers of 128 bits are combined by code that `multirail cc` links into the program. */
function ofLongDoubles(m: Machine, basic: Basic, name: string): Combining {
  const isComplex = basic.kind === 'c256';
  const code = LONG_DOUBLE_OPS.indexOf(name);
  const op = once(`${basic.kind} ${name}`, () => {
    const fn: OpFunction<Uint8Array> = (incoming, inout) => {
      const bytes = inout.length;
      m.withMemory(2 * bytes + 16, (memory) => {
        const at = (memory + 15) & ~15;
        m.memory.bytes.set(incoming, at);
        m.memory.bytes.set(inout, at + bytes);
        m.longDoubles(code, isComplex ? 1 : 0, at, at + bytes, bytes / basic.bytes);
        inout.set(m.memory.bytes.subarray(at + bytes, at + 2 * bytes));
      });
    };
    return Op.create(fn, { commute: true, unit: basic.bytes, name });
  });
  return { array: 'Uint8Array', op };
}

// ---------------------------------------------------------------- pairs

function ofPairs(type: Datatype, [value, index]: Pair, name: string): Combining {
  if (name !== 'MINLOC' && name !== 'MAXLOC') return fail('OP', `MPI_${name} is not defined for ${type.name}, a pair of value and index`);
  const array = ARRAYS[value.kind];
  // Two elements of one class: the library has that.
  if (value.kind === index.kind && array !== undefined) return { array, op: name === 'MINLOC' ? Op.MINLOC : Op.MAXLOC };
  return { array: 'Uint8Array', op: once(`${value.kind} ${name}`, () => pairsOf(value, name === 'MAXLOC')) };
}

const VALUES: Partial<Record<Kind, (data: DataView, at: number) => number>> = {
  f32: (data, at) => data.getFloat32(at, true),
  f64: (data, at) => data.getFloat64(at, true),
  i16: (data, at) => data.getInt16(at, true),
  f128: (data, at) => quadruple(data, at),
};

/** A value of 128 bits as far as comparisons go: pairs of values that a double cannot tell apart count as equal. */
function quadruple(data: DataView, at: number): number {
  const high = data.getBigUint64(at + 8, true);
  const exponent = Number((high >> 48n) & 0x7fffn);
  const sign = high >> 63n === 1n ? -1 : 1;
  const fraction = Number((high & 0xffff_ffff_ffffn) << 16n) / 2 ** 64 + Number(data.getBigUint64(at, true)) / 2 ** 112;
  if (exponent === 0x7fff) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 && fraction === 0 ? 0 : sign * (1 + fraction) * 2 ** (exponent - 16383);
}

/** Packed pairs: a value, and behind it an index of 32 bits. */
function pairsOf(value: Basic, isMax: boolean): Op {
  const bytes = value.bytes + 4;
  const read = VALUES[value.kind] as (data: DataView, at: number) => number;
  const viewOf = (array: Uint8Array): DataView => new DataView(array.buffer, array.byteOffset, array.byteLength);
  const fn: OpFunction<Uint8Array> = (incoming, inout) => {
    const [left, right] = [viewOf(incoming), viewOf(inout)];
    for (let at = 0; at < inout.length; at += bytes) {
      const [a, b] = [read(left, at), read(right, at)];
      const isBetter = isMax ? a > b : a < b;
      const takesLeft = isBetter || (a === b && left.getInt32(at + value.bytes, true) < right.getInt32(at + value.bytes, true));
      if (takesLeft) inout.set(incoming.subarray(at, at + bytes), at);
    }
  };
  return Op.create(fn, { commute: true, unit: bytes, name: isMax ? 'MAXLOC' : 'MINLOC' });
}

// ---------------------------------------------------------------- of the program

function ofProgram(m: Machine, type: Datatype, handle: number): Combining {
  const own = m.ops.find(handle);
  if (own === undefined) return fail('OP', handle === OP_NULL ? 'the operation is MPI_OP_NULL' : `there is no operation 0x${hex(handle)}`);
  const known = own.byType.get(type);
  if (known !== undefined) return { array: 'Uint8Array', op: known };
  if (type.size === 0) return { array: 'Uint8Array', op: Op.SUM };
  const op = Op.create(functionOf(m, own, type), { commute: own.commute, unit: type.size, name: 'function of the program' });
  own.byType.set(type, op);
  return { array: 'Uint8Array', op };
}

/** Elements travel packed; the function gets them as the datatype lays them out. */
function functionOf(m: Machine, own: UserOp, type: Datatype): OpFunction<Uint8Array> {
  const span = (count: number): number => Math.max(type.extent * count, type.trueUb + type.extent * (count - 1));
  return (incoming, inout) => {
    const count = inout.length / type.size;
    const below = Math.max(0, -type.trueLb);
    const bytes = span(count) + below + 16;
    m.withMemory(2 * bytes + 32, (memory) => {
      const header = (memory + 15) & ~15;
      const left = header + 16 + below;
      const right = left + ((bytes + 15) & ~15);
      if (own.wide) m.memory.setLong(header, count);
      else m.memory.setInt(header, count);
      m.memory.setInt(header + 8, type.handle);
      unpack(m.memory, left, count, type, incoming);
      unpack(m.memory, right, count, type, inout);
      m.callback(own.fn, left, right, header, header + 8);
      pack(m.memory, right, count, type, inout);
    });
  };
}
