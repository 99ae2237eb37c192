// The server of the out-of-band channel where nobody waits for the processes: lifelines tell the dead from the busy, ranks that never join
// are given up, and ranks learn the job's name. It uses real loopback sockets; every wait ends by the test's own timeout.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { newIncarnation } from '../../../src/launch/meeting/identity.ts';
import { OobClient, type OobClientOptions } from '../../../src/launch/oob/client.ts';
import { OobServer, type OobServerOptions } from '../../../src/launch/oob/server.ts';

const SECRET = randomBytes(32);
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function makeServer(size: number, options: Partial<OobServerOptions> = {}): Promise<OobServer> {
  const limits = { reconnectTimeoutMs: 300, exitGraceMs: 100, pingIntervalMs: 20 };
  const server = new OobServer({ jobId: 'the job', size, secret: SECRET, knowsProcesses: false, ...limits, ...options });
  await server.open();
  cleanups.push(() => server.close());
  return server;
}

/**
 * A relay in front of the server, one connection at a time in order: the first is the channel's, the second the lifeline. What it does
 * to them is what a kernel, or a process that does not read, would do.
 */
async function makeRelay(server: OobServer) {
  const target = Number(new URL(server.urls[0]).port);
  const pairs: { inbound: Socket; outbound: Socket }[] = [];
  const relay = createServer((inbound) => {
    const outbound = connect(target, '127.0.0.1');
    pairs.push({ inbound, outbound });
    inbound.pipe(outbound).pipe(inbound);
    for (const socket of [inbound, outbound]) socket.on('error', () => undefined);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  cleanups.push(() => {
    for (const { inbound, outbound } of pairs) {
      inbound.destroy();
      outbound.destroy();
    }
    relay.close();
  });
  return { pairs, url: server.urls[0].replace(`:${target}/`, `:${(relay.address() as AddressInfo).port}/`), stop: () => relay.close() };
}

function makeClient(url: string, rank: number, size: number, options: Partial<OobClientOptions> = {}): OobClient {
  const client = new OobClient({
    urls: [url],
    secret: SECRET,
    jobId: undefined,
    rank,
    size,
    incarnation: newIncarnation(),
    hostId: 'host',
    reconnectTimeoutMs: 10_000,
    pingIntervalMs: 20,
    lifeline: true,
    ...options,
  });
  cleanups.push(() => client.close(0));
  return client;
}

const until = async (what: () => boolean) => {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe('lifelines', () => {
  test('a rank that does not know the name of its job learns it', async () => {
    const server = await makeServer(1);
    const client = makeClient(server.urls[0], 0, 1);
    expect(client.jobId).toBeUndefined();
    await client.hello();
    expect(client.jobId).toBe('the job');
    // One that knows another name is in the wrong place.
    await expect(makeClient(server.urls[0], 0, 1, { jobId: 'other' }).hello()).rejects.toThrow('WRONG_JOB');
  });

  test('silence is no death while the lifeline stands; without it, it is', async () => {
    const server = await makeServer(2);
    const relay = await makeRelay(server);
    const lost: string[] = [];
    server.on('lost', (rank, text) => lost.push(`${rank}: ${text}`));
    const busy = makeClient(relay.url, 0, 2);
    await busy.hello();
    // It has joined, so it may begin to compute: both stand.
    const [channel, lifeline] = relay.pairs;
    // The rank computes: what it would send does not leave, what comes is not read. Nor is it seen by anybody but its kernel.
    relay.stop();
    channel.inbound.unpipe(channel.outbound);
    const watcher = makeClient(server.urls[0], 1, 2, { lifeline: false });
    await watcher.hello();
    // Longer than the time after which silence alone is death, which is what the other rank, that has no lifeline, would show.
    await new Promise((resolve) => setTimeout(resolve, 900));
    expect(lost).toEqual([]);
    const heard = once(watcher, 'exit');
    lifeline.outbound.destroy();
    expect(await heard).toEqual([0, { code: undefined, signal: '', finalized: false, lost: true }]);
    expect(lost[0]).toMatch(/^0: rank 0 \(pid \d+\) has ended without finalize\(\)$/);
  });

  test('a lifeline that is made anew in time is as good as before', async () => {
    const server = await makeServer(1, { exitGraceMs: 2000 });
    const relay = await makeRelay(server);
    const lost: string[] = [];
    server.on('lost', (_rank, text) => lost.push(text));
    const client = makeClient(relay.url, 0, 1);
    await client.hello();
    for (let round = 1; round <= 3; round++) {
      await until(() => relay.pairs.length === 1 + round);
      relay.pairs.at(-1)?.inbound.destroy();
    }
    await until(() => relay.pairs.length === 5);
    await client.finalized();
    expect(lost).toEqual([]);
  });

  test('a rank that is done and closes has left', async () => {
    const server = await makeServer(2);
    const clients = [0, 1].map((rank) => makeClient(server.urls[0], rank, 2));
    await Promise.all(clients.map((client) => client.hello()));
    await clients[0].finalized();
    const heard = once(clients[1], 'exit');
    await clients[0].close();
    expect(await heard).toEqual([0, { code: undefined, signal: '', finalized: true, lost: false }]);
    expect(server.isOver).toBe(false);
    const over = once(server, 'ended');
    await clients[1].finalized();
    await clients[1].close();
    await over;
    expect(server.isOver).toBe(true);
  });

  test('a rank that never joins is given up, and its collectives fail', async () => {
    const server = await makeServer(2, { joinTimeoutMs: 300 });
    const client = makeClient(server.urls[0], 0, 2);
    await client.hello();
    await expect(client.modex({})).rejects.toMatchObject({ code: 'ERR_PROC_FAILED', peer: 1 });
  });

  test('a rank that was taken for dead is told so, and does not try for ever', async () => {
    const server = await makeServer(1);
    const relay = await makeRelay(server);
    const client = makeClient(relay.url, 0, 1);
    await client.hello();
    server.processExited(0, { code: undefined, signal: '' });
    const told = once(client, 'launcherLost');
    for (const { inbound } of relay.pairs) inbound.destroy();
    expect((await told)[0]).toContain('this rank is not in the job any more: rank 0 has ended');
  });

  test('a lifeline of a rank that has not joined is refused', async () => {
    const log: string[] = [];
    const server = await makeServer(1, { log: (text) => log.push(text) });
    const { OobDial } = await import('../../../src/launch/oob/dial.ts');
    const claims = { jobId: undefined, rank: 0, size: 1, incarnation: 1, hostId: 'h', received: 0, lifeline: true, join: '' as const };
    const ended = new Promise<string>((resolve) => {
      const events = { onWelcome: () => undefined, onMessage: () => undefined, onRefused: () => undefined, onEnd: resolve };
      new OobDial({ url: server.urls[0], secret: SECRET, timeoutMs: 5000, claims }, events);
    });
    expect(await ended).toBe('refused: UNKNOWN_RANK');
    expect(log.join('\n')).toContain('a lifeline of rank 0, which has not joined');
  });
});
