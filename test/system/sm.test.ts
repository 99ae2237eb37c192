// Shared memory between real processes: they sleep and are woken, are killed, stopped and kept busy, and leave nothing behind.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, describe as group, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode, type Running, startNode, untilGone } from '../support/helpers.ts';

const { reason } = loadNative();
if (reason !== undefined) console.info(`skipped: sm between processes: ${reason}`);

/** An eventfd without O_NONBLOCK whose counter is full: whoever writes to it sleeps until somebody reads. */
const FULL_EVENTFD =
  'import os, sys; fd = os.eventfd(0, 0); os.write(fd, (2**64 - 2).to_bytes(8, sys.byteorder)); os.set_inheritable(fd, True)';
const noEventfd = spawnSync('python3', ['-c', FULL_EVENTFD]).status !== 0;
if (noEventfd) console.info('skipped: a peer with a full eventfd: there is no Python of 3.10 or later');

let code: BuiltCode;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['sm-peer.ts', 'mpi-rank.mjs']);
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

function start(args: string[], program = process.execPath): Running {
  const job = startNode(args, { timeoutMs: 60_000, program });
  running.push(job);
  return job;
}

const tell = (peer: Running, line: string): void => void peer.child.stdin?.write(`${line}\n`);
const pidOf = (peer: Running): number => peer.child.pid as number;

/** Two processes with a rail between them. */
async function connected(params: Record<string, string> = {}): Promise<[Running, Running]> {
  const peers = [0, 1].map((rank) => start([code.fixture('sm-peer.ts'), String(rank), JSON.stringify(params)]));
  const addresses = await Promise.all(peers.map((peer) => peer.until(/^address (.*)$/m)));
  tell(peers[1], `peer ${addresses[0][1]}`);
  tell(peers[0], `peer ${addresses[1][1]}`);
  await Promise.all(peers.map((peer) => peer.until(/^connected 1$/m)));
  return peers as [Running, Running];
}

/** What this process holds of our segments: mapped, or by descriptor. */
function segmentsOf(pid: number): string[] {
  const found = readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .filter((line) => line.includes('multirail-sm'));
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      if (target.includes('multirail-sm')) found.push(target);
    } catch {
      // Closed meanwhile.
    }
  }
  return found;
}

/** Segments that any process holds. */
function segmentsOfAll(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return segmentsOf(Number(pid)).map((line) => `${pid}: ${line}`);
      } catch {
        return [];
      }
    });
}

