// A heated plate whose ranks may die: each has a strip of rows, all go back to the newest save in memory, or with --recovery asynchronous the dead rank
// alone, and a process that stands by takes its place. At the end rank 0 computes the undisturbed plate by itself, and the job exits with 1 if one
// bit differs.
//
//   npx multirail run -n 4 --spares 2 --kill 2@3s examples/ft-heat.mjs --seconds 6
//   npx multirail run -n 4 --spares 2 --kill random:seed=1,mtbf=4s,max=2 examples/ft-heat.mjs --sync
//   npx multirail run -n 4 --spares 2 --kill 2@3s examples/ft-heat.mjs --seconds 6 --recovery asynchronous    # the dead rank alone goes back
//   npx multirail run -n 4 --spares 2 --kill 2@3s examples/ft-heat.mjs --seconds 6 --recovery asynchronous --helpers 1    # and is helped to catch up
//   npx multirail run -n 4 --spares 2 --kill 2@3s examples/ft-heat.mjs --seconds 6 --recovery asynchronous --groups 2    # its group goes back with it
//   npx multirail run -n 4 --spares 2 --kill 2@3s examples/ft-heat.mjs --seconds 6 --verbose    # says who begins where
//   npx multirail run -n 4 --mca ft on --kill 1@3s,2@4s examples/ft-heat.mjs --seconds 6 --shrink    # nobody stands by: fewer ranks go on
//   npx multirail run -n 4 --mca ft on --mca ft_job plate examples/ft-heat.mjs --folder saves    # killed as a whole, it goes on when started again
//   npx multirail run -n 4 --mca ft on --mca ft_job plate examples/ft-heat.mjs --bucket http://127.0.0.1:9000/saves    # the same, in a bucket of S3
import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { init } from 'multirail';
import { run, s3Store } from 'multirail/ft';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    steps: { type: 'string', default: '200' },
    every: { type: 'string', default: '10' },
    rows: { type: 'string', default: '256' },
    sync: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    recovery: { type: 'string', default: 'coordinated' },
    helpers: { type: 'string', default: '0' },
    groups: { type: 'string' },
    folder: { type: 'string' },
    bucket: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});
const steps = Number(values.steps);
const every = Number(values.every);
const rows = Number(values.rows);
const stepMs = (1000 * Number(values.seconds)) / steps;
const CELLS = 256;

/** The rows of a rank: as even as it goes. */
function blockOf(rank, size) {
  const from = Math.floor((rank * rows) / size);
  return { from, to: Math.floor(((rank + 1) * rows) / size) };
}

/** So many rows with one more above and below; the plate is hot at its left edge. */
function strip(count) {
  const plate = new Float64Array((count + 2) * CELLS);
  for (let row = 0; row < count + 2; row++) plate[row * CELLS] = 100;
  return plate;
}

function relax(now, next) {
  for (let row = 1; row < now.length / CELLS - 1; row++) {
    next[row * CELLS] = now[row * CELLS];
    next[row * CELLS + CELLS - 1] = now[row * CELLS + CELLS - 1];
    for (let cell = 1; cell < CELLS - 1; cell++) {
      const at = row * CELLS + cell;
      next[at] = (now[at - CELLS] + now[at + CELLS] + now[at - 1] + now[at + 1]) / 4;
    }
  }
}

const part = (plate, from, to) => plate.subarray(from * CELLS, to * CELLS);
const row = (plate, number) => part(plate, number, number + 1);
const digestOf = (plate) => createHash('sha256').update(plate).digest('hex');

/** The same by one process. */
function undisturbed() {
  let [now, next] = [strip(rows), strip(rows)];
  for (let step = 0; step < steps; step++) {
    relax(now, next);
    [now, next] = [next, now];
  }
  return digestOf(part(now, 1, rows + 1));
}

const mpi = await init();
let resumedFrom;
let sharedSteps = 0;
let total = { failures: 0, inPlace: 0, lostSteps: 0 };

