// Groups: ordered sets of processes, each named by its world rank, and the algebra of MPI on them (MPI-4.1, section 7.3). A group is a
// value: nothing is sent, and nothing changes it.
import { MultirailError } from '../errors.ts';
import { UNDEFINED } from './constants.ts';

/** The two groups or communicators are the same one; two groups have the same processes in the same order. */
export const IDENT = 'IDENT';
/** The two communicators have the same processes in the same order, and contexts of their own. */
export const CONGRUENT = 'CONGRUENT';
/** The two groups or communicators have the same processes in another order. */
export const SIMILAR = 'SIMILAR';
/** The two groups or communicators do not have the same processes. */
export const UNEQUAL = 'UNEQUAL';
/** What Group.compare() and Communicator.compare() answer. */
export type Comparison = typeof IDENT | typeof CONGRUENT | typeof SIMILAR | typeof UNEQUAL;

/**
 * An ordered set of processes, each with its world rank (MPI-4.1, section 7.3). A group is a value: nothing is sent, and nothing changes
 * it. `comm.group` is that of a communicator.
 */
export class Group {
  /** World rank of each of its processes, in the order of their ranks here. */
  readonly worldRanks: readonly number[];
  /** Number of its processes (MPI-4.1, section 7.3.1). */
  readonly size: number;
  private readonly ownWorldRank: number;
  private index: ReadonlyMap<number, number> | undefined;

  /**
   * For communicators and the algebra below: `worldRanks` has no rank twice. `ownWorldRank`: that of this process.
   *
   * @internal
   */
  constructor(worldRanks: readonly number[], ownWorldRank: number) {
    this.worldRanks = worldRanks;
    this.size = worldRanks.length;
    this.ownWorldRank = ownWorldRank;
  }

  /** Rank of this process in the group; UNDEFINED when it is not in it (MPI-4.1, section 7.3.1). */
  get rank(): number {
    return this.rankOf(this.ownWorldRank) ?? UNDEFINED;
  }

  /**
   * Rank here of the process with that world rank; undefined when it is not in the group.
   *
   * @param worldRank Rank in `mpi.world`.
   */
  rankOf(worldRank: number): number | undefined {
    this.index ??= new Map(this.worldRanks.map((world, rank) => [world, rank]));
    return this.index.get(worldRank);
  }

  /**
   * A successor has taken the place of the process with that rank: it is known by both numbers from now on.
   *
   * @internal
   */
  succeed(rank: number, successor: number): void {
    this.rankOf(successor);
    (this.worldRanks as number[])[rank] = successor;
    (this.index as Map<number, number>).set(successor, rank);
  }

  private of(worldRanks: readonly number[]): Group {
    return new Group(worldRanks, this.ownWorldRank);
  }

  /**
   * All of this group in their order, then those of `other` that are not in it (MPI-4.1, section 7.3.2).
   *
   * @param other The other group.
   * @throws ERR_GROUP: it is no Group.
   */
  union(other: Group): Group {
    return this.of([...this.worldRanks, ...checkGroup(other).worldRanks.filter((world) => this.rankOf(world) === undefined)]);
  }

  /**
   * Those of this group that are in `other` too, in the order of this group (MPI-4.1, section 7.3.2).
   *
   * @param other The other group.
   * @throws ERR_GROUP: it is no Group.
   */
  intersection(other: Group): Group {
    return this.of(this.worldRanks.filter((world) => checkGroup(other).rankOf(world) !== undefined));
  }

  /**
   * Those of this group that are not in `other`, in the order of this group (MPI-4.1, section 7.3.2).
   *
   * @param other The other group.
   * @throws ERR_GROUP: it is no Group.
   */
  difference(other: Group): Group {
    return this.of(this.worldRanks.filter((world) => checkGroup(other).rankOf(world) === undefined));
  }

  /**
   * The processes with these ranks, in the order of the list (MPI-4.1, section 7.3.2).
   *
   * @param ranks Ranks of this group, none of them twice.
   * @throws ERR_ARG, ERR_RANK: it is not a list, or it holds a rank that is not in the group, or one twice.
   */
  include(ranks: readonly number[]): Group {
    return this.of(this.checkRanks(ranks).map((rank) => this.worldRanks[rank]));
  }

  /**
   * All but the processes with these ranks, in the order of this group (MPI-4.1, section 7.3.2).
   *
   * @param ranks Ranks of this group, none of them twice.
   * @throws ERR_ARG, ERR_RANK: it is not a list, or it holds a rank that is not in the group, or one twice.
   */
  exclude(ranks: readonly number[]): Group {
    const left = new Set(this.checkRanks(ranks));
    return this.of(this.worldRanks.filter((_, rank) => !left.has(rank)));
  }

  private checkRanks(ranks: readonly number[]): readonly number[] {
    if (!Array.isArray(ranks)) throw new MultirailError('ERR_ARG', `ranks is ${String(ranks)}; expected an array of ranks of the group`);
    const seen = new Set<number>();
    for (const [i, rank] of ranks.entries()) {
      if (!Number.isInteger(rank) || rank < 0 || rank >= this.size) {
        throw new MultirailError('ERR_RANK', `ranks[${i}] is ${String(rank)}; expected a rank from 0 to ${this.size - 1} of the group`);
      }
      if (seen.has(rank)) throw new MultirailError('ERR_RANK', `ranks[${i}] names rank ${rank} again`);
      seen.add(rank);
    }
    return ranks;
  }

  /**
   * Ranks in `other` of the processes that have these ranks here; UNDEFINED for those that are not in it (MPI-4.1, section 7.3.1).
   *
   * @param ranks Ranks of this group, none of them twice.
   * @param other The other group.
   * @throws ERR_ARG, ERR_RANK: it is not a list, or it holds a rank that is not in the group, or one twice.
   * @throws ERR_GROUP: `other` is no Group.
   */
  translate(ranks: readonly number[], other: Group): number[] {
    checkGroup(other);
    return this.checkRanks(ranks).map((rank) => other.rankOf(this.worldRanks[rank]) ?? UNDEFINED);
  }

  /**
   * Says how another group relates to this one (MPI-4.1, section 7.3.1): IDENT, the same processes in the same order; SIMILAR, in another
   * order; UNEQUAL.
   *
   * @param other The other group.
   * @throws ERR_GROUP: it is no Group.
   */
  compare(other: Group): Exclude<Comparison, typeof CONGRUENT> {
    checkGroup(other);
    if (this.size !== other.size) return UNEQUAL;
    if (this.worldRanks.every((world, rank) => other.worldRanks[rank] === world)) return IDENT;
    return this.worldRanks.every((world) => other.rankOf(world) !== undefined) ? SIMILAR : UNEQUAL;
  }
}

export function checkGroup(group: unknown, name = 'group'): Group {
  if (group instanceof Group) return group;
  throw new MultirailError('ERR_GROUP', `${name} is ${group === null ? 'null' : typeof group}; expected a Group, such as comm.group`);
}
