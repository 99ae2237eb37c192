// Programs of C as ranks of ours, beside the same sources as MPICH and Open MPI build and run them, in turn: OSU's latency, bandwidth and allreduce,
// CoMD, and HPCC with its RandomAccess and HPL. Sources: as `npm run c:long` has them, in the folder that MULTIRAIL_C_SOURCES names; HPCC comes from
// Debian. Prints the table, and writes it with --write into bench/RESULTS.md between its two `c` marks.
//   MULTIRAIL_C_SOURCES=folder node bench/peers/c.mjs [--rounds 5] [--only osu,comd,hpcc] [--write]
// Run it on a machine that does nothing else.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { KINDS } from '../../test/wasm/c-build.mjs';
import { buildProgram, lackOf, PROGRAMS } from '../../test/wasm/c-programs.mjs';
import { buildHpcc, hpccInput } from '../../test/wasm/hpcc-build.mjs';
import { execute } from '../../test/wasm/mpich-suite.mjs';
import { measuredAt, writeBetween } from '../lib/section.mjs';
import { median, random, shuffled } from '../lib/stats.mjs';
import { MPICH_TCP } from './contenders.mjs';

const BEGIN = '<!-- c:begin, written by bench/peers/c.mjs -->';
const END = '<!-- c:end -->';
/** A contender that takes longer has not come to its end. HPCC is many programs in one. */
const LIMIT_MS = 40_000;
const HPCC_LIMIT_MS = 600_000;
/** HPL as it is in HPCC 1.5 calls MPI_Address and others of MPI-1, which Open MPI 4 has no more. */
const NO_HPCC = new Set(['openmpi']);

const { values: given } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: 'osu,comd,hpcc' },
    seed: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (given.help) {
  console.log('usage: MULTIRAIL_C_SOURCES=folder node bench/peers/c.mjs [--rounds 5] [--only osu,comd,hpcc] [--seed 1] [--write]');
  process.exit(0);
}
const rounds = Number(given.rounds);
const next = random(Number(given.seed));

/** What puts messages on these rails; Open MPI pinned as it does by itself, MPICH as its bench with peers has it. */
const RAILS = {
  tcp: {
    multirail: { more: ['--mca', 'btl', 'self,tcp'] },
    mpich: { env: MPICH_TCP },
    openmpi: { more: ['--mca', 'pml', 'ob1', '--mca', 'btl', 'self,tcp', '--mca', 'btl_tcp_if_include', 'lo'] },
  },
  sm: {
    multirail: { more: ['--mca', 'btl', 'self,sm'] },
    mpich: {},
    openmpi: { more: ['--mca', 'pml', 'ob1', '--mca', 'btl', 'self,vader'] },
  },
};
const NAMES = { multirail: 'multirail', mpich: 'MPICH', openmpi: 'Open MPI' };

const osuRow = (size) => (output) => Number(new RegExp(`^${size} +([\\d.]+)`, 'm').exec(output)?.[1]);
const osu = (title, rails, ranks, path, size, { args = [], target, isRate = false } = {}) => ({
  title: `${title}, ${ranks} ranks, ${rails}`,
  part: 'osu',
  rails,
  ranks,
  program: (tops) => join(tops.OSU, path),
  args,
  value: osuRow(size),
  unit: isRate ? 'MB/s' : 'µs',
  isRate,
  target,
});
const LATENCY = 'mpi/pt2pt/osu_latency';
const BANDWIDTH = 'mpi/pt2pt/osu_bw';
const ALLREDUCE = 'mpi/collective/osu_allreduce';
const comdLoop = (output) => Number(/^loop +\d+ +[\d.]+ +([\d.]+)/m.exec(output)?.[1]);
const hpccValue = (name) => (_, place) =>
  Number(new RegExp(`^${name}=(.*)$`, 'm').exec(readFileSync(join(place, 'hpccoutf.txt'), 'utf8'))?.[1]);

/** target: the most that ours may be of the native time, or the least of the native rate. */
const ROWS = [
  osu('8 B one way', 'tcp', 2, LATENCY, 8, { target: { of: 'openmpi', most: 1.1 } }),
  osu('8 B one way', 'sm', 2, LATENCY, 8, { target: { of: 'openmpi', most: 3 } }),
  osu('stream of 1 MiB', 'tcp', 2, BANDWIDTH, 1048576, { isRate: true, target: { of: 'openmpi', least: 0.9 } }),
  osu('stream of 1 MiB', 'sm', 2, BANDWIDTH, 1048576, { isRate: true, target: { of: 'openmpi', least: 0.9 } }),
  ...[2, 4].flatMap((ranks) => [
    osu('allreduce of 8 B', 'tcp', ranks, ALLREDUCE, 8, { args: ['-m', '8'], target: { of: 'openmpi', most: 2 } }),
    osu('allreduce of 8 B', 'sm', ranks, ALLREDUCE, 8, { args: ['-m', '8'], target: { of: 'openmpi', most: 6 } }),
  ]),
  {
    title: 'CoMD, 32,000 atoms, 2 ranks, sm',
    part: 'comd',
    rails: 'sm',
    ranks: 2,
    program: (tops) => join(tops.CoMD, 'bin/CoMD-mpi'),
    args: ['-i', '2', '-j', '1', '-k', '1', '-x', '20', '-y', '20', '-z', '20', '-N', '100', '-n', '50'],
    value: comdLoop,
    unit: 's',
    target: { of: 'mpich', most: 1.15 },
  },
  ...[
    ['HPCC, RandomAccess, 2 ranks, sm', 'MPIRandomAccess_GUPs', 'GUP/s', { of: 'mpich', least: 0.2 }],
    ['HPCC, HPL of order 1000, 2 ranks, sm', 'HPL_Tflops', 'Tflop/s', undefined],
  ].map(([title, name, unit, target]) => ({
    title,
    part: 'hpcc',
    rails: 'sm',
    ranks: 2,
    program: (tops) => join(tops.hpcc, 'hpcc'),
    args: [],
    files: (tops) => ({ 'hpccinf.txt': hpccInput(tops.hpcc, { ranks: 2, size: 1000 }) }),
    value: hpccValue(name),
    unit,
    isRate: true,
    target,
  })),
].filter(({ part }) => given.only.split(',').includes(part));
if (ROWS.length === 0) throw new Error(`--only ${given.only}: expected osu, comd or hpcc`);