/** What both forms of the program begin with. Both arrays are registered, because the program swaps them. */
function begin(job) {
  const { comm, recovery } = job;
  const { from, to } = blockOf(comm.rank, comm.size);
  if (comm.size > rows) throw new Error(`--rows ${rows}: expected at least one for each of ${comm.size} ranks`);
  const [first, second] = [strip(to - from), strip(to - from)];
  const state = { now: first, next: second, step: 0, from, to };
  const goTo = (step) => {
    state.step = step;
    if (step % 2 === 1) [state.now, state.next] = [second, first];
  };
  job.protect('first', first);
  job.protect('second', second);
  job.protectValue('step', { save: () => state.step, restore: goTo });
  if (recovery !== undefined) {
    if (recovery.level === 'disk' || recovery.level === 'store') resumedFrom = job.step;
    // Other ranks have saved: their rows are distributed again.
    if (recovery.isRegrouped) goTo(job.step);
  }
  if (values.verbose) console.error(`rank ${comm.rank} of ${comm.size} begins at step ${state.step} (pid ${process.pid})`);
  return state;
}

/** Ranks of the saved world that had rows of this one. */
function giversOf({ recovery }, { from, to }) {
  const { savedSize } = recovery;
  return [...Array(savedSize).keys()].filter((rank) => {
    const theirs = blockOf(rank, savedSize);
    return theirs.from < to && theirs.to > from;
  });
}

/** What that rank has saved of the rows of this one. */
function take({ recovery }, state, rank, saved) {
  const theirs = blockOf(rank, recovery.savedSize);
  const from = Math.max(theirs.from, state.from);
  const to = Math.min(theirs.to, state.to);
  const plate = saved.get(state.step % 2 === 1 ? 'second' : 'first');
  part(state.now, from - state.from + 1, to - state.from + 1).set(part(plate, from - theirs.from + 1, to - theirs.from + 1));
}

function endStep(state) {
  [state.now, state.next] = [state.next, state.now];
  state.step++;
}

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const countsOf = (size) => [...Array(size).keys()].map((rank) => (blockOf(rank, size).to - blockOf(rank, size).from) * CELLS);

/** The rows of one of a team, of the rows 1 to `own` of a strip: from, and to before. */
function shareOf(own, { size }, rank) {
  return [1 + Math.floor((rank * own) / size), 1 + Math.floor(((rank + 1) * own) / size)];
}

/** What a helper does for a successor, until it has caught up: rows come, and go back one step further. */
async function help(team, own) {
  const [from, to] = shareOf(own, team, team.rank);
  const [now, next] = [strip(to - from), strip(to - from)];
  for (;;) {
    await team.recv(now, 0, 0);
    relax(now, next);
    await team.send(part(next, 1, to - from + 1), 0, 0);
    sharedSteps++;
  }
}

/** A step of a successor with those that help it. */
async function relaxWith(team, { now, next }, own) {
  const shares = [...Array(team.size).keys()].map((rank) => shareOf(own, team, rank));
  const [, ...helpers] = shares.keys();
  // While this process computes nothing leaves it: rows are at the helpers before.
  await Promise.all(helpers.map((helper) => team.send(part(now, shares[helper][0] - 1, shares[helper][1] + 1), helper, 0)));
  const come = helpers.map((helper) => team.recv(part(next, ...shares[helper]), helper, 0));
  const [from, to] = shares[0];
  relax(part(now, from - 1, to + 1), part(next, from - 1, to + 1));
  await Promise.all(come);
}

/** Alone, unless helpers are there. One of them may die, or be called in for another rank: then the step is done alone. */
async function relaxShared(job, state, own) {
  if (job.replaying && job.team.size > 1) {
    try {
      await relaxWith(job.team, state, own);
      sharedSteps++;
      return;
    } catch (error) {
      if (job.team.size > 1) throw error;
    }
  }
  relax(state.now, state.next);
}

