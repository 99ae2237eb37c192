// Processes that join a running job: started by hand, by a launcher in place of the dead, or again under their old index; and those that are
// refused. All are real processes of this machine.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../support/free-port.mjs';
import { type BuiltCode, buildCode, type Running, startNode } from '../support/helpers.ts';
import { playRespawn } from '../support/respawn-play.mjs';

let code: BuiltCode;
let folder: string;
const running: Running[] = [];
beforeAll(async () => {
  code = await buildCode(['ft-standby.ts', 'ft-respawn-rank.mjs']);
  folder = mkdtempSync(join(tmpdir(), 'multirail-joins-'));
}, 60_000);
afterEach(async () => {
  // All of them first: the process that serves a job has the output of rank 0 open until the last rank is over.
  for (const one of running) one.child.kill('SIGKILL');
  for (const one of running.splice(0)) await one.ended;
});
afterAll(() => {
  code?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function start(words: readonly string[], env: Record<string, string> = {}): Running {
  const one = startNode(words, { input: '', env: { XDG_RUNTIME_DIR: '', ...env }, timeoutMs: 120_000 });
  running.push(one);
  return one;
}

const program = (part: string): string[] => [code.fixture('ft-standby.ts'), part];
const byHand = (part: string, env: Record<string, string>): Running => start(program(part), { MULTIRAIL_MCA_ft_join: 'standby', ...env });

const said = async (job: Running, text: RegExp, times: number): Promise<void> => {
  while ((job.output().stdout.match(new RegExp(text, 'g')) ?? []).length < times) await sleep(20);
};

/** What the pods of examples/kubernetes/fault-tolerant.yaml are given. */
function manifestVariables(): Record<string, string> {
  const text = readFileSync(new URL('../../examples/kubernetes/fault-tolerant.yaml', import.meta.url), 'utf8');
  const job = parseAllDocuments(text)
    .map((document) => document.toJS())
    .find(({ kind, metadata }) => kind === 'Job' && metadata.name === 'heat');
  const { env } = job.spec.template.spec.containers[0] as { env: { name: string; value: string }[] };
  return Object.fromEntries(env.map(({ name, value }) => [name, value]));
}

describe('a process that is started by hand', () => {
  test('joins a job of multirail run by its rendezvous, and takes the place of a dead rank', async () => {
    const rendezvous = join(folder, 'of run');
    const job = start([code.cli, 'run', '-n', '3', '--mca', 'ft', 'on', '--rendezvous', rendezvous, ...program('joined')]);
    await said(job, /at work/, 3);
    const joiner = byHand('joined', { MULTIRAIL_RENDEZVOUS: rendezvous });
    await said(job, /1 stand by/, 3);
    const pid = Number(/process 1 has pid (\d+)/.exec(job.output().stdout)?.[1]);
    process.kill(pid, 'SIGKILL');
    const [ran, joined] = await Promise.all([job.ended, joiner.ended]);
    expect(ran.code, `${ran.stdout}\n${ran.stderr}`).toBe(0);
    expect(joined.code, joined.stderr).toBe(0);
    expect(joined.stdout).toContain('the sum is 3 with 0 3 2\n');
    expect(ran.stdout.match(/the sum is 3 with 0 3 2/g)).toHaveLength(2);
    expect(ran.stderr).toContain('1 of 3 processes died; 1 of 1 that stood by took the place of one of them; the others came to their end');
    expect(existsSync(rendezvous)).toBe(false);
  }, 140_000);

  test('joins ranks in plain shells, dies unneeded, and the next one gets the next number; one that nobody needs ends with 0', async () => {
    const secret = join(folder, 'secret');
    writeFileSync(secret, randomBytes(32));
    const where = { MULTIRAIL_RENDEZVOUS: `localhost:${await freePort()}`, MULTIRAIL_SECRET_FILE: secret };
    const ranks = [0, 1, 2].map((rank) =>
      start(program('joined'), { MULTIRAIL_RANK: String(rank), MULTIRAIL_SIZE: '3', MULTIRAIL_MCA_ft: 'on', ...where }),
    );
    for (const rank of ranks) await rank.until(/at work/);
    const first = byHand('joined', where);
    for (const rank of ranks) await rank.until(/1 stand by/);
    first.child.kill('SIGKILL');
    for (const rank of ranks) await rank.until(/0 stand by/);
    // The variables of a rank say nothing of it: it joins.
    const second = byHand('joined', { ...where, RANK: '1', SLURM_PROCID: '0', SLURM_NTASKS: '1' });
    for (const rank of ranks) await rank.until(/0 stand by\n1 stand by/);
    const idle = byHand('joined', where);
    for (const rank of ranks) await rank.until(/2 stand by/);
    ranks[2].child.kill('SIGKILL');
    const ends = await Promise.all([ranks[0].ended, ranks[1].ended, second.ended]);
    for (const { code: exitCode, stdout, stderr } of ends) {
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain('the sum is 3 with 0 1 4\n');
    }
    const { code: idleCode, stdout } = await idle.ended;
    expect([idleCode, stdout]).toEqual([0, `process undefined has pid ${idle.child.pid}\n`]);
  }, 140_000);

  test('is refused with a reason: without the secret, by a job that ends with its ranks, and when nothing says where the job is', async () => {
    const secret = join(folder, 'the secret');
    writeFileSync(secret, randomBytes(32));
    const limits = { MULTIRAIL_MCA_oob_join_timeout_ms: '2000' };
    const closedPort = await freePort();
    const ending = { MULTIRAIL_RENDEZVOUS: `127.0.0.1:${closedPort}`, MULTIRAIL_SECRET_FILE: secret, MULTIRAIL_MCA_oob_served: 'true' };
    const server = start([code.cli, 'rendezvous', '-n', '2', '--listen', `127.0.0.1:${closedPort}`], { MULTIRAIL_SECRET_FILE: secret });
    await server.until(/listens/);
    const closed = byHand('pool', { ...ending, ...limits });
    const port = await freePort();
    const served = { MULTIRAIL_RENDEZVOUS: `localhost:${port}`, MULTIRAIL_SECRET_FILE: secret };
    const open = [0, 1].map((rank) =>
      start(program('joined'), { MULTIRAIL_RANK: String(rank), MULTIRAIL_SIZE: '2', MULTIRAIL_MCA_ft: 'on', ...served }),
    );
    for (const rank of open) await rank.until(/at work/);
    const other = join(folder, 'another secret');
    writeFileSync(other, randomBytes(32));
    const stranger = byHand('pool', { ...served, MULTIRAIL_SECRET_FILE: other, ...limits });
    const lost = byHand('pool', {});
    for (const [one, text] of [
      [closed, /NO_JOINS: this job takes no processes after its start: start it with --mca ft on/],
      [stranger, /BAD_PROOF: the other side does not know the job's secret/],
      [lost, /ft_join is standby, and nothing says where the job is that this process shall join: set MULTIRAIL_RENDEZVOUS/],
    ] as const) {
      const { code: exitCode, stderr } = await one.ended;
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(text);
    }
  }, 140_000);

  test('--rendezvous needs a job that takes processes', async () => {
    const { code: exitCode, stderr } = await start([code.cli, 'run', '-n', '1', '--rendezvous', join(folder, 'x'), ...program('pool')])
      .ended;
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--rendezvous needs a job that processes can join: give it --mca ft on, --spares or --respawn, too');
  });
});

describe('multirail run --respawn', () => {
  test('a ring whose ranks are killed again and again never has fewer', async () => {
    const words = [code.cli, 'run', '-n', '4', '--respawn', code.fixture('ft-respawn-rank.mjs')];
    const { problems, stdout, stderr } = await playRespawn({ words, ranks: 4, kills: 5, seed: 16, limitMs: 110_000 });
    expect(problems, `${stdout}\n${stderr}`).toEqual([]);
    expect(stderr).toMatch(/process 4 \(pid \d+\) is started in place of process \d, and will stand by/);
    expect(stderr).toContain('5 of 9 processes died; 5 of 5 that stood by took places of them; the others came to their end');
  }, 140_000);

  test('where the last has been started, replace() ends with ERR_SPARES at all ranks', async () => {
    const job = start([code.cli, 'run', '-n', '3', '--respawn', '1', '--mca', 'ft_respawn_wait_ms', '30000', ...program('twice')]);
    await said(job, /at work/, 3);
    const pidOf = (number: number): number => Number(new RegExp(`process ${number} has pid (\\d+)`).exec(job.output().stdout)?.[1]);
    process.kill(pidOf(2), 'SIGKILL');
    await said(job, /the sum is 3 with 0 1 3/, 3);
    process.kill(pidOf(1), 'SIGKILL');
    const { code: exitCode, stdout, stderr } = await job.ended;
    expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
    expect(stdout.match(/then ERR_SPARES/g)).toHaveLength(2);
    expect(stderr).toContain('1 processes were started in place of others, which is the most (--respawn); no more will be');
  }, 140_000);
});

describe('a process that is started again under its old index', () => {
  test('stands by, the older one is declared dead and ends itself, and the newer one takes its place', async () => {
    const secret = join(folder, 'of pods');
    writeFileSync(secret, randomBytes(32));
    const port = await freePort();
    const server = start([code.cli, 'rendezvous', '-n', '3', '--listen', `127.0.0.1:${port}`, '--mca', 'ft', 'on'], {
      MULTIRAIL_SECRET_FILE: secret,
    });
    await server.until(/the rendezvous of a job of 3 processes listens/);
    const pod = (index: number): Running =>
      start(program('joined'), {
        ...manifestVariables(),
        JOB_COMPLETION_INDEX: String(index),
        MULTIRAIL_SIZE: '3',
        MULTIRAIL_RENDEZVOUS: `127.0.0.1:${port}`,
        MULTIRAIL_SECRET_FILE: secret,
      });
    const pods = [0, 1, 2].map(pod);
    for (const one of pods) await one.until(/at work/);
    // The older one of index 0 lives: its node has lost touch with the cluster.
    const again = pod(0);
    const old = await pods[0].ended;
    expect(old.code, old.stderr).toBe(70);
    expect(old.stderr).toMatch(/this process, rank 0, was declared dead: a newer process has taken its place/);
    const ends = await Promise.all([again.ended, pods[1].ended, pods[2].ended]);
    for (const { code: exitCode, stdout, stderr } of ends) {
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain('the sum is 3 with 3 1 2\n');
    }
    const { code: serverCode, stderr } = await server.ended;
    expect(serverCode, stderr).toBe(0);
  }, 140_000);
});
