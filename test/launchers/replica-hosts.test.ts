// Replicas of a rank on different hosts, which are network namespaces of this machine: that one of them is late is found by what its host says.
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type BuiltCode, buildCode, type Ran, startNode } from '../support/helpers.ts';
import { makeHosts, netnsMissing } from './netns-hosts.mjs';

const why = netnsMissing();
if (why !== undefined) console.log(`skipped: replicas on hosts in network namespaces: ${why}`);

describe.skipIf(why !== undefined)('replicas on different hosts', () => {
  let code: BuiltCode;
  let hosts: ReturnType<typeof makeHosts>;
  beforeAll(async () => {
    code = await buildCode(['replica-busy-rank.mjs', 'replica-rank.mjs', 'replica-steps-rank.mjs', 'replica-takeover-saves-rank.mjs']);
    hosts = makeHosts('10.213.9', ['a', 'b', 'c']);
  });
  afterAll(() => {
    hosts?.remove();
    code?.dispose();
  });

  const started: ReturnType<typeof startNode>[] = [];
  afterEach(async () => {
    for (const { child, ended } of started.splice(0)) {
      child.kill('SIGTERM');
      await ended;
    }
  });
  const start = (options: string, ...program: string[]) => {
    const words = ['run', '--mca', 'plm_rsh_agent', hosts.agent, ...options.split(' ')];
    const job = startNode([code.cli, ...words, ...program], { timeoutMs: 90_000 });
    started.push(job);
    return job;
  };
  /** Not longer than the job lasts. */
  const until = async (job: ReturnType<typeof start>, isSo: () => boolean): Promise<void> => {
    let ran: Ran | undefined;
    void job.ended.then((end) => {
      ran = end;
    });
    while (!isSo()) {
      if (ran !== undefined) throw new Error(`the job has ended: ${ran.stderr}`);
      await sleep(20);
    }
  };
  const run = (options: string): Promise<Ran> => start(options, code.fixture('replica-rank')).ended;

  test('nothing is said of those that do the same', async () => {
    const ran = await run('-n 2 --replicas 2 --hosts a:2,b:2');
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    expect(ran.stdout.trim().split('\n').length).toBe(2);
  });

  test.each(['lead', 'shadow'])('a %s that is caught in a loop is late', async (replica) => {
    const ran = await run(`-n 2 --replicas 2 --hosts a:2,b:2 --inject stall:rank=1,replica=${replica},at=30%`);
    expect(ran.code, ran.stderr).toBe(76);
    expect(ran.stderr).toMatch(
      new RegExp(`the replicas of rank 1 .* differ: the ${replica} is late: it has used 1\\.\\d+ s of a processor`),
    );
  });

  test('one of three that is caught in a loop is killed on its host', async () => {
    const ran = await run('-n 2 --replicas 3 --hosts a:2,b:2,c:2 --inject stall:rank=0,replica=shadow2,at=30%');
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stderr).toMatch(
      /process 4, a shadow of rank 0, is to leave the job, which goes on with two replicas of that rank: the second shadow is late/,
    );
  });

  test('one whose word does not come, since no rail carries between the two, is not late', async () => {
    const folder = mkdtempSync(join(code.folder, 'pids-'));
    const job = start('-n 1 --replicas 2 --hosts a:1,b:1', code.fixture('replica-busy-rank'), folder, '100');
    await until(job, () => readdirSync(folder).length === 2);
    // What TCP sends is dropped, and datagrams get through. Both wait for the other one, and use a processor.
    hosts.tc('a', 'qdisc', 'add', 'dev', 'eth0', 'clsact');
    hosts.tc('a', ...'filter add dev eth0 egress bpf direct-action bytecode'.split(' '), '4,48 0 0 23,21 0 1 6,6 0 0 2,6 0 0 0');
    await sleep(5000);
    hosts.tc('a', 'qdisc', 'del', 'dev', 'eth0', 'clsact');
    const ran = await job.ended;
    expect([ran.code, ran.stdout], ran.stderr).toEqual([0, expect.stringMatching(/result \d+/)]);
    expect(ran.stderr).not.toMatch(/late|differ/);
  });

  test('one that is stopped is not late', async () => {
    const job = start('-n 1 --replicas 2 --hosts a:1,b:1', code.fixture('replica-steps-rank'), code.folder, '60', '20');
    const file = join(code.folder, '1');
    await until(job, () => existsSync(file) && readFileSync(file, 'utf8') !== '');
    const pid = Number(readFileSync(file, 'utf8'));
    process.kill(pid, 'SIGSTOP');
    await sleep(4000);
    process.kill(pid, 'SIGCONT');
    const ran = await job.ended;
    expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringMatching(/late|differ/)]);
  });

  test('behind its next save a job whose host has died is started again on the others, leads where they have saved', async () => {
    const [pids, saves] = ['pids-', 'saves-'].map((name) => mkdtempSync(join(code.folder, name)));
    const words = '-n 2 --replicas 2 --hosts a:2,b:2,c:2 --on-replica-death relaunch';
    const job = start(words, code.fixture('replica-takeover-saves-rank'), pids, saves, '200');
    const pidOf = (number: number): number => Number(readFileSync(join(pids, String(number)), 'utf8'));
    await until(job, () => readdirSync(pids).filter((number) => pidOf(Number(number)) > 0).length === 4);
    // Both leads are there; their parent is the agent, and without it nobody says how they end.
    const leads = [0, 1].map(pidOf);
    const agent = Number(readFileSync(`/proc/${leads[0]}/stat`, 'utf8').split(') ')[1].split(' ')[1]);
    for (const pid of [agent, ...leads]) process.kill(pid, 'SIGKILL');
    hosts.removeHost('a');
    const ran = await job.ended;
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringMatching(/ranks 0, 1 lack replicas, and save \d+ is whole/)]);
    expect(ran.stderr).toContain('the job was started again 1 time and ends with exit code 0');
    for (const rank of [0, 1]) {
      const lines = ran.stdout.split('\n').filter((line) => line.startsWith(`[${rank}] step `));
      expect(lines).toEqual(Array.from({ length: 200 }, (_, step) => `[${rank}] step ${step}`));
    }
  });
});
