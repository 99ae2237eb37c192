// With what programs of C and C++ are built and started: `multirail cc` for ranks of ours, and the compilers of MPICH and Open MPI for the same
// programs as they are elsewhere.
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { buildFolder, execute, has } from './mpich-suite.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const own = (name) => fileURLToPath(new URL(`../../dist/wasm/${name}`, import.meta.url));
export const CACHE = fileURLToPath(new URL('../../.cache/c-sources', import.meta.url));
const TIME_MS = 1_800_000;
const LLVM_VERSIONS = ['', '-21', '-20', '-19', '-18', '-17', '-16', '-15', '-14'];

/** Ends in what a command has said, where it fails. */
export async function must(command, args, cwd) {
  const { code, output } = await execute(command, args, { cwd, timeoutMs: TIME_MS });
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output.slice(-3000)}`);
  return output;
}

/** A name of an LLVM tool that is there. */
async function llvmTool(name) {
  for (const version of LLVM_VERSIONS) if (await has(`${name}${version}`)) return `${name}${version}`;
  throw new Error(`${name} is not installed: apt-get install llvm`);
}

/**
 * Who builds and starts programs. cc, cxx: compilers, each one word. folder: where what they have made lies. start(): the command that runs a
 * program with so many ranks; `more`: options of its starter. lacks(): why it cannot be used here.
 */
export const KINDS = {
  multirail: {
    cc: own('multirail-cc.mjs'),
    cxx: own('multirail-c++.mjs'),
    tools: async () => ({ ar: await llvmTool('llvm-ar'), ranlib: await llvmTool('llvm-ranlib') }),
    get folder() {
      return buildFolder(CACHE);
    },
    start: (ranks, program, args, more = []) => [
      process.execPath,
      [CLI, 'run', '--no-prefix', '-n', String(ranks), ...more, program, ...args],
    ],
    lacks: async () => undefined,
  },
  mpich: {
    cc: 'mpicc.mpich',
    cxx: 'mpicxx.mpich',
    tools: async () => ({ ar: 'ar', ranlib: 'ranlib' }),
    folder: join(CACHE, 'native-mpich'),
    start: (ranks, program, args, more = []) => ['mpirun.mpich', ['-n', String(ranks), ...more, program, ...args]],
    lacks: async () => ((await has('mpicc.mpich')) ? undefined : 'MPICH is not installed (Debian packages mpich, libmpich-dev)'),
  },
  openmpi: {
    cc: 'mpicc.openmpi',
    cxx: 'mpicxx.openmpi',
    tools: async () => ({ ar: 'ar', ranlib: 'ranlib' }),
    folder: join(CACHE, 'native-openmpi'),
    start: (ranks, program, args, more = []) => [
      'mpirun.openmpi',
      ['--allow-run-as-root', '--oversubscribe', '-n', String(ranks), ...more, program, ...args],
    ],
    lacks: async () =>
      (await has('mpicc.openmpi')) ? undefined : 'Open MPI is not installed (Debian packages openmpi-bin, libopenmpi-dev)',
  },
};

/** What puts all messages over two rails of tcp, and does this to them. */
export const overTwoRails = (fault) => [
  ...['--mca', 'btl', 'self,tcp', '--mca', 'btl_tcp_links', '2'],
  ...(fault === undefined ? [] : ['--mca', 'btl_fault', fault]),
];

/** Ends of rails that carried traffic until they were lost, as the ranks have told the launcher (`--events FILE`). */
export function railsLost(eventsFile) {
  const carries = (state) => state === 'UP' || state === 'SUSPECT';
  const events = readFileSync(eventsFile, 'utf8').trim().split('\n').filter(Boolean);
  return events.map((line) => JSON.parse(line)).filter(({ type, from, to }) => type === 'rail-state' && carries(from) && !carries(to))
    .length;
}

/** Runs `make` with a new folder of its own below that of the kind, once: what is there as a whole was made before. Gives the folder. */
export async function once(kind, name, make) {
  const folder = join(KINDS[kind].folder, name);
  const mark = join(folder, '.made');
  if (existsSync(mark)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await make(folder, { ...KINDS[kind], ...(await KINDS[kind].tools()) });
  mkdirSync(mark);
  return folder;
}
