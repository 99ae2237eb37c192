// The program of `multirail ft campaign 004`: a heated plate whose steps have a length, saved by the periods that the library plans, or by a given
// one. Ranks kill themselves when their time has come; rank 0 measures.
import { subscribe } from 'node:diagnostics_channel';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { RecoveryTrace, SaveTrace } from '../../src/ft/recover/channels.ts';
import type { FtOptions } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import type { PeriodsOutcome, PeriodsRun } from './campaign-004.ts';
import { SWEEPS } from './heat-strip.ts';
import { Plate, undisturbedDigest } from './plate.ts';

/** Rows of each rank: a step is mostly rest, since ranks share processors. */
const ROWS = 4 * SWEEPS;

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/** Mean of steps in which nobody has saved: one that waits for the save of others takes as much longer. */
function undisturbedMean(values: readonly number[], costSeconds: number): number {
  const median = [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
  return mean(values.filter((value) => value < median + costSeconds / 2));
}

const pause = new Int32Array(new SharedArrayBuffer(4));
const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

function optionsOf({ mtbfSeconds, everySteps, groups }: PeriodsRun): FtOptions {
  if (everySteps === undefined) return { mtbfSeconds: [mtbfSeconds] };
  return groups === 1 ? { everySteps: [everySteps] } : { recovery: 'asynchronous', groups, everySteps: [everySteps] };
}

/** Rank 0 writes the outcome into that file; next to it, when the job began, and who has died. */
export async function campaign004AsRank(mpi: Runtime, spec: PeriodsRun, file: string): Promise<void> {
  const { costSeconds, stepSeconds, steps, deaths } = spec;
  const beganFile = `${file}.began`;
  const costs: number[] = [];
  let restoredSeconds = 0;
  let deathsSeen = 0;
  const made: SaveTrace[] = [];
  if (mpi.role === 'initial' && mpi.rank === 0) {
    subscribe('multirail:ft:save', (trace) => void made.push(trace as SaveTrace));
    subscribe('multirail:ft:recovery', (trace) => {
      const { kind, failed } = trace as RecoveryTrace;
      if (kind === 'caught up') return;
      const atMs = readDeaths().sort((a, b) => a - b);
      // Down time begins with the first death that this recovery makes up for.
      if (atMs.length > deathsSeen) restoredSeconds += (Date.now() - atMs[deathsSeen]) / 1000;
      deathsSeen += failed.length;
    });
  }
  const diedFile = (i: number): string => `${file}.died-${i}`;
  const readDeaths = (): number[] =>
    [...deaths.keys()]
      .map(diedFile)
      .filter(existsSync)
      .map((died) => Number(readFileSync(died, 'utf8')));
  let isArmed = false;
  const arm = (rank: number, beganMs: number): void => {
    if (isArmed) return;
    isArmed = true;
    for (const [i, death] of deaths.entries()) {
      if (death.rank !== rank || existsSync(diedFile(i))) continue;
      // One that fell due while nobody had the place follows at once.
      const ms = Math.max(1, beganMs + 1000 * death.atSeconds - Date.now());
      const die = (): void => {
        writeFileSync(diedFile(i), String(Date.now()));
        process.kill(process.pid, 'SIGKILL');
      };
      setTimeout(die, ms).unref();
    }
  };
  const stepTimes: number[] = [];
  let beganMs = 0;
  const outcome = await run(mpi, optionsOf(spec), async (job): Promise<PeriodsOutcome | undefined> => {
    const { comm } = job;
    const { rank, size } = comm;
    const plate = new Plate(comm, ROWS);
    let step = 0;
    job.protect('plate', plate.own);
    job.protectValue('step', {
      save: () => {
        Atomics.wait(pause, 0, 0, 1000 * costSeconds);
        return step;
      },
      restore: (value: number) => {
        step = value;
      },
    });
    // Whoever goes back to a save alone is behind this.
    if (step === 0) {
      if (rank === 0 && !existsSync(beganFile)) writeFileSync(beganFile, String(Date.now()));
      await comm.barrier();
    }
    beganMs = Number(readFileSync(beganFile, 'utf8'));
    arm(rank, beganMs);
    while (step < steps) {
      const stepMs = performance.now();
      await rest(1000 * stepSeconds);
      await plate.step();
      step++;
      const fromMs = performance.now();
      stepTimes.push((fromMs - stepMs) / 1000);
      await job.next();
      const seconds = (performance.now() - fromMs) / 1000;
      // Nothing else takes as long.
      if (seconds >= costSeconds) costs.push(seconds);
    }
    const wallSeconds = (Date.now() - beganMs) / 1000;
    const digest = await plate.digest();
    if (digest === undefined) return undefined;
    const { failures, inPlace } = job.total;
    return {
      wallSeconds,
      failures,
      inPlace,
      everySteps: job.everySteps[0],
      saves: made.filter(({ error }) => error === undefined).length,
      stepSeconds: undisturbedMean(stepTimes, costSeconds),
      costSeconds: mean(costs),
      restoreSeconds: failures === 0 ? 0 : restoredSeconds / failures,
      isRight: digest === undisturbedDigest(size * ROWS, steps),
    };
  });
  if (outcome !== undefined) writeFileSync(file, JSON.stringify(outcome));
  await mpi.finalize();
}
