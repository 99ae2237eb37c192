// A rank dies, and the others go on: they revoke the communicator, shrink it, and check a sum over those that are left. If a process stands by,
// they call it in afterwards, and all of them check the sum over a communicator of the old size.
//   multirail run -n 4 --spares 1 --kill 2@1s examples/ft-shrink.mjs
import { init, Op } from 'multirail';

const PATIENCE_MS = 30_000;

const mpi = await init();
const { world } = mpi;

/** Sum of the numbers that the members give, as they compute it together. */
async function sumOver(comm, own) {
  const sum = new Float64Array(1);
  await comm.allreduce(Float64Array.of(own), sum, Op.SUM);
  return sum[0];
}

const sumOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0);

function mustBe(what, got, wanted) {
  if (got === wanted) return;
  console.error(`rank ${mpi.rank}: ${what} is ${got}; expected ${wanted}`);
  process.exit(1);
}

/** All ranks are there again, whoever they are: each of them has the same sum of their ranks. */
async function checkFull(full) {
  const ranks = Array.from({ length: full.size }, (_, rank) => rank);
  mustBe('the sum over the ranks of the old size', await sumOver(full, full.rank), sumOf(ranks));
  console.log(`rank ${full.rank} of ${full.size}, process ${mpi.process} (${mpi.role}): all places are taken`);
  await full.free();
}

if (mpi.role === 'initial') {
  let failure;
  const untilMs = performance.now() + PATIENCE_MS;
  while (failure === undefined) {
    if (performance.now() > untilMs) {
      console.error(`rank ${mpi.rank}: no rank has failed within ${PATIENCE_MS} ms; start it with --mca ft on --kill RANK@TIME`);
      process.exit(1);
    }
    try {
      mustBe('the sum over the world', await sumOver(world, mpi.process), sumOf(world.group.worldRanks));
      await new Promise((resolve) => setTimeout(resolve, 1));
    } catch (error) {
      if (error.code !== 'ERR_PROC_FAILED' && error.code !== 'ERR_REVOKED') throw error;
      failure = error;
    }
  }

  // Others may be in a call that needs no dead rank, but waits for one that has left: the revocation gets them out.
  await world.revoke();
  const rest = await world.shrink();
  const { failed } = await world.agree(0);
  console.log(`rank ${mpi.rank}: failed are ${failed.worldRanks.join(', ')}; ${rest.size} of ${world.size} go on (${failure.message})`);
  mustBe('the sum over those that are left', await sumOver(rest, mpi.process), sumOf(rest.group.worldRanks));
  await rest.free();

  // One rank may know less than another, and all have to do the same.
  const { flag } = await world.agree(mpi.standby.ready >= failed.size ? 1 : 0);
  if (flag === 1) await checkFull(await world.replace());
} else {
  await checkFull(world);
}
await mpi.finalize();
