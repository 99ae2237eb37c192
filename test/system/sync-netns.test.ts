// Blocking calls between two hosts (network namespaces with two links between them), where a rail's route is looked up before it is used:
// rails connect, and come back, although the event loop of neither rank runs. It needs root, the `ip` command and the native part; without
// them it says so and is skipped.
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJob } from '../../src/launch/run/launcher.ts';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { TwoLinks } from '../support/two-links.ts';

/** Rank 0 is here, where the launcher is; rank 1 is in the namespace. */
const hosts = new TwoLinks('ms', 217);
const unavailable = loadNative().reason ?? hosts.setUp();
if (unavailable !== undefined) console.log(`sync-netns: skipped: ${unavailable}`);
let code: BuiltCode;

beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['sync-rank.mjs']);
});
afterAll(() => {
  if (unavailable !== undefined) return;
  hosts.tearDown();
  code?.dispose();
});

/** What the ranks said; the job has ended well. */
async function run(cases: readonly string[], params: Record<string, string>): Promise<string> {
  let said = '';
  const listen = () => new PassThrough().setEncoding('utf8').on('data', (text) => (said += text));
  const only = hosts.links.flatMap(({ outside, inside }) => [outside, inside]).join(',');
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
    rankCommand: (rank) => (rank === 0 ? [] : ['ip', 'netns', 'exec', hosts.namespace]),
    rankEnv: () => env,
    oobListen: hosts.links.map(({ outsideAddress }) => outsideAddress),
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
  expect(said.match(/ups 2 downs 1/g), said).toHaveLength(2);
});

when('both are pulled and come back', async () => {
  const said = await run(['pulled'], { btl_fault: 'pull:*:error@1000ms,restore:*@1500ms' });
  expect(said.match(/ups 2 downs 1/g), said).toHaveLength(4);
});

when('the same without a look at the routes', async () => {
  const said = await run(['sizes', 'pulled'], { btl_tcp_route_check: '0', btl_fault: 'pull:*:error@2000ms,restore:*@2500ms' });
  expect(said.match(/ups 2 downs 1/g), said).toHaveLength(4);
});
