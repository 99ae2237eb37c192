// What run() is told: copies, levels, periods, and what happens when nothing can be gone back to.
import { MultirailError } from '../../errors.ts';
import { HELPERS_MAX } from '../../mpi/ft/helping-states.ts';
import { DEPTH_MAX } from '../plan/scheme.ts';
import { fileStore } from '../store/file-store.ts';
import type { Store } from '../store/store.ts';

/** Where the images of a save lie: in memory with copies at other ranks, and in a folder or a store, too. */
export type LevelSpec =
  | { readonly level: 'memory' }
  /** A folder of this host, or one that all hosts share. */
  | { readonly level: 'disk'; readonly folder: string; readonly keep?: number }
  | { readonly level: 'store'; readonly store: Store; readonly keep?: number };

/** Where a process of the job is, for `domain`. */
export interface ProcessPlace {
  /** In the communicator that run() was given. */
  readonly rank: number;
  /** Name of its host, as the job knows it. */
  readonly host: string;
}

/** Options of run(). The same at all ranks. */
export interface FtOptions {
  /**
   * `coordinated` (default): all ranks go back to the newest save. `asynchronous`: the messages of `job.comm` are logged, a process that stands by
   * takes the place of the dead one, and it alone goes back; the calls of the others wait for it. The program repeats itself: from the same
   * state and the same messages each rank sends the same messages again. It names the source of each message, makes the same
   * communicators of `job.comm` in each run, before its first step ends. Where nobody can take the place of the dead one (too few stand by, the
   * log was given up, no copy is left) all go back.
   */
  readonly recovery?: 'coordinated' | 'asynchronous';
  /**
   * With recovery 'asynchronous', of a program whose course depends on what a process cannot repeat by itself. `recorded`: which messages receives and
   * probes from ANY_SOURCE take, what iprobe(), test(), waitAny() and their siblings find, the order in which results are handed out of which several
   * are awaited, and values of once(), are kept by another rank, and a successor obeys them; what is sent waits until they are there. Timeouts, signals and cancel() are refused. `send`: the program sends the same on each connection in whatever order its receives from anybody take messages, also in orders that no
   * undisturbed run has; nothing waits. Undefined (default): receives and probes from ANY_SOURCE are refused.
   */
  readonly determinism?: 'recorded' | 'send';
  /**
   * With recovery 'asynchronous': the ranks that go back together when one of them fails, and save together. Messages between them are not logged,
   * only those to other groups. `host`: the ranks of each host; a number: so many blocks of consecutive ranks; a function names the group of the
   * process that it is called in. Groups save one after the other, in memory; copies of images are in other groups, unless `domain` says
   * otherwise. Groups stay as they are when a process takes the place of another one. Undefined (default): each rank goes back by itself.
   */
  readonly groups?: 'host' | number | ((place: ProcessPlace) => string);
  /** Copies of each image on other failure domains: DF of paper 000. 1 by default; fewer where there are too few domains. */
  readonly duplication?: number;
  /** Committed saves that stay readable: SD of paper 000. 1 by default. */
  readonly depth?: number;
  /**
   * What dies together: a host, or a process. By default a host, and a process where all ranks are on one host. A function names the domain of
   * the process that it is called in (a rack, a power supply); ranks with the same name are in the same domain. Domains stay as they are when a
   * process takes the place of another one.
   */
  readonly domain?: 'host' | 'process' | ((place: ProcessPlace) => string);
  /** Where saves go, from the frequent and cheap level to the rare and dear ones. Memory alone by default; every save is in memory, too. */
  readonly levels?: readonly LevelSpec[];
  /** Steps between two saves of each level, as next() counts them. */
  readonly everySteps?: readonly number[];
  /**
   * Mean time between failures of each level, in seconds, from frequent failures to rare ones. Periods follow from it and from what steps and
   * saves are measured to take: Young's for one level, the pattern of paper 002 for several, in whole numbers of saves. They are at most 0.27 of
   * that time, and planned again with each save. Without this and without everySteps, next() saves by itself from the third failure of the job
   * on, in memory, by the time between those failures.
   */
  readonly mtbfSeconds?: readonly number[];
  /** `background` (default): next() waits only until the state is copied. `blocking`: until the save is committed. */
  readonly saving?: 'background' | 'blocking';
  /** When there is no save to go back to: `restart` (default), the program begins from the beginning; `fail`, run() ends with ERR_CHECKPOINT. */
  readonly whenNoSave?: 'restart' | 'fail';
  /**
   * When fewer processes stand by than ranks have failed: `fail` (default), run() ends with ERR_SPARES at all ranks; `shrink`, the job goes on
   * with fewer ranks. Then, and when a job is started again with another number of ranks than those that made its newest save, nothing is
   * restored by itself: the program distributes the state again, and reads what was saved with `job.recovery.read()`.
   */
  readonly whenNoSpares?: 'fail' | 'shrink';
  /**
   * With recovery 'asynchronous': so many of the processes that stand by help each successor to do again what its predecessor did, as far as the
   * program divides that with them (`job.team`, `job.onHelp`). 0 by default, at most 8; fewer where fewer stand by. When the successor has caught
   * up they stand by again; meanwhile, too, they take the places of ranks that die.
   */
  readonly helpers?: number;
  /**
   * Where each rank is several processes (`multirail run --replicas 2`): `true` (default), the images of a save are compared, and one is stored: when
   * the replicas differ later, the newest save is gone back to; of three replicas one that differs gets the state of the others. `false`, of two:
   * each replica stores its own, nothing is compared, and all saves are kept; since each of them may hold the fault, they are tried one after the
   * other, the newest first.
   */
  readonly validate?: boolean;
}

