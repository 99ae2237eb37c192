// Programs as their own builds make them: a plain Makefile, configure, CMake with FindMPI, C++, and a WASI SDK that a variable names.
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findToolchain } from '../../tools/cli/cc.ts';
import { execute, has } from './mpich-suite.mjs';

const ROOT = join(import.meta.dirname, '../..');
const CLI = join(ROOT, 'dist/cli.js');
const CC = join(ROOT, 'dist/wasm/multirail-cc.mjs');
const CXX = join(ROOT, 'dist/wasm/multirail-c++.mjs');
const HELLO = join(ROOT, 'examples/c/hello.c');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'multirail-builds-')));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const canCompile = (language: 'c' | 'c++'): boolean => {
  try {
    findToolchain(language, process.env);
    return true;
  } catch (error) {
    console.log(`skipped: builds of ${language}: ${(error as Error).message}`);
    return false;
  }
};
const hasC = canCompile('c');
const hasCxx = hasC && canCompile('c++');
const [hasMake, hasAutoconf, hasCmake] = [await has('make'), await has('autoconf'), await has('cmake')];
for (const [name, isThere] of Object.entries({ make: hasMake, autoconf: hasAutoconf, cmake: hasCmake }))
  if (!isThere) console.log(`skipped: builds with ${name}, which is not installed`);

const place = (name: string): string => {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  return cwd;
};

async function must(cwd: string, command: string, ...args: string[]): Promise<string> {
  const { code, output } = await execute(command, args, { cwd });
  expect(code, output).toBe(0);
  return output;
}

const hello = async (cwd: string, program: string): Promise<void> => {
  const output = await must(cwd, process.execPath, CLI, 'run', '-n', '2', program);
  expect(output.split('\n').filter((line) => /hello from rank [01] of 2/.test(line))).toHaveLength(2);
};

