// A pair of Node processes over an event-driven transport: net (onread and cork), ws, or zeromq.js PAIR. Rank 0 starts rank 1.
//   node event-pair.mjs net|ws|zeromq
// A receiver copies each payload into a buffer of its own, as every receive that matches by tag must.
// Imports cells.mjs; ws and zeromq from the bench's own folder of packages.
import { Buffer } from 'node:buffer';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { BYTES_MAX, CHECK_BYTES, checkPattern, fillPattern, LATENCY, measureCells, ORDER_BYTES, Order, windowOf } from './cells.mjs';

const packages = createRequire(join(import.meta.dirname, '../.cache/npm/package.json'));
const [kind] = process.argv.slice(2);
const rank = Number(process.env.PEERS_RANK ?? 0);
const outAll = Buffer.alloc(BYTES_MAX, 1);
const inAll = Buffer.alloc(BYTES_MAX, 1);
const READ_BYTES = 1024 * 1024;

/** Rank 0 starts rank 1, tells it where it listens, and hears the same from it. */
async function exchange(address) {
  if (rank === 0) {
    const child = fork(import.meta.filename, [kind], { env: { ...process.env, PEERS_RANK: '1' } });
    child.on('exit', (code) => {
      if (code !== 0) process.exit(1);
    });
    child.send(address);
    const [theirs] = await once(child, 'message');
    child.unref();
    child.channel.unref();
    return theirs;
  }
  const [theirs] = await once(process, 'message');
  process.send(address);
  process.channel.unref();
  return theirs;
}

/**
 * Transports: `send(payload)` queues a message; `flush()` ends a burst; `onMessage` is called when inAll holds the next message.
 * A frame on a plain socket is a length of 4 bytes and the payload. `onread` works for sockets that connect only, hence one connection
 * each way.
 */
async function openNet() {
  const transport = { onMessage() {} };
  let accepted;
  const isAccepted = new Promise((resolve) => {
    accepted = resolve;
  });
  const server = createServer({ noDelay: true }, accepted).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = await exchange(server.address().port);
  const head = Buffer.alloc(4);
  let headBytes = 0;
  let need = -1;
  let got = 0;
  const take = (count, chunk) => {
    let at = 0;
    while (at < count) {
      if (need < 0) {
        while (headBytes < 4 && at < count) head[headBytes++] = chunk[at++];
        if (headBytes < 4) return true;
        headBytes = 0;
        need = head.readUInt32LE(0);
        got = 0;
      }
      const part = Math.min(need - got, count - at);
      chunk.copy(inAll, got, at, at + part);
      got += part;
      at += part;
      if (got === need) {
        need = -1;
        transport.onMessage(got);
      }
    }
    return true;
  };
  const inbound = connect({ port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(READ_BYTES), callback: take } });
  const outbound = await isAccepted;
  if (inbound.connecting) await once(inbound, 'connect');
  outbound.on('error', () => undefined);
  inbound.on('error', () => undefined);
  server.close();
  // Frames of small messages are made once per size, so that a send is one write.
  const frames = new Map();
  const headOf = (bytes) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes);
    return length;
  };
  let isCorked = false;
  transport.send = (payload) => {
    if (!isCorked) {
      isCorked = true;
      outbound.cork();
    }
    if (payload.length > 8192 || payload.buffer !== outAll.buffer) {
      outbound.write(headOf(payload.length));
      outbound.write(payload);
      return;
    }
    let frame = frames.get(payload.length);
    if (frame === undefined) {
      frame = Buffer.concat([headOf(payload.length), payload]);
      frames.set(payload.length, frame);
    }
    outbound.write(frame);
  };
  transport.flush = () => {
    isCorked = false;
    outbound.uncork();
  };
  return transport;
}

async function openWs() {
  const WebSocket = packages('ws');
  const transport = { onMessage() {}, flush() {} };
  const options = { perMessageDeflate: false, maxPayload: 2 * BYTES_MAX };
  let socket;
  if (rank === 0) {
    const server = new WebSocket.WebSocketServer({ port: 0, host: '127.0.0.1', ...options });
    await once(server, 'listening');
    const connection = once(server, 'connection');
    await exchange(server.address().port);
    [socket] = await connection;
    server.close();
  } else {
    socket = new WebSocket(`ws://127.0.0.1:${await exchange(0)}`, options);
    // Rank 0 may speak as soon as the connection is open.
    listen();
    await once(socket, 'open');
  }
  function listen() {
    socket.binaryType = 'nodebuffer';
    socket.on('error', () => undefined);
    socket.on('message', (payload) => {
      payload.copy(inAll);
      transport.onMessage(payload.length);
    });
  }
  if (rank === 0) listen();
  socket._socket.setNoDelay(true);
  transport.send = (payload) => socket.send(payload, { binary: true, compress: false });
  return transport;
}

