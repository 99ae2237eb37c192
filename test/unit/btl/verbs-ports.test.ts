// The addresses of an RDMA port: which one rails use, and what happens to it when the port's interface gets or loses some. The test says
// what the device and the interfaces of the host are.
import type { NetworkInterfaceInfo } from 'node:os';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { inOneFabric } from '../../../src/btl/verbs/address.ts';
import { LocalPort, type VerbsDevice } from '../../../src/btl/verbs/ports.ts';
import type { Rdma } from '../../../src/btl/verbs/rdma.ts';

let interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = {};
vi.mock('node:os', async (original) => ({ ...(await original<typeof import('node:os')>()), networkInterfaces: () => interfaces }));

const DOWN = 1;
const ACTIVE = 4;
const rdma = { PORT_STATE: { DOWN, ACTIVE }, LINK_LAYER: { INFINIBAND: 1, ETHERNET: 2 } } as unknown as typeof Rdma;
const LINK_LOCAL = 'fe80000000000000000000fffe000000';
const gidOf = (ip: string): string => `00000000000000000000ffff${Buffer.from(ip.split('.').map(Number)).toString('hex')}`;

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));

let gids: string[] = [];
let state = ACTIVE;
let lid = 0;

/** What the interface of the port has: IPv4 addresses with their prefix lengths, at the places of the table that they have; '' is a free one. */
function give(...cidrs: string[]): void {
  const held = cidrs.filter((cidr) => cidr !== '');
  const toInfo = (cidr: string) => ({ address: cidr.split('/')[0], cidr, family: 'IPv4', internal: false }) as NetworkInterfaceInfo;
  interfaces = { eth0: held.map(toInfo) };
  gids = [LINK_LOCAL, ...cidrs.map((cidr) => (cidr === '' ? '' : gidOf(cidr.split('/')[0])))];
}

function portOf(linkLayer: 'ETHERNET' | 'INFINIBAND' = 'ETHERNET', wanted = -1): LocalPort {
  const handle = {
    queryPort: () => ({ state, linkLayer: rdma.LINK_LAYER[linkLayer], mtu: 3, lid, messageBytesMax: 2 ** 30, speed: 1, width: 1 }),
    gid: (_port: number, index: number) => ((gids[index] ?? '') === '' ? undefined : bytesOf(gids[index])),
    gids: () =>
      gids
        .map((gid, index) => ({ index, gid: bytesOf(gid), type: 'RoCE v2', netdev: gid === LINK_LOCAL ? 'eth1' : 'eth0' }))
        .filter(({ gid }) => gid.length > 0),
  };
  return new LocalPort(rdma, { name: 'rxe0', handle } as unknown as VerbsDevice, 1, wanted);
}

beforeEach(() => {
  state = ACTIVE;
  lid = 0;
  give('10.9.0.1/24');
});

describe('a port with addresses that change', () => {
  test('another one of the same network takes the place of one that is gone, and rails of that one cannot go on', () => {
    const port = portOf();
    expect([port.fabric, port.hosts, port.gidIndex]).toEqual(['10.9.0.0/24', ['10.9.0.1'], 1]);
    const before = port.address;
    give('10.9.0.1/24', '192.168.5.1/24', '10.9.0.101/24');
    expect(port.look()).toBe(false);
    expect(port.complaint(before)).toBeUndefined();
    give('', '192.168.5.1/24', '10.9.0.101/24');
    expect(port.look()).toBe(true);
    expect([port.fabric, port.hosts, port.gidIndex]).toEqual(['10.9.0.0/24', ['10.9.0.101'], 3]);
    expect(port.complaint(before)).toBe('port rxe0:1 has lost its address 10.9.0.1');
    expect(port.complaint(port.address)).toBeUndefined();
  });

  test('a rail goes on over an address that is not the best any more', () => {
    give('', '10.9.0.1/24');
    const port = portOf();
    const before = port.address;
    give('10.9.0.5/24', '10.9.0.1/24');
    expect(port.look()).toBe(true);
    expect(port.hosts).toEqual(['10.9.0.5']);
    expect(port.complaint(before)).toBeUndefined();
  });

  test('without any in its network it is in another one, and comes back with the address', () => {
    const port = portOf();
    give();
    expect(port.look()).toBe(true);
    expect(port.fabric).toBe('link-local');
    expect(inOneFabric(port, { link: 'ethernet', fabric: '10.9.0.0/24' })).toBe(false);
    give('10.9.0.1/24');
    expect(port.look()).toBe(true);
    expect(port.fabric).toBe('10.9.0.0/24');
    expect(inOneFabric(port, { link: 'ethernet', fabric: '10.9.0.0/24' })).toBe(true);
  });

  test('a port that was down at first is in the network of its address once it is up, and stays in it', () => {
    state = DOWN;
    interfaces = {};
    const port = portOf();
    expect(port.fabric).toBe('10.9.0.1/32');
    state = ACTIVE;
    give('192.168.5.1/24', '10.9.0.1/24');
    expect(port.look()).toBe(true);
    expect(port.fabric).toBe('10.9.0.0/24');
  });

  test('a link-local address names no place to connect to: any address of the host does for that', () => {
    give('10.9.0.1/24');
    const address = 'fe80::ff:fe00:0';
    interfaces.eth1 = [{ address, cidr: `${address}/64`, family: 'IPv6', internal: false } as NetworkInterfaceInfo];
    gids = [LINK_LOCAL];
    const port = portOf();
    expect([port.fabric, port.hosts]).toEqual(['fe800000000000000000000000000000/64', ['10.9.0.1']]);
  });

  test('while the port is down it keeps what was known of it', () => {
    const port = portOf();
    state = DOWN;
    interfaces = {};
    expect(port.look()).toBe(false);
    expect([port.isActive, port.fabric, port.hosts]).toEqual([false, '10.9.0.0/24', ['10.9.0.1']]);
  });

  test('the entry that a parameter names is taken and no other', () => {
    give('10.9.0.1/24', '10.9.0.2/24');
    const port = portOf('ETHERNET', 2);
    expect(port.hosts).toEqual(['10.9.0.2']);
    give('10.9.0.3/24', '10.9.0.4/24');
    port.look();
    expect(port.hosts).toEqual(['10.9.0.4']);
  });
});

test('InfiniBand: rails go with the LID', () => {
  lid = 5;
  const port = portOf('INFINIBAND');
  expect(port.fabric).toBe(LINK_LOCAL.slice(0, 16));
  const before = port.address;
  gids = [];
  port.look();
  expect(port.complaint(before)).toBeUndefined();
  lid = 7;
  expect(port.look()).toBe(true);
  expect(port.complaint(before)).toBe('port rxe0:1 has another LID');
});

test('ports reach each other in one network, and a single address reaches the network that it lies in', () => {
  const ethernet = (fabric: string) => ({ link: 'ethernet' as const, fabric });
  expect(inOneFabric(ethernet('10.9.0.0/24'), ethernet('10.9.0.0/24'))).toBe(true);
  expect(inOneFabric(ethernet('10.9.0.7/32'), ethernet('10.9.0.0/24'))).toBe(true);
  expect(inOneFabric(ethernet('10.9.0.0/24'), ethernet('10.9.0.7/32'))).toBe(true);
  expect(inOneFabric(ethernet('10.9.1.7/32'), ethernet('10.9.0.0/24'))).toBe(false);
  expect(inOneFabric(ethernet('link-local'), ethernet('10.9.0.0/24'))).toBe(false);
  expect(inOneFabric({ link: 'infiniband', fabric: 'fe80000000000000' }, ethernet('fe80000000000000'))).toBe(false);
});
