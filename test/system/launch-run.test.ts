// `multirail run` with real processes: exit codes, input and output, signals, and the end of a job when a rank or the launcher
// itself dies. Waits are bounded by each test's own timeout; no moment is asserted.
import { spawn } from 'node:child_process';
import { afterAll, afterEach, beforeAll, expect, describe as group, test } from 'vitest';
import { type BuiltCode, buildCode, isAlive, type Running, startNode, untilGone } from '../support/helpers.ts';

let code: BuiltCode;
const running: Running[] = [];
/** Processes that a test started through others; whoever is left at its end is killed. */
const strays = new Set<number>();

beforeAll(async () => {
  code = await buildCode(['launch-rank.mjs', 'launch-plain.mjs']);
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
  for (const pid of strays) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone, as it should be.
    }
  }
  strays.clear();
});
afterAll(() => code?.dispose());

type StartOptions = Parameters<typeof startNode>[1];

/** `multirail run …`, with the fixtures' names replaced by their files. */
function run(line: string, options: StartOptions = { input: '' }): Running {
  const words = line.split(' ').map((word) => (/^launch-(rank|plain)$/.test(word) ? code.fixture(word) : word));
  const job = startNode([code.cli, 'run', ...words], options);
  running.push(job);
  return job;
}

/** Ranks' process ids by rank, as `rank R of N pid P` or `[R] pid P` in the output. */
function pidsIn(stdout: string): number[] {
  const pids: number[] = [];
  for (const match of stdout.matchAll(/^\[(\d+)\] (?:rank \d+ of \d+ )?pid (\d+)$/gm)) pids[Number(match[1])] = Number(match[2]);
  for (const pid of pids) strays.add(pid);
  return pids;
}

/** Sorted, since the ranks' lines come in any order. */
const lines = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .sort();

