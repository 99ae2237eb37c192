// The table of engines, in the order in which they are asked; the last one always answers. Where one starts another (mpirun inside an
// allocation of Slurm), the one that started this process comes first.
import type { Env } from '../env.ts';
import type { EngineDetector } from './engine.ts';
import { kubernetes } from './kubernetes.ts';
import { openMpi } from './open-mpi.ts';
import { own } from './own.ts';
import { pmi } from './pmi.ts';
import { slurm } from './slurm.ts';
import { torchrun } from './torchrun.ts';

/** Nobody started this process as a rank. */
export const alone: EngineDetector = {
  name: 'world of one',
  seen: () => 'no variable of an engine',
  place: () => ({
    rank: 0,
    size: 1,
    localRank: 0,
    localSize: 1,
    jobKey: 'alone',
    restarts: undefined,
    meeting: { by: 'nobody' },
  }),
};

export const ENGINES: readonly EngineDetector[] = [own, pmi, torchrun, kubernetes, openMpi, slurm, alone];

/** The engine that started this process, and the variables that say so. */
export function findEngine(env: Env): { engine: EngineDetector; seen: string } {
  for (const engine of ENGINES) {
    const seen = engine.seen(env);
    if (seen !== undefined) return { engine, seen };
  }
  return { engine: alone, seen: alone.seen(env) as string };
}
