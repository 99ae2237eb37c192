// Lists of hosts with slots, in both common styles (`host slots=2` of Open MPI, `host:2` of MPICH and Intel), and which rank goes where.
import { hostname } from 'node:os';
import { MultirailError } from '../../errors.ts';

export interface HostSlots {
  /** As ssh takes it: `name`, `user@name`, an address. */
  host: string;
  slots: number;
}

const SLOTS_MAX = 65_536;
/** What Open MPI writes beside slots: bounds that do not matter where no rank is put beyond the slots. */
const IGNORED = /^max[_-]slots=\d+$/;

function problem(where: string, text: string): MultirailError {
  return new MultirailError('ERR_CONFIG', `${where}: ${text}; expected lines such as "host slots=2" or "host:2"`);
}

function checkHost(where: string, host: string): string {
  // A leading dash would be an option for ssh.
  if (!/^[A-Za-z0-9_[][\w.:%@[\]-]*$/.test(host)) throw problem(where, `"${host}" is not the name of a host`);
  return host.replace(/^\[(.*)\]$/, '$1');
}

function checkSlots(where: string, text: string): number {
  const slots = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(slots >= 1 && slots <= SLOTS_MAX)) throw problem(where, `"${text}" is not a number of slots from 1 to ${SLOTS_MAX}`);
  return slots;
}

/** `host`, `host:2`, `[v6]:2`. */
function parseHost(where: string, text: string): HostSlots {
  const match = /^(\[[^\]]+\])(?::(.*))?$/.exec(text) ?? /^([^:]+)(?::([^:]*))?$/.exec(text);
  // An IPv6 address without brackets has no slots behind it.
  if (match === null) return { host: checkHost(where, text), slots: 1 };
  return { host: checkHost(where, match[1]), slots: match[2] === undefined ? 1 : checkSlots(where, match[2]) };
}

/** A host that is named twice has the slots of both. */
function merge(list: readonly HostSlots[]): HostSlots[] {
  const byHost = new Map<string, HostSlots>();
  for (const { host, slots } of list) {
    const known = byHost.get(host);
    if (known === undefined) byHost.set(host, { host, slots });
    else known.slots += slots;
  }
  return [...byHost.values()];
}

/** The text of a host file; `name` is for errors. */
export function parseHostfile(text: string, name: string): HostSlots[] {
  const hosts: HostSlots[] = [];
  text.split('\n').forEach((line, i) => {
    const where = `${name}, line ${i + 1}`;
    const [first, ...rest] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (first === '') return;
    const entry = parseHost(where, first);
    for (const word of rest) {
      const slots = /^slots=(.*)$/.exec(word);
      if (slots !== null) entry.slots = checkSlots(where, slots[1]);
      else if (!IGNORED.test(word)) throw problem(where, `"${word}" is not understood`);
    }
    hosts.push(entry);
  });
  if (hosts.length === 0)
    throw new MultirailError('ERR_CONFIG', `${name} names no host; expected lines such as "host slots=2" or "host:2"`);
  return merge(hosts);
}

/** `a:2,b:2`, as on a command line. */
export function parseHosts(text: string): HostSlots[] {
  const words = text.split(',').filter((word) => word !== '');
  if (words.length === 0) throw new MultirailError('ERR_CONFIG', '--hosts names no host; expected hosts such as node1:2,node2:2');
  return merge(words.map((word) => parseHost(`--hosts ${text}`, word)));
}

export const slotsOf = (hosts: readonly HostSlots[]): number => hosts.reduce((sum, { slots }) => sum + slots, 0);

export interface RankPlace {
  host: string;
  localRank: number;
  localSize: number;
}

/** Fills each host's slots before the next one's. Throws ERR_ARG when there are more ranks than slots. */
export function placeRanks(hosts: readonly HostSlots[], size: number): RankPlace[] {
  const slots = slotsOf(hosts);
  if (size > slots) {
    throw new MultirailError(
      'ERR_ARG',
      `${size} ranks, but the hosts have ${slots} ${slots === 1 ? 'slot' : 'slots'} in all: name more hosts, or give them more slots`,
    );
  }
  return localPlaces(hosts.flatMap(({ host, slots: here }) => new Array<string>(Math.min(here, size)).fill(host)).slice(0, size));
}

/** Where the replicas of a rank run: on different hosts, or on the same one. */
export type ReplicaPlace = 'host' | 'core';

const COUNTS: Readonly<Record<number, string>> = { 2: 'two', 3: 'three' };

/**
 * As placeRanks(), for ranks of several processes each: first all leads, then all first shadows, and so on.
 *
 * @param asked Undefined: on different hosts, where there are such; else wherever there is room.
 * @throws ERR_ARG: the hosts have too few slots, or too few for that.
 */
export function placeReplicas(hosts: readonly HostSlots[], ranks: number, asked: ReplicaPlace | undefined, replicas = 2): RankPlace[] {
  const size = replicas * ranks;
  if (asked === 'core') {
    const together = hosts.map(({ host, slots }) => ({ host, slots: Math.floor(slots / replicas) }));
    if (slotsOf(together) < ranks)
      throw new MultirailError(
        'ERR_ARG',
        `--replica-place core: the hosts have room for ${slotsOf(together)} ${replicas === 2 ? 'pairs' : 'ranks'} of ${replicas === 2 ? 'replicas' : `${COUNTS[replicas]} replicas each`}, and ${ranks} are asked for`,
      );
    const leads = placeRanks(together, ranks).map(({ host }) => host);
    return localPlaces(new Array<string[]>(replicas).fill(leads).flat());
  }
  // In this order each replica of a rank is as many places behind the one before it as there are ranks: no host may have more places than that.
  const capped = hosts.map(({ host, slots }) => ({ host, slots: Math.min(slots, ranks) }));
  if (slotsOf(capped) >= size) return placeRanks(capped, size);
  if (asked === 'host')
    throw new MultirailError(
      'ERR_ARG',
      `--replica-place host: ${COUNTS[replicas]} replicas of each of ${ranks} ranks do not fit on different hosts: name more hosts, or give them more slots`,
    );
  return placeRanks(hosts, size);
}

/** The places of processes whose hosts are known, by number. */
export function localPlaces(hosts: readonly string[]): RankPlace[] {
  const before = new Map<string, number>();
  const ranks = hosts.map((host) => {
    const localRank = before.get(host) ?? 0;
    before.set(host, localRank + 1);
    return { host, localRank };
  });
  return ranks.map(({ host, localRank }) => ({ host, localRank, localSize: before.get(host) as number }));
}

/** Here no ssh is needed. */
export function isHere({ host }: RankPlace): boolean {
  return host === 'localhost' || host === '127.0.0.1' || host === hostname() || host === hostname().split('.')[0];
}
