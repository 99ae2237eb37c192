// The table of starters, in the order in which they are asked; the last one always answers. Where one starts another (mpirun inside an
// allocation of Slurm), the one that started this process comes first. A starter that is only there in part is an error: ranks that each
// believe they are a world of one compute nonsense next to each other.
import { MultirailError } from '../../errors.ts';
import type { Env } from './env.ts';
import { kubernetes } from './kubernetes.ts';
import { openMpi } from './open-mpi.ts';
import { own } from './own.ts';
import { pmi } from './pmi.ts';
import { pmix } from './pmix.ts';
import { slurm } from './slurm.ts';
import type { Incomplete, Starter } from './starter.ts';
import { torchrun } from './torchrun.ts';

/** Nobody started this process as a rank. */
export const alone: Starter = {
  name: 'world of one',
  seen: () => 'no variable of a starter',
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

export const STARTERS: readonly Starter[] = [own, pmi, torchrun, kubernetes, pmix, openMpi, slurm, alone];

const listOf = (names: readonly string[]): string => names.join(', ').replace(/, (?=[^,]*$)/, ' and ');
const areSet = (names: readonly string[]): string => `${listOf(names)} ${names.length === 1 ? 'is' : 'are'}`;

/** A starter of which some variables are missing: it has no place for this process, only an error that names them. */
function withoutPlace({ name }: Starter, { set, missing }: Incomplete): Starter {
  const text =
    `${areSet(missing)} not set, although ${areSet(set)}, as for a rank of "${name}": set ${missing.length === 1 ? 'it' : 'them'} as well ` +
    `(docs/guide/launching.md), or start the ranks with multirail run; a process that is meant to be alone says so by MULTIRAIL_RANK=0 and MULTIRAIL_SIZE=1`;
  return {
    name,
    seen: () => set.join(', '),
    place: () => {
      throw new MultirailError('ERR_INIT', text);
    },
  };
}

/** PMIx shows, its library cannot be used, and no other variables say who the ranks are. */
function withoutPmix(seen: string, missing: string): Starter {
  return {
    name: pmix.name,
    seen: () => seen,
    place: () => {
      const text =
        `this is a process of a job of PMIx (${seen}), and PMIx cannot be used: ${missing}. Nothing else says which rank it is; a process that is ` +
        'meant to be alone says so by MULTIRAIL_RANK=0 and MULTIRAIL_SIZE=1';
      throw new MultirailError('ERR_INIT', text);
    },
  };
}

export interface FoundStarter {
  starter: Starter;
  /** The variables that say so. */
  seen: string;
  /** Why PMIx is not the way, although its variables are there. */
  pmixMissing?: string;
}

/** The starter that started this process. `pmixMissing` is asked where PMIx shows: why it cannot be used, or undefined when it can. */
export function findStarter(env: Env, pmixMissing: () => string | undefined): FoundStarter {
  let without: { seen: string; missing: string } | undefined;
  for (const starter of STARTERS) {
    const seen = starter.seen(env);
    if (seen === undefined) continue;
    const missing = starter === pmix ? pmixMissing() : undefined;
    if (missing !== undefined) {
      without = { seen, missing };
      continue;
    }
    const found = (starter === alone ? incompleteOne(env) : undefined) ?? { starter, seen };
    if (without === undefined) return found;
    if (found.starter === alone) return { starter: withoutPmix(without.seen, without.missing), seen: without.seen };
    return { ...found, pmixMissing: without.missing };
  }
  return { starter: alone, seen: alone.seen(env) as string };
}

function incompleteOne(env: Env): { starter: Starter; seen: string } | undefined {
  for (const starter of STARTERS) {
    const incomplete = starter.incomplete?.(env);
    if (incomplete !== undefined) return { starter: withoutPlace(starter, incomplete), seen: incomplete.set.join(', ') };
  }
  return undefined;
}
