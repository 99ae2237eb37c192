// Method: recorded answers of `ip route get` and recorded route tables.
import { describe, expect, test } from 'vitest';
import { lookUpRoute, parseIpv4Routes, parseIpv6Routes, parseRouteError, parseRouteGet, RouteProbe } from '../../../src/btl/tcp/route.ts';

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

test('IPv6 table', () => {
  const zero = '0'.repeat(32);
  const row = (destination: string, prefix: string, metric: string, flags: string, device: string): string =>
    `${destination} ${prefix} ${zero} 00 ${zero} ${metric} 00000001 00000000 ${flags} ${device.padStart(8)}`;
  const routes = parseIpv6Routes(
    [
      row(`fd000001${'0'.repeat(24)}`, '40', '00000100', '00000001', 'eth1'),
      row(`fd${'0'.repeat(30)}`, '08', '00000100', '00000001', 'eth2'),
      row(zero, '00', 'ffffffff', '00200200', 'lo'),
      '',
    ].join('\n'),
  );
  expect(lookUpRoute(routes, 'fd00:1::5')).toEqual({ kind: 'device', device: 'eth1' });
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
