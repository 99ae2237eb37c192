// The calls that make datatypes of others (MPI-4.1, section 5.1).
import { COMBINER, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DFLT_DARG, DISTRIBUTE_NONE, ORDER_C, ORDER_FORTRAN } from '../abi.ts';
import { fail } from '../errors.ts';
import { BASICS, PAIRS } from './basics.ts';
import { type Contents, Datatype, type Shape } from './datatype.ts';

const NAMED: Contents = { combiner: COMBINER.NAMED, ints: [], addresses: [], counts: [], types: [], isLarge: false };

/** What a call was given, in the order in which MPI_Type_get_contents gives it back. `large`: counts of MPI_Count. */
export function contentsOf(
  combiner: number,
  large: boolean,
  ints: readonly number[],
  counts: readonly number[],
  addresses: readonly number[],
  types: readonly Datatype[],
): Contents {
  return large
    ? { combiner, ints, addresses: [], counts: [...counts, ...addresses], types, isLarge: true }
    : { combiner, ints: [...counts, ...ints], addresses, counts: [], types, isLarge: false };
}

/** All that exist from the start, by handle. */
export function predefined(): Map<number, Datatype> {
  const all = new Map<number, Datatype>();
  const add = (handle: number, type: Datatype): void => {
    type.handle = handle;
    all.set(handle, type);
  };
  for (const [handle, basic] of BASICS) add(handle, new Datatype({ is: 'basic', basic }, NAMED, { name: basic.name, predefined: true }));
  for (const [handle, name, value, index] of PAIRS) {
    const parts = [all.get(value), all.get(index)] as Datatype[];
    const { align } = parts[1];
    const at = Math.ceil(parts[0].size / align) * align;
    const shape = listOf([0, at], [1, 1], (i) => parts[i]);
    add(handle, new Datatype(shape, NAMED, { name, predefined: true, padded: true }));
  }
  return all;
}

const listOf = (places: readonly number[], lengths: readonly number[], child: (i: number) => Datatype): Shape => ({
  is: 'list',
  places,
  lengths,
  child,
});

function checkCounts(lists: Readonly<Record<string, readonly number[]>>): void {
  for (const [name, list] of Object.entries(lists))
    for (const count of list) if (count < 0) fail('ARG', `${name} is ${count}; expected 0 or more`);
}

export function contiguous(count: number, child: Datatype, large = false): Datatype {
  checkCount(count);
  return new Datatype(
    { is: 'repeat', child, count: 1, blockLength: count, stride: 0 },
    contentsOf(COMBINER.CONTIGUOUS, large, [], [count], [], [child]),
  );
}

function checkCount(count: number): void {
  if (count < 0) fail('COUNT', `count is ${count}; expected 0 or more`);
}

/** `stride` in elements. */
export function vector(count: number, blockLength: number, stride: number, child: Datatype, large = false): Datatype {
  checkCount(count);
  checkCounts({ blocklength: [blockLength] });
  return new Datatype(
    { is: 'repeat', child, count, blockLength, stride: stride * child.extent },
    contentsOf(COMBINER.VECTOR, large, [], [count, blockLength, stride], [], [child]),
  );
}

/** `stride` in bytes. */
export function hvector(count: number, blockLength: number, stride: number, child: Datatype, large = false): Datatype {
  checkCount(count);
  checkCounts({ blocklength: [blockLength] });
  return new Datatype(
    { is: 'repeat', child, count, blockLength, stride },
    contentsOf(COMBINER.HVECTOR, large, [], [count, blockLength], [stride], [child]),
  );
}

export function indexed(lengths: readonly number[], places: readonly number[], child: Datatype, large = false): Datatype {
  checkCounts({ blocklengths: lengths });
  return new Datatype(
    listOf(
      places.map((place) => place * child.extent),
      lengths,
      () => child,
    ),
    contentsOf(COMBINER.INDEXED, large, [], [lengths.length, ...lengths, ...places], [], [child]),
  );
}

export function hindexed(lengths: readonly number[], places: readonly number[], child: Datatype, large = false): Datatype {
  checkCounts({ blocklengths: lengths });
  return new Datatype(
    listOf(places, lengths, () => child),
    contentsOf(COMBINER.HINDEXED, large, [], [lengths.length, ...lengths], places, [child]),
  );
}

