// `multirail run --hosts`: ranks on other hosts by ssh. Once with a command in the place of ssh that starts them on this host or in network
// namespaces, and once with a real sshd on loopback, where there is one.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type BuiltCode, buildCode, type Running, startNode, untilGone } from '../support/helpers.ts';

const FAKE = fileURLToPath(new URL('./fake-ssh.sh', import.meta.url));
const SSHD = fileURLToPath(new URL('./sshd.sh', import.meta.url));
/** What it exits with where it cannot be done. */
const CANNOT = 77;
let code: BuiltCode;
let folder: string;
let log: string;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['joining-rank.mjs']);
  folder = mkdtempSync(join(tmpdir(), 'joining-hosts-'));
  log = join(folder, 'calls');
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

function run(agent: string, options: readonly string[], program: readonly string[], input = ''): Running {
  const mca = ['--mca', 'plm_rsh_agent', agent];
  const job = startNode([code.cli, 'run', ...mca, ...options, ...program], { input, timeoutMs: 60_000 });
  running.push(job);
  return job;
}
const beside = () => `${FAKE} ${log} -`;
const rank = (...args: string[]) => [code.fixture('joining-rank'), ...args];
const pidsIn = (text: string) => [...text.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));

describe('with a command in the place of ssh', () => {
  test('four ranks on two hosts and here, from a file in both styles; nothing secret on a command line', async () => {
    const file = join(folder, 'hosts');
    writeFileSync(file, 'alpha slots=2\nbeta:1\nlocalhost\n');
    const ran = await run(beside(), ['--hostfile', file, '-x', 'GREETING=hello world'], rank('ring')).ended;
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    for (const one of [0, 1, 2, 3]) expect(ran.stdout).toContain(`[${one}] rank ${one}: of 4`);
    const calls = readFileSync(log, 'utf8').trim().split('\n');
    expect(calls.map((call) => call.split(' ')[0]).sort()).toEqual(['alpha', 'beta']);
    // One word per host, always the same: neither secret, nor job, nor the program of the user.
    for (const call of calls) expect(call).toMatch(/^\w+ exec \S+node\S* \S+cli\.mjs agent$/);
  });

  test('the environment, the arguments and the input of a rank arrive', async () => {
    const script = 'read line; echo "$1 $GREETING $MULTIRAIL_RANK $MULTIRAIL_LOCAL_RANK/$MULTIRAIL_LOCAL_SIZE $line"';
    const ran = await run(
      beside(),
      ['-H', 'alpha:2', '-x', 'GREETING=hello world', '--stdin', 'all', '--'],
      ['sh', '-c', script, 'sh', "it's"],
      'the input\n',
    ).ended;
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout.trim().split('\n').sort()).toEqual(["[0] it's hello world 0 0/2 the input", "[1] it's hello world 1 1/2 the input"]);
  });

  test('one throws, all end, on every host', async () => {
    const job = run(beside(), ['--hosts', 'alpha:1,beta:2'], rank('throw'));
    const ran = await job.ended;
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/TypeError: this rank is wrong/);
    await untilGone(pidsIn(ran.stderr));
  });

  test('what happens to ranks on other hosts is among the events', async () => {
    const file = join(folder, 'events.jsonl');
    const ran = await run(beside(), ['--hosts', 'alpha:2,beta:1', '--no-abort-on-failure', '--events', file], rank('killed', '1')).ended;
    expect(ran.code, ran.stderr).toBe(137);
    const events = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const of = (type: string) => events.filter((event) => event.type === type).sort((a, b) => Number(a.rank) - Number(b.rank));
    expect(of('rank-joined').map(({ rank: one }) => one)).toEqual([0, 1, 2]);
    expect(of('rank-exited')).toMatchObject([{ code: 0 }, { signal: 'SIGKILL' }, { code: 0 }]);
    // Their rails report over the out-of-band channel like those of ranks here; the killed one may not have come to it.
    for (const one of [0, 2]) expect(of('rail-state').some(({ rank: told, to }) => told === one && to === 'UP')).toBe(true);
  });

  test('a host whose connection is lost: the events say that nothing is known of its ranks', async () => {
    const file = join(folder, 'lost.jsonl');
    const script = 'echo "rank $MULTIRAIL_RANK pid $$ agent $PPID"; trap "" HUP; sleep 1000 & wait';
    const job = run(beside(), ['--hosts', 'alpha:1,beta:1', '--events', file, '--', 'sh', '-c', script], []);
    await job.until(/rank 0 pid \d+/);
    const agent = Number((await job.until(/rank 1 pid \d+ agent (\d+)/))[1]);
    const pids = pidsIn(job.output().stdout);
    process.kill(agent, 'SIGKILL');
    const ran = await job.ended;
    expect(ran.stderr).toContain('the connection to host beta is lost');
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('"text":"rank 1 is lost: nothing is known of its end"');
    // The agent could not do it any more.
    for (const pid of pids) {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // Gone with its agent.
      }
    }
  });

  test('survivors of a killed rank learn it', async () => {
    const ran = await run(beside(), ['--hosts', 'alpha:2,beta:1', '--no-abort-on-failure'], rank('killed', '1')).ended;
    for (const one of [0, 2]) expect(ran.stdout).toContain(`[${one}] rank ${one}: receive: ERR_PROC_FAILED about 1`);
    expect(ran.stderr).toMatch(/rank 1 \(pid \d+ on alpha\) was killed by SIGKILL/);
    expect(ran.code).toBe(137);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)('the launcher ends by %s: nothing stays behind on the hosts', async (signal) => {
    const script = 'echo "pid $$"; trap "" HUP; sleep 1000 & wait';
    const job = run(beside(), ['--hosts', 'alpha:1,beta:1', '--', 'sh', '-c', script], []);
    await job.until(/\[0\] pid \d+/);
    await job.until(/\[1\] pid \d+/);
    const pids = pidsIn(job.output().stdout);
    expect(pids).toHaveLength(2);
    job.child.kill(signal);
    await job.ended;
    await untilGone(pids);
  });

  test('a host that is not reached is named, and nothing runs on', async () => {
    const ran = await run(beside(), ['--hosts', 'alpha:1,refused:1'], rank('ring')).ended;
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(
      /host refused cannot be reached with ".*fake-ssh\.sh .*": .* ended with code 255 \(ssh: connect to host refused port 22: Connection refused\)/,
    );
  });

  test('more ranks than slots are refused', async () => {
    const ran = await run(beside(), ['-n', '4', '--hosts', 'alpha:2'], rank('ring')).ended;
    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain('4 ranks, but the hosts have 2 slots in all');
  });
});

