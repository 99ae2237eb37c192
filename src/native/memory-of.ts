// Memory of other processes of this user, by the descriptors that they have of it.
import { closeSync, openSync } from 'node:fs';
import type { NativeBinding } from './binding.ts';

/** Where process `pid` has that descriptor. */
export const descriptorPath = (pid: number, fd: number): string => `/proc/${pid}/fd/${fd}`;

/**
 * Maps memory (memoryCreate) that another process has open. The mapping alone holds it. Throws where it is out of reach: another user, another
 * namespace of processes, a process that is gone, or a descriptor of something else.
 */
export function mapMemoryOf(native: Pick<NativeBinding, 'memoryMap'>, pid: number, fd: number, bytes: number): ArrayBuffer {
  const own = openSync(descriptorPath(pid, fd), 'r+');
  try {
    return native.memoryMap(own, bytes);
  } finally {
    closeSync(own);
  }
}
