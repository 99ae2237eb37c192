// Heat spreads in a square plate whose upper edge is hot: Jacobi's iteration on stripes of rows. Each rank keeps a halo of one row above and
// below its stripe; the halo rows travel while the inner rows, which do not need them, are computed.
// Run it with: npx multirail run -n 4 examples/heat.mjs [cells along an edge] [most iterations]
import { init, Op, PROC_NULL } from 'multirail';

const HOT = 100;
const TOLERANCE = 1e-3;
const CHECK_EVERY = 50;

const mpi = await init();
try {
  const { world } = mpi;
  const { rank, size } = world;
  const cells = Number(process.argv[2] ?? 200);
  const most = Number(process.argv[3] ?? 20_000);
  if (cells - 2 < size) throw new Error(`${cells - 2} inner rows are too few for ${size} ranks`);

  // Inner rows 1 … cells - 2 are shared out; the edge keeps its temperature.
  const firstOf = (of) => 1 + Math.floor((of * (cells - 2)) / size);
  const rows = firstOf(rank + 1) - firstOf(rank);
  const above = rank > 0 ? rank - 1 : PROC_NULL;
  const below = rank < size - 1 ? rank + 1 : PROC_NULL;
  const row = (plate, i) => plate.subarray(i * cells, (i + 1) * cells);
  let now = new Float64Array((rows + 2) * cells);
  if (rank === 0) row(now, 0).fill(HOT);
  let next = now.slice();

  /** The mean of the four neighbours for rows from … to; the greatest change. */
  const relax = (from, to) => {
    let change = 0;
    for (let i = from; i <= to; i++) {
      for (let at = i * cells + 1; at < (i + 1) * cells - 1; at++) {
        next[at] = (now[at - cells] + now[at + cells] + now[at - 1] + now[at + 1]) / 4;
        change = Math.max(change, Math.abs(next[at] - now[at]));
      }
    }
    return change;
  };

  const change = new Float64Array(1);
  let iterations = 0;
  do {
    // A rank at the end of the plate sends to PROC_NULL, which takes everything and gives nothing.
    const halo = [
      world.recv(row(now, 0), above, 1),
      world.recv(row(now, rows + 1), below, 0),
      world.send(row(now, 1), above, 0),
      world.send(row(now, rows), below, 1),
    ];
    change[0] = relax(2, rows - 1);
    await Promise.all(halo);
    change[0] = Math.max(change[0], relax(1, 1), rows > 1 ? relax(rows, rows) : 0);
    [now, next] = [next, now];
    iterations++;
    // All ranks must come to the same end.
    if (iterations % CHECK_EVERY === 0) await world.allreduce(change.slice(), change, Op.MAX);
  } while (iterations < most && (iterations % CHECK_EVERY !== 0 || change[0] > TOLERANCE));

  // The plate comes together at rank 0: stripes of different lengths.
  const counts = Array.from({ length: size }, (_, of) => (firstOf(of + 1) - firstOf(of)) * cells);
  const plate = rank === 0 ? new Float64Array((cells - 2) * cells) : null;
  await world.gatherv(now.subarray(cells, (rows + 1) * cells), plate, counts);
  if (plate !== null) {
    const middle = plate[Math.floor((cells - 2) / 2) * cells + Math.floor(cells / 2)];
    console.log(`${iterations} iterations on ${cells} x ${cells} cells by ${size} ranks: ${middle.toFixed(4)} degrees in the middle`);
  }
} finally {
  await mpi.finalize();
}
