// A small assembler for WebAssembly: functions written as nested expressions become the bytes of a module. It knows only the instructions
// that the kernels need. Binary format: WebAssembly Core Specification 2.0, section 5.

/** Instructions in order; nested as they were written, flattened when the module is made. */
export type Code = readonly (number | Code)[];
export type ValueType = 'i32' | 'i64' | 'f64' | 'v128';

const TYPE_BYTES: Record<ValueType, number> = { i32: 0x7f, i64: 0x7e, f64: 0x7c, v128: 0x7b };
const BLOCK_OF_NOTHING = 0x40;
const END = 0x0b;

function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest > 0 ? low | 0x80 : low);
  } while (rest > 0);
  return bytes;
}

function signed(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (;;) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    const isLast = (rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0);
    bytes.push(isLast ? low : low | 0x80);
    if (isLast) return bytes;
  }
}

/** With loops: an inner kernel is longer than what a call can be spread into. */
function flatten(code: Code, into: number[] = []): number[] {
  for (const part of code) {
    if (typeof part === 'number') into.push(part);
    else flatten(part, into);
  }
  return into;
}

const text = (name: string): number[] => [...unsigned(name.length), ...new TextEncoder().encode(name)];
const list = (items: readonly (readonly number[])[]): number[] => [...unsigned(items.length), ...items.flat()];

const one = (opcode: number) => (value: Code) => [value, opcode];
const two = (opcode: number) => (left: Code, right: Code) => [left, right, opcode];
const vector = (opcode: number) => [0xfd, ...unsigned(opcode)];
const access = (opcode: readonly number[], alignment: number) => ({
  load: (address: Code, offset = 0): Code => [address, opcode, alignment, unsigned(offset)],
  store: (address: Code, value: Code, offset = 0): Code => [address, value, opcode, alignment, unsigned(offset)],
});

export const i32 = {
  const: (value: number): Code => [0x41, ...signed(BigInt(value))],
  load: access([0x28], 2).load,
  add: two(0x6a),
  sub: two(0x6b),
  mul: two(0x6c),
  eq: two(0x46),
  eqz: one(0x45),
  lt: two(0x48),
  gt: two(0x4a),
  ge: two(0x4e),
  and: two(0x71),
  shl: two(0x74),
};

export const i64 = {
  const: (value: bigint): Code => [0x42, ...signed(BigInt.asIntN(64, value))],
  add: two(0x7c),
  mul: two(0x7e),
  and: two(0x83),
  shiftRight: two(0x88),
  eqz: one(0x50),
  fromF64: one(0xb0),
  toI32: one(0xa7),
};

export const f64 = {
  const: (value: number): Code => [0x44, ...new Uint8Array(new Float64Array([value]).buffer)],
  load: access([0x2b], 3).load,
  store: access([0x39], 3).store,
  abs: one(0x99),
  add: two(0xa0),
  sub: two(0xa1),
  mul: two(0xa2),
  div: two(0xa3),
  gt: two(0x64),
  fromI64: one(0xb9),
};

/** Two doubles. Alignment is a hint only, and 8 bytes is what is known. */
export const f64x2 = {
  load: access(vector(0), 3).load,
  store: access(vector(11), 3).store,
  loadSplat: access(vector(10), 3).load,
  splat: (value: Code): Code => [value, vector(0x14)],
  zero: [vector(12), new Array<number>(16).fill(0)] as Code,
  abs: (value: Code): Code => [value, vector(0xec)],
  add: (left: Code, right: Code): Code => [left, right, vector(0xf0)],
  sub: (left: Code, right: Code): Code => [left, right, vector(0xf1)],
  mul: (left: Code, right: Code): Code => [left, right, vector(0xf2)],
};

export const memoryCopy = (to: Code, from: Code, bytes: Code): Code => [to, from, bytes, 0xfc, 0x0a, 0, 0];

export const when = (condition: Code, then: Code, otherwise: Code = []): Code => [
  condition,
  0x04,
  BLOCK_OF_NOTHING,
  then,
  otherwise.length > 0 ? [0x05, otherwise] : [],
  END,
];

/** Repeats the body while the condition holds, looked at before each turn. */
export const whileTrue = (condition: Code, body: Code): Code => [
  [0x02, BLOCK_OF_NOTHING, 0x03, BLOCK_OF_NOTHING],
  [condition, 0x45, 0x0d, 1],
  [body, 0x0c, 0],
  [END, END],
];

/** Repeats the body while the condition holds, looked at after each turn: at least one turn. */
export const doWhile = (body: Code, condition: Code): Code => [0x03, BLOCK_OF_NOTHING, body, condition, 0x0d, 0, END];

export class Local {
  readonly get: Code;
  private readonly index: number;

  constructor(index: number) {
    this.index = index;
    this.get = [0x20, ...unsigned(index)];
  }

  set(value: Code): Code {
    return [value, 0x21, ...unsigned(this.index)];
  }

  /** For an i32: adds to it. */
  addTo(value: Code): Code {
    return this.set(i32.add(this.get, value));
  }
}

export class WasmFunction {
  readonly name: string;
  readonly params: readonly ValueType[];
  readonly result: ValueType | undefined;
  private readonly locals: ValueType[] = [];
  private body: Code = [];

  constructor(name: string, params: readonly ValueType[], result?: ValueType) {
    this.name = name;
    this.params = params;
    this.result = result;
  }

  /** The parameters as locals, in their order. */
  args(): Local[] {
    return this.params.map((_, i) => new Local(i));
  }

  local(type: ValueType): Local {
    this.locals.push(type);
    return new Local(this.params.length + this.locals.length - 1);
  }

  /** For counter = 0; counter < end; counter += step. */
  loop(end: Code, step: number, body: (counter: Local) => Code): Code {
    const counter = this.local('i32');
    return [counter.set(i32.const(0)), whileTrue(i32.lt(counter.get, end), [body(counter), counter.addTo(i32.const(step))])];
  }

  define(...code: Code[]): this {
    this.body = code;
    return this;
  }

  typeBytes(): number[] {
    return [
      0x60,
      ...list(this.params.map((type) => [TYPE_BYTES[type]])),
      ...list(this.result === undefined ? [] : [[TYPE_BYTES[this.result]]]),
    ];
  }

  codeBytes(): number[] {
    const code = [...list(this.locals.map((type) => [1, TYPE_BYTES[type]])), ...flatten(this.body), END];
    return [...unsigned(code.length), ...code];
  }
}

/** A module of these functions, all exported, over the memory that is imported as `env.memory`. */
export function encodeModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const section = (id: number, content: readonly number[]) => [id, ...unsigned(content.length), ...content];
  const memory = [...text('env'), ...text('memory'), 0x02, 0x00, ...unsigned(1)];
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, list(functions.map((one) => one.typeBytes()))),
    ...section(2, list([memory])),
    ...section(3, list(functions.map((_, i) => unsigned(i)))),
    ...section(7, list(functions.map((one, i) => [...text(one.name), 0x00, ...unsigned(i)]))),
    ...section(10, list(functions.map((one) => one.codeBytes()))),
  ]);
}
