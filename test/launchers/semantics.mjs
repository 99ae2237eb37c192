#!/usr/bin/env node
// Runs the suites of semantics with every rank in a separate process, under a starter, and says in TAP how each case ended.
//
//   node test/launchers/semantics.mjs run|mpiexec|mpirun|srun|env [-n RANKS] [--jobs all|0,1,…] [--only REGEXP] [--report FILE]
//       [-- OPTIONS OF THE STARTER]
//   sudo test/launchers/slurm.sh node test/launchers/semantics.mjs srun -- -N4
//
// Cases whose parameters do not go together are in different jobs: 0 has most, 1 the blocking calls, the others the
// algorithms of the collectives by name. By default 0 and 1 are run.
// Exits with 0 when every case passed or does not apply, with 77 when the starter is not here. The report is JSON; by default it goes
// to .cache/report-launchers-STARTER-RANKS.json, where docs/make-semantics.mjs finds it.
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundle } from '../support/bundle.mjs';
import { mpiCommand } from './mpi-commands.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CANNOT = 77;
/** A job that takes longer hangs. */
const JOB_LIMIT_MS = 90_000;

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
const isRoot = process.getuid?.() === 0;

/** What starts so many ranks: a command in front of the program, or several processes with variables of their own. */
const STARTERS = {
  run: { starts: (n, options, cli) => [process.execPath, cli, 'run', '--no-prefix', '-n', n, ...options] },
  mpiexec: {
    mpi: 'MPICH',
    starts: (n, options, _, command) => [command, '-n', n, ...options],
  },
  mpirun: {
    mpi: 'Open MPI',
    starts: (n, options, _, command) => [command, ...(isRoot ? ['--allow-run-as-root'] : []), '--oversubscribe', '-n', n, ...options],
  },
  srun: { needs: ['srun'], starts: (n, options) => ['srun', '--mpi=pmi2', '--overcommit', '-n', n, ...options] },
  env: { each: (rank, n, port) => ({ RANK: rank, WORLD_SIZE: n, MASTER_ADDR: 'localhost', MASTER_PORT: port }) },
};

function misused(text) {
  console.error(
    `semantics: ${text}\nusage: semantics.mjs ${Object.keys(STARTERS).join('|')} [-n RANKS] [--jobs all|0,1,…] [--only REGEXP] [--report FILE]`,
  );
  process.exit(2);
}

/** Runs to its end; the exit code, or 1 when it was killed. */
function ended(command, env = {}) {
  return new Promise((resolve) => {
    const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...env } });
    const timer = setTimeout(() => {
      console.log(`Bail out! the job has not ended after ${JOB_LIMIT_MS} ms`);
      child.kill('SIGTERM');
    }, JOB_LIMIT_MS);
    child.on('error', (error) => {
      console.error(`semantics: ${command[0]}: ${error.message}`);
      resolve(1);
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve(code ?? 1);
    });
  });
}

const { values, positionals } = parseArgs({
  options: {
    n: { type: 'string', short: 'n', default: '4' },
    jobs: { type: 'string', default: '0,1' },
    report: { type: 'string' },
    only: { type: 'string' },
  },
  allowPositionals: true,
});
const [name, ...options] = positionals;
const starter = STARTERS[name];
if (starter === undefined) misused(`starter ${String(name)} is not known`);
if (!/^[1-9]\d*$/.test(values.n)) misused(`-n is ${values.n}; expected a number of ranks`);
if (!/^(all|\d+(,\d+)*)$/.test(values.jobs)) misused(`--jobs is ${values.jobs}; expected "all", or numbers of jobs`);
const command = starter.mpi === undefined ? starter.needs?.find(has) : mpiCommand(starter.mpi);
if ((starter.mpi ?? starter.needs) !== undefined && command === undefined) {
  console.error(`skipped: semantics under ${name}: ${starter.mpi ?? starter.needs.join(' or ')} is not installed`);
  process.exit(CANNOT);
}

const report = values.report ?? join(ROOT, `.cache/report-launchers-${name}-${values.n}.json`);
mkdirSync(dirname(report), { recursive: true });
const code = await bundle([join(ROOT, 'test/launchers/semantics-rank.ts')]);
const part = join(code.folder, 'verdicts.json');

/** One job; its verdicts, which are missing when it broke down. */
async function runJob(number) {
  rmSync(part, { force: true });
  const program = [
    process.execPath,
    code.pathOf('semantics-rank'),
    name,
    String(number),
    part,
    ...(values.only === undefined ? [] : [values.only]),
  ];
  let codes;
  if (starter.starts !== undefined) codes = [await ended([...starter.starts(values.n, options, code.pathOf('cli'), command), ...program])];
  else {
    const port = String(randomInt(20_000, 30_000));
    const ranks = Array.from({ length: Number(values.n) }, (_, rank) => starter.each(String(rank), values.n, port));
    codes = await Promise.all(ranks.map((env) => ended(program, env)));
  }
  const verdicts = existsSync(part) ? JSON.parse(readFileSync(part, 'utf8')) : undefined;
  return { verdicts, isWell: codes.every((one) => one === 0) && verdicts !== undefined };
}

const outcomes = [];
let isWell = true;
try {
  let numbers = values.jobs === 'all' ? [0] : values.jobs.split(',').map(Number);
  for (let i = 0; i < numbers.length; i++) {
    const ran = await runJob(numbers[i]);
    isWell &&= ran.isWell;
    outcomes.push(...(ran.verdicts?.outcomes ?? []));
    // The first one says how many there are.
    if (values.jobs === 'all' && i === 0) numbers = Array.from({ length: ran.verdicts?.jobs ?? 1 }, (_, number) => number);
  }
  writeFileSync(report, JSON.stringify({ starter: name, ranks: Number(values.n), isWell, outcomes }));
} finally {
  code.dispose();
}
const count = (outcome) => outcomes.filter((one) => one.outcome === outcome).length;
const [passed, failed, notApplicable] = ['passed', 'failed', 'not applicable'].map(count);
console.log(`semantics: ${passed} passed, ${failed} failed, ${notApplicable} not applicable (${values.n} ranks under ${name})`);
process.exitCode = isWell && failed === 0 && passed > 0 ? 0 : 1;
