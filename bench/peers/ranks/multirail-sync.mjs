// A rank of multirail with synchronous calls: ping-pong by sendSync and recvSync; windows by isend and irecv with waitAllSync, or with
// `--blocking` by sendSync and recvSync alone, which make no Request. Run by `multirail run -n 2`.
import process from 'node:process';
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

const isBlocking = process.argv.includes('--blocking');
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
if (rank === 0) comm.sendSync(outAll.subarray(0, CHECK_BYTES), peer, CONTROL);
comm.recvSync(inAll.subarray(0, CHECK_BYTES), peer, CONTROL);
if (rank === 1) comm.sendSync(outAll.subarray(0, CHECK_BYTES), peer, CONTROL);
checkPattern(inAll, peer);

function pingPong(count, out, into) {
  for (let i = 0; i < count; i++) {
    comm.sendSync(out, peer, DATA);
    comm.recvSync(into, peer, DATA);
  }
}

function pongPing(count, out, into) {
  for (let i = 0; i < count; i++) {
    comm.recvSync(into, peer, DATA);
    comm.sendSync(out, peer, DATA);
  }
}

function sendWindows(count, out, window) {
  const requests = new Array(window);
  for (let i = 0; i < count; i++) {
    if (isBlocking) {
      for (let j = 0; j < window; j++) comm.sendSync(out, peer, DATA);
    } else {
      for (let j = 0; j < window; j++) requests[j] = comm.isend(out, peer, DATA);
      Request.waitAllSync(requests);
    }
    comm.recvSync(ack, peer, CONTROL);
  }
}

function receiveWindows(count, into, window) {
  const requests = new Array(window);
  for (let i = 0; i < count; i++) {
    if (isBlocking) {
      for (let j = 0; j < window; j++) comm.recvSync(into, peer, DATA);
    } else {
      for (let j = 0; j < window; j++) requests[j] = comm.irecv(into, peer, DATA);
      Request.waitAllSync(requests);
    }
    comm.sendSync(ack, peer, CONTROL);
  }
}

function batch(count, metric, bytes) {
  const out = outAll.subarray(0, bytes);
  const into = inAll.subarray(0, bytes);
  comm.sendSync(order.set(count, metric, bytes).bytes, peer, CONTROL);
  comm.recvSync(ack, peer, CONTROL);
  const startMs = performance.now();
  if (metric === LATENCY) pingPong(count, out, into);
  else sendWindows(count, out, windowOf(bytes));
  return performance.now() - startMs;
}

if (rank === 0) {
  await measureCells(batch);
  comm.sendSync(order.set(0, LATENCY, ORDER_BYTES).bytes, peer, CONTROL);
} else {
  for (;;) {
    comm.recvSync(order.bytes, peer, CONTROL);
    if (order.count === 0) break;
    comm.sendSync(ack, peer, CONTROL);
    const { count, metric, sizeBytes } = order;
    if (metric === BANDWIDTH) receiveWindows(count, inAll.subarray(0, sizeBytes), windowOf(sizeBytes));
    else pongPing(count, outAll.subarray(0, sizeBytes), inAll.subarray(0, sizeBytes));
  }
}
await mpi.finalize();
