// A farm of tasks whose ranks may die. Rank 0, the master, hands out tasks, hears of dead workers in its receives from anybody, and gives their
// tasks to others; with no worker left it does the rest itself. When the master dies, the others shrink the communicator, and the lowest
// rank that is left becomes the master: each worker reports the results that it has, and only what the dead had is computed again. At the end
// the sum is compared with that which every rank computes alone; a difference exits with 1.
//
//   npx multirail run -n 4 --mca ft on --kill random:seed=1,mtbf=2s,max=2 examples/ft-farm.mjs
//   npx multirail run -n 4 --mca ft on --kill 0@1s,2@2s examples/ft-farm.mjs --seconds 4 --tasks 80
import { parseArgs } from 'node:util';
import { ANY_SOURCE, init } from 'multirail';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '6' }, tasks: { type: 'string', default: '120' } } });
const tasks = Number(values.tasks);
const seconds = Number(values.seconds);
if (!Number.isInteger(tasks) || tasks < 1 || !(seconds >= 0)) {
  console.error(`--tasks ${values.tasks} --seconds ${values.seconds}: expected a whole number of tasks, 1 or more, and seconds, 0 or more`);
  process.exit(2);
}
const NUMBERS = 1000; // of each task
const TASK = 1; // to a worker: the number of a task, or END and the sum of all
const REPORT = 2; // to the master: numbers of tasks and their results, in turn; whoever sends one is ready for the next task
const END = -1;

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

// Without `ft` a death ends the job. The launcher has to know it, too (--mca ft on), or it ends the job when a rank dies.
const mpi = await init({ params: { ft: true } });
/** Results that this rank knows, by task. */
const results = new Map();
let deaths = 0;
let repeated = 0;

/** A task takes a little longer than its sum does, so that there is time to die. */
async function work(task, workers) {
  await new Promise((resolve) => setTimeout(resolve, (1000 * seconds * workers) / tasks));
  results.set(task, primesOf(task));
}

const sum = () => Array.from(results.values()).reduce((total, primes) => total + primes, 0);
const isDeath = (error) => error.code === 'ERR_PROC_FAILED';

const alone = Array.from({ length: tasks }, (_, task) => primesOf(task)).reduce((total, primes) => total + primes, 0);

function check(total) {
  if (total === alone) return;
  console.error(`rank ${mpi.rank}: the farm has counted ${total} primes; expected ${alone}`);
  process.exitCode = 1;
}

/** The program of the master. It never fails because a worker dies. Resolves with the sum. */
async function lead(comm) {
  const open = Array.from({ length: tasks }, (_, task) => task).filter((task) => !results.has(task));
  const given = new Map(); // by worker
  const ready = [];
  const living = new Set(Array.from({ length: comm.size }, (_, rank) => rank).filter((rank) => rank !== comm.rank));
  const report = new Float64Array(2 * tasks);

  /** Sends to a worker; of its death the next receive tells. */
  const tell = async (worker, ...words) => {
    try {
      await comm.send(Float64Array.from(words), worker, TASK);
    } catch (error) {
      if (!isDeath(error)) throw error;
    }
  };

  /** Takes the tasks of the dead back. From now on receives from anybody report only those who die later. */
  const bury = () => {
    const failed = comm.getFailed();
    comm.ackFailed(failed.size);
    for (const process of failed.worldRanks) {
      const worker = comm.group.worldRanks.indexOf(process);
      if (!living.delete(worker)) continue;
      deaths++;
      if (ready.includes(worker)) ready.splice(ready.indexOf(worker), 1);
      if (!given.has(worker)) continue;
      repeated++;
      open.push(given.get(worker));
      given.delete(worker);
    }
  };

  // A worker is through when it is ready and nothing is left for it: then nothing of it is under way.
  while (results.size < tasks || ready.length < living.size) {
    while (open.length > 0 && ready.length > 0) {
      const task = open.shift();
      // The result of a worker that has died may have come after its task was taken back.
      if (results.has(task)) continue;
      const worker = ready.shift();
      given.set(worker, task);
      await tell(worker, task, comm.size - 1);
    }
    if (living.size === 0) {
      for (const task of open.splice(0)) if (!results.has(task)) await work(task, 1);
      continue;
    }
    if (ready.length === living.size && open.length === 0) continue;
    try {
      const { source, bytes } = await comm.recv(report, ANY_SOURCE, REPORT);
      for (let i = 0; i < bytes / 8; i += 2) results.set(report[i], report[i + 1]);
      given.delete(source);
      // What somebody has sent outlives him.
      if (living.has(source)) ready.push(source);
    } catch (error) {
      if (!isDeath(error)) throw error;
      bury();
    }
  }
  const total = sum();
  check(total);
  // Told before the workers go: a master that dies after this line has done its work.
  const lost = mpi.world.size - comm.size;
  const masters = lost === 0 ? '' : `; rank ${mpi.rank} is the master of ${comm.size} that were left of ${mpi.world.size}`;
  console.log(`${total} primes in ${tasks} tasks; ${deaths} workers died, ${repeated} tasks were given again${masters}`);
  for (const worker of living) await tell(worker, END, total);
  return total;
}

/** The program of a worker. It fails when the master dies. Resolves with the sum. */
async function serve(comm) {
  await comm.send(Float64Array.from([...results].flat()), 0, REPORT);
  const words = new Float64Array(2);
  for (;;) {
    await comm.recv(words, 0, TASK);
    const [task, more] = words;
    if (task === END) return more; // the sum
    await work(task, more);
    await comm.send(Float64Array.of(task, results.get(task)), 0, REPORT);
  }
}

let comm = mpi.world;
for (;;) {
  let isDone = 1;
  try {
    check(await (comm.rank === 0 ? lead(comm) : serve(comm)));
  } catch (error) {
    if (!isDeath(error)) throw error;
    isDone = 0;
  }
  // A master may die when it has sent some of the workers home: all have to do the same, so they agree.
  const { flag } = await comm.agree(isDone);
  if (flag === 1) break;
  const before = comm;
  comm = await before.shrink();
  if (before !== mpi.world) await before.free();
}
await mpi.finalize();
