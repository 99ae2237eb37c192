// Which interface of one rank goes with which interface of the other. Both sides compute the same list, because the lower rank's addresses
// always come first. The file also chooses the addresses of one pair, and checks what a peer published.
import { isIP } from 'node:net';
import { MultirailError } from '../../errors.ts';
import { subnetOf } from './interfaces.ts';

/** An address with the port that listens on it, as published in the modex. */
export interface PublishedAddress {
  address: string;
  family: 4 | 6;
  prefix: number;
  port: number;
  linkLocal: boolean;
}

export interface PublishedInterface {
  name: string;
  loopback: boolean;
  standby: boolean;
  addresses: PublishedAddress[];
}

/** What a TCP or WebSocket module puts into the modex. */
export interface PublishedAddresses {
  interfaces: PublishedInterface[];
  /** Rails per pair that this side wants; the smaller number of the two sides counts. */
  links: number;
  /** The incarnation of the process that listens there: whoever else answers is not the one that is meant. */
  incarnation?: number;
  /** Interfaces that may carry rails and had no carrier or no address at the start. */
  idle?: string[];
}

/** What one entry may hold at most: a host with more than that has something else in mind. */
const INTERFACES_MAX = 256;
const ADDRESSES_MAX = 256;
const NAME_BYTES_MAX = 64;

