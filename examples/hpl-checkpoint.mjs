// The second of two policies when a network fails in a long run: be told, run to the next checkpoint, save and stop; and go on from there when
// the network is mended. Linpack on four nodes saves its state (the matrix, and the panel on its way) every few blocks. Each rank hears of its
// own rails by `mpi.on('rail', …)`; at a checkpoint all ranks ask each other whether one has lost a rail, and stop together if so
// (tools/hpl/rank.ts, afterBlock). The resumed run passes the same residual check.
//   sudo node examples/hpl-checkpoint.mjs [N]
// It makes the two networks itself (multirail lab; needs root and iproute2) and leaves nothing behind.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const multirail = join(dirname(createRequire(import.meta.url).resolve('multirail/package.json')), 'dist', 'cli.js');
const order = process.argv[2] ?? '1500';
const folder = mkdtempSync(join(tmpdir(), 'hpl-checkpoint-'));
const words = ['hpl', '-n', '4', '-N', order, '--nb', '64', '--rails', 'fast,slow', '--checkpoint', folder, '--no-progress'];

function run(what, more) {
  console.log(what);
  const { status, stdout } = spawnSync(process.execPath, [multirail, ...words, ...more], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) process.exit(status ?? 1);
  // What comes behind the parameters.
  console.log(stdout.slice(stdout.indexOf('less than') + 'less than'.length).replace(/^.*\n+/, ''));
}

try {
  run('The fast network is pulled after a quarter; the ranks save at their next checkpoint, and stop:', [
    '--on-rail-lost',
    'stop',
    '--pull',
    'fast@25%',
  ]);
  run('The network is mended; they go on from there:', ['--resume']);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
