// Every function with arguments that make no sense: an error with a stable code, never a crash. Then many cycles of opening and closing.
import { expect, test } from 'vitest';
import { type NativeBinding, TCP_INFO_LENGTH } from '../../../src/native/binding.ts';
import { describeNative, misuse, native, openDescriptors, program, rounds, tcpPair, thrown } from './native-fixture.ts';

const EBADF = -9;
const CLOSED = 1_000_000;
const bytes = new Uint8Array(8);

/** Functions that answer a bad descriptor with a negative errno, and those that throw. */
const ANSWERING: [string, () => number][] = [
  ['accept', () => native.accept(CLOSED)],
  ['connectResult', () => native.connectResult(CLOSED)],
  ['send', () => native.send(CLOSED, bytes, 0, 8)],
  ['recv', () => native.recv(-1, bytes, 0, 8)],
  ['sendv', () => native.sendv(CLOSED, [bytes], 0, 0)],
  ['recv2', () => native.recv2(CLOSED, bytes, 0, 8, bytes)],
  ['shutdownWrite', () => native.shutdownWrite(CLOSED)],
  ['tcpInfo', () => native.tcpInfo(CLOSED, new Float64Array(TCP_INFO_LENGTH))],
  ['sendDescriptors', () => native.sendDescriptors(CLOSED, bytes, [])],
  ['recvDescriptors', () => native.recvDescriptors(CLOSED, bytes, [])],
  ['pollerWait', () => native.pollerWait(CLOSED, new Int32Array(2), 0)],
];
const THROWING: [string, () => unknown][] = [
  ['socketName', () => native.socketName(CLOSED)],
  ['peerName', () => native.peerName(CLOSED)],
  ['congestionOf', () => native.congestionOf(CLOSED)],
  ['close', () => native.close(CLOSED)],
  ['closeReset', () => native.closeReset(CLOSED)],
  ['unixPeer', () => native.unixPeer(CLOSED)],
  ['pollerSet', () => native.pollerSet(CLOSED, 0, 1)],
  ['pollerRef', () => native.pollerRef(CLOSED, true)],
  ['pollerClose', () => native.pollerClose(CLOSED)],
  ['eventSignal', () => native.eventSignal(CLOSED)],
  ['eventClear', () => native.eventClear(CLOSED)],
  ['memoryMap', () => native.memoryMap(CLOSED, 1)],
  ['netlinkRead', () => native.netlinkRead(CLOSED)],
];

describeNative('bad descriptors', () => {
  test.each(ANSWERING)('%s answers EBADF', (_, call) => expect(call()).toBe(EBADF));
  test.each(THROWING)('%s throws EBADF', (_, call) => expect(thrown(call)).toMatchObject({ name: 'Error', code: 'EBADF' }));
});

describeNative('the error of a system call', () => {
  test('has the code, the number and the words that Node has for it', () => {
    let error: NodeJS.ErrnoException | undefined;
    try {
      native.close(CLOSED);
    } catch (caught) {
      error = caught as NodeJS.ErrnoException;
    }
    expect(error).toMatchObject({ code: 'EBADF', errno: EBADF, syscall: 'close', message: 'close EBADF: bad file descriptor' });
  });
});

describeNative('bounds', () => {
  const OUTSIDE: [number, number][] = [
    [0, 9],
    [9, 0],
    [8, 1],
    [-1, 1],
    [0, -1],
    [1, 2 ** 53],
    [2 ** 53, 1],
    [0.5, 1],
    [0, Number.NaN],
    [Number.POSITIVE_INFINITY, 0],
    [2 ** 64, 2 ** 64],
  ];
  test.each(OUTSIDE)('offset %s and length %s of 8 bytes are refused', (offset, length) => {
    for (const call of [
      () => native.send(CLOSED, bytes, offset, length),
      () => native.recv(CLOSED, bytes, offset, length),
      () => native.recv2(CLOSED, bytes, offset, length, bytes),
      () => native.crc32c(bytes, offset, length, 0),
      () => native.processRead(process.pid, 0, bytes, offset, length),
    ]) {
      expect(thrown(call)).toEqual(misuse);
    }
  });

  test('the error says which argument it is, and what it may be', () => {
    expect(() => native.tcpListen('127.0.0.1', 65536, 8, {})).toThrow('port must be a whole number from 0 to 65535');
    expect(() => native.send(CLOSED, bytes, 0.5, 1)).toThrow('offset must be a whole number from 0 to 9007199254740991');
    expect(() => native.unixListen('x'.repeat(500), 1)).toThrow('name must be a string of at most 127 bytes');
  });

  test('the ends themselves are within', () => {
    expect(native.send(CLOSED, bytes, 8, 0)).toBe(EBADF);
    expect(native.crc32c(bytes, 8, 0, 5)).toBe(5);
    expect(native.crc32c(new Uint8Array(0), 0, 0, 5)).toBe(5);
  });

  test('bytes that are gone have no length', () => {
    const gone = new Uint8Array(8);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(thrown(() => native.send(CLOSED, gone, 0, 8))).toEqual(misuse);
    expect(native.send(CLOSED, gone, 0, 0)).toBe(EBADF);
    expect(native.sendv(CLOSED, [gone], 0, 0)).toBe(0);
  });
});

