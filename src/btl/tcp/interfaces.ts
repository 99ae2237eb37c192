// Local interfaces and IP arithmetic: which interfaces carry rails, with which addresses. Only readInterfaces() and readNames() do I/O.
import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { MultirailError } from '../../errors.ts';

/** One address of an interface, without a zone. */
export interface LocalAddress {
  address: string;
  family: 4 | 6;
  prefix: number;
  linkLocal: boolean;
}

export interface LocalInterface {
  name: string;
  loopback: boolean;
  addresses: LocalAddress[];
}

/** What os.networkInterfaces() answers, as far as we read it. */
export type InterfaceTable = Readonly<
  Record<string, readonly { address: string; family: string | number; cidr: string | null; internal: boolean }[] | undefined>
>;

/** An IP address as a number of 32 or 128 bits; undefined when the text is not an address. */
export function addressBits(address: string): { family: 4 | 6; bits: bigint } | undefined {
  const plain = address.split('%')[0];
  const family = isIP(plain);
  if (family === 4) {
    return { family, bits: plain.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n) };
  }
  if (family !== 6) return undefined;
  // An IPv4 tail counts as two groups; :: stands for the groups that are missing.
  const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain);
  const text = tail
    ? `${tail[1]}${((Number(tail[2]) << 8) | Number(tail[3])).toString(16)}:${((Number(tail[4]) << 8) | Number(tail[5])).toString(16)}`
    : plain;
  const [head, rest] = text.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = rest === undefined || rest === '' ? [] : rest.split(':');
  const groups = rest === undefined ? left : [...left, ...new Array<string>(8 - left.length - right.length).fill('0'), ...right];
  return { family, bits: groups.reduce((bits, group) => (bits << 16n) | BigInt(Number.parseInt(group, 16)), 0n) };
}

/** `family/prefix/network`: equal for two addresses in one subnet. */
export function subnetOf(address: string, prefix: number): string {
  const parsed = addressBits(address);
  if (parsed === undefined) return `none/${address}`;
  const width = parsed.family === 4 ? 32 : 128;
  const shift = BigInt(Math.max(0, width - prefix));
  return `${parsed.family}/${prefix}/${(parsed.bits >> shift).toString(16)}`;
}

export function isLinkLocal(address: string): boolean {
  const parsed = addressBits(address);
  if (parsed === undefined) return false;
  return parsed.family === 4 ? parsed.bits >> 16n === 0xa9fen : parsed.bits >> 118n === 0x3fan;
}

