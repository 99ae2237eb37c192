// Method: tables of invented interfaces; each pairing is computed from both sides and must be the same list.
import { describe, expect, test } from 'vitest';
import {
  addressBits,
  compareNames,
  type InterfaceTable,
  isLinkLocal,
  readInterfaces,
  selectInterfaces,
  subnetOf,
} from '../../../src/btl/tcp/interfaces.ts';
import { TcpModule } from '../../../src/btl/tcp/module.ts';
import {
  chooseAddresses,
  type PublishedAddresses,
  type PublishedInterface,
  pairInterfaces,
  rankAddresses,
} from '../../../src/btl/tcp/pairing.ts';
import { contextOf, Recorder } from '../../support/harness.ts';

function nic(name: string, ...addresses: string[]): PublishedInterface {
  return {
    name,
    loopback: name === 'lo',
    standby: false,
    addresses: addresses.map((text) => {
      const [address, prefix] = text.split('/');
      return { address, family: address.includes(':') ? 6 : 4, prefix: Number(prefix), port: 1000, linkLocal: isLinkLocal(address) };
    }),
  };
}
const side = (...interfaces: PublishedInterface[]): PublishedAddresses => ({ interfaces, links: 1 });
const LO = nic('lo', '127.0.0.1/8', '::1/128');
const pairs = (lower: PublishedAddresses, upper: PublishedAddresses, sameHost = false): string[] =>
  pairInterfaces(lower, upper, sameHost).map((pair) => `${pair.lower.name}-${pair.upper.name}${pair.linkLocal ? ' link-local' : ''}`);

describe('pairs', () => {
  const TABLE: [string, PublishedAddresses, PublishedAddresses, string[]][] = [
    ['one NIC each', side(LO, nic('eth0', '10.0.0.1/24')), side(LO, nic('ens3', '10.0.0.2/24')), ['eth0-ens3']],
    [
      'two NICs in two subnets, named the other way round',
      side(nic('eth0', '10.0.0.1/24'), nic('eth1', '10.0.1.1/24')),
      side(nic('eth0', '10.0.1.2/24'), nic('eth1', '10.0.0.2/24')),
      ['eth0-eth1', 'eth1-eth0'],
    ],
    [
      'two NICs in one subnet go by their order',
      side(nic('eth0', '10.0.0.1/24'), nic('eth1', '10.0.0.2/24')),
      side(nic('eth0', '10.0.0.3/24'), nic('eth1', '10.0.0.4/24')),
      ['eth0-eth0', 'eth1-eth1'],
    ],
    [
      'several addresses on an interface: no interface is left over for it',
      side(nic('eth0', '10.0.0.1/24', '10.0.1.1/24'), nic('eth1', '10.0.0.5/24')),
      side(nic('eth0', '10.0.0.2/24'), nic('eth1', '10.0.1.2/24')),
      ['eth0-eth1', 'eth1-eth0'],
    ],
    ['IPv6 only', side(nic('eth0', 'fe80::1/64', 'fd00:1::1/64')), side(nic('eth0', 'fe80::2/64', 'fd00:1::2/64')), ['eth0-eth0']],
    [
      'routed: no subnet in common',
      side(nic('eth0', '10.0.0.1/24'), nic('eth1', '10.1.0.1/24')),
      side(nic('eth0', '10.2.0.1/24')),
      ['eth0-eth0'],
    ],
    [
      'same subnet before routed, whatever the order',
      side(nic('eth0', '10.9.0.1/24'), nic('eth1', '10.1.0.1/24')),
      side(nic('eth0', '10.1.0.2/24'), nic('eth1', '10.7.0.1/24')),
      ['eth1-eth0', 'eth0-eth1'],
    ],
    ['asymmetric', side(nic('eth0', '10.0.0.1/24'), nic('eth1', '10.0.1.1/24')), side(nic('eth0', '10.0.1.2/24')), ['eth1-eth0']],
    ['no family in common', side(nic('eth0', '10.0.0.1/24')), side(nic('eth0', 'fd00::1/64')), []],
    ['link-local when there is nothing else', side(nic('eth0', 'fe80::1/64')), side(nic('eth0', 'fe80::2/64')), ['eth0-eth0 link-local']],
    [
      'link-local is not used beside something better',
      side(nic('eth0', '10.0.0.1/24'), nic('eth1', 'fe80::1/64')),
      side(nic('eth0', '10.0.0.2/24'), nic('eth1', 'fe80::2/64')),
      ['eth0-eth0'],
    ],
    ['loopback does not reach another host', side(LO), side(LO), []],
  ];
  test.each(TABLE)('%s', (_name, lower, upper, expected) => {
    expect(pairs(lower, upper)).toEqual(expected);
  });

  test('on one host: loopback, else the common interface, else any two', () => {
    expect(pairs(side(LO, nic('eth0', '10.0.0.1/24')), side(LO, nic('eth0', '10.0.0.1/24')), true)).toEqual(['lo-lo']);
    expect(pairs(side(nic('eth0', '10.0.0.1/24')), side(LO, nic('eth0', '10.0.0.1/24')), true)).toEqual(['eth0-eth0']);
    expect(pairs(side(nic('eth0', '10.0.0.1/24')), side(nic('eth1', '10.0.1.1/24')), true)).toEqual(['eth0-eth1']);
  });
});

