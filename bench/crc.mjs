// What a checksum over payloads costs: bandwidth at 1 MiB with and without btl_base_payload_crc, interleaved round by round on one machine.
//   node bench/crc.mjs [ROUNDS]     default 9; some four seconds a round. Build first (npm run build).
// Imports node:*, stats.mjs.
import { spawnSync } from 'node:child_process';
import process from 'node:process';
import { bootstrapMedian, median as medianOf } from './stats.mjs';

const ROOT = new URL('..', import.meta.url).pathname;
/** The checksum is on by default where it costs less than this. */
const COST_MAX = 0.05;
const rounds = Number(process.argv[2] ?? 9);
if (!Number.isInteger(rounds) || rounds < 1) {
  console.error('usage: node bench/crc.mjs [ROUNDS]');
  process.exit(2);
}

function bandwidth(crc) {
  const args = ['dist/cli.js', 'bench', 'bw', '--sync', '--sizes', '1m', '--iterations', '60', '--mca', 'btl', 'self,tcp'];
  const { stdout, stderr } = spawnSync(process.execPath, [...args, '--mca', 'btl_base_payload_crc', crc], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 120_000,
  });
  const row = stdout.split('\n').find((line) => /^1048576\s/.test(line));
  if (row === undefined) throw new Error(`no figure: ${stderr}`);
  return Number(row.trim().split(/\s+/)[1]);
}

const ratios = [];
for (let round = 1; round <= rounds; round++) {
  // In turn, so that a drift of the machine favours neither.
  const order = round % 2 === 0 ? ['true', 'false'] : ['false', 'true'];
  const found = Object.fromEntries(order.map((crc) => [crc, bandwidth(crc)]));
  ratios.push(found.true / found.false);
  console.log(`round ${round} of ${rounds}: ${found.false} MB/s without, ${found.true} with`);
}
const median = medianOf(ratios);
const { low, high } = bootstrapMedian(ratios);
const percent = (ratio) => ((1 - ratio) * 100).toFixed(1);
console.log(
  `payload checksum at 1 MiB over loopback costs ${percent(median)} % (95 %: ${percent(high)} to ${percent(low)}); on by default below ${COST_MAX * 100} %`,
);
