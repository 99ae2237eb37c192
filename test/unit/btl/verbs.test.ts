// The parts of verbs rails that need no device: which ports make rails, the bytes that two sides exchange, GIDs as addresses, the cache of
// registrations. Queue pairs are tested inside the guest (test/vm).
import { RegionCache } from 'node-rdma';
import { describe, expect, test } from 'vitest';
import { checkAddress, type PublishedPort, planRails, type VerbsAddress } from '../../../src/btl/verbs/address.ts';
import { selectPorts } from '../../../src/btl/verbs/module.ts';
import { cutToRequests } from '../../../src/btl/verbs/one-sided.ts';
import { addressOfGid, networkOf } from '../../../src/btl/verbs/ports.ts';
import { decodeSetup, decodeWindow, encodeSetup, encodeWindow, SETUP_BYTES } from '../../../src/btl/verbs/verbs-hdr.ts';
import { ParamTable } from '../../../src/params.ts';

function port(name: string, fabric = '10.9.0.0/24', more: Partial<PublishedPort> = {}): PublishedPort {
  return {
    name,
    link: 'ethernet',
    fabric,
    gid: '00000000000000000000ffff0a090001',
    lid: 0,
    mtu: 3,
    bandwidthMBps: 1250,
    at: [{ host: '10.9.0.1', port: 4000 }],
    ...more,
  };
}

function address(...ports: PublishedPort[]): VerbsAddress {
  return { incarnation: 7, bufferBytes: 32 * 1024, buffers: 64, ports };
}

const OPTIONS = { exclusivity: 100, role: 'active', windowMinBytes: 2 ** 21, pipelineBytes: 2 ** 23, getBytesMax: 2 ** 19 } as const;
const keys = (a: VerbsAddress, b: VerbsAddress, isLower = true) => planRails(a, b, isLower, OPTIONS).map(({ key }) => key);

describe('rails between ports', () => {
  test('of each fabric the first with the first, the second with the second; both sides say the same', () => {
    const low = address(port('a0:1'), port('a1:1', '10.8.0.0/24'), port('a2:1'));
    const high = address(port('b0:1', '10.8.0.0/24'), port('b1:1'), port('b2:1', '10.7.0.0/24'), port('b3:1'));
    expect(keys(low, high)).toEqual(['verbs:a0:1-b1:1', 'verbs:a2:1-b3:1', 'verbs:a1:1-b0:1']);
    expect(keys(high, low, false)).toEqual(keys(low, high));
    const [ours] = planRails(high, low, false, OPTIONS);
    expect(ours.detail).toMatchObject({ localPort: 'b1:1', remotePort: 'a0:1' });
  });

  test('a port whose network is not known, since it is down, belongs to the one that its address lies in', () => {
    const high = address(port('b0:1', '10.8.0.0/24'), port('b1:1'));
    expect(keys(address(port('a0:1', '10.9.0.77/32')), high)).toEqual(['verbs:a0:1-b1:1']);
    expect(keys(address(port('a0:1', '10.7.0.77/32')), high)).toEqual([]);
    expect(keys(high, address(port('a0:1', '10.9.0.77/32')), false)).toEqual(['verbs:a0:1-b1:1']);
    expect(keys(high, address(port('a0:1', '10.9.0.77/32')))).toEqual(['verbs:b1:1-a0:1']);
    // Two of them are told apart, unless a third port names the network.
    const down = address(port('a0:1', '10.9.0.1/32'));
    expect(keys(down, address(port('b0:1', '10.9.0.2/32')))).toEqual([]);
    expect(keys(down, address(port('b0:1', '10.9.0.2/32'), port('b1:1')))).toEqual(['verbs:a0:1-b0:1']);
    const v6 = (digits: string, bits: number) => `20010db8${digits.padEnd(24, '0')}/${bits}`;
    expect(keys(address(port('a0:1', v6('0001', 128))), address(port('b0:1', v6('0002', 64)), port('b1:1', v6('0001', 52))))).toEqual([
      'verbs:a0:1-b1:1',
    ]);
    for (const odd of ['link-local', '10.9.0.1', '/32', 'x/32']) expect(keys(address(port('a0:1', odd)), high)).toEqual([]);
  });

  test('InfiniBand and Ethernet do not meet', () => {
    const fabric = 'fe80000000000000';
    expect(keys(address(port('a0:1', fabric)), address(port('b0:1', fabric, { link: 'infiniband' })))).toEqual([]);
  });

  test('buffers and speed are those of the weaker side, and frames fit into a buffer', () => {
    const low = { ...address(port('a0:1')), bufferBytes: 8192, buffers: 128 };
    const [rail] = planRails(low, address(port('b0:1', undefined, { bandwidthMBps: 100 })), true, OPTIONS);
    expect(rail.detail).toMatchObject({ bufferBytes: 8192, buffers: 64 });
    expect(rail.attributes).toMatchObject({
      bandwidthMBps: 100,
      frameBytesMax: 8192 - 4096 - 32,
      canPut: true,
      canGet: true,
      liveness: 'self',
    });
  });

  test('what is no address is refused', () => {
    const good = address(port('a0:1'));
    expect(checkAddress(JSON.parse(JSON.stringify(good)))).toEqual(good);
    const bad: unknown[] = [
      null,
      {},
      { ...good, buffers: 1e9 },
      { ...good, bufferBytes: 100 },
      { ...good, ports: [port('a0:1', '')] },
      { ...good, ports: [{ ...port('a'), gid: 'xyz' }] },
      { ...good, ports: [{ ...port('a'), at: [{ host: 'h', port: 0 }] }] },
      { ...good, ports: [{ ...port('a'), at: [null] }] },
    ];
    for (const json of bad) expect(() => checkAddress(json), JSON.stringify(json)).toThrow(/not an address of the verbs transport/);
  });

  test('devices and ports are chosen by name', () => {
    const names = ['mlx5_0', 'mlx5_1', 'rxe0'];
    const chosen = (params: Record<string, string>) => selectPorts(names, new ParamTable(params));
    expect(chosen({})).toEqual(names);
    expect(chosen({ btl_verbs_if_include: 'mlx5_1:2,rxe0' })).toEqual(['mlx5_1', 'rxe0']);
    expect(chosen({ btl_verbs_if_exclude: 'rxe0' })).toEqual(['mlx5_0', 'mlx5_1']);
    expect(chosen({ btl_verbs_if_exclude: 'mlx5_0:2' })).toEqual(names);
  });
});