export interface StoreLevel {
  /** Place among the levels; that of those that stand by comes behind all that are named. */
  readonly index: number;
  readonly name: 'standby' | 'disk' | 'store';
  readonly store: Store;
  readonly keep: number;
}

export interface Settings {
  /** Only the dead go back. */
  readonly isAsynchronous: boolean;
  readonly determinism: FtOptions['determinism'];
  /** Undefined: each rank goes back by itself, or all do. */
  readonly groups: FtOptions['groups'];
  readonly duplication: number;
  readonly depth: number;
  readonly domain: FtOptions['domain'];
  readonly names: readonly ('memory' | 'disk' | 'store')[];
  readonly stores: readonly StoreLevel[];
  readonly everySteps: readonly number[] | undefined;
  readonly mtbfSeconds: readonly number[] | undefined;
  readonly inBackground: boolean;
  readonly mayRestart: boolean;
  /** The program can go on with another number of ranks than those that made a save. */
  readonly mayShrink: boolean;
  /** Of each successor. */
  readonly helpers: number;
  /** Images of replicas are compared. */
  readonly validate: boolean;
  /** Says whether two ranks have the same. */
  readonly signature: string;
}

const KEYS: readonly (keyof FtOptions)[] = [
  'recovery',
  'determinism',
  'groups',
  'duplication',
  'depth',
  'domain',
  'levels',
  'everySteps',
  'mtbfSeconds',
  'saving',
  'whenNoSave',
  'whenNoSpares',
  'helpers',
  'validate',
];
const COPIES_MAX = 32;
const KEPT = 2;
const GROUPS_MAX = 8192;

function whole(name: string, value: unknown, low: number, high: number): number {
  if (!Number.isInteger(value) || (value as number) < low || (value as number) > high)
    throw new MultirailError('ERR_ARG', `${name} = ${String(value)}: expected a whole number from ${low} to ${high}`);
  return value as number;
}

function oneOf<T extends string>(name: string, value: T | undefined, allowed: readonly T[], otherwise: T): T {
  if (value === undefined) return otherwise;
  if (!allowed.includes(value)) throw new MultirailError('ERR_ARG', `${name} = ${String(value)}: expected ${allowed.join(' or ')}`);
  return value;
}

function perLevel(name: string, list: readonly number[] | undefined, levels: number, isRight: (value: number) => boolean, what: string) {
  if (list === undefined) return undefined;
  if (!Array.isArray(list) || list.length !== levels || !list.every(isRight))
    throw new MultirailError('ERR_ARG', `${name} = ${JSON.stringify(list)}: expected ${what} for each of ${levels} levels`);
  return list;
}

/** What does not go together with groups, which save by themselves. */
function requireGroups(options: FtOptions, isAsynchronous: boolean): FtOptions['groups'] {
  const { groups } = options;
  if (groups === undefined) return undefined;
  if (typeof groups === 'number') whole('groups', groups, 1, GROUPS_MAX);
  else if (typeof groups !== 'function') oneOf('groups', groups, ['host'], 'host');
  if (!isAsynchronous) throw new MultirailError('ERR_ARG', "groups with recovery 'coordinated': all go back, whatever group they are in");
  const others: readonly [string, boolean][] = [
    ["determinism: 'recorded'", options.determinism === 'recorded'],
    ['levels besides memory', (options.levels?.length ?? 1) > 1],
    ['helpers', (options.helpers ?? 0) > 0],
    ["whenNoSpares: 'shrink'", options.whenNoSpares === 'shrink'],
    ['a depth above 1', (options.depth ?? 1) > 1],
  ];
  const other = others.find(([, isSet]) => isSet);
  if (other !== undefined) throw new MultirailError('ERR_ARG', `groups do not go together with ${other[0]}: leave one of them out`);
  return groups;
}

