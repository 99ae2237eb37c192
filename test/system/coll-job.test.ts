// Blocking collectives between real processes, together with awaited ones, over every transport, with rails that are pulled and with a rank
// that is killed. The ranks verify every result; one that finds something wrong ends the job with the text.
import { afterAll, afterEach, beforeAll, expect, describe as group, test } from 'vitest';
import { smComponent } from '../../src/btl/sm/component.ts';
import { loadNative } from '../../src/native/load.ts';
import { ParamTable } from '../../src/params.ts';
import { type BuiltCode, buildCode, type Ran, type Running, startNode } from '../support/helpers.ts';

let code: BuiltCode;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['coll-rank.mjs']);
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

function run(options: string, cases: string, env: Record<string, string> = {}): Promise<Ran> {
  const job = startNode([code.cli, 'run', ...options.split(' '), code.fixture('coll-rank'), ...cases.split(' ')], {
    input: '',
    env,
    timeoutMs: 90_000,
  });
  running.push(job);
  return job.ended;
}

/** What ranks say when a rail is dialled whose other side is still pulled. */
const PULLED_NOTE = /: the rail is pulled|further lines were left out/;

async function passes(ranks: number, options: string, cases: string, env: Record<string, string> = {}): Promise<string> {
  const ran = await run(`-n ${ranks} ${options}`, cases, env);
  const complaints = ran.stderr.split('\n').filter((line) => line !== '' && !(env.MULTIRAIL_MCA_btl_fault && PULLED_NOTE.test(line)));
  expect(complaints).toEqual([]);
  expect(ran).toMatchObject({ code: 0, signal: null });
  for (let rank = 0; rank < ranks; rank++) {
    for (const name of cases.split(' ')) expect(ran.stdout).toContain(`rank ${rank} did ${name}\n`);
    expect(ran.stdout).toContain(`rank ${rank} left\n`);
  }
  return ran.stdout;
}

function needs(context: { skip(note?: string): void }, transport: 'tcp' | 'sm'): void {
  const reason = loadNative().reason ?? (transport === 'sm' ? smComponent.unavailable(new ParamTable()) : undefined);
  if (reason === undefined) return;
  console.log(`skipped: blocking calls over ${transport}: ${reason}`);
  context.skip(reason);
}

for (const { name, transport, options } of [
  { name: 'tcp with two links', transport: 'tcp', options: '--mca btl self,tcp --mca btl_tcp_links 2' },
  { name: 'shared memory', transport: 'sm', options: '--mca btl self,sm,tcp' },
] as const) {
  group(`blocking collectives over ${name}`, () => {
    test('every call, communicators, beside promises and requests, on four ranks', async (context) => {
      needs(context, transport);
      await passes(4, options, 'every communicators mixed outstanding values');
    });
    test('on three ranks and on two', async (context) => {
      needs(context, transport);
      await passes(3, options, 'every communicators outstanding');
      await passes(2, options, 'every mixed');
    });
  });
}

test('while a rail is pulled again and again', async (context) => {
  needs(context, 'tcp');
  const plan = 'pull:1:error@800ms,restore:1@1200ms,pull:1:silent@1600ms,restore:1@2300ms';
  const env = { MULTIRAIL_MCA_btl_fault: plan, MULTIRAIL_TEST_MS: '3000' };
  const said = await passes(4, '--mca btl self,tcp --mca btl_tcp_links 2', 'pulled', env);
  // The pull has struck: it is no test otherwise.
  expect(said).toMatch(/downs [1-9]/);
});

test('a rank is killed: blocking collectives of the others end with an error', async (context) => {
  needs(context, 'tcp');
  const ran = await run('-n 4 --no-abort-on-failure --mca btl self,tcp --mca pml_peer_timeout_ms 1500', 'killed');
  for (const rank of [0, 2, 3]) {
    for (const name of ['allreduce', 'barrier', 'dup']) {
      expect(ran.stdout).toMatch(new RegExp(`survivor ${rank}: ${name}: ERR_PROC_(UNREACHABLE|FAILED) about 1`));
    }
    expect(ran.stdout).toContain(`rank ${rank} left`);
  }
});

test('where rails need the event loop, blocking collectives are refused by name and awaited ones work', async () => {
  await passes(2, '--mca btl self,ws', 'refused');
  await passes(2, '--mca btl self,tcp', 'refused', { MULTIRAIL_NATIVE: '0' });
});