group('multirail run: joining', () => {
  test('ranks find each other, and the secret is nowhere in their environment', async () => {
    const ran = await run('-n 3 launch-rank modex').ended;
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const expected = JSON.stringify([0, 1, 2].map((rank) => ({ rank, secretInEnv: false })));
    expect(lines(ran.stdout).filter((line) => line.includes('modex'))).toEqual([0, 1, 2].map((rank) => `[${rank}] modex ${expected}`));
  });

  test('without a launcher a program is a world of one', async () => {
    const job = startNode([code.fixture('launch-rank'), 'single'], { input: '' });
    running.push(job);
    expect(await job.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('single 1 true') });
  });

  test('an idle channel does not keep a finished rank alive', async () => {
    expect(await run('-n 2 launch-rank idle').ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('a rank that computes without touching its event loop is not taken for dead', async () => {
    // Longer than the reconnect timeout: the launcher knows its processes, and silence is no death.
    const ran = await run('-n 2 --mca oob_reconnect_timeout_ms 2000 launch-rank busy 3500').ended;
    expect(ran).toMatchObject({ code: 0, stderr: '' });
  });

  test('environment and arguments', async () => {
    const ran = await run('-n 2 --mca btl self,tcp --node-arg=--no-warnings launch-plain env -- --mca a b').ended;
    expect(ran.code).toBe(0);
    const line = (rank: string) =>
      `[${rank}] ${JSON.stringify([rank, '2', rank, '2', 'self,tcp', ['--no-warnings'], ['--', '--mca', 'a', 'b']])}`;
    expect(lines(ran.stdout)).toEqual([line('0'), line('1')]);
  });
});

group('multirail run: input and output', () => {
  test('input goes to rank 0, to one rank, to all, to none', async () => {
    const outputs = (targets: number[]) => [0, 1].map((rank) => `[${rank}] ${targets.includes(rank) ? 'text' : ''}[end]`);
    expect(lines((await run('-n 2 launch-plain cat', { input: 'text' }).ended).stdout)).toEqual(outputs([0]));
    expect(lines((await run('-n 2 --stdin 1 launch-plain cat', { input: 'text' }).ended).stdout)).toEqual(outputs([1]));
    expect(lines((await run('-n 2 --stdin all launch-plain cat', { input: 'text' }).ended).stdout)).toEqual(outputs([0, 1]));
    expect(lines((await run('-n 2 --stdin none launch-plain cat', { input: 'text' }).ended).stdout)).toEqual(outputs([]));
  });

  test('long lines stay whole, the last line needs no newline, and the prefix can be switched off', async () => {
    const ran = await run('-n 1 launch-plain long').ended;
    expect(ran.stdout).toBe(`[0] ${'x'.repeat(100_000)}\n[0] short\n`);
    expect((await run('-n 1 --no-prefix launch-plain long').ended).stdout).toBe(`${'x'.repeat(100_000)}\nshort`);
  });

  test('a reader that goes away ends the job', async () => {
    const job = run('-n 2 launch-plain write');
    await job.until(/yyy/);
    job.child.stdout?.destroy();
    expect((await job.ended).code).toBe(128 + 13);
  });
});

group('multirail run: exit codes', () => {
  test('0, the first failing code, a missing program, usage', async () => {
    expect((await run('-n 2 launch-plain exit 0 0').ended).code).toBe(0);
    const failed = await run('-n 3 launch-plain exit 0 3').ended;
    expect(failed.code).toBe(3);
    expect(failed.stderr).toMatch(/^multirail: rank 1 \(pid \d+\) exited with code 3; ending the job\n$/);
    const missing = await run('-n 2 -- no-such-program-here').ended;
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringMatching(/^multirail: cannot start rank 0: .*ENOENT/) });
    const usage = await run('-n 2 --mca no_such_parameter 1 launch-plain exit').ended;
    expect(usage).toMatchObject({ code: 2, stderr: expect.stringContaining('multirail info --all') });
  });

  test('kill -9 of one rank ends the job and is named', async () => {
    const job = run('-n 3 launch-rank wait');
    await job.until(/(\[\d\] ready\n[\s\S]*){3}/);
    const pids = pidsIn(job.output().stdout);
    process.kill(pids[1], 'SIGKILL');
    const ran = await job.ended;
    expect(ran.code).toBe(137);
    expect(ran.stderr).toBe(`multirail: rank 1 (pid ${pids[1]}) was killed by SIGKILL; ending the job\n`);
    await untilGone(pids);
  });

  test('with --no-abort-on-failure the survivors hear of it and finish; the code is still that of the failure', async () => {
    const ran = await run('-n 3 --no-abort-on-failure launch-rank survive').ended;
    expect(ran.code).toBe(137);
    expect(ran.stderr).toMatch(/^multirail: rank 2 \(pid \d+\) was killed by SIGKILL; the other ranks go on\n$/);
    expect(lines(ran.stdout).filter((line) => line.includes('heard'))).toEqual(['[0] heard 2 SIGKILL', '[1] heard 2 SIGKILL']);
  });

  test.each([
    ['throw', 'uncaught exception', 'TypeError: something broke'],
    ['reject', 'unhandled rejection', 'RangeError: nobody caught me'],
  ])('an error that nobody caught (%s) ends the job, with the rank, the stack and the message', async (what, kind, text) => {
    const ran = await run(`-n 2 launch-rank ${what}`).ended;
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(new RegExp(`^\\[1\\] multirail: rank 1 of 2 \\(pid \\d+\\): ${kind}:$`, 'm'));
    expect(ran.stderr).toContain(`[1] ${text}`);
    expect(ran.stderr).toMatch(/^\[1\] {5}at /m);
    expect(ran.stderr).toMatch(new RegExp(`^multirail: rank 1 \\(pid \\d+\\) aborted the job with code 1: ${text}; ending the job$`, 'm'));
  });

  test('abort gives its code and reason', async () => {
    const ran = await run('-n 2 launch-rank abort 42').ended;
    expect(ran.code).toBe(42);
    expect(ran.stderr).toMatch(/^multirail: rank 1 \(pid \d+\) aborted the job with code 42: the input is wrong; ending the job\n$/);
  });

  test('exit 0 without finalize is warned of, by name', async () => {
    const ran = await run('-n 2 launch-rank forget').ended;
    expect(ran.code).toBe(0);
    for (const rank of [0, 1])
      expect(ran.stderr).toMatch(new RegExp(`multirail: warning: rank ${rank} \\(pid \\d+\\) exited with code 0 but without`));
  });

  test('a rank that ignores SIGTERM is killed after the grace, and a rank’s own children with it', async () => {
    const stubborn = await run('-n 3 launch-rank stubborn').ended;
    expect(stubborn.code).toBe(9);
    const ran = await run('-n 2 launch-rank child').ended;
    expect(ran.code).toBe(4);
    const children = [...ran.stdout.matchAll(/child (\d+)/g)].map((match) => Number(match[1]));
    expect(children.length).toBe(2);
    for (const pid of children) strays.add(pid);
    await untilGone(children);
  });
});

group('multirail run: signals', () => {
  test('signals are passed on; the job goes on when the ranks do', async () => {
    const job = run('-n 2 launch-plain signals');
    await job.until(/(pid \d+\n[\s\S]*){2}/);
    const pids = pidsIn(job.output().stdout);
    for (const signal of ['SIGUSR2', 'SIGHUP', 'SIGTERM'] as const) {
      job.child.kill(signal);
      await job.until(new RegExp(`(got ${signal}\\n[\\s\\S]*){2}`));
    }
    job.child.kill('SIGINT');
    expect(await job.ended).toMatchObject({ code: 0, stderr: '' });
    await untilGone(pids);
  });

  test('a second SIGINT kills', async () => {
    const job = run('-n 2 launch-plain signals stubborn');
    await job.until(/(pid \d+\n[\s\S]*){2}/);
    const pids = pidsIn(job.output().stdout);
    job.child.kill('SIGINT');
    await job.until(/(got SIGINT\n[\s\S]*){2}/);
    job.child.kill('SIGINT');
    expect((await job.ended).code).toBe(130);
    await untilGone(pids);
  });

  test('ranks that die from a signal that was passed on give 128 + its number', async () => {
    const job = run('-n 2 launch-rank wait');
    await job.until(/(\[\d\] ready\n[\s\S]*){2}/);
    pidsIn(job.output().stdout);
    job.child.kill('SIGINT');
    const ran = await job.ended;
    expect(ran.code).toBe(130);
    expect(ran.stderr).toContain('SIGINT was passed on');
  });
});

