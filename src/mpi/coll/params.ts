// The parameters of collectives; src/params.ts puts them into the table of all.
import { bool, int, KIB, type ParamLevel, type ParamRows, type StringParam, string } from '../../param-spec.ts';

/** Parameter that names the algorithm of a collective. */
const algorithm = (level: ParamLevel, call: string, names: readonly string[]): StringParam =>
  string(
    level,
    'auto',
    `Algorithm of ${call} where it can be used; auto = by length and number of ranks (docs/reference/collectives.md).`,
    ['auto', ...names],
  );

export const COLL_PARAMS = {
  coll_check_signatures: bool(
    'user',
    false,
    'Every message of a collective says which call it is of, so that calls that do not belong together end with ERR_COLLECTIVE_MISMATCH.',
  ),
  coll_shared_memory: bool(
    'user',
    true,
    'Short collectives among ranks of one host go through memory that they share, where btl has sm; a communicator says otherwise by its property usesSharedMemory.',
  ),
  coll_shared_memory_bytes_max: int(
    'tuner',
    64 * KIB,
    'bytes',
    0,
    1024 * KIB,
    'Collectives through shared memory: most bytes that a rank puts there; longer ones go by messages. Each communicator takes twice that for each rank, once it is used.',
  ),
  coll_shared_memory_ranks_max: int(
    'tuner',
    16,
    'ranks',
    2,
    512,
    'Collectives of communicators with more ranks go by messages, of which each rank sends to few others; ranks that share memory may have to wake each other.',
  ),
  coll_barrier_algorithm: algorithm('tuner', 'barrier', ['dissemination', 'shared_memory']),
  coll_bcast_algorithm: algorithm('tuner', 'bcast', ['binomial', 'scatter_allgather', 'chain', 'shared_memory']),
  coll_bcast_long_bytes: int(
    'tuner',
    64 * KIB,
    'bytes',
    0,
    2 ** 40,
    'bcast: from this length on, with 4 ranks or more, scatter and ring allgather.',
  ),
  coll_bcast_segment_bytes: int('tuner', 64 * KIB, 'bytes', 1, 2 ** 30, 'bcast by chain: length of the pieces that follow each other.'),
  coll_reduce_algorithm: algorithm('tuner', 'reduce', ['binomial', 'rabenseifner', 'shared_memory']),
  coll_reduce_long_bytes: int('tuner', 64 * KIB, 'bytes', 0, 2 ** 40, 'reduce: from this length on by the algorithm of Rabenseifner.'),
  coll_allreduce_algorithm: algorithm('tuner', 'allreduce', ['recursive_doubling', 'rabenseifner', 'ring', 'shared_memory']),
  coll_allreduce_long_bytes: int(
    'tuner',
    16 * KIB,
    'bytes',
    0,
    2 ** 40,
    'allreduce: from this length on by the algorithm of Rabenseifner.',
  ),
  coll_allreduce_ring_bytes: int(
    'tuner',
    512 * KIB,
    'bytes',
    0,
    2 ** 40,
    'allreduce: from this length on by ring, where the number of ranks is no power of two and the operation commutes.',
  ),
  coll_gather_algorithm: algorithm('tuner', 'gather', ['binomial', 'linear']),
  coll_scatter_algorithm: algorithm('tuner', 'scatter', ['binomial', 'linear']),
  coll_gather_long_bytes: int(
    'tuner',
    4 * KIB,
    'bytes',
    0,
    2 ** 40,
    'gather and scatter: from this length of each rank on without a tree.',
  ),
  coll_allgather_algorithm: algorithm('tuner', 'allgather', ['bruck', 'recursive_doubling', 'ring', 'shared_memory']),
  coll_allgather_long_bytes: int('tuner', 64 * KIB, 'bytes', 0, 2 ** 40, 'allgather: from this length of all ranks together on by ring.'),
  coll_alltoall_algorithm: algorithm('tuner', 'alltoall', ['linear', 'bruck', 'pairwise', 'shared_memory']),
  coll_alltoall_short_bytes: int(
    'tuner',
    256,
    'bytes',
    0,
    2 ** 40,
    'alltoall: up to this length for each rank, with 8 ranks or more, by the algorithm of Bruck.',
  ),
  coll_alltoall_long_bytes: int(
    'tuner',
    32 * KIB,
    'bytes',
    0,
    2 ** 40,
    'alltoall: from this length for each rank on one pair after the other.',
  ),
  coll_reduce_scatter_algorithm: algorithm('tuner', 'reduceScatter and reduceScatterBlock', [
    'reduce_scatterv',
    'recursive_halving',
    'pairwise',
  ]),
  coll_reduce_scatter_long_bytes: int(
    'tuner',
    256 * KIB,
    'bytes',
    0,
    2 ** 40,
    'reduceScatter: from this length of all parts together on one pair after the other.',
  ),
  coll_scan_algorithm: algorithm('tuner', 'scan and exscan', ['recursive_doubling', 'linear']),
} as const satisfies ParamRows;
