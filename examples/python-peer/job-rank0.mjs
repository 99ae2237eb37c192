// Rank 0 of the job of job.sh: one eager message and one rendezvous each way with rank 1, which is a program in Python.
import { createHash } from 'node:crypto';
import { init } from 'multirail';

const EAGER_TAG = 1;
const RENDEZVOUS_TAG = 2;
const RENDEZVOUS_BYTES = 1_000_003;
const pattern = (seed, size) => Uint8Array.from({ length: size }, (_, i) => seed + 31 * i + Math.floor(i / 256));

const mpi = await init();
const { world } = mpi;
const text = new Uint8Array(1024);
const bytes = new Uint8Array(RENDEZVOUS_BYTES);
const [eager] = await Promise.all([
  world.recv(text, 1, EAGER_TAG),
  world.recv(bytes, 1, RENDEZVOUS_TAG),
  world.send(new TextEncoder().encode('hello from Node'), 1, EAGER_TAG),
  world.send(pattern(3, RENDEZVOUS_BYTES), 1, RENDEZVOUS_TAG),
]);
const digest = (data) => createHash('sha256').update(data).digest('hex').slice(0, 16);
if (digest(bytes) !== digest(pattern(7, RENDEZVOUS_BYTES))) throw new Error('the rendezvous brought other bytes');
const said = new TextDecoder().decode(text.subarray(0, eager.bytes));
console.log(`rank 0, Node: ${said}; ${bytes.length} bytes, SHA-256 ${digest(bytes)}`);
await mpi.finalize();
