// The dashboard's server over real sockets: who gets in and who does not, what each address gives, orders, and the live feed of the page.
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { RailFault } from '../../../src/launch/oob/telemetry.ts';
import { bearerToken, checkToken, isLoopbackHost, isOwnOrigin, newToken, tokenEquals } from '../../../tools/dashboard/access.ts';
import { InterposerControl } from '../../../tools/dashboard/control.ts';
import { EventsFile } from '../../../tools/dashboard/events-file.ts';
import type { PageMessage } from '../../../tools/dashboard/messages.ts';
import { DashboardServer, type DashboardServerOptions } from '../../../tools/dashboard/server.ts';
import { parseExposition } from './exposition.ts';
import { makeModel, makeRunningModel, railReport, report, TestClock } from './telemetry-examples.ts';

const TOKEN = 'the-token-of-this-test';
const CACHE = join(import.meta.dirname, '../../../.cache');
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function scratchFolder(): string {
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'dashboard-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** What the server serves is looked at in the browser's test: here any files will do. */
function pageFolder(): string {
  const folder = scratchFolder();
  for (const name of ['index.html', 'page.js', 'page.css', 'icon.svg']) writeFileSync(join(folder, name), `this is ${name}`);
  return folder;
}

async function open(options: Partial<DashboardServerOptions> = {}, takesFaults = false) {
  const clock = new TestClock();
  const model = makeRunningModel(clock, takesFaults);
  const server = new DashboardServer({ model, token: TOKEN, port: 0, pageFolder: pageFolder(), ...options });
  await server.open();
  cleanups.push(() => server.close());
  return { clock, model, server };
}

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

/** fetch() sets Host and Origin by itself, and these are what is tested. */
async function ask(
  server: DashboardServer,
  path: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const sent = request({ host: '127.0.0.1', port: server.port, path, method, headers: { host: `127.0.0.1:${server.port}`, ...headers } });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

/** What comes back for these bytes. */
async function raw(server: DashboardServer, text: string): Promise<string> {
  const socket = connect(server.port, '127.0.0.1');
  socket.write(text);
  let answer = '';
  for await (const chunk of socket.setEncoding('utf8')) answer += chunk;
  return answer;
}

const bearer = (token = TOKEN) => ({ authorization: `Bearer ${token}` });

describe('who gets in', () => {
  test('however many connections say nothing, or are opened again when they are ended', async () => {
    const { server } = await open();
    const idle = new Set<Socket>();
    let isOver = false;
    const { port } = server;
    const dial = () => {
      if (isOver) return;
      const socket = connect(port, '127.0.0.1');
      idle.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        idle.delete(socket);
        setTimeout(dial, 5);
      });
    };
    cleanups.push(() => {
      isOver = true;
      for (const socket of idle) socket.destroy();
    });
    for (let i = 0; i < 300; i++) dial();
    await new Promise((resolve) => setTimeout(resolve, 100));
    // A connection may have to go before its request was read: then it is tried again, as browsers do.
    const answers: number[] = [];
    for (let tries = 0; tries < 50 && answers.length < 5; tries++) {
      const answer = await ask(server, '/metrics', { headers: bearer() }).catch(() => undefined);
      if (answer !== undefined) answers.push(answer.status);
    }
    expect(answers).toEqual([200, 200, 200, 200, 200]);
  });

  test.each(['/', '/metrics', '/events?follow=0', '/control', '/waits', '/live', '/nothing'])('%s: not without the token', async (path) => {
    const { server } = await open();
    for (const headers of [{}, bearer('another-token-of-it'), bearer(`${TOKEN}x`), { authorization: `Basic ${TOKEN}` }]) {
      const answer = await ask(server, path, { headers });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
      expect(answer.text).not.toContain(TOKEN);
      expect(answer.text).not.toContain('job-7');
    }
    const glue = path.includes('?') ? '&' : '?';
    expect((await ask(server, `${path}${glue}token=${TOKEN.slice(0, -1)}`)).status).toBe(401);
    expect((await ask(server, `${path}${glue}token=`)).status).toBe(401);
  });

  test.each(['/?', '/metrics?', '/events?follow=0&'])('%s: with the token in the address, or in a header', async (path) => {
    const { server } = await open();
    expect((await ask(server, `${path}token=${TOKEN}`)).status).toBe(200);
    expect((await ask(server, path, { headers: bearer() })).status).toBe(200);
  });

  test.each(['evil.example', 'evil.example:80', '127.0.0.1.evil.example', '10.0.0.1', '0.0.0.0', 'localhost.', '[::2]', ':80'])(
    'under the name "%s" nobody gets in, even with the token',
    async (host) => {
      const { server } = await open();
      for (const path of [`/?token=${TOKEN}`, '/page.js', `/metrics?token=${TOKEN}`]) {
        const answer = await ask(server, path, { headers: { host } });
        expect(answer.status).toBe(421);
      }
    },
  );

  test.each(['Host: ', 'Host: a\r\nHost: b', 'X-Host: 127.0.0.1'])('nor with "%s"', async (line) => {
    const { server } = await open();
    expect(await raw(server, `GET /?token=${TOKEN} HTTP/1.1\r\n${line}\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 4\d\d /);
  });

  test.each(['//', '*', 'http://evil.example/', '/%', '//['])('an address that is none ("%s") hurts nobody', async (target) => {
    const { server } = await open();
    const head = `${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n`;
    expect(await raw(server, `GET ${head}Connection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 4\d\d /);
    const upgrade =
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
    expect(await raw(server, `GET ${head}${upgrade}\r\n`)).toMatch(/^HTTP\/1.1 4\d\d /);
    expect((await ask(server, `/?token=${TOKEN}`)).status).toBe(200);
  });

  test.each(['localhost', 'LOCALHOST:9000', '[::1]:80', '127.0.0.1'])('under the name "%s" one does', async (host) => {
    const { server } = await open();
    expect((await ask(server, `/?token=${TOKEN}`, { headers: { host } })).status).toBe(200);
  });

  test('it listens on loopback, and on no other address', async () => {
    const { server } = await open();
    expect(new URL(server.url).hostname).toBe('127.0.0.1');
    expect(server.url).toBe(`http://127.0.0.1:${server.port}/?token=${TOKEN}`);
    const other = request({ host: '127.0.0.2', port: server.port, path: '/' });
    other.end();
    const [error] = (await once(other, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
  });

  test('what the page may do is bounded by headers', async () => {
    const { server } = await open();
    const { headers } = await ask(server, `/?token=${TOKEN}`);
    const policy = headers['content-security-policy'] as string;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' });
  });

  test('a port that is taken, and a page that is not built, say what to do', async () => {
    const { server } = await open();
    await expect(open({ port: server.port })).rejects.toMatchObject({
      code: 'ERR_LAUNCH',
      message: expect.stringContaining('leave the port out'),
    });
    await expect(open({ pageFolder: scratchFolder() })).rejects.toMatchObject({
      code: 'ERR_SUPPORT',
      message: expect.stringContaining('npm run build'),
    });
  });

  test('tokens', () => {
    expect(newToken()).not.toBe(newToken());
    expect(newToken().length).toBeGreaterThanOrEqual(43);
    expect(checkToken(` ${newToken()}\n`, 'it')).toMatch(/^[\w-]{43}$/);
    for (const text of ['', 'short', 'a token with blanks in it', 'umlaute-sind-nicht-änders', 'fifteen-letters']) {
      expect(() => checkToken(text, 'the file')).toThrow(/ERR_CONFIG.*the file/);
    }
    expect(tokenEquals('abc', 'abc')).toBe(true);
    expect(tokenEquals('abc', 'abcd')).toBe(false);
    expect(bearerToken('bearer   abc')).toBe('abc');
    expect(bearerToken('Bearer a b')).toBeUndefined();
    expect(isLoopbackHost('127.0.0.1:1234')).toBe(true);
    expect(isLoopbackHost(undefined)).toBe(false);
    expect(isOwnOrigin(undefined, 'localhost:1')).toBe(true);
    expect(isOwnOrigin('http://localhost:1', 'localhost:1')).toBe(true);
    for (const origin of ['http://localhost:2', 'https://localhost:1', 'null', 'http://evil.example'])
      expect(isOwnOrigin(origin, 'localhost:1')).toBe(false);
  });
});

describe('what it gives', () => {
  test('the page, its code without a token, and nothing else of the folder', async () => {
    const { server } = await open();
    expect(await ask(server, `/?token=${TOKEN}`)).toMatchObject({
      status: 200,
      text: 'this is index.html',
      headers: { 'content-type': /html/ },
    });
    expect(await ask(server, '/page.js')).toMatchObject({ status: 200, text: 'this is page.js' });
    expect(await ask(server, '/page.css', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    for (const path of ['/../package.json', '/%2e%2e/package.json', '/index.html', '//page.js/..']) {
      expect((await ask(server, `${path}?token=${TOKEN}`)).status).toBe(404);
    }
    expect(await ask(server, '/page.js', { method: 'POST', headers: bearer() })).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
    });
  });

  test('metrics in the format that is asked for', async () => {
    const { server } = await open();
    const plain = await ask(server, '/metrics', { headers: bearer() });
    expect(plain.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(parseExposition(plain.text, 'prometheus').size).toBeGreaterThan(20);
    const open1 = await ask(server, '/metrics', { headers: { ...bearer(), accept: 'application/openmetrics-text; version=1.0.0' } });
    expect(open1.headers['content-type']).toMatch(/^application\/openmetrics-text/);
    expect(parseExposition(open1.text, 'openmetrics').size).toBe(parseExposition(plain.text, 'prometheus').size);
  });

  test('events: those that were, since a number, and those to come', async () => {
    const { server, model } = await open();
    const were = await ask(server, '/events?follow=0', { headers: bearer() });
    expect(were.headers['content-type']).toMatch(/ndjson/);
    expect(
      were.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).type),
    ).toEqual(['job-started', 'rank-joined', 'rank-joined']);
    expect((await ask(server, '/events?follow=0&since=2', { headers: bearer() })).text.trim().split('\n')).toHaveLength(1);
    expect((await ask(server, '/events?since=-1', { headers: bearer() })).status).toBe(400);
    const following = request({ host: '127.0.0.1', port: server.port, path: '/events?since=3', headers: bearer() });
    following.end();
    const [response] = (await once(following, 'response')) as [IncomingMessage];
    // Only what happens after the reader has come shows that it follows.
    model.aborted({ rank: 1, code: 3, reason: 'for a test', stack: '' });
    const [line] = (await once(response.setEncoding('utf8'), 'data')) as [string];
    expect(JSON.parse(line)).toMatchObject({ seq: 4, type: 'job-aborted', rank: 1 });
    const ended = once(response, 'end');
    await server.close();
    await ended;
  });

  test('the live feed: a snapshot, then what changed, then the end', async () => {
    const { server, model, clock } = await open();
    const page = new WebSocket(`ws://127.0.0.1:${server.port}/live?token=${TOKEN}`, { origin: `http://127.0.0.1:${server.port}` });
    const messages: PageMessage[] = [];
    page.on('message', (data) => messages.push(JSON.parse(String(data)) as PageMessage));
    const until = async (isThere: () => boolean) => {
      while (!isThere()) await once(page, 'message');
    };
    await until(() => messages.length > 0);
    expect(messages[0]).toMatchObject({
      type: 'snapshot',
      job: { jobId: 'job-7', size: 2 },
      ranks: { length: 2 },
      rails: { length: 4 },
      targets: [],
    });
    clock.ms = 1000;
    model.telemetry(0, report(1000, [railReport(1, 1, { state: 'DOWN' })]));
    model.railEvent(0, { type: 'lost', peer: 1, rail: 1, key: 'k', epoch: 1, reason: 'why', up: 1, of: 2 });
    const told = () => messages.find((message) => message.type === 'update' && (message.rails?.length ?? 0) > 0);
    await until(() => told() !== undefined);
    expect(told()).toMatchObject({ rails: [{ rank: 0, peer: 1, rail: 1, state: 'DOWN' }], events: [{ type: 'rail-lost' }] });
    server.feed.waits({ reason: 'asked', ranks: [], cycles: [[0, 1]] });
    model.ended(0, undefined);
    const closed = once(page, 'close');
    await server.close();
    expect((await closed)[0]).toBe(1000);
    expect(messages.at(-1)).toMatchObject({ type: 'update', job: { ended: { exitCode: 0 } }, waits: { cycles: [[0, 1]] } });
  });

  test.each([
    ['without the token', '/live', {}, 401],
    ['for another page', `/live?token=${TOKEN}`, { origin: 'http://evil.example' }, 403],
    ['under another name', `/live?token=${TOKEN}`, { headers: { host: 'evil.example' } }, 421],
    ['elsewhere', `/metrics?token=${TOKEN}`, {}, 404],
  ])('no live feed %s', async (_why, path, options, status) => {
    const { server } = await open();
    const page = new WebSocket(`ws://127.0.0.1:${server.port}${path}`, options);
    page.on('error', () => undefined);
    const [, response] = (await once(page, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(response.statusCode).toBe(status);
    page.terminate();
  });
});

describe('orders', () => {
  async function openWithControl() {
    const orders: [rank: number, fault: RailFault][] = [];
    const clock = new TestClock();
    const model = makeRunningModel(clock, true);
    const control = new InterposerControl(model, (rank, fault) => orders.push([rank, fault]));
    const server = new DashboardServer({ model, control, token: TOKEN, port: 0, pageFolder: pageFolder() });
    await server.open();
    cleanups.push(() => server.close());
    const order = (body: string, headers: Record<string, string> = bearer()) => ask(server, '/control', { method: 'POST', headers, body });
    return { orders, model, control, server, order };
  }

  test('both ends of a rail are told, the state is kept, and it is an event', async () => {
    const { orders, model, control, order } = await openWithControl();
    expect(control.targets().map(({ id, state }) => [id, state])).toEqual([
      ['rail-0-1-0', 'up'],
      ['rail-0-1-1', 'up'],
    ]);
    expect((await order('{"id":"rail-0-1-1","action":"blackhole"}')).status).toBe(200);
    expect(orders).toEqual([
      [0, { action: 'blackhole', peer: 1, rail: 1 }],
      [1, { action: 'blackhole', peer: 0, rail: 1 }],
    ]);
    expect(control.targets()[1].state).toBe('black-holed');
    expect(model.log.since(0).at(-1)).toMatchObject({ type: 'ordered', action: 'blackhole', target: 'rail-0-1-1' });
    await order('{"id":"rail-0-1-1","action":"restore"}');
    expect(control.targets()[1].state).toBe('up');
  });

  test('a rail that only its higher rank has told of is there to be pulled', () => {
    const clock = new TestClock();
    const model = makeModel(clock);
    for (const rank of [0, 1]) model.joined(rank, { incarnation: 1, pid: 100 + rank, hostId: 'host/1' });
    clock.ms = 250;
    model.telemetry(0, report(250, [], { takesFaults: true }));
    model.telemetry(1, report(250, [railReport(0, 1)], { takesFaults: true }));
    const [target, ...others] = new InterposerControl(model, () => undefined).targets();
    expect(target).toMatchObject({ id: 'rail-0-1-1', label: 'rail 1 (tcp), ranks 0 and 1' });
    expect(target.rails).toEqual([
      { rank: 0, peer: 1, rail: 1 },
      { rank: 1, peer: 0, rail: 1 },
    ]);
    expect(others).toEqual([]);
  });

  test.each([
    ['the token in the address only', '{"id":"rail-0-1-1","action":"pull"}', {}, `?token=${TOKEN}`, 403],
    ['another page', '{"id":"rail-0-1-1","action":"pull"}', { ...bearer(), origin: 'http://evil.example' }, '', 403],
    ['no JSON', 'pull', bearer(), '', 400],
    ['null', 'null', bearer(), '', 400],
    ['an action that there is not', '{"id":"rail-0-1-1","action":"toString"}', bearer(), '', 400],
    ['a thing that there is not', '{"id":"rail-0-1-7","action":"pull"}', bearer(), '', 404],
    ['far too long', `{"id":"${'x'.repeat(10_000)}","action":"pull"}`, bearer(), '', 400],
  ])('refused: %s', async (_why, body, headers, query, status) => {
    const { orders, server } = await openWithControl();
    expect((await ask(server, `/control${query}`, { method: 'POST', headers, body })).status).toBe(status);
    expect(orders).toEqual([]);
  });

  test('nothing to pull where no rank takes orders, and no reports where nobody makes them', async () => {
    const { server } = await open();
    expect((await ask(server, '/control', { method: 'POST', headers: bearer(), body: '{"id":"x","action":"pull"}' })).status).toBe(409);
    expect((await ask(server, '/waits', { method: 'POST', headers: bearer() })).status).toBe(409);
    expect((await ask(server, '/control', { headers: bearer() })).status).toBe(405);
    let asked = 0;
    const { server: other } = await open({ askWaits: () => asked++ });
    expect((await ask(other, '/waits', { method: 'POST', headers: bearer() })).status).toBe(200);
    expect(asked).toBe(1);
  });
});

describe('events in a file', () => {
  test('what was and what comes, as JSON lines; an older file is replaced', async () => {
    const path = join(scratchFolder(), 'events.jsonl');
    writeFileSync(path, 'an older run\n'.repeat(100));
    const model = makeRunningModel(new TestClock());
    const file = new EventsFile(path, () => undefined);
    file.follow(model.log);
    model.ended(0, undefined);
    await file.close();
    model.aborted({ rank: 0, code: 1, reason: 'too late', stack: '' });
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(model.log.since(0).slice(0, -1));
  });

  test('a file that cannot be opened is an error before the job; one that cannot be written is told once', async () => {
    expect(() => new EventsFile(join(scratchFolder(), 'no/such/folder'), () => undefined)).toThrow(/ERR_CONFIG.*cannot be written/);
    const said: string[] = [];
    const file = new EventsFile('/dev/full', (text) => said.push(text));
    const model = makeRunningModel(new TestClock());
    file.follow(model.log);
    while (said.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    model.ended(0, undefined);
    await file.close();
    expect(said).toEqual([expect.stringMatching(/no more events are written to \/dev\/full: ENOSPC/)]);
  });
});
