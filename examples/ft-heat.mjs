// A heated plate whose ranks may die: each has a strip of rows, all go back to the newest save in memory, and a process that stands by takes
// the place of the dead one. At the end rank 0 computes the undisturbed plate by itself, and the job exits with 1 if one bit differs.
//
//   npx multirail run -n 4 --spares 2 --kill 2@3s examples/ft-heat.mjs --seconds 6
//   npx multirail run -n 4 --spares 2 --kill random:seed=1,mtbf=4s,max=2 examples/ft-heat.mjs --sync
//   npx multirail run -n 4 --mca ft on --mca ft_job plate examples/ft-heat.mjs --folder saves    # killed as a whole, it goes on when started again
import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { init } from 'multirail';
import { run } from 'multirail/ft';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    steps: { type: 'string', default: '200' },
    every: { type: 'string', default: '10' },
    sync: { type: 'boolean', default: false },
    folder: { type: 'string' },
  },
});
const steps = Number(values.steps);
const every = Number(values.every);
const stepMs = (1000 * Number(values.seconds)) / steps;
const ROWS = 64; // of each rank
const CELLS = 256;

/** A strip with a row of each neighbour above and below; the plate is hot at its left edge. */
function strip() {
  const plate = new Float64Array((ROWS + 2) * CELLS);
  for (let row = 0; row < ROWS + 2; row++) plate[row * CELLS] = 100;
  return plate;
}

function relax(now, next) {
  for (let row = 1; row <= ROWS; row++) {
    next[row * CELLS] = now[row * CELLS];
    next[row * CELLS + CELLS - 1] = now[row * CELLS + CELLS - 1];
    for (let cell = 1; cell < CELLS - 1; cell++) {
      const at = row * CELLS + cell;
      next[at] = (now[at - CELLS] + now[at + CELLS] + now[at - 1] + now[at + 1]) / 4;
    }
  }
}

const row = (plate, number) => plate.subarray(number * CELLS, (number + 1) * CELLS);
const digestOf = (strips) =>
  strips.reduce((hash, one) => hash.update(one.subarray(CELLS, (ROWS + 1) * CELLS)), createHash('sha256')).digest('hex');

/** The same by one process. */
function undisturbed(size) {
  let now = Array.from({ length: size }, strip);
  let next = Array.from({ length: size }, strip);
  for (let step = 0; step < steps; step++) {
    for (let rank = 0; rank < size; rank++) {
      if (rank > 0) row(now[rank], 0).set(row(now[rank - 1], ROWS));
      if (rank < size - 1) row(now[rank], ROWS + 1).set(row(now[rank + 1], 1));
    }
    for (let rank = 0; rank < size; rank++) relax(now[rank], next[rank]);
    [now, next] = [next, now];
  }
  return digestOf(now);
}

const mpi = await init();
let failures = 0;
let lostSteps = 0;
let resumedFrom;

/** What both forms of the program begin with. Both arrays are registered, because the program swaps them. */
function begin(job) {
  const state = { now: strip(), next: strip(), step: 0, isSwapped: false };
  const [first, second] = [state.now, state.next];
  job.protect('first', first);
  job.protect('second', second);
  job.protectValue('step', {
    save: () => state.step,
    restore: (step) => {
      state.step = step;
      if (step % 2 === 1) [state.now, state.next] = [second, first];
    },
  });
  if (job.recovery !== undefined) {
    ({ failures, lostSteps } = job.recovery.total);
    if (job.recovery.level === 'disk') resumedFrom = state.step;
  }
  return state;
}

function endStep(state) {
  [state.now, state.next] = [state.next, state.now];
  state.step++;
}

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function program(job) {
  const { comm } = job;
  const { rank, size } = comm;
  const state = begin(job);
  while (state.step < steps) {
    const { now } = state;
    const moves = [];
    if (rank > 0) moves.push(comm.sendrecv(row(now, 1), rank - 1, 0, row(now, 0), rank - 1, 0));
    if (rank < size - 1) moves.push(comm.sendrecv(row(now, ROWS), rank + 1, 0, row(now, ROWS + 1), rank + 1, 0));
    await Promise.all(moves);
    relax(now, state.next);
    endStep(state);
    await rest(stepMs);
    await job.next();
  }
  const strips = rank === 0 ? Array.from({ length: size }, () => new Float64Array((ROWS + 2) * CELLS)) : [];
  const all = rank === 0 ? new Float64Array(size * state.now.length) : undefined;
  await comm.gather(state.now, all, 0);
  for (const [i, one] of strips.entries()) one.set(all.subarray(i * one.length, (i + 1) * one.length));
  return rank === 0 ? digestOf(strips) : undefined;
}

const pause = new Int32Array(new SharedArrayBuffer(4));

function programSync(job) {
  const { comm } = job;
  const { rank, size } = comm;
  const state = begin(job);
  while (state.step < steps) {
    const { now } = state;
    if (rank > 0) comm.sendrecvSync(row(now, 1), rank - 1, 0, row(now, 0), rank - 1, 0);
    if (rank < size - 1) comm.sendrecvSync(row(now, ROWS), rank + 1, 0, row(now, ROWS + 1), rank + 1, 0);
    relax(now, state.next);
    endStep(state);
    Atomics.wait(pause, 0, 0, stepMs);
    job.nextSync();
  }
  const all = rank === 0 ? new Float64Array(size * state.now.length) : undefined;
  comm.gatherSync(state.now, all, 0);
  if (rank !== 0) return undefined;
  const { length } = state.now;
  return digestOf(Array.from({ length: size }, (_, i) => all.subarray(i * length, (i + 1) * length)));
}

const levels = values.folder === undefined ? undefined : [{ level: 'memory' }, { level: 'disk', folder: values.folder }];
const options = { everySteps: levels === undefined ? [every] : [every, 2 * every], ...(levels === undefined ? {} : { levels }) };
const digest = await run(mpi, options, values.sync ? programSync : program);
if (digest !== undefined) {
  const expected = undisturbed(mpi.world.size);
  const resumed = resumedFrom === undefined ? '' : `, resumed from step ${resumedFrom} on disk`;
  console.log(`sha256 ${digest}: recovered from ${failures} failures (0 asynchronous), ${lostSteps} steps repeated${resumed}`);
  if (digest !== expected) {
    console.error(`the undisturbed plate has sha256 ${expected}`);
    process.exitCode = 1;
  }
}
await mpi.finalize();
