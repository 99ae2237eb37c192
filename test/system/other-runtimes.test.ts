// Ranks under Bun and under Deno, started by `multirail run`: they run without the native part, and find the job's secret. The runtimes are
// those on the path, or their npm packages, in .cache; where there are none, the tests say so and are skipped.
import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PACKAGES: Record<string, { name: string; binary: string } | undefined> = {
  'bun-x64': { name: '@oven/bun-linux-x64', binary: 'bin/bun' },
  'bun-arm64': { name: '@oven/bun-linux-aarch64', binary: 'bin/bun' },
  'deno-x64': { name: '@deno/linux-x64-glibc', binary: 'deno' },
  'deno-arm64': { name: '@deno/linux-arm64-glibc', binary: 'deno' },
};

function runs(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    execFileSync(file, ['--version'], { stdio: 'ignore', timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
}

/** The program, or why there is none. */
function find(runtime: 'bun' | 'deno'): { file: string } | { why: string } {
  const onPath = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, runtime));
  const found = onPath.find(runs);
  if (found !== undefined) return { file: found };
  const wanted = PACKAGES[`${runtime}-${process.arch}`];
  if (process.platform !== 'linux' || wanted === undefined)
    return { why: `no package of ${runtime} for ${process.platform} ${process.arch}` };
  const prefix = join(ROOT, '.cache', runtime);
  const file = join(prefix, 'node_modules', wanted.name, wanted.binary);
  if (runs(file)) return { file };
  try {
    const args = ['install', '--prefix', prefix, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', wanted.name];
    execFileSync('npm', args, { stdio: 'ignore', timeout: 90_000 });
  } catch {
    return { why: `${runtime} is not on the path, and the npm package ${wanted.name} could not be installed` };
  }
  return runs(file) ? { file } : { why: `the ${runtime} of the npm package ${wanted.name} does not run here` };
}

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['mpi-rank.mjs']);
});
afterAll(() => code?.dispose());

test.for([
  ['bun', []],
  ['deno', ['run', '-A']],
] as const)('%s: a ring of three ranks, and the reason why there is no native part', async ([runtime, args], context) => {
  const found = find(runtime);
  if ('why' in found) {
    console.log(`skipped: ranks under ${runtime}: ${found.why}`);
    return context.skip(found.why);
  }
  const ran = await startNode([code.cli, 'run', '-n', '3', '--', found.file, ...args, code.fixture('mpi-rank'), 'ring'], {
    input: '',
    timeoutMs: 60_000,
  }).ended;
  expect(ran.code, `${ran.stdout}\n${ran.stderr}`).toBe(0);
  expect(ran.stdout).toContain('[0] ring of 1000000: true');
  const info = execFileSync(found.file, [...args, code.cli, 'info'], { encoding: 'utf8', timeout: 30_000 });
  expect(info).toMatch(
    /^Native part {2}not used: (Bun|Deno) \d\S* has no event loop of libuv, which the native part needs: it is for Node$/m,
  );
});