export function indexedBlock(length: number, places: readonly number[], child: Datatype, large = false): Datatype {
  checkCounts({ blocklength: [length] });
  return new Datatype(
    listOf(
      places.map((place) => place * child.extent),
      places.map(() => length),
      () => child,
    ),
    contentsOf(COMBINER.INDEXED_BLOCK, large, [], [places.length, length, ...places], [], [child]),
  );
}

export function hindexedBlock(length: number, places: readonly number[], child: Datatype, large = false): Datatype {
  checkCounts({ blocklength: [length] });
  return new Datatype(
    listOf(
      places,
      places.map(() => length),
      () => child,
    ),
    contentsOf(COMBINER.HINDEXED_BLOCK, large, [], [places.length, length], places, [child]),
  );
}

export function struct(lengths: readonly number[], places: readonly number[], types: readonly Datatype[], large = false): Datatype {
  checkCounts({ blocklengths: lengths });
  return new Datatype(
    listOf(places, lengths, (i) => types[i]),
    contentsOf(COMBINER.STRUCT, large, [], [lengths.length, ...lengths], places, types),
    { padded: true },
  );
}

export function resized(child: Datatype, lb: number, extent: number, large = false): Datatype {
  return new Datatype({ is: 'as', child }, contentsOf(COMBINER.RESIZED, large, [], [], [lb, extent], [child]), {
    bounds: { lb, ub: lb + extent },
  });
}

export function dup(child: Datatype): Datatype {
  const bounds = { lb: child.lb, ub: child.ub };
  const copy = new Datatype(
    { is: 'as', child },
    contentsOf(COMBINER.DUP, false, [], [], [], [child]),
    child.hasOwnBounds ? { bounds } : {},
  );
  copy.isCommitted = child.isCommitted;
  return copy;
}

// ---------------------------------------------------------------- arrays of several dimensions

/** Elements of one dimension that belong to the type: blocks of `length`, `step` from one to the next, and what is left at the end. */
interface Slice {
  readonly start: number;
  readonly length: number;
  readonly step: number;
  readonly count: number;
  readonly rest: number;
}

/** Puts slices of all dimensions, fastest first, over the element. */
function ofSlices(sizes: readonly number[], slices: readonly Slice[], child: Datatype): Shape {
  let type = child;
  let bytes = child.extent;
  let shape: Shape = { is: 'as', child };
  for (let d = 0; d < sizes.length; d++) {
    const { start, length, step, count, rest } = slices[d];
    const row = type.extent === bytes && type.lb === 0 ? type : sized(type, bytes);
    const blocks = internal({ is: 'repeat', child: row, count, blockLength: length, stride: step * bytes });
    const places = [start * bytes];
    const parts = [blocks];
    const lengths = [1];
    if (rest > 0) {
      places.push((start + count * step) * bytes);
      parts.push(row);
      lengths.push(rest);
    }
    shape = listOf(places, lengths, (i) => parts[i]);
    type = internal(shape);
    bytes *= sizes[d];
  }
  return shape;
}

const internal = (shape: Shape): Datatype => new Datatype(shape, NAMED);
const sized = (child: Datatype, extent: number): Datatype => new Datatype({ is: 'as', child }, NAMED, { bounds: { lb: 0, ub: extent } });

/** Fastest dimension first. */
const inOrder = <T>(list: readonly T[], order: number): T[] => (order === ORDER_C ? [...list].reverse() : [...list]);

function checkOrder(order: number): void {
  if (order !== ORDER_C && order !== ORDER_FORTRAN) fail('ARG', `order is ${order}; expected MPI_ORDER_C or MPI_ORDER_FORTRAN`);
}

