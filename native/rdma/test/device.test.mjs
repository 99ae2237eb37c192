// node-rdma over real queue pairs: soft-RoCE devices rxe0 and rxe1, whose cables the command `wire` pulls. Run inside the guest by
// `node test/vm/vm.mjs -- node --test native/rdma/test/device.test.mjs`. Imports node:*, node-rdma.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import {
  ACCESS,
  COMPLETION,
  devices,
  EVENT,
  LINK_LAYER,
  live,
  memory,
  OPCODE,
  openDevice,
  PORT_STATE,
  QP_STATE,
  REQUEST_WORDS,
  SEND_FLAG,
  STATUS,
  unavailable,
  writeRequest,
} from '../index.js';
import { connectedEnds, End, PORT } from './pair.mjs';

const wire = (...args) => execFileSync('wire', args.map(String));
const fill = (bytes, seed) => {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 131 + (i >> 8) + seed) & 0xff;
};
const NOTHING = { devices: 0, domains: 0, regions: 0, channels: 0, completionQueues: 0, queuePairs: 0 };

after(() => assert.deepEqual(live(), NOTHING));

test('devices, ports and GIDs', () => {
  assert.equal(unavailable(), undefined);
  const names = devices().map(({ name }) => name);
  assert.ok(names.includes('rxe0') && names.includes('rxe1'), names.join());
  const device = openDevice('rxe0');
  assert.ok(device.query().queuePairsMax > 0);
  const port = device.queryPort(PORT);
  assert.equal(port.state, PORT_STATE.ACTIVE);
  assert.equal(port.linkLayer, LINK_LAYER.ETHERNET);
  const gids = device.gids(PORT);
  assert.ok(gids.some(({ gid, type, netdev }) => type === 'RoCE v2' && netdev === 'veth0' && gid.subarray(12).join('.') === '10.9.0.1'));
  assert.equal(device.nextEvent(), undefined);
  device.close();
  device.close();
  assert.throws(() => device.query(), { code: 'ERR_RDMA_CLOSED' });
  assert.throws(() => openDevice('none'), /ibv_open_device/);
});

test('SEND, inline, WRITE, WRITE_WITH_IMM and READ carry the bytes', async () => {
  const [a, b] = connectedEnds(1 << 18, { pair: { inlineBytes: 64 } });
  fill(a.memory.subarray(0, 65536), 1);
  b.receive({ id: 2 ** 40 + 5, pieces: [[b.region, 1000, 65536]] });
  a.send({ opcode: OPCODE.SEND, id: 3, pieces: [[a.region, 0, 65536]] });
  assert.deepEqual(await a.completion(), { id: 3, status: STATUS.SUCCESS, opcode: COMPLETION.SEND, bytes: 65536, immediate: 0, number: a.pair.number });
  const received = await b.completion();
  assert.equal(received.id, 2 ** 40 + 5);
  assert.equal(received.opcode, COMPLETION.RECV);
  assert.equal(received.bytes, 65536);
  assert.deepEqual(b.memory.subarray(1000, 1000 + 65536), a.memory.subarray(0, 65536));

  b.receive({ id: 1, pieces: [[b.region, 0, 64]] });
  a.send({ opcode: OPCODE.SEND, flags: SEND_FLAG.SIGNALED | SEND_FLAG.INLINE, id: 4, pieces: [[a.region, 7, 33]] });
  a.memory.fill(0xee, 7, 40);
  assert.equal((await a.completion()).status, STATUS.SUCCESS);
  assert.equal((await b.completion()).bytes, 33);
  assert.equal(b.memory[0], (7 * 131 + 1) & 0xff, 'an inline send has copied its bytes when the post returns');

  fill(a.memory, 9);
  a.send({ opcode: OPCODE.WRITE, id: 5, pieces: [[a.region, 0, 1 << 17]], remoteAddress: b.region.address + 4096n, rkey: b.region.rkey });
  assert.equal((await a.completion()).status, STATUS.SUCCESS);
  assert.deepEqual(b.memory.subarray(4096, 4096 + (1 << 17)), a.memory.subarray(0, 1 << 17));

  b.receive({ id: 8 });
  a.send({
    opcode: OPCODE.WRITE_WITH_IMM,
    id: 6,
    immediate: 0xdeadbeef,
    pieces: [[a.region, 100, 10]],
    remoteAddress: b.region.address,
    rkey: b.region.rkey,
  });
  assert.equal((await a.completion()).status, STATUS.SUCCESS);
  const told = await b.completion();
  assert.equal(told.opcode, COMPLETION.RECV_WRITE_WITH_IMM);
  assert.equal(told.immediate, 0xdeadbeef);

  fill(b.memory, 77);
  a.send({ opcode: OPCODE.READ, id: 7, pieces: [[a.region, 0, 100_000]], remoteAddress: b.region.address + 3n, rkey: b.region.rkey });
  assert.equal((await a.completion()).status, STATUS.SUCCESS);
  assert.deepEqual(a.memory.subarray(0, 100_000), b.memory.subarray(3, 100_003));
  a.close();
  b.close();
});

