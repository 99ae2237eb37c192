// The row exchanges of one panel, carried out on columns outside it, which also bring the rows of U together. With one process row they are
// swaps in place. With more, every process ends with all rows of U (HPL's pdlaswp01T): the owner spreads the rows that U displaces, and the
// rows of U are gathered everywhere, by a roll around the column or by binary exchange.
import type { Request } from '../../src/mpi/request.ts';
import { localIndex, ownerOf } from './grid.ts';
import { TAG } from './messages.ts';
import { type Panel, pivotsOf } from './panel.ts';
import type { Problem } from './problem.ts';

/** Up to this many columns `mix` takes the binary exchange: HPL's swapping threshold. */
const MIX_COLUMNS = 64;

export interface RowMoves {
  /** Global row from which row i of U comes. */
  sources: number[];
  /** Rows of the top block that go elsewhere: [row within the block, global row]. */
  displaced: [number, number][];
}

/** What the exchanges row (first + i) <-> pivots[i], one after the other, come to. */
export function rowMoves(first: number, pivots: readonly number[]): RowMoves {
  const holds = new Map<number, number>();
  const at = (row: number) => holds.get(row) ?? row;
  pivots.forEach((pivot, i) => {
    const here = at(first + i);
    holds.set(first + i, at(pivot));
    holds.set(pivot, here);
  });
  const end = first + pivots.length;
  return {
    sources: pivots.map((_, i) => at(first + i)),
    // What leaves the block is a row of the block: only such rows were ever exchanged for what came in.
    displaced: [...holds].filter(([row]) => row >= end).map(([row, from]): [number, number] => [from - first, row]),
  };
}

/** Where U is: rows of the panel's width. */
export interface RowsOfU {
  place: number;
  ld: number;
}

export class RowSwaps {
  private readonly problem: Problem;
  private readonly ranks: readonly number[];
  private panel: Panel | undefined;
  /** By process row: which rows of U it has, and how many displaced rows it gets. */
  private ofU: number[][] = [];
  private displacedCounts: number[] = [];

  constructor(problem: Problem) {
    this.problem = problem;
    this.ranks = problem.grid.columnRanks();
  }

  /** From now on the exchanges of this panel. */
  plan(panel: Panel): void {
    if (this.panel === panel) return;
    this.panel = panel;
    const { problem } = this;
    const { nb, grid, heap, lists } = problem;
    const pivots = pivotsOf(problem, panel);
    const local = (row: number) => localIndex(row, nb, grid.rows);
    if (grid.rows === 1) {
      heap.writeInts(
        lists.pairs,
        pivots.flatMap((pivot, i) => [panel.first + i, pivot]),
      );
      return;
    }
    const { sources, displaced } = rowMoves(panel.first, pivots);
    const owner = (row: number) => ownerOf(row, nb, grid.rows);
    this.ofU = this.ranks.map((_, row) => sources.flatMap((source, i) => (owner(source) === row ? [i] : [])));
    const displacedTo = this.ranks.map((_, row) => displaced.filter(([, to]) => owner(to) === row));
    this.displacedCounts = displacedTo.map((list) => list.length);
    heap.writeInts(
      lists.sources,
      this.ofU[grid.row].map((i) => local(sources[i])),
    );
    heap.writeInts(lists.positions, this.ofU.flat());
    heap.writeInts(
      lists.leaving,
      displacedTo.flat().map(([i]) => local(panel.first) + i),
    );
    heap.writeInts(
      lists.arriving,
      displacedTo[grid.row].map(([, to]) => local(to)),
    );
  }

  /** Exchanges the rows of `count` local columns from `column` on; answers where U is. */
  async apply(column: number, count: number): Promise<RowsOfU> {
    const { problem } = this;
    const panel = this.panel as Panel;
    const { kernels, grid, lda, lists } = problem;
    if (grid.rows === 1) {
      kernels.swapRows(problem.at(0, column), lda, count, lists.pairs, panel.width);
      return { place: problem.at(panel.first, column), ld: lda };
    }
    const arrival = this.spread(panel, column, count);
    await this.gather(column, count);
    await problem.messages.waitAll(arrival);
    const arriving = this.displacedCounts[grid.row];
    const from = problem.displaced + (grid.row === panel.ownerRow ? this.displacedBefore(grid.row) * count : 0);
    kernels.copyRows(from, arriving, lists.iota, problem.at(0, column), lda, lists.arriving, arriving, count);
    // By process row: its rows lie one after the other, and go to their places in U.
    let place = problem.gathered;
    let done = 0;
    for (const rows of this.ofU) {
      const positions = this.intsAt(lists.positions, done);
      kernels.copyRows(place, rows.length, lists.iota, problem.u, panel.width, positions, rows.length, count);
      place += rows.length * count;
      done += rows.length;
    }
    return { place: problem.u, ld: panel.width };
  }