export function subarray(
  sizes: readonly number[],
  subsizes: readonly number[],
  starts: readonly number[],
  order: number,
  child: Datatype,
  large = false,
): Datatype {
  checkOrder(order);
  if (sizes.length < 1) fail('ARG', 'ndims is less than 1');
  sizes.forEach((size, d) => {
    if (size < 1 || subsizes[d] < 1 || subsizes[d] > size || starts[d] < 0 || starts[d] + subsizes[d] > size)
      fail('ARG', `dimension ${d}: ${subsizes[d]} elements from ${starts[d]} on are not in an array of ${size}`);
  });
  const slices = sizes.map((_, d): Slice => ({ start: starts[d], length: subsizes[d], step: 0, count: 1, rest: 0 }));
  const total = sizes.reduce((product, size) => product * size, child.extent);
  const contents = contentsOf(COMBINER.SUBARRAY, large, [order], [sizes.length, ...sizes, ...subsizes, ...starts], [], [child]);
  const fixed = large ? { ...contents, ints: [sizes.length, order], counts: [...sizes, ...subsizes, ...starts] } : contents;
  return new Datatype(ofSlices(inOrder(sizes, order), inOrder(slices, order), child), fixed, { bounds: { lb: 0, ub: total } });
}

export interface Distribution {
  readonly size: number;
  readonly rank: number;
  readonly sizes: readonly number[];
  readonly kinds: readonly number[];
  readonly args: readonly number[];
  readonly places: readonly number[];
  readonly order: number;
}

export function darray(how: Distribution, child: Datatype, large = false): Datatype {
  const { size, rank, sizes, kinds, args, places, order } = how;
  checkOrder(order);
  if (sizes.length < 1) fail('ARG', 'ndims is less than 1');
  if (rank < 0 || rank >= size) fail('ARG', `rank is ${rank}; expected 0 to ${size - 1}`);
  if (places.reduce((product, count) => product * count, 1) !== size) fail('ARG', `the grid of processes has not ${size} places`);
  // The grid of processes is in the order of C, whatever that of the array is.
  const coordinates = new Array<number>(sizes.length);
  for (let d = sizes.length - 1, left = rank; d >= 0; d--) {
    coordinates[d] = left % places[d];
    left = Math.floor(left / places[d]);
  }
  const slices = sizes.map((length, d) => sliceOf(length, kinds[d], args[d], places[d], coordinates[d]));
  const total = sizes.reduce((product, length) => product * length, child.extent);
  const ints = [size, rank, sizes.length, ...sizes, ...kinds, ...args, ...places, order];
  const contents: Contents = large
    ? {
        combiner: COMBINER.DARRAY,
        ints: [size, rank, sizes.length, ...kinds, ...args, ...places, order],
        addresses: [],
        counts: [...sizes],
        types: [child],
        isLarge: true,
      }
    : { combiner: COMBINER.DARRAY, ints, addresses: [], counts: [], types: [child], isLarge: false };
  return new Datatype(ofSlices(inOrder(sizes, order), inOrder(slices, order), child), contents, { bounds: { lb: 0, ub: total } });
}

function sliceOf(length: number, kind: number, arg: number, processes: number, at: number): Slice {
  const whole: Slice = { start: 0, length, step: 0, count: 1, rest: 0 };
  if (length < 1 || processes < 1) fail('ARG', `a dimension of ${length} elements over ${processes} processes`);
  if (kind === DISTRIBUTE_NONE) return processes === 1 ? whole : fail('ARG', 'MPI_DISTRIBUTE_NONE over more than one process');
  if (kind !== DISTRIBUTE_BLOCK && kind !== DISTRIBUTE_CYCLIC) fail('ARG', `distribution ${kind} is unknown`);
  if (kind === DISTRIBUTE_BLOCK) {
    const block = arg === DISTRIBUTE_DFLT_DARG ? Math.ceil(length / processes) : arg;
    if (block < 1 || block * processes < length)
      fail('ARG', `blocks of ${block} over ${processes} processes do not hold ${length} elements`);
    return { start: Math.min(at * block, length), length: Math.max(0, Math.min(block, length - at * block)), step: 0, count: 1, rest: 0 };
  }
  const block = arg === DISTRIBUTE_DFLT_DARG ? 1 : arg;
  if (block < 1) fail('ARG', `a block of ${block} elements`);
  const start = at * block;
  const step = processes * block;
  const left = Math.max(0, length - start);
  const count = Math.floor(left / step);
  const over = left - count * step;
  return over >= block ? { start, length: block, step, count: count + 1, rest: 0 } : { start, length: block, step, count, rest: over };
}
