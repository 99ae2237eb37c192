#!/usr/bin/env node
// A million sends that are posted before any rail is up: do they end, and does the event loop of either rank stand still meanwhile? Build first.
//   npx multirail run -n 2 bench/loopback/million-sends.mjs [MESSAGES]      default 1000000
// Fails when the event loop stood still for more than 250 ms of the process's own processor time after the loop that posts them. The time
// on the clock is printed beside it: on a busy machine most of that belongs to other processes.
import { PerformanceObserver } from 'node:perf_hooks';
import { init } from 'multirail';

const STALL_MAX_MS = 250;
const LOOK_MS = 10;
const TAG = 1;
const LAST_TAG = 2;
/** The receiving program lets the event loop have its turn after so many messages: it would stand still by the program's own doing. */
const TURN = 1000;
const count = Number(process.argv[2] ?? 1_000_000);

const mpi = await init();
const comm = mpi.world;
const beganMs = performance.now();
const say = (text) => {
  const megabytes = Math.round(process.memoryUsage().rss / 1048576);
  console.log(`rank ${comm.rank}, ${((performance.now() - beganMs) / 1000).toFixed(1)} s, ${megabytes} MiB: ${text}`);
};

let collectedMs = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) collectedMs += entry.duration;
}).observe({ entryTypes: ['gc'] });

const worst = { cpuMs: 0, wallMs: 0 };
let lastMs = performance.now();
let lastCpu = process.cpuUsage();
function look() {
  const { user, system } = process.cpuUsage(lastCpu);
  worst.cpuMs = Math.max(worst.cpuMs, (user + system) / 1000);
  worst.wallMs = Math.max(worst.wallMs, performance.now() - lastMs);
  lastMs = performance.now();
  lastCpu = process.cpuUsage();
}
/** From here on what stands still counts. */
function watch() {
  lastMs = performance.now();
  lastCpu = process.cpuUsage();
  setInterval(look, LOOK_MS).unref();
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

const message = new Uint8Array(8);
if (comm.rank === 0) {
  const pending = [];
  for (let i = 0; i < count; i++) {
    const request = comm.isend(message, 1, TAG);
    if (!request.done) pending.push(request);
  }
  say(`${count} sends posted, ${pending.length} of them not done at once`);
  watch();
  await comm.send(message, 1, LAST_TAG);
  for (const request of pending) await request;
  say('all are done');
} else if (comm.rank === 1) {
  watch();
  await comm.recv(message, 0, LAST_TAG);
  say('all have arrived, unexpected');
  for (let left = count; left > 0; left -= TURN) {
    const requests = Array.from({ length: Math.min(TURN, left) }, () => comm.irecv(new Uint8Array(8), 0, TAG));
    for (const request of requests) await request;
    await turn();
  }
  say('all are received');
}
look();
say(
  `the event loop stood still for at most ${Math.round(worst.cpuMs)} ms of processor time, ${Math.round(worst.wallMs)} ms on the clock; garbage collection ${Math.round(collectedMs)} ms in all`,
);
await mpi.finalize();
if (worst.cpuMs > STALL_MAX_MS) process.exitCode = 1;
