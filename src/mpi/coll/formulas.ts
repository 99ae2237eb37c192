// What each algorithm costs: messages and bytes that a rank sends, and rounds, which is how often it waits for others. In closed form, not
// taken from the algorithms: a test counts what they really do, for 2 to 33 ranks, and finds the same numbers. The sentences are printed
// by `multirail info --collectives` and are in docs/reference/collectives.md.
//
//   P ranks, r this rank, v = r counted from the root, n bytes (choice.ts says of what)
//   lg = log2 P, rounded up; L = log2 of the largest power of two that is not above P; X = P - 2^L ranks that are folded
//   subtree(v) = min(lowest bit of v, P - v): ranks below v in a binomial tree, with v; children(v) = log2 of it, rounded up
import type { Algorithm, CollectiveName } from './choice.ts';

export interface Cost {
  messages: number;
  bytes: number;
  rounds: number;
}

/** A call as it looks from one rank. */
export interface CostCase {
  size: number;
  rank: number;
  root: number;
  /** n. */
  bytes: number;
  /** Bytes of what cannot be cut: an element, or the unit of an operation. */
  unitBytes: number;
  /** Pieces of a chain. */
  segmentBytes: number;
  commute: boolean;
}

interface Formula {
  messages: string;
  bytes: string;
  rounds: string;
  cost(c: CostCase): Cost;
}

// ---------------------------------------------------------------- shapes

const log2Up = (n: number): number => Math.ceil(Math.log2(n));
const log2Down = (n: number): number => Math.floor(Math.log2(n));
const one = (is: boolean): number => (is ? 1 : 0);

const fromRoot = ({ rank, root, size }: CostCase): number => (rank - root + size) % size;
const lowest = (v: number, size: number): number => (v === 0 ? 2 ** log2Up(size) : v & -v);
const subtree = (v: number, size: number): number => Math.min(lowest(v, size), size - v);
const children = (v: number, size: number): number => log2Up(subtree(v, size));

/** Bytes of the parts [from, to) of n bytes in `parts` parts that differ by no more than one unit, the longer ones first. */
function partBytes({ bytes, unitBytes }: CostCase, parts: number, from: number, to: number): number {
  const units = bytes / unitBytes;
  const begin = (i: number): number => i * Math.floor(units / parts) + Math.min(i, units % parts);
  return (begin(to) - begin(from)) * unitBytes;
}
const part = (c: CostCase, i: number): number => partBytes(c, c.size, i % c.size, (i % c.size) + 1);

/** Which one this is of the ranks that take part in a power of two, and whether it acts for a neighbour too. */
function fold({ rank, size }: CostCase): { index: number; levels: number; isAway: boolean; isPaired: boolean } {
  const levels = log2Down(size);
  const extra = size - 2 ** levels;
  const isFolded = rank < 2 * extra;
  const isAway = isFolded && rank % 2 === 0;
  return { index: isFolded ? (rank - 1) / 2 : rank - extra, levels, isAway, isPaired: isFolded && !isAway };
}

/** What rank `index` keeps after the steps of recursive halving up to `level`, nearest partner first. */
function kept(c: CostCase, index: number, levels: number, level: number): number {
  let from = 0;
  for (let i = 0; i <= level; i++) if ((index >> i) & 1) from += 2 ** (levels - 1 - i);
  return partBytes(c, 2 ** levels, from, from + 2 ** (levels - 1 - level));
}

/** Nothing is sent: what is waited for stands in memory. */
const SHARED: Formula = {
  messages: '0',
  bytes: '0',
  rounds: '0',
  cost: () => ({ messages: 0, bytes: 0, rounds: 0 }),
};

const AWAY = (bytes: number): Cost => ({ messages: 1, bytes, rounds: 2 });

// ---------------------------------------------------------------- the table

