// What a checksum over payloads costs: bandwidth at 1 MiB with and without btl_base_payload_crc, interleaved round by round on one machine.
//   node bench/loopback/crc.mjs [ROUNDS]     default 9; some four seconds a round. Build first (npm run build).
// Imports figures.mjs, stats.mjs.
import { benchFigure, roundsFromArguments } from '../lib/figures.mjs';
import { bootstrapMedian, median as medianOf } from '../lib/stats.mjs';

/** The checksum is on by default where it costs less than this. */
const COST_MAX = 0.05;
const rounds = roundsFromArguments('crc.mjs');

const bandwidth = (crc) =>
  benchFigure(1048576, ['bw', '--sync', '--iterations', '60', '--mca', 'btl', 'self,tcp', '--mca', 'btl_base_payload_crc', crc]);

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
