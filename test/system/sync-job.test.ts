// Blocking calls between real processes: the cases of fixtures/sync-cases*.mjs over every transport, with rails that are pulled, with a
// peer that is killed, with more ranks than processors. The ranks verify every payload; a rank that finds something wrong ends the job with
// the text. Bounds in time only say that something ends.
import { afterAll, afterEach, beforeAll, expect, describe as group, test } from 'vitest';
import { smComponent } from '../../src/btl/sm/component.ts';
import { loadNative } from '../../src/native/load.ts';
import { ParamTable } from '../../src/params.ts';
import { type BuiltCode, buildCode, type Running, startNode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

let code: BuiltCode;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['sync-rank.mjs']);
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

/** `multirail run OPTIONS sync-rank CASES`. */
function run(options: string, cases: string, env: Record<string, string> = {}, timeoutMs = 90_000): Running {
  const job = startNode([code.cli, 'run', ...options.split(' '), code.fixture('sync-rank'), ...cases.split(' ')], {
    input: '',
    env,
    timeoutMs,
  });
  running.push(job);
  return job;
}

/** What ranks say when a rail is dialled whose other side is still pulled. */
const PULLED_NOTE = /: the rail is pulled|further lines were left out/;

/** All cases were done by all ranks, and nothing else was said. */
async function passes(ranks: number, options: string, cases: string, env: Record<string, string> = {}): Promise<string> {
  const ran = await run(`-n ${ranks} ${options}`, cases, env).ended;
  const complaints = ran.stderr.split('\n').filter((line) => line !== '' && !(env.MULTIRAIL_MCA_btl_fault && PULLED_NOTE.test(line)));
  expect(complaints).toEqual([]);
  expect(ran).toMatchObject({ code: 0, signal: null });
  for (let rank = 0; rank < ranks; rank++) {
    for (const name of cases.split(' ')) expect(ran.stdout).toContain(`rank ${rank} did ${name}\n`);
    expect(ran.stdout).toContain(`rank ${rank} left\n`);
  }
  return ran.stdout;
}

/** Prints why and skips, when a blocking call cannot be made here. */
function needs(context: { skip(note?: string): void }, transport: 'tcp' | 'sm'): void {
  const reason = loadNative().reason ?? (transport === 'sm' ? smComponent.unavailable(new ParamTable()) : undefined);
  if (reason === undefined) return;
  console.log(`skipped: blocking calls over ${transport}: ${reason}`);
  context.skip(reason);
}

const TRANSPORTS = [
  { name: 'tcp', transport: 'tcp', options: '--mca btl self,tcp' },
  { name: 'tcp with two links', transport: 'tcp', options: '--mca btl self,tcp --mca btl_tcp_links 2' },
  { name: 'shared memory', transport: 'sm', options: '--mca btl self,sm,tcp' },
] as const;

interface Case {
  name: string;
  ranks: number;
  cases: string;
  more?: string;
  /** One link is as good as two here, and many processes take their time. */
  isOfOneLink?: boolean;
  check?: (said: string) => void;
}
const CASES: Case[] = [
  { name: 'messages of every size, back and forth, and windows', ranks: 2, cases: 'sizes pingpong windows vectors' },
  { name: 'the first of several, communicators in the making, what was cut off', ranks: 3, cases: 'firsts made cut' },
  { name: 'matching: unexpected messages, probes, nobody, oneself', ranks: 2, cases: 'unexpected probes nobody self synchronous matched' },
  { name: 'values, with large memory beside them', ranks: 2, cases: 'objects' },
  { name: 'wildcards among three ranks', ranks: 3, cases: 'wildcards' },
  { name: 'every pair of 16 ranks meets inside blocking calls', ranks: 16, cases: 'meetings', isOfOneLink: true },
  { name: 'a ring of four ranks whose messages no rail holds', ranks: 4, cases: 'ring' },
  { name: 'calls that fail, and what comes after them', ranks: 2, cases: 'truncation timeouts failures' },
  { name: 'receives by promise are open meanwhile', ranks: 2, cases: 'mixed afterwards' },
  { name: 'a flood against a slow receiver, with as much memory as there is by default', ranks: 2, cases: 'flood' },
  {
    name: 'a flood with little memory: what finds no credit goes by rendezvous, and all arrive in order',
    ranks: 2,
    cases: 'flood',
    more: ' --mca pml_unexpected_bytes_max 64k --mca pml_retained_bytes_max 64k',
    check: (said) => expect(Number(/(\d+) for want of credit/.exec(said)?.[1])).toBeGreaterThan(0),
  },
  { name: 'finalize() right behind sends loses nothing', ranks: 2, cases: 'leave' },
  { name: 'four ranks, whatever the number of processors', ranks: 4, cases: 'crowd' },
];

