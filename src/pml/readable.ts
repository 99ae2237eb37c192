// RGET: the sender's own memory, registered so that its receiver reads it.
import type { PmlCore } from './core.ts';
import { WINDOWS_MAX } from './hdr.ts';
import type { ReadableWindow } from './owed-records.ts';
import type { SendMessage } from './records.ts';

/** Registers the buffer on every rail that the peer can read from; windows on dead rails are closed first. */
export function openWindows(core: PmlCore, message: SendMessage): void {
  const { bml } = message.peer;
  const kept: ReadableWindow[] = [];
  for (const window of message.readable) {
    if (core.bml.isLive(bml, window.rail, window.railEpoch)) kept.push(window);
    else window.registration.deregister();
  }
  message.readable = kept;
  for (const rail of bml.get) {
    if (kept.length >= WINDOWS_MAX || kept.some((window) => window.rail === rail.index)) continue;
    const registration = rail.endpoint.register?.(message.buffer.views);
    if (registration !== undefined) kept.push({ rail: rail.index, railEpoch: rail.epoch, registration });
  }
}
