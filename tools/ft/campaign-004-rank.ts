// The program of `multirail ft campaign 004`: steps of a fixed length, whose state is saved by the periods that the library plans. Ranks kill
// themselves when their time has come; rank 0 measures.
import { subscribe } from 'node:diagnostics_channel';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { RecoveryTrace, SaveTrace } from '../../src/ft/recover/channels.ts';
import { run } from '../../src/ft/recover/run.ts';
import { Op } from '../../src/mpi/op.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import type { PeriodsOutcome, PeriodsRun } from './campaign-004.ts';

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

const pause = new Int32Array(new SharedArrayBuffer(4));
const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Rank 0 writes the outcome into that file; next to it, when the job began. */
export async function campaign004AsRank(mpi: Runtime, spec: PeriodsRun, file: string): Promise<void> {
  const { mtbfSeconds, costSeconds, stepSeconds, steps, deaths } = spec;
  const beganFile = `${file}.began`;
  const costs: number[] = [];
  const restores: number[] = [];
  const made: SaveTrace[] = [];
  if (mpi.role === 'initial' && mpi.rank === 0) {
    subscribe('multirail:ft:save', (trace) => void made.push(trace as SaveTrace));
    subscribe('multirail:ft:recovery', (trace) => void restores.push((trace as RecoveryTrace).durationMs / 1000));
  }
  let isArmed = false;
  const arm = (rank: number, beganMs: number, failures: number): void => {
    if (isArmed) return;
    isArmed = true;
    // One that fell due while nobody had the place follows at once.
    for (const death of deaths.slice(failures)) {
      const ms = Math.max(1, beganMs + 1000 * death.atSeconds - Date.now());
      if (death.rank === rank) setTimeout(() => process.kill(process.pid, 'SIGKILL'), ms).unref();
    }
  };
  const stepTimes: number[] = [];
  let beganMs = 0;
  const outcome = await run(mpi, { mtbfSeconds: [mtbfSeconds] }, async (job): Promise<Omit<PeriodsOutcome, 'wallSeconds'> | undefined> => {
    const { comm } = job;
    const { rank, size } = comm;
    if (rank === 0 && !existsSync(beganFile)) writeFileSync(beganFile, String(Date.now()));
    await comm.barrier();
    beganMs = Number(readFileSync(beganFile, 'utf8'));
    arm(rank, beganMs, job.recovery?.total.failures ?? 0);
    const sum = new Float64Array(1);
    let step = 0;
    job.protect('sum', sum);
    job.protectValue('step', {
      save: () => {
        Atomics.wait(pause, 0, 0, 1000 * costSeconds);
        return step;
      },
      restore: (value: number) => {
        step = value;
      },
    });
    const all = new Float64Array(1);
    while (step < steps) {
      const stepMs = performance.now();
      await rest(1000 * stepSeconds);
      await comm.allreduce(Float64Array.of(step + rank), all, Op.SUM);
      sum[0] += all[0];
      step++;
      const fromMs = performance.now();
      stepTimes.push((fromMs - stepMs) / 1000);
      await job.next();
      const seconds = (performance.now() - fromMs) / 1000;
      // Nothing else takes as long.
      if (seconds >= costSeconds) costs.push(seconds);
    }
    if (rank !== 0) return undefined;
    const expected = (size * (steps * (steps - 1))) / 2 + (steps * (size * (size - 1))) / 2;
    return {
      failures: job.recovery?.total.failures ?? 0,
      everySteps: job.everySteps[0],
      saves: made.filter(({ error }) => error === undefined).length,
      stepSeconds: mean(stepTimes),
      costSeconds: mean(costs),
      restoreSeconds: mean(restores),
      isRight: sum[0] === expected,
    };
  });
  if (outcome !== undefined)
    writeFileSync(file, JSON.stringify({ ...outcome, wallSeconds: (Date.now() - beganMs) / 1000 } satisfies PeriodsOutcome));
  await mpi.finalize();
}
