// Under which addresses this host can be reached, and which addresses are loopback.
import { lookup } from 'node:dns/promises';
import { BlockList, connect, isIP, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { MultirailError } from '../../errors.ts';
import { OOB_PATH } from './messages.ts';

/** Loopback answers at once; a machine under load gets this long. */
const LOOPBACK_WAIT_MS = 5000;

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

type Table = NodeJS.Dict<NetworkInterfaceInfo[]>;

/** Loopback as this host has it: the address of IPv4, unless only that of IPv6 is there. */
export function loopbackAddress(read: () => Table = networkInterfaces): string {
  let table: Table;
  try {
    table = read();
  } catch {
    // Whoever must not ask the kernel takes what nearly every host has.
    return '127.0.0.1';
  }
  const addresses = new Set(Object.values(table).flatMap((entries) => (entries ?? []).map(({ address }) => address)));
  return !addresses.has('127.0.0.1') && addresses.has('::1') ? '::1' : '127.0.0.1';
}

/** Connects to a listener on loopback. Throws ERR_LAUNCH when that does not work: then no rank of this host could either. */
export async function checkLoopback(host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host, port });
    const fail = (why: string) => {
      socket.destroy();
      reject(
        new MultirailError(
          'ERR_LAUNCH',
          `this host cannot reach itself at ${host} (${why}): is its loopback interface up? \`ip link show lo\` tells, and \`ip link set lo up\` ` +
            'brings it up; in a new network namespace it is down at first',
        ),
      );
    };
    socket.setTimeout(LOOPBACK_WAIT_MS, () => fail(`no answer within ${LOOPBACK_WAIT_MS} ms`));
    socket.once('error', (error) => fail(error.message));
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
  });
}

function systemAddresses(): Table {
  try {
    return networkInterfaces();
  } catch (error) {
    throw new MultirailError(
      'ERR_LAUNCH',
      `the addresses of this host cannot be listed (${(error as Error).message}): allow netlink sockets (AF_NETLINK), or name the addresses (--oob-listen, ` +
        'MULTIRAIL_RENDEZVOUS)',
      { cause: error },
    );
  }
}

/** This host's addresses as others may dial them: bridges of containers last, link-local ones not at all. */
export function ownAddresses(): string[] {
  const found: { address: string; late: boolean }[] = [];
  for (const [name, entries] of Object.entries(systemAddresses())) {
    for (const { address, internal, family } of entries ?? []) {
      const linkLocal = family === 'IPv6' ? /^fe[89ab]/i.test(address) : address.startsWith('169.254.');
      if (!internal && !linkLocal) found.push({ address, late: LOCAL_BRIDGES.test(name) });
    }
  }
  return found.sort((a, b) => Number(a.late) - Number(b.late)).map(({ address }) => address);
}

/** `host`, `host:port`, `[v6]:port` or a bare IPv6 address. */
export function parseListenAddress(text: string): { host: string; port: number } {
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(text);
  const plain = isIPv6(text) ? [text, text, undefined] : /^([^:]+)(?::(\d+))?$/.exec(text);
  const match = bracketed ?? plain;
  const port = Number(match?.[2] ?? 0);
  if (match === null || match[1] === undefined || port > 65535) {
    throw new MultirailError('ERR_CONFIG', `"${text}" is not an address to listen on: expected host, host:port or [v6]:port`);
  }
  return { host: match[1], port };
}
