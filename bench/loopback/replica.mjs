#!/usr/bin/env node
// What it costs that replicas compare what they send: one job of pairs next to two jobs of the same ranks that start together, so that as many
// processes compute, in turn. A matrix product of four ranks, from start to end; messages of 8 B between two ranks, one way; and an allreduce of two
// ranks, which goes by messages where they are compared, and through shared memory otherwise. Prints a section for bench/RESULTS.md. After `npm run build`.
//   node bench/loopback/replica.mjs [--pairs 10] [--passes 60] [--messages 20000] [--mca 'NAME VALUE']…
// Imports stats.mjs, node:*.
import { spawn } from 'node:child_process';
import { availableParallelism, cpus, loadavg } from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mcaArgs } from '../lib/mca.mjs';
import { median } from '../lib/stats.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const SELF = fileURLToPath(import.meta.url);
/** Set for a rank of a job that is measured: what it does, and how much of it. */
const KIND = 'MULTIRAIL_REPLICA_KIND';
const ROWS = 60;
const RUN_TIMEOUT_MS = 300_000;
const WARMUP_MESSAGES = 20_000;
/** Doubles that are added up. */
const SUMS = { '8 B': 1, '64 KiB': 8192 };
/** Targets: of the time of the product, and of the one-way latency of the channel between the two. */
const PRODUCT_MORE = 0.03;
const LATENCIES_MORE = 2;

/** The product of paper 001: nothing is sent between the broadcast and the gather. */
async function product(mpi, passes) {
  const { world } = mpi;
  const { rank, size } = world;
  const order = ROWS * size;
  const a = new Float64Array(ROWS * order);
  const b = new Float64Array(order * order);
  const c = new Float64Array(ROWS * order);
  const whole = rank === 0 ? Float64Array.from({ length: order * order }, (_, i) => (i % 11) - 5) : null;
  if (rank === 0) b.set(whole);
  await world.scatter(whole, a, 0);
  await world.bcast(b, 0);
  for (let pass = 0; pass < passes; pass++) {
    c.fill(0);
    for (let row = 0; row < ROWS; row++)
      for (let k = 0; k < order; k++) {
        const factor = a[row * order + k];
        for (let j = 0; j < order; j++) c[row * order + j] += factor * b[k * order + j];
      }
  }
  const all = rank === 0 ? new Float64Array(order * order) : null;
  await world.gather(c, all, 0);
  if (all !== null) await mpi.replica?.validate(all);
}

/** One way, in microseconds: the replicas must do the same, so the counts are fixed. */
async function latency(mpi, messages) {
  const { world } = mpi;
  const peer = 1 - world.rank;
  const [out, into] = [new Uint8Array(8), new Uint8Array(8)];
  const play = async (count) => {
    for (let i = 0; i < count; i++) {
      if (world.rank === 0) await world.send(out, peer, 1);
      await world.recv(into, peer, 1);
      if (world.rank === 1) await world.send(out, peer, 1);
    }
  };
  await play(Math.min(messages, WARMUP_MESSAGES));
  const fromMs = performance.now();
  await play(messages);
  return ((performance.now() - fromMs) * 1000) / messages / 2;
}

/** Microseconds of an allreduce. */
async function allreduce(mpi, Op, { count, length }) {
  const { world } = mpi;
  const [own, sum] = [new Float64Array(length).fill(1), new Float64Array(length)];
  const play = async (times) => {
    for (let i = 0; i < times; i++) await world.allreduce(own, sum, Op.SUM);
  };
  await play(Math.min(count, WARMUP_MESSAGES));
  const fromMs = performance.now();
  await play(count);
  return ((performance.now() - fromMs) * 1000) / count;
}

async function rank(text) {
  const task = JSON.parse(text);
  const { init, Op } = await import('multirail');
  const mpi = await init();
  const works = {
    product: () => product(mpi, task.count),
    latency: () => latency(mpi, task.count),
    allreduce: () => allreduce(mpi, Op, task),
  };
  const us = await works[task.kind]();
  if (mpi.rank === 0 && us !== undefined) console.log(us);
  await mpi.finalize();
}

/** Runs a job to its end: what its rank 0 has printed. */
function job(ranks, task, replicas, mca) {
  return new Promise((resolve, reject) => {
    const args = [
      CLI,
      'run',
      '-n',
      String(ranks),
      '--no-prefix',
      ...(replicas === 1 ? [] : ['--replicas', String(replicas)]),
      ...mca,
      SELF,
    ];
    const child = spawn(process.execPath, args, { timeout: RUN_TIMEOUT_MS, env: { ...process.env, [KIND]: JSON.stringify(task) } });
    let said = '';
    let complaint = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
    });
    child.stderr.on('data', (chunk) => {
      complaint += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve(Number(said)) : reject(new Error(`the job has ended with ${code}: ${complaint}`))));
  });
}

