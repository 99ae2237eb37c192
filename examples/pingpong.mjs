// Time and bandwidth between ranks 0 and 1 for growing messages. Run it with:
//   npx multirail run -n 2 --mca btl_tcp_links 2 examples/pingpong.mjs
import { init } from 'multirail';

const mpi = await init();
try {
  const { rank, size } = mpi.world;
  if (size < 2) throw new Error('pingpong needs two ranks: npx multirail run -n 2 examples/pingpong.mjs');
  for (let bytes = 1; bytes <= 4 * 1024 * 1024; bytes *= 4) {
    const buffer = new Uint8Array(bytes);
    const rounds = bytes < 65_536 ? 1000 : 100;
    const startMs = performance.now();
    for (let round = 0; round < rounds && rank < 2; round++) {
      if (rank === 0) {
        await mpi.world.send(buffer, 1);
        await mpi.world.recv(buffer, 1);
      } else {
        await mpi.world.recv(buffer, 0);
        await mpi.world.send(buffer, 0);
      }
    }
    const onewayUs = ((performance.now() - startMs) * 1000) / rounds / 2;
    if (rank === 0)
      console.log(
        `${String(bytes).padStart(8)} bytes ${onewayUs.toFixed(1).padStart(9)} us ${(bytes / onewayUs).toFixed(1).padStart(8)} MB/s`,
      );
  }
} finally {
  await mpi.finalize();
}
