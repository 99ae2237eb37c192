// Every rank sends a greeting to rank 0, which takes them in any order. Run it with: npx multirail run -n 3 examples/hello.mjs
import { ANY_SOURCE, init } from 'multirail';

const mpi = await init();
const { rank, size } = mpi.world;
if (rank === 0) {
  const text = new Uint8Array(64);
  for (let i = 1; i < size; i++) {
    const status = await mpi.world.recv(text, ANY_SOURCE, 7);
    console.log(`${Buffer.from(text).toString('utf8', 0, status.bytes)} (${status.bytes} bytes, tag ${status.tag})`);
  }
} else {
  await mpi.world.send(Buffer.from(`hello from rank ${rank}`), 0, 7);
}
await mpi.finalize();
