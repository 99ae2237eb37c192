// C = A × B by Cannon-like broadcasts (SUMMA; van de Geijn and Watts, 1997) on a grid of ranks: the communicators of the rows and columns of
// the grid come from split(). Run it with: npx multirail run -n 4 examples/matmul.mjs [order of the matrices]
import { init } from 'multirail';

const mpi = await init();
try {
  const { world } = mpi;
  const { rank, size } = world;
  const order = Number(process.argv[2] ?? 240);

  // The most square grid that uses all ranks.
  let gridRows = Math.floor(Math.sqrt(size));
  while (size % gridRows !== 0) gridRows--;
  const gridColumns = size / gridRows;
  const myRow = Math.floor(rank / gridColumns);
  const myColumn = rank % gridColumns;
  const inRow = await world.split(myRow, myColumn);
  const inColumn = await world.split(gridRows + myColumn, myRow);

  const share = (of, parts) => Math.floor((of * order) / parts);
  const [rowFrom, rowTo] = [share(myRow, gridRows), share(myRow + 1, gridRows)];
  const [columnFrom, columnTo] = [share(myColumn, gridColumns), share(myColumn + 1, gridColumns)];
  const rows = rowTo - rowFrom;
  const columns = columnTo - columnFrom;
  // Whole numbers, so that the check can be exact.
  const a = (i, j) => ((i * 7 + j * 3) % 11) - 5;
  const b = (i, j) => ((i * 5 + j * 2) % 13) - 6;
  const c = new Float64Array(rows * columns);

  /** Owner of column k of A in a row of the grid, and of row k of B in a column of the grid. */
  const ownerOf = (k, parts) => Array.from({ length: parts }, (_, of) => of).find((of) => share(of + 1, parts) > k);
  const left = new Float64Array(rows);
  const right = new Float64Array(columns);
  for (let k = 0; k < order; k++) {
    const columnOwner = ownerOf(k, gridColumns);
    const rowOwner = ownerOf(k, gridRows);
    if (myColumn === columnOwner) for (let i = 0; i < rows; i++) left[i] = a(rowFrom + i, k);
    if (myRow === rowOwner) for (let j = 0; j < columns; j++) right[j] = b(k, columnFrom + j);
    // Both travel at the same time: collectives are promises.
    await Promise.all([inRow.bcast(left, columnOwner), inColumn.bcast(right, rowOwner)]);
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) c[i * columns + j] += left[i] * right[j];
  }

  // (A × B) x = A (B x) for a vector of ones: each rank checks its rows with the sum over its row of the grid.
  const sums = new Float64Array(rows);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) sums[i] += c[i * columns + j];
  const rowSums = new Float64Array(rows);
  await inRow.allreduce(sums, rowSums);
  const bOnes = Float64Array.from({ length: order }, (_, k) => Array.from({ length: order }, (_, j) => b(k, j)).reduce((x, y) => x + y));
  for (let i = 0; i < rows; i++) {
    let expected = 0;
    for (let k = 0; k < order; k++) expected += a(rowFrom + i, k) * bOnes[k];
    if (rowSums[i] !== expected) throw new Error(`row ${rowFrom + i} is wrong: ${rowSums[i]} instead of ${expected}`);
  }
  await inRow.free();
  await inColumn.free();
  if (rank === 0) console.log(`${order} x ${order} on a grid of ${gridRows} x ${gridColumns}: every row is right`);
} finally {
  await mpi.finalize();
}
