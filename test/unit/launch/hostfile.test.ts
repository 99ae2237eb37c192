// Host files in both styles, lists of hosts, and which rank goes where.
import { describe, expect, test } from 'vitest';
import { parseHostfile, parseHosts, placeRanks, placeReplicas, slotsOf } from '../../../src/launch/run/hostfile.ts';
import { quoted } from '../../../src/launch/run/remote-host.ts';

describe('hosts', () => {
  test('a file in both styles, with comments, doubles and addresses', () => {
    const text =
      '# the cluster\nnode1 slots=2\nnode2:3   # fast\n\nuser@node3\r\nnode1 slots=1 max_slots=4\n[fd00::1]:2\n10.0.0.7 max-slots=9\n';
    expect(parseHostfile(text, 'F')).toEqual([
      { host: 'node1', slots: 3 },
      { host: 'node2', slots: 3 },
      { host: 'user@node3', slots: 1 },
      { host: 'fd00::1', slots: 2 },
      { host: '10.0.0.7', slots: 1 },
    ]);
  });

  test('a list in one word', () => {
    expect(parseHosts('a:2,b,a:1')).toEqual([
      { host: 'a', slots: 3 },
      { host: 'b', slots: 1 },
    ]);
  });

  test.each([
    ['node1 slots=0', 'F, line 1: "0" is not a number of slots'],
    ['ok\nnode1:many', 'F, line 2: "many" is not a number of slots'],
    ['node1 sockets=2', 'F, line 1: "sockets=2" is not understood'],
    ['-oProxyCommand=evil', 'F, line 1: "-oProxyCommand=evil" is not the name of a host'],
    ['a;b', '"a;b" is not the name of a host'],
    ['# nothing', 'F names no host'],
  ])('%s', (text, message) => {
    expect(() => parseHostfile(text, 'F')).toThrow(message);
  });

  test('slots are filled host by host', () => {
    const hosts = parseHosts('a:2,b:3');
    expect(slotsOf(hosts)).toBe(5);
    expect(placeRanks(hosts, 4)).toEqual([
      { host: 'a', localRank: 0, localSize: 2 },
      { host: 'a', localRank: 1, localSize: 2 },
      { host: 'b', localRank: 0, localSize: 2 },
      { host: 'b', localRank: 1, localSize: 2 },
    ]);
    expect(placeRanks(hosts, 1)).toEqual([{ host: 'a', localRank: 0, localSize: 1 }]);
    expect(() => placeRanks(hosts, 6)).toThrow('6 ranks, but the hosts have 5 slots in all');
  });

  test('replicas of a rank are on different hosts, or on the same one', () => {
    const hosts = parseHosts('a:4,b:2,c:2');
    const where = (ranks: number, asked: 'host' | 'core' | undefined): string[] => {
      const names = placeReplicas(hosts, ranks, asked).map(({ host }) => host);
      return names.slice(0, ranks).map((lead, rank) => lead + names[rank + ranks]);
    };
    expect(where(2, 'host')).toEqual(['ab', 'ab']);
    expect(where(3, undefined)).toEqual(['ab', 'ab', 'ac']);
    expect(where(4, 'host')).toEqual(['ab', 'ab', 'ac', 'ac']);
    expect(where(3, 'core')).toEqual(['aa', 'aa', 'bb']);
    for (const ranks of [1, 2, 3, 4]) expect(where(ranks, 'host').every(([lead, shadow]) => lead !== shadow)).toBe(true);
    expect(placeReplicas(parseHosts('a:4'), 2, 'core')).toEqual([
      { host: 'a', localRank: 0, localSize: 4 },
      { host: 'a', localRank: 1, localSize: 4 },
      { host: 'a', localRank: 2, localSize: 4 },
      { host: 'a', localRank: 3, localSize: 4 },
    ]);
    // One host is what there is.
    expect(placeReplicas(parseHosts('a:4'), 2, undefined).length).toBe(4);
    expect(() => placeReplicas(parseHosts('a:4'), 2, 'host')).toThrow('do not fit on different hosts');
    expect(() => placeReplicas(parseHosts('a:3,b:1'), 2, 'core')).toThrow('have room for 1 pairs of replicas, and 2 are asked for');
    expect(() => placeReplicas(parseHosts('a:3'), 2, undefined)).toThrow('4 ranks, but the hosts have 3 slots');
  });

  test('words for a shell', () => {
    expect(quoted('/usr/bin/node')).toBe('/usr/bin/node');
    expect(quoted("a b'c$d")).toBe(`'a b'\\''c$d'`);
  });
});