const ofOurs = (pids: readonly number[]) => segmentsOfAll().filter((line) => pids.includes(Number(line.split(':')[0])));
/** A rail tells its end before it lets go of its memory. */
async function untilNone(list: () => string[]): Promise<void> {
  const deadline = performance.now() + 5000;
  while (list().length > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(list()).toEqual([]);
}

const named = (): string[] => [...readdirSync('/dev/shm'), ...readdirSync('/tmp')].filter((name) => name.includes('multirail-sm'));

group.skipIf(reason !== undefined)('sm between processes', () => {
  test('sleepers are woken for frames and for counts', async () => {
    const [a, b] = await connected();
    for (const [from, to] of [
      [a, b],
      [b, a],
    ]) {
      tell(from, 'send 10 3');
      await to.until(/^frame 1 of 10 right$/m);
      await from.until(/^completed 3 0$/m);
      tell(from, 'send 200000 20');
      await to.until(/^frame 1 of 200000 right$/m);
      await from.until(/^completed 23 0$/m);
    }
    for (const peer of [a, b]) expect(peer.output().stdout).not.toMatch(/WRONG|down/);
  });

  test.skipIf(noEventfd)(
    'a peer that passes a descriptor on which writing blocks holds nobody up',
    async () => {
      const program = `${FULL_EVENTFD}; os.execv(sys.argv[1], sys.argv[1:] + [str(fd)])`;
      const node = [process.execPath, code.fixture('sm-peer.ts'), '0', '{}'];
      const hostile = start(['-c', program, ...node], 'python3');
      const victim = start([code.fixture('sm-peer.ts'), '1']);
      const addresses = await Promise.all([hostile, victim].map((peer) => peer.until(/^address (.*)$/m)));
      tell(victim, `peer ${addresses[0][1]}`);
      tell(hostile, `peer ${addresses[1][1]}`);
      await victim.until(/^(connected|down|log)/m);
      // By now the hostile end sleeps: what is published for it would ring.
      await new Promise((resolve) => setTimeout(resolve, 300));
      tell(victim, 'send 10 3');
      tell(victim, 'compute 1');
      await victim.until(/^computed$/m);
    },
    20_000,
  );

  test('the death of the peer is told at once, and nothing is left of the segment', async () => {
    const [a, b] = await connected();
    expect(segmentsOf(pidOf(a)).length).toBe(1);
    expect(segmentsOf(pidOf(b)).length).toBe(1);
    // A ring full of frames that nobody will read.
    b.child.kill('SIGSTOP');
    tell(a, 'send 1000 20');
    await new Promise((resolve) => setTimeout(resolve, 200));
    b.child.kill('SIGKILL');
    await a.until(/^down 1 closed$/m);
    await a.until(/^completed 20 2$/m);
    await b.ended;
    await untilNone(() => segmentsOf(pidOf(a)));
    expect(named()).toEqual([]);
    tell(a, 'close');
    await a.until(/^closed$/m);
  });

  test('an idle rail costs little memory: the segment is touched as it is used', async () => {
    const peers = await connected({ btl_sm_ring_bytes: '16m' });
    for (const peer of peers) {
      const maps = readFileSync(`/proc/${pidOf(peer)}/smaps`, 'utf8');
      const [, kib] = /multirail-sm[\s\S]*?\nRss:\s*(\d+) kB/.exec(maps) ?? [];
      // One page of words, the first pages of both rings, and a sample of 64 KiB each way.
      expect(Number(kib)).toBeGreaterThan(0);
      expect(Number(kib)).toBeLessThan(400);
    }
  });

  test('both killed: no process, file or name holds anything', async () => {
    const [a, b] = await connected();
    const pids = [pidOf(a), pidOf(b)];
    expect(ofOurs(pids).length).toBe(2);
    for (const peer of [a, b]) peer.child.kill('SIGKILL');
    await untilGone(pids);
    await untilNone(() => ofOurs(pids));
    expect(named()).toEqual([]);
    expect(readFileSync('/proc/net/unix', 'utf8')).not.toContain(JSON.parse((await a.until(/^address (.*)$/m))[1]).name);
  });

  test('after close() on one side the other has lost its rail, and neither holds the segment', async () => {
    const [a, b] = await connected();
    tell(b, 'close');
    await b.until(/^closed$/m);
    await a.until(/^down 1 closed$/m);
    await untilNone(() => ofOurs([pidOf(a), pidOf(b)]));
  });

  test('a peer that is stopped or computes is not dead: its frames wait and are delivered', async () => {
    const [a, b] = await connected();
    b.child.kill('SIGSTOP');
    tell(a, 'send 100 5');
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(a.output().stdout).not.toContain('down');
    b.child.kill('SIGCONT');
    await a.until(/^completed 5 0$/m);
    tell(b, 'compute 1500');
    tell(a, 'send 100 5');
    await b.until(/^computed$/m);
    await a.until(/^completed 10 0$/m);
    expect(a.output().stdout).not.toContain('down');
  });

  for (const [name, mca] of [
    ['through the ring', '--mca btl_sm_single_copy never'],
    ['with single copies', '--mca btl_sm_single_copy always --mca btl_sm_single_copy_min_bytes 4k'],
  ]) {
    test(`a job of four ranks ${name}`, async () => {
      const ran = await start([
        code.cli,
        'run',
        '-n',
        '4',
        '--mca',
        'btl',
        'self,sm',
        ...mca.split(' '),
        code.fixture('mpi-rank.mjs'),
        'ring',
      ]).ended;
      expect(ran).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('ring of 1000000: true') });
    });
  }

  test('a killed rank of a job over shared memory is named to the others, who leave', async () => {
    const job = start([
      code.cli,
      'run',
      '-n',
      '3',
      '--no-abort-on-failure',
      '--mca',
      'btl',
      'self,sm',
      code.fixture('mpi-rank.mjs'),
      'crash',
    ]);
    const ran = await job.ended;
    for (const rank of [0, 1]) {
      expect(ran.stdout).toContain(`[${rank}] ERR_PROC_FAILED from ${rank} about 2`);
      expect(ran.stdout).toContain(`[${rank}] left`);
    }
    expect(named()).toEqual([]);
  });
});