/** Both ways, in an order that changes from pair to pair. */
async function inTurn(pairs, two, paired) {
  const found = [];
  for (let i = 0; i < pairs; i++) {
    const order = i % 2 === 0 ? [two, paired] : [paired, two];
    const values = [await order[0](), await order[1]()];
    found.push(i % 2 === 0 ? { two: values[0], paired: values[1] } : { two: values[1], paired: values[0] });
    process.stderr.write(`pair ${i + 1} of ${pairs}: ${found[i].two.toFixed(2)} and ${found[i].paired.toFixed(2)}\n`);
  }
  return found;
}

const seconds = async (work) => {
  const fromMs = performance.now();
  await work();
  return (performance.now() - fromMs) / 1000;
};

async function compare() {
  const { values } = parseArgs({
    options: {
      pairs: { type: 'string', default: '10' },
      passes: { type: 'string', default: '60' },
      messages: { type: 'string', default: '20000' },
      mca: { type: 'string', multiple: true, default: [] },
    },
  });
  const [pairs, passes, messages] = [values.pairs, values.passes, values.messages].map(Number);
  for (const [name, count] of Object.entries({ pairs, passes, messages }))
    if (!Number.isInteger(count) || count < 1) throw new Error(`--${name} ${values[name]}: expected a whole number from 1`);
  const mca = mcaArgs(values.mca);
  const load = loadavg()[0].toFixed(2);
  const work = { kind: 'product', count: passes };
  const talk = { kind: 'latency', count: messages };
  const products = await inTurn(
    pairs,
    () => seconds(() => Promise.all([job(4, work, 1, mca), job(4, work, 1, mca)])),
    () => seconds(() => job(4, work, 2, mca)),
  );
  const latencies = await inTurn(
    pairs,
    async () => Math.max(...(await Promise.all([job(2, talk, 1, mca), job(2, talk, 1, mca)]))),
    () => job(2, talk, 2, mca),
  );
  const sums = {};
  for (const [name, length] of Object.entries(SUMS)) {
    const task = { kind: 'allreduce', count: Math.ceil(messages / 10), length };
    sums[name] = await inTurn(
      pairs,
      async () => Math.max(...(await Promise.all([job(2, task, 1, mca), job(2, task, 1, mca)]))),
      () => job(2, task, 2, mca),
    );
  }
  const middle = (list, of) => median(list.map(of));
  const more = middle(products, ({ two, paired }) => paired / two - 1);
  const times = middle(latencies, ({ two, paired }) => (paired - two) / two);
  const verdict = (isMet) => (isMet ? 'met' : '**missed**');
  const two = middle(latencies, (one) => one.two);
  console.log(
    [
      '## Replicas',
      '',
      `\`node bench/loopback/replica.mjs --pairs ${pairs} --passes ${passes} --messages ${messages}\`, ${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} × ${cpus()[0].model.trim()}, Node ${process.version}; load before ${load}.`,
      `Medians of ${pairs} pairs in turn; as many processes on both sides. More: the median of the pairs.`,
      '',
      '| | two jobs at once | one job of pairs | more | target |',
      '| --- | ---: | ---: | ---: | --- |',
      `| matrix product, 4 ranks, order ${4 * ROWS}, from start to end | ${middle(products, (one) => one.two).toFixed(2)} s | ${middle(products, (one) => one.paired).toFixed(2)} s | ${(100 * more).toFixed(1)} % | ≤ ${100 * PRODUCT_MORE} %: ${verdict(more <= PRODUCT_MORE)} |`,
      `| 8 B, one way, promises, 2 ranks | ${two.toFixed(1)} µs | ${middle(latencies, (one) => one.paired).toFixed(1)} µs | ${times.toFixed(1)} × one way | ≤ ${LATENCIES_MORE} × one way: ${verdict(times <= LATENCIES_MORE)} |`,
      ...Object.entries(sums).map(([name, list]) => {
        const ratio = middle(list, (one) => one.paired / one.two);
        return `| allreduce of ${name}, promises, 2 ranks | ${middle(list, (one) => one.two).toFixed(1)} µs | ${middle(list, (one) => one.paired).toFixed(1)} µs | ${ratio.toFixed(1)} × | by messages, and compared |`;
      }),
    ].join('\n'),
  );
}

if (process.env[KIND] === undefined) await compare();
else await rank(process.env[KIND]);