async function openZeromq() {
  const { Pair } = packages('zeromq');
  const transport = { onMessage() {}, flush() {} };
  const socket = new Pair({ sendHighWaterMark: 0, receiveHighWaterMark: 0, linger: 0 });
  if (rank === 0) {
    await socket.bind('tcp://127.0.0.1:*');
    await exchange(socket.lastEndpoint);
  } else {
    socket.connect(await exchange(''));
  }
  const queue = [];
  let isSending = false;
  const pump = async () => {
    isSending = true;
    for (let i = 0; i < queue.length; i++) await socket.send(queue[i]);
    queue.length = 0;
    isSending = false;
  };
  const fail = (error) => {
    console.error(error);
    process.exit(1);
  };
  transport.send = (payload) => {
    queue.push(payload);
    if (!isSending) pump().catch(fail);
  };
  const receive = async () => {
    for await (const [payload] of socket) {
      payload.copy(inAll);
      transport.onMessage(payload.length);
    }
  };
  receive().catch(fail);
  return transport;
}

const TRANSPORTS = { net: openNet, ws: openWs, zeromq: openZeromq };
const open = TRANSPORTS[kind];
if (open === undefined) {
  console.error('usage: node event-pair.mjs net|ws|zeromq');
  process.exit(2);
}

const transport = await open();
const small = Buffer.alloc(ORDER_BYTES);
const post = (payload) => {
  transport.send(payload);
  transport.flush();
};

/** Rank 0: one batch, as callbacks all the way, so that no promise is in what is measured. */
function batch(count, metric, bytes) {
  const out = outAll.subarray(0, bytes);
  const window = windowOf(bytes);
  return new Promise((resolve) => {
    let left = count;
    let startMs = 0;
    const unit =
      metric === LATENCY
        ? () => post(out)
        : () => {
            for (let i = 0; i < window; i++) transport.send(out);
            transport.flush();
          };
    const onAnswer = () => {
      if (--left === 0) resolve(performance.now() - startMs);
      else unit();
    };
    transport.onMessage = () => {
      transport.onMessage = onAnswer;
      startMs = performance.now();
      unit();
    };
    post(Buffer.from(new Order().set(count, metric, bytes).bytes));
  });
}

/** Rank 1: does what the orders say; resolves when it is over. */
function serve() {
  const order = new Order();
  return new Promise((resolve) => {
    const onOrder = () => {
      inAll.copy(order.bytes, 0, 0, ORDER_BYTES);
      let left = order.count;
      if (left === 0) return resolve();
      const out = outAll.subarray(0, order.sizeBytes);
      const window = windowOf(order.sizeBytes);
      let inWindow = 0;
      const onPing = () => {
        if (--left === 0) transport.onMessage = onOrder;
        post(out);
      };
      const onPart = () => {
        if (++inWindow < window) return;
        inWindow = 0;
        if (--left === 0) transport.onMessage = onOrder;
        post(small);
      };
      transport.onMessage = order.metric === LATENCY ? onPing : onPart;
      post(small);
    };
    transport.onMessage = onOrder;
  });
}

const nextMessage = () =>
  new Promise((resolve) => {
    transport.onMessage = resolve;
  });
const pattern = Buffer.alloc(CHECK_BYTES);
fillPattern(pattern, rank);
// Both sides speak only when they are spoken to, except for rank 1's first word: then its transport is known to be open.
if (rank === 1) {
  const arrived = nextMessage();
  post(pattern);
  await arrived;
  checkPattern(inAll, 0);
  const over = serve();
  post(small);
  await over;
  process.exit(0);
}
await nextMessage();
checkPattern(inAll, 1);
const isServing = nextMessage();
post(pattern);
await isServing;
await measureCells(batch);
post(Buffer.from(new Order().set(0, LATENCY, ORDER_BYTES).bytes));
setTimeout(() => process.exit(0), 100);