describe('over a network', () => {
  const ip = (...args: string[]) => spawnSync('ip', args, { encoding: 'utf8' });
  const names = [`jn${process.pid}a`, `jn${process.pid}b`];

  test('ranks in network namespaces reach the launcher and each other', async ({ skip }) => {
    if (process.getuid?.() !== 0 || ip('-V').status !== 0) {
      console.log('skipped: ranks on hosts in network namespaces: needs root and ip');
      skip();
    }
    try {
      // A bridge of our own in the launcher's namespace, a host at each end.
      const steps: string[][] = [
        ['link', 'add', `jb${process.pid}`, 'type', 'bridge'],
        ['addr', 'add', '10.213.7.1/24', 'dev', `jb${process.pid}`],
        ['link', 'set', `jb${process.pid}`, 'up'],
      ];
      names.forEach((name, i) => {
        steps.push(['netns', 'add', name], ['link', 'add', `v${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name]);
        steps.push(['link', 'set', `v${name}`, 'master', `jb${process.pid}`], ['link', 'set', `v${name}`, 'up']);
        steps.push(
          ['-n', name, 'addr', 'add', `10.213.7.${i + 2}/24`, 'dev', 'eth0'],
          ['-n', name, 'link', 'set', 'eth0', 'up'],
          ['-n', name, 'link', 'set', 'lo', 'up'],
        );
      });
      for (const step of steps) expect(ip(...step), step.join(' ')).toMatchObject({ status: 0 });
      const ran = await run(`${FAKE} ${log} jn${process.pid}`, ['--hosts', 'a:2,b:2'], rank('ring')).ended;
      expect(ran).toMatchObject({ code: 0, stderr: '' });
      for (const one of [0, 1, 2, 3]) expect(ran.stdout).toContain(`[${one}] rank ${one}: of 4`);
    } finally {
      for (const name of names) ip('netns', 'del', name);
      ip('link', 'del', `jb${process.pid}`);
    }
  });

  test('a real sshd on loopback', async ({ skip }) => {
    const port = await new Promise<number>((resolve) => {
      const server = createServer().listen(0, '127.0.0.1', () => {
        const address = server.address() as { port: number };
        server.close(() => resolve(address.port));
      });
    });
    const key = join(folder, 'user');
    expect(spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])).toMatchObject({ status: 0 });
    const server = spawn(SSHD, [folder, String(port), `${key}.pub`], { stdio: ['ignore', 'ignore', 'pipe'] });
    try {
      let said = '';
      const isUp = await new Promise<boolean>((resolve) => {
        server.stderr.setEncoding('utf8').on('data', (text: string) => {
          said += text;
          if (/listening on 127\.0\.0\.1/.test(said) && /listening on 127\.0\.0\.2/.test(said)) resolve(true);
        });
        server.on('close', () => resolve(false));
      });
      if (!isUp) {
        expect(server.exitCode, said).toBe(CANNOT);
        console.log(`skipped: ranks by a real sshd: ${/skipped: (.*)/.exec(said)?.[1]}`);
        skip();
      }
      const options = ['BatchMode=yes', 'StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
      const ssh = `ssh -F none -p ${port} -i ${key} ${options.map((option) => `-o ${option}`).join(' ')}`;
      const hosts = ['--hosts', '127.0.0.2:2,root@127.0.0.1:1'];
      const ran = await run(ssh, hosts, rank('ring')).ended;
      expect(ran).toMatchObject({ code: 0, stderr: '' });
      for (const one of [0, 1, 2]) expect(ran.stdout).toContain(`[${one}] rank ${one}: of 3`);
      // The launcher is killed: sshd ends the connection, and the agent its ranks.
      const job = run(ssh, [...hosts, '--'], ['sh', '-c', 'echo "pid $$"; trap "" HUP; sleep 1000 & wait']);
      for (const one of [0, 1, 2]) await job.until(new RegExp(`\\[${one}\\] pid \\d+`));
      job.child.kill('SIGKILL');
      await job.ended;
      await untilGone(pidsIn(job.output().stdout));
    } finally {
      server.kill('SIGTERM');
    }
  });
});
