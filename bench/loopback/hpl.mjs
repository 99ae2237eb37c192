#!/usr/bin/env node
// multirail hpl beside Debian's hpcc over Open MPI: the same N, NB and grid, the same OpenBLAS with one thread per rank, in turn. Prints the
// ratio of Gflop/s of each pair and the median, and the WebAssembly kernel's figure beside it. For a quiet machine, after `npm run build`.
//   node bench/loopback/hpl.mjs [--ranks 1,2] [--order 4000] [--nb 128] [--rounds 5] [--btl tcp] [--no-wasm] [--json FILE]
// --btl tcp: both over TCP, instead of what each takes by itself (shared memory). Needs the Debian packages hpcc, openmpi-bin and
// libopenblas0-pthread. Imports stats.mjs, node:*.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from '../lib/stats.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const RUN_TIMEOUT_MS = 30 * 60_000;
const { values } = parseArgs({
  options: {
    ranks: { type: 'string', default: '1,2' },
    order: { type: 'string', default: '4000' },
    nb: { type: 'string', default: '128' },
    rounds: { type: 'string', default: '5' },
    btl: { type: 'string' },
    'no-wasm': { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const order = Number(values.order);
const nb = Number(values.nb);
const rounds = Number(values.rounds);
const env = { ...process.env, OPENBLAS_NUM_THREADS: '1', OMP_NUM_THREADS: '1' };

function fail(text) {
  process.stderr.write(`bench/loopback/hpl.mjs: ${text}\n`);
  process.exit(2);
}

function output(command, args, options = {}) {
  const done = spawnSync(command, args, { encoding: 'utf8', env, timeout: RUN_TIMEOUT_MS, maxBuffer: 64 << 20, ...options });
  if (done.error) fail(`${command}: ${done.error.message}`);
  return done;
}

if (!existsSync(CLI)) fail('there is no dist/cli.js: npm run build');
const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' }).status === 0;
const missing = ['hpcc', 'mpirun.openmpi'].filter((command) => !has(command));
if (missing.length > 0) fail(`no ${missing.join(', no ')}: apt-get install hpcc openmpi-bin libopenblas0-pthread`);
if (![order, nb, rounds].every((value) => Number.isInteger(value) && value > 0))
  fail('--order, --nb and --rounds are whole numbers above zero');

/** HPL's parameters as hpcc reads them; a grid of 1 x Q, and the variant that multirail hpl has. PTRANS, which cannot be left out, is small. */
const hpccInput = (q) => `HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
${order}     Ns
1            # of NBs
${nb}        NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
${q}         Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
8            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
2            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200 10000   values of N
0            number of additional blocking sizes for PTRANS
40 9         values of NB
`;

const ROW = /^W\S+\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)$/m;

/** Gflop/s out of a table of HPL's; the residual must have passed. */
function figureOf(text, who) {
  const row = ROW.exec(text);
  if (row === null || Number(row[1]) !== order || Number(row[2]) !== nb)
    fail(`${who} printed no result for N=${order}:\n${text.slice(-3000)}`);
  if (!/PASSED/.test(text) || /FAILED/.test(text)) fail(`${who}: the residual did not pass:\n${text.slice(-3000)}`);
  return { seconds: Number(row[5]), gflops: Number(row[6]) };
}

function hpcc(ranks) {
  const folder = mkdtempSync(join(tmpdir(), 'multirail-hpcc-'));
  try {
    writeFileSync(join(folder, 'hpccinf.txt'), hpccInput(ranks));
    const btl = values.btl === undefined ? [] : ['--mca', 'btl', `${values.btl},self`];
    const args = ['--allow-run-as-root', '--oversubscribe', '-np', String(ranks), ...btl, 'hpcc'];
    const { status, stderr } = output('mpirun.openmpi', args, { cwd: folder });
    if (status !== 0) fail(`hpcc ended with ${status}:\n${stderr}`);
    const text = readFileSync(join(folder, 'hpccoutf.txt'), 'utf8');
    return figureOf(text.slice(text.lastIndexOf('Begin of HPL section')), 'hpcc');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function multirail(ranks, kernel) {
  const btl = values.btl === undefined ? [] : ['--mca', 'btl', `self,${values.btl}`];
  const args = [CLI, 'hpl', '-n', String(ranks), '-N', String(order), '--nb', String(nb), '--grid', `1x${ranks}`, '--kernel', kernel];
  const { status, stdout, stderr } = output(process.execPath, [...args, '--no-progress', ...btl]);
  if (status !== 0) fail(`multirail hpl ended with ${status}:\n${stderr}`);
  return figureOf(stdout, 'multirail');
}

/** Which BLAS hpcc is linked with, so that a comparison of two libraries is seen. */
function blasOfHpcc() {
  const path = output('sh', ['-c', 'ldd "$(command -v hpcc)"']).stdout;
  const found = /\S*blas\S* => (\S+)/.exec(path);
  return found === null ? 'linked in' : realpathSync(found[1]);
}

const info = `${cpus().length} x ${cpus()[0].model.trim()}, kernel ${release()}, Node ${process.version}, load ${loadavg()[0].toFixed(2)} before`;
console.log(`N=${order} NB=${nb}, ${rounds} rounds in turn, ${values.btl ?? 'transports as each takes them'}; ${info}`);
console.log(`hpcc's BLAS: ${blasOfHpcc()}`);
const results = [];
for (const ranks of values.ranks.split(',').map(Number)) {
  const pairs = [];
  const wasm = [];
  for (let round = 0; round < rounds; round++) {
    const both = {};
    // Who begins changes from round to round.
    for (const who of round % 2 === 0 ? ['multirail', 'hpcc'] : ['hpcc', 'multirail'])
      both[who] = who === 'hpcc' ? hpcc(ranks) : multirail(ranks, 'openblas');
    pairs.push(both);
    if (!values['no-wasm']) wasm.push(multirail(ranks, 'wasm'));
    const ratio = both.multirail.gflops / both.hpcc.gflops;
    console.log(
      `  ${ranks} ranks, round ${round + 1}: multirail ${both.multirail.gflops.toFixed(2)}, hpcc ${both.hpcc.gflops.toFixed(2)} Gflop/s, ratio ${ratio.toFixed(3)}` +
        (wasm.length > 0 ? `; WebAssembly ${wasm.at(-1).gflops.toFixed(2)}` : ''),
    );
  }
  const of = (list) => median(list.map(({ gflops }) => gflops));
  const row = {
    ranks,
    multirail: of(pairs.map((pair) => pair.multirail)),
    hpcc: of(pairs.map((pair) => pair.hpcc)),
    ratio: median(pairs.map((pair) => pair.multirail.gflops / pair.hpcc.gflops)),
    wasm: wasm.length > 0 ? of(wasm) : undefined,
    pairs,
  };
  results.push(row);
  console.log(
    `${ranks} ranks: multirail ${row.multirail.toFixed(2)}, hpcc ${row.hpcc.toFixed(2)} Gflop/s (medians), median ratio of the pairs ${row.ratio.toFixed(3)}`,
  );
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ order, nb, rounds, info, results }, undefined, 1)}\n`);