for (const { name, transport, options } of TRANSPORTS) {
  group(`blocking calls over ${name}`, () => {
    const here = CASES.filter(({ isOfOneLink }) => !(isOfOneLink && options.includes('links')));
    test.for(drawTests(`blocking calls over ${name}`, here))('$name', async ({ ranks, cases, more = '', check }, context) => {
      needs(context, transport);
      const said = await passes(ranks, options + more, cases);
      check?.(said);
    });
  });
}

group('rails that are pulled while blocking calls run', () => {
  const PULLS = [
    { name: 'by an error', plan: 'pull:1:error@400ms,restore:1@1200ms,pull:0:error@2000ms,restore:0@2600ms' },
    { name: 'in silence', plan: 'pull:1@400ms,restore:1@1600ms' },
    { name: 'in silence, the other one', plan: 'pull:0@400ms,restore:0@1600ms' },
    { name: 'in the middle of a fragment', plan: 'pull:1:inside@400ms,restore:1@1000ms,pull:0:inside@1500ms,restore:0@2100ms' },
    { name: 'both, by an error', plan: 'pull:*:error@500ms,restore:*@1000ms' },
    { name: 'by a seed', plan: 'random:seed=7,every=300ms,heal=200ms,kinds=error+inside+busy+stall' },
  ];
  test.for(drawTests('pulled rails', PULLS))('tcp with two links: $name', async ({ plan }, context) => {
    needs(context, 'tcp');
    const env = { MULTIRAIL_MCA_btl_fault: plan, MULTIRAIL_TEST_MS: '4000' };
    const said = await passes(2, '--mca btl self,tcp --mca btl_tcp_links 2', 'pulled', env);
    // The pull has struck: it is no test otherwise.
    expect(said).toMatch(/downs [1-9]/);
    // What was pulled and restored is in use again, without a turn of the event loop.
    expect(said.match(/ups [2-9]/g)?.length ?? 0).toBeGreaterThanOrEqual(2);
  });
  test('shared memory that breaks: tcp carries on', async (context) => {
    needs(context, 'sm');
    const env = { MULTIRAIL_MCA_btl_fault: 'pull:0:error@1000ms,restore:0@2000ms', MULTIRAIL_TEST_MS: '3000' };
    expect(await passes(2, '--mca btl self,sm,tcp', 'pulled', env)).toMatch(/downs [1-9]/);
  });
});

group('a peer that is killed during a blocking call', () => {
  test('the launcher ends the job', async (context) => {
    needs(context, 'tcp');
    const ran = await run('-n 2 --mca btl self,tcp', 'killed').ended;
    expect(ran.code).toBe(128 + 9);
    expect(ran.stderr).toMatch(/rank 1/);
    expect(ran.stdout).not.toContain('left');
  });
  for (const transport of ['tcp', 'sm'] as const) {
    test(`without the launcher's help (${transport}) the call ends after the peer timeout`, async (context) => {
      needs(context, transport);
      const btl = transport === 'tcp' ? 'self,tcp' : 'self,sm,tcp';
      const ran = await run(`-n 2 --no-abort-on-failure --mca btl ${btl} --mca pml_peer_timeout_ms 1500`, 'killed').ended;
      expect(ran.stdout).toMatch(/survivor: ERR_PROC_(UNREACHABLE|FAILED) about 1/);
      expect(ran.stdout).toContain('survivor: it took');
      expect(ran.stdout).toContain('rank 0 left');
      expect(ran.code).toBe(128 + 9);
    });
  }
});

group('transports that need the event loop', () => {
  const CASES = [
    { name: 'ws', options: '--mca btl self,ws', env: {} },
    { name: 'tcp by parameter', options: '--mca btl self,tcp --mca btl_tcp_native 0', env: {} },
    { name: 'tcp without the native part', options: '--mca btl self,tcp', env: { MULTIRAIL_NATIVE: '0' } },
  ];
  for (const { name, options, env } of CASES) {
    test(`${name}: calls that would have to wait are refused by name, others work`, async () => {
      await passes(2, options, 'refused', env);
    });
  }
  test('ws beside native tcp: large messages do not wait for the event loop', async (context) => {
    needs(context, 'tcp');
    await passes(2, '--mca btl self,tcp,ws', 'beside');
  });
});
