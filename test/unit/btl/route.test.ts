// Method: recorded answers of `ip route get` and recorded route tables.
import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import { isLinkLocal } from '../../../src/btl/tcp/interfaces.ts';
import {
  lookUpRoute,
  parseIpv4Local,
  parseIpv4Routes,
  parseIpv6Routes,
  parseRouteError,
  parseRouteGet,
  RouteProbe,
} from '../../../src/btl/tcp/route.ts';

describe('ip route get', () => {
  test('JSON and plain text', () => {
    expect(parseRouteGet('[{"dst":"10.0.0.2","dev":"eth1","prefsrc":"10.0.0.1","flags":[],"uid":0,"cache":[]}]')).toEqual({
      kind: 'device',
      device: 'eth1',
    });
    expect(parseRouteGet('10.0.0.2 from 10.0.0.1 via 10.0.0.254 dev eth3 uid 0 \n    cache \n')).toEqual({
      kind: 'device',
      device: 'eth3',
    });
    expect(parseRouteGet('[{"type":"unreachable","dst":"10.0.0.2","dev":"lo"}]')).toMatchObject({ kind: 'none' });
    expect(parseRouteGet('')).toEqual({ kind: 'unknown' });
    expect(parseRouteGet('[]')).toEqual({ kind: 'unknown' });
  });
  test('no route is told from not being able to ask', () => {
    expect(parseRouteError('RTNETLINK answers: Network is unreachable\n')).toMatchObject({ kind: 'none' });
    expect(parseRouteError('RTNETLINK answers: No route to host')).toMatchObject({ kind: 'none' });
    expect(parseRouteError('Cannot open netlink socket: Operation not permitted')).toEqual({ kind: 'unknown' });
    expect(parseRouteError('')).toEqual({ kind: 'unknown' });
  });
});

test('IPv4 table', () => {
  const routes = parseIpv4Routes(
    [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0',
      'eth1\t00000000\t0101000A\t0003\t0\t0\t50\t00000000\t0\t0\t0',
      'eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      'eth1\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      'eth2\t0002000A\t00000000\t0000\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      'lo\t0003000A\t00000000\t0201\t0\t0\t0\t00FFFFFF\t0\t0\t0',
    ].join('\n'),
  );
  const device = (address: string): string => {
    const egress = lookUpRoute(routes, address);
    return egress.kind === 'device' ? egress.device : egress.kind;
  };
  expect([device('10.0.0.77'), device('10.0.1.77'), device('10.0.2.77'), device('8.8.8.8'), device('10.0.3.1'), device('rubbish')]).toEqual(
    [
      'eth0',
      'eth1',
      'eth1', // its own route is down: the default of the lower metric
      'eth1',
      'none',
      'unknown',
    ],
  );
});

test('IPv4: the local table is asked before the main one, and of no other table', () => {
  // Recorded on Linux 6.18 in a network namespace with a policy rule, which keeps the tables apart.
  const trie = `Id 100:
  |-- 10.77.0.0
     /16 host LOCAL
Main:
  +-- 0.0.0.0/4 2 0 2
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 10.9.0.0
        /24 link UNICAST
Local:
  +-- 0.0.0.0/1 2 0 2
     +-- 10.0.0.0/9 2 0 2
        +-- 10.9.0.0/24 2 0 2
           |-- 10.9.0.1
              /32 host LOCAL
           |-- 10.9.0.255
              /32 link BROADCAST
        |-- 10.66.0.0
           /16 host LOCAL
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
`;
  const main = parseIpv4Routes(
    [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'd0\t00000000\tFE00090A\t0003\t0\t0\t0\t00000000\t0\t0\t0',
      'd0\t0000090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      // Added to what was recorded: a longer prefix of the main table does not win against the local table.
      'd1\t0001420A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
    ].join('\n'),
  );
  const local = parseIpv4Local(trie);
  expect(local).toHaveLength(4);
  for (const routes of [
    [...local, ...main],
    [...main, ...local],
  ]) {
    const device = (address: string): unknown => lookUpRoute(routes, address);
    for (const own of ['127.0.0.1', '127.8.0.1', '10.9.0.1', '10.66.3.4', '10.66.1.1']) {
      expect([own, device(own)]).toEqual([own, { kind: 'device', device: 'lo' }]);
    }
    for (const other of ['10.9.0.2', '10.9.0.255', '10.77.0.1', '8.8.8.8']) {
      expect([other, device(other)]).toEqual([other, { kind: 'device', device: 'd0' }]);
    }
  }
  expect(lookUpRoute(main, '127.0.0.1')).toEqual({ kind: 'device', device: 'd0' });
  expect(parseIpv4Local('')).toEqual([]);
  expect(parseIpv4Local('Main:\n  |-- 10.9.0.1\n     /32 host LOCAL\n')).toEqual([]);
});

test('IPv6 table', () => {
  const zero = '0'.repeat(32);
  const row = (destination: string, prefix: string, metric: string, flags: string, device: string): string =>
    `${destination} ${prefix} ${zero} 00 ${zero} ${metric} 00000001 00000000 ${flags} ${device.padStart(8)}`;
  const routes = parseIpv6Routes(
    [
      row(`fd000001${'0'.repeat(24)}`, '40', '00000100', '00000001', 'eth1'),
      row(`fd${'0'.repeat(30)}`, '08', '00000100', '00000001', 'eth2'),
      row(zero, '00', 'ffffffff', '00200200', 'lo'),
      // The entry of an address of eth1 itself, which is reached through lo.
      row(`fd000001${'0'.repeat(23)}9`, '80', '00000000', '80200001', 'eth1'),
      '',
    ].join('\n'),
  );
  expect(lookUpRoute(routes, 'fd00:1::5')).toEqual({ kind: 'device', device: 'eth1' });
  expect(lookUpRoute(routes, 'fd00:1::9')).toEqual({ kind: 'device', device: 'lo' });
  expect(lookUpRoute(routes, 'fd00:2::5')).toEqual({ kind: 'device', device: 'eth2' });
  expect(lookUpRoute(routes, '2001:db8::1')).toMatchObject({ kind: 'none' });
});

test('the kernel of this machine is asked, and asked once a second', async () => {
  const probe = new RouteProbe();
  const answer = probe.egress('127.0.0.1', '127.0.0.1', 0);
  expect(probe.egress('127.0.0.1', '127.0.0.1', 999)).toBe(answer);
  expect(probe.egress('127.0.0.1', '127.0.0.1', 1001)).not.toBe(answer);
  const egress = await answer;
  if (egress.kind !== 'device') console.log(`skipped: the route to loopback could not be found out here (${egress.kind})`);
  else expect(egress.device).toBe('lo');
});

test('where there is no ip program, the tables in /proc answer as the kernel does, for the addresses of this machine too', async () => {
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ address }) => !isLinkLocal(address));
  if (!existsSync('/proc/net/fib_trie') || own.length === 0) {
    console.log('skipped: this machine has no /proc/net/fib_trie, or no address');
    return;
  }
  const probe = new RouteProbe(undefined, 'no-such-program-as-this');
  for (const { address } of own)
    expect([address, await probe.egress(address, address, 0)]).toEqual([address, { kind: 'device', device: 'lo' }]);
});
