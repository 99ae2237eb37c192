// run() where each rank is two or three processes. Nobody goes back within the job: when no majority is right it ends with exit code 76, and
// `multirail run --on-diverged relaunch` starts it again, from a save in a store if there is one.
import { MultirailError } from '../../errors.ts';
import type { Runtime } from '../../mpi/runtime.ts';
import { crc32c } from '../../native/crc32c.ts';
import { RENEW_CODE } from '../../util/exit-codes.ts';
import { decodeImage } from '../image/decode.ts';
import { type RecoveryTrace, recoveryChannel } from './channels.ts';
import type { FtJob } from './job.ts';
import { Ledger } from './ledger.ts';
import { requireSameSettings } from './meeting.ts';
import type { Settings } from './options.ts';
import { PairedJob, type Renewal } from './paired-job.ts';
import { pairedLine } from './paired-line.ts';
import { Periods } from './periods.ts';
import { type JobRecovery, recoveryOf } from './recovery.ts';
import { jobIdOf, Registry } from './registry.ts';
import { warnAsRank } from './warning.ts';

const NOTHING_REPEATED = { failures: 0, inPlace: 0, lostSteps: 0 } as const;

/** Any save may be gone back to, where they are not validated. */
const keepAll = (settings: Settings): Settings =>
  settings.validate ? settings : { ...settings, stores: settings.stores.map((level) => ({ ...level, keep: Number.MAX_SAFE_INTEGER })) };

/** As run(), with options that make sense. */
export async function runPaired<T>(mpi: Runtime, asked: Settings, body: (job: FtJob) => T | Promise<T>): Promise<T> {
  const settings = keepAll(asked);
  const { world } = mpi;
  const { rank } = world;
  if (settings.isAsynchronous)
    throw new MultirailError('ERR_SUPPORT', "recovery 'asynchronous' does not go together with replicas: a pair that differs goes back", {
      rank,
    });
  if (!settings.validate && mpi.params.int('ft_replicas') > 2)
    throw new MultirailError(
      'ERR_SUPPORT',
      'validate: false does not go together with three replicas, of which a save heals the one that differs: leave the option out, or use --replicas 2',
      { rank },
    );
  const beganMs = performance.now();
  const own = await world.dup();
  const series = world.pairedSeries();
  series.own.add(own.contextId);
  const { replica } = series;
  const warn = (text: string): void => warnAsRank(rank, text);
  const renewal = renewalOf(mpi);
  if (renewal !== undefined && settings.stores.length === 0 && rank === 0 && replica.isLead)
    warn('no level of saves is a disk or a store: where a replica dies, the job goes on without it (ft_replica_renew)');
  requireSameSettings(await own.allgatherObject({ settings: settings.signature }), rank);
  const jobName = mpi.params.string('ft_job');
  const { line, epoch } = await pairedLine({ own, replica, process: series.process, jobName, settings, warn });
  const image = line && decodeImage(line.image, crc32c);
  const step = image?.header.step ?? 0;
  const recovery = recoveryFrom(line && { epoch, save: line.name.k, level: line.level.name }, rank);
  if (recovery !== undefined && recoveryChannel.hasSubscribers) {
    const { save, level } = recovery;
    const durationMs = performance.now() - beganMs;
    recoveryChannel.publish({ rank, epoch, save, level, failed: [], lostSteps: 0, durationMs } satisfies RecoveryTrace);
  }
  const onceAtLead = { once: <V>(make: () => V): V => replica.onceSync(make) };
  const periods = new Periods(settings);
  periods.begin(step, { periods: undefined, failures: 0, elapsedSeconds: 0 });
  const ledger = new Ledger();
  // Nothing is in memory.
  series.count(() => ledger.report(false, 0));
  const job = new PairedJob(
    { comm: world, registry: new Registry(rank, image?.sections, undefined, onceAtLead), recovery, step, settings },
    {
      own,
      series,
      periods,
      ledger,
      jobName,
      jobId: jobIdOf(jobName),
      quietMs: mpi.params.int('ft_quiet_ms'),
      next: { epoch, k: line === undefined ? 0 : line.name.k + 1 },
      renewal,
      warn,
    },
  );
  try {
    const value = await body(job);
    await job.end();
    await own.free();
    return value;
  } finally {
    job.close();
  }
}

function renewalOf(mpi: Runtime): Renewal | undefined {
  const when = mpi.params.string('ft_replica_renew');
  if (when === 'off') return undefined;
  return {
    isForHosts: when === 'host',
    async end(text) {
      await mpi.abort(RENEW_CODE, text);
      throw new MultirailError('ERR_ABORT', text, { rank: mpi.rank });
    },
  };
}

function recoveryFrom(from: { epoch: number; save: number; level: string } | undefined, rank: number): JobRecovery | undefined {
  return from && recoveryOf({ ...from, failed: [], lostSteps: 0, total: NOTHING_REPEATED }, undefined, rank);
}
