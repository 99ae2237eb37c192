// The parameters of shared-memory rails; src/params.ts puts them into the table of all.
import { int, KIB, MIB, type ParamRows, string } from '../../param-spec.ts';

export const SM_PARAMS = {
  btl_sm_ring_bytes: int(
    'tuner',
    1 * MIB,
    'bytes',
    256 * KIB,
    64 * MIB,
    'Ring of a shared-memory rail, one in each direction, rounded down to a power of two; the smaller one of both sides counts. Memory is used as far as it is touched.',
  ),
  btl_sm_eager_limit_bytes: int(
    'tuner',
    32 * KIB,
    'bytes',
    0,
    256 * KIB,
    'Messages up to this length are sent eagerly over shared memory; the smaller one of both sides counts, and pml_eager_limit_bytes too.',
  ),
  btl_sm_single_copy: string(
    'user',
    'auto',
    'Large messages are read out of the memory of the sender (process_vm_readv) where the kernel permits: always, never, or where a trial at start-up finds it faster than the ring.',
    ['auto', 'always', 'never'],
  ),
  btl_sm_single_copy_min_bytes: int(
    'tuner',
    64 * KIB,
    'bytes',
    4 * KIB,
    2 ** 40,
    'Shortest message that is read out of the memory of the sender; it must exceed the eager limit too.',
  ),
} as const satisfies ParamRows;
