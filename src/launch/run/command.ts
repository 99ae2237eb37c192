// How one rank's program is started: which interpreter, which loader, which arguments.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MultirailError } from '../../errors.ts';
import { isWasmFile } from '../../wasm-file.ts';

const JAVASCRIPT = new Set(['.js', '.mjs', '.cjs']);
const WEBASSEMBLY = '.wasm';
const TYPESCRIPT = new Set(['.ts', '.mts', '.cts']);

export interface CommandOptions {
  nodeArgs?: readonly string[];
  cwd?: string;
  /** Version of Node as in process.versions.node. */
  nodeVersion?: string;
  /** Finds the loader for TypeScript; undefined when none is installed. */
  findLoader?: (program: string, cwd: string) => string | undefined;
}

/** True when this Node runs TypeScript by stripping its types, without a flag. */
export function stripsTypes(version: string): boolean {
  const [major, minor] = version.split('.').map(Number);
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18);
}

/** Finds tsx next to the program, or in the working directory; gives the URL for --import. */
export function findTsx(program: string, cwd: string): string | undefined {
  for (const from of [program, join(cwd, 'package.json')]) {
    try {
      const folder = dirname(createRequire(from).resolve('tsx/package.json'));
      const loader = join(folder, 'dist', 'loader.mjs');
      if (existsSync(loader)) return pathToFileURL(loader).href;
    } catch {
      // Not installed there: the next place is asked.
    }
  }
  return undefined;
}

/** The whole argument list of a rank: programs for Node get Node in front, everything else runs as it is. */
export function resolveCommand(command: readonly string[], options: CommandOptions = {}): string[] {
  const [program, ...args] = command;
  const nodeArgs = options.nodeArgs ?? [];
  if (program === undefined || program === '') throw new MultirailError('ERR_ARG', 'no program is named: expected a program to run');
  const extension = extname(program).toLowerCase();
  const isTypeScript = TYPESCRIPT.has(extension);
  const cwd = options.cwd ?? process.cwd();
  const file = resolve(cwd, program);
  const isScript = isTypeScript || JAVASCRIPT.has(extension);
  const isWasm = extension === WEBASSEMBLY || (!isScript && isWasmFile(file));
  if (!isScript && !isWasm) {
    if (nodeArgs.length > 0) throw new MultirailError('ERR_ARG', `--node-arg is for programs of Node, and "${program}" is not one`);
    return [...command];
  }
  if (!existsSync(file)) throw new MultirailError('ERR_ARG', `there is no file ${program}`);
  const loaderArgs: string[] = isWasm ? [`--import=${new URL('./wasm.js', import.meta.url).href}`] : [];
  const version = options.nodeVersion ?? process.versions.node;
  if (isTypeScript && !stripsTypes(version)) {
    const loader = (options.findLoader ?? findTsx)(file, cwd);
    if (loader === undefined) {
      throw new MultirailError(
        'ERR_LAUNCH',
        `${program} is TypeScript, which Node ${version} does not run on its own (>= 22.18 or >= 23.6 does): ` +
          'install tsx next to it (npm install --save-dev tsx), or compile it first',
      );
    }
    loaderArgs.push('--import', loader);
  }
  return [process.execPath, ...loaderArgs, ...nodeArgs, file, ...args];
}
