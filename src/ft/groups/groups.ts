// Which ranks go back together, when each group saves, and what a group that goes back begins with: the same at all members. Pure.
import { MultirailError } from '../../errors.ts';

/** Group of each rank: numbers in the order of their lowest ranks. */
export type Groups = readonly number[];

/** Numbers for names, in the order in which these come. */
export function numbered(names: readonly string[]): Groups {
  const distinct = [...new Set(names)];
  return names.map((name) => distinct.indexOf(name));
}

/**
 * So many blocks of consecutive ranks, whose lengths differ by one at most.
 *
 * @throws ERR_ARG: there are more groups than ranks.
 */
export function blocks(count: number, size: number): Groups {
  if (count > size)
    throw new MultirailError('ERR_ARG', `groups = ${count}, and there are ${size} ranks: expected no more groups than ranks`);
  return Array.from({ length: size }, (_, rank) => Math.floor((rank * count) / size));
}

export const countOf = (groups: Groups): number => Math.max(...groups) + 1;

export function membersOf(groups: Groups, group: number): number[] {
  return [...groups.keys()].filter((rank) => groups[rank] === group);
}

/** Of fixed periods: groups save in different steps, as far as there are as many. The first step in which that group does. */
export function firstStep(group: number, count: number, everySteps: number): number {
  const offset = Math.floor((group * everySteps) / count);
  return offset === 0 ? everySteps : offset;
}

/** An image that a member has, of its own or of another rank. */
export interface GroupEntry {
  readonly owner: number;
  /** Number of the save, as its group counts them. */
  readonly k: number;
  /** Of the program. */
  readonly step: number;
  readonly bytes: number;
  readonly crc: number;
}

/** What a member tells of the saves of groups. */
export interface GroupView {
  readonly mode: 'runs' | 'again' | 'new' | 'back';
  readonly entries: readonly GroupEntry[];
  /** By group: the newest save that it knows to be committed; -1: none. */
  readonly committed: readonly number[];
}

/** Who sends whom an image. */
export interface GroupTransfer extends GroupEntry {
  readonly giver: number;
}

export interface GroupPlan {
  /** Groups that go back. */
  readonly failing: ReadonlySet<number>;
  /** By group: the save that it has, or goes back to; -1: the beginning. */
  readonly lines: readonly number[];
  /** By group: the step of the program in that save, as far as somebody knows it; 0 for the beginning. */
  readonly steps: readonly number[];
  readonly transfers: readonly GroupTransfer[];
  /** A group that cannot go back, since images of its newest save are lost. */
  readonly lost: number | undefined;
}

/**
 * Groups that have lost a member go back to the newest save of which all images are somewhere: it was committed, or would have been. The others keep what
 * one of their members has committed.
 */
export function planGroups(views: readonly GroupView[], groups: Groups): GroupPlan {
  const count = countOf(groups);
  const failing = new Set<number>();
  for (const [rank, { mode }] of views.entries()) if (mode === 'new' || mode === 'again') failing.add(groups[rank]);
  const lines: number[] = [];
  const steps: number[] = [];
  const transfers: GroupTransfer[] = [];
  let lost: number | undefined;
  for (let group = 0; group < count; group++) {
    const least = Math.max(...views.map(({ committed }) => committed[group] ?? -1));
    if (!failing.has(group)) {
      lines.push(least);
      steps.push(0);
      continue;
    }
    const members = membersOf(groups, group);
    const all = views.flatMap(({ entries }, giver) =>
      entries.filter(({ owner }) => groups[owner] === group).map((entry) => ({ ...entry, giver })),
    );
    const numbers = [...new Set(all.map(({ k }) => k))].sort((a, b) => b - a);
    const line =
      numbers.find((k) => k >= least && members.every((owner) => all.some((entry) => entry.k === k && entry.owner === owner))) ?? -1;
    lines.push(line);
    steps.push(all.find(({ k }) => k === line)?.step ?? 0);
    if (line < least) lost ??= group;
    if (line < 0) continue;
    for (const owner of members) {
      const has = all.filter((entry) => entry.k === line && entry.owner === owner);
      if (!has.some(({ giver }) => giver === owner)) transfers.push(has[0]);
    }
  }
  return { failing, lines, steps, transfers, lost };
}
