// Latency of blocking calls beside a busy process on each core, against C's blocking socket calls under the same load, interleaved round by
// round: what a spinning library loses when the processor is not its own. Needs what bench/peers.sh has built (run it once).
//   node bench/loaded.mjs [ROUNDS]     default 9; about ten seconds a round
// Imports node:*, stats.mjs.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import process from 'node:process';
import { bootstrapMedian, median as medianOf } from './stats.mjs';

const ROOT = new URL('..', import.meta.url).pathname;
const PAIR = `${ROOT}bench/peers/.cache/bin/pair`;
const TARGET = 2.5;
const rounds = Number(process.argv[2] ?? 9);
if (!Number.isInteger(rounds) || rounds < 1) {
  console.error('usage: node bench/loaded.mjs [ROUNDS]');
  process.exit(2);
}
if (!existsSync(PAIR)) {
  console.error('bench/peers/.cache/bin/pair is missing: run bench/peers.sh once, which builds it');
  process.exit(2);
}

const run = (command, args, env = {}) =>
  spawnSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 120_000,
    env: { ...process.env, PEERS_LATENCY: '8', PEERS_BANDWIDTH: '', ...env },
  });

function cUs() {
  const { stdout } = run(PAIR, ['block', '--unpinned']);
  return JSON.parse(stdout.split('\n').find((line) => line.includes('"latency"'))).value;
}

function multirailUs(btl) {
  const { stdout, stderr } = run(process.execPath, [
    'dist/cli.js',
    'bench',
    'latency',
    '--sync',
    '--sizes',
    '8',
    '--iterations',
    '4000',
    '--mca',
    'btl',
    btl,
  ]);
  const row = stdout.split('\n').find((line) => /^8\s/.test(line));
  if (row === undefined) throw new Error(`no figure: ${stderr}`);
  return Number(row.trim().split(/\s+/)[1]);
}

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
  const ratios = table[btl].map((value, i) => value / table.c[i]);
  const median = medianOf(ratios);
  const { low, high } = bootstrapMedian(ratios);
  const verdict = rounds < 9 ? 'not enough rounds' : high <= TARGET ? 'met' : 'missed';
  console.log(
    `8 B, ${btl}, blocking calls / C blocking, a busy process per core: ${median.toFixed(2)} (95 %: ${low.toFixed(2)} to ${high.toFixed(2)}), target <= ${TARGET}: ${verdict}`,
  );
}
