// The parameters of PMIx; src/params.ts puts them into the table of all.
import { bool, type ParamRows, string } from '../../param-spec.ts';

export const PMIX_PARAMS = {
  ess_pmix: bool(
    'user',
    true,
    'Ranks that `mpirun`, `prterun` or `srun --mpi=pmix` has started find each other by PMIx, where its library is installed.',
  ),
  ess_pmix_library: string('tuner', 'libpmix.so.2', 'Name or path of the library of PMIx.'),
} as const satisfies ParamRows;
