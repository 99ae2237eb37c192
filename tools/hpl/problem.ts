// One system of equations on one rank: its size and distribution, the rank's memory and kernels, its part of the matrix.
import { type Algebra, Kernels, takeKernelPlaces, wasmAlgebra } from './algebra.ts';
import { Grid, globalIndex, localCount } from './grid.ts';
import { Heap, HeapLayout } from './heap.ts';
import type { Messages } from './messages.ts';

/** How a panel goes along a row of processes: from one to the next; or so that the next owner gets it first and passes nothing on. */
export const BROADCASTS = ['ring', 'ring-modified'] as const;
export type BroadcastName = (typeof BROADCASTS)[number];
/** How the rows of U come together in a column of processes: binary exchange, a roll, or the one for few columns and the other for many. */
export const SWAPS = ['binary-exchange', 'long', 'mix'] as const;
export type SwapName = (typeof SWAPS)[number];

export interface ProblemOptions {
  /** Order of the matrix. */
  n: number;
  /** Columns of a block. */
  nb: number;
  p: number;
  q: number;
  seed: number;
  broadcast: BroadcastName;
  swap: SwapName;
  /** 0 or 1: whether the next panel is factored before the rest of the matrix is updated. */
  depth: 0 | 1;
}

/** The header of a panel: its first singular column, counted from 1, or 0; its block; the columns that it has. */
export const PANEL_HEADER = 4;

/** Where a panel is: header, pivot rows (global), L1 (the triangles of its top block, by columns of its width), L2 (the rows below). */
export interface PanelPlaces {
  header: number;
  pivots: number;
  l1: number;
}

/** Makes the kernels of O(N^3) for a heap. */
export type MakeAlgebra = (heap: Heap, kernels: Kernels) => Algebra;

export class Problem {
  readonly options: ProblemOptions;
  readonly n: number;
  readonly nb: number;
  readonly grid: Grid;
  readonly messages: Messages;
  readonly heap: Heap;
  readonly kernels: Kernels;
  readonly algebra: Algebra;
  /** Local rows, and columns with that of the right-hand side. */
  readonly localRows: number;
  readonly localColumns: number;
  /** The local part of (A | b). */
  readonly a: number;
  readonly lda: number;
  /** Two panels: the one that updates, and the one that is on its way. */
  readonly panels: readonly [PanelPlaces, PanelPlaces];
  /** For P > 1: U, the rows that it is gathered from, and rows that are displaced by it. */
  readonly u: number;
  readonly gathered: number;
  readonly displaced: number;
  /** Lists of rows, i32. */
  readonly lists: { pairs: number; iota: number; sources: number; positions: number; leaving: number; arriving: number };
  /** Two vectors of local rows and two of N. */
  readonly vectors: { rows: number; moreRows: number; column: number; x: number };

  /** `earlier`: the memory of a problem that is done, taken again where it is large enough. */
  constructor(
    options: ProblemOptions,
    messages: Messages,
    makeAlgebra: MakeAlgebra = (_, kernels) => wasmAlgebra(kernels),
    earlier?: Heap,
  ) {
    const { n, nb, p, q } = options;
    this.options = options;
    this.n = n;
    this.nb = nb;
    this.messages = messages;
    const grid = new Grid(p, q, messages.comm.rank);
    this.grid = grid;
    this.localRows = localCount(n, nb, grid.row, p);
    this.localColumns = localCount(n + 1, nb, grid.column, q);
    // Columns that lie a power of two apart share their places in the caches.
    const odd = Math.ceil(this.localRows / 8) * 8;
    this.lda = odd % 128 === 0 ? odd + 8 : odd;
    const layout = new HeapLayout();
    const kernelPlaces = takeKernelPlaces(layout);
    this.panels = [this.takePanel(layout), this.takePanel(layout)];
    const swapped = p === 1 ? 0 : nb * this.localColumns;
    this.u = layout.take(swapped);
    this.gathered = layout.take(swapped);
    this.displaced = layout.take(swapped);
    this.lists = {
      pairs: layout.takeInts(2 * nb),
      iota: layout.takeInts(nb),
      sources: layout.takeInts(nb),
      positions: layout.takeInts(nb),
      leaving: layout.takeInts(nb),
      arriving: layout.takeInts(nb),
    };
    this.vectors = {
      rows: layout.take(this.localRows),
      moreRows: layout.take(this.localRows),
      column: layout.take(Math.max(n, nb)),
      x: layout.take(n),
    };
    this.a = layout.take(this.lda * this.localColumns);
    this.heap = earlier?.fits(layout) === true ? earlier : new Heap(layout);
    this.kernels = new Kernels(this.heap, kernelPlaces);
    this.algebra = makeAlgebra(this.heap, this.kernels);
    this.heap.writeInts(
      this.lists.iota,
      Array.from({ length: nb }, (_, i) => i),
    );
  }

  private takePanel(layout: HeapLayout): PanelPlaces {
    // In one piece: it is one message.
    const { nb, localRows } = this;
    const header = layout.take(PANEL_HEADER + nb + nb * nb + localRows * nb);
    return { header, pivots: header + PANEL_HEADER, l1: header + PANEL_HEADER + nb };
  }

  get blocks(): number {
    return Math.ceil(this.n / this.nb);
  }

  /** Columns of block k. */
  width(k: number): number {
    return Math.min(this.nb, this.n - k * this.nb);
  }

  /** Local rows, and local columns, before this global index. */
  rowsBefore(global: number): number {
    return localCount(global, this.nb, this.grid.row, this.options.p);
  }

  columnsBefore(global: number): number {
    return localCount(global, this.nb, this.grid.column, this.options.q);
  }

  at(localRow: number, localColumn: number): number {
    return this.a + localColumn * this.lda + localRow;
  }

  globalRow(localRow: number): number {
    return globalIndex(localRow, this.nb, this.grid.row, this.options.p);
  }

  globalColumn(localColumn: number): number {
    return globalIndex(localColumn, this.nb, this.grid.column, this.options.q);
  }

  /** Writes the local rows of column `global` of (A | b) as they are at the start. */
  generateColumn(global: number, to: number): void {
    const { n, nb, grid, localRows } = this;
    const gap = (grid.rows - 1) * nb;
    this.kernels.generate(to, localRows, nb, gap, global * n + grid.row * nb, this.options.seed);
  }

  /** The matrix and the right-hand side. */
  generate(): void {
    for (let column = 0; column < this.localColumns; column++) this.generateColumn(this.globalColumn(column), this.at(0, column));
  }
}
