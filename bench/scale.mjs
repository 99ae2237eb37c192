#!/usr/bin/env node
// What a job costs by its number of ranks: `run -n N` of a program that does init, barrier and finalize, next to N empty Node processes and, where
// it is installed, Open MPI's mpirun with the same program in C. Prints a table with its targets, and the exponents by which times grow with N.
//   node bench/scale.mjs [--ranks 2,16,32,64] [--rounds 1] [--limit 60] [--mca 'NAME VALUE']… [--json FILE] [--no-mpi]
// For a quiet machine, after `npm run build`; every job is ended after --limit seconds. Imports stats.mjs, node:*.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mcaArgs } from './lib/mca.mjs';
import { median } from './lib/stats.mjs';

/** Set for a rank of the job that is measured: the folder where it leaves its figures. */
const FIGURES = 'MULTIRAIL_SCALE_FIGURES';
const PHASES = ['import', 'init', 'barrier', 'finalize'];
const RSS_MB_MAX = 62;
const DESCRIPTORS_MAX = 60;
const IMPORT_MS_MAX = 35;
/** A job that is told to end has this long for it. */
const KILL_AFTER_MS = 5000;

/** One rank: the processor time of each phase, and what the process holds while it is in the job. */
async function rank(folder) {
  const cpu = {};
  let { user, system } = process.cpuUsage();
  const node = { cpuMs: (user + system) / 1000, rssMb: process.memoryUsage.rss() / 1e6 };
  const end = (phase) => {
    const before = user + system;
    ({ user, system } = process.cpuUsage());
    cpu[phase] = (user + system - before) / 1000;
  };
  const { init } = await import('multirail');
  end('import');
  const mpi = await init();
  end('init');
  await mpi.world.barrier();
  end('barrier');
  const descriptors = readdirSync('/proc/self/fd').length;
  const rssMb = process.memoryUsage.rss() / 1e6;
  const { rank: number } = mpi;
  end('look');
  await mpi.finalize();
  end('finalize');
  writeFileSync(join(folder, `${number}.json`), JSON.stringify({ node, cpu, descriptors, rssMb }));
}

/** Runs a job to its end, or to its limit: the seconds that it took (undefined when it failed or was ended), and its standard error. */
function job(command, args, limitMs, env = {}) {
  return new Promise((resolve, reject) => {
    const beganMs = performance.now();
    // A group of its own, so that nothing of it is left behind.
    const child = spawn(command, args, { detached: true, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } });
    const kill = (signal) => {
      try {
        process.kill(-child.pid, signal);
      } catch (error) {
        if (error.code !== 'ESRCH') throw error;
      }
    };
    let isOver = false;
    let killer;
    const limit = setTimeout(() => {
      isOver = true;
      kill('SIGTERM');
      killer = setTimeout(() => kill('SIGKILL'), KILL_AFTER_MS);
    }, limitMs);
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      errors += text;
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(limit);
      clearTimeout(killer);
      const seconds = (performance.now() - beganMs) / 1000;
      // Whatever of the group is still there holds the pipe.
      kill('SIGKILL');
      child.once('close', () => resolve({ seconds: code === 0 && !isOver ? seconds : undefined, isOver, errors }));
    });
  });
}

/** The program in C, built where there is an mpicc; undefined, with the reason said, where there is none. */
function buildForOpenMpi() {
  if (spawnSync('mpirun.openmpi', ['--version']).status !== 0) {
    process.stderr.write('without Open MPI: its mpirun is not here (Debian packages openmpi-bin, libopenmpi-dev and gcc)\n');
    return undefined;
  }
  const cache = fileURLToPath(new URL('peers/.cache/bin', import.meta.url));
  const source = fileURLToPath(new URL('peers/c/start.c', import.meta.url));
  mkdirSync(cache, { recursive: true });
  const built = spawnSync('mpicc.openmpi', ['-O2', source, '-o', join(cache, 'start')], { encoding: 'utf8' });
  if (built.status === 0) return join(cache, 'start');
  process.stderr.write(`without Open MPI: its mpicc builds no program (Debian packages libopenmpi-dev and gcc): ${built.stderr}\n`);
  return undefined;
}

/** The slope of log y over log x by least squares: y grows with that power of x. */
function exponent(points) {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)]);
  const meanX = logs.reduce((sum, [x]) => sum + x, 0) / logs.length;
  const meanY = logs.reduce((sum, [, y]) => sum + y, 0) / logs.length;
  const above = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  const below = logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return logs.length < 2 ? Number.NaN : above / below;
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      ranks: { type: 'string', default: '2,16,32,64' },
      rounds: { type: 'string', default: '1' },
      limit: { type: 'string', default: '60' },
      mca: { type: 'string', multiple: true, default: [] },
      json: { type: 'string' },
      'no-mpi': { type: 'boolean', default: false },
    },
  });
  const whole = (text, name) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1) return value;
    console.error(`bench/scale.mjs: --${name} ${text}: expected whole numbers from 1`);
    return process.exit(2);
  };
  return {
    ranks: values.ranks.split(',').map((text) => whole(text, 'ranks')),
    rounds: whole(values.rounds, 'rounds'),
    limitMs: whole(values.limit, 'limit') * 1000,
    mca: mcaArgs(values.mca),
    json: values.json,
    withMpi: !values['no-mpi'],
  };
}

