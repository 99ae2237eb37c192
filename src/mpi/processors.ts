// Which processors a rank may use, and whether the ranks of its host have fewer of them than they are: then whoever waits gives the
// processor away early (progress/blocking.ts, progress/loop-driver.ts). Each rank publishes its own with its addresses.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The processors of one rank, as it publishes them. */
export interface Processors {
  /** Those that its affinity mask allows, as Linux lists them: "0-3,8". */
  cpus: string;
  /** How many of them its control group may keep busy at a time; absent = all. */
  limit?: number;
}

type ReadText = (path: string) => string;

const readText: ReadText = (path) => readFileSync(path, 'utf8');
/** More than this in a list is a mistake, or an attack: 4,096 processors take 20 KB when every other one is allowed. */
const LIST_CHARS_MAX = 32 * 1024;
const CPUS_MAX = 65_536;
/** Sums of fractions: 1/3 three times is 1. */
const ROUNDING = 1e-6;

function tryRead(read: ReadText, path: string): string | undefined {
  try {
    return read(path);
  } catch {
    return undefined;
  }
}

/** What this process may use, by /proc and /sys where they are. */
export function ownProcessors(read: ReadText = readText, fallback = availableParallelism()): Processors {
  const cpus = tryRead(read, '/proc/self/status')?.match(/^Cpus_allowed_list:\s*(\S+)$/m)?.[1] ?? `0-${fallback - 1}`;
  const limit = limitOfGroup(read);
  return limit === undefined ? { cpus } : { cpus, limit };
}

/** The tightest limit among the control groups of this process and those above them (cpu.max of version 2, cpu.cfs_* of version 1). */
function limitOfGroup(read: ReadText): number | undefined {
  let limit: number | undefined;
  const tighten = (quota: string | undefined, period: string | undefined): void => {
    const share = Number(quota) / Number(period);
    if (share > 0 && Number.isFinite(share) && (limit === undefined || share < limit)) limit = share;
  };
  for (const line of tryRead(read, '/proc/self/cgroup')?.split('\n') ?? []) {
    const [, controllers, path] = line.match(/^\d+:([^:]*):(\/.*)$/) ?? [];
    if (controllers === '') {
      for (const group of upwards(path)) tighten(...quotaOf(tryRead(read, `/sys/fs/cgroup${group}/cpu.max`)));
    } else if (controllers?.split(',').includes('cpu')) {
      for (const group of upwards(path)) {
        const file = (name: string): string | undefined => tryRead(read, `/sys/fs/cgroup/cpu${group}/cpu.cfs_${name}_us`);
        tighten(file('quota'), file('period'));
      }
    }
  }
  return limit;
}

/** "max 100000" has no quota. */
function quotaOf(text: string | undefined): [string | undefined, string | undefined] {
  const [quota, period] = text?.trim().split(' ') ?? [];
  return [quota, period];
}

/** `/a/b` and the groups above it, with '' for the topmost. */
function upwards(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '');
  return [...parts.map((_, i) => `/${parts.slice(0, parts.length - i).join('/')}`), ''];
}

/** What another rank published; undefined when it published nothing that can be read. */
export function checkProcessors(value: unknown): Processors | undefined {
  const { cpus, limit } = (value ?? {}) as { cpus?: unknown; limit?: unknown };
  if (typeof cpus !== 'string' || cpus.length > LIST_CHARS_MAX || cpusOf(cpus).size === 0) return undefined;
  return typeof limit === 'number' && limit > 0 ? { cpus, limit } : { cpus };
}

function cpusOf(text: string): Set<number> {
  const cpus = new Set<number>();
  for (const part of text.split(',')) {
    const [, first, last = first] = part.match(/^(\d{1,5})(?:-(\d{1,5}))?$/) ?? [];
    for (let cpu = Number(first); cpu <= Number(last) && cpu < CPUS_MAX; cpu++) cpus.add(cpu);
  }
  return cpus;
}

/** How many processors these are, a part of one included. */
export const roomOf = ({ cpus, limit }: Processors): number => Math.min(cpusOf(cpus).size, limit ?? Number.POSITIVE_INFINITY);

/**
 * Whether the ranks of this host want more processors than there are, among those that `own` may use. A rank that may use several counts
 * for an equal part on each of them, so ranks that are bound to a processor each are not crowded. `others`: the other ranks of this host,
 * undefined for one of which nothing is known; asked only as long as the answer is open, and at
 * most `othersMax`. A limit is taken to be one of all ranks of the host.
 */
export function isCrowded(own: Processors, others: Iterable<Processors | undefined>, othersMax = Number.POSITIVE_INFINITY): boolean {
  const mine = cpusOf(own.cpus);
  const room = roomOf(own) + ROUNDING;
  // Most ranks have the same list.
  const parts = new Map<string, number>();
  let wanted = 1;
  if (wanted > room) return true;
  if (wanted + othersMax <= room) return false;
  for (const other of others) {
    const { cpus } = other ?? own;
    let part = parts.get(cpus);
    if (part === undefined) {
      const theirs = cpusOf(cpus);
      let common = 0;
      for (const cpu of theirs) if (mine.has(cpu)) common++;
      part = common / theirs.size;
      parts.set(cpus, part);
    }
    wanted += part;
    if (wanted > room) return true;
  }
  return false;
}
