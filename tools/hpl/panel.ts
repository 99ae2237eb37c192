// Factorisation of a panel: the nb columns of one block, from the diagonal down, by the processes of one process column. It is recursive in
// columns and right-looking, as HPL's `RFACT R`, so most of the work is in products. Every process of the column holds the top block of the
// panel, L1.
import { localIndex, ownerOf } from './grid.ts';
import { TAG } from './messages.ts';
import { PANEL_HEADER, type PanelPlaces, type Problem } from './problem.ts';

/** Up to this many columns are eliminated one by one (HPL's NBMIN). */
export const LEAF_COLUMNS = 8;

/** One panel, ready for the update: valid until its places are used for the next but one. */
export interface Panel {
  readonly places: PanelPlaces;
  readonly block: number;
  /** Its columns, and first row and column of the matrix. */
  readonly width: number;
  readonly first: number;
  /** Rows of L2 here, at place `l2`, and the local row of the first of them. */
  readonly rowsBelow: number;
  readonly l2: number;
  readonly firstRowBelow: number;
  /** The process row that has the top block. */
  readonly ownerRow: number;
}

/** The panel of block k in these places; what it holds is for others to say. */
export function panelOf(problem: Problem, k: number, places: PanelPlaces): Panel {
  const width = problem.width(k);
  const first = k * problem.nb;
  const firstRowBelow = problem.rowsBefore(first + width);
  return {
    places,
    block: k,
    width,
    first,
    rowsBelow: problem.localRows - firstRowBelow,
    l2: places.l1 + width * width,
    firstRowBelow,
    ownerRow: ownerOf(first, problem.nb, problem.grid.rows),
  };
}

/** The panel as one message. */
export function panelView(problem: Problem, panel: Panel): Float64Array<ArrayBuffer> {
  const { places, width, rowsBelow } = panel;
  return problem.heap.view(places.header, PANEL_HEADER + problem.nb + width * (width + rowsBelow));
}

/** The pivot rows by column of the panel: global rows. */
export function pivotsOf(problem: Problem, panel: Panel): number[] {
  return [...problem.heap.view(panel.places.pivots, panel.width)];
}

/** First column, counted from 1, in which no pivot was found; 0 when there is none. */
export function singularColumn(problem: Problem, panel: Panel): number {
  return problem.heap.f64[panel.places.header];
}

const PIVOT_HEADER = 3;

export class PanelFactorization {
  private readonly problem: Problem;
  private readonly ranks: readonly number[];
  /** What the processes of a column tell each other about one column: [|pivot|, its row, has top row | pivot row | top row]. */
  private readonly own: Float64Array<ArrayBuffer>;
  private readonly other: Float64Array<ArrayBuffer>;

  constructor(problem: Problem) {
    this.problem = problem;
    this.ranks = problem.grid.columnRanks();
    this.own = new Float64Array(PIVOT_HEADER + 2 * problem.nb);
    this.other = new Float64Array(this.own.length);
  }

  /** Factors block k of the matrix, which this process column has, into these places. */
  async factor(k: number, places: PanelPlaces): Promise<Panel> {
    const { problem } = this;
    const { heap, kernels, lda } = problem;
    const panel = panelOf(problem, k, places);
    const { width, first } = panel;
    heap.f64.fill(0, places.header, places.header + PANEL_HEADER);
    const step = new PanelColumns(problem, panel);
    await this.recurse(step, 0, width);
    const column = problem.columnsBefore(first);
    if (problem.grid.row === panel.ownerRow) {
      kernels.copyBlock(places.l1, width, problem.at(step.topRow, column), lda, width, width);
    }
    kernels.copyBlock(problem.at(panel.firstRowBelow, column), lda, panel.l2, panel.rowsBelow, panel.rowsBelow, width);
    return panel;
  }

  private async recurse(step: PanelColumns, from: number, count: number): Promise<void> {
    if (count <= LEAF_COLUMNS) {
      for (let column = from; column < from + count; column++) {
        if (step.isSingular) return;
        await this.eliminate(step, column, from + count);
      }
      return;
    }
    const left = Math.ceil(count / 2 / LEAF_COLUMNS) * LEAF_COLUMNS;
    await this.recurse(step, from, left);
    if (step.isSingular) return;
    step.updateRight(from, left, count - left);
    await this.recurse(step, from + left, count - left);
  }

  /** Finds the pivot of one column, brings its row to the top, and eliminates the column up to column `end` of the panel. */
  private async eliminate(step: PanelColumns, column: number, end: number): Promise<void> {
    if (this.ranks.length === 1) step.takePivotHere(column);
    else {
      const { width } = step.panel;
      const { own, other } = this;
      step.offerPivot(column, own);
      const length = PIVOT_HEADER + 2 * width;
      const merge = () => mergePivots(own, other, width);
      await this.problem.messages.combine(
        this.ranks,
        this.problem.grid.row,
        own.subarray(0, length),
        other.subarray(0, length),
        merge,
        TAG.pivot,
      );
      step.takePivot(column, own);
    }
    if (!step.isSingular) step.eliminateBelow(column, end);
  }
}

