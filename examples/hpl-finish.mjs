// The first of two policies when a network fails in a long run: finish on what is left. Linpack on four nodes with a fast network and a slow
// service network; the fast one is pulled after a quarter of the run. Nothing is told to the program: it takes longer, and its residual passes.
//   sudo node examples/hpl-finish.mjs [N]
// It makes the two networks itself (multirail lab; needs root and iproute2) and leaves nothing behind.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const multirail = join(dirname(createRequire(import.meta.url).resolve('multirail/package.json')), 'dist', 'cli.js');
const order = process.argv[2] ?? '1500';
const words = ['hpl', '-n', '4', '-N', order, '--rails', 'fast,slow'];

for (const [what, more] of [
  ['The fast network all the time:', []],
  ['The fast network is pulled after a quarter, and never comes back:', ['--pull', 'fast@25%']],
]) {
  console.log(what);
  const { status, stdout } = spawnSync(process.execPath, [multirail, ...words, '--no-progress', ...more], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) process.exit(status ?? 1);
  // The table, without the parameters in front of it.
  console.log(stdout.slice(stdout.indexOf('T/V                N')));
}
