// Blocking calls: a ring of ranks that passes a growing sum, without a promise. Needs the native part (multirail info tells).
import { init } from 'multirail';

const mpi = await init();
const comm = mpi.world;
const right = (comm.rank + 1) % comm.size;
const left = (comm.rank + comm.size - 1) % comm.size;
const rounds = 1000;
const sum = new Float64Array(1);
const began = performance.now();
for (let round = 0; round < rounds; round++) {
  if (comm.rank === 0) {
    comm.sendSync(sum, right, 1);
    comm.recvSync(sum, left, 1);
  } else {
    comm.recvSync(sum, left, 1);
    sum[0] += comm.rank;
    comm.sendSync(sum, right, 1);
  }
}
if (comm.rank === 0) {
  const expected = (rounds * (comm.size * (comm.size - 1))) / 2;
  const usPerHop = ((performance.now() - began) * 1000) / (rounds * comm.size);
  console.log(`${rounds} rounds of ${comm.size} ranks, ${usPerHop.toFixed(1)} us a hop, sum ${sum[0]}, expected ${expected}`);
}
await mpi.finalize();
