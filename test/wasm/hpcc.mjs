// HPCC as ranks of ours, built by its own Makefiles with `multirail cc`, and run whole, without and with a rail that is pulled. Every residual must
// have PASSED, RandomAccess must have no error, and both runs must say the same, to the digit.
//
//   node test/wasm/hpcc.mjs [--ranks 4] [--size 1000] [--pull 1@3s]
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { KINDS, must, overTwoRails } from './c-build.mjs';
import { buildHpcc, hpccInput } from './hpcc-build.mjs';

const { values: options } = parseArgs({
  options: {
    ranks: { type: 'string', default: '4' },
    size: { type: 'string', default: '1000' },
    pull: { type: 'string', default: '1@3000ms' },
  },
});
const ranks = Number(options.ranks);

/** Runs it. Gives what it has found out apart from times. */
async function run(top, name, more) {
  const folder = join(KINDS.multirail.folder, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(join(folder, 'hpccinf.txt'), hpccInput(top, { ranks, size: options.size }));
  const beganMs = performance.now();
  await must(...KINDS.multirail.start(ranks, join(top, 'hpcc'), [], more), folder);
  const text = readFileSync(join(folder, 'hpccoutf.txt'), 'utf8');
  const seconds = ((performance.now() - beganMs) / 1000).toFixed(0);
  const passed = text.match(/PASSED/g)?.length ?? 0;
  const failed = text.match(/FAILED/g)?.length ?? 0;
  const errors = [...text.matchAll(/Found (\d+) errors/g)].map((match) => Number(match[1]));
  const isWhole = /^Success=1$/m.test(text) && /End of HPC Challenge tests/.test(text);
  console.log(
    `${name}: ${passed} PASSED, ${failed} FAILED, RandomAccess ${errors.join(' ')} errors, ${isWhole ? 'whole' : 'NOT WHOLE'}, ${seconds} s`,
  );
  // Not those of DGEMM ("Scaled residual"), whose matrices are drawn by the time of day.
  const residuals = text.match(/^(?:\|\|Ax-b\|\|_oo\/.*|(?:HPL_[RAXB]norm\w+|PTRANS_residual|MPIFFT_maxErr|\w+_Errors)=.*)$/gm) ?? [];
  // Of PTRANS: lines of a time, a grid, times, rates and a residual.
  const ptrans = [...text.matchAll(/^(WALL|CPU)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(PASSED|FAILED)\s+\S+\s+\S+\s+(\S+)$/gm)].map(
    (match) => match[7],
  );
  return {
    isRight: isWhole && passed > 0 && failed === 0 && errors.length > 0 && errors.every((n) => n === 0),
    results: [...residuals, ...ptrans],
  };
}

const { folder: top, why } = await buildHpcc('multirail');
if (why !== undefined) {
  console.log(`skipped: ${why}`);
  console.log('hpcc: 0 passed, 0 failed, 1 skipped');
  process.exit(0);
}
const whole = await run(top, 'whole', []);
const pulled = await run(top, 'pulled', overTwoRails(`pull:${options.pull}`));
const isEqual = JSON.stringify(whole.results) === JSON.stringify(pulled.results);
console.log(`${whole.results.length} results ${isEqual ? 'are equal to the digit' : 'DIFFER'} when rail 1 is pulled`);
for (const [i, line] of whole.results.entries()) if (line !== pulled.results[i]) console.log(`  ${line}\n  ${pulled.results[i]}`);
const checks = [whole.isRight, pulled.isRight, isEqual && whole.results.length > 0];
const passed = checks.filter(Boolean).length;
console.log(`hpcc: ${passed} passed, ${checks.length - passed} failed, 0 skipped`);
process.exit(passed === checks.length ? 0 : 1);
