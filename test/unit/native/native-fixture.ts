// What the tests of the native part share: the binary (or the reason to skip), connected pairs, and programs in a separate process.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe } from 'vitest';
import { type Availability, type NativeBinding, POLL_IN } from '../../../src/native/binding.ts';
import { loadNative } from '../../../src/native/load.ts';

export const available = loadNative();
/** Only used by tests that are skipped without it. */
export const native = available.binding as NativeBinding;

/** A group of tests that needs an addon; without one it is skipped, and its name says why. */
export function describeAddon(addon: Availability<unknown>, name: string, body: () => void): void {
  if (addon.reason !== undefined) describe.skip(`${name} (skipped: ${addon.reason})`, body);
  else describe(name, body);
}

export const describeNative = (name: string, body: () => void): void => describeAddon(available, name, body);

/** Code and system call of what a function throws. */
export function thrown(body: () => unknown): { name: string; code: string | undefined; syscall: string | undefined } | undefined {
  try {
    body();
  } catch (error) {
    const { name, code, syscall } = error as NodeJS.ErrnoException;
    return { name, code, syscall };
  }
  return undefined;
}

export const misuse = { name: 'TypeError', code: 'ERR_INVALID_ARG', syscall: undefined };

/** Sleeps in the kernel until `fd` has something for the reader. */
export function untilReadable(fd: number, events = POLL_IN): number {
  const poller = native.pollerOpen(() => false);
  const pairs = new Int32Array(2);
  native.pollerSet(poller, fd, events);
  const found = native.pollerWait(poller, pairs, 5000);
  native.pollerClose(poller);
  return found === 1 ? pairs[1] : 0;
}

export interface Pair {
  listener: number;
  dialed: number;
  accepted: number;
  port: number;
  close(): void;
}

export function tcpPair(host = '127.0.0.1'): Pair {
  const listener = native.tcpListen(host, 0, 8, {});
  const { port } = native.socketName(listener);
  const dialed = native.tcpConnect(host, port, '', {});
  untilReadable(listener);
  const accepted = native.accept(listener);
  return { listener, dialed, accepted, port, close: () => [listener, dialed, accepted].forEach(native.close) };
}

export const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

/** Lets the event loop go round, so that handles that were closed are gone. */
export async function rounds(count = 3): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Runs a program with `native` in a process of its own. */
export function program(code: string, flags: readonly string[] = [], command: readonly string[] = []) {
  return programWith('native', available, code, flags, command);
}

/** Runs a program that has that addon by that name. */
export function programWith(
  name: string,
  addon: Availability<unknown>,
  code: string,
  flags: readonly string[] = [],
  command: readonly string[] = [],
) {
  const path = addon.reason === undefined ? addon.path : '';
  const whole = `const ${name} = require(${JSON.stringify(path)});\n${code}`;
  const [first, ...rest] = [...command, process.execPath, ...flags, '-e', whole];
  const { status, signal, stdout, stderr } = spawnSync(first, rest, { encoding: 'utf8', timeout: 100_000 });
  return { status, signal, stdout: stdout.trim(), stderr: stderr.trim() };
}
