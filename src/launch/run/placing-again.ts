// Where the processes of a job go when it is started again: hosts that are gone are left out, and whoever becomes the lead of a rank goes where the last
// lead of that rank has saved.
import { type HostSlots, type ReplicaPlace, slotsOf } from './hostfile.ts';
import type { JobResult } from './job-result.ts';
import type { RunOptions } from './run-options.ts';

interface Placing {
  readonly hosts: readonly HostSlots[];
  readonly ranks: number;
  readonly replicas: number;
  readonly asked: ReplicaPlace | undefined;
  /** By rank: where its lead goes, if there is room. */
  readonly leads: readonly string[];
  /** By number: where the process was. */
  readonly before: readonly string[];
}

/** The host of each process by number; undefined: there is no room for all of them, or not as it is asked for. */
function placesFor({ hosts, ranks, replicas, asked, leads, before }: Placing): string[] | undefined {
  if (slotsOf(hosts) < ranks * replicas) return undefined;
  const free = new Map(hosts.map(({ host, slots }) => [host, slots]));
  const places: string[] = [];
  const ofRank = (all: readonly string[], rank: number): string[] => all.filter((_, number) => number % ranks === rank);
  for (let number = 0; number < ranks * replicas; number++) {
    const rank = number % ranks;
    const used = ofRank(places, rank);
    const former = ofRank(before, rank);
    const value = (host: string): number => {
      if (number < ranks) return Number(host === leads[rank]);
      return 2 * Number(used.includes(host) === (asked === 'core')) + Number(former.includes(host));
    };
    const open = hosts.map(({ host }) => host).filter((host) => (free.get(host) as number) > 0);
    const best = open.sort((a, b) => value(b) - value(a) || (free.get(b) as number) - (free.get(a) as number))[0];
    if (used.length > 0 && asked !== undefined && used.includes(best) !== (asked === 'core')) return undefined;
    free.set(best, (free.get(best) as number) - 1);
    places.push(best);
  }
  return places;
}

const placingOf = ({ size, spares = 0, replicas = 1, replicaPlace }: RunOptions): Omit<Placing, 'hosts' | 'leads' | 'before'> => ({
  ranks: size + spares,
  replicas,
  asked: replicaPlace,
});

/** The options of a job that is started again. Where the hosts that are left have no room for all of it, it is tried as before. */
export function againAfter(options: RunOptions, { lostHosts, placed, leads }: JobResult): RunOptions {
  const hosts = options.hosts?.filter(({ host }) => !lostHosts.includes(host));
  if (hosts === undefined) return options;
  const places = placesFor({ ...placingOf(options), hosts, leads: leads.map((number) => placed[number]), before: placed });
  return places === undefined ? options : { ...options, hosts, places };
}

/** Whichever host is gone, the others have room for all processes. */
export function hasRoomToSpare(options: RunOptions): boolean {
  const { hosts = [] } = options;
  const isRoomWithout = (lost: HostSlots): boolean =>
    placesFor({ ...placingOf(options), hosts: hosts.filter((host) => host !== lost), leads: [], before: [] }) !== undefined;
  return hosts.every(isRoomWithout);
}