test('no more open files: the launcher says so, and what to do, and leaves nothing behind', async () => {
  const job = startNode(
    [
      '-e',
      `
    const { spawnSync } = require('node:child_process');
    const [node, ...args] = process.argv.slice(1);
    const done = spawnSync('bash', ['-c', 'ulimit -n 150; exec "$@"', 'bash', node, ...args], { stdio: 'inherit' });
    process.exitCode = done.status ?? 99;`,
      process.execPath,
      code.cli,
      'run',
      '-n',
      '100',
      '--',
      'sleep',
      '61',
    ],
    { input: '' },
  );
  running.push(job);
  const ran = await job.ended;
  expect(ran.code).toBe(1);
  expect(ran.stderr).toMatch(/^multirail: cannot start rank \d+: spawn sleep EMFILE; .*raise its limit \(ulimit -n\)$/m);
  expect(ran.stderr).not.toMatch(/^ {4}at /m);
});

group('multirail run: npm, which started it, is killed', () => {
  // As npm does: it keeps its own process, puts a shell in between, and says so in the environment.
  const wrapper = `
    const { spawn } = require('node:child_process');
    const [program, ...args] = process.argv.slice(1);
    const words = [program, ...args].map((word) => JSON.stringify(word)).join(' ');
    const child = spawn('sh', ['-c', words + '; exit $?'], { stdio: 'inherit', env: { ...process.env, npm_command: 'exec' } });
    setInterval(() => undefined, 1000);`;

  test('the job goes on, the launcher says how it is reached, reports there, and ends the ranks when told to', async () => {
    const job = startNode(['-e', wrapper, process.execPath, code.cli, 'run', '-n', '2', code.fixture('launch-rank'), 'wait'], {
      input: '',
    });
    running.push(job);
    await job.until(/(\[\d\] ready\n[\s\S]*){2}/);
    const pids = pidsIn(job.output().stdout);
    // The first that a user does who wants to know who waits for whom.
    job.child.kill('SIGUSR2');
    const [, launcher] = await job.until(/npm, which started this launcher, is gone; the job goes on: kill -TERM (\d+) ends it/);
    strays.add(Number(launcher));
    expect(pids.filter(isAlive)).toEqual(pids);
    process.kill(Number(launcher), 'SIGUSR2');
    await job.until(/who waits for whom \(SIGUSR2\)/);
    process.kill(Number(launcher), 'SIGTERM');
    await untilGone([...pids, Number(launcher)]);
  });
});

group('multirail run: the launcher is killed', () => {
  test('ranks that joined notice, say so, and exit', async () => {
    // Without the prefix the ranks write to the test's own pipe, so that their last words can be read.
    const job = run('-n 2 --no-prefix launch-rank wait');
    await job.until(/(ready\n[\s\S]*){2}/);
    const pids = [...job.output().stdout.matchAll(/pid (\d+)$/gm)].map((match) => Number(match[1]));
    for (const pid of pids) strays.add(pid);
    expect(pids.filter(isAlive).length).toBe(2);
    job.child.kill('SIGKILL');
    const ran = await job.ended;
    await untilGone(pids);
    expect(ran.stderr).toMatch(/rank 0 of 2 \(pid \d+\): the launcher is dead; exiting/);
    expect(ran.stderr).toMatch(/rank 1 of 2 \(pid \d+\): the launcher is dead; exiting/);
  });

  test('ranks that cannot notice are ended by the guard', async () => {
    const job = run('-n 2 launch-plain compute');
    await job.until(/(pid \d+\n[\s\S]*){2}/);
    const pids = pidsIn(job.output().stdout);
    job.child.kill('SIGKILL');
    await job.ended;
    await untilGone(pids);
  });

  test('a wrapper between launcher and rank does not hide it', async () => {
    // A shell with two commands does not exec the first: it stays in between.
    const wrapped = startNode([
      code.cli,
      'run',
      '-n',
      '1',
      '--no-prefix',
      '--',
      'sh',
      '-c',
      `"$0" "$1" wait; echo over`,
      process.execPath,
      code.fixture('launch-rank'),
    ]);
    running.push(wrapped);
    const [, pid] = await wrapped.until(/pid (\d+)/);
    strays.add(Number(pid));
    await wrapped.until(/ready/);
    wrapped.child.kill('SIGKILL');
    expect((await wrapped.ended).stderr).toMatch(/rank 0 of 1 \(pid \d+\): the launcher is dead; exiting/);
    await untilGone([Number(pid)]);
  });
});

test('helpers: a process that was killed is seen as gone', async () => {
  const child = spawn('sleep', ['60']);
  const exited = new Promise((resolve) => child.on('exit', resolve));
  expect(isAlive(child.pid as number)).toBe(true);
  child.kill('SIGKILL');
  await exited;
  await untilGone([child.pid as number]);
});
