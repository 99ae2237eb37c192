// Which algorithm a collective takes: one rule for each call, by number of ranks and bytes, with thresholds that are parameters. All ranks
// come to the same choice, since they give the same lengths and have the same parameters.
//
// The rules are those that the field has settled on: Thakur, Rabenseifner, Gropp: Optimization of collective communication operations
// in MPICH (2005); Pješivac-Grbović et al.: Performance analysis of MPI collective operations (2007).
import type { Params } from '../../btl/btl.ts';
import { SHORT_BYTES } from './shared/segment.ts';

/** Algorithms of each call; the first is what remains when no other one fits. */
export const ALGORITHMS = {
  barrier: ['dissemination', 'shared_memory'],
  bcast: ['binomial', 'scatter_allgather', 'chain', 'shared_memory'],
  reduce: ['binomial', 'rabenseifner', 'shared_memory'],
  allreduce: ['recursive_doubling', 'rabenseifner', 'ring', 'shared_memory'],
  gather: ['binomial', 'linear'],
  scatter: ['binomial', 'linear'],
  allgather: ['bruck', 'recursive_doubling', 'ring', 'shared_memory'],
  alltoall: ['linear', 'bruck', 'pairwise', 'shared_memory'],
  reduce_scatter: ['reduce_scatterv', 'recursive_halving', 'pairwise'],
  scan: ['recursive_doubling', 'linear'],
} as const;

export type CollectiveName = keyof typeof ALGORITHMS;
export type Algorithm<N extends CollectiveName = CollectiveName> = (typeof ALGORITHMS)[N][number];

/** What a choice depends on. */
export interface Shape {
  size: number;
  /**
   * bcast, reduce, allreduce, scan: length of the buffer. gather, scatter, alltoall: what goes from one rank to another.
   * allgather, reduce_scatter: of all ranks together.
   */
  bytes: number;
  /** Whether the operation of a reduction commutes; undefined for other calls. */
  commute?: boolean;
  /** Elements that can be combined apart from each other. */
  units?: number;
  /** The ranks are on one host, and may share memory. */
  isOneHost?: boolean;
  /** The operation is one of Op.create(). */
  isOfUser?: boolean;
}

/** The parameters of the choice. */
export interface Tuning {
  /** Messages say which call they are of. */
  readonly checkSignatures: boolean;
  /** Collectives may go through memory that the ranks of a host share. */
  readonly sharedMemory: boolean;
  /** The most bytes that a rank puts there. */
  readonly sharedMemoryBytesMax: number;
  /** Collectives of communicators with more ranks go by messages, but for those of the next line. */
  readonly sharedMemoryRanksMax: number;
  /** The same for barriers and short allreduces. */
  readonly sharedMemoryShortRanksMax: number;
  readonly forced: Readonly<Record<CollectiveName, string>>;
  readonly bcastLongBytes: number;
  readonly bcastSegmentBytes: number;
  readonly reduceLongBytes: number;
  readonly allreduceLongBytes: number;
  readonly allreduceRingBytes: number;
  readonly gatherLongBytes: number;
  readonly allgatherLongBytes: number;
  readonly alltoallShortBytes: number;
  readonly alltoallLongBytes: number;
  readonly reduceScatterLongBytes: number;
}

export function tuningOf(params: Params): Tuning {
  return {
    checkSignatures: params.bool('coll_check_signatures'),
    sharedMemory: params.bool('coll_shared_memory'),
    sharedMemoryRanksMax: params.int('coll_shared_memory_ranks_max'),
    sharedMemoryShortRanksMax: params.int('coll_shared_memory_short_ranks_max'),
    sharedMemoryBytesMax: params.int('coll_shared_memory_bytes_max'),
    forced: {
      barrier: params.string('coll_barrier_algorithm'),
      bcast: params.string('coll_bcast_algorithm'),
      reduce: params.string('coll_reduce_algorithm'),
      allreduce: params.string('coll_allreduce_algorithm'),
      gather: params.string('coll_gather_algorithm'),
      scatter: params.string('coll_scatter_algorithm'),
      allgather: params.string('coll_allgather_algorithm'),
      alltoall: params.string('coll_alltoall_algorithm'),
      reduce_scatter: params.string('coll_reduce_scatter_algorithm'),
      scan: params.string('coll_scan_algorithm'),
    },
    bcastLongBytes: params.int('coll_bcast_long_bytes'),
    bcastSegmentBytes: params.int('coll_bcast_segment_bytes'),
    reduceLongBytes: params.int('coll_reduce_long_bytes'),
    allreduceLongBytes: params.int('coll_allreduce_long_bytes'),
    allreduceRingBytes: params.int('coll_allreduce_ring_bytes'),
    gatherLongBytes: params.int('coll_gather_long_bytes'),
    allgatherLongBytes: params.int('coll_allgather_long_bytes'),
    alltoallShortBytes: params.int('coll_alltoall_short_bytes'),
    alltoallLongBytes: params.int('coll_alltoall_long_bytes'),
    reduceScatterLongBytes: params.int('coll_reduce_scatter_long_bytes'),
  };
}