const isObject = (json: unknown): json is Record<string, unknown> => typeof json === 'object' && json !== null && !Array.isArray(json);
const isWhole = (value: unknown, low: number, high: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= low && (value as number) <= high;
const isName = (value: unknown): value is string => typeof value === 'string' && value !== '' && Buffer.byteLength(value) <= NAME_BYTES_MAX;

function isAddress(json: unknown): boolean {
  if (!isObject(json)) return false;
  const { address, family, prefix, port, linkLocal } = json;
  // Without a zone: that is the dialer's, which knows its own interfaces.
  if (typeof address !== 'string' || address.includes('%') || isIP(address) === 0 || isIP(address) !== family) return false;
  return isWhole(prefix, 0, family === 4 ? 32 : 128) && isWhole(port, 1, 65_535) && typeof linkLocal === 'boolean';
}

function isInterface(json: unknown): boolean {
  if (!isObject(json)) return false;
  const { name, loopback, standby, addresses } = json;
  if (!isName(name) || typeof loopback !== 'boolean' || typeof standby !== 'boolean') return false;
  return Array.isArray(addresses) && addresses.length <= ADDRESSES_MAX && addresses.every(isAddress);
}

/** What a peer published, looked at before it is believed; ERR_PROTOCOL when that is no address of tcp or ws. */
export function checkAddresses(json: unknown, transport: string): PublishedAddresses {
  const { interfaces, links, incarnation, idle } = isObject(json) ? json : ({} as Record<string, unknown>);
  const sound =
    Array.isArray(interfaces) &&
    interfaces.length <= INTERFACES_MAX &&
    interfaces.every(isInterface) &&
    isWhole(links, 1, Number.MAX_SAFE_INTEGER) &&
    (incarnation === undefined || isWhole(incarnation, 0, Number.MAX_SAFE_INTEGER)) &&
    (idle === undefined || (Array.isArray(idle) && idle.length <= INTERFACES_MAX && idle.every(isName)));
  if (!sound) {
    throw new MultirailError('ERR_PROTOCOL', `not an address of the ${transport} transport: ${JSON.stringify(json)?.slice(0, 500)}`);
  }
  return json as unknown as PublishedAddresses;
}

export interface InterfacePair {
  lower: PublishedInterface;
  upper: PublishedInterface;
  /** Both ends are on one host: the route says nothing. */
  sameHost: boolean;
  /** No other addresses exist: the pair lives on link-local ones. */
  linkLocal: boolean;
}

const usable = (found: PublishedInterface): PublishedAddress[] => found.addresses.filter((address) => !address.linkLocal);

function shareSubnet(a: PublishedInterface, b: PublishedInterface): boolean {
  const subnets = new Set(usable(a).map((address) => subnetOf(address.address, address.prefix)));
  return usable(b).some((address) => subnets.has(subnetOf(address.address, address.prefix)));
}

const shareFamily = (a: PublishedAddress[], b: PublishedAddress[]): boolean => a.some((x) => b.some((y) => x.family === y.family));

/**
 * Pairs as many interfaces as possible under `fits`, each used once. In order, so that two interfaces in one subnet go
 * first with first and second with second; an earlier pair is only broken up when a later interface would go without.
 */
function matchInterfaces<T>(lower: readonly T[], upper: readonly T[], fits: (a: T, b: T) => boolean): [T, T][] {
  const partnerOf = new Array<number>(upper.length).fill(-1);
  const place = (i: number, tried: Set<number>): boolean => {
    for (let j = 0; j < upper.length; j++) {
      if (partnerOf[j] === -1 && fits(lower[i], upper[j])) {
        partnerOf[j] = i;
        return true;
      }
    }
    for (let j = 0; j < upper.length; j++) {
      if (tried.has(j) || !fits(lower[i], upper[j])) continue;
      tried.add(j);
      if (place(partnerOf[j], tried)) {
        partnerOf[j] = i;
        return true;
      }
    }
    return false;
  };
  for (let i = 0; i < lower.length; i++) place(i, new Set());
  const pairs: [T, T][] = [];
  for (let i = 0; i < lower.length; i++) {
    const j = partnerOf.indexOf(i);
    if (j !== -1) pairs.push([lower[i], upper[j]]);
  }
  return pairs;
}

/** What a pair that is made after the start has to keep to. */
export interface LaterPairs {
  /** Interfaces of the lower and of the upper rank that are in rails to each other already. */
  takenLower: ReadonlySet<string>;
  takenUpper: ReadonlySet<string>;
  /** Nothing has come for a while: what shares no subnet is paired too, since no better partner seems to come. */
  isSettled: boolean;
}

/** The pairs of what has come since the rails were planned; the pairs that are there stay as they are. */
export function pairLater(lower: PublishedAddresses, upper: PublishedAddresses, sameHost: boolean, later: LaterPairs): InterfacePair[] {
  const { takenLower, takenUpper, isSettled } = later;
  const isFirst = takenLower.size === 0;
  if (sameHost) return isFirst ? pairOnHost(lower, upper) : [];
  const left = (side: PublishedAddresses, taken: ReadonlySet<string>): PublishedAddresses => ({
    ...side,
    interfaces: side.interfaces.filter(({ name }) => !taken.has(name)),
  });
  const pairs = pairInterfaces(left(lower, takenLower), left(upper, takenUpper), false);
  return pairs.filter((pair) => {
    if (pair.linkLocal) return isFirst && isSettled;
    return isSettled || shareSubnet(pair.lower, pair.upper);
  });
}

/** The pairs of interfaces between the lower and the upper rank of a pair. */
export function pairInterfaces(lower: PublishedAddresses, upper: PublishedAddresses, sameHost: boolean): InterfacePair[] {
  if (sameHost) return pairOnHost(lower, upper);
  const lowerLeft = lower.interfaces.filter((found) => !found.loopback);
  const upperLeft = upper.interfaces.filter((found) => !found.loopback);
  const pairs: InterfacePair[] = [];
  const take = (fits: (a: PublishedInterface, b: PublishedInterface) => boolean, linkLocal: boolean): void => {
    for (const [a, b] of matchInterfaces(lowerLeft, upperLeft, fits)) {
      pairs.push({ lower: a, upper: b, sameHost: false, linkLocal });
      lowerLeft.splice(lowerLeft.indexOf(a), 1);
      upperLeft.splice(upperLeft.indexOf(b), 1);
    }
  };
  take(shareSubnet, false);
  take((a, b) => shareFamily(usable(a), usable(b)), false);
  if (pairs.length === 0) take((a, b) => shareFamily(a.addresses, b.addresses), true);
  return pairs;
}

/** On one host everything goes through the loopback device, whatever the address: one pair is enough. */
function pairOnHost(lower: PublishedAddresses, upper: PublishedAddresses): InterfacePair[] {
  const fits = (a: PublishedInterface, b: PublishedInterface): boolean =>
    shareFamily(a.loopback ? a.addresses : usable(a), b.loopback ? b.addresses : usable(b));
  for (const wantLoopback of [true, false]) {
    for (const a of lower.interfaces) {
      for (const b of upper.interfaces) {
        if (a.name !== b.name || a.loopback !== wantLoopback || b.loopback !== wantLoopback || !fits(a, b)) continue;
        return [{ lower: a, upper: b, sameHost: true, linkLocal: false }];
      }
    }
  }
  // Each side was given other interfaces: any two addresses of one family reach each other on one host.
  for (const a of lower.interfaces) {
    for (const b of upper.interfaces) if (fits(a, b)) return [{ lower: a, upper: b, sameHost: true, linkLocal: false }];
  }
  return [];
}

export interface AddressPair {
  local: PublishedAddress;
  remote: PublishedAddress;
}

/**
 * The addresses that a dialer uses between two interfaces as they are now, best first: one subnet before any, IPv4 before IPv6, one
 * pair per family. Behind them the link-local IPv6 addresses, where the interfaces share a subnet and so probably a link.
 */
export function rankAddresses(local: PublishedInterface, remote: PublishedInterface, linkLocal: boolean): AddressPair[] {
  const best = new Map<number, AddressPair & { worth: number }>();
  for (const a of local.addresses) {
    for (const b of remote.addresses) {
      if (a.family !== b.family || a.linkLocal !== b.linkLocal) continue;
      const sameSubnet = subnetOf(a.address, a.prefix) === subnetOf(b.address, b.prefix);
      const isLastResort = a.linkLocal && !linkLocal;
      const worth = isLastResort ? -1 : (sameSubnet ? 2 : 0) + (a.family === 4 ? 1 : 0);
      const kind = isLastResort ? 0 : a.family;
      const known = best.get(kind);
      if (known === undefined || worth > known.worth) best.set(kind, { local: a, remote: b, worth });
    }
  }
  const ranked = [...best.values()].sort((a, b) => b.worth - a.worth);
  // An address that is only good on the link never makes a rail by itself, unless the pair lives on such.
  if (ranked[0] === undefined || ranked[0].worth < 0) return [];
  return ranked.filter(({ worth }) => worth >= 0 || (ranked[0].worth >= 2 && !local.loopback));
}

export function chooseAddresses(local: PublishedInterface, remote: PublishedInterface, linkLocal: boolean): AddressPair | undefined {
  return rankAddresses(local, remote, linkLocal)[0];
}
