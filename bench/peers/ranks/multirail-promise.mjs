// A rank of multirail with promise calls: ping-pong by send and recv, windows by isend and irecv with waitAll. Run by
// `multirail run -n 2`.
import { init, Request } from 'multirail';
import {
  BANDWIDTH,
  BYTES_MAX,
  CHECK_BYTES,
  checkPattern,
  fillPattern,
  LATENCY,
  measureCells,
  ORDER_BYTES,
  Order,
  windowOf,
} from './cells.mjs';

const DATA = 1;
const CONTROL = 2;

const mpi = await init();
const comm = mpi.world;
const { rank } = comm;
const peer = 1 - rank;
const outAll = new Uint8Array(BYTES_MAX).fill(1);
const inAll = new Uint8Array(BYTES_MAX).fill(1);
const ack = new Uint8Array(8);
const order = new Order();

fillPattern(outAll, rank);
if (rank === 0) await comm.send(outAll.subarray(0, CHECK_BYTES), peer, CONTROL);
await comm.recv(inAll.subarray(0, CHECK_BYTES), peer, CONTROL);
if (rank === 1) await comm.send(outAll.subarray(0, CHECK_BYTES), peer, CONTROL);
checkPattern(inAll, peer);

async function pingPong(count, out, into) {
  for (let i = 0; i < count; i++) {
    await comm.send(out, peer, DATA);
    await comm.recv(into, peer, DATA);
  }
}

async function pongPing(count, out, into) {
  for (let i = 0; i < count; i++) {
    await comm.recv(into, peer, DATA);
    await comm.send(out, peer, DATA);
  }
}

async function sendWindows(count, out, window) {
  const requests = new Array(window);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < window; j++) requests[j] = comm.isend(out, peer, DATA);
    await Request.waitAll(requests);
    await comm.recv(ack, peer, CONTROL);
  }
}

async function receiveWindows(count, into, window) {
  const requests = new Array(window);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < window; j++) requests[j] = comm.irecv(into, peer, DATA);
    await Request.waitAll(requests);
    await comm.send(ack, peer, CONTROL);
  }
}

async function batch(count, metric, bytes) {
  const out = outAll.subarray(0, bytes);
  const into = inAll.subarray(0, bytes);
  await comm.send(order.set(count, metric, bytes).bytes, peer, CONTROL);
  await comm.recv(ack, peer, CONTROL);
  const startMs = performance.now();
  if (metric === LATENCY) await pingPong(count, out, into);
  else await sendWindows(count, out, windowOf(bytes));
  return performance.now() - startMs;
}

if (rank === 0) {
  await measureCells(batch);
  await comm.send(order.set(0, LATENCY, ORDER_BYTES).bytes, peer, CONTROL);
} else {
  for (;;) {
    await comm.recv(order.bytes, peer, CONTROL);
    if (order.count === 0) break;
    await comm.send(ack, peer, CONTROL);
    const { count, metric, sizeBytes } = order;
    if (metric === BANDWIDTH) await receiveWindows(count, inAll.subarray(0, sizeBytes), windowOf(sizeBytes));
    else await pongPing(count, outAll.subarray(0, sizeBytes), inAll.subarray(0, sizeBytes));
  }
}
await mpi.finalize();
