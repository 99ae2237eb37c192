// node-rdma as far as it goes without a device: what is refused, and with which error. With one it is tested in the guest (test/vm). Without the
// binary or libibverbs what needs them is skipped, and says why.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import * as rdma from 'node-rdma';
import { describe, expect, test } from 'vitest';
import { misuse, thrown } from './native-fixture.ts';

const BINDING = join(import.meta.dirname, '../../../native/rdma/binding.js');
/** By its own functions: the package has no types of them. */
const { addon, reason } = (await import(BINDING)).loadAddon();
const missing = reason ?? rdma.unavailable();

function describeRdma(name: string, why: string | undefined, body: () => void): void {
  if (why === undefined) describe(name, body);
  else describe.skip(`${name} (skipped: ${why})`, body);
}

describeRdma('node-rdma without a device', missing, () => {
  test('a device that is not there', () => {
    expect(thrown(() => rdma.openDevice('none'))).toEqual({ name: 'Error', code: 'ENODEV', syscall: 'ibv_open_device' });
    expect(() => rdma.openDevice('none')).toThrow('ibv_open_device ENODEV: no such device');
    expect(thrown(() => rdma.openDevice('x'.repeat(128)))).toEqual(misuse);
    expect(thrown(() => rdma.openDevice(7 as unknown as string))).toEqual(misuse);
  });

  test('an object that is closed, or of another kind, or no object', () => {
    for (const call of ['queryDevice', 'asyncFd', 'allocPd', 'createChannel', 'channelFd', 'channelEvents', 'queryQp']) {
      expect(thrown(() => addon[call](1))).toMatchObject({ name: 'Error', code: 'ERR_RDMA_CLOSED' });
      expect(thrown(() => addon[call]({}))).toMatchObject({ name: 'Error', code: 'ERR_RDMA_CLOSED' });
    }
    expect(thrown(() => addon.modifyQp(1, {}))).toMatchObject({ name: 'Error', code: 'ERR_RDMA_CLOSED' });
    expect(thrown(() => addon.close(1))).toEqual({ name: 'Error', code: 'EBADF', syscall: 'close' });
    expect(rdma.live()).toEqual({ devices: 0, domains: 0, regions: 0, channels: 0, completionQueues: 0, queuePairs: 0 });
  });
});

describeRdma('attributes of a queue pair', missing, () => {
  test('each is read before the pair is looked up, and what is wrong with it is told', () => {
    const modify = (attributes: unknown) => thrown(() => addon.modifyQp(1, attributes));
    for (const attributes of [undefined, null, 7, 'state', { state: 7 }, { port: '1' }, { address: { gid: new Uint8Array(15) } }]) {
      expect(modify(attributes)).toEqual(misuse);
    }
    const trap = {
      get timeout() {
        throw new RangeError('trap');
      },
    };
    expect(modify(trap)?.name).toBe('RangeError');
    expect(
      modify({
        get address() {
          throw new RangeError('trap');
        },
      })?.name,
    ).toBe('RangeError');
    expect(modify({ state: 1, address: { gid: new Uint8Array(16), port: undefined } })?.code).toBe('ERR_RDMA_CLOSED');
  });
});

describeRdma('the binary of node-rdma', reason, () => {
  test('memory is of whole pages, within bounds', () => {
    expect((addon.memory(5000) as ArrayBuffer).byteLength).toBe(8192);
    for (const bytes of [0, -1, Number.NaN, 2 ** 41, '7', undefined]) expect(thrown(() => addon.memory(bytes))).toEqual(misuse);
  });

  test('no function crashes or hangs on arguments that make no sense', () => {
    // In a process of its own: a crash is seen.
    const code = `
      import { loadAddon } from ${JSON.stringify(BINDING)};
      const { addon } = loadAddon();
      const odd = [undefined, null, true, '7', 'x'.repeat(4000), NaN, Infinity, -1, 0.5, 1, 2 ** 31, 2 ** 53, {}, [], () => true, Symbol('s'), 10n,
        new Uint8Array(0), new Uint8Array(16), new Uint32Array(64), new Int32Array(4), new ArrayBuffer(8), new Proxy({}, {}), { state: 1, port: -1 }];
      let state = 12345;
      const next = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 8;
      const codes = new Set();
      for (const name of Object.keys(addon)) {
        if (typeof addon[name] !== 'function') continue;
        for (let i = 0; i < 300; i++) {
          const args = Array.from({ length: next() % 11 }, () => odd[next() % odd.length]);
          if (name === 'memory' && typeof args[0] === 'number' && args[0] > 4096) continue;
          try {
            addon[name](...args);
          } catch (error) {
            if (!(error instanceof Error)) throw new Error('thrown: ' + String(error));
            codes.add(error.code ?? error.message);
          }
        }
      }
      console.log(JSON.stringify([...codes].sort()));
    `;
    const { stdout, stderr, status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect({ stderr, status, signal }).toEqual({ stderr: '', status: 0, signal: null });
    const codes = JSON.parse(stdout) as string[];
    expect(codes).toContain('ERR_INVALID_ARG');
    for (const one of codes) expect(one).toMatch(/^(ERR_[A-Z_]+|E[A-Z0-9]+)$/);
  });
});
