#!/usr/bin/env node
// Collectives beside Open MPI's, both over TCP, in turn: allreduce at two ranks, each on a processor of its own, as a ratio; allreduce,
// alltoall, bcast and barrier at more ranks for information (on two processors they time the scheduler). Prints a section for
// bench/RESULTS.md. For a quiet machine, after `npm run build`; needs the Debian packages gcc, libopenmpi-dev, openmpi-bin and util-linux.
//   node bench/loopback/collectives.mjs [--rounds 9] [--ranks 4,8] [--json FILE]
// Imports stats.mjs, node:*.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from '../lib/stats.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const SOURCE = fileURLToPath(new URL('../peers/c/collectives.c', import.meta.url));
const PIN = fileURLToPath(new URL('../peers/pin.sh', import.meta.url));
const CACHE = fileURLToPath(new URL('../peers/.cache/bin', import.meta.url));
const BINARY = `${CACHE}/collectives`;
const RUN_TIMEOUT_MS = 5 * 60_000;
const PAIR_SIZES = ['8', '1024', '65536', '1048576', '8388608'];
/** Those that are judged, and by how much ours may take longer. */
const JUDGED = new Set(['8', '8388608']);
const LIMIT = 1.2;
const MORE = { allreduce: ['8', '65536', '1048576'], alltoall: ['8', '65536'], bcast: ['8', '65536', '1048576'], barrier: ['0'] };

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '9' }, ranks: { type: 'string', default: '4,8' }, json: { type: 'string' } },
});

function output(command, args, env = process.env) {
  const done = spawnSync(command, args, { encoding: 'utf8', env, timeout: RUN_TIMEOUT_MS });
  if (done.status !== 0) {
    process.stderr.write(`bench/loopback/collectives.mjs: ${command} ${args.join(' ')}: ${done.error?.message ?? done.stderr}\n`);
    process.exit(1);
  }
  return done.stdout;
}

/** Average microseconds by size, of lines "[0] SIZE AVERAGE …" or, for a barrier, "AVERAGE …". */
function averages(text, test) {
  const rows = text.split('\n').map((line) =>
    line
      .replace(/^\[0\]/, '')
      .trim()
      .split(/\s+/)
      .map(Number),
  );
  const figures = rows.filter((row) => row.length >= 4 && row.every(Number.isFinite));
  return new Map(figures.map((row) => (test === 'barrier' && row.length === 4 ? ['0', row[0]] : [String(row[0]), row[1]])));
}

function openMpi(ranks, test, sizes) {
  const place = ranks === 2 ? ['--bind-to', 'core'] : ['--bind-to', 'none', '--oversubscribe', '--mca', 'mpi_yield_when_idle', '1'];
  const args = ['--allow-run-as-root', '-n', String(ranks), ...place, '--mca', 'pml', 'ob1', '--mca', 'btl', 'tcp,self'];
  return averages(output('mpirun.openmpi', [...args, '--mca', 'btl_tcp_if_include', 'lo', BINARY, test, ...sizes]), test);
}

function multirail(ranks, test, sizes) {
  const bench = ['bench', test, ...(test === 'barrier' ? [] : ['--sizes', sizes.join(',')])];
  if (ranks > 2) return averages(output(process.execPath, [CLI, ...bench, '-n', String(ranks), '--mca', 'btl', 'self,tcp']), test);
  // Blocking calls, as MPI's are, and each rank on its own processor, as Open MPI places its own.
  const pinned = [PIN, process.execPath, CLI, ...bench, '--sync'];
  return averages(output(process.execPath, [CLI, 'run', '-n', '2', '--mca', 'btl', 'self,tcp', '--', ...pinned]), test);
}

if (!existsSync(CLI)) throw new Error('there is no dist/cli.js: npm run build');
mkdirSync(CACHE, { recursive: true });
output('mpicc.openmpi', ['-O2', '-Wall', '-Wextra', SOURCE, '-o', BINARY]);

const lines = [
  '## Collectives beside Open MPI',
  '',
  `\`node bench/loopback/collectives.mjs --rounds ${values.rounds} --ranks ${values.ranks}\`, ${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.version}, ${output('mpirun.openmpi', ['--version']).split('\n')[0]}; load before ${loadavg()[0].toFixed(2)}.`,
  'Both over TCP on loopback, in turn; microseconds of a call, the average of the ranks, median of the rounds; the ratio is the median of the',
  "rounds' ratios (below 1: ours is faster).",
  '',
  '### Allreduce, two ranks, blocking calls, a processor each',
  '',
  '| Bytes | multirail (µs) | Open MPI (µs) | Ratio | Least to most | Wanted |',
  '| ---: | ---: | ---: | ---: | ---: | --- |',
];
const runs = [];
let isWithin = true;

/** Rounds of both in turn, first one and then the other first. */
function compare(ranks, test, sizes, rounds) {
  const own = new Map(sizes.map((size) => [size, []]));
  const theirs = new Map(sizes.map((size) => [size, []]));
  for (let round = 0; round < rounds; round++) {
    const measured = {};
    for (const who of round % 2 === 0 ? ['own', 'theirs'] : ['theirs', 'own']) {
      measured[who] = (who === 'own' ? multirail : openMpi)(ranks, test, sizes);
    }
    for (const size of sizes) {
      own.get(size).push(measured.own.get(size));
      theirs.get(size).push(measured.theirs.get(size));
    }
    const told = sizes.map((size) => `${size} B ${measured.own.get(size)} / ${measured.theirs.get(size)}`);
    process.stderr.write(`${test}, ${ranks} ranks, round ${round + 1} of ${rounds}: ${told.join(', ')}\n`);
  }
  return sizes.map((size) => {
    const ratios = own.get(size).map((value, i) => value / theirs.get(size)[i]);
    runs.push({ test, ranks, size, own: own.get(size), theirs: theirs.get(size) });
    return { size, own: median(own.get(size)), theirs: median(theirs.get(size)), ratios, ratio: median(ratios) };
  });
}

for (const { size, own, theirs, ratio, ratios } of compare(2, 'allreduce', PAIR_SIZES, Number(values.rounds))) {
  const wanted = !JUDGED.has(size) ? '' : ratio <= LIMIT ? `≤ ${LIMIT}: yes` : `≤ ${LIMIT}: **no**`;
  if (JUDGED.has(size) && !(ratio <= LIMIT)) isWithin = false;
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  lines.push(`| ${size} | ${own.toFixed(1)} | ${theirs.toFixed(1)} | ${ratio.toFixed(2)} | ${range} | ${wanted} |`);
}
const counts = values.ranks.split(',').filter(Boolean).map(Number);
if (counts.length > 0) {
  const rounds = Math.min(3, Number(values.rounds));
  lines.push('', `### More ranks than processors, for information: they time the scheduler (${rounds} rounds)`, '');
  lines.push('| Collective | Ranks | Bytes | multirail (µs) | Open MPI (µs) |', '| --- | ---: | ---: | ---: | ---: |');
  for (const [test, sizes] of Object.entries(MORE)) {
    for (const ranks of counts) {
      for (const { size, own, theirs } of compare(ranks, test, sizes, rounds)) {
        lines.push(`| ${test} | ${ranks} | ${test === 'barrier' ? '' : size} | ${own.toFixed(1)} | ${theirs.toFixed(1)} |`);
      }
    }
  }
}
process.stdout.write(`${lines.join('\n')}\n`);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ rounds: Number(values.rounds), runs }, undefined, 1)}\n`);
process.exitCode = isWithin ? 0 : 1;
