// Method: two real modules in one process over loopback sockets, tcp and ws alike; then strangers that write rubbish to a listener while a
// rail lives. The engine is a loop that gives the event loop a turn between two progress().
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectNet, type Socket } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { encodeFrameHeader, FRAME_DATA, FRAME_HEADER_BYTES, newFrameHeader } from '../../../src/btl/base/frame-hdr.ts';
import { type BtlContext, type BtlEndpoint, type BtlModule, BUSY, type Frame, OK } from '../../../src/btl/btl.ts';
import { TcpModule } from '../../../src/btl/tcp/module.ts';
import type { PublishedAddresses } from '../../../src/btl/tcp/pairing.ts';
import { WsModule } from '../../../src/btl/ws/module.ts';
import type { NativeBinding } from '../../../src/native/binding.ts';
import { loadNative } from '../../../src/native/load.ts';
import { Poller } from '../../../src/native/poller.ts';
import { contextOf, frameOf, mustSend, Recorder } from '../../support/harness.ts';
import { pattern } from '../../support/pattern.ts';

type Make = (context: BtlContext) => BtlModule;
const MAKERS: Record<string, Make> = { tcp: (context) => new TcpModule(context), ws: (context) => new WsModule(context) };
const { binding, reason: noNative } = loadNative();
if (binding !== undefined) MAKERS['native tcp'] = (context) => new TcpModule({ ...context, poller: pollerFor(binding) });
const TCP_MAKERS = Object.keys(MAKERS).filter((name) => name.endsWith('tcp'));

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** What is ready is noted in turns of the event loop, and worked on in progress(). Closed after the modules that use it. */
function pollerFor(native: NativeBinding): Poller {
  const poller: Poller = new Poller(native, () => {
    poller.look();
    return false;
  });
  cleanups.push(() => poller.close());
  return poller;
}

if (binding === undefined) {
  test('native tcp over loopback', (context) => {
    console.info(`skipped: native tcp over loopback: ${noNative}`);
    context.skip(noNative);
  });
}

class SocketPair {
  readonly up = [new Recorder(), new Recorder()];
  readonly modules: BtlModule[];
  ends: BtlEndpoint[] = [];

  constructor(make: Make, values: Record<string, string> = {}, contexts: Partial<BtlContext>[] = [{}, {}]) {
    this.modules = [0, 1].map((rank) => make(contextOf(rank, this.up[rank], { values, ...contexts[rank] })));
  }
  async open(): Promise<void> {
    for (const module of this.modules) {
      cleanups.push(() => module.close());
      await module.open();
    }
    const address = this.modules.map((module) => JSON.parse(JSON.stringify(module.address())) as PublishedAddresses);
    this.ends = [0, 1].map((rank) => {
      const plans = this.modules[rank].plan(1 - rank, address[rank], address[1 - rank], 'host-a');
      expect(plans).toHaveLength(1);
      const endpoint = this.modules[rank].endpoint(1 - rank, 0, plans[0], address[1 - rank]);
      this.up[rank].endpoints.set(plans[0].key, endpoint);
      return endpoint;
    });
  }
  turn(): void {
    for (const rank of [0, 1]) this.up[rank].run(this.modules[rank], performance.now());
  }
  async until(what: string, condition: () => boolean): Promise<void> {
    const giveUpAt = performance.now() + 8000;
    for (let i = 0; !condition(); i++) {
      this.turn();
      if (performance.now() > giveUpAt)
        throw new Error(`not reached: ${what}; logs: ${[...this.up[0].logs, ...this.up[1].logs].join(' | ')}`);
      if (i % 50 === 49) await pause(1);
      else await turn();
    }
  }
  async connect(epoch = 1): Promise<void> {
    this.ends[0].connect(epoch);
    await this.until('connected', () => this.ends.every((end) => end.epoch === epoch));
    for (const up of this.up) up.take();
  }
  port(): number {
    const { interfaces } = this.modules[1].address() as PublishedAddresses;
    const lo = interfaces.find((found) => found.loopback);
    return lo?.addresses.find((address) => address.address === '127.0.0.1')?.port ?? 0;
  }
}