/** Throws ERR_ARG for whatever makes no sense. */
export function settingsOf(options: FtOptions): Settings {
  if (typeof options !== 'object' || options === null)
    throw new MultirailError('ERR_ARG', `options of run(): ${String(options)}, expected an object`);
  const unknown = Object.keys(options).find((key) => !(KEYS as readonly string[]).includes(key));
  if (unknown !== undefined) throw new MultirailError('ERR_ARG', `option ${unknown} of run() is not known: expected ${KEYS.join(', ')}`);
  const duplication = whole('duplication', options.duplication ?? 1, 0, COPIES_MAX);
  const depth = whole('depth', options.depth ?? 1, 1, DEPTH_MAX);
  const { domain } = options;
  if (typeof domain !== 'function') oneOf('domain', domain, ['host', 'process'], 'host');
  const levels: readonly LevelSpec[] = options.levels ?? [{ level: 'memory' }];
  if (!Array.isArray(levels) || levels.length === 0 || levels[0].level !== 'memory')
    throw new MultirailError('ERR_ARG', "levels: expected a list that begins with { level: 'memory' }, in which every save is");
  const stores: StoreLevel[] = [];
  for (const [index, spec] of levels.entries()) {
    if (index === 0) continue;
    if (spec.level === 'disk')
      stores.push({ index, name: 'disk', store: fileStore(spec.folder), keep: whole('keep', spec.keep ?? KEPT, 1, 1000) });
    else if (spec.level === 'store')
      stores.push({ index, name: 'store', store: spec.store, keep: whole('keep', spec.keep ?? KEPT, 1, 1000) });
    else throw new MultirailError('ERR_ARG', `levels[${index}].level = ${String(spec.level)}: expected disk or store after memory`);
  }
  const { length } = levels;
  const everySteps = perLevel(
    'everySteps',
    options.everySteps,
    length,
    (n) => Number.isInteger(n) && n >= 1,
    'a whole number of steps from 1',
  );
  const mtbfSeconds = perLevel('mtbfSeconds', options.mtbfSeconds, length, (s) => Number.isFinite(s) && s > 0, 'a time above 0');
  const early = mtbfSeconds?.findIndex((seconds, level) => level > 0 && seconds < mtbfSeconds[level - 1]) ?? -1;
  if (mtbfSeconds !== undefined && early > 0)
    throw new MultirailError(
      'ERR_ARG',
      `mtbfSeconds[${early}] = ${mtbfSeconds[early]} s is below mtbfSeconds[${early - 1}] = ${mtbfSeconds[early - 1]} s: give the levels from frequent failures to rare ones`,
    );
  if (everySteps !== undefined && mtbfSeconds !== undefined)
    throw new MultirailError(
      'ERR_ARG',
      'everySteps and mtbfSeconds are both given: expected fixed periods, or times between failures from which they follow',
    );
  const names = levels.map(({ level }) => level);
  const inBackground = oneOf('saving', options.saving, ['background', 'blocking'], 'background') === 'background';
  const mayRestart = oneOf('whenNoSave', options.whenNoSave, ['restart', 'fail'], 'restart') === 'restart';
  const mayShrink = oneOf('whenNoSpares', options.whenNoSpares, ['fail', 'shrink'], 'fail') === 'shrink';
  const isAsynchronous = oneOf('recovery', options.recovery, ['coordinated', 'asynchronous'], 'coordinated') === 'asynchronous';
  const { determinism } = options;
  oneOf('determinism', determinism, ['recorded', 'send'], 'send');
  const helpers = whole('helpers', options.helpers ?? 0, 0, HELPERS_MAX);
  if (helpers > 0 && !isAsynchronous)
    throw new MultirailError('ERR_ARG', `helpers = ${helpers} with recovery 'coordinated': all go back, and nobody is helped`);
  const groups = requireGroups(options, isAsynchronous);
  const validate = options.validate ?? true;
  if (typeof validate !== 'boolean') throw new MultirailError('ERR_ARG', `validate = ${String(validate)}: expected true or false`);
  const domains = typeof domain === 'function' ? 'function' : domain;
  const signature = JSON.stringify({
    isAsynchronous,
    determinism,
    groups: typeof groups === 'function' ? 'function' : groups,
    duplication,
    depth,
    domain: domains,
    names,
    everySteps,
    mtbfSeconds,
    mayRestart,
    mayShrink,
    helpers,
    validate,
  });
  return {
    isAsynchronous,
    determinism,
    groups,
    duplication,
    depth,
    domain,
    names,
    stores,
    everySteps,
    mtbfSeconds,
    inBackground,
    mayRestart,
    mayShrink,
    helpers,
    validate,
    signature,
  };
}

/** With those that stand by as a level of its own (`ft_standby_holds`): what is saved in memory alone lies there, too. */
export function withStandbys(settings: Settings, store: Store): Settings {
  const level: StoreLevel = { index: settings.names.length, name: 'standby', store, keep: settings.depth };
  return { ...settings, stores: [level, ...settings.stores], signature: `${settings.signature} and ft_standby_holds` };
}

/** Where a save of that level is put besides memory. */
export function storeOf({ stores }: Settings, level: number): StoreLevel | undefined {
  return stores.find(({ index, name }) => index === level || (level === 0 && name === 'standby'));
}
