// A rank dies, and the others go on without it: they revoke the communicator, shrink it, and check a sum over those that are left.
//   multirail run -n 4 --mca ft on --kill 2@1s examples/ft-shrink.mjs
import { init, Op } from 'multirail';

const PATIENCE_MS = 30_000;

const mpi = await init();
const { world } = mpi;

/** Sum of the numbers of all members, as they compute it together. */
async function sumOver(comm) {
  const sum = new Float64Array(1);
  await comm.allreduce(Float64Array.of(world.rank), sum, Op.SUM);
  return sum[0];
}

/** The same, as each computes it alone. */
const expected = (comm) => comm.group.worldRanks.reduce((sum, rank) => sum + rank, 0);

function mustBe(what, got, wanted) {
  if (got === wanted) return;
  console.error(`rank ${world.rank}: ${what} is ${got}; expected ${wanted}`);
  process.exit(1);
}

let failure;
const untilMs = performance.now() + PATIENCE_MS;
while (failure === undefined) {
  if (performance.now() > untilMs) {
    console.error(`rank ${world.rank}: no rank has failed within ${PATIENCE_MS} ms; start it with --mca ft on --kill RANK@TIME`);
    process.exit(1);
  }
  try {
    mustBe('the sum over the world', await sumOver(world), expected(world));
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
console.log(`rank ${world.rank}: failed are ${failed.worldRanks.join(', ')}; ${rest.size} of ${world.size} go on (${failure.message})`);
mustBe('the sum over those that are left', await sumOver(rest), expected(rest));
await rest.free();
await mpi.finalize();
