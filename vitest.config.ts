import { defineConfig } from 'vitest/config';

// One project per kind of test, so that test/run.sh can time and count them apart.
const project = (name: string, include: string[], testTimeout = 20_000) => ({
  extends: true as const,
  test: { name, include, testTimeout, hookTimeout: testTimeout, pool: 'forks' as const },
});

const oneByOne = (of: ReturnType<typeof project>) => ({ ...of, test: { ...of.test, fileParallelism: false } });

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      project('unit', ['test/unit/**/*.test.ts', 'test/*.test.ts']),
      project('sim', ['test/sim/**/*.test.ts'], 240_000),
      // What holds for every transport; what MPI says of messages and collectives, over each of them.
      project('contract', ['test/contract/**/*.test.ts'], 120_000),
      project('semantics', ['test/semantics/**/*.test.ts'], 120_000),
      // The wire suite against our own endpoint, broken ones, and the Python peer.
      project('wire', ['test/wire/**/*.test.ts'], 120_000),
      project('system', ['test/system/**/*.test.ts'], 120_000),
      // Programs of C, as ranks. One file at a time: each keeps several processes busy.
      oneByOne(project('wasm', ['test/wasm/**/*.test.ts'], 180_000)),
      // Jobs of other engines. One file at a time: each keeps several processes busy.
      oneByOne(project('launchers', ['test/launchers/**/*.test.ts'], 120_000)),
      // A browser takes as much as it gets: one file at a time.
      oneByOne(project('dashboard', ['test/dashboard/**/*.test.ts'], 120_000)),
      // Inside the guest, where everything takes some ten times as long. One file at a time: they share devices and pull their cables.
      oneByOne(project('vm', ['test/vm/**/*.test.ts'], 120_000)),
      // One file at a time: one of them keeps every core busy on purpose, and beside it the others would test that.
      oneByOne(project('lab', ['test/lab/**/*.test.ts'], 180_000)),
    ],
  },
});
