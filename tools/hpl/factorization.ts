// The factorisation A = P L U, with the right-hand side as one more column: right-looking, with partial pivoting, and with look-ahead: the
// ranks that have the next panel update its columns first, factor it and send it off, and only then update the rest; the panel travels
// while all ranks compute.
import { MultirailError } from '../../src/errors.ts';
import { PanelBroadcast } from './broadcast.ts';
import { ownerOf } from './grid.ts';
import { type Panel, PanelFactorization, panelOf, panelView, singularColumn } from './panel.ts';
import type { Problem } from './problem.ts';
import { RowSwaps } from './row-swaps.ts';

/**
 * Columns that are updated between two looks at a panel that is on its way. Less makes dgemm slower; at 512 both ranks of a job over shared
 * memory waited a third of their time (N = 4000: 0.34 s of 1.1; at 128 and with one copy 0.03 to 0.1).
 */
const LOOK_COLUMNS = 128;

/** After each block: `block` of them are done. Answers true to stop there; all ranks must answer alike. */
export type OnBlock = (block: number) => Promise<boolean> | boolean | undefined;

export class Factorization {
  private readonly problem: Problem;
  private readonly panels: PanelFactorization;
  private readonly swaps: RowSwaps;
  private readonly broadcasts: (PanelBroadcast | undefined)[] = [undefined, undefined];

  constructor(problem: Problem) {
    this.problem = problem;
    this.panels = new PanelFactorization(problem);
    this.swaps = new RowSwaps(problem);
  }

  /**
   * Factors from block `from` on, whose panel is here already when `from` > 0 (a resumed run with look-ahead). Answers how many blocks are
   * done. Throws ERR_ARG on every rank when the matrix is singular.
   */
  async run(onBlock: OnBlock = () => false, from = 0): Promise<number> {
    const { problem } = this;
    const { blocks, messages } = problem;
    const isAhead = problem.options.depth === 1;
    let panel = from > 0 && isAhead ? this.place(from) : undefined;
    for (let k = from; k < blocks; k++) {
      panel ??= await this.obtain(k);
      this.checkRegular(panel);
      this.swaps.plan(panel);
      const next = isAhead && k + 1 < blocks ? await this.lookAhead(k + 1, panel) : undefined;
      // The columns behind this block, and behind the next one where that is updated already.
      const done = k + (next === undefined ? 0 : 1);
      const column = problem.columnsBefore(done * problem.nb + problem.width(done));
      await this.updateColumns(panel, column, problem.localColumns - column, next);
      if (next !== undefined) await this.broadcastOf(k + 1)?.arrived();
      panel = next;
      // Listeners and timers have their turn once per block.
      await messages.breathe();
      if ((await onBlock(k + 1)) === true) {
        await this.settle();
        return k + 1;
      }
    }
    await this.settle();
    return blocks;
  }

  private isColumnOf(k: number): boolean {
    return ownerOf(k * this.problem.nb, this.problem.nb, this.problem.grid.columns) === this.problem.grid.column;
  }

  private broadcastOf(k: number): PanelBroadcast | undefined {
    return this.broadcasts[k % 2];
  }

  /** The panel of block k in its places, whoever filled them. */
  private place(k: number): Panel {
    return panelOf(this.problem, k, this.problem.panels[k % 2]);
  }

  /** Factors or receives a panel, and waits for it. */
  private async obtain(k: number): Promise<Panel> {
    const panel = await this.begin(k);
    await this.broadcastOf(k)?.arrived();
    return panel;
  }

  /** Factors a panel and sends it off, or gets ready to receive it. */
  private async begin(k: number): Promise<Panel> {
    const { problem } = this;
    const { grid, options, messages } = problem;
    // Its places were those of the panel before last.
    await this.broadcastOf(k)?.sent();
    const root = ownerOf(k * problem.nb, problem.nb, grid.columns);
    const panel = grid.column === root ? await this.panels.factor(k, problem.panels[k % 2]) : this.place(k);
    this.broadcasts[k % 2] =
      grid.columns === 1
        ? undefined
        : new PanelBroadcast(messages, options.broadcast, grid.rowRanks(), grid.column, root, panelView(problem, panel));
    return panel;
  }

  private async lookAhead(k: number, current: Panel): Promise<Panel> {
    if (this.isColumnOf(k)) {
      const column = this.problem.columnsBefore(k * this.problem.nb);
      await this.updateColumns(current, column, this.problem.width(k), undefined);
    }
    return await this.begin(k);
  }

  /** Exchanges rows, solves for U, and subtracts L2 U, on `count` local columns. */
  private async updateColumns(panel: Panel, column: number, count: number, next: Panel | undefined): Promise<void> {
    const { problem } = this;
    const { algebra, kernels, lda, grid } = problem;
    const { width, rowsBelow, places } = panel;
    const u = await this.swaps.apply(column, count);
    const traveller = next === undefined ? undefined : this.broadcastOf(next.block);
    let isTravelling = traveller !== undefined && !traveller.look();
    for (let done = 0; done < count; ) {
      const columns = isTravelling ? Math.min(LOOK_COLUMNS, count - done) : count - done;
      const rows = u.place + done * u.ld;
      algebra.dtrsm(width, columns, places.l1, width, rows, u.ld);
      if (rowsBelow > 0) {
        const target = problem.at(panel.firstRowBelow, column + done);
        algebra.dgemm(rowsBelow, columns, width, panel.l2, rowsBelow, rows, u.ld, target, lda);
      }
      done += columns;
      if (isTravelling) isTravelling = !(traveller as PanelBroadcast).look();
    }
    // Gathered rows of U belong to the top block.
    if (grid.rows > 1 && grid.row === panel.ownerRow) {
      kernels.copyBlock(u.place, u.ld, problem.at(problem.rowsBefore(panel.first), column), lda, width, count);
    }
  }

  /** Nothing of this is under way any more. */
  private async settle(): Promise<void> {
    for (const broadcast of this.broadcasts) {
      await broadcast?.arrived();
      await broadcast?.sent();
    }
  }

  private checkRegular(panel: Panel): void {
    const column = singularColumn(this.problem, panel);
    if (column === 0) return;
    throw new MultirailError(
      'ERR_ARG',
      `the matrix is singular: no pivot other than 0 is left in column ${column} of ${this.problem.n}: try another seed, which makes another matrix`,
    );
  }
}