const isPowerOfTwo = (n: number): boolean => (n & (n - 1)) === 0;
/** Blocks of every rank must hold something, or there is nothing to split. */
const splits = ({ size, units = 0 }: Shape): boolean => units >= size;

/** What a rank puts there fits, and all ranks have the same functions. */
const shares = ({ size, isOneHost, isOfUser }: Shape, bytes: number, tuning: Tuning, ranksMax = tuning.sharedMemoryRanksMax): boolean =>
  isOneHost === true && size <= ranksMax && isOfUser !== true && bytes <= tuning.sharedMemoryBytesMax;
const sharesAll = (shape: Shape, tuning: Tuning): boolean => shares(shape, shape.bytes, tuning);

/** The most ranks with which any collective goes through shared memory. */
export const sharedRanksMax = ({ sharedMemoryRanksMax, sharedMemoryShortRanksMax }: Tuning): number =>
  Math.max(sharedMemoryRanksMax, sharedMemoryShortRanksMax);

/** In calls that nobody leaves before everybody has come, a rank waits once or twice in memory, and for log2(ranks) messages otherwise. */
const sharesShort = (shape: Shape, bytes: number, tuning: Tuning): boolean =>
  bytes <= SHORT_BYTES && shares(shape, bytes, tuning, sharedRanksMax(tuning));

/** Algorithms that work only for some shapes; all others work always. */
const FITS: { readonly [N in CollectiveName]?: Readonly<Record<string, (shape: Shape, tuning: Tuning) => boolean>> } = {
  barrier: { shared_memory: (shape, tuning) => sharesShort(shape, 0, tuning) },
  bcast: { shared_memory: sharesAll },
  reduce: { rabenseifner: splits, shared_memory: sharesAll },
  allreduce: {
    rabenseifner: splits,
    ring: (shape) => splits(shape) && shape.commute === true,
    shared_memory: (shape, tuning) => sharesAll(shape, tuning) || sharesShort(shape, shape.bytes, tuning),
  },
  allgather: { recursive_doubling: ({ size }) => isPowerOfTwo(size), shared_memory: sharesAll },
  alltoall: { shared_memory: (shape, tuning) => shares(shape, shape.size * shape.bytes, tuning) },
  reduce_scatter: { recursive_halving: ({ commute }) => commute === true, pairwise: ({ commute }) => commute === true },
};

/** Two ranks exchange the same bytes in one round instead of two; only where combining takes long it pays to share it. */
const PAIR_FACTOR = 256;

