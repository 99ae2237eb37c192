// What members tell each other when they meet, and what follows from it: the same at all of them.
import { MultirailError } from '../../errors.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { FormerView, Membership } from '../checkpoint/former.ts';
import { dealtOut, type Grouping } from '../checkpoint/grouping.ts';
import { Placement } from '../checkpoint/placement.ts';
import { compareSaves, type SaveName, saveText } from '../checkpoint/slots.ts';
import { blocks, type Groups, numbered } from '../groups/groups.ts';
import { checkScheme } from '../plan/scheme.ts';
import type { FtOptions, ProcessPlace, Settings } from './options.ts';
import type { Known } from './periods.ts';

/** Failures of the job as the members know them; a successor knows none, and takes what the others know. */
export interface History {
  /** Ranks that the last recovery is about. */
  readonly failed: readonly number[];
  /** Failures so far. */
  readonly failures: number;
  /** Of these, those that a recovery has ended. */
  readonly settled: number;
  /** Of these, those after which only the dead went back. */
  readonly inPlace: number;
  /** How far this rank had come. */
  readonly step: number;
  /** Steps that were lost in all recoveries so far. */
  readonly lostSteps: number;
}

export const NO_HISTORY: History = { failed: [], failures: 0, settled: 0, inPlace: 0, step: 0, lostSteps: 0 };

/** A save in a store as one member sees it. */
export interface StoredView extends SaveName {
  readonly level: number;
  /** Ranks that have made it. */
  readonly size: number;
  /** Where other ranks have made it than there are now: the images that this member can read. */
  readonly images: readonly number[] | undefined;
}

/** A failure domain as the program names it, or why it has not. */
export type NamedDomain = { readonly name: string } | { readonly error: string };

/** What every member tells the others when they meet. */
export interface View extends FormerView {
  readonly settings: string;
  readonly epoch: number;
  readonly host: string;
  /** What the program's function for `domain` says of it. Undefined: the options have no function. */
  readonly domain: NamedDomain | undefined;
  /** What the function for `groups` says of it. */
  readonly group: NamedDomain | undefined;
  readonly stored: readonly StoredView[];
  /** The newest epoch of which anything is in a store; -1: nothing is. */
  readonly storedEpoch: number;
  readonly error: string | undefined;
  /** Communicators of a logged one that are made from now on have ids with this count or a higher one. */
  readonly nextLogged: number;
  readonly history: History;
  /** Steps between two saves of each level, as it has them; undefined: it has committed nothing yet. */
  readonly periods: readonly number[] | undefined;
  /** Since it began to run the program. */
  readonly elapsedSeconds: number;
}

/** @throws ERR_ARG: options of run() differ from those of that rank. */
export function requireSameSettings(views: readonly { readonly settings: string }[], rank: number): void {
  const expected = views[rank].settings;
  const other = views.findIndex(({ settings }) => settings !== expected);
  if (other < 0) return;
  throw new MultirailError(
    'ERR_ARG',
    `options of run() at rank ${rank}: ${expected}, and at rank ${other}: ${views[other].settings}; expected the same at all ranks`,
  );
}

/** What all together know of the failures so far. */
export function together(views: readonly View[]): History {
  const all = views.map(({ history }) => history);
  const most = (of: (history: History) => number): number => Math.max(...all.map(of));
  const failed = all.find(({ failed: ranks }) => ranks.length > 0)?.failed ?? [];
  return {
    failed,
    failures: most((one) => one.failures),
    settled: most((one) => one.settled),
    inPlace: most((one) => one.inPlace),
    step: most((one) => one.step),
    lostSteps: most((one) => one.lostSteps),
  };
}

/** After a recovery; `lostSteps`: those that are done again. */
export function settledHistory(history: History, kind: 'in place' | 'all', lostSteps: number): History {
  const { failures, settled, inPlace } = history;
  return {
    ...history,
    settled: failures,
    inPlace: kind === 'all' ? inPlace : inPlace + failures - settled,
    lostSteps: history.lostSteps + lostSteps,
  };
}

/** What the ranks plan their saves by. Some may have heard of new periods, and others not yet: the longest count. */
export function knownOf(views: readonly View[], { failures }: History): Known {
  const lists = views.flatMap(({ periods }) => (periods === undefined ? [] : [periods]));
  const periods = lists[0]?.map((_, level) => Math.max(...lists.map((list) => list[level])));
  return { periods, failures, elapsedSeconds: Math.max(...views.map(({ elapsedSeconds }) => elapsedSeconds)) };
}

/** Copies among these domains, with as many as land on different ones; `warn` is told of fewer than were asked for. */
export function placementOf(domains: Membership['domains'], settings: Settings, warn: (text: string) => void): Placement {
  const count = new Set(domains).size;
  const asked = { domains: count, duplication: Math.min(settings.duplication, count - 1), depth: settings.depth };
  const { scheme, warning } = checkScheme(asked);
  if (asked.duplication < settings.duplication)
    warn(`duplication = ${settings.duplication} with ${count} failure domains: ${asked.duplication} is used`);
  if (warning !== undefined) warn(warning);
  return new Placement(domains, scheme.duplication, scheme.depth);
}

