// What a session of the wire suite begins with: its options, and the address under which the endpoint reaches the tester.
import { networkInterfaces } from 'node:os';
import type { PublishedAddresses } from '../../src/btl/tcp/pairing.ts';
import type { StartCommand } from './convention.ts';

export interface SessionOptions extends Partial<Omit<StartCommand, 'rank' | 'peer'>> {
  /** `accept`: the endpoint is rank 1 and is dialled. `dial`: it is rank 0 and dials. */
  role?: 'accept' | 'dial';
  /** What our modex entry says of our own credit. */
  ownUnexpectedBytesMax?: number;
}

/** Small limits, so that short messages reach every branch. */
export const DEFAULTS = {
  size: 2,
  links: 1,
  unexpectedBytesMax: 65_536,
  eagerLimitBytes: 4096,
  rndvInlineBytes: 1024,
  fragBytes: 8192,
  retainedBytesMax: 1 << 20,
  payloadCrc: false,
  peerTimeoutMs: 60_000,
} as const;

export const OWN_INCARNATION = 5000;
export const ENDPOINT_INCARNATION = 7000;

/** The interface of ours that reaches the endpoint. */
export function ownInterface(near: boolean, address: string, port: number): PublishedAddresses['interfaces'][number] {
  const published = (name: string, loopback: boolean, host: string, family: 4 | 6, prefix: number) => ({
    name,
    loopback,
    standby: false,
    addresses: [{ address: host, family, prefix, port, linkLocal: false }],
  });
  if (near) return published('lo', true, '127.0.0.1', 4, 8);
  for (const [name, addresses = []] of Object.entries(networkInterfaces())) {
    for (const { address: own, family, cidr } of addresses) {
      if (own === address) return published(name, false, own, family === 'IPv6' ? 6 : 4, Number(cidr?.split('/')[1] ?? 24));
    }
  }
  return published('tester', false, address, address.includes(':') ? 6 : 4, 24);
}