describe.skipIf(!hasC)('builds of C programs', () => {
  test.skipIf(!hasMake)('a Makefile, whose program has no ending', async () => {
    const cwd = place('make');
    cpSync(HELLO, join(cwd, 'hello.c'));
    writeFileSync(join(cwd, 'Makefile'), 'hello: hello.o\n\t$(CC) $(LDFLAGS) -o $@ hello.o $(LDLIBS)\n');
    await must(cwd, 'make', `CC=${process.execPath} ${CLI} cc`, 'CFLAGS=-O2 -march=native', 'LDLIBS=-lmpi -lm');
    await hello(cwd, './hello');
  });

  test.skipIf(!hasMake || !hasAutoconf)('configure finds the compiler, types and functions', async () => {
    const cwd = place('configure');
    cpSync(HELLO, join(cwd, 'hello.c'));
    writeFileSync(
      join(cwd, 'configure.ac'),
      'AC_INIT([hello], [1])\nAC_PROG_CC\nAC_CHECK_SIZEOF([long])\nAC_CHECK_FUNC([MPI_Init])\nAC_CHECK_FUNC([fork])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n',
    );
    writeFileSync(join(cwd, 'Makefile.in'), 'hello.wasm: hello.c\n\t@CC@ @CFLAGS@ hello.c -o hello.wasm\n');
    await must(cwd, 'autoconf');
    const output = await must(cwd, './configure', `CC=${CC}`, 'CFLAGS=-O1', 'cross_compiling=yes');
    expect(output).toMatch(/size of long\.\.\. 4/);
    expect(output).toMatch(/for MPI_Init\.\.\. yes/);
    expect(output).toMatch(/for fork\.\.\. no/);
    await must(cwd, 'make');
    await hello(cwd, 'hello.wasm');
  });

  test.skipIf(!hasCmake || !hasMake)('CMake, whose FindMPI reads flags from -show', async () => {
    const cwd = place('cmake');
    cpSync(HELLO, join(cwd, 'hello.c'));
    writeFileSync(
      join(cwd, 'CMakeLists.txt'),
      'cmake_minimum_required(VERSION 3.16)\nproject(hello C)\nfind_package(MPI REQUIRED COMPONENTS C)\n' +
        'add_executable(hello hello.c)\ntarget_link_libraries(hello MPI::MPI_C)\n',
    );
    await must(cwd, 'cmake', '-S', '.', '-B', 'same', '-DCMAKE_SYSTEM_NAME=Generic', `-DCMAKE_C_COMPILER=${CC}`, `-DMPI_C_COMPILER=${CC}`);
    await must(cwd, 'cmake', '--build', 'same');
    await hello(cwd, 'same/hello');
    // Another compiler for WebAssembly, with the flags that -show says.
    const { compiler } = findToolchain('c', process.env);
    const other = [`-DCMAKE_C_COMPILER=${compiler}`, '-DCMAKE_C_COMPILER_TARGET=wasm32-wasi', `-DMPI_C_COMPILER=${CC}`];
    await must(cwd, 'cmake', '-S', '.', '-B', 'shown', '-DCMAKE_SYSTEM_NAME=Generic', ...other);
    await must(cwd, 'cmake', '--build', 'shown');
    await hello(cwd, 'shown/hello');
  });

  test.skipIf(!hasCxx)('C++ with its library, constructors of global objects, and an end where it throws', async () => {
    const cwd = place('cxx');
    writeFileSync(
      join(cwd, 'sum.cpp'),
      `#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sys/resource.h>
#include <vector>
static int begins = 0;
struct Global { std::vector<int> values{1, 2, 3}; Global() { begins++; } } global;
static void add(void *in, void *inout, int *n, MPI_Datatype *) {
  for (int i = 0; i < *n; i++) static_cast<double *>(inout)[i] += static_cast<double *>(in)[i];
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<double> own(100, rank + 1.0), all(100);
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  MPI_Allreduce(own.data(), all.data(), 100, MPI_DOUBLE, op, MPI_COMM_WORLD);
  global.values.push_back(4);
  struct rusage usage;
  const int lacks = std::system("mkdir here") + getrusage(RUSAGE_SELF, &usage);
  if (rank == 0) std::printf("%g %zu %d %d\\n", std::accumulate(all.begin(), all.end(), 0.0), global.values.size(), begins, lacks);
  MPI_Finalize();
}
`,
    );
    await must(cwd, process.execPath, CXX, '-O1', '-std=c++17', '-Wall', 'sum.cpp', '-o', 'sum');
    expect(await must(cwd, process.execPath, CLI, 'run', '-n', '3', 'sum')).toBe('[0] 600 4 1 -1\n');
    writeFileSync(
      join(cwd, 'throws.cpp'),
      '#include <stdexcept>\nint main(int argc, char **) { if (argc > 1) throw std::range_error("x"); }\n',
    );
    await must(cwd, process.execPath, CXX, 'throws.cpp', '-o', 'throws');
    await must(cwd, process.execPath, CLI, 'run', '-n', '1', 'throws');
    const { code, output } = await execute(process.execPath, [CLI, 'run', '-n', '1', 'throws', 'now'], { cwd });
    expect(output).toContain('exception of the type St11range_error was thrown');
    expect(code).toBe(134);
  });

  test.skipIf(!existsSync('/usr/lib/wasm32-wasi'))('a WASI SDK that MULTIRAIL_WASI_SDK names, as it is laid out', async () => {
    const cwd = place('sdk');
    const { compiler } = findToolchain('c', process.env);
    mkdirSync(join(cwd, 'sdk/bin'), { recursive: true });
    mkdirSync(join(cwd, 'sdk/share/wasi-sysroot/lib'), { recursive: true });
    symlinkSync(compiler, join(cwd, 'sdk/bin/clang'));
    symlinkSync('/usr/include/wasm32-wasi', join(cwd, 'sdk/share/wasi-sysroot/include'));
    symlinkSync('/usr/lib/wasm32-wasi', join(cwd, 'sdk/share/wasi-sysroot/lib/wasm32-wasi'));
    const env = { MULTIRAIL_WASI_SDK: join(cwd, 'sdk') };
    const made = await execute(process.execPath, [CC, HELLO, '-o', 'hello.wasm'], { cwd, env });
    expect(made.code, made.output).toBe(0);
    await hello(cwd, 'hello.wasm');
    const wrong = await execute(process.execPath, [CC, HELLO], { cwd, env: { MULTIRAIL_WASI_SDK: '/nowhere' } });
    expect(wrong.output).toContain('MULTIRAIL_WASI_SDK is /nowhere');
    expect(wrong.code).not.toBe(0);
  });
});
