// Two ranks that exchange long messages until they are told to stop, for the dashboard to look at. Pull a rail on the page, and put it back:
//   npx multirail run -n 2 --dashboard --mca btl tcp --mca btl_tcp_links 2 --mca btl_fault manual examples/dashboard.mjs
// The first argument is how many seconds it goes on (60).
import { init } from 'multirail';

const seconds = Number(process.argv[2] ?? 60);
const mpi = await init();
try {
  const { rank, size } = mpi.world;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const outgoing = new Uint8Array(1024 * 1024).fill(rank);
  const incoming = new Uint8Array(outgoing.length);
  const goOn = new Uint8Array(1);
  const startMs = performance.now();
  for (let round = 0; ; round++) {
    await mpi.world.sendrecv(outgoing, next, 0, incoming, previous, 0);
    // Rank 0 has the watch: its word goes round the ring, so that all ranks leave in the same round.
    goOn[0] = performance.now() - startMs < seconds * 1000 ? 1 : 0;
    if (rank !== 0) await mpi.world.recv(goOn, previous, 1);
    if (next !== 0) await mpi.world.send(goOn, next, 1);
    if (goOn[0] === 0) {
      if (rank === 0) console.log(`${round + 1} rounds of ${size} ranks`);
      break;
    }
    // A program that only moves data would fill every core: this one leaves some of each second to others.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
} finally {
  await mpi.finalize();
}
