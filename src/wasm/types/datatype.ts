// A datatype: a tree that is walked when data are packed and unpacked. Nothing is flattened: a vector of a million blocks is three numbers.
import type { Basic } from './basics.ts';

/** Is told of the contiguous pieces of memory, in the order of the type; false ends the walk. */
export interface Runs {
  run(at: number, bytes: number): boolean;
}

/** Is told of basic elements, in the order of the type, `count` of them one behind the other; false ends the walk. */
export interface Units {
  units(at: number, basic: Basic, count: number): boolean;
}

/** What a type is made of. */
export type Shape =
  | { readonly is: 'basic'; readonly basic: Basic }
  /** `count` blocks of `blockLength` elements, `stride` bytes from one to the next. */
  | { readonly is: 'repeat'; readonly child: Datatype; readonly count: number; readonly blockLength: number; readonly stride: number }
  /** Blocks at places in bytes, each with its own length and type. */
  | {
      readonly is: 'list';
      readonly places: readonly number[];
      readonly lengths: readonly number[];
      readonly child: (i: number) => Datatype;
    }
  /** Another type, with other bounds. */
  | { readonly is: 'as'; readonly child: Datatype };

/** The call that has made a type, for MPI_Type_get_envelope and MPI_Type_get_contents. */
export interface Contents {
  readonly combiner: number;
  readonly ints: readonly number[];
  readonly addresses: readonly number[];
  /** Counts, where a call with large ones has made it. */
  readonly counts: readonly number[];
  readonly types: readonly Datatype[];
  readonly isLarge: boolean;
}

export interface Bounds {
  readonly lb: number;
  readonly ub: number;
}

export class Datatype {
  readonly shape: Shape;
  readonly contents: Contents;
  /** Bytes of data. */
  readonly size: number;
  readonly lb: number;
  readonly ub: number;
  readonly extent: number;
  /** Where data begin and end. */
  readonly trueLb: number;
  readonly trueUb: number;
  /** Basic elements. */
  readonly elements: number;
  readonly align: number;
  /** Its bounds were given, by itself or by a part of it: nothing is added for alignment. */
  readonly hasOwnBounds: boolean;
  /** Its data are one piece of memory, in order. */
  readonly isDense: boolean;
  /** And elements of it follow one another without a gap. */
  readonly isContiguous: boolean;
  name: string;
  isCommitted: boolean;
  /** Made by MPI itself. */
  readonly isPredefined: boolean;
  handle = 0;
  /** MPI_Type_free was called. */
  isFreed = false;
  readonly attributes = new Map<number, number>();

  constructor(shape: Shape, contents: Contents, options: { name?: string; bounds?: Bounds; padded?: boolean; predefined?: boolean } = {}) {
    this.shape = shape;
    this.contents = contents;
    this.name = options.name ?? '';
    this.isPredefined = options.predefined ?? false;
    this.isCommitted = this.isPredefined;
    const sums = measure(shape);
    this.size = sums.size;
    this.elements = sums.elements;
    this.align = sums.align;
    this.trueLb = sums.trueLb;
    this.trueUb = sums.trueUb;
    this.isDense = sums.isDense;
    this.hasOwnBounds = sums.hasOwnBounds || options.bounds !== undefined;
    this.lb = options.bounds?.lb ?? sums.lb;
    let ub = options.bounds?.ub ?? sums.ub;
    // A structure is as long as C makes it.
    if (options.padded === true && !this.hasOwnBounds && sums.align > 1) {
      const over = (ub - this.lb) % sums.align;
      if (over !== 0) ub += sums.align - over;
    }
    this.ub = ub;
    this.extent = ub - this.lb;
    this.isContiguous = this.isDense && this.extent === this.size && (this.size === 0 || this.lb === this.trueLb);
  }

  /** The basic type that all of its elements have; undefined where they differ. */
  get only(): Basic | undefined {
    const { shape } = this;
    if (shape.is === 'basic') return shape.basic;
    if (shape.is !== 'list') return shape.child.only;
    let found: Basic | undefined;
    for (let i = 0; i < shape.places.length; i++) {
      if (shape.lengths[i] === 0) continue;
      const { only } = shape.child(i);
      if (only === undefined || (found !== undefined && found !== only)) return undefined;
      found = only;
    }
    return found;
  }

  /** Walks `count` elements that begin at `at`. Returns false when the visitor has ended it. */
  walk(at: number, count: number, visitor: Runs): boolean {
    const { size, extent } = this;
    if (size === 0 || count === 0) return true;
    if (this.isContiguous) return visitor.run(at + this.trueLb, size * count);
    if (this.isDense) {
      for (let i = 0; i < count; i++) if (!visitor.run(at + this.trueLb + i * extent, size)) return false;
      return true;
    }
    for (let i = 0; i < count; i++) if (!this.walkOne(at + i * extent, visitor)) return false;
    return true;
  }

