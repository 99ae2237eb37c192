// Shared memory, single copy, doorbells and the end of processes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { POLL_IN, WATCH, WATCHED_MAX } from '../../../src/native/binding.ts';
import { describeNative, misuse, native, program, thrown, untilReadable } from './native-fixture.ts';

const EFAULT = -14;
const ESRCH = -3;

describeNative('aliases', () => {
  test('an alias is the same memory, also where that is shared with other threads, and is not unmapped', () => {
    const shared = new Uint8Array(new SharedArrayBuffer(4096), 64, 1024);
    const alias = native.memoryAlias(shared);
    expect(alias).toBeInstanceOf(ArrayBuffer);
    expect(alias.byteLength).toBe(1024);
    const bytes = new Uint8Array(alias);
    bytes[1023] = 7;
    shared[0] = 9;
    expect([shared[1023], bytes[0]]).toEqual([7, 9]);
    expect(thrown(() => native.memoryUnmap(alias))).toEqual(misuse);
  });

  test('there may be several of one memory', () => {
    const memory = new SharedArrayBuffer(65536);
    const aliases = [1, 2, 3].map((part) => native.memoryAlias(new Uint8Array(memory, 0, part * 16384)));
    for (const [at, alias] of aliases.entries()) new Uint8Array(alias)[at] = at + 1;
    expect(aliases.map(({ byteLength }) => byteLength)).toEqual([16384, 32768, 49152]);
    expect([...new Uint8Array(aliases[2], 0, 4)]).toEqual([1, 2, 3, 0]);
  });

  test('nothing has no alias', () => {
    expect(thrown(() => native.memoryAlias(new Uint8Array(0)))).toEqual(misuse);
    expect(thrown(() => native.memoryAlias(new ArrayBuffer(8) as unknown as Uint8Array))).toEqual(misuse);
  });
});

describeNative('spins on words', () => {
  const MANY = 1000;
  const words = new Int32Array(8);
  const places = new Int32Array([2, 0, 5, 7]);
  const watch = (count: number, looks = MANY) => native.watchWords([words, words], places, count, looks, 10, 1000);

  test('it ends at the first word that is not what was seen, else when it has looked so often', () => {
    words.fill(0);
    expect(watch(1)).toBe(WATCH.NOTHING);
    expect(watch(2)).toBe(WATCH.CHANGED);
    words[5] = 7;
    expect(watch(2)).toBe(WATCH.NOTHING);
    words[2] = -1;
    expect([watch(2), watch(2, 1), watch(2, 0), watch(0)]).toEqual([WATCH.CHANGED, WATCH.CHANGED, WATCH.NOTHING, WATCH.NOTHING]);
  });

  test('what another thread writes ends it', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(64));
    const writer = new Worker(`const { workerData } = require('node:worker_threads'); Atomics.store(workerData, 3, 9);`, {
      eval: true,
      workerData: shared,
    });
    const place = new Int32Array([3, 0]);
    const end = Date.now() + 20_000;
    let found: number = WATCH.NOTHING;
    while (found === WATCH.NOTHING && Date.now() < end) {
      found = native.watchWords([shared], place, 1, MANY, 100, 1e9);
      // A worker begins with the help of the event loop of its maker.
      await new Promise(setImmediate);
    }
    expect([found, shared[3]]).toEqual([WATCH.CHANGED, 9]);
    await writer.terminate();
  });

  test('an offer of the processor that takes longer than is said ends it', () => {
    words[2] = 0;
    expect(native.watchWords([words], places, 1, MANY, 1, 0)).toBe(WATCH.TAKEN_AWAY);
    expect(native.watchWords([words], places, 1, MANY, MANY + 1, 0)).toBe(WATCH.NOTHING);
  });

  test('places outside the arrays, other arrays and odd numbers are refused', () => {
    const bytes = new Uint8Array(8) as unknown as Int32Array;
    for (const call of [
      () => native.watchWords([words], new Int32Array([8, 0]), 1, 1, 1, 1),
      () => native.watchWords([words], new Int32Array([-1, 0]), 1, 1, 1, 1),
      () => native.watchWords([words], new Int32Array([1]), 1, 1, 1, 1),
      () => native.watchWords([words], places, 2, 1, 1, 1),
      () => native.watchWords([bytes], places, 1, 1, 1, 1),
      () => native.watchWords([words], bytes, 1, 1, 1, 1),
      () => native.watchWords([words], places, WATCHED_MAX + 1, 1, 1, 1),
      () => native.watchWords([words], places, 1, 1, 0, 1),
      () => native.watchWords([words], places, 1, -1, 1, 1),
    ]) {
      expect(thrown(call)).toEqual(misuse);
    }
    const fd = native.memoryCreate('gone', 4096);
    const memory = native.memoryMap(fd, 4096);
    native.close(fd);
    const gone = new Int32Array(memory);
    native.memoryUnmap(memory);
    expect(thrown(() => native.watchWords([gone], places, 1, 1, 1, 1))).toEqual(misuse);
  });
});