test('a list of requests with several pieces goes in one call; a bad one in the middle is told', async () => {
  const [a, b] = connectedEnds(1 << 16, { pair: { sendPieces: 3 } });
  fill(a.memory, 5);
  const words = new Uint32Array(40 * REQUEST_WORDS);
  for (let i = 0; i < 40; i++) {
    const pieces = [
      [a.region, i * 10, 4],
      [a.region, i * 10 + 4, 6],
    ];
    writeRequest(words, i, {
      opcode: OPCODE.WRITE,
      flags: i === 39 ? SEND_FLAG.SIGNALED : 0,
      id: i,
      pieces,
      remoteAddress: b.region.address + BigInt(i * 10),
      rkey: b.region.rkey,
    });
  }
  assert.equal(a.pair.postSend(words, 40), 40);
  assert.equal((await a.completion()).id, 39);
  assert.deepEqual(b.memory.subarray(0, 400), a.memory.subarray(0, 400));
  // Beyond the end of the region: refused here, and nothing behind it is posted.
  words[36 * REQUEST_WORDS + 12 + 3] = 1 << 20;
  assert.equal(a.pair.postSend(words, 40), 36);
  assert.equal(words[36 * REQUEST_WORDS + 9], 22);
  a.close();
  b.close();
});

test('a write into memory that is no longer registered ends the queue pair at its initiator', async () => {
  const [a, b] = connectedEnds(4096);
  const { address, rkey } = b.region;
  b.region.close();
  a.send({ opcode: OPCODE.WRITE, id: 1, pieces: [[a.region, 0, 64]], remoteAddress: address, rkey });
  assert.equal((await a.completion()).status, STATUS.REM_ACCESS_ERR);
  assert.equal(a.pair.query().state, QP_STATE.ERR);
  a.close();
  b.close();
});

test('no posted receive: RNR is repeated until there is one, or until the count is used up', async () => {
  // The clock of the acknowledgement runs on meanwhile in soft-RoCE: 1 s, for a guest that is slow.
  const [a, b] = connectedEnds(4096, { connection: { timeout: 18 } });
  a.send({ opcode: OPCODE.SEND, id: 1, pieces: [[a.region, 0, 64]] });
  await new Promise((resolve) => setTimeout(resolve, 50));
  b.receive({ id: 2, pieces: [[b.region, 0, 64]] });
  assert.equal((await a.completion()).status, STATUS.SUCCESS);
  a.close();
  b.close();
  const [c, d] = connectedEnds(4096, { connection: { rnrRetry: 1 } });
  c.send({ opcode: OPCODE.SEND, id: 1, pieces: [[c.region, 0, 64]] });
  assert.equal((await c.completion()).status, STATUS.RNR_RETRY_EXC_ERR);
  c.close();
  d.close();
});

test('a write of nothing needs no memory at the other side, and is acknowledged by its device', async () => {
  const [a, b] = connectedEnds(4096);
  for (let i = 0; i < 20; i++) {
    a.send({ opcode: OPCODE.WRITE, id: i });
    assert.deepEqual(((await a.completion()).status), STATUS.SUCCESS);
  }
  a.send({ opcode: OPCODE.WRITE, id: 99, pieces: [[a.region, 0, 64]], remoteAddress: b.region.address, rkey: b.region.rkey });
  assert.equal((await a.completion()).id, 99);
  a.close();
  b.close();
});

/** Keeps writes of one value after the other into all of the other side's memory under way, until one fails; answers with its status. */
async function writeOn(from, to, whileRunning) {
  let value = 1;
  let open = 0;
  for (;;) {
    while (open < 8) {
      from.memory.fill(value++ & 0xff);
      from.send({ opcode: OPCODE.WRITE, id: value, pieces: [[from.region, 0, from.memory.length]], remoteAddress: to.address, rkey: to.rkey });
      open++;
    }
    const { status } = await from.completion();
    if (status !== STATUS.SUCCESS) return status;
    open--;
    whileRunning();
  }
}

test('once a queue pair is destroyed not a byte of the peer lands, however it goes on writing', async () => {
  for (let round = 0; round < 10; round++) {
    const [a, b] = connectedEnds(1 << 16);
    let written = 0;
    let before;
    const status = await writeOn(a, { address: b.region.address, rkey: b.region.rkey }, () => {
      if (++written !== 5 + round) return;
      b.pair.modify({ state: QP_STATE.ERR });
      b.pair.close();
      before = b.memory.slice();
    });
    assert.notEqual(status, STATUS.SUCCESS);
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.ok(before.some((byte) => byte !== 0), 'nothing had landed: the test would prove nothing');
    assert.deepEqual(b.memory, before);
    a.close();
    b.close();
  }
});

test('once memory is deregistered under writes not a byte lands in it, and the writer is told', async () => {
  for (let round = 0; round < 10; round++) {
    const [a, b] = connectedEnds(1 << 16);
    const target = new Uint8Array(1 << 16);
    const region = b.domain.register(target, ACCESS.LOCAL_WRITE | ACCESS.REMOTE_WRITE);
    let written = 0;
    let before;
    const status = await writeOn(a, { address: region.address, rkey: region.rkey }, () => {
      if (++written !== 5 + round) return;
      region.close();
      before = target.slice();
    });
    assert.equal(status, STATUS.REM_ACCESS_ERR);
    assert.ok(before.some((byte) => byte !== 0), 'nothing had landed: the test would prove nothing');
    assert.deepEqual(target, before);
    a.close();
    b.close();
  }
});