export const FORMULAS: { readonly [N in CollectiveName]: { readonly [A in Algorithm<N>]: Formula } } = {
  barrier: {
    shared_memory: SHARED,
    dissemination: {
      messages: 'lg',
      bytes: '0',
      rounds: 'lg',
      cost: ({ size }) => ({ messages: log2Up(size), bytes: 0, rounds: log2Up(size) }),
    },
  },
  bcast: {
    shared_memory: SHARED,
    binomial: {
      messages: 'children(v)',
      bytes: 'children(v) n',
      rounds: '1 for what comes, 1 for what goes: at most 2',
      cost: (c) => {
        const below = children(fromRoot(c), c.size);
        return { messages: below, bytes: below * c.bytes, rounds: one(fromRoot(c) > 0) + one(below > 0) };
      },
    },
    scatter_allgather: {
      messages: 'children(v) + P - 1',
      bytes: '(subtree(v) - 1) n/P + (P - 1) n/P',
      rounds: '2 + P - 1, one less at the root and at leaves',
      cost: (c) => {
        const v = fromRoot(c);
        const below = children(v, c.size);
        const bytewise = { ...c, unitBytes: 1 };
        const scattered = partBytes(bytewise, c.size, v + 1, v + subtree(v, c.size));
        return {
          messages: below + c.size - 1,
          bytes: scattered + c.bytes - part(bytewise, v + 1),
          rounds: one(v > 0) + one(below > 0) + c.size - 1,
        };
      },
    },
    chain: {
      messages: 's = n / segment, 0 at the last rank',
      bytes: 'n, 0 at the last rank',
      rounds: 's + 1, one less at both ends',
      cost: (c) => {
        const v = fromRoot(c);
        const pieces = Math.max(1, Math.ceil(c.bytes / c.segmentBytes));
        const isLast = v === c.size - 1;
        return { messages: isLast ? 0 : pieces, bytes: isLast ? 0 : c.bytes, rounds: pieces + one(v > 0 && !isLast) };
      },
    },
  },
  reduce: {
    shared_memory: SHARED,
    binomial: {
      messages: '1, 0 at the root (without commuting: the tree of rank 0, and 1 from there to the root)',
      bytes: 'n for each message',
      rounds: 'children(v) + 1, one less at the root',
      cost: (c) => {
        const top = c.commute ? c.root : 0;
        const v = (c.rank - top + c.size) % c.size;
        const passesOn = top !== c.root && c.rank === top;
        const messages = one(v > 0) + one(passesOn);
        const waits = one(top !== c.root && (passesOn || c.rank === c.root));
        return { messages, bytes: messages * c.bytes, rounds: children(v, c.size) + one(v > 0) + waits };
      },
    },
    rabenseifner: {
      messages: 'L + 1, L at the root; folded ranks 1 more or 1 in all',
      bytes: '(1 - 1/2^L) n, and n/2^(l+1) to leave the gathering at level l',
      rounds: 'L to scatter, 1 to L to gather; 1 more for folded ranks',
      cost: (c) => {
        const { index, levels, isAway, isPaired } = fold(c);
        const atRoot = fold({ ...c, rank: c.root });
        const collector = atRoot.isAway ? c.root + 1 : c.root;
        const collectorIndex = atRoot.isAway ? c.root / 2 : atRoot.index;
        const isMovedTo = atRoot.isAway && c.rank === c.root;
        if (isAway) return { messages: 1, bytes: c.bytes, rounds: 1 + one(isMovedTo) };
        let messages = levels;
        let bytes = c.bytes - kept(c, index, levels, levels - 1);
        let rounds = levels + one(isPaired);
        for (let level = levels - 1; level >= 0; level--) {
          rounds++;
          if (((index ^ collectorIndex) >> level) % 2 === 0) continue;
          messages++;
          bytes += kept(c, index, levels, level);
          break;
        }
        if (atRoot.isAway && c.rank === collector) {
          messages++;
          bytes += c.bytes;
          rounds++;
        }
        return { messages, bytes, rounds };
      },
    },
  },
  allreduce: {
    shared_memory: SHARED,
    recursive_doubling: {
      messages: 'L; folded ranks 1 or L + 1',
      bytes: 'L n; folded ranks n or (L + 1) n',
      rounds: 'L; folded ranks 2 or L + 2',
      cost: (c) => {
        const { levels, isAway, isPaired } = fold(c);
        if (isAway) return AWAY(c.bytes);
        const messages = levels + one(isPaired);
        return { messages, bytes: messages * c.bytes, rounds: levels + 2 * one(isPaired) };
      },
    },
    rabenseifner: {
      messages: '2 L; folded ranks 1 or 2 L + 1',
      bytes: '2 (1 - 1/2^L) n; folded ranks n, or n more',
      rounds: '2 L; folded ranks 2 or 2 L + 2',
      cost: (c) => {
        const { index, levels, isAway, isPaired } = fold(c);
        if (isAway) return AWAY(c.bytes);
        let bytes = c.bytes - kept(c, index, levels, levels - 1) + one(isPaired) * c.bytes;
        for (let level = 0; level < levels; level++) bytes += kept(c, index, levels, level);
        return { messages: 2 * levels + one(isPaired), bytes, rounds: 2 * levels + 2 * one(isPaired) };
      },
    },
    ring: {
      messages: '2 (P - 1)',
      bytes: '2 (P - 1) n/P',
      rounds: '2 (P - 1)',
      cost: (c) => ({
        messages: 2 * (c.size - 1),
        bytes: 2 * c.bytes - part(c, c.rank + 1) - part(c, c.rank + 2),
        rounds: 2 * (c.size - 1),
      }),
    },
  },
  gather: {
    binomial: {
      messages: '1, 0 at the root',
      bytes: 'subtree(v) n, 0 at the root',
      rounds: '1 for what comes, 1 for what goes: at most 2',
      cost: (c) => {
        const v = fromRoot(c);
        const below = subtree(v, c.size);
        return { messages: one(v > 0), bytes: v > 0 ? below * c.bytes : 0, rounds: one(v > 0) + one(below > 1) };
      },
    },
    linear: {
      messages: '1, 0 at the root',
      bytes: 'n, 0 at the root',
      rounds: '1',
      cost: (c) => ({ messages: one(c.rank !== c.root), bytes: c.rank === c.root ? 0 : c.bytes, rounds: 1 }),
    },
  },
  scatter: {
    binomial: {
      messages: 'children(v)',
      bytes: '(subtree(v) - 1) n',
      rounds: '1 for what comes, 1 for what goes: at most 2',
      cost: (c) => {
        const v = fromRoot(c);
        const below = subtree(v, c.size);
        return { messages: children(v, c.size), bytes: (below - 1) * c.bytes, rounds: one(v > 0) + one(below > 1) };
      },
    },
    linear: {
      messages: 'P - 1 at the root, else 0',
      bytes: '(P - 1) n at the root, else 0',
      rounds: '1',
      cost: (c) => {
        const messages = c.rank === c.root ? c.size - 1 : 0;
        return { messages, bytes: messages * c.bytes, rounds: 1 };
      },
    },
  },
  allgather: {
    shared_memory: SHARED,
    bruck: {
      messages: 'lg',
      bytes: '(P - 1) n/P',
      rounds: 'lg',
      cost: (c) => ({ messages: log2Up(c.size), bytes: c.bytes - c.bytes / c.size, rounds: log2Up(c.size) }),
    },
    recursive_doubling: {
      messages: 'lg',
      bytes: '(P - 1) n/P',
      rounds: 'lg',
      cost: (c) => ({ messages: log2Up(c.size), bytes: c.bytes - c.bytes / c.size, rounds: log2Up(c.size) }),
    },
    ring: {
      messages: 'P - 1',
      bytes: '(P - 1) n/P',
      rounds: 'P - 1',
      cost: (c) => ({ messages: c.size - 1, bytes: c.bytes - c.bytes / c.size, rounds: c.size - 1 }),
    },
  },
  alltoall: {
    shared_memory: SHARED,
    linear: {
      messages: 'P - 1',
      bytes: '(P - 1) n',
      rounds: '1',
      cost: (c) => ({ messages: c.size - 1, bytes: (c.size - 1) * c.bytes, rounds: 1 }),
    },
    bruck: {
      messages: 'lg',
      bytes: 'n for each of the distances 1 to P - 1 and each bit that is set in it: about lg P/2 n',
      rounds: 'lg',
      cost: (c) => {
        let parts = 0;
        for (let distance = 1; distance < c.size; distance++) for (let bits = distance; bits > 0; bits &= bits - 1) parts++;
        return { messages: log2Up(c.size), bytes: parts * c.bytes, rounds: log2Up(c.size) };
      },
    },
    pairwise: {
      messages: 'P - 1',
      bytes: '(P - 1) n',
      rounds: 'P - 1',
      cost: (c) => ({ messages: c.size - 1, bytes: (c.size - 1) * c.bytes, rounds: c.size - 1 }),
    },
  },
  reduce_scatter: {
    reduce_scatterv: {
      messages: '1; at rank 0 P - 1',
      bytes: 'n; at rank 0 (P - 1) n/P',
      rounds: 'children(r) + 2; at rank 0 lg + 1',
      cost: (c) => {
        const rounds = children(c.rank, c.size) + one(c.rank > 0) + 1;
        if (c.rank > 0) return { messages: 1, bytes: c.bytes, rounds };
        return { messages: c.size - 1, bytes: c.bytes - c.bytes / c.size, rounds };
      },
    },
    recursive_halving: {
      messages: 'L; folded ranks 1 or L + 1',
      bytes: '(P - 1) n/P; folded ranks n, or as much as others',
      rounds: 'L; folded ranks 2 or L + 2',
      cost: (c) => {
        const { levels, isAway, isPaired } = fold(c);
        if (isAway) return AWAY(c.bytes);
        // A rank that acts for a neighbour keeps two parts and sends one of them to it at the end.
        return { messages: levels + one(isPaired), bytes: c.bytes - c.bytes / c.size, rounds: levels + 2 * one(isPaired) };
      },
    },
    pairwise: {
      messages: 'P - 1',
      bytes: '(P - 1) n/P',
      rounds: 'P - 1',
      cost: (c) => ({ messages: c.size - 1, bytes: c.bytes - c.bytes / c.size, rounds: c.size - 1 }),
    },
  },
  scan: {
    recursive_doubling: {
      messages: 'for each distance 1, 2, 4, … below P, 1 where there is a partner: at most lg',
      bytes: 'n for each message',
      rounds: 'as messages',
      cost: (c) => {
        let messages = 0;
        for (let distance = 1; distance < c.size; distance *= 2) messages += one((c.rank ^ distance) < c.size);
        return { messages, bytes: messages * c.bytes, rounds: messages };
      },
    },
    linear: {
      messages: '1, 0 at the last rank',
      bytes: 'n, 0 at the last rank',
      rounds: '2, 1 at both ends',
      cost: (c) => {
        const sends = one(c.rank < c.size - 1);
        return { messages: sends, bytes: sends * c.bytes, rounds: sends + one(c.rank > 0) };
      },
    },
  },
};
