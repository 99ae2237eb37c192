// Which address loopback has here, and whether this host can reach itself.
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { systemTable } from '../../../src/btl/tcp/interfaces.ts';
import { checkLoopback, loopbackAddress } from '../../../src/launch/oob/addresses.ts';

const entry = (address: string) => ({ address, netmask: '', mac: '', internal: true, cidr: null, family: 'IPv4' as const });

test('loopback is that of IPv4, unless there is only that of IPv6', () => {
  expect(loopbackAddress(() => ({ lo: [entry('127.0.0.1'), entry('::1')] }))).toBe('127.0.0.1');
  expect(loopbackAddress(() => ({ lo: [entry('::1')] }))).toBe('::1');
  expect(loopbackAddress(() => ({}))).toBe('127.0.0.1');
});

test('where the kernel must not be asked, loopback is that of IPv4, and interfaces cannot be listed, with the reason', () => {
  const forbidden = () => {
    throw new Error('uv_interface_addresses returned Unknown system error 1');
  };
  expect(loopbackAddress(forbidden)).toBe('127.0.0.1');
  expect(() => systemTable(forbidden)).toThrow(
    /^ERR_INIT: the interfaces of this host cannot be listed \(uv_interface.*\).*allow AF_NETLINK/,
  );
});

test('a host that does not reach itself says so', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await checkLoopback('127.0.0.1', port);
  await new Promise((resolve) => server.close(resolve));
  await expect(checkLoopback('127.0.0.1', port)).rejects.toThrow(
    /^ERR_LAUNCH: this host cannot reach itself at 127\.0\.0\.1 .*ip link set lo up/,
  );
});
