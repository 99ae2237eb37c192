// Method: the tcp module over a kernel in memory: which socket options, which interface and which local address it asks for.
import { afterEach, expect, test } from 'vitest';
import type { LocalInterface } from '../../../src/btl/tcp/interfaces.ts';
import { TcpModule } from '../../../src/btl/tcp/module.ts';
import { Poller } from '../../../src/native/poller.ts';
import { FakeNative } from '../../support/fake-native.ts';
import { contextOf, Recorder } from '../../support/harness.ts';

const modules: TcpModule[] = [];
afterEach(async () => {
  for (const module of modules.splice(0)) await module.close();
});

const interfaceOf = (name: string, address: string): LocalInterface => ({
  name,
  loopback: name === 'lo',
  addresses: [{ address, family: 4, prefix: 24, linkLocal: false }],
});

/** Rank 0 dials rank 1, which is at `peerAddress` on the host named `peerHost`; answers what the kernel was asked for. */
async function dial(values: Record<string, string>, peerHost: string, own: LocalInterface, peer: LocalInterface, refusesDevice = false) {
  const native = new FakeNative();
  native.refusesDevice = refusesDevice;
  const make = async (rank: number, table: LocalInterface[]) => {
    const up = new Recorder();
    const poller = new Poller(native.binding, () => false);
    const module = new TcpModule(contextOf(rank, up, { values: { btl_tcp_route_check: 'false', ...values }, poller }), () => table);
    modules.push(module);
    await module.open();
    return { up, module };
  };
  const [a, b] = [await make(0, [own]), await make(1, [peer])];
  const remote = JSON.parse(JSON.stringify(b.module.address()));
  const plans = a.module.plan(1, a.module.address(), remote, peerHost);
  expect(plans).toHaveLength(1);
  a.module.endpoint(1, 0, plans[0], remote).connect(1);
  for (let i = 0; i < 3; i++) a.up.run(a.module, i);
  return { native, logs: a.up.logs, connects: native.asked.filter(({ call }) => call === 'connect') };
}

const OTHER_HOST = 'another host';
const far = (values: Record<string, string> = {}, refusesDevice = false) =>
  dial(values, OTHER_HOST, interfaceOf('eth1', '10.1.0.1'), interfaceOf('eth1', '10.1.0.2'), refusesDevice);

test('to another host: bound to the interface, little unsent in the kernel, the system’s congestion control', async () => {
  const { connects } = await far();
  expect(connects).toEqual([
    {
      call: 'connect',
      host: '10.1.0.2',
      localHost: '10.1.0.1',
      options: { device: 'eth1', congestion: '', notSentLowatBytes: 65_536, sendBufferBytes: 0, receiveBufferBytes: 0 },
    },
  ]);
});

test('between ranks of one host: bound to no interface, cubic, nothing held back', async () => {
  const { connects, native } = await dial({}, 'host-a', interfaceOf('lo', '127.0.0.1'), interfaceOf('lo', '127.0.0.1'));
  expect(connects.map(({ options }) => options)).toEqual([
    { congestion: 'cubic', notSentLowatBytes: 0, sendBufferBytes: 0, receiveBufferBytes: 0 },
  ]);
  const listens = native.asked.filter(({ call }) => call === 'listen');
  expect(listens.map(({ options }) => options.congestion)).toEqual(['cubic', 'cubic']);
});

test('parameters go to both ends', async () => {
  const values = { btl_tcp_cc: 'reno', btl_tcp_notsent_lowat_bytes: '128k', btl_tcp_sndbuf_bytes: '1m', btl_tcp_rcvbuf_bytes: '2m' };
  const { native } = await far(values);
  const expected = { congestion: 'reno', notSentLowatBytes: 131_072, sendBufferBytes: 1_048_576, receiveBufferBytes: 2_097_152 };
  expect(native.asked).toHaveLength(3);
  for (const { options } of native.asked) expect(options).toMatchObject(expected);
  const { connects } = await dial({ btl_tcp_cc: 'system' }, 'host-a', interfaceOf('lo', '127.0.0.1'), interfaceOf('lo', '127.0.0.1'));
  expect(connects[0].options.congestion).toBe('');
});

test('where the process may not bind to an interface it goes on without, and says so once, for debugging', async () => {
  const { connects, logs } = await far({}, true);
  expect(connects.map(({ options }) => options.device)).toEqual(['eth1', '']);
  expect(logs.filter((line) => line.includes('not bound to eth1'))).toHaveLength(1);
});

test('btl_tcp_native = false: the kernel is not asked', async () => {
  const native = new FakeNative();
  const poller = new Poller(native.binding, () => false);
  const module = new TcpModule(contextOf(0, new Recorder(), { values: { btl_tcp_native: 'false' }, poller }), () => [
    interfaceOf('lo', '127.0.0.1'),
  ]);
  modules.push(module);
  await module.open();
  expect(native.asked).toEqual([]);
});