describe('bytes', () => {
  const setup = {
    queuePair: 0x12345,
    psn: 0xabcdef,
    lid: 77,
    mtu: 3,
    readsAsTarget: 4,
    buffers: 64,
    bufferBytes: 32768,
    gid: Uint8Array.from({ length: 16 }, (_, i) => i),
  };

  test('a setup comes back as it was, and stands where the document says', () => {
    const bytes = encodeSetup(setup);
    expect(decodeSetup(bytes)).toEqual(setup);
    expect(Buffer.from(bytes).toString('hex')).toBe(
      '4d565331' + '45230100' + 'efcdab00' + '4d00' + '03' + '04' + '40000000' + '00800000' + '000102030405060708090a0b0c0d0e0f',
    );
  });

  test('a setup of another length, kind or with values that cannot be is refused', () => {
    const bytes = encodeSetup(setup);
    expect(() => decodeSetup(bytes.subarray(1))).toThrow(/not the setup/);
    expect(() => decodeSetup(new Uint8Array(SETUP_BYTES))).toThrow(/not the setup/);
    for (const [at, value] of [
      [7, 1],
      [11, 1],
      [14, 0],
      [14, 6],
    ]) {
      const broken = bytes.slice();
      broken[at] = value;
      expect(() => decodeSetup(broken)).toThrow(/out of range/);
    }
  });

  test('a window comes back as it was; rubbish is none', () => {
    const window = { pieces: [{ address: 0x7fff_1234_5678_9abcn, bytes: 2 ** 40, rkey: 0xdeadbeef }] };
    expect(decodeWindow(encodeWindow(window))).toEqual(window);
    const three = { pieces: [1n, 2n, 3n].map((at) => ({ address: at, bytes: 1, rkey: 1 })) };
    expect(encodeWindow(three).length).toBeLessThanOrEqual(64);
    expect(decodeWindow(encodeWindow(three))).toEqual(three);
    for (const length of [0, 19, 21, 80]) expect(decodeWindow(new Uint8Array(length))).toBeUndefined();
    const negative = encodeWindow(window);
    new DataView(negative.buffer).setFloat64(8, -1, true);
    expect(decodeWindow(negative)).toBeUndefined();
  });
});

describe('puts and gets as requests', () => {
  const window = { pieces: [1000n, 5000n].map((address, i) => ({ address, bytes: 100, rkey: i + 1 })) };
  const cut = (local: number[], offset: number, bytesMax = 1e9, piecesMax = 4) => {
    const memory = local.map((length) => new Uint8Array(length));
    const bytes = local.reduce((sum, length) => sum + length, 0);
    const op = { kind: 'put' as const, local: memory, bytes, remoteKey: new Uint8Array(0), remoteOffset: offset, railFrameNumber: 0 };
    return cutToRequests(op, window, bytesMax, piecesMax)?.map(({ address, rkey, pieces }) => [
      Number(address),
      rkey,
      pieces.map(({ length }) => length),
    ]);
  };

  test('one request within one piece of the window', () => expect(cut([40], 10)).toEqual([[1010, 1, [40]]]));
  test('two, where it goes on in the next one', () =>
    expect(cut([40], 80)).toEqual([
      [1080, 1, [20]],
      [5000, 2, [20]],
    ]));
  test('only in the second', () => expect(cut([40], 150)).toEqual([[5050, 2, [40]]]));
  test('no more bytes than a request takes', () =>
    expect(cut([40], 0, 16)).toEqual([
      [1000, 1, [16]],
      [1016, 1, [16]],
      [1032, 1, [8]],
    ]));
  test('no more pieces of ours than a request takes, and none that is empty', () =>
    expect(cut([3, 0, 4, 5, 6], 0, 1e9, 2)).toEqual([
      [1000, 1, [3, 4]],
      [1007, 1, [5, 6]],
    ]));
  test('beyond the window: none', () => expect(cut([101], 100)).toBeUndefined());
});