async function program(job) {
  const { comm } = job;
  const { rank, size } = comm;
  const state = begin(job);
  const own = state.to - state.from;
  job.onHelp(async (team) => await help(team, own));
  if (job.recovery?.isRegrouped) for (const giver of giversOf(job, state)) take(job, state, giver, await job.recovery.read(giver));
  while (state.step < steps) {
    const { now } = state;
    const moves = [];
    if (rank > 0) moves.push(comm.sendrecv(row(now, 1), rank - 1, 0, row(now, 0), rank - 1, 0));
    if (rank < size - 1) moves.push(comm.sendrecv(row(now, own), rank + 1, 0, row(now, own + 1), rank + 1, 0));
    await Promise.all(moves);
    await relaxShared(job, state, own);
    endStep(state);
    await rest(stepMs);
    await job.next();
    if (values.verbose && sharedSteps > 0 && !job.replaying) {
      console.error(`rank ${rank} has caught up: ${sharedSteps} steps were shared`);
      sharedSteps = 0;
    }
  }
  const plate = rank === 0 ? new Float64Array(rows * CELLS) : null;
  await comm.gatherv(part(state.now, 1, own + 1), plate, countsOf(size));
  total = job.total;
  return plate === null ? undefined : { digest: digestOf(plate), size };
}

const pause = new Int32Array(new SharedArrayBuffer(4));

function programSync(job) {
  const { comm } = job;
  const { rank, size } = comm;
  const state = begin(job);
  const own = state.to - state.from;
  if (job.recovery?.isRegrouped) for (const giver of giversOf(job, state)) take(job, state, giver, job.recovery.readSync(giver));
  while (state.step < steps) {
    const { now } = state;
    if (rank > 0) comm.sendrecvSync(row(now, 1), rank - 1, 0, row(now, 0), rank - 1, 0);
    if (rank < size - 1) comm.sendrecvSync(row(now, own), rank + 1, 0, row(now, own + 1), rank + 1, 0);
    relax(now, state.next);
    endStep(state);
    Atomics.wait(pause, 0, 0, stepMs);
    job.nextSync();
  }
  const plate = rank === 0 ? new Float64Array(rows * CELLS) : null;
  comm.gathervSync(part(state.now, 1, own + 1), plate, countsOf(size));
  total = job.total;
  return plate === null ? undefined : { digest: digestOf(plate), size };
}

/** What outlasts all processes; the address of a bucket is that of its server with the name of the bucket behind it. */
function lasting() {
  const { folder, bucket } = values;
  if (folder !== undefined) return { level: 'disk', folder };
  if (bucket === undefined) return undefined;
  const cut = bucket.lastIndexOf('/');
  return { level: 'store', store: s3Store({ endpoint: bucket.slice(0, cut), bucket: bucket.slice(cut + 1) }) };
}

const lastingLevel = lasting();
const options = {
  recovery: values.recovery,
  everySteps: lastingLevel === undefined ? [every] : [every, 2 * every],
  ...(lastingLevel === undefined ? {} : { levels: [{ level: 'memory' }, lastingLevel] }),
  helpers: Number(values.helpers),
  ...(values.groups === undefined ? {} : { groups: Number(values.groups) }),
  whenNoSpares: values.shrink ? 'shrink' : 'fail',
};
const result = await run(mpi, options, values.sync ? programSync : program);
if (result !== undefined) {
  const { digest, size } = result;
  const resumed =
    resumedFrom === undefined ? '' : `, resumed from step ${resumedFrom} ${lastingLevel?.level === 'store' ? 'in the bucket' : 'on disk'}`;
  const shrunk = values.shrink ? `, on ${size} ranks` : '';
  console.log(
    `sha256 ${digest}: recovered from ${total.failures} failures (${total.inPlace} asynchronous), ${total.lostSteps} steps repeated${resumed}${shrunk}`,
  );
  const expected = undisturbed();
  if (digest !== expected) {
    console.error(`the undisturbed plate has sha256 ${expected}`);
    process.exitCode = 1;
  }
}
await mpi.finalize();