/** The rules of `auto`, with a sentence each for `multirail info --collectives`. */
const RULES: { readonly [N in CollectiveName]: { text: string; choose(shape: Shape, tuning: Tuning): Algorithm<N> } } = {
  barrier: { text: 'dissemination', choose: () => 'dissemination' },
  bcast: {
    text: 'binomial tree; from coll_bcast_long_bytes and 4 ranks on scatter and ring allgather',
    choose: ({ size, bytes }, { bcastLongBytes }) => (size >= 4 && bytes >= bcastLongBytes ? 'scatter_allgather' : 'binomial'),
  },
  reduce: {
    text: 'binomial tree; from coll_reduce_long_bytes on Rabenseifner',
    choose: ({ bytes }, { reduceLongBytes }) => (bytes >= reduceLongBytes ? 'rabenseifner' : 'binomial'),
  },
  allreduce: {
    text: 'recursive doubling; from coll_allreduce_long_bytes on, with 2 ranks 256 times that, Rabenseifner; from coll_allreduce_ring_bytes on ring, where the ranks are no power of two and the operation commutes',
    choose: (shape, { allreduceLongBytes, allreduceRingBytes }) => {
      const { size, bytes } = shape;
      const longBytes = size === 2 ? allreduceLongBytes * PAIR_FACTOR : allreduceLongBytes;
      if (bytes < longBytes) return 'recursive_doubling';
      return bytes >= allreduceRingBytes && !isPowerOfTwo(size) && shape.commute ? 'ring' : 'rabenseifner';
    },
  },
  gather: {
    text: 'binomial tree; from coll_gather_long_bytes of each rank on, or with 3 ranks or less, linear',
    choose: ({ size, bytes }, { gatherLongBytes }) => (size <= 3 || bytes >= gatherLongBytes ? 'linear' : 'binomial'),
  },
  scatter: {
    text: 'as gather',
    choose: ({ size, bytes }, { gatherLongBytes }) => (size <= 3 || bytes >= gatherLongBytes ? 'linear' : 'binomial'),
  },
  allgather: {
    text: 'recursive doubling for a power of two, else Bruck; from coll_allgather_long_bytes in all on ring, with more than 2 ranks',
    choose: ({ size, bytes }, { allgatherLongBytes }) => {
      if (size > 2 && bytes >= allgatherLongBytes) return 'ring';
      return isPowerOfTwo(size) ? 'recursive_doubling' : 'bruck';
    },
  },
  alltoall: {
    text: 'Bruck up to coll_alltoall_short_bytes for each rank with 8 ranks or more; linear; from coll_alltoall_long_bytes on pairwise',
    choose: ({ size, bytes }, { alltoallShortBytes, alltoallLongBytes }) => {
      if (size >= 8 && bytes <= alltoallShortBytes) return 'bruck';
      return bytes < alltoallLongBytes ? 'linear' : 'pairwise';
    },
  },
  reduce_scatter: {
    text: 'recursive halving; from coll_reduce_scatter_long_bytes in all on pairwise; reduce and scatterv where the operation does not commute',
    choose: ({ bytes, commute }, { reduceScatterLongBytes }) => {
      if (!commute) return 'reduce_scatterv';
      return bytes >= reduceScatterLongBytes ? 'pairwise' : 'recursive_halving';
    },
  },
  scan: { text: 'recursive doubling', choose: () => 'recursive_doubling' },
};

/** The algorithm for a call of this shape: the forced one where it can be used, else that of the rule. */
export function chooseAlgorithm<N extends CollectiveName>(name: N, shape: Shape, tuning: Tuning): Algorithm<N> {
  if (shape.size === 1) return ALGORITHMS[name][0];
  const fits = (algorithm: string): boolean => FITS[name]?.[algorithm]?.(shape, tuning) ?? true;
  const forced = tuning.forced[name];
  if (forced !== 'auto' && fits(forced)) return forced as Algorithm<N>;
  if (shape.isOneHost === true && forced === 'auto' && FITS[name]?.shared_memory?.(shape, tuning) === true)
    return 'shared_memory' as Algorithm<N>;
  const chosen = RULES[name].choose(shape, tuning);
  return fits(chosen) ? chosen : ALGORITHMS[name][0];
}

/** Algorithms that send messages. */
export type MessageAlgorithm<N extends CollectiveName> = Exclude<Algorithm<N>, 'shared_memory'>;

/** The algorithm for a call of this shape that sends messages: where memory cannot be shared after all, or must not. */
export function chooseMessages<N extends CollectiveName>(name: N, shape: Shape, tuning: Tuning): MessageAlgorithm<N> {
  return chooseAlgorithm(name, { ...shape, isOneHost: false }, tuning) as MessageAlgorithm<N>;
}

const SHARED_TEXT: Readonly<Record<string, string>> = {
  barrier: 'on one host, up to coll_shared_memory_short_ranks_max ranks, through shared memory',
  allreduce: `on one host, up to coll_shared_memory_ranks_max ranks, through shared memory, up to coll_shared_memory_bytes_max, and up to coll_shared_memory_short_ranks_max ranks up to ${SHORT_BYTES} bytes (not those of Op.create())`,
  alltoall:
    'on one host, up to coll_shared_memory_ranks_max ranks, through shared memory, up to coll_shared_memory_bytes_max for all ranks together',
  all: 'on one host, up to coll_shared_memory_ranks_max ranks, through shared memory, up to coll_shared_memory_bytes_max (reductions: not those of Op.create())',
};

/** Rule and parameter of a call, for people. */
export function ruleOf(name: CollectiveName, tuning: Tuning): string {
  const forced = tuning.forced[name];
  const text =
    FITS[name]?.shared_memory !== undefined && tuning.sharedMemory
      ? `${SHARED_TEXT[name] ?? SHARED_TEXT.all}; else ${RULES[name].text}`
      : RULES[name].text;
  return forced === 'auto' ? text : `${forced}, as coll_${name}_algorithm says, where it can be used; else ${text}`;
}