describe.each(Object.keys(MAKERS))('%s over loopback', (name) => {
  test('10 000 frames each way, in order, placed and not, with BUSY; then BYE', async () => {
    const pair = new SocketPair(MAKERS[name]);
    await pair.open();
    await pair.connect();
    const FRAMES = 10_000;
    const large = pattern(20_000);
    const payloadOf = (i: number): Uint8Array => large.subarray(0, i % 100 === 0 ? 20_000 : i % 3 === 0 ? 0 : 64 + (i % 200));
    const got = [0, 0];
    const wrong: string[] = [];
    for (const rank of [0, 1]) {
      pair.up[rank].onFrameDo = (header, payload, sink) => {
        const i = new DataView(header.buffer, header.byteOffset).getUint32(0, true);
        const bytes = sink === null ? payload : sink.views[0];
        if (i !== got[rank]) wrong.push(`frame ${i} where ${got[rank]} was due`);
        if (Buffer.compare(bytes, payloadOf(i)) !== 0) wrong.push(`frame ${i}: wrong payload`);
        got[rank]++;
      };
    }
    const next: (Frame | undefined)[] = [undefined, undefined];
    const sent = [0, 0];
    let busy = 0;
    await pair.until('all delivered', () => {
      for (const rank of [0, 1]) {
        while (sent[rank] < FRAMES) {
          const i = sent[rank];
          const frame = next[rank] ?? frameOf(24, [payloadOf(i)], { placed: i % 100 === 0, prompt: i % 50 === 0 });
          next[rank] = frame;
          new DataView(frame.header.buffer).setUint32(0, i, true);
          const result = pair.ends[rank].send(frame);
          if (result === BUSY) busy++;
          if (result !== OK) break;
          next[rank] = undefined;
          sent[rank]++;
        }
        pair.ends[rank].flush();
      }
      return pair.up.every((up) => up.completions.length === FRAMES) && got[0] === FRAMES && got[1] === FRAMES;
    });
    expect(wrong).toEqual([]);
    expect(busy).toBeGreaterThan(0);
    for (const rank of [0, 1]) {
      expect(pair.up[rank].completions.every(({ number, status }, i) => number === i + 1 && status === 0)).toBe(true);
      expect(pair.ends[rank].counters.framesReceived).toBe(FRAMES);
      pair.up[rank].take();
      pair.ends[rank].bye();
      pair.ends[rank].flush();
    }
    await pair.until('closed after BYE', () => pair.ends.every((end) => end.epoch === 0));
    expect(pair.up.map((up) => up.take())).toEqual([['bye 1'], ['bye 1']]);
  });

  test('fence in the middle of a placed frame: not one byte more', async () => {
    const pair = new SocketPair(MAKERS[name]);
    await pair.open();
    await pair.connect();
    const bytes = 12 * 1024 * 1024;
    pair.ends[0].windowBytes = bytes * 2;
    mustSend(pair.ends[0], frameOf(8, [new Uint8Array(bytes).fill(7)], { placed: true }));
    pair.ends[0].flush();
    await pair.until('the sink is open and has bytes', () => pair.up[1].sinks[0]?.views[0][0] === 7);
    const view = pair.up[1].sinks[0].views[0];
    pair.ends[1].fence(1, { kind: 'fenced', text: 'test' });
    const filled = view.indexOf(0);
    expect(filled).toBeGreaterThan(0);
    await pair.until('both down', () => pair.up.every((up) => up.events.some((event) => event.startsWith('down 1'))));
    for (let i = 0; i < 20; i++) {
      pair.turn();
      await turn();
    }
    expect(view.indexOf(0)).toBe(filled);
    expect(pair.up[1].take().slice(-2)).toEqual(['down 1 fenced', 'sinkDropped 1 0']);
    expect(pair.up[0].take().at(-1)).toBe('completed 1 inDoubt');
    await pair.connect(2);
  });

  test('close() while frames are outstanding: the other side is down, nothing follows here', async () => {
    const pair = new SocketPair(MAKERS[name]);
    await pair.open();
    await pair.connect();
    mustSend(pair.ends[0], frameOf(8, [pattern(1000)]));
    await pair.modules[0].close();
    pair.up[0].take();
    await pair.until('down', () => pair.up[1].events.includes('down 1 closed'));
    expect(pair.up[0].take()).toEqual([]);
  });

  test('nobody listens: error', async () => {
    const pair = new SocketPair(MAKERS[name]);
    await pair.open();
    await pair.modules[1].close();
    pair.ends[0].connect(1);
    await pair.until('failed', () => pair.up[0].events.length > 0);
    expect(pair.up[0].take()).toEqual(['failed 1 error']);
  });
});