describeNative('wrong types', () => {
  const ODD: unknown[] = [
    undefined,
    null,
    true,
    '7',
    'x'.repeat(4000),
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    0.5,
    2 ** 31,
    2 ** 53,
    -(2 ** 60),
    {},
    [],
    [{}],
    () => true,
    Symbol('s'),
    10n,
    new Uint8Array(0),
    new Uint16Array(4),
    new Float64Array(TCP_INFO_LENGTH),
    new Int32Array(4),
    new DataView(new ArrayBuffer(8)),
    new ArrayBuffer(8),
    new Proxy({}, {}),
    Object.freeze([1]),
  ];
  test('every function is named here, and every function of the surface is there', () => {
    const names = Object.keys(Object.getPrototypeOf(native) as object).sort();
    const surface: (keyof NativeBinding)[] = [
      'abi',
      'accept',
      'addressOf',
      'close',
      'closeReset',
      'combine',
      'congestionOf',
      'connectResult',
      'copyCrc32c',
      'crc32c',
      'currentCpu',
      'eventClear',
      'eventOpen',
      'eventSignal',
      'frameScan',
      'frameSeal',
      'links',
      'memoryAlias',
      'memoryCreate',
      'memoryMap',
      'memoryUnmap',
      'netlinkOpen',
      'netlinkRead',
      'peerName',
      'pollerClose',
      'pollerOpen',
      'pollerRef',
      'pollerSet',
      'pollerWait',
      'processRead',
      'processWatch',
      'recv',
      'recv2',
      'recvDescriptors',
      'routeDevice',
      'send',
      'sendDescriptors',
      'sendv',
      'setAffinity',
      'sharedCall',
      'shutdownWrite',
      'socketName',
      'tcpConnect',
      'tcpInfo',
      'tcpListen',
      'unixConnect',
      'unixListen',
      'unixPeer',
      'watchWords',
      'yieldCpu',
    ];
    expect(names).toEqual(surface);
  });

  test('no function crashes or hangs on any of them', () => {
    // In a process of its own: a descriptor opened by chance goes with it, and a crash is seen.
    const { stdout, stderr, status, signal } = program(`
      const odd = [undefined, null, true, '7', 'x'.repeat(4000), NaN, Infinity, -1, 0.5, 2 ** 31, 2 ** 53, -(2 ** 60), {}, [], [{}],
        () => true, Symbol('s'), 10n, new Uint8Array(0), new Uint8Array(64), new Uint16Array(4), new Float64Array(${TCP_INFO_LENGTH}), new Int32Array(4),
        new DataView(new ArrayBuffer(8)), new ArrayBuffer(8), new Proxy({}, {}), Object.freeze([1]), 1000000, 1000001, '127.0.0.1',
        new Proxy([], { get() { throw new Error('trap'); } })];
      let state = 12345;
      const next = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 8;
      let calls = 0, errors = 0;
      const codes = new Set();
      for (const name of Object.keys(native)) {
        if (['close', 'closeReset', 'setAffinity', 'pollerOpen', 'abi'].includes(name)) continue;
        for (let i = 0; i < 500; i++) {
          const args = Array.from({ length: next() % 7 }, () => odd[next() % odd.length]);
          // Only sleeps of no time.
          if (name === 'pollerWait') args[2] = next() % 2 ? 0 : odd[next() % 6];
          calls++;
          try {
            const answer = native[name](...args);
            if (['memoryCreate', 'eventOpen', 'netlinkOpen', 'tcpListen', 'tcpConnect', 'unixListen', 'unixConnect', 'processWatch'].includes(name) && answer >= 0) native.close(answer);
          } catch (error) {
            errors++;
            codes.add(error.code ?? error.message);
            if (!(error instanceof Error)) throw new Error('thrown: ' + String(error));
          }
        }
      }
      console.log(JSON.stringify({ calls, errors, codes: [...codes] }));
    `);
    expect({ stderr, status, signal }).toEqual({ stderr: '', status: 0, signal: null });
    const { calls, errors, codes } = JSON.parse(stdout) as { calls: number; errors: number; codes: string[] };
    expect(calls).toBeGreaterThan(18_000);
    expect(errors).toBeGreaterThan(9_000);
    for (const code of codes) expect(code).toMatch(/^(ERR_[A-Z_]+|E[A-Z0-9]+|trap)$/);
  });

  test('each argument of each hot call refuses each of them by itself', () => {
    const chunks = [bytes];
    const SOUND: [(...args: never[]) => unknown, unknown[]][] = [
      [native.send, [CLOSED, bytes, 0, 8]],
      [native.recv, [CLOSED, bytes, 0, 8]],
      [native.recv2, [CLOSED, bytes, 0, 8, bytes]],
      [native.sendv, [CLOSED, chunks, 0, 0]],
      [native.crc32c, [bytes, 0, 8, 0]],
      [native.copyCrc32c, [bytes, new Uint8Array(bytes.length), 0]],
      [native.frameScan, [bytes, 0, 8]],
      [native.combine, [0, bytes, 0, bytes, 0, bytes, 0, 8]],
      [native.pollerWait, [CLOSED, new Int32Array(2), 0]],
      [native.processRead, [CLOSED, 16, bytes, 0, 8]],
      [native.eventSignal, [CLOSED]],
    ];
    let refused = 0;
    for (const [call, sound] of SOUND) {
      for (let i = 0; i < sound.length; i++) {
        for (const odd of ODD) {
          if (typeof odd === 'number' && typeof sound[i] === 'number') continue;
          if (Object.getPrototypeOf(Object(odd)) === Object.getPrototypeOf(Object(sound[i]))) continue;
          const args = [...sound];
          args[i] = odd;
          expect(thrown(() => call(...(args as never[])))).toEqual(misuse);
          refused++;
        }
      }
    }
    expect(refused).toBeGreaterThan(500);
  });

  test('options and addresses', () => {
    for (const host of ['', 'localhost', '1.2.3', '127.0.0.1\0', 'fe80::1%nosuch0', 'x'.repeat(500)]) {
      expect(thrown(() => native.tcpListen(host, 0, 8, {}))).toEqual(misuse);
      expect(thrown(() => native.tcpConnect(host, 1, '', {}))).toEqual(misuse);
      if (host !== '') expect(thrown(() => native.tcpConnect('127.0.0.1', 1, host, {}))).toEqual(misuse);
    }
    for (const port of [-1, 65536, 1.5]) expect(thrown(() => native.tcpListen('127.0.0.1', port, 8, {}))).toEqual(misuse);
    const wrong = [{ device: 'x'.repeat(16) }, { congestion: 7 }, { sendBufferBytes: -1 }, { receiveBufferBytes: 'x' }, 'options', 7, null];
    for (const options of wrong) expect(thrown(() => native.tcpListen('127.0.0.1', 0, 8, options as never))).toEqual(misuse);
    const trap = Object.defineProperty({}, 'device', {
      get() {
        throw new RangeError('trap');
      },
    });
    expect(thrown(() => native.tcpListen('127.0.0.1', 0, 8, trap))?.name).toBe('RangeError');
    native.close(native.tcpListen('127.0.0.1', 0, 8, undefined as never));
  });

  test('chunks that change while they are read are seen as they are at the end', () => {
    const first = new Uint8Array(1 << 20);
    const chunks = [first];
    Object.defineProperty(chunks, 1, {
      enumerable: true,
      get() {
        structuredClone(first.buffer, { transfer: [first.buffer] });
        return new Uint8Array(3);
      },
    });
    const pair = tcpPair();
    expect(native.sendv(pair.dialed, chunks, 0, 0)).toBe(3);
    pair.close();
    expect(thrown(() => native.sendv(CLOSED, [bytes], 0, 9))).toEqual(misuse);
    expect(thrown(() => native.sendv(CLOSED, [bytes, {} as Uint8Array], 0, 0))).toEqual(misuse);
  });

  test('a poller is closed by pollerClose only', () => {
    const poller = native.pollerOpen(() => false);
    expect(thrown(() => native.close(poller))).toEqual(misuse);
    expect(() => native.close(poller)).toThrow('fd is a poller: close it with pollerClose()');
    native.pollerClose(poller);
    expect(thrown(() => native.pollerClose(poller))).toEqual({ name: 'Error', code: 'EBADF', syscall: 'pollerClose' });
  });
});

