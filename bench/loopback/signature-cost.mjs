// What the signature of collectives costs: an allreduce of 8 bytes between two ranks, blocking calls over shared memory, with and without
// coll_check_signatures, in pairs that are run in turn. Prints the time of each, the ratio of each pair, and the median.
//
//   node bench/loopback/signature-cost.mjs [pairs] [calls]        (needs the built package: npm run build)
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { median } from '../lib/stats.mjs';

const PAIRS = Number(process.argv[2] ?? 20);
const CALLS = Number(process.argv[3] ?? 300_000);

if (process.env.MULTIRAIL_SIGNATURE_COST === undefined) {
  const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
  const own = fileURLToPath(import.meta.url);
  const run = (checked) => {
    const args = [cli, 'run', '-n', '2', '--mca', 'btl', 'self,sm', '--mca', 'coll_check_signatures', String(checked), own];
    const env = { ...process.env, MULTIRAIL_SIGNATURE_COST: '1' };
    const text = execFileSync(process.execPath, [...args, String(PAIRS), String(CALLS)], { env, encoding: 'utf8' });
    return Number(/([\d.]+) us/.exec(text)[1]);
  };
  run(true);
  const pairs = Array.from({ length: PAIRS }, (_, i) => {
    // Either comes first as often.
    const [first, second] = i % 2 === 0 ? [true, false] : [false, true];
    const times = { [first]: run(first), [second]: run(second) };
    return { on: times.true, off: times.false, ratio: times.true / times.false };
  });
  for (const { on, off, ratio } of pairs) console.log(`on ${on.toFixed(3)} us  off ${off.toFixed(3)} us  ratio ${ratio.toFixed(3)}`);
  const of = (key) => median(pairs.map((pair) => pair[key])).toFixed(3);
  console.log(`median of ${PAIRS} pairs: on ${of('on')} us, off ${of('off')} us, ratio ${of('ratio')}`);
} else {
  const { init, Op } = await import('multirail');
  const mpi = await init();
  const { world } = mpi;
  const send = new Float64Array(1);
  const recv = new Float64Array(1);
  for (let i = 0; i < CALLS / 5; i++) world.allreduceSync(send, recv, Op.SUM);
  const began = performance.now();
  for (let i = 0; i < CALLS; i++) world.allreduceSync(send, recv, Op.SUM);
  if (world.rank === 0) console.log(`${(((performance.now() - began) * 1000) / CALLS).toFixed(4)} us`);
  await mpi.finalize();
}
