// Events of the network, made in network namespaces that end with the program; and the interfaces as they are.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describeNative, native, program } from './native-fixture.ts';

/** Why no namespace can be made here, or undefined. */
function namespaceMissing(): string | undefined {
  const tried = spawnSync('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up'], { encoding: 'utf8' });
  if (tried.error !== undefined) return `no program unshare: ${tried.error.message}`;
  return tried.status === 0 ? undefined : `no network namespace with ip: ${tried.stderr.trim()}`;
}

describeNative('interfaces', () => {
  test('are all there, as the kernel lists them', () => {
    const links = native.links();
    expect(links.map(({ name }) => name).sort()).toEqual(
      readdirSync('/sys/class/net')
        .filter((name) => name !== 'bonding_masters')
        .sort(),
    );
    expect(links.find(({ name }) => name === 'lo')).toMatchObject({ index: 1 });
  });

  test('nothing happened, nothing is told', () => {
    const fd = native.netlinkOpen();
    const events = native.netlinkRead(fd);
    native.close(fd);
    expect(Array.isArray(events)).toBe(true);
  });

  test('links, carriers and addresses that come and go', (context) => {
    const missing = namespaceMissing();
    if (missing !== undefined) {
      console.log(`skipped: ${missing}`);
      return context.skip(missing);
    }
    const { stdout, stderr } = program(
      `
      const { execFileSync } = require('node:child_process');
      const ip = (...args) => execFileSync('ip', args);
      const fd = native.netlinkOpen();
      const poller = native.pollerOpen(() => false);
      native.pollerSet(poller, fd, 1);
      const take = (wanted) => {
        const seen = [];
        for (let i = 0; i < 50 && !seen.some(wanted); i++) {
          native.pollerWait(poller, new Int32Array(2), 100);
          seen.push(...native.netlinkRead(fd));
        }
        return seen.find(wanted) ?? null;
      };
      const last = [];
      ip('link', 'add', 'one', 'type', 'veth', 'peer', 'name', 'two');
      ip('addr', 'add', '192.0.2.1/24', 'dev', 'one');
      last.push(take((e) => e.type === 'address' && e.address === '192.0.2.1'));
      ip('link', 'set', 'one', 'up');
      last.push(take((e) => e.type === 'link' && e.name === 'one' && e.up && !e.carrier));
      ip('link', 'set', 'two', 'up');
      last.push(take((e) => e.type === 'link' && e.name === 'one' && e.carrier));
      last.push(native.links().find((l) => l.name === 'one'));
      ip('addr', 'add', '2001:db8::1/64', 'dev', 'one', 'nodad');
      last.push(take((e) => e.type === 'address' && e.address === '2001:db8::1'));
      ip('link', 'set', 'two', 'down');
      last.push(take((e) => e.type === 'link' && e.name === 'one' && !e.carrier));
      ip('addr', 'del', '192.0.2.1/24', 'dev', 'one');
      last.push(take((e) => e.type === 'address' && e.address === '192.0.2.1' && e.removed));
      ip('link', 'del', 'one');
      last.push(take((e) => e.type === 'link' && e.name === 'one' && e.removed));
      native.pollerClose(poller);
      console.log(JSON.stringify(last));
    `,
      [],
      ['unshare', '-n'],
    );
    expect(stderr).toBe('');
    const seen = JSON.parse(stdout) as Record<string, unknown>[];
    const index = seen[0].index;
    expect(seen).toEqual([
      { type: 'address', index, address: '192.0.2.1', removed: false },
      { type: 'link', index, name: 'one', up: true, carrier: false, removed: false },
      { type: 'link', index, name: 'one', up: true, carrier: true, removed: false },
      { index, name: 'one', up: true, carrier: true },
      { type: 'address', index, address: '2001:db8::1', removed: false },
      expect.objectContaining({ type: 'link', name: 'one', carrier: false }),
      { type: 'address', index, address: '192.0.2.1', removed: true },
      expect.objectContaining({ type: 'link', index, name: 'one', removed: true }),
    ]);
  });

  test('events that were lost are told as an overrun', (context) => {
    const missing = namespaceMissing();
    if (missing !== undefined) {
      console.log(`skipped: ${missing}`);
      return context.skip(missing);
    }
    const { stdout, stderr } = program(
      `
      const { execFileSync } = require('node:child_process');
      const fd = native.netlinkOpen();
      const lines = [];
      for (let i = 0; i < 1500; i++) lines.push('addr add 10.' + (i >> 8) + '.' + (i & 255) + '.1/32 dev lo');
      execFileSync('ip', ['-batch', '-'], { input: lines.join('\\n') });
      const events = [];
      for (;;) {
        const some = native.netlinkRead(fd);
        if (some.length === 0) break;
        events.push(...some);
      }
      console.log(events.length, events.some((e) => e.type === 'overrun'));
    `,
      [],
      ['unshare', '-n'],
    );
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^\d+ true$/);
  });

  test('link-local addresses carry their zone', (context) => {
    const missing = namespaceMissing();
    if (missing !== undefined) {
      console.log(`skipped: ${missing}`);
      return context.skip(missing);
    }
    const { stdout, stderr } = program(
      `
      const { execFileSync } = require('node:child_process');
      const ip = (...args) => execFileSync('ip', args);
      ip('link', 'set', 'lo', 'up');
      ip('link', 'add', 'one', 'type', 'veth', 'peer', 'name', 'two');
      for (const [name, n] of [['one', 1], ['two', 2]]) {
        ip('link', 'set', name, 'up');
        ip('addr', 'add', 'fe80::' + n + '00/64', 'dev', name, 'nodad');
      }
      const listener = native.tcpListen('fe80::100%one', 0, 4, {});
      const name = native.socketName(listener);
      const dialed = native.tcpConnect('fe80::100%one', name.port, '', {});
      const poller = native.pollerOpen(() => false);
      native.pollerSet(poller, dialed, 4);
      native.pollerWait(poller, new Int32Array(2), 5000);
      native.pollerClose(poller);
      console.log(native.connectResult(dialed), name.address, native.peerName(dialed).address);
    `,
      [],
      ['unshare', '-n'],
    );
    expect(stderr).toBe('');
    expect(stdout).toBe('0 fe80::100%one fe80::100%one');
  });
});