describeNative('a thousand cycles', () => {
  test('leave no descriptor and no mapping behind', async () => {
    await rounds();
    const before = openDescriptors();
    for (let i = 0; i < 1000; i++) {
      const poller = native.pollerOpen(() => false);
      const event = native.eventOpen();
      const segment = native.memoryCreate('cycle', 4096);
      const memory = native.memoryMap(segment, 4096);
      const listener = native.tcpListen('127.0.0.1', 0, 4, {});
      const dialed = native.tcpConnect('127.0.0.1', native.socketName(listener).port, '', {});
      native.pollerSet(poller, event, 1);
      native.pollerSet(poller, dialed, 5);
      native.pollerClose(poller);
      native.memoryUnmap(memory);
      [event, segment, listener].forEach(native.close);
      native.closeReset(dialed);
      native.close(native.netlinkOpen());
      native.links();
      thrown(() => native.tcpListen('203.0.113.1', 0, 4, {}));
      thrown(() => native.tcpConnect('127.0.0.1', 9, '203.0.113.1', {}));
      if (i % 100 === 0) await rounds(2);
    }
    await rounds(5);
    expect(openDescriptors()).toBe(before);
  }, 60_000);
});

describeNative('processors', () => {
  test('a thread can be bound to one', () => {
    const { stdout } = program(`
      const cpu = native.currentCpu();
      console.log(native.setAffinity(cpu), native.currentCpu() === cpu, native.setAffinity(-1), native.setAffinity(100000));
      native.yieldCpu();
    `);
    expect(stdout).toBe('0 true -22 -22');
  });
});
