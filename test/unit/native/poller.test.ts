// Readiness: what is reported, sleeping in the kernel, and calls from the event loop.
import { afterEach, expect, test } from 'vitest';
import { POLL_HUP, POLL_IN, POLL_OUT, POLL_RDHUP } from '../../../src/native/binding.ts';
import { Poller } from '../../../src/native/poller.ts';
import { describeNative, native, program, rounds, tcpPair, thrown } from './native-fixture.ts';

const pairs = new Int32Array(16);
const opened: number[] = [];
const poller = (onReady: () => boolean = () => false) => {
  const id = native.pollerOpen(onReady);
  opened.push(id);
  return id;
};
const ready = (id: number, timeoutMs = 0) => {
  const found = native.pollerWait(id, pairs, timeoutMs);
  return Array.from({ length: found }, (_, i) => [pairs[2 * i], pairs[2 * i + 1]]);
};

afterEach(() => {
  for (const id of opened.splice(0)) native.pollerClose(id);
});

describeNative('what is ready', () => {
  test('is reported as long as it lasts, changes with what is asked, and ends with removal', () => {
    const id = poller();
    const event = native.eventOpen();
    native.pollerSet(id, event, POLL_IN);
    expect(ready(id)).toEqual([]);
    native.eventSignal(event);
    expect(ready(id)).toEqual([[event, POLL_IN]]);
    expect(ready(id)).toEqual([[event, POLL_IN]]);
    native.pollerSet(id, event, 0);
    expect(ready(id)).toEqual([]);
    native.pollerSet(id, event, POLL_IN | POLL_OUT);
    expect(ready(id)).toEqual([[event, POLL_IN | POLL_OUT]]);
    native.pollerSet(id, event, -1);
    expect(ready(id)).toEqual([]);
    native.pollerSet(id, event, -1);
    native.close(event);
    native.pollerSet(id, event, -1);
  });

  test('is cut to the room there is; what is left comes with the next call', () => {
    const id = poller();
    const events = Array.from({ length: 5 }, () => native.eventOpen());
    for (const event of events) {
      native.pollerSet(id, event, POLL_IN);
      native.eventSignal(event);
    }
    const two = new Int32Array(5);
    const seen = new Set<number>();
    for (let i = 0; i < 5; i++) {
      const found = native.pollerWait(id, two, 0);
      expect(found).toBeLessThanOrEqual(2);
      for (let k = 0; k < found; k++) {
        seen.add(two[2 * k]);
        native.eventClear(two[2 * k]);
      }
    }
    expect([...seen].sort()).toEqual([...events].sort());
    events.forEach(native.close);
  });

  test('a hang-up is told', () => {
    const id = poller();
    const pair = tcpPair();
    native.pollerSet(id, pair.accepted, POLL_IN | POLL_RDHUP);
    native.close(pair.dialed);
    expect(ready(id, 5000)).toEqual([[pair.accepted, POLL_IN | POLL_RDHUP]]);
    [pair.listener, pair.accepted].forEach(native.close);
  });

  test('a hang-up that nobody asked for is told once, not for ever', () => {
    const id = poller();
    const pair = tcpPair();
    native.pollerSet(id, pair.accepted, 0);
    native.closeReset(pair.dialed);
    const [[fd, events]] = ready(id, 5000);
    expect(fd).toBe(pair.accepted);
    expect(events & POLL_HUP).toBe(POLL_HUP);
    expect(ready(id)).toEqual([]);
    [pair.listener, pair.accepted].forEach(native.close);
  });

  test('a descriptor that cannot be watched is an error', () => {
    const id = poller();
    expect(thrown(() => native.pollerSet(id, 1_000_000, POLL_IN))).toEqual({ name: 'Error', code: 'EBADF', syscall: 'epoll_ctl' });
    expect(thrown(() => native.pollerSet(id, id, POLL_IN))).toMatchObject({ syscall: 'epoll_ctl' });
  });
});

describeNative('sleeping', () => {
  test('ends when something is ready, and after the time given', () => {
    const id = poller();
    const event = native.eventOpen();
    native.pollerSet(id, event, POLL_IN);
    expect(ready(id, 0.2)).toEqual([]);
    const before = performance.now();
    expect(ready(id, 20)).toEqual([]);
    // The kernel never wakes early; how late it is depends on the machine.
    expect(performance.now() - before).toBeGreaterThanOrEqual(19.9);
    native.eventSignal(event);
    expect(ready(id, Number.POSITIVE_INFINITY)).toEqual([[event, POLL_IN]]);
    native.close(event);
  });

  test('a signal ends it with nothing', () => {
    const { stdout, status } = program(`
      const { execSync, spawn } = require('node:child_process');
      process.on('SIGUSR1', () => {});
      process.on('SIGUSR2', () => {});
      const id = native.pollerOpen(() => false);
      spawn('sh', ['-c', 'sleep 0.3; kill -USR2 ' + process.pid], { stdio: 'ignore' });
      const before = Date.now();
      const found = native.pollerWait(id, new Int32Array(2), 15000);
      console.log(found, Date.now() - before < 14000);
      native.pollerClose(id);
    `);
    expect({ stdout, status }).toEqual({ stdout: '0 true', status: 0 });
  });
});

