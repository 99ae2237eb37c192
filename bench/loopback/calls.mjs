#!/usr/bin/env node
// How many functions a rank calls for a barrier, counted by V8: what code that is not compiled yet costs, and what many ranks on few processors
// pay, whatever else the machine does. Prints a section for bench/RESULTS.md. After `npm run build`.
//   node bench/loopback/calls.mjs [--ranks 8,16] [--barriers 100] [--names 0]
// With --names 20 also the functions that are called most.
import { spawnSync } from 'node:child_process';
import { Session } from 'node:inspector/promises';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const SELF = fileURLToPath(import.meta.url);
/** Set for a rank of the job that is measured: how many barriers it counts. */
const COUNTED = 'MULTIRAIL_CALLS_COUNTED';
const RUN_TIMEOUT_MS = 120_000;
/** A rank in the middle, whose calls are counted. */
const WATCHED = 1;
/** What the script itself calls once a barrier is not worth a place in a list. */
const OFTEN = 0.5;
const STARTS = [
  ['shared memory at once', ['--mca', 'ft', 'off']],
  ['by messages (`ft on`)', ['--mca', 'ft', 'on']],
  ['over tcp', ['--mca', 'btl', 'tcp,self']],
];

async function rank(count) {
  const { init } = await import('multirail');
  const mpi = await init();
  const { world } = mpi;
  for (let i = 0; i < 2 * count; i++) await world.barrier();
  const session = world.rank === WATCHED ? new Session() : undefined;
  session?.connect();
  await session?.post('Profiler.enable');
  await session?.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await world.barrier();
  await session?.post('Profiler.takePreciseCoverage');
  for (let i = 0; i < count; i++) await world.barrier();
  const taken = await session?.post('Profiler.takePreciseCoverage');
  const functions = (taken?.result ?? [])
    .flatMap((script) => script.functions)
    .map(({ functionName, ranges: [{ count: calls }] }) => ({ name: functionName || '(no name)', calls: calls / count }));
  await mpi.finalize();
  if (session === undefined) return;
  const often = functions.filter(({ calls }) => calls >= OFTEN).sort((a, b) => b.calls - a.calls);
  console.log(JSON.stringify({ calls: functions.reduce((sum, { calls }) => sum + calls, 0), often }));
}

function counted(ranks, words, barriers) {
  const env = { ...process.env, [COUNTED]: String(barriers) };
  const run = [CLI, 'run', '-n', String(ranks), '--no-prefix', ...words, SELF];
  const { status, stdout, stderr } = spawnSync(process.execPath, run, { env, encoding: 'utf8', timeout: RUN_TIMEOUT_MS });
  const line = /\{"calls".*\}/.exec(stdout)?.[0];
  if (status !== 0 || line === undefined) throw new Error(`${run.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
  return JSON.parse(line);
}

if (process.env[COUNTED] !== undefined) await rank(Number(process.env[COUNTED]));
else {
  const { values: given } = parseArgs({
    options: {
      ranks: { type: 'string', default: '8,16' },
      barriers: { type: 'string', default: '100' },
      names: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  });
  if (given.help) {
    console.log('usage: node bench/loopback/calls.mjs [--ranks 8,16] [--barriers 100] [--names 0]');
    process.exit(0);
  }
  const sizes = given.ranks.split(',').map(Number);
  console.log(`| A barrier | ${sizes.map((size) => `${size} ranks`).join(' | ')} |\n| --- |${' ---: |'.repeat(sizes.length)}`);
  for (const [what, words] of STARTS) {
    const cells = sizes.map((size) => counted(size, words, Number(given.barriers)));
    console.log(`| ${what} | ${cells.map(({ calls }) => Math.round(calls)).join(' | ')} |`);
    for (const [i, { often }] of cells.entries()) {
      const names = often.slice(0, Number(given.names)).map(({ name, calls }) => `${calls.toFixed(1)} ${name}`);
      if (names.length > 0) console.log(`  ${sizes[i]} ranks: ${names.join(', ')}`);
    }
  }
}
