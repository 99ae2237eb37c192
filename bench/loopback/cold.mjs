#!/usr/bin/env node
// What calls cost in a program that has just begun, and once V8 has compiled what they need: pairs of sendSync and recvSync, allreduceSync, and
// windows of isend and irecv, 8 B, two ranks. Prints a section for bench/RESULTS.md with rows called cold and steady. After `npm run build`.
//   node bench/loopback/cold.mjs [--rounds 5] [--btl sm,tcp] [--mca 'NAME VALUE']…
// Imports stats.mjs, node:*.
import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg } from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mcaArgs } from '../lib/mca.mjs';
import { median } from '../lib/stats.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const SELF = fileURLToPath(import.meta.url);
/** Set for a rank of the job that is measured: what it calls. */
const KIND = 'MULTIRAIL_COLD_KIND';
const KINDS = { pair: 'sendSync and recvSync', allreduce: 'allreduceSync', window: 'isend and irecv, windows of 50' };
const RUN_TIMEOUT_MS = 60_000;
const COLD_CALLS = 500;
const WINDOW = 50;
/** Between the cold calls and the steady ones, and the steady ones: enough for V8, and where others keep the processors busy, what fits in so long. */
const WARMUP_CALLS = 100_000;
const STEADY_CALLS = 20_000;
const STAGE_MS = 4000;
const PIECE_CALLS = 500;
/** The second calls may take so many times as long as the steady ones. */
const LIMIT = 3;

/** One rank: microseconds of a call, for the first 500, the second 500, and later. */
async function rank(kind) {
  const { init, Op } = await import('multirail');
  const mpi = await init();
  const { world } = mpi;
  const peer = 1 - world.rank;
  const bytes = new Uint8Array(8);
  const [mine, sum] = [new Float64Array(1), new Float64Array(1)];
  const calls = {
    async pair(count) {
      for (let i = 0; i < count; i++) {
        if (world.rank === 0) world.sendSync(bytes, peer, 1);
        world.recvSync(bytes, peer, 1);
        if (world.rank === 1) world.sendSync(bytes, peer, 1);
      }
    },
    async allreduce(count) {
      for (let i = 0; i < count; i++) world.allreduceSync(mine, sum, Op.SUM);
    },
    async window(count) {
      for (let left = count; left > 0; left -= WINDOW) {
        const requests = [];
        for (let i = 0; i < WINDOW; i++) requests.push(world.rank === 0 ? world.isend(bytes, peer, 1) : world.irecv(bytes, peer, 1));
        for (const request of requests) await request;
        if (world.rank === 0) await world.recv(bytes, peer, 2);
        else await world.send(bytes, peer, 2);
      }
    },
  };
  // A rail is made when it is first used: that is not what is measured.
  await world.barrier();
  const time = async (count) => {
    const began = performance.now();
    await calls[kind](count);
    return ((performance.now() - began) * 1000) / count;
  };
  const first = await time(COLD_CALLS);
  const second = await time(COLD_CALLS);
  // Both ranks must stop after the same number of calls.
  const pieceUs = await time(PIECE_CALLS);
  const fit = (STAGE_MS * 1000) / pieceUs;
  const counts = Float64Array.of(
    ...[WARMUP_CALLS, STEADY_CALLS].map((calls) => Math.max(PIECE_CALLS, WINDOW * Math.floor(Math.min(calls, fit) / WINDOW))),
  );
  await world.bcast(counts, 0);
  await calls[kind](counts[0]);
  const steady = await time(counts[1]);
  if (world.rank === 0) console.log(JSON.stringify({ first, second, steady, warmup: counts[0] }));
  await mpi.finalize();
}

function measure(kind, btl, mca) {
  const args = [CLI, 'run', '-n', '2', '--no-prefix', '--mca', 'btl', `self,${btl}`, ...mca, SELF];
  const done = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: RUN_TIMEOUT_MS, env: { ...process.env, [KIND]: kind } });
  if (done.status === 0) return JSON.parse(done.stdout);
  process.stderr.write(`bench/loopback/cold.mjs: ${kind} over ${btl}: ${done.error?.message ?? done.stderr}\n`);
  return process.exit(1);
}

function compare() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      btl: { type: 'string', default: 'sm,tcp' },
      mca: { type: 'string', multiple: true, default: [] },
    },
  });
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: expected a whole number from 1`);
  const mca = mcaArgs(values.mca);
  const load = loadavg()[0].toFixed(2);
  const lines = [
    '## Cold and steady',
    '',
    `\`node bench/loopback/cold.mjs --rounds ${rounds} --btl ${values.btl}\`, ${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} × ${cpus()[0].model.trim()}, Node ${process.version}; load before ${load}.`,
    `Two ranks, 8 B, microseconds of a call, median of the rounds. Cold: the first ${COLD_CALLS} calls of a program, and the ${COLD_CALLS} after them; steady: after up to ${WARMUP_CALLS} more.`,
    '',
    `| Calls | Rails | Cold, first ${COLD_CALLS} | Cold, second ${COLD_CALLS} | Steady | Second to steady | Wanted |`,
    '| --- | --- | ---: | ---: | ---: | ---: | --- |',
  ];
  for (const [kind, title] of Object.entries(KINDS)) {
    for (const btl of values.btl.split(',')) {
      const runs = Array.from({ length: rounds }, () => measure(kind, btl, mca));
      const middle = (of) => median(runs.map(of));
      const ratio = middle(({ second, steady }) => second / steady);
      const figures = ['first', 'second', 'steady'].map((stage) => middle((run) => run[stage]).toFixed(1));
      lines.push(`| ${title} | ${btl} | ${figures.join(' | ')} | ${ratio.toFixed(1)} | ≤ ${LIMIT}: ${ratio <= LIMIT ? 'yes' : '**no**'} |`);
    }
  }
  console.log(lines.join('\n'));
}

// Last, since what they use has to be there.
if (process.env[KIND] === undefined) compare();
else await rank(process.env[KIND]);
