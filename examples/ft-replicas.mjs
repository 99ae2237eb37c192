// A matrix product by two replicas of each rank, or three: a bit that flips in one of them is found, and the job goes on from its newest save. Run it with:
//   npx multirail run -n 4 --replicas 2 --on-diverged relaunch --inject flip:rank=2,replica=shadow,at=60%,buffer=C examples/ft-replicas.mjs saves
// With --replicas 3 and without --on-diverged the two others give the one that was struck their state, and nobody goes back.
// The argument is a folder for saves; without one a job that is started again begins from the beginning. With --mca ft on
// and replica=lead instead of --replicas 2 and --on-diverged the bit is not found, and the check at the end says so.
import { init } from 'multirail';
import { run } from 'multirail/ft';

const ROWS = 40;
const folder = process.argv[2];
const mpi = await init();
const levels = [{ level: 'memory' }, ...(folder === undefined ? [] : [{ level: 'disk', folder }])];
// Only the level in which something lasts is used: every ten rows.
const everySteps = folder === undefined ? [10] : [1000, 10];

await run(mpi, { levels, everySteps }, async (job) => {
  const { comm } = job;
  const { rank, size } = comm;
  const order = ROWS * size;
  const elementOfA = (i, k) => ((i * 7 + k * 3) % 11) - 5;
  const elementOfB = (k, j) => ((k * 5 + j * 2) % 13) - 6;
  const matrix = (of) => Float64Array.from({ length: order * order }, (_, at) => of(Math.floor(at / order), at % order));
  const a = new Float64Array(ROWS * order);
  const b = new Float64Array(order * order);
  const c = new Float64Array(ROWS * order);
  for (const [name, array] of Object.entries({ A: a, B: b, C: c })) job.protect(name, array);
  if (job.step === 0) {
    if (rank === 0) b.set(matrix(elementOfB));
    await comm.scatter(rank === 0 ? matrix(elementOfA) : null, a, 0);
    await comm.bcast(b, 0);
  } else if (rank === 0 && mpi.replica?.isLead !== false)
    console.log(`goes on from save ${job.recovery.save}, behind row ${job.step} of each rank`);
  while (job.step < ROWS) {
    const row = job.step;
    // What --inject strikes, if it strikes.
    mpi.inject?.point(row / ROWS, { A: a, B: b, C: c });
    for (let k = 0; k < order; k++) for (let j = 0; j < order; j++) c[row * order + j] += a[row * order + k] * b[k * order + j];
    await job.next();
  }
  const all = rank === 0 ? new Float64Array(order * order) : null;
  await comm.gather(c, all, 0);
  if (all === null) return;
  await job.validate(all);
  // Whole numbers: sums of rows are exact.
  const ones = Float64Array.from({ length: order }, (_, k) =>
    Array.from({ length: order }, (_, j) => elementOfB(k, j)).reduce((x, y) => x + y),
  );
  const wrong = Array.from({ length: order }, (_, i) => i).filter((i) => {
    const expected = Array.from({ length: order }, (_, k) => elementOfA(i, k) * ones[k]).reduce((x, y) => x + y);
    return all.subarray(i * order, (i + 1) * order).reduce((x, y) => x + y) !== expected;
  });
  if (wrong.length > 0) throw new Error(`${wrong.length} rows of the product are wrong, from row ${wrong[0]} on`);
  if (mpi.replica?.isLead !== false) console.log(`${order} x ${order}: every row is right`);
});
await mpi.finalize();