/** Asks the program in which domain, or group, this process is. */
export function namedDomain(domain: FtOptions['domain'] | FtOptions['groups'], place: ProcessPlace): NamedDomain | undefined {
  if (typeof domain !== 'function') return undefined;
  try {
    const name: unknown = domain(place);
    return typeof name === 'string' && name !== '' ? { name } : { error: `${String(name)} was returned, expected a name` };
  } catch (cause) {
    return { error: `it threw: ${cause instanceof Error ? cause.message : String(cause)}` };
  }
}

/**
 * Failure domains by where the members are.
 *
 * @throws ERR_ARG: the program could not say in which domain a rank is. All ranks throw it.
 */
export function domainsOf(views: readonly View[], settings: Settings): Membership['domains'] {
  const { domain } = settings;
  const groups = domain === undefined ? groupsOf(views, settings) : undefined;
  if (groups !== undefined && new Set(groups).size > 1) return groups;
  if (typeof domain === 'function')
    return views.map(({ domain: named }, rank) => {
      if (named !== undefined && 'name' in named) return named.name;
      throw new MultirailError('ERR_ARG', `domain of run() has not named the failure domain of rank ${rank}: ${named?.error}`, { rank });
    });
  const hosts = views.map(({ host }) => host);
  const isOneHost = new Set(hosts).size === 1;
  return domain === 'host' || (domain === undefined && !isOneHost) ? hosts : [...hosts.keys()];
}

/**
 * The group of each rank; undefined: there are none.
 *
 * @throws ERR_ARG: there are more groups than ranks, or the program could not say in which one a rank is. All ranks throw it.
 */
export function groupsOf(views: readonly View[], { groups }: Settings): Groups | undefined {
  if (groups === undefined) return undefined;
  if (typeof groups === 'number') return blocks(groups, views.length);
  if (groups === 'host') return numbered(views.map(({ host }) => host));
  const names = views.map(({ group: named }, rank) => {
    if (named !== undefined && 'name' in named) return named.name;
    throw new MultirailError('ERR_ARG', `groups of run() has not named the group of rank ${rank}: ${named?.error}`, { rank });
  });
  return numbered(names);
}

/** A save in stores that all together can read, and who reads what. */
export interface StoredCandidate extends SaveName {
  readonly level: number;
  readonly size: number;
  /** By rank: the images that it reads. */
  readonly grouping: Grouping;
}

/**
 * Saves in stores of which every image is seen by somebody, newest first. Where as many ranks have made it as there are, each must see its own.
 *
 * @throws ERR_STORE: a store could not be looked into.
 * @throws ERR_CHECKPOINT: the newest one was made by another number of ranks, and the program does not take those.
 */
export function storedCandidates(views: readonly View[], rank: number, job: string, takesOthers: boolean): StoredCandidate[] {
  const first = views.find(({ error }) => error !== undefined)?.error;
  if (first !== undefined) throw new MultirailError('ERR_STORE', `saves cannot be looked for: ${first}`, { rank });
  const size = views.length;
  const sees = (view: View, one: StoredView): StoredView | undefined =>
    view.stored.find(({ level, epoch, k }) => level === one.level && epoch === one.epoch && k === one.k);
  const found = [...views[0].stored]
    .sort((a, b) => compareSaves(b, a) || a.level - b.level)
    .filter((one) => views.every((view) => sees(view, one) !== undefined));
  const other = found[0];
  if (other !== undefined && other.size !== size && !takesOthers)
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `${saveText(other)} of job "${job}" was made by ${other.size} ranks, and there are ${size}: start as many, choose another name (ft_job), set whenNoSpares to 'shrink' in a program that can redistribute what was saved, or read its images with readImage()`,
      { rank },
    );
  return found.flatMap((one): StoredCandidate[] => {
    const { epoch, k, level } = one;
    const grouping =
      one.size === size
        ? Array.from({ length: size }, (_, image) => [{ rank: image, bytes: 0 }])
        : dealtOut(
            Array.from({ length: one.size }, () => 0),
            (at, image) => sees(views[at], one)?.images?.includes(image) === true,
            size,
          );
    return grouping === undefined || (one.size !== size && !takesOthers) ? [] : [{ epoch, k, level, size: one.size, grouping }];
  });
}

/** Ranks of the first communicator whose processes are not in the second one. */
export function lostRanks(before: Communicator, after: Communicator): number[] {
  const processes = new Set(after.group.worldRanks);
  return before.group.worldRanks.flatMap((process, rank) => (processes.has(process) ? [] : [rank]));
}
