// Runs a program of WebAssembly as this rank: its system calls by Node's WASI, its calls of MPI by the binding.
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { Group } from '../mpi/group.ts';
import type { Runtime } from '../mpi/runtime.ts';
import * as abi from './abi.ts';
import { Attributes } from './attributes.ts';
import { collectives } from './calls/collectives.ts';
import { communicators } from './calls/communicators.ts';
import { datatypes } from './calls/datatypes.ts';
import { environment } from './calls/environment.ts';
import { failures } from './calls/failures.ts';
import { pointToPoint } from './calls/point-to-point.ts';
import { requests } from './calls/requests.ts';
import { topologies } from './calls/topologies.ts';
import { Comm } from './comm.ts';
import { MpiError, ProgramEnd } from './errors.ts';
import { LinearMemory } from './linear-memory.ts';
import type { Call, Calls, Machine } from './machine.ts';
import type { SystemCalls } from './system-calls.ts';
import { type WasmMemory, type WasmModule, type WasmTable, wasm } from './webassembly.ts';

/** What was started. */
export interface ProgramFacts {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

/** Pages of 64 KiB that a memory may have. */
export const PAGES_MAX = 65_536;

/** The import by which a program hands over functions of its own; it is no call of MPI. */
const FUNCTIONS = 'multirail_functions';

/** Imports of a program by what they are needed for. */
interface Needs {
  readonly mpi: readonly string[];
  readonly memory: boolean;
}

/** Looks at a program before it runs. Ends in a sentence where it cannot. */
export function needsOf(module: WasmModule, file: string): Needs {
  const mpi: string[] = [];
  let memory = false;
  let hands = false;
  for (const { module: from, name, kind } of wasm.Module.imports(module)) {
    if (from === 'mpi' && kind === 'function') {
      if (name === FUNCTIONS) hands = true;
      else mpi.push(name);
    } else if (from === 'env' && name === 'memory' && kind === 'memory') memory = true;
    else if (from !== 'wasi_snapshot_preview1')
      throw new Error(
        `${file} imports ${from}.${name}, which nobody here gives: a function that is not defined, or a library that is not linked; ` +
          'programs for `multirail run` are made by `multirail cc`',
      );
  }
  const exported = new Set(wasm.Module.exports(module).map(({ name }) => name));
  if (!exported.has('_start'))
    throw new Error(`${file} exports no _start: it is a library, or was not made for WASI; link it as a program`);
  if (mpi.length > 0 && !(memory && hands && exported.has('multirail_abi')))
    throw new Error(`${file} calls MPI, and was not linked by \`multirail cc\` of this version: link it again`);
  return { mpi, memory };
}

/** The calls of MPI for one program. */
function callsOf(m: Machine, names: readonly string[], facts: ProgramFacts): Record<string, unknown> {
  m.infos.fix(abi.INFO_ENV, environmentOf(m, facts));
  const attributes = new Attributes(m, 'comm');
  const finish = (): void => {
    // Attributes of MPI_COMM_SELF are deleted first, so that programs hear of the end.
    attributes.deleteAll(m.self);
    attributes.deleteAll(m.world);
    m.runtime.finalizeSync();
  };
  const { early, calls, plain } = environment(m, () => beginWorld(m), finish);
  const all: Calls = {
    ...calls,
    ...pointToPoint(m),
    ...requests(m),
    ...collectives(m),
    ...communicators(m, attributes),
    ...datatypes(m, new Attributes(m, 'type')),
    ...topologies(m),
    Win_create_keyval: keyvals(m),
  };
  const extra = failures(m);
  const imports: Record<string, unknown> = {};
  for (const name of names) {
    const [prefix, base] = [name.slice(0, name.indexOf('_')), name.slice(name.indexOf('_') + 1)];
    const own = prefix === 'MPIX' ? extra : all;
    if (plain[base] !== undefined) imports[name] = plain[base];
    else if (early[base] !== undefined) imports[name] = m.guard(name, early[base], { early: true });
    else if (own[base] !== undefined) imports[name] = m.guard(name, own[base]);
    else if (base.endsWith('_c') && own[base.slice(0, -2)] !== undefined)
      imports[name] = m.guard(name, own[base.slice(0, -2)], { wide: true });
    else imports[name] = m.guard(name, unsupported(name), { early: true });
  }
  return imports;
}

/** Windows have no attributes here, but programs may make the keys. */
function keyvals(m: Machine): Call {
  const attributes = new Attributes(m, 'win');
  return (copy, remove, at, extra) => {
    attributes.create(copy, remove, at, extra);
    return 0;
  };
}

const unsupported =
  (name: string): Call =>
  () => {
    throw new MpiError(
      'UNSUPPORTED_OPERATION',
      `${name} is not there: one-sided calls, files, MPI_Comm_spawn and sessions are not supported`,
    );
  };

/** What MPI_INFO_ENV says of this process. */
function environmentOf(m: Machine, { file, args, cwd }: ProgramFacts): Map<string, string> {
  const info = new Map([
    ['command', file],
    ['maxprocs', String(m.runtime.size)],
    ['soft', `${m.runtime.size}:${m.runtime.size}`],
    ['host', hostname()],
    ['arch', 'wasm32'],
    ['wdir', cwd],
    ['thread_level', 'MPI_THREAD_SINGLE'],
  ]);
  if (args.length > 0) info.set('argv', args.join(' '));
  return info;
}

/** What exists from MPI_Init on. */
function beginWorld(m: Machine): void {
  const { runtime } = m;
  const world = new Comm(runtime.world, abi.ERRORS_ARE_FATAL);
  world.handle = abi.COMM_WORLD;
  world.name = 'MPI_COMM_WORLD';
  m.world = world;
  m.comms.fix(abi.COMM_WORLD, world);
  const self = new Comm(runtime.world.createGroupSync(runtime.world.group.include([runtime.rank])), abi.ERRORS_ARE_FATAL);
  self.handle = abi.COMM_SELF;
  self.name = 'MPI_COMM_SELF';
  m.self = self;
  m.comms.fix(abi.COMM_SELF, self);
  m.groups.fix(abi.GROUP_EMPTY, new Group([], runtime.process));
}

export function compile(file: string): WasmModule {
  const bytes = readFileSync(file);
  try {
    return new wasm.Module(bytes);
  } catch (error) {
    throw new Error(`${file} is no program of WebAssembly: ${(error as Error).message}`, { cause: error });
  }
}

/** How much memory the module wants at its start: said in its import, which JavaScript does not show. */
export function initialPages(file: string): number {
  return memoryPages(readFileSync(file));
}

/** Reads the import section as far as its memory. */
export function memoryPages(bytes: Uint8Array): number {
  let at = 8;
  const number = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * 2 ** shift;
      if ((byte & 0x80) === 0) return value;
    }
  };
  const skipName = (): void => {
    const length = number();
    at += length;
  };
  while (at < bytes.length) {
    const section = bytes[at++];
    const end = number() + at;
    if (section !== 2) {
      at = end;
      continue;
    }
    for (let left = number(); left > 0; left--) {
      skipName();
      skipName();
      const kind = bytes[at++];
      if (kind === 0) number();
      else if (kind === 2) {
        number();
        return number();
      } else if (kind === 1) {
        at++;
        if (number() & 1) number();
        number();
      } else at += 2;
    }
    break;
  }
  return 1;
}

