// The program of `multirail ft campaign 000`: numbers that each rank mixes with those of its neighbours, step by step, all of them exact. Where
// it is told so, a rank kills itself when it has come to a step. Run as a rank of a job, and by a single process for the result to expect.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { run } from '../../src/ft/recover/run.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import type { CampaignOutcome, CampaignRun } from './campaign-000.ts';

const COUNT = 512;
const MODULUS = 1_000_003;

const start = (rank: number): Float64Array => Float64Array.from({ length: COUNT }, (_, i) => (rank * 7919 + i * 104_729) % MODULUS);

/** The numbers of one rank after one more step. All stay whole numbers far below 2^53. */
function mix(own: Float64Array, left: Float64Array, step: number): void {
  for (let i = 0; i < COUNT; i++) own[i] = (own[i] * 31 + left[i] * 17 + step + i) % MODULUS;
}

const digestOf = (all: Float64Array): string => createHash('sha256').update(all).digest('hex');

/** The result of a job of so many ranks in which nobody dies. */
export function undisturbed(ranks: number, steps: number): string {
  const own = Array.from({ length: ranks }, (_, rank) => start(rank));
  for (let step = 0; step < steps; step++) {
    const before = own.map((numbers) => numbers.slice());
    for (let rank = 0; rank < ranks; rank++) mix(own[rank], before[(rank + ranks - 1) % ranks], step);
  }
  const all = new Float64Array(ranks * COUNT);
  for (const [rank, numbers] of own.entries()) all.set(numbers, rank * COUNT);
  return digestOf(all);
}

/** Rank 0 writes the outcome into that file. */
export async function campaignAsRank(mpi: Runtime, spec: CampaignRun, file: string): Promise<void> {
  const { scheme, steps, everySteps, atStep, failed } = spec;
  const options = {
    duplication: scheme.duplication,
    depth: scheme.depth,
    domain: 'process',
    everySteps: [everySteps],
    // A save is committed when next() is through, so it is known which one is the newest.
    saving: 'blocking',
  } as const;
  const outcome = await run(mpi, options, async (job): Promise<CampaignOutcome | undefined> => {
    const { comm, recovery } = job;
    const { rank, size } = comm;
    const own = start(rank);
    let step = 0;
    job.protect('numbers', own);
    job.protectValue('step', {
      save: () => step,
      restore: (value: number) => {
        step = value;
      },
    });
    const left = new Float64Array(COUNT);
    while (step < steps) {
      if (recovery === undefined && step === atStep) {
        // All have come here when the first one dies. Whoever hears of that sooner dies, too, if it is to.
        const met = comm.barrier();
        if (failed.includes(rank)) {
          await met.catch(() => undefined);
          process.kill(process.pid, 'SIGKILL');
        }
        await met;
      }
      const sent = own.slice();
      await comm.sendrecv(sent, (rank + 1) % size, 0, left, (rank + size - 1) % size, 0);
      mix(own, left, step);
      step++;
      await job.next();
    }
    const all = rank === 0 ? new Float64Array(size * COUNT) : null;
    await comm.gather(own, all, 0);
    if (all === null) return undefined;
    return { digest: digestOf(all), save: recovery?.save, level: recovery?.level, failures: recovery?.total.failures ?? 0 };
  });
  if (outcome !== undefined) writeFileSync(file, JSON.stringify(outcome));
  await mpi.finalize();
}
