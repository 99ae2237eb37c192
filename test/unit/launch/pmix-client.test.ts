// The client of PMIx against a library that is played here: answers that fail, come late or never, and ends of processes before and after the
// ranks have met. The real library: test/launchers/pmix.test.ts.
import { describe, expect, test } from 'vitest';
import type { PmixBinding, PmixMessage } from '../../../src/launch/pmix/binding.ts';
import { PMIX_KEYS, PmixClient } from '../../../src/launch/pmix/client.ts';

const LOST_CONNECTION = -61;
const KILLED = -402;
const NEVER = Symbol('never');
type Answer = Partial<PmixMessage> | typeof NEVER;

/** Answers each call by its name, in a later turn; success where nothing is said. */
function makeLibrary(answers: Record<string, Answer> = {}) {
  const calls: unknown[][] = [];
  let listener: (message: PmixMessage) => void = () => undefined;
  const tell = (message: Partial<PmixMessage>) => listener({ id: 0, status: 0, statusText: '', ...message });
  const call =
    (name: string, usual: Partial<PmixMessage> = {}) =>
    (id: number, ...args: unknown[]) => {
      calls.push([name, ...args]);
      const answer = answers[`${name} ${args.join(' ')}`] ?? answers[name] ?? usual;
      if (answer !== NEVER) setImmediate(tell, { id, ...answer });
    };
  const binding: PmixBinding = {
    abi: 1,
    open: () => 'played',
    start: (given) => {
      listener = given;
    },
    init: call('init', { nspace: 'job', rank: 1, value: 0 }),
    put: call('put'),
    commit: call('commit'),
    fence: call('fence'),
    get: call('get'),
    abort: call('abort'),
    finalize: call('finalize'),
  };
  const ended = (rank: number, status = KILLED) => tell({ status, statusText: 'PMIX_ERR', nspace: 'job', rank });
  return { binding, calls, ended };
}

async function openClient(answers: Record<string, Answer> = {}, joinMs = 10_000) {
  const library = makeLibrary(answers);
  const lines: string[] = [];
  const client = new PmixClient({ binding: library.binding, deadlineMs: performance.now() + joinMs, log: (text) => lines.push(text) });
  await client.init();
  return { ...library, client, lines };
}

describe('calls', () => {
  test('hello, a record put and fenced with its data, one read, and goodbye', async () => {
    const { client, calls } = await openClient({
      'get 0 key false': { value: 'a text' },
      [`get -1 ${PMIX_KEYS.jobSize} true`]: { value: 4 },
      [`get 1 ${PMIX_KEYS.localRank} true`]: { status: -46, statusText: 'NOT-FOUND' },
    });
    expect(client.rank).toBe(1);
    expect(await client.numberOf(PMIX_KEYS.jobSize)).toBe(4);
    expect(await client.numberOf(PMIX_KEYS.localRank, 1)).toBeUndefined();
    await client.put('key', 'mine');
    await client.fence();
    expect(await client.get('key', 0)).toBe('a text');
    await client.finalize();
    await client.finalize();
    expect(calls.map(([name]) => name)).toEqual(['init', 'get', 'get', 'put', 'commit', 'fence', 'get', 'finalize']);
    expect(calls[5]).toEqual(['fence', true]);
  });

  test('what fails names the call, the status, and the way without PMIx', async () => {
    const text = 'PMIx_Init failed: UNREACHABLE (-25); ess_pmix = false does without PMIx';
    await expect(openClient({ init: { status: -25, statusText: 'UNREACHABLE' } })).rejects.toThrow(text);
    const { client } = await openClient({ commit: { status: -2, statusText: 'BAD' }, get: { value: 3 } });
    await expect(client.put('key', 'text')).rejects.toMatchObject({
      code: 'ERR_INIT',
      message: expect.stringContaining('PMIx_Commit failed: BAD (-2)'),
    });
    await expect(client.get('key', 0)).rejects.toThrow('what rank 0 has put under key is not a text');
  });

  test('a call that the library refuses outright rejects, and so does a process that is a client already', async () => {
    const { binding } = makeLibrary();
    const refusing = {
      ...binding,
      start: () => {
        throw new Error('started before');
      },
    };
    const client = new PmixClient({ binding: refusing, deadlineMs: performance.now() + 10_000 });
    await expect(client.init()).rejects.toMatchObject({ code: 'ERR_INIT', message: expect.stringContaining('started before') });
    const open = await openClient();
    open.binding.fence = () => {
      throw new Error('no memory');
    };
    await expect(open.client.fence()).rejects.toThrow('PMIx_Fence: no memory');
  });

  test('what is never answered ends with the time to join', async () => {
    const { client } = await openClient({ fence: NEVER }, 50);
    await expect(client.fence()).rejects.toThrow('PMIx_Fence was not answered in time');
  });

  test('a fence that ends badly is no failure by itself: what can be read decides', async () => {
    const { client, lines } = await openClient({
      fence: { status: LOST_CONNECTION, statusText: 'LOST-CONNECTION' },
      get: { value: 'there' },
    });
    await client.fence();
    expect(lines).toContain('PMIx_Fence: LOST-CONNECTION (-61)');
    expect(await client.get('key', 0)).toBe('there');
  });

  test('abort tells the code and the reason, and is no error where the starter is gone', async () => {
    const { client, calls } = await openClient({ abort: { status: LOST_CONNECTION } });
    await client.abort(7, 'a\0b');
    expect(calls.at(-1)).toEqual(['abort', 7, 'a b']);
    await client.finalize();
    await client.abort(8, 'too late');
    expect(calls.at(-1)).toEqual(['finalize']);
  });
});

describe('ends of processes', () => {
  test('each is told once, also to who listens later; the own one and a lost server are not', async () => {
    const { client, ended, lines } = await openClient();
    ended(3);
    ended(1);
    ended(0, LOST_CONNECTION);
    const told: number[] = [];
    client.onGone((rank) => told.push(rank));
    expect(told).toEqual([3]);
    ended(3, -404);
    ended(2);
    expect(told).toEqual([3, 2]);
    expect(lines).toContain('PMIx: the connection to the starter is lost (PMIX_ERR)');
  });

  test('while the ranks are meeting, nobody waits for one that is gone', async () => {
    const { client, ended } = await openClient({ fence: NEVER });
    const fenced = client.fence();
    ended(2);
    const failure = { code: 'ERR_PROC_FAILED', peer: 2 };
    await expect(fenced).rejects.toMatchObject(failure);
    await expect(client.get('key', 0)).rejects.toMatchObject(failure);
    await expect(client.fence()).rejects.toMatchObject(failure);
  });

  test('a library that tells of no ends is said to', async () => {
    const { lines } = await openClient({ init: { nspace: 'job', rank: 0, value: -1367 } });
    expect(lines).toContain('PMIx tells nothing of the ends of processes (status -1367); lifelines do');
  });
});
