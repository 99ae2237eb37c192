// Jobs of real processes through the launcher and init(): messages go around, a crash is named, an exit without finalize() warns. Each
// test's own timeout bounds its waits; no moment is asserted.
import { afterAll, afterEach, beforeAll, expect, describe as group, test } from 'vitest';
import { type BuiltCode, buildCode, type Running, startNode } from '../support/helpers.ts';

let code: BuiltCode;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['mpi-rank.mjs']);
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    // The launcher ends its ranks when it is told to; its guard does when it is killed.
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

/** `multirail run OPTIONS mpi-rank WHAT`. */
function run(options: string, what: string, env: Record<string, string> = {}): Running {
  const job = startNode([code.cli, 'run', ...options.split(' '), code.fixture('mpi-rank'), what], { input: '', env, timeoutMs: 40_000 });
  running.push(job);
  return job;
}

const lines = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .sort();

group('jobs of real processes', () => {
  test('a ring over four ranks, and ERR_FINALIZED afterwards', async () => {
    const ran = await run('-n 4', 'ring').ended;
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(lines(ran.stdout)).toEqual(
      [
        '[0] ring of 8: true',
        '[0] ring of 1000000: true',
        ...[0, 1, 2, 3].map((rank) => `[${rank}] ERR_FINALIZED from ${rank} about undefined`),
      ].sort(),
    );
  });

  test('a ring over two transports with several links', async () => {
    const ran = await run('-n 3 --mca btl self,tcp,ws --mca btl_tcp_links 2', 'ring').ended;
    expect(ran).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('ring of 1000000: true') });
  });

  test('a killed rank ends the requests of the others, who learn its name and leave', async () => {
    const ran = await run('-n 3 --no-abort-on-failure', 'crash').ended;
    for (const rank of [0, 1]) {
      expect(lines(ran.stdout)).toContain(`[${rank}] ERR_PROC_FAILED from ${rank} about 2`);
      expect(lines(ran.stdout)).toContain(`[${rank}] peer 2 failed`);
      expect(lines(ran.stdout)).toContain(`[${rank}] left`);
    }
    expect(ran.code).toBe(128 + 9);
    expect(ran.stderr).toMatch(/rank 2/);
  });

  test('an exit without finalize() warns and names what was not delivered', async () => {
    const ran = await run('-n 1', 'unfinished').ended;
    expect(ran.stderr).toMatch(/rank 0 of 1 \(pid \d+\) exits without finalize\(\); \d+ messages? .*RNDV to 0 ctx 0 tag 3/);
    expect(ran.stdout).toContain('ERR_TIMEOUT');
  });

  test('an uncaught error ends the job with the rank and the error', async () => {
    const ran = await run('-n 3', 'throw').ended;
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/rank 1 of 3 .*uncaught exception/);
    expect(ran.stderr).toContain('this rank is wrong');
  });

  test('without a launcher a program is a world of one that ends by itself', async () => {
    const job = startNode([code.fixture('mpi-rank'), 'alone'], { input: '' });
    running.push(job);
    expect(await job.ended).toMatchObject({ code: 0, stderr: '', stdout: 'alone 1 {"hello":0} 1\n' });
  });

  test('a second init() is told as such, with others and in a world of one', async () => {
    const job = startNode([code.fixture('mpi-rank'), 'twice'], { input: '' });
    running.push(job);
    const twice = 'twice: ERR_INIT: init() was called twice: this process is rank 0 of';
    const later = 'later: ERR_INIT: init() was called again after finalize()';
    for (const ran of [await job.ended, await run('-n 2', 'twice').ended]) {
      expect(ran).toMatchObject({ code: 0, stderr: '' });
      expect(ran.stdout).toContain(twice);
      expect(ran.stdout).toContain(later);
    }
  });

  test('init() in a worker thread says so, and the job goes on', async () => {
    const ran = await run('-n 2', 'worker').ended;
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(lines(ran.stdout).filter((line) => /in a worker: ERR_INIT: init\(\) was called in a worker thread/.test(line))).toHaveLength(2);
    expect(lines(ran.stdout).filter((line) => line.endsWith('sum 3'))).toHaveLength(2);
    // Under PMI-1 the thread must not touch the descriptor: the engine would take its end for that of the rank.
    const job = startNode([code.fixture('mpi-rank'), 'worker'], { input: '', env: { PMI_FD: '7', PMI_RANK: '0', PMI_SIZE: '2' } });
    running.push(job);
    expect((await job.ended).stdout).toContain('in a worker: ERR_INIT: init() was called in a worker thread');
  });

  test.each(['', ' --mca btl self,ws', ' --mca btl_tcp_native false --mca btl self,tcp'])(
    'a forgotten finalize() is told, once by each rank%s',
    async (options) => {
      const job = run(`-n 2${options}`, 'forgotten');
      await job.until(/(rank \d: the program has nothing left to do, and has not called finalize\(\)[\s\S]*){2}/);
      await new Promise((resolve) => setTimeout(resolve, 2500));
      expect(job.output().stderr.match(/nothing left to do/g)).toHaveLength(2);
      expect(job.child.exitCode).toBeNull();
    },
  );

  test.each(['', ' --mca btl self,ws'])(
    'a program that is quiet for a while, or goes on when Node finds it empty, is told nothing%s',
    async (options) => {
      const ran = await run(`-n 2${options}`, 'slow').ended;
      expect(ran).toMatchObject({ code: 0, stderr: '' });
      expect(lines(ran.stdout)).toEqual(['[0] left', '[1] left']);
    },
  );

  test('an unknown parameter is refused by name', async () => {
    const job = startNode([code.fixture('mpi-rank'), 'nosuch'], { input: '' });
    running.push(job);
    const ran = await job.ended;
    expect(ran.code).not.toBe(0);
    expect(ran.stderr).toMatch(/ERR_CONFIG: unknown parameter "btl_nosuch"/);
  });

  test('ranks without a rail in common are named, with what each has', async () => {
    const ran = await run('-n 2 --mca btl self', 'ring').ended;
    expect(ran.code).not.toBe(0);
    expect(ran.stderr).toMatch(/ERR_INIT: rank [01] and rank [01] have no rail in common: they have no transport in common/);
  });

  test('a rail that is pulled and restored by btl_fault: nothing is lost, events say what happened', async () => {
    // On a busy machine the rail may not be up yet at the first of these.
    const plan = 'pull:1@300ms,restore:1@1500ms,pull:1@4s,restore:1@6s,pull:1@12s,restore:1@15s';
    const ran = await run('-n 2 --mca btl_tcp_links 2', 'pulled', { MULTIRAIL_MCA_btl_fault: plan }).ended;
    expect(ran.stdout).toMatch(/pulled: .*lost.*restored/);
    expect(ran.code).toBe(0);
  });
});
