// The system calls of a program, by Node's WASI. Paths are those of this machine: relative ones go from the working directory, which the
// program's own start (c/start.c) reads from its environment.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { ProgramEnd } from './errors.ts';
import type { WasmInstance, WasmMemory } from './webassembly.ts';

export interface SystemCallsOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface SystemCalls {
  readonly imports: Record<string, unknown>;
  /** Runs the program to its end; exit() is thrown as ProgramEnd. */
  start(instance: WasmInstance, memory: WasmMemory | undefined): void;
}

/** WASI's number for "try again": an output that is full for now. */
const EAGAIN = 6;
const PAUSE_MS = 1;

interface Wasi {
  readonly wasiImport: Record<string, (...args: number[]) => number>;
  start(instance: WasmInstance): number;
}

/** Node says once in each process that its WASI may change. That is known here, and is no news for users. */
async function quietly<T>(load: () => Promise<T>): Promise<T> {
  const { emitWarning } = process;
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === 'ExperimentalWarning' || (warning as Error)?.name === 'ExperimentalWarning') return;
    (emitWarning as (...args: unknown[]) => void).call(process, warning, ...rest);
  }) as typeof process.emitWarning;
  try {
    return await load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

export async function systemCalls({ file, args, env, cwd }: SystemCallsOptions): Promise<SystemCalls> {
  const { WASI } = await quietly(async () => createRequire(import.meta.url)('node:wasi') as { WASI: new (options: unknown) => Wasi });
  const directory = resolve(cwd);
  const given = Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
  const wasi = new WASI({
    version: 'preview1',
    args: [file, ...args],
    env: { ...given, PWD: directory, MULTIRAIL_CWD: directory },
    preopens: { '/': '/' },
    returnOnExit: false,
  });
  const imports: Record<string, unknown> = { ...wasi.wasiImport };
  // Pipes may be full: C programs expect a write that waits.
  const pause = new Int32Array(new SharedArrayBuffer(4));
  imports.fd_write = (...call: number[]): number => {
    for (;;) {
      const code = wasi.wasiImport.fd_write(...call);
      if (code !== EAGAIN) return code;
      Atomics.wait(pause, 0, 0, PAUSE_MS);
    }
  };
  imports.proc_exit = (code: number): never => {
    throw new ProgramEnd(code);
  };
  return {
    imports,
    start({ exports }, memory) {
      // A memory that is imported need not be exported.
      wasi.start({ exports: { ...exports, memory: memory ?? exports.memory } });
    },
  };
}
