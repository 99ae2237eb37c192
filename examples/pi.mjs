// Pi by the midpoint rule: every rank sums its share of the rectangles, allreduce adds the shares up, and all ranks hold the same bits.
// Run it with: npx multirail run -n 4 examples/pi.mjs [rectangles]
import { init, Op } from 'multirail';

const mpi = await init();
try {
  const { world } = mpi;
  const { rank, size } = world;
  const rectangles = Number(process.argv[2] ?? 10_000_000);
  const width = 1 / rectangles;
  let sum = 0;
  for (let i = rank; i < rectangles; i += size) {
    const x = (i + 0.5) * width;
    sum += 4 / (1 + x * x);
  }
  const pi = new Float64Array(1);
  await world.allreduce(Float64Array.of(sum * width), pi, Op.SUM);

  // The same bits everywhere: the least and the greatest of them are equal.
  const least = new Float64Array(1);
  const greatest = new Float64Array(1);
  await Promise.all([world.reduce(pi, least, Op.MIN), world.reduce(pi, greatest, Op.MAX)]);
  if (rank === 0) {
    console.log(`pi is ${pi[0]}, off by ${Math.abs(pi[0] - Math.PI).toExponential(1)}, by ${size} ranks`);
    if (least[0] !== greatest[0]) throw new Error('the ranks do not agree');
  }
} finally {
  await mpi.finalize();
}
