// Server and clients of the out-of-band channel over real loopback sockets: collectives, strangers, and a proxy in between that
// cuts connections at moments that a seed chooses. Nothing here asserts a time; every wait ends by the test's own timeout.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { newIncarnation } from '../../../src/launch/meeting/identity.ts';
import { parseListenAddress } from '../../../src/launch/oob/addresses.ts';
import { OobClient, type OobClientOptions } from '../../../src/launch/oob/client.ts';
import { encodeEnvelope } from '../../../src/launch/oob/envelope.ts';
import { LauncherWatch } from '../../../src/launch/oob/launcher-watch.ts';
import { OOB_VERSION } from '../../../src/launch/oob/messages.ts';
import { OobServer, type OobServerOptions } from '../../../src/launch/oob/server.ts';

const SECRET = randomBytes(32);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Not `once`, which rejects for the error that may come before. */
function closed(socket: { on(event: string, listener: () => void): unknown }): Promise<void> {
  socket.on('error', () => undefined);
  return new Promise((resolve) => socket.on('close', () => resolve()));
}

async function makeServer(size: number, options: Partial<OobServerOptions> = {}) {
  const log: string[] = [];
  const server = new OobServer({
    jobId: 'job',
    size,
    secret: SECRET,
    knowsProcesses: true,
    reconnectTimeoutMs: 10_000,
    pingIntervalMs: 50,
    log: (text) => log.push(text),
    ...options,
  });
  await server.open();
  cleanups.push(() => server.close());
  return { server, log };
}

function makeClient(urls: readonly string[], rank: number, size: number, options: Partial<OobClientOptions> = {}): OobClient {
  const client = new OobClient({
    urls,
    secret: SECRET,
    jobId: 'job',
    rank,
    size,
    incarnation: newIncarnation(),
    hostId: 'host',
    reconnectTimeoutMs: 10_000,
    pingIntervalMs: 50,
    connectTimeoutMs: 500,
    ...options,
  });
  cleanups.push(() => client.close(0));
  return client;
}

async function makeJob(size: number, urlsOf?: (server: OobServer) => Promise<string[]>) {
  const { server, log } = await makeServer(size);
  const urls = urlsOf === undefined ? server.urls : await urlsOf(server);
  const clients = Array.from({ length: size }, (_, rank) => makeClient(urls, rank, size));
  await Promise.all(clients.map((client) => client.hello()));
  return { server, log, clients };
}