test('without a secret only loopback is dialled and accepted, with a hint', async () => {
  const pair = new SocketPair(MAKERS.tcp, {}, [{ secret: undefined }, { secret: undefined }]);
  await pair.open();
  await pair.connect();
  // The same two, but taken for different hosts: their rails would leave the machine.
  const address = pair.modules.map((module) => module.address());
  const plans = pair.modules[0].plan(1, address[0], address[1], 'host-b');
  if (plans.length === 0) {
    console.log('skipped in part: this machine has no interface but loopback');
    return;
  }
  const beyond = pair.modules[0].endpoint(1, 1, plans[0], address[1]);
  beyond.connect(1);
  await pair.until('failed', () => pair.up[0].events.length > 0);
  expect(pair.up[0].take()).toEqual(['failed 1 refused']);
  expect(pair.up[0].logs.join()).toContain('MULTIRAIL_SECRET_FILE');
  const other = (address[1] as PublishedAddresses).interfaces
    .find((found) => !found.loopback)
    ?.addresses.find((entry) => entry.family === 4);
  if (other === undefined) return;
  const socket = stranger(other.port, other.address);
  await pair.until('refused', () => pair.up[1].logs.some((line) => line.includes('MULTIRAIL_SECRET_FILE')));
  await pair.until('closed', () => socket.destroyed);
});

function stranger(port: number, host = '127.0.0.1'): Socket {
  const socket = connectNet({ port, host });
  socket.on('error', () => {});
  socket.resume();
  cleanups.push(() => void socket.destroy());
  return socket;
}

test.each(TCP_MAKERS)(
  '%s: what fills a window that the peer would not count together is counted at once',
  async (name) => {
    // Longer than this test may take.
    const pair = new SocketPair(MAKERS[name], { btl_base_ack_delay_ms: '1000', btl_base_ack_bytes: '262144' });
    await pair.open();
    await pair.connect();
    const [end] = pair.ends;
    end.windowBytes = 128 * 1024;
    const part = pattern(50_000);
    for (let sent = 0; sent < 40; sent++) {
      await pair.until('room', () => end.send(frameOf(24, [part])) === OK);
      end.flush();
    }
    expect(end.counters.framesSent).toBe(40);
  },
  8000,
);

describe('strangers', () => {
  const huge = new Uint8Array(FRAME_HEADER_BYTES);
  encodeFrameHeader({ ...newFrameHeader(FRAME_DATA), payloadBytes: 0xfffffff0 }, huge, 0);
  const otherVersion = new Uint8Array(huge);
  otherVersion[0] = 200;
  const CASES: [string, Uint8Array | string, RegExp][] = [
    ['rubbish', 'GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: everything\r\n\r\n', /not a frame of multirail/],
    ['a huge length', huge, /payload of 4294967280 bytes/],
    ['another version', otherVersion, /BAD_VERSION/],
    ['half a frame', huge.subarray(0, 20), /no handshake within 300 ms/],
    ['nothing', '', /no handshake within 300 ms/],
  ];
  const cases = TCP_MAKERS.flatMap((name) => CASES.map(([title, bytes, reason]) => [name, title, bytes, reason] as const));
  test.each(cases)('%s: %s is closed and logged, the rail beside it lives', async (name, _title, bytes, reason) => {
    const pair = new SocketPair(MAKERS[name], { btl_base_handshake_timeout_ms: '300' });
    await pair.open();
    await pair.connect();
    const socket = stranger(pair.port());
    if (bytes.length > 0) socket.write(bytes);
    await pair.until('closed and logged', () => socket.destroyed && pair.up[1].logs.some((line) => reason.test(line)));
    expect(pair.up[1].logs.find((line) => reason.test(line))).toMatch(/127\.0\.0\.1 port \d+/);
    mustSend(pair.ends[0], frameOf(8, [], { prompt: true }));
    pair.ends[0].flush();
    await pair.until('delivered', () => pair.up[0].completions.length === 1);
    expect(pair.up[1].take()).toEqual(['frame 8 0']);
  });

  test('ws: plain HTTP, no upgrade, a text message, rubbish in a message', async () => {
    const pair = new SocketPair(MAKERS.ws, { btl_base_handshake_timeout_ms: '300' });
    await pair.open();
    await pair.connect();
    const logged = (reason: RegExp): boolean => pair.up[1].logs.some((line) => reason.test(line));
    const web = stranger(pair.port());
    web.write('GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n');
    const silent = stranger(pair.port());
    await pair.until('closed', () => web.destroyed && silent.destroyed && logged(/no upgrade within 300 ms/));
    for (const message of ['a text', new Uint8Array(100).fill(5), new Uint8Array(300 * 1024)]) {
      const socket = new WebSocket(`ws://127.0.0.1:${pair.port()}/multirail`);
      cleanups.push(() => socket.terminate());
      socket.on('error', () => {});
      socket.on('open', () => socket.send(message));
      await pair.until('closed', () => socket.readyState === WebSocket.CLOSED);
    }
    expect(logged(/not a frame of multirail/)).toBe(true);
    expect(pair.ends.map((end) => end.epoch)).toEqual([1, 1]);
  });
});

