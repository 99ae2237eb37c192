// What a log costs a message, in processor time: two message layers in one process, whose frames are handed from one to the other as rails in
// memory do (copied once, taken in words, or copied into the buffer of the receive), send messages there and back on a context that is logged
// and on one that is not, in turn. One process that waits for nobody, so that other work on the machine counts for little. Prints the least and
// the median of the rounds, for each length, and what a commit of all costs.
//
//   node bench/loopback/log-cost.mjs [--sizes 8,64,1024,1048576] [--rounds 15] [--messages 20000]
//
// Between two saves are so many messages, half of them each way, and of long ones no more than half of the log holds.
// Imports stats.mjs, the sources of src/pml and src/ft/log by esbuild.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { median } from '../lib/stats.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SOURCES = `
  export { Pml } from './src/pml/pml.ts';
  export { SendLog } from './src/ft/log/send-log.ts';
  export { crc32c } from './src/native/crc32c.ts';
  export { Iov } from './src/util/iov.ts';
  export { DELIVERED, OK } from './src/btl/btl.ts';`;

const LOGGED = 20;
const PLAIN = 24;
const EAGER_BYTES_MAX = 65_536;
const CREDIT_BYTES = 2 ** 24;
const LOG_BYTES_MAX = 2 ** 28;
const NO_BYTES = new Uint8Array(0);

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '8,64,1024,1048576' },
    rounds: { type: 'string', default: '15' },
    messages: { type: 'string', default: '20000' },
  },
});
const rounds = Number(values.rounds);
const messagesMax = Number(values.messages);

async function load() {
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.cache', 'log-cost-'));
  try {
    const outfile = join(folder, 'sources.mjs');
    await build({
      stdin: { contents: SOURCES, resolveDir: ROOT, loader: 'ts' },
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const { Pml, SendLog, crc32c, Iov, DELIVERED, OK } = await load();

/** Frames of each side that are on their way. */
const frames = [[], []];

/** A message layer over one rail that takes every frame. */
function side(rank) {
  const endpoint = {
    outstandingBytes: 0,
    send(frame) {
      frames[rank].push(frame);
      return OK;
    },
  };
  const attributes = { canPut: false, canGet: false, frameBytesMax: EAGER_BYTES_MAX };
  const rail = { endpoint, attributes, hasRoom: true, needsFlush: false, index: 0, fragScale: 1 };
  const peer = {
    eager: [rail],
    send: [rail],
    put: [],
    get: [],
    byNumber: [rail],
    eagerBytesMax: EAGER_BYTES_MAX,
    inlineBytesMax: EAGER_BYTES_MAX,
    putsAll: false,
    isReadWorth: () => false,
  };
  const pml = new Pml(
    {
      rank,
      eagerLimitBytes: EAGER_BYTES_MAX,
      rndvInlineBytes: 256,
      fragBytes: EAGER_BYTES_MAX,
      retainedBytesMax: CREDIT_BYTES,
      abandonedBytesMax: CREDIT_BYTES,
      unexpectedBytesMax: CREDIT_BYTES,
      traceEntries: 64,
    },
    { isChosen: () => false, handleBusy: () => {} },
  );
  pml.addPeer(1 - rank, peer, CREDIT_BYTES);
  const succession = pml.log({ log: new SendLog({ bytesMax: LOG_BYTES_MAX }), covers: (ctx) => ctx === LOGGED, digest: crc32c }, [0, 1]);
  return { pml, succession, ended: undefined };
}

const sides = [side(0), side(1)];
const words = new Int32Array(EAGER_BYTES_MAX / 2);
const bytes = new Uint8Array(words.buffer);

/** A fragment goes where its message says. */
function place(pml, from, header, payload) {
  const sink = pml.sinkFor(from, 0, header, payload.length);
  let at = 0;
  for (const view of sink.views) {
    view.set(payload.subarray(at, at + view.length));
    at += view.length;
  }
  pml.handleFrame(from, header, NO_BYTES, sink);
}

/** All that has left that side comes to the other, and is known to have. */
function deliver(from) {
  const { pml } = sides[1 - from];
  for (const frame of frames[from]) {
    const headerBytes = frame.header.length;
    for (let i = 0; i < (headerBytes + 3) >> 2; i++) words[i] = frame.headerWords[i];
    let at = headerBytes;
    for (const view of frame.payload) {
      if (view.length <= 48) for (let i = 0; i < view.length; i++) bytes[at + i] = view[i];
      else bytes.set(view, at);
      at += view.length;
    }
    const payload = bytes.subarray(headerBytes, at);
    if (frame.placed) place(pml, from, bytes.slice(0, headerBytes), payload);
    else if (!pml.handleFrameWords(from, words, 0, headerBytes, headerBytes >> 2, frame.payloadBytes))
      pml.handleFrame(from, bytes.slice(0, headerBytes), payload, null);
    sides[from].pml.handleCompleted(frame, DELIVERED);
  }
  frames[from].length = 0;
}

/** Processor time of a message in microseconds, both sides together. */
function messageUs(ctx, length, messages) {
  const out = new Iov([new Uint8Array(length).fill(3)]);
  const into = new Iov([new Uint8Array(length)]);
  const before = process.cpuUsage();
  for (let i = 0; i < messages; i++) {
    const from = i & 1;
    const [sender, receiver] = [sides[from], sides[1 - from]];
    const request = receiver.pml.irecv(from, ctx, 1, into, receiver.ended);
    if (!sender.pml.sendEager(1 - from, ctx, 1, out)) sender.pml.isend(1 - from, ctx, 1, out);
    do {
      for (const { pml } of sides) {
        pml.pump();
        for (let rail = pml.railsToFlush.pop(); rail !== undefined; rail = pml.railsToFlush.pop()) rail.needsFlush = false;
      }
      deliver(0);
      deliver(1);
    } while (sides.some(({ pml }) => pml.hasWork));
    if (!request.done) throw new Error('a message has not come');
    receiver.ended = request;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / messages;
}

for (const length of values.sizes.split(',').map(Number)) {
  const messages = Math.min(messagesMax, Math.floor(LOG_BYTES_MAX / length));
  const times = { plain: [], logged: [], commitMs: [] };
  // The first rounds are not counted: code is compiled, and memory is touched.
  for (let round = -2; round < rounds; round++) {
    const [plain, logged] = [messageUs(PLAIN, length, messages), messageUs(LOGGED, length, messages)];
    const beganMs = performance.now();
    for (const { succession } of sides) succession.commit(succession.cut());
    const commitMs = performance.now() - beganMs;
    if (round < 0) continue;
    times.plain.push(plain);
    times.logged.push(logged);
    times.commitMs.push(commitMs);
  }
  const text = (list) => `${Math.min(...list).toFixed(3)} (median ${median(list).toFixed(3)})`;
  const more = times.logged.map((logged, i) => logged - times.plain[i]);
  console.log(
    `${length} B: ${text(times.plain)} us, logged ${text(times.logged)} us, more in pairs ${median(more).toFixed(3)} us; commit of ${messages} messages ${text(times.commitMs)} ms`,
  );
}
