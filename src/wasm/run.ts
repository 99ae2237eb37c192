// runWasm(), and what happens where Node was started with a program of WebAssembly as its main file.
import { init } from '../mpi/init.ts';
import { isWasmFile } from '../wasm-file.ts';
import { compile, initialPages, needsOf, PAGES_MAX, Program } from './host.ts';
import { Machine } from './machine.ts';
import { systemCalls } from './system-calls.ts';
import { wasm } from './webassembly.ts';

/** How a program is run. */
export interface WasmOptions {
  /** What the program sees as its arguments, behind its own name; none by default. */
  readonly args?: readonly string[];
  /** Its environment; that of this process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The directory that relative paths go from; that of this process by default. */
  readonly cwd?: string;
}

/**
 * Runs a program of C or C++ that `multirail cc` has made, as this rank of its job. It joins the job by itself; a process does that once. The
 * program blocks: the event loop does not run before it has ended. Resolves with its exit code when this rank has left the job.
 *
 * @param file Path of the program, a file of WebAssembly.
 * @param options Its arguments, environment and working directory.
 * @throws ERR_INIT, ERR_OOB, ERR_HANDSHAKE: the job could not be joined, as init() says it.
 */
export async function runWasm(file: string, options: WasmOptions = {}): Promise<number> {
  const facts = { file, args: options.args ?? [], cwd: options.cwd ?? process.cwd() };
  const module = compile(file);
  const needs = needsOf(module, file);
  const memory = needs.memory ? new wasm.Memory({ initial: initialPages(file), maximum: PAGES_MAX, shared: true }) : undefined;
  const system = await systemCalls({ ...facts, env: options.env ?? process.env });
  const runtime = needs.mpi.length === 0 ? undefined : await init();
  const machine = runtime === undefined ? undefined : new Machine(runtime);
  const program = new Program(facts, system, machine, runtime);
  return await program.run(module, memory, needs.mpi);
}

/** Node looks at its main file after this: the program is run, and the process ends with its exit code. */
async function runMain(file: string, args: readonly string[]): Promise<void> {
  let exitCode = 1;
  try {
    exitCode = await runWasm(file, { args });
  } catch (error) {
    process.stderr.write(`multirail: ${(error as Error).message}\n`);
    if (process.env.MULTIRAIL_DEBUG) process.stderr.write(`${(error as Error).stack}\n`);
  }
  process.exit(exitCode);
}

const [, main, ...rest] = process.argv;
if (main !== undefined && (main.endsWith('.wasm') || isWasmFile(main))) await runMain(main, rest);
