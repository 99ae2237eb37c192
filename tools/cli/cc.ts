// `multirail cc` and `multirail c++`: compile and link programs of C and C++ that call MPI, with clang, for `multirail run`. Options are those of
// a C compiler; what is added is what makes the program one of WASI with our mpi.h.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import { quoted } from '../../src/launch/run/remote-host.ts';

type Language = 'c' | 'c++';

/** What a program is compiled with. */
export interface Toolchain {
  readonly compiler: string;
  readonly flags: readonly string[];
  /** Where the libraries of WASI are. */
  readonly libraries: string;
}

const LLVM_VERSIONS = ['', '-21', '-20', '-19', '-18', '-17', '-16', '-15', '-14'];
const SYSTEM = '/usr/lib/wasm32-wasi';

/** Emulations of what WASI lacks, by their macros and libraries. */
const EMULATED = ['signal', 'process-clocks', 'mman', 'getpid'];
const DEFINES = EMULATED.map((name) => `-D_WASI_EMULATED_${name.toUpperCase().replace('-', '_')}`);
const LIBRARIES = [...EMULATED.map((name) => `-lwasi-emulated-${name}`), '-lc-printscan-long-double', '-lm'];

/** The C stack, which is the first part of memory: a program that goes beyond it crashes, and overwrites nothing. */
const STACK_BYTES = 8 * 1024 * 1024;
const MEMORY_BYTES_MAX = 4 * 1024 * 1024 * 1024;
const LINK = [
  // Shared memory is what no growth takes away under a message. Nobody else has it: libraries that were not made for that will do.
  '-Wl,--shared-memory,--no-check-features',
  `-Wl,--max-memory=${MEMORY_BYTES_MAX}`,
  '-Wl,--import-memory,--export-table',
  `-Wl,--stack-first,-z,stack-size=${STACK_BYTES}`,
];

/** What start.c includes of ours. */
const START_HEADERS = ['stdlib.h', 'sys/resource.h'];

/** Options for the processors of other machines, and for what is there anyway. */
const DROPPED = /^(-march=|-mtune=|-mcpu=|-pthread$|-rdynamic$|-fPIC$|-fpic$|-lmpi$|-lmpich$|-lmpicxx$|-lrt$|-lpthread$)/;
/** Options after which nothing is linked. */
const NO_LINK = new Set(['-c', '-S', '-E', '-M', '-MM', '-fsyntax-only']);
/** What prints the command, or only its part for the compiler or the linker, as those of Open MPI and MPICH do. */
const SHOWS = /^(?:-show|--?showme(?::(?:command|compile|link))?|-(?:compile|link)[-_]info)$/;

/** Our headers, and what is linked into each program: beside the command, or in the sources. */
export function programFiles(): string {
  for (const place of ['./wasm/', '../../src/wasm/c/']) {
    const folder = fileURLToPath(new URL(place, import.meta.url));
    if (existsSync(join(folder, 'mpi.h'))) return folder;
  }
  throw new MultirailError('ERR_SUPPORT', 'the files of `multirail cc` are missing from the package: install it again');
}

function onPath(name: string, path: string): string | undefined {
  for (const folder of path.split(delimiter)) if (folder !== '' && existsSync(join(folder, name))) return join(folder, name);
  return undefined;
}

function findTool(names: readonly string[], path: string): string | undefined {
  for (const name of names)
    for (const version of LLVM_VERSIONS) {
      const found = onPath(`${name}${version}`, path);
      if (found !== undefined) return found;
    }
  return undefined;
}

/** Debian's packages that bring what is missing. */
function missing(what: string, ...packages: string[]): never {
  throw new MultirailError(
    'ERR_SUPPORT',
    `${what} is not installed: on Debian and Ubuntu, apt-get install ${packages.join(' ')}; or unpack a WASI SDK and name its folder in MULTIRAIL_WASI_SDK`,
  );
}

/** Finds clang and what it needs for WASI; a sentence says which package lacks. */
export function findToolchain(language: Language, env: Readonly<Record<string, string | undefined>>): Toolchain {
  const name = language === 'c' ? 'clang' : 'clang++';
  const sdk = env.MULTIRAIL_WASI_SDK;
  if (sdk !== undefined && sdk !== '') {
    const compiler = join(sdk, 'bin', name);
    if (!existsSync(compiler)) throw new MultirailError('ERR_CONFIG', `MULTIRAIL_WASI_SDK is ${sdk}, and there is no ${compiler}`);
    const sysroot = join(sdk, 'share', 'wasi-sysroot');
    return { compiler, flags: [`--sysroot=${sysroot}`], libraries: join(sysroot, 'lib', 'wasm32-wasi') };
  }
  const path = env.PATH ?? '';
  const compiler = findTool([name], path);
  if (compiler === undefined) missing('clang', 'clang');
  const linker = findTool(['wasm-ld'], path) ?? missing('wasm-ld, the linker,', 'lld');
  if (!existsSync(join(SYSTEM, 'libc.a'))) missing('the C library of WASI', 'wasi-libc');
  const resources = spawnSync(compiler, ['-print-resource-dir'], { encoding: 'utf8' }).stdout.trim();
  const version = /clang\/(\d+)/.exec(resources)?.[1] ?? '';
  if (!existsSync(join(resources, 'lib', 'wasi', 'libclang_rt.builtins-wasm32.a')))
    missing("the compiler's own library for WebAssembly", `libclang-rt-${version}-dev-wasm32`);
  const flags = /wasm-ld$/.test(linker) ? [] : [`-fuse-ld=${linker}`];
  if (language === 'c++' && !hasCxx())
    missing('the C++ library of WASI', `libc++-${version}-dev-wasm32`, `libc++abi-${version}-dev-wasm32`);
  return { compiler, flags, libraries: SYSTEM };
}