test('a pulled cable: RETRY_EXC_ERR, an event of the port, and a fresh pair once it is back', async () => {
  const [a, b] = connectedEnds(1 << 16);
  wire('cut', 1);
  a.send({ opcode: OPCODE.WRITE, id: 1, pieces: [[a.region, 0, 64]], remoteAddress: b.region.address, rkey: b.region.rkey });
  assert.equal((await a.completion()).status, STATUS.RETRY_EXC_ERR);
  assert.deepEqual(b.device.nextEvent(), { type: EVENT.PORT_ERR, of: PORT });
  assert.equal(b.device.queryPort(PORT).state, PORT_STATE.DOWN);
  wire('mend', 1);
  assert.equal(b.device.nextEvent()?.type, EVENT.PORT_ACTIVE);
  for (const end of [a, b]) {
    end.pair.close();
    end.makePair();
  }
  a.connectTo(b);
  b.connectTo(a);
  fill(a.memory, 3);
  a.send({ opcode: OPCODE.WRITE, id: 2, pieces: [[a.region, 0, 4096]], remoteAddress: b.region.address, rkey: b.region.rkey });
  assert.equal((await a.completion()).status, STATUS.SUCCESS);
  assert.deepEqual(b.memory.subarray(0, 4096), a.memory.subarray(0, 4096));
  a.close();
  b.close();
});

test('a queue pair that is moved to error flushes what was posted', async () => {
  const [a, b] = connectedEnds(4096);
  for (let i = 0; i < 5; i++) b.receive({ id: i, pieces: [[b.region, 0, 64]] });
  b.pair.modify({ state: QP_STATE.ERR });
  for (let i = 0; i < 5; i++) assert.deepEqual((await b.completion()).status, STATUS.WR_FLUSH_ERR);
  a.close();
  b.close();
});

test('a completion channel rings once for a queue that asked', async () => {
  const end = new End('rxe0', 4096);
  const other = new End('rxe1', 4096);
  const channel = end.device.createChannel();
  end.queue.close();
  end.queue = end.device.createCompletionQueue(16, channel);
  for (const each of [end, other]) each.makePair();
  end.connectTo(other);
  other.connectTo(end);
  end.queue.requestNotify();
  assert.equal(channel.takeEvents(), 0);
  end.send({ opcode: OPCODE.WRITE, id: 1, pieces: [[end.region, 0, 8]], remoteAddress: other.region.address, rkey: other.region.rkey });
  assert.equal((await end.completion()).status, STATUS.SUCCESS);
  assert.equal(channel.takeEvents(), 1);
  assert.equal(channel.takeEvents(), 0);
  channel.close();
  end.close();
  other.close();
});

test('objects may be closed in any order, and what was closed first goes with the last that needs it', () => {
  const device = openDevice('rxe0');
  const domain = device.allocDomain();
  const queue = device.createCompletionQueue(16);
  const region = domain.register(memory(8192), ACCESS.LOCAL_WRITE);
  const pair = domain.createQueuePair({ sendQueue: queue });
  device.close();
  domain.close();
  queue.close();
  assert.deepEqual(live(), { devices: 1, domains: 1, regions: 1, channels: 0, completionQueues: 1, queuePairs: 1 });
  pair.close();
  assert.deepEqual(live(), { devices: 1, domains: 1, regions: 1, channels: 0, completionQueues: 0, queuePairs: 0 });
  region.close();
  assert.deepEqual(live(), NOTHING);
});

test('a worker thread has objects of its own, which go with it', async () => {
  const code = `import { openDevice } from ${JSON.stringify(new URL('../index.js', import.meta.url).href)};
    const device = openDevice('rxe1');
    const domain = device.allocDomain();
    domain.register(new Uint8Array(4096), 1);
    domain.createQueuePair({ sendQueue: device.createCompletionQueue(8) });`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  assert.equal(await new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject)), 0);
  assert.deepEqual(live(), NOTHING);
  const left = JSON.parse(execFileSync('rdma', ['-j', 'resource', 'show', 'qp'], { encoding: 'utf8' }));
  assert.deepEqual(
    left.filter(({ comm }) => comm === 'node'),
    [],
  );
});

test('the collector does not take memory that is registered', async () => {
  const device = openDevice('rxe0');
  const domain = device.allocDomain();
  const regions = [];
  for (let i = 0; i < 50; i++) regions.push(domain.register(new Uint8Array(100_000).fill(i), ACCESS.LOCAL_WRITE));
  for (let i = 0; i < 200; i++) new Uint8Array(1_000_000).fill(0xff);
  await new Promise((resolve) => setTimeout(resolve, 10));
  for (const [i, region] of regions.entries()) assert.ok(region.bytes.every((byte) => byte === i));
  for (const region of regions) region.close();
  domain.close();
  device.close();
});
