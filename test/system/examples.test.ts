// Every program of examples/ as its README starts it, with its own check of the output. They are built from the sources, so that no old
// dist is tried.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, describe as group, test } from 'vitest';
import { labUnavailable } from '../../tools/lab/lab.ts';
import { bundleInto } from '../support/bundle.mjs';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const EXAMPLES = readdirSync(join(ROOT, 'examples')).filter((name) => name.endsWith('.mjs'));

let code: BuiltCode;
let folder: string;

beforeAll(async () => {
  code = await buildCode([]);
  folder = mkdtempSync(join(ROOT, '.cache', 'examples-'));
  const files = EXAMPLES.map((name) => join(ROOT, 'examples', name));
  await bundleInto(folder, files, {
    alias: { multirail: join(ROOT, 'src/index.ts'), 'multirail/ft': join(ROOT, 'src/ft/index.ts') },
  });
});
afterAll(() => {
  code?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** Output without the ranks' names in front. */
async function run(ranks: number, name: string, ...words: string[]): Promise<string> {
  const job = startNode([code.cli, 'run', '-n', String(ranks), join(folder, name), ...words], { input: '', timeoutMs: 60_000 });
  const { code: status, stdout, stderr } = await job.ended;
  expect(status, stderr).toBe(0);
  return stdout.replace(/^\[\d+\] /gm, '');
}

/** The programs that make networks of their own start the command of the built package by themselves. */
async function runInLab(name: string, order: number): Promise<string> {
  const job = startNode([join(ROOT, 'examples', name), String(order)], { input: '', timeoutMs: 120_000 });
  const { code: status, stdout, stderr } = await job.ended;
  expect(status, stderr).toBe(0);
  return stdout;
}
const needsLab = new Set(['hpl-finish.mjs', 'hpl-checkpoint.mjs']);
const unavailable = labUnavailable() ?? (existsSync(join(ROOT, 'dist/cli.js')) ? undefined : 'dist is not built');

const number = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1]);

