// A farm: rank 0 hands out work as objects, whoever is ready gets the next piece, and results come back as objects, large buffers uncopied.
// Run it with: npx multirail run -n 4 examples/farm.mjs [pieces of work]
import { ANY_SOURCE, init } from 'multirail';

const WORK = 1;
const RESULT = 2;

/** Rows of the Mandelbrot set: how long one takes depends on where it lies, so an even share would be an uneven load. */
function mandelbrot({ row, width, height, limit }) {
  const counts = new Uint16Array(width);
  const y = (2.4 * row) / height - 1.2;
  for (let column = 0; column < width; column++) {
    const x = (3.2 * column) / width - 2.2;
    let [re, im, n] = [0, 0, 0];
    while (n < limit && re * re + im * im <= 4) {
      [re, im] = [re * re - im * im + x, 2 * re * im + y];
      n++;
    }
    counts[column] = n;
  }
  return { row, counts };
}

const mpi = await init();
try {
  const { world } = mpi;
  const height = Number(process.argv[2] ?? 120);
  const job = { width: 160, height, limit: 1000 };
  if (world.rank > 0) {
    for (;;) {
      const { data: work } = await world.recvObject(0, WORK);
      if (work === null) break;
      await world.sendObject(mandelbrot(work), 0, RESULT);
    }
  } else if (world.size === 1) {
    for (let row = 0; row < height; row++) mandelbrot({ ...job, row });
    console.log(`${height} rows by the only rank`);
  } else {
    const image = new Map();
    const done = new Array(world.size).fill(0);
    let next = 0;
    const hand = (rank) => world.sendObject(next < height ? { ...job, row: next++ } : null, rank, WORK);
    for (let rank = 1; rank < world.size; rank++) await hand(rank);
    while (image.size < height) {
      const { data, status } = await world.recvObject(ANY_SOURCE, RESULT);
      image.set(data.row, data.counts);
      done[status.source]++;
      await hand(status.source);
    }
    console.log(`${image.size} rows; rows by rank: ${done.slice(1).join(', ')}`);
    for (let row = 0; row < height; row += Math.ceil(height / 24)) {
      const line = image.get(row).filter((_, column) => column % 2 === 0);
      console.log(Array.from(line, (n) => ' .:-=+*#%@'[Math.min(9, Math.floor(Math.log2(n + 1)))]).join(''));
    }
  }
} finally {
  await mpi.finalize();
}