/** The larger pivot wins, of equal ones the upper, so that the result does not depend on the grid. */
function mergePivots(own: Float64Array, other: Float64Array, width: number): void {
  if (other[0] > own[0] || (other[0] === own[0] && other[1] < own[1])) {
    own.set(other.subarray(0, 2));
    own.set(other.subarray(PIVOT_HEADER, PIVOT_HEADER + width), PIVOT_HEADER);
  }
  if (other[2] !== 0) {
    own[2] = 1;
    own.set(other.subarray(PIVOT_HEADER + width, PIVOT_HEADER + 2 * width), PIVOT_HEADER + width);
  }
}

/** The columns of one panel in this process. */
class PanelColumns {
  readonly panel: Panel;
  /** Local row of the panel's first row, where this process has it: else of the first below. */
  readonly topRow: number;
  private readonly problem: Problem;
  private readonly isOwner: boolean;
  /** Place of (topRow, first column). */
  private readonly base: number;

  constructor(problem: Problem, panel: Panel) {
    this.problem = problem;
    this.panel = panel;
    this.topRow = problem.rowsBefore(panel.first);
    this.isOwner = problem.grid.row === panel.ownerRow;
    this.base = problem.at(this.topRow, problem.columnsBefore(panel.first));
  }

  get isSingular(): boolean {
    return singularColumn(this.problem, this.panel) !== 0;
  }

  /** Rows that were not made pivots before `column`, as an offset to topRow. */
  private firstActive(column: number): number {
    return this.isOwner ? column : 0;
  }

  private place(row: number, column: number): number {
    return this.base + column * this.problem.lda + row;
  }

  private l1(row: number, column: number): number {
    return this.panel.places.l1 + column * this.panel.width + row;
  }

  private activeRows(column: number): number {
    return this.problem.localRows - this.topRow - this.firstActive(column);
  }

  private largest(column: number): number {
    const from = this.firstActive(column);
    return from + this.problem.kernels.largest(this.place(from, column), this.activeRows(column));
  }

  private noteSingular(column: number): void {
    this.problem.heap.f64[this.panel.places.header] = this.panel.first + column + 1;
  }

  private isUsable(pivot: number): boolean {
    return Math.abs(pivot) > 0 && Number.isFinite(pivot);
  }

  /** With one process row the pivot is here. */
  takePivotHere(column: number): void {
    const { problem, panel } = this;
    const { f64 } = problem.heap;
    const pivot = this.largest(column);
    if (!this.isUsable(f64[this.place(pivot, column)])) return this.noteSingular(column);
    f64[panel.places.pivots + column] = problem.globalRow(this.topRow + pivot);
    for (let i = 0; i < panel.width; i++) {
      f64[this.l1(column, i)] = f64[this.place(pivot, i)];
      f64[this.place(pivot, i)] = f64[this.place(column, i)];
    }
  }

  /** What this process has to say about the column. */
  offerPivot(column: number, into: Float64Array): void {
    const { problem, panel } = this;
    const { f64 } = problem.heap;
    into.fill(0);
    into[0] = -1;
    into[1] = problem.n;
    if (this.activeRows(column) > 0) {
      const pivot = this.largest(column);
      // What is no number must not hide: it is offered as the largest there is, and refused then.
      const value = Math.abs(f64[this.place(pivot, column)]);
      into[0] = Number.isNaN(value) ? Number.POSITIVE_INFINITY : value;
      into[1] = problem.globalRow(this.topRow + pivot);
      for (let i = 0; i < panel.width; i++) into[PIVOT_HEADER + i] = f64[this.place(pivot, i)];
    }
    if (!this.isOwner) return;
    into[2] = 1;
    for (let i = 0; i < panel.width; i++) into[PIVOT_HEADER + panel.width + i] = f64[this.place(column, i)];
  }

  /** The pivot row goes to L1; what was in its stead goes to where the pivot row was. */
  takePivot(column: number, best: Float64Array): void {
    const { problem, panel } = this;
    const { f64 } = problem.heap;
    const { width } = panel;
    const row = best[1];
    if (!this.isUsable(best[0])) return this.noteSingular(column);
    f64[panel.places.pivots + column] = row;
    for (let i = 0; i < width; i++) f64[this.l1(column, i)] = best[PIVOT_HEADER + i];
    if (ownerOf(row, problem.nb, problem.grid.rows) !== problem.grid.row) return;
    const local = localIndex(row, problem.nb, problem.grid.rows) - this.topRow;
    for (let i = 0; i < width; i++) f64[this.place(local, i)] = best[PIVOT_HEADER + width + i];
  }

  eliminateBelow(column: number, end: number): void {
    const { problem, panel } = this;
    const from = this.firstActive(column + 1);
    const rows = this.activeRows(column + 1);
    if (rows > 0)
      problem.kernels.eliminate(this.place(from, column), rows, problem.lda, end - column - 1, this.l1(column, column), panel.width);
  }

  /** After `left` columns from `from` on are done: the `right` columns beside them. */
  updateRight(from: number, left: number, right: number): void {
    const { problem, panel } = this;
    const { algebra, lda } = problem;
    const column = from + left;
    algebra.dtrsm(left, right, this.l1(from, from), panel.width, this.l1(from, column), panel.width);
    const row = this.firstActive(column);
    const rows = this.activeRows(column);
    if (rows > 0)
      algebra.dgemm(rows, right, left, this.place(row, from), lda, this.l1(from, column), panel.width, this.place(row, column), lda);
  }
}
