// Networks that fall apart, over real links: one side of them goes on, never both, whoever has the server of the job. Three hosts with a rank
// each, started by nobody of ours, and two rails that may carry messages; a host is cut off while all are in barriers.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Lab, labUnavailable } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) console.log(`skipped: networks that fall apart: ${unavailable}`);

const OWN_FAILURE_CODE = 70;
const HOSTS = 3;
/** Of the job; a rank that hangs is a failure, and not a test run that hangs. */
const JOB_MS_MAX = 60_000;

interface Story {
  name: string;
  /** The host that is cut off, from the rails that messages use. */
  cutOff: number;
  /** Its way to the server is cut, too. */
  fromServer: boolean;
  policy: string;
  /** Processes that go on, and what the others say. */
  goOn: number[];
  says: string;
}
const STORIES: Story[] = [
  {
    name: 'a host without the server',
    cutOff: 2,
    fromServer: true,
    policy: 'arbiter',
    goOn: [0, 1],
    says: 'it reaches 1 of the 3 processes',
  },
  {
    name: 'the host of the server',
    cutOff: 0,
    fromServer: true,
    policy: 'arbiter',
    goOn: [1, 2],
    says: 'it reaches 1 of the 3 processes',
  },
  {
    name: 'a host that still reaches the server',
    cutOff: 1,
    fromServer: false,
    policy: 'arbiter',
    goOn: [0, 2],
    says: 'was declared dead: rank 1 has ended',
  },
  {
    name: 'a host that still reaches the server, which nobody asks',
    cutOff: 1,
    fromServer: false,
    policy: 'majority',
    goOn: [0, 2],
    says: 'it reaches 1 of the 3 processes',
  },
];

