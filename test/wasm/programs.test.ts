// Small programs of C through `multirail cc`, and as ranks of `multirail run`: what they call, how they end, and what becomes of wrong arguments.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findToolchain } from '../../tools/cli/cc.ts';
import { execute } from './mpich-suite.mjs';

const ROOT = join(import.meta.dirname, '../..');
const CLI = join(ROOT, 'dist/cli.js');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'multirail-wasm-')));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Why programs cannot be compiled here. */
function reason(): string | undefined {
  try {
    findToolchain('c', process.env);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const why = reason();
if (why !== undefined) console.log(`skipped: programs of C: ${why}`);

const cc = (...args: string[]) => execute(process.execPath, [CLI, 'cc', ...args], { cwd: folder });
const run = (ranks: number, program: string, args: string[] = [], options: string[] = [], env: Record<string, string> = {}) =>
  execute(process.execPath, [CLI, 'run', '-n', String(ranks), ...options, program, ...args], { cwd: folder, env });

async function compile(source: string, name: string): Promise<string> {
  const { code, output } = await cc('-O1', '-Wall', '-Wextra', source, '-o', `${name}.wasm`);
  expect(output).toBe('');
  expect(code).toBe(0);
  return `${name}.wasm`;
}

// Where clang is missing, the console says so.
describe.skipIf(why !== undefined)('programs of C', () => {
  beforeAll(async () => {
    for (const name of ['calls', 'wrong', 'ends']) await compile(join(ROOT, `test/wasm/c/${name}.c`), name);
    await compile(join(ROOT, 'examples/c/heat.c'), 'heat');
  }, 240_000);

  test.each([1, 2, 5])('messages, types, collectives, communicators: %i ranks', async (ranks) => {
    const { code, output } = await run(ranks, 'calls.wasm');
    expect(output).toBe('[0] 0 errors\n');
    expect(code).toBe(0);
  });

  test('what is wrong ends in a class and a sentence', async () => {
    const { code, output } = await run(1, 'wrong.wasm');
    const classes = Object.fromEntries(
      [...output.matchAll(/^\[0\] (.+): (\d+)(.*)$/gm)].map(([, what, value, more]) => [what, value + more]),
    );
    const told = (value: number) => `${value} with a sentence`;
    expect(classes).toEqual({
      'a count': told(2),
      'a rank': told(6),
      'a tag': told(4),
      'a communicator': told(5),
      'no communicator': told(5),
      'a datatype': told(3),
      'not committed': told(3),
      NULL: told(1),
      'beyond the memory': told(1),
      'an operation': told(10),
      'an operation for floats': told(10),
      'a root': told(8),
      'too long': told(15),
      'of which came': '1',
      'a free of what is predefined': told(3),
    });
    expect(code).toBe(0);
  });

  test.each([
    ['unfinished', 1, 'without MPI_Finalize'],
    ['abort', 7, 'MPI_Abort was called with the error code 7'],
    ['fatal', 6, 'MPI_Send: MPI_ERR_RANK'],
    ['trap', 134, 'writes_beyond'],
    ['operation', 9, 'ended with the exit code 9 without MPI_Finalize'],
    ['early', 1, 'MPI_Comm_rank was called before MPI_Init'],
    ['code', 5, ''],
  ])('a program that ends so: %s', async (how, expected, text) => {
    const { code, output, isLate } = await run(2, 'ends.wasm', [how]);
    expect(isLate).toBe(false);
    expect(output).toContain(text);
    expect(code, output).toBe(expected);
  });

  test('files by relative and absolute paths, arguments, environment, standard output', async () => {
    mkdirSync(join(folder, 'other'));
    const absolute = join(folder, 'other/read.txt');
    writeFileSync(absolute, 'a line\n');
    const { output, code } = await run(1, 'ends.wasm', ['files', absolute], [], { WHO: 'the test' });
    expect(output).toBe(`[0] a line in ${folder}\n`);
    expect(readFileSync(join(folder, 'made-by-c.txt'), 'utf8')).toBe('from the test\n');
    expect(code).toBe(0);
  });

  test('what WASI lacks: there is no shell, and a process knows its processor time and its memory', async () => {
    const { output, code } = await run(1, 'ends.wasm', ['processes']);
    expect(output).toBe('[0] shell 0, command -1 ENOSYS, usage 0 0 -1, seconds, memory, 0 of children\n');
    expect(code).toBe(0);
  });

  test('a rank is killed, and the others go on without it: the plate is the same', async () => {
    const steps = ['3000'];
    const whole = await run(3, 'heat.wasm', steps, ['--mca', 'ft', 'on']);
    const after = await run(4, 'heat.wasm', steps, ['--mca', 'ft', 'on', '--kill', '2@1s']);
    const plate = /after 3000 steps the plate holds [\d.]+/;
    expect(after.output).toContain('a rank is gone; 3 go on from step');
    expect(plate.exec(after.output)?.[0]).toBe(plate.exec(whole.output)?.[0]);
  });

  test('what is no program of MPI ends in a sentence', async () => {
    writeFileSync(join(folder, 'text.wasm'), 'no module');
    const text = await run(1, 'text.wasm');
    expect(text.output).toContain('text.wasm is no program of WebAssembly');
    writeFileSync(
      join(folder, 'lacks.c'),
      '__attribute__((import_module("env"), import_name("nowhere"))) int nowhere(void);\nint main(void) { return nowhere(); }\n',
    );
    await cc('lacks.c', '-o', 'lacks.wasm');
    const lacks = await run(1, 'lacks.wasm');
    expect(lacks.output).toContain('imports env.nowhere');
    expect([text.code, lacks.code]).toEqual([1, 1]);
  });

  test('-show prints a command that works by itself, and -c does not link', async () => {
    const shown = await cc('-show', join(ROOT, 'examples/c/hello.c'), '-DTEXT="a b"', '-o', 'shown.wasm');
    expect(shown.output).toMatch(/clang.* --target=wasm32-wasi .*hello\.c '-DTEXT="a b"'/);
    const line = await execute('sh', ['-c', shown.output], { cwd: folder });
    expect([line.code, line.output]).toEqual([0, '']);
    expect((await run(1, 'shown.wasm')).output).toContain('[0] hello from rank 0 of 1');
    expect((await cc('-show')).output).toContain('-lm');
    expect((await cc('-show', '-c', 'a.c')).output).not.toContain('-Wl');
    expect((await cc('-showme:link')).output).toMatch(/^-Wl,.*start-\w+\.o .*-lm\n$/);
    const made = await cc('-c', join(ROOT, 'test/wasm/c/ends.c'), '-o', 'ends.o');
    expect([made.code, made.output]).toEqual([0, '']);
  });
});
