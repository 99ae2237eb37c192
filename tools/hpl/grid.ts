// The grid of processes and the block-cyclic distribution over it: which process row and column has which row and column of the matrix, and
// where. It is ScaLAPACK's, with the first block at process 0.

export class Grid {
  /** Process rows and columns. */
  readonly rows: number;
  readonly columns: number;
  /** Own place. */
  readonly row: number;
  readonly column: number;

  /** Ranks lie row by row, as HPL's `PMAP 0`. */
  constructor(rows: number, columns: number, rank: number) {
    this.rows = rows;
    this.columns = columns;
    this.row = Math.floor(rank / columns);
    this.column = rank % columns;
  }

  rankAt(row: number, column: number): number {
    return row * this.columns + column;
  }

  /** Ranks of the own process column, by process row. */
  columnRanks(): number[] {
    return Array.from({ length: this.rows }, (_, row) => this.rankAt(row, this.column));
  }

  rowRanks(): number[] {
    return Array.from({ length: this.columns }, (_, column) => this.rankAt(this.row, column));
  }
}

/** How many of the first `count` indices process `index` of `processes` has (NUMROC of ScaLAPACK); also the place of the first from there on. */
export function localCount(count: number, block: number, index: number, processes: number): number {
  const blocks = Math.floor(count / block);
  const own = Math.floor(blocks / processes) * block;
  const extra = blocks % processes;
  if (index < extra) return own + block;
  return index === extra ? own + (count % block) : own;
}

export function ownerOf(global: number, block: number, processes: number): number {
  return Math.floor(global / block) % processes;
}

/** Where the owner has it. */
export function localIndex(global: number, block: number, processes: number): number {
  return Math.floor(global / (block * processes)) * block + (global % block);
}

export function globalIndex(local: number, block: number, index: number, processes: number): number {
  return (Math.floor(local / block) * processes + index) * block + (local % block);
}

/** P x Q = ranks, as square as can be, with P <= Q: what HPL's tuning guide recommends. */
export function squarestGrid(ranks: number): { p: number; q: number } {
  let p = Math.floor(Math.sqrt(ranks));
  while (ranks % p !== 0) p--;
  return { p, q: ranks / p };
}
