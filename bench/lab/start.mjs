// Starts a measurement of bench/lab.sh or bench/soak.sh: bundles the product with the programs of bench/lab and bench/soak (Node 20 runs no
// TypeScript) into a folder of its own below .cache/, and runs lab-main out of it. Imports node: modules, the bundling of the system tests.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleInto } from '../../test/support/bundle.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, '.cache');
/** What is run, by the names under which processes are seen. */
const PROGRAMS = {
  'lab-main': 'lab/main.ts',
  'lab-launch': 'lab/launch.ts',
  'lab-rank': 'lab/rank.ts',
  'lab-memory-job': 'lab/memory-job.ts',
  'lab-memory-root': 'lab/memory-root.ts',
  'lab-memory-peers': 'lab/memory-peers.ts',
  'soak-rank': 'soak/rank.ts',
  'gray-rank': 'lab/gray-rank.ts',
};

if (process.platform !== 'linux' || process.geteuid?.() !== 0) {
  process.stderr.write('This needs root on Linux: it makes network namespaces. Run it by sudo.\n');
  process.exit(2);
}

mkdirSync(CACHE, { recursive: true });
// What a killed run left; the number is the process that made the folder.
for (const [place, pattern] of [
  [CACHE, /^bench-lab-(\d+)$/],
  [tmpdir(), /^multirail-bench-(\d+)-/],
]) {
  for (const name of readdirSync(place)) {
    const pid = pattern.exec(name);
    if (pid !== null && !isAlive(Number(pid[1]))) rmSync(join(place, name), { recursive: true, force: true });
  }
}
const folder = join(CACHE, `bench-lab-${process.pid}`);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
await bundleInto(folder, Object.fromEntries(Object.entries(PROGRAMS).map(([name, path]) => [name, join(ROOT, 'bench', path)])));
process.chdir(ROOT);
process.setSourceMapsEnabled(true);
await import(pathToFileURL(join(folder, 'lab-main.mjs')).href);

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