describeNative('segments', () => {
  test('two mappings of one segment are the same memory, for Atomics too', () => {
    const fd = native.memoryCreate('test', 65536);
    const one = native.memoryMap(fd, 65536);
    const two = native.memoryMap(fd, 4096);
    native.close(fd);
    expect([one.byteLength, two.byteLength]).toEqual([65536, 4096]);
    const a = new Int32Array(one);
    const b = new Int32Array(two);
    expect(Atomics.add(a, 5, 41)).toBe(0);
    expect(Atomics.add(b, 5, 1)).toBe(41);
    expect(a[5]).toBe(42);
    native.memoryUnmap(two);
    expect(two.byteLength).toBe(0);
    expect(b.length).toBe(0);
    a[16383] = 7;
    expect(a[16383]).toBe(7);
    native.memoryUnmap(one);
  });

  test('one that is too small, or that could be shrunk, is refused', () => {
    const fd = native.memoryCreate('small', 4096);
    expect(thrown(() => native.memoryMap(fd, 4097))).toMatchObject({ code: 'ERR_SEGMENT_SIZE' });
    native.close(fd);
    const event = native.eventOpen();
    expect(thrown(() => native.memoryMap(event, 8))).toMatchObject({ code: 'ERR_SEGMENT_SEAL' });
    native.close(event);
    expect(thrown(() => native.memoryMap(event, 8))).toMatchObject({ code: 'EBADF', syscall: 'mmap' });
  });

  test('what is no mapping, or is none any more, is not unmapped', () => {
    const fd = native.memoryCreate('once', 4096);
    const memory = native.memoryMap(fd, 4096);
    native.close(fd);
    native.memoryUnmap(memory);
    expect(thrown(() => native.memoryUnmap(memory))).toEqual(misuse);
    expect(thrown(() => native.memoryUnmap(new ArrayBuffer(8)))).toEqual(misuse);
    expect(thrown(() => native.memoryUnmap(new Uint8Array(8) as unknown as ArrayBuffer))).toEqual(misuse);
  });

  test('a mapping cannot be given to another thread, where nobody would know it', () => {
    const fd = native.memoryCreate('mine', 4096);
    const memory = native.memoryMap(fd, 4096);
    native.close(fd);
    // Node 20 makes a copy, later versions refuse.
    expect([undefined, 'DataCloneError']).toContain(thrown(() => structuredClone(memory, { transfer: [memory] }))?.name);
    expect(memory.byteLength).toBe(4096);
    new Uint8Array(memory)[4095] = 1;
    native.memoryUnmap(memory);
  });

  test('a mapping that is forgotten is unmapped by the garbage collector, one that is unmapped is not unmapped again', () => {
    const { stdout, stderr, status } = program(
      `
      const { readFileSync } = require('node:fs');
      const mapped = () => readFileSync('/proc/self/maps', 'utf8').split('memfd:collected').length - 1;
      const map = () => {
        const fd = native.memoryCreate('collected', 1 << 20);
        const memory = native.memoryMap(fd, 1 << 20);
        native.close(fd);
        return memory;
      };
      (async () => {
        for (let i = 0; i < 20; i++) map();
        const before = mapped();
        for (let i = 0; i < 50 && mapped() > 0; i++) {
          gc();
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        console.log(before > 0, mapped());
        // The address of what was unmapped is used again at once; a second unmapping would take the new one away.
        const kept = [];
        for (let i = 0; i < 20; i++) {
          native.memoryUnmap(map());
          kept.push(map());
        }
        for (let i = 0; i < 10; i++) {
          gc();
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        for (const memory of kept) new Uint8Array(memory)[(1 << 20) - 1] = 1;
        console.log(mapped());
      })();
    `,
      ['--expose-gc'],
    );
    expect({ stdout, stderr, status }).toEqual({ stdout: 'true 0\n20', stderr: '', status: 0 });
  });
});

describeNative('single copy', () => {
  test('reads the memory of a process at an address', () => {
    const source = Uint8Array.from({ length: 100 }, (_, i) => i);
    const address = native.addressOf(source);
    expect(native.addressOf(source.subarray(10))).toBe(address + 10);
    const into = new Uint8Array(100);
    expect(native.processRead(process.pid, address + 20, into, 50, 30)).toBe(30);
    expect([...into.subarray(50, 80)]).toEqual([...source.subarray(20, 50)]);
    expect([into[49], into[80]]).toEqual([0, 0]);
  });

  test('an address or process that is not there is a negative errno', async () => {
    const into = new Uint8Array(8);
    expect(native.processRead(process.pid, 16, into, 0, 8)).toBe(EFAULT);
    const child = spawn('true');
    await once(child, 'exit');
    expect(native.processRead(child.pid as number, 16, into, 0, 8)).toBe(ESRCH);
  });
});

describeNative('the end of a process', () => {
  test('makes its handle readable', async (context) => {
    const child = spawn('sleep', ['60']);
    const watch = native.processWatch(child.pid as number);
    if (watch < 0) {
      child.kill();
      return context.skip(`no pidfd_open here: errno ${-watch}`);
    }
    const poller = native.pollerOpen(() => false);
    const pairs = new Int32Array(2);
    native.pollerSet(poller, watch, POLL_IN);
    expect(native.pollerWait(poller, pairs, 0)).toBe(0);
    child.kill('SIGKILL');
    expect(native.pollerWait(poller, pairs, 5000)).toBe(1);
    expect([...pairs]).toEqual([watch, POLL_IN]);
    native.pollerClose(poller);
    native.close(watch);
    await once(child, 'exit');
    expect(native.processWatch(child.pid as number)).toBe(ESRCH);
  });
});

describeNative('doorbells', () => {
  test('add up until they are taken', () => {
    const bell = native.eventOpen();
    expect(native.eventClear(bell)).toBe(false);
    native.eventSignal(bell);
    native.eventSignal(bell);
    expect(untilReadable(bell)).toBe(POLL_IN);
    expect(native.eventClear(bell)).toBe(true);
    expect(native.eventClear(bell)).toBe(false);
    native.close(bell);
    expect(thrown(() => native.eventSignal(bell))).toEqual({ name: 'Error', code: 'EBADF', syscall: 'write' });
    expect(thrown(() => native.eventClear(bell))).toEqual({ name: 'Error', code: 'EBADF', syscall: 'read' });
  });
});
