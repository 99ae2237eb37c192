// Hosts that lack something that nearly every host has: each job ends soon, and says what is wrong and what to do, or does without. Where a
// filter of system calls forbids something, the test needs python3; where a network namespace lacks something, it needs root. Without these
// a test says so and is skipped.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, describe as group, type TestContext, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode, type Ran } from '../support/helpers.ts';

const FORBID = fileURLToPath(new URL('./fixtures/forbid.py', import.meta.url));
/** None of these may sit out a deadline of the library, the shortest of which is 60 s. */
const SOON_MS = 45_000;

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['mpi-rank.mjs']);
});
afterAll(() => code?.dispose());

function run(words: readonly string[]): Ran {
  const [program, ...args] = words;
  const ran = spawnSync(program, args, { encoding: 'utf8', timeout: SOON_MS, input: '' });
  return { code: ran.status, signal: ran.signal, stdout: ran.stdout, stderr: ran.stderr };
}

const job = (options: string): string[] => [
  process.execPath,
  code.cli,
  'run',
  '-n',
  '2',
  ...options.split(' ').filter(Boolean),
  code.fixture('mpi-rank'),
  'ring',
];

function skip(context: TestContext, why: string): void {
  console.log(`skipped: ${context.task.name}: ${why}`);
  context.skip(why);
}

group('a filter of system calls', () => {
  const forbid = (what: string, command: readonly string[]) => run(['python3', FORBID, what, ...command]);
  const cannot = (what: string): string | undefined =>
    forbid(what, ['true']).code === 0 ? undefined : 'python3 could not set a filter of system calls';

  test('no memfd: sm says so at once; with tcp beside it the job runs', (context) => {
    const why = cannot('memfd') ?? loadNative().reason;
    if (why !== undefined) return skip(context, why);
    const alone = forbid('memfd', job('--mca btl self,sm'));
    expect(alone.code, `${alone.stdout}${alone.stderr}`).toBe(1);
    expect(alone.stderr).toContain('sm: no memory can be shared here: ');
    expect(alone.stderr).toMatch(/may forbid memfd_create: allow it, or use another transport \(tcp\) in btl/);
    expect(forbid('memfd', job('--mca btl self,sm,tcp')).stdout).toContain('[0] ring of 1000000: true');
  });

  test('no netlink: tcp says what forbids it; shared memory runs; info does not fail', (context) => {
    const why = cannot('netlink');
    if (why !== undefined) return skip(context, why);
    const alone = forbid('netlink', job('--mca btl self,tcp'));
    expect(alone.code).toBe(1);
    expect(alone.stderr).toContain('the interfaces of this host cannot be listed');
    expect(alone.stderr).toMatch(/allow AF_NETLINK, or use transports that do not need it \(btl self,sm on one host\)/);
    const info = forbid('netlink', [process.execPath, code.cli, 'info']);
    expect(info).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Interfaces\n {2}the interfaces of this host cannot be listed/m),
    });
    if (loadNative().reason === undefined) expect(forbid('netlink', job('--mca btl self,sm'))).toMatchObject({ code: 0, stderr: '' });
  });
});

group('loopback', () => {
  const inNamespace = (setUp: string, command: readonly string[]) =>
    run(['unshare', '--net', 'sh', '-c', `${setUp} && exec "$@"`, 'sh', ...command]);
  const cannot = (setUp: string): string | undefined =>
    inNamespace(setUp, ['true']).code === 0 ? undefined : 'no network namespace could be made (root, unshare and ip are needed)';

  test('down: the launcher says so at once, and rank 0 of a job of another engine too', (context) => {
    const setUp = 'ip link set lo up && ip link set lo down';
    const why = cannot(setUp);
    if (why !== undefined) return skip(context, why);
    const ran = inNamespace(setUp, job(''));
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(
      /^multirail: (this host cannot reach itself at 127\.0\.0\.1|cannot listen on 127\.0\.0\.1).*ip link set lo up/m,
    );
    const env = ['env', 'RANK=0', 'WORLD_SIZE=2', 'MASTER_ADDR=127.0.0.1', 'MASTER_PORT=29517'];
    const other = inNamespace(setUp, [...env, process.execPath, code.fixture('mpi-rank'), 'ring']);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('ip link set lo up');
  });

  test('of IPv6 alone: the job runs there, and the dashboard too', (context) => {
    const setUp = 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && ip addr show lo | grep -q ::1';
    const why = cannot(setUp);
    if (why !== undefined) return skip(context, why);
    const ran = inNamespace(setUp, job('--dashboard'));
    expect(ran.stderr).toMatch(/^multirail: dashboard at http:\/\/\[::1\]:\d+\/\?token=/m);
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('[0] ring of 1000000: true') });
  });
});
