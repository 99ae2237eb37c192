// Under which addresses this host can be reached, and which addresses are loopback.
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { OOB_PATH } from './oob-messages.ts';

/** Bridges of containers and virtual machines: other hosts have the same addresses on theirs. */
const LOCAL_BRIDGES = /^(docker|virbr|br-|veth|cni|flannel|lxcbr|podman)/;

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

export function isLoopback(address: string): boolean {
  return isIP(address) !== 0 && loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** Addresses of a name; an empty list while it has none, as that of a pod that is not there yet. */
export async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch {
    return [];
  }
}

export function urlOf(host: string, port: number): string {
  return `ws://${isIPv6(host) ? `[${host}]` : host}:${port}${OOB_PATH}`;
}

/** This host's addresses as others may dial them: bridges of containers last, link-local ones not at all. */
export function ownAddresses(): string[] {
  const found: { address: string; late: boolean }[] = [];
  for (const [name, entries] of Object.entries(networkInterfaces())) {
    for (const { address, internal, family } of entries ?? []) {
      const linkLocal = family === 'IPv6' ? /^fe[89ab]/i.test(address) : address.startsWith('169.254.');
      if (!internal && !linkLocal) found.push({ address, late: LOCAL_BRIDGES.test(name) });
    }
  }
  return found.sort((a, b) => Number(a.late) - Number(b.late)).map(({ address }) => address);
}
