// Who this process is: its incarnation, and the host that it runs on.
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

let lastIncarnation = 0;

/** Microseconds since 1970, and more than the last one of this process: below 2^53 for the next two centuries. */
export function newIncarnation(): number {
  lastIncarnation = Math.max(lastIncarnation + 1, Math.floor((performance.timeOrigin + performance.now()) * 1000));
  return lastIncarnation;
}

const RESTARTS_MAX = 2 ** 20;

/** As newIncarnation(), where the starter counts restarts: a later one is larger whatever the clocks of two hosts say. */
export function restartedIncarnation(restarts: number): number {
  return Math.min(restarts, RESTARTS_MAX) * 2 ** 32 + Math.floor((performance.timeOrigin + performance.now()) / 1000);
}

/** Boot id and network namespace: equal on two ranks = they share loopback. */
export function hostId(): string {
  const boot = tryRead(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? hostname();
  const namespace = tryRead(() => readlinkSync('/proc/self/ns/net')) ?? 'net';
  return `${boot}/${namespace.replace(/\D+/g, '') || namespace}`;
}

function tryRead(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
