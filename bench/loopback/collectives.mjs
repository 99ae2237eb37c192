#!/usr/bin/env node
// Collectives beside Open MPI's, both over TCP, in turn: allreduce at two ranks, each on a processor of its own, as a ratio; allreduce,
// alltoall, bcast and barrier at more ranks than processors, blocking calls and promises, over each transport of --btl. Prints a section for
// bench/RESULTS.md. For a quiet machine, after `npm run build`; needs the Debian packages gcc, libopenmpi-dev, openmpi-bin and util-linux.
//   node bench/loopback/collectives.mjs [--rounds 9] [--ranks 4,8] [--btl tcp,sm] [--no-pair] [--json FILE]
// Imports stats.mjs, node:*.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mcaArgs } from '../lib/mca.mjs';
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
  options: {
    rounds: { type: 'string', default: '9' },
    ranks: { type: 'string', default: '4,8' },
    btl: { type: 'string', default: 'tcp,sm' },
    'no-pair': { type: 'boolean', default: false },
    mca: { type: 'string', multiple: true, default: [] },
    json: { type: 'string' },
  },
});
/** Open MPI's transport of that kind, and by how much ours may take longer, blocking calls and promises. */
const TRANSPORTS = { tcp: { theirs: 'tcp', limits: [2, 2] }, sm: { theirs: 'vader', limits: [6, 10] } };

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

function openMpi(ranks, test, sizes, btl = 'tcp') {
  const place = ranks === 2 ? ['--bind-to', 'core'] : ['--bind-to', 'none', '--oversubscribe', '--mca', 'mpi_yield_when_idle', '1'];
  const args = [
    '--allow-run-as-root',
    '-n',
    String(ranks),
    ...place,
    '--mca',
    'pml',
    'ob1',
    '--mca',
    'btl',
    `${TRANSPORTS[btl].theirs},self`,
  ];
  return averages(output('mpirun.openmpi', [...args, '--mca', 'btl_tcp_if_include', 'lo', BINARY, test, ...sizes]), test);
}

function multirail(ranks, test, sizes, btl = 'tcp', isSync = true) {
  const bench = ['bench', test, ...(test === 'barrier' ? [] : ['--sizes', sizes.join(',')])];
  const mca = ['--mca', 'btl', `self,${btl}`, ...mcaArgs(values.mca)];
  if (ranks > 2)
    return averages(output(process.execPath, [CLI, ...bench, '-n', String(ranks), ...(isSync ? ['--sync'] : []), ...mca]), test);
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

/** Rounds of all contenders in turn, each of them first once in a while; by name, then by size, the figures of all rounds. */
function compare(ranks, test, sizes, rounds, contenders) {
  const names = Object.keys(contenders);
  const figures = Object.fromEntries(names.map((name) => [name, new Map(sizes.map((size) => [size, []]))]));
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length];
      const measured = contenders[name]();
      for (const size of sizes) figures[name].get(size).push(measured.get(size));
    }
    const told = sizes.map((size) => `${size} B ${names.map((name) => figures[name].get(size).at(-1)).join(' / ')}`);
    process.stderr.write(`${test}, ${ranks} ranks, round ${round + 1} of ${rounds}, ${names.join(' / ')}: ${told.join(', ')}\n`);
  }
  for (const size of sizes) runs.push({ test, ranks, size, ...Object.fromEntries(names.map((name) => [name, figures[name].get(size)])) });
  return figures;
}
const ratiosOf = (own, theirs) => own.map((value, i) => value / theirs[i]);

if (!values['no-pair']) {
  const pair = compare(2, 'allreduce', PAIR_SIZES, Number(values.rounds), {
    own: () => multirail(2, 'allreduce', PAIR_SIZES),
    theirs: () => openMpi(2, 'allreduce', PAIR_SIZES),
  });
  for (const size of PAIR_SIZES) {
    const [own, theirs] = [pair.own.get(size), pair.theirs.get(size)];
    const ratios = ratiosOf(own, theirs);
    const ratio = median(ratios);
    const wanted = !JUDGED.has(size) ? '' : ratio <= LIMIT ? `≤ ${LIMIT}: yes` : `≤ ${LIMIT}: **no**`;
    if (JUDGED.has(size) && !(ratio <= LIMIT)) isWithin = false;
    const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    lines.push(`| ${size} | ${median(own).toFixed(1)} | ${median(theirs).toFixed(1)} | ${ratio.toFixed(2)} | ${range} | ${wanted} |`);
  }
}
const counts = values.ranks.split(',').filter(Boolean).map(Number);
const rounds = Math.min(3, Number(values.rounds));
for (const btl of counts.length === 0 ? [] : values.btl.split(',')) {
  const { theirs, limits } = TRANSPORTS[btl];
  lines.push('', `### More ranks than processors, ${btl} next to Open MPI's ${theirs} (${rounds} rounds; it yields when idle)`, '');
  lines.push(
    `| Collective | Ranks | Bytes | Blocking (µs) | Promises (µs) | Open MPI (µs) | Blocking: ≤ ${limits[0]} × | Promises: ≤ ${limits[1]} × |`,
  );
  lines.push('| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |');
  for (const [test, sizes] of Object.entries(MORE)) {
    for (const ranks of counts) {
      const figures = compare(ranks, test, sizes, rounds, {
        blocking: () => multirail(ranks, test, sizes, btl),
        promises: () => multirail(ranks, test, sizes, btl, false),
        theirs: () => openMpi(ranks, test, sizes, btl),
      });
      for (const size of sizes) {
        const [blocking, promises, others] = [figures.blocking.get(size), figures.promises.get(size), figures.theirs.get(size)];
        const verdicts = [blocking, promises].map((own, i) => {
          const ratio = median(ratiosOf(own, others));
          return `${ratio.toFixed(1)}: ${ratio <= limits[i] ? 'yes' : '**no**'}`;
        });
        const medians = [blocking, promises, others].map((one) => median(one).toFixed(1));
        lines.push(`| ${test} | ${ranks} | ${test === 'barrier' ? '' : size} | ${medians.join(' | ')} | ${verdicts.join(' | ')} |`);
      }
    }
  }
}
process.stdout.write(`${lines.join('\n')}\n`);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ rounds: Number(values.rounds), runs }, undefined, 1)}\n`);
process.exitCode = isWithin ? 0 : 1;