/** eth2 before eth10. */
export function compareNames(a: string, b: string): number {
  const parts = (name: string): string[] => name.match(/\d+|\D+/g) ?? [];
  const left = parts(a);
  const right = parts(b);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = Number(left[i]) - Number(right[i]);
    if (!Number.isNaN(order) && order !== 0) return order;
    if (Number.isNaN(order) && left[i] !== right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return left.length - right.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** What the system says. Throws ERR_INIT, with what to do, where it must not be asked. */
export function systemTable(read: () => InterfaceTable = networkInterfaces): InterfaceTable {
  try {
    return read();
  } catch (error) {
    throw new MultirailError(
      'ERR_INIT',
      `the interfaces of this host cannot be listed (${(error as Error).message}). The kernel reports them over a netlink socket, which the seccomp profile of ` +
        'a container or RestrictAddressFamilies of systemd may forbid: allow AF_NETLINK, or use transports that do not need it (btl self,sm on one host)',
      { cause: error },
    );
  }
}

/** The interfaces that are up, with their addresses, in the order of their names. The kernel lists none without carrier. */
export function readInterfaces(table: InterfaceTable = systemTable()): LocalInterface[] {
  const byName = new Map<string, LocalInterface>();
  for (const [label, entries] of Object.entries(table)) {
    // A second IPv4 address may be listed under a label such as eth0:1; the device is eth0.
    const name = label.split(':')[0];
    for (const entry of entries ?? []) {
      const parsed = addressBits(entry.address);
      if (parsed === undefined) continue;
      const address = entry.address.split('%')[0];
      const { family } = parsed;
      const prefix = entry.cidr === null ? (family === 4 ? 32 : 128) : Number(entry.cidr.split('/')[1]);
      const found = byName.get(name) ?? { name, loopback: entry.internal, addresses: [] };
      if (!found.addresses.some((known) => known.address === address)) {
        found.addresses.push({ address, family, prefix, linkLocal: isLinkLocal(address) });
      }
      byName.set(name, found);
    }
  }
  return [...byName.values()].sort((a, b) => compareNames(a.name, b.name));
}

/** All interfaces of this network namespace, those without carrier or address too, in the order of their names; [] where nobody can tell. */
export function readNames(): string[] {
  let text: string;
  try {
    text = readFileSync('/proc/net/dev', 'utf8');
  } catch {
    return [];
  }
  // Two lines of headings, then `name: counters`.
  const names = text
    .split('\n')
    .slice(2)
    .flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? []);
  return names.sort(compareNames);
}

/** Those of `names` that may come to carry rails and are not among `present`: by name alone, since they may have no address yet. */
export function selectIdle(names: readonly string[], present: readonly LocalInterface[], { include, exclude }: InterfaceFilter): string[] {
  const isNamed = (entries: readonly string[], name: string): boolean =>
    entries.some((entry) => !isSubnetEntry(entry) && matchesEntry(entry, name, []));
  return names.filter((name) => {
    if (name === 'lo' || present.some((found) => found.name === name)) return false;
    if (include.length > 0) return include.some(isSubnetEntry) || isNamed(include, name);
    return !isNamed(exclude, name);
  });
}

/** True when the interface, or one of its addresses, is named by an entry: a name with *, an address or a subnet. */
export function matchesEntry(entry: string, name: string, addresses: readonly LocalAddress[]): boolean {
  const [network, prefix, ...rest] = entry.split('/');
  const family = isIP(network);
  if (family === 0) {
    const pattern = entry
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*');
    return new RegExp(`^${pattern}$`).test(name);
  }
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const width = family === 4 ? 32 : 128;
  if (rest.length > 0 || (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= width))) {
    throw new MultirailError('ERR_CONFIG', `subnet "${entry}": expected ADDRESS or ADDRESS/LENGTH with a length from 0 to ${width}`);
  }
  const block = new BlockList();
  block.addSubnet(network.split('%')[0], prefix === undefined ? width : Number(prefix), type);
  return addresses.some((address) => address.family === family && block.check(address.address, type));
}

/** True for an entry that names a subnet or an address rather than an interface. */
const isSubnetEntry = (entry: string): boolean => isIP(entry.split('/')[0]) !== 0;

export interface InterfaceFilter {
  include: readonly string[];
  exclude: readonly string[];
  disabledFamily: 0 | 4 | 6;
}

/**
 * The interfaces that carry rails, with the addresses that may be used: a subnet in `include` or `exclude` picks single
 * addresses, a name picks the interface with all of them. `include` wins over `exclude` only by not being empty.
 */
export function selectInterfaces(all: readonly LocalInterface[], filter: InterfaceFilter): LocalInterface[] {
  const selected: LocalInterface[] = [];
  for (const found of all) {
    const named = (entry: string): boolean => !isSubnetEntry(entry) && matchesEntry(entry, found.name, []);
    const holds = (entry: string, address: LocalAddress): boolean => isSubnetEntry(entry) && matchesEntry(entry, '', [address]);
    const addresses = found.addresses.filter((address) => {
      if (address.family === filter.disabledFamily) return false;
      const { include, exclude } = filter;
      if (include.length > 0) return include.some((entry) => named(entry) || holds(entry, address));
      return !exclude.some((entry) => named(entry) || holds(entry, address));
    });
    if (addresses.length > 0) selected.push({ ...found, addresses });
  }
  return selected;
}