/** One job of N ranks, with what each of them wrote down. */
async function measureRanks(n, { limitMs, mca }) {
  const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'multirail-scale-'));
  try {
    const empty = await job(process.execPath, [cli, 'run', '-n', String(n), '--', process.execPath, '-e', '0'], limitMs);
    const args = [cli, 'run', '-n', String(n), ...mca, fileURLToPath(import.meta.url)];
    const full = await job(process.execPath, args, limitMs, { [FIGURES]: folder });
    const figures = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
    const warnings = full.errors.split('\n').filter((line) => line.includes('multirail: '));
    return { n, emptyS: empty.seconds, fullS: full.seconds, isOver: full.isOver, errors: full.errors, figures, warnings };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const middle = (rounds, of) => median(rounds.map(of).filter((value) => value !== undefined));
const text = (value, digits = 1) => (Number.isFinite(value) ? value.toFixed(digits) : '–');

/** The rounds of one N as one row of figures; NaN where there is no figure. */
function rowOf(n, rounds, mpiS) {
  const ranks = rounds.flatMap(({ figures }) => figures);
  const cpu = Object.fromEntries(PHASES.map((phase) => [phase, median(ranks.map((figures) => figures.cpu[phase]))]));
  return {
    n,
    fullS: middle(rounds, ({ fullS }) => fullS),
    emptyS: middle(rounds, ({ emptyS }) => emptyS),
    mpiS,
    cpu,
    cpuMs: PHASES.reduce((sum, phase) => sum + cpu[phase], 0),
    nodeMs: median(ranks.map(({ node }) => node.cpuMs)),
    nodeRssMb: median(ranks.map(({ node }) => node.rssMb)),
    descriptors: ranks.length === 0 ? Number.NaN : Math.max(...ranks.map((figures) => figures.descriptors)),
    rssMb: ranks.length === 0 ? Number.NaN : Math.max(...ranks.map((figures) => figures.rssMb)),
    warnings: rounds.reduce((sum, { warnings }) => sum + warnings.length, 0),
    isOver: rounds.some(({ isOver }) => isOver),
  };
}

/** The longest time that a job of so many ranks is to take; undefined where no target is set. */
function targetS(n, emptyS) {
  if (n < 64 || !Number.isFinite(emptyS)) return undefined;
  return (n === 64 ? 1.5 : 2) * emptyS + 2;
}

function tableOf(rows, { limitMs }) {
  const lines = [
    '| Ranks | Job (s) | Wanted | Empty (s) | Open MPI (s) | import | init | barrier | finalize | Descriptors | RSS (MB) | Warnings |',
    `|${' ---: |'.repeat(12)}`,
  ];
  for (const row of rows) {
    const wanted = targetS(row.n, row.emptyS);
    const isMet = row.fullS <= wanted ? 'yes' : '**no**';
    const cells = [
      row.n,
      row.isOver ? `not done in ${limitMs / 1000}` : text(row.fullS, 2),
      wanted === undefined ? '' : `≤ ${text(wanted)}: ${isMet}`,
      text(row.emptyS, 2),
      text(row.mpiS, 2),
      ...PHASES.map((phase) => text(row.cpu[phase])),
      text(row.descriptors, 0),
      text(row.rssMb, 0),
      row.warnings,
    ];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return lines;
}

async function compare() {
  const options = readOptions();
  const binary = options.withMpi ? buildForOpenMpi() : undefined;
  const rows = [];
  const load = loadavg()[0];
  for (const n of options.ranks) {
    const rounds = [];
    const mpi = [];
    for (let round = 0; round < options.rounds; round++) {
      const one = await measureRanks(n, options);
      rounds.push(one);
      // A job that failed says why; one that was ended has no more to say than that.
      if (one.fullS === undefined && !one.isOver) process.stderr.write(`${n} ranks failed:\n${one.errors}\n`);
      for (const line of one.warnings.slice(0, 3)) process.stderr.write(`${line}\n`);
      if (binary === undefined) continue;
      const args = ['--allow-run-as-root', '--oversubscribe', '-n', String(n), binary];
      mpi.push((await job('mpirun.openmpi', args, options.limitMs)).seconds);
    }
    const mpiS = middle(mpi, (seconds) => seconds);
    rows.push(rowOf(n, rounds, mpiS));
    const row = rows.at(-1);
    process.stderr.write(`${n} ranks: ${text(row.fullS, 2)} s, empty ${text(row.emptyS, 2)} s, Open MPI ${text(mpiS, 2)} s\n`);
  }
  const fits = [
    ['job', (row) => row.fullS],
    ['empty', (row) => row.emptyS],
    ['Open MPI', (row) => row.mpiS],
    ['processor time of a rank', (row) => row.cpuMs],
  ].map(([name, of]) => {
    const points = rows.filter((row) => of(row) > 0).map((row) => [row.n, of(row)]);
    return `${name} ${text(exponent(points), 2)}`;
  });
  const node = rows[0];
  console.log(
    [
      `Node ${process.version}, ${availableParallelism()} processors, load before ${load.toFixed(2)}; ${options.rounds} round${options.rounds === 1 ? '' : 's'}.`,
      `Phases: ms of processor time of a rank, the median; Node alone takes ${text(node.nodeMs)} ms and ${text(node.nodeRssMb, 0)} MB before the import. Descriptors and RSS: the largest.`,
      `Wanted: import ≤ ${IMPORT_MS_MAX} ms, ≤ ${DESCRIPTORS_MAX} descriptors, ≤ ${RSS_MB_MAX} MB, no warning.`,
      '',
      ...tableOf(rows, options),
      '',
      `Grows with N to the power of: ${fits.join(', ')}.`,
    ].join('\n'),
  );
  if (options.json !== undefined)
    writeFileSync(options.json, `${JSON.stringify({ node: process.version, rounds: options.rounds, rows }, undefined, 1)}\n`);
}

// Last, since what they use has to be there.
if (process.env[FIGURES] === undefined) await compare();
else await rank(process.env[FIGURES]);
