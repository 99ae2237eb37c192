// MPICH's own tests as programs of WebAssembly: their lists are read, programs are compiled with `multirail cc`, and each entry is run with its number
// of ranks. The sources are Debian's source package, unpacked in a folder that the caller names.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

/** Folders whose lists are run, in the order of MPICH's own. */
export const FOLDERS = ['attr', 'coll', 'comm', 'datatype', 'errhan', 'group', 'info', 'init', 'part', 'pt2pt', 'topo'];

/** A folder for what is built: another one when what programs are linked with has changed. */
export function buildFolder(cache) {
  const hash = createHash('sha256');
  const files = fileURLToPath(new URL('../../dist/wasm', import.meta.url));
  for (const name of readdirSync(files, { recursive: true }).sort()) {
    const file = join(files, name);
    if (statSync(file).isFile()) hash.update(readFileSync(file));
  }
  return join(cache, `build-${hash.digest('hex').slice(0, 8)}`);
}

/** What MPICH's configure finds out of a compiler for WASI. */
const CONFIG = `#ifndef MPITESTCONF_H_INCLUDED
#define MPITESTCONF_H_INCLUDED
#define HAVE_STDINT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STDARG_H 1
#define HAVE_STRING_H 1
#define HAVE_STRINGS_H 1
#define HAVE_MEMORY_H 1
#define HAVE_UNISTD_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_STRDUP 1
#define HAVE_USLEEP 1
#define STDC_HEADERS 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_LONG_INT 1
#define HAVE__BOOL 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE_LONG_DOUBLE__COMPLEX 1
#define USE_LONG_DOUBLE_COMPLEX 1
#define HAVE_MPI_INIT_THREAD 1
#define HAVE_MPI_TYPE_CREATE_STRUCT 1
#define HAVE_MPI2_COMBINERS 1
#define USE_STRICT_MPI 1
#define THREAD_PACKAGE_NONE 0
#define THREAD_PACKAGE_INVALID 0
#define THREAD_PACKAGE_POSIX 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_NONE
#define MTEST_HAVE_MIN_MPI_VERSION(major, minor) ((MPI_VERSION == major && MPI_SUBVERSION >= minor) || (MPI_VERSION > major))
#endif
`;

/** One process after the other of a list, \`width\` at a time. */
export async function pool(list, width, run) {
  let next = 0;
  const results = new Array(list.length);
  const worker = async () => {
    while (next < list.length) {
      const i = next++;
      results[i] = await run(list[i], i);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

/** Of what a command says, so many characters of the beginning are kept, and as many of the end, which has the verdict. */
const KEPT_CHARS = 100_000;

/** Runs a command to its end, or to its time. Of long output the middle is left out. */
export function execute(command, args, { cwd, timeoutMs = 120_000, env } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let head = '';
    let tail = '';
    const take = (chunk) => {
      if (head.length < KEPT_CHARS) head += chunk;
      else tail = `${tail}${chunk}`.slice(-KEPT_CHARS);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has just ended.
      }
    }, timeoutMs);
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve({ code: -1, output: String(error), isLate });
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code: code ?? signal, output: head + tail, isLate });
    });
  });
}

/** Whether a command is there. */
export const has = async (command) => (await execute(command, ['--version'])).code === 0;

/** The entries of a list. */
function entriesOf(folder, text) {
  const entries = [];
  for (const line of text.split('\n')) {
    const words = line.trim().split(/\s+/);
    if (words[0] === '' || words[0].startsWith('#') || words[0].startsWith('@')) continue;
    const [name, ranks = '1', ...options] = words;
    const args = options.filter((word) => word.startsWith('arg=')).map((word) => word.slice(4));
    const env = Object.fromEntries(options.filter((word) => word.startsWith('env=')).map((word) => word.slice(4).split('=')));
    const of = (key) => options.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1);
    entries.push({
      id: `${folder}/${name}${args.length > 0 ? ` ${args.join(' ')}` : ''}${Object.keys(env).length > 0 ? ` ${Object.keys(env).join(' ')}` : ''}`,
      folder,
      name,
      ranks: Number(ranks) || 2,
      args,
      env,
      result: of('resultTest'),
      timeoutMs: Math.max(240, Math.min(Number(of('timeLimit') ?? 240), 600)) * 1000,
      memory: Number(of('mem') ?? 0),
      expectedToFail: options.some((word) => word.startsWith('xfail=')),
    });
  }
  return entries;
}

