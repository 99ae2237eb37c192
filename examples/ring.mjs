// A token goes round the ring of ranks and grows by each one's number. Run it with: npx multirail run -n 4 examples/ring.mjs
import { init } from 'multirail';

const mpi = await init();
try {
  const { rank, size } = mpi.world;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const token = new Float64Array(1);
  if (rank === 0) {
    await mpi.world.send(token, next);
    await mpi.world.recv(token, previous);
    console.log(`the token went through ${size} ranks and is worth ${token[0]}`);
  } else {
    await mpi.world.recv(token, previous);
    token[0] += rank;
    await mpi.world.send(token, next);
  }
} finally {
  await mpi.finalize();
}