export class Program {
  private readonly facts: ProgramFacts;
  private readonly system: SystemCalls;
  private readonly machine: Machine | undefined;
  private readonly runtime: Runtime | undefined;

  constructor(facts: ProgramFacts, system: SystemCalls, machine: Machine | undefined, runtime: Runtime | undefined) {
    this.facts = facts;
    this.system = system;
    this.machine = machine;
    this.runtime = runtime;
  }

  async run(module: WasmModule, memory: WasmMemory | undefined, names: readonly string[]): Promise<number> {
    const { machine, runtime, system } = this;
    let exitCode = 0;
    let reason: string | undefined;
    try {
      if (machine !== undefined && memory !== undefined) machine.memory = new LinearMemory(memory, runtime?.memoryAlias);
      const instance = new wasm.Instance(module, {
        wasi_snapshot_preview1: system.imports,
        env: memory === undefined ? {} : { memory },
        mpi: { ...(machine === undefined ? {} : callsOf(machine, names, this.facts)), [FUNCTIONS]: connecting(machine) },
      });
      if (machine !== undefined) machine.table = instance.exports.__indirect_function_table as WasmTable;
      system.start(instance, memory);
    } catch (error) {
      ({ exitCode, reason } = this.endOf(error));
    }
    return await this.leave(exitCode, reason);
  }

  private endOf(error: unknown): { exitCode: number; reason: string | undefined } {
    if (error instanceof ProgramEnd) return { exitCode: error.exitCode, reason: error.reason };
    if (error instanceof wasm.RuntimeError) return { exitCode: 134, reason: `${this.facts.file} has crashed: ${crashOf(error)}` };
    if (error instanceof RangeError && /call stack/i.test(error.message))
      return { exitCode: 134, reason: `${this.facts.file} has crashed: its calls are nested too deeply\n${framesOf(error)}` };
    throw error;
  }

  private async leave(exitCode: number, reason: string | undefined): Promise<number> {
    const { machine, runtime } = this;
    if (runtime === undefined) {
      if (reason !== undefined) process.stderr.write(`multirail: ${reason}\n`);
      return exitCode;
    }
    if (reason !== undefined) await runtime.abort(exitCode || 1, reason);
    if (machine?.state === 'ACTIVE') {
      const code = exitCode || 1;
      await runtime.abort(code, `${this.facts.file} ended with the exit code ${exitCode} without MPI_Finalize`);
      return code;
    }
    await runtime.finalize().catch((error: Error) => process.stderr.write(`multirail: rank ${runtime.rank}: ${error.message}\n`));
    return exitCode;
  }
}

/** A constructor of every program says where in its table the functions are that the host calls. */
function connecting(machine: Machine | undefined): (...at: number[]) => void {
  return (malloc, release, longDoubles) => {
    if (machine === undefined) return;
    const { table } = machine;
    machine.malloc = table.get(malloc) as Machine['malloc'];
    machine.release = table.get(release) as unknown as Machine['release'];
    machine.longDoubles = table.get(longDoubles) as unknown as Machine['longDoubles'];
  };
}

/** What went wrong, and in which function of the program. */
const crashOf = (error: Error): string => `${error.message}\n${framesOf(error)}`;

const FRAMES_MAX = 12;
function framesOf(error: Error): string {
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s*at .*wasm:\/\//.test(line));
  return frames.slice(0, FRAMES_MAX).join('\n');
}