/** A TCP proxy whose connections can be cut, as by a lost network, in the middle of a message. */
async function makeProxy(targetUrl: string) {
  const port = Number(new URL(targetUrl).port);
  const pairs = new Set<[Socket, Socket]>();
  let isOneWay = false;
  const proxy: Server = createServer((inbound) => {
    const outbound = connect(port, '127.0.0.1');
    const pair: [Socket, Socket] = [inbound, outbound];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      inbound.destroy();
      outbound.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    // Odd pieces, so that a cut falls into frames, not between them.
    inbound.on('data', (chunk) => {
      if (!isOneWay) outbound.write(chunk);
    });
    outbound.on('data', (chunk) => inbound.write(chunk));
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const cut = () => {
    for (const [inbound, outbound] of pairs) {
      // Half of the bytes under way still arrive in one direction: the reset overtakes the rest.
      inbound.resetAndDestroy();
      outbound.destroy();
    }
    return pairs.size;
  };
  cleanups.push(async () => {
    cut();
    proxy.close();
  });
  /** From now on nothing reaches the server; what the server says goes on to arrive. */
  const loseOneWay = () => {
    isOneWay = true;
  };
  return { url: targetUrl.replace(`:${port}/`, `:${(proxy.address() as AddressInfo).port}/`), cut, loseOneWay };
}

describe('oob channel', () => {
  test('modex gives everybody everything, an update reaches the others, rail events reach the launcher', async () => {
    const { server, clients } = await makeJob(3);
    const entries = await Promise.all(clients.map((client, rank) => client.modex({ rank, port: 1000 + rank })));
    for (const table of entries) {
      expect([0, 1, 2].map((rank) => table.at(rank))).toEqual([0, 1, 2].map((rank) => ({ rank, port: 1000 + rank })));
      expect(table.at(3)).toBe(undefined);
    }
    const heard = Promise.all([0, 2].map((rank) => once(clients[rank], 'modexUpdate')));
    clients[1].updateModex({ rank: 1, port: 7 });
    expect(await heard).toEqual([
      [1, { rank: 1, port: 7 }],
      [1, { rank: 1, port: 7 }],
    ]);
    const railEvent = once(server, 'railEvent');
    clients[2].railEvent({ kind: 'lost' });
    expect(await railEvent).toEqual([2, { kind: 'lost' }]);
  });

  test('an entry that is no JSON is the fault of the rank that sent it, and of no other', async () => {
    const { log, clients } = await makeJob(3);
    await Promise.all(clients.map((client) => client.modex({})));
    const updates: number[] = [];
    for (const client of [clients[0], clients[2]]) client.on('modexUpdate', (from) => updates.push(from));
    const { session } = clients[1] as unknown as { session: { send(kind: string, body: object): void } };
    session.send('modexUpdate', { rank: 1, json: Buffer.from('{"version"') });
    const heard = once(clients[2], 'modexUpdate');
    await vi.waitFor(() => expect(log.filter((line) => line.includes('not JSON'))).not.toEqual([]));
    expect(log.find((line) => line.includes('not JSON'))).toMatch(/rank 1/);
    clients[0].updateModex({});
    await heard;
    expect(updates).toEqual([0]);
    expect([clients[0], clients[2]].map((client) => client.isConnected)).toEqual([true, true]);
  });

  test('a modex of many large entries that cannot be packed much is cut into parts', async () => {
    const { clients } = await makeJob(12);
    const texts = clients.map(() => randomBytes(180_000).toString('base64'));
    const tables = await Promise.all(clients.map((client, rank) => client.modex({ rank, text: texts[rank] })));
    for (const table of tables) for (const [rank, text] of texts.entries()) expect(table.at(rank)).toEqual({ rank, text });
  });

  test('connections cut at random moments: the modex and 1000 barriers survive, nothing is doubled', async () => {
    const size = 3;
    let cut = () => 0;
    const { server, clients } = await makeJob(size, async (server) => {
      const proxies = [await makeProxy(server.urls[0]), await makeProxy(server.urls[0])];
      cut = () => proxies.reduce((sum, proxy) => sum + proxy.cut(), 0);
      return proxies.map((proxy) => proxy.url);
    });
    let reconnects = 0;
    for (const client of clients) client.on('connected', () => reconnects++);
    const events: string[] = [];
    server.on('railEvent', (rank, event) => events.push(`${rank}:${event}`));
    // Own generator: the moments come from a seed, the interleaving from the machine.
    let seed = 12345;
    const random = () => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed / 2 ** 32;
    };
    let running = true;
    const cutter = (async () => {
      while (running) {
        await new Promise((resolve) => setTimeout(resolve, random() * 200));
        cut();
      }
    })();
    const updates = clients.map(() => [] as number[]);
    for (const [rank, client] of clients.entries()) client.on('modexUpdate', (_from, json) => updates[rank].push(json as number));
    const lists = await Promise.all(clients.map((client, rank) => client.modex(rank * 11)));
    for (const table of lists) expect(clients.map((_, rank) => table.at(rank))).toEqual([0, 11, 22]);
    // No rank may leave a barrier before all have entered it.
    const entered = clients.map(() => 0);
    await Promise.all(
      clients.map(async (client, rank) => {
        for (let round = 1; round <= 1000; round++) {
          entered[rank] = round;
          if (rank === 0 && round % 10 === 0) client.updateModex(round);
          if (round % 50 === 0) client.railEvent(round);
          await client.barrier('round');
          expect(Math.min(...entered)).toBeGreaterThanOrEqual(round);
        }
      }),
    );
    running = false;
    await cutter;
    await Promise.all(clients.map((client) => client.finalized()));
    await Promise.all(clients.map((client) => client.barrier('end')));
    const rounds = Array.from({ length: 100 }, (_, i) => (i + 1) * 10);
    expect(updates).toEqual([[], rounds, rounds]);
    expect(events.sort()).toEqual([0, 1, 2].flatMap((rank) => Array.from({ length: 20 }, (_, i) => `${rank}:${(i + 1) * 50}`)).sort());
    expect(reconnects).toBeGreaterThan(0);
  }, 60_000);

  test('an address that swallows everything is left for another one', async () => {
    const { server } = await makeServer(1);
    const proxy = await makeProxy(server.urls[0]);
    // Accepts and never answers, as a black hole does after the connection is there.
    const hole = createServer((socket) => cleanups.push(() => socket.destroy()));
    hole.listen(0, '127.0.0.1');
    await once(hole, 'listening');
    cleanups.push(() => hole.close());
    const client = makeClient([`ws://127.0.0.1:${(hole.address() as AddressInfo).port}/x`, proxy.url], 0, 1);
    await client.hello();
    const again = once(client, 'connected');
    proxy.cut();
    await again;
    await client.barrier('b');
  });

  test('an address over which the launcher is heard, and does not hear, is left for another one', async () => {
    const { server } = await makeServer(1);
    const [first, second] = [await makeProxy(server.urls[0]), await makeProxy(server.urls[0])];
    const client = makeClient([first.url, second.url], 0, 1);
    await client.hello();
    first.loseOneWay();
    const again = once(client, 'connected');
    const taken = client.finalized();
    expect(await again).toEqual([second.url]);
    await taken;
    expect(server.isFinalized(0)).toBe(true);
  });

  test('a wrong secret is refused and logged, on either side', async () => {
    const { server, log } = await makeServer(1);
    const stranger = makeClient(server.urls, 0, 1, { secret: randomBytes(32) });
    await expect(stranger.hello()).rejects.toMatchObject({ code: 'ERR_HANDSHAKE', rank: 0 });
    expect(log.join('\n')).toContain('BAD_PROOF');
    expect(server.info(0)).toBeUndefined();
    // A listener that does not know the secret gets nothing but the hello.
    const kinds: number[] = [];
    const impostor = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    cleanups.push(() => {
      for (const socket of impostor.clients) socket.terminate();
      impostor.close();
    });
    impostor.on('connection', (socket) => {
      socket.send(encodeEnvelope(0, 0, 'challenge', { version: OOB_VERSION, nonce: randomBytes(32), jobId: 'job' }));
      socket.on('message', () => {
        kinds.push(1);
        socket.send(encodeEnvelope(0, 0, 'welcome', { received: 0, proof: randomBytes(32), number: 0, size: 0 }));
      });
    });
    await once(impostor, 'listening');
    const url = `ws://127.0.0.1:${(impostor.address() as AddressInfo).port}/`;
    const fooled = makeClient([url], 0, 1, { reconnectTimeoutMs: 300 });
    await expect(fooled.hello()).rejects.toMatchObject({ code: 'ERR_OOB' });
    expect(fooled.isConnected).toBe(false);
  });

  test('a flood of connections keeps no rank from joining, and makes few lines', async () => {
    const { server, log } = await makeServer(4);
    const port = Number(new URL(server.urls[0]).port);
    let isOver = false;
    let opened = 0;
    const flood = new Set<Socket>();
    // Each that is ended is opened again, until the test is over.
    const dial = () => {
      if (isOver) return;
      const socket = connect(port, '127.0.0.1');
      opened++;
      flood.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        flood.delete(socket);
        setTimeout(dial, 5);
      });
    };
    cleanups.push(() => {
      isOver = true;
      for (const socket of flood) socket.destroy();
    });
    for (let i = 0; i < 500; i++) dial();
    await vi.waitFor(() => expect(opened).toBeGreaterThan(600), { timeout: 10_000 });
    const clients = Array.from({ length: 4 }, (_, rank) => makeClient(server.urls, rank, 4));
    await Promise.all(clients.map((client) => client.hello()));
    await Promise.all(clients.map((client) => client.barrier('all')));
    expect(isOver).toBe(false);
    expect(log.filter((line) => line.includes('without a handshake'))).toHaveLength(1);
    expect(log.length).toBeLessThan(5);
  });

  test('equal lines about strangers are counted', async () => {
    const { server, log } = await makeServer(1);
    for (let i = 0; i < 30; i++) {
      const socket = connect(Number(new URL(server.urls[0]).port), '127.0.0.1');
      socket.write('GET /elsewhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      await closed(socket);
    }
    expect(log).toEqual([expect.stringMatching(/^out-of-band channel: connection from 127\.0\.0\.1:\d+ refused: wrong path$/)]);
    await server.close();
    expect(log[1]).toBe('out-of-band channel: connections from 127.0.0.1 refused: wrong path (29 more in 10 s)');
  });

  test('wrong job, unknown rank, a rank that is taken, a rank that has ended', async () => {
    const { server } = await makeServer(2);
    const reasons = async (client: OobClient) => await client.hello().then(String, String);
    expect(await reasons(makeClient(server.urls, 0, 2, { jobId: 'other' }))).toContain('WRONG_JOB');
    expect(await reasons(makeClient(server.urls, 2, 2))).toContain('UNKNOWN_RANK');
    await makeClient(server.urls, 0, 2).hello();
    expect(await reasons(makeClient(server.urls, 0, 2))).toContain('RANK_TAKEN');
    server.processExited(1, { code: 1, signal: '' });
    expect(await reasons(makeClient(server.urls, 1, 2))).toContain('RANK_ENDED');
  });

  test('10 MB of rubbish from a stranger, as a message and as plain bytes, ends that connection and nothing else', async () => {
    const { server, log, clients } = await makeJob(1);
    const url = server.urls[0];
    const ws = new WebSocket(url);
    ws.on('error', () => undefined);
    await once(ws, 'open');
    ws.send(randomBytes(10 * 1024 * 1024), () => undefined);
    await closed(ws);
    const raw = connect(Number(new URL(url).port), '127.0.0.1');
    raw.on('error', () => undefined);
    raw.write(randomBytes(10 * 1024 * 1024));
    raw.resume();
    await closed(raw);
    // A frame that announces 10 MB after a proper upgrade, byte by byte within the bound, is refused by its announced length.
    const announced = new WebSocket(url);
    announced.on('error', () => undefined);
    await once(announced, 'open');
    (announced as unknown as { _socket: Socket })._socket.write(Buffer.from('82ff00000000009896800000000000', 'hex'));
    await closed(announced);
    const text = new WebSocket(url);
    text.on('error', () => undefined);
    await once(text, 'open');
    text.send('hello?');
    await closed(text);
    expect(log.filter((line) => line.includes('dropped')).length).toBeGreaterThanOrEqual(3);
    await clients[0].barrier('alive');
  });

  test('WebSocket: version 13 alone, and no subprotocol, whatever is offered', async () => {
    const { server } = await makeServer(1);
    const url = server.urls[0];
    const answerTo = (headers: string): Promise<string> =>
      new Promise((resolve) => {
        const raw = connect(Number(new URL(url).port), '127.0.0.1');
        cleanups.push(() => raw.destroy());
        raw.on('error', () => undefined);
        let answer = '';
        raw.setEncoding('latin1').on('data', (text: string) => {
          answer += text;
          if (answer.includes('\r\n\r\n')) resolve(answer.slice(0, answer.indexOf('\r\n\r\n')));
        });
        const key = randomBytes(16).toString('base64');
        raw.write(
          `GET /multirail-oob HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\n${headers}\r\n`,
        );
      });
    for (const version of ['8', '12', '14', 'none']) {
      const answer = await answerTo(`Sec-WebSocket-Version: ${version}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 426 /);
      expect(answer).toMatch(/^Sec-WebSocket-Version: 13$/im);
    }
    expect(await answerTo('')).toMatch(/^HTTP\/1\.1 426 /);
    const answer = await answerTo(
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat, other\r\nSec-WebSocket-Extensions: permessage-deflate\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 101 /);
    expect(answer).not.toMatch(/Sec-WebSocket-(Protocol|Extensions)/i);
  });

  test('a stranger that says nothing is closed', async () => {
    const { server, log } = await makeServer(1, { handshakeTimeoutMs: 100 });
    const ws = new WebSocket(server.urls[0]);
    ws.on('error', () => undefined);
    await closed(ws);
    expect(log.join()).toContain('not done in time');
  });

  test('exit notices reach everybody, those who join later too; collectives that wait for the dead fail or go on', async () => {
    const { server } = await makeServer(3);
    const early = makeClient(server.urls, 0, 3);
    await early.hello();
    const exits: unknown[] = [];
    early.on('exit', (rank, info) => exits.push([rank, info.signal]));
    const strict = early.barrier('strict');
    const modex = early.modex(1);
    server.processExited(2, { code: undefined, signal: 'SIGKILL' });
    await expect(strict).rejects.toMatchObject({ code: 'ERR_PROC_FAILED', peer: 2 });
    await expect(modex).rejects.toMatchObject({ code: 'ERR_PROC_FAILED', peer: 2 });
    const late = makeClient(server.urls, 1, 3);
    const heard = once(late, 'exit');
    await late.hello();
    expect(await heard).toEqual([2, { code: undefined, signal: 'SIGKILL', finalized: false, lost: false }]);
    expect(exits).toEqual([[2, 'SIGKILL']]);
    // Whoever listens only after joining finds it in the list.
    expect(late.exits.get(2)).toMatchObject({ signal: 'SIGKILL' });
    const tolerant = await Promise.all([early, late].map((client) => client.barrier('tolerant', { tolerant: true })));
    expect(tolerant).toEqual([[2], [2]]);
    await expect(late.barrier('strict again')).rejects.toMatchObject({ code: 'ERR_PROC_FAILED' });
  });

  test('a listener added right after an awaited call hears what follows, even when both arrived in one piece', async () => {
    const { server, clients } = await makeJob(2);
    await Promise.all(clients.map((client) => client.modex(0)));
    for (let round = 0; round < 50; round++) {
      const heard = clients[0].barrier('b').then(() => once(clients[0], 'modexUpdate'));
      // The two have a connection each: the launcher must have this rank's barrier before the other one's messages.
      const entered = once(server, 'railEvent');
      clients[0].railEvent(round);
      await entered;
      const other = clients[1].barrier('b');
      // Leaves right behind the barrier, so that the launcher's two answers follow each other closely.
      clients[1].updateModex(round);
      expect(await heard).toEqual([1, round]);
      await other;
    }
  });

  test('abort reaches the launcher, and through it the others, whose collectives end', async () => {
    const { server, clients } = await makeJob(2);
    server.on('abort', (info) => server.broadcastAbort(info));
    const waiting = clients[1].barrier('never');
    const told = once(clients[1], 'abort');
    await clients[0].abort(7, 'because', 'at here');
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_ABORT', peer: 0 });
    expect(await told).toEqual([{ rank: 0, code: 7, reason: 'because', stack: 'at here' }]);
  });

  test('silence is death only where nobody knows the processes', async () => {
    for (const knowsProcesses of [true, false]) {
      const { server } = await makeServer(2, { knowsProcesses, reconnectTimeoutMs: 200 });
      const [stays, goes] = [0, 1].map((rank) => makeClient(server.urls, rank, 2));
      await Promise.all([stays.hello(), goes.hello()]);
      const exit = once(stays, 'exit');
      await goes.close();
      if (knowsProcesses) {
        // Several timeouts pass; then the word of the owner is the first that is heard.
        await new Promise((resolve) => setTimeout(resolve, 600));
        server.processExited(1, { code: 3, signal: '' });
        expect(await exit).toEqual([1, { code: 3, signal: '', finalized: false, lost: false }]);
      } else {
        expect(await exit).toEqual([1, { code: undefined, signal: '', finalized: false, lost: true }]);
      }
    }
  });

  test('a lost launcher: at once when its process is dead, after the timeout when nothing is known of it', async () => {
    let parent = 500;
    const table = { ppid: () => parent, exists: () => true };
    const known = await makeServer(1);
    const child = makeClient(known.server.urls, 0, 1, { watch: new LauncherWatch(500, table) });
    await child.hello();
    const lost = once(child, 'launcherLost');
    parent = 1;
    expect(await lost).toEqual(['the launcher is dead']);
    const unknown = await makeServer(1);
    const other = makeClient(unknown.server.urls, 0, 1, { reconnectTimeoutMs: 300 });
    await other.hello();
    const gone = once(other, 'launcherLost');
    await unknown.server.close();
    expect((await gone)[0]).toContain('was not reached');
    await expect(other.barrier('x')).rejects.toMatchObject({ code: 'ERR_OOB' });
  });

  test('addresses to listen on', () => {
    expect(parseListenAddress('10.0.0.1')).toEqual({ host: '10.0.0.1', port: 0 });
    expect(parseListenAddress('10.0.0.1:80')).toEqual({ host: '10.0.0.1', port: 80 });
    expect(parseListenAddress('[::1]:80')).toEqual({ host: '::1', port: 80 });
    expect(parseListenAddress('::1')).toEqual({ host: '::1', port: 0 });
    for (const text of ['', 'a:b', '[::1', '1.2.3.4:70000']) expect(() => parseListenAddress(text)).toThrow();
  });
});