/** All entries of the suite. */
export function readSuite(suite, folders = FOLDERS) {
  const all = [];
  for (const folder of folders) {
    for (const list of ['testlist', 'testlist.in']) {
      const file = join(suite, folder, list);
      if (!existsSync(file)) continue;
      all.push(...entriesOf(folder, readFileSync(file, 'utf8')));
      break;
    }
  }
  return all;
}

/** How a program is made: its sources and its own definitions, as the Makefile says them. */
function recipeOf(suite, folder, name) {
  const make = readFileSync(join(suite, folder, 'Makefile.am'), 'utf8').replace(/\\\n/g, ' ');
  const of = (key) => new RegExp(`^${name}_${key}\\s*=\\s*(.*)$`, 'm').exec(make)?.[1].split(/\s+/) ?? [];
  const sources = of('SOURCES').filter((word) => /\.c$/.test(word));
  return { sources: sources.length > 0 ? sources : [`${name}.c`], defines: of('CPPFLAGS').filter((word) => word.startsWith('-D')) };
}

/** A folder with what all programs are linked with. */
export async function prepare(suite, build) {
  mkdirSync(join(build, 'include'), { recursive: true });
  writeFileSync(join(build, 'include/mpitestconf.h'), CONFIG);
  writeFileSync(join(build, 'dtpoolsconf.h'), '#define HAVE_STDINT_H 1\n#define HAVE_LONG_DOUBLE 1\n');
  const flags = flagsOf(suite, build);
  const threads = join(build, 'no-threads.c');
  writeFileSync(threads, 'void MTest_init_thread_pkg(void) {}\nvoid MTest_finalize_thread_pkg(void) {}\n');
  const sources = ['mtest.c', 'mtest_common.c', 'dtypes.c'].map((name) => join(suite, 'util', name));
  sources.push(threads);
  for (const name of readdirSync(join(suite, 'dtpools/src'))) if (name.endsWith('.c')) sources.push(join(suite, 'dtpools/src', name));
  const objects = await pool(sources, 2, async (source) => {
    const object = join(build, `${basename(source)}.o`);
    if (existsSync(object)) return object;
    const { code, output } = await execute(process.execPath, [CLI, 'cc', '-O1', '-w', ...flags, '-c', source, '-o', object]);
    if (code !== 0) throw new Error(`${source} does not compile:\n${output}`);
    return object;
  });
  return { suite, build, flags, objects, programs: new Map() };
}

function flagsOf(suite, build) {
  return [`-I${join(build, 'include')}`, `-I${join(suite, 'include')}`, `-I${join(suite, 'dtpools/include')}`];
}

/** Compiles the program of an entry, once. Gives its file, or what the compiler said. */
export function compileEntry(made, { folder, name }) {
  const key = `${folder}-${name}`;
  const known = made.programs.get(key);
  if (known !== undefined) return known;
  const compiling = (async () => {
    const { sources, defines } = recipeOf(made.suite, folder, name);
    const file = join(made.build, `${key}.wasm`);
    if (existsSync(file)) return { file };
    const paths = sources.map((source) => join(made.suite, folder, source));
    const args = [CLI, 'cc', '-O1', '-w', ...defines, ...made.flags, ...paths, ...made.objects, '-o', file];
    const { code, output } = await execute(process.execPath, args, { timeoutMs: 300_000 });
    return code === 0 ? { file } : { failure: output };
  })();
  made.programs.set(key, compiling);
  return compiling;
}

/** Runs an entry. `verdict`: 'passed', 'compile', 'failed' or 'late'. */
export async function runEntry(made, entry, options = []) {
  const program = await compileEntry(made, entry);
  if (program.file === undefined) return { verdict: 'compile', output: program.failure };
  const beganMs = performance.now();
  const { code, output, isLate } = await execute(
    process.execPath,
    [CLI, 'run', '-n', String(entry.ranks), ...options, program.file, ...entry.args],
    { cwd: made.build, timeoutMs: entry.timeoutMs, env: { ...entry.env } },
  );
  const ms = Math.round(performance.now() - beganMs);
  if (isLate) return { verdict: 'late', output, ms };
  const saysSo = /^(\[\d+\] )?\s*No Errors\s*$/im.test(output);
  const isWell =
    entry.result === undefined
      ? code === 0 && saysSo
      : entry.result === 'TestErrFatal'
        ? code !== 0
        : entry.result === 'TestStatus'
          ? code !== 0
          : saysSo;
  return { verdict: isWell ? 'passed' : 'failed', code, output, ms };
}