/** Runs: those of HPCC tell all its rows at once. */
const RUNS = [...ROWS.filter(({ part }) => part !== 'hpcc').map((row) => [row]), ROWS.filter(({ part }) => part === 'hpcc')].filter(
  (rows) => rows.length > 0,
);

async function build(kind) {
  const tops = {};
  for (const name of ['OSU', 'CoMD']) {
    if (!ROWS.some(({ part }) => part === name.toLowerCase())) continue;
    const program = PROGRAMS.find((one) => one.name === name);
    const lack = lackOf(program);
    if (lack !== undefined) throw new Error(`${name}: ${lack}`);
    tops[name] = await buildProgram(kind, program);
  }
  if (ROWS.some(({ part }) => part === 'hpcc') && !NO_HPCC.has(kind)) {
    const { folder: top, why } = await buildHpcc(kind);
    if (why !== undefined) throw new Error(why);
    tops.hpcc = top;
  }
  return tops;
}

const kinds = [];
const tops = {};
for (const kind of Object.keys(NAMES)) {
  const lacks = await KINDS[kind].lacks();
  if (lacks !== undefined) console.log(`left out: ${lacks}`);
  else {
    tops[kind] = await build(kind);
    kinds.push(kind);
  }
}

const load = loadavg()[0].toFixed(2);
const values = new Map();
const keyOf = (kind, { title }) => `${kind} ${title}`;
for (let round = 1; round <= rounds; round++)
  for (const rows of RUNS)
    for (const kind of shuffled(kinds, next)) {
      const [row] = rows;
      if (row.part === 'hpcc' && NO_HPCC.has(kind)) continue;
      const { more = [], env } = RAILS[row.rails][kind];
      const place = mkdtempSync(join(tmpdir(), 'multirail-c-'));
      for (const [name, text] of Object.entries(row.files?.(tops[kind]) ?? {})) writeFileSync(join(place, name), text);
      const [command, args] = KINDS[kind].start(row.ranks, row.program(tops[kind]), row.args, more);
      const timeoutMs = row.part === 'hpcc' ? HPCC_LIMIT_MS : LIMIT_MS;
      const { code, output, isLate } = await execute(command, args, { cwd: place, timeoutMs, env });
      const failure = isLate ? `not at its end after ${timeoutMs / 1000} s` : output.slice(-500);
      for (const one of rows) {
        const value = code === 0 ? one.value(output, place) : Number.NaN;
        values.set(keyOf(kind, one), [...(values.get(keyOf(kind, one)) ?? []), value]);
        const said = Number.isFinite(value) ? `${value} ${one.unit}` : `failed: ${failure}`;
        console.log(`round ${round}, ${one.title}, ${NAMES[kind]}: ${said}`);
      }
      rmSync(place, { recursive: true, force: true });
    }

const good = (kind, row) => (values.get(keyOf(kind, row)) ?? []).filter(Number.isFinite);
const digits = (value) => Number(value.toPrecision(3));
function cell(kind, row) {
  const list = good(kind, row);
  if (list.length === 0) return '–';
  return `${digits(median(list))} <sub>${digits(Math.min(...list))}–${digits(Math.max(...list))}</sub>`;
}
function verdict(row) {
  const ratioTo = (kind) => median(good('multirail', row)) / median(good(kind, row));
  const others = kinds.filter((kind) => kind !== 'multirail' && good(kind, row).length > 0);
  const text = others.map((kind) => `${ratioTo(kind).toFixed(2)} × ${NAMES[kind]}`).join(', ');
  if (row.target === undefined) return [text, ''];
  const { of, most, least } = row.target;
  const isMet = most === undefined ? ratioTo(of) >= least : ratioTo(of) <= most;
  return [text, `${most === undefined ? '≥' : '≤'} ${most ?? least} × ${NAMES[of]}: ${isMet ? 'met' : '**missed**'}`];
}
const lines = [
  `| | unit | ${kinds.map((kind) => NAMES[kind]).join(' | ')} | multirail to others | wanted |`,
  `| --- | --- |${' ---: |'.repeat(kinds.length)} --- | --- |`,
  ...ROWS.map((row) => `| ${[row.title, row.unit, ...kinds.map((kind) => cell(kind, row)), ...verdict(row)].join(' | ')} |`),
];
const versions = [];
for (const [kind, command] of Object.entries({ mpich: 'mpichversion', openmpi: 'ompi_info' }))
  if (kinds.includes(kind)) versions.push((await execute(command, ['--version'])).output.split('\n')[0].replace(/\s+/g, ' ').trim());
const text = [
  `${measuredAt(versions.join(', '), load)} Median of ${rounds} runs each, in turn, with the least and the most.`,
  `Command: \`node bench/peers/c.mjs --rounds ${rounds}${given.only === 'osu,comd,hpcc' ? '' : ` --only ${given.only}`}\``,
  '',
  ...lines,
  '',
].join('\n');
console.log(`\n${text}`);
if (given.write) writeBetween(BEGIN, END, text);
