// HPCC as ranks of ours: Debian's source package, built unedited by its own Makefiles with `multirail cc`, and run whole, without and with a rail that
// is pulled. Every residual must have PASSED, RandomAccess must have no error, and both runs must say the same, to the digit. Its BLAS is the
// one in C of the GNU Scientific Library, from Debian's sources too. Nothing of both is kept in this repository.
//
//   node test/wasm/hpcc.mjs [--ranks 4] [--size 1000] [--pull 1@3s]
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { debianSource } from './debian-source.mjs';
import { buildFolder, execute, pool } from './mpich-suite.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const CC = fileURLToPath(new URL('../../dist/wasm/multirail-cc.mjs', import.meta.url));
const CACHE = fileURLToPath(new URL('../../.cache/c-sources', import.meta.url));
const BUILD = buildFolder(CACHE);
const TIME_MS = 1_800_000;

const { values: options } = parseArgs({
  options: {
    ranks: { type: 'string', default: '4' },
    size: { type: 'string', default: '1000' },
    pull: { type: 'string', default: '1@3000ms' },
  },
});

/** Ends in what a command has said, where it fails. */
async function must(command, args, cwd) {
  const { code, output } = await execute(command, args, { cwd, timeoutMs: TIME_MS });
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output.slice(-3000)}`);
  return output;
}

/** A name of an LLVM tool that is there. */
async function tool(name) {
  for (const version of ['', '-21', '-20', '-19', '-18', '-17', '-16', '-15', '-14'])
    if ((await execute(`${name}${version}`, ['--version'])).code === 0) return `${name}${version}`;
  throw new Error(`${name} is not installed: apt-get install llvm`);
}

/** The BLAS in C, as a library. */
async function makeBlas(gsl, ar) {
  const folder = join(BUILD, 'blas');
  const library = join(folder, 'libgslcblas.a');
  if (existsSync(library)) return library;
  mkdirSync(join(folder, 'gsl'), { recursive: true });
  // What its configure and its make would do for this one folder.
  writeFileSync(join(folder, 'config.h'), '#define HAVE_INLINE 1\n');
  for (const part of ['', 'sys', 'cblas'])
    for (const name of readdirSync(join(gsl, part)).filter((file) => /^gsl_.*\.h$/.test(file)))
      copyFileSync(join(gsl, part, name), join(folder, 'gsl', name));
  const sources = readdirSync(join(gsl, 'cblas')).filter((name) => /^(d|id|xerbla|hypot)\w*\.c$/.test(name));
  const objects = await pool(sources, 2, async (name) => {
    const object = join(folder, name.replace(/c$/, 'o'));
    await must(process.execPath, [CC, '-O3', '-w', `-I${folder}`, '-c', join(gsl, 'cblas', name), '-o', object], folder);
    return object;
  });
  await must(ar, ['rcs', library, ...objects], folder);
  return library;
}

/** HPL's file of settings: the compiler, the archiver and the BLAS. */
const settings = (ar, blas) => `SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir
RM = /bin/rm -f
TOUCH = touch
ARCH = $(arch)
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
LAlib = ${blas}
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) $(LAlib) -lm
HPL_OPTS = -DHPL_CALL_CBLAS
HPL_DEFS = $(HPL_OPTS) $(HPL_INCLUDES)
CC = ${CC}
CCNOOPT = $(HPL_DEFS) -w
CCFLAGS = $(HPL_DEFS) -O3 -w
LINKER = ${CC}
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ${ar}
ARFLAGS = r
RANLIB = ${ar} s
`;

async function build(hpcc, gsl) {
  const top = join(BUILD, 'hpcc');
  if (existsSync(join(top, 'hpcc'))) return top;
  mkdirSync(BUILD, { recursive: true });
  const ar = await tool('llvm-ar');
  const blas = await makeBlas(gsl, ar);
  if (!existsSync(top)) cpSync(hpcc, top, { recursive: true });
  writeFileSync(join(top, 'hpl/Make.multirail'), settings(ar, blas));
  await must('make', ['-j2', 'arch=multirail'], top);
  return top;
}

/** Its input, with another size and grid. */
function inputOf(top) {
  const ranks = Number(options.ranks);
  let rows = Math.floor(Math.sqrt(ranks));
  while (ranks % rows !== 0) rows--;
  const values = [
    [/^\d+(\s+Ns)$/m, options.size],
    [/^\d+(\s+Ps)$/m, rows],
    [/^\d+(\s+Qs)$/m, ranks / rows],
  ];
  return values.reduce((text, [line, value]) => text.replace(line, `${value}$1`), readFileSync(join(top, '_hpccinf.txt'), 'utf8'));
}

/** Runs it. Gives what it has found out apart from times. */
async function run(top, name, more) {
  const folder = join(BUILD, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(join(folder, 'hpccinf.txt'), inputOf(top));
  const beganMs = performance.now();
  await must(process.execPath, [CLI, 'run', '-n', options.ranks, ...more, join(top, 'hpcc')], folder);
  const text = readFileSync(join(folder, 'hpccoutf.txt'), 'utf8');
  const seconds = ((performance.now() - beganMs) / 1000).toFixed(0);
  const passed = text.match(/PASSED/g)?.length ?? 0;
  const failed = text.match(/FAILED/g)?.length ?? 0;
  const errors = [...text.matchAll(/Found (\d+) errors/g)].map((match) => Number(match[1]));
  const isWhole = /^Success=1$/m.test(text) && /End of HPC Challenge tests/.test(text);
  console.log(
    `${name}: ${passed} PASSED, ${failed} FAILED, RandomAccess ${errors.join(' ')} errors, ${isWhole ? 'whole' : 'NOT WHOLE'}, ${seconds} s`,
  );
  // Not those of DGEMM ("Scaled residual"), whose matrices are drawn by the time of day.
  const residuals = text.match(/^(?:\|\|Ax-b\|\|_oo\/.*|(?:HPL_[RAXB]norm\w+|PTRANS_residual|MPIFFT_maxErr|\w+_Errors)=.*)$/gm) ?? [];
  // Of PTRANS: lines of a time, a grid, times, rates and a residual.
  const ptrans = [...text.matchAll(/^(WALL|CPU)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(PASSED|FAILED)\s+\S+\s+\S+\s+(\S+)$/gm)].map(
    (match) => match[7],
  );
  return {
    isRight: isWhole && passed > 0 && failed === 0 && errors.length > 0 && errors.every((n) => n === 0),
    results: [...residuals, ...ptrans],
  };
}

const sources = { hpcc: await debianSource(CACHE, 'hpcc'), gsl: await debianSource(CACHE, 'gsl') };
const why = sources.hpcc.why ?? sources.gsl.why;
if (why !== undefined) {
  console.log(`skipped: ${why}`);
  console.log('hpcc: 0 passed, 0 failed, 1 skipped');
  process.exit(0);
}
const top = await build(sources.hpcc.folder, sources.gsl.folder);
const whole = await run(top, 'whole', []);
const rails = ['--mca', 'btl', 'self,tcp', '--mca', 'btl_tcp_links', '2'];
const pulled = await run(top, 'pulled', [...rails, '--mca', 'btl_fault', `pull:${options.pull}`]);
const isEqual = JSON.stringify(whole.results) === JSON.stringify(pulled.results);
console.log(`${whole.results.length} results ${isEqual ? 'are equal to the digit' : 'DIFFER'} when rail 1 is pulled`);
for (const [i, line] of whole.results.entries()) if (line !== pulled.results[i]) console.log(`  ${line}\n  ${pulled.results[i]}`);
const checks = [whole.isRight, pulled.isRight, isEqual && whole.results.length > 0];
const passed = checks.filter(Boolean).length;
console.log(`hpcc: ${passed} passed, ${checks.length - passed} failed, 0 skipped`);
process.exit(passed === checks.length ? 0 : 1);
