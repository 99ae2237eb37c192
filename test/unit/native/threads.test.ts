// Worker threads: several environments at once, each with its own pollers, and their ends at any time.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { POLL_IN } from '../../../src/native/binding.ts';
import { available, describeNative, native, openDescriptors, program, rounds } from './native-fixture.ts';

const START = `
  const { parentPort, workerData } = require('node:worker_threads');
  const native = require(workerData.path);
`;
const start = (code: string, more: object = {}) =>
  new Worker(START + code, { eval: true, workerData: { path: (available as { path: string }).path, ...more } });

describeNative('worker threads', () => {
  test('two threads talk through a segment and doorbells, each with a poller of its own', async () => {
    const segment = native.memoryCreate('threads', 4096);
    const memory = native.memoryMap(segment, 4096);
    const words = new Int32Array(memory);
    const bells = [native.eventOpen(), native.eventOpen()];
    const worker = start(
      `
      const memory = native.memoryMap(workerData.segment, 4096);
      const words = new Int32Array(memory);
      const [mine, theirs] = workerData.bells;
      const id = native.pollerOpen(() => {
        native.eventClear(mine);
        Atomics.add(words, 0, 1);
        native.eventSignal(theirs);
        if (Atomics.load(words, 0) === 200) {
          native.pollerClose(id);
          native.memoryUnmap(memory);
        }
        return false;
      });
      native.pollerSet(id, mine, 1);
      parentPort.postMessage('ready');
    `,
      { segment, bells },
    );
    await once(worker, 'message');
    const ended = once(worker, 'exit');
    const poller = native.pollerOpen(() => false);
    const pairs = new Int32Array(2);
    native.pollerSet(poller, bells[1], POLL_IN);
    for (let i = 1; i <= 200; i++) {
      native.eventSignal(bells[0]);
      expect(native.pollerWait(poller, pairs, 10_000)).toBe(1);
      native.eventClear(bells[1]);
      expect(Atomics.load(words, 0)).toBe(i);
    }
    expect(await ended).toEqual([0]);
    native.pollerClose(poller);
    native.memoryUnmap(memory);
    [segment, ...bells].forEach(native.close);
  });

  test('a worker that is terminated or ends leaves no poller behind', async () => {
    // The first worker opens descriptors of the process that stay.
    const warm = start('');
    await once(warm, 'exit');
    await rounds();
    const before = openDescriptors();
    for (let i = 0; i < 21; i++) {
      const way = i % 3;
      const segment = native.memoryCreate('ends', 1 << 20);
      const bell = native.eventOpen();
      // Way 2: its callbacks are running without end while it is terminated.
      if (way === 2) native.eventSignal(bell);
      const worker = start(
        `
        const bell = workerData.bell;
        const memory = native.memoryMap(workerData.segment, 1 << 20);
        globalThis.kept = memory;
        for (let k = 0; k < 5; k++) native.pollerSet(native.pollerOpen(() => workerData.way === 2), bell, 1);
        native.pollerClose(native.pollerOpen(() => false));
        parentPort.postMessage('open');
        if (workerData.way === 1) setImmediate(() => process.exit(5));
      `,
        { segment, bell, way },
      );
      const exit = once(worker, 'exit');
      await once(worker, 'message');
      if (way !== 1) await worker.terminate();
      expect(await exit).toEqual([way === 1 ? 5 : 1]);
      [segment, bell].forEach(native.close);
    }
    await rounds(5);
    expect(openDescriptors()).toBe(before);
  }, 60_000);

  test('an exception in a callback ends the worker with its error', async () => {
    const worker = start(`
      const bell = native.eventOpen();
      native.pollerSet(native.pollerOpen(() => { native.close(bell); throw new RangeError('in a callback'); }), bell, 1);
      native.eventSignal(bell);
    `);
    const seen: unknown[] = [];
    worker.on('error', ({ name, message }) => seen.push(name, message));
    await new Promise<void>((resolve) => worker.on('exit', (status) => resolve(void seen.push(status))));
    expect(seen).toEqual(['RangeError', 'in a callback', 1]);
  });

  test('the process may exit with pollers and mappings open, in the main thread and in workers', () => {
    const { status, signal, stderr } = program(`
      const { Worker } = require('node:worker_threads');
      const path = ${JSON.stringify((available as { path: string }).path)};
      const fd = native.memoryCreate('exit', 4096);
      globalThis.kept = native.memoryMap(fd, 4096);
      native.pollerOpen(() => false);
      const worker = new Worker(
        'const native = require(' + JSON.stringify(path) + ');' +
        'globalThis.kept = native.memoryMap(' + fd + ', 4096); native.pollerOpen(() => false);' +
        'require("node:worker_threads").parentPort.postMessage(1)', { eval: true });
      worker.on('message', () => process.exit(9));
    `);
    expect({ status, signal, stderr }).toEqual({ status: 9, signal: null, stderr: '' });
  });
});