  /** A place within a list of i32, in doubles: halves are allowed, since places become bytes. */
  private intsAt(list: number, index: number): number {
    return list + index / 2;
  }

  private displacedBefore(row: number): number {
    return this.displacedCounts.slice(0, row).reduce((sum, count) => sum + count, 0);
  }

  /** The owner of the top block sends what U displaces; the others get ready to receive it. */
  private spread(panel: Panel, column: number, count: number): Request[] {
    const { problem, ranks } = this;
    const { kernels, grid, heap, lists, messages } = problem;
    if (grid.row !== panel.ownerRow) {
      const rows = this.displacedCounts[grid.row];
      if (rows === 0 || count === 0) return [];
      return [messages.irecv(heap.view(problem.displaced, rows * count), ranks[panel.ownerRow], TAG.displaced)];
    }
    return this.displacedCounts.flatMap((rows, row) => {
      if (rows === 0 || count === 0) return [];
      const before = this.displacedBefore(row);
      const place = problem.displaced + before * count;
      const leaving = this.intsAt(lists.leaving, before);
      kernels.copyRows(problem.at(0, column), problem.lda, leaving, place, rows, lists.iota, rows, count);
      return row === grid.row ? [] : [messages.isend(heap.view(place, rows * count), ranks[row], TAG.displaced)];
    });
  }

  /** All rows of U to all processes of the column. */
  private async gather(column: number, count: number): Promise<void> {
    const { problem } = this;
    const { kernels, grid, lists } = problem;
    const size = grid.rows;
    const me = grid.row;
    const own = this.ofU[me].length;
    kernels.copyRows(problem.at(0, column), problem.lda, lists.sources, this.partOf(me, count).place, own, lists.iota, own, count);
    const { swap } = problem.options;
    if (swap === 'binary-exchange' || (swap === 'mix' && count <= MIX_COLUMNS)) {
      for (let have = 1; have < size; have *= 2) {
        // Twice as many after each step; the last one may be short.
        const step = Math.min(have, size - have);
        await this.shift(
          this.partsFrom(me, step, count),
          (me - have + size) % size,
          this.partsFrom(me + have, step, count),
          (me + have) % size,
        );
      }
      return;
    }
    for (let step = 0; step < size - 1; step++) {
      await this.shift(
        this.partsFrom(me - step + size, 1, count),
        (me + 1) % size,
        this.partsFrom(me - step - 1 + size, 1, count),
        (me - 1 + size) % size,
      );
    }
  }

  private async shift(sent: Float64Array<ArrayBuffer>[], to: number, received: Float64Array<ArrayBuffer>[], from: number): Promise<void> {
    const { messages } = this.problem;
    const requests: Request[] = [];
    if (received.length > 0) requests.push(messages.irecv(received, this.ranks[from], TAG.rowsOfU));
    if (sent.length > 0) requests.push(messages.isend(sent, this.ranks[to], TAG.rowsOfU));
    await messages.waitAll(requests);
  }

  /** The rows of U that process `row` has, over `count` columns. */
  private partOf(row: number, count: number): { place: number; length: number } {
    let before = 0;
    for (let i = 0; i < row; i++) before += this.ofU[i].length;
    return { place: this.problem.gathered + before * count, length: this.ofU[row].length * count };
  }

  /** Those of `many` processes from one on, without empty ones. */
  private partsFrom(row: number, many: number, count: number): Float64Array<ArrayBuffer>[] {
    const parts: Float64Array<ArrayBuffer>[] = [];
    for (let i = 0; i < many; i++) {
      const { place, length } = this.partOf((row + i) % this.ranks.length, count);
      if (length > 0) parts.push(this.problem.heap.view(place, length));
    }
    return parts;
  }
}
