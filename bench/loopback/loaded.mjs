// Latency of blocking calls beside a busy process on each core, against C's blocking socket calls under the same load, interleaved round by
// round: what a spinning library loses when the processor is not its own. Needs what bench/peers.sh has built (run it once).
//   node bench/loopback/loaded.mjs [ROUNDS]     default 9; about ten seconds a round
// Imports node:*, figures.mjs, stats.mjs.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import process from 'node:process';
import { benchFigure, ROOT, roundsFromArguments, runHere } from '../lib/figures.mjs';
import { judge } from '../lib/stats.mjs';

const PAIR = `${ROOT}bench/peers/.cache/bin/pair`;
const TARGET = 2.5;
const rounds = roundsFromArguments('loaded.mjs');
if (!existsSync(PAIR)) {
  console.error('bench/peers/.cache/bin/pair is missing: run bench/peers.sh once, which builds it');
  process.exit(2);
}

function cUs() {
  const { stdout } = runHere(PAIR, ['block', '--unpinned'], { PEERS_LATENCY: '8', PEERS_BANDWIDTH: '' });
  return JSON.parse(stdout.split('\n').find((line) => line.includes('"latency"'))).value;
}

const multirailUs = (btl) => benchFigure(8, ['latency', '--sync', '--iterations', '4000', '--mca', 'btl', btl]);

const hogs = Array.from({ length: availableParallelism() }, () => spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));
const end = () => {
  for (const hog of hogs) hog.kill('SIGKILL');
};
process.on('exit', end);
process.on('SIGINT', () => process.exit(130));

const table = { c: [], 'self,tcp': [], 'self,sm': [] };
for (let round = 1; round <= rounds; round++) {
  table.c.push(cUs());
  for (const btl of ['self,tcp', 'self,sm']) table[btl].push(multirailUs(btl));
  const line = Object.entries(table).map(([name, values]) => `${name} ${values.at(-1).toFixed(1)}`);
  console.log(`round ${round} of ${rounds}, us: ${line.join(', ')}`);
}
end();
for (const btl of ['self,tcp', 'self,sm']) {
  const { verdict, ratio, low, high } = judge(
    table[btl].map((value, i) => value / table.c[i]),
    { atMost: TARGET },
  );
  console.log(
    `8 B, ${btl}, blocking calls / C blocking, a busy process per core: ${ratio.toFixed(2)} (95 %: ${low.toFixed(2)} to ${high.toFixed(2)}), target <= ${TARGET}: ${verdict}`,
  );
}
