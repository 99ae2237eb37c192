// What the tcp and ws modules and their shared base module tell each other: configuration, listeners, targets of a dial.
import { type LocalAddress, matchesEntry } from './interfaces.ts';
import type { PublishedAddresses } from './pairing.ts';

/** More rails per pair of interfaces than any parameter can ask for. */
export const LINKS_MAX = 16;

/** What the subclass reads from its parameters. */
export interface IpModuleConfig {
  include: string[];
  exclude: string[];
  disabledFamily: 0 | 4 | 6;
  portMin: number;
  portRange: number;
  links: number;
  bandwidthMBps: number;
  latencyUs: number;
  routeCheck: boolean;
  /** Whether rails of this interface work only while no other is up. */
  standby: (name: string, addresses: readonly LocalAddress[]) => boolean;
}

/** `detail` of a plan. */
export interface IpRailDetail {
  localInterface: string;
  remoteInterface: string;
  sameHost: boolean;
  linkLocal: boolean;
}

export interface Listener {
  port: number;
  close(): Promise<void>;
}

/** Where a stream is opened to, and from which local address. Link-local IPv6 addresses carry their zone. */
export interface DialTarget {
  host: string;
  port: number;
  localAddress: string;
  /** Interface that its packets must leave by; '' when the peer is on this host. */
  device: string;
}

export function linksOf(ours: PublishedAddresses, theirs: PublishedAddresses): number {
  return Math.max(1, Math.min(LINKS_MAX, ours.links, theirs.links));
}

/** For a standby list of names and subnets. */
export function standbyByList(entries: readonly string[]): IpModuleConfig['standby'] {
  return (name, addresses) => entries.some((entry) => matchesEntry(entry, name, addresses));
}