describe('GIDs of Ethernet are IP addresses', () => {
  test.each([
    ['00000000000000000000ffff0a090001', '10.9.0.1'],
    ['fe80000000000000000000fffe000000', 'fe80::ff:fe00:0'],
    ['20010db8000000000000000000000001', '2001:db8::1'],
  ])('%s is %s', (hex, text) => expect(addressOfGid(new Uint8Array(Buffer.from(hex, 'hex')))).toBe(text));

  test.each([
    ['10.9.0.1/24', '10.9.0.0/24'],
    ['10.9.3.77/22', '10.9.0.0/22'],
    ['192.168.1.130/25', '192.168.1.128/25'],
    ['2001:db8::1/64', '20010db8000000000000000000000000/64'],
    ['2001:db8:0:ff00::1/52', '20010db80000f0000000000000000000/52'],
  ])('%s is in %s', (cidr, network) => expect(networkOf(cidr)).toBe(network));
});

describe('the cache of registrations', () => {
  /** A domain that counts, and that refuses more than `regionsMax` regions. */
  function makeCache(options: { idleBytesMax?: number; idleRegionsMax?: number } = {}, regionsMax = 1000, granuleBytes = 4096) {
    const open = new Set<object>();
    const domain = {
      register(view: Uint8Array) {
        if (open.size >= regionsMax) throw new Error('ENOMEM');
        const region = { view, close: () => open.delete(region) };
        open.add(region);
        return region;
      },
    };
    return { cache: new RegionCache(domain as never, 1, { ...options, granuleBytes }), open };
  }

  test('the same memory, and a part of it, is registered once', () => {
    const { cache, open } = makeCache();
    const memory = new Uint8Array(1000);
    const first = cache.acquire(memory.subarray(100, 500));
    const second = cache.acquire(memory.subarray(200, 300));
    expect(second.region).toBe(first.region);
    expect([first.offset, second.offset]).toEqual([100, 200]);
    cache.release(first);
    cache.release(second);
    expect(cache.acquire(memory.subarray(100, 500)).region).toBe(first.region);
    expect([cache.hits, cache.misses, open.size]).toEqual([2, 1, 1]);
  });

  test('a long buffer is registered in steps, and a piece across a border in one region of its own', () => {
    const { cache, open } = makeCache({}, 1000, 100);
    const memory = new Uint8Array(350);
    const lengths = () => [...open].map((region) => (region as { view: Uint8Array }).view.length);
    cache.acquire(memory.subarray(10, 60));
    cache.acquire(memory.subarray(60, 100));
    expect(lengths()).toEqual([100]);
    cache.acquire(memory.subarray(310, 350));
    expect(lengths()).toEqual([100, 50]);
    const across = cache.acquire(memory.subarray(90, 210));
    expect([lengths(), across.offset]).toEqual([[100, 50, 300], 90]);
    // Also found behind a shorter one that begins later.
    cache.acquire(memory.subarray(110, 130));
    expect([cache.hits, cache.misses]).toEqual([2, 3]);
  });

  test('idle regions go, the longest unused first, beyond the bytes or the number that are allowed', () => {
    const { cache, open } = makeCache({ idleBytesMax: 250 });
    const views = [0, 1, 2].map(() => new Uint8Array(100));
    const leases = views.map((view) => cache.acquire(view));
    expect(open.size).toBe(3);
    for (const lease of leases) cache.release(lease);
    expect(open.size).toBe(2);
    cache.acquire(views[1]);
    expect([cache.hits, cache.misses]).toEqual([1, 3]);
    cache.acquire(views[0]);
    expect(cache.misses).toBe(4);
  });

  test('a region in use stays, whatever the bounds say', () => {
    const { cache, open } = makeCache({ idleBytesMax: 0, idleRegionsMax: 0 });
    const lease = cache.acquire(new Uint8Array(10));
    expect(open.size).toBe(1);
    cache.release(lease);
    expect(open.size).toBe(0);
  });

  test('where the device has no room left the idle ones make some; else the error comes out', () => {
    const { cache, open } = makeCache({}, 2);
    const idle = cache.acquire(new Uint8Array(10));
    cache.acquire(new Uint8Array(10));
    expect(() => cache.acquire(new Uint8Array(10))).toThrow('ENOMEM');
    cache.release(idle);
    cache.acquire(new Uint8Array(10));
    expect(open.size).toBe(2);
  });

  test('memory that is given away is let go, once its last user is done', () => {
    const { cache, open } = makeCache();
    const memory = new Uint8Array(100);
    const lease = cache.acquire(memory);
    cache.invalidate(memory.buffer);
    expect(open.size).toBe(1);
    expect(cache.acquire(memory).region).not.toBe(lease.region);
    cache.release(lease);
    expect(open.size).toBe(1);
    cache.close();
    expect(open.size).toBe(0);
  });
});
