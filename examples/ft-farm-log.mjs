// A farm of tasks under logs: rank 0 takes what comes first, from whichever worker, and hands out the next task. Ranks may die, the master too: with
// --recovery asynchronous the dead rank alone goes back, and takes again what it had taken, in the same order, because that was recorded. Who has
// done which task differs from run to run; what does not is compared at the end: the results with those that rank 0 computes alone, and what the
// master has noted with what each worker has. A difference exits with 1.
//
//   npx multirail run -n 4 --spares 2 --kill 0@1s,2@2s examples/ft-farm-log.mjs --seconds 4
//   npx multirail run -n 4 --spares 3 --kill random:seed=1,mtbf=2s,max=3 examples/ft-farm-log.mjs --sync
//   npx multirail run -n 4 --spares 2 --kill 0@2s examples/ft-farm-log.mjs --recovery coordinated    # all go back to a save
//   npx multirail run -n 4 --spares 2 --kill 0@2s examples/ft-farm-log.mjs --determinism send    # nothing is recorded: most often caught by ERR_REPLAY
import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { ANY_SOURCE, init } from 'multirail';
import { run } from 'multirail/ft';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    tasks: { type: 'string', default: '240' },
    rounds: { type: 'string', default: '24' },
    every: { type: 'string', default: '4' },
    sync: { type: 'boolean', default: false },
    recovery: { type: 'string', default: 'asynchronous' },
    determinism: { type: 'string', default: 'recorded' },
    verbose: { type: 'boolean', default: false },
  },
});
const tasks = Number(values.tasks);
const rounds = Number(values.rounds);
const NUMBERS = 1000; // of each task
const TASK = 1; // to a worker: the number of a task, or END
const REPORT = 2; // to the master: a task, or NONE, and its result; whoever sends one is ready for the next task
const END = -1;
const NONE = -1;

/** How many primes are among the numbers of a task. */
function primesOf(task) {
  let primes = 0;
  for (let number = Math.max(2, task * NUMBERS); number < (task + 1) * NUMBERS; number++) {
    let divisor = 2;
    while (divisor * divisor <= number && number % divisor !== 0) divisor++;
    if (divisor * divisor > number) primes++;
  }
  return primes;
}

const mpi = await init();
const digestOf = (results) => createHash('sha256').update(results).digest('hex');
let total = { failures: 0, inPlace: 0, lostSteps: 0 };

/** What both forms of the program begin with. */
function begin(job) {
  const { rank, size } = job.comm;
  const state = {
    round: 0,
    /** At the master: results, and who has computed them. At a worker: its own results. */
    results: new Float64Array(tasks),
    by: new Int32Array(tasks).fill(NONE),
    taskMs: (1000 * Number(values.seconds) * Math.max(1, size - 1)) / tasks,
  };
  job.protect('results', state.results);
  job.protect('by', state.by);
  job.protectValue('round', {
    save: () => state.round,
    restore: (round) => {
      state.round = round;
    },
  });
  if (values.verbose) console.error(`rank ${rank} of ${size} begins in round ${state.round} (pid ${process.pid})`);
  return state;
}

/** The tasks of a round. */
function roundOf({ round }) {
  return { next: Math.floor((round * tasks) / rounds), end: Math.floor(((round + 1) * tasks) / rounds) };
}

/** A worker has reported, and is told what to do next. */
function answer(state, hand, [task, result], source) {
  if (task !== NONE) {
    state.results[task] = result;
    state.by[task] = source;
  }
  return Float64Array.of(hand.next < hand.end ? hand.next++ : END);
}

function work(state, rank, task) {
  state.results[task] = primesOf(task);
  state.by[task] = rank;
  return Float64Array.of(task, state.results[task]);
}

/** What the master has noted, against what each worker has. */
function resultOf(state, bys, size) {
  for (let task = 0; task < tasks; task++) {
    for (let rank = 1; rank < size; rank++) {
      const noted = state.by[task] === rank;
      if ((bys[rank * tasks + task] === rank) !== noted)
        throw new Error(`task ${task} was ${noted ? '' : 'not '}done by rank ${rank}, as the master has it; the rank has the opposite`);
    }
  }
  const shares = Array.from({ length: size - 1 }, (_, i) => state.by.filter((rank) => rank === i + 1).length);
  return { digest: digestOf(state.results), shares };
}

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function program(job) {
  const { comm } = job;
  const { rank, size } = comm;
  const state = begin(job);
  const report = new Float64Array(2);
  const task = new Float64Array(1);
  for (; state.round < rounds; ) {
    if (rank === 0) {
      const hand = roundOf(state);
      for (let working = size - 1; working > 0; ) {
        const { source } = await comm.recv(report, ANY_SOURCE, REPORT);
        const told = answer(state, hand, report, source);
        await comm.send(told, source, TASK);
        if (told[0] === END) working--;
      }
    } else {
      let result = Float64Array.of(NONE, 0);
      for (;;) {
        await comm.send(result, 0, REPORT);
        await comm.recv(task, 0, TASK);
        if (task[0] === END) break;
        result = work(state, rank, task[0]);
        await rest(state.taskMs);
      }
    }
    state.round++;
    await job.next();
  }
  const bys = rank === 0 ? new Int32Array(size * tasks) : null;
  await comm.gather(state.by, bys, 0);
  total = job.total;
  return bys === null ? undefined : resultOf(state, bys, size);
}

const pause = new Int32Array(new SharedArrayBuffer(4));

function programSync(job) {
  const { comm } = job;
  const { rank, size } = comm;
  const state = begin(job);
  const report = new Float64Array(2);
  const task = new Float64Array(1);
  for (; state.round < rounds; ) {
    if (rank === 0) {
      const hand = roundOf(state);
      for (let working = size - 1; working > 0; ) {
        const { source } = comm.recvSync(report, ANY_SOURCE, REPORT);
        const told = answer(state, hand, report, source);
        comm.sendSync(told, source, TASK);
        if (told[0] === END) working--;
      }
    } else {
      let result = Float64Array.of(NONE, 0);
      for (;;) {
        comm.sendSync(result, 0, REPORT);
        comm.recvSync(task, 0, TASK);
        if (task[0] === END) break;
        result = work(state, rank, task[0]);
        Atomics.wait(pause, 0, 0, state.taskMs);
      }
    }
    state.round++;
    job.nextSync();
  }
  const bys = rank === 0 ? new Int32Array(size * tasks) : null;
  comm.gatherSync(state.by, bys, 0);
  total = job.total;
  return bys === null ? undefined : resultOf(state, bys, size);
}

const { recovery, determinism } = values;
const result = await run(mpi, { recovery, determinism, everySteps: [Number(values.every)] }, values.sync ? programSync : program);
if (result !== undefined) {
  const { digest, shares } = result;
  const { failures, inPlace, lostSteps } = total;
  console.log(
    `sha256 ${digest}: recovered from ${failures} failures (${inPlace} asynchronous), ${lostSteps} rounds repeated; tasks by rank: ${shares.join(', ')}`,
  );
  const expected = digestOf(Float64Array.from({ length: tasks }, (_, task) => primesOf(task)));
  if (digest !== expected) {
    console.error(`the results of one process have sha256 ${expected}`);
    process.exitCode = 1;
  }
}
await mpi.finalize();
