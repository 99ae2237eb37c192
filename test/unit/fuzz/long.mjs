// The long run of the fuzz targets: node test/unit/fuzz/long.mjs [CASES [SEED [NAME]]]. Prints count and seed of each target; a failing
// case comes out shrunk, with what is needed to run it again.
import { mkdirSync, rmSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import fc from 'fast-check';

const root = new URL('../../../', import.meta.url);
const [cases = '100000', seedText, only] = process.argv.slice(2);
const seed = seedText === undefined ? Date.now() & 0x7fffffff : Number(seedText);

// Bundled, so that it runs on every version of Node that multirail supports. The bundle lies where the golden files are found.
mkdirSync(new URL('.cache/', root), { recursive: true });
const bundle = new URL(`test/support/.fuzz-${process.pid}.mjs`, root);
await build({
  entryPoints: [new URL('fuzz-targets.ts', import.meta.url).pathname],
  outfile: bundle.pathname,
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  logLevel: 'warning',
});
let failures = 0;
try {
  const { TARGETS } = await import(pathToFileURL(bundle.pathname).href);
  for (const { name, property } of TARGETS) {
    if (only !== undefined && !name.includes(only)) continue;
    const startedMs = performance.now();
    const outcome = fc.check(property(), { numRuns: Number(cases), seed });
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    console.log(`${outcome.failed ? 'FAILED' : 'ok    '} ${name}: ${outcome.numRuns} cases, seed ${seed}, ${seconds} s`);
    if (!outcome.failed) continue;
    failures++;
    console.log(`       counterexample ${JSON.stringify(outcome.counterexample)}, path ${outcome.counterexamplePath}`);
    console.log(`       ${outcome.errorInstance?.stack ?? outcome.error}`);
  }
} finally {
  rmSync(bundle);
}
process.exitCode = failures > 0 ? 1 : 0;
