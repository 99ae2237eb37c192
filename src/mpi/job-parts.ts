// The parts of the library that a job has to ask for by a parameter. Only the ranks of such a job load them, and before they make a runtime:
// what every rank compiles at its start is time of its processor.
import { MultirailError } from '../errors.ts';
import { type ParamTable, survivesFailures } from '../params.ts';

const loaded: {
  ft?: typeof import('./ft/parts.ts');
  replica?: typeof import('./replica/parts.ts');
} = {};

const needsReplica = (params: ParamTable): boolean => params.int('ft_replicas') > 1 || params.string('ft_inject') !== '';

/** What a job with these parameters asks for is here. */
export function hasJobParts(params: ParamTable): boolean {
  return (loaded.ft !== undefined || !survivesFailures(params)) && (loaded.replica !== undefined || !needsReplica(params));
}

export async function loadJobParts(params: ParamTable): Promise<void> {
  if (survivesFailures(params)) loaded.ft ??= await import('./ft/parts.ts');
  if (needsReplica(params)) loaded.replica ??= await import('./replica/parts.ts');
}

/** Throws ERR_INTERNAL where the job has not asked for it. */
export function ftParts(): typeof import('./ft/parts.ts') {
  return loaded.ft ?? missing('ft');
}

/** As ftParts(). */
export function replicaParts(): typeof import('./replica/parts.ts') {
  return loaded.replica ?? missing('replica');
}

function missing(part: keyof typeof loaded): never {
  throw new MultirailError('ERR_INTERNAL', `the part "${part}" of the library is used in a job that has not asked for it`);
}
