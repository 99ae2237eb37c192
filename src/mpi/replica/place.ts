// Whether the ranks of this job are two or three processes each, and which of them this one is.
import { MultirailError } from '../../errors.ts';
import { type Place, placeOf } from '../../ft/replica/pairs.ts';
import { type ParamTable, survivesFailures } from '../../params.ts';
import type { RuntimeJob } from '../runtime-options.ts';

/** Undefined where ranks have one process each. */
export function replicaPlace(job: Pick<RuntimeJob, 'rank' | 'size'>, params: ParamTable): Place | undefined {
  if (params.int('ft_replicas') === 1) return undefined;
  if (survivesFailures(params) || params.bool('coll_check_signatures'))
    throw new MultirailError(
      'ERR_CONFIG',
      'ft_replicas does not go together with ft, ft_spares, ft_respawn, ft_join and coll_check_signatures: what they do follows from times and deaths that replicas do not see alike; leave one of them out',
      { rank: job.rank },
    );
  return placeOf(job.rank, job.size, params.int('ft_replicas'));
}
