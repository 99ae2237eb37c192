// Blocking calls between two hosts (network namespaces with two links between them), where a rail's route is looked up before it is
// used: rails connect, and come back, although the event loop of neither rank runs. Needs root and the `ip` command; says so and is
// skipped without them, or without the native part.
import { execFileSync, spawnSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJob } from '../../src/launch/launcher.ts';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode } from './helpers.ts';

// Names and subnets by process id, so that two runs on one machine do not meet.
const ID = String(process.pid % 100_000);
/** Rank 0 is here, where the launcher is; rank 1 is in the namespace. */
const NAMESPACE = `mrs-${ID}`;
const LINKS = [0, 1].map((link) => {
  const net = `10.${217 + link}.${process.pid % 250}`;
  return { outside: `ms${ID}o${link}`, inside: `ms${ID}i${link}`, outsideAddress: `${net}.1`, insideAddress: `${net}.2` };
});

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

function setUp(): string | undefined {
  const { reason } = loadNative();
  if (reason !== undefined) return reason;
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
  if (spawnSync('ip', ['-V']).status !== 0) return 'needs the ip command';
  try {
    ip('netns', 'add', NAMESPACE);
    ip('-n', NAMESPACE, 'link', 'set', 'lo', 'up');
    for (const { outside, inside, outsideAddress, insideAddress } of LINKS) {
      ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', NAMESPACE);
      ip('addr', 'add', `${outsideAddress}/24`, 'dev', outside);
      ip('-n', NAMESPACE, 'addr', 'add', `${insideAddress}/24`, 'dev', inside);
      ip('link', 'set', outside, 'up');
      ip('-n', NAMESPACE, 'link', 'set', inside, 'up');
    }
  } catch (error) {
    tearDown();
    return `network namespaces do not work here: ${(error as Error).message}`;
  }
  return undefined;
}

function tearDown(): void {
  spawnSync('ip', ['netns', 'del', NAMESPACE]);
  for (const { outside } of LINKS) spawnSync('ip', ['link', 'del', outside]);
}

const unavailable = setUp();
if (unavailable !== undefined) console.log(`sync-netns: skipped: ${unavailable}`);
let code: BuiltCode;

beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['sync-rank.mjs']);
});
afterAll(() => {
  if (unavailable !== undefined) return;
  tearDown();
  code?.dispose();
});

/** What the ranks said; the job has ended well. */
async function run(cases: readonly string[], params: Record<string, string>): Promise<string> {
  let said = '';
  const listen = () => new PassThrough().setEncoding('utf8').on('data', (text) => (said += text));
  const only = LINKS.flatMap(({ outside, inside }) => [outside, inside]).join(',');
  const env: Record<string, string> = {
    MULTIRAIL_TEST_MS: '4000',
    MULTIRAIL_MCA_btl: 'self,tcp',
    MULTIRAIL_MCA_btl_tcp_if_include: only,
    // Link-local addresses need no look at the routes.
    MULTIRAIL_MCA_btl_tcp_disable_family: '6',
    MULTIRAIL_MCA_pml_peer_timeout_ms: '5000',
  };
  for (const [name, value] of Object.entries(params)) env[`MULTIRAIL_MCA_${name}`] = value;
  const job = await startJob({
    size: 2,
    command: [code.fixture('sync-rank'), ...cases],
    rankCommand: (rank) => (rank === 0 ? [] : ['ip', 'netns', 'exec', NAMESPACE]),
    rankEnv: () => env,
    oobListen: LINKS.map(({ outsideAddress }) => outsideAddress),
    stdinTo: 'none',
    stdout: listen(),
    stderr: listen(),
  });
  const { exitCode } = await job.result;
  expect({ exitCode, said }).toMatchObject({ exitCode: 0 });
  return said;
}

const when = test.skipIf(unavailable !== undefined);

when('the first thing after init() is a blocking call: the rails connect', async () => {
  expect(await run(['sizes'], {})).toContain('rank 1 did sizes');
});

when('a rail that is pulled comes back while only blocking calls run', async () => {
  const said = await run(['pulled'], { btl_fault: 'pull:0:error@1000ms,restore:0@1500ms' });
  expect(said.match(/ups 2 downs 1/g)).toHaveLength(2);
});

when('both are pulled and come back', async () => {
  const said = await run(['pulled'], { btl_fault: 'pull:*:error@1000ms,restore:*@1500ms' });
  expect(said.match(/ups 2 downs 1/g)).toHaveLength(4);
});

when('the same without a look at the routes', async () => {
  const said = await run(['sizes', 'pulled'], { btl_tcp_route_check: '0', btl_fault: 'pull:*:error@2000ms,restore:*@2500ms' });
  expect(said.match(/ups 2 downs 1/g)).toHaveLength(4);
});
