// Hosts where verbs cannot work: without libibverbs, and with it but without a device. `multirail info` says so in one line, and a job
// that names verbs runs over TCP. A port that is down is tried inside the guest (test/vm/hosts.test.ts).
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as rdma from 'node-rdma';
import { afterAll, beforeAll, expect, describe as group, type TestContext, test } from 'vitest';
import { type BuiltCode, buildCode, type Ran, startNode } from '../support/helpers.ts';

const DEVICES = '/sys/class/infiniband';
const LIBRARY = 'libibverbs.so.1';
const FOLDERS = [`/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`, '/usr/lib64', '/usr/lib'];

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['rails-rank.mjs']);
});
afterAll(() => code?.dispose());

const library = FOLDERS.map((folder) => `${folder}/${LIBRARY}`).find((path) => existsSync(path));
const withoutBinary = rdma.unavailable()?.includes('has no binary') ? rdma.unavailable() : undefined;

/**
 * Runs Node in a mount namespace of its own where the library's folder is shown without it: a folder of links to all else that is there.
 */
const HIDE = `
set -e
folder=$1; farm=$2; shift 2
mount -t tmpfs tmpfs "$farm"
mkdir "$farm/real" "$farm/shown"
mount --bind "$folder" "$farm/real"
find "$farm/real" -mindepth 1 -maxdepth 1 ! -name 'libibverbs.so*' -exec ln -s -t "$farm/shown" {} +
mount --bind "$farm/shown" "$folder"
"$@"
`;

async function onHost(hides: string | undefined, args: string[]): Promise<Ran> {
  if (hides === undefined) return startNode(args, { timeoutMs: 60_000 }).ended;
  // Outside of the namespace it stays empty.
  const farm = mkdtempSync(join(tmpdir(), 'multirail-hide-'));
  const script = ['-m', 'bash', '-c', HIDE, 'hide', dirname(hides), farm, process.execPath, ...args];
  const start = `require('node:child_process').spawn('unshare', ${JSON.stringify(script)}, { stdio: 'inherit' }).on('exit', (code) => process.exit(code ?? 1))`;
  try {
    return await startNode(['-e', start], { timeoutMs: 60_000 }).ended;
  } finally {
    rmdirSync(farm);
  }
}

const runJob = ['run', '-n', '2', '--mca', 'btl', 'self,verbs,tcp'];
const verbsLine = (stdout: string) => stdout.split('\n').find((line) => /^ {2}verbs /.test(line));

async function expectOff(hides: string | undefined, reason: RegExp): Promise<void> {
  const info = await onHost(hides, [code.cli, 'info']);
  expect(info, info.stderr).toMatchObject({ code: 0 });
  expect(verbsLine(info.stdout)).toMatch(/^ {2}verbs {2}off /);
  expect(verbsLine(info.stdout)).toMatch(reason);
  expect(info.stdout).not.toContain('RDMA ports');
  const job = await onHost(hides, [code.cli, ...runJob, code.fixture('rails-rank.mjs')]);
  expect(job, job.stderr).toMatchObject({ code: 0 });
  expect(job.stdout.match(/carried by tcp$/gm)).toHaveLength(2);
  // Whoever wants verbs and nothing else is told, and does not hang.
  const alone = await onHost(hides, [code.cli, 'run', '-n', '2', '--mca', 'btl', 'verbs', code.fixture('rails-rank.mjs')]);
  expect(alone.code).not.toBe(0);
  expect(alone.stderr).toMatch(/ERR_INIT.*verbs/);
  expect(alone.stderr).toMatch(reason);
}

function skipBecause({ skip }: TestContext, why: string | undefined): void {
  if (why === undefined) return;
  console.info(`skipped: hosts without verbs: ${why}`);
  skip(why);
}

group('verbs cannot work here', () => {
  test('no libibverbs', async (context) => {
    skipBecause(context, withoutBinary);
    if (library !== undefined && process.getuid?.() !== 0) skipBecause(context, `${realpathSync(library)} can be hidden by root alone`);
    await expectOff(library, /libibverbs\.so\.1: cannot open shared object file/);
  });

  test('libibverbs, and no device', async (context) => {
    skipBecause(context, rdma.unavailable());
    if (existsSync(DEVICES) && readdirSync(DEVICES).length > 0) skipBecause(context, 'this host has an RDMA device');
    await expectOff(undefined, /this host has no RDMA device/);
  });
});