test('ws: version 13 alone, and no subprotocol, whatever is offered', async () => {
  const pair = new SocketPair(MAKERS.ws);
  await pair.open();
  const answerTo = (headers: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connectNet(pair.port(), '127.0.0.1');
      let answer = '';
      socket.on('error', reject);
      socket.setEncoding('latin1').on('data', (text: string) => {
        answer += text;
        if (!answer.includes('\r\n\r\n')) return;
        socket.destroy();
        resolve(answer.slice(0, answer.indexOf('\r\n\r\n')));
      });
      socket.write(
        `GET /multirail HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${btoa('0123456789abcdef')}\r\n${headers}\r\n`,
      );
    });
  for (const version of ['8', '12', '14']) {
    const answer = await answerTo(`Sec-WebSocket-Version: ${version}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 426 /);
    expect(answer).toMatch(/^Sec-WebSocket-Version: 13$/im);
  }
  const answer = await answerTo('Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat, other\r\n');
  expect(answer).toMatch(/^HTTP\/1\.1 101 /);
  expect(answer).not.toMatch(/Sec-WebSocket-Protocol/i);
});

test('ws with TLS: one self-signed certificate on both sides; another one is refused', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'multirail-tls-'));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const make = (name: string): Record<string, string> => {
    const [cert, key] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    execFileSync('openssl', [...args, '-subj', '/CN=multirail', '-keyout', key, '-out', cert], { stdio: 'ignore' });
    return { btl_ws_tls_cert_file: cert, btl_ws_tls_key_file: key };
  };
  let ours: Record<string, string>;
  let theirs: Record<string, string>;
  try {
    ours = make('ours');
    theirs = make('theirs');
  } catch {
    console.log('skipped: there is no openssl program to make certificates with');
    return;
  }
  const good = new SocketPair(MAKERS.ws, ours);
  await good.open();
  await good.connect();
  mustSend(good.ends[0], frameOf(8, [pattern(600_000)], { prompt: true }));
  good.ends[0].flush();
  await good.until('delivered', () => good.up[0].completions.length === 1);

  const bad = new SocketPair((context) => new WsModule(context), ours);
  bad.modules[1] = new WsModule(contextOf(1, bad.up[1], { values: theirs }));
  await bad.open();
  bad.ends[0].connect(1);
  await bad.until('failed', () => bad.up[0].events.length > 0);
  expect(bad.up[0].take()).toEqual(['failed 1 error']);
});

test('a lost address ends the rail as carrier, a new one is published', async () => {
  const pair = new SocketPair(MAKERS.tcp);
  let table = [{ name: 'lo', loopback: true, addresses: [{ address: '127.0.0.1', family: 4 as const, prefix: 8, linkLocal: false }] }];
  pair.modules[0] = new TcpModule(contextOf(0, pair.up[0]), () => table);
  await pair.open();
  await pair.connect();
  table = [{ ...table[0], addresses: [{ ...table[0].addresses[0], address: '127.0.0.2' }] }];
  await pair.until('carrier', () => pair.up[0].events.includes('down 1 carrier'));
  await pair.until('published', () => pair.up[0].events.includes('addressChanged'));
  expect((pair.modules[0].address() as PublishedAddresses).interfaces[0].addresses[0].address).toBe('127.0.0.2');
  pair.modules[1].remoteAddressChanged(0, pair.modules[0].address());
  await pair.connect(2);
});

test('this machine lists its loopback interface', () => {
  expect(Object.values(networkInterfaces()).some((entries) => entries?.some((entry) => entry.internal))).toBe(true);
});
