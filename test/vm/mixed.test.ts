// Several rails at once, in a job of two processes inside the guest: verbs and verbs, verbs and TCP, TCP as standby. Verbs rails are pulled
// in the middle of short and long messages, read (RGET) and written (PUT); memory is withdrawn under them, receive buffers run out, a port
// gets other addresses. Every message is verified, and the rails are used again. The file also tests a port that is down from the start:
// what `multirail info` says about it, a job over TCP, and the rail once the port is up. MULTIRAIL_VM_SEED decides when in the traffic they
// are pulled.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startNode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';
import { unavailable } from './verbs-fixture.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const CLI = join(ROOT, 'dist/cli.js');
const SEED = Number(process.env.MULTIRAIL_VM_SEED ?? Date.now() % 100_000);
const LIMIT_MS = 300_000;
/**
 * A guest whose processors are emulated takes ten and more times as long for everything: what a rail carries there is judged wrong by the
 * clock, and one that is back is given little at first. These tests are of what becomes of messages, without the judgement of good and bad.
 */
const STALL_TIMEOUT_MS = '0';

if (unavailable !== undefined) console.info(`skipped: verbs beside other rails: ${unavailable}`);
else console.info(`seed ${SEED}`);
const when = test.skipIf(unavailable !== undefined);

const SCENARIOS = [
  { name: 'verbs and verbs, read', scenario: 'verbs-verbs' },
  { name: 'verbs and TCP, written', scenario: 'verbs-tcp' },
  { name: 'TCP as standby', scenario: 'standby' },
  { name: 'an address that changes, goes and comes back', scenario: 'readdressed' },
];

when.each(drawTests('verbs beside other rails', SCENARIOS))(
  '$name: pulled in the midst of short and long messages, and used again',
  async ({ scenario }) => {
    await expectMixed(scenario);
  },
  LIMIT_MS + 10_000,
);

when(
  'a port that is down: info tells, the job runs over TCP, and the rail comes with the port',
  async () => {
    execFileSync('ip', ['link', 'set', 'veth0', 'down']);
    try {
      const { stdout } = await startNode([CLI, 'info'], { timeoutMs: 60_000 }).ended;
      expect(stdout).toMatch(/^ {2}rxe0:1 +DOWN +RoCE, network 10\.9\.0\.1\/32; used once it is up$/m);
      expect(stdout).toMatch(/^ {2}rxe1:1 +ACTIVE +RoCE, network 10\.9\.0\.0\/24$/m);
      await expectMixed('port-down');
    } finally {
      execFileSync('ip', ['link', 'set', 'veth0', 'up']);
      execFileSync('wire', ['known']);
    }
  },
  LIMIT_MS + 20_000,
);

async function expectMixed(scenario: string): Promise<void> {
  const args = [
    CLI,
    'run',
    '-n',
    '2',
    '--mca',
    'bml_stall_timeout_ms',
    STALL_TIMEOUT_MS,
    join(ROOT, 'test/vm/fixtures/mixed-rank.mjs'),
    scenario,
    String(SEED),
  ];
  const { code, stdout, stderr } = await startNode(args, { timeoutMs: LIMIT_MS }).ended;
  expect(code, `seed ${SEED}\n${stdout}\n${stderr}`).toBe(0);
  expect(stdout.match(/^\[\d\] OK /gm)?.length).toBe(2);
  for (const line of stdout.split('\n').filter((text) => text !== '')) console.info(line);
}
