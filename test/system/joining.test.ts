// Jobs without a launcher of multirail: processes with the variables of torchrun, with multirail's own, or with those of an engine, meet,
// survive each other, and end together. They are real processes of this machine; the engines themselves are in test/launchers.

import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.mjs';
import { type BuiltCode, buildCode, type Ran, type Running, startNode, untilGone } from '../support/helpers.ts';

let code: BuiltCode;
let folder: string;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['joining-rank.mjs', 'ft-standby.ts']);
  folder = mkdtempSync(join(tmpdir(), 'joining-'));
});
afterEach(async () => {
  for (const one of running.splice(0)) {
    one.child.kill('SIGKILL');
    await one.ended;
  }
});
afterAll(() => {
  code?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

/** Each rank as a process by itself, with the environment that `envOf` gives. */
function startRanks(size: number, args: string[], envOf: (rank: number) => Record<string, string>, program = 'joining-rank'): Running[] {
  const ranks = Array.from({ length: size }, (_, rank) =>
    startNode([code.fixture(program), ...args], { input: '', env: { XDG_RUNTIME_DIR: '', ...envOf(rank) }, timeoutMs: 60_000 }),
  );
  running.push(...ranks);
  return ranks;
}

const endsOf = (ranks: Running[]): Promise<Ran[]> => Promise.all(ranks.map(({ ended }) => ended));

function torchrun(size: number, port: number, extra: Record<string, string> = {}) {
  return (rank: number) => ({
    RANK: String(rank),
    WORLD_SIZE: String(size),
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(port),
    ...extra,
  });
}

/** The command line of a process, as `ps` shows it: that program is not on every machine. Empty when it has ended meanwhile. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trimEnd();
  } catch {
    return '';
  }
}

/** The process that serves the channel for this rank 0: its title says so, and it has to be gone soon after its job. */
async function serverOf(rank0: Running): Promise<number> {
  const title = `multirail rendezvous of pid ${rank0.child.pid}`;
  for (;;) {
    const found = readdirSync('/proc').find((name) => /^\d+$/.test(name) && commandOf(name) === title);
    if (found !== undefined) return Number(found);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('ranks that nobody of ours has started', () => {
  test('meet by the variables of torchrun in plain shells, the last one first', async () => {
    const port = await freePort();
    const envOf = torchrun(4, port);
    const late: Running[] = [];
    for (const rank of [3, 2, 1]) late.push(...startRanks(1, ['ring'], () => envOf(rank)));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const ranks = [...startRanks(1, ['ring'], () => envOf(0)), ...late.reverse()];
    for (const [rank, ran] of (await endsOf(ranks)).entries()) {
      expect(ran).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(new RegExp(`^rank ${rank}: of 4`)) });
    }
  });

  test('meet at an address with a secret of their own, and by a file that all can reach', async () => {
    const secret = join(folder, 'secret');
    writeFileSync(secret, 'sixteen bytes and some more');
    const port = await freePort();
    const byAddress = { MULTIRAIL_RENDEZVOUS: `localhost:${port}`, MULTIRAIL_SECRET_FILE: secret };
    const byFile = { MULTIRAIL_RENDEZVOUS: join(folder, 'meeting') };
    for (const way of [byAddress, byFile]) {
      const ranks = startRanks(3, ['ring'], (rank) => ({ MULTIRAIL_RANK: String(rank), MULTIRAIL_SIZE: '3', ...way }));
      for (const ran of await endsOf(ranks)) expect(ran).toMatchObject({ code: 0, stderr: '' });
    }
  });

  test.each([0, 2])('rank %i is killed: the others get ERR_PROC_FAILED, go on with each other, and finish', async (victim) => {
    const port = await freePort();
    const ranks = startRanks(3, ['killed', String(victim)], torchrun(3, port));
    const server = await serverOf(ranks[0]);
    const ends = await endsOf(ranks);
    expect(ends[victim]).toMatchObject({ signal: 'SIGKILL' });
    for (const rank of [0, 1, 2].filter((one) => one !== victim)) {
      expect(ends[rank].code).toBe(0);
      expect(ends[rank].stdout).toContain(`rank ${rank}: receive: ERR_PROC_FAILED about ${victim}\n`);
      expect(ends[rank].stdout).toContain(`rank ${rank}: send: ERR_PROC_FAILED about ${victim}\n`);
      expect(ends[rank].stdout).toContain(`rank ${rank}: left\n`);
    }
    expect(ends[0].stderr).toContain(`rank ${victim} (pid ${ranks[victim].child.pid}) has ended without finalize()`);
    await untilGone([server]);
  });

  test('the process that serves the channel dies: all say so once; then a rank dies, is replaced without it, and all leave', async () => {
    const more = { MULTIRAIL_MCA_ft_spares: '1', MULTIRAIL_MCA_oob_reconnect_timeout_ms: '500' };
    const ranks = startRanks(4, ['replace'], torchrun(4, await freePort(), more), 'ft-standby.ts');
    const server = await serverOf(ranks[0]);
    for (const rank of ranks.slice(0, 3)) await rank.until(/at work/);
    process.kill(server, 'SIGKILL');
    const lost = /the out-of-band channel is lost \(.*\); going on without it: ends of ranks are noticed by their rails only\n/g;
    for (const rank of ranks) await rank.until(new RegExp(lost, ''));
    ranks[1].child.kill('SIGKILL');
    const ends = await endsOf(ranks);
    for (const rank of [0, 2, 3]) {
      const { code: exitCode, stdout, stderr } = ends[rank];
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain('the sum is 3 with 0 3 2\n');
      expect(stderr.match(lost)).toHaveLength(1);
    }
  });

  test('one throws, all end, each with the name of the one', async () => {
    const ranks = startRanks(3, ['throw'], torchrun(3, await freePort()));
    const server = await serverOf(ranks[0]);
    const ends = await endsOf(ranks);
    for (const ran of ends) expect(ran.code).toBe(1);
    expect(ends[1].stderr).toMatch(/rank 1 of 3 \(pid \d+\): unhandled rejection:\nTypeError: this rank is wrong\n {4}at /);
    for (const rank of [0, 2]) expect(ends[rank].stderr).toContain('ends, since rank 1 aborted the job: TypeError: this rank is wrong');
    await untilGone([server]);
  });

  test('abort() ends all with its code', async () => {
    const ends = await endsOf(startRanks(3, ['abort'], torchrun(3, await freePort())));
    expect(ends.map((ran) => ran.code)).toEqual([7, 7, 7]);
    expect(ends[0].stderr).toContain('rank 1 aborted the job with code 7: enough');
  });

  test('a rank that computes without its event loop, for longer than the channel may be silent, is not taken for dead', async () => {
    const limits = { MULTIRAIL_MCA_oob_reconnect_timeout_ms: '1500', MULTIRAIL_MCA_oob_exit_grace_ms: '500' };
    const ends = await endsOf(startRanks(3, ['compute', '6000'], torchrun(3, await freePort(), limits)));
    for (const [rank, ran] of ends.entries()) expect(ran).toMatchObject({ code: 0, stdout: `rank ${rank}: alive\n` });
  });
});

describe('ranks that cannot meet say why', () => {
  test('nobody is there', async () => {
    const port = await freePort();
    const env = { ...torchrun(2, port)(1), MULTIRAIL_MCA_oob_join_timeout_ms: '1500', MULTIRAIL_SECRET_FILE: join(folder, 'secret') };
    writeFileSync(env.MULTIRAIL_SECRET_FILE, 'sixteen bytes and some more');
    const [ran] = await endsOf(startRanks(1, ['ring'], () => env));
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain(
      `rank 1 of 2 did not find its job within 1500 ms (oob_join_timeout_ms): rank 0 was looked for at 127.0.0.1:${port}`,
    );
    expect(ran.stderr).toContain('ECONNREFUSED');
  });

  test('one never comes: the others are told which', async () => {
    const [ran] = await endsOf(
      startRanks(1, ['ring'], () => ({
        ...torchrun(2, 0)(0),
        MASTER_PORT: '1',
        MULTIRAIL_RENDEZVOUS: join(folder, 'lonely'),
        MULTIRAIL_MCA_oob_join_timeout_ms: '1500',
      })),
    );
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/rank 1 has not joined within \d+ ms/);
    expect(ran.stderr).toContain('ERR_PROC_FAILED');
  });

  test('another program has the port', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const { port } = server.address() as { port: number };
    const [ran] = await endsOf(startRanks(1, ['ring'], () => ({ ...torchrun(2, port)(0), MULTIRAIL_SECRET_FILE: join(folder, 'secret') })));
    server.close();
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain(`rank 0 cannot listen at 127.0.0.1:${port} (MASTER_ADDR and MASTER_PORT), because another program does`);
  });

  test('beyond loopback without a secret', async () => {
    const env = { ...torchrun(2, 29_500)(1), MASTER_ADDR: '192.0.2.1' };
    const [ran] = await endsOf(startRanks(1, ['ring'], () => env));
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('this job has no secret, and goes beyond loopback');
  });

  test('a meeting that others may read is not trusted', async () => {
    const path = join(folder, 'planted');
    writeFileSync(path, '{}');
    chmodSync(path, 0o644);
    const [ran] = await endsOf(startRanks(1, ['ring'], () => ({ MULTIRAIL_RANK: '1', MULTIRAIL_SIZE: '2', MULTIRAIL_RENDEZVOUS: path })));
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('is not trusted');
  });

  test('a meeting of an earlier job is passed over', async () => {
    const path = join(folder, 'stale');
    const record = {
      version: 1,
      jobId: 'old',
      urls: ['ws://127.0.0.1:9/multirail-oob'],
      hostId: '',
      secret: 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    };
    const { hostId } = await import('../../src/launch/meeting/identity.ts');
    writeFileSync(path, JSON.stringify({ ...record, hostId: hostId() }), { mode: 0o600 });
    const envOf = (rank: number) => ({ MULTIRAIL_RANK: String(rank), MULTIRAIL_SIZE: '2', MULTIRAIL_RENDEZVOUS: path });
    const late = startRanks(1, ['ring'], () => envOf(1));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const ends = await endsOf([...startRanks(1, ['ring'], () => envOf(0)), ...late]);
    for (const ran of ends) expect(ran).toMatchObject({ code: 0, stderr: '' });
  });
});