/** What each one must print; a program without a line here fails. */
const CHECKS: Record<string, () => Promise<void>> = {
  'hello.mjs': async () => {
    const text = await run(3, 'hello.mjs');
    for (const rank of [1, 2]) expect(text).toContain(`rank ${rank}`);
  },
  'ring.mjs': async () => expect(await run(4, 'ring.mjs')).toBe('the token went through 4 ranks and is worth 6\n'),
  'blocking.mjs': async () => expect(await run(3, 'blocking.mjs')).toMatch(/sum 3000, expected 3000/),
  'pingpong.mjs': async () => expect((await run(2, 'pingpong.mjs')).split('\n').length).toBeGreaterThan(5),
  'dashboard.mjs': async () => expect(await run(2, 'dashboard.mjs', '0.5')).toMatch(/^\d+ rounds of 2 ranks\n$/),
  'pi.mjs': async () => {
    for (const ranks of [1, 3, 4]) expect(number(await run(ranks, 'pi.mjs', '300000'), /pi is (\S+),/)).toBeCloseTo(Math.PI, 9);
  },
  'heat.mjs': async () => {
    // The same plate, whoever computes it: to the last digit and in as many iterations.
    const alone = await run(1, 'heat.mjs', '40', '4000');
    const middle = number(alone, /ranks: (\S+) degrees/);
    expect(middle).toBeGreaterThan(20);
    expect(middle).toBeLessThan(26);
    for (const ranks of [2, 5]) expect((await run(ranks, 'heat.mjs', '40', '4000')).replace(`by ${ranks}`, 'by 1')).toBe(alone);
  },
  'matmul.mjs': async () => {
    expect(await run(4, 'matmul.mjs', '50')).toBe('50 x 50 on a grid of 2 x 2: every row is right\n');
    expect(await run(3, 'matmul.mjs', '31')).toBe('31 x 31 on a grid of 1 x 3: every row is right\n');
  },
  'hpl-finish.mjs': async () => {
    const text = await runInLab('hpl-finish.mjs', 400);
    expect(text.match(/PASSED/g)).toHaveLength(2);
  },
  'hpl-checkpoint.mjs': async () => {
    const text = await runInLab('hpl-checkpoint.mjs', 400);
    expect(text).toContain('they go on from there');
    expect(text.match(/PASSED/g)).toHaveLength(1);
  },
  'tracing-opentelemetry.mjs': async () => {
    const lines = (await run(2, 'tracing-opentelemetry.mjs')).split('\n').filter((line) => line.includes('span '));
    expect(lines.map((line) => line.replace(/^\[\d\] /, '')).sort()).toEqual([
      'span multirail allreduce {"rank":0,"comm":"world"} ok',
      'span multirail allreduce {"rank":1,"comm":"world"} ok',
      'span multirail recv {"rank":1,"comm":"world","peer":0,"tag":5,"bytes":8000} ok',
      'span multirail send {"rank":0,"comm":"world","peer":1,"tag":5,"bytes":8000} ok',
    ]);
  },
  'ft-shrink.mjs': async () => {
    const words = ['run', '-n', '4', '--spares', '1', '--kill', '2@300ms', join(folder, 'ft-shrink.mjs')];
    const { code: status, stdout, stderr } = await startNode([code.cli, ...words], { input: '', timeoutMs: 60_000 }).ended;
    expect(status, `${stdout}\n${stderr}`).toBe(0);
    expect(stdout.match(/failed are 2; 3 of 4 go on/g)).toHaveLength(3);
    expect(stdout.match(/all places are taken/g)).toHaveLength(4);
    expect(stdout).toContain('rank 2 of 4, process 4 (replacement)');
    expect(stderr).toContain('--kill: killing rank 2');
  },
  'ft-heat.mjs': async () => {
    const program = [join(folder, 'ft-heat.mjs'), '--seconds', '1', '--steps', '50'];
    const play = async (...words: string[]) => {
      const { code: status, stdout, stderr } = await startNode([code.cli, 'run', ...words], { input: '', timeoutMs: 60_000 }).ended;
      // It has compared the plate with the undisturbed one.
      expect(status, `${stdout}\n${stderr}`).toBe(0);
      return stdout;
    };
    // The first one comes before the ranks have met: there is nothing to go back to, and it is counted.
    for (const [time, ...form] of [['1ms'], ['600ms', '--sync']]) {
      const text = await play('-n', '3', '--spares', '1', '--kill', `0@${time}`, ...program, ...form);
      expect(text).toMatch(/sha256 [0-9a-f]{64}: recovered from 1 failures \(0 asynchronous\), \d+ steps repeated\n/);
    }
    // Nobody stands by: two ranks have the rows of three.
    const shrunk = await play('-n', '3', '--mca', 'ft', 'on', '--kill', '1@600ms', ...program, '--shrink', '--sync');
    expect(shrunk).toMatch(/recovered from 1 failures \(0 asynchronous\), \d+ steps repeated, on 2 ranks\n/);
  },
  'ft-replicas.mjs': async () => {
    const words = [
      'run',
      '-n',
      '2',
      '--replicas',
      '2',
      '--on-diverged',
      'relaunch',
      '--inject',
      'flip:rank=1,replica=shadow,at=60%,buffer=C',
    ];
    const { ended } = startNode([code.cli, ...words, join(folder, 'ft-replicas.mjs'), join(folder, 'replica-saves')], {
      timeoutMs: 60_000,
    });
    const { code: status, stdout, stderr } = await ended;
    expect(status, stderr).toBe(0);
    expect(stdout).toContain('goes on from save 1, behind row 20 of each rank');
    expect(stdout).toContain('80 x 80: every row is right');
    const three = ['run', '-n', '2', '--replicas', '3', ...words.slice(-2), join(folder, 'ft-replicas.mjs'), join(folder, 'three-saves')];
    const voted = await startNode([code.cli, ...three], { timeoutMs: 60_000 }).ended;
    expect(voted.code, voted.stderr).toBe(0);
    expect(voted.stderr).toContain('is outvoted');
    expect(voted.stdout).toContain('80 x 80: every row is right');
    expect(voted.stdout).not.toContain('goes on from save');
  },
  'ft-farm-log.mjs': async () => {
    // It lasts long enough that on a busy machine, too, all have begun when one is killed.
    const program = [join(folder, 'ft-farm-log.mjs'), '--seconds', '3', '--tasks', '60', '--rounds', '12'];
    const play = async (...words: string[]) => {
      const job = startNode([code.cli, 'run', '-n', '4', ...words], { input: '', timeoutMs: 60_000 });
      const { code: status, stdout, stderr } = await job.ended;
      // It has compared the results with those of one process, and what the master has noted with what each worker has.
      expect(status, `${stdout}\n${stderr}`).toBe(0);
      return stdout;
    };
    expect(await play('--mca', 'ft', 'on', ...program)).toMatch(/sha256 [0-9a-f]{64}: recovered from 0 failures \(0 asynchronous\)/);
    for (const form of [[], ['--sync']])
      expect(await play('--spares', '1', '--kill', '0@1500ms', ...program, ...form)).toMatch(
        /recovered from 1 failures \(1 asynchronous\)/,
      );
    const all = await play('--spares', '1', '--kill', '2@1500ms', ...program, '--recovery', 'coordinated');
    expect(all).toMatch(/recovered from 1 failures \(0 asynchronous\)/);
  },
  'ft-farm.mjs': async () => {
    const program = [join(folder, 'ft-farm.mjs'), '--seconds', '1', '--tasks', '60'];
    const play = async (...words: string[]) => {
      const job = startNode([code.cli, 'run', '-n', '4', ...words, ...program], { input: '', timeoutMs: 60_000 });
      const { code: status, stdout, stderr } = await job.ended;
      // Every rank has compared the sum with what it computes alone.
      expect(status, `${stdout}\n${stderr}`).toBe(0);
      return stdout;
    };
    expect(await play()).toBe('[0] 6057 primes in 60 tasks; 0 workers died, 0 tasks were given again\n');
    expect(await play('--mca', 'ft', 'on', '--kill', '1@300ms,3@500ms')).toMatch(/^\[0\] 6057 primes in 60 tasks; 2 workers died, /);
    expect(await play('--mca', 'ft', 'on', '--kill', '0@300ms')).toMatch(
      /^\[1\] 6057 primes .*; rank 1 is the master of 3 that were left of 4\n$/,
    );
  },
  'farm.mjs': async () => {
    const text = await run(3, 'farm.mjs', '30');
    const shares = (/rows by rank: (.*)/.exec(text)?.[1] ?? '').split(', ').map(Number);
    expect(shares).toHaveLength(2);
    expect(shares[0] + shares[1]).toBe(30);
  },
};

group('examples', () => {
  for (const { name } of drawTests(
    'examples',
    EXAMPLES.map((name) => ({ name })),
    0.5,
  )) {
    test(name, { timeout: 150_000 }, async ({ skip }) => {
      if (needsLab.has(name) && unavailable !== undefined) {
        console.info(`skipped: examples/${name}: ${unavailable}`);
        skip(unavailable);
      }
      expect(CHECKS, 'a check of what it prints').toHaveProperty([name]);
      await CHECKS[name]();
    });
  }
});
