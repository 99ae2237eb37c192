// The kernel's answer to "by which interface would packets leave?".
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { loadNative } from '../../../src/native/load.ts';

const { binding: native, reason } = loadNative();
if (native === undefined) console.log(`skipped: routes of the native part: ${reason}`);

function canMakeNamespaces(): boolean {
  try {
    execFileSync('unshare', ['-n', 'ip', 'link'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
const namespaces = native !== undefined && canMakeNamespaces();
if (native !== undefined && !namespaces) console.log('skipped: routes in a network namespace: needs root, unshare and ip');

describe.skipIf(native === undefined)('routeDevice', () => {
  test('loopback addresses leave by the loopback interface, with and without a source', () => {
    expect(native?.routeDevice('127.0.0.1', '')).toBe('lo');
    expect(native?.routeDevice('127.0.0.1', '127.0.0.1')).toBe('lo');
  });

  test('what is no address, or two families, is refused', () => {
    expect(() => native?.routeDevice('localhost', '')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG' }));
    expect(() => native?.routeDevice('127.0.0.1', 'x')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG' }));
    expect(() => native?.routeDevice('127.0.0.1', '::1')).toThrow(expect.objectContaining({ code: 'EINVAL' }));
  });

  test.skipIf(!namespaces)('subnets, policy rules, prohibited and unreachable destinations', () => {
    const script = `
      const native = require(${JSON.stringify(loadNative().binding === undefined ? '' : (loadNative() as { path: string }).path)});
      const ask = (remote, local) => { try { return native.routeDevice(remote, local); } catch (error) { return error.code; } };
      console.log(JSON.stringify([ask('10.9.1.2', '10.9.1.1'), ask('10.9.2.2', '10.9.2.1'), ask('10.9.2.2', '10.9.1.1'), ask('192.0.2.1', ''),
        ask('10.9.3.1', ''), ask('10.9.4.1', ''), ask('fd09::2', '')]));`;
    const setUp = [
      'ip link set lo up',
      'ip link add name va type veth peer name va2',
      'ip link add name vb type veth peer name vb2',
      'ip addr add 10.9.1.1/24 dev va',
      'ip addr add 10.9.2.1/24 dev vb',
      'ip -6 addr add fd09::1/64 dev vb nodad',
      'for i in va va2 vb vb2; do ip link set $i up; done',
      'ip route add table 7 10.9.2.0/24 dev va',
      'ip rule add from 10.9.1.1 table 7',
      'ip route add prohibit 10.9.3.0/24',
      'ip route add unreachable 10.9.4.0/24',
    ].join(' && ');
    const output = execFileSync(
      'unshare',
      ['-n', 'sh', '-c', `${setUp} && exec "${process.execPath}" -e '${script.replaceAll("'", "'\\''")}'`],
      {
        encoding: 'utf8',
      },
    );
    expect(JSON.parse(output)).toEqual(['va', 'vb', 'va', 'ENETUNREACH', 'EACCES', 'EHOSTUNREACH', 'vb']);
  });
});