function hasCxx(): boolean {
  return existsSync(SYSTEM) && readdirSync(SYSTEM).some((name) => name.startsWith('libc++.'));
}

/** The parts of a command: what the compiler needs, what the linker needs before the program's files, and what it needs behind them. */
function partsOf(tools: Toolchain, start: string): { compile: string[]; link: string[]; libraries: string[] } {
  return {
    compile: ['--target=wasm32-wasi', ...tools.flags, `-I${programFiles().replace(/\/$/, '')}`, ...DEFINES],
    // Through -Xlinker: builds that read their flags from -show keep it as one of the linker.
    link: [...LINK, `-Wl,--allow-undefined-file=${join(programFiles(), 'undeclared.txt')}`, '-Xlinker', start],
    libraries: LIBRARIES,
  };
}

/** The whole command of a call; `start`: the object that is linked into each program. */
export function commandOf(tools: Toolchain, args: readonly string[], start: string): string[] {
  const kept = args.filter((arg) => !DROPPED.test(arg) && !SHOWS.test(arg));
  const { compile, link, libraries } = partsOf(tools, start);
  return isLinking(kept)
    ? [tools.compiler, ...compile, ...link, ...kept, ...libraries]
    : [tools.compiler, ...compile, '-Wno-unused-command-line-argument', ...kept];
}

function isLinking(args: readonly string[]): boolean {
  return !args.some((arg) => NO_LINK.has(arg)) && args.some((arg, i) => !arg.startsWith('-') && args[i - 1] !== '-o');
}

/** What -show and its kin print. */
export function shown(tools: Toolchain, args: readonly string[], start: string): string {
  const { compile, link, libraries } = partsOf(tools, start);
  const how = args.find((arg) => SHOWS.test(arg)) ?? '';
  const rest = args.filter((arg) => !SHOWS.test(arg));
  if (/:command$/.test(how)) return lineOf([tools.compiler]);
  if (/:compile$/.test(how)) return lineOf(compile);
  if (/:link$/.test(how)) return lineOf([...link, ...libraries]);
  if (/^-compile/.test(how)) return lineOf([tools.compiler, ...compile]);
  // Without files, the command that would link some, as MPICH has it.
  if (rest.some((arg) => NO_LINK.has(arg)) || isLinking(rest)) return lineOf(commandOf(tools, rest, start));
  return lineOf([tools.compiler, ...compile, ...link, ...rest, ...libraries]);
}

/** Words for a shell. */
const lineOf = (words: readonly string[]): string => words.map(quoted).join(' ');

/** The C++ library was made without exceptions. */
function lacksExceptions({ libraries }: Toolchain): boolean {
  const abi = join(libraries, 'libc++abi.a');
  return existsSync(abi) && readFileSync(abi).includes('cxa_noexception');
}

/** A folder of this user's that lasts, where there is one that can be written. */
function cacheFolder(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const folder = join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'multirail');
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return folder;
  } catch {
    return undefined;
  }
}

/**
 * The object that is linked into each program, made in the folder once for a compiler. Gives its path, or the exit code of the compiler.
 */
function startObject(language: Language, tools: Toolchain, folder: string): string | number {
  const source = join(programFiles(), 'start.c');
  const defines = language === 'c++' && lacksExceptions(tools) ? ['-DMULTIRAIL_NO_EXCEPTIONS'] : [];
  const hash = createHash('sha256').update(JSON.stringify([tools, defines]));
  for (const file of [source, ...START_HEADERS.map((name) => join(programFiles(), name))]) hash.update(readFileSync(file));
  const object = join(folder, `start-${hash.digest('hex').slice(0, 16)}.o`);
  if (existsSync(object)) return object;
  const made = mkdtempSync(join(folder, 'new-'));
  try {
    const file = join(made, 'start.o');
    const args = ['--target=wasm32-wasi', ...tools.flags, ...defines, '-O2', '-c', source, '-o', file];
    const { status } = spawnSync(tools.compiler, args, { stdio: 'inherit' });
    if (status !== 0) return status ?? 1;
    renameSync(file, object);
    return object;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Compiles and links; returns the exit code of the compiler. */
export function compile(language: Language, args: readonly string[], env = process.env): number {
  const tools = findToolchain(language, env);
  const shows = args.some((arg) => SHOWS.test(arg));
  if (!shows && !isLinking(args)) return call(commandOf(tools, args, ''));
  const lasting = cacheFolder(env);
  const folder = lasting ?? mkdtempSync(join(tmpdir(), 'multirail-cc-'));
  try {
    const start = startObject(language, language === 'c' ? tools : findToolchain('c', env), folder);
    if (typeof start === 'number') return start;
    if (!shows) return call(commandOf(tools, args, start));
    process.stdout.write(`${shown(tools, args, start)}\n`);
    return 0;
  } finally {
    // A line that was shown works by itself: what it names stays.
    if (lasting === undefined && !shows) rmSync(folder, { recursive: true, force: true });
  }
}

const call = ([program, ...args]: readonly string[]): number => spawnSync(program, args, { stdio: 'inherit' }).status ?? 1;

export function register(program: Command): void {
  for (const [name, language] of [
    ['cc', 'c'],
    ['c++', 'c++'],
  ] as const)
    program
      .command(name)
      .description(
        `compile and link a ${language.toUpperCase()} program that calls MPI, for multirail run (options of the compiler; -show prints the command)`,
      )
      .argument('[arguments...]')
      .helpOption(false)
      .allowUnknownOption()
      .passThroughOptions()
      .action((args: string[]) => {
        process.exitCode = compile(language, args);
      });
}
