// Who waits for whom, in jobs of real processes: on SIGUSR2 to the launcher or to a rank, on a stall, from blocking calls, as text and
// JSON.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode, type Running, startNode } from '../support/helpers.ts';

let code: BuiltCode;
let folder: string;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['waits-rank.mjs']);
  folder = mkdtempSync(join(tmpdir(), 'joining-'));
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGTERM');
    await job.ended;
  }
});
afterAll(() => {
  code?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function run(options: string, what: string): Running {
  const job = startNode([code.cli, 'run', ...options.split(' '), code.fixture('waits-rank'), what], { input: '', timeoutMs: 60_000 });
  running.push(job);
  return job;
}

/** The process id of a rank once all have said theirs. */
async function ready(job: Running, size: number): Promise<number[]> {
  const pids: number[] = [];
  for (let rank = 0; rank < size; rank++) pids.push(Number((await job.until(new RegExp(`rank ${rank}: ready, pid (\\d+)`)))[1]));
  return pids;
}

describe('who waits for whom', () => {
  test('on SIGUSR2 to a rank: a ring of long sends is named as a cycle, and the program hears the signal too', async () => {
    const job = run('-n 3 --mca btl self,tcp', 'ring');
    const pids = await ready(job, 3);
    // Asked again until every envelope has arrived: the signal may come before.
    for (
      let reports = 0;
      (
        job
          .output()
          .stderr.split('who waits')
          .at(-1)
          ?.match(/RNDV delivered/g) ?? []
      ).length < 3;
      reports++
    ) {
      process.kill(pids[1], 'SIGUSR2');
      await job.until(new RegExp(`(who waits[^]*cycle: 0 waits for 1 waits for 2 waits for 0[^]*){${reports + 1}}`));
      // One report right after another is not printed.
      await new Promise((resolve) => setTimeout(resolve, 1100));
    }
    const { stderr, stdout } = job.output();
    expect(stderr).toContain('multirail: who waits for whom (rank 1: SIGUSR2):');
    for (const rank of [0, 1, 2]) {
      expect(stderr).toMatch(
        new RegExp(
          `rank ${rank} \\(pid ${pids[rank]}\\) waits for\\n    send to rank ${(rank + 1) % 3}, tag 5, world, 1000000 bytes, for [\\d.]+ s: RNDV delivered: no receive there has matched it \\(no ACK\\), on tcp`,
        ),
      );
    }
    expect(stdout).toContain("rank 1: the program's own listener");
  });

  test('on SIGUSR2 to the launcher: wrong tag, probe, and a rank that computes; JSON beside the text', async () => {
    const jsonFile = join(folder, 'mixed.json');
    const job = run(`-n 3 --mca mpi_waits_json_file ${jsonFile}`, 'mixed');
    await ready(job, 3);
    // What the others do after "ready" has had its turn once rank 0 holds an unexpected message, and rank 1 probes; asked again until then.
    for (;;) {
      job.child.kill('SIGUSR2');
      await new Promise((resolve) => setTimeout(resolve, 2200));
      const { stderr } = job.output();
      const last = stderr.split('who waits').at(-1) ?? '';
      if (/1 unexpected message from there/.test(last) && /probe from rank 2/.test(last) && /rank 2: does not answer/.test(last)) break;
    }
    const { stderr } = job.output();
    expect(stderr).toMatch(
      /recv from rank 1, tag 4, world, 8 bytes, for [\d.]+ s: posted: nothing has matched; 1 unexpected message from there with other tags/,
    );
    expect(stderr).toMatch(/probe from rank 2, tag 9, world, for [\d.]+ s: no message matches/);
    expect(stderr).toContain('rank 2: does not answer: it computes');
    expect(stderr).toContain('no ranks wait for each other in a circle');
    const reports = readFileSync(jsonFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(reports.at(-1)).toMatchObject({
      reason: 'SIGUSR2',
      cycles: [],
      ranks: [{ state: 'answered' }, { state: 'answered' }, { state: 'silent' }],
    });
  });

  test('a collective by messages is named, with its communicator', async () => {
    const job = run('-n 3 --mca coll_shared_memory false', 'collective');
    const pids = await ready(job, 3);
    // The question may come before the call.
    for (let turn = 0; !/in allreduce of rows/.test(job.output().stderr); turn++) {
      expect(turn, job.output().stderr).toBeLessThan(10);
      process.kill(pids[0], 'SIGUSR2');
      await new Promise((resolve) => setTimeout(resolve, 1200));
    }
    expect(job.output().stderr).toMatch(/recv from rank \d, in allreduce of rows, 32 bytes/);
  });

  test('a collective through shared memory names the ranks that it waits for; one of two that computes waits for nobody', async ({
    skip,
  }) => {
    const { reason } = loadNative();
    if (reason !== undefined) {
      console.log(`skipped: waits in shared memory: no native part: ${reason}`);
      skip();
    }
    const job = run('-n 2', 'late');
    const pids = await ready(job, 2);
    const there =
      /rank 0 \(pid \d+\) waits for\n {4}allreduce of rows, rank 1 for [\d.]+ s: has not come so far \(shared memory\)\n {2}rank 1 \(pid \d+\): waits for nothing\n {2}no ranks wait/;
    for (let turn = 0; !there.test(job.output().stderr); turn++) {
      expect(turn, job.output().stderr).toBeLessThan(10);
      process.kill(pids[0], 'SIGUSR2');
      await new Promise((resolve) => setTimeout(resolve, 1200));
    }
  });

  test.each([
    ['2', 'the shadow of rank'],
    ['3', 'the second shadow of rank'],
  ])('of %s replicas the shadows say what they wait for, under the names of their ranks', async (replicas, name) => {
    const job = run(`-n 2 --replicas ${replicas}`, 'late');
    const [pid] = await ready(job, 2);
    // Both may be on their way there.
    const last = (): string => job.output().stderr.split('who waits').at(-1) ?? '';
    const there = new RegExp(
      `^.*\\n {2}rank 0 \\(pid \\d+\\) waits for\\n {4}recv from rank 1, in allreduce of rows, 32 bytes, for [\\d.]+ s: posted: nothing has matched[^]*` +
        `${name} 0 \\(pid \\d+\\) waits for\\n {4}recv from rank 1, in allreduce of rows, 32 bytes, for [\\d.]+ s: the lead has not said what has come[^]*` +
        `${name} 1 \\(pid \\d+\\): waits for nothing\\n {2}no ranks wait`,
    );
    for (let turn = 0; !there.test(last()); turn++) {
      expect(turn, job.output().stderr).toBeLessThan(10);
      process.kill(pid, 'SIGUSR2');
      await new Promise((resolve) => setTimeout(resolve, 1200));
    }
  });

  test('on a stall, without being asked', async () => {
    const job = run('-n 2 --mca mpi_stall_report_ms 1500', 'ring');
    await job.until(/cycle: 0 waits for 1 waits for 0/);
    expect(job.output().stderr).toMatch(/who waits for whom \(rank [01]: nothing has moved for [\d.]+ s \(mpi_stall_report_ms\)\)/);
  });

  test('ranks in blocking calls, which hear no question', async ({ skip }) => {
    const { reason } = loadNative();
    if (reason !== undefined) {
      console.log(`skipped: waits of blocking calls: no native part: ${reason}`);
      skip();
    }
    const job = run('-n 2 --mca btl self,tcp --mca mpi_stall_report_ms 3000', 'blocking');
    await job.until(/cycle: 0 waits for 1 waits for 0/);
    for (const rank of [0, 1]) {
      expect(job.output().stderr).toMatch(
        new RegExp(
          `rank ${rank} \\(pid \\d+\\), in a blocking call, said [\\d.]+ s ago that it waits for\\n    recv from rank ${1 - rank}, tag 5`,
        ),
      );
    }
  });

  test('nothing is kept alive, and nothing is printed, when nobody asks', async () => {
    const ran = await run('-n 2', 'nothing').ended;
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    for (const rank of [0, 1]) expect(ran.stdout).toContain(`rank ${rank}: 0 waits`);
  });

  test('mpi_waits_on_signal false leaves the signal to the program', async () => {
    const job = run('-n 2 --mca mpi_waits_on_signal false', 'ring');
    const [pid] = await ready(job, 2);
    process.kill(pid, 'SIGUSR2');
    await job.until(/the program's own listener/);
    job.child.kill('SIGTERM');
    expect((await job.ended).stderr).not.toContain('who waits');
  });
});