describeNative('calls from the event loop', () => {
  test('again and again while true is returned, with microtasks and ticks between', async () => {
    const event = native.eventOpen();
    const log: string[] = [];
    let calls = 0;
    const id = poller(() => {
      calls++;
      log.push(`call ${calls}`);
      queueMicrotask(() => log.push(`microtask ${calls}`));
      process.nextTick(() => log.push(`tick ${calls}`));
      if (calls === 3) native.eventClear(event);
      return calls < 3;
    });
    native.pollerSet(id, event, POLL_IN);
    native.eventSignal(event);
    while (calls < 3) await rounds(1);
    expect(log).toEqual(['call 1', 'tick 1', 'microtask 1', 'call 2', 'tick 2', 'microtask 2', 'call 3', 'tick 3', 'microtask 3']);
    await rounds();
    expect(calls).toBe(3);
    native.close(event);
  });

  test('what stays ready is told in every round of the loop', async () => {
    const event = native.eventOpen();
    let calls = 0;
    const id = poller(() => {
      calls++;
      return false;
    });
    native.pollerSet(id, event, POLL_IN);
    native.eventSignal(event);
    await rounds(5);
    expect(calls).toBeGreaterThan(2);
    native.close(event);
  });

  test('answers that are no boolean end the round', async () => {
    const event = native.eventOpen();
    native.eventSignal(event);
    let calls = 0;
    const id = poller((() => {
      calls++;
      return calls === 1 ? 1 : undefined;
    }) as unknown as () => boolean);
    native.pollerSet(id, event, POLL_IN);
    while (calls < 2) await rounds(1);
    native.close(event);
    expect(calls).toBeGreaterThanOrEqual(2);
  });

  test('the callback may close its poller', async () => {
    const event = native.eventOpen();
    native.eventSignal(event);
    let calls = 0;
    const id = native.pollerOpen(() => {
      calls++;
      native.pollerClose(id);
      return true;
    });
    native.pollerSet(id, event, POLL_IN);
    await rounds(5);
    expect(calls).toBe(1);
    native.close(event);
  });

  test('the process may exit in the callback', () => {
    const { status, signal, stderr } = program(`
      const event = native.eventOpen();
      native.eventSignal(event);
      native.pollerSet(native.pollerOpen(() => process.exit(6)), event, 1);
      native.pollerOpen(() => false);
    `);
    expect({ status, signal, stderr }).toEqual({ status: 6, signal: null, stderr: '' });
  });

  test('the class Poller over it tells its targets', async () => {
    const event = native.eventOpen();
    const seen: number[] = [];
    const over: Poller = new Poller(native, () => over.look() > 5);
    over.add(event, { onReady: (events) => seen.push(events, Number(native.eventClear(event))) });
    native.eventSignal(event);
    while (seen.length === 0) await rounds(1);
    expect(seen).toEqual([POLL_IN, 1]);
    over.remove(event);
    over.close();
    native.close(event);
  });

  test('an exception reaches uncaughtException, and the poller goes on', () => {
    const { stdout, status } = program(`
      const event = native.eventOpen();
      let calls = 0;
      process.on('uncaughtException', (error, origin) => console.log(error.message, origin));
      const id = native.pollerOpen(() => {
        calls++;
        if (calls <= 2) throw new Error('number ' + calls);
        native.pollerClose(id);
        return true;
      });
      native.pollerSet(id, event, 1);
      native.eventSignal(event);
    `);
    expect({ stdout, status }).toEqual({ stdout: 'number 1 uncaughtException\nnumber 2 uncaughtException', status: 0 });
  });

  test('an exception that nobody catches ends the process as any other', () => {
    const { stderr, status } = program(`
      const event = native.eventOpen();
      native.pollerSet(native.pollerOpen(() => { throw new Error('nobody catches this'); }), event, 1);
      native.eventSignal(event);
    `);
    expect(status).toBe(1);
    expect(stderr).toContain('nobody catches this');
  });

  test('a poller keeps the process alive unless it is told not to', () => {
    const open = 'const id = native.pollerOpen(() => false);';
    expect(program(`${open} native.pollerRef(id, false);`).status).toBe(0);
    expect(program(`${open} native.pollerRef(id, false); native.pollerRef(id, true); setTimeout(() => process.exit(3), 300);`).status).toBe(
      3,
    );
    expect(program(`${open} setTimeout(() => native.pollerClose(id), 50);`).status).toBe(0);
    expect(program(`${open} setTimeout(() => process.exit(4), 300).unref();`).status).toBe(4);
  });
});