let code: BuiltCode;
let folder: string;
let lab: Lab | undefined;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'multirail-partition-'));
  writeFileSync(join(folder, 'secret'), randomBytes(32), { mode: 0o600 });
  if (unavailable === undefined) code = await buildCode(['ft-partition-rank.ts']);
}, 60_000);
afterEach(async () => {
  await lab?.destroy();
  lab = undefined;
});
afterAll(() => {
  code?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** The ranks of one job, a host each; `served`: by a process on one more host, which runs no rank. */
async function startRanks(hosts: number, args: string[], mca: Record<string, string>, served = false) {
  const made = await Lab.create({ nodes: hosts + Number(served), rails: [{ mbit: 1000 }, { mbit: 1000 }] });
  lab = made;
  const secretFile = join(folder, 'secret');
  const at = `${made.address(served ? hosts : 0, 1)}:29400`;
  if (served) {
    const words = [code.cli, 'rendezvous', '-n', String(hosts), '--listen', at];
    for (const [name, value] of Object.entries({ ft: 'on', ...mca })) words.push('--mca', name, value);
    const server = made.spawn(hosts, [process.execPath, ...words], {
      env: { ...process.env, XDG_RUNTIME_DIR: '', MULTIRAIL_SECRET_FILE: secretFile },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    await new Promise<void>((resolve) => {
      for (const stream of [server.stdout, server.stderr]) stream?.on('data', (data) => /listens/.test(String(data)) && resolve());
      server.on('close', () => resolve());
    });
  }
  const start = (rank: number) => {
    const env: Record<string, string> = {
      ...(served
        ? { MULTIRAIL_RANK: String(rank), MULTIRAIL_SIZE: String(hosts), MULTIRAIL_RENDEZVOUS: at }
        : { RANK: String(rank), WORLD_SIZE: String(hosts), MASTER_ADDR: made.address(0, 1), MASTER_PORT: '29400' }),
      MULTIRAIL_SECRET_FILE: secretFile,
    };
    const own = { ft: 'on', btl: 'self,tcp', btl_tcp_if_include: 'mr0', ...(served ? { oob_served: 'true' } : {}), ...mca };
    for (const [name, value] of Object.entries(own)) env[`MULTIRAIL_MCA_${name}`] = value;
    // Hosts see no processes of each other.
    const alone = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const child = made.spawn(rank, [...alone, process.execPath, code.fixture('ft-partition-rank'), ...args], {
      env: { ...process.env, XDG_RUNTIME_DIR: '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let met = (): void => {};
    const together = new Promise<void>((resolve) => {
      met = resolve;
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (data) => {
        output += data;
        if (output.includes('together')) met();
      });
    const timer = setTimeout(() => child.kill('SIGKILL'), JOB_MS_MAX);
    const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
      child.on('close', (exitCode) => {
        clearTimeout(timer);
        met();
        resolve({ code: exitCode, output });
      });
    });
    return { child, together, ended };
  };
  const ranks = Array.from({ length: hosts }, (_, rank) => start(rank));
  await Promise.all(ranks.map(({ together }) => together));
  return { made, ranks };
}

describe.skipIf(unavailable !== undefined)('a network that falls apart', () => {
  test.each(drawTests('partitions', STORIES))(
    '$name, by $policy: one side goes on',
    async ({ cutOff, fromServer, policy, goOn, says }) => {
      const { made, ranks } = await startRanks(HOSTS, [String(goOn.length)], {
        ft_partition: policy,
        ft_host_timeout_ms: '1500',
        pml_peer_timeout_ms: '3000',
        oob_reconnect_timeout_ms: '4000',
      });
      await made.cableCut(cutOff, 0);
      if (fromServer) await made.cableCut(cutOff, 1);
      const ends = await Promise.all(ranks.map(({ ended }) => ended));
      const text = ends.map(({ output }) => output).join('\n');
      for (const [rank, end] of ends.entries()) {
        if (goOn.includes(rank)) {
          expect(end.output, text).toContain(`rank ${rank}: goes on with ${goOn.join(' ')}`);
          expect(end.code, text).toBe(0);
        } else {
          expect(end.output, text).toContain(says);
          expect(end.output, text).not.toContain('goes on with');
          expect(end.code, text).toBe(OWN_FAILURE_CODE);
        }
      }
    },
    120_000,
  );
});

/** With two hosts nobody else could tell. The server is a process beside rank 0: where its host says that nobody is there any more, that counts. */
describe.skipIf(unavailable !== undefined)('a process that ends on another host, in blocking calls', () => {
  test.each([
    [0, 'is known by the refusals of its kernel, where the server has gone with it', /all its addresses refuse connections/],
    // Whichever is first: both are right.
    [
      1,
      'is known by them, or by the server, to which they were reported',
      /it was not heard of any more|all its addresses refuse connections/,
    ],
  ])(
    'rank %i %s',
    async (dead, _how, says) => {
      const { ranks } = await startRanks(2, ['1', 'sync'], { ft_host_timeout_ms: '600' });
      ranks[dead].child.kill('SIGKILL');
      const { code: exitCode, output } = await ranks[1 - dead].ended;
      expect(output).toMatch(says);
      expect(output).toContain(`rank ${1 - dead}: goes on with ${1 - dead}`);
      expect(exitCode, output).toBe(0);
    },
    90_000,
  );
});

/** The server of the job, which sees to it, is heard in blocking calls by its bulletin: long before the rails would give anybody up. */
describe.skipIf(unavailable !== undefined)('deaths on other hosts, in blocking calls', () => {
  test.each(drawTests('deaths by the bulletin', [{ name: 'a process' }, { name: 'a host' }]))(
    '$name that is gone',
    async ({ name }) => {
      const mca = { ft_host_timeout_ms: '2000', ft_refused_ms: '60000', oob_reconnect_timeout_ms: '5000', oob_exit_grace_ms: '500' };
      const { made, ranks } = await startRanks(3, ['2', 'sync'], mca, true);
      if (name === 'a process') ranks[2].child.kill('SIGKILL');
      else for (const rail of [0, 1]) await made.cableCut(2, rail);
      const ends = await Promise.all(ranks.slice(0, 2).map(({ ended }) => ended));
      for (const [rank, { code: exitCode, output }] of ends.entries()) {
        expect(output).toContain(`rank ${rank}: goes on with 0 1`);
        expect(exitCode, output).toBe(0);
      }
      // One of them may have it from the other.
      expect(ends.map(({ output }) => output).join('\n')).toContain('rank 2: it was not heard of any more');
    },
    90_000,
  );
});