test('both ranks plan the same rails, keys from the lower rank’s side', () => {
  const a = side(nic('eth0', '10.0.0.1/24'), nic('eth1', '10.0.1.1/24'));
  const b = { ...side(nic('p1', '10.0.1.2/24'), nic('p0', '10.0.0.2/24')), links: 2 };
  const zero = new TcpModule(contextOf(0, new Recorder(), { hostId: 'x' }));
  const one = new TcpModule(contextOf(1, new Recorder(), { hostId: 'y' }));
  const here = zero.plan(1, { ...a, links: 3 }, b, 'y');
  const there = one.plan(0, b, { ...a, links: 3 }, 'x');
  expect(here.map((plan) => plan.key)).toEqual(['tcp:eth0-p0#0', 'tcp:eth0-p0#1', 'tcp:eth1-p1#0', 'tcp:eth1-p1#1']);
  expect(there.map((plan) => plan.key)).toEqual(here.map((plan) => plan.key));
  expect(here[0].detail).toMatchObject({ localInterface: 'eth0', remoteInterface: 'p0' });
  expect(there[0].detail).toMatchObject({ localInterface: 'p0', remoteInterface: 'eth0' });
});

test('addresses of a pair: one subnet first, then IPv4', () => {
  const local = nic('eth0', '10.0.0.1/24', 'fd00::1/64', 'fe80::1/64');
  const remote = nic('eth0', 'fe80::2/64', 'fd00::2/64', '10.5.0.2/24');
  expect(chooseAddresses(local, remote, false)).toMatchObject({ local: { address: 'fd00::1' }, remote: { address: 'fd00::2' } });
  expect(chooseAddresses(nic('a', '10.0.0.1/24'), nic('b', 'fd00::1/64'), false)).toBeUndefined();
});

test('other addresses to try: one of each family, then link-local ones where the link is probably one', () => {
  const list = (a: PublishedInterface, b: PublishedInterface) =>
    rankAddresses(a, b, false).map(({ local, remote }) => `${local.address} ${remote.address}`);
  expect(list(nic('a', '10.0.0.1/24', 'fd00::1/64', 'fe80::1/64'), nic('b', '10.0.0.2/24', 'fd00::2/64', 'fe80::2/64'))).toEqual([
    '10.0.0.1 10.0.0.2',
    'fd00::1 fd00::2',
    'fe80::1 fe80::2',
  ]);
  expect(list(nic('a', '10.0.0.1/24', 'fe80::1/64'), nic('b', '10.0.9.2/24', 'fe80::2/64'))).toEqual(['10.0.0.1 10.0.9.2']);
  expect(list(nic('a', 'fe80::1/64'), nic('b', 'fe80::2/64'))).toEqual([]);
});

describe('interfaces', () => {
  const entry = (address: string, cidr: string, internal = false) => ({ address, family: 'IPv4', cidr, internal });
  const TABLE: InterfaceTable = {
    eth10: [entry('10.0.10.1', '10.0.10.1/24')],
    lo: [entry('127.0.0.1', '127.0.0.1/8', true)],
    eth2: [entry('10.0.2.1', '10.0.2.1/24'), { address: 'fd00::2', family: 'IPv6', cidr: 'fd00::2/64', internal: false }],
    'eth2:1': [entry('10.0.3.1', '10.0.3.1/24')],
    docker0: [entry('172.17.0.1', '172.17.0.1/16')],
  };
  const all = readInterfaces(TABLE);
  const names = (include: string[], exclude: string[], disabledFamily: 0 | 4 | 6 = 0): string[] =>
    selectInterfaces(all, { include, exclude, disabledFamily }).map(
      (found) => `${found.name} ${found.addresses.map((address) => address.address).join(' ')}`,
    );

  test('in the order of their names, labels joined', () => {
    expect(all.map((found) => found.name)).toEqual(['docker0', 'eth2', 'eth10', 'lo']);
    expect(all[1].addresses.map((address) => address.address)).toEqual(['10.0.2.1', 'fd00::2', '10.0.3.1']);
  });
  test('include and exclude by name, pattern and subnet', () => {
    expect(names([], ['docker0', 'lo'])).toEqual(['eth2 10.0.2.1 fd00::2 10.0.3.1', 'eth10 10.0.10.1']);
    expect(names(['eth*'], [])).toEqual(['eth2 10.0.2.1 fd00::2 10.0.3.1', 'eth10 10.0.10.1']);
    expect(names(['10.0.3.0/24', 'fd00::/8'], [])).toEqual(['eth2 fd00::2 10.0.3.1']);
    expect(names([], ['10.0.0.0/16', '172.16.0.0/12', 'l*'])).toEqual(['eth2 fd00::2']);
    expect(names(['eth2'], [], 6)).toEqual(['eth2 10.0.2.1 10.0.3.1']);
    expect(names(['eth'], [])).toEqual([]);
  });
  test('arithmetic', () => {
    expect(['eth10', 'eth2', 'eth1', 'a1b2', 'a1b10'].sort(compareNames)).toEqual(['a1b2', 'a1b10', 'eth1', 'eth2', 'eth10']);
    expect(addressBits('::ffff:1.2.3.4')?.bits).toBe(0xffff01020304n);
    expect(addressBits('fe80::1%eth0')?.bits).toBe((0xfe80n << 112n) | 1n);
    expect(addressBits('::')?.bits).toBe(0n);
    expect(addressBits('nonsense')).toBeUndefined();
    expect(subnetOf('10.0.0.200', 25)).toBe(subnetOf('10.0.0.129', 25));
    expect(subnetOf('10.0.0.200', 25)).not.toBe(subnetOf('10.0.0.127', 25));
    expect([isLinkLocal('169.254.1.1'), isLinkLocal('fe80::1'), isLinkLocal('febf::1'), isLinkLocal('fec0::1')]).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });
});