  private walkOne(at: number, visitor: Runs): boolean {
    const { shape } = this;
    switch (shape.is) {
      case 'basic':
        return visitor.run(at, shape.basic.bytes);
      case 'as':
        return shape.child.walk(at, 1, visitor);
      case 'repeat': {
        const { child, count, blockLength, stride } = shape;
        for (let i = 0; i < count; i++) if (!child.walk(at + i * stride, blockLength, visitor)) return false;
        return true;
      }
      case 'list': {
        const { places, lengths, child } = shape;
        for (let i = 0; i < places.length; i++) if (!child(i).walk(at + places[i], lengths[i], visitor)) return false;
        return true;
      }
    }
  }

  /** As walk(), down to the basic elements. */
  walkUnits(at: number, count: number, visitor: Units): boolean {
    const { shape, extent } = this;
    if (shape.is === 'basic') return count === 0 || visitor.units(at, shape.basic, count);
    for (let n = 0; n < count; n++) {
      const from = at + n * extent;
      if (shape.is === 'as') {
        if (!shape.child.walkUnits(from, 1, visitor)) return false;
      } else if (shape.is === 'repeat') {
        for (let i = 0; i < shape.count; i++) if (!shape.child.walkUnits(from + i * shape.stride, shape.blockLength, visitor)) return false;
      } else {
        for (let i = 0; i < shape.places.length; i++)
          if (!shape.child(i).walkUnits(from + shape.places[i], shape.lengths[i], visitor)) return false;
      }
    }
    return true;
  }
}

interface Measures {
  size: number;
  elements: number;
  align: number;
  lb: number;
  ub: number;
  trueLb: number;
  trueUb: number;
  isDense: boolean;
  hasOwnBounds: boolean;
}

function measure(shape: Shape): Measures {
  switch (shape.is) {
    case 'basic': {
      const { bytes, align } = shape.basic;
      return { size: bytes, elements: 1, align, lb: 0, ub: bytes, trueLb: 0, trueUb: bytes, isDense: true, hasOwnBounds: false };
    }
    case 'as': {
      const { size, elements, align, lb, ub, trueLb, trueUb, isDense, hasOwnBounds } = shape.child;
      return { size, elements, align, lb, ub, trueLb, trueUb, isDense, hasOwnBounds };
    }
    case 'repeat': {
      const { child, count, blockLength, stride } = shape;
      const sums = nothing();
      if (count === 0 || blockLength === 0) return sums;
      // The first and the last block hold the bounds, whatever the sign of the stride.
      addBlock(sums, child, 0, blockLength);
      addBlock(sums, child, (count - 1) * stride, blockLength);
      sums.size = child.size * blockLength * count;
      sums.elements = child.elements * blockLength * count;
      const isBlockDense = child.isContiguous || (blockLength === 1 && child.isDense);
      sums.isDense = isBlockDense && (count === 1 || stride === child.size * blockLength);
      return sums;
    }
    case 'list':
      return measureList(shape);
  }
}

const nothing = (): Measures => ({
  size: 0,
  elements: 0,
  align: 1,
  lb: 0,
  ub: 0,
  trueLb: 0,
  trueUb: 0,
  isDense: true,
  hasOwnBounds: false,
});

function measureList({ places, lengths, child }: Extract<Shape, { is: 'list' }>): Measures {
  const sums = nothing();
  let end: number | undefined;
  for (let i = 0; i < places.length; i++) {
    if (lengths[i] === 0) continue;
    const type = child(i);
    addBlock(sums, type, places[i], lengths[i]);
    if (type.size === 0) continue;
    const begin = places[i] + type.trueLb;
    if (!(type.isContiguous || (lengths[i] === 1 && type.isDense)) || (end !== undefined && begin !== end)) sums.isDense = false;
    end = begin + type.size * lengths[i];
  }
  return sums;
}

/** `elements` is 0 until the first block has been added. */
function addBlock(sums: Measures, type: Datatype, at: number, length: number): void {
  const last = (length - 1) * type.extent;
  const lb = at + Math.min(0, last) + type.lb;
  const ub = at + Math.max(0, last) + type.ub;
  const isFirst = !('begun' in sums);
  (sums as Measures & { begun?: true }).begun = true;
  // Bounds that were given outweigh those that come of data.
  if (isFirst || (type.hasOwnBounds && !sums.hasOwnBounds)) {
    sums.lb = lb;
    sums.ub = ub;
  } else if (type.hasOwnBounds || !sums.hasOwnBounds) {
    sums.lb = Math.min(sums.lb, lb);
    sums.ub = Math.max(sums.ub, ub);
  }
  sums.hasOwnBounds ||= type.hasOwnBounds;
  sums.align = Math.max(sums.align, type.align);
  if (type.size > 0) {
    const trueLb = at + Math.min(0, last) + type.trueLb;
    const trueUb = at + Math.max(0, last) + type.trueUb;
    sums.trueLb = sums.size === 0 ? trueLb : Math.min(sums.trueLb, trueLb);
    sums.trueUb = sums.size === 0 ? trueUb : Math.max(sums.trueUb, trueUb);
  }
  sums.size += type.size * length;
  sums.elements += type.elements * length;
}
